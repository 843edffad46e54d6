/* text_rows: the winner table. What did not differ is folded: rows that differ in an axis that no
 * table is keyed on become one row of so many cells. */
#include <stdlib.h>

#include "text_parts.h"

enum { MAX_COLUMNS = 20, COLUMN_TEXT = 40, DISTINCT_MAX = 64 };

/* How rows are told apart in a table. */
struct view {
	const char *axis[TEXT_MAX_AXES];
	bool axis_shown[TEXT_MAX_AXES], axis_is_key[TEXT_MAX_AXES];
	int n_axes;
	bool geometry, data, case_id; /* shown */
	bool folded;
};

struct group {
	const struct row *first;
	double at[TEXT_MAX_AXES];
	int64_t cells, timed;
	bool same_selected, same_best, failed, diagnostic;
	double ln_ratio, lo, hi, ln_best, ln_shipped, ln_selected, peak;
	int64_t with_ratio, with_best, with_peak;
	int n;
};

struct line {
	char text[MAX_COLUMNS][COLUMN_TEXT];
};

static double axis_value(const struct row *r, const char *axis)
{
	for (int i = 0; i < r->axes->n; i++)
		if (r->axes->name[i] == axis)
			return r->at[i];
	return NAN;
}

static bool in_table(const struct row *r)
{
	return !r->is_ratio && r->timed;
}

static bool same_value(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static bool same_group(const struct view *v, const struct group *g, const struct row *r)
{
	const struct row *f = g->first;
	if (f->kernel != r->kernel || (v->case_id && f->case_id != r->case_id) ||
	    (v->geometry && f->geometry != r->geometry) || (v->data && f->data != r->data))
		return false;
	for (int i = 0; i < v->n_axes; i++)
		if (v->axis_shown[i] && !same_value(g->at[i], axis_value(r, v->axis[i])))
			return false;
	return true;
}

static void group_begin(const struct view *v, struct group *g, const struct row *r)
{
	*g = (struct group){.first = r, .same_selected = true, .same_best = true, .lo = INFINITY, .hi = -INFINITY};
	for (int i = 0; i < v->n_axes; i++)
		g->at[i] = axis_value(r, v->axis[i]);
}

static void group_add(struct group *g, const struct row *r)
{
	g->cells++;
	g->same_selected &= r->selected == g->first->selected;
	g->same_best &= r->best == g->first->best;
	g->failed |= r->status == ST_REGRESSION;
	g->diagnostic |= r->diagnostic_slower;
	if (r->n > g->n)
		g->n = r->n;
	if (r->shipped_ns > 0) {
		g->timed++;
		g->ln_shipped += log(r->shipped_ns);
		g->ln_selected += r->selected_ns > 0 ? log(r->selected_ns) : NAN;
	}
	if (r->ratio > 0) {
		g->with_ratio++;
		g->ln_ratio += log(r->ratio);
		g->lo = fmin(g->lo, r->lo);
		g->hi = fmax(g->hi, r->hi);
	}
	if (r->best_ratio > 0) {
		g->with_best++;
		g->ln_best += log(r->best_ratio);
	}
	if (isfinite(r->peak)) {
		g->with_peak++;
		g->peak += r->peak;
	}
}

/* Groups of all rows into at most cap; returns their number, cap + 1 where there are more. */
static int make_groups(const struct text *t, const struct view *v, struct group *g, int cap)
{
	int n = 0;
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct row *r = &t->row[i];
		if (!in_table(r))
			continue;
		int k = n - 1;
		while (k >= 0 && !same_group(v, &g[k], r))
			k--;
		if (k < 0) {
			if (n == cap)
				return cap + 1;
			k = n++;
			group_begin(v, &g[k], r);
		}
		group_add(&g[k], r);
	}
	return n;
}

static bool is_key(const struct text *t, const char *axis)
{
	const json_t *s, *key;
	size_t i, k;
	json_array_foreach(json_object_get(t->header, "serving"), i, s)
	{
		json_array_foreach(json_object_get(s, "keys"), k,
				   key) if (strcmp(text_string(key), axis) == 0) return true;
	}
	return false;
}

