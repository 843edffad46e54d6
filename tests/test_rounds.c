/* Rounds on the fake backend: its virtual clock says how long each launch takes, so samples, orders and stops are exact. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "rounds.h"
#include "test_rounds_bed.h"
#include "unit.h"

/* A permutation, another one each round, the same for the same seed, and each place about equally often. */
START_TEST(order_is_a_permutation)
{
	/* A record keeps the seed alone: the same seed has to be the same order in every version, and on every machine. */
	static const struct {
		uint64_t seed;
		int round, n, order[5];
	} fixed[] = {{42, 0, 5, {2, 1, 4, 3, 0}},
		     {42, 1, 5, {4, 0, 3, 2, 1}},
		     {7173684863060446u, 0, 4, {1, 2, 3, 0}},
		     {7173684863060446u, 47, 4, {3, 2, 1, 0}}};
	for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++) {
		int got[5];
		rounds_order(fixed[k].seed, fixed[k].round, fixed[k].n, got);
		ck_assert_mem_eq(got, fixed[k].order, (size_t)fixed[k].n * sizeof *got);
	}
	int place[5][5] = {{0}}, a[5], b[5], same = 0;
	for (int round = 0; round < 5000; round++) {
		bool seen[5] = {false};
		rounds_order(42, round, 5, a);
		rounds_order(42, round, 5, b);
		ck_assert_mem_eq(a, b, sizeof(a));
		for (int i = 0; i < 5; i++) {
			ck_assert_int_ge(a[i], 0);
			ck_assert_int_lt(a[i], 5);
			ck_assert(!seen[a[i]]);
			seen[a[i]] = true;
			place[i][a[i]]++;
		}
		rounds_order(43, round, 5, b);
		same += !memcmp(a, b, sizeof(a));
	}
	/* 1000 expected, sd 28. */
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 5; k++)
			ck_assert_int_lt(abs(place[i][k] - 1000), 150);
	/* 1 of 120 by chance. */
	ck_assert_int_lt(same, 100);
}
END_TEST

/* Samples are the script's nanoseconds, in whichever order the arms were launched. */
START_TEST(samples_are_the_scripts)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	bench(&c, b.registry);
	struct fake_script *s = fake_script_of(b.be);
	s->n_arms = 2;
	s->arm[0] = (struct fake_arm){.ops = ops_of(&c, 1), .has_arg = true, .arg = 2, .ns = 7001};
	s->arm[1] = (struct fake_arm){.ops = ops_of(&c, 2), .has_arg = true, .arg = 4, .ns = 5002};
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	/* Half the time: decided at the first look. */
	ck_assert_int_eq(measured(facts, "rounds"), 8);
	ck_assert_int_eq(measured(facts, "batch"), 1);
	for (int r = 0; r < 8; r++) {
		ck_assert_int_eq(json_integer_value(json_array_get(samples(facts, "shipped"), (size_t)r)), 10000);
		ck_assert_int_eq(json_integer_value(json_array_get(samples(facts, "split=2"), (size_t)r)), 7001);
		ck_assert_int_eq(json_integer_value(json_array_get(samples(facts, "split=4"), (size_t)r)), 5002);
		ck_assert_int_eq(json_integer_value(json_array_get(samples(facts, "null"), (size_t)r)), 10000);
	}
	ck_assert_int_eq(json_array_size(samples(facts, "null")), 8);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* Launches of the rounds come in the order that the seed of the record says, shipped first and thrown away, each scrubbed. */
