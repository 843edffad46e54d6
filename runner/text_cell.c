/* text_cell: one cell's record to a row, tallies, and a block where it failed. */
#define _GNU_SOURCE /* open_memstream, asprintf */
#include <stdlib.h>

#include "text_parts.h"

static const char *const check_names[TC_N] = {"data",      "memory", "identity", "repeat", "invariant",
					      "reference", "run",    "graph",    "plan"};

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
	}
	y->arm_failed[i] |= failed;
}

static void tally_finding(struct text *t, struct tally *y, const json_t *f, bool failed)
{
	y->findings++;
	y->launches += text_integer(f, "launches");
	y->launches_differ += text_integer(f, "launches_differ");
	y->rows += text_integer(f, "rows");
	y->rows_of += text_integer(f, "rows_of");
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

static bool finding_is_bad(const json_t *f)
{
	const char *s = text_get(f, "status");
	return strcmp(s, "pass") != 0 && strcmp(s, "skip") != 0;
}

/* Returns whether every check of bits held. */
static bool tally_cell(struct text *t, const json_t *cell)
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
		bool failed = finding_is_bad(f);
		seen[k] = true;
		bad[k] |= failed;
		right &= !failed;
		tally_finding(t, &t->tally[k], f, failed);
	}
	for (int k = 0; k < TC_N; k++) {
		t->tally[k].cells += seen[k];
		t->tally[k].failed_cells += bad[k];
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

static void fill_arms(struct text *t, struct row *r, const json_t *cell)
{
	const json_t *arm;
	size_t i;
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		const json_t *s = json_object_get(arm, "summary");
		const char *role = text_get(arm, "role");
		if (!json_is_object(s) || strcmp(role, "null") == 0)
			continue;
		double ratio = text_number(s, "ratio"), ns = text_number(s, "median_ns");
		if (strcmp(role, "shipped") == 0) {
			ratio = 1;
			r->shipped_ns = ns;
			r->n = (int)text_integer(s, "n");
		}
		if (strcmp(role, "headroom") != 0 && isfinite(ratio) && !(r->best_ratio <= ratio)) {
			r->best_ratio = ratio;
			r->best_ns = ns;
			r->best = text_intern(t, text_get(arm, "name"));
		}
		if (r->selected && strcmp(r->selected, text_get(arm, "name")) == 0) {
			r->selected_ns = ns;
			r->peak = text_number(s, "peak_fraction");
		}
	}
}