static int distinct_values(const struct text *t, const char *axis)
{
	double seen[DISTINCT_MAX];
	int n = 0;
	for (size_t i = 0; i < t->n_rows && n < DISTINCT_MAX; i++) {
		if (!in_table(&t->row[i]))
			continue;
		double x = axis_value(&t->row[i], axis);
		int k = 0;
		while (k < n && !same_value(seen[k], x))
			k++;
		if (k == n)
			seen[n++] = x;
	}
	return n;
}

/* Everything that differs is shown at first. */
static void view_begin(const struct text *t, struct view *v)
{
	const struct row *first = NULL;
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct row *r = &t->row[i];
		if (!in_table(r))
			continue;
		if (!first)
			first = r;
		v->geometry |= r->geometry != first->geometry;
		v->data |= r->data != first->data;
		v->case_id |= r->case_id != first->case_id;
		for (int a = 0; a < r->axes->n; a++) {
			int k = 0;
			while (k < v->n_axes && v->axis[k] != r->axes->name[a])
				k++;
			if (k == v->n_axes && k < TEXT_MAX_AXES) {
				v->axis[k] = r->axes->name[a];
				v->axis_is_key[k] = is_key(t, r->axes->name[a]);
				v->axis_shown[k] = true;
				v->n_axes++;
			}
		}
	}
}

/* Folds one more thing: axes that no table is keyed on first, the longest first. False: nothing is left to fold. */
static bool fold_more(const struct text *t, struct view *v)
{
	for (int key = 0; key < 2; key++) {
		int best = -1, most = 1;
		for (int i = 0; i < v->n_axes; i++) {
			int n = v->axis_shown[i] && v->axis_is_key[i] == key ? distinct_values(t, v->axis[i]) : 0;
			if (n > most) {
				most = n;
				best = i;
			}
		}
		if (best >= 0) {
			v->axis_shown[best] = false;
			v->folded = true;
			return true;
		}
		bool *flags[] = {&v->data, &v->geometry, &v->case_id};
		for (int i = 0; key == 0 && i < 2; i++) {
			if (*flags[i]) {
				*flags[i] = false;
				v->folded = true;
				return true;
			}
		}
	}
	return false;
}

/* ---- columns ------------------------------------------------------------------------------------------------------- */

struct columns {
	const char *title[MAX_COLUMNS];
	bool left[MAX_COLUMNS];
	int width[MAX_COLUMNS];
	int drop[MAX_COLUMNS]; /* given up for room, the lowest first; 0: never */
	bool hidden[MAX_COLUMNS];
	int n, gap;
};

static void add_text(struct line *l, int *n, const char *text)
{
	snprintf(l->text[(*n)++], COLUMN_TEXT, "%s", text);
}

static void interval_text(char *out, double lo, double hi)
{
	char a[24], b[24];
	if (!isfinite(lo) && !isfinite(hi))
		strcpy(out, "-");
	else
		snprintf(out, COLUMN_TEXT, "%.12s .. %.12s", isfinite(lo) ? text_ratio(a, lo) : "0",
			 isfinite(hi) ? text_ratio(b, hi) : "inf");
}

static void place_cells(const struct view *v, const struct group *g, struct line *l, int *n)
{
	char buf[COLUMN_TEXT];
	add_text(l, n, g->first->kernel);
	if (v->case_id)
		add_text(l, n, g->first->case_id);
	if (v->geometry)
		add_text(l, n, g->first->geometry);
	if (v->data)
		add_text(l, n, g->first->data);
	for (int i = 0; i < v->n_axes; i++)
		if (v->axis_shown[i])
			add_text(l, n, isnan(g->at[i]) ? "-" : text_number_text(buf, g->at[i]));
	if (v->folded) {
		snprintf(buf, sizeof buf, "%lld", (long long)g->cells);
		add_text(l, n, buf);
	}
}

