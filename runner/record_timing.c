/* The timing verdict of one cell, from its samples and its stored settings and from nothing else. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record_parts.h"

enum { BATCH_MAX = 32 };

struct verdict {
	struct timing_outcome is;
	struct judge_result r;
	bool numbers; /* r holds an interval */
	struct judge_null null;
	bool has_null;
	struct judge_tail tail;
	bool has_tail;
	json_t *notes, *advice, *of_over;
};

/* Rounds that the arm has. */
static int rounds_of(const struct cell_view *v, const struct arm_view *a)
{
	int n = 0;
	for (int r = 0; a && a->t && r < v->n_rounds; r++)
		n += isfinite(a->t[r]);
	return n;
}

static bool has_rounds(const struct cell_view *v, const struct arm_view *a)
{
	return rounds_of(v, a) > 0;
}

static double median_of(const struct cell_view *v, const struct arm_view *a)
{
	double x[STATS_MAX_ROUNDS];
	int n = 0;
	for (int r = 0; a && a->t && r < v->n_rounds; r++)
		if (isfinite(a->t[r]))
			x[n++] = a->t[r];
	return stats_median(x, n);
}

__attribute__((format(printf, 2, 3))) static void note(struct verdict *out, const char *fmt, ...)
{
	char text[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	json_t *j = json_string(text);
	if (j)
		json_array_append_new(out->notes, j);
}

/* ---- what makes the samples worthless ------------------------------------------------------------------------------- */

static bool throttled(const json_t *state)
{
	const json_t *t = json_object_get(state, "throttle");
	if (json_is_string(t))
		return json_string_value(t)[0] && strcmp(json_string_value(t), "none") != 0;
	return json_is_array(t) ? json_array_size(t) > 0 : json_is_number(t) && json_number_value(t) > 0;
}

static bool census_differs(const json_t *cell)
{
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(cell, "checks"), i, f)
	{
		const char *check = record_text(f, "check"), *status = record_text(f, "status");
		if (check && status && strcmp(check, "census") == 0 && strcmp(status, "invalid") == 0)
			return true;
	}
	return false;
}

/* Faster than the device can be. A record without cold_bytes is of a version that took the least bytes of any
 * scrubbed cell for it. */
static bool implausible(const struct cell_view *v, const struct arm_view *a)
{
	const json_t *work = json_object_get(v->cell, "work"), *measure = json_object_get(v->cell, "measure");
	const bool scrubbed = record_number(measure, "scrub_bytes", 0) > 0;
	const struct judge_work w = {
		.cold_bytes = record_number(measure, "cold_bytes",
					    json_object_get(measure, "cold_bytes") || !scrubbed
						    ? 0
						    : record_number(work, "least_bytes", 0)),
		.bytes_per_s = record_number(measure, "peak_bytes_per_s", 0),
		.flop = record_number(work, "flop", 0),
		.flop_per_s = record_number(measure, "peak_flop_per_s", 0) * record_number(measure, "flop_reach", 1),
	};
	return judge_implausible(&w, median_of(v, a) * 1e-9);
}

static enum timing_reason worthless(const struct cell_view *v, const struct arm_view *a, const struct arm_view *b)
{
	const json_t *state = json_object_get(v->cell, "device_state");
	const json_t *before = json_object_get(state, "before"), *after = json_object_get(state, "after");
	if (throttled(before) || throttled(after))
		return TR_THROTTLED;
	if (record_number(before, "other_processes", 0) > 0 || record_number(after, "other_processes", 0) > 0)
		return TR_SHARED;
	if (json_is_false(json_object_get(json_object_get(v->cell, "measure"), "scrub_proven")))
		return TR_SCRUB;
	return implausible(v, a) || implausible(v, b) ? TR_IMPLAUSIBLE : TR_NONE;
}

/* ---- the served arm against the shipped one ------------------------------------------------------------------------- */

static struct judge_pair pair_of(const struct cell_view *v, const struct arm_view *a, const struct arm_view *b)
{
	return (struct judge_pair){a->t, b->t, v->n_rounds};
}

