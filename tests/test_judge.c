/* judge: the 11 series of tests/data/judge-vectors.json, what tests/gen_judge_more.py counted, and the edges. */
#include "test_judge.h"
#include "unit.h"

/* Each look of the trace is what the executor would see after so many rounds; the last is the replay from the whole file. */
START_TEST(spec_vectors)
{
	size_t i;
	json_t *v;
	json_array_foreach(vectors, i, v)
	{
		const char *name = json_string_value(json_object_get(v, "name"));
		int n, m;
		double *arm = list(v, "t_arm", 1000, &n), *ship = list(v, "t_ship", 1000, &m);
		struct judge_rule rule = rule_of(num(v, "margin") - 1);
		const json_t *trace = json_object_get(v, "trace"), *final = json_object_get(v, "final");
		size_t looks = json_array_size(trace);
		ck_assert_int_eq(n, 64);
		for (size_t k = 0; k <= looks; k++) {
			const json_t *t = k < looks ? json_array_get(trace, k) : final;
			int at = (int)num(t, "n");
			struct judge_pair p = {arm, ship, k < looks ? at : n};
			struct judge_result r;
			bool done;
			judge_paired(&p, &rule, &r, &done);
			ck_assert_int_eq(r.iv.n, at);
			near(r.iv.estimate, num(t, "hl"), 1e-12);
			near(r.iv.lo, num(t, "lo"), 1e-12);
			near(r.iv.hi, num(t, "hi"), 1e-12);
			near(r.iv.r1, num(t, "r1"), 1e-12);
			near(r.iv.g, num(t, "g"), 1e-12);
			near(r.ratio_estimator, exp(num(t, "hl")), 1e-12);
			ck_assert_msg(r.verdict == verdict_of(json_string_value(json_object_get(t, "verdict"))), "%s",
				      name);
			ck_assert_msg(done == (k + 1 >= looks), "%s look %zu", name, k);
			if (k + 1 < looks) { /* one round less is not yet this look */
				p.n--;
				judge_paired(&p, &rule, &r, &done);
				ck_assert(!done && r.iv.n < at + (k == 0));
			}
		}
		double d[64], back[64];
		int at = (int)num(final, "n");
		for (int k = 0; k < at; k++) {
			d[k] = log(arm[k] / ship[k]);
			back[k] = -d[k];
		}
		double lm = log(num(v, "margin"));
		near(stats_signed_rank_p_greater(d, at, lm), num(v, "p_greater_exact"), 1e-12);
		near(stats_signed_rank_p_greater(back, at, -lm), num(v, "p_less_exact"), 1e-12);

		struct judge_pair p = {arm, ship, n};
		struct judge_result r;
		rule.estimator = EST_MEAN;
		rule.rounds = 5;
		judge_seed(&p, &rule, &r, NULL);
		near(r.ratio_estimator, num(v, "seed_mean5_ratio"), 1e-12);
		ck_assert_int_eq(r.verdict, num(v, "seed_mean5_ratio") > num(v, "margin") ? TV_REGRESSION : TV_PASS);
		rule.estimator = EST_MEDIAN;
		rule.rounds = 9;
		judge_seed(&p, &rule, &r, NULL);
		near(r.ratio_estimator, num(v, "seed_median9_ratio"), 1e-12);
		ck_assert_int_eq(r.verdict, num(v, "seed_median9_ratio") > num(v, "margin") ? TV_REGRESSION : TV_PASS);
		ck_assert_int_eq(r.iv.n, 9);
		ck_assert(isfinite(r.iv.lo) && isfinite(r.iv.hi)); /* the interval stands beside it */
		free(ship);
		free(arm);
	}
	ck_assert_uint_eq(i, 11);
}
END_TEST

static void fill(double *arm, double *ship, int n, double ratio)
{
	for (int i = 0; i < n; i++) {
		ship[i] = 10000 + 7 * (i * 37 % 11);
		arm[i] = ship[i] * ratio * (1 + 1e-4 * (i * 17 % 13 - 6));
	}
}

START_TEST(dropped_rounds_change_nothing)
{
	double arm[64], ship[64], arm2[80], ship2[80];
	fill(arm, ship, 20, 1.031);
	int k = 0;
	for (int i = 0; i < 20; i++) {
		if (i % 3 == 0) {
			arm2[k] = i % 2 ? NAN : 5;
			ship2[k++] = i % 2 ? 5 : NAN;
		}
		arm2[k] = arm[i];
		ship2[k++] = ship[i];
	}
	struct judge_rule rule = rule_of(0.03);
	struct judge_result a, b;
	bool da, db;
	judge_paired(&(struct judge_pair){arm, ship, 20}, &rule, &a, &da);
	judge_paired(&(struct judge_pair){arm2, ship2, k}, &rule, &b, &db);
	ck_assert(da == db && a.verdict == b.verdict && a.iv.n == b.iv.n && a.iv.lo == b.iv.lo && a.iv.hi == b.iv.hi);
}
END_TEST

