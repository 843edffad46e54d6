/* stats: samples -> numbers. Pure; scratch is on the stack up to 1024 values. Double precision, natural logs. Where scratch for more
 * cannot be had the answer is the one that accuses nobody: NAN, p = 1, nothing rejected. */
#ifndef ASSAY_STATS_H
#define ASSAY_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STATS_LAST_LOOK = 64 }; /* of stats_looks */
enum { STATS_MAX_ROUNDS = 1024 }; /* the interval is exact up to here: 524,800 Walsh averages */

struct summary {
	int n;
	double median, mean, min, max, q1, q3, mad; /* NAN where n == 0 (all) */
};

/* Mean of the middle two for an even n; quartiles by linear interpolation (type 7). x is not changed. */
void stats_summary(const double *x, int n, struct summary *out);
double stats_median(const double *x, int n);
double stats_mean(const double *x, int n);

/* Hodges-Lehmann estimate and interval of d at cut c (judge.md, One cell): lo = w[c], hi = w[M-1-c]; c < 0 gives infinities.
 * r1, and the widening g >= 1 by sqrt((1+r1)/(1-r1)), applied to both ends. */
struct interval {
	int n, cut;
	double estimate, lo, hi, r1, g;
};
void stats_walsh(const double *d, int n, int cut, struct interval *out);
double stats_lag1(const double *d, int n); /* winsorised lag-1 autocorrelation; 0 where MAD is 0 */
/* Standard error of the estimate, from the interval's half width at the fixed-n 2.5 % cut over 1.96; NAN below n = 8. */
double stats_walsh_se(const double *d, int n);

/* Cut of the group-sequential looks for alpha in {0.05, 0.025, 0.01, 0.005, 0.001}; INT_MIN where n is no look. */
int stats_look_cut(double alpha, int n);
extern const int stats_looks[]; /* 8 10 12 16 20 24 32 40 48 64, then 0 */
/* Cut of one look at 2.5 %: exact for every n up to 1024 (above: the cut of 1024). -1: no interval at this n. */
int stats_fixed_cut(int n);
/* The same at any alpha of the table; -1 too for an alpha that is not in it. */
int stats_fixed_cut_at(double alpha, int n);
bool stats_alpha_known(double alpha);

/* Exact one-sided signed-rank p of d against mu (H1: greater), ties against rejection; n <= 1024. */
double stats_signed_rank_p_greater(const double *d, int n, double mu);
/* P(X >= k), X ~ Binomial(n, p). */
double stats_binomial_tail(int n, int k, double p);
/* The smallest k with P(X >= k) <= alpha. */
int stats_binomial_point(int n, double p, double alpha);
/* Ends of the one-sided Clopper-Pearson intervals after k of n (confidence 0.95: 95 %). */
double stats_binomial_upper(int n, int k, double confidence);
double stats_binomial_lower(int n, int k, double confidence);
/* Holm step-down at alpha: reject[i] for p[i]; order does not matter. NAN p is never rejected. */
void stats_holm(const double *p, int n, double alpha, bool *reject);
/* tau^2 = max(0, median(delta^2)/0.4549 - 2 se^2)/2, se^2 the median of the cells' own; returns tau. delta[c]: what the
 * estimates of cell c in two processes differ by. */
double stats_tau(const double *delta, const double *se, int n);

#endif
