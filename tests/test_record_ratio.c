/* Ratio checks: what cells of a suite say together. */
#include "test_record.h"
#include "unit.h"

static json_t *ratio_record(const char *geometry, const char *data, double weight, double ratio, double tolerance,
			    double bar)
{
	struct cell c = cell_of(NULL);
	char id[128];
	snprintf(id, sizeof id, "s/acc/mmq/%s/%s/m=512", geometry, data);
	c.id = id;
	c.geometry = geometry;
	c.data = data;
	c.weight = weight;
	c.checks.on = 1u << CHECK_RATIO;
	c.checks.ratio = (struct check_ratio){.of = "split=4",
					      .over = "shipped",
					      .geomean = true,
					      .weighted = true,
					      .agree_over_data = true,
					      .agree_tolerance = tolerance,
					      .equal_issue_interval = -1,
					      .has_bar = true,
					      .bar_at_least = bar};
	json_t *cell = record_cell_begin(&c), *facts = facts_of(20, 1, ratio, 1);
	record_merge_facts(cell, facts);
	json_decref(facts);
	record_judge(cell, &plain, false);
	return cell;
}

START_TEST(ratio_checks)
{
	json_t *cells[4] = {ratio_record("q", "wide", 1, 1.20, 0.02, 1.10),
			    ratio_record("k", "wide", 2, 1.15, 0.02, 1.10),
			    ratio_record("q", "mid", 1, 1.20, 0.02, 1.10),
			    ratio_record("k", "mid", NAN, 1.16, 0.02, 1.10)};
	ck_assert_str_eq(text(timing(cells[0]), "verdict"), "pass");
	const json_t *x = json_object_get(timing(cells[0]), "of_over");
	ck_assert(fabs(json_number_value(json_object_get(x, "ratio")) - 1.20) < 0.02);
	json_t *all = record_aggregates(cells, 4, NULL);
	ck_assert_uint_eq(json_array_size(all), 2);
	const json_t *wide = json_array_get(all, 0), *mid = json_array_get(all, 1);
	double r0 = json_number_value(json_object_get(x, "ratio"));
	double r1 = json_number_value(json_object_get(json_object_get(timing(cells[1]), "of_over"), "ratio"));
	const json_t *g = json_object_get(wide, "geomean");
	ck_assert(fabs(json_number_value(json_object_get(g, "ratio")) - sqrt(r0 * r1)) < 1e-12);
	ck_assert(json_number_value(json_object_get(g, "lo")) < json_number_value(json_object_get(g, "ratio")));
	ck_assert_str_eq(text(wide, "verdict"), "met");
	ck_assert(json_is_true(json_object_get(json_object_get(wide, "agree"), "holds")));
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(mid, "weighted"), "of")), 1);
	struct run_counts c = {0};
	record_count_aggregate(wide, &c);
	ck_assert(c.bars_missed == 0 && c.aggregates_invalid == 0);
	json_decref(all);

	/* A bar is judged where every cell of the whole plan's group ran, and agreement where all distributions did. */
	static const struct {
		const char *header, *wide, *mid;
	} parts[] = {
		{"{}", "met", "met"},
		{"{'plan_cells': 4}", "met", "met"},
		{"{'plan_cells': 6}", "2 cells of the plan", "2 cells of the plan"},
		{"{'plan_cells': 60, 'ratio_groups': {'gate/mla.absorb_q/wide/P': 2, 'gate/mla.absorb_q/mid/P': 2, "
		 "'gate/mla.absorb_q/P': 4}}",
		 "met", "met"},
		{"{'plan_cells': 6, 'ratio_groups': {'gate/mla.absorb_q/wide/P': 3, 'gate/mla.absorb_q/mid/P': 2, "
		 "'gate/mla.absorb_q/P': 5}}",
		 "1 cell of this ratio", "1 cell of this ratio"},
	};
	char *point = json_dumps(json_object_get(cells[0], "point"), JSON_COMPACT);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		char header[600] = "";
		size_t n_header = 0;
		for (const char *s = parts[i].header; *s; s++) {
			/* P: the point, its quotes escaped. */
			if (*s != 'P') {
				header[n_header++] = *s == '\'' ? '"' : *s;
				continue;
			}
			for (const char *q = point; *q; q++) {
				if (*q == '"')
					header[n_header++] = '\\';
				header[n_header++] = *q;
			}
		}
		json_t *h = json_loads(header, 0, NULL);
		ck_assert_msg(h != NULL, "%s", header);
		all = record_aggregates(cells, 4, h);
		for (int k = 0; k < 2; k++) {
			const char *want = k ? parts[i].mid : parts[i].wide;
			const json_t *a = json_array_get(all, k);
			struct run_counts part = {0};
			record_count_aggregate(a, &part);
			ck_assert(part.bars_missed == 0 && part.aggregates_invalid == 0);
			const bool met = strcmp(want, "met") == 0;
			ck_assert_str_eq(text(a, "verdict"), met ? "met" : "invalid");
			ck_assert_msg(met || (strncmp(text(a, "reason"), "incomplete: ", 12) == 0 &&
					      strstr(text(a, "reason"), want)),
				      "%s", text(a, "reason"));
		}
		json_decref(all);
		json_decref(h);
	}
	free(point);

	/* A cell that is known to be wrong has no ratio to count; one that is known to be slow has. */
	json_object_set_new(cells[0], "status", json_string("xfail"));
	for (int slow = 0; slow < 2; slow++) {
		json_object_set_new(cells[0], "waiver",
				    json_pack("{s:s, s:s}", "id", "W1", "expect", slow ? "regression" : "mismatch"));
		all = record_aggregates(cells, 4, NULL);
		g = json_object_get(json_array_get(all, 0), "geomean");
		ck_assert_int_eq(json_integer_value(json_object_get(g, "n")), slow ? 2 : 1);
		ck_assert_int_eq(json_integer_value(json_object_get(g, "of")), 2);
		json_decref(all);
	}
	json_object_set_new(cells[0], "waiver", json_null());
	json_object_set_new(cells[0], "status", json_string("pass"));
	json_decref(cells[2]);
	json_decref(cells[3]);

	/* The other distribution says something else: neither number is believed. */
	cells[2] = ratio_record("q", "mid", 1, 1.60, 0.02, 1.10);
	cells[3] = ratio_record("k", "mid", 2, 1.60, 0.02, 1.10);
	all = record_aggregates(cells, 4, NULL);
	ck_assert_str_eq(text(json_array_get(all, 0), "verdict"), "invalid");
	ck_assert(strncmp(text(json_array_get(all, 0), "reason"), "disagree", 8) == 0);
	json_decref(all);

	/* A confounded cell: invalid, with the number still shown. */
	json_array_append_new(json_object_get(cells[0], "checks"),
			      json_pack("{s:s, s:s, s:s, s:s}", "check", "census", "arm", "split=4", "status",
					"invalid", "text", "HMMA 0 -> 512"));
	record_judge(cells[0], &plain, false);
	ck_assert_str_eq(text(cells[0], "status"), "invalid");
	ck_assert_str_eq(text(timing(cells[0]), "reason"), "confounded");
	all = record_aggregates(cells, 2, NULL);
	ck_assert_str_eq(text(json_array_get(all, 0), "reason"), "confounded: HMMA 0 -> 512");
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(json_array_get(all, 0), "geomean"), "n")),
			 2);
	record_count_aggregate(json_array_get(all, 0), &c);
	ck_assert(c.aggregates_invalid == 1);
	json_decref(all);

	/* But not where an arm was found wrong as well: `invalid`, the worse word, hides it. */
	json_array_append_new(json_object_get(cells[0], "checks"),
			      json_pack("{s:s, s:s, s:s, s:s}", "check", "timed", "arm", "split=4", "status",
					"mismatch", "text", "wrong under the clock"));
	all = record_aggregates(cells, 2, NULL);
	g = json_object_get(json_array_get(all, 0), "geomean");
	ck_assert_int_eq(json_integer_value(json_object_get(g, "n")), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(g, "of")), 2);
	json_decref(all);
	json_array_remove(json_object_get(cells[0], "checks"),
			  json_array_size(json_object_get(cells[0], "checks")) - 1);

	/* Two controls stand apart, each with its own sentence; the worst finding of each counts, whichever came first. */
	static const struct {
		const char *control, *status, *text;
	} found[] = {{"issue_interval", "skip", "not on this device"},
		     {"issue_interval", "invalid", "6.1 and 16.1 cycles"},
		     {"issue_interval", "pass", "equal"}};
	for (size_t i = 0; i < sizeof found / sizeof *found; i++)
		json_array_append_new(json_object_get(cells[0], "checks"),
				      json_pack("{s:s, s:s, s:s, s:s, s:s}", "check", "census", "arm", "split=4",
						"control", found[i].control, "status", found[i].status, "text",
						found[i].text));
	all = record_aggregates(cells, 2, NULL);
	const json_t *controls = json_object_get(json_array_get(all, 0), "controls");
	ck_assert_str_eq(text(json_object_get(controls, "machine_code"), "text"), "HMMA 0 -> 512");
	ck_assert_str_eq(text(json_object_get(controls, "issue_interval"), "status"), "invalid");
	ck_assert_str_eq(text(json_object_get(controls, "issue_interval"), "text"), "6.1 and 16.1 cycles");
	ck_assert_str_eq(text(json_array_get(all, 0), "reason"), "confounded: HMMA 0 -> 512; 6.1 and 16.1 cycles");
	json_decref(all);

	/* The lower end decides: 1.15 with a bar of 1.149 is not met. */
	json_t *close[1] = {ratio_record("k", "wide", 2, 1.15, 0.02, 1.149)};
	all = record_aggregates(close, 1, NULL);
	ck_assert_str_eq(text(json_array_get(all, 0), "verdict"), "missed");
	record_count_aggregate(json_array_get(all, 0), &c);
	ck_assert(c.bars_missed == 1);
	json_decref(all);
	/* The bar is the weighted total's where no geomean is asked for: 1.15 of the long shape and 1.60 of the short one. */
	for (int geomean = 0; geomean < 2; geomean++) {
		json_t *two[2] = {ratio_record("k", "wide", 9, 1.15, 0.02, 1.30),
				  ratio_record("q", "wide", 1, 1.60, 0.02, 1.30)};
		for (int i = 0; i < 2; i++)
			json_object_set_new(json_object_get(two[i], "ratio_check"), "geomean", json_boolean(geomean));
		all = record_aggregates(two, 2, NULL);
		const json_t *bar = json_object_get(json_array_get(all, 0), "bar");
		ck_assert_str_eq(text(bar, "by"), geomean ? "geomean" : "weighted");
		ck_assert_str_eq(text(json_array_get(all, 0), "verdict"), geomean ? "met" : "missed");
		ck_assert(json_is_null(json_object_get(json_array_get(all, 0), "geomean")) == !geomean);
		json_decref(all);
		json_decref(two[0]);
		json_decref(two[1]);
	}
	/* A time of 0 has no logarithm: it is in no ratio, and the cell is undecided by the clock. */
	for (size_t arm = 0; arm < 3; arm += 2) {
		json_t *none = ratio_record("k", "wide", 2, 1.15, 0.02, 1.10);
		json_array_set_new(json_object_get(json_array_get(json_object_get(none, "arms"), arm), "samples_ns"), 3,
				   json_integer(0));
		record_judge(none, &plain, false);
		const json_t *over = json_object_get(timing(none), "of_over");
		ck_assert_int_eq(json_integer_value(json_object_get(over, "n")), 19);
		ck_assert(fabs(json_number_value(json_object_get(over, "ratio")) - 1.15) < 0.02);
		ck_assert_str_eq(text(over, "reason"), "resolution");
		json_decref(none);
	}
	/* The interval of a ratio is one of 95 %, whatever the gate's alpha. */
	json_t *strict = ratio_record("k", "wide", 2, 1.15, 0.02, 1.10);
	const double lo95 = json_number_value(json_object_get(json_object_get(timing(strict), "of_over"), "lo"));
	json_object_set_new(json_object_get(strict, "judge"), "alpha", json_real(0.001));
	record_judge(strict, &plain, false);
	ck_assert_double_eq(json_number_value(json_object_get(json_object_get(timing(strict), "of_over"), "lo")), lo95);
	json_decref(strict);
	/* An arm that takes as long is not slower. */
	json_t *equal[1] = {ratio_record("k", "wide", 2, 1.15, 0.02, 1.10)};
	json_t *arms = json_object_get(equal[0], "arms");
	all = record_aggregates(equal, 1, NULL);
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(all, 0), "slower")), 1);
	json_decref(all);
	json_object_set(json_array_get(arms, 2), "samples_ns", json_object_get(json_array_get(arms, 0), "samples_ns"));
	record_judge(equal[0], &plain, false);
	all = record_aggregates(equal, 1, NULL);
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(all, 0), "slower")), 0);
	json_decref(all);
	json_decref(equal[0]);
	/* A cell in error is left out, and n of m says so. */
	record_fail(cells[1], ST_ERROR, "crashed");
	record_judge(cells[1], &plain, false);
	all = record_aggregates(&cells[1], 1, NULL);
	ck_assert_str_eq(text(json_array_get(all, 0), "verdict"), "invalid");
	ck_assert(json_is_null(json_object_get(json_object_get(json_array_get(all, 0), "geomean"), "ratio")));
	json_decref(all);
	json_decref(close[0]);
	for (int i = 0; i < 4; i++)
		json_decref(cells[i]);
	all = record_aggregates(NULL, 0, NULL);
	ck_assert_uint_eq(json_array_size(all), 0);
	json_decref(all);
}
END_TEST

