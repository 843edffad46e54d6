/* stats against values counted independently (tests/gen_judge_more.py), and against brute force of its own. */
#include <check.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "stats.h"
#include "unit.h"

static json_t *data;

static void load(void)
{
	json_error_t e;
	data = json_load_file(ASSAY_SOURCE_ROOT "/tests/data/judge-more.json", 0, &e);
	ck_assert_msg(data != NULL, "judge-more.json:%d: %s", e.line, e.text);
}

static void unload(void)
{
	json_decref(data);
}

static double num(const json_t *o, const char *key)
{
	const json_t *j = json_object_get(o, key);
	return json_is_number(j) ? json_number_value(j) : NAN;
}

/* malloc'd; *n is the length. */
static double *list(const json_t *o, const char *key, int *n)
{
	const json_t *a = json_object_get(o, key);
	*n = (int)json_array_size(a);
	double *x = malloc(sizeof(double) * (size_t)(*n + 1));
	for (int i = 0; i < *n; i++)
		x[i] = json_number_value(json_array_get(a, (size_t)i));
	return x;
}

static void near(double got, double want, double tol)
{
	ck_assert_msg(fabs(got - want) <= tol * fmax(1, fabs(want)), "%.17g for %.17g", got, want);
}

START_TEST(summaries)
{
	size_t i;
	json_t *v;
	json_array_foreach(json_object_get(data, "summary"), i, v)
	{
		int n;
		double *x = list(v, "x", &n);
		struct summary s;
		stats_summary(x, n, &s);
		ck_assert_int_eq(s.n, n);
		near(s.median, num(v, "median"), 1e-13);
		near(s.mean, num(v, "mean"), 1e-13);
		near(s.min, num(v, "min"), 0);
		near(s.max, num(v, "max"), 0);
		near(s.q1, num(v, "q1"), 1e-13);
		near(s.q3, num(v, "q3"), 1e-13);
		near(s.mad, num(v, "mad"), 1e-13);
		near(stats_median(x, n), s.median, 0);
		free(x);
	}
	ck_assert_uint_ge(i, 8);
}
END_TEST

START_TEST(nothing_has_no_numbers)
{
	struct summary s;
	stats_summary(NULL, 0, &s);
	ck_assert_int_eq(s.n, 0);
	ck_assert(isnan(s.median) && isnan(s.mean) && isnan(s.min) && isnan(s.max) && isnan(s.q1) && isnan(s.mad));
	ck_assert(isnan(stats_median(NULL, 0)) && isnan(stats_mean(NULL, 0)));
	struct interval iv;
	stats_walsh(NULL, 0, 0, &iv);
	ck_assert(isnan(iv.estimate) && isinf(iv.lo) && isinf(iv.hi));
	ck_assert(stats_signed_rank_p_greater(NULL, 0, 0) == 1);
	const double one = 5;
	ck_assert(stats_lag1(&one, 1) == 0);
	ck_assert(isnan(stats_walsh_se(&one, 1)));
	ck_assert(stats_tau(NULL, NULL, 0) == 0);
}
END_TEST

START_TEST(extremes_do_not_overflow)
{
	const double big[2] = {1e308, 1.5e308};
	ck_assert(isfinite(stats_median(big, 2)) && isfinite(stats_mean(big, 2)));
}
END_TEST

START_TEST(walsh_vectors)
{
	size_t i;
	json_t *v;
	json_array_foreach(json_object_get(data, "walsh"), i, v)
	{
		int n;
		double *d = list(v, "d", &n);
		struct interval iv;
		stats_walsh(d, n, (int)num(v, "cut"), &iv);
		near(iv.estimate, num(v, "estimate"), 1e-13);
		near(iv.r1, num(v, "r1"), 1e-12);
		near(iv.g, num(v, "g"), 1e-12);
		if (json_is_null(json_object_get(v, "lo"))) {
			ck_assert(isinf(iv.lo) && iv.lo < 0 && isinf(iv.hi) && iv.hi > 0);
		} else {
			near(iv.lo, num(v, "lo"), 1e-12);
			near(iv.hi, num(v, "hi"), 1e-12);
		}
		free(d);
	}
	ck_assert_uint_ge(i, 12);
	/* A straight line is as correlated as can be: r1 is told as it is, the widening stops at 0.9. */
	double line[64];
	for (int k = 0; k < 64; k++)
		line[k] = k;
	struct interval iv;
	stats_walsh(line, 64, 668, &iv);
	ck_assert(iv.r1 > 0.9 && iv.r1 < 1);
	near(iv.g, sqrt(1.9 / 0.1), 1e-12);
}
END_TEST

