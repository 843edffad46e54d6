/* Cases: kernels, names resolved, layers applied in order. */
#include <fnmatch.h>
#include <string.h>

#include "suite_load.h"
#include "yaml_scalar.h"

/* Who sets a value, least first. */
static const char layer_builtin[] = "built-in", layer_suite[] = "suite", layer_defaults[] = "defaults",
		  layer_case[] = "case", layer_command[] = "command line";

static void remember(struct loader *l, const char *path, const struct yaml_node *node)
{
	struct suite_full *f = l->full;
	for (int i = f->n_origins - 1; i >= 0 && l->origin[i].case_index == l->at_case; i--)
		if (!strcmp(l->origin[i].path, path)) {
			l->origin[i].layer = l->layer;
			l->origin[i].node = node;
			return;
		}
	l->origin = arena_grow(l->arena, l->origin, (size_t)f->n_origins, &l->origin_cap, sizeof *l->origin);
	l->origin[f->n_origins++] = (struct origin){l->at_case, arena_strdup(l->arena, path), l->layer, node};
	f->origin = l->origin;
}

struct section {
	struct loader *l;
	const char *name;
};

static void seen(void *ctx, const char *path, const struct yaml_node *v)
{
	struct section *s = ctx;
	remember(s->l, arena_printf(s->l->arena, "%s.%s", s->name, path), v);
}

const struct origin *origin_find(const struct loader *l, const char *path)
{
	for (int i = l->full->n_origins - 1; i >= 0 && l->origin[i].case_index == l->at_case; i--)
		if (!strcmp(l->origin[i].path, path))
			return &l->origin[i];
	return NULL;
}

struct mark origin_mark(const struct loader *l, const char *path, struct mark otherwise)
{
	const struct origin *o = origin_find(l, path);
	return o && o->node ? o->node->mark : otherwise;
}

/* ---- kernels ---- */

static bool add_kernel(struct case_load *k, const char **names, const struct assay_kernel *kernel)
{
	for (int i = 0; i < k->c->n_kernels; i++)
		if (k->kernel[i] == kernel)
			return false;
	names[k->c->n_kernels] = kernel->name;
	k->kernel[k->c->n_kernels++] = kernel;
	return true;
}

static void kernels_of(struct loader *l, struct case_load *k, const struct yaml_node *v, const char **names)
{
	const struct registry *r = l->opt->registry;
	int n = registry_count(r);
	if (strpbrk(v->text, "*?[")) {
		bool some = false;
		for (int i = 0; i < n; i++)
			if (!fnmatch(v->text, registry_at(r, i)->name, 0)) {
				some = true;
				add_kernel(k, names, registry_at(r, i));
			}
		if (!some)
			diag_add(l->diags, DIAG_ERROR, v->mark, "no kernel matches '%s'", v->text);
		if (!some)
			diag_note(l->diags, (struct mark){0}, "'assay list' shows the kernels there are");
		return;
	}
	const struct assay_kernel *kernel = registry_find(r, v->text);
	if (kernel) {
		if (!add_kernel(k, names, kernel))
			diag_add(l->diags, DIAG_ERROR, v->mark, "kernel '%s' stands twice", v->text);
		return;
	}
	const char **known = arena_array(l->arena, (size_t)n + 1, sizeof *known);
	for (int i = 0; i < n; i++)
		known[i] = registry_at(r, i)->name;
	const char *near = diag_nearest(v->text, known, n);
	diag_add(l->diags, DIAG_ERROR, v->mark, "unknown kernel '%s'", v->text);
	if (near)
		diag_note(l->diags, (struct mark){0}, "did you mean '%s'?", near);
	else
		diag_note(l->diags, (struct mark){0}, "'assay list' shows the kernels there are");
}

static void kernels_make(struct loader *l, struct case_load *k, const struct yaml_node *v)
{
	int most = registry_count(l->opt->registry);
	const char **names = arena_array(l->arena, (size_t)most + 1, sizeof *names);
	k->kernel = arena_array(l->arena, (size_t)most + 1, sizeof *k->kernel);
	k->c->kernel = names;
	if (v && v->kind == YAML_TREE_SCALAR && !v->bad)
		kernels_of(l, k, v, names);
	for (int i = 0; v && v->kind == YAML_TREE_SEQ && i < v->n; i++)
		if (!v->item[i]->bad)
			kernels_of(l, k, v->item[i], names);
}