static void judge_null_and_tail(const struct cell_view *v, const struct arm_view *a, const struct arm_view *b,
				double ln_margin, double tau, struct verdict *out)
{
	if (has_rounds(v, v->null) && has_rounds(v, v->shipped)) {
		struct judge_pair p = pair_of(v, v->null, v->shipped);
		judge_null_arm(&p, ln_margin, tau, &out->null);
		out->has_null = out->null.iv.n > 0;
	}
	if (a != b) {
		struct judge_pair p = pair_of(v, a, b);
		judge_tail(&p, &out->tail);
		out->has_tail = true;
		if (out->tail.flagged)
			note(out, "%s has a slow tail that a median does not see (p = %.2g)", a->name, out->tail.p);
	}
}

/* A timing failure becomes what the null arm, the second process and the run allow. */
static void settle_failure(const struct cell_view *v, const struct judge_rule *rule, const struct record_env *env,
			   bool more_to_come, struct verdict *out)
{
	const json_t *confirm = json_object_get(v->cell, "confirm");
	const json_t *confirmed = json_object_get(confirm, "confirmed");
	bool wants = rule->estimator == EST_PAIRED && rule->confirm == CONFIRM_FRESH;
	/* What a process saw it cannot confirm: its allocations are part of what is in doubt. */
	const double screened = record_number(json_object_get(v->cell, "measure"), "process", -1);
	if (screened >= 0 && screened == record_number(confirm, "process", -2))
		confirmed = NULL;
	double ratio = out->r.ratio_estimator;
	out->r.rounds_more = -1;
	out->is = (struct timing_outcome){TV_INCONCLUSIVE, TR_NONE};
	if (out->has_null && out->null.biased) {
		out->is.reason = TR_BIASED;
	} else if (more_to_come) {
		out->is.verdict = TV_SUSPECT;
	} else if (wants && !json_is_boolean(confirmed)) {
		out->is.reason = TR_UNCONFIRMED;
		out->r.rounds_more = judge_confirm_rounds(out->r.iv.n);
	} else if (wants && !json_is_true(confirmed)) {
		out->is.reason = TR_NOT_CONFIRMED;
	} else {
		if (wants)
			ratio = fmin(ratio, exp(record_number(confirm, "estimate", out->r.iv.estimate)));
		if (env->noisy && !(ratio > exp(out->r.ln_margin) + 0.05))
			out->is.reason = TR_NOISY;
		else
			out->is.verdict = TV_REGRESSION;
	}
}

static void judge_selected(const struct cell_view *v, const struct judge_rule *rule, const struct record_env *env,
			   bool more_to_come, struct verdict *out)
{
	const json_t *measure = json_object_get(v->cell, "measure");
	bool trivial = v->selected == v->shipped;
	bool cut = json_is_string(json_object_get(measure, "cut"));
	bool coarse = record_number(measure, "batch", 1) > BATCH_MAX;
	/* Before the first look a cell has shown nothing of its time, though what it serves be the shipped arm. */
	if (trivial && rounds_of(v, v->shipped) < judge_first_look(rule)) {
		out->is.verdict = TV_INCONCLUSIVE;
		out->is.reason = coarse ? TR_RESOLUTION : cut ? TR_BUDGET : TR_TOO_FEW;
		out->r.rounds_more = coarse ? -1 : judge_first_look(rule) - rounds_of(v, v->shipped);
	} else if (trivial) {
		double t = median_of(v, v->shipped);
		out->is = (struct timing_outcome){TV_PASS, TR_TRIVIAL};
		out->r.ln_margin = judge_ln_margin(rule->fail, rule->floor_ns, t);
		if (has_rounds(v, v->shipped))
			judge_null_and_tail(v, v->shipped, v->shipped, out->r.ln_margin, rule->tau, out);
	} else if (!has_rounds(v, v->selected) || !has_rounds(v, v->shipped)) {
		out->is.verdict = TV_INCONCLUSIVE;
		out->is.reason = coarse ? TR_RESOLUTION : cut ? TR_BUDGET : TR_TOO_FEW;
		out->r.rounds_more = coarse ? -1 : rule->rounds > 0 ? rule->rounds : stats_looks[0];
		return;
	} else {
		struct judge_pair p = pair_of(v, v->selected, v->shipped);
		if (rule->estimator == EST_PAIRED)
			judge_paired(&p, rule, &out->r, NULL);
		else
			judge_seed(&p, rule, &out->r, NULL);
		out->numbers = true;
		out->is = (struct timing_outcome){out->r.verdict, out->r.reason};
		judge_null_and_tail(v, v->selected, v->shipped, out->r.ln_margin, rule->tau, out);
		if (coarse)
			out->is = (struct timing_outcome){TV_INCONCLUSIVE, TR_RESOLUTION};
		else if (out->is.verdict == TV_SUSPECT || out->is.verdict == TV_REGRESSION)
			settle_failure(v, rule, env, more_to_come, out);
		else if (cut && (out->is.reason == TR_ROUNDS || out->is.reason == TR_TOO_FEW))
			out->is.reason = TR_BUDGET;
		if (out->is.reason == TR_RESOLUTION)
			out->r.rounds_more = -1;
	}
	if (has_rounds(v, v->shipped)) {
		enum timing_reason why = worthless(v, v->selected, v->shipped);
		if (why != TR_NONE)
			out->is = (struct timing_outcome){TV_INVALID, why};
	}
}

