/* report_html_cells: winners by kernel, and the table of all cells that the page's script filters and sorts. */
#include <stdlib.h>

#include "report_html.h"

static bool has_kind(const struct report *r, enum report_kind kind)
{
	for (size_t k = 0; k < r->n_files; k++)
		for (size_t i = 0; i < r->file[k].text->n_rows; i++)
			if (report_kind(&r->file[k].text->row[i]) == kind)
				return true;
	return false;
}

/* ---- winners -------------------------------------------------------------------------------------------------------- */

enum { MAX_WINNERS = 256 };

struct winner {
	const char *kernel, *arm, *role;
	size_t cells, judged, fastest, faster, slower, invalid;
	double ln_sum;
};

static struct winner *find(struct winner *w, size_t *n, const char *kernel, const char *arm, const char *role)
{
	for (size_t i = 0; i < *n; i++)
		if (strcmp(w[i].kernel, kernel) == 0 && strcmp(w[i].arm, arm) == 0)
			return &w[i];
	if (*n == MAX_WINNERS)
		return NULL;
	w[*n] = (struct winner){.kernel = kernel, .arm = arm, .role = role};
	return &w[(*n)++];
}

static void take_cell(struct winner *w, size_t *n, const json_t *cell, const struct row *row)
{
	const json_t *arm;
	size_t i;
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		const json_t *s = json_object_get(arm, "summary");
		const char *role = text_get(arm, "role"), *name = text_get(arm, "name");
		if (!json_is_object(s) || strcmp(role, "null") == 0)
			continue;
		struct winner *x = find(w, n, text_get(cell, "kernel"), name, role);
		if (!x)
			continue;
		const struct report_ratio ratio = report_arm_ratio(row, arm);
		const char *judged = report_judged_arm(row);
		if (!(ratio.ratio > 0))
			continue;
		x->cells++;
		x->ln_sum += log(ratio.ratio);
		x->faster += ratio.hi < 1;
		x->slower += ratio.lo > 1;
		x->invalid += report_invalid(row);
		x->fastest += row->best && strcmp(row->best, name) == 0;
		x->judged += judged && strcmp(judged, name) == 0;
	}
}

void html_winners(FILE *f, const struct report *r)
{
	fprintf(f,
		"<section id=\"winners\"><h2>Winners</h2>\n<p class=\"note\">Faster and slower count cells whose "
		"interval against %s, at 2.5 %% a side, leaves out 1. The fastest measured arm of a cell wins by luck "
		"too: measure anew before a table is changed.</p>\n<div class=\"side\">",
		report_yardstick(r));
	for (size_t k = 0; k < r->n_files; k++) {
		struct winner w[MAX_WINNERS];
		size_t n = 0;
		for (size_t i = 0; i < r->file[k].v.n_cells; i++)
			take_cell(w, &n, r->file[k].v.cell[i], &r->file[k].text->row[i]);
		fputs("<div>", f);
		html_file_label(f, r, k);
		fputs("<div class=\"scroll\"><table class=\"data stack\"><thead><tr>", f);
		html_th(f, "kernel", false);
		html_th(f, "arm", false);
		html_th(f, "role", false);
		html_th(f, "geomean", true);
		html_th(f, "cells", true);
		html_th(f, "faster", true);
		html_th(f, "slower", true);
		html_th(f, "fastest", true);
		html_th(f, report_judged(r), true);
		if (has_kind(r, REPORT_INVALID))
			html_th(f, "invalid", true);
		fputs("</tr></thead><tbody>\n", f);
		for (size_t i = 0; i < n; i++) {
			char buf[24];
			fputs("<tr><td>", f);
			markup_xml(f, w[i].kernel);
			fputs("</td><td>", f);
			markup_xml(f, w[i].arm);
			fputs("</td><td>", f);
			markup_xml(f, w[i].role);
			fputs("</td>", f);
			double ratio = exp(w[i].ln_sum / (double)w[i].cells);
			html_td_number(f, ratio, text_ratio(buf, ratio));
			const size_t count[] = {w[i].cells,   w[i].faster, w[i].slower,
						w[i].fastest, w[i].judged, w[i].invalid};
			for (size_t c = 0; c < (has_kind(r, REPORT_INVALID) ? 6 : 5); c++)
				fprintf(f, "<td class=\"num\">%zu</td>", count[c]);
			fputs("</tr>\n", f);
		}
		fputs("</tbody></table></div></div>\n", f);
	}
	fputs("</div></section>\n", f);
}

