/* diff_export: a comparison as Markdown, CSV, JSON and JUnit XML. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff_fold.h"
#include "diff_show.h"
#include "record_parts.h"
#include "text_parts.h"
#include "verdict.h"

/* ---- Markdown -------------------------------------------------------------------------------------------------------- */

static void md_cell(FILE *f, const char *s)
{
	for (; s && *s; s++) {
		if (*s == '|' || *s == '\\' || *s == '`' || *s == '*' || *s == '_' || *s == '<')
			fputc('\\', f);
		fputc(*s == '\n' ? ' ' : *s, f);
	}
}

static void md_row(const struct diff_show *s, const struct diff_summary *sum, const struct diff_fold *f)
{
	char label[600], base[24] = "", head[24] = "", ratio[24] = "", interval[48] = "";
	diff_fold_label(f, sum, label, sizeof label);
	if (isfinite(f->ratio)) {
		text_us(base, f->base_ns);
		text_us(head, f->head_ns);
		snprintf(ratio, sizeof ratio, "%.3fx%s", f->ratio, f->of_ratio ? " of ratio" : "");
		snprintf(interval, sizeof interval, "%.3f .. %.3f", f->lo, f->hi);
	}
	fprintf(s->out, "| `%c` %s | ", diff_letter(f->state), diff_state_name(f->state));
	md_cell(s->out, label);
	if (f->rows > 1)
		fprintf(s->out, " (%lld)", (long long)f->rows);
	fputs(" | ", s->out);
	md_cell(s->out, f->arm ? f->arm : "all");
	fprintf(s->out, " | %s | %s | %s | %s | ", base, head, ratio, interval);
	md_cell(s->out, f->why);
	fputs(" |\n", s->out);
}

void diff_show_md(const struct diff *d, const struct diff_show *s)
{
	struct diff_summary sum;
	char text[900], counts[300], scope[80];
	const char *one;
	diff_summary(d, &sum);
	diff_counts_text(&sum, counts, sizeof counts);
	diff_scope_text(s, &sum, scope, sizeof scope);
	fprintf(s->out, "**%s**%s: %s (exit %d%s)\n\n", diff_verdict_word(s, &sum), scope, counts, s->exit,
		s->advisory && s->exit ? ", advisory" : "");
	if (s->title)
		fprintf(s->out, "%s\n\n", s->title);
	bool any = false;
	for (int k = 0; k < DIFF_N; k++) {
		if (sum.rows[k] == 0 || (k == DIFF_SAME && !s->all))
			continue;
		if (!any)
			fputs("| | cell | arm | base us | head us | ratio | 97.5 % | why "
			      "|\n|---|---|---|--:|--:|--:|---|---|\n",
			      s->out);
		any = true;
		struct diff_folds l = {.unfolded = s->all};
		diff_folds_collect(d, (enum diff_state)k, &l);
		for (size_t i = 0; i < l.n; i++)
			md_row(s, &sum, &l.fold[i]);
		if (l.rows_left_out)
			fprintf(s->out, "| `%c` | %lld more | | | | | | |\n", diff_letter((enum diff_state)k),
				(long long)l.rows_left_out);
		diff_folds_free(&l);
	}
	if (any)
		fputc('\n', s->out);
	for (int k = 0; k < 2; k++) {
		diff_side_text(d, (enum diff_side)k, k ? s->head : s->base, text, sizeof text);
		fprintf(s->out, "- %s: ", k ? "head" : "base");
		md_cell(s->out, text);
		fputc('\n', s->out);
	}
	for (int i = 0; (one = diff_refusal(d, i)); i++)
		fprintf(s->out, "- refused: %s\n", one);
	for (int i = 0; (one = diff_warning(d, i)); i++)
		fprintf(s->out, "- warned: %s\n", one);
	if (sum.compared > 0 && (sum.judged > 0 || sum.clocks_differ)) {
		diff_drift_text(&sum, text, sizeof text);
		fprintf(s->out, "- %s\n", text);
	}
	if (sum.compared > 0 && sum.judged > 0) {
		diff_tau_text(&sum, text, sizeof text);
		fprintf(s->out, "- %s\n", text);
	}
	diff_totals_text(&sum, text, sizeof text);
	fprintf(s->out, "- %s\n", text);
}

/* ---- CSV ------------------------------------------------------------------------------------------------------------- */

static void csv_text(FILE *f, const char *s)
{
	if (!s)
		return;
	if (!strpbrk(s, ",\"\n\r")) {
		fputs(s, f);
		return;
	}
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"')
			fputc('"', f);
		fputc(*s, f);
	}
	fputc('"', f);
}

/* digits after the point; -1: three digits that count */
static void csv_number(FILE *f, int digits, double x)
{
	fputc(',', f);
	if (isfinite(x) && digits >= 0)
		fprintf(f, "%.*f", digits, x);
	else if (isfinite(x))
		fprintf(f, "%.3g", x);
}

