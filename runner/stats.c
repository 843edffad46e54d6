#include "stats.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats_cuts.h"

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Scratch for n values: the stack up to 1024, the heap beyond. NULL only out of memory, which callers report as NAN. */
struct scratch {
	double here[STATS_MAX_ROUNDS];
	double *heap;
};

static double *scratch_take(struct scratch *s, int n)
{
	s->heap = n > STATS_MAX_ROUNDS ? malloc((size_t)n * sizeof(double)) : NULL;
	return n > STATS_MAX_ROUNDS ? s->heap : s->here;
}

static void scratch_give(struct scratch *s)
{
	free(s->heap);
}

static double mean_of_middle(const double *sorted, int n)
{
	if (n % 2 == 1)
		return sorted[n / 2];
	/* Halves first: the sum of two large values would overflow. */
	return sorted[n / 2 - 1] * 0.5 + sorted[n / 2] * 0.5;
}

/* Quantile of type 7: linear between the two order statistics around q (n - 1). */
static double quantile(const double *sorted, int n, double q)
{
	double at = q * (n - 1);
	int i = (int)at;
	if (i >= n - 1)
		return sorted[n - 1];
	double part = at - i;
	return sorted[i] * (1 - part) + sorted[i + 1] * part;
}

double stats_mean(const double *x, int n)
{
	if (n <= 0)
		return NAN;
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += x[i] / n;
	return sum;
}

double stats_median(const double *x, int n)
{
	if (n <= 0)
		return NAN;
	struct scratch s;
	double *y = scratch_take(&s, n);
	if (!y)
		return NAN;
	memcpy(y, x, (size_t)n * sizeof(double));
	qsort(y, (size_t)n, sizeof(double), by_value);
	double m = mean_of_middle(y, n);
	scratch_give(&s);
	return m;
}

