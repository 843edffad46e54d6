/* text_cell: one cell's record to a row, tallies, and a block where it failed. */
#include <ctype.h>
#include <stdlib.h>

#include "text_parts.h"

static const char *const check_names[TC_N] = {"data",      "memory", "identity", "repeat", "invariant",
					      "reference", "run",    "graph",    "plan",   "census"};

/* ---- tallies ------------------------------------------------------------------------------------------------------- */

static void tally_arm(struct text *t, struct tally *y, const char *arm, bool failed)
{
	arm = text_intern(t, arm);
	int i = 0;
	while (i < y->n_arms && y->arm[i] != arm)
		i++;
	if (i == TEXT_MAX_ARM_NAMES)
		return;
	if (i == y->n_arms) {
		y->arm[y->n_arms++] = arm;
		y->arm_failed[i] = false;
		y->arm_findings[i] = 0;
	}
	y->arm_failed[i] |= failed;
	y->arm_findings[i]++;
}

/* A record may hold any number: a sum that would not fit stays where it is. */
static void add_count(int64_t *sum, const json_t *f, const char *key)
{
	int64_t n = text_integer(f, key);
	if (n > 0 && n <= INT64_MAX - *sum)
		*sum += n;
}

static void tally_finding(struct text *t, struct tally *y, const json_t *f, bool failed)
{
	y->findings++;
	add_count(&y->launches, f, "launches");
	add_count(&y->launches_differ, f, "launches_differ");
	add_count(&y->rows, f, "rows");
	add_count(&y->rows_of, f, "rows_of");
	y->controls += json_is_true(json_object_get(f, "control"));
	double worst = text_number(f, "worst_over_allowed");
	if (worst > y->worst || (isfinite(worst) && !(y->worst > 0)))
		y->worst = worst;
	if (*text_get(f, "arm"))
		tally_arm(t, y, text_get(f, "arm"), failed);
	const char *kind = text_get(f, "kind"), *against = text_get(f, "against");
	int i = 0;
	while (i < y->n_kinds && strcmp(y->kind[i], kind) != 0)
		i++;
	if (*kind && i == y->n_kinds && i < 4)
		y->kind[y->n_kinds++] = text_intern(t, kind);
	if (*against) {
		y->against_differs |= y->against && strcmp(y->against, against) != 0;
		y->against = text_intern(t, against);
	}
}

void text_alike_key(const struct row *r, const char *reason, char key[TEXT_ALIKE_MAX])
{
	char *to = key;
	snprintf(key, TEXT_ALIKE_MAX, "%d %d %s %s %s", (int)r->status, r->diagnostic_slower, r->case_id, r->kernel,
		 reason);
	for (const char *s = key; *s; s++)
		if (!isdigit((unsigned char)*s) && *s != '.')
			*to++ = *s;
	*to = 0;
}

bool text_finding_is_bad(const json_t *f)
{
	const char *s = text_get(f, "status");
	return strcmp(s, "pass") != 0 && strcmp(s, "skip") != 0;
}

/* Returns whether every check of bits held: the census is about a ratio's worth, not about bits. */
static bool tally_cell(struct text *t, const json_t *cell, bool waived)
{
	bool seen[TC_N] = {false}, bad[TC_N] = {false}, right = true;
	const json_t *f;
	size_t i;
	json_array_foreach(json_object_get(cell, "checks"), i, f)
	{
		int k = 0;
		while (k < TC_N && strcmp(check_names[k], text_get(f, "check")) != 0)
			k++;
		if (k == TC_N || strcmp(text_get(f, "status"), "skip") == 0)
			continue;
		bool failed = text_finding_is_bad(f);
		seen[k] = true;
		bad[k] |= failed;
		right &= !failed || k == TC_CENSUS;
		tally_finding(t, &t->tally[k], f, failed);
	}
	for (int k = 0; k < TC_N; k++) {
		t->tally[k].cells += seen[k];
		t->tally[k].failed_cells += bad[k];
		t->tally[k].waived_cells += bad[k] && waived;
	}
	return right;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

static const json_t *find_arm(const json_t *cell, const char *name)
{
	const json_t *arm;
	size_t i;
	json_array_foreach(json_object_get(cell, "arms"), i,
			   arm) if (strcmp(text_get(arm, "name"), name) == 0) return arm;
	return NULL;
}

static void fill_arms(struct row *r, const json_t *cell)
{
	const json_t *arm;
	size_t i;
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		const json_t *s = json_object_get(arm, "summary");
		const char *role = text_get(arm, "role");
		if (!json_is_object(s) || strcmp(role, "null") == 0)
			continue;
		double ns = text_number(s, "median_ns");
		if (strcmp(role, "shipped") == 0) {
			r->shipped_ns = ns;
			r->n = (int)text_integer(s, "n");
		}
		if (r->selected && strcmp(r->selected, text_get(arm, "name")) == 0) {
			r->selected_ns = ns;
			r->peak = text_number(s, "peak_fraction");
		}
	}
}

