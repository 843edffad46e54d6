/* report_html_summary: what a manager reads, and what needs a look. */
#include <stdarg.h>
#include <stdlib.h>

#include "report_html.h"

enum { MAX_ATTENTION = 40 };

static void tile(FILE *f, const char *value, const char *label, const char *tone)
{
	fprintf(f, "<div class=\"tile %s\"><b>", tone);
	markup_xml(f, value);
	fputs("</b><span>", f);
	markup_xml(f, label);
	fputs("</span></div>", f);
}

/* The slowest served arm, and the best gain. */
static void extremes(FILE *f, const struct report_file *file)
{
	const bool pair = file->text->pair;
	const struct row *worst = NULL, *best = NULL;
	for (size_t i = 0; i < file->text->n_rows; i++) {
		const struct row *r = &file->text->row[i];
		if (!(r->ratio > 0) || r->is_ratio || r->trivial)
			continue;
		if (!worst || r->ratio > worst->ratio)
			worst = r;
		if (!best || r->ratio < best->ratio)
			best = r;
	}
	char value[24];
	if (worst)
		tile(f, text_ratio(value, worst->ratio),
		     pair ? "slowest head arm, of base" : "slowest served arm, of shipped",
		     worst->ratio > worst->margin ? "bad" : "");
	if (best && best->ratio < 1 && best != worst)
		tile(f, text_ratio(value, best->ratio),
		     pair ? "fastest head arm, of base" : "fastest served arm, of shipped", "good");
}

/* Ratio checks: how many of those with a bar meet it, and how many of the others are believed. */
static void bars(FILE *f, const struct report_file *file)
{
	size_t asked = 0, met = 0, others = 0, believed = 0;
	char value[64];
	for (size_t i = 0; i < file->v.n_other; i++) {
		const json_t *a = file->v.other[i];
		const char *verdict = text_get(a, "verdict");
		char bar[64];
		if (!json_object_get(a, "check"))
			continue;
		report_bar(bar, a);
		asked += *bar != 0;
		met += *bar && strcmp(verdict, "met") == 0;
		others += *bar == 0;
		believed += *bar == 0 && strcmp(verdict, "none") == 0;
	}
	if (asked) {
		snprintf(value, sizeof value, "%zu / %zu", met, asked);
		tile(f, value, "ratios that meet their bar", met < asked ? "bad" : "good");
	}
	if (others) {
		snprintf(value, sizeof value, "%zu / %zu", believed, others);
		tile(f, value, "ratios believed", believed < others ? "void" : "good");
	}
}

/* A tile a status that occurred, in its words and its colour; together they are all cells of the file. */
static void counts(FILE *f, const struct report_file *file)
{
	const struct text *t = file->text;
	char value[64];
	bool failed = false, whole = true;
	for (size_t i = 0; i < t->n_rows; i++)
		failed |= report_failed(&t->row[i]);
	if (!failed)
		tile(f, "0", "failed", "");
	for (int s = 0; s < ST_N; s++) {
		const struct row of = {.status = (enum cell_status)s};
		const int64_t n = t->by_status[s] + (s == ST_INVALID ? t->by_status[ST_INVALID_DATA] : 0);
		if (s == ST_INVALID_DATA || s == ST_PASS || n == 0)
			continue;
		whole &= s == ST_SKIP || s == ST_XFAIL;
		const char *tone = report_tone(report_kind(&of));
		snprintf(value, sizeof value, "%lld", (long long)n);
		tile(f, value, report_status_word((enum cell_status)s), strcmp(tone, "none") == 0 ? "" : tone);
	}
	snprintf(value, sizeof value, "%lld / %zu", (long long)t->by_status[ST_PASS], file->v.n_cells);
	tile(f, value, report_status_word(ST_PASS), whole && t->by_status[ST_PASS] ? "good" : "");
	snprintf(value, sizeof value, "%lld / %zu", (long long)t->kept_right, file->v.n_cells);
	tile(f, value, "right in every check of bits", "");
	bars(f, file);
	extremes(f, file);
}

