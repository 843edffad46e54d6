/* report_html_changes: several files of one suite: what `assay diff` says of each against the first. */
#include "diff.h"
#include "diff_show.h"
#include "report_html.h"

enum { MAX_CHANGES = 300 };

struct changes {
	FILE *f;
	const struct report *r;
	size_t shown, more;
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

static void put_row(void *ctx, const struct diff_row *x)
{
	struct changes *c = ctx;
	char buf[64];
	if (c->shown == MAX_CHANGES) {
		c->more++;
		return;
	}
	if (c->shown++ == 0) {
		fputs("<div class=\"scroll tall\"><table class=\"data\"><thead><tr>", c->f);
		html_th(c->f, "state", false);
		html_th(c->f, "cell", false);
		html_th(c->f, "arm", false);
		html_th(c->f, "base us", true);
		html_th(c->f, "head us", true);
		html_th(c->f, "ratio", true);
		html_th(c->f, "interval", false);
		html_th(c->f, "why", false);
		fputs("</tr></thead><tbody>\n", c->f);
	}
	const char *tone = x->state == DIFF_FAILS || x->state == DIFF_SLOWER     ? "bad"
			   : x->state == DIFF_FASTER || x->state == DIFF_FIXED   ? "good"
			   : x->state == DIFF_UNDECIDED || x->state == DIFF_BITS ? "unsure"
										 : "none";
	const char letter[] = {diff_letter(x->state), 0};
	fprintf(c->f, "<tr><td><span class=\"chip %s\">", tone);
	markup_xml(c->f, letter);
	fprintf(c->f, " %s</span></td><td>", diff_state_name(x->state));
	size_t i = 0;
	while (i < c->r->n_lines && strcmp(c->r->line[i].id, x->id) != 0)
		i++;
	if (i < c->r->n_lines)
		fprintf(c->f, "<a href=\"#cell-%zu\" data-open=\"%zu\">", i, i);
	markup_xml(c->f, i < c->r->n_lines ? c->r->line[i].name : x->id);
	fputs(i < c->r->n_lines ? "</a></td><td>" : "</td><td>", c->f);
	markup_xml(c->f, x->arm ? x->arm : "all");
	fputs("</td>", c->f);
	html_td_number(c->f, x->base_ns, text_us(buf, x->base_ns));
	html_td_number(c->f, x->head_ns, text_us(buf, x->head_ns));
	html_td_number(c->f, x->ratio, text_ratio(buf, x->ratio));
	report_interval(buf, x->lo, x->hi);
	fprintf(c->f, "<td class=\"iv\">%s</td><td class=\"long\">", buf);
	markup_xml(c->f, x->why);
	fputs("</td></tr>\n", c->f);
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
	struct changes c = {f, r, 0, 0};
	if (!d)
		return;
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
			diff_rows(d, state, put_row, &c);
		if (c.shown)
			fputs("</tbody></table></div>\n", f);
		else
			fputs("<p>No cell changed beyond the noise.</p>\n", f);
		if (c.more)
			fprintf(f, "<p class=\"note\">and %zu more: `assay diff` has them all.</p>\n", c.more);
	}
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
