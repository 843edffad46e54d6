/* table_file: reads serving tables. A table is a list of rows; the YAML forms are shorthands for it. */
#include "table_file.h"

#include <stdio.h>
#include <string.h>

#include "table_build.h"
#include "yaml_scalar.h"

/* ---- building ------------------------------------------------------------------------------------------------------ */

bool table_number(const char *text, struct number *out, struct err *why)
{
	struct err real;
	*out = (struct number){0};
	if (scalar_int(text, &out->i, why)) {
		out->is_int = true;
		out->d = (double)out->i;
		return true;
	}
	return scalar_real(text, &out->d, &real);
}

bool table_add_key(struct table_builder *b, const char *name, struct mark at)
{
	for (int i = 0; i < b->t->n_keys; i++)
		if (strcmp(b->t->key[i], name) == 0)
			return diag_add(b->d, DIAG_ERROR, at, "key '%s' stands twice", name);
	if (b->t->n_keys == TABLE_MAX_KEYS)
		return diag_add(b->d, DIAG_ERROR, at, "more than %d keys", TABLE_MAX_KEYS);
	b->t->key[b->t->n_keys++] = arena_strdup(b->a, name);
	return true;
}

bool table_set_lookup(struct table_builder *b, const char *name, struct mark at)
{
	for (int i = 0; i < N_LOOKUPS; i++)
		if (strcmp(name, table_lookup_names[i]) == 0) {
			b->t->lookup = (enum lookup)i;
			return true;
		}
	diag_add(b->d, DIAG_ERROR, at, "unknown lookup '%s'; it is exact, floor, ceil or nearest", name);
	const char *near = diag_nearest(name, table_lookup_names, N_LOOKUPS);
	if (near)
		diag_note(b->d, (struct mark){0}, "did you mean '%s'?", near);
	return false;
}

static bool same_place(const struct table *t, const struct table_row *a, const struct table_row *b)
{
	if (!table_same_text(a->kernel, b->kernel) || a->is_default != b->is_default)
		return false;
	for (int i = 0; i < t->n_keys && !a->is_default; i++)
		if (a->key[i].d != b->key[i].d)
			return false;
	return true;
}

bool table_add_row(struct table_builder *b, struct table_row row)
{
	if (row.kernel && strcmp(row.kernel, "*") == 0)
		row.kernel = NULL;
	for (size_t i = 0; i < b->n; i++)
		if (same_place(b->t, &b->row[i], &row)) {
			diag_add(b->d, DIAG_ERROR, row.mark, "a second row for %s at the same place of the table",
				 row.kernel ? row.kernel : "every kernel");
			diag_note(b->d, b->row[i].mark, "the first one");
			return false;
		}
	b->row = arena_grow(b->a, b->row, b->n, &b->cap, sizeof *b->row);
	b->row[b->n++] = row;
	return true;
}

const struct table *table_finish(struct table_builder *b, int errors_before)
{
	if (!b->n && diags_errors(b->d) == errors_before)
		diag_add(b->d, DIAG_ERROR, b->place, "the table has no row; a table of one line is `default: shipped`");
	if (diags_errors(b->d) > errors_before)
		return NULL;
	b->t->row = b->row;
	b->t->n_rows = (int)b->n;
	return b->t;
}

/* ---- YAML and JSON ------------------------------------------------------------------------------------------------- */

static bool read_arm(struct table_builder *b, const struct yaml_node *v, struct table_row *row)
{
	row->mark = v->mark;
	return yaml_string(v, &row->arm, b->d);
}

static bool read_key_value(struct table_builder *b, const struct yaml_node *v, struct number *out)
{
	struct err why;
	if (v->kind != YAML_TREE_SCALAR)
		return diag_add(b->d, DIAG_ERROR, v->mark, "a number is wanted, not %s", yaml_kind_text(v));
	if (v->quoted)
		return diag_add(b->d, DIAG_ERROR, v->mark, "a number is wanted, not text in quotes; write %s", v->text);
	return table_number(v->text, out, &why) || diag_add(b->d, DIAG_ERROR, v->mark, "%s", why.text);
}

static bool is_default_word(const struct yaml_node *v)
{
	return v->kind == YAML_TREE_SCALAR && (strcmp(v->text, "default") == 0 || strcmp(v->text, "*") == 0);
}