/* ---- a ratio check's pair ------------------------------------------------------------------------------------------- */

static void judge_ratio(const struct cell_view *v, const struct judge_rule *rule, struct verdict *out)
{
	const json_t *check = json_object_get(v->cell, "ratio_check");
	const struct arm_view *of = record_view_arm(v, record_text(check, "of"));
	const struct arm_view *over = record_view_arm(v, record_text(check, "over"));
	bool named = out->is.verdict != TV_NONE; /* by the regression check, which then names the verdict */
	struct judge_result r = {.ln_margin = NAN};
	double d[STATS_MAX_ROUNDS];
	int n = 0;
	bool both = has_rounds(v, of) && has_rounds(v, over);
	if (both) {
		struct judge_pair p = pair_of(v, of, over);
		struct judge_rule all = *rule;
		all.rounds = 0;
		all.max_rounds = STATS_MAX_ROUNDS;
		judge_seed(&p, &all, &r, NULL);
		n = record_view_pair(v, of, over, d);
		stats_walsh(d, n, stats_fixed_cut(n), &r.iv);
		if (rule->estimator == EST_PAIRED)
			r.ratio_estimator = exp(r.iv.estimate);
	}
	json_t *o = json_object();
	json_object_set_new(o, "ratio", record_real(n > 0 ? r.ratio_estimator : NAN));
	json_object_set_new(o, "pp", record_real(n > 0 ? 100 * (r.ratio_estimator - 1) : NAN));
	json_object_set_new(o, "estimate", record_real(n > 0 ? r.iv.estimate : NAN));
	json_object_set_new(o, "lo", record_real(n > 0 ? r.iv.lo : NAN));
	json_object_set_new(o, "hi", record_real(n > 0 ? r.iv.hi : NAN));
	json_object_set_new(o, "se", record_real(stats_walsh_se(d, n)));
	json_object_set_new(o, "n", json_integer(n));
	json_object_set_new(o, "of_ns", record_real(median_of(v, of)));
	json_object_set_new(o, "over_ns", record_real(median_of(v, over)));

	struct timing_outcome is = {TV_PASS, TR_NONE};
	bool cut = json_is_string(json_object_get(json_object_get(v->cell, "measure"), "cut"));
	if (!named && n > 0)
		judge_null_and_tail(v, of, over, 0, rule->tau, out);
	enum timing_reason why = n == 0 ? TR_NONE : census_differs(v->cell) ? TR_CONFOUNDED : worthless(v, of, over);
	if (both && r.reason == TR_RESOLUTION)
		is = (struct timing_outcome){TV_INCONCLUSIVE, TR_RESOLUTION};
	else if (why != TR_NONE)
		is = (struct timing_outcome){TV_INVALID, why};
	else if (n == 0 || !isfinite(r.iv.lo))
		is = (struct timing_outcome){TV_INCONCLUSIVE, cut ? TR_BUDGET : TR_TOO_FEW};
	else if (out->has_null && out->null.biased)
		is = (struct timing_outcome){TV_INCONCLUSIVE, TR_BIASED};
	json_object_set_new(o, "verdict", json_string(judge_verdict_name(is.verdict)));
	json_object_set_new(o, "reason", is.reason ? json_string(judge_reason_name(is.reason)) : json_null());
	out->of_over = o;
	if (!named)
		out->is = is;
}

/* ---- advice --------------------------------------------------------------------------------------------------------- */

