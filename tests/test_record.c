/* record: the fields and their order, facts, verdicts, statuses, waivers, confirmation, aggregates, exit statuses. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "record.h"

static const struct record_env plain = {.noisy = false, .tau = 0.0025, .today = "2026-11-30"};

/* ---- a cell --------------------------------------------------------------------------------------------------------- */

static struct cell cell_of(const char *selected)
{
	struct cell c = {
		.plan_index = 3,
		.id = "s/gate/mla.absorb_q/glm5/normal/kv=2048,t_q=1",
		.suite = "s",
		.case_id = "gate",
		.kernel_name = "mla.absorb_q",
		.geometry = "glm5",
		.data = "normal",
		.suite_path = "suites/my suite.yaml",
		.axis = {{.name = "kv", .value = {true, 2048, 2048}}, {.name = "x", .value = {false, 0, 0.1}}},
		.n_axes = 2,
		.arm = {{.name = "shipped", .role = ROLE_SHIPPED},
			{.name = "split=2", .role = ROLE_CANDIDATE},
			{.name = "split=4", .role = ROLE_CANDIDATE},
			{.name = "other", .role = ROLE_HEADROOM}},
		.n_arms = 4,
		.seed = UINT64_MAX,
		.weight = NAN,
		.timing = {.estimator = EST_PAIRED,
			   .min_rounds = 8,
			   .max_rounds = 64,
			   .alpha = 0.025,
			   .confirm = CONFIRM_FRESH,
			   .tau = -1},
		.selection = selected ? SELECT_ARM : SELECT_NONE,
		.selected = selected,
		.selected_row = {"tables/h.yaml", 12, 1, 1},
		.margin_fail = 0.05,
		.margin_warn = 0.03,
		.margin_floor_ns = 500,
		.margin_mark = {"suites/my suite.yaml", 44, 1, 1},
		.gate = true,
	};
	return c;
}

static uint64_t state;
static double noise(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	double sum = 0;
	for (int i = 0; i < 4; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		sum += (double)(state >> 33) / 2147483648.0 - 0.5;
	}
	return 0.02 * sum;
}

static json_t *samples(int n, double t, double ratio)
{
	json_t *a = json_array();
	for (int r = 0; r < n; r++)
		json_array_append_new(a, json_integer((json_int_t)llround(t * ratio * exp(noise()))));
	return a;
}

static json_t *facts_of(int n, double s2, double s4, double null)
{
	state = 5;
	return json_pack("{s:[{s:s, s:s, s:s, s:s}], s:{s:f, s:f, s:f}, s:[{s:s, s:o}, {s:s, s:o}, {s:s, s:o}, {s:s, "
			 "s:o}, {s:s, s:s, s:o}], "
			 "s:{s:s, s:i, s:i, s:s, s:i, s:i, s:i, s:n, s:i, s:i, s:i, s:n}}",
			 "checks", "check", "identity", "arm", "split=2", "status", "pass", "text", "bits equal",
			 "work", "bytes", 33.5e6, "least_bytes", 33.5e6, "flop", 1e7, "arms", "name", "shipped",
			 "samples_ns", samples(n, 20000, 1), "name", "split=2", "samples_ns", samples(n, 20000, s2),
			 "name", "split=4", "samples_ns", samples(n, 20000, s4), "name", "other", "samples_ns",
			 samples(n, 20000, 0.5), "name", "null", "role", "null", "samples_ns", samples(n, 20000, null),
			 "measure", "clock", "device", "scrub_bytes", 1000000, "batch", 1, "order", "random",
			 "order_seed", 7, "rounds", n, "dropped", 0, "cut", "floor_ns", 2700, "tick_ns", 32, "wall_ns",
			 1000, "threads");
}

static json_t *record_of(const char *selected, int n, double s2, double s4)
{
	struct cell c = cell_of(selected);
	json_t *cell = record_cell_begin(&c), *facts = facts_of(n, s2, s4, 1);
	record_merge_facts(cell, facts);
	json_decref(facts);
	return cell;
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}

static const json_t *timing(const json_t *cell)
{
	return json_object_get(cell, "timing");
}