void stats_summary(const double *x, int n, struct summary *out)
{
	*out = (struct summary){n > 0 ? n : 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	if (n <= 0)
		return;
	struct scratch s;
	double *y = scratch_take(&s, n);
	if (!y)
		return;
	memcpy(y, x, (size_t)n * sizeof(double));
	qsort(y, (size_t)n, sizeof(double), by_value);
	out->median = mean_of_middle(y, n);
	out->mean = stats_mean(x, n);
	out->min = y[0];
	out->max = y[n - 1];
	out->q1 = quantile(y, n, 0.25);
	out->q3 = quantile(y, n, 0.75);
	for (int i = 0; i < n; i++)
		y[i] = fabs(x[i] - out->median);
	qsort(y, (size_t)n, sizeof(double), by_value);
	out->mad = mean_of_middle(y, n);
	scratch_give(&s);
}

double stats_lag1(const double *d, int n)
{
	if (n < 2)
		return 0;
	struct summary s;
	stats_summary(d, n, &s);
	if (!(s.mad > 0))
		return 0;
	double reach = 3 * 1.4826 * s.mad;
	double lo = s.median - reach, hi = s.median + reach, mean = 0;
	for (int i = 0; i < n; i++)
		mean += fmin(fmax(d[i], lo), hi);
	mean /= n;
	double square = 0, product = 0, before = 0;
	for (int i = 0; i < n; i++) {
		double c = fmin(fmax(d[i], lo), hi) - mean;
		square += c * c;
		if (i > 0)
			product += before * c;
		before = c;
	}
	return square > 0 ? product / square : 0;
}

/* ---- Walsh averages -------------------------------------------------------------------------------------------------
 *
 * With x sorted, row i holds (x[i] + x[j]) / 2 for j >= i, rising along the row and down the columns. The k-th smallest of
 * all M is found without listing them: pick a pivot among the candidates left, count by a staircase what is below it, keep
 * one side. Addition and halving are monotone in floating point, so the result is the very value a full sort gives. */

struct rows {
	const double *x;
	int n;
	int lo[STATS_MAX_ROUNDS], hi[STATS_MAX_ROUNDS]; /* candidates of row i: lo[i] <= j < hi[i] */
	int less[STATS_MAX_ROUNDS], upto[STATS_MAX_ROUNDS]; /* first j with a value >= pivot, and > pivot */
};

static double walsh_at(const double *x, int i, int j)
{
	return (x[i] + x[j]) / 2;
}

static double walsh_select(struct rows *r, int64_t k)
{
	int n = r->n;
	uint64_t pick = 0x9e3779b97f4a7c15u; /* only the time depends on it */
	for (int i = 0; i < n; i++) {
		r->lo[i] = i;
		r->hi[i] = n;
	}
	for (;;) {
		int64_t left = 0;
		for (int i = 0; i < n; i++)
			left += r->hi[i] - r->lo[i];
		pick = pick * 6364136223846793005u + 1442695040888963407u;
		int64_t t = (int64_t)((pick >> 33) % (uint64_t)left);
		int at = 0;
		while (t >= r->hi[at] - r->lo[at]) {
			t -= r->hi[at] - r->lo[at];
			at++;
		}
		double pivot = walsh_at(r->x, at, r->lo[at] + (int)t);

		/* As i grows the value at j grows, so both boundaries only move to the left; a row begins at its diagonal. */
		int64_t n_less = 0, n_upto = 0;
		int a = n, b = n;
		for (int i = 0; i < n; i++) {
			while (a > 0 && walsh_at(r->x, i, a - 1) >= pivot)
				a--;
			while (b > 0 && walsh_at(r->x, i, b - 1) > pivot)
				b--;
			r->less[i] = a > i ? a : i;
			r->upto[i] = b > i ? b : i;
			n_less += r->less[i] - i;
			n_upto += r->upto[i] - i;
		}
		if (k >= n_less && k < n_upto)
			return pivot;
		for (int i = 0; i < n; i++) {
			if (k < n_less && r->hi[i] > r->less[i])
				r->hi[i] = r->less[i] > r->lo[i] ? r->less[i] : r->lo[i];
			if (k >= n_upto && r->lo[i] < r->upto[i])
				r->lo[i] = r->upto[i] < r->hi[i] ? r->upto[i] : r->hi[i];
		}
	}
}

void stats_walsh(const double *d, int n, int cut, struct interval *out)
{
	*out = (struct interval){n > 0 ? n : 0, cut, NAN, -INFINITY, INFINITY, 0, 1};
	if (n <= 0)
		return;
	if (n > STATS_MAX_ROUNDS)
		n = out->n = STATS_MAX_ROUNDS;
	double x[STATS_MAX_ROUNDS];
	memcpy(x, d, (size_t)n * sizeof(double));
	qsort(x, (size_t)n, sizeof(double), by_value);
	struct rows r;
	r.x = x;
	r.n = n;

	int64_t m = (int64_t)n * (n + 1) / 2;
	double upper = walsh_select(&r, m / 2);
	out->estimate = m % 2 ? upper : walsh_select(&r, m / 2 - 1) * 0.5 + upper * 0.5;
	out->r1 = stats_lag1(d, n);
	if (out->r1 > 0) {
		double r1 = fmin(out->r1, 0.9);
		out->g = sqrt((1 + r1) / (1 - r1));
	}
	if (cut < 0 || cut > m - 1 - cut)
		return;
	out->lo = out->estimate - (out->estimate - walsh_select(&r, cut)) * out->g;
	out->hi = out->estimate + (walsh_select(&r, m - 1 - cut) - out->estimate) * out->g;
}

double stats_walsh_se(const double *d, int n)
{
	if (n < 8)
		return NAN;
	struct interval iv;
	stats_walsh(d, n, stats_fixed_cut(n), &iv);
	return (iv.hi - iv.lo) / 2 / 1.96;
}

/* ---- cuts ----------------------------------------------------------------------------------------------------------- */

const int stats_looks[] = {8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 0};

static const double alphas[STATS_N_ALPHAS] = {0.05, 0.025, 0.01, 0.005, 0.001};

/* The joint law over all looks, by the simulation that docs/method.md describes. */
static const int look_cuts[STATS_N_ALPHAS][10] = {
	{1, 4, 9, 24, 44, 71, 145, 245, 369, 713},  {0, 2, 6, 20, 37, 61, 131, 223, 340, 668},
	{-1, 1, 4, 15, 30, 51, 114, 199, 309, 618}, {-1, 0, 2, 12, 25, 43, 102, 183, 287, 584},
	{-1, -1, 0, 6, 16, 31, 81, 152, 245, 518},
};

static int alpha_row(double alpha)
{
	for (int a = 0; a < STATS_N_ALPHAS; a++)
		if (fabs(alpha - alphas[a]) < 1e-9)
			return a;
	return -1;
}

bool stats_alpha_known(double alpha)
{
	return alpha_row(alpha) >= 0;
}

int stats_look_cut(double alpha, int n)
{
	int a = alpha_row(alpha);
	for (int i = 0; a >= 0 && stats_looks[i]; i++)
		if (stats_looks[i] == n)
			return look_cuts[a][i];
	return INT_MIN;
}

int stats_fixed_cut_at(double alpha, int n)
{
	int a = alpha_row(alpha);
	if (a < 0 || n < 0)
		return -1;
	return stats_cuts[a][n < STATS_MAX_ROUNDS ? n : STATS_MAX_ROUNDS];
}

int stats_fixed_cut(int n)
{
	return stats_fixed_cut_at(0.025, n);
}

double stats_tau(const double *delta, const double *se, int n)
{
	if (n <= 0)
		return 0;
	struct scratch s;
	double *y = scratch_take(&s, n);
	if (!y)
		return 0;
	for (int i = 0; i < n; i++)
		y[i] = delta[i] * delta[i];
	double spread = stats_median(y, n) / 0.4549;
	for (int i = 0; i < n; i++)
		y[i] = se[i] * se[i];
	double own = 2 * stats_median(y, n);
	scratch_give(&s);
	return spread > own ? sqrt((spread - own) / 2) : 0;
}
