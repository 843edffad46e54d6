/* report_html_changes: several files of one suite: what `assay diff` says of each against the first. */
#include <stdlib.h>

#include "diff.h"
#include "diff_fold.h"
#include "diff_show.h"
#include "report_html.h"

enum { MAX_CHANGES = 300, MAX_LINKS = 60 };

/* Lines of one state, and behind each the cells that it stands for. */
struct changes {
	FILE *f;
	const struct report *r;
	const struct diff_summary *s;
	json_t *place; /* id -> index of a report's line */
	struct diff_folds folds;
	json_t **cells; /* of each fold: array of indices, at most MAX_LINKS */
	size_t shown;
	int64_t more; /* rows beyond MAX_CHANGES lines */
};

static void take(struct diff *d, enum diff_side side, const struct report_file *file)
{
	int64_t line = 1;
	bool ok = diff_take(d, side, file->v.header, line, NULL);
	for (size_t i = 0; i < file->v.n_cells && ok; i++)
		ok = diff_take(d, side, file->v.cell[i], ++line, NULL);
	for (size_t i = 0; i < file->v.n_other && ok; i++)
		ok = diff_take(d, side, file->v.other[i], ++line, NULL);
	if (ok && file->v.footer)
		diff_take(d, side, file->v.footer, ++line, NULL);
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void gather(void *ctx, const struct diff_row *x)
{
	struct changes *c = ctx;
	const json_t *at = json_object_get(c->place, x->id);
	for (size_t i = 0; i < c->folds.n && at; i++) {
		const struct diff_fold *l = &c->folds.fold[i];
		if (!same(l->kernel, x->kernel) || !same(l->arm, x->arm) || !same(l->why, x->why))
			continue;
		if (json_array_size(c->cells[i]) < MAX_LINKS)
			json_array_append_new(c->cells[i], json_integer(json_integer_value(at)));
		return;
	}
}

static const char *tone_of(enum diff_state s)
{
	return s == DIFF_FAILS || s == DIFF_SLOWER     ? "bad"
	       : s == DIFF_FASTER || s == DIFF_FIXED   ? "good"
	       : s == DIFF_UNDECIDED || s == DIFF_BITS ? "unsure"
						       : "none";
}

static void link_to(FILE *f, const struct report *r, size_t line, const char *text)
{
	fprintf(f, "<a href=\"#cell-%zu\" data-open=\"%zu\">", line, line);
	html_name(f, text ? text : r->line[line].name);
	fputs("</a>", f);
}

/* What a line stands for: its cell, or what its cells share, and behind that each of them. */
static void put_cells(const struct changes *c, const struct diff_fold *l, const json_t *cells)
{
	char label[400];
	const json_t *at;
	size_t i, n = json_array_size(cells);
	if (l->rows == 1 && n == 1) {
		link_to(c->f, c->r, (size_t)json_integer_value(json_array_get(cells, 0)), NULL);
		return;
	}
	diff_fold_label(l, c->s, label, sizeof label);
	fputs("<details><summary>", c->f);
	html_name(c->f, label);
	fprintf(c->f, " <small>%lld cells</small></summary><p class=\"alike\">", (long long)l->rows);
	json_array_foreach(cells, i, at)
	{
		link_to(c->f, c->r, (size_t)json_integer_value(at), NULL);
		fputc(' ', c->f);
	}
	if ((int64_t)n < l->rows)
		fprintf(c->f, "and %lld more", (long long)(l->rows - (int64_t)n));
	fputs("</p></details>", c->f);
}

static void put_line(struct changes *c, const struct diff_fold *l, const json_t *cells)
{
	char buf[64];
	if (c->shown++ == 0) {
		fputs("<div class=\"scroll tall\"><table class=\"data stack\"><thead><tr>", c->f);
		html_th(c->f, "state", false);
		html_th(c->f, "cells", false);
		html_th(c->f, "arm", false);
		html_th(c->f, "base us", true);
		html_th(c->f, "head us", true);
		html_th(c->f, "ratio", true);
		html_th(c->f, "interval", false);
		html_th(c->f, "why", false);
		fputs("</tr></thead><tbody>\n", c->f);
	}
	fprintf(c->f, "<tr data-n=\"%lld\"><td><span class=\"chip %s\">", (long long)l->rows, tone_of(l->state));
	const char letter[] = {diff_letter(l->state), 0};
	markup_xml(c->f, letter);
	fprintf(c->f, " %s</span></td><td class=\"wrap\">", diff_state_name(l->state));
	put_cells(c, l, cells);
	fputs("</td><td>", c->f);
	markup_xml(c->f, l->arm ? l->arm : "all");
	fputs("</td>", c->f);
	html_td_number(c->f, l->base_ns, text_us(buf, l->base_ns));
	html_td_number(c->f, l->head_ns, text_us(buf, l->head_ns));
	html_td_number(c->f, l->ratio, text_ratio(buf, l->ratio));
	report_interval(buf, l->lo, l->hi);
	fprintf(c->f, "<td class=\"iv\">%s</td><td class=\"long\">", buf);
	markup_xml(c->f, l->why);
	fputs("</td></tr>\n", c->f);
}

static void put_state(struct changes *c, const struct diff *d, enum diff_state state)
{
	diff_folds_collect(d, state, &c->folds);
	c->cells = calloc(c->folds.n + 1, sizeof(json_t *));
	if (!c->cells)
		abort();
	for (size_t i = 0; i < c->folds.n; i++)
		c->cells[i] = json_array();
	diff_rows(d, state, gather, c);
	c->more += c->folds.rows_left_out;
	for (size_t i = 0; i < c->folds.n; i++) {
		if (c->shown < MAX_CHANGES)
			put_line(c, &c->folds.fold[i], c->cells[i]);
		else
			c->more += c->folds.fold[i].rows;
		json_decref(c->cells[i]);
	}
	free((void *)c->cells);
	diff_folds_free(&c->folds);
}

static void sentences(FILE *f, const struct diff *d, const struct diff_summary *s)
{
	char drift[160];
	const char *text;
	fprintf(f,
		"<p class=\"note\">%lld of %lld cells compared, times in %lld of the %lld that have any; %.2g false "
		"alarms expected in %lld comparisons.",
		(long long)s->compared, (long long)s->all_cells, (long long)s->times_compared, (long long)s->timed,
		s->expected_false, (long long)s->judged);
	if (isfinite(s->drift)) {
		snprintf(drift, sizeof drift, " Drift %+.1f %% between the runs, %s.", 100 * (exp(s->drift) - 1),
			 s->clocks_differ ? "clocks differ: only ratios to shipped are compared" : "removed");
		markup_xml(f, drift);
	}
	fputs("</p><ul class=\"doubts\">", f);
	if (diff_nothing(s) && !diff_refusal(d, 0)) {
		char why[300];
		diff_nothing_text(d, why, sizeof why);
		fputs("<li>Not comparable: ", f);
		markup_xml(f, why);
		fputs("</li>", f);
	}
	for (int i = 0; (text = diff_refusal(d, i)); i++) {
		fputs("<li>not comparable: ", f);
		markup_xml(f, text);
		fputs("</li>", f);
	}
	for (int i = 0; (text = diff_warning(d, i)); i++) {
		fputs("<li>", f);
		markup_xml(f, text);
		fputs("</li>", f);
	}
	fputs("</ul>", f);
}

static void one(FILE *f, const struct report *r, size_t head)
{
	const struct diff_options o = {.least = 0.01};
	struct diff *d = diff_create(&o);
	struct diff_summary s;
	struct changes c = {.f = f, .r = r, .s = &s, .place = json_object()};
	if (!d) {
		json_decref(c.place);
		return;
	}
	for (size_t i = 0; i < r->n_lines; i++)
		json_object_set_new_nocheck(c.place, r->line[i].id, json_integer((json_int_t)i));
	take(d, DIFF_BASE, &r->file[0]);
	take(d, DIFF_HEAD, &r->file[head]);
	if (diff_judge(d, NULL)) {
		diff_summary(d, &s);
		fputs("<h3>", f);
		markup_xml(f, r->file[head].label);
		fputs(" <small>against ", f);
		markup_xml(f, r->file[0].label);
		fputs("</small></h3>\n", f);
		sentences(f, d, &s);
		for (enum diff_state state = DIFF_FAILS; state < DIFF_SAME; state++)
			put_state(&c, d, state);
		if (c.shown)
			fputs("</tbody></table></div>\n<p class=\"note\">Where a line stands for several cells, its "
			      "numbers are those of "
			      "the cell that moved most.</p>\n",
			      f);
		else
			fputs("<p>No cell changed beyond the noise.</p>\n", f);
		if (c.more)
			fprintf(f, "<p class=\"note\">and %lld more: `assay diff` has them all.</p>\n",
				(long long)c.more);
	}
	json_decref(c.place);
	diff_destroy(d);
}

void html_changes(FILE *f, const struct report *r)
{
	bool any = false;
	for (size_t k = 1; k < r->n_files; k++) {
		if (strcmp(text_get(r->file[k].v.header, "suite"), text_get(r->file[0].v.header, "suite")) != 0)
			continue;
		if (!any)
			fputs("<section id=\"changes\"><h2>What changed</h2>\n", f);
		any = true;
		one(f, r, k);
	}
	if (any)
		fputs("</section>\n", f);
}