/* Judges to the end and checks status, timing verdict and reason; twice, and the second time says the same. */
static void expect(json_t *cell, const struct record_env *env, enum cell_status st, const char *verdict,
		   const char *reason)
{
	enum cell_status got = record_judge(cell, env, false);
	char *once = json_dumps(cell, JSON_COMPACT);
	ck_assert_msg(got == st, "%s for %s: %s", status_name(got), status_name(st), text(cell, "reason"));
	ck_assert_str_eq(text(cell, "status"), status_name(st));
	ck_assert_str_eq(text(timing(cell), "verdict"), verdict);
	ck_assert_str_eq(text(timing(cell), "reason"), reason);
	record_judge(cell, env, false);
	char *twice = json_dumps(cell, JSON_COMPACT);
	ck_assert_str_eq(once, twice);
	free(twice);
	free(once);
}

/* ---- fields --------------------------------------------------------------------------------------------------------- */

static void same_keys(const json_t *o, const char *const *keys)
{
	const char *k;
	json_t *v;
	size_t i = 0;
	json_object_foreach((json_t *)(uintptr_t)o, k, v)
	{
		ck_assert_msg(keys[i] != NULL, "%s is one too many", k);
		ck_assert_str_eq(k, keys[i]);
		i++;
	}
	ck_assert_msg(keys[i] == NULL, "%s is missing", keys[i]);
}

START_TEST(keys_keep_their_order)
{
	static const char *const keys[] = {"kind",         "id",          "plan_index",  "status",
					   "reason",       "suite",       "case",        "kernel",
					   "geometry",     "data",        "point",       "params",
					   "seed",         "weight",      "selection",   "selected",
					   "selected_row", "margin",      "margin_warn", "margin_floor_ns",
					   "rule",         "gating",      "rig",         "waiver",
					   "judge",        "ratio_check", "attempt",     "rerun",
					   "checks",       "data_audit",  "work",        "timing",
					   "notes",        "arms",        "measure",     "device_state", "cost",
					   "confirm",      "repeats",     NULL};
	static const char *const arm_keys[] = {"name",     "role",    "unsupported", "out_sha256", "form",
					       "artifact", "summary", "samples_ns",  NULL};
	static const char *const timing_keys[] = {"verdict",     "reason",    "gating", "ratio",       "estimate",
						  "lo",          "hi",        "n",      "cut",         "r1",
						  "widening",    "ln_margin", "warned", "rounds_more", "estimator",
						  "null",        "noise",     "tail",   "advice",      "shipped_ns",
						  "selected_ns", "of_over",   "notes",  NULL};
	static const char *const summary_keys[] =
		{"n",  "median_ns", "mean_ns", "min_ns",   "q1_ns",       "q3_ns",         "ratio", "estimate",
		 "lo", "hi",        "se",      "gb_per_s", "tflop_per_s", "peak_fraction", NULL};
	struct cell c = cell_of("split=4");
	json_t *cell = record_cell_begin(&c);
	same_keys(cell, keys);
	json_decref(cell);
	cell = record_of("split=4", 64, 1, 1);
	record_judge(cell, &plain, false);
	same_keys(cell, keys);
	const json_t *arms = json_object_get(cell, "arms");
	ck_assert_uint_eq(json_array_size(arms), 5);
	for (size_t i = 0; i < 5; i++) {
		same_keys(json_array_get(arms, i), arm_keys);
		same_keys(json_object_get(json_array_get(arms, i), "summary"), summary_keys);
	}
	ck_assert_str_eq(text(json_array_get(arms, 4), "name"), "null");
	ck_assert_str_eq(text(json_array_get(arms, 4), "role"), "null");
	same_keys(timing(cell), timing_keys);
	json_decref(cell);
}
END_TEST

START_TEST(values_of_the_plan)
{
	struct cell c = cell_of("split=4");
	json_t *cell = record_cell_begin(&c);
	ck_assert_str_eq(text(cell, "seed"), "18446744073709551615");
	ck_assert_str_eq(text(cell, "selection"), "arm");
	ck_assert_str_eq(text(cell, "selected_row"), "tables/h.yaml:12");
	ck_assert_str_eq(text(cell, "rule"), "suites/my suite.yaml:44");
	ck_assert_str_eq(text(cell, "rig"), "built-in");
	ck_assert(json_real_value(json_object_get(cell, "margin")) == 1.05);
	ck_assert(json_real_value(json_object_get(cell, "margin_warn")) == 1.03);
	ck_assert(json_is_null(json_object_get(cell, "weight")));
	ck_assert(json_is_null(json_object_get(json_object_get(cell, "judge"), "tau")));
	ck_assert_str_eq(text(cell, "rerun"),
			 "assay run 'suites/my suite.yaml' --filter "
			 "'case=gate,kernel=mla.absorb_q,geometry=glm5,data=normal,kv=2048,x=0.1'");
	json_decref(cell);
	/* The margin comes back as it went in: the executor and a replay use one number. */
	for (int i = 0; i <= 200; i++) {
		double fail = i / 1000.0;
		ck_assert(log(1 + ((1 + fail) - 1)) == log(1 + fail));
	}
}
END_TEST

