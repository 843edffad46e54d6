/* Statuses of records, waivers, and what a run makes of its cells. */
#include "test_record.h"

/* ---- statuses ------------------------------------------------------------------------------------------------------- */

START_TEST(precedence)
{
	static const char *const rising[][2] = {{"run", "error"},
						{"run", "timeout"},
						{"data", "invalid"},
						{"reference", "wrong"},
						{"identity", "mismatch"}};
	static const enum cell_status want[] = {ST_ERROR, ST_TIMEOUT, ST_INVALID_DATA, ST_WRONG, ST_MISMATCH};
	json_t *cell = record_of("split=4", 64, 1, 1.10);
	json_object_set_new(json_object_get(cell, "judge"), "confirm", json_string("none"));
	ck_assert_int_eq(record_judge(cell, &plain, false), ST_REGRESSION);
	for (int i = 4; i >= 0; i--) { /* each worse than what is there; the timing verdict stays beside it */
		json_array_append_new(json_object_get(cell, "checks"),
				      json_pack("{s:s, s:n, s:s, s:n}", "check", rising[i][0], "arm", "status",
						rising[i][1], "text"));
		expect(cell, &plain, want[i], "regression", "");
	}
	json_decref(cell);
	cell = record_of("split=4", 64, 1, 1);
	json_array_append_new(json_object_get(cell, "checks"), json_pack("{s:s, s:n, s:s, s:n}", "check", "identity",
									 "arm", "status", "marvellous", "text"));
	ck_assert_int_eq(record_judge(cell, &plain, false), ST_ERROR); /* an unknown word is no pass */
	json_decref(cell);
}
END_TEST

START_TEST(failures_survive_judging)
{
	struct cell c = cell_of("split=4");
	json_t *cell = record_cell_begin(&c);
	record_fail(cell, ST_TIMEOUT, "no sign of life for 10 s in arm split=4, phase identity");
	ck_assert_str_eq(text(cell, "status"), "timeout");
	ck_assert_int_eq(record_judge(cell, &plain, false), ST_TIMEOUT);
	ck_assert(strstr(text(cell, "reason"), "no sign of life") != NULL);
	json_decref(cell);
	c.skip = "shard 2 of 4";
	cell = record_cell_begin(&c);
	ck_assert_str_eq(text(cell, "status"), "skip");
	ck_assert_int_eq(record_judge(cell, &plain, false), ST_SKIP);
	ck_assert_str_eq(text(cell, "reason"), "shard 2 of 4");
	ck_assert(json_is_null(timing(cell)));
	json_decref(cell);
}
END_TEST

START_TEST(waivers)
{
	struct cell c = cell_of("split=4");
	c.waiver = "W1";
	c.waiver_expect = "mismatch";
	c.waiver_reason = "known";
	c.waiver_until = "2026-11-30";
	json_t *cell = record_cell_begin(&c), *facts = facts_of(64, 1, 1, 1);
	record_merge_facts(cell, facts);
	json_decref(facts);
	expect(cell, &plain, ST_XPASS, "pass", "");
	json_array_append_new(json_object_get(cell, "checks"),
			      json_pack("{s:s, s:s, s:s, s:s}", "check", "identity", "arm", "split=4", "status",
					"mismatch", "text", "x"));
	expect(cell, &plain, ST_XFAIL, "pass", ""); /* the last day counts */
	struct record_env tomorrow = plain;
	tomorrow.today = "2026-12-01";
	expect(cell, &tomorrow, ST_MISMATCH, "pass", "");
	ck_assert(strstr(text(cell, "reason"), "expired on 2026-11-30") != NULL);
	json_object_set_new(json_object_get(cell, "waiver"), "expect", json_string("wrong"));
	expect(cell, &plain, ST_MISMATCH, "pass", ""); /* another failure is not waived */
	json_decref(cell);

	c.waiver_expect = "regression";
	c.waiver_until = NULL;
	c.gate = false;
	cell = record_cell_begin(&c);
	facts = facts_of(64, 1, 1, 1);
	record_merge_facts(cell, facts);
	json_decref(facts);
	expect(cell, &tomorrow, ST_PASS, "pass", ""); /* off the rig it says nothing of the waiver */
	json_object_set_new(cell, "gating", json_true());
	expect(cell, &tomorrow, ST_XPASS, "pass", "");
	json_decref(cell);

	/* Where nothing but shipped can run, a waiver of the others says nothing. */
	c = cell_of(NULL);
	c.waiver = "W1";
	c.waiver_expect = "mismatch";
	for (int i = 1; i < c.n_arms; i++)
		c.arm[i].unsupported = "not on this backend";
	cell = record_cell_begin(&c);
	json_array_append_new(json_object_get(cell, "checks"), json_pack("{s:s, s:s, s:s, s:n}", "check", "identity",
									 "arm", "shipped", "status", "pass", "text"));
	ck_assert_int_eq(record_judge(cell, &plain, false), ST_PASS);
	json_object_set_new(json_array_get(json_object_get(cell, "arms"), 1), "unsupported", json_null());
	ck_assert_int_eq(record_judge(cell, &plain, false), ST_XPASS);
	json_decref(cell);
}
END_TEST

