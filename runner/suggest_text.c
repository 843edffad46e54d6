/* suggest_text: the proposal in words. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "suggest.h"

void suggest_write_plain(FILE *f, const char *s)
{
	for (; *s; s++)
		fputc((unsigned char)*s < 0x20 ? ' ' : *s, f);
}

void suggest_write_keys(FILE *f, const struct suggest *s, const struct suggest_row *r)
{
	for (int k = 0; k < s->n_keys; k++)
		fprintf(f, "%s%s=%.17g", k ? "," : "", s->key[k], r->key[k]);
}

/* "split=4 is 0.742 [0.735, 0.749] of shipped in 4 cells (4 faster, 0 slower)" */
static void evidence_text(FILE *f, const struct suggest_evidence *e, const char *arm, const char *base)
{
	suggest_write_plain(f, arm);
	if (e->cells == 0) {
		fputs(" was not timed", f);
		return;
	}
	fprintf(f, " is %.3f [%.3f, %.3f] of ", exp(e->estimate), exp(e->lo), exp(e->hi));
	suggest_write_plain(f, base);
	fprintf(f, " in %d cell%s", e->cells, e->cells == 1 ? "" : "s");
	if (e->cells > 1)
		fprintf(f, " (%d faster, %d slower)", e->faster, e->slower);
	fprintf(f, ", noise %.1f %%", 100 * (exp(e->floor) - 1));
}

void suggest_write_why(FILE *f, const struct suggest_row *r)
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
		suggest_write_plain(f, r->arm);
		fputs(" stays: not timed here", f);
		break;
	default:
		suggest_write_plain(f, r->arm);
		fputs(r->several ? " serves all" : " stays", f);
		if (strcmp(r->arm, r->shipped) != 0) {
			fputs(": ", f);
			evidence_text(f, &r->evidence, r->arm, r->shipped);
		}
	}
	if (r->lost) {
		fputs("; LOST: ", f);
		suggest_write_plain(f, r->lost);
		fputs(": another key would keep it", f);
	}
	if (r->note) {
		fputs("; ", f);
		suggest_write_plain(f, r->note);
	}
}

const char *suggest_anew_text(int anew)
{
	return anew > 0   ? "each change was measured anew in a fresh process"
	       : anew < 0 ? "nothing changes"
			  : "NOT measured anew: the fastest of several arms wins by luck too; see --remeasure";
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
	fputs(a->kernel, f);
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
}

/* A line's text while it is made, so that it can be wrapped. */
struct field_text {
	FILE *f;
	char *text;
	size_t n;
};

enum { LABEL = 11, WIDTH = 100 };

static void field_begin(struct field_text *t)
{
	t->f = open_memstream(&t->text, &t->n);
	if (!t->f)
		abort();
}

static void field_end(struct field_text *t, const char *label, FILE *out)
{
	fclose(t->f);
	fprintf(out, "%-*s", LABEL, label);
	text_wrap(out, LABEL, WIDTH, t->text);
	fputc('\n', out);
	free(t->text);
}

void suggest_write_text(const struct suggest *s, int anew, FILE *f)
{
	size_t changes = suggest_changes(s), kept = 0, losses = suggest_losses(s);
	for (size_t i = 0; i < s->n_rows; i++) {
		const struct suggest_row *r = &s->row[i];
		bool changed = r->outcome == SUGGEST_CHANGED || r->outcome == SUGGEST_FIXED;
		if (!changed && !r->note && !r->lost) {
			kept++;
			continue;
		}
		struct field_text t;
		field_begin(&t);
		fprintf(t.f, "%s%s", r->kernel, s->n_keys ? " " : "");
		suggest_write_keys(t.f, s, r);
		fputs(": ", t.f);
		suggest_write_why(t.f, r);
		field_end(&t,
			  changed                           ? "change"
			  : r->lost                         ? "loses"
			  : r->outcome == SUGGEST_WITHDRAWN ? "withdrawn"
							    : "keep",
			  f);
	}
	for (size_t i = 0; i < s->n_lost; i++) {
		struct field_text t;
		field_begin(&t);
		fputs(s->lost[i], t.f);
		field_end(&t, "loses", f);
	}
	for (int k = 0; k < s->n_keys; k++)
		for (size_t i = 0; i < s->n_rows; i++) {
			const struct suggest_row *b = next_along(s, &s->row[i], k);
			if (b && strcmp(b->arm, s->row[i].arm) != 0) {
				struct field_text t;
				field_begin(&t);
				crossover(s, &s->row[i], b, k, t.f);
				field_end(&t, "crossover", f);
			}
		}
	for (size_t i = 0; i < s->n_advice; i++) {
		struct field_text t;
		field_begin(&t);
		fputs(s->advice[i], t.f);
		field_end(&t, "key", f);
	}
	if (kept)
		fprintf(f, "keep       %zu row%s: nothing is faster than what is served, beyond the noise\n", kept,
			kept == 1 ? "" : "s");
	char *last = arena_printf(s->arena, "%zu of %zu rows change; %s", changes, s->n_rows, suggest_anew_text(anew));
	if (losses && anew < 0)
		last = arena_printf(s->arena,
				    "%zu of %zu rows change, but what is served is LOST in %zu place%s (loses, above)",
				    changes, s->n_rows, losses, losses == 1 ? "" : "s");
	else if (losses)
		last = arena_printf(s->arena,
				    "%zu of %zu rows change, and what is served is LOST in %zu place%s (loses, "
				    "above); %s",
				    changes, s->n_rows, losses, losses == 1 ? "" : "s", suggest_anew_text(anew));
	text_wrap(f, 0, WIDTH, last);
	fputc('\n', f);
}
