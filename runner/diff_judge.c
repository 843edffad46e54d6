/* diff_judge: what two runs differ by before any kernel does (drift, and tau), and which of the kernels' changes are more than that. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff_parts.h"
#include "record_parts.h"
#include "stats.h"

/* Beyond this the machines ran at other clocks, and absolute times are not compared. */
#define CLOCKS_LIMIT 0.05
/* What processes differ by where no file knows. */
#define TAU_ASSUMED 0.01
#define ALPHA 0.05

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

/* Sorts x. */
static double median_of(float *x, size_t n)
{
	if (n == 0)
		return NAN;
	qsort(x, n, sizeof *x, by_value);
	return n % 2 ? (double)x[n / 2] : ((double)x[n / 2 - 1] + (double)x[n / 2]) / 2;
}

struct spread {
	double median, sigma, v; /* of the changes; v: median of their own squared errors */
};

/* centre NAN: their median. False out of memory. */
static bool spread_of(const struct diff_controls *c, double centre, struct spread *out)
{
	*out = (struct spread){NAN, NAN, NAN};
	if (c->n == 0)
		return true;
	float *x = malloc(c->n * sizeof *x);
	if (!x)
		return false;
	for (size_t i = 0; i < c->n; i++)
		x[i] = c->c[i].change;
	out->median = isnan(centre) ? median_of(x, c->n) : centre;
	for (size_t i = 0; i < c->n; i++)
		x[i] = (float)fabs((double)c->c[i].change - out->median);
	out->sigma = 1.4826 * median_of(x, c->n);
	for (size_t i = 0; i < c->n; i++)
		x[i] = c->c[i].v;
	out->v = median_of(x, c->n);
	free(x);
	return true;
}

/* ---- controls -------------------------------------------------------------------------------------------------------- */

static double sentinel_median(const struct diff *d, int side, const char *name)
{
	const json_t *start =
		json_object_get(json_object_get(json_object_get(d->header[side], "calibration"), "sentinels"), name);
	const json_t *end = json_object_get(d->sentinels_end[side], name);
	double x[64];
	int n = 0;
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < json_array_size(k ? end : start) && n < 64; i++) {
			double t = json_number_value(json_array_get(k ? end : start, i));
			if (t > 0)
				x[n++] = log(t);
		}
	return stats_median(x, n);
}

/* What was throttled or skipped says nothing of any time, also where it was so in both files. */
bool diff_has_times(const struct diff_cell *c)
{
	for (int k = 0; k < 2; k++)
		if (!c->line[k] || c->class[k] == DC_TIME_INVALID || c->class[k] == DC_SKIP)
			return false;
	return !c->times;
}

static bool collect_controls(struct diff *d)
{
	const char *name;
	json_t *list;
	json_object_foreach(json_object_get(json_object_get(d->header[0], "calibration"), "sentinels"), name, list)
	{
		double change = sentinel_median(d, 1, name) - sentinel_median(d, 0, name);
		if (isfinite(change) && !diff_control_add(&d->sentinel, change, 0))
			return false;
	}
	for (size_t i = 0; i < d->n_cells; i++) {
		const struct diff_cell *c = &d->cell[i];
		for (uint32_t k = 0; k < c->n_arms && diff_has_times(c); k++) {
			const struct diff_arm *a = &d->arm[c->arm + k];
			if (a->role != ROLE_SHIPPED || !(a->flags & DA_SAME_CODE) || isnan(a->y[0]) || isnan(a->y[1]))
				continue;
			double v = (double)a->v[0] / a->processes[0] + (double)a->v[1] / a->processes[1];
			if (!diff_control_add(&d->shipped, (double)a->y[1] - (double)a->y[0], v))
				return false;
		}
	}
	return true;
}