static void serving_line(const struct view *v, const struct group *g, bool peaks, struct line *l)
{
	char buf[COLUMN_TEXT], best[COLUMN_TEXT];
	int n = 0;
	place_cells(v, g, l, &n);
	add_text(l, &n, text_us(buf, exp(g->ln_shipped / (double)g->timed)));
	const char *served = !g->first->selected ? "-" : g->same_selected ? g->first->selected : "(several)";
	add_text(l, &n, served);
	add_text(l, &n, g->first->selected ? text_us(buf, exp(g->ln_selected / (double)g->timed)) : "-");
	add_text(l, &n, g->with_ratio ? text_ratio(buf, exp(g->ln_ratio / (double)g->with_ratio)) : "-");
	if (g->same_selected && g->first->trivial)
		strcpy(buf, "is the shipped");
	else
		interval_text(buf, g->with_ratio ? g->lo : NAN, g->with_ratio ? g->hi : NAN);
	add_text(l, &n, buf);
	snprintf(buf, sizeof buf, "%d", g->n);
	add_text(l, &n, buf);
	if (g->with_best)
		snprintf(best, sizeof best, "%.24s %s", g->same_best ? g->first->best : "(several)",
			 text_ratio(buf, exp(g->ln_best / (double)g->with_best)));
	else
		strcpy(best, "-");
	add_text(l, &n, best);
	if (peaks) {
		snprintf(buf, sizeof buf, "%.0f", 100 * g->peak / (double)g->with_peak);
		add_text(l, &n, g->with_peak ? buf : "-");
	}
	if (g->failed || g->diagnostic)
		add_text(l, &n, g->failed ? "REGRESSION" : "slower");
	else
		add_text(l, &n, "");
}

static void add_column(struct columns *c, const char *title, bool left)
{
	c->title[c->n] = title;
	c->left[c->n] = left;
	c->width[c->n++] = text_columns(title);
}

static void place_columns(const struct view *v, struct columns *c)
{
	add_column(c, "kernel", true);
	if (v->case_id)
		add_column(c, "case", true);
	if (v->geometry)
		add_column(c, "geometry", true);
	if (v->data)
		add_column(c, "data", true);
	for (int i = 0; i < v->n_axes; i++)
		if (v->axis_shown[i])
			add_column(c, v->axis[i], false);
	if (v->folded)
		add_column(c, "cells", false);
}

static void widen(struct columns *c, const struct line *l)
{
	for (int i = 0; i < c->n; i++) {
		int w = text_columns(l->text[i]);
		if (w > c->width[i])
			c->width[i] = w;
	}
}

/* Makes the line fit: narrow gaps first, then without what is least missed. */
static void fit(struct columns *c, int width)
{
	for (c->gap = 2; c->gap > 0; c->gap--) {
		int total = -c->gap;
		for (int i = 0; i < c->n; i++)
			total += !c->hidden[i] && c->width[i] > 0 ? c->width[i] + c->gap : 0;
		if (total <= width)
			return;
	}
	c->gap = 1;
	for (int rank = 1; rank <= 3; rank++) {
		int total = -1;
		for (int i = 0; i < c->n; i++)
			total += c->hidden[i] || c->width[i] == 0 ? 0 : c->width[i] + 1;
		if (total <= width)
			return;
		for (int i = 0; i < c->n; i++)
			c->hidden[i] |= c->drop[i] == rank;
	}
}

static void print_line(const struct text *t, const struct columns *c, const struct line *l)
{
	int pad = 0;
	bool first = true;
	for (int i = 0; i < c->n; i++) {
		const char *s = l ? l->text[i] : c->title[i];
		int fill = c->width[i] - text_columns(s);
		if (c->hidden[i] || c->width[i] == 0)
			continue;
		if (!first)
			pad += c->gap;
		first = false;
		if (!*s) { /* no blanks at the end of a line */
			pad += fill;
			continue;
		}
		fprintf(t->o.out, "%*s%s", pad + (c->left[i] ? 0 : fill), "", s);
		pad = c->left[i] ? fill : 0;
	}
	fputc('\n', t->o.out);
}

