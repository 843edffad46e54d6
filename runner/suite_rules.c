/* Selectors and what they choose: margins, waivers, rigs, serving tables. */
#include <string.h>

#include "sha256.h"
#include "suite_load.h"
#include "table_file.h"
#include "yaml_scalar.h"

static const char *const cell_keys[] = {"kernel", "case", "geometry", "data",    "suite", "id",
					"tag",    "arm",  "device",   "backend", "cc",    "host"};
enum { N_CELL_KEYS = sizeof cell_keys / sizeof *cell_keys };

/* ---- selectors ---- */

bool cell_key_known(const void *loader, const char *key)
{
	const struct loader *l = loader;
	for (int i = 0; i < N_CELL_KEYS; i++)
		if (!strcmp(cell_keys[i], key))
			return true;
	for (int i = 0; i < registry_count(l->opt->registry); i++)
		if (registry_param(registry_at(l->opt->registry, i), key) >= 0)
			return true;
	return false;
}

static void unknown_key(struct loader *l, struct mark at, const char *key)
{
	int n = N_CELL_KEYS, most = N_CELL_KEYS;
	for (int i = 0; i < registry_count(l->opt->registry); i++)
		most += registry_at(l->opt->registry, i)->n_params;
	const char **known = arena_array(l->arena, (size_t)most, sizeof *known);
	memcpy(known, cell_keys, sizeof cell_keys);
	for (int i = 0; i < registry_count(l->opt->registry); i++)
		for (int p = 0; p < registry_at(l->opt->registry, i)->n_params; p++) {
			const char *name = registry_at(l->opt->registry, i)->params[p].name;
			int k = 0;
			while (k < n && strcmp(known[k], name))
				k++;
			if (k == n)
				known[n++] = name;
		}
	diag_add(l->diags, DIAG_ERROR, at, "unknown key '%s' in a selector", key);
	const char *near = diag_nearest(key, known, n);
	if (near)
		diag_note(l->diags, (struct mark){0}, "did you mean '%s'?", near);
	else
		diag_note(l->diags, (struct mark){0},
			  "keys are kernel, case, geometry, data, arm, tag, device, backend, cc, host and the "
			  "parameters of kernels");
}

/* A pattern of the map form: a list is its alternatives. */
static const char *pattern_text(struct loader *l, const struct yaml_node *v)
{
	if (v->kind == YAML_TREE_SCALAR)
		return v->text;
	const char *text = v->n ? v->item[0]->text : "";
	for (int i = 1; i < v->n; i++)
		text = arena_printf(l->arena, "%s|%s", text, v->item[i]->text);
	return text;
}

bool selector_make(struct loader *l, const struct yaml_node *v, bool (*known)(const void *ctx, const char *key),
		   const void *ctx, struct selector *out)
{
	struct err why;
	*out = (struct selector){0};
	if (v->kind == YAML_TREE_SCALAR) {
		if (!selector_parse(l->arena, v->text, out, &why))
			return diag_add(l->diags, DIAG_ERROR, v->mark, "%s", why.text);
		const char *bad = selector_unknown_key(out, known, ctx);
		if (bad)
			unknown_key(l, v->mark, bad);
		return !bad;
	}
	bool good = true;
	for (int i = 0; v->kind == YAML_TREE_MAP && i < v->n; i++) {
		if (!known(ctx, v->key[i]->text)) {
			unknown_key(l, v->key[i]->mark, v->key[i]->text);
			good = false;
		} else if (!selector_add(l->arena, out, v->key[i]->text, pattern_text(l, v->item[i]), &why)) {
			good = diag_add(l->diags, DIAG_ERROR, v->item[i]->mark, "%s", why.text);
		}
	}
	return good;
}

/* ---- margins, waivers, rigs ---- */

static const char *text_of(const struct yaml_node *map, const char *key)
{
	const struct yaml_node *v = yaml_get(map, key, NULL);
	return v ? v->text : NULL;
}

static bool margin_make(struct loader *l, const struct yaml_node *v, struct margin *m)
{
	const struct yaml_node *warn = yaml_get(v, "warn", NULL), *lowest = yaml_get(v, "floor", NULL);
	m->mark = v->mark;
	scalar_percent(text_of(v, "fail"), &m->fail, NULL);
	if (lowest)
		scalar_time(lowest->text, &m->floor_ns, NULL);
	if (warn) {
		m->has_warn = true;
		scalar_percent(warn->text, &m->warn, NULL);
		if (m->warn > m->fail)
			diag_add(l->diags, DIAG_ERROR, warn->mark, "the warn level is above the fail level of %s",
				 text_of(v, "fail"));
	}
	return selector_make(l, yaml_get(v, "match", NULL), cell_key_known, l, &m->match);
}