/* ---- names: geometries, distributions, tags ---- */

/* The value of a key by the layers that hold whole values: defaults, case, command line. Remembers who set it. */
static const struct yaml_node *layered(struct loader *l, const struct case_load *k, const char *key)
{
	const struct yaml_node *v = NULL, *at;
	l->layer = layer_builtin;
	if (l->defaults && (at = yaml_get(l->defaults, key, NULL))) {
		v = at;
		l->layer = layer_defaults;
	}
	if ((at = yaml_get(k->node, key, NULL))) {
		v = at;
		l->layer = layer_case;
	}
	for (int i = 0; i < l->n_overrides; i++)
		if ((at = yaml_get(l->override[i], key, NULL))) {
			v = at;
			l->layer = layer_command;
		}
	remember(l, key, v);
	return v;
}

typedef const void *make_block(struct loader *l, struct block *b);

static const void *geometry_of(struct loader *l, struct block *b)
{
	return geometry_make(l, b);
}

static const void *distribution_of(struct loader *l, struct block *b)
{
	return distribution_make(l, b);
}

/* The structs of a list of names. Returns how many are good. */
static int blocks_of(struct loader *l, const struct yaml_node *v, const struct blocks *b, make_block *make,
		     const void **out)
{
	int n = 0, items = v->kind == YAML_TREE_SEQ ? v->n : 1;
	for (int i = 0; i < items; i++) {
		const struct yaml_node *name = v->kind == YAML_TREE_SEQ ? v->item[i] : v;
		if (name->bad || name->kind != YAML_TREE_SCALAR)
			continue;
		bool twice = false;
		for (int k = 0; k < i && !twice; k++)
			twice = v->item[k]->kind == YAML_TREE_SCALAR && !strcmp(v->item[k]->text, name->text);
		struct block *found = twice ? NULL : block_want(l, b, name);
		const void *made = found ? make(l, found) : NULL;
		if (twice)
			diag_add(l->diags, DIAG_ERROR, name->mark, "%s '%s' stands twice", b->what, name->text);
		if (made)
			out[n++] = made;
	}
	return n;
}

static void names_make(struct loader *l, struct case_load *k)
{
	struct suite_case *c = k->c;
	const struct yaml_node *v = layered(l, k, "geometry");
	const void **list = arena_array(l->arena, v && v->kind == YAML_TREE_SEQ ? (size_t)v->n : 1, sizeof *list);
	c->n_geometries = v ? blocks_of(l, v, &l->geometries, geometry_of, list) : 1;
	if (!v)
		list[0] = geometry_plain(l);
	k->bad_params |= v && c->n_geometries < (v->kind == YAML_TREE_SEQ ? v->n : 1);
	c->geometry = (const struct geometry *const *)list;

	v = layered(l, k, "data");
	list = arena_array(l->arena, v && v->kind == YAML_TREE_SEQ ? (size_t)v->n : 1, sizeof *list);
	c->n_data = v ? blocks_of(l, v, &l->distributions, distribution_of, list) : 1;
	if (!v)
		list[0] = distribution_plain(l);
	c->data = (const struct distribution *const *)list;

	v = layered(l, k, "tags");
	int n = v ? v->kind == YAML_TREE_SEQ ? v->n : 1 : 0;
	const char **tag = arena_array(l->arena, (size_t)n, sizeof *tag);
	for (int i = 0; i < n; i++) {
		const struct yaml_node *item = v->kind == YAML_TREE_SEQ ? v->item[i] : v;
		if (item->kind == YAML_TREE_SCALAR)
			tag[c->n_tags++] = item->text;
	}
	c->tag = tag;

	int64_t seed = 1;
	if ((v = layered(l, k, "seed")) && !v->bad)
		scalar_int(v->text, &seed, NULL);
	c->seed = (uint64_t)seed;
}

/* ---- timing and checks ---- */