static uint64_t seed = 88172645463325252u;
static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed >> 11) / 9007199254740992.0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The selection must give the very doubles of a full sort, ties and all, up to 1024 rounds. */
START_TEST(selection_equals_sort)
{
	static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 10, 13, 17, 24, 33, 64, 100, 333, 1024};
	for (size_t t = 0; t < sizeof sizes / sizeof sizes[0]; t++)
		for (int kind = 0; kind < 3; kind++) {
			int n = sizes[t];
			int64_t m = (int64_t)n * (n + 1) / 2, k = 0;
			double *d = malloc(sizeof(double) * (size_t)n), *w = malloc(sizeof(double) * (size_t)m);
			for (int i = 0; i < n; i++)
				d[i] = kind == 0   ? uniform() - 0.3
				       : kind == 1 ? floor(uniform() * 5)
						   : 1 / (uniform() + 1e-9);
			for (int i = 0; i < n; i++)
				for (int j = i; j < n; j++)
					w[k++] = (fmin(d[i], d[j]) + fmax(d[i], d[j])) / 2;
			qsort(w, (size_t)m, sizeof *w, by_value);
			for (int try = 0; try < 5; try++) {
				int cut = (int)(uniform() * (double)((m + 1) / 2));
				struct interval iv;
				stats_walsh(d, n, cut, &iv);
				double e = m % 2 ? w[m / 2] : w[m / 2 - 1] * 0.5 + w[m / 2] * 0.5;
				ck_assert_msg(iv.estimate == e, "n=%d kind=%d", n, kind);
				ck_assert(iv.lo == e - (e - w[cut]) * iv.g);
				ck_assert(iv.hi == e + (w[m - 1 - cut] - e) * iv.g);
			}
			free(w);
			free(d);
		}
}
END_TEST

START_TEST(look_cuts_are_the_tables)
{
	static const int table[5][10] = {{1, 4, 9, 24, 44, 71, 145, 245, 369, 713},
					 {0, 2, 6, 20, 37, 61, 131, 223, 340, 668},
					 {-1, 1, 4, 15, 30, 51, 114, 199, 309, 618},
					 {-1, 0, 2, 12, 25, 43, 102, 183, 287, 584},
					 {-1, -1, 0, 6, 16, 31, 81, 152, 245, 518}};
	static const double alpha[5] = {0.05, 0.025, 0.01, 0.005, 0.001};
	for (int a = 0; a < 5; a++) {
		for (int i = 0; i < 10; i++)
			ck_assert_int_eq(stats_look_cut(alpha[a], stats_looks[i]), table[a][i]);
		ck_assert(stats_alpha_known(alpha[a]));
	}
	ck_assert_int_eq(stats_looks[10], 0);
	ck_assert_int_eq(stats_look_cut(0.025, 9), INT_MIN);
	ck_assert_int_eq(stats_look_cut(0.02, 8), INT_MIN);
	ck_assert(!stats_alpha_known(0.02));
}
END_TEST

START_TEST(fixed_cuts)
{
	static const int spec[][2] = {{8, 3},   {10, 8},   {12, 13},  {16, 29},  {20, 52},
				      {24, 81}, {32, 159}, {40, 264}, {48, 396}, {64, 747}};
	for (size_t i = 0; i < sizeof spec / sizeof spec[0]; i++)
		ck_assert_int_eq(stats_fixed_cut(spec[i][0]), spec[i][1]);
	size_t i;
	json_t *v;
	json_array_foreach(json_object_get(data, "fixed_cut"), i, v)
		ck_assert_int_eq(stats_fixed_cut_at(num(v, "alpha"), (int)num(v, "n")), (int)num(v, "cut"));
	ck_assert_uint_ge(i, 200);
	ck_assert_int_eq(stats_fixed_cut(0), -1);
	ck_assert_int_eq(stats_fixed_cut(-5), -1);
	ck_assert_int_eq(stats_fixed_cut_at(0.02, 64), -1);
	/* The large ones against the exact law itself: the cut's p is within 2.5 %, the next one's is not. */
	for (int n = 200; n <= 1024; n += 412) {
		double *d = malloc(sizeof(double) * (size_t)n);
		int cut = stats_fixed_cut(n);
		for (int more = 0; more < 2; more++) {
			/* Signs such that the negative ranks sum to cut + more: then P(W >= w) = P(T <= cut + more). */
			int64_t left = cut + more;
			for (int i2 = n; i2 >= 1; i2--) {
				bool negative = i2 <= left;
				left -= negative ? i2 : 0;
				d[i2 - 1] = negative ? -i2 : i2;
			}
			ck_assert_int_eq((int)left, 0);
			double p = stats_signed_rank_p_greater(d, n, 0);
			ck_assert_msg(more ? p > 0.025 : p <= 0.025, "n=%d cut=%d+%d: %.9g", n, cut, more, p);
		}
		free(d);
	}
}
END_TEST

START_TEST(signed_ranks)
{
	size_t i;
	json_t *v;
	json_array_foreach(json_object_get(data, "signed_p"), i, v)
	{
		int n;
		double *d = list(v, "d", &n);
		near(stats_signed_rank_p_greater(d, n, num(v, "mu")), num(v, "p"), 1e-13);
		free(d);
	}
	ck_assert_uint_ge(i, 50);
	/* Everything above mu: 2^-n; all ties: nothing is above. */
	double up[1024];
	for (int k = 0; k < 1024; k++)
		up[k] = 1 + k;
	near(stats_signed_rank_p_greater(up, 40, 0) * 1099511627776.0, 1, 1e-12);
	ck_assert(stats_signed_rank_p_greater(up, 1024, 0) >= 0);
	for (int k = 0; k < 1024; k++)
		up[k] = 0;
	ck_assert(stats_signed_rank_p_greater(up, 20, 0) == 1);
}
END_TEST

