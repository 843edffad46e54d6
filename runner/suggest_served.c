/* suggest_served: the table that a run was served by, as its header tells. */
#include <string.h>

#include "report.h"
#include "suggest.h"
#include "table_build.h"

static bool same_keys(const json_t *keys, const char *const *key, int n)
{
	bool same = json_array_size(keys) == (size_t)n;
	for (int k = 0; k < n && same; k++)
		same = strcmp(text_string(json_array_get(keys, (size_t)k)), key[k]) == 0;
	return same;
}

bool suggest_default_keys(const json_t *header, const char *key[SUGGEST_MAX_KEYS], int *n_keys, struct err *err)
{
	const json_t *entry, *first = NULL;
	size_t i;
	*n_keys = 0;
	json_array_foreach(json_object_get(header, "serving"), i, entry)
	{
		const json_t *keys = json_object_get(entry, "keys");
		const size_t n = json_array_size(keys);
		if (n == 0)
			continue;
		if (first && !same_keys(keys, key, *n_keys))
			return err_set(err,
				       "this run was served by tables with other keys: %s for %s, %s for %s; say which "
				       "with --key",
				       text_get(first, "table"), text_get(first, "kernel"), text_get(entry, "table"),
				       text_get(entry, "kernel"));
		if (n > SUGGEST_MAX_KEYS)
			return err_set(err, "%s has more than %d keys", text_get(entry, "table"), SUGGEST_MAX_KEYS);
		for (size_t k = 0; k < n; k++)
			key[k] = text_string(json_array_get(keys, k));
		*n_keys = (int)n;
		first = first ? first : entry;
	}
	return true;
}

static struct number number_of(const json_t *j)
{
	return (struct number){.is_int = json_is_integer(j),
			       .i = json_is_integer(j) ? json_integer_value(j) : 0,
			       .d = json_number_value(j)};
}

/* A table as the settings of a header have it; NULL where it is none. */
static const struct table *table_of(struct arena *a, const json_t *j, const char *path)
{
	const json_t *keys = json_object_get(j, "key"), *rows = json_object_get(j, "rows"), *x;
	if (!json_is_array(keys) || !json_is_array(rows) || json_array_size(keys) > SUGGEST_MAX_KEYS)
		return NULL;
	struct table *t = arena_alloc(a, sizeof *t);
	struct table_row *row = arena_array(a, json_array_size(rows) + 1, sizeof *row);
	size_t i;
	t->path = path;
	for (size_t k = 0; k < json_array_size(keys); k++)
		t->key[t->n_keys++] = text_string(json_array_get(keys, k));
	for (int k = 0; k < N_LOOKUPS; k++)
		if (strcmp(text_get(j, "lookup"), table_lookup_names[k]) == 0)
			t->lookup = (enum lookup)k;
	json_array_foreach(rows, i, x)
	{
		struct table_row *r = &row[t->n_rows++];
		r->kernel = json_string_value(json_object_get(x, "kernel"));
		r->arm = text_get(x, "arm");
		r->is_default = true;
		for (int k = 0; k < t->n_keys; k++) {
			const json_t *v = json_object_get(x, t->key[k]);
			r->is_default &= v == NULL;
			r->key[k] = number_of(v);
		}
	}
	t->row = row;
	return t;
}

void suggest_find_served(struct suggest *s)
{
	const json_t *entry, *one = NULL;
	size_t i;
	json_array_foreach(json_object_get(s->header, "serving"), i, entry)
	{
		if (!json_is_string(json_object_get(entry, "set")))
			continue; /* an arm by name, or the header of an older version */
		if (one && (strcmp(text_get(one, "set"), text_get(entry, "set")) != 0 ||
			    text_integer(one, "choice") != text_integer(entry, "choice")))
			return;
		one = entry;
	}
	if (!one)
		return;
	const json_t *set = json_object_get(json_object_get(json_object_get(s->header, "settings"), "tables"),
					    text_get(one, "set"));
	const json_t *choice = json_array_get(set, (size_t)text_integer(one, "choice"));
	s->served_path = text_get(one, "table");
	s->served = table_of(s->arena, json_object_get(choice, "table"), s->served_path);
	s->carries = s->served && s->served->n_keys == s->n_keys;
	for (int k = 0; k < s->n_keys && s->carries; k++)
		s->carries = strcmp(s->served->key[k], s->key[k]) == 0;
}

/* An arm of the case as its settings have it; NULL: by its own name, or the header does not tell. */
static const json_t *arm_settings(const json_t *header, const json_t *cell, const char *name)
{
	const json_t *c, *arm;
	size_t i, k;
	json_array_foreach(json_object_get(json_object_get(header, "settings"), "cases"), i, c)
	{
		if (strcmp(text_get(c, "id"), text_get(cell, "case")) != 0)
			continue;
		json_array_foreach(json_object_get(json_object_get(c, "arms"), "arms"), k, arm)
		{
			const char *own = text_get(arm, "name");
			if (json_is_object(arm) && strcmp(*own ? own : text_get(arm, "arm"), name) == 0)
				return arm;
		}
	}
	return NULL;
}

const char *suggest_table_name(const json_t *header, const json_t *cell, const char *name)
{
	const json_t *arm = arm_settings(header, cell, name);
	if (!arm)
		return name;
	return json_object_get(arm, "env") || json_object_get(arm, "graph") ? NULL : text_get(arm, "arm");
}
