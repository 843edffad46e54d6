/* plan_filter: why a --filter matched nothing, said with the nearest right words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_space.h"

static const char *const fixed_keys[] = {"kernel", "case", "geometry", "data",   "suite", "id",
					 "tag",    "arm",  "backend",  "device", "cc",    "host"};
enum { N_FIXED_KEYS = sizeof fixed_keys / sizeof fixed_keys[0], MAX_WORDS = 256 };

struct words {
	const char *word[MAX_WORDS];
	int n;
};

static void add_word(struct words *w, const char *s)
{
	for (int i = 0; i < w->n; i++)
		if (strcmp(w->word[i], s) == 0)
			return;
	if (w->n < MAX_WORDS)
		w->word[w->n++] = s;
}

static void collect_keys(const struct plan *p, struct words *w)
{
	for (int i = 0; i < N_FIXED_KEYS; i++)
		add_word(w, fixed_keys[i]);
	for (int i = 0; i < p->n_spaces; i++) {
		const struct case_space *s = &p->space[i];
		for (int x = 0; x < s->n_axes; x++)
			add_word(w, s->c->axis[x].name);
		for (int k = 0; k < s->n_kernels; k++)
			for (int j = 0; j < s->kernel[k]->n_params; j++)
				add_word(w, s->kernel[k]->params[j].name);
	}
}

static bool is_known(const void *ctx, const char *key)
{
	const struct words *w = ctx;
	for (int i = 0; i < w->n; i++)
		if (strcmp(w->word[i], key) == 0)
			return true;
	return false;
}

bool filter_check_keys(const struct plan *p, const struct selector *s, struct err *err)
{
	struct words keys = {.n = 0};
	collect_keys(p, &keys);
	const char *bad = selector_unknown_key(s, is_known, &keys);
	if (!bad)
		return true;
	const char *near = diag_nearest(bad, keys.word, keys.n);
	if (near)
		return err_set(err, "filter: no cell has a key '%s'; did you mean '%s'?", bad, near);
	char list[400] = "";
	for (int i = 0; i < keys.n && strlen(list) + strlen(keys.word[i]) + 8 < sizeof list; i++) {
		size_t used = strlen(list);
		snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", keys.word[i]);
	}
	return err_set(err, "filter: no cell has a key '%s'; keys are %s", bad, list);
}

/* The values that key has anywhere in the plan. */
static void collect_values(const struct plan *p, const char *key, struct words *w, struct arena *a)
{
	for (int i = 0; i < p->n_spaces; i++) {
		const struct case_space *s = &p->space[i];
		int64_t groups = s->count / s->group_points;
		for (int64_t n = 0; n < groups && w->n < MAX_WORDS; n++) {
			struct group g;
			plan_locate(p, s->first + n * s->group_points, &g);
			int axis = s->n_axes - 1;
			while (axis >= 0 && strcmp(s->c->axis[axis].name, key) != 0)
				axis--;
			for (int v = 0; axis >= 0 && v < s->c->axis[axis].n && w->n < MAX_WORDS; v++)
				add_word(w, s->text[axis][v]);
			char buf[512];
			const char *value;
			for (int v = 0; axis < 0 && (value = group_get(&g, key, v, buf, sizeof buf)); v++)
				add_word(w, value == buf || axis < 0 ? arena_strdup(a, value) : value);
		}
	}
}

static bool matches_alone(const struct plan *p, const struct select_term *t)
{
	struct selector one = {.term = t, .n_terms = 1};
	bool found = false;
	struct arena *a = arena_create();
	for (int i = 0; i < p->n_spaces && !found; i++) {
		const struct case_space *s = &p->space[i];
		int64_t groups = s->count / s->group_points;
		for (int64_t n = 0; n < groups && !found; n++) {
			struct group g;
			struct matcher m;
			plan_locate(p, s->first + n * s->group_points, &g);
			matcher_compile(&m, &one, &g, a);
			do
				found = matcher_match(&m, &g);
			while (!found && group_next(&g));
		}
	}
	arena_destroy(a);
	return found;
}

bool selector_explain(const struct plan *p, const struct selector *s, struct err *err)
{
	struct arena *a = arena_create();
	const char *text = selector_text(a, s);
	for (int i = 0; i < s->n_terms; i++) {
		const struct select_term *t = &s->term[i];
		if (matches_alone(p, t))
			continue;
		struct words values = {.n = 0};
		if (strcmp(t->key, "id") != 0)
			collect_values(p, t->key, &values, a);
		bool word = t->n_alt == 1 && !t->alt[0].is_number && !t->alt[0].is_range;
		const char *near = word ? diag_nearest(t->alt[0].glob, values.word, values.n) : NULL;
		char list[300] = "";
		for (int v = 0; v < values.n; v++) {
			size_t used = strlen(list);
			if (used + strlen(values.word[v]) + 8 >= sizeof list) {
				snprintf(list + used, sizeof list - used, ", ...");
				break;
			}
			snprintf(list + used, sizeof list - used, "%s%s", v ? ", " : "", values.word[v]);
		}
		struct selector one = {.term = t, .n_terms = 1};
		if (near)
			err_set(err, "'%s' matches no cell: none has %s; did you mean '%s'?", text,
				selector_text(a, &one), near);
		else if (values.n)
			err_set(err, "'%s' matches no cell: none has %s; %s is one of %s", text, selector_text(a, &one),
				t->key, list);
		else
			err_set(err, "'%s' matches no cell: none has %s%s", text, selector_text(a, &one),
				strcmp(t->key, "id") == 0 ? "; an id with commas goes into double quotes: id=\"...\""
							  : "");
		arena_destroy(a);
		return false;
	}
	err_set(err, "'%s' matches no cell: each term matches some, no cell meets all%s", text,
		p->whole.word ? " and is not excluded" : "");
	arena_destroy(a);
	return false;
}
