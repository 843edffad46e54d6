/* text_ratio: what a ratio check found, a block for each case, kernel, distribution and point: a line a shape, the means over the shapes,
 * and under them the controls that say whether to believe them. */
#include <stdlib.h>

#include "text_parts.h"

enum { MAX_GROUPS = 24, MAX_SHAPES = 16 };

struct widths {
	int geometry, shape, of, over, of_rate, over_rate, gap;
	char of_title[40], over_title[40], of_rate_title[40], over_rate_title[40];
};

/* Columns beside those of struct widths: ratio, interval, delta pp, n. */
enum { W_RATIO = 6, W_INTERVAL = 15, W_PP = 8, W_RATE = 6, W_N = 2, N_COLUMNS = 10 };

static bool same_group(const struct row *a, const struct row *b)
{
	if (a->case_id != b->case_id || a->kernel != b->kernel || a->data != b->data || a->axes != b->axes)
		return false;
	for (int i = 0; i < a->axes->n; i++)
		if (a->at[i] != b->at[i])
			return false;
	return true;
}

static bool is_of(const struct row *r, const json_t *aggregate)
{
	const json_t *point = json_object_get(aggregate, "point");
	if (strcmp(text_get(aggregate, "case"), r->case_id) != 0 ||
	    strcmp(text_get(aggregate, "kernel"), r->kernel) != 0 ||
	    strcmp(text_get(aggregate, "data"), r->data) != 0 || json_object_size(point) != (size_t)r->axes->n)
		return false;
	for (int i = 0; i < r->axes->n; i++)
		if (text_number(point, r->axes->name[i]) != r->at[i])
			return false;
	return true;
}

static const json_t *aggregate_of(const struct text *t, const struct row *r)
{
	size_t i;
	const json_t *x;
	json_array_foreach(t->aggregate, i, x) if (is_of(r, x)) return x;
	return NULL;
}

/* As the seed of such benches prints it: milliseconds, four digits. */
static char *ms_text(char buf[24], double ns)
{
	const double ms = ns / 1e6;
	if (!isfinite(ms))
		strcpy(buf, "-");
	else
		snprintf(buf, 24, ms < 0.1 ? "%.5f" : ms < 1000 ? "%.4f" : "%.1f", ms);
	return buf;
}

static char *interval_text(char buf[40], double lo, double hi)
{
	char a[24], b[24];
	if (!isfinite(lo) && !isfinite(hi))
		strcpy(buf, "-");
	else
		snprintf(buf, 40, "%.12s .. %.12s", isfinite(lo) ? text_ratio(a, lo) : "0",
			 isfinite(hi) ? text_ratio(b, hi) : "inf");
	return buf;
}

static char *tflops_text(char buf[24], double x)
{
	if (!isfinite(x))
		strcpy(buf, "-");
	else
		snprintf(buf, 24, x < 10 ? "%.3f" : "%.1f", x);
	return buf;
}

static void heading(struct text *t, const struct row *r)
{
	FILE *f = t->o.out;
	char buf[32];
	fprintf(f, "ratio    %s, %s, data %s", r->case_id, r->kernel, r->data);
	for (int i = 0; i < r->axes->n; i++)
		fprintf(f, ", %s=%s", r->axes->name[i], text_number_text(buf, r->at[i]));
	fprintf(f, ": t(%s) / t(%s)\n", r->of, r->over);
}

/* trouble that the verdict names anyway is not said of each shape. */
static void shape_line(struct text *t, const struct widths *w, const struct row *r, const char *verdict_reason)
{
	char a[24], b[24], c[24], d[40], e[24], g[24], pp[24] = "-";
	const int gap = w->gap;
	const char *trouble =
		r->trouble && strncmp(verdict_reason, r->trouble, strlen(r->trouble)) != 0 ? r->trouble : NULL;
	if (r->ratio > 0)
		snprintf(pp, sizeof pp, "%+.1f", 100 * (r->ratio - 1));
	fprintf(t->o.out, "%-*s%*s%-*s%*s%*s%*s%*s%-*s", w->geometry, r->geometry, gap, "", w->shape,
		r->shape ? r->shape : "", gap + w->of, ms_text(a, r->selected_ns), gap + w->over,
		ms_text(b, r->shipped_ns), gap + W_RATIO, r->ratio > 0 ? text_ratio(c, r->ratio) : "-", gap, "",
		W_INTERVAL, interval_text(d, r->lo, r->hi));
	fprintf(t->o.out, "%*s%*s%*s%*d%s%s\n", gap + W_PP, pp, gap + w->of_rate, tflops_text(e, r->of_tflops),
		gap + w->over_rate, tflops_text(g, r->over_tflops), gap + W_N, r->n, trouble ? "  " : "",
		trouble ? trouble : "");
}