/* Two distributions agree where their means differ by no more than the tolerance, whatever their intervals. */
START_TEST(agreement)
{
	for (int k = 0; k < 2; k++) {
		const double tolerance = k ? 0.12 : 0.04;
		json_t *cells[2] = {ratio_record("q", "wide", 1, 1.20, tolerance, 1.10),
				    ratio_record("q", "mid", 1, 1.28, tolerance, 1.10)};
		json_t *all = record_aggregates(cells, 2, NULL);
		const json_t *a = json_object_get(json_array_get(all, 0), "geomean"),
			     *b = json_object_get(json_array_get(all, 1), "geomean"),
			     *agree = json_object_get(json_array_get(all, 0), "agree");
		ck_assert_double_lt(json_number_value(json_object_get(a, "hi")),
				    json_number_value(json_object_get(b, "lo")));
		ck_assert_double_eq_tol(json_number_value(json_object_get(agree, "difference")), 0.08, 0.02);
		ck_assert(k ? json_is_true(json_object_get(agree, "holds"))
			    : json_is_false(json_object_get(agree, "holds")));
		json_decref(all);
		for (int i = 0; i < 2; i++)
			json_decref(cells[i]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("record_ratio");
	TCase *t = tcase_create("record");
	tcase_add_test(t, ratio_checks);
	tcase_add_test(t, agreement);
	suite_add_tcase(s, t);
	return unit_run(s);
}
