/* Statuses of records, waivers, and what a run makes of its cells. */
#include "test_record.h"
#include "unit.h"

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
	/* One that does not say what it is for (of a file by hand) waives nothing and is missed by nobody. */
	json_object_del(json_object_get(cell, "waiver"), "expect");
	expect(cell, &tomorrow, ST_PASS, "pass", "");
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

int main(void)
{
	Suite *s = suite_create("record_run");
	TCase *t = tcase_create("record");
	tcase_add_test(t, precedence);
	tcase_add_test(t, failures_survive_judging);
	tcase_add_test(t, waivers);
	tcase_add_test(t, waiver_hides_nothing_else);
	tcase_add_test(t, confirmation);
	tcase_add_test(t, noisy_runs);
	tcase_add_test(t, exits);
	suite_add_tcase(s, t);
	return unit_run(s);
}
