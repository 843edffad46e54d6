/* report_md: what fits a comment on a pull request: the verdict, what failed and how to see it again, the winners; the rest folded. */
#include <stdlib.h>

#include "markup.h"
#include "report.h"

enum { MD_MAX_ROWS = 60 }; /* GitHub cuts comments at 65,536 characters */

static void md_us(FILE *f, double ns)
{
	char buf[24];
	fprintf(f, " %s |", text_us(buf, ns));
}

static void heading(FILE *f, const struct report_file *file)
{
	const json_t *h = file->v.header, *footer = file->v.footer, *device = json_object_get(h, "device");
	const json_t *git = json_object_get(h, "git");
	char wall[24];
	fprintf(f, "### %s: ", report_word(file));
	markup_md(f, text_get(h, "suite"));
	fputs("\n\n", f);
	const char *comma = "";
	for (int s = 0; s < ST_N; s++)
		if (file->text->by_status[s]) {
			fprintf(f, "%s**%lld** %s", comma, (long long)file->text->by_status[s],
				report_status_word((enum cell_status)s));
			comma = ", ";
		}
	fprintf(f, "%s of %lld cells", *comma ? "" : "none", (long long)text_integer(h, "cells"));
	fputs(" on ", f);
	markup_md(f, text_get(device, "name"));
	fputs(" (", f);
	markup_md(f, text_get(h, "backend"));
	fputs(")", f);
	if (*text_get(git, "commit"))
		fprintf(f, " at `%.12s`%s", text_get(git, "commit"),
			json_is_true(json_object_get(git, "dirty")) ? " with local changes" : "");
	if (footer)
		fprintf(f, ", %s, exit %lld", text_seconds(wall, text_number(footer, "wall_ns")),
			(long long)text_integer(footer, "exit"));
	else
		fputs(", **the file was cut short: the run did not end**", f);
	fputs("\n\n", f);
	if (footer && json_is_true(json_object_get(footer, "noisy")))
		fprintf(f,
			"> The run is noisy: %s differs from itself in too many cells. Its timing decides "
			"nothing.\n\n",
			text_yardstick(file->text));
}

static void finding(FILE *f, const struct report *r, size_t k, const struct report_look *l, size_t first, size_t n)
{
	const struct report_cell *c = &r->line[l->line[first]].cell[k];
	const bool failed = report_failed(c->row) || report_invalid(c->row);
	fprintf(f, "| %s%s%s | ", failed ? "**" : "",
		c->row->diagnostic_slower ? "slower (diagnostic)" : report_status_word(c->row->status),
		failed ? "**" : "");
	markup_md_code(f, text_short_id(c->json));
	if (n > 1)
		fprintf(f, " and %zu more, alike", n - 1);
	fputs(" | ", f);
	markup_md(f, report_reason(c->json));
	if (*text_get(c->json, "rerun")) {
		fputs("<br>", f);
		markup_md_code(f, text_get(c->json, "rerun"));
	}
	fputs(" |\n", f);
}

static void findings(FILE *f, const struct report *r, size_t k)
{
	struct report_look *look;
	size_t shown = 0, more = 0, n = report_looks(r, k, true, &look);
	for (size_t i = 0; i < n; i++) {
		const bool apart = look[i].n <= REPORT_APART;
		for (size_t c = 0; c < (apart ? look[i].n : 1); c++) {
			if (shown == MD_MAX_ROWS) {
				more += apart ? 1 : look[i].n;
				continue;
			}
			if (shown++ == 0)
				fputs("| status | cell | why |\n|---|---|---|\n", f);
			finding(f, r, k, &look[i], c, apart ? 1 : look[i].n);
		}
	}
	if (more)
		fprintf(f, "\nand %zu more of them in the verdict file\n", more);
	if (shown)
		fputc('\n', f);
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
	markup_md(f, name);
	free(name);
}