static void fill_ratio(struct row *r, const json_t *cell, const json_t *check)
{
	const json_t *x = json_object_get(json_object_get(cell, "timing"), "of_over");
	r->is_ratio = true;
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
	fill_arms(t, r, cell);
	if (json_is_object(check)) {
		fill_ratio(r, cell, check);
		return r;
	}
	if (!json_is_object(timing))
		return r;
	r->timed = isfinite(r->shipped_ns);
	r->judged = r->selected != NULL;
	r->margin = text_number(cell, "margin");
	r->floor_ns = (double)text_integer(cell, "margin_floor_ns");
	r->within = strcmp(text_get(timing, "verdict"), "pass") == 0;
	r->warned = json_is_true(json_object_get(timing, "warned"));
	r->tail = json_is_true(json_object_get(json_object_get(timing, "tail"), "flagged"));
	r->trivial = strcmp(text_get(timing, "reason"), "trivial") == 0;
	r->diagnostic_slower = !r->gating && strcmp(text_get(timing, "verdict"), "regression") == 0;
	r->ratio = text_number(timing, "ratio");
	r->lo = exp(text_number(timing, "lo"));
	r->hi = exp(text_number(timing, "hi"));
	if (isfinite(text_number(timing, "n")))
		r->n = (int)text_number(timing, "n");
	const json_t *null = json_object_get(timing, "null");
	double noise = text_number(timing, "noise");
	t->null_cells += json_is_object(null);
	t->null_biased += json_is_true(json_object_get(null, "biased"));
	if (isfinite(noise)) {
		t->noise_lo = fmin(t->noise_lo, noise);
		t->noise_hi = fmax(t->noise_hi, noise);
	}
	return r;
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

/* ---- blocks -------------------------------------------------------------------------------------------------------- */

/* "out[t=2,h=17]", as the record has it, or from coordinates alone. */
static const char *at_text(const json_t *at, const char *tensor, char *buf, size_t cap)
{
	const char *key, *comma = "";
	json_t *value;
	if (json_is_string(at))
		return json_string_value(at);
	size_t i, n = (size_t)snprintf(buf, cap, "%s[", tensor);
	json_t *j = (json_t *)(uintptr_t)at;
	json_object_foreach(j, key, value)
	{
		if (n < cap)
			n += (size_t)snprintf(buf + n, cap - n, "%s%s=%lld", comma, key,
					      (long long)json_number_value(value));
		comma = ",";
	}
	json_array_foreach(at, i, value)
	{
		if (n < cap)
			n += (size_t)snprintf(buf + n, cap - n, "%s%lld", comma, (long long)json_number_value(value));
		comma = ",";
	}
	if (n < cap)
		snprintf(buf + n, cap - n, "]");
	return buf;
}

/* A value as the record has it: number, or text where no number says it ("nan"). */
static const char *value_text(const json_t *v, char buf[32])
{
	if (json_is_string(v))
		return json_string_value(v);
	if (!json_is_number(v))
		return strcpy(buf, "non-finite");
	snprintf(buf, 32, "%.9g", json_number_value(v));
	return buf;
}

static void differ_block(FILE *f, int width, const json_t *x)
{
	const json_t *first = json_object_get(x, "first");
	char where[160], got[32], want[32], n[32], of[32];
	if (json_is_object(first)) {
		char ulp[48] = "";
		if (json_is_number(json_object_get(x, "ulp_max")))
			snprintf(ulp, sizeof ulp, "   %s ULP at most", text_count(n, text_integer(x, "ulp_max")));
		text_field(f, width, "first", "%s  %s %s  for  %s %s%s",
			   at_text(json_object_get(first, "at"), text_get(x, "tensor"), where, sizeof where),
			   text_get(first, "got_bits"), value_text(json_object_get(first, "got"), got),
			   text_get(first, "want_bits"), value_text(json_object_get(first, "want"), want), ulp);
	}
	if (text_integer(x, "of") > 0) {
		char launches[128] = "";
		if (text_integer(x, "launches") > 1)
			snprintf(launches, sizeof launches, "; %lld of %lld launches%s",
				 (long long)text_integer(x, "launches_differ"), (long long)text_integer(x, "launches"),
				 json_is_true(json_object_get(x, "same_elements")) ? ", the same elements: not a race"
				 : json_is_false(json_object_get(x, "same_elements"))
					 ? ", not the same elements: a race"
					 : "");
		text_field(f, width, "how many", "%s of %s%s", text_count(n, text_integer(x, "differ")),
			   text_count(of, text_integer(x, "of")), launches);
	}
}

static void worst_block(FILE *f, int width, const json_t *x)
{
	const json_t *w = json_object_get(x, "worst");
	char where[160], got[32], want[32], n[32], of[32];
	if (json_is_object(w))
		text_field(f, width, "worst", "%s  %s for %s, error %.3g, allowed %.3g",
			   at_text(json_object_get(w, "at"), text_get(x, "tensor"), where, sizeof where),
			   value_text(json_object_get(w, "got"), got), value_text(json_object_get(w, "want"), want),
			   text_number(w, "error"), text_number(w, "allowed"));
	if (text_integer(x, "of") > 0)
		text_field(f, width, "how many", "%s of %s outside", text_count(n, text_integer(x, "differ")),
			   text_count(of, text_integer(x, "of")));
}

/* The findings that name the status, at most four; the rest counted. */
static void findings_block(FILE *f, int width, const json_t *cell, const char *status)
{
	const json_t *x;
	size_t i;
	int shown = 0, more = 0;
	json_array_foreach(json_object_get(cell, "checks"), i, x)
	{
		if (!finding_is_bad(x))
			continue;
		if (shown == 4) {
			more++;
			continue;
		}
		shown++;
		const char *arm = text_get(x, "arm"), *check = text_get(x, "check");
		text_field(f, width, check, "%s%s%s%s%s", arm, *arm ? " " : "",
			   *text_get(x, "against") ? "against " : "", text_get(x, "against"), "");
		if (*text_get(x, "text"))
			text_field(f, width, "", "%s", text_get(x, "text"));
		if (strcmp(check, "reference") == 0)
			worst_block(f, width, x);
		else
			differ_block(f, width, x);
	}
	if (more)
		text_field(f, width, "", "and %d more findings of this cell in the record", more);
}

static void timing_block(FILE *f, int width, const struct row *r, const json_t *cell)
{
	char arm[24], shipped[24], lo[24], hi[24], by[24];
	const json_t *timing = json_object_get(cell, "timing"), *confirm = json_object_get(cell, "confirm");
	if (strcmp(text_get(cell, "selection"), "not_timed") == 0) {
		text_field(f, width, "table", "%s is named by the table and not timed here; time it or fix the table",
			   text_get(cell, "selected"));
	} else if (isfinite(r->ratio)) {
		text_field(f, width, "size", "%s us for %s us  %s [%s, %s], margin %.3g %%   n=%d",
			   text_us(arm, r->selected_ns), text_us(shipped, r->shipped_ns),
			   text_percent(by, r->ratio - 1), text_percent(lo, r->lo - 1), text_percent(hi, r->hi - 1),
			   100 * (exp(text_number(timing, "ln_margin")) - 1), r->n);
	}
	if (json_is_object(confirm)) {
		double p = text_number(confirm, "p"), e = text_number(confirm, "estimate");
		text_field(f, width, "again", "second process: %s, n=%lld, p=%.2g: %s", text_percent(by, exp(e) - 1),
			   (long long)text_integer(confirm, "n"), p,
			   json_is_true(json_object_get(confirm, "confirmed")) ? "agrees" : "does not agree");
	}
}

static void rule_block(FILE *f, int width, const json_t *cell, bool timing)
{
	if (timing && *text_get(cell, "selected_row"))
		text_field(f, width, "rule", "margin %s;  table row %s", text_get(cell, "rule"),
			   text_get(cell, "selected_row"));
	else if (timing)
		text_field(f, width, "rule", "margin %s", text_get(cell, "rule"));
	const json_t *w = json_object_get(cell, "waiver");
	if (json_is_object(w))
		text_field(f, width, "waiver", "%s expects %s until %s: %s", text_get(w, "id"), text_get(w, "expect"),
			   *text_get(w, "until") ? text_get(w, "until") : "further notice", text_get(w, "reason"));
	text_field(f, width, "rerun", "%s", text_get(cell, "rerun"));
}

static bool is_failure(enum cell_status s)
{
	return s <= ST_REGRESSION || s == ST_XPASS;
}

static void upper(const char *s, char out[24])
{
	size_t i = 0;
	for (; s[i] && i < 23; i++)
		out[i] = s[i] >= 'a' && s[i] <= 'z' ? (char)(s[i] - 32) : s[i];
	out[i] = 0;
}

/* id without the suite's name, which every line would repeat. */
static const char *short_id(const json_t *cell)
{
	const char *id = text_get(cell, "id"), *slash = strchr(id, '/');
	return slash ? slash + 1 : id;
}

static void add_block(struct text *t, const struct row *r, const json_t *cell)
{
	char *text = NULL, word[24];
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		return;
	const char *status = text_get(cell, "status");
	const bool timing = r->status == ST_REGRESSION;
	upper(status, word);
	text_paint(t, f, TEXT_RED, "%-11s", word);
	fprintf(f, " %s", short_id(cell));
	if (timing)
		fprintf(f, "   served %s", text_get(cell, "selected"));
	fputc('\n', f);
	if (timing)
		timing_block(f, t->o.width, r, cell);
	else {
		if (*text_get(cell, "reason"))
			text_field(f, t->o.width, "reason", "%s", text_get(cell, "reason"));
		findings_block(f, t->o.width, cell, status);
	}
	rule_block(f, t->o.width, cell, timing);
	fclose(f);
	t->block[t->n_blocks++] = (struct block){text, text_intern(t, text_get(cell, "id")), r->status};
}

static void add_line(struct text *t, const struct row *r, const json_t *cell, const char *word)
{
	char *text = NULL, ratio[24], lo[24], hi[24], price[64] = "", number[96] = "";
	const json_t *timing = json_object_get(cell, "timing");
	if (t->n_lines == 3 * TEXT_MAX_LINES) {
		t->lines_left_out++;
		return;
	}
	if (r->status == ST_INCONCLUSIVE && isfinite(r->ratio)) {
		double more = text_number(timing, "rounds_more"),
		       wall = text_number(json_object_get(cell, "measure"), "wall_ns");
		double per_round = wall / fmax(1, text_number(json_object_get(cell, "measure"), "rounds"));
		char seconds[24];
		if (more > 0 && isfinite(per_round))
			snprintf(price, sizeof price, "   %.0f more rounds, %s", more,
				 text_seconds(seconds, more * per_round));
		else if (more > 0)
			snprintf(price, sizeof price, "   %.0f more rounds", more);
		snprintf(number, sizeof number, "   %s [%s, %s]", text_ratio(ratio, r->ratio), text_ratio(lo, r->lo),
			 text_ratio(hi, r->hi));
	}
	const char *reason = text_get(cell, "reason");
	if (r->status == ST_INCONCLUSIVE && *number) /* the code is short; the sentence repeats the number */
		reason = text_get(timing, "reason");
	if (asprintf(&text, "%-11s %s%s%s%s%s%s", word, short_id(cell), number, *reason ? "   (" : "", reason,
		     *reason ? ")" : "", price) < 0)
		return;
	t->line[t->n_lines++] = (struct block){text, NULL, r->status};
}

/* ---- with -v: everything about a cell ------------------------------------------------------------------------------- */

static void verbose_cell(struct text *t, const struct row *r, const json_t *cell)
{
	FILE *out = t->o.out;
	const json_t *x, *arm;
	size_t i;
	char us[24], a[24], b[24], c[24];
	char word[24];
	upper(text_get(cell, "status"), word);
	text_paint(t, out, TEXT_BOLD, "== %s", short_id(cell));
	fprintf(out, "  %s\n", word);
	if (*text_get(cell, "reason"))
		text_field(out, t->o.width, "reason", "%s", text_get(cell, "reason"));
	/* Identity in one line an outcome: the arms that agree together, each that does not alone. */
	const char *same[TEXT_MAX_ARM_NAMES];
	int n_same = 0;
	const char *against = "";
	json_array_foreach(json_object_get(cell, "checks"), i, x)
	{
		if (strcmp(text_get(x, "check"), "identity") == 0 && !finding_is_bad(x) &&
		    n_same < TEXT_MAX_ARM_NAMES) {
			same[n_same++] = text_get(x, "arm");
			against = text_get(x, "against");
		}
	}
	if (n_same) {
		fprintf(out, "   identity ");
		text_arm_list(out, same, n_same);
		fprintf(out, " BIT-IDENTICAL to %s\n", *against ? against : "shipped");
	}
	json_array_foreach(json_object_get(cell, "checks"), i, x)
	{
		const char *check = text_get(x, "check");
		if (strcmp(check, "identity") == 0 && !finding_is_bad(x))
			continue;
		char upper_status[24];
		upper(text_get(x, "status"), upper_status);
		text_field(out, t->o.width, check, "%s%s%s%s%s", text_get(x, "arm"), *text_get(x, "arm") ? ": " : "",
			   finding_is_bad(x) ? upper_status : text_get(x, "status"), *text_get(x, "text") ? ", " : "",
			   text_get(x, "text"));
	}
	char *line = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&line, &n);
	if (!f)
		return;
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		double ns = text_number(json_object_get(arm, "summary"), "median_ns");
		if (isfinite(ns))
			fprintf(f, "%s %s  ", text_get(arm, "name"), text_us(us, ns));
		else if (*text_get(arm, "unsupported"))
			fprintf(f, "%s not here (%s)  ", text_get(arm, "name"), text_get(arm, "unsupported"));
	}
	if (r->timed)
		fprintf(f, "us (median of %d interleaved rounds)", r->n);
	fclose(f);
	if (*line)
		text_field(out, t->o.width, "timing", "%s", line);
	free(line);
	if (r->judged && r->timed)
		text_field(out, t->o.width, "served", "%s  %s of shipped [%s, %s]  %s%s", r->selected,
			   text_ratio(a, r->ratio), text_ratio(b, r->lo), text_ratio(c, r->hi),
			   text_get(json_object_get(cell, "timing"), "verdict"), r->gating ? "" : " (diagnostic)");
	json_array_foreach(json_object_get(json_object_get(cell, "timing"), "notes"), i, x)
		text_field(out, t->o.width, "note", "%s", json_string_value(x) ? json_string_value(x) : "");
	json_array_foreach(json_object_get(cell, "notes"), i, x)
		text_field(out, t->o.width, "note", "%s", json_string_value(x) ? json_string_value(x) : "");
}