static void csv_row(void *ctx, const struct diff_row *row)
{
	FILE *f = ctx;
	fprintf(f, "%s,", diff_state_name(row->state));
	csv_text(f, row->id);
	fputc(',', f);
	csv_text(f, row->arm);
	csv_number(f, 1, row->base_ns);
	csv_number(f, 1, row->head_ns);
	csv_number(f, 6, row->ratio);
	csv_number(f, 6, row->lo);
	csv_number(f, 6, row->hi);
	csv_number(f, -1, row->p);
	fprintf(f, ",%s,", isnan(row->ratio) ? "" : row->of_ratio ? "ratio" : "time");
	csv_text(f, row->why);
	fputs("\r\n", f);
}

void diff_show_csv(const struct diff *d, const struct diff_show *s)
{
	fputs("state,id,arm,base_ns,head_ns,ratio,lo,hi,p,of,why\r\n", s->out);
	for (int k = 0; k < DIFF_N; k++)
		if (k != DIFF_SAME || s->all)
			diff_rows(d, (enum diff_state)k, csv_row, s->out);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------ */

static void put_json(FILE *f, json_t *j)
{
	char *text = verdict_line(j);
	if (text)
		fputs(text, f);
	free(text);
	json_decref(j);
}

struct json_rows {
	FILE *f;
	bool any;
};

static void json_row(void *ctx, const struct diff_row *row)
{
	struct json_rows *r = ctx;
	char letter[2] = {diff_letter(row->state), 0};
	json_t *j = json_object();
	json_object_set_new(j, "letter", json_string(letter));
	json_object_set_new(j, "state", json_string(diff_state_name(row->state)));
	json_object_set_new(j, "id", json_string(row->id));
	json_object_set_new(j, "arm", record_text_or_null(row->arm));
	json_object_set_new(j, "base_ns", record_real(row->base_ns));
	json_object_set_new(j, "head_ns", record_real(row->head_ns));
	json_object_set_new(j, "ratio", record_real(row->ratio));
	json_object_set_new(j, "lo", record_real(row->lo));
	json_object_set_new(j, "hi", record_real(row->hi));
	json_object_set_new(j, "p", record_real(row->p));
	json_object_set_new(j, "of", isnan(row->ratio) ? json_null() : json_string(row->of_ratio ? "ratio" : "time"));
	json_object_set_new(j, "more_processes", row->more_processes ? json_integer(row->more_processes) : json_null());
	json_object_set_new(j, "why", record_text_or_null(row->why));
	fputs(r->any ? ",\n" : "\n", r->f);
	put_json(r->f, j);
	r->any = true;
}

static json_t *side_json(const struct diff *d, enum diff_side side, const char *path)
{
	const json_t *h = diff_header(d, side);
	static const char *const keys[] = {"suite", "backend", "device", "git", "processes", "started"};
	json_t *j = json_object();
	json_object_set_new(j, "file", json_string(path));
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		json_object_set(j, keys[i], json_object_get(h, keys[i]));
	return j;
}

static json_t *sentences(const struct diff *d, const char *(*of)(const struct diff *, int))
{
	json_t *list = json_array();
	const char *one;
	for (int i = 0; (one = of(d, i)); i++)
		json_array_append_new(list, json_string(one));
	return list;
}

void diff_show_json(const struct diff *d, const struct diff_show *s)
{
	struct diff_summary sum;
	struct json_rows r = {.f = s->out};
	diff_summary(d, &sum);
	json_t *cells = json_object(), *j = json_object();
	for (int k = 0; k < DIFF_N; k++)
		json_object_set_new(cells, diff_state_name((enum diff_state)k), json_integer(sum.cells[k]));
	json_object_set_new(j, "kind", json_string("diff"));
	json_object_set_new(j, "exit", json_integer(s->exit));
	json_object_set_new(j, "verdict", json_string(diff_verdict_word(s, &sum)));
	char why[300];
	if (diff_nothing(&sum))
		diff_nothing_text(d, why, sizeof why);
	json_object_set_new(j, "nothing_compared", diff_nothing(&sum) ? json_string(why) : json_null());
	json_t *unfinished = json_array();
	for (int k = 0; k < 2; k++)
		if (sum.unfinished[k])
			json_array_append_new(unfinished, json_string(k == DIFF_BASE ? "base" : "head"));
	json_object_set_new(j, "unfinished", unfinished);
	json_object_set_new(j, "baseline", record_text_or_null(s->title));
	json_object_set_new(j, "base", side_json(d, DIFF_BASE, s->base));
	json_object_set_new(j, "head", side_json(d, DIFF_HEAD, s->head));
	json_object_set_new(j, "refused", sentences(d, diff_refusal));
	json_object_set_new(j, "warned", sentences(d, diff_warning));
	json_object_set_new(j, "drift", sum.controls ? record_real(sum.drift) : json_null());
	json_object_set_new(j, "drift_se", record_real(sum.drift_se));
	json_object_set_new(j, "controls", json_integer(sum.controls));
	json_object_set_new(j, "clocks_differ", json_boolean(sum.clocks_differ));
	json_object_set_new(j, "tau", record_real(sum.tau));
	json_object_set_new(j, "tau_assumed", json_boolean(sum.tau_assumed && !sum.tau_from_controls));
	json_object_set_new(j, "resolution", record_real(sum.resolution));
	json_object_set_new(j, "cells", cells);
	json_object_set_new(j, "all_cells", json_integer(sum.all_cells));
	json_object_set_new(j, "compared", json_integer(sum.compared));
	json_object_set_new(j, "timed", json_integer(sum.timed));
	json_object_set_new(j, "times_compared", json_integer(sum.times_compared));
	json_object_set_new(j, "skipped", json_integer(sum.skipped));
	json_object_set_new(j, "comparisons", json_integer(sum.judged));
	json_object_set_new(j, "expected_false", record_real(sum.expected_false));
	json_object_set_new(j, "geomean", record_real(sum.geomean));
	json_object_set_new(j, "geomean_cells", json_integer(sum.geomean_cells));
	json_object_set_new(j, "still_failing", json_integer(sum.still_failing));
	char *text = verdict_line(j);
	json_decref(j);
	if (!text)
		return;
	/* The rows are written as they come: a million of them are no object in memory. */
	text[strlen(text) - 1] = 0;
	fprintf(s->out, "%s,\"rows\":[", text);
	free(text);
	for (int k = 0; k < DIFF_N; k++)
		if (k != DIFF_SAME || s->all)
			diff_rows(d, (enum diff_state)k, json_row, &r);
	fputs(r.any ? "\n]}\n" : "]}\n", s->out);
}

/* ---- JUnit ----------------------------------------------------------------------------------------------------------- */

static void xml_text(FILE *f, const char *s)
{
	for (; s && *s; s++)
		switch (*s) {
		case '&': fputs("&amp;", f); break;
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '"': fputs("&quot;", f); break;
		default:
			if ((unsigned char)*s >= 0x20 || *s == '\n' || *s == '\t')
				fputc(*s, f);
		}
}

struct junit {
	FILE *f;
	unsigned fail_on;
};

static void junit_row(void *ctx, const struct diff_row *row)
{
	const struct junit *j = ctx;
	const bool fails = j->fail_on & 1u << row->state;
	const bool skipped = !fails && (row->state == DIFF_UNDECIDED || row->state == DIFF_INCOMPARABLE ||
					row->state == DIFF_MISSING || row->state == DIFF_WAIVED);
	fputs("  <testcase classname=\"", j->f);
	xml_text(j->f, row->kernel);
	fputs("\" name=\"", j->f);
	xml_text(j->f, row->id);
	if (row->arm) {
		fputs(" ", j->f);
		xml_text(j->f, row->arm);
	}
	/* A row a test: one cell and arm may have two, of its bits and of its times. */
	fprintf(j->f, "%s\"", row->state == DIFF_BITS ? " bits" : "");
	if (!fails && !skipped) {
		fputs("/>\n", j->f);
		return;
	}
	fprintf(j->f, ">\n    <%s message=\"%s", fails ? "failure" : "skipped", diff_state_name(row->state));
	if (isfinite(row->ratio))
		fprintf(j->f, " %.3fx [%.3f, %.3f]", row->ratio, row->lo, row->hi);
	if (row->why) {
		fputs(": ", j->f);
		xml_text(j->f, row->why);
	}
	fprintf(j->f, "\"/>\n  </testcase>\n");
}

void diff_show_junit(const struct diff *d, const struct diff_show *s)
{
	struct diff_summary sum;
	struct junit j = {s->out, s->fail_on};
	diff_summary(d, &sum);
	int64_t tests = 0, failures = 0, skipped = 0;
	for (int k = 0; k < DIFF_N; k++) {
		tests += sum.rows[k];
		if (s->fail_on & 1u << k)
			failures += sum.rows[k];
		else if (k == DIFF_UNDECIDED || k == DIFF_INCOMPARABLE || k == DIFF_MISSING || k == DIFF_WAIVED)
			skipped += sum.rows[k];
	}
	/* Nothing comparable, and half a run, are no success on a dashboard. */
	const bool nothing = diff_incomplete(&sum);
	fprintf(s->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
	fprintf(s->out,
		"<testsuite name=\"assay diff\" tests=\"%lld\" failures=\"%lld\" errors=\"%d\" skipped=\"%lld\">\n",
		(long long)(tests + nothing), (long long)failures, nothing, (long long)skipped);
	if (nothing) {
		char why[300];
		diff_incomplete_text(d, why, sizeof why);
		fputs("  <testcase classname=\"assay\" name=\"diff\">\n    <error message=\"", s->out);
		xml_text(s->out, why);
		fputs("\"/>\n  </testcase>\n", s->out);
	}
	for (int k = 0; k < DIFF_N; k++)
		diff_rows(d, (enum diff_state)k, junit_row, &j);
	fputs("</testsuite>\n</testsuites>\n", s->out);
}
