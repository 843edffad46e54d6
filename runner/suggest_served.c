/* suggest_served: the table that a run was served by, as its header tells; and what a proposal would lose of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "suggest.h"
#include "table_build.h"

/* ---- what the header tells ------------------------------------------------------------------------------------------ */

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

/* ---- the proposal --------------------------------------------------------------------------------------------------- */

struct proposal {
	struct suggest *s;
	struct suggest_entry *entry;
	size_t n, cap;
};

static void add(struct proposal *p, struct table_row row, const struct suggest_row *of, bool told_only)
{
	p->entry = arena_grow(p->s->arena, p->entry, p->n, &p->cap, sizeof *p->entry);
	p->entry[p->n++] = (struct suggest_entry){row, of, told_only};
}

/* The word of a table for an arm: shipped has one of its own, unless another arm has that name; the others go by the kernel's name for them. */
static const char *word(const struct suggest *s, const struct suggest_row *r, const char *arm)
{
	if (strcmp(arm, r->shipped) == 0)
		return report_arm(r->cell[0], "shipped") ? arm : "shipped";
	const char *name = suggest_table_name(s->header, r->cell[0], arm);
	return name ? name : arm;
}

static const struct table_row *look_up(const struct table *t, const char *kernel, const double *key)
{
	struct named_number v[SUGGEST_MAX_KEYS];
	for (int k = 0; k < t->n_keys; k++)
		v[k] = (struct named_number){.name = t->key[k], .value = {.d = key[k]}};
	return table_lookup(t, kernel, v, t->n_keys, NULL);
}

static bool is_measured(const struct suggest *s, const char *kernel)
{
	for (size_t i = 0; i < s->n_rows; i++)
		if (strcmp(s->row[i].kernel, kernel) == 0)
			return true;
	return false;
}

/* Whether a table that says `now` at the row's point serves what the proposal wants there. */
static bool serves(const struct suggest *s, const struct suggest_row *r, const struct table_row *now)
{
	if (!now)
		return false;
	/* Where an arm stays, the table keeps its own word for it, which need not be the suite's. */
	return strcmp(now->arm, word(s, r, r->arm)) == 0 || strcmp(now->arm, r->arm) == 0;
}

/* Whether the served table has to change for this row. */
static bool is_changed(const struct suggest *s, const struct suggest_row *r)
{
	const struct table_row *was = look_up(s->served, r->kernel, r->key);
	return !(was && !r->several && strcmp(r->arm, r->incumbent) == 0) && !serves(s, r, was);
}

static struct table_row row_of(const struct suggest *s, const struct suggest_row *r)
{
	struct table_row row = {.kernel = r->kernel, .arm = word(s, r, r->arm), .is_default = s->n_keys == 0};
	const struct table_row *was = s->carries ? look_up(s->served, r->kernel, r->key) : NULL;
	if (was && !is_changed(s, r))
		row.arm = was->arm;
	for (int k = 0; k < s->n_keys; k++)
		row.key[k] = (struct number){.d = r->key[k]};
	return row;
}

/* The block of the served table that speaks for a kernel: its own; where it has none and points between keys are looked up, the one that spoke
 * so far, or new rows of its own would hide it. NULL is the block of every kernel. */
static const char *block_of(const struct table *t, const char *kernel, bool *found)
{
	const char *name = NULL;
	*found = false;
	for (int pass = 0; pass < (t->lookup == LOOKUP_EXACT ? 1 : 3) && !*found; pass++)
		for (int i = 0; i < t->n_rows && !*found; i++) {
			const char *k = t->row[i].kernel;
			*found = pass == 0   ? k && strcmp(k, kernel) == 0
				 : pass == 1 ? k && select_glob(k, kernel)
					     : k == NULL;
			name = *found ? k : NULL;
		}
	return name;
}

static void carry_block(struct proposal *p, const char *kernel, bool own_only)
{
	const struct suggest *s = p->s;
	const struct table *t = s->served;
	bool found;
	const char *block = block_of(t, kernel, &found);
	if (own_only && !(found && block && strcmp(block, kernel) == 0))
		return;
	for (int i = 0; i < t->n_rows && found; i++) {
		struct table_row row = t->row[i];
		double key[SUGGEST_MAX_KEYS];
		if (!table_same_text(row.kernel, block))
			continue;
		for (int k = 0; k < t->n_keys; k++)
			key[k] = row.key[k].d;
		row.kernel = kernel;
		const struct suggest_row *r = row.is_default && t->n_keys > 0 ? NULL : suggest_row_at(s, kernel, key);
		if (!r || !is_changed(s, r))
			add(p, row, r, false);
	}
}

/* Whether the entries from `first` on hold a row for r. */
static bool has_entry(const struct proposal *p, size_t first, const struct suggest_row *r)
{
	for (size_t i = first; i < p->n; i++)
		if (p->entry[i].of == r)
			return true;
	return false;
}