static void add_finding(json_t *cell, const char *check, const char *arm, const char *status)
{
	json_array_append_new(json_object_get(cell, "checks"), json_pack("{s:s, s:s?, s:s, s:s}", "check", check, "arm",
									 arm, "status", status, "text", "x"));
}

/* A waiver takes out what it is for and what follows from it: all else of the cell names the status. */
START_TEST(waiver_hides_nothing_else)
{
	struct record_env env = plain;
	struct cell c = cell_of("split=4");
	c.waiver = "W1";
	c.waiver_expect = "mismatch";
	c.waiver_arm = "split=2";
	json_t *cell = record_cell_begin(&c), *facts = facts_of(64, 1, 1, 1);
	record_merge_facts(cell, facts);
	json_decref(facts);
	expect(cell, &env, ST_XPASS, "pass", "");
	add_finding(cell, "identity", "split=2", "mismatch");
	expect(cell, &env, ST_XFAIL, "pass", "");
	ck_assert_str_eq(text(cell, "reason"), "waived by W1: identity split=2: x");
	/* Weaker, of the same arm: it follows. Of another arm: it does not. */
	add_finding(cell, "invariant", "split=2", "invalid");
	expect(cell, &env, ST_XFAIL, "pass", "");
	json_t *before = json_deep_copy(cell);
	add_finding(cell, "invariant", "split=4", "invalid");
	expect(cell, &env, ST_INVALID, "pass", "");
	json_decref(cell);
	cell = json_deep_copy(before);
	add_finding(cell, "identity", "split=4", "mismatch");
	expect(cell, &env, ST_MISMATCH, "pass", "");
	ck_assert_str_eq(text(cell, "reason"), "identity split=4: x");
	/* Without an arm any arm's is waived; a worse one never. */
	json_object_del(json_object_get(cell, "waiver"), "arm");
	expect(cell, &env, ST_XFAIL, "pass", "");
	add_finding(cell, "reference", "split=2", "wrong");
	expect(cell, &env, ST_WRONG, "pass", "");
	json_decref(cell);
	json_decref(before);

	/* The served arm is slower, or undecided, beside a known mismatch. */
	static const struct {
		double ratio;
		int n;
		const char *confirm, *verdict, *reason;
		enum cell_status st;
	} slow[] = {{1.2, 64, "none", "regression", "", ST_REGRESSION},
		    {1.2, 64, "fresh", "inconclusive", "unconfirmed", ST_INCONCLUSIVE},
		    {1.0, 4, "none", "inconclusive", "too_few", ST_INCONCLUSIVE}};
	for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
		cell = record_cell_begin(&c);
		facts = facts_of(slow[i].n, 1, slow[i].ratio, 1);
		record_merge_facts(cell, facts);
		json_decref(facts);
		add_finding(cell, "identity", "split=2", "mismatch");
		json_object_set_new(json_object_get(cell, "judge"), "confirm", json_string(slow[i].confirm));
		expect(cell, &env, slow[i].st, slow[i].verdict, slow[i].reason);
		/* Nor does a waiver of the time hide the mismatch; one of another arm's time is for nothing here. */
		json_object_set_new(json_object_get(cell, "waiver"), "expect", json_string(status_name(slow[i].st)));
		json_object_set_new(json_object_get(cell, "waiver"), "arm", json_string("split=4"));
		expect(cell, &env, ST_MISMATCH, slow[i].verdict, slow[i].reason);
		json_array_remove(json_object_get(cell, "checks"), 1);
		expect(cell, &env, ST_XFAIL, slow[i].verdict, slow[i].reason);
		json_object_set_new(json_object_get(cell, "waiver"), "arm", json_string("split=2"));
		expect(cell, &env, slow[i].st, slow[i].verdict, slow[i].reason);
		json_decref(cell);
	}

	/* Of data that break their promise nothing can be right, whatever it is called by; of an arm's waiver that is no matter. */
	c.waiver_arm = NULL;
	c.waiver_expect = "invalid";
	cell = record_cell_begin(&c);
	facts = facts_of(64, 1, 1.2, 1);
	record_merge_facts(cell, facts);
	json_decref(facts);
	add_finding(cell, "data", NULL, "invalid");
	add_finding(cell, "reference", "split=4", "wrong");
	ck_assert_int_eq(record_judge(cell, &env, false), ST_XFAIL);
	json_object_set_new(json_object_get(cell, "waiver"), "arm", json_string("split=4"));
	ck_assert_int_eq(record_judge(cell, &env, false), ST_INVALID_DATA);
	json_decref(cell);

	/* An arm that cannot run here, or is not in the cell, passes nothing. */
	c.waiver_expect = "mismatch";
	c.waiver_arm = "split=2";
	c.arm[1].unsupported = "not on this backend";
	cell = record_cell_begin(&c);
	add_finding(cell, "identity", "split=4", "pass");
	ck_assert_int_ne(record_judge(cell, &env, false), ST_XPASS);
	json_decref(cell);
}
END_TEST

