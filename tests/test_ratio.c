/* A ratio check from samples to its aggregate, against values computed by tests/gen_ratio.py; and what its controls do to it. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "census.h"
#include "record.h"
#include "stats.h"
#include "unit.h"

static const struct record_env plain = {.today = "2026-11-30"};

static json_t *runs(void)
{
	json_error_t e;
	json_t *j = json_load_file(ASSAY_SOURCE_ROOT "/tests/data/ratio.json", 0, &e);
	ck_assert_msg(j != NULL, "%s", e.text);
	return j;
}

static double num(const json_t *o, const char *key)
{
	const json_t *x = json_object_get(o, key);
	ck_assert_msg(json_is_number(x), "%s is no number", key);
	return json_number_value(x);
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}

/* The cells of a run, judged by this estimator; the list is borrowed from the run. */
static size_t judged(const json_t *run, const char *estimator, const struct census_files *files, json_t *cells[16])
{
	json_t *list = json_object_get(run, "cells");
	const size_t n = json_array_size(list);
	ck_assert_int_le(n, 16);
	for (size_t i = 0; i < n; i++) {
		cells[i] = json_array_get(list, i);
		json_object_set_new(json_object_get(cells[i], "judge"), "estimator", json_string(estimator));
		census_check(cells[i], files);
		record_judge(cells[i], &plain, false);
	}
	return n;
}

static const json_t *of_over(const json_t *cell)
{
	return json_object_get(json_object_get(cell, "timing"), "of_over");
}

/* Without controls: the numbers. */
START_TEST(numbers)
{
	static const char *const estimators[] = {"mean", "median", "paired"};
	json_t *all = runs(), *run;
	size_t r;
	json_array_foreach(all, r, run)
	{
		json_t *list = json_object_get(run, "cells"), *c;
		size_t i;
		json_array_foreach(list, i, c)
		{
			json_object_set_new(json_object_get(c, "ratio_check"), "may_differ", json_array());
			json_object_set_new(json_object_get(c, "ratio_check"), "equal_issue_interval", json_null());
		}
		for (size_t e = 0; e < 3; e++) {
			const json_t *want = json_object_get(json_object_get(run, "want"), estimators[e]);
			json_t *cells[16];
			const size_t n = judged(run, estimators[e], NULL, cells);
			json_t *got = record_aggregates(cells, n, NULL);
			ck_assert_int_eq(json_array_size(got), 2);
			for (size_t d = 0; d < 2; d++) {
				const json_t *a = json_array_get(got, d),
					     *w = json_object_get(want, d ? "mid" : "wide");
				for (size_t k = 0; k < n / 2; k++)
					ck_assert_double_eq_tol(num(of_over(cells[d * n / 2 + k]), "ratio"),
								json_number_value(
									json_array_get(json_object_get(w, "ratio"), k)),
								1e-12);
				const json_t *g = json_object_get(a, "geomean"), *x = json_object_get(a, "weighted");
				ck_assert_double_eq_tol(num(g, "ratio"), num(w, "geomean"), 1e-12);
				ck_assert_double_eq_tol(num(x, "ratio"), num(w, "weighted"), 1e-12);
				ck_assert_double_eq_tol(num(g, "pp"), 100 * (num(w, "geomean") - 1), 1e-9);
				ck_assert_int_eq(num(g, "n"), num(w, "n"));
				ck_assert_int_eq(num(x, "of"), num(w, "of_weighted"));
				ck_assert(num(g, "lo") < num(g, "ratio") && num(g, "ratio") < num(g, "hi"));
				ck_assert_double_eq_tol(num(json_object_get(a, "agree"), "difference"),
							num(want, "difference"), 1e-12);
				ck_assert_msg(strcmp(text(a, "verdict"), text(run, "verdict")) == 0, "%s by %s: %s %s",
					      text(run, "name"), estimators[e], text(a, "verdict"), text(a, "reason"));
				const bool disagree = strcmp(text(run, "name"), "disagree") == 0,
					   said = strstr(text(a, "reason"), "disagree:") != NULL;
				ck_assert_int_eq(said, disagree);
				/* The bar is met by the lower end, and not by the ratio. */
				ck_assert_int_eq(json_is_true(json_object_get(json_object_get(a, "bar"), "met")),
						 num(g, "lo") >= 1.1);
			}
			json_decref(got);
		}
	}
	json_decref(all);
}
END_TEST

/* The same run under controls: counts and intervals of both arms. */
static void controlled(const char *census, const char *rates, const char *verdict, const char *begins,
		       const char *holds)
{
	json_t *all = runs(), *run = json_array_get(all, 0), *cells[16];
	json_t *c = json_loads(census, 0, NULL), *r = json_loads(rates, 0, NULL);
	const struct census_files files = {c, r, "census.json", "rates.json"};
	const size_t n = judged(run, "paired", &files, cells);
	json_t *got = record_aggregates(cells, n, NULL);
	const json_t *a = json_array_get(got, 0);
	ck_assert_msg(strcmp(text(a, "verdict"), verdict) == 0, "%s: %s", text(a, "verdict"), text(a, "reason"));
	ck_assert_msg(strstr(text(a, "reason"), begins) == text(a, "reason"), "%s", text(a, "reason"));
	ck_assert_msg(strstr(text(a, "reason"), holds) != NULL, "%s", text(a, "reason"));
	/* The number is shown whatever is believed of it. */
	const json_t *want = json_object_get(json_object_get(json_object_get(run, "want"), "paired"), "wide");
	ck_assert_double_eq_tol(num(json_object_get(a, "geomean"), "ratio"), num(want, "geomean"), 1e-12);
	const bool confounded = strncmp(text(a, "reason"), "confounded", 10) == 0;
	ck_assert_str_eq(text(cells[0], "status"), confounded ? "invalid" : "pass");
	ck_assert_str_eq(text(of_over(cells[0]), "reason"), confounded ? "confounded" : "");
	json_decref(got);
	json_decref(c);
	json_decref(r);
	json_decref(all);
}

#define EQUAL "{\"s32\": {\"counts\": {\"IMMA\": 64, \"I2F\": 8}}, \"f32\": {\"counts\": {\"QMMA\": 64, \"I2F\": 8}}}"
#define MORE "{\"s32\": {\"counts\": {\"IMMA\": 64, \"I2F\": 8}}, \"f32\": {\"counts\": {\"QMMA\": 64, \"I2F\": 9}}}"

START_TEST(controls)
{
	controlled(EQUAL, "{\"s32\": 16.1, \"f32\": 16.1}", "met", "", "");
	controlled(MORE, "{\"s32\": 16.1, \"f32\": 16.1}", "invalid", "confounded: ", "I2F 9 against 8");
	controlled(EQUAL, "{\"s32\": 16.1, \"f32\": 32.0}", "invalid",
		   "confounded: ", "f32 32 cycles, s32 16.1 (98.8 % apart");
	controlled(MORE, "{\"s32\": 16.1, \"f32\": 32.0}", "invalid",
		   "confounded: ", "; the matrix instructions issue at different");
	/* A control that could not be looked at is no control that held. */
	controlled("{\"s32\": {\"counts\": {\"IMMA\": 64}}}", "{\"s32\": 16.1, \"f32\": 16.1}", "invalid",
		   "unproven: ", "the machine code of f32");
	controlled(EQUAL, "{\"s32\": 16.1}", "invalid", "unproven: ", "the issue interval of f32 was not measured");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ratio");
	TCase *t = tcase_create("ratio");
	tcase_add_test(t, numbers);
	tcase_add_test(t, controls);
	suite_add_tcase(s, t);
	return unit_run(s);
}
