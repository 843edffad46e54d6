/* record: the fields and their order, facts, verdicts, statuses, waivers, confirmation, aggregates, exit statuses. */
#include "test_record.h"
#include "unit.h"

/* ---- fields --------------------------------------------------------------------------------------------------------- */

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
					   "notes",        "arms",        "measure",     "device_state",
					   "cost",         "confirm",     "repeats",     NULL};
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
	const json_t *point = json_object_get(cell, "point");
	ck_assert_uint_eq(json_object_size(point), 2);
	ck_assert_int_eq(json_integer_value(json_object_get(point, "kv")), 2048);
	ck_assert_double_eq(json_real_value(json_object_get(point, "x")), 0.1);
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
	char want[160];
	const json_t *t = timing(cell);
	snprintf(want, sizeof want, "split=4 is %.3f [%.3f, %.3f] of shipped, margin 1.05, n=%d",
		 json_number_value(json_object_get(t, "ratio")), exp(json_number_value(json_object_get(t, "lo"))),
		 exp(json_number_value(json_object_get(t, "hi"))), (int)json_integer_value(json_object_get(t, "n")));
	ck_assert_str_eq(text(cell, "reason"), want);
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
	/* Without a null arm the noise is not known: the interval alone decides. */
	cell = record_of("shipped", 64, 0.8, 1.0);
	json_array_remove(json_object_get(cell, "arms"), 4);
	record_judge(cell, &plain, false);
	ck_assert(json_is_null(json_object_get(timing(cell), "noise")));
	const json_t *advice = json_object_get(timing(cell), "advice");
	ck_assert_uint_eq(json_array_size(advice), 1);
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(advice, 0), "arm")), "split=2");
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
		/* 10 Mflop at 3.9e11 flop/s are 25.6 us; and the bytes that had to come from memory, whatever the least bytes are. */
		{"null", "{\"peak_flop_per_s\": 1e11, \"flop_reach\": 3.9}", 0, "implausible"},
		{"null", "{\"peak_bytes_per_s\": 1e12, \"cold_bytes\": 26e6}", 33.5e6, "implausible"},
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
		if (cases[i].work > 0) {
			json_object_set_new(measure, "scrub_bytes", json_integer(0));
			if (json_object_get(measure, "cold_bytes"))
				json_object_set_new(measure, "cold_bytes", json_real(0));
		}
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
	/* Throttling in whatever form a backend tells it, before or after; and none of it. */
	static const struct {
		const char *told;
		bool throttled;
	} forms[] = {{"0", false},    {"1", true},         {"[]", false},       {"[\"power\"]", true},
		     {"\"\"", false}, {"\"none\"", false}, {"\"power\"", true}, {"null", false}};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		for (int after = 0; after < 2; after++) {
			cell = record_of("split=4", 64, 1, 1.0);
			json_object_set_new(cell, "device_state",
					    json_pack("{s:{s:o}, s:{s:n}, s:i}", after ? "after" : "before", "throttle",
						      json_loads(forms[i].told, JSON_DECODE_ANY, NULL),
						      after ? "before" : "after", "throttle", "retries", 0));
			expect(cell, &plain, forms[i].throttled ? ST_INVALID : ST_PASS,
			       forms[i].throttled ? "invalid" : "pass", forms[i].throttled ? "throttled" : "");
			json_decref(cell);
		}
}
END_TEST

/* What an honest cell may do: keep its output in the cache, compute in narrower numbers than the sentinel, come within the slack. */
START_TEST(plausible)
{
	static const char *const measures[] = {
		"{\"peak_bytes_per_s\": 1e12, \"cold_bytes\": 0}",
		"{\"peak_bytes_per_s\": 1e12, \"cold_bytes\": 24.9e6}",
		"{\"peak_bytes_per_s\": 1e12, \"cold_bytes\": null}",
		"{\"peak_flop_per_s\": 1e11, \"flop_reach\": 4.1}",
		"{\"peak_flop_per_s\": 1e11, \"flop_reach\": 0}",
	};
	for (size_t i = 0; i < sizeof measures / sizeof *measures; i++) {
		json_t *cell = record_of("split=4", 64, 1, 1.0), *m = json_loads(measures[i], 0, NULL);
		json_object_update(json_object_get(cell, "measure"), m);
		json_object_set_new(json_object_get(cell, "work"), "flop", json_real(1e7));
		json_decref(m);
		expect(cell, &plain, ST_PASS, "pass", "");
		json_decref(cell);
	}
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

/* An arm that is slow in one round of five: the median does not see it, the record does. Of shipped itself there is no tail. */
START_TEST(slow_tail)
{
	json_t *cell = record_of("split=4", 64, 1, 1);
	json_t *slow = json_object_get(json_array_get(json_object_get(cell, "arms"), 2), "samples_ns");
	ck_assert_uint_eq(json_array_size(slow), 64);
	for (size_t r = 0; r < 12; r++)
		json_array_set_new(slow, 5 * r, json_integer(30000));
	record_judge(cell, &plain, false);
	const json_t *tail = json_object_get(timing(cell), "tail");
	ck_assert_int_eq(json_integer_value(json_object_get(tail, "arm_only")), 12);
	ck_assert_int_eq(json_integer_value(json_object_get(tail, "shipped_only")), 0);
	ck_assert(json_is_true(json_object_get(tail, "flagged")));
	ck_assert_double_eq_tol(json_number_value(json_object_get(tail, "p")), 1.0 / 4096, 1e-9);
	const json_t *notes = json_object_get(timing(cell), "notes");
	ck_assert_ptr_nonnull(strstr(json_string_value(json_array_get(notes, 0)), "split=4 has a slow tail"));
	ck_assert_str_ne(text(cell, "status"), "regression"); /* a warning */
	json_decref(cell);
	cell = record_of("shipped", 64, 1, 1);
	record_judge(cell, &plain, false);
	ck_assert(json_is_null(json_object_get(timing(cell), "tail")));
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

int main(void)
{
	Suite *s = suite_create("record");
	TCase *t = tcase_create("record");
	tcase_add_test(t, keys_keep_their_order);
	tcase_add_test(t, values_of_the_plan);
	tcase_add_test(t, later_facts_win);
	tcase_add_test(t, verdicts);
	tcase_add_test(t, advice_is_more_than_noise);
	tcase_add_test(t, diagnostics_name_nothing);
	tcase_add_test(t, served_but_not_there);
	tcase_add_test(t, the_shipped_arm_is_itself);
	tcase_add_test(t, worthless_windows);
	tcase_add_test(t, plausible);
	tcase_add_test(t, what_cannot_be_judged);
	tcase_add_test(t, dropped_rounds_and_order_of_arms);
	tcase_add_test(t, near_the_floor);
	tcase_add_test(t, slow_tail);
	tcase_add_test(t, biased_null);
	suite_add_tcase(s, t);
	return unit_run(s);
}
