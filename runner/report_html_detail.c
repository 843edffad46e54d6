/* report_html_detail: everything about one cell, as a template that the page opens: arms, samples, findings, data, device, and how to
 * see it again. */
#include <stdlib.h>

#include "report_html.h"

static void fact(FILE *f, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	fprintf(f, "<dt>%s</dt><dd>", name);
	markup_xml(f, value);
	fputs("</dd>", f);
}

static void fact_number(FILE *f, const char *name, double x, const char *fmt)
{
	char buf[64];
	if (!isfinite(x))
		return;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(buf, sizeof buf, fmt, x);
#pragma GCC diagnostic pop
	fact(f, name, buf);
}

/* pair: of two builds, whose names say which is judged. */
static void arms(FILE *f, const json_t *cell, const struct row *row, bool pair)
{
	const json_t *arm;
	size_t i;
	char buf[64];
	if (json_array_size(json_object_get(cell, "arms")) == 0)
		return;
	fputs("<div class=\"scroll\"><table class=\"data stack arms\"><thead><tr><th>arm</th><th>role</th><th "
	      "class=\"num\">n</th>"
	      "<th class=\"num\">median us</th><th class=\"num\">min</th><th class=\"num\">ratio</th><th>interval</th>"
	      "<th class=\"num\">GB/s</th><th class=\"num\">TFLOP/s</th><th class=\"num\">% of peak</th>"
	      "<th class=\"num\">regs</th><th class=\"num\">spills B</th><th>output</th></tr></thead><tbody>",
	      f);
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		const json_t *s = json_object_get(arm, "summary"), *art = json_object_get(arm, "artifact");
		const char *name = text_get(arm, "name");
		const char *judged = report_judged_arm(row);
		const struct report_ratio ratio = report_arm_ratio(row, arm);
		bool served = judged && strcmp(judged, name) == 0;
		fprintf(f, "<tr%s><th scope=\"row\">", served ? " class=\"served\"" : "");
		markup_xml(f, name);
		fprintf(f, "%s</th><td>",
			served && row->is_ratio ? " <small>compared</small>"
			: served && !pair       ? " <small>served</small>"
						: "");
		markup_xml(f, text_get(arm, "role"));
		fputs("</td>", f);
		if (json_is_string(json_object_get(arm, "unsupported"))) {
			fputs("<td colspan=\"11\">", f);
			markup_xml(f, text_get(arm, "unsupported"));
			fputs("</td></tr>", f);
			continue;
		}
		fprintf(f, "<td class=\"num\">%lld</td>", (long long)text_integer(s, "n"));
		fprintf(f, "<td class=\"num\">%s</td>", text_us(buf, text_number(s, "median_ns")));
		fprintf(f, "<td class=\"num\">%s</td>", text_us(buf, text_number(s, "min_ns")));
		fprintf(f, "<td class=\"num\">%s</td>", text_ratio(buf, json_is_object(s) ? ratio.ratio : NAN));
		report_interval(buf, ratio.lo, ratio.hi);
		fprintf(f, "<td class=\"iv\">%s</td>", buf);
		const double rate[] = {text_number(s, "gb_per_s"), text_number(s, "tflop_per_s"),
				       100 * text_number(s, "peak_fraction"), text_number(art, "registers"),
				       text_number(art, "spills_bytes")};
		for (size_t k = 0; k < 5; k++) {
			snprintf(buf, sizeof buf, rate[k] >= 1000 ? "%.0f" : "%.3g", rate[k]);
			fprintf(f, "<td class=\"num\">%s</td>", isfinite(rate[k]) ? buf : "-");
		}
		fputs("<td><code title=\"", f);
		markup_xml(f, text_get(arm, "out_sha256"));
		fprintf(f, "\">%.12s</code></td></tr>", text_get(arm, "out_sha256"));
	}
	fputs("</tbody></table></div>\n", f);
}

