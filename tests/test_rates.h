/* test_rates: k of n against a rate, in tests that count. */
#ifndef ASSAY_TEST_RATES_H
#define ASSAY_TEST_RATES_H

#include <check.h>

#include "stats.h"

/* Compatible with a rate of at most p: less than one chance in ten thousand to be so far off. */
static inline void at_most(int k, int n, double p, const char *what)
{
	ck_assert_msg(k < stats_binomial_point(n, p, 1e-4), "%s: %d of %d, more than %.2f %%", what, k, n, 100 * p);
}

static inline void at_least(int k, int n, double p, const char *what)
{
	ck_assert_msg(n - k < stats_binomial_point(n, 1 - p, 1e-4), "%s: %d of %d, less than %.2f %%", what, k, n,
		      100 * p);
}

#endif
