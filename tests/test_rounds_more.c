/* What a launch's sample is made of: waits, scrubs, copies of the inputs. Each of these was once a line that could be taken out of rounds.c without a
 * test noticing (tools/mutate). */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "rounds.h"
#include "test_rounds_bed.h"
#include "unit.h"

static const json_t *arm_samples(const json_t *facts, size_t arm)
{
	return json_object_get(json_array_get(json_object_get(facts, "arms"), arm), "samples_ns");
}

static int64_t of(const json_t *facts, const char *object, const char *key)
{
	return json_integer_value(json_object_get(json_object_get(facts, object), key));
}

/* On a device work is queued. Whichever clock, a sample is the launch: the scrub before it is waited for, or lies before the mark, and so is the launch. */
START_TEST(samples_of_a_queue)
{
	static const enum clock_kind clocks[] = {CLOCK_DEVICE, CLOCK_LAUNCH_TO_COMPLETION};
	for (int k = 0; k < 2; k++) {
		struct bed b;
		struct cell c;
		bed_open(&b, &(struct fake_script){.queued = true, .scrub_ns = 777000});
		bench(&c, b.registry);
		c.timing.clock = clocks[k];
		json_t *facts = run_cell(&b, &c, EXEC_OK);
		for (size_t a = 0; a < 4; a++) {
			ck_assert_uint_ge(json_array_size(arm_samples(facts, a)), 8);
			for (size_t r = 0; r < json_array_size(arm_samples(facts, a)); r++) {
				/* now() itself moves the fake's clock by 1 ns. */
				const json_int_t ns = json_integer_value(json_array_get(arm_samples(facts, a), r));
				ck_assert_msg(ns == 10000 + k, "clock %d, arm %zu, round %zu: %lld ns", k, a, r,
					      (long long)ns);
			}
		}
		json_decref(facts);
		bed_close(&b);
	}
}
END_TEST

/* A list may name arms that this cell has not, or twice; the others follow in their order. */
START_TEST(order_by_list)
{
	static const int want[] = {2, 0, 1, 0}; /* split=4, shipped, split=2, and shipped as the null arm */
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	bench(&c, b.registry);
	c.timing.order = ORDER_LIST;
	c.timing.order_list[0] = "none such";
	c.timing.order_list[1] = "split=4";
	c.timing.order_list[2] = "split=4";
	c.timing.order_list[3] = "shipped";
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(measured(facts, "rounds"), 8);
	for (int k = 0; k < 4 * 8; k++) {
		const struct fake_event *e = fake_event_at(b.be, fake_launches(b.be) - AFTER - 4 * 8 + 1 + k);
		ck_assert_int_eq(e->arg, c.arm[want[k % 4]].arg);
	}
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* split=2 takes half the time; split=4 lies around the margin of 5 %, half of its launches on either side. */
static double around_the_margin(void *ctx, const struct launch *l, int64_t k)
{
	(void)ctx;
	const int64_t arg = l->call->arm_arg;
	return arg == 2 ? 5000 : arg != 4 ? 10000 : k % 2 ? 11500 : 9500;
}

/* The arm with that argument alone lies around the margin. */
static double one_around_the_margin(void *ctx, const struct launch *l, int64_t k)
{
	return l->call->arm_arg != *(int64_t *)ctx ? 10000 : k % 2 ? 11500 : 9500;
}

/* The served arm alone says how long it takes, whichever place it has. */
START_TEST(the_served_arm_decides)
{
	static const char *const served[] = {"split=2", "split=4"};
	for (int undecided = 0; undecided < 2; undecided++)
		for (int k = 0; k < 2; k++) {
			struct bed b;
			struct cell c;
			int64_t odd = undecided ? 4 : 2;
			bed_open(&b, &(struct fake_script){.time_ns = one_around_the_margin, .ctx = &odd});
			bench(&c, b.registry);
			c.selected = served[k];
			json_t *facts = run_cell(&b, &c, EXEC_OK);
			ck_assert_int_eq(measured(facts, "rounds"), k == undecided ? 64 : 8);
			json_decref(facts);
			bed_close(&b);
		}
}
END_TEST

/* Where no arm is served, rounds go on until each candidate is decided. Headroom is timed, and holds nobody up. */
START_TEST(nobody_is_served)
{
	static const enum cell_arm_role roles[] = {ROLE_CANDIDATE, ROLE_HEADROOM};
	for (int k = 0; k < 2; k++) {
		struct bed b;
		struct cell c;
		bed_open(&b, &(struct fake_script){.time_ns = around_the_margin});
		bench(&c, b.registry);
		c.checks.on = 0;
		c.selection = SELECT_NONE;
		c.selected = NULL;
		c.arm[2].role = roles[k];
		json_t *facts = run_cell(&b, &c, EXEC_OK);
		ck_assert_int_eq(measured(facts, "rounds"), k == 0 ? 64 : 8);
		ck_assert_uint_eq(json_array_size(arm_samples(facts, 2)), k == 0 ? 64 : 8);
		json_decref(facts);
		bed_close(&b);
	}
}
END_TEST

/* Where shipped itself is served there is nothing to decide: the first look is the last, and which look is the first is the suite's to say. */
START_TEST(shipped_is_served)
{
	static const int bounds[][3] = {{8, 64, 8}, {20, 64, 20}, {17, 64, 20}, {8, 5, 5}};
	for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
		struct bed b;
		struct cell c;
		bed_open(&b, NULL);
		bench(&c, b.registry);
		c.selected = "shipped";
		c.timing.min_rounds = bounds[k][0];
		c.timing.max_rounds = bounds[k][1];
		json_t *facts = run_cell(&b, &c, EXEC_OK);
		ck_assert_int_eq(measured(facts, "rounds"), bounds[k][2]);
		json_decref(facts);
		bed_close(&b);
	}
}
END_TEST

