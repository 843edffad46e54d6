/* report_html: one file that works offline: its style and script are inside, and the policy on it forbids everything else. */
#include "report_html.h"

#include <stdlib.h>
#include <string.h>

#include "report_css.h"
#include "report_js.h"
#include "sha256.h"

/* ---- parts ---------------------------------------------------------------------------------------------------------- */

void html_status(FILE *f, const struct row *row)
{
	if (!row) {
		fputs("<span class=\"chip none\">absent</span>", f);
		return;
	}
	fprintf(f, "<span class=\"chip %s\">%s</span>", report_tone(report_kind(row)), report_status_word(row->status));
}

void html_th(FILE *f, const char *text, bool number)
{
	fprintf(f, "<th%s scope=\"col\"><button type=\"button\" class=\"sort\">", number ? " class=\"num\"" : "");
	markup_xml(f, text);
	fputs("</button></th>", f);
}

void html_td_number(FILE *f, double value, const char *shown)
{
	fputs("<td class=\"num\"", f);
	if (isfinite(value))
		fprintf(f, " data-v=\"%.10g\"", value);
	fputc('>', f);
	markup_xml(f, shown);
	fputs("</td>", f);
}

void html_name(FILE *f, const char *name)
{
	while (*name) {
		char part[256];
		size_t n = strcspn(name, "/,") + 1;
		if (name[n - 1] == 0 || n >= sizeof part)
			break;
		memcpy(part, name, n);
		part[n] = 0;
		markup_xml(f, part);
		fputs("<wbr>", f);
		name += n;
	}
	markup_xml(f, name);
}

void html_figure(FILE *f, const char *svg, const char *caption)
{
	if (!svg)
		return;
	/* At most a third larger than drawn: a small picture does not shout. */
	const char *box = strstr(svg, "viewBox=\"0 0 ");
	int width = box ? atoi(box + strlen("viewBox=\"0 0 ")) : 0;
	fprintf(f, "<figure class=\"plot\" tabindex=\"0\" style=\"--w:%dpx\">%s<figcaption>",
		width > 0 ? width * 4 / 3 : 1000, svg);
	markup_xml(f, caption);
	fputs("</figcaption></figure>\n", f);
}

void html_file_label(FILE *f, const struct report *r, size_t file)
{
	if (r->n_files < 2)
		return;
	fputs("<p class=\"label\">", f);
	markup_xml(f, r->file[file].label);
	fputs("</p>", f);
}

/* ---- the page ------------------------------------------------------------------------------------------------------- */

static void base64_of(const unsigned char *p, size_t n, char *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < n; i += 3) {
		unsigned long v = (unsigned long)p[i] << 16 | (i + 1 < n ? (unsigned long)p[i + 1] << 8 : 0) |
				  (i + 2 < n ? p[i + 2] : 0);
		*out++ = digits[v >> 18 & 63];
		*out++ = digits[v >> 12 & 63];
		*out++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
		*out++ = i + 2 < n ? digits[v & 63] : '=';
	}
	*out = 0;
}

/* Nothing is fetched, and no script runs but the page's own: a name in a record can do no harm even if an escape were missed. */
static void policy(FILE *f)
{
	struct sha256 s;
	unsigned char digest[32];
	char text[64];
	sha256_init(&s);
	sha256_update(&s, report_js_text, sizeof report_js_text);
	sha256_final(&s, digest);
	base64_of(digest, sizeof digest, text);
	fprintf(f,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
		"script-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">\n",
		text);
}

static void head(const struct report *r, FILE *f)
{
	const char *suite = text_get(r->file[0].v.header, "suite");
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", f);
	policy(f);
	fputs("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
	      f);
	fprintf(f, "%s: ", report_word(&r->file[0]));
	markup_xml(f, suite);
	fputs(" - assay</title>\n<style>\n", f);
	fwrite(report_css_text, 1, sizeof report_css_text, f);
	fputs("</style>\n</head>\n<body>\n", f);
	fputs("<a class=\"skip\" href=\"#cells\">to the cells</a>\n<header class=\"top\"><h1>", f);
	markup_xml(f, suite);
	fputs("</h1><nav aria-label=\"sections\"><a href=\"#summary\">summary</a><a href=\"#maps\">maps</a>"
	      "<a href=\"#winners\">winners</a><a href=\"#cells\">cells</a><a href=\"#plots\">pictures</a>"
	      "<a href=\"#facts\">facts</a></nav>"
	      "<button type=\"button\" id=\"theme\" title=\"light or dark (t)\" aria-label=\"light or dark\">"
	      "\xe2\x97\x90</button>"
	      "<button type=\"button\" id=\"help\" title=\"keys (?)\" "
	      "aria-label=\"keys\">?</button></header>\n<main>\n",
	      f);
}

