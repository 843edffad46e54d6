#include "judge.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static const char *const verdict_names[TV_N] = {
	[TV_NONE] = "none",
	[TV_PASS] = "pass",
	[TV_SUSPECT] = "suspect",
	[TV_REGRESSION] = "regression",
	[TV_INCONCLUSIVE] = "inconclusive",
	[TV_INVALID] = "invalid",
};

static const char *const reason_names[TR_N] = {
	[TR_NONE] = "none",
	[TR_ROUNDS] = "rounds",
	[TR_BUDGET] = "budget",
	[TR_RESOLUTION] = "resolution",
	[TR_UNCONFIRMED] = "unconfirmed",
	[TR_NOT_CONFIRMED] = "not_confirmed",
	[TR_BIASED] = "biased",
	[TR_NOISY] = "noisy",
	[TR_NOT_TIMED] = "not_timed",
	[TR_TRIVIAL] = "trivial",
	[TR_TOO_FEW] = "too_few",
	[TR_THROTTLED] = "throttled",
	[TR_SHARED] = "shared",
	[TR_IMPLAUSIBLE] = "implausible",
	[TR_CONFOUNDED] = "confounded",
	[TR_SCRUB] = "scrub",
	[TR_CLOCK] = "clock",
};

const char *judge_verdict_name(enum timing_verdict v)
{
	return v >= 0 && v < TV_N ? verdict_names[v] : "none";
}

const char *judge_reason_name(enum timing_reason r)
{
	return r >= 0 && r < TR_N ? reason_names[r] : "none";
}

enum timing_verdict judge_verdict_of(const char *name)
{
	for (int v = 0; name && v < TV_N; v++)
		if (strcmp(name, verdict_names[v]) == 0)
			return (enum timing_verdict)v;
	return TV_N;
}

double judge_ln_margin(double fail, int64_t floor_ns, double t_shipped_ns)
{
	double m = 1 + fail;
	if (floor_ns > 0 && t_shipped_ns > 0)
		m = fmax(m, 1 + (double)floor_ns / t_shipped_ns);
	return log(m);
}

/* ---- the rounds of a pair, without the dropped ones ----------------------------------------------------------------- */

struct kept {
	double arm[STATS_MAX_ROUNDS], shipped[STATS_MAX_ROUNDS], d[STATS_MAX_ROUNDS];
	int n;
	bool below_resolution; /* a sample of no length: it has no logarithm, and no ratio */
};

static void keep(const struct judge_pair *p, int limit, struct kept *k)
{
	k->n = 0;
	k->below_resolution = false;
	for (int r = 0; r < p->n && k->n < limit; r++) {
		double a = p->arm[r], s = p->shipped[r];
		if (!isfinite(a) || !isfinite(s))
			continue;
		if (!(a > 0) || !(s > 0)) {
			k->below_resolution = true;
			continue;
		}
		k->arm[k->n] = a;
		k->shipped[k->n] = s;
		/* A difference, not a quotient: a quotient of extremes would overflow. */
		double ratio = a / s;
		k->d[k->n] = isnormal(ratio) ? log(ratio) : log(a) - log(s);
		k->n++;
	}
}

static int clamp(int x, int lo, int hi)
{
	return x < lo ? lo : x > hi ? hi : x;
}

/* ---- what it would cost to decide ----------------------------------------------------------------------------------- */

/* The half width falls as 1/sqrt(n): the n at which it is no wider than the gap between estimate and margin. */
static int rounds_more(const struct interval *iv, double ln_margin, bool adaptive)
{
	if (iv->n <= 0)
		return stats_looks[0];
	double half = (iv->hi - iv->lo) / 2, gap = fabs(iv->estimate - ln_margin);
	if (!isfinite(half)) {
		/* No interval yet: the first look that can have one. */
		for (int i = 0; stats_looks[i]; i++)
			if (stats_looks[i] > iv->n)
				return stats_looks[i] - iv->n;
		return -1;
	}
	if (!(gap > 0))
		return -1;
	double want = ceil(iv->n * (half / gap) * (half / gap));
	if (!(want <= STATS_MAX_ROUNDS))
		return -1;
	int n = (int)want > iv->n ? (int)want : iv->n + 1;
	for (int i = 0; adaptive && stats_looks[i]; i++)
		if (stats_looks[i] >= n)
			return stats_looks[i] - iv->n;
	return n - iv->n;
}