/* The fastest arm; of the judged one the verdict's ratio counts, which is what stands beside it. */
static void fill_best(struct text *t, struct row *r, const json_t *cell)
{
	const char *judged = r->is_ratio ? r->of : r->selected;
	const json_t *arm;
	size_t i;
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		const json_t *s = json_object_get(arm, "summary");
		const char *role = text_get(arm, "role"), *name = text_get(arm, "name");
		if (!json_is_object(s) || strcmp(role, "null") == 0 || strcmp(role, "headroom") == 0)
			continue;
		const bool is_judged = judged && r->ratio > 0 && strcmp(judged, name) == 0;
		const double ratio = is_judged ? r->ratio : strcmp(role, "shipped") == 0 ? 1 : text_number(s, "ratio");
		if (isfinite(ratio) && !(r->best_ratio <= ratio)) {
			r->best_ratio = ratio;
			r->best_ns = text_number(s, "median_ns");
			r->best = text_intern(t, name);
		}
	}
}

/* The parameters that are no axis, as "5120x12288": what people call a shape. Nothing where there are more than three. */
static void fill_shape(struct text *t, struct row *r, const json_t *cell)
{
	char values[96] = "", names[96] = "", buf[32];
	const json_t *point = json_object_get(cell, "point");
	const char *key;
	json_t *x;
	int n = 0;
	json_object_foreach(json_object_get(cell, "params"), key, x)
	{
		size_t a = strlen(values), b = strlen(names);
		if (json_object_get(point, key) || !json_is_number(x))
			continue;
		snprintf(values + a, sizeof values - a, "%s%s", n ? "x" : "",
			 text_number_text(buf, json_number_value(x)));
		snprintf(names + b, sizeof names - b, "%s%.20s", n++ ? " x " : "", key);
	}
	if (n == 0 || n > 3)
		return;
	r->shape = text_intern(t, values);
	r->shape_names = text_intern(t, names);
}

static void fill_ratio(struct text *t, struct row *r, const json_t *cell, const json_t *check)
{
	const json_t *x = json_object_get(json_object_get(cell, "timing"), "of_over");
	const char *trouble = *text_get(x, "reason") ? text_get(x, "reason")
			      : r->status == ST_PASS ? ""
						     : text_get(cell, "status");
	r->is_ratio = true;
	r->of = text_intern(t, text_get(check, "of"));
	r->over = text_intern(t, text_get(check, "over"));
	r->trouble = *trouble ? text_intern(t, trouble) : NULL;
	fill_shape(t, r, cell);
	r->of_tflops = text_number(json_object_get(find_arm(cell, text_get(check, "of")), "summary"), "tflop_per_s");
	r->over_tflops =
		text_number(json_object_get(find_arm(cell, text_get(check, "over")), "summary"), "tflop_per_s");
	r->selected_ns = text_number(x, "of_ns");
	r->shipped_ns = text_number(x, "over_ns");
	r->ratio = text_number(x, "ratio");
	r->lo = exp(text_number(x, "lo"));
	r->hi = exp(text_number(x, "hi"));
	r->n = (int)text_integer(x, "n");
	r->timed = json_is_object(x);
}

static struct row *add_row(struct text *t, const json_t *cell)
{
	if (t->n_rows == t->cap_rows) {
		size_t cap = t->cap_rows ? t->cap_rows * 2 : 64;
		struct row *p = realloc(t->row, cap * sizeof *p);
		if (!p)
			abort();
		t->row = p;
		t->cap_rows = cap;
	}
	struct row *r = &t->row[t->n_rows++];
	*r = (struct row){.shipped_ns = NAN,
			  .selected_ns = NAN,
			  .ratio = NAN,
			  .lo = NAN,
			  .hi = NAN,
			  .best_ratio = NAN,
			  .best_ns = NAN,
			  .peak = NAN,
			  .of_tflops = NAN,
			  .over_tflops = NAN};
	r->case_id = text_intern(t, text_get(cell, "case"));
	r->kernel = text_intern(t, text_get(cell, "kernel"));
	r->geometry = text_intern(t, text_get(cell, "geometry"));
	r->data = text_intern(t, text_get(cell, "data"));
	r->axes = text_axes(t, json_object_get(cell, "point"), r->at);
	r->plan_index = text_integer(cell, "plan_index");
	r->status = status_of(text_get(cell, "status"));
	r->gating = json_is_true(json_object_get(cell, "gating"));
	const char *selected = json_string_value(json_object_get(cell, "selected"));
	r->selected = selected ? text_intern(t, selected) : NULL;
	const json_t *timing = json_object_get(cell, "timing"), *check = json_object_get(cell, "ratio_check");
	fill_arms(r, cell);
	if (json_is_object(check)) {
		fill_ratio(t, r, cell, check);
		return r;
	}
	if (!json_is_object(timing))
		return r;
	r->timed = isfinite(r->shipped_ns);
	r->judged = r->selected != NULL;
	r->margin = text_number(cell, "margin");
	r->floor_ns = (double)text_integer(cell, "margin_floor_ns");
	r->within = strcmp(text_get(timing, "verdict"), "pass") == 0;
	r->invalid = strcmp(text_get(timing, "verdict"), "invalid") == 0;
	r->undecided = strcmp(text_get(timing, "verdict"), "inconclusive") == 0;
	r->warned = json_is_true(json_object_get(timing, "warned"));
	r->tail = json_is_true(json_object_get(json_object_get(timing, "tail"), "flagged"));
	r->trivial = strcmp(text_get(timing, "reason"), "trivial") == 0;
	r->diagnostic_slower = !r->gating && strcmp(text_get(timing, "verdict"), "regression") == 0;
	r->ratio = text_number(timing, "ratio");
	r->lo = exp(text_number(timing, "lo"));
	r->hi = exp(text_number(timing, "hi"));
	if (isfinite(text_number(timing, "n")))
		r->n = (int)text_integer(timing, "n");
	const json_t *null = json_object_get(timing, "null");
	double noise = text_number(timing, "noise");
	const char *limit = json_is_object(timing) ? record_limit(cell) : NULL;
	t->limit = limit ? text_intern(t, limit) : t->limit;
	t->n_limited += limit != NULL;
	const double taken =
		text_number(json_object_get(json_object_get(cell, "device_state"), "after"), "preemptions");
	const double wall_ns = text_number(json_object_get(cell, "measure"), "wall_ns");
	if (isfinite(taken) && isfinite(wall_ns) && json_is_object(timing)) {
		t->preemptions += taken;
		t->preempted_s += 1e-9 * wall_ns;
	}
	t->null_cells += json_is_object(null);
	t->null_biased += json_is_true(json_object_get(null, "biased"));
	if (isfinite(noise)) {
		t->noise_lo = fmin(t->noise_lo, noise);
		t->noise_hi = fmax(t->noise_hi, noise);
	}
	return r;
}

