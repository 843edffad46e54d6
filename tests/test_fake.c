/* The lying backend must lie as its script says and not otherwise: other tests rest on it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "unit.h"

static int count_run(const struct assay_call *c, void *state)
{
	++*(int *)state;
	return 0;
}

static const struct assay_arm_ops shipped_ops = {.run = count_run}, other_ops = {.run = count_run};
static char error_text[ASSAY_ERROR_MAX];
static const struct assay_call call_0 = {.arm_arg = 0, .error = error_text},
			       call_4 = {.arm_arg = 4, .error = error_text};

/* One bracketed launch: device ns by the marks; -1 where it failed. */
static int64_t timed(struct backend *b, const struct assay_arm_ops *ops, const struct assay_call *c, int *runs)
{
	const struct backend_ops *o = backend_ops_of(b);
	struct err e;
	bool lost;
	int64_t ns = -1;
	struct launch l = {.ops = ops, .call = c, .state = runs};
	if (!o->mark(b, 0, &e) || !o->launch(b, &l, &e) || !o->mark(b, 1, &e) || !o->sync(b, &lost, &e) ||
	    !o->elapsed(b, 0, 1, &ns, &e))
		return -1;
	return ns;
}

static struct backend *fake(const struct fake_script *s)
{
	struct backend *b = fake_create(s);
	ck_assert_ptr_nonnull(b);
	return b;
}

static void close_fake(struct backend *b)
{
	ck_assert_int_eq(fake_memory_in_use(b), 0);
	backend_ops_of(b)->close(b);
}

START_TEST(honest_without_a_script)
{
	struct backend *b = fake(NULL);
	const struct backend_ops *o = backend_ops_of(b);
	struct device_state st;
	int runs = 0;
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(timed(b, &shipped_ops, &call_0, &runs), 10000);
	ck_assert_int_eq(runs, 1000);
	ck_assert_int_eq(fake_launches(b), 1000);
	ck_assert(o->state(b, &st, NULL));
	ck_assert(!st.throttle && !st.other_processes);
	int64_t t = o->now(b);
	ck_assert(o->scrub(b, -1, NULL));
	ck_assert_int_eq(o->now(b) - t, 1001);
	int64_t last;
	ck_assert_int_eq(fake_scrubs(b, &last), 1);
	ck_assert_int_eq(last, -1);
	char *p = o->alloc(b, 100, NULL);
	ck_assert_uint_eq((uintptr_t)p % 256, 0);
	ck_assert_int_eq(fake_memory_in_use(b), 100);
	o->free(b, p);
	close_fake(b);
}
END_TEST

START_TEST(arms_have_their_times)
{
	struct fake_script s = {.launch_ns = 7000,
				.arm = {{.ops = &other_ops, .has_arg = true, .arg = 4, .ns = 8000},
					{.ops = &other_ops, .ns = 9000}},
				.n_arms = 2};
	struct backend *b = fake(&s);
	int runs = 0;
	ck_assert_int_eq(timed(b, &shipped_ops, &call_4, &runs), 7000);
	ck_assert_int_eq(timed(b, &other_ops, &call_4, &runs), 8000);
	ck_assert_int_eq(timed(b, &other_ops, &call_0, &runs), 9000);
	ck_assert_ptr_eq(fake_event_at(b, 2)->ops, &other_ops);
	ck_assert_int_eq(fake_event_at(b, 2)->arg, 4);
	ck_assert_ptr_null(fake_event_at(b, 4));
	ck_assert_ptr_null(fake_event_at(b, 0));
	close_fake(b);
}
END_TEST

static void moments(const struct fake_script *s, int n, double *mean, double *sd, double *r1)
{
	struct backend *b = fake(s);
	double *x = malloc((size_t)n * sizeof *x), sum = 0, sq = 0, cross = 0;
	int runs = 0;
	for (int i = 0; i < n; i++)
		sum += x[i] = log((double)timed(b, &shipped_ops, &call_0, &runs));
	*mean = sum / n;
	for (int i = 0; i < n; i++) {
		sq += (x[i] - *mean) * (x[i] - *mean);
		cross += i ? (x[i] - *mean) * (x[i - 1] - *mean) : 0;
	}
	*sd = sqrt(sq / n);
	*r1 = cross / sq;
	free(x);
	close_fake(b);
}

