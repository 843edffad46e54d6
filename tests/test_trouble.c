/* Trouble on a device, scripted in the fake backend (test_script.h). Each trouble has its right verdict. */
#include "record_parts.h"
#include "run_aggregate.h"
#include "test_script.h"
#include "unit.h"

/* One cell in a process of its own. */
static json_t *alone(const struct fake_script *s, void (*change)(struct cell *c))
{
	struct bed b;
	struct cell c;
	bed_open(&b, s);
	work_cell(&c, b.registry, "suite/trouble/probe.work/geometry/data/");
	if (change)
		change(&c);
	json_t *record = play(&b, &c, false);
	bed_close(&b);
	return record;
}

static void expect_at(int line, json_t *record, const char *status, const char *verdict, const char *reason)
{
	const json_t *t = json_object_get(record, "timing");
	ck_assert_msg(!strcmp(text_of(record, "status"), status) && !strcmp(text_of(t, "verdict"), verdict) &&
			      !strcmp(text_of(t, "reason"), reason),
		      "line %d: %s, %s(%s), ratio %.4f in %d rounds: %s", line, text_of(record, "status"),
		      text_of(t, "verdict"), text_of(t, "reason"), json_number_value(json_object_get(t, "ratio")),
		      (int)json_integer_value(json_object_get(t, "n")), text_of(record, "reason"));
	json_decref(record);
}
#define expect(record, status, verdict, reason) expect_at(__LINE__, record, status, verdict, reason)

/* ---- the clock moves -------------------------------------------------------------------------------------------------- */

/* Slower by a tenth of a per cent with each launch, a third over a cell: what a round has in common cancels, and the order is random. */
START_TEST(clock_drift)
{
	struct fake_script s = script_of(0);
	s.sigma = 0.005;
	s.drift = 0.001;
	expect(alone(&s, NULL), "pass", "pass", "");
	s = script_of(0.06);
	s.sigma = 0.005;
	s.drift = 0.001;
	expect(alone(&s, NULL), "regression", "regression", "");
}
END_TEST

static void ships_last(struct cell *c)
{
	struct cell_arm keep = c->arm[0];
	c->timing.order = ORDER_LIST;
	c->timing.order_list[0] = c->arm[1].name;
	c->timing.order_list[1] = keep.name;
}

/* Who is declared first does not matter where the order is random; with a list and a drift it shows. */
START_TEST(order_of_arms)
{
	struct fake_script s = script_of(0);
	s.sigma = 0.002;
	s.drift = 0.01; /* per launch: 1 % between neighbours at first */
	json_t *list = alone(&s, ships_last), *random = alone(&s, NULL);
	const double biased = json_number_value(json_object_get(json_object_get(list, "timing"), "ratio")),
		     fair = json_number_value(json_object_get(json_object_get(random, "timing"), "ratio"));
	ck_assert_msg(fabs(biased - 1) > fabs(fair - 1) && biased < 0.999, "list %.4f, random %.4f", biased, fair);
	ck_assert_str_eq(text_of(json_object_get(random, "timing"), "verdict"), "pass");
	json_decref(list);
	json_decref(random);
}
END_TEST

/* Two clocks 9 % apart, changed over in mid-run. */
START_TEST(clock_change)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct fake_script s = script_of(0);
		s.seed = seed;
		s.sigma = 0.004;
		s.mode_p = 0.02;
		s.mode_factor = 1.09;
		expect(alone(&s, NULL), "pass", "pass", "");
		s = script_of(0.10);
		s.seed = seed;
		s.sigma = 0.004;
		s.mode_p = 0.02;
		s.mode_factor = 1.09;
		expect(alone(&s, NULL), "regression", "regression", "");
	}
}
END_TEST

static void warm_by_time(struct cell *c)
{
	c->timing.warmup_ns = 5000000;
}

/* A clock that begins at 40 %: the warm-up by time takes the ramp and says so. Without it the random order still does not blame anybody. */
START_TEST(ramp_at_the_start)
{
	struct fake_script s = script_of(0);
	s.sigma = 0.004;
	s.ramp = 1.5;
	s.ramp_launches = 60;
	json_t *record = alone(&s, warm_by_time);
	ck_assert(noted(record, "clock ramp"));
	expect(record, "pass", "pass", "");
	record = alone(&s, NULL);
	ck_assert_str_ne(text_of(record, "status"), "regression");
	json_decref(record);
}
END_TEST