const char *text_yardstick(const struct text *t)
{
	return t->pair ? "base" : "shipped";
}

static void take_advice(struct text *t, const struct row *r, const json_t *cell)
{
	const json_t *list = json_object_get(json_object_get(cell, "timing"), "advice"), *a = NULL;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *x = json_array_get(list, i);
		if (!a || text_number(x, "ratio") < text_number(a, "ratio"))
			a = x;
	}
	if (!a || !(text_number(a, "ratio") > 0))
		return;
	const char *arm = text_intern(t, text_get(a, "arm"));
	int i = 0;
	while (i < t->n_advice &&
	       !(t->advice[i].kernel == r->kernel && t->advice[i].arm == arm && t->advice[i].selected == r->selected))
		i++;
	if (i == TEXT_MAX_LINES)
		return;
	if (i == t->n_advice)
		t->advice[t->n_advice++] = (struct advice){.kernel = r->kernel, .arm = arm, .selected = r->selected};
	t->advice[i].cells++;
	t->advice[i].ln_sum += log(text_number(a, "ratio"));
}

/* ---- a cell --------------------------------------------------------------------------------------------------------- */

static bool is_failure(enum cell_status s)
{
	return s <= ST_REGRESSION || s == ST_XPASS;
}

void text_upper(const char *s, char out[24])
{
	size_t i = 0;
	for (; s[i] && i < 23; i++)
		out[i] = s[i] >= 'a' && s[i] <= 'z' ? (char)(s[i] - 32) : s[i];
	out[i] = 0;
}

const char *text_short_id(const json_t *cell)
{
	const char *id = text_get(cell, "id"), *slash = strchr(id, '/');
	return slash ? slash + 1 : id;
}

void text_take_cell(struct text *t, const json_t *cell)
{
	struct row *r = add_row(t, cell);
	fill_best(t, r, cell);
	enum cell_status s = r->status < ST_N ? r->status : ST_ERROR;
	t->by_status[s]++;
	t->gated += r->gating && r->judged;
	t->timed_cells += r->judged && r->timed;
	t->warned += r->warned;
	t->tails += r->tail;
	t->rounds += text_integer(json_object_get(cell, "measure"), "rounds");
	if (tally_cell(t, cell, s == ST_XFAIL) && s != ST_ERROR && s != ST_TIMEOUT && s != ST_SKIP)
		t->kept_right++;
	if (r->judged && !r->is_ratio)
		if (!t->pair) /* a head that is faster is in the table; there is none to edit */
			take_advice(t, r, cell);
	if (t->o.verbose && !t->o.quiet)
		text_verbose_cell(t, r, cell);
	char word[24];
	text_upper(text_get(cell, "status"), word);
	if (text_disbelieve(t, r, cell))
		return;
	if (is_failure(s) && t->n_blocks < TEXT_MAX_BLOCKS)
		text_add_block(t, r, cell);
	else if (is_failure(s))
		text_add_line(t, r, cell, word);
	else if (s == ST_INCONCLUSIVE)
		text_add_line(t, r, cell, "undecided");
	else if (r->diagnostic_slower)
		text_add_line(t, r, cell, "slower");
	else if (s == ST_SKIP || s == ST_XFAIL)
		text_add_line(t, r, cell, s == ST_SKIP ? "skip" : "waived");
}
