/* Trouble on a device, scripted in the fake backend and played through the whole of a cell: checks, warm-up, rounds, looks, record, judge. Each
 * trouble has its right verdict. Then error rates, over hundreds of cells a line. The fake's clock is virtual: no verdict here depends on the
 * machine that runs the test, and the same seed gives the same nanoseconds. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "fake.h"
#include "record.h"
#include "registry.h"
#include "run_aggregate.h"
#include "test_cell.h"

static const struct record_env env = {.tau = 0.0025, .today = "2026-11-30"};

struct bed {
	struct registry *registry;
	struct backend *be;
	struct exec *exec;
	struct exec_beat beat;
};

static void bed_open(struct bed *b, const struct fake_script *script)
{
	struct err err;
	memset(b, 0, sizeof *b);
	b->registry = registry_create();
	b->be = fake_create(script);
	b->exec = exec_create(b->be, &err);
	ck_assert(b->exec);
}

static void bed_close(struct bed *b)
{
	exec_destroy(b->exec);
	ck_assert_int_eq(fake_memory_in_use(b->be), 0);
	backend_ops_of(b->be)->close(b->be);
	registry_destroy(b->registry);
}

/* probe.work, so short that thousands of launches are nothing: `more=50` is served, and the script says what it takes. Margin 2 %. */
static void work_cell(struct cell *c, const struct registry *r, const char *id)
{
	test_cell(c, r, "probe.work", "shipped", "more=50", NULL);
	c->id = id;
	c->point.v[0].i = 1;
	c->checks.on = 1u << CHECK_REGRESSION;
	c->selection = SELECT_ARM;
	c->selected = "more=50";
	c->margin_fail = 0.02;
	c->gate = true;
	c->timing.confirm = CONFIRM_NONE; /* a suspect is told at once */
	c->timing.retries = 2;
	c->timing.scrub = SCRUB_BYTES;
	c->timing.scrub_bytes = 2 << 20; /* twice the cache of the scripted device */
}

/* The script in which the served arm is slower by `effect`. */
static struct fake_script script_of(double effect)
{
	return (struct fake_script){
		.seed = 1,
		.launch_ns = 2000,
		.arm = {{.has_arg = true, .arg = 50, .ns = 2000 * (1 + effect)}},
		.n_arms = 1,
		.cold_factor = 10, /* each launch is scrubbed: 20 us */
	};
}

/* Runs and judges it. New reference. */
static json_t *play(struct bed *b, const struct cell *c, bool more_to_come)
{
	const struct exec_sink sink = {.beat = &b->beat};
	struct err err = {{0}};
	json_t *facts = NULL, *record = record_cell_begin(c);
	enum exec_outcome got = exec_cell(b->exec, c, &sink, &facts, &err);
	ck_assert_msg(got == EXEC_OK, "%s", err.text);
	record_merge_facts(record, facts);
	json_decref(facts);
	record_judge(record, &env, more_to_come);
	return record;
}

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

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}

static void expect_at(int line, json_t *record, const char *status, const char *verdict, const char *reason)
{
	const json_t *t = json_object_get(record, "timing");
	ck_assert_msg(!strcmp(text(record, "status"), status) && !strcmp(text(t, "verdict"), verdict) &&
			      !strcmp(text(t, "reason"), reason),
		      "line %d: %s, %s(%s), ratio %.4f in %d rounds: %s", line, text(record, "status"),
		      text(t, "verdict"), text(t, "reason"), json_number_value(json_object_get(t, "ratio")),
		      (int)json_integer_value(json_object_get(t, "n")), text(record, "reason"));
	json_decref(record);
}
#define expect(record, status, verdict, reason) expect_at(__LINE__, record, status, verdict, reason)