static void one_line(const struct view *v, const struct group *g, bool peaks, struct line *l)
{
	memset(l, 0, sizeof *l);
	serving_line(v, g, peaks, l);
}

int text_row_by_plan(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	return (x->plan_index > y->plan_index) - (x->plan_index < y->plan_index);
}

/* Every row by itself, in the order of the plan, in two passes so that nothing is held. */
static void print_all(const struct text *t, const struct view *v, struct columns *c, bool peaks)
{
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < t->n_rows; i++) {
			struct group g;
			struct line l;
			if (!in_table(&t->row[i]))
				continue;
			group_begin(v, &g, &t->row[i]);
			group_add(&g, &t->row[i]);
			one_line(v, &g, peaks, &l);
			if (pass == 0)
				widen(c, &l);
			else
				print_line(t, c, &l);
		}
		if (pass == 0) {
			fit(c, t->o.width);
			print_line(t, c, NULL);
		}
	}
}

static void print_groups(const struct text *t, const struct view *v, struct columns *c, bool peaks,
			 const struct group *g, int n)
{
	struct line l;
	for (int i = 0; i < n; i++) {
		one_line(v, &g[i], peaks, &l);
		widen(c, &l);
	}
	fit(c, t->o.width);
	print_line(t, c, NULL);
	for (int i = 0; i < n; i++) {
		one_line(v, &g[i], peaks, &l);
		print_line(t, c, &l);
	}
}

/* The level by its usual name where every case has the usual one. */
const char *text_interval_title(const struct text *t)
{
	const json_t *c;
	size_t i;
	json_array_foreach(json_object_get(t->header, "cases"), i,
			   c) if (text_number(json_object_get(c, "timing"), "alpha") != 0.025) return "interval";
	return "97.5 % interval";
}

static void print_table(struct text *t, struct view *v)
{
	struct group g[TEXT_MAX_ROWS];
	bool any = false, peaks = false;
	for (size_t i = 0; i < t->n_rows; i++) {
		any |= in_table(&t->row[i]);
		peaks |= in_table(&t->row[i]) && isfinite(t->row[i].peak);
	}
	if (!any)
		return;
	qsort(t->row, t->n_rows, sizeof *t->row, text_row_by_plan);
	view_begin(t, v);
	int n = make_groups(t, v, g, TEXT_MAX_ROWS);
	while (!t->o.verbose && n > TEXT_MAX_ROWS && fold_more(t, v))
		n = make_groups(t, v, g, TEXT_MAX_ROWS);
	struct columns c = {.n = 0};
	place_columns(v, &c);
	const char *interval = text_interval_title(t);
	const char *const serving[] = {t->pair ? "base us" : "shipped",
				       t->pair ? "arm" : "served",
				       t->pair ? "head us" : "us",
				       "ratio",
				       interval,
				       "n",
				       "best",
				       "% bw",
				       ""};
	for (size_t i = 0; i < sizeof serving / sizeof *serving; i++)
		if (peaks || i != 7) {
			add_column(&c, serving[i], i == 1 || i == 4 || i == 6 || i == 8);
			c.drop[c.n - 1] = i == 7 ? 1 : i == 5 ? 2 : i == 6 ? 3 : 0;
			c.hidden[c.n - 1] = t->pair && i == 6; /* the better of two is told by the ratio */
		}
	if (t->o.verbose)
		print_all(t, v, &c, peaks);
	else
		print_groups(t, v, &c, peaks, g, n < TEXT_MAX_ROWS ? n : TEXT_MAX_ROWS);
	if (!t->o.verbose && n > TEXT_MAX_ROWS)
		fprintf(t->o.out, "... and more lines (-v: every cell)\n");
	if (v->folded)
		fprintf(t->o.out, "(times and ratios of folded cells are geometric means, intervals their widest; -v: "
				  "every cell)\n");
	fputc('\n', t->o.out);
}

void text_serving_table(struct text *t)
{
	struct view v = {.folded = false};
	print_table(t, &v);
}