START_TEST(later_facts_win)
{
	json_t *cell = record_of("split=4", 8, 1, 1);
	json_t *later = json_pack("{s:[{s:s, s:s}], s:[s], s:i, s:s}", "arms", "name", "split=4", "out_sha256", "ab",
				  "notes", "a note", "attempt", 2, "calibration", "not a field of a cell");
	record_merge_facts(cell, later);
	json_decref(later);
	const json_t *arm = json_array_get(json_object_get(cell, "arms"), 2);
	ck_assert_str_eq(text(arm, "out_sha256"), "ab");
	ck_assert_uint_eq(json_array_size(json_object_get(arm, "samples_ns")), 8);
	ck_assert_int_eq(json_integer_value(json_object_get(cell, "attempt")), 2);
	ck_assert_ptr_null(json_object_get(cell, "calibration"));
	record_merge_facts(cell, NULL);
	json_decref(cell);
}
END_TEST

/* ---- timing --------------------------------------------------------------------------------------------------------- */

START_TEST(verdicts)
{
	json_t *cell = record_of("split=4", 64, 0.9, 1.0);
	expect(cell, &plain, ST_PASS, "pass", "");
	ck_assert(json_is_null(json_object_get(cell, "reason")));
	ck_assert(json_is_null(json_object_get(timing(cell), "rounds_more")));
	/* Advice: split=2 is faster than what is served; the headroom arm, twice as fast, can never be. */
	const json_t *advice = json_object_get(timing(cell), "advice");
	ck_assert_uint_eq(json_array_size(advice), 1);
	ck_assert_str_eq(text(json_array_get(advice, 0), "arm"), "split=2");
	json_decref(cell);

	cell = record_of("split=4", 64, 0.9, 1.0);
	json_array_append_new(json_object_get(cell, "checks"),
			      json_pack("{s:s, s:s, s:s, s:s}", "check", "identity", "arm", "split=2", "status",
					"mismatch", "text", "3 differ"));
	expect(cell, &plain, ST_MISMATCH, "pass", "");
	ck_assert_str_eq(text(cell, "reason"), "identity split=2: 3 differ");
	ck_assert_uint_eq(json_array_size(json_object_get(timing(cell), "advice")),
			  0); /* fast and wrong is no advice */
	json_decref(cell);

	cell = record_of("split=4", 64, 1, 1.10);
	ck_assert_int_eq(record_judge(cell, &plain, true), ST_INCONCLUSIVE);
	ck_assert_str_eq(text(timing(cell), "verdict"), "suspect");
	ck_assert(record_wants_confirm(cell));
	expect(cell, &plain, ST_INCONCLUSIVE, "inconclusive", "unconfirmed");
	ck_assert_int_eq(json_integer_value(json_object_get(timing(cell), "rounds_more")), 32);
	json_object_set_new(json_object_get(cell, "judge"), "confirm", json_string("none"));
	expect(cell, &plain, ST_REGRESSION, "regression", "");
	record_judge(cell, &plain, true);
	ck_assert(!record_wants_confirm(cell));
	json_decref(cell);

	cell = record_of("split=4", 64, 1, 1.04);
	expect(cell, &plain, ST_PASS, "pass", "");
	ck_assert(json_is_true(json_object_get(timing(cell), "warned")));
	ck_assert(strstr(text(cell, "reason"), "above the warn level") != NULL);
	json_decref(cell);
}
END_TEST

START_TEST(advice_is_more_than_noise)
{
	/* 0.9 % faster, surely; but a launch of this cell varies by more than that. */
	json_t *cell = record_of("shipped", 64, 0.991, 1.0);
	record_judge(cell, &plain, false);
	const json_t *summary = json_object_get(json_array_get(json_object_get(cell, "arms"), 1), "summary");
	double hi = json_number_value(json_object_get(summary, "hi")),
	       e = json_number_value(json_object_get(summary, "estimate"));
	ck_assert_msg(hi < 0, "the interval must exclude 0 for this test: %g", hi);
	ck_assert(-e < json_number_value(json_object_get(timing(cell), "noise")));
	ck_assert_uint_eq(json_array_size(json_object_get(timing(cell), "advice")), 0);
	json_decref(cell);
}
END_TEST