START_TEST(too_few_rounds_decide_nothing)
{
	double arm[64], ship[64];
	fill(arm, ship, 64, 3.0);
	struct judge_rule rule = rule_of(0.03);
	struct judge_result r;
	bool done;
	for (int n = 0; n < 8; n++) {
		judge_paired(&(struct judge_pair){arm, ship, n}, &rule, &r, &done);
		ck_assert(r.verdict == TV_INCONCLUSIVE && r.reason == TR_TOO_FEW && !done);
		ck_assert_int_eq(r.rounds_more, 8 - n);
		ck_assert(n == 0 ? isnan(r.iv.estimate) : fabs(r.iv.estimate - log(3)) < 1e-3);
	}
	for (int fixed = 1; fixed <= 5; fixed++) { /* at 2.5 % no interval exists below 6 */
		rule.rounds = fixed;
		judge_paired(&(struct judge_pair){arm, ship, fixed}, &rule, &r, &done);
		ck_assert(r.verdict == TV_INCONCLUSIVE && r.reason == TR_TOO_FEW && done);
	}
	rule.rounds = 6;
	judge_paired(&(struct judge_pair){arm, ship, 6}, &rule, &r, &done);
	ck_assert(r.verdict == TV_SUSPECT && done && r.iv.cut == 0);
	judge_paired(&(struct judge_pair){arm, ship, 5}, &rule, &r, &done);
	ck_assert(!done);
}
END_TEST

START_TEST(bounds_of_looks)
{
	double arm[64], ship[64];
	fill(arm, ship, 64, 1.10);
	struct judge_rule rule = rule_of(0.03);
	struct judge_result r;
	bool done;
	rule.min_rounds = 15;
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, &done);
	ck_assert(r.verdict == TV_SUSPECT && r.iv.n == 16 && done);
	judge_paired(&(struct judge_pair){arm, ship, 15}, &rule, &r, &done);
	ck_assert(r.verdict == TV_INCONCLUSIVE && !done);
	rule.min_rounds = 8;
	fill(arm, ship, 64, 1.03);
	rule.max_rounds = 23; /* the last look is at 20 */
	judge_paired(&(struct judge_pair){arm, ship, 20}, &rule, &r, &done);
	ck_assert(r.verdict == TV_INCONCLUSIVE && r.reason == TR_ROUNDS && done && r.iv.n == 20);
	/* One look alone is waited for; where there is none between the bounds, nothing is. */
	rule.max_rounds = 9;
	judge_paired(&(struct judge_pair){arm, ship, 7}, &rule, &r, &done);
	ck_assert(r.verdict == TV_INCONCLUSIVE && !done);
	judge_paired(&(struct judge_pair){arm, ship, 8}, &rule, &r, &done);
	ck_assert(r.verdict == TV_INCONCLUSIVE && done);
	rule.min_rounds = 9;
	judge_paired(&(struct judge_pair){arm, ship, 1}, &rule, &r, &done);
	ck_assert(r.verdict == TV_INCONCLUSIVE && done);
	static const int first[][3] = {{8, 64, 8}, {9, 64, 10},  {20, 64, 20}, {50, 64, 64},
				       {9, 9, 9},  {50, 60, 60}, {10, 10, 10}};
	for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
		rule.min_rounds = first[i][0];
		rule.max_rounds = first[i][1];
		ck_assert_int_eq(judge_first_look(&rule), first[i][2]);
	}
	rule.rounds = 5;
	ck_assert_int_eq(judge_first_look(&rule), 5);
	/* alpha 0.001 has no interval before 12 */
	fill(arm, ship, 64, 1.10);
	rule = rule_of(0.03);
	rule.alpha = 0.001;
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, &done);
	ck_assert(r.verdict == TV_SUSPECT && r.iv.n == 12);
}
END_TEST

START_TEST(a_limit_of_zero_is_a_limit)
{
	double arm[64], ship[64];
	fill(arm, ship, 64, 1.01);
	struct judge_rule rule = rule_of(0.0);
	struct judge_result r;
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_SUSPECT && r.ln_margin == 0);
	for (int i = 0; i < 64; i++)
		arm[i] = ship[i] = 100; /* no noise at all is valid noise: equal passes, also at 0 % */
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_PASS && r.iv.n == 8 && r.iv.lo == 0 && r.iv.hi == 0);
	for (int i = 0; i < 64; i++)
		arm[i] = 105;
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_SUSPECT && r.iv.n == 8);
}
END_TEST