/* "[t=2,h=17]" */
static void coordinates(FILE *f, const json_t *at)
{
	const char *key;
	json_t *value;
	size_t i;
	const char *comma = "[";
	if (json_is_string(at)) {
		markup_xml(f, json_string_value(at));
		return;
	}
	json_t *j = (json_t *)(uintptr_t)at;
	json_object_foreach(j, key, value)
	{
		fputs(comma, f);
		markup_xml(f, key);
		fprintf(f, "=%.0f", json_number_value(value));
		comma = ",";
	}
	json_array_foreach(at, i, value)
	{
		fprintf(f, "%s%.0f", comma, json_number_value(value));
		comma = ",";
	}
	if (*comma == ',')
		fputc(']', f);
}

static void value(FILE *f, const json_t *v)
{
	if (json_is_string(v))
		markup_xml(f, json_string_value(v));
	else if (json_is_number(v))
		fprintf(f, "%.9g", json_number_value(v));
	else
		fputs("non-finite", f);
}

/* Where it differs, how much and how often. */
static void evidence(FILE *f, const json_t *x)
{
	const json_t *first = json_object_get(x, "first"), *worst = json_object_get(x, "worst");
	char n[32], of[32];
	if (json_is_object(first)) {
		fputs("<br>first <code>", f);
		markup_xml(f, text_get(x, "tensor"));
		coordinates(f, json_object_get(first, "at"));
		fputs("</code>: <code>", f);
		markup_xml(f, text_get(first, "got_bits"));
		fputs("</code> ", f);
		value(f, json_object_get(first, "got"));
		fputs(" for <code>", f);
		markup_xml(f, text_get(first, "want_bits"));
		fputs("</code> ", f);
		value(f, json_object_get(first, "want"));
	}
	if (json_is_object(worst)) {
		fputs("<br>worst <code>", f);
		markup_xml(f, text_get(x, "tensor"));
		coordinates(f, json_object_get(worst, "at"));
		fputs("</code>: ", f);
		value(f, json_object_get(worst, "got"));
		fputs(" for ", f);
		value(f, json_object_get(worst, "want"));
		fprintf(f, ", error %.3g, allowed %.3g", text_number(worst, "error"), text_number(worst, "allowed"));
	}
	if (text_integer(x, "differ") > 0)
		fprintf(f, "<br>%s of %s elements", text_count(n, text_integer(x, "differ")),
			text_count(of, text_integer(x, "of")));
	if (json_is_number(json_object_get(x, "ulp_max")) && text_integer(x, "differ") > 0)
		fprintf(f, ", %s ULP at most", text_count(n, text_integer(x, "ulp_max")));
	if (text_integer(x, "launches_differ") > 0)
		fprintf(f, "; in %lld of %lld launches", (long long)text_integer(x, "launches_differ"),
			(long long)text_integer(x, "launches"));
}

static void findings(FILE *f, const json_t *cell)
{
	const json_t *x;
	size_t i, passed = 0, shown = 0;
	json_array_foreach(json_object_get(cell, "checks"), i, x)
	{
		if (strcmp(text_get(x, "status"), "pass") == 0) {
			passed++;
			continue;
		}
		fputs(shown++ == 0 ? "<ul class=\"look\">" : "", f);
		const struct row as = {.status = status_of(text_get(x, "status"))};
		fprintf(f, "<li><span class=\"chip %s\">", report_tone(report_kind(&as)));
		markup_xml(f, as.status < ST_N ? report_status_word(as.status) : text_get(x, "status"));
		fputs("</span> ", f);
		markup_xml(f, text_get(x, "check"));
		fputc(' ', f);
		markup_xml(f, text_get(x, "arm"));
		if (*text_get(x, "against")) {
			fputs(" against ", f);
			markup_xml(f, text_get(x, "against"));
		}
		if (*text_get(x, "text")) {
			fputs(": ", f);
			markup_xml(f, text_get(x, "text"));
		}
		evidence(f, x);
		fputs("</li>", f);
	}
	if (shown)
		fputs("</ul>", f);
	fprintf(f, "<p class=\"note\">%zu findings of the checks pass.</p>\n", passed);
}