/* ---- all cells ------------------------------------------------------------------------------------------------------ */

/* What the filter looks at: key=value, a line each, arms and statuses several times. */
static void keys(FILE *f, const struct report *r, size_t line)
{
	static const char *const words[] = {"case", "kernel", "geometry", "data", "suite"};
	const json_t *cell = r->line[line].any;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		fprintf(f, "%s=", words[i]);
		markup_xml(f, text_get(cell, words[i]));
		fputs("&#10;", f);
	}
	const char *axis;
	json_t *value;
	char buf[32];
	json_object_foreach(json_object_get(cell, "point"), axis, value)
	{
		markup_xml(f, axis);
		fprintf(f, "=%s&#10;", text_number_text(buf, json_number_value(value)));
	}
	const json_t *arm;
	size_t i;
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		fputs("arm=", f);
		markup_xml(f, text_get(arm, "name"));
		fputs("&#10;", f);
	}
	for (size_t k = 0; k < r->n_files; k++) {
		const struct row *row = r->line[line].cell[k].row;
		if (!row)
			continue;
		const char *word = row->status < ST_N ? status_name(row->status) : "unknown",
			   *judged = report_judged_arm(row);
		fprintf(f, "status=%s&#10;", word);
		if (strcmp(word, report_status_word(row->status)) != 0)
			fprintf(f, "status=%s&#10;", report_status_word(row->status));
		if (judged) {
			fprintf(f, "%s=", report_judged(r));
			markup_xml(f, judged);
			fputs("&#10;", f);
		}
	}
}

static void file_columns(FILE *f, const struct report *r, size_t line, size_t file, bool best)
{
	const struct report_cell *c = &r->line[line].cell[file];
	const struct row *row = c->row;
	char buf[64];
	fputs("<td>", f);
	html_status(f, row);
	fputs("</td>", f);
	if (!row) {
		fprintf(f, "<td class=\"num\"></td><td></td><td class=\"num\"></td><td class=\"num\"></td><td></td>%s",
			best ? "<td></td><td class=\"num\"></td>" : "");
		return;
	}
	html_td_number(f, row->shipped_ns, text_us(buf, row->shipped_ns));
	fputs("<td>", f);
	markup_xml(f, report_judged_arm(row));
	fputs("</td>", f);
	html_td_number(f, row->selected_ns, text_us(buf, row->selected_ns));
	html_td_number(f, row->trivial ? 1 : row->ratio, text_ratio(buf, row->trivial ? 1 : row->ratio));
	report_interval(buf, row->lo, row->hi);
	fprintf(f, "<td class=\"iv\">%s</td>", row->trivial ? "is the shipped" : buf);
	if (!best)
		return;
	fputs("<td>", f);
	if (row->best) {
		char number[24];
		markup_xml(f, row->best);
		fprintf(f, " <small>%s</small>", text_ratio(number, row->best_ratio));
	}
	fputs("</td><td class=\"num\"", f);
	if (isfinite(row->peak))
		fprintf(f, " data-v=\"%.6g\"><span class=\"peak\" style=\"--v:%.1f%%\">%.0f %%</span", row->peak,
			100 * fmin(1, fmax(0, row->peak)), 100 * row->peak);
	fputs("></td>", f);
}