START_TEST(diagnostics_name_nothing)
{
	json_t *cell = record_of("split=4", 64, 1, 1.10);
	json_object_set_new(json_object_get(cell, "judge"), "confirm", json_string("none"));
	json_object_set_new(cell, "gating", json_false());
	expect(cell, &plain, ST_PASS, "regression", "");
	ck_assert(strstr(text(cell, "reason"), "diagnostic") != NULL);
	json_object_set_new(cell, "selection", json_string("not_timed"));
	expect(cell, &plain, ST_REGRESSION, "regression", "not_timed"); /* a table is wrong on any machine */
	ck_assert(strstr(text(cell, "reason"), "tables/h.yaml:12") != NULL);
	json_decref(cell);
}
END_TEST

START_TEST(served_but_not_there)
{
	json_t *cell = record_of("split=16", 64, 1, 1); /* no such arm in the cell */
	expect(cell, &plain, ST_REGRESSION, "regression", "not_timed");
	json_decref(cell);
	cell = record_of("split=4", 64, 1, 1);
	json_object_set_new(json_array_get(json_object_get(cell, "arms"), 2), "unsupported",
			    json_string("needs sm_90"));
	expect(cell, &plain, ST_REGRESSION, "regression", "not_timed");
	json_object_set_new(json_array_get(json_object_get(cell, "arms"), 0), "unsupported",
			    json_string("not on this backend"));
	record_judge(cell, &plain, false);
	ck_assert_str_eq(text(cell, "status"), "skip");
	ck_assert(json_is_null(timing(cell)));
	json_decref(cell);
}
END_TEST

START_TEST(the_shipped_arm_is_itself)
{
	json_t *cell = record_of("shipped", 8, 0.9, 1.2);
	expect(cell, &plain, ST_PASS, "pass", "trivial");
	ck_assert(json_number_value(json_object_get(timing(cell), "ratio")) == 1);
	ck_assert_uint_eq(json_array_size(json_object_get(timing(cell), "advice")), 1);
	json_decref(cell);
}
END_TEST

