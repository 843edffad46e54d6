/* suggest_propose: the table that was served, edited into the proposal; and what the proposal would lose of it. */
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "suggest.h"
#include "table_build.h"

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
