#include "text.h"

#include <stdlib.h>

#include "text_parts.h"

struct text *text_create(const struct text_options *o)
{
	struct text *t = calloc(1, sizeof *t);
	if (!t)
		abort();
	t->o = *o;
	if (t->o.width <= 0)
		t->o.width = 100;
	t->arena = arena_create();
	t->aggregate = json_array();
	t->noise_lo = INFINITY;
	t->noise_hi = -INFINITY;
	return t;
}

/* Whether a run is of two builds: every case has the arms base/X and head/X. */
static bool is_pair(const json_t *header)
{
	const json_t *cases = json_object_get(header, "cases"), *c;
	size_t i;
	json_array_foreach(cases, i, c)
	{
		const json_t *arms = json_object_get(c, "arms");
		if (json_array_size(arms) != 2 || strncmp(text_string(json_array_get(arms, 0)), "base/", 5) != 0 ||
		    strncmp(text_string(json_array_get(arms, 1)), "head/", 5) != 0)
			return false;
	}
	return json_array_size(cases) > 0;
}

void text_record(struct text *t, const json_t *record)
{
	const char *kind = text_get(record, "kind");
	if (strcmp(kind, "header") == 0) {
		json_decref(t->header);
		t->header = json_incref((json_t *)(uintptr_t)record);
		t->pair = is_pair(record);
		if (!t->o.quiet)
			text_banner(t);
	} else if (strcmp(kind, "cell") == 0) {
		text_take_cell(t, record);
	} else if (strcmp(kind, "aggregate") == 0 && json_object_get(record, "check")) {
		json_array_append(t->aggregate, (json_t *)(uintptr_t)record);
	} else if (strcmp(kind, "footer") == 0) {
		json_decref(t->footer);
		t->footer = json_incref((json_t *)(uintptr_t)record);
	}
	/* Screens come again as cells. */
	fflush(t->o.out);
}

void text_finish(struct text *t)
{
	if (!t->o.quiet) {
		text_serving_table(t);
		text_ratio_tables(t);
	}
	for (int i = 0; i < t->n_blocks; i++) {
		fprintf(t->o.out, "%s%s", i ? "\n" : "", t->block[i].text);
		text_same_in(t, &t->block[i]);
		if (t->block[i].more)
			text_field(t->o.out, t->o.width, "and", "%lld more cell%s of %s for the same reason",
				   (long long)t->block[i].more, t->block[i].more == 1 ? "" : "s", t->block[i].kernel);
	}
	text_disbeliefs(t);
	text_summary(t);
	text_last_line(t);
	fflush(t->o.out);
}

void text_destroy(struct text *t)
{
	if (!t)
		return;
	for (int i = 0; i < t->n_blocks; i++)
		free(t->block[i].text);
	for (int i = 0; i < t->n_lines; i++)
		free(t->line[i].text);
	free((void *)t->word);
	free(t->row);
	json_decref(t->header);
	json_decref(t->footer);
	json_decref(t->aggregate);
	arena_destroy(t->arena);
	free(t);
}