/* ---- windows that are worth nothing ----------------------------------------------------------------------------------- */

/* Throttled throughout: so many retries, then invalid, with the samples kept. One throttled window: the next one counts. */
START_TEST(throttling)
{
	struct fake_script s = script_of(0);
	s.throttle_call = 1;
	s.throttle_calls = 1000;
	json_t *record = alone(&s, NULL);
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(record, "device_state"), "retries")), 2);
	ck_assert_int_gt(json_array_size(
				 json_object_get(json_array_get(json_object_get(record, "arms"), 0), "samples_ns")),
			 7);
	expect(record, "invalid", "invalid", "throttled");
	s.throttle_calls = 2;
	record = alone(&s, NULL);
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(record, "device_state"), "retries")), 1);
	expect(record, "pass", "pass", "");
	/* A throttled window never fails a gate, however slow the arm. */
	s = script_of(0.5);
	s.throttle_call = 1;
	s.throttle_calls = 1000;
	expect(alone(&s, NULL), "invalid", "invalid", "throttled");
}
END_TEST

START_TEST(second_process)
{
	struct fake_script s = script_of(0.5);
	s.shared_call = 1;
	s.shared_calls = 1000;
	expect(alone(&s, NULL), "invalid", "invalid", "shared");
	/* It came in the middle, so that only the second reading sees it; the retries are clean and count. */
	s.shared_call = 3;
	s.shared_calls = 1;
	expect(alone(&s, NULL), "regression", "regression", "");
}
END_TEST

/* ---- numbers that cannot be --------------------------------------------------------------------------------------------- */

static json_t *ratio_cell(double launch_ns, const char *id)
{
	struct fake_script s = script_of(0);
	struct bed b;
	struct cell c;
	s.launch_ns = launch_ns / 10;
	s.arm[0].ns = 1.1 * launch_ns / 10;
	s.peak_bytes_per_s = 64 / 100e-9; /* the 64 bytes that this kernel reads in 100 ns */
	bed_open(&b, &s);
	work_cell(&c, b.registry, id);
	c.checks.on = 1u << CHECK_RATIO;
	c.checks.ratio =
		(struct check_ratio){.of = "more=50", .over = "shipped", .geomean = true, .equal_issue_interval = -1};
	c.selection = SELECT_NONE;
	json_t *record = play(&b, &c, false);
	bed_close(&b);
	return record;
}

static void half_scrub(struct cell *c)
{
	c->timing.scrub_bytes = 1 << 20;
}