START_TEST(absolute_floor)
{
	near(judge_ln_margin(0.05, 0, 10000), log(1.05), 0);
	near(judge_ln_margin(0.05, 500, 10000), log(1.05), 0);
	near(judge_ln_margin(0.05, 500, 2000), log(1.25), 1e-15);
	near(judge_ln_margin(0.05, 500, 0), log(1.05), 0);
	near(judge_ln_margin(0.05, 500, NAN), log(1.05), 0);
	double arm[64], ship[64];
	fill(arm, ship, 64, 1.10);
	struct judge_rule rule = rule_of(0.02);
	struct judge_result r;
	rule.floor_ns = 1500; /* 15 % of 10 us */
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_PASS);
	rule.floor_ns = 500;
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_SUSPECT);
}
END_TEST

START_TEST(warn_level)
{
	double arm[64], ship[64];
	struct judge_rule rule = rule_of(0.05);
	struct judge_result r;
	rule.warn = 0.03;
	fill(arm, ship, 64, 1.04);
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_PASS && r.warned);
	fill(arm, ship, 64, 1.02);
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_PASS && !r.warned);
	fill(arm, ship, 64, 1.08);
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_SUSPECT && !r.warned);
	/* A level is reached when it is passed: exactly at it is neither a warning nor a failure. */
	for (int i = 0; i < 64; i++) {
		ship[i] = 100;
		arm[i] = 103;
	}
	for (int k = 0; k < 2; k++) {
		rule.estimator = k ? EST_MEAN : EST_PAIRED;
		(k ? judge_seed : judge_paired)(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
		ck_assert(r.verdict == TV_PASS && !r.warned);
		rule.fail = 0.03;
		(k ? judge_seed : judge_paired)(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
		ck_assert(r.verdict == TV_PASS);
		rule.fail = 0.029;
		(k ? judge_seed : judge_paired)(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
		ck_assert(r.verdict == (k ? TV_REGRESSION : TV_SUSPECT));
		rule.fail = 0.05;
	}
	rule.estimator = EST_PAIRED;
	rule.warn = -1; /* no level, no note */
	fill(arm, ship, 64, 1.04);
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_PASS && !r.warned);
	rule.estimator = EST_MEAN;
	judge_seed(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_PASS && !r.warned);
	rule.warn = 0.03;
	judge_seed(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_PASS && r.warned);
}
END_TEST

START_TEST(no_length_has_no_ratio)
{
	double arm[64], ship[64];
	fill(arm, ship, 64, 1.0);
	arm[3] = 0;
	struct judge_rule rule = rule_of(0.05);
	struct judge_result r;
	bool done;
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, &done);
	ck_assert(r.verdict == TV_INCONCLUSIVE && r.reason == TR_RESOLUTION && done);
	rule.estimator = EST_MEAN;
	judge_seed(&(struct judge_pair){arm, ship, 64}, &rule, &r, &done);
	ck_assert(r.verdict == TV_INCONCLUSIVE && r.reason == TR_RESOLUTION && done);
	for (int i = 0; i < 64; i++)
		ship[i] = 0;
	judge_seed(&(struct judge_pair){arm, ship, 64}, &rule, &r, &done);
	ck_assert(r.verdict == TV_INCONCLUSIVE && r.reason == TR_RESOLUTION);
	/* The ends of what a double can hold. */
	for (int i = 0; i < 64; i++) {
		arm[i] = 1e-300 * (1 + i % 3);
		ship[i] = 1e300 * (1 + i % 5);
	}
	rule.estimator = EST_PAIRED;
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, &done);
	ck_assert(r.verdict == TV_PASS && isfinite(r.iv.lo) && isfinite(r.iv.hi));
	judge_paired(&(struct judge_pair){ship, arm, 64}, &rule, &r, &done);
	ck_assert(r.verdict == TV_SUSPECT && isfinite(r.iv.estimate));
}
END_TEST

START_TEST(seed_protocols)
{
	double arm[64], ship[64];
	fill(arm, ship, 64, 1.0);
	struct judge_rule rule = rule_of(0.02);
	struct judge_result r;
	bool done;
	rule.estimator = EST_MEAN;
	rule.rounds = 5;
	arm[4] *= 1.5; /* one hiccup in five is a regression of the mean, and none of the median */
	judge_seed(&(struct judge_pair){arm, ship, 64}, &rule, &r, &done);
	ck_assert(r.verdict == TV_REGRESSION && done);
	rule.estimator = EST_MEDIAN;
	judge_seed(&(struct judge_pair){arm, ship, 64}, &rule, &r, &done);
	ck_assert(r.verdict == TV_PASS && r.reason == TR_NONE);
	judge_seed(&(struct judge_pair){arm, ship, 4}, &rule, &r, &done);
	ck_assert(r.verdict == TV_INCONCLUSIVE && r.reason == TR_TOO_FEW && !done && r.rounds_more == 1);
	rule.rounds = 0; /* all there are */
	judge_seed(&(struct judge_pair){arm, ship, 7}, &rule, &r, &done);
	ck_assert(r.verdict == TV_PASS && r.iv.n == 7);
	judge_seed(&(struct judge_pair){arm, ship, 0}, &rule, &r, &done);
	ck_assert(r.verdict == TV_INCONCLUSIVE);
}
END_TEST