/* A launch that the clock does not see has taken 0 ns. That is a sample, and no dropped round. */
START_TEST(samples_of_no_length)
{
	struct bed b;
	struct cell c;
	bed_open(&b, &(struct fake_script){.elapsed_zero = true});
	bench(&c, b.registry);
	c.timing.batch = 1;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(measured(facts, "dropped"), 0);
	ck_assert_int_eq(measured(facts, "rounds"), 8); /* more of them would tell no more */
	for (size_t a = 0; a < 4; a++)
		ck_assert(json_is_integer(json_array_get(arm_samples(facts, a), 0)));
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* A scrub that failed has not evicted: the round counts for nobody. */
START_TEST(scrub_that_fails)
{
	static const enum clock_kind clocks[] = {CLOCK_DEVICE, CLOCK_LAUNCH_TO_COMPLETION};
	for (int k = 0; k < 2; k++) {
		struct bed b;
		struct cell c;
		int64_t scrubs;
		bed_open(&b, NULL);
		bench(&c, b.registry);
		c.timing.clock = clocks[k];
		json_t *facts = run_cell(&b, &c, EXEC_OK);
		scrubs = fake_scrubs(b.be, NULL);
		ck_assert_int_eq(measured(facts, "dropped"), 0);
		ck_assert_int_eq(measured(facts, "rounds"), 8);
		json_decref(facts);
		/* The same again, but for the last scrub but one of its rounds: calibration is not done twice. */
		fake_script_of(b.be)->scrub_fail_call = 2 * scrubs - 1;
		facts = run_cell(&b, &c, EXEC_OK);
		const int64_t per_cell = fake_scrubs(b.be, NULL) - scrubs;
		json_decref(facts);
		fake_script_of(b.be)->scrub_fail_call = fake_scrubs(b.be, NULL) + per_cell - 1;
		facts = run_cell(&b, &c, EXEC_OK);
		ck_assert_int_eq(measured(facts, "dropped"), 1);
		ck_assert_int_eq(measured(facts, "rounds"), 9);
		ck_assert(json_is_null(json_array_get(arm_samples(facts, 0), 7)));
		json_decref(facts);
		bed_close(&b);
	}
}
END_TEST

/* What a cell cost tells scrubs from launches. */
START_TEST(cost_of_scrubs)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	bench(&c, b.registry);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_gt(of(facts, "cost", "scrub_ns"), 0);
	ck_assert_int_gt(of(facts, "cost", "launch_ns"), 0);
	json_decref(facts);
	c.timing.scrub = SCRUB_NONE;
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(of(facts, "cost", "scrub_ns"), 0);
	ck_assert_int_gt(of(facts, "cost", "launch_ns"), 0);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* Four launches a round over four copies of the inputs: without a step at the end of a round each arm would have a copy of its own, and what
 * differs between copies would be taken for the arm. */
START_TEST(each_arm_has_every_copy)
{
	enum { ARMS = 4, ROUNDS = 8 };
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	bench(&c, b.registry);
	c.timing.scrub = SCRUB_ROTATE;
	c.timing.rotate_copies = ARMS;
	c.timing.order = ORDER_FIXED;
	c.timing.rounds = ROUNDS;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	const int64_t from = fake_launches(b.be) - AFTER - ARMS * ROUNDS;
	for (int a = 0; a < ARMS; a++) {
		const void *seen[ARMS] = {NULL};
		int n = 0;
		for (int r = 0; r < ROUNDS; r++) {
			const struct fake_event *e = fake_event_at(b.be, from + 1 + ARMS * r + a);
			int k = 0;
			while (k < n && seen[k] != e->first)
				k++;
			if (k == n)
				seen[n++] = e->first;
			ck_assert_ptr_ne(e->first, fake_event_at(b.be, from + ARMS * r + a)->first);
		}
		ck_assert_msg(n == ARMS, "arm %d had %d of %d copies", a, n, ARMS);
	}
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* An arm fails from some launch on: three rounds in a row, and it is out. If it was the served one nothing is left to be decided, and the first look
 * is the last; it is not waited for until max_rounds. */
START_TEST(an_arm_that_breaks)
{
	static const int64_t broken[] = {4, 2};
	for (int k = 0; k < 2; k++) {
		struct bed b;
		struct cell c;
		bed_open(&b, NULL);
		bench(&c, b.registry);
		json_decref(run_cell(&b, &c, EXEC_OK));
		const int64_t whole = fake_launches(b.be);
		/* As the same cell again, but from the middle of the second round on. */
		json_t *facts = run_cell(&b, &c, EXEC_OK);
		const int64_t cell = fake_launches(b.be) - whole, rounds = measured(facts, "rounds");
		json_decref(facts);
		fake_script_of(b.be)->fail_arm = broken[k];
		fake_script_of(b.be)->fail_arm_from = whole + 2 * cell - 6 - 5 * rounds + 5 + 1;
		facts = run_cell(&b, &c, EXEC_OK);
		for (size_t a = 0; a < 4; a++) {
			const json_t *first = json_array_get(arm_samples(facts, a), 0);
			const bool out = a < 3 && c.arm[a].arg == broken[k];
			ck_assert_msg(json_is_null(first) == out, "arm %zu", a);
			ck_assert(json_is_null(json_array_get(arm_samples(facts, a), 3)));
		}
		ck_assert_int_eq(measured(facts, "dropped"), 3);
		ck_assert_int_eq(measured(facts, "rounds"), rounds + 3);
		json_decref(facts);
		bed_close(&b);
	}
}
END_TEST

/* The launch that is thrown away at the start of a round may fail: it is no sample, and no round is dropped for it. */
START_TEST(the_launch_that_is_thrown_away)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	bench(&c, b.registry);
	json_decref(run_cell(&b, &c, EXEC_OK));
	const int64_t whole = fake_launches(b.be);
	json_decref(run_cell(&b, &c, EXEC_OK));
	/* The third of eight rounds of five launches. */
	fake_script_of(b.be)->fail_launch = whole + 2 * (fake_launches(b.be) - whole) - AFTER - 5 * 8 + 5 * 2 + 1;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(measured(facts, "rounds"), 8);
	ck_assert_int_eq(measured(facts, "dropped"), 0);
	ck_assert(json_is_integer(json_array_get(arm_samples(facts, 0), 2)));
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* A fault that only the wait tells of: the sample is none, and its round counts for nobody. */
START_TEST(a_wait_that_fails)
{
	static const enum clock_kind clocks[] = {CLOCK_DEVICE, CLOCK_LAUNCH_TO_COMPLETION};
	for (int k = 0; k < 2; k++) {
		struct bed b;
		struct cell c;
		bed_open(&b, NULL);
		bench(&c, b.registry);
		c.timing.clock = clocks[k];
		json_decref(run_cell(&b, &c, EXEC_OK));
		const int64_t whole = fake_launches(b.be);
		json_decref(run_cell(&b, &c, EXEC_OK));
		/* The second sample of the third of eight rounds of five launches. */
		fake_script_of(b.be)->wait_fails_launch =
			whole + 2 * (fake_launches(b.be) - whole) - AFTER - 5 * 8 + 5 * 2 + 3;
		json_t *facts = run_cell(&b, &c, EXEC_OK);
		ck_assert_int_eq(measured(facts, "dropped"), 1);
		ck_assert_int_eq(measured(facts, "rounds"), 9);
		for (size_t a = 0; a < 4; a++) {
			ck_assert(json_is_null(json_array_get(arm_samples(facts, a), 2)));
			ck_assert(json_is_integer(json_array_get(arm_samples(facts, a), 3)));
		}
		json_decref(facts);
		bed_close(&b);
	}
}
END_TEST

/* More copies than fit: the cell is checked, and not timed, and a note says why. */
START_TEST(copies_that_do_not_fit)
{
	struct bed b;
	struct cell c;
	bed_open(&b, &(struct fake_script){.memory_bytes = 16 << 20});
	bench(&c, b.registry);
	c.timing.scrub = SCRUB_ROTATE;
	c.timing.rotate_copies = 4000;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(measured(facts, "rounds"), 0);
	ck_assert(noted(facts, "not timed: "));
	json_decref(facts);
	c.timing.rotate_copies = 4;
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(measured(facts, "rounds"), 8);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* A warm-up that fails is over; it is not tried again and again until its time has passed. */
START_TEST(warm_up_that_fails)
{
	int64_t launches[2];
	for (int k = 0; k < 2; k++) {
		struct bed b;
		struct cell c;
		bed_open(&b, NULL);
		bench(&c, b.registry);
		c.timing.warmup_ns = 2000000; /* 180 launches, each with its scrub */
		/* Rounds are 8 of 5 launches, and 6 check again. */
		fake_script_of(b.be)->fail_launch = k ? launches[0] - 46 - 100 : 0;
		json_decref(run_cell(&b, &c, EXEC_OK));
		launches[k] = fake_launches(b.be);
		bed_close(&b);
	}
	ck_assert_msg(launches[1] <= launches[0] - 90, "%lld launches, %lld without a failure", (long long)launches[1],
		      (long long)launches[0]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rounds_more");
	TCase *t = tcase_create("rounds_more");
	tcase_add_test(t, samples_of_a_queue);
	tcase_add_test(t, order_by_list);
	tcase_add_test(t, nobody_is_served);
	tcase_add_test(t, shipped_is_served);
	tcase_add_test(t, the_served_arm_decides);
	tcase_add_test(t, samples_of_no_length);
	tcase_add_test(t, scrub_that_fails);
	tcase_add_test(t, cost_of_scrubs);
	tcase_add_test(t, each_arm_has_every_copy);
	tcase_add_test(t, an_arm_that_breaks);
	tcase_add_test(t, the_launch_that_is_thrown_away);
	tcase_add_test(t, a_wait_that_fails);
	tcase_add_test(t, copies_that_do_not_fit);
	tcase_add_test(t, warm_up_that_fails);
	suite_add_tcase(s, t);
	return unit_run(s);
}