/* An arm with a finding against it is never advised, however fast. */
static bool arm_is_right(const json_t *cell, const char *name)
{
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(cell, "checks"), i, f)
	{
		const char *arm = record_text(f, "arm"), *status = record_text(f, "status");
		if (arm && strcmp(arm, name) == 0 && status && strcmp(status, "pass") != 0)
			return false;
	}
	return true;
}

static int by_ratio(const void *a, const void *b)
{
	double x = record_number(*(json_t *const *)a, "ratio", 0), y = record_number(*(json_t *const *)b, "ratio", 0);
	return (x > y) - (x < y);
}

/* Candidates that were faster than the served arm in the same rounds: the interval excludes 0 and the gain is above the noise. */
static void advise(const struct cell_view *v, struct verdict *out)
{
	const struct arm_view *served = v->selected;
	if (!served || !has_rounds(v, served))
		return;
	json_t *found[64];
	int n = 0;
	for (int i = 0; i < v->n_arms && n < 64; i++) {
		const struct arm_view *a = &v->arm[i];
		bool selectable = strcmp(a->role, "candidate") == 0 || strcmp(a->role, "shipped") == 0;
		if (a == served || !selectable || !has_rounds(v, a) || !arm_is_right(v->cell, a->name) ||
		    implausible(v, a))
			continue;
		double d[STATS_MAX_ROUNDS];
		struct interval iv;
		int cut;
		const int k = record_cut(v->cell, record_view_pair(v, a, served, d), &cut);
		stats_walsh(d, k, cut, &iv);
		double noise = out->has_null && isfinite(out->null.noise) ? out->null.noise : 0;
		if (!(iv.hi < 0) || !(iv.estimate < -noise))
			continue;
		json_t *o = json_object();
		json_object_set_new(o, "arm", json_string(a->name));
		json_object_set_new(o, "ratio", record_real(exp(iv.estimate)));
		json_object_set_new(o, "lo", record_real(exp(iv.lo)));
		json_object_set_new(o, "hi", record_real(exp(iv.hi)));
		found[n++] = o;
	}
	/* The best first, and then the list does not depend on the order of the arms. */
	qsort(found, (size_t)n, sizeof found[0], by_ratio);
	for (int i = 0; i < n; i++)
		json_array_append_new(out->advice, found[i]);
}

/* ---- the object ----------------------------------------------------------------------------------------------------- */

static void put_timing(const struct cell_view *v, const struct judge_rule *rule, struct verdict *out)
{
	static const char *const estimators[] = {[EST_PAIRED] = "paired", [EST_MEAN] = "mean", [EST_MEDIAN] = "median"};
	const struct judge_result *r = &out->r;
	const struct interval *iv = &r->iv;
	bool x = out->numbers && iv->n > 0;
	bool undecided = out->is.verdict == TV_INCONCLUSIVE, trivial = out->is.reason == TR_TRIVIAL;
	json_t *t = json_object();
	json_object_set_new(t, "verdict", json_string(judge_verdict_name(out->is.verdict)));
	json_object_set_new(t, "reason", out->is.reason ? json_string(judge_reason_name(out->is.reason)) : json_null());
	json_object_set_new(t, "gating", json_boolean(record_true(v->cell, "gating")));
	json_object_set_new(t, "ratio", record_real(x ? r->ratio_estimator : trivial ? 1 : NAN));
	json_object_set_new(t, "estimate", record_real(x ? iv->estimate : NAN));
	json_object_set_new(t, "lo", record_real(x ? iv->lo : NAN));
	json_object_set_new(t, "hi", record_real(x ? iv->hi : NAN));
	json_object_set_new(t, "n", out->numbers ? json_integer(iv->n) : json_null());
	json_object_set_new(t, "cut", x ? json_integer(iv->cut) : json_null());
	json_object_set_new(t, "r1", record_real(x ? iv->r1 : NAN));
	json_object_set_new(t, "widening", record_real(x ? iv->g : NAN));
	json_object_set_new(t, "ln_margin", record_real(r->ln_margin));
	json_object_set_new(t, "warned", json_boolean(out->is.verdict == TV_PASS && r->warned));
	json_object_set_new(t, "rounds_more", undecided ? json_integer(r->rounds_more) : json_null());
	json_object_set_new(t, "estimator", json_string(estimators[rule->estimator]));
	json_t *null = json_null();
	if (out->has_null) {
		null = json_object();
		json_object_set_new(null, "estimate", record_real(out->null.iv.estimate));
		json_object_set_new(null, "lo", record_real(out->null.iv.lo));
		json_object_set_new(null, "hi", record_real(out->null.iv.hi));
		json_object_set_new(null, "biased", json_boolean(out->null.biased));
	}
	json_object_set_new(t, "null", null);
	json_object_set_new(t, "noise", record_real(out->has_null ? out->null.noise : NAN));
	json_t *tail = json_null();
	if (out->has_tail) {
		tail = json_object();
		json_object_set_new(tail, "arm_only", json_integer(out->tail.arm_only));
		json_object_set_new(tail, "shipped_only", json_integer(out->tail.shipped_only));
		json_object_set_new(tail, "p", record_real(out->tail.p));
		json_object_set_new(tail, "flagged", json_boolean(out->tail.flagged));
	}
	json_object_set_new(t, "tail", tail);
	json_object_set_new(t, "advice", json_incref(out->advice));
	json_object_set_new(t, "shipped_ns", record_real(median_of(v, v->shipped)));
	json_object_set_new(t, "selected_ns", record_real(median_of(v, v->selected)));
	json_object_set_new(t, "of_over", out->of_over ? json_incref(out->of_over) : json_null());
	json_object_set_new(t, "notes", json_incref(out->notes));
	json_object_set_new(v->cell, "timing", t);
}

