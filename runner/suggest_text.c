/* suggest_text: the proposal as a table file, and in words. */
#include <math.h>
#include <string.h>

#include "report.h"
#include "suggest.h"

/* A plain scalar where it is one without a doubt; else in double quotes. */
static void yaml_text(FILE *f, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.=+/-";
	bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');
	static const char *const words[] = {"true", "false", "null", "yes", "no", "on", "off", "default"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		letter &= strcmp(s, words[i]) != 0;
	if (letter && !s[strspn(s, plain)]) {
		fputs(s, f);
		return;
	}
	fputc('"', f);
	for (; *s; s++) {
		if ((unsigned char)*s < 0x20)
			fprintf(f, "\\x%02x", *s);
		else
			fprintf(f, "%s%c", *s == '"' || *s == '\\' ? "\\" : "", *s);
	}
	fputc('"', f);
}

/* The word of a table for an arm: shipped has one of its own, unless another arm has that name. */
static const char *table_word(const struct suggest_row *r, const char *arm)
{
	if (strcmp(arm, r->shipped) != 0 || report_arm(r->cell[0], "shipped"))
		return arm;
	return "shipped";
}

static void comment(FILE *f, const char *s)
{
	for (; *s; s++)
		fputc((unsigned char)*s < 0x20 ? ' ' : *s, f);
}

static void keys(FILE *f, const struct suggest *s, const struct suggest_row *r, const char *equals, const char *comma)
{
	for (int k = 0; k < s->n_keys; k++)
		fprintf(f, "%s%s%s%.17g", k ? comma : "", s->key[k], equals, r->key[k]);
}

/* "split=4 is 0.742 [0.735, 0.749] of shipped in 4 cells (4 faster, 0 slower)" */
static void evidence_text(FILE *f, const struct suggest_evidence *e, const char *arm, const char *base)
{
	comment(f, arm);
	if (e->cells == 0) {
		fputs(" was not timed", f);
		return;
	}
	fprintf(f, " is %.3f [%.3f, %.3f] of ", exp(e->estimate), exp(e->lo), exp(e->hi));
	comment(f, base);
	fprintf(f, " in %d cell%s", e->cells, e->cells == 1 ? "" : "s");
	if (e->cells > 1)
		fprintf(f, " (%d faster, %d slower)", e->faster, e->slower);
	fprintf(f, ", noise %.1f %%", 100 * (exp(e->floor) - 1));
}

static void why(FILE *f, const struct suggest_row *r)
{
	switch (r->outcome) {
	case SUGGEST_CHANGED:
	case SUGGEST_FIXED:
		evidence_text(f, &r->evidence, r->arm, r->incumbent);
		fputs(r->outcome == SUGGEST_CHANGED ? ", same bits" : ", what is served is wrong", f);
		if (r->measured_anew)
			fprintf(f, "; anew: %.3f [%.3f, %.3f]", exp(r->fresh.estimate), exp(r->fresh.lo),
				exp(r->fresh.hi));
		break;
	case SUGGEST_UNMEASURED:
		comment(f, r->arm);
		fputs(" stays: not timed here", f);
		break;
	default:
		comment(f, r->arm);
		fputs(" stays", f);
		if (strcmp(r->arm, r->shipped) != 0) {
			fputs(": ", f);
			evidence_text(f, &r->evidence, r->arm, r->shipped);
		}
	}
	if (r->note) {
		fputs("; ", f);
		comment(f, r->note);
	}
}

static const char *anew_text(int anew)
{
	return anew > 0   ? "each change was measured anew in a fresh process"
	       : anew < 0 ? "nothing changes"
			  : "NOT measured anew: the fastest of several arms wins by luck too; see --remeasure";
}

void suggest_write_table(const struct suggest *s, const char *run_path, int anew, FILE *f)
{
	const json_t *device = json_object_get(s->header, "device");
	fputs("# From ", f);
	comment(f, run_path);
	fprintf(f, ", %s of ", text_get(s->header, "suite"));
	comment(f, text_get(s->header, "started"));
	fputs(" on ", f);
	comment(f, text_get(device, "name"));
	fprintf(f, ".\n# %s.\nabout: ", anew_text(anew));
	char about[200];
	snprintf(about, sizeof about, "%.60s, proposed from a run of %.10s", text_get(device, "name"),
		 text_get(s->header, "started"));
	/* In quotes: it holds blanks and commas. */
	fputc('"', f);
	for (const char *p = about; *p; p++)
		fprintf(f, "%s%c", *p == '"' || *p == '\\' ? "\\" : "", (unsigned char)*p < 0x20 ? ' ' : *p);
	fputs("\"\nkey: [", f);
	for (int k = 0; k < s->n_keys; k++)
		fprintf(f, "%s%s", k ? ", " : "", s->key[k]);
	fputs("]\nlookup: exact          # a point that was not measured gets the default\nrows:\n", f);
	for (size_t i = 0; i < s->n_rows; i++) {
		const struct suggest_row *r = &s->row[i];
		const bool first = i == 0 || strcmp(s->row[i - 1].kernel, r->kernel) != 0;
		const bool last = i + 1 == s->n_rows || strcmp(s->row[i + 1].kernel, r->kernel) != 0;
		if (first) {
			fputs("  ", f);
			yaml_text(f, r->kernel);
			fputs(":\n", f);
		}
		fputs("    # ", f);
		if (s->n_keys) {
			keys(f, s, r, "=", ",");
			fputs(": ", f);
		}
		why(f, r);
		fputs("\n    - {", f);
		keys(f, s, r, ": ", ", ");
		fputs(s->n_keys ? ", arm: " : "arm: ", f);
		yaml_text(f, table_word(r, r->arm));
		fputs("}\n", f);
		if (last && s->n_keys > 0) {
			fputs("    - {arm: ", f);
			yaml_text(f, table_word(r, r->shipped));
			fputs("}\n", f);
		}
	}
	fputs("default: shipped\n", f);
}

/* ---- words ---------------------------------------------------------------------------------------------------------- */

/* Whether a and b are rows of one kernel that differ in key k alone. */
static bool along(const struct suggest *s, const struct suggest_row *a, const struct suggest_row *b, int k)
{
	bool same = strcmp(a->kernel, b->kernel) == 0;
	for (int i = 0; i < s->n_keys && same; i++)
		same = i == k || a->key[i] == b->key[i];
	return same && a->key[k] < b->key[k];
}

static const struct suggest_row *next_along(const struct suggest *s, const struct suggest_row *r, int k)
{
	const struct suggest_row *best = NULL;
	for (size_t i = 0; i < s->n_rows; i++)
		if (along(s, r, &s->row[i], k) && (!best || s->row[i].key[k] < best->key[k]))
			best = &s->row[i];
	return best;
}

/* How one arm stands against another at a row: -1 faster beyond the noise, 1 slower, 0 not decided. */
static int standing(const struct suggest *s, const struct suggest_row *r, const char *arm, const char *base,
		    struct suggest_evidence *e)
{
	double tau = text_number(s->header, "tau");
	*e = suggest_pool(r->cell, r->n_cells, arm, base, isfinite(tau) ? tau : 0.0025);
	return e->cells == 0 ? 0 : e->hi < -e->floor ? -1 : e->lo > e->floor ? 1 : 0;
}

/* Where the choice changes along a key: the last point where the first arm is faster beyond the noise, the first where the second is, and what lies
 * between. */
static void crossover(const struct suggest *s, const struct suggest_row *a, const struct suggest_row *b, int k, FILE *f)
{
	const struct suggest_row *below = NULL, *above = NULL, *start = a;
	struct suggest_evidence e, e_below = {0}, e_above = {0};
	for (size_t i = 0; i < s->n_rows; i++) {
		const struct suggest_row *r = &s->row[i];
		if (r != a && !along(s, r, a, k) && !along(s, a, r, k))
			continue;
		int how = standing(s, r, a->arm, b->arm, &e);
		if (how < 0 && r->key[k] <= a->key[k] && (!below || r->key[k] > below->key[k])) {
			below = r;
			e_below = e;
		}
		if (how > 0 && r->key[k] >= b->key[k] && (!above || r->key[k] < above->key[k])) {
			above = r;
			e_above = e;
		}
	}
	while (true) { /* the first point of a's stretch */
		const struct suggest_row *before = NULL;
		for (size_t i = 0; i < s->n_rows; i++)
			if (along(s, &s->row[i], start, k) && (!before || s->row[i].key[k] > before->key[k]))
				before = &s->row[i];
		if (!before || strcmp(before->arm, a->arm) != 0)
			break;
		start = before;
	}
	fprintf(f, "crossover  %s", a->kernel);
	for (int i = 0; i < s->n_keys; i++)
		if (i != k)
			fprintf(f, " %s=%.10g", s->key[i], a->key[i]);
	fprintf(f, ": %s up to %s=%.10g, %s from %s=%.10g", a->arm, s->key[k], a->key[k], b->arm, s->key[k], b->key[k]);
	if (below && above)
		fprintf(f, "; interval %.10g .. %.10g", below->key[k], above->key[k]);
	else if (below)
		fprintf(f, "; %s is not faster beyond the noise anywhere above: it is what is served", b->arm);
	else if (above)
		fprintf(f, "; %s is not faster beyond the noise anywhere below: it is what is served", a->arm);
	else
		fputs("; neither is faster beyond the noise: both are what is served", f);
	if (below)
		fprintf(f, "; at %.10g %s is %.3f [%.3f, %.3f] of %s", below->key[k], a->arm, exp(e_below.estimate),
			exp(e_below.lo), exp(e_below.hi), b->arm);
	if (above)
		fprintf(f, "; at %.10g it is %.3f [%.3f, %.3f]", above->key[k], exp(e_above.estimate), exp(e_above.lo),
			exp(e_above.hi));
	if (b->key[k] - a->key[k] > 1)
		fprintf(f, "; between %.10g and %.10g not measured", a->key[k], b->key[k]);
	fputc('\n', f);
}

void suggest_write_text(const struct suggest *s, int anew, FILE *f)
{
	size_t changes = suggest_changes(s), kept = 0;
	for (size_t i = 0; i < s->n_rows; i++) {
		const struct suggest_row *r = &s->row[i];
		bool changed = r->outcome == SUGGEST_CHANGED || r->outcome == SUGGEST_FIXED;
		if (!changed && !r->note) {
			kept++;
			continue;
		}
		fprintf(f, "%-9s  %s ",
			changed                           ? "change"
			: r->outcome == SUGGEST_WITHDRAWN ? "withdrawn"
							  : "keep",
			r->kernel);
		keys(f, s, r, "=", ",");
		fputs(": ", f);
		why(f, r);
		fputc('\n', f);
	}
	for (int k = 0; k < s->n_keys; k++)
		for (size_t i = 0; i < s->n_rows; i++) {
			const struct suggest_row *b = next_along(s, &s->row[i], k);
			if (b && strcmp(b->arm, s->row[i].arm) != 0)
				crossover(s, &s->row[i], b, k, f);
		}
	for (size_t i = 0; i < s->n_advice; i++)
		fprintf(f, "key        %s\n", s->advice[i]);
	if (kept)
		fprintf(f, "keep       %zu row%s: nothing is faster than what is served, beyond the noise\n", kept,
			kept == 1 ? "" : "s");
	fprintf(f, "%zu of %zu rows change; %s\n", changes, s->n_rows, anew_text(anew));
}