static bool waiver_make(struct loader *l, const struct yaml_node *v, struct waiver *w)
{
	const char *until = text_of(v, "until");
	w->mark = v->mark;
	w->id = text_of(v, "id");
	w->reason = text_of(v, "reason");
	w->expect = text_of(v, "expect");
	w->arm = text_of(v, "arm");
	if (until)
		memcpy(w->until, until, sizeof w->until);
	for (const struct waiver *old = l->full->s.waiver; old < w; old++)
		if (!strcmp(old->id, w->id)) {
			diag_add(l->diags, DIAG_ERROR, yaml_get(v, "id", NULL)->mark, "waiver '%s' stands twice",
				 w->id);
			diag_note(l->diags, old->mark, "first here");
		}
	return selector_make(l, yaml_get(v, "match", NULL), cell_key_known, l, &w->match);
}

void rules_make(struct loader *l)
{
	struct suite *s = &l->full->s;
	struct margin *margin = arena_array(l->arena, (size_t)l->margins.n, sizeof *margin);
	struct waiver *waiver = arena_array(l->arena, (size_t)l->waivers.n, sizeof *waiver);
	struct rig *rig = arena_array(l->arena, (size_t)l->rigs.n, sizeof *rig);
	s->margin = margin;
	s->waiver = waiver;
	s->rig = rig;
	for (int i = 0; i < l->margins.n; i++)
		if (margin_make(l, l->margins.at[i], &margin[s->n_margins]))
			s->n_margins++;
	for (int i = 0; i < l->waivers.n; i++)
		if (waiver_make(l, l->waivers.at[i], &waiver[s->n_waivers]))
			s->n_waivers++;
	for (int i = 0; i < l->rigs.n; i++) {
		struct rig *r = &rig[s->n_rigs];
		*r = (struct rig){.gate = !strcmp(text_of(l->rigs.at[i], "timing"), "gate"),
				  .mark = l->rigs.at[i]->mark};
		if (selector_make(l, yaml_get(l->rigs.at[i], "match", NULL), cell_key_known, l, &r->match))
			s->n_rigs++;
	}
}

/* ---- serving tables ---- */

static const struct table *table_make(struct loader *l, const struct block *b, const struct yaml_node *v)
{
	const struct yaml_node *file = yaml_get(v, "file", NULL), *inner = yaml_get(v, "table", NULL);
	if ((file != NULL) == (inner != NULL)) {
		diag_add(l->diags, DIAG_ERROR, v->mark,
			 file ? "either a file or a table, not both" : "neither a file nor a table");
		diag_note(l->diags, (struct mark){0}, "as in {match: {}, file: tables/default.yaml}");
		return NULL;
	}
	if (inner)
		return table_from_node(l->arena, b->key->mark.file, inner, l->diags);
	const char *path = path_join(l->arena, b->dir, file->text);
	const struct table *t = table_load(l->arena, path, file->mark, l->diags);
	struct suite *s = &l->full->s;
	bool noted = !t;
	for (int i = 0; i < s->n_files && !noted; i++)
		noted = !strcmp(l->file[i].path, path);
	if (!noted) {
		size_t n;
		char *text = yaml_read_file(l->arena, path, file->mark, &n, l->diags);
		if (text)
			note_file(l, path, text, n);
	}
	return t;
}

void tables_make(struct loader *l)
{
	struct suite *s = &l->full->s;
	struct table_set *set = arena_array(l->arena, (size_t)l->tables.n, sizeof *set);
	s->table_set = set;
	for (int i = 0; i < l->tables.n; i++) {
		struct block *b = &l->tables.at[i];
		const struct yaml_node *v = b->value;
		int n = v->kind == YAML_TREE_SEQ ? v->n : 1;
		struct table_choice *choice = arena_array(l->arena, (size_t)n, sizeof *choice);
		struct table_set *t = &set[s->n_table_sets++];
		*t = (struct table_set){.name = b->name, .choice = choice, .mark = b->key->mark};
		for (int k = 0; k < n; k++) {
			const struct yaml_node *item = v->kind == YAML_TREE_SEQ ? v->item[k] : v;
			struct table_choice *c = &choice[t->n];
			if (item->bad || item->kind != YAML_TREE_MAP)
				continue;
			bool good = selector_make(l, yaml_get(item, "match", NULL), cell_key_known, l, &c->match);
			c->table = table_make(l, b, item);
			c->mark = item->mark;
			t->n += good && c->table;
		}
	}
}
