/* Files of a suite: the suite itself and what it includes, each read once, their named blocks side by side. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "sha256.h"
#include "suite_load.h"

enum { INCLUDE_DEPTH = 16 };

/* The files that are open, innermost first. */
struct chain {
	const struct chain *outer;
	const char *path;
	int depth;
};

static bool file_load(struct loader *l, const char *path, struct mark from, const char *text, size_t n,
		      const struct chain *outer);

static const char *dir_of(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? arena_strndup(a, path, slash == path ? 1 : (size_t)(slash - path)) : "";
}

const char *path_join(struct arena *a, const char *dir, const char *file)
{
	if (file[0] == '/' || !*dir)
		return arena_strdup(a, file);
	while (!strncmp(file, "./", 2))
		file += 2;
	return arena_printf(a, "%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", file);
}

/* Whether two paths are one file, however they are spelt. */
static bool same_file(const char *a, const char *b)
{
	if (!strcmp(a, b))
		return true;
	char *ra = realpath(a, NULL), *rb = realpath(b, NULL);
	bool same = ra && rb && !strcmp(ra, rb);
	free(ra);
	free(rb);
	return same;
}

void note_file(struct loader *l, const char *path, const char *text, size_t n)
{
	struct suite *s = &l->full->s;
	l->file = arena_grow(l->arena, l->file, (size_t)s->n_files, &l->file_cap, sizeof *l->file);
	struct suite_file *f = &l->file[s->n_files++];
	f->path = arena_strdup(l->arena, path);
	sha256_hex(text, n, f->sha256);
	s->file = l->file;
}

struct block *block_find(const struct blocks *b, const char *name)
{
	for (int i = 0; i < b->n; i++)
		if (!strcmp(b->at[i].name, name))
			return &b->at[i];
	return NULL;
}

struct block *block_want(struct loader *l, const struct blocks *b, const struct yaml_node *name)
{
	struct block *found = block_find(b, name->text);
	if (found)
		return found;
	const char **known = arena_array(l->arena, (size_t)b->n, sizeof *known);
	for (int i = 0; i < b->n; i++)
		known[i] = b->at[i].name;
	grammar_unknown(l->diags, name->mark, b->what, name->text, known, b->n);
	return NULL;
}

static void blocks_add(struct loader *l, struct blocks *b, struct yaml_node *map, const char *dir)
{
	for (int i = 0; map && map->kind == YAML_TREE_MAP && i < map->n; i++) {
		struct yaml_node *key = map->key[i];
		const struct block *old = block_find(b, key->text);
		if (key->bad)
			continue;
		if (old) {
			diag_add(l->diags, DIAG_ERROR, key->mark, "%s '%s' is declared twice", b->what, key->text);
			diag_note(l->diags, old->key->mark, "first here");
			continue;
		}
		b->at = arena_grow(l->arena, b->at, (size_t)b->n, &b->cap, sizeof *b->at);
		b->at[b->n++] = (struct block){.name = key->text, .key = key, .value = map->item[i], .dir = dir};
	}
}

static void rules_add(struct loader *l, struct rule_nodes *r, struct yaml_node *v)
{
	int n = v ? v->kind == YAML_TREE_SEQ ? v->n : 1 : 0;
	for (int i = 0; i < n; i++) {
		struct yaml_node *item = v->kind == YAML_TREE_SEQ ? v->item[i] : v;
		if (item->kind != YAML_TREE_MAP || item->bad)
			continue;
		r->at = arena_grow(l->arena, r->at, (size_t)r->n, &r->cap, sizeof *r->at);
		r->at[r->n++] = item;
	}
}

static void include(struct loader *l, const struct yaml_node *name, const char *dir, const struct chain *chain)
{
	const char *path = path_join(l->arena, dir, name->text);
	const char *text = path;
	for (const struct chain *c = chain; c; c = c->outer) {
		text = arena_printf(l->arena, "%s -> %s", c->path, text);
		if (same_file(c->path, path)) {
			diag_add(l->diags, DIAG_ERROR, name->mark, "a cycle of includes: %s", text);
			return;
		}
	}
	if (chain->depth >= INCLUDE_DEPTH) {
		diag_add(l->diags, DIAG_ERROR, name->mark, "includes nested deeper than %d", INCLUDE_DEPTH);
		return;
	}
	for (int i = 0; i < l->full->s.n_files; i++)
		if (same_file(l->file[i].path, path))
			return; /* read already, by another way */
	file_load(l, path, name->mark, NULL, 0, chain);
}

static bool file_load(struct loader *l, const char *path, struct mark from, const char *text, size_t n,
		      const struct chain *outer)
{
	struct chain chain = {outer, path, outer ? outer->depth + 1 : 0};
	if (!text && !(text = yaml_read_file(l->arena, path, from, &n, l->diags)))
		return false;
	note_file(l, path, text, n);
	struct yaml_node *root = yaml_parse(l->arena, path, text, n, l->diags);
	if (!root)
		return false;
	grammar_check(outer ? grammar_include : grammar_suite, root, outer ? "an included file" : "the suite",
		      l->diags);
	if (!outer)
		l->root = root;
	const char *dir = dir_of(l->arena, path);
	blocks_add(l, &l->geometries, yaml_get(root, "geometries", NULL), dir);
	blocks_add(l, &l->split_sets, yaml_get(root, "split_sets", NULL), dir);
	blocks_add(l, &l->distributions, yaml_get(root, "distributions", NULL), dir);
	blocks_add(l, &l->tables, yaml_get(root, "tables", NULL), dir);
	rules_add(l, &l->margins, yaml_get(root, "margins", NULL));
	rules_add(l, &l->waivers, yaml_get(root, "waivers", NULL));
	rules_add(l, &l->rigs, yaml_get(root, "rigs", NULL));
	const struct yaml_node *v = yaml_get(root, "include", NULL);
	if (v && !v->bad && v->kind == YAML_TREE_SCALAR)
		include(l, v, dir, &chain);
	for (int i = 0; v && v->kind == YAML_TREE_SEQ && i < v->n; i++)
		if (!v->item[i]->bad)
			include(l, v->item[i], dir, &chain);
	return true;
}

bool load_files(struct loader *l, const char *path, const char *text, size_t n)
{
	l->geometries.what = "geometry";
	l->split_sets.what = "split set";
	l->distributions.what = "distribution";
	l->tables.what = "table";
	return file_load(l, path, (struct mark){0}, text, n, NULL) && l->root->kind == YAML_TREE_MAP;
}