static void audit(FILE *f, const json_t *cell)
{
	const char *tensor;
	json_t *a;
	const json_t *reading;
	size_t i, rows = 0;
	json_object_foreach(json_object_get(cell, "data_audit"), tensor, a)
	{
		json_array_foreach(json_object_get(a, "readings"), i, reading)
		{
			if (rows++ == 0)
				fputs("<details><summary>data as filled</summary><div class=\"scroll\"><table "
				      "class=\"data\"><thead>"
				      "<tr><th>tensor</th><th>as</th><th class=\"num\">n</th><th class=\"num\">nan</th>"
				      "<th class=\"num\">inf</th><th class=\"num\">denormal</th><th "
				      "class=\"num\">zero</th>"
				      "<th class=\"num\">negative</th><th class=\"num\">min</th><th "
				      "class=\"num\">max</th></tr>"
				      "</thead><tbody>",
				      f);
			fputs("<tr><th scope=\"row\">", f);
			markup_xml(f, tensor);
			fputs("</th><td>", f);
			markup_xml(f, text_get(reading, "as"));
			fputs("</td>", f);
			static const char *const names[] = {"n", "nan", "inf", "denormal", "zero", "negative"};
			char n[32];
			for (size_t k = 0; k < 6; k++)
				fprintf(f, "<td class=\"num\">%s</td>", text_count(n, text_integer(reading, names[k])));
			fprintf(f, "<td class=\"num\">%.4g</td><td class=\"num\">%.4g</td></tr>",
				text_number(reading, "min"), text_number(reading, "max"));
		}
	}
	if (rows)
		fputs("</tbody></table></div></details>\n", f);
}

static void facts(FILE *f, const json_t *cell)
{
	const json_t *t = json_object_get(cell, "timing"), *m = json_object_get(cell, "measure");
	const json_t *after = json_object_get(json_object_get(cell, "device_state"), "after");
	const json_t *confirm = json_object_get(cell, "confirm");
	const json_t *waiver = json_object_get(cell, "waiver"), *note;
	const char *key;
	json_t *x;
	size_t i;
	char buf[64];
	fputs("<dl class=\"facts\">", f);
	fact(f, "served by", text_get(cell, "selected_row"));
	if (isfinite(text_number(cell, "margin"))) {
		fprintf(f, "<dt>margin</dt><dd>%.4g %% <small>", 100 * (text_number(cell, "margin") - 1));
		markup_xml(f, text_get(cell, "rule"));
		fputs("</small></dd>", f);
	}
	fact(f, "timing", text_get(t, "verdict"));
	fact(f, "gate",
	     !json_is_object(t)                           ? ""
	     : json_is_true(json_object_get(t, "gating")) ? "yes"
							  : "no: a diagnostic on this machine");
	fact_number(f, "noise of a launch", 100 * text_number(t, "noise"), "%.2f %%");
	if (json_is_object(json_object_get(t, "null"))) {
		const json_t *z = json_object_get(t, "null");
		report_interval(buf, exp(text_number(z, "lo")), exp(text_number(z, "hi")));
		fact(f, "null arm", buf);
	}
	if (text_number(t, "rounds_more") > 0)
		fact_number(f, "to settle it", text_number(t, "rounds_more"), "%.0f more rounds");
	if (json_is_object(confirm)) {
		double e = text_number(confirm, "estimate");
		fprintf(f, "<dt>second process</dt><dd>%+.1f %%, n=%lld, p=%.2g: %s</dd>", 100 * (exp(e) - 1),
			(long long)text_integer(confirm, "n"), text_number(confirm, "p"),
			json_is_true(json_object_get(confirm, "confirmed")) ? "agrees" : "does not agree");
	}
	fact(f, "clock", text_get(m, "clock"));
	fact_number(f, "scrub", text_number(m, "scrub_bytes") / 1048576, "%.0f MiB");
	fact_number(f, "launches a sample", text_number(m, "batch"), "%.0f");
	fact_number(f, "rounds", text_number(m, "rounds"), "%.0f");
	fact_number(f, "clock's floor", text_number(m, "floor_ns") / 1000, "%.2f us");
	fact_number(f, "SM clock", text_number(after, "sm_mhz"), "%.0f MHz");
	fact_number(f, "temperature", text_number(after, "temperature_c"), "%.0f C");
	fact_number(f, "power", text_number(after, "power_w"), "%.0f W");
	if (json_is_object(waiver)) {
		fputs("<dt>waiver</dt><dd>", f);
		markup_xml(f, text_get(waiver, "id"));
		fputs(" expects ", f);
		markup_xml(f, text_get(waiver, "expect"));
		if (*text_get(waiver, "arm")) {
			fputs(" of ", f);
			markup_xml(f, text_get(waiver, "arm"));
		}
		fputs(": ", f);
		markup_xml(f, text_get(waiver, "reason"));
		if (*text_get(waiver, "until")) {
			fputs(" (until ", f);
			markup_xml(f, text_get(waiver, "until"));
			fputc(')', f);
		}
		fputs("</dd>", f);
	}
	fputs("<dt>parameters</dt><dd>", f);
	json_object_foreach(json_object_get(cell, "params"), key, x)
	{
		markup_xml(f, key);
		fprintf(f, "=%s ", text_number_text(buf, json_number_value(x)));
	}
	fputs("</dd>", f);
	json_array_foreach(json_object_get(cell, "notes"), i, note) fact(f, "note", text_string(note));
	json_array_foreach(json_object_get(t, "notes"), i, note) fact(f, "note", text_string(note));
	fputs("</dl>\n", f);
	if (*text_get(cell, "rerun")) {
		fputs("<p class=\"rerun\"><code>", f);
		markup_xml(f, text_get(cell, "rerun"));
		fputs("</code><button type=\"button\" class=\"copy\">copy</button></p>\n", f);
	}
}