/* {kernel: K, KEY: N, …, arm: A}; kernel: given by what is around it, or NULL. */
static void read_row_map(struct table_builder *b, const char *kernel, const struct yaml_node *m)
{
	struct table_row row = {.kernel = kernel, .mark = m->mark};
	struct mark at;
	bool ok = true;
	int given = 0, defaults = 0;
	if (m->kind != YAML_TREE_MAP) {
		diag_add(b->d, DIAG_ERROR, m->mark, "a row is a map such as {t_q: 1, arm: split=4}, not %s",
			 yaml_kind_text(m));
		return;
	}
	for (int i = 0; i < m->n; i++) {
		const char *name = m->key[i]->text;
		int k = 0;
		while (k < b->t->n_keys && strcmp(b->t->key[k], name) != 0)
			k++;
		if (k < b->t->n_keys) {
			given++;
			if (is_default_word(m->item[i]))
				defaults++;
			else
				ok &= read_key_value(b, m->item[i], &row.key[k]);
		} else if (strcmp(name, "kernel") == 0 && !kernel) {
			ok &= yaml_string(m->item[i], &row.kernel, b->d);
		} else if (strcmp(name, "arm") != 0) {
			ok = diag_add(b->d, DIAG_ERROR, m->key[i]->mark, "'%s' is no key of this table", name);
			const char *near = diag_nearest(name, b->t->key, b->t->n_keys);
			if (near)
				diag_note(b->d, (struct mark){0}, "did you mean '%s'?", near);
		}
	}
	const struct yaml_node *arm = yaml_get(m, "arm", &at);
	if (!arm)
		ok = diag_add(b->d, DIAG_ERROR, m->mark, "the row lacks its arm");
	else
		ok &= read_arm(b, arm, &row);
	row.mark = m->mark;
	row.is_default = given == defaults;
	if (ok && !row.is_default && (given < b->t->n_keys || defaults))
		for (int k = 0; k < b->t->n_keys && ok; k++) {
			const struct yaml_node *v = yaml_get(m, b->t->key[k], &at);
			if (!v || is_default_word(v))
				ok = diag_add(b->d, DIAG_ERROR, m->mark,
					      "the row lacks '%s'; give every key, or none for the default row",
					      b->t->key[k]);
		}
	if (ok)
		table_add_row(b, row);
}

/* {1: split=4, 2: split=2, default: shipped}: one key. */
static void read_short_map(struct table_builder *b, const char *kernel, const struct yaml_node *m)
{
	for (int i = 0; i < m->n; i++) {
		struct table_row row = {.kernel = kernel};
		row.is_default = is_default_word(m->key[i]);
		if (!row.is_default && b->t->n_keys != 1) {
			diag_add(b->d, DIAG_ERROR, m->key[i]->mark,
				 "this short form is for tables with one key, here are %d; write a list of "
				 "rows such as {t_q: 1, kv: 2048, arm: split=4}",
				 b->t->n_keys);
			return;
		}
		bool ok = row.is_default || read_key_value(b, m->key[i], &row.key[0]);
		ok &= read_arm(b, m->item[i], &row);
		row.mark = m->key[i]->mark;
		if (ok)
			table_add_row(b, row);
	}
}

static void read_block(struct table_builder *b, const char *kernel, const struct yaml_node *v)
{
	if (v->kind == YAML_TREE_MAP) {
		read_short_map(b, kernel, v);
	} else if (v->kind == YAML_TREE_SEQ) {
		for (int i = 0; i < v->n; i++)
			read_row_map(b, kernel, v->item[i]);
	} else {
		struct table_row row = {.kernel = kernel, .is_default = true};
		if (read_arm(b, v, &row))
			table_add_row(b, row);
	}
}

static void read_keys(struct table_builder *b, const struct yaml_node *v)
{
	if (v->kind == YAML_TREE_SCALAR) {
		table_add_key(b, v->text, v->mark);
		return;
	}
	if (v->kind != YAML_TREE_SEQ) {
		diag_add(b->d, DIAG_ERROR, v->mark, "key is a list of axes such as [t_q], not %s", yaml_kind_text(v));
		return;
	}
	for (int i = 0; i < v->n; i++) {
		const char *name;
		if (yaml_string(v->item[i], &name, b->d))
			table_add_key(b, name, v->item[i]->mark);
	}
}