static void pictures(const struct report *r, FILE *f, const struct report_plots *plots, const char *why)
{
	fputs("<section id=\"plots\"><h2>Pictures</h2>\n", f);
	if (why) {
		fputs("<p class=\"note\">", f);
		markup_xml(f, why);
		fputs("</p>\n", f);
	}
	for (size_t i = 0; i < r->n_files; i++) {
		char caption[300];
		size_t out = report_plot_ratios_left_out(plots, i);
		html_file_label(f, r, i);
		snprintf(caption, sizeof caption,
			 "Ratio to %s with its interval; red bars are margins, red triangles failures, squares what is "
			 "invalid%s",
			 report_yardstick(r), out ? "" : ".");
		if (out)
			snprintf(caption + strlen(caption), sizeof caption - strlen(caption),
				 "; the %d slowest, %zu faster ones are left out.", REPORT_MAX_RATIOS, out);
		html_figure(f, report_plot_ratios(plots, i), caption);
		snprintf(caption, sizeof caption,
			 "Roofline: %s arms against the peaks that the run's calibration reached.", report_judged(r));
		html_figure(f, report_plot_roofline(plots, i), caption);
		if (plots && !report_plot_ratios(plots, i) && !report_plot_roofline(plots, i))
			fprintf(f, "<p class=\"note\">Nothing was timed against %s here.</p>\n", report_yardstick(r));
	}
	size_t out = report_plot_left_out(plots);
	if (out)
		fprintf(f,
			"<p class=\"note\">Samples of %zu cells are not drawn: at most %d pictures, failures "
			"first.</p>\n",
			out, REPORT_MAX_STRIPS);
	fputs("</section>\n", f);
}

static void sources(const struct report *r, FILE *f)
{
	fputs("<section id=\"sources\"><h2>Where this comes from</h2>\n", f);
	for (size_t i = 0; i < r->n_files; i++) {
		const json_t *h = r->file[i].v.header;
		const struct {
			const char *name, *value;
		} rows[] = {{"file", r->file[i].path},
			    {"command", text_get(h, "command")},
			    {"suite", text_get(h, "suite_path")},
			    {"suite sha-256", text_get(h, "suite_sha256")},
			    {"plan", text_get(h, "plan_hash")},
			    {"assay", text_get(h, "tool_commit")},
			    {"binary", text_get(h, "binary_sha256")}};
		fputs("<dl class=\"facts\">", f);
		for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
			if (!*rows[k].value)
				continue;
			fprintf(f, "<dt>%s</dt><dd><code>", rows[k].name);
			markup_xml(f, rows[k].value);
			fputs("</code></dd>", f);
		}
		fputs("</dl>\n", f);
	}
	fputs("</section>\n", f);
}

static void dialogs(FILE *f)
{
	fputs("<dialog id=\"cell\" aria-labelledby=\"cell-title\"><div class=\"bar\"><h2 id=\"cell-title\"></h2>"
	      "<button type=\"button\" id=\"prev\" title=\"the cell before (left)\">\xe2\x86\x90</button>"
	      "<button type=\"button\" id=\"next\" title=\"the next cell (right)\">\xe2\x86\x92</button>"
	      "<button type=\"button\" id=\"close\" title=\"close (Esc)\" aria-label=\"close\">\xc3\x97</button></div>"
	      "<div id=\"cell-body\"></div></dialog>\n"
	      "<dialog id=\"keys\"><h2>Keys</h2><dl class=\"facts\">"
	      "<dt>/</dt><dd>to the filter</dd><dt>j k</dt><dd>next row, row before</dd>"
	      "<dt>Enter</dt><dd>open the row's cell</dd><dt>\xe2\x86\x90 \xe2\x86\x92</dt><dd>cell before, next "
	      "cell</dd>"
	      "<dt>Esc</dt><dd>close; empty the filter</dd><dt>t</dt><dd>light or dark</dd><dt>?</dt><dd>this</dd></dl>"
	      "<p>Filter terms are divided by blanks and must all hold: a text, or <code>kv&gt;=32768</code>, "
	      "<code>kernel=mla.*</code>, <code>status!=pass</code>.</p>"
	      "<form method=\"dialog\"><button>close</button></form></dialog>\n",
	      f);
}

void report_html(const struct report *r, FILE *f, const struct report_plots *plots, const char *why)
{
	head(r, f);
	fputs("<noscript><p class=\"note\">Without its script the page neither sorts nor filters, and cells do not "
	      "open.</p></noscript>\n",
	      f);
	html_summary(f, r);
	html_attention(f, r);
	html_aggregates(f, r);
	html_controls(f, r);
	html_changes(f, r);
	html_maps(f, r);
	html_winners(f, r);
	html_cells(f, r);
	pictures(r, f, plots, why);
	fputs("<div id=\"facts\">", f);
	html_audit(f, r);
	html_device(f, r);
	html_artifacts(f, r);
	fputs("</div>\n", f);
	sources(r, f);
	fputs("<div id=\"printed\"></div>\n</main>\n", f);
	dialogs(f);
	if (plots)
		fputs(gnuplot_defs(), f);
	html_details(f, r, plots);
	html_data(f, r);
	fputs("<script>", f);
	fwrite(report_js_text, 1, sizeof report_js_text, f);
	fputs("</script>\n</body>\n</html>\n", f);
}