/* ---- a run ---------------------------------------------------------------------------------------------------------- */

static void add_confirm(json_t *cell, double ratio)
{
	json_t *facts = json_pack("{s:i, s:i, s:[{s:s, s:o}, {s:s, s:o}]}", "process", 2, "order_seed", 9, "arms",
				  "name", "shipped", "samples_ns", samples(32, 20000, 1), "name", "split=4",
				  "samples_ns", samples(32, 20000, ratio));
	record_set_confirm(cell, facts);
	json_decref(facts);
}

START_TEST(confirmation)
{
	json_t *cells[3] = {record_of("split=4", 64, 1, 1.12), record_of("split=4", 64, 1, 1.12),
			    record_of("split=4", 64, 1, 1.0)};
	add_confirm(cells[0], 1.12);
	add_confirm(cells[1], 1.0);
	add_confirm(cells[2], 1.12); /* stored under another margin: no suspect here, so it confirms nothing */
	struct record_env env = plain;
	record_judge_run(cells, 3, &env);
	ck_assert(!env.noisy);
	ck_assert_str_eq(text(cells[0], "status"), "regression");
	ck_assert(strstr(text(cells[0], "reason"), "second process agrees") != NULL);
	ck_assert_str_eq(text(timing(cells[1]), "reason"), "not_confirmed");
	ck_assert_str_eq(text(cells[2], "status"), "pass");
	static const char *const keys[] = {"process", "n", "order_seed", "p", "estimate", "confirmed", "arms", NULL};
	same_keys(json_object_get(cells[0], "confirm"), keys);
	ck_assert(json_is_null(json_object_get(json_object_get(cells[2], "confirm"), "confirmed")));
	char *before[3];
	for (int i = 0; i < 3; i++)
		before[i] = json_dumps(cells[i], JSON_COMPACT);
	record_judge_run(cells, 3, &env);
	for (int i = 0; i < 3; i++) {
		char *after = json_dumps(cells[i], JSON_COMPACT);
		ck_assert_str_eq(before[i], after);
		free(after);
		free(before[i]);
	}
	/* The process that screened cannot confirm what it saw. */
	json_object_set_new(json_object_get(cells[0], "measure"), "process", json_integer(3));
	record_judge_run(cells, 3, &env);
	ck_assert_str_eq(text(cells[0], "status"), "regression");
	json_object_set_new(json_object_get(cells[0], "measure"), "process", json_integer(2));
	record_judge_run(cells, 3, &env);
	ck_assert_str_eq(text(timing(cells[0]), "reason"), "unconfirmed");
	json_object_del(json_object_get(cells[0], "measure"), "process");
	/* A slowdown just beyond the margin is within what processes differ by. */
	add_confirm(cells[0], 1.0565);
	env.tau = 0.02;
	record_judge_run(cells, 3, &env);
	ck_assert_str_eq(text(timing(cells[0]), "reason"), "not_confirmed");
	for (int i = 0; i < 3; i++)
		json_decref(cells[i]);
}
END_TEST