/* The entries that are rows, and of the served table what no kernel of the run has of its own. */
static const struct table *compile(const struct proposal *p)
{
	const struct suggest *s = p->s;
	struct table *t = arena_alloc(s->arena, sizeof *t);
	const size_t carried = s->carries ? (size_t)s->served->n_rows : 1;
	struct table_row *row = arena_array(s->arena, p->n + carried, sizeof *row);
	t->path = "the proposal";
	t->lookup = s->carries ? s->served->lookup : LOOKUP_EXACT;
	t->row = row;
	for (int k = 0; k < s->n_keys; k++)
		t->key[t->n_keys++] = s->key[k];
	for (size_t i = 0; i < p->n; i++)
		if (!p->entry[i].told_only)
			row[t->n_rows++] = p->entry[i].row;
	for (int i = 0; s->carries && i < s->served->n_rows; i++)
		if (!s->served->row[i].kernel || !is_measured(s, s->served->row[i].kernel))
			row[t->n_rows++] = s->served->row[i];
	if (!s->carries)
		row[t->n_rows++] = (struct table_row){.is_default = true, .arm = "shipped"};
	return t;
}

/* Whether entry a stands before entry b of one kernel: keys rising, the default last. */
static bool stands_before(const struct suggest *s, const struct table_row *a, const struct table_row *b)
{
	if (a->is_default || b->is_default)
		return !a->is_default && b->is_default;
	for (int k = 0; k < s->n_keys; k++)
		if (a->key[k].d != b->key[k].d)
			return a->key[k].d < b->key[k].d;
	return false;
}

static void sort_block(struct proposal *p, size_t first)
{
	for (size_t i = first + 1; i < p->n; i++)
		for (size_t at = i; at > first && stands_before(p->s, &p->entry[at].row, &p->entry[at - 1].row); at--) {
			struct suggest_entry e = p->entry[at];
			p->entry[at] = p->entry[at - 1];
			p->entry[at - 1] = e;
		}
}

/* A kernel of the run in a table that is an edit of the served one: rows that change, and of those that stay the ones that the changed rows
 * would hide. */
static void edit_kernel(struct proposal *p, const char *kernel)
{
	const struct suggest *s = p->s;
	const size_t first = p->n;
	bool changed = false;
	for (size_t i = 0; i < s->n_rows; i++)
		changed |= strcmp(s->row[i].kernel, kernel) == 0 && is_changed(s, &s->row[i]);
	carry_block(p, kernel, !changed);
	for (size_t i = 0; i < s->n_rows; i++)
		if (strcmp(s->row[i].kernel, kernel) == 0 && is_changed(s, &s->row[i]))
			add(p, row_of(s, &s->row[i]), &s->row[i], false);
	for (bool again = changed; again;) {
		const struct table *t = compile(p);
		again = false;
		for (size_t i = 0; i < s->n_rows; i++) {
			const struct suggest_row *r = &s->row[i];
			if (strcmp(r->kernel, kernel) != 0 || has_entry(p, first, r))
				continue;
			struct table_row row = row_of(s, r);
			const struct table_row *now = look_up(t, kernel, r->key);
			if (now && strcmp(now->arm, row.arm) == 0)
				continue;
			add(p, row, r, false);
			again = true;
		}
	}
	for (size_t i = 0; i < s->n_rows; i++)
		if (strcmp(s->row[i].kernel, kernel) == 0 && !has_entry(p, first, &s->row[i]))
			add(p, row_of(s, &s->row[i]), &s->row[i], true);
	sort_block(p, first);
}

/* A kernel in a table of its own: a row a key, the default shipped. */
static void write_kernel(struct proposal *p, const char *kernel)
{
	const struct suggest *s = p->s;
	const struct suggest_row *last = NULL;
	for (size_t i = 0; i < s->n_rows; i++)
		if (strcmp(s->row[i].kernel, kernel) == 0) {
			last = &s->row[i];
			add(p, row_of(s, last), last, false);
		}
	if (last && s->n_keys > 0)
		add(p, (struct table_row){.kernel = kernel, .is_default = true, .arm = word(s, last, last->shipped)},
		    NULL, false);
}

static void lose(struct suggest *s, const char *text)
{
	s->lost = arena_grow(s->arena, (void *)s->lost, s->n_lost, &s->lost_cap, sizeof *s->lost);
	s->lost[s->n_lost++] = text;
}

/* ---- what it loses -------------------------------------------------------------------------------------------------- */

/* "split=4 is served in 2 of 4 cells" of every arm that is served in the row's cells and that the row does not say. */
static void losses_of_row(struct suggest *s, struct suggest_row *r)
{
	r->lost = NULL;
	for (size_t c = 0; c < r->n_cells && r->several; c++) {
		const char *arm = text_get(r->cell[c], "selected");
		bool first = *arm && strcmp(arm, r->arm) != 0;
		size_t n = 0;
		for (size_t b = 0; b < r->n_cells; b++) {
			const bool same = strcmp(text_get(r->cell[b], "selected"), arm) == 0;
			first = first && !(same && b < c);
			n += same;
		}
		if (first)
			r->lost = arena_printf(s->arena, "%s%s%s is served in %zu of %zu cells", r->lost ? r->lost : "",
					       r->lost ? ", " : "", arm, n, r->n_cells);
	}
}