void html_cells(FILE *f, const struct report *r)
{
	const bool best = r->n_files == 1; /* room; an opened cell has both */
	fputs("<section id=\"cells\"><h2>Cells</h2>\n<p class=\"tools\"><label class=\"filter\">filter "
	      "<input id=\"filter\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\" "
	      "placeholder=\"absorb kv&gt;=32768 status!=pass\"></label>",
	      f);
	static const struct {
		const char *name, *filter;
		enum report_kind kind;
	} quick[] = {{"all", "", REPORT_KINDS},
		     {"failed", "is:failed", REPORT_FAILED},
		     {"invalid", "status=invalid", REPORT_INVALID},
		     {"undecided", "status=undecided", REPORT_UNDECIDED},
		     {"waived", "status=waived", REPORT_WAIVED}};
	for (size_t i = 0; i < sizeof quick / sizeof *quick; i++)
		if (i < 2 || has_kind(r, quick[i].kind))
			fprintf(f, "<button type=\"button\" class=\"quick\" data-filter=\"%s\">%s</button>",
				quick[i].filter, quick[i].name);
	fputs("<output id=\"count\" for=\"filter\"></output></p>\n<div class=\"scroll tall\"><table class=\"data\" "
	      "id=\"cell-table\"><thead>",
	      f);
	if (r->n_files > 1) {
		fputs("<tr><td></td>", f);
		for (size_t k = 0; k < r->n_files; k++) {
			fprintf(f, "<th colspan=\"%d\" scope=\"colgroup\">", best ? 8 : 6);
			markup_xml(f, r->file[k].label);
			fputs("</th>", f);
		}
		fputs("</tr>", f);
	}
	fputs("<tr>", f);
	html_th(f, "cell", false);
	for (size_t k = 0; k < r->n_files; k++) {
		html_th(f, "status", false);
		char yardstick[24];
		snprintf(yardstick, sizeof yardstick, "%s us", report_yardstick(r));
		html_th(f, yardstick, true);
		html_th(f, report_judged(r), false);
		html_th(f, "us", true);
		html_th(f, "ratio", true);
		html_th(f, "interval", false);
		if (best) {
			html_th(f, "fastest", false);
			html_th(f, "% of peak", true);
		}
	}
	fputs("</tr></thead><tbody>\n", f);
	for (size_t i = 0; i < r->n_lines; i++) {
		bool failed = false, invalid = false;
		for (size_t k = 0; k < r->n_files; k++) {
			failed |= report_failed(r->line[i].cell[k].row);
			invalid |= report_invalid(r->line[i].cell[k].row);
		}
		fprintf(f, "<tr id=\"row-%zu\" data-i=\"%zu\"%s data-k=\"", i, i,
			failed    ? " class=\"failed\""
			: invalid ? " class=\"invalid\""
				  : "");
		keys(f, r, i);
		fprintf(f, "\"><th scope=\"row\" data-v=\"%zu\"><a href=\"#cell-%zu\" data-open=\"%zu\">", i, i, i);
		html_name(f, r->line[i].name);
		fputs("</a></th>", f);
		for (size_t k = 0; k < r->n_files; k++)
			file_columns(f, r, i, k, best);
		fputs("</tr>\n", f);
	}
	fputs("</tbody></table></div></section>\n", f);
}

/* ---- for the script ------------------------------------------------------------------------------------------------- */

static json_t *arms_json(const json_t *cell, const struct row *row)
{
	json_t *out = json_object();
	const json_t *arm;
	size_t i;
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		const char *role = text_get(arm, "role");
		const double ratio = report_arm_ratio(row, arm).ratio;
		if (ratio > 0 && isfinite(ratio) && strcmp(role, "null") != 0)
			json_object_set_new(out, text_get(arm, "name"), json_real(round(ratio * 1e5) / 1e5));
	}
	return out;
}

void html_data(FILE *f, const struct report *r)
{
	json_t *cells = json_array(), *labels = json_array();
	for (size_t k = 0; k < r->n_files; k++)
		json_array_append_new(labels, json_string(r->file[k].label));
	for (size_t i = 0; i < r->n_lines; i++) {
		json_t *list = json_array();
		for (size_t k = 0; k < r->n_files; k++) {
			const struct report_cell *c = &r->line[i].cell[k];
			json_t *one = c->json ? json_object() : json_null();
			if (c->json) {
				json_object_set_new(one, "served",
						    report_judged_arm(c->row) ? json_string(report_judged_arm(c->row))
									      : json_null());
				json_object_set_new(one, "best",
						    c->row->best ? json_string(c->row->best) : json_null());
				json_object_set_new(one, "arms", arms_json(c->json, c->row));
			}
			json_array_append_new(list, one);
		}
		json_array_append_new(cells, list);
	}
	json_t *all = json_pack("{s:o, s:o}", "files", labels, "cells", cells);
	fputs("<script type=\"application/json\" id=\"data\">", f);
	markup_json(f, all);
	fputs("</script>\n", f);
	json_decref(all);
}
