/* selftest: what it makes of records. It must see what escaped, what is blamed on the wrong arm, and a gate that lies. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "selftest.h"
#include "unit.h"

static json_t *finding(const char *check, const char *arm, const char *status)
{
	return json_pack("{s:s, s:s?, s:s, s:s}", "check", check, "arm", arm, "status", status, "text", "as it is");
}

static json_t *must_fail(const char *expect, const char *status, const char *unsupported, json_t *findings)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:{s:s, s:s}, s:o, s:[{s:s,s:s,s:n},{s:s,s:s,s:s?}]}", "kind", "cell",
			 "case", "ulp", "status", status, "reason", "because", "waiver", "id", "must-fail-ulp",
			 "expect", expect, "checks", findings, "arms", "name", "shipped", "role", "shipped",
			 "unsupported", "name", "ulp", "role", "candidate", "unsupported", unsupported);
}

static enum claim_state state_of(json_t *record, int *status)
{
	struct selftest *s = selftest_create(false);
	struct claim c[SELFTEST_TAKE_MAX];
	ck_assert_int_eq(selftest_take(s, record, c), 1);
	*status = selftest_status(s);
	json_t *o = selftest_record(&c[0]);
	const json_t *holds = json_object_get(o, "holds");
	ck_assert(c[0].state == CLAIM_HOLDS    ? json_is_true(holds)
		  : c[0].state == CLAIM_BROKEN ? json_is_false(holds)
					       : json_is_null(holds));
	json_decref(o);
	json_decref(record);
	selftest_destroy(s);
	return c[0].state;
}

START_TEST(caught_or_escaped)
{
	int status;
	ck_assert_int_eq(state_of(must_fail("mismatch", "xfail", NULL,
					    json_pack("[o,o]", finding("identity", "ulp", "mismatch"),
						      finding("repeat", "ulp", "pass"))),
				  &status),
			 CLAIM_HOLDS);
	ck_assert_int_eq(status, 0);
	/* A crash blames the cell. */
	ck_assert_int_eq(state_of(must_fail("error", "xfail", NULL, json_pack("[o]", finding("run", NULL, "error"))),
				  &status),
			 CLAIM_HOLDS);
	/* It passed. */
	ck_assert_int_eq(state_of(must_fail("mismatch", "xpass", NULL,
					    json_pack("[o]", finding("identity", "ulp", "pass"))),
				  &status),
			 CLAIM_BROKEN);
	ck_assert_int_eq(status, 1);
	/* It failed, for another reason than the one there is. */
	ck_assert_int_eq(state_of(must_fail("mismatch", "error", NULL,
					    json_pack("[o]", finding("run", "ulp", "error"))),
				  &status),
			 CLAIM_BROKEN);
	/* Another check saw it first. */
	ck_assert_int_eq(state_of(must_fail("mismatch", "wrong", NULL,
					    json_pack("[o]", finding("memory", "ulp", "wrong"))),
				  &status),
			 CLAIM_HOLDS);
	/* The cell fails as expected, and the blame is on the wrong arm. */
	ck_assert_int_eq(state_of(must_fail("mismatch", "xfail", NULL,
					    json_pack("[o]", finding("identity", "shipped", "mismatch"))),
				  &status),
			 CLAIM_BROKEN);
	/* Waived with no finding at all. */
	ck_assert_int_eq(state_of(must_fail("mismatch", "xfail", NULL, json_array()), &status), CLAIM_BROKEN);
	ck_assert_int_eq(state_of(must_fail("mismatch", "pass", "not here",
					    json_pack("[o]", finding("identity", "shipped", "pass"))),
				  &status),
			 CLAIM_SKIPPED);
	ck_assert_int_eq(status, 0);
}
END_TEST

static json_t *honest(const char *status, json_t *findings)
{
	return json_pack("{s:s, s:s, s:s, s:n, s:n, s:o, s:[]}", "kind", "cell", "case", "honest", "status", status,
			 "reason", "waiver", "checks", findings, "arms");
}

START_TEST(what_must_pass)
{
	int status;
	ck_assert_int_eq(state_of(honest("pass", json_pack("[o]", finding("identity", "split=4", "pass"))), &status),
			 CLAIM_HOLDS);
	ck_assert_int_eq(state_of(honest("mismatch", json_pack("[o]", finding("identity", "split=4", "mismatch"))),
				  &status),
			 CLAIM_BROKEN);
	/* A cell in which nothing was checked is nobody's proof. */
	struct selftest *s = selftest_create(true);
	struct claim c[SELFTEST_TAKE_MAX];
	json_t *record = honest("pass", json_array());
	ck_assert_int_eq(selftest_take(s, record, c), 0);
	ck_assert_int_eq(selftest_status(s), 3);
	json_decref(record);
	selftest_destroy(s);
}
END_TEST

/* A timed cell: verdict, lower end and estimate in per cent, and what it cost beside its launches, in ms. */
static json_t *timed(const char *name, const char *verdict, double lo, double estimate, double overhead_ms)
{
	return json_pack("{s:s, s:s, s:s, s:{s:s, s:f, s:f, s:f, s:i}, s:{s:I, s:I, s:I, s:I}}", "kind", "cell", "case",
			 name, "status", "pass", "timing", "verdict", verdict, "lo", log1p(lo / 100), "estimate",
			 log1p(estimate / 100), "ln_margin", log(1.02), "n", 12, "cost", "wall_ns",
			 (json_int_t)(1e6 * (30 + overhead_ms)), "launch_ns", (json_int_t)10000000, "scrub_ns",
			 (json_int_t)10000000, "reference_ns", (json_int_t)10000000);
}