START_TEST(order_is_what_was_launched)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	bench(&c, b.registry);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	int rounds = (int)measured(facts, "rounds");
	uint64_t seed = (uint64_t)measured(facts, "order_seed");
	/* The last launches but those that check again: rounds of 1 + 4. */
	int64_t k = fake_launches(b.be) - AFTER - 5 * rounds;
	for (int r = 0; r < rounds; r++) {
		int order[4];
		const struct fake_event *e = fake_event_at(b.be, ++k);
		ck_assert_ptr_eq(e->ops, ops_of(&c, 0));
		ck_assert(e->scrubbed);
		rounds_order(seed, r, 4, order);
		for (int i = 0; i < 4; i++) {
			int arm = order[i] == 3 ? 0 : order[i]; /* subject 3 is the null arm: shipped */
			e = fake_event_at(b.be, ++k);
			ck_assert(e->scrubbed);
			ck_assert_ptr_eq(e->ops, ops_of(&c, arm));
			ck_assert_int_eq(e->arg, c.arm[arm].arg);
		}
	}
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* The seeds' protocols: fixed order, no scrub, a list, exactly n rounds, no launch thrown away. */
START_TEST(seed_protocols)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	bench(&c, b.registry);
	c.timing.order = ORDER_LIST;
	c.timing.order_list[0] = "split=4";
	c.timing.order_list[1] = "shipped";
	c.timing.scrub = SCRUB_NONE;
	c.timing.estimator = EST_MEDIAN;
	c.timing.rounds = 9;
	c.timing.null_arm = false;
	c.timing.clock = CLOCK_LAUNCH_TO_COMPLETION;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(measured(facts, "rounds"), 9);
	ck_assert_int_eq(measured(facts, "scrub_bytes"), 0);
	ck_assert(!samples(facts, "null"));
	int64_t k = fake_launches(b.be) - AFTER - 3 * 9;
	for (int r = 0; r < 9; r++) {
		static const int arms[] = {2, 0, 1};
		for (int i = 0; i < 3; i++) {
			const struct fake_event *e = fake_event_at(b.be, ++k);
			ck_assert(!e->scrubbed);
			ck_assert_ptr_eq(e->ops, ops_of(&c, arms[i]));
			ck_assert_int_eq(e->arg, c.arm[arms[i]].arg);
		}
	}
	/* now() itself moves the fake's clock by 1 ns. */
	ck_assert_int_eq(json_integer_value(json_array_get(samples(facts, "shipped"), 0)), 10001);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* A coarse clock: B launches a sample, the mean rounded; above 32 no round is taken. */