static void layer_apply(struct loader *l, const struct slot *rows, const char *section, const char *layer,
			const struct yaml_node *holder, void *base)
{
	const struct yaml_node *map = holder ? yaml_get(holder, section, NULL) : NULL;
	struct section s = {l, section};
	l->layer = layer;
	if (map && map->kind == YAML_TREE_MAP)
		grammar_apply(rows, l->arena, map, base, seen, &s);
}

static void layers_apply(struct loader *l, struct case_load *k, const struct slot *rows, const char *section,
			 void *base)
{
	struct section s = {l, section};
	l->layer = layer_builtin;
	grammar_defaults(rows, l->arena, base, seen, &s);
	layer_apply(l, rows, section, layer_suite, l->root, base);
	layer_apply(l, rows, section, layer_defaults, l->defaults, base);
	layer_apply(l, rows, section, layer_case, k->node, base);
	for (int i = 0; i < l->n_overrides; i++)
		layer_apply(l, rows, section, layer_command, l->override[i], base);
}

/* ---- a case ---- */

static void excludes_make(struct loader *l, struct case_load *k)
{
	const struct yaml_node *v = yaml_get(k->node, "exclude", NULL);
	int n = v ? v->kind == YAML_TREE_SEQ ? v->n : 1 : 0;
	struct selector *s = arena_array(l->arena, (size_t)n, sizeof *s);
	struct mark *mark = arena_array(l->arena, (size_t)n, sizeof *mark);
	k->c->exclude = s;
	k->c->exclude_mark = mark;
	for (int i = 0; i < n; i++) {
		const struct yaml_node *item = v->kind == YAML_TREE_SEQ ? v->item[i] : v;
		if (item->bad || !selector_make(l, item, cell_key_known, l, &s[k->c->n_excludes]))
			continue;
		if (s[k->c->n_excludes].n_terms)
			mark[k->c->n_excludes++] = item->mark;
		else
			diag_add(l->diags, DIAG_ERROR, item->mark, "this selector leaves out every point");
	}
}

static void case_make(struct loader *l, struct yaml_node *node, struct suite_case *c)
{
	struct case_load k = {.c = c, .node = node};
	const struct yaml_node *id = yaml_get(node, "id", NULL);
	c->id = id && !id->bad && id->kind == YAML_TREE_SCALAR ? id->text : "?";
	c->mark = id ? id->mark : node->mark;
	for (const struct suite_case *old = l->cases; old < c; old++)
		if (!strcmp(old->id, c->id) && strcmp(c->id, "?")) {
			diag_add(l->diags, DIAG_ERROR, c->mark, "case '%s' stands twice", c->id);
			diag_note(l->diags, old->mark, "first here");
		}
	kernels_make(l, &k, yaml_get(node, "kernels", NULL));
	names_make(l, &k);
	const struct yaml_node *arms = layered(l, &k, "arms");
	if (arms && arms->bad && arms->kind == YAML_TREE_SCALAR)
		k.bad_arms = true;
	else
		arms_make(l, &k, arms);
	layers_apply(l, &k, grammar_timing, "timing", &c->timing);
	layers_apply(l, &k, grammar_checks, "checks", &c->checks);
	axes_make(l, &k, yaml_get(node, "axes", NULL));
	excludes_make(l, &k);
	for (int i = 0; i < node->n; i++)
		k.unknown_key |= node->key[i]->bad; /* perhaps the key that is missed */
	k.bad_params |= k.unknown_key;
	if (!c->n_kernels)
		return; /* nothing to hold the rest against */
	case_check(l, &k);
	points_check(l, &k);
}

void cases_make(struct loader *l)
{
	const struct yaml_node *v = yaml_get(l->root, "cases", NULL);
	int n = v ? v->kind == YAML_TREE_SEQ ? v->n : v->kind == YAML_TREE_MAP : 0;
	struct suite *s = &l->full->s;
	l->cases = arena_array(l->arena, (size_t)n, sizeof *l->cases);
	for (int i = 0; i < n; i++) {
		struct yaml_node *item = v->kind == YAML_TREE_SEQ ? v->item[i] : yaml_get(l->root, "cases", NULL);
		if (item->kind != YAML_TREE_MAP)
			continue;
		l->at_case = s->n_cases;
		case_make(l, item, &l->cases[s->n_cases]);
		s->cases = l->cases;
		s->n_cases++;
	}
}