static bool noted(const json_t *record, const char *word)
{
	size_t i;
	json_t *n;
	json_array_foreach(json_object_get(record, "notes"), i, n) if (strstr(json_string_value(n), word)) return true;
	return false;
}

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
	ck_assert_str_eq(text(json_object_get(random, "timing"), "verdict"), "pass");
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
	ck_assert_str_ne(text(record, "status"), "regression");
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
	ck_assert_str_eq(text(json_object_get(cells[1], "timing"), "reason"), "implausible");
	json_t *list = record_aggregates(cells, 3), *g = json_object_get(json_array_get(list, 0), "geomean");
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
	json_t *calibration = json_pack("{s:{s:[i,i,i], s:[i,i,i]}}", "sentinels", "copy", 1000, 1010, 990, "latency",
					300, 301, 299),
	       *end = json_pack("{s:[i,i,i], s:[i,i,i]}", "copy", 1100, 1101, 1099, "latency", 300, 303, 300);
	json_t *list = run_aggregates_records(a, calibration, end, &counts), *o = json_array_get(list, 0);
	ck_assert_str_eq(text(o, "name"), "sentinels");
	ck_assert_double_eq_tol(json_number_value(json_object_get(json_object_get(o, "drift"), "copy")), log(1.1),
				1e-12);
	ck_assert_double_eq(json_number_value(json_object_get(json_object_get(o, "drift"), "latency")), 0);
	ck_assert_str_eq(text(o, "reason"), "copy 10.0 % slower at the end than at the start");
	json_decref(list);
	list = run_aggregates_records(a, calibration, NULL, &counts);
	o = json_array_get(list, 0);
	ck_assert(json_is_null(json_object_get(o, "end")) && json_is_null(json_object_get(o, "drift")));
	ck_assert_str_ne(text(o, "reason"), "");
	json_decref(list);
	json_decref(end);
	json_decref(calibration);
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
		ck_assert_str_eq(text(o, "name"), "correlation");
		ck_assert_int_eq(json_integer_value(json_object_get(o, "n")), 40);
		ck_assert_msg(json_is_string(json_object_get(o, "reason")) == kinds[k].told, "rho %g: r1 %.3f",
			      kinds[k].rho, json_number_value(json_object_get(o, "r1")));
		json_decref(list);
		run_aggregates_destroy(a);
	}
}
END_TEST

/* ---- error rates, through the rounds ------------------------------------------------------------------------------------ */

struct tally {
	int cells, pass, suspect, open;
	double rounds;
};

/* Cells one after the other in one process, each with an id and so an order of its own. */
static struct tally many(const char *what, const struct fake_script *s, int cells)
{
	struct tally t = {.cells = cells};
	struct bed b;
	struct cell c;
	char id[64];
	bed_open(&b, s);
	for (int i = 0; i < cells; i++) {
		snprintf(id, sizeof id, "suite/many/probe.work/geometry/data/cell=%d", i);
		work_cell(&c, b.registry, id);
		json_t *record = play(&b, &c, false);
		const json_t *timing = json_object_get(record, "timing");
		const char *verdict = text(timing, "verdict"), *reason = text(timing, "reason");
		t.pass += !strcmp(verdict, "pass");
		/* A cell whose null arm is off is undecided; the screening did suspect it. */
		t.suspect += !strcmp(verdict, "regression") || !strcmp(reason, "biased");
		t.open += !strcmp(verdict, "inconclusive") && strcmp(reason, "biased");
		t.rounds += json_number_value(json_object_get(timing, "n")) / cells;
		json_decref(record);
	}
	bed_close(&b);
	printf("%-36s %5d   %6.2f %% pass  %6.2f %% suspect  %6.2f %% undecided   %4.1f rounds\n", what, cells,
	       100.0 * t.pass / cells, 100.0 * t.suspect / cells, 100.0 * t.open / cells, t.rounds);
	return t;
}

/* Compatible with a rate of at most p: less than one chance in ten thousand to be so far off. */
static void at_most(int k, int n, double p, const char *what)
{
	ck_assert_msg(k < stats_binomial_point(n, p, 1e-4), "%s: %d of %d, more than %.2f %%", what, k, n, 100 * p);
}

/* Noise of kinds, as scripts: 1.4 % a launch, and what comes on top. */
static struct fake_script noisy(double effect, int kind)
{
	struct fake_script s = script_of(effect);
	s.seed = 1000 + (uint64_t)kind;
	s.sigma = 0.014;
	if (kind == 1) {
		s.hiccup_p = 1.0 / 12;
		s.hiccup_factor = 1.4;
	} else if (kind == 2) {
		s.mode_p = 0.01;
		s.mode_factor = 1.09;
	} else if (kind == 3) {
		s.rho = 0.5; /* from launch to launch: what is left between the rounds is small */
	}
	return s;
}
static const char *const kinds[] = {"normal", "hiccups", "two clocks", "AR(1) from launch to launch"};

