/* report_controls: what says whether a ratio is to be believed: null arm, distributions, machine code, issue intervals. For the page and for
 * Markdown; a long sentence is said once. */
#include <stdlib.h>

#include "report_html.h"

enum { CONTROLS = 4 };
static const char *const titles[CONTROLS] = {"null arm", "distributions", "machine code", "issue intervals"};

static bool is_ratio(const json_t *aggregate)
{
	return json_object_get(aggregate, "check") != NULL;
}

static void null_words(FILE *f, const json_t *null)
{
	if (text_integer(null, "of") > 0)
		fprintf(f, "differs from itself in %lld of %lld cells", (long long)text_integer(null, "biased"),
			(long long)text_integer(null, "of"));
	else
		fputs("none ran", f);
}

static void agree_words(FILE *f, const json_t *a)
{
	const json_t *holds = json_object_get(a, "holds");
	if (!json_is_object(a))
		fputs("not asked for", f);
	else if (!json_is_boolean(holds))
		fputs("one alone", f);
	else
		fprintf(f, "%s: %lld of them differ by %.2g, may by %.2g", json_is_true(holds) ? "agree" : "DISAGREE",
			(long long)text_integer(a, "distributions"), text_number(a, "difference"),
			text_number(a, "tolerance"));
}

static void control_words(FILE *f, const json_t *c)
{
	const char *status = text_get(c, "status");
	if (!json_is_object(c))
		fputs("not asked for", f);
	else
		fprintf(f, "%s: %s",
			strcmp(status, "pass") == 0      ? "holds"
			: strcmp(status, "invalid") == 0 ? "BROKEN"
							 : "not looked at",
			text_get(c, "text"));
}

/* The words of control k of an aggregate, malloc'd. */
static char *words_of(const json_t *a, int k)
{
	const json_t *c = json_object_get(a, "controls");
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		abort();
	if (k == 0)
		null_words(f, json_object_get(c, "null"));
	else if (k == 1)
		agree_words(f, json_object_get(a, "agree"));
	else
		control_words(f, json_object_get(c, k == 2 ? "machine_code" : "issue_interval"));
	fclose(f);
	return text;
}

/* Each cell of a row, before and after it what the format wants. Long sentences that stand one line higher are not said again. */
static void row(FILE *f, const json_t *a, char *before[CONTROLS], const char *open, const char *close,
		void (*escape)(FILE *, const char *))
{
	for (int k = 0; k < CONTROLS; k++) {
		char *words = words_of(a, k);
		const bool again = k >= 2 && before[k] && strcmp(before[k], words) == 0;
		const char *colon = strchr(words, ':');
		fputs(open, f);
		if (again && colon) {
			words[colon - words] = 0;
			escape(f, words);
			fputs(", as above", f);
			free(words);
		} else {
			escape(f, words);
			free(before[k]);
			before[k] = words;
		}
		fputs(close, f);
	}
}

static void name_words(FILE *f, const json_t *a, void (*escape)(FILE *, const char *))
{
	char *name = NULL;
	size_t n = 0;
	FILE *m = open_memstream(&name, &n);
	if (!m)
		abort();
	report_aggregate_name(m, a);
	fclose(m);
	escape(f, name);
	free(name);
}

static void forget(char *before[CONTROLS])
{
	for (int k = 0; k < CONTROLS; k++) {
		free(before[k]);
		before[k] = NULL;
	}
}

void html_controls(FILE *f, const struct report *r)
{
	char *before[CONTROLS] = {NULL};
	size_t shown = 0;
	for (size_t k = 0; k < r->n_files; k++) {
		for (size_t i = 0; i < r->file[k].v.n_other; i++) {
			const json_t *a = r->file[k].v.other[i];
			if (!is_ratio(a))
				continue;
			if (shown++ == 0) {
				fputs("<section id=\"controls\"><h2>What the ratios rest on</h2><div class=\"scroll\">"
				      "<table class=\"data stack\"><thead><tr>",
				      f);
				if (r->n_files > 1)
					html_th(f, "file", false);
				html_th(f, "of what", false);
				for (int c = 0; c < CONTROLS; c++)
					html_th(f, titles[c], false);
				fputs("</tr></thead><tbody>\n", f);
			}
			fputs("<tr><td class=\"wrap\">", f);
			if (r->n_files > 1) {
				markup_xml(f, r->file[k].label);
				fputs("</td><td class=\"wrap\">", f);
			}
			name_words(f, a, html_name);
			fputs("</td>", f);
			row(f, a, before, "<td class=\"long\">", "</td>", markup_xml);
			fputs("</tr>\n", f);
		}
		forget(before); /* another file's sentences are its own */
	}
	if (shown)
		fputs("</tbody></table></div></section>\n", f);
}

void report_controls_md(FILE *f, const struct report_file *file)
{
	char *before[CONTROLS] = {NULL};
	bool any = false;
	for (size_t i = 0; i < file->v.n_other; i++) {
		const json_t *a = file->v.other[i];
		if (!is_ratio(a))
			continue;
		if (!any) {
			fputs("| rests on |", f);
			for (int c = 0; c < CONTROLS; c++)
				fprintf(f, " %s |", titles[c]);
			fputs("\n|---|---|---|---|---|\n", f);
		}
		any = true;
		fputs("| ", f);
		name_words(f, a, markup_md);
		fputs(" |", f);
		row(f, a, before, " ", " |", markup_md);
		fputc('\n', f);
	}
	forget(before);
	if (any)
		fputc('\n', f);
}