/* Less time than the least bytes take: invalid, and in no aggregate. probe.work reads 64 bytes and writes 64. */
START_TEST(implausible)
{
	struct fake_script s = script_of(0);
	s.launch_ns = s.arm[0].ns = 5; /* 50 ns, cold */
	s.peak_bytes_per_s = 64 / 100e-9;
	expect(alone(&s, NULL), "invalid", "invalid", "implausible");
	/* A scrub that leaves part of the cache as it was says nothing of where the bytes come from. */
	expect(alone(&s, half_scrub), "pass", "pass", "");
	/* Within a quarter of the peak it may be the peak that is off. */
	s.peak_bytes_per_s = 64 / 62e-9;
	expect(alone(&s, NULL), "pass", "pass", "");
	/* So near no sentinel runs again: a peak that it would raise stays as it was. */
	s.quiet_sentinels = 1;
	s.quiet_bytes_per_s = 64 / 40e-9;
	json_t *near = alone(&s, NULL);
	ck_assert_double_eq_tol(json_number_value(
					json_object_get(json_object_get(near, "measure"), "peak_bytes_per_s")) *
					62e-9,
				64, 1e-6);
	json_decref(near);
	s.quiet_sentinels = 0;
	s.peak_bytes_per_s = 64 / 63e-9;
	expect(alone(&s, NULL), "invalid", "invalid", "implausible");
	/* What is written may stay in the cache: 128 bytes take 100 ns at this rate, the 64 that are read take 50. */
	s.peak_bytes_per_s = 128 / 100e-9;
	expect(alone(&s, NULL), "pass", "pass", "");
	/* A peak that was taken under a neighbour's load is taken again before anything is called implausible; thrice, and no more. */
	s.peak_bytes_per_s = 64 / 1e-6;
	s.quiet_sentinels = 3;
	s.quiet_bytes_per_s = 64 / 40e-9;
	expect(alone(&s, NULL), "pass", "pass", "");
	s.quiet_sentinels = 4;
	expect(alone(&s, NULL), "invalid", "invalid", "implausible");
	/* 48 operations in 50 ns, more than the sentinel's rate; but the sentinel computes in wider numbers than the device's fastest instruction. */
	s = script_of(0);
	s.launch_ns = s.arm[0].ns = 5;
	s.peak_flop_per_s = 48 / 100e-9;
	expect(alone(&s, NULL), "invalid", "invalid", "implausible");
	s.flop_reach = 1.5;
	expect(alone(&s, NULL), "invalid", "invalid", "implausible");
	s.flop_reach = 1.7;
	expect(alone(&s, NULL), "pass", "pass", "");
	s.flop_reach = -1; /* unknown */
	expect(alone(&s, NULL), "pass", "pass", "");
	json_t *cells[] = {ratio_cell(20000, "s/c/k/g/d/m=1"), ratio_cell(50, "s/c/k/g/d/m=2"),
			   ratio_cell(20000, "s/c/k/g/d/m=3")};
	ck_assert_str_eq(text_of(json_object_get(cells[1], "timing"), "reason"), "implausible");
	json_t *list = record_aggregates(cells, 3, NULL), *g = json_object_get(json_array_get(list, 0), "geomean");
	ck_assert_int_eq(json_array_size(list), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(g, "n")), 2);
	ck_assert_int_eq(json_integer_value(json_object_get(g, "of")), 3);
	ck_assert_double_eq_tol(json_number_value(json_object_get(g, "ratio")), 1.1, 1e-9);
	json_decref(list);
	for (int i = 0; i < 3; i++)
		json_decref(cells[i]);
}
END_TEST

/* No time at all, and a tick that 32 launches do not reach: undecided by the clock, and no rate is made of it. */
START_TEST(no_time)
{
	struct fake_script s = script_of(0);
	s.elapsed_zero = true;
	json_t *record = alone(&s, NULL);
	const json_t *summary = json_object_get(json_array_get(json_object_get(record, "arms"), 0), "summary");
	ck_assert(!json_is_real(json_object_get(summary, "gb_per_s")));
	expect(record, "inconclusive", "inconclusive", "resolution");
	s = script_of(0.05);
	s.tick_ns = 5000; /* ceil(4 * 5000 / (20000 ln 1.02)) = 51 */
	expect(alone(&s, NULL), "inconclusive", "inconclusive", "resolution");
	s = script_of(0.10);
	s.tick_ns = 2000; /* 21 launches a sample, whose noise spreads them over the ticks */
	s.sigma = 0.05;
	expect(alone(&s, NULL), "regression", "regression", "");
}
END_TEST

static void one_round(struct cell *c)
{
	c->timing.rounds = 1;
}

static void four_rounds(struct cell *c)
{
	c->timing.rounds = 4;
}

/* A clock without noise is a clock; and a few rounds are none, with every field in its place. */
START_TEST(no_noise_and_few_rounds)
{
	struct fake_script s = script_of(0);
	json_t *record = alone(&s, NULL);
	ck_assert_double_eq(json_number_value(json_object_get(json_object_get(record, "timing"), "noise")), 0);
	ck_assert_double_eq(json_number_value(json_object_get(json_object_get(record, "timing"), "estimate")), 0);
	expect(record, "pass", "pass", "");
	s = script_of(0.05);
	expect(alone(&s, NULL), "regression", "regression", "");
	expect(alone(&s, one_round), "inconclusive", "inconclusive", "too_few");
	record = alone(&s, four_rounds);
	const json_t *t = json_object_get(record, "timing");
	ck_assert(json_is_null(json_object_get(t, "lo")) && json_is_null(json_object_get(t, "hi")));
	ck_assert_int_eq(json_integer_value(json_object_get(t, "n")), 4);
	expect(record, "inconclusive", "inconclusive", "too_few");
}
END_TEST

/* The served arm alone has a noise of its own, which lasts: its ratio to shipped is correlated from round to round. */
struct slow_noise {
	double rho, error;
	uint64_t random;
};

