/* What the judge says of a window, of a second look and of a run. */
#include "test_judge.h"
#include "unit.h"

START_TEST(null_arm)
{
	size_t i;
	json_t *v;
	json_array_foreach(json_object_get(more, "null"), i, v)
	{
		int n, m;
		double *null = list(v, "null", 1, &n), *ship = list(v, "shipped", 1, &m);
		struct judge_null r;
		judge_null_arm(&(struct judge_pair){null, ship, n}, num(v, "ln_margin"), num(v, "tau"), &r);
		near(r.iv.estimate, num(v, "estimate"), 1e-12);
		if (json_is_null(json_object_get(v, "lo")))
			ck_assert(isinf(r.iv.lo) && isinf(r.iv.hi));
		else {
			near(r.iv.lo, num(v, "lo"), 1e-12);
			near(r.iv.hi, num(v, "hi"), 1e-12);
		}
		near(r.noise, num(v, "noise"), 1e-12);
		ck_assert_msg(r.biased == json_is_true(json_object_get(v, "biased")), "null vector %zu", i);
		free(ship);
		free(null);
	}
	ck_assert_uint_ge(i, 9);
	/* How far off is biased: a quarter of the margin, which counts as 0.5 % at least, and 2 sqrt 2 tau. */
	static const struct {
		double z, ln_margin, tau;
		bool biased;
	} far[] = {
		{0.02, 0.0799, 0, true},   {0.02, 0.0801, 0, false}, {-0.02, 0.0799, 0, true},
		{-0.02, 0.0801, 0, false}, {0.02, 0, 0.00706, true}, {0.02, 0, 0.00708, false},
		{0.00126, 0, 0, true},     {0.00124, 0, 0, false},   {0.00124, 0, -1, false},
	};
	for (size_t k = 0; k < sizeof far / sizeof *far; k++) {
		double null[16], ship[16];
		struct judge_null got;
		for (int n = 0; n < 16; n++) {
			ship[n] = 1000;
			null[n] = 1000 * exp(far[k].z);
		}
		judge_null_arm(&(struct judge_pair){null, ship, 16}, far[k].ln_margin, far[k].tau, &got);
		ck_assert_msg(got.biased == far[k].biased, "case %zu", k);
	}
	struct judge_null r;
	/* Exactly that far is biased. */
	double null[16], ship[16];
	for (int n = 0; n < 16; n++) {
		ship[n] = 1024;
		null[n] = 1100;
	}
	judge_null_arm(&(struct judge_pair){null, ship, 16}, 4 * log(1100. / 1024), 0, &r);
	ck_assert(r.biased);
	judge_null_arm(&(struct judge_pair){NULL, NULL, 0}, 0.05, 0, &r);
	ck_assert(!r.biased && r.iv.n == 0);
}
END_TEST

START_TEST(tail)
{
	size_t i;
	json_t *v;
	json_array_foreach(json_object_get(more, "tail"), i, v)
	{
		int n, m;
		double *arm = list(v, "arm", 1, &n), *ship = list(v, "shipped", 1, &m);
		struct judge_tail r;
		judge_tail(&(struct judge_pair){arm, ship, n}, &r);
		ck_assert_int_eq(r.arm_only, (int)num(v, "arm_only"));
		ck_assert_int_eq(r.shipped_only, (int)num(v, "shipped_only"));
		near(r.p, num(v, "p"), 1e-13);
		ck_assert_int_eq(r.flagged, json_is_true(json_object_get(v, "flagged")));
		free(ship);
		free(arm);
	}
	ck_assert_uint_ge(i, 8);
	/* A round that is slow for both says nothing of either. */
	double a[20], b[20];
	for (int k = 0; k < 20; k++)
		a[k] = b[k] = k < 8 ? 200 : 100;
	struct judge_tail both;
	judge_tail(&(struct judge_pair){a, b, 20}, &both);
	ck_assert(both.arm_only == 0 && both.shipped_only == 0 && !both.flagged && both.p == 1);
	/* Beyond 5 % is beyond: exactly 5 % is not, on either side. Seven are enough, six are not. */
	for (int late = 6; late <= 7; late++)
		for (int side = 0; side < 2; side++) {
			for (int k = 0; k < 20; k++) {
				a[k] = k < late ? 106 : 100;
				b[k] = k >= 20 - late ? 105 : 100;
			}
			struct judge_tail t;
			judge_tail(&(struct judge_pair){side ? b : a, side ? a : b, 20}, &t);
			ck_assert_int_eq(t.arm_only, side ? 0 : late);
			ck_assert_int_eq(t.shipped_only, side ? late : 0);
			ck_assert_int_eq(t.flagged, side == 0 && late == 7);
		}
}
END_TEST

START_TEST(batch)
{
	size_t i;
	json_t *v;
	json_array_foreach(json_object_get(more, "batch"), i, v)
		ck_assert_int_eq(judge_batch(num(v, "tick"), num(v, "t"), num(v, "ln_margin")), (int)num(v, "batch"));
	ck_assert_uint_ge(i, 7);
	ck_assert_int_eq(judge_batch(1, 0, 0.05), INT_MAX);
	ck_assert_int_eq(judge_batch(1000, 1e-300, 0.05), INT_MAX);
}
END_TEST