struct part {
	int n;
	const char *verdict;
	double lo, estimate;
};

/* The claim about a case with these cells. */
static enum claim_state group(const char *name, bool quick, const struct part *parts, int n_parts, double overhead_ms,
			      struct claim *overhead)
{
	struct selftest *s = selftest_create(quick);
	struct claim c[8];
	for (int p = 0; p < n_parts; p++)
		for (int i = 0; i < parts[p].n; i++) {
			json_t *record = timed(name, parts[p].verdict, parts[p].lo, parts[p].estimate, overhead_ms);
			ck_assert_int_eq(selftest_take(s, record, c), 0);
			json_decref(record);
		}
	ck_assert_int_eq(selftest_close(s, c, 8), 2);
	if (overhead)
		*overhead = c[1];
	selftest_destroy(s);
	return c[0].state;
}
#define GROUP(name, quick, ...)                                                                                        \
	group(name, quick, (const struct part[]){__VA_ARGS__},                                                         \
	      (int)(sizeof((const struct part[]){__VA_ARGS__}) / sizeof(struct part)), 1, NULL)

START_TEST(itself)
{
	ck_assert_int_eq(GROUP("aa-x", false, {50, "pass", -1, 0}), CLAIM_HOLDS);
	ck_assert_int_eq(GROUP("aa-x", false, {49, "pass", -1, 0}, {1, "regression", 3, 4}), CLAIM_BROKEN);
	/* A suspect that was not confirmed is no failure. */
	ck_assert_int_eq(GROUP("aa-x", false, {49, "pass", -1, 0}, {1, "inconclusive", 3, 4}), CLAIM_HOLDS);
	ck_assert_int_eq(GROUP("aa-x", false, {20, "pass", -1, 0}, {30, "inconclusive", -9, 0}), CLAIM_OPEN);
	ck_assert_int_eq(GROUP("aa-x", true, {1, "regression", 3, 4}), CLAIM_TOLD);
}
END_TEST

START_TEST(planted)
{
	ck_assert_int_eq(GROUP("plant-50", false, {20, "regression", 4, 5}), CLAIM_HOLDS);
	ck_assert_int_eq(GROUP("plant-50", false, {15, "regression", 4, 5}, {5, "pass", 0, 1}), CLAIM_BROKEN);
	/* One in twenty may be chance: P(X >= 1 of 20 at 2.5 %) is 40 %. */
	ck_assert_int_eq(GROUP("plant-50", false, {19, "regression", 4, 5}, {1, "pass", 0, 1}), CLAIM_HOLDS);
	ck_assert_int_eq(GROUP("plant-50", false, {9, "regression", 4, 5}, {11, "inconclusive", 1, 5}), CLAIM_OPEN);
	/* Below the margin a pass is right and a suspect wrong. */
	ck_assert_int_eq(GROUP("plant-10", false, {20, "pass", 0, 1}), CLAIM_HOLDS);
	ck_assert_int_eq(GROUP("plant-10", false, {15, "pass", 0, 1}, {5, "inconclusive", 3, 4}), CLAIM_BROKEN);
	/* At the margin nothing is claimed. */
	ck_assert_int_eq(GROUP("plant-20", false, {14, "inconclusive", 1, 2}, {6, "regression", 3, 4}), CLAIM_TOLD);
	ck_assert_int_eq(GROUP("plant-30", false, {14, "inconclusive", 1, 2}, {6, "pass", 0, 1}), CLAIM_BROKEN);
}
END_TEST

START_TEST(overhead)
{
	const struct part p = {5, "pass", -1, 0};
	struct claim c;
	group("aa-x", false, &p, 1, 149, &c);
	ck_assert_int_eq(c.state, CLAIM_HOLDS);
	ck_assert_msg(strstr(c.text, "149.0 ms"), "%s", c.text);
	group("aa-x", false, &p, 1, 151, &c);
	ck_assert_int_eq(c.state, CLAIM_BROKEN);
	group("aa-x", true, &p, 1, 151, &c);
	ck_assert_int_eq(c.state, CLAIM_TOLD);
}
END_TEST

START_TEST(scrub)
{
	for (int proven = 0; proven < 2; proven++) {
		struct selftest *s = selftest_create(false);
		struct claim c[SELFTEST_TAKE_MAX];
		json_t *h = json_pack("{s:s, s:s, s:{s:s, s:f, s:i, s:{s:i,s:i,s:i,s:i,s:f,s:b}}}", "kind", "header",
				      "backend", "host", "calibration", "clock", "device", "tick_ns", 1.0,
				      "null_launch_ns", 30, "scrub", "bytes", 1 << 26, "probe_bytes", 131072, "warm_ns",
				      8000, "scrubbed_ns", 9000, "ratio", 1.1, "proven", proven);
		ck_assert_int_eq(selftest_take(s, h, c), 2);
		ck_assert_int_eq(c[0].state, CLAIM_TOLD);
		ck_assert_int_eq(c[1].state, proven ? CLAIM_HOLDS : CLAIM_BROKEN);
		ck_assert_int_eq(selftest_status(s), proven ? 0 : 1);
		json_decref(h);
		selftest_destroy(s);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("selftest");
	TCase *t = tcase_create("selftest");
	tcase_add_test(t, caught_or_escaped);
	tcase_add_test(t, what_must_pass);
	tcase_add_test(t, itself);
	tcase_add_test(t, planted);
	tcase_add_test(t, overhead);
	tcase_add_test(t, scrub);
	suite_add_tcase(s, t);
	return unit_run(s);
}