static double slowly(void *ctx, const struct launch *l, int64_t k)
{
	struct slow_noise *n = ctx;
	double sum = -6;
	(void)k;
	for (int i = 0; i < 12; i++) { /* near enough to normal */
		n->random = n->random * 6364136223846793005u + 1442695040888963407u;
		sum += (double)(n->random >> 33) / 2147483648.0;
	}
	if (l->call->arm_arg != 50)
		return 20000;
	n->error = n->rho * n->error + sqrt(1 - n->rho * n->rho) * sum;
	return 20000 * exp(0.02 * n->error);
}

/* ---- the machine is slow, not the kernel ------------------------------------------------------------------------------- */

START_TEST(slow_machine)
{
	struct run_aggregates *a = run_aggregates_create();
	struct run_counts counts = {0};
	json_t *header = json_pack("{s:{s:{s:[i,i,i], s:[i,i,i]}}}", "calibration", "sentinels", "copy", 1000, 1010,
				   990, "latency", 300, 301, 299),
	       *end = json_pack("{s:[i,i,i], s:[i,i,i]}", "copy", 1100, 1101, 1099, "latency", 300, 303, 300);
	json_t *list = run_aggregates_records(a, header, end, &counts), *o = json_array_get(list, 0);
	ck_assert_str_eq(text_of(o, "name"), "sentinels");
	ck_assert_double_eq_tol(json_number_value(json_object_get(json_object_get(o, "drift"), "copy")), log(1.1),
				1e-12);
	ck_assert_double_eq(json_number_value(json_object_get(json_object_get(o, "drift"), "latency")), 0);
	ck_assert_str_eq(text_of(o, "reason"), "copy 10.0 % slower at the end than at the start");
	json_decref(list);
	list = run_aggregates_records(a, header, NULL, &counts);
	o = json_array_get(list, 0);
	ck_assert(json_is_null(json_object_get(o, "end")) && json_is_null(json_object_get(o, "drift")));
	ck_assert_str_ne(text_of(o, "reason"), "");
	json_decref(list);
	json_decref(end);
	json_decref(header);
	run_aggregates_destroy(a);
}
END_TEST

/* r1 of one cell is of few rounds; the median of many tells a run of correlated rounds from one of independent ones. */
START_TEST(correlated_rounds)
{
	static const struct {
		double rho;
		bool told;
	} kinds[] = {{0, false}, {0.97, true}};
	for (int k = 0; k < 2; k++) {
		struct run_aggregates *a = run_aggregates_create();
		struct run_counts counts = {0};
		struct slow_noise noise = {.rho = kinds[k].rho, .random = 7};
		struct fake_script s = script_of(0);
		s.time_ns = slowly;
		s.ctx = &noise;
		struct bed b;
		struct cell c;
		char id[64];
		bed_open(&b, &s);
		for (int i = 0; i < 40; i++) {
			snprintf(id, sizeof id, "suite/many/probe.work/geometry/data/cell=%d", i);
			work_cell(&c, b.registry, id);
			c.timing.scrub = SCRUB_NONE;
			json_t *record = play(&b, &c, false);
			ck_assert(run_aggregates_add(a, record));
			json_decref(record);
		}
		bed_close(&b);
		json_t *list = run_aggregates_records(a, NULL, NULL, &counts), *o = json_array_get(list, 0);
		ck_assert_str_eq(text_of(o, "name"), "correlation");
		ck_assert_int_eq(json_integer_value(json_object_get(o, "n")), 40);
		ck_assert_msg(json_is_string(json_object_get(o, "reason")) == kinds[k].told, "rho %g: r1 %.3f",
			      kinds[k].rho, json_number_value(json_object_get(o, "r1")));
		json_decref(list);
		run_aggregates_destroy(a);
	}
}
END_TEST

/* ---- what was not looked at --------------------------------------------------------------------------------------------- */

static void serves_shipped(struct cell *c)
{
	c->selected = c->arm[0].name;
}

static void no_time_at_all(struct cell *c)
{
	serves_shipped(c);
	c->timing.cell_budget_ns = 1;
}

static void time_for_some_rounds(struct cell *c)
{
	serves_shipped(c);
	c->timing.cell_budget_ns = 400000; /* 4 launches a round, 20 us each */
}