START_TEST(batch)
{
	struct fake_script s = {.tick_ns = 1000, .launch_ns = 10000};
	struct bed b;
	struct cell c;
	bed_open(&b, &s);
	bench(&c, b.registry);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	/* ceil(4 * 1000 / (10000 * ln 1.05)) = ceil(8.198) */
	ck_assert_int_eq(measured(facts, "batch"), 9);
	ck_assert_double_eq(json_real_value(json_object_get(json_object_get(facts, "measure"), "tick_ns")), 1000);
	ck_assert_int_eq(json_integer_value(json_array_get(samples(facts, "shipped"), 0)), 10000);
	json_decref(facts);
	/* However short the warm-up is, shipped is launched once: the batch is made from that. */
	for (c.timing.warmup_launches = 0; c.timing.warmup_launches < 2; c.timing.warmup_launches++) {
		facts = run_cell(&b, &c, EXEC_OK);
		ck_assert_int_eq(measured(facts, "batch"), 9);
		json_decref(facts);
	}
	c.margin_fail = 0.01; /* ceil(40.2) */
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(measured(facts, "batch"), 41);
	ck_assert_int_eq(measured(facts, "rounds"), 0);
	ck_assert_int_eq(json_array_size(samples(facts, "shipped")), 0);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

static double only_from(void *ctx, const struct launch *l, int64_t k)
{
	(void)l;
	(void)k;
	return *(double *)ctx;
}

/* Zero time: nothing is divided by it. */
START_TEST(zero_time)
{
	struct fake_script s = {.elapsed_zero = true};
	struct bed b;
	struct cell c;
	bed_open(&b, &s);
	bench(&c, b.registry);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_gt(measured(facts, "batch"), ROUNDS_BATCH_MAX);
	ck_assert_int_eq(measured(facts, "rounds"), 0);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* A launch that fails drops its round for every arm, and the cell says so. */
START_TEST(dropped_round)
{
	struct fake_script s = {.cold_factor = 10}; /* a scrub that is proven once is not looked at again */
	struct bed b;
	struct cell c;
	bed_open(&b, &s);
	bench(&c, b.registry);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	int64_t before = fake_launches(b.be);
	json_decref(facts);
	/* Again: 3 arms x 2 sets x 2 poisons, 4 arms x 2 of warm-up, two whole rounds of 1 + 4, and the third launch of the next. */
	fake_script_of(b.be)->fail_launch = before + 12 + 8 + 2 * 5 + 3;
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(measured(facts, "dropped"), 1);
	ck_assert_int_eq(measured(facts, "rounds"), 9);
	static const char *const arms[] = {"shipped", "split=2", "split=4", "null"};
	for (int i = 0; i < 4; i++)
		for (int r = 0; r < 9; r++)
			ck_assert_msg(json_is_null(json_array_get(samples(facts, arms[i]), (size_t)r)) == (r == 2),
				      "%s round %d", arms[i], r);
	bool told = false;
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(facts, "checks"), i, f) told =
		told ||
		(!strcmp(json_string_value(json_object_get(f, "check")), "run") &&
		 strstr(json_string_value(json_object_get(f, "text")), "failed in 1 of 9 rounds: scripted failure"));
	ck_assert(told);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* The budget cuts the rounds, and a budget of nothing leaves none; the checks are done all the same. */
START_TEST(budget)
{
	struct fake_script s = {.sigma = 0.2, .seed = 5};
	struct bed b;
	struct cell c;
	bed_open(&b, &s);
	bench(&c, b.registry);
	c.checks.on |= 1u << CHECK_IDENTITY;
	c.timing.rounds = 60;
	c.timing.cell_budget_ns = 1000000; /* a round is about 55 us */
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(facts, "measure"), "cut")), "budget");
	ck_assert_int_gt(measured(facts, "rounds"), 8);
	ck_assert_int_lt(measured(facts, "rounds"), 20);
	ck_assert_int_le(measured(facts, "wall_ns"), 1000000 + 60000);
	json_decref(facts);
	c.timing.cell_budget_ns = 1;
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(facts, "measure"), "cut")), "budget");
	ck_assert_int_eq(measured(facts, "rounds"), 0);
	bool identity = false;
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(facts, "checks"), i, f) identity =
		identity || !strcmp(json_string_value(json_object_get(f, "check")), "identity");
	ck_assert(identity);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* Rounds stop where the judge is done: noise takes more looks, shipped itself stops at the first. */
START_TEST(stops)
{
	struct fake_script s = {.sigma = 0.05, .seed = 11};
	struct bed b;
	struct cell c;
	bed_open(&b, &s);
	bench(&c, b.registry);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	int n = (int)measured(facts, "rounds");
	ck_assert_int_gt(n, 8);
	/* The judge says the same of what is stored. */
	double arm[64], shipped[64];
	for (int r = 0; r < n; r++) {
		arm[r] = json_number_value(json_array_get(samples(facts, "split=4"), (size_t)r));
		shipped[r] = json_number_value(json_array_get(samples(facts, "shipped"), (size_t)r));
	}
	struct judge_rule rule = {.fail = 0.05, .warn = -1, .alpha = 0.025, .min_rounds = 8, .max_rounds = 64};
	struct judge_result res;
	bool done = false;
	judge_paired(&(struct judge_pair){arm, shipped, n}, &rule, &res, &done);
	ck_assert(done);
	judge_paired(&(struct judge_pair){arm, shipped, n - 1}, &rule, &res, &done);
	ck_assert(!done);
	json_decref(facts);
	c.selected = "shipped";
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(measured(facts, "rounds"), 8);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* A throttled window is tried again; where it stays, the record says so. State is read twice before and once after each try. */
START_TEST(retries)
{
	struct fake_script s = {.throttle_call = 3, .throttle_calls = 1};
	struct bed b;
	struct cell c;
	bed_open(&b, &s);
	bench(&c, b.registry);
	c.timing.retries = 2;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	const json_t *state = json_object_get(facts, "device_state");
	ck_assert_int_eq(json_integer_value(json_object_get(state, "retries")), 1);
	ck_assert(json_is_null(json_object_get(json_object_get(state, "after"), "throttle")));
	json_decref(facts);
	fake_script_of(b.be)->throttle_calls = 1000;
	facts = run_cell(&b, &c, EXEC_OK);
	state = json_object_get(facts, "device_state");
	ck_assert_int_eq(json_integer_value(json_object_get(state, "retries")), 2);
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(state, "after"), "throttle")),
			 "scripted throttling");
	ck_assert_int_eq(json_array_size(samples(facts, "shipped")), 8);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* The scrub proof: a scrub that evicts makes the probe slower, one that only takes time is found out. */