/* What is on file: a suite's or a store's tau, or what the run's own processes differed by. NAN: nothing. */
static double tau_of_side(const struct diff *d, int side)
{
	const char *source = record_text(d->header[side], "tau_source");
	double tau = NAN;
	if (source && strcmp(source, "built-in") != 0)
		tau = record_number(d->header[side], "tau", NAN);
	if (record_number(d->processes[side], "n", 0) >= 16) {
		double own = record_number(d->processes[side], "tau", NAN);
		tau = isnan(tau) || own > tau ? own : tau;
	}
	return tau;
}

static bool measure_drift(struct diff *d)
{
	struct diff_summary *s = &d->sum;
	struct spread shipped, null, all;
	if (!collect_controls(d))
		return false;
	struct diff_controls both = {0};
	for (int k = 0; k < 2; k++) {
		const struct diff_controls *from = k ? &d->sentinel : &d->shipped;
		for (size_t i = 0; i < from->n; i++)
			if (!diff_control_add(&both, (double)from->c[i].change, (double)from->c[i].v)) {
				free(both.c);
				return false;
			}
	}
	bool ok = spread_of(&both, NAN, &all) && spread_of(d->shipped.n >= 3 ? &d->shipped : &both, NAN, &shipped) &&
		  spread_of(&d->null, 0, &null);
	s->controls = (int64_t)both.n;
	free(both.c);
	if (!ok)
		return false;
	double t0 = tau_of_side(d, 0), t1 = tau_of_side(d, 1), tau = fmax(t0, t1); /* fmax passes over a NAN */
	s->tau_assumed = isnan(tau);
	s->tau = s->tau_assumed ? TAU_ASSUMED : tau;
	d->tau2 = d->tau2_ratio = s->tau * s->tau;
	/* Kernels whose code did not change are A against A between these very runs: what they scatter by is a floor for tau. */
	const int least = 8;
	int k = s->processes[0] < s->processes[1] ? s->processes[0] : s->processes[1];
	double seen2 = d->shipped.n >= (size_t)least ? (shipped.sigma * shipped.sigma - shipped.v) * k / 2 : 0;
	double seen2_ratio = d->null.n >= (size_t)least ? (null.sigma * null.sigma - null.v) * k / 2 : 0;
	s->drift = all.median;
	s->spread = shipped.sigma;
	s->clocks_differ =
		s->controls > 0 && (fabs(s->drift) > CLOCKS_LIMIT || (d->shipped.n >= 3 && s->spread > CLOCKS_LIMIT));
	if (seen2 > d->tau2)
		d->tau2 = seen2;
	if (seen2_ratio > d->tau2_ratio)
		d->tau2_ratio = seen2_ratio;
	double used = sqrt(s->clocks_differ ? d->tau2_ratio : d->tau2);
	s->tau_from_controls = used > s->tau;
	s->tau = used;
	d->var_drift = 0;
	if (s->controls >= 3)
		d->var_drift = pow(1.2533 * all.sigma, 2) / (double)s->controls;
	else if (s->controls > 0)
		d->var_drift = 2 * d->tau2;
	s->drift_se = s->controls > 0 ? sqrt(d->var_drift) : NAN;
	return true;
}

/* ---- one comparison -------------------------------------------------------------------------------------------------- */

bool diff_arm_timed(const struct diff *d, const struct diff_cell *c, const struct diff_arm *a)
{
	if (!diff_has_times(c) || c->state == DIFF_INCOMPARABLE || !(a->flags & DA_IN_HEAD) ||
	    a->flags & (DA_BAD_BASE | DA_BAD_HEAD))
		return false;
	return d->sum.clocks_differ ? isfinite(a->r[0]) && isfinite(a->r[1]) : isfinite(a->y[0]) && isfinite(a->y[1]);
}

static double p_of(double z)
{
	return erfc(fabs(z) / sqrt(2));
}