static void mean_line(struct text *t, const struct widths *w, const char *name, const json_t *x)
{
	char label[64], c[24], d[40];
	if (!json_is_object(x))
		return;
	snprintf(label, sizeof label, "%s, %lld of %lld", name, (long long)text_integer(x, "n"),
		 (long long)text_integer(x, "of"));
	const int left = w->geometry + w->shape + w->of + w->over + 3 * w->gap;
	const double ratio = text_number(x, "ratio");
	fprintf(t->o.out, "%-*s%*s%*s%-*s", left, label, w->gap + W_RATIO, ratio > 0 ? text_ratio(c, ratio) : "-",
		w->gap, "", W_INTERVAL, interval_text(d, text_number(x, "lo"), text_number(x, "hi")));
	if (ratio > 0)
		fprintf(t->o.out, "%+*.1f\n", w->gap + W_PP, 100 * (ratio - 1));
	else
		fprintf(t->o.out, "%*s\n", w->gap + W_PP, "-");
}

/* What the block before said of the same control: long sentences are said once. */
struct told {
	const char *code, *issue; /* NULL: nothing yet */
};

static void control_line(struct text *t, const char *label, const json_t *c, const char *not_asked, const char **told)
{
	const char *status = text_get(c, "status"), *text = text_get(c, "text");
	const char *word = strcmp(status, "pass") == 0      ? "holds"
			   : strcmp(status, "invalid") == 0 ? "BROKEN"
							    : "not looked at";
	if (!json_is_object(c)) {
		text_field(t->o.out, t->o.width, label, "%s", not_asked);
		*told = NULL;
		return;
	}
	if (*told && strcmp(*told, text) == 0)
		text_field(t->o.out, t->o.width, label, "%s, as above", word);
	else
		text_field(t->o.out, t->o.width, label, "%s: %s", word, text);
	*told = text;
}

static void agree_line(struct text *t, const json_t *a)
{
	const json_t *holds = json_object_get(a, "holds");
	if (!json_is_object(a))
		return;
	if (json_is_null(holds))
		text_field(t->o.out, t->o.width, "data", "one distribution alone: nothing to agree with");
	else
		text_field(t->o.out, t->o.width, "data",
			   "%s: over %lld distributions the ratios differ by %.2g (may by %.2g, or where their "
			   "intervals overlap)",
			   json_is_true(holds) ? "agree" : "DISAGREE", (long long)text_integer(a, "distributions"),
			   text_number(a, "difference"), text_number(a, "tolerance"));
}

static void bar_line(struct text *t, const json_t *x)
{
	const json_t *bar = json_object_get(x, "bar"), *mean = json_object_get(x, text_get(bar, "by"));
	char lo[32] = "an unknown ratio";
	if (!json_is_object(bar))
		return;
	if (isfinite(text_number(mean, "lo")))
		snprintf(lo, sizeof lo, "%+.1f pp", 100 * (text_number(mean, "lo") - 1));
	text_field(t->o.out, t->o.width, "bar", "at least %+.3g pp, by the lower end of the %s: %s, %s%s",
		   100 * (text_number(bar, "at_least") - 1), text_get(bar, "by"), lo,
		   json_is_true(json_object_get(bar, "met")) ? "met" : "MISSED",
		   strcmp(text_get(x, "verdict"), "invalid") == 0 ? ", were it believed" : "");
}

static void controls(struct text *t, const json_t *x, struct told *told)
{
	const json_t *c = json_object_get(x, "controls"), *null = json_object_get(c, "null");
	agree_line(t, json_object_get(x, "agree"));
	if (text_integer(null, "of") > 0)
		text_field(t->o.out, t->o.width, "null arm", "differs from itself in %lld of %lld cells",
			   (long long)text_integer(null, "biased"), (long long)text_integer(null, "of"));
	else
		text_field(t->o.out, t->o.width, "null arm", "none ran");
	control_line(t, "code", json_object_get(c, "machine_code"),
		     "not compared: the suite does not say what may differ", &told->code);
	control_line(t, "issue", json_object_get(c, "issue_interval"),
		     "intervals not compared: the suite asks for no equal_issue_interval", &told->issue);
	bar_line(t, x);
	if (strcmp(text_get(x, "verdict"), "invalid") == 0) {
		char *text = NULL;
		size_t n;
		FILE *f = open_memstream(&text, &n);
		if (!f)
			abort();
		/* The sentence of a control stands above already. */
		const char *reason = text_get(x, "reason"), *colon = strchr(reason, ':');
		const bool said = strncmp(reason, "confounded", 10) == 0 || strncmp(reason, "unproven", 8) == 0;
		fprintf(f, "NOT BELIEVED, %.*s", said && colon ? (int)(colon - reason) : (int)strlen(reason), reason);
		fclose(f);
		text_field(t->o.out, t->o.width, "verdict", "%s", text);
		free(text);
	}
}