START_TEST(scrub_proof)
{
	struct fake_script s = {.cold_factor = 10};
	struct bed b;
	struct cell c;
	bed_open(&b, &s);
	bench(&c, b.registry);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert(json_is_true(json_object_get(json_object_get(facts, "measure"), "scrub_proven")));
	json_decref(facts);
	bed_close(&b);
	s.scrub_ineffective = true;
	bed_open(&b, &s);
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert(json_is_false(json_object_get(json_object_get(facts, "measure"), "scrub_proven")));
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* A confirmation: shipped and one arm, exactly n rounds, by the order seed it was given, whatever the budget. */
START_TEST(confirm)
{
	struct bed b;
	struct cell c;
	struct err err;
	const struct exec_sink sink = {.beat = &b.beat};
	json_t *facts = NULL;
	bed_open(&b, NULL);
	bench(&c, b.registry);
	c.timing.cell_budget_ns = 1;
	ck_assert_int_eq(exec_confirm(b.exec, &c, "split=4", 33, 77, &sink, &facts, &err), EXEC_OK);
	ck_assert_int_eq(json_array_size(json_object_get(facts, "arms")), 2);
	ck_assert_int_eq(json_array_size(samples(facts, "split=4")), 33);
	ck_assert_int_eq(json_array_size(samples(facts, "shipped")), 33);
	ck_assert_int_eq(json_integer_value(json_object_get(facts, "order_seed")), 77);
	json_decref(facts);
	ck_assert_int_eq(exec_confirm(b.exec, &c, "splot", 33, 77, &sink, &facts, &err), EXEC_FAILED);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* Copies of the inputs in turn: no scrub, and every launch at other addresses than the one before. */
START_TEST(rotate)
{
	double ns = 10000;
	struct fake_script s = {.time_ns = only_from, .ctx = &ns};
	struct bed b;
	struct cell c;
	bed_open(&b, &s);
	bench(&c, b.registry);
	c.timing.scrub = SCRUB_ROTATE;
	c.timing.rotate_copies = 3;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(measured(facts, "rounds"), 8);
	ck_assert_int_eq(fake_scrubs(b.be, NULL), 0);
	ck_assert(json_is_true(json_object_get(json_object_get(facts, "measure"), "rotate")));
	json_decref(facts);
	bed_close(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rounds");
	TCase *t = tcase_create("rounds");
	tcase_add_test(t, order_is_a_permutation);
	tcase_add_test(t, samples_are_the_scripts);
	tcase_add_test(t, order_is_what_was_launched);
	tcase_add_test(t, seed_protocols);
	tcase_add_test(t, batch);
	tcase_add_test(t, zero_time);
	tcase_add_test(t, dropped_round);
	tcase_add_test(t, budget);
	tcase_add_test(t, stops);
	tcase_add_test(t, retries);
	tcase_add_test(t, scrub_proof);
	tcase_add_test(t, confirm);
	tcase_add_test(t, rotate);
	suite_add_tcase(s, t);
	return unit_run(s);
}