/* A list of rows without a head: its keys are those of its first row that has any. */
static void guess_keys(struct table_builder *b, const struct yaml_node *list)
{
	for (int i = 0; i < list->n && !b->t->n_keys; i++)
		for (int k = 0; list->item[i]->kind == YAML_TREE_MAP && k < list->item[i]->n; k++) {
			const struct yaml_node *key = list->item[i]->key[k];
			if (strcmp(key->text, "kernel") != 0 && strcmp(key->text, "arm") != 0)
				table_add_key(b, key->text, key->mark);
		}
}

static void read_head(struct table_builder *b, const struct yaml_node *m)
{
	static const char *const words[] = {"about", "key", "lookup", "rows", "default"};
	enum { N_WORDS = sizeof words / sizeof words[0] };
	const struct yaml_node *v;
	for (int i = 0; i < m->n; i++) {
		int w = 0;
		while (w < N_WORDS && strcmp(words[w], m->key[i]->text) != 0)
			w++;
		if (w < N_WORDS)
			continue;
		diag_add(b->d, DIAG_ERROR, m->key[i]->mark,
			 "unknown key '%s'; a table has about, key, lookup, rows and default", m->key[i]->text);
		const char *near = diag_nearest(m->key[i]->text, words, N_WORDS);
		if (near)
			diag_note(b->d, (struct mark){0}, "did you mean '%s'?", near);
		else if (strchr(m->key[i]->text, '.'))
			diag_note(b->d, (struct mark){0}, "kernels stand under rows:");
	}
	if ((v = yaml_get(m, "key", NULL)))
		read_keys(b, v);
	const char *name;
	if ((v = yaml_get(m, "lookup", NULL)) && yaml_string(v, &name, b->d))
		table_set_lookup(b, name, v->mark);
	if ((v = yaml_get(m, "rows", NULL))) {
		if (v->kind == YAML_TREE_SCALAR)
			diag_add(b->d, DIAG_ERROR, v->mark, "rows is a map by kernel, or a list of rows");
		else if (v->kind == YAML_TREE_SEQ)
			read_block(b, NULL, v);
		for (int i = 0; v->kind == YAML_TREE_MAP && i < v->n; i++)
			read_block(b, v->key[i]->text, v->item[i]);
	}
	if ((v = yaml_get(m, "default", NULL))) {
		struct table_row row = {.is_default = true};
		if (read_arm(b, v, &row))
			table_add_row(b, row);
	}
}

const struct table *table_from_node(struct arena *a, const char *path, const struct yaml_node *node, struct diags *d)
{
	struct table_builder b = {.a = a, .d = d, .t = arena_alloc(a, sizeof *b.t), .place = node->mark};
	int before = diags_errors(d);
	b.t->path = arena_strdup(a, path);
	if (node->kind == YAML_TREE_MAP) {
		read_head(&b, node);
	} else if (node->kind == YAML_TREE_SEQ) {
		guess_keys(&b, node);
		read_block(&b, NULL, node);
	} else {
		diag_add(d, DIAG_ERROR, node->mark, "a table is a map with key and rows, or a list of rows, not %s",
			 yaml_kind_text(node));
	}
	return table_finish(&b, before);
}

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);
	return n >= m && strcmp(s + n - m, end) == 0;
}

const struct table *table_load(struct arena *a, const char *path, struct mark from, struct diags *d)
{
	size_t n;
	bool csv = ends_in(path, ".csv");
	if (!csv && !ends_in(path, ".yaml") && !ends_in(path, ".yml") && !ends_in(path, ".json")) {
		diag_add(d, DIAG_ERROR, from.file ? from : (struct mark){.file = path},
			 "'%s': a table file ends in .yaml, .csv or .json", path);
		return NULL;
	}
	char *text = yaml_read_file(a, path, from, &n, d);
	if (!text)
		return NULL;
	if (csv)
		return table_from_csv(a, path, text, n, d);
	const struct yaml_node *node = yaml_parse(a, path, text, n, d);
	return node ? table_from_node(a, path, node, d) : NULL;
}