static int wider(int a, int b)
{
	return a > b ? a : b;
}

static void widths_of(const struct text *t, const struct row *r, struct widths *w)
{
	char buf[24];
	*w = (struct widths){.geometry = 8, .shape = r->shape_names ? text_columns(r->shape_names) : 0, .gap = 2};
	snprintf(w->of_title, sizeof w->of_title, "%.30s ms", r->of);
	snprintf(w->over_title, sizeof w->over_title, "%.30s ms", r->over);
	snprintf(w->of_rate_title, sizeof w->of_rate_title, "%.30s TF/s", r->of);
	snprintf(w->over_rate_title, sizeof w->over_rate_title, "%.30s TF/s", r->over);
	w->of = text_columns(w->of_title);
	w->over = text_columns(w->over_title);
	w->of_rate = wider(W_RATE, text_columns(w->of_rate_title));
	w->over_rate = wider(W_RATE, text_columns(w->over_rate_title));
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct row *x = &t->row[i];
		if (!x->is_ratio || !same_group(x, r))
			continue;
		w->geometry = wider(w->geometry, text_columns(x->geometry));
		w->shape = wider(w->shape, x->shape ? text_columns(x->shape) : 0);
		w->of = wider(w->of, (int)strlen(ms_text(buf, x->selected_ns)));
		w->over = wider(w->over, (int)strlen(ms_text(buf, x->shipped_ns)));
	}
	const int columns = w->geometry + w->shape + w->of + w->over + W_RATIO + W_INTERVAL + W_PP + w->of_rate +
			    w->over_rate + W_N;
	if (columns + (N_COLUMNS - 1) * w->gap > t->o.width)
		w->gap = 1;
}

static void group_block(struct text *t, const struct row *first, struct told *told)
{
	const json_t *x = aggregate_of(t, first);
	struct widths w;
	int shown = 0, hidden = 0;
	widths_of(t, first, &w);
	heading(t, first);
	fprintf(t->o.out, "%-*s%*s%-*s%*s%*s%*s%*s%-*s%*s%*s%*s%*s\n", w.geometry, "geometry", w.gap, "", w.shape,
		first->shape_names ? first->shape_names : "", w.gap + w.of, w.of_title, w.gap + w.over, w.over_title,
		w.gap + W_RATIO, "ratio", w.gap, "", W_INTERVAL, text_interval_title(t), w.gap + W_PP, "delta pp",
		w.gap + w.of_rate, w.of_rate_title, w.gap + w.over_rate, w.over_rate_title, w.gap + W_N, "n");
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct row *r = &t->row[i];
		if (!r->is_ratio || !same_group(r, first))
			continue;
		if (!t->o.verbose && shown == MAX_SHAPES) {
			hidden++;
			continue;
		}
		shown++;
		shape_line(t, &w, r, text_get(x, "reason"));
	}
	if (hidden)
		fprintf(t->o.out, "... and %d more shapes (-v: every one)\n", hidden);
	mean_line(t, &w, "GEOMEAN", json_object_get(x, "geomean"));
	mean_line(t, &w, "weighted", json_object_get(x, "weighted"));
	if (x)
		controls(t, x, told);
	else
		fputs("   no mean over the shapes: the file has no aggregate of them\n", t->o.out);
	fputc('\n', t->o.out);
}

void text_ratio_tables(struct text *t)
{
	int groups = 0, hidden = 0;
	struct told told = {NULL, NULL};
	if (t->n_rows) /* qsort wants an array even for nothing */
		qsort(t->row, t->n_rows, sizeof *t->row, text_row_by_plan);
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct row *r = &t->row[i];
		bool seen = !r->is_ratio;
		for (size_t k = 0; k < i && !seen; k++)
			seen = t->row[k].is_ratio && same_group(&t->row[k], r);
		if (seen)
			continue;
		if (!t->o.verbose && groups == MAX_GROUPS)
			hidden++;
		else if (groups++ >= 0)
			group_block(t, r, &told);
	}
	if (hidden)
		fprintf(t->o.out, "... and %d more ratios (-v: every one)\n\n", hidden);
	if (groups)
		fputs("(outputs are allocated before the clock starts; a bench that allocates them inside it shows "
		      "longer times)\n\n",
		      t->o.out);
}
