/* What is judged over more than one cell: confirmation, the noisy run, aggregates. */
#include <math.h>
#include <stdlib.h>

#include "judge.h"

int judge_confirm_rounds(int n_screen)
{
	int n = n_screen > STATS_MAX_ROUNDS ? STATS_MAX_ROUNDS : n_screen;
	return 2 * n < 32 ? 32 : 2 * n > 64 ? 64 : 2 * n;
}

void judge_confirm(struct judge_suspect *s, int n)
{
	if (n <= 0)
		return;
	for (int i = 0; i < n; i++) {
		struct interval iv;
		stats_walsh(s[i].d, s[i].n, -1, &iv);
		s[i].estimate = iv.estimate;
		s[i].p = stats_signed_rank_p_greater(s[i].d, s[i].n, s[i].ln_margin);
		s[i].confirmed = false;
	}
	double *p = malloc((size_t)n * sizeof *p);
	bool *reject = malloc((size_t)n * sizeof *reject);
	if (p && reject) { /* out of memory confirms nothing */
		for (int i = 0; i < n; i++)
			p[i] = s[i].p;
		stats_holm(p, n, 0.05, reject);
		for (int i = 0; i < n; i++)
			s[i].confirmed = reject[i] && s[i].estimate > s[i].ln_margin + judge_tau_guard(s[i].tau);
	}
	free(reject);
	free(p);
}

double judge_tau_guard(double tau)
{
	return 1.645 * sqrt(2) * tau;
}

bool judge_noisy(int n_biased, int n_cells)
{
	return n_cells > 0 && n_biased >= stats_binomial_point(n_cells, 0.012, 0.01);
}

void judge_geomean(const struct judge_ratio_cell *c, int n, struct judge_aggregate *out)
{
	double sum = 0, var = 0;
	*out = (struct judge_aggregate){0, NAN, NAN, NAN};
	for (int i = 0; i < n; i++) {
		if (!isfinite(c[i].estimate))
			continue;
		out->n++;
		sum += c[i].estimate;
		var += c[i].se * c[i].se; /* one unknown error makes the interval unknown, not narrower */
	}
	if (out->n == 0)
		return;
	double mean = sum / out->n, se = sqrt(var) / out->n;
	out->ratio = exp(mean);
	out->lo = exp(mean - 1.96 * se);
	out->hi = exp(mean + 1.96 * se);
}

void judge_weighted(const struct judge_ratio_cell *c, int n, struct judge_aggregate *out)
{
	double of = 0, over = 0, var = 0;
	*out = (struct judge_aggregate){0, NAN, NAN, NAN};
	for (int i = 0; i < n; i++) {
		if (!isfinite(c[i].weight) || !(c[i].weight > 0) || !(c[i].of_ns > 0) || !(c[i].over_ns > 0))
			continue;
		out->n++;
		of += c[i].weight * c[i].of_ns;
		over += c[i].weight * c[i].over_ns;
		/* t_of = t_over exp(estimate): a cell's error moves the total by its share of it. */
		double pull = c[i].weight * c[i].of_ns * c[i].se;
		var += pull * pull;
	}
	if (out->n == 0)
		return;
	double ratio = of / over, se = sqrt(var) / of;
	out->ratio = ratio;
	out->lo = ratio * exp(-1.96 * se);
	out->hi = ratio * exp(1.96 * se);
}