static void decide(const struct kept *k, int n, int cut, const struct judge_rule *rule, struct judge_result *out)
{
	double t_shipped = stats_median(k->shipped, n);
	stats_walsh(k->d, n, cut, &out->iv);
	out->ln_margin = judge_ln_margin(rule->fail, rule->floor_ns, t_shipped);
	out->ratio_estimator = exp(out->iv.estimate);
	out->warned = false;
	if (out->iv.hi <= out->ln_margin) {
		out->verdict = TV_PASS;
		out->warned = rule->warn >= 0 && out->iv.lo > judge_ln_margin(rule->warn, rule->floor_ns, t_shipped);
	} else if (out->iv.lo > out->ln_margin) {
		out->verdict = TV_SUSPECT;
	} else {
		out->verdict = TV_INCONCLUSIVE;
	}
}

void judge_paired(const struct judge_pair *p, const struct judge_rule *rule, struct judge_result *out, bool *done)
{
	struct kept k;
	bool fixed = rule->rounds > 0;
	keep(p, clamp(fixed ? rule->rounds : STATS_MAX_ROUNDS, 1, STATS_MAX_ROUNDS), &k);
	*out = (struct judge_result){.verdict = TV_INCONCLUSIVE, .reason = TR_TOO_FEW, .rounds_more = -1};
	bool over = false;

	if (fixed) {
		decide(&k, k.n, stats_fixed_cut_at(rule->alpha, k.n), rule, out);
		over = k.n >= clamp(rule->rounds, 1, STATS_MAX_ROUNDS);
	} else {
		int last = 0, looked = 0;
		for (int i = 0; stats_looks[i]; i++)
			if (stats_looks[i] >= rule->min_rounds && stats_looks[i] <= rule->max_rounds)
				last = stats_looks[i];
		for (int i = 0; stats_looks[i] && stats_looks[i] <= k.n; i++) {
			if (stats_looks[i] < rule->min_rounds || stats_looks[i] > rule->max_rounds)
				continue;
			looked = stats_looks[i];
			int cut = stats_look_cut(rule->alpha, looked);
			decide(&k, looked, cut == INT_MIN ? -1 : cut, rule, out);
			if (out->verdict != TV_INCONCLUSIVE)
				break;
		}
		if (looked == 0)
			decide(&k, k.n, -1, rule, out); /* an estimate to show; it decides nothing */
		over = out->verdict != TV_INCONCLUSIVE || looked >= last;
	}
	if (k.below_resolution) {
		out->verdict = TV_INCONCLUSIVE;
		out->reason = TR_RESOLUTION;
		out->warned = false;
		over = true;
	} else if (out->verdict != TV_INCONCLUSIVE) {
		out->reason = TR_NONE;
	} else {
		out->reason = isfinite(out->iv.lo) ? TR_ROUNDS : TR_TOO_FEW;
		out->rounds_more = rounds_more(&out->iv, out->ln_margin, !fixed);
	}
	if (done)
		*done = over;
}