/* Of a kernel: combinations that are looked at, and losses that are told one by one; the rest is counted. */
enum { GRID_MAX = 1 << 16, LOSSES_TOLD = 20 };

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Every value of key k in a row of the served table, or measured, in rising order. From the arena. */
static const double *values_of(const struct suggest *s, int k, size_t *n)
{
	double *value = arena_array(s->arena, s->n_rows + (size_t)s->served->n_rows + 1, sizeof *value);
	size_t all = 0;
	for (size_t i = 0; i < s->n_rows; i++)
		value[all++] = s->row[i].key[k];
	for (int i = 0; i < s->served->n_rows; i++)
		if (!s->served->row[i].is_default)
			value[all++] = s->served->row[i].key[k].d;
	if (all)
		qsort(value, all, sizeof *value, by_value);
	*n = 0;
	for (size_t i = 0; i < all; i++)
		if (*n == 0 || value[*n - 1] != value[i])
			value[(*n)++] = value[i];
	return value;
}

static void lose_point(struct suggest *s, const char *kernel, const double *key, const char *was, const char *is)
{
	const char *at = "";
	for (int k = 0; k < s->n_keys; k++)
		at = arena_printf(s->arena, "%s%s%s=%.10g", at, k ? "," : " ", s->key[k], key[k]);
	lose(s, arena_printf(s->arena, "%s%s: %s is served, this table says %s; not measured", kernel, at, was, is));
}

/* A table changes where its rows meet: what it says at every combination of the known values is compared with what was served there. */
static void losses_between(struct suggest *s, const char *kernel)
{
	const double *value[SUGGEST_MAX_KEYS];
	double key[SUGGEST_MAX_KEYS] = {0}, points = 1;
	size_t n[SUGGEST_MAX_KEYS];
	long long i, lost = 0;
	for (int k = 0; k < s->n_keys; k++) {
		value[k] = values_of(s, k, &n[k]);
		points *= (double)n[k];
	}
	for (i = 0; i < GRID_MAX && (double)i < points; i++) {
		size_t rest = (size_t)i;
		for (int k = 0; k < s->n_keys; k++) {
			key[k] = value[k][rest % n[k]];
			rest /= n[k];
		}
		if (suggest_row_at(s, kernel, key))
			continue;
		const struct table_row *was = look_up(s->served, kernel, key), *is = look_up(s->table, kernel, key);
		if (was && (!is || strcmp(was->arm, is->arm) != 0) && lost++ < LOSSES_TOLD)
			lose_point(s, kernel, key, was->arm, is ? is->arm : "nothing");
	}
	if (lost > LOSSES_TOLD)
		lose(s, arena_printf(s->arena, "%s: %lld more such point%s", kernel, lost - LOSSES_TOLD,
				     lost > LOSSES_TOLD + 1 ? "s" : ""));
	if ((double)i < points)
		lose(s, arena_printf(s->arena,
				     "%s: perhaps more: %lld of %.0f combinations of the keys' known values were "
				     "looked at",
				     kernel, i, points));
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

void suggest_propose(struct suggest *s)
{
	struct proposal p = {.s = s};
	bool other = false;
	s->n_lost = 0;
	for (size_t i = 0; i < s->n_rows; i++) {
		losses_of_row(s, &s->row[i]);
		if (i > 0 && strcmp(s->row[i - 1].kernel, s->row[i].kernel) == 0)
			continue;
		if (s->carries)
			edit_kernel(&p, s->row[i].kernel);
		else
			write_kernel(&p, s->row[i].kernel);
	}
	s->table = compile(&p);
	for (int i = 0; s->carries && i < s->served->n_rows; i++)
		if (!s->served->row[i].kernel || !is_measured(s, s->served->row[i].kernel))
			add(&p, s->served->row[i], NULL, false);
	if (!s->carries)
		add(&p, (struct table_row){.is_default = true, .arm = "shipped"}, NULL, false);
	s->entry = p.entry;
	s->n_entries = p.n;
	for (size_t i = 0; i < s->n_rows && s->carries; i++)
		if (i == 0 || strcmp(s->row[i - 1].kernel, s->row[i].kernel) != 0)
			losses_between(s, s->row[i].kernel);
	for (int i = 0; s->served && i < s->served->n_rows; i++)
		other |= strcmp(s->served->row[i].arm, "shipped") != 0;
	if (other && !s->carries)
		lose(s,
		     arena_printf(s->arena,
				  "%s has other keys: its rows for points that were not measured, and its rule between "
				  "keys, are not in this table",
				  s->served_path));
}

size_t suggest_losses(const struct suggest *s)
{
	size_t n = s->n_lost;
	for (size_t i = 0; i < s->n_rows; i++)
		n += s->row[i].lost != NULL;
	return n;
}