static void one_file(FILE *f, const struct report *r, size_t line, size_t file, const struct report_plots *plots)
{
	const struct report_cell *c = &r->line[line].cell[file];
	fputs("<div class=\"of-file\">", f);
	html_file_label(f, r, file);
	fputs("<p class=\"head\">", f);
	html_status(f, c->row);
	fputc(' ', f);
	if (c->json)
		markup_xml(f, report_reason(c->json));
	else
		fputs("This file has no such cell.", f);
	fputs("</p>\n", f);
	if (c->json) {
		char caption[240];
		const char *yardstick = report_yardstick(r);
		snprintf(caption, sizeof caption,
			 "All samples: bar: median; square with whiskers: interval of the ratio, times the median of "
			 "%s; "
			 "dotted: %s; red line: margin; red triangles: slower than the picture shows.",
			 yardstick, yardstick);
		html_figure(f, report_plot_strip(plots, line, file), caption);
		arms(f, c->json, c->row, r->file[file].text->pair);
		findings(f, c->json);
		facts(f, c->json);
		audit(f, c->json);
	}
	fputs("</div>\n", f);
}

/* Which cells are opened on paper: what failed or is invalid, of those that say the same one. The caller frees it. */
static bool *printed(const struct report *r)
{
	bool *on = calloc(r->n_lines + 1, sizeof *on);
	if (!on)
		abort();
	for (size_t k = 0; k < r->n_files; k++) {
		struct report_look *look;
		const size_t n = report_looks(r, k, false, &look);
		for (size_t i = 0; i < n; i++)
			for (size_t c = 0; c < (look[i].n <= REPORT_APART ? look[i].n : 1); c++) {
				const struct row *row = r->line[look[i].line[c]].cell[k].row;
				on[look[i].line[c]] |= report_failed(row) || report_invalid(row);
			}
	}
	return on;
}

void html_details(FILE *f, const struct report *r, const struct report_plots *plots)
{
	bool *on_paper = printed(r);
	for (size_t i = 0; i < r->n_lines; i++) {
		fprintf(f, "<template id=\"cell-%zu\"%s data-name=\"", i, on_paper[i] ? " class=\"print\"" : "");
		markup_xml(f, r->line[i].name);
		fputs("\">", f);
		for (size_t k = 0; k < r->n_files; k++)
			one_file(f, r, i, k, plots);
		fputs("</template>\n", f);
	}
	free(on_paper);
}