START_TEST(noisy_runs)
{
	enum { N = 20 };
	json_t *cells[N];
	for (int i = 0; i < N; i++) {
		struct cell c = cell_of("split=4");
		cells[i] = record_cell_begin(&c);
		json_t *facts = facts_of(64, 1, i == 0 ? 1.08 : i == 1 ? 1.2 : 1.0, i >= 15 ? 1.06 : 1.0);
		record_merge_facts(cells[i], facts);
		json_decref(facts);
		json_object_set_new(json_object_get(cells[i], "judge"), "confirm", json_string("none"));
	}
	struct record_env env = plain;
	record_judge_run(cells, N, &env);
	ck_assert(env.noisy);
	ck_assert_str_eq(text(timing(cells[0]), "reason"), "noisy");
	ck_assert_str_eq(text(cells[0], "status"), "inconclusive");
	ck_assert_str_eq(text(cells[1], "status"), "regression"); /* beyond margin + 5 % */
	json_array_append_new(json_object_get(cells[2], "checks"),
			      json_pack("{s:s, s:s, s:s, s:s}", "check", "identity", "arm", "split=4", "status",
					"mismatch", "text", "x"));
	record_judge_run(cells, N, &env);
	ck_assert_str_eq(text(cells[2], "status"), "mismatch"); /* identity is never masked */
	for (int i = 0; i < N; i++)
		json_decref(cells[i]);
}
END_TEST

START_TEST(exits)
{
	struct run_counts c = {0};
	c.by_status[ST_PASS] = 48;
	c.gated = 48;
	ck_assert_int_eq(record_exit(&c, true, true), EXIT_PASS);
	c.gated_undecided = 4; /* 8.3 % */
	ck_assert_int_eq(record_exit(&c, false, false), EXIT_PASS);
	ck_assert_int_eq(record_exit(&c, true, false), EXIT_INCOMPLETE);
	c.gated_undecided = 5; /* 10.4 % */
	ck_assert_int_eq(record_exit(&c, false, false), EXIT_INCOMPLETE);
	static const enum cell_status fails[] = {ST_WRONG, ST_MISMATCH, ST_REGRESSION, ST_XPASS};
	static const enum cell_status odd[] = {ST_ERROR, ST_TIMEOUT, ST_INVALID, ST_INVALID_DATA};
	for (int i = 0; i < 4; i++) {
		struct run_counts f = c, o = {0};
		f.by_status[fails[i]] = 1;
		f.by_status[odd[i]] = 1;
		ck_assert_int_eq(record_exit(&f, false, false), EXIT_FAIL);
		o.by_status[odd[i]] = 1;
		ck_assert_int_eq(record_exit(&o, false, false), EXIT_INCOMPLETE);
	}
	struct run_counts s = {0};
	s.by_status[ST_SKIP] = 3;
	ck_assert_int_eq(record_exit(&s, false, false), EXIT_PASS);
	ck_assert_int_eq(record_exit(&s, false, true), EXIT_NOTHING_RUN);
	struct run_counts x = {0};
	x.by_status[ST_XFAIL] = 2;
	ck_assert_int_eq(record_exit(&x, true, true), EXIT_PASS);
	x.bars_missed = 1;
	ck_assert_int_eq(record_exit(&x, false, false), EXIT_FAIL);

	struct run_counts n = {0};
	json_t *cell = record_of("split=4", 64, 1, 1.04);
	record_judge(cell, &plain, false);
	record_count(cell, &n);
	ck_assert(n.by_status[ST_PASS] == 1 && n.gated == 1 && n.warned == 1 && n.gated_undecided == 0 &&
		  n.biased == 0);
	json_decref(cell);
}
END_TEST

/* ---- ratio checks --------------------------------------------------------------------------------------------------- */

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

int main(void)
{
	Suite *s = suite_create("record_run");
	TCase *t = tcase_create("record");
	tcase_set_timeout(t, 60);
	tcase_add_test(t, precedence);
	tcase_add_test(t, failures_survive_judging);
	tcase_add_test(t, waivers);
	tcase_add_test(t, waiver_hides_nothing_else);
	tcase_add_test(t, confirmation);
	tcase_add_test(t, noisy_runs);
	tcase_add_test(t, exits);
	tcase_add_test(t, ratio_checks);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