START_TEST(binomials)
{
	size_t i;
	json_t *v;
	json_array_foreach(json_object_get(data, "binomial"), i, v)
	{
		double want = num(v, "tail"),
		       got = stats_binomial_tail((int)num(v, "n"), (int)num(v, "k"), num(v, "p"));
		ck_assert_msg(fabs(got - want) <= 1e-11 * want, "%.17g for %.17g", got, want);
	}
	ck_assert_uint_ge(i, 10);
	json_array_foreach(json_object_get(data, "point"), i, v)
		ck_assert_int_eq(stats_binomial_point((int)num(v, "n"), num(v, "p"), num(v, "alpha")),
				 (int)num(v, "k"));
	json_array_foreach(json_object_get(data, "clopper"), i, v)
	{
		near(stats_binomial_upper((int)num(v, "n"), (int)num(v, "k"), 0.95), num(v, "upper"), 1e-12);
		near(stats_binomial_lower((int)num(v, "n"), (int)num(v, "k"), 0.95), num(v, "lower"), 1e-12);
	}
	ck_assert(stats_binomial_tail(0, 0, 0.5) == 1 && stats_binomial_tail(0, 1, 0.5) == 0);
	ck_assert(stats_binomial_tail(5, 5, 1) == 1 && stats_binomial_tail(5, 1, 0) == 0);
	ck_assert(stats_binomial_upper(0, 0, 0.95) == 1 && stats_binomial_lower(0, 0, 0.95) == 0);
	/* "0 of 100 differ, under 3 % at 95 %"; 0 of 2: as much as 78 %. */
	near(stats_binomial_upper(100, 0, 0.95), 1 - pow(0.05, 0.01), 1e-12);
	near(stats_binomial_upper(2, 0, 0.95), 0.7763932022500211, 1e-12);
	/* Large n stays exact enough and ends. */
	near(stats_binomial_tail(1000000, 500000, 0.5), 0.5003989422, 1e-9);
}
END_TEST

START_TEST(holm)
{
	size_t i;
	json_t *v;
	json_array_foreach(json_object_get(data, "holm"), i, v)
	{
		int n;
		double *p = list(v, "p", &n);
		bool reject[16];
		stats_holm(p, n, num(v, "alpha"), reject);
		for (int k = 0; k < n; k++)
			ck_assert_int_eq(reject[k],
					 json_is_true(json_array_get(json_object_get(v, "reject"), (size_t)k)));
		free(p);
	}
	ck_assert_uint_ge(i, 20);
	const double p[3] = {0.02, NAN, 0.001};
	bool reject[3];
	stats_holm(p, 3, 0.05, reject);
	/* The unanswered one stays in the family: 0.02 <= 0.05/2 only because it is the second of three. */
	ck_assert(reject[0] && !reject[1] && reject[2]);
	stats_holm(p, 0, 0.05, NULL);
}
END_TEST

START_TEST(tau)
{
	size_t i;
	json_t *v;
	json_array_foreach(json_object_get(data, "tau"), i, v)
	{
		int n, m;
		double *delta = list(v, "delta", &n), *se = list(v, "se", &m);
		near(stats_tau(delta, se, n), num(v, "tau"), 1e-13);
		free(se);
		free(delta);
	}
	ck_assert_uint_ge(i, 4);
}
END_TEST

START_TEST(standard_error)
{
	/* Of 4000 draws of n = 64 normals with sd 1 the mean estimated error is near 1/8 (the estimator's efficiency is 0.955). */
	double sum = 0, d[64];
	int runs = 400;
	for (int r = 0; r < runs; r++) {
		for (int i = 0; i < 64; i++)
			d[i] = sqrt(-2 * log(uniform() + 1e-300)) * cos(6.283185307179586 * uniform());
		sum += stats_walsh_se(d, 64);
	}
	ck_assert_double_gt(sum / runs, 0.118);
	ck_assert_double_lt(sum / runs, 0.145);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stats");
	TCase *t = tcase_create("stats");
	tcase_add_unchecked_fixture(t, load, unload);
	tcase_add_test(t, summaries);
	tcase_add_test(t, nothing_has_no_numbers);
	tcase_add_test(t, extremes_do_not_overflow);
	tcase_add_test(t, walsh_vectors);
	tcase_add_test(t, selection_equals_sort);
	tcase_add_test(t, look_cuts_are_the_tables);
	tcase_add_test(t, fixed_cuts);
	tcase_add_test(t, signed_ranks);
	tcase_add_test(t, binomials);
	tcase_add_test(t, holm);
	tcase_add_test(t, tau);
	tcase_add_test(t, standard_error);
	suite_add_tcase(s, t);
	return unit_run(s);
}