bool diff_compare_arm(const struct diff *d, const struct diff_cell *c, const struct diff_arm *a,
		      struct diff_compared *out)
{
	if (!diff_arm_timed(d, c, a))
		return false;
	const bool ratio = d->sum.clocks_differ;
	const float *y = ratio ? a->r : a->y, *v = ratio ? a->rv : a->v;
	const double tau2 = ratio ? d->tau2_ratio : d->tau2, drift = ratio || d->sum.controls == 0 ? 0 : d->sum.drift;
	const double var_drift = ratio ? 0 : d->var_drift;
	double own = 0;
	for (int k = 0; k < 2; k++)
		own += ((double)v[k] + tau2) / a->processes[k];
	double change = (double)y[1] - (double)y[0] - drift, se = sqrt(own + var_drift);
	double z = se > 0 ? change / se : change == 0 ? 0 : copysign(INFINITY, change);
	*out = (struct diff_compared){.change = change, .se = se, .p = p_of(z), .state = DIFF_SAME};
	double base_ns = exp((double)a->y[0]);
	double moved_ns = fabs(base_ns * expm1(change));
	if (fabs(change) <= log1p(d->o.least) || moved_ns <= (double)c->floor_ns)
		return true;
	if ((double)(float)fabs(z) >= d->z_reject) {
		out->state = change > 0 ? DIFF_SLOWER : DIFF_FASTER;
		return true;
	}
	out->state = DIFF_UNDECIDED;
	/* (v0 + v1 + 2 tau^2)/K + var of drift must come down to (change / z)^2. */
	double left = change * change / (d->z_first * d->z_first) - var_drift;
	double k = ceil(((double)v[0] + (double)v[1] + 2 * tau2) / left);
	int least = a->processes[0] < a->processes[1] ? a->processes[0] : a->processes[1];
	out->more_processes = left <= 0 || k > 64 ? -1 : k > least ? (int)k - least : 1;
	return true;
}

/* ---- Holm ------------------------------------------------------------------------------------------------------------ */

/* |z| whose two-sided p is this. */
static double z_of(double p)
{
	double lo = 0, hi = 40;
	for (int i = 0; i < 80; i++) {
		double mid = (lo + hi) / 2;
		if (p_of(mid) > p)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

typedef void visit(void *ctx, const struct diff_compared *x);

static void each_comparison(const struct diff *d, visit *f, void *ctx)
{
	struct diff_compared x;
	for (size_t i = 0; i < d->n_cells; i++)
		for (uint32_t k = 0; k < d->cell[i].n_arms; k++)
			if (diff_compare_arm(d, &d->cell[i], &d->arm[d->cell[i].arm + k], &x))
				f(ctx, &x);
}

struct floats {
	float *x;
	size_t n;
};

static void add_z(void *ctx, const struct diff_compared *x)
{
	struct floats *l = ctx;
	l->x[l->n++] = (float)(x->se > 0 ? fabs(x->change) / x->se : x->change == 0 ? 0 : INFINITY);
}

static void add_se(void *ctx, const struct diff_compared *x)
{
	struct floats *l = ctx;
	l->x[l->n++] = (float)x->se;
}

bool diff_weigh(struct diff *d)
{
	struct diff_summary *s = &d->sum;
	d->z_reject = INFINITY;
	d->z_first = z_of(ALPHA);
	s->resolution = NAN;
	if (!measure_drift(d))
		return false;
	struct floats l = {malloc((d->n_arms + 1) * sizeof(float)), 0};
	if (!l.x)
		return false;
	each_comparison(d, add_z, &l);
	s->judged = (int64_t)l.n;
	if (l.n > 0) {
		d->z_first = z_of(ALPHA / (double)l.n);
		qsort(l.x, l.n, sizeof *l.x, by_value);
		/* Step down from the greatest; the first that fails ends it. */
		size_t i = l.n;
		while (i > 0 && p_of((double)l.x[i - 1]) <= ALPHA / (double)i)
			i--;
		d->z_reject = i == l.n ? INFINITY : (double)l.x[i];
		l.n = 0;
		each_comparison(d, add_se, &l);
		s->resolution = fmax(expm1(d->z_first * median_of(l.x, l.n)), d->o.least);
	}
	free(l.x);
	s->expected_false = s->judged > 0 ? ALPHA : 0;
	return true;
}