static void aggregates(FILE *f, const struct report_file *file)
{
	bool any = false;
	char before[600] = "";
	for (size_t i = 0; i < file->v.n_other; i++) {
		const json_t *a = file->v.other[i], *g = json_object_get(a, "geomean");
		const json_t *w = json_object_get(a, "weighted");
		if (!json_object_get(a, "check"))
			continue;
		char ratio[24], interval[64], bar[64], why[600];
		if (!any)
			fputs("| ratio | geomean | 95 % interval | weighted | n | bar | verdict | why |\n"
			      "|---|--:|---|--:|--:|---|---|---|\n",
			      f);
		any = true;
		fputs("| ", f);
		aggregate_name(f, a);
		report_interval(interval, text_number(g, "lo"), text_number(g, "hi"));
		fprintf(f, " | %s | %s |", text_ratio(ratio, text_number(g, "ratio")), interval);
		report_bar(bar, a);
		fprintf(f, " %s | %lld of %lld | %s | %s | ", text_ratio(ratio, text_number(w, "ratio")),
			(long long)text_integer(g, "n"), (long long)text_integer(g, "of"), *bar ? bar : "none",
			text_get(a, "verdict"));
		report_bar_why(why, a);
		markup_md(f, *why && strcmp(why, before) == 0 ? "as above" : why);
		strcpy(before, why);
		fputs(" |\n", f);
	}
	if (any)
		fputc('\n', f);
}

static void all_cells(FILE *f, const struct report *r, const struct report_file *file)
{
	size_t shown = 0;
	char ratio[24], interval[64];
	if (file->v.n_cells == 0)
		return;
	fprintf(f, "<details><summary>All %zu cells</summary>\n\n", file->v.n_cells);
	fprintf(f,
		"| cell | status | %s us | %s | us | ratio | interval | fastest |\n"
		"|---|---|--:|---|--:|--:|---|---|\n",
		report_yardstick(r), report_judged(r));
	for (size_t i = 0; i < file->v.n_cells && shown < MD_MAX_ROWS; i++, shown++) {
		const json_t *cell = file->v.cell[i];
		const struct row *row = &file->text->row[i];
		fputs("| ", f);
		markup_md(f, text_short_id(cell));
		fprintf(f, " | %s |", report_status_word(row->status));
		md_us(f, row->shipped_ns);
		fputc(' ', f);
		markup_md(f, report_judged_arm(row) ? report_judged_arm(row) : "-");
		fputs(" |", f);
		md_us(f, row->selected_ns);
		report_interval(interval, row->lo, row->hi);
		fprintf(f, " %s | %s | ", text_ratio(ratio, row->ratio), row->trivial ? "is the shipped" : interval);
		markup_md(f, row->best ? row->best : "-");
		fputs(" |\n", f);
	}
	if (shown < file->v.n_cells)
		fprintf(f, "\nand %zu more in the verdict file\n", file->v.n_cells - shown);
	fputs("\n</details>\n\n", f);
}

void report_md(const struct report *r, FILE *f)
{
	for (size_t i = 0; i < r->n_files; i++) {
		const struct report_file *file = &r->file[i];
		heading(f, file);
		if (r->n_files > 1) {
			fputs("file ", f);
			markup_md_code(f, file->label);
			fputs("\n\n", f);
		}
		findings(f, r, i);
		aggregates(f, file);
		report_controls_md(f, file);
		for (int k = 0; k < file->text->n_advice; k++) {
			const struct advice *a = &file->text->advice[k];
			char ratio[24];
			if (k == 0)
				fputs("Measured faster than what is served (advice, not confirmed):\n", f);
			fputs("- ", f);
			markup_md(f, a->kernel);
			fputs(": ", f);
			markup_md(f, a->arm);
			fprintf(f, " is %s of ", text_ratio(ratio, exp(a->ln_sum / (double)a->cells)));
			markup_md(f, a->selected);
			fprintf(f, " in %lld cell%s\n", (long long)a->cells, a->cells == 1 ? "" : "s");
		}
		if (file->text->n_advice)
			fputc('\n', f);
		all_cells(f, r, file);
	}
}