START_TEST(rates_at_the_margin)
{
	for (int k = 0; k < 4; k++) {
		struct fake_script s = noisy(0.02, k);
		char what[80];
		snprintf(what, sizeof what, "at the margin, %s", kinds[k]);
		struct tally t = many(what, &s, k == 0 ? 1000 : 300);
		at_most(t.pass, t.cells, 0.025, what);
		at_most(t.suspect, t.cells, 0.025, what);
		ck_assert_int_gt(t.pass + t.suspect, 0); /* a judge that never speaks would be within both */
	}
}
END_TEST

START_TEST(rates_of_itself)
{
	for (int k = 0; k < 4; k++) {
		struct fake_script s = noisy(0, k);
		char what[80];
		snprintf(what, sizeof what, "A/A, %s", kinds[k]);
		struct tally t = many(what, &s, k == 0 ? 400 : 150);
		ck_assert_int_eq(t.suspect, 0);
		if (k == 0)
			at_most(t.open, t.cells, 0.05, what);
	}
}
END_TEST

START_TEST(rates_planted)
{
	struct fake_script s = noisy(0.05, 0);
	struct tally t = many("+5 %, normal", &s, 400);
	at_most(t.cells - t.suspect, t.cells, 0.005, "+5 % missed");
	ck_assert_double_lt(t.rounds, 14);
	s = noisy(0.03, 0);
	t = many("+3 %, normal", &s, 200);
	at_most(t.cells - t.suspect, t.cells, 0.20, "+3 % not suspected");
	at_most(t.pass, t.cells, 0.025, "+3 % passed");
	s = noisy(0.05, 1);
	t = many("+5 %, hiccups", &s, 150);
	at_most(t.pass, t.cells, 0.025, "+5 % passed");
}
END_TEST

/* Suites of 48 cells with one at +5 %: fresh processes confirm it, and nothing else fails. */
START_TEST(suites_with_confirmation)
{
	enum { SUITES = 12, CELLS = 48 };
	int wrong = 0, found = 0;
	for (int k = 0; k < SUITES; k++) {
		json_t *cells[CELLS];
		char id[CELLS][64];
		struct cell c;
		for (int i = 0; i < CELLS; i++) {
			struct fake_script s = noisy(i == 7 ? 0.05 : 0, i % 2), fresh = s;
			struct bed b;
			s.seed = (uint64_t)(10000 * k + i);
			fresh.seed = s.seed + 5000;
			snprintf(id[i], sizeof id[i], "suite/confirm/probe.work/geometry/data/cell=%d", i);
			bed_open(&b, &s);
			work_cell(&c, b.registry, id[i]);
			c.timing.confirm = CONFIRM_FRESH;
			cells[i] = play(&b, &c, true);
			bed_close(&b);
			if (!record_wants_confirm(cells[i]))
				continue;
			const struct exec_sink sink = {.beat = &b.beat};
			struct err err = {{0}};
			json_t *facts = NULL;
			const int n = judge_confirm_rounds(
				(int)json_integer_value(json_object_get(json_object_get(cells[i], "timing"), "n")));
			bed_open(&b, &fresh);
			work_cell(&c, b.registry, id[i]);
			ck_assert_int_eq(exec_confirm(b.exec, &c, "more=50", n, 99, &sink, &facts, &err), EXEC_OK);
			/* The scripted device knows one process; the second look is by another one. */
			json_object_set_new(facts, "process", json_integer(1));
			record_set_confirm(cells[i], facts);
			json_decref(facts);
			bed_close(&b);
		}
		struct record_env mine = env;
		record_judge_run(cells, CELLS, &mine);
		for (int i = 0; i < CELLS; i++) {
			const bool failed = !strcmp(text(cells[i], "status"), "regression");
			wrong += failed && i != 7;
			found += failed && i == 7;
			json_decref(cells[i]);
		}
	}
	printf("%d suites of %d cells, one at +5 %%, margin 2 %%: %d wrong failures, found in %d\n", SUITES, CELLS,
	       wrong, found);
	ck_assert_int_eq(wrong, 0);
	ck_assert_int_ge(found, SUITES - 2);
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
	tcase_add_test(t, correlated_rounds);
	tcase_add_test(t, rates_at_the_margin);
	tcase_add_test(t, rates_of_itself);
	tcase_add_test(t, rates_planted);
	tcase_add_test(t, suites_with_confirmation);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