/* A clock that was held: of all arms alike, so the ratio stands. */
static void note_limit(const json_t *cell, struct verdict *out)
{
	const json_t *state = json_object_get(cell, "device_state"), *before = json_object_get(state, "before"),
		     *after = json_object_get(state, "after");
	const char *limit = record_limit(cell);
	const double from = record_number(before, "sm_mhz", NAN), to = record_number(after, "sm_mhz", NAN);
	if (limit && isfinite(from) && isfinite(to))
		note(out, "the clock was held by the %s: %.0f MHz before, %.0f MHz after; times are of this clock",
		     limit, from, to);
	else if (limit)
		note(out, "the clock was held by the %s; times are of the clock that was had", limit);
}

struct timing_outcome record_judge_timing(json_t *cell, const struct record_env *env, bool more_to_come)
{
	const char *selection = record_text(cell, "selection");
	bool not_timed = selection && strcmp(selection, "not_timed") == 0;
	bool asked = selection && strcmp(selection, "none") != 0;
	bool ratio = json_is_object(json_object_get(cell, "ratio_check"));
	struct verdict out = {.is = {TV_NONE, TR_NONE}, .r = {.ln_margin = NAN, .rounds_more = -1}};
	struct cell_view v;
	struct judge_rule rule;
	record_rule(cell, env, &rule);
	json_object_set_new(cell, "timing", json_null());
	if (!record_view_open(&v, cell)) {
		record_view_close(&v);
		return (struct timing_outcome){TV_INCONCLUSIVE, TR_TOO_FEW};
	}
	record_summaries(&v);
	out.notes = json_array();
	out.advice = json_array();

	size_t i;
	json_t *f;
	bool skipped = v.shipped && v.shipped->unsupported;
	json_array_foreach(json_object_get(cell, "checks"), i,
			   f) if (record_text(f, "check") && record_text(f, "status")) skipped |=
		strcmp(record_text(f, "check"), "plan") == 0 && strcmp(record_text(f, "status"), "skip") == 0;
	if (!skipped && (asked || ratio)) {
		if (asked && (not_timed || !v.selected || v.selected->unsupported))
			out.is = (struct timing_outcome){TV_REGRESSION, TR_NOT_TIMED};
		else if (asked)
			judge_selected(&v, &rule, env, more_to_come, &out);
		if (ratio)
			judge_ratio(&v, &rule, &out);
		if (asked)
			advise(&v, &out);
		double floor_ns = record_number(json_object_get(cell, "measure"), "floor_ns", 0),
		       t = median_of(&v, v.shipped);
		if (floor_ns > 0 && t <= 2 * floor_ns)
			note(&out, "%s is within 2 launch floors of %.0f ns: ratios are understated", v.shipped->name,
			     floor_ns);
		note_limit(cell, &out);
		put_timing(&v, &rule, &out);
	}
	json_decref(out.of_over);
	json_decref(out.advice);
	json_decref(out.notes);
	record_view_close(&v);
	return out.is;
}