START_TEST(price)
{
	/* half width h at n, gap g: n (h/g)^2, up to the next look. */
	double arm[1024], ship[1024];
	fill(arm, ship, 64, 1.0);
	for (int i = 0; i < 64; i++)
		arm[i] = ship[i] * (1 + 0.03 + 0.08 * ((i * 29 % 64) / 63.0 - 0.5));
	struct judge_rule rule = rule_of(0.04);
	struct judge_result r;
	rule.rounds = 12;
	judge_paired(&(struct judge_pair){arm, ship, 12}, &rule, &r, NULL);
	ck_assert_int_eq(r.verdict, TV_INCONCLUSIVE);
	double x = (r.iv.hi - r.iv.lo) / 2 / fabs(r.iv.estimate - r.ln_margin);
	if (12 * x * x <= STATS_MAX_ROUNDS)
		ck_assert_int_eq(r.rounds_more, (int)ceil(12 * x * x) - 12);
	else
		ck_assert_int_eq(r.rounds_more, -1);
	/* 15.6 rounds are wanted, and the look at 16 is the next that has them; an order that goes to and fro widens nothing. */
	static const int fro[8] = {0, 7, 1, 6, 2, 5, 3, 4};
	const double half = 0.035, want = log(1.05) - half / sqrt(1.95);
	for (int i = 0; i < 8; i++) {
		ship[i] = 1000;
		arm[i] = 1000 * exp(want + 0.01 * (fro[i] - 3.5));
	}
	rule = rule_of(0.05);
	judge_paired(&(struct judge_pair){arm, ship, 8}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_INCONCLUSIVE && r.iv.g == 1);
	near((r.iv.hi - r.iv.lo) / 2, half, 1e-12);
	ck_assert_int_eq(r.rounds_more, 16 - 8);
	/* At 0.1 % eight rounds have no interval: the next look is the price. */
	rule.alpha = 0.001;
	judge_paired(&(struct judge_pair){arm, ship, 8}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_INCONCLUSIVE && r.reason == TR_TOO_FEW);
	ck_assert_int_eq(r.rounds_more, 10 - 8);
	/* A skewed interval holds a margin that its mean half width does not reach: one round more is the least that can be asked for. */
	for (int i = 0; i < 12; i++) {
		const int k = i % 2 ? 11 - i / 2 : i / 2;
		ship[i] = 1000;
		arm[i] = 1000 * exp(0.001 * k * k);
	}
	rule = rule_of(0);
	rule.rounds = 12;
	judge_paired(&(struct judge_pair){arm, ship, 12}, &rule, &r, NULL);
	const double mean_half = (r.iv.hi - r.iv.lo) / 2, upper = r.iv.hi - r.iv.estimate;
	ck_assert_double_gt(upper, 1.004 * mean_half);
	rule.fail = exp(r.iv.estimate + (mean_half + upper) / 2) - 1;
	judge_paired(&(struct judge_pair){arm, ship, 12}, &rule, &r, NULL);
	ck_assert_int_eq(r.verdict, TV_INCONCLUSIVE);
	ck_assert_int_eq(r.rounds_more, 1);
	rule = rule_of(0.04);
	fill(arm, ship, 64, 1.0);
	/* No gap, no price: a symmetric grid around the margin itself. */
	for (int i = 0; i < 64; i++)
		arm[i] = ship[i] * 1.04 * exp(0.001 * ((i * 29 % 64) - 31.5));
	rule.rounds = 0;
	judge_paired(&(struct judge_pair){arm, ship, 64}, &rule, &r, NULL);
	ck_assert(r.verdict == TV_INCONCLUSIVE && r.rounds_more == -1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("judge");
	TCase *t = tcase_create("judge");
	tcase_add_unchecked_fixture(t, load, unload);
	tcase_add_test(t, spec_vectors);
	tcase_add_test(t, dropped_rounds_change_nothing);
	tcase_add_test(t, too_few_rounds_decide_nothing);
	tcase_add_test(t, bounds_of_looks);
	tcase_add_test(t, a_limit_of_zero_is_a_limit);
	tcase_add_test(t, absolute_floor);
	tcase_add_test(t, warn_level);
	tcase_add_test(t, no_length_has_no_ratio);
	tcase_add_test(t, seed_protocols);
	tcase_add_test(t, price);
	suite_add_tcase(s, t);
	return unit_run(s);
}