START_TEST(noise_is_as_asked)
{
	double mean, sd, r1;
	moments(&(struct fake_script){.launch_ns = 1e6, .sigma = 0.02, .seed = 3}, 20000, &mean, &sd, &r1);
	ck_assert_double_lt(fabs(mean - log(1e6)), 0.001);
	ck_assert_double_lt(fabs(sd - 0.02), 0.0005);
	ck_assert_double_lt(fabs(r1), 0.03);
	moments(&(struct fake_script){.launch_ns = 1e6, .sigma = 0.02, .rho = 0.6, .seed = 4}, 20000, &mean, &sd, &r1);
	ck_assert_double_lt(fabs(sd - 0.02), 0.001);
	ck_assert_double_lt(fabs(r1 - 0.6), 0.03);
	/* a fifth of the launches twice as slow: sd of ln is ln 2 * sqrt(0.2 * 0.8) */
	moments(&(struct fake_script){.launch_ns = 1e6, .hiccup_p = 0.2, .hiccup_factor = 2}, 20000, &mean, &sd, &r1);
	ck_assert_double_lt(fabs(mean - log(1e6) - 0.2 * log(2)), 0.01);
	ck_assert_double_lt(fabs(sd - log(2) * 0.4), 0.01);
	/* two clocks that change over seldom: long runs */
	moments(&(struct fake_script){.launch_ns = 1e6, .mode_p = 0.01, .mode_factor = 1.1}, 20000, &mean, &sd, &r1);
	ck_assert_double_lt(fabs(sd - log(1.1) / 2), 0.005);
	ck_assert_double_gt(r1, 0.95);
}
END_TEST

START_TEST(slow_changes)
{
	int runs = 0;
	struct backend *b = fake(&(struct fake_script){.ramp = 0.5, .ramp_launches = 10, .drift = 0.001});
	int64_t first = timed(b, &shipped_ops, &call_0, &runs), last = 0;
	for (int i = 2; i <= 1000; i++)
		last = timed(b, &shipped_ops, &call_0, &runs);
	ck_assert_int_eq(first, (int64_t)(10000 * (1 + 0.5 * exp(-0.1)) * 1.001));
	ck_assert_int_eq(last, 20000);
	close_fake(b);

	b = fake(&(struct fake_script){.first_from = 3, .first_every = 5, .first_factor = 1.5, .overhead_ns = 100});
	for (int k = 1; k <= 20; k++)
		ck_assert_int_eq(timed(b, &shipped_ops, &call_0, &runs), k % 5 == 3 ? 15100 : 10100);
	close_fake(b);
}
END_TEST

START_TEST(scrub_makes_cold)
{
	int runs = 0;
	struct fake_script s = {.cold_factor = 2};
	struct backend *b = fake(&s);
	ck_assert_int_eq(timed(b, &shipped_ops, &call_0, &runs), 10000);
	backend_ops_of(b)->scrub(b, -1, NULL);
	ck_assert_int_eq(timed(b, &shipped_ops, &call_0, &runs), 20000);
	ck_assert_int_eq(timed(b, &shipped_ops, &call_0, &runs), 10000);
	backend_ops_of(b)->scrub(b, 0, NULL);
	ck_assert_int_eq(timed(b, &shipped_ops, &call_0, &runs), 10000);
	ck_assert(fake_event_at(b, 2)->scrubbed && !fake_event_at(b, 3)->scrubbed);
	fake_script_of(b)->scrub_ineffective = true;
	backend_ops_of(b)->scrub(b, -1, NULL);
	ck_assert_int_eq(timed(b, &shipped_ops, &call_0, &runs), 10000);
	close_fake(b);
}
END_TEST