static void sentence(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void sentence(FILE *f, const char *fmt, ...)
{
	va_list ap;
	char buf[600];
	va_start(ap, fmt);
	vsnprintf(buf, sizeof buf, fmt, ap);
	va_end(ap);
	fputs("<li>", f);
	markup_xml(f, buf);
	fputs("</li>", f);
}

/* What makes a number less worth than it looks. */
static void doubts(FILE *f, const struct report_file *file)
{
	const json_t *footer = file->v.footer;
	fputs("<ul class=\"doubts\">", f);
	if (!footer)
		sentence(f, "The file was cut short: the run did not end, and what is missing is not known.");
	if (file->v.torn)
		sentence(f, "The last line is cut short and left out.");
	if (json_is_true(json_object_get(footer, "noisy")))
		sentence(f, "The run is noisy: %s differs from itself in too many cells, so timing decides nothing.",
			 text_yardstick(file->text));
	if (text_integer(footer, "not_run") > 0)
		sentence(f, "%lld planned cells were not run.", (long long)text_integer(footer, "not_run"));
	if (json_is_true(json_object_get(json_object_get(file->v.header, "git"), "dirty")))
		sentence(f, "The suite's folder had local changes.");
	if (file->text->tails > 0)
		sentence(f, "%lld cells have a slow tail that the median does not see.", (long long)file->text->tails);
	for (size_t i = 0; i < file->v.n_other; i++) {
		const json_t *a = file->v.other[i];
		if (strcmp(text_get(a, "name"), "sentinels") == 0 && *text_get(a, "reason"))
			sentence(f, "Sentinels: %.400s.", text_get(a, "reason"));
	}
	bool diagnostic = file->text->n_rows > 0;
	for (size_t i = 0; i < file->text->n_rows; i++)
		diagnostic &= !file->text->row[i].gating;
	if (diagnostic)
		sentence(f, "Timing is a diagnostic on this machine (its rig gates nothing).");
	fputs("</ul>", f);
}

static void where(FILE *f, const struct report_file *file)
{
	const json_t *h = file->v.header, *device = json_object_get(h, "device"), *git = json_object_get(h, "git");
	char wall[24];
	fputs("<p class=\"where\"><b>", f);
	markup_xml(f, text_get(device, "name"));
	fputs("</b> ", f);
	markup_xml(f, text_get(h, "backend"));
	if (text_integer(device, "threads") > 0)
		fprintf(f, ", %lld thread%s", (long long)text_integer(device, "threads"),
			text_integer(device, "threads") == 1 ? "" : "s");
	fputs(" \xc2\xb7 ", f);
	markup_xml(f, text_get(h, "started"));
	if (file->v.footer)
		fprintf(f, " \xc2\xb7 %s \xc2\xb7 exit %lld",
			text_seconds(wall, text_number(file->v.footer, "wall_ns")),
			(long long)text_integer(file->v.footer, "exit"));
	if (*text_get(git, "commit"))
		fprintf(f, " \xc2\xb7 <code>%.12s</code>", text_get(git, "commit"));
	fputs("</p>", f);
}

void html_summary(FILE *f, const struct report *r)
{
	fprintf(f, "<section id=\"summary\" class=\"files%s\">\n", r->n_files > 1 ? " many" : "");
	for (size_t i = 0; i < r->n_files; i++) {
		const struct report_file *file = &r->file[i];
		const char *word = report_word(file);
		const char *tone = strcmp(word, "PASS") == 0 ? "good" : strcmp(word, "FAIL") == 0 ? "bad" : "unsure";
		fprintf(f, "<article class=\"file %s\">", tone);
		html_file_label(f, r, i);
		fprintf(f, "<h2><span class=\"word %s\">%s</span> ", tone, word);
		markup_xml(f, text_get(file->v.header, "suite"));
		fputs("</h2>", f);
		where(f, file);
		fputs("<div class=\"tiles\">", f);
		counts(f, file);
		fputs("</div>", f);
		doubts(f, file);
		fputs("</article>\n", f);
	}
	fputs("</section>\n", f);
}

/* Through an escape: a name may hold any character. */
static void aggregate_name(FILE *f, const json_t *a)
{
	char *name = NULL;
	size_t n = 0;
	FILE *m = open_memstream(&name, &n);
	if (!m)
		return;
	report_aggregate_name(m, a);
	fclose(m);
	html_name(f, name);
	free(name);
}

static const char *verdict_tone(const json_t *aggregate)
{
	const char *v = text_get(aggregate, "verdict");
	return strcmp(v, "met") == 0       ? "good"
	       : strcmp(v, "none") == 0    ? "none"
	       : strcmp(v, "invalid") == 0 ? report_tone(REPORT_INVALID)
					   : "bad";
}

/* A bar that is missed, or a ratio that cannot be believed. */
static bool wants_a_look(const json_t *a)
{
	const char *v = text_get(a, "verdict");
	return json_object_get(a, "check") && (strcmp(v, "missed") == 0 || strcmp(v, "invalid") == 0);
}

static void begin_attention(FILE *f)
{
	fputs("<section id=\"attention\"><h2>What needs a look</h2>\n<ul class=\"look\">", f);
}

static void look_link(FILE *f, const struct report *r, size_t line)
{
	fprintf(f, "<a href=\"#cell-%zu\" data-open=\"%zu\">", line, line);
	markup_xml(f, r->line[line].name);
	fputs("</a>", f);
}

/* A cell, and behind it (if any) those that say the same. */
static void look_item(FILE *f, const struct report *r, size_t file, const struct report_look *l, size_t first, size_t n)
{
	const struct report_cell *c = &r->line[l->line[first]].cell[file];
	fputs("<li>", f);
	if (c->row->diagnostic_slower)
		fputs("<span class=\"chip unsure\">slower</span>", f);
	else
		html_status(f, c->row);
	fputc(' ', f);
	look_link(f, r, l->line[first]);
	if (r->n_files > 1) {
		fputs(" <small>", f);
		markup_xml(f, r->file[file].label);
		fputs("</small>", f);
	}
	fputs("<br><span class=\"why\">", f);
	markup_xml(f, report_reason(c->json));
	fputs("</span>", f);
	if (n > 1) {
		fprintf(f, "<details><summary>and %zu more cells, alike</summary><p class=\"alike\">", n - 1);
		for (size_t i = first + 1; i < first + n; i++) {
			look_link(f, r, l->line[i]);
			fputc(' ', f);
		}
		fputs("</p></details>", f);
	}
	fputs("</li>\n", f);
}

static bool same_trouble(const json_t *a, const json_t *b)
{
	char bar_a[64], bar_b[64];
	report_bar(bar_a, a);
	report_bar(bar_b, b);
	return strcmp(text_get(a, "verdict"), text_get(b, "verdict")) == 0 &&
	       strcmp(text_get(a, "reason"), text_get(b, "reason")) == 0 && strcmp(bar_a, bar_b) == 0;
}

static bool said_before(const struct report_file *file, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (wants_a_look(file->v.other[k]) && same_trouble(file->v.other[k], file->v.other[i]))
			return true;
	return false;
}

/* An aggregate, and those after it that are in the same trouble; each with the number that its bar is held against. */
static void aggregate_item(FILE *f, const struct report_file *file, size_t i)
{
	const json_t *a = file->v.other[i];
	const char *sep = "";
	char bar[64], end[64];
	fprintf(f, "<li><span class=\"chip %s\">ratio ", verdict_tone(a));
	markup_xml(f, text_get(a, "verdict"));
	fputs("</span> ", f);
	for (size_t k = i; k < file->v.n_other; k++) {
		const json_t *x = file->v.other[k];
		if (k != i && !(wants_a_look(x) && same_trouble(a, x)))
			continue;
		fputs(sep, f);
		aggregate_name(f, x);
		report_bar_end(end, x);
		if (*end && strcmp(text_get(a, "verdict"), "missed") == 0)
			fprintf(f, " <b>%s</b>", end);
		sep = "; ";
	}
	report_bar(bar, a);
	fputs("<br><span class=\"why\">", f);
	if (*text_get(a, "reason"))
		markup_xml(f, text_get(a, "reason"));
	else
		fprintf(f, "by the lower end of the %s; the bar is %s",
			strcmp(text_get(json_object_get(a, "bar"), "by"), "weighted") == 0 ? "weighted total"
											   : "geomean",
			bar);
	fputs("</span></li>\n", f);
}

void html_attention(FILE *f, const struct report *r)
{
	size_t shown = 0, more = 0;
	for (size_t k = 0; k < r->n_files; k++) {
		struct report_look *look;
		size_t n = report_looks(r, k, false, &look);
		for (size_t i = 0; i < n; i++) {
			const bool apart = look[i].n <= REPORT_APART;
			for (size_t c = 0; c < (apart ? look[i].n : 1); c++) {
				if (shown == MAX_ATTENTION) {
					more += apart ? 1 : look[i].n;
					continue;
				}
				if (shown++ == 0)
					begin_attention(f);
				look_item(f, r, k, &look[i], c, apart ? 1 : look[i].n);
			}
		}
	}
	for (size_t k = 0; k < r->n_files; k++)
		for (size_t i = 0; i < r->file[k].v.n_other; i++) {
			if (!wants_a_look(r->file[k].v.other[i]) || said_before(&r->file[k], i))
				continue;
			if (shown++ == 0)
				begin_attention(f);
			aggregate_item(f, &r->file[k], i);
		}
	if (shown == 0)
		return;
	fputs("</ul>\n", f);
	if (more)
		fprintf(f, "<p class=\"note\">and %zu more: filter the cells by status.</p>", more);
	fputs("</section>\n", f);
}

static void aggregate_head(FILE *f, const struct report *r)
{
	fputs("<section id=\"ratios\"><h2>Ratios</h2><div class=\"scroll\"><table class=\"data stack\"><thead><tr>", f);
	if (r->n_files > 1)
		html_th(f, "file", false);
	html_th(f, "of what", false);
	html_th(f, "geomean", true);
	html_th(f, "interval", false);
	html_th(f, "weighted total", true);
	html_th(f, "cells", true);
	html_th(f, "bar", false);
	html_th(f, "verdict", false);
	html_th(f, "why", false);
	fputs("</tr></thead><tbody>\n", f);
}

static void aggregate_row(FILE *f, const struct report *r, size_t file, const json_t *a, char before[600])
{
	const json_t *g = json_object_get(a, "geomean"), *w = json_object_get(a, "weighted");
	char ratio[24], interval[64], bar[64], why[600];
	fputs("<tr>", f);
	if (r->n_files > 1) {
		fputs("<td class=\"wrap\">", f);
		markup_xml(f, r->file[file].label);
		fputs("</td>", f);
	}
	fputs("<td class=\"wrap\">", f);
	aggregate_name(f, a);
	fputs("</td>", f);
	double x = text_number(g, "ratio");
	html_td_number(f, x, text_ratio(ratio, x));
	report_interval(interval, text_number(g, "lo"), text_number(g, "hi"));
	fprintf(f, "<td class=\"iv\">%s</td>", interval);
	x = text_number(w, "ratio");
	html_td_number(f, x, text_ratio(ratio, x));
	report_bar(bar, a);
	fprintf(f, "<td class=\"num\">%lld of %lld</td><td>%s</td><td><span class=\"chip %s\">",
		(long long)text_integer(g, "n"), (long long)text_integer(g, "of"), *bar ? bar : "none",
		verdict_tone(a));
	markup_xml(f, text_get(a, "verdict"));
	fputs("</span></td><td class=\"long\">", f);
	report_bar_why(why, a);
	markup_xml(f, *why && strcmp(why, before) == 0 ? "as above" : why);
	strcpy(before, why);
	fputs("</td></tr>\n", f);
}

void html_aggregates(FILE *f, const struct report *r)
{
	size_t shown = 0;
	for (size_t k = 0; k < r->n_files; k++) {
		char before[600] = ""; /* another file's reasons are its own */
		for (size_t i = 0; i < r->file[k].v.n_other; i++) {
			if (!json_object_get(r->file[k].v.other[i], "check"))
				continue;
			if (shown++ == 0)
				aggregate_head(f, r);
			aggregate_row(f, r, k, r->file[k].v.other[i], before);
		}
	}
	if (shown)
		fputs("</tbody></table></div></section>\n", f);
}