START_TEST(worthless_windows)
{
	static const struct {
		const char *state, *measure;
		double work;
		const char *reason;
	} cases[] = {
		{"{\"before\": {\"throttle\": null, \"other_processes\": 0}, \"after\": {\"throttle\": \"power cap\"}, "
		 "\"retries\": 3}",
		 "{}", 0, "throttled"},
		{"{\"before\": {\"throttle\": null, \"other_processes\": 0}, \"after\": {\"other_processes\": 1}, "
		 "\"retries\": 3}",
		 "{}", 0, "shared"},
		{"null", "{\"scrub_proven\": false}", 0, "scrub"},
		/* 33.5 MB at 1e12 bytes/s are 33.5 us; it took 20. Within a quarter of the peak it may be the peak that is off. */
		{"null", "{\"peak_bytes_per_s\": 1e12}", 33.5e6, "implausible"},
		{"null", "{\"peak_flop_per_s\": 1e11}", 0, "implausible"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		json_t *cell = record_of("split=4", 64, 1, 1.0);
		json_object_set_new(cell, "device_state", json_loads(cases[i].state, JSON_DECODE_ANY, NULL));
		json_t *m = json_loads(cases[i].measure, 0, NULL);
		json_object_update(json_object_get(cell, "measure"), m);
		json_object_set_new(json_object_get(cell, "work"), "flop", json_real(cases[i].work > 0 ? 0 : 1e7));
		json_decref(m);
		expect(cell, &plain, ST_INVALID, "invalid", cases[i].reason);
		ck_assert(json_is_number(json_object_get(timing(cell), "ratio"))); /* the number is still shown */
		/* Warm, or with a higher peak, the same is fine. */
		json_object_set_new(cell, "device_state", json_null());
		json_t *measure = json_object_get(cell, "measure");
		json_object_del(measure, "scrub_proven");
		if (cases[i].work > 0)
			json_object_set_new(measure, "scrub_bytes", json_integer(0));
		json_object_del(measure, "peak_flop_per_s");
		expect(cell, &plain, ST_PASS, "pass", "");
		json_decref(cell);
	}
	json_t *cell = record_of("split=4", 64, 1, 1.0);
	json_object_set_new(cell, "device_state",
			    json_pack("{s:{s:n, s:i}, s:{s:s, s:i}, s:i}", "before", "throttle", "other_processes", -1,
				      "after", "throttle", "", "other_processes", 0, "retries", 0));
	expect(cell, &plain, ST_PASS, "pass", ""); /* unknown is not shared */
	json_decref(cell);
}
END_TEST

START_TEST(what_cannot_be_judged)
{
	json_t *cell = record_of("split=4", 9, 1, 1.05);
	expect(cell, &plain, ST_INCONCLUSIVE, "inconclusive", "rounds");
	ck_assert(json_is_integer(json_object_get(timing(cell), "rounds_more")));
	json_object_set_new(json_object_get(cell, "measure"), "cut", json_string("budget"));
	expect(cell, &plain, ST_INCONCLUSIVE, "inconclusive", "budget");
	json_object_set_new(json_object_get(cell, "measure"), "batch", json_integer(40));
	expect(cell, &plain, ST_INCONCLUSIVE, "inconclusive", "resolution");
	json_decref(cell);

	for (int n = 0; n < 8; n++) {
		cell = record_of("split=4", n, 1, 1.0);
		expect(cell, &plain, ST_INCONCLUSIVE, "inconclusive", "too_few");
		char *line = json_dumps(cell, JSON_COMPACT); /* jansson refuses what is not finite by itself */
		ck_assert_ptr_nonnull(line);
		ck_assert(!strstr(line, "inf") && !strstr(line, "nan"));
		free(line);
		json_decref(cell);
	}
	cell = record_of("split=4", 64, 1, 1.0); /* all rounds dropped */
	size_t i;
	json_t *a;
	json_array_foreach(json_object_get(cell, "arms"), i, a)
	{
		json_t *none = json_array();
		for (int r = 0; r < 64; r++)
			json_array_append_new(none, json_null());
		json_object_set_new(a, "samples_ns", none);
	}
	expect(cell, &plain, ST_INCONCLUSIVE, "inconclusive", "too_few");
	json_decref(cell);

	cell = record_of("split=4", 64, 1, 1.0); /* a clock that says zero */
	json_array_set_new(json_object_get(json_array_get(json_object_get(cell, "arms"), 2), "samples_ns"), 5,
			   json_integer(0));
	expect(cell, &plain, ST_INCONCLUSIVE, "inconclusive", "resolution");
	json_array_foreach(json_object_get(cell, "arms"), i, a)
	{
		json_t *s = json_object_get(a, "samples_ns");
		for (size_t r = 0; r < 64; r++)
			json_array_set_new(s, r, json_integer(0));
	}
	expect(cell, &plain, ST_INCONCLUSIVE, "inconclusive", "resolution");
	const json_t *sum = json_object_get(json_array_get(json_object_get(cell, "arms"), 0), "summary");
	ck_assert(json_is_null(json_object_get(sum, "gb_per_s")) &&
		  json_number_value(json_object_get(sum, "median_ns")) == 0);
	json_decref(cell);

	struct cell c = cell_of("split=4"); /* never answered: no pass by silence */
	cell = record_cell_begin(&c);
	ck_assert_int_eq(record_judge(cell, &plain, false), ST_ERROR);
	json_decref(cell);
	c.selection = SELECT_NONE;
	cell = record_cell_begin(&c);
	ck_assert_int_eq(record_judge(cell, &plain, false), ST_ERROR);
	ck_assert(json_is_null(timing(cell)));
	json_decref(cell);
}
END_TEST

START_TEST(dropped_rounds_and_order_of_arms)
{
	json_t *a = record_of("split=4", 40, 0.95, 1.045), *b = json_deep_copy(a);
	record_judge(a, &plain, false);
	/* A dropped round in every arm at places 0, 7 and at the end. */
	size_t i, where[] = {0, 7, 42};
	json_t *arm;
	json_array_foreach(json_object_get(b, "arms"), i, arm) for (size_t k = 0; k < 3; k++)
		json_array_insert_new(json_object_get(arm, "samples_ns"), where[k], json_null());
	record_judge(b, &plain, false);
	ck_assert(json_equal(timing(a), timing(b)));
	/* Arms in another order. */
	json_t *c = json_deep_copy(a), *arms = json_array();
	for (size_t k = 5; k-- > 0;)
		json_array_append(arms, json_array_get(json_object_get(c, "arms"), k));
	json_object_set_new(c, "arms", arms);
	record_judge(c, &plain, false);
	ck_assert(json_equal(timing(a), timing(c)));
	ck_assert(json_equal(json_object_get(a, "status"), json_object_get(c, "status")));
	json_decref(c);
	json_decref(b);
	json_decref(a);
}
END_TEST

START_TEST(near_the_floor)
{
	json_t *cell = record_of("split=4", 64, 1, 1);
	record_judge(cell, &plain, false);
	ck_assert_uint_eq(json_array_size(json_object_get(timing(cell), "notes")), 0);
	json_object_set_new(json_object_get(cell, "measure"), "floor_ns", json_integer(15000));
	record_judge(cell, &plain, false);
	ck_assert_uint_eq(json_array_size(json_object_get(timing(cell), "notes")), 1);
	json_decref(cell);
}
END_TEST

START_TEST(biased_null)
{
	struct cell c = cell_of("split=4");
	json_t *cell = record_cell_begin(&c), *facts = facts_of(64, 1, 1.10, 1.06);
	record_merge_facts(cell, facts);
	json_decref(facts);
	expect(cell, &plain, ST_INCONCLUSIVE, "inconclusive", "biased");
	ck_assert(json_is_true(json_object_get(json_object_get(timing(cell), "null"), "biased")));
	json_decref(cell);
}
END_TEST

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
	json_t *all = record_aggregates(cells, 4);
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
	json_decref(cells[2]);
	json_decref(cells[3]);

	/* The other distribution says something else: neither number is believed. */
	cells[2] = ratio_record("q", "mid", 1, 1.60, 0.02, 1.10);
	cells[3] = ratio_record("k", "mid", 2, 1.60, 0.02, 1.10);
	all = record_aggregates(cells, 4);
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
	all = record_aggregates(cells, 2);
	ck_assert_str_eq(text(json_array_get(all, 0), "reason"), "confounded: HMMA 0 -> 512");
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(json_array_get(all, 0), "geomean"), "n")),
			 2);
	record_count_aggregate(json_array_get(all, 0), &c);
	ck_assert(c.aggregates_invalid == 1);
	json_decref(all);

	/* The lower end decides: 1.15 with a bar of 1.149 is not met. */
	json_t *close[1] = {ratio_record("k", "wide", 2, 1.15, 0.02, 1.149)};
	all = record_aggregates(close, 1);
	ck_assert_str_eq(text(json_array_get(all, 0), "verdict"), "missed");
	record_count_aggregate(json_array_get(all, 0), &c);
	ck_assert(c.bars_missed == 1);
	json_decref(all);
	/* A cell in error is left out, and n of m says so. */
	record_fail(cells[1], ST_ERROR, "crashed");
	record_judge(cells[1], &plain, false);
	all = record_aggregates(&cells[1], 1);
	ck_assert_str_eq(text(json_array_get(all, 0), "verdict"), "invalid");
	ck_assert(json_is_null(json_object_get(json_object_get(json_array_get(all, 0), "geomean"), "ratio")));
	json_decref(all);
	json_decref(close[0]);
	for (int i = 0; i < 4; i++)
		json_decref(cells[i]);
	all = record_aggregates(NULL, 0);
	ck_assert_uint_eq(json_array_size(all), 0);
	json_decref(all);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("record");
	TCase *t = tcase_create("record");
	tcase_set_timeout(t, 60);
	tcase_add_test(t, keys_keep_their_order);
	tcase_add_test(t, values_of_the_plan);
	tcase_add_test(t, later_facts_win);
	tcase_add_test(t, verdicts);
	tcase_add_test(t, advice_is_more_than_noise);
	tcase_add_test(t, diagnostics_name_nothing);
	tcase_add_test(t, served_but_not_there);
	tcase_add_test(t, the_shipped_arm_is_itself);
	tcase_add_test(t, worthless_windows);
	tcase_add_test(t, what_cannot_be_judged);
	tcase_add_test(t, dropped_rounds_and_order_of_arms);
	tcase_add_test(t, near_the_floor);
	tcase_add_test(t, biased_null);
	tcase_add_test(t, precedence);
	tcase_add_test(t, failures_survive_judging);
	tcase_add_test(t, waivers);
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
