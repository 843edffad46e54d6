/* text_disbelief: cells of a ratio check that a control breaks all alike: one block a cause, and where its cells are. Their numbers stand in the
 * tables of text_ratio. */
#define _GNU_SOURCE /* asprintf */
#include <stdlib.h>

#include "text_parts.h"

/* A cell whose ratio a control spoils, and that has no other fault. */
static bool is_disbelieved(const struct row *r, const json_t *cell)
{
	const char *why = text_get(json_object_get(json_object_get(cell, "timing"), "of_over"), "reason");
	const json_t *x;
	size_t i;
	if (!r->is_ratio || (r->status != ST_INVALID && r->status != ST_INCONCLUSIVE) ||
	    (strcmp(why, "confounded") != 0 && strcmp(why, "unproven") != 0))
		return false;
	json_array_foreach(json_object_get(cell, "checks"), i,
			   x) if (text_finding_is_bad(x) && strcmp(text_get(x, "check"), "census") != 0) return false;
	return true;
}

/* The cell's reason without its number: what it has in common with others. */
static const char *cause_of(struct text *t, const struct row *r, const json_t *cell)
{
	char *number[2] = {NULL, NULL}, *cause = strdup(text_get(cell, "reason")), *at;
	if (!cause || asprintf(&number[0], "; %s / %s is ", r->of, r->over) < 0 ||
	    asprintf(&number[1], "; %s is ", r->of) < 0)
		abort();
	for (int i = 0; i < 2; i++) {
		if ((at = strstr(cause, number[i])) != NULL)
			*at = 0;
		free(number[i]);
	}
	const char *kept = text_intern(t, cause);
	free(cause);
	return kept;
}

bool text_disbelieve(struct text *t, const struct row *r, const json_t *cell)
{
	if (!is_disbelieved(r, cell))
		return false;
	const char *cause = cause_of(t, r, cell);
	int i = 0;
	while (i < t->n_disbelief && (t->disbelief[i].cause != cause || t->disbelief[i].status != r->status))
		i++;
	if (i == TEXT_MAX_DISBELIEFS)
		return false;
	struct disbelief *d = &t->disbelief[i];
	if (i == t->n_disbelief) {
		t->n_disbelief++;
		*d = (struct disbelief){.cause = cause,
					.status = r->status,
					.first = text_intern(t, text_short_id(cell)),
					.rerun = text_intern(t, text_get(cell, "rerun"))};
	}
	d->cells++;
	int k = 0;
	while (k < d->n_places && (d->place[k].case_id != r->case_id || d->place[k].kernel != r->kernel))
		k++;
	if (k == TEXT_MAX_PLACES)
		return true;
	if (k == d->n_places)
		d->place[d->n_places++] = (struct disbelief_place){r->case_id, r->kernel, 0};
	d->place[k].cells++;
	return true;
}

/* "24 of 27b/mmq.q8_0, 20 of 1p7b/mmq.q8_0" */
static char *places_text(const struct disbelief *d)
{
	char *text = NULL, count[32];
	size_t n = 0;
	int64_t rest = d->cells;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		abort();
	for (int k = 0; k < d->n_places; k++) {
		rest -= d->place[k].cells;
		fprintf(f, "%s%s of %s/%s", k ? ", " : "", text_count(count, d->place[k].cells), d->place[k].case_id,
			d->place[k].kernel);
	}
	if (rest)
		fprintf(f, ", %s elsewhere", text_count(count, rest));
	fclose(f);
	return text;
}

void text_disbeliefs(struct text *t)
{
	FILE *f = t->o.out;
	for (int i = 0; i < t->n_disbelief; i++) {
		const struct disbelief *d = &t->disbelief[i];
		const char *colon = strchr(d->cause, ':'),
			   *reason = colon ? colon + 1 + strspn(colon + 1, " ") : d->cause;
		const int word = colon ? (int)(colon - d->cause) : 0;
		char count[32];
		fputs(i || t->n_blocks ? "\n" : "", f);
		text_paint(t, f, d->status == ST_INVALID ? TEXT_RED : TEXT_YELLOW, "%-11s",
			   d->status == ST_INVALID ? "INVALID" : "undecided");
		if (d->cells == 1)
			fprintf(f, " %s   %.*s\n", d->first, word, d->cause);
		else
			fprintf(f, " %s cells   %.*s\n", text_count(count, d->cells), word, d->cause);
		text_field(f, t->o.width, "reason", "%s", reason);
		if (d->cells > 1) {
			char *places = places_text(d);
			text_field(f, t->o.width, "cells", "%s%s", places,
				   t->o.quiet ? "" : "; their numbers stand in the tables above");
			free(places);
		}
		fprintf(f, "   %-9s %s\n", "rerun", d->rerun); /* of the first: it shows them all */
	}
}