START_TEST(confirmation)
{
	size_t i, k;
	json_t *v, *x;
	json_array_foreach(json_object_get(more, "confirm"), i, v)
	{
		struct judge_suspect s[8];
		double *d[8];
		const json_t *list_of = json_object_get(v, "suspects");
		json_array_foreach(list_of, k, x)
		{
			int n;
			d[k] = list(x, "d", 1, &n);
			s[k] = (struct judge_suspect){.d = d[k],
						      .n = n,
						      .ln_margin = num(x, "ln_margin"),
						      .tau = num(v, "tau")};
		}
		judge_confirm(s, (int)k);
		json_array_foreach(list_of, k, x)
		{
			near(s[k].p, num(x, "p"), 1e-12);
			near(s[k].estimate, num(x, "estimate"), 1e-12);
			ck_assert_msg(s[k].confirmed == json_is_true(json_object_get(x, "confirmed")),
				      "tau %zu suspect %zu", i, k);
			free(d[k]);
		}
	}
	ck_assert_uint_eq(i, 3);
	judge_confirm(NULL, 0);
	struct judge_suspect none = {.d = NULL, .n = 0, .ln_margin = 0.05};
	judge_confirm(&none, 1);
	ck_assert(!none.confirmed && none.p == 1);
	/* Three rounds are far beyond the margin and no evidence, also where nobody else is under suspicion. */
	const double far[3] = {1, 1.1, 1.2};
	struct judge_suspect few = {.d = far, .n = 3, .ln_margin = 0.05, .confirmed = true};
	judge_confirm(&few, 1);
	near(few.p, 0.125, 1e-12);
	ck_assert(!few.confirmed && few.estimate > 1);
	static const int rounds[][2] = {{8, 32},  {12, 32}, {15, 32}, {16, 32},     {17, 34},
					{20, 40}, {32, 64}, {64, 64}, {INT_MAX, 64}};
	for (size_t r = 0; r < sizeof rounds / sizeof rounds[0]; r++)
		ck_assert_int_eq(judge_confirm_rounds(rounds[r][0]), rounds[r][1]);
}
END_TEST

START_TEST(noisy_run)
{
	ck_assert(!judge_noisy(3, 48) && judge_noisy(4, 48));
	size_t i;
	json_t *v;
	json_array_foreach(json_object_get(more, "point"), i, v)
	{
		int n = (int)num(v, "n"), k = (int)num(v, "k");
		if (num(v, "p") != 0.012 || num(v, "alpha") != 0.01)
			continue;
		ck_assert(k == 0 || !judge_noisy(k - 1, n));
		ck_assert(k > n || judge_noisy(k, n));
	}
	ck_assert(!judge_noisy(0, 0) && !judge_noisy(0, 1));
}
END_TEST

START_TEST(aggregates)
{
	size_t i, k;
	json_t *v, *x;
	json_array_foreach(json_object_get(more, "ratio"), i, v)
	{
		struct judge_ratio_cell c[8];
		json_array_foreach(json_object_get(v, "cells"), k, x) c[k] =
			(struct judge_ratio_cell){num(x, "estimate"), num(x, "se"), num(x, "weight"), num(x, "of_ns"),
						  num(x, "over_ns")};
		int n = (int)k;
		struct judge_aggregate g, w;
		judge_geomean(c, n, &g);
		judge_weighted(c, n, &w);
		const struct judge_aggregate *got[2] = {&g, &w};
		static const char *const names[2] = {"geomean", "weighted"};
		for (int a = 0; a < 2; a++) {
			const json_t *want = json_object_get(v, names[a]);
			near(got[a]->ratio, json_number_value(json_array_get(want, 0)), 1e-12);
			near(got[a]->lo, json_number_value(json_array_get(want, 1)), 1e-12);
			near(got[a]->hi, json_number_value(json_array_get(want, 2)), 1e-12);
			ck_assert_int_eq(got[a]->n, (int)json_integer_value(json_array_get(want, 3)));
		}
		/* A cell without a number is left out, and n says so; an unknown error leaves no interval. */
		c[n] = (struct judge_ratio_cell){NAN, NAN, 1, NAN, 0};
		struct judge_aggregate again;
		judge_geomean(c, n + 1, &again);
		ck_assert(again.n == n && again.ratio == g.ratio && again.lo == g.lo);
		judge_weighted(c, n + 1, &again);
		ck_assert(again.n == w.n && again.ratio == w.ratio && again.lo == w.lo);
		c[0].se = NAN;
		judge_geomean(c, n, &again);
		ck_assert(again.ratio == g.ratio && isnan(again.lo) && isnan(again.hi));
	}
	/* Times are in nanoseconds, and may be less than one of them. */
	struct judge_aggregate tiny;
	judge_weighted(&(struct judge_ratio_cell){0, 0.01, 1, 0.5, 0.25}, 1, &tiny);
	ck_assert(tiny.n == 1 && tiny.ratio == 2);
	struct judge_aggregate none;
	judge_geomean(NULL, 0, &none);
	ck_assert(none.n == 0 && isnan(none.ratio));
	judge_weighted(NULL, 0, &none);
	ck_assert(none.n == 0 && isnan(none.ratio));
}
END_TEST

START_TEST(names)
{
	for (int v = 0; v < TV_N; v++)
		ck_assert_int_eq(judge_verdict_of(judge_verdict_name((enum timing_verdict)v)), v);
	ck_assert_int_eq(judge_verdict_of("nonsense"), TV_N);
	ck_assert_int_eq(judge_verdict_of(NULL), TV_N);
	for (int r = 0; r < TR_N; r++)
		ck_assert_ptr_nonnull(judge_reason_name((enum timing_reason)r));
	ck_assert_str_eq(judge_reason_name(TR_UNCONFIRMED), "unconfirmed");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("judge_run");
	TCase *t = tcase_create("judge");
	tcase_add_unchecked_fixture(t, load, unload);
	tcase_add_test(t, null_arm);
	tcase_add_test(t, tail);
	tcase_add_test(t, batch);
	tcase_add_test(t, confirmation);
	tcase_add_test(t, noisy_run);
	tcase_add_test(t, aggregates);
	tcase_add_test(t, names);
	suite_add_tcase(s, t);
	return unit_run(s);
}