START_TEST(clocks_lie)
{
	int runs = 0;
	struct backend *b = fake(&(struct fake_script){.tick_ns = 512, .launch_ns = 1000});
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(timed(b, &shipped_ops, &call_0, &runs) % 512, 0);
	ck_assert_int_eq(backend_ops_of(b)->now(b) % 512, 0);
	close_fake(b);
	b = fake(&(struct fake_script){.elapsed_zero = true});
	ck_assert_int_eq(timed(b, &shipped_ops, &call_0, &runs), 0);
	close_fake(b);
	b = fake(&(struct fake_script){.marks_factor = 0.5});
	ck_assert_int_eq(timed(b, &shipped_ops, &call_0, &runs), 5000);
	close_fake(b);
	b = fake(&(struct fake_script){.now_jump_call = 3, .now_jump_ns = -5000});
	int64_t t[4];
	for (int i = 0; i < 4; i++)
		t[i] = backend_ops_of(b)->now(b);
	ck_assert_int_eq(t[1] - t[0], 1);
	ck_assert_int_eq(t[2] - t[1], -4999);
	ck_assert_int_eq(t[3] - t[2], 1);
	close_fake(b);
}
END_TEST

START_TEST(devices_fail)
{
	int runs = 0;
	struct err e;
	bool lost = false;
	struct backend *b = fake(&(struct fake_script){.fail_launch = 2, .fail_every = 5});
	for (int k = 1; k <= 10; k++)
		ck_assert((timed(b, &shipped_ops, &call_0, &runs) < 0) == (k == 2 || k % 5 == 0));
	ck_assert_int_eq(runs, 7);
	close_fake(b);

	b = fake(&(struct fake_script){.lost_launch = 3});
	const struct backend_ops *o = backend_ops_of(b);
	ck_assert_int_gt(timed(b, &shipped_ops, &call_0, &runs), 0);
	ck_assert_int_gt(timed(b, &shipped_ops, &call_0, &runs), 0);
	struct launch l = {.ops = &shipped_ops, .call = &call_0, .state = &runs};
	ck_assert(o->launch(b, &l, &e)); /* accepted, and lost */
	ck_assert(!o->sync(b, &lost, &e));
	ck_assert(lost);
	ck_assert(!o->launch(b, &l, &e));
	ck_assert_ptr_null(o->alloc(b, 1, &e));
	close_fake(b);

	runs = 0;
	b = fake(&(struct fake_script){.silent_launch = 2});
	for (int k = 1; k <= 3; k++)
		ck_assert_int_eq(timed(b, &shipped_ops, &call_0, &runs), 10000);
	ck_assert_int_eq(runs, 1);
	close_fake(b);

	b = fake(&(struct fake_script){.alloc_limit_bytes = 1000});
	ck_assert_ptr_null(backend_ops_of(b)->alloc(b, 1001, &e));
	void *p = backend_ops_of(b)->alloc(b, 1000, &e);
	ck_assert_ptr_nonnull(p);
	backend_ops_of(b)->free(b, p);
	close_fake(b);
}
END_TEST

START_TEST(windows_are_bad)
{
	struct backend *b = fake(
		&(struct fake_script){.throttle_call = 2, .throttle_calls = 2, .shared_call = 3, .shared_calls = 1});
	for (int k = 1; k <= 5; k++) {
		struct device_state s;
		ck_assert(backend_ops_of(b)->state(b, &s, NULL));
		ck_assert_int_eq(s.throttle != 0, k == 2 || k == 3);
		ck_assert_int_eq(s.throttle_text != NULL, k == 2 || k == 3);
		ck_assert_int_eq(s.other_processes, k == 3);
	}
	close_fake(b);
}
END_TEST

static double by_call(void *ctx, const struct launch *l, int64_t k)
{
	return *(double *)ctx * (double)k;
}

START_TEST(a_function_may_tell_the_time)
{
	double unit = 100;
	int runs = 0;
	struct backend *b = fake(&(struct fake_script){.time_ns = by_call, .ctx = &unit});
	for (int k = 1; k <= 5; k++)
		ck_assert_int_eq(timed(b, &shipped_ops, &call_0, &runs), 100 * k);
	close_fake(b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fake");
	TCase *c = tcase_create("fake");
	tcase_add_test(c, honest_without_a_script);
	tcase_add_test(c, arms_have_their_times);
	tcase_add_test(c, noise_is_as_asked);
	tcase_add_test(c, slow_changes);
	tcase_add_test(c, scrub_makes_cold);
	tcase_add_test(c, clocks_lie);
	tcase_add_test(c, devices_fail);
	tcase_add_test(c, windows_are_bad);
	tcase_add_test(c, a_function_may_tell_the_time);
	suite_add_tcase(s, c);
	return unit_run(s);
}
