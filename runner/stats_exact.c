/* Exact laws by counting: signed ranks, binomials, Holm. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

/* ---- signed ranks --------------------------------------------------------------------------------------------------- */

enum { SMALL = 64, SMALL_SUMS = SMALL * (SMALL + 1) / 2 + 1 };

struct signed_size {
	double size;
	bool positive;
};

/* Ties against rejection: within a tie the positives come first and take the low ranks; a zero counts as not positive. */
static int by_size(const void *a, const void *b)
{
	const struct signed_size *x = a, *y = b;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return (int)y->positive - (int)x->positive;
}

/* P(T <= t), T the sum of a random subset of 1..n: each step adds one number with probability one half. f has t + 1 places. */
static double subset_tail(int n, int64_t t, double *f)
{
	memset(f, 0, (size_t)(t + 1) * sizeof(double));
	f[0] = 1;
	int64_t top = 0;
	for (int k = 1; k <= n; k++) {
		top = top + k < t ? top + k : t;
		for (int64_t s = top; s >= k; s--)
			f[s] = (f[s] + f[s - k]) * 0.5;
		for (int64_t s = k - 1 < top ? k - 1 : top; s >= 0; s--)
			f[s] *= 0.5;
	}
	double sum = 0;
	for (int64_t s = 0; s <= t; s++)
		sum += f[s];
	return sum;
}

double stats_signed_rank_p_greater(const double *d, int n, double mu)
{
	if (n <= 0)
		return 1;
	if (n > STATS_MAX_ROUNDS)
		n = STATS_MAX_ROUNDS;
	struct signed_size r[STATS_MAX_ROUNDS];
	for (int i = 0; i < n; i++)
		r[i] = (struct signed_size){fabs(d[i] - mu), d[i] > mu};
	qsort(r, (size_t)n, sizeof r[0], by_size);
	int64_t w = 0, m = (int64_t)n * (n + 1) / 2;
	for (int i = 0; i < n; i++)
		if (r[i].positive)
			w += i + 1;
	if (w == 0)
		return 1;
	/* P(W >= w) = P(W <= m - w) by symmetry; the shorter side is counted. */
	bool upper = m - w <= w - 1;
	int64_t t = upper ? m - w : w - 1;
	double here[SMALL_SUMS];
	double *f = t < SMALL_SUMS ? here : malloc((size_t)(t + 1) * sizeof(double));
	if (!f)
		return 1; /* out of memory never rejects */
	double p = subset_tail(n, t, f);
	if (f != here)
		free(f);
	return upper ? p : 1 - p;
}

/* ---- binomials ------------------------------------------------------------------------------------------------------ */

double stats_binomial_tail(int n, int k, double p)
{
	if (k <= 0)
		return 1;
	if (n < k || !(p > 0))
		return 0;
	if (p >= 1)
		return 1;
	/* Weights relative to the likeliest count, by ratios of neighbours, and then normed: no factorial, no cancellation. */
	int mode = (int)((n + 1.0) * p);
	if (mode > n)
		mode = n;
	double odds = p / (1 - p), total = 0, tail = 0, w = 1;
	for (int i = mode; i >= 0 && w > 0; i--) {
		total += w;
		if (i >= k)
			tail += w;
		w *= i / ((n - i + 1.0) * odds);
	}
	w = 1;
	for (int i = mode; i < n && w > 0; i++) {
		w *= (n - i) * odds / (i + 1.0);
		total += w;
		if (i + 1 >= k)
			tail += w;
	}
	return tail / total;
}

int stats_binomial_point(int n, double p, double alpha)
{
	int lo = 0, hi = n + 1; /* P(X >= n + 1) = 0 */
	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;
		if (stats_binomial_tail(n, mid, p) <= alpha)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* The p at which P(X >= k) = level; the tail rises with p. */
static double tail_solve(int n, int k, double level)
{
	double lo = 0, hi = 1;
	for (int i = 0; i < 200 && hi - lo > 0; i++) {
		double mid = lo + (hi - lo) / 2;
		if (mid <= lo || mid >= hi)
			break;
		if (stats_binomial_tail(n, k, mid) < level)
			lo = mid;
		else
			hi = mid;
	}
	return lo + (hi - lo) / 2;
}

double stats_binomial_upper(int n, int k, double confidence)
{
	if (n <= 0 || k >= n)
		return 1;
	/* P(X <= k) = 1 - confidence, so P(X >= k + 1) = confidence. */
	return tail_solve(n, k + 1, confidence);
}

double stats_binomial_lower(int n, int k, double confidence)
{
	if (n <= 0 || k <= 0)
		return 0;
	return tail_solve(n, k, 1 - confidence);
}

/* ---- Holm ----------------------------------------------------------------------------------------------------------- */

struct ranked {
	double p;
	int at;
};

static int by_p(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	return (x->p > y->p) - (x->p < y->p);
}

void stats_holm(const double *p, int n, double alpha, bool *reject)
{
	for (int i = 0; i < n; i++)
		reject[i] = false;
	if (n <= 0)
		return;
	struct ranked *r = malloc((size_t)n * sizeof *r);
	if (!r)
		return; /* out of memory never rejects */
	/* A NAN is a question that was asked and not answered: it stays in the family, as the largest p. */
	for (int i = 0; i < n; i++)
		r[i] = (struct ranked){isnan(p[i]) ? 2 : p[i], i};
	qsort(r, (size_t)n, sizeof *r, by_p);
	for (int i = 0; i < n && r[i].p <= alpha / (n - i); i++)
		reject[r[i].at] = true;
	free(r);
}