static void five_rounds(struct cell *c)
{
	serves_shipped(c);
	c->timing.rounds = 5;
}

/* Shipped served as shipped passes, once a look has seen it: a cell of which nothing was seen has not passed. */
START_TEST(nothing_seen_is_no_pass)
{
	struct fake_script s = script_of(0);
	s.sigma = 0.004;
	expect(alone(&s, serves_shipped), "pass", "pass", "trivial");
	expect(alone(&s, five_rounds), "pass", "pass", "trivial");
	expect(alone(&s, no_time_at_all), "inconclusive", "inconclusive", "budget");
	json_t *record = alone(&s, time_for_some_rounds);
	const json_t *timing = json_object_get(record, "timing");
	const size_t n =
		json_array_size(json_object_get(json_array_get(json_object_get(record, "arms"), 0), "samples_ns"));
	ck_assert_msg(n > 0 && n < 8, "%zu rounds in the budget; the test is of less than a look", n);
	ck_assert_int_eq(json_integer_value(json_object_get(timing, "rounds_more")), (int)(8 - n));
	expect(record, "inconclusive", "inconclusive", "budget");
	s.tick_ns = 5000; /* no number of launches that a sample may have */
	expect(alone(&s, serves_shipped), "inconclusive", "inconclusive", "resolution");
}
END_TEST

static double member(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

/* Advice and the arms' summaries in a cell that a look ended are of the looks' cut, as the verdict is; with fixed rounds of one look's. */
START_TEST(advice_after_a_look)
{
	for (int fixed = 0; fixed < 2; fixed++) {
		struct fake_script s = script_of(-0.10);
		s.sigma = 0.01;
		json_t *record = alone(&s, fixed ? five_rounds : serves_shipped);
		const json_t *arms = json_object_get(record, "arms"), *x = record_samples(arms, "more=50"),
			     *y = record_samples(arms, "shipped"),
			     *advice = json_array_get(json_object_get(json_object_get(record, "timing"), "advice"), 0);
		double d[64];
		const int n = (int)json_array_size(x);
		ck_assert_int_eq(n, fixed ? 5 : 8);
		for (int i = 0; i < n; i++)
			d[i] = log(json_number_value(json_array_get(x, (size_t)i)) /
				   json_number_value(json_array_get(y, (size_t)i)));
		struct interval iv;
		stats_walsh(d, n, fixed ? stats_fixed_cut(5) : stats_look_cut(0.025, 8), &iv);
		const json_t *summary = NULL, *arm;
		size_t i;
		json_array_foreach(arms, i, arm) if (strcmp(text_of(arm, "name"), "more=50") == 0) summary =
			json_object_get(arm, "summary");
		if (fixed) { /* five rounds have no interval, and so there is no advice */
			ck_assert(!advice && json_is_null(json_object_get(summary, "lo")));
		} else {
			ck_assert_double_eq_tol(member(advice, "lo"), exp(iv.lo), 1e-12);
			ck_assert_double_eq_tol(member(advice, "hi"), exp(iv.hi), 1e-12);
			ck_assert_double_eq_tol(member(summary, "lo"), iv.lo, 1e-12);
			ck_assert_double_eq_tol(member(summary, "hi"), iv.hi, 1e-12);
			struct interval one;
			stats_walsh(d, n, stats_fixed_cut(n), &one);
			ck_assert_double_gt(one.lo, iv.lo); /* the two differ here */
		}
		json_decref(record);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("trouble");
	TCase *t = tcase_create("trouble");
	tcase_set_timeout(t, 100);
	tcase_add_test(t, clock_drift);
	tcase_add_test(t, order_of_arms);
	tcase_add_test(t, clock_change);
	tcase_add_test(t, ramp_at_the_start);
	tcase_add_test(t, throttling);
	tcase_add_test(t, second_process);
	tcase_add_test(t, implausible);
	tcase_add_test(t, no_time);
	tcase_add_test(t, no_noise_and_few_rounds);
	tcase_add_test(t, slow_machine);
	tcase_add_test(t, nothing_seen_is_no_pass);
	tcase_add_test(t, advice_after_a_look);
	tcase_add_test(t, correlated_rounds);
	suite_add_tcase(s, t);
	return unit_run(s);
}