void text_take_cell(struct text *t, const json_t *cell)
{
	struct row *r = add_row(t, cell);
	enum cell_status s = r->status < ST_N ? r->status : ST_ERROR;
	t->by_status[s]++;
	t->gated += r->gating && r->judged;
	t->timed_cells += r->judged && r->timed;
	t->warned += r->warned;
	t->tails += r->tail;
	t->rounds += text_integer(json_object_get(cell, "measure"), "rounds");
	if (tally_cell(t, cell) && s != ST_ERROR && s != ST_TIMEOUT && s != ST_SKIP)
		t->kept_right++;
	if (r->judged && !r->is_ratio)
		take_advice(t, r, cell);
	if (t->o.verbose && !t->o.quiet)
		verbose_cell(t, r, cell);
	char word[24];
	upper(text_get(cell, "status"), word);
	if (is_failure(s) && t->n_blocks < TEXT_MAX_BLOCKS)
		add_block(t, r, cell);
	else if (is_failure(s))
		add_line(t, r, cell, word);
	else if (s == ST_INCONCLUSIVE)
		add_line(t, r, cell, "undecided");
	else if (r->diagnostic_slower)
		add_line(t, r, cell, "slower");
	else if (s == ST_SKIP || s == ST_XFAIL)
		add_line(t, r, cell, s == ST_SKIP ? "skip" : "waived");
}