void judge_seed(const struct judge_pair *p, const struct judge_rule *rule, struct judge_result *out, bool *done)
{
	struct kept k;
	int want = clamp(rule->rounds > 0 ? rule->rounds : rule->max_rounds, 1, STATS_MAX_ROUNDS);
	keep(p, want, &k);
	*out = (struct judge_result){.verdict = TV_INCONCLUSIVE, .reason = TR_TOO_FEW, .rounds_more = -1};
	stats_walsh(k.d, k.n, stats_fixed_cut_at(rule->alpha, k.n), &out->iv);
	double t_shipped = stats_median(k.shipped, k.n);
	out->ln_margin = judge_ln_margin(rule->fail, rule->floor_ns, t_shipped);
	if (rule->estimator == EST_MEAN)
		out->ratio_estimator = stats_mean(k.arm, k.n) / stats_mean(k.shipped, k.n);
	else
		out->ratio_estimator = stats_median(k.arm, k.n) / t_shipped;
	if (done)
		*done = k.n >= want || k.below_resolution;
	if (k.below_resolution) {
		out->reason = TR_RESOLUTION;
		return;
	}
	/* The protocol is its number of rounds: a mean of 3 of 5 is not a mean of 5. Accept on <=, so that a NAN cannot pass. */
	if (k.n < want && rule->rounds > 0) {
		out->rounds_more = want - k.n;
	} else if (k.n > 0 && isfinite(out->ratio_estimator)) {
		double at = log(out->ratio_estimator);
		out->verdict = at <= out->ln_margin ? TV_PASS : TV_REGRESSION;
		out->reason = TR_NONE;
		out->warned = out->verdict == TV_PASS && rule->warn >= 0 &&
			      at > judge_ln_margin(rule->warn, rule->floor_ns, t_shipped);
	}
}

/* ---- the null arm, the tail, the batch ------------------------------------------------------------------------------ */

void judge_null_arm(const struct judge_pair *null_pair, double ln_margin, double tau, struct judge_null *out)
{
	struct kept k;
	keep(null_pair, STATS_MAX_ROUNDS, &k);
	/* Where the cell stopped at a look, stopping was a choice: the looks' wider cut. */
	int cut = stats_look_cut(0.025, k.n);
	stats_walsh(k.d, k.n, cut == INT_MIN ? stats_fixed_cut(k.n) : cut, &out->iv);
	double least = fmax(0.25 * fmax(ln_margin, JUDGE_LEAST_LN_MARGIN), 2 * sqrt(2) * fmax(tau, 0));
	bool excludes = out->iv.lo > 0 || out->iv.hi < 0;
	out->biased = excludes && fabs(out->iv.estimate) >= least;
	struct summary s;
	stats_summary(k.d, k.n, &s);
	out->noise = 1.4826 * s.mad / sqrt(2);
}

void judge_tail(const struct judge_pair *p, struct judge_tail *out)
{
	struct kept k;
	keep(p, STATS_MAX_ROUNDS, &k);
	*out = (struct judge_tail){0, 0, 1, false};
	double arm = 1.05 * stats_median(k.arm, k.n), shipped = 1.05 * stats_median(k.shipped, k.n);
	for (int r = 0; r < k.n; r++) {
		bool a = k.arm[r] > arm, s = k.shipped[r] > shipped;
		out->arm_only += a && !s;
		out->shipped_only += s && !a;
	}
	int n = out->arm_only + out->shipped_only;
	out->p = stats_binomial_tail(n, out->arm_only, 0.5);
	out->flagged = n >= 7 && out->p < 0.01;
}

int judge_batch(double tick_ns, double t_ns, double ln_margin)
{
	if (!(tick_ns > 0))
		return 1;
	double b = ceil(4 * tick_ns / (t_ns * fmax(ln_margin, JUDGE_LEAST_LN_MARGIN)));
	if (!(b < INT_MAX)) /* t of 0, or so near that no batch helps */
		return INT_MAX;
	return b < 1 ? 1 : (int)b;
}

int judge_first_look(const struct judge_rule *rule)
{
	if (rule->rounds > 0)
		return rule->rounds;
	for (int i = 0; stats_looks[i]; i++)
		if (stats_looks[i] >= rule->min_rounds && stats_looks[i] < rule->max_rounds)
			return stats_looks[i];
	return rule->max_rounds;
}

/* A measured peak is itself a measurement: a copy does not reach what a pure read can, and on a host that others share it was taken
 * under their load. What did no work is beyond this by far; what is near it must not be called a lie. */
static const double peak_slack = 1.25;

bool judge_implausible(const struct judge_work *w, double seconds)
{
	const double by_bytes = w->bytes_per_s > 0 ? w->cold_bytes / w->bytes_per_s : 0;
	const double by_flop = w->flop_per_s > 0 ? w->flop / w->flop_per_s : 0;
	return seconds < fmax(fmax(by_bytes, by_flop), 0) / peak_slack; /* fmax ignores a NAN */
}
