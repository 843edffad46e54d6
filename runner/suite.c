#include "suite.h"

#include <string.h>

#include "sha256.h"
#include "shell_words.h"
#include "suite_load.h"
#include "yaml_scalar.h"

static void blocks_finish(struct loader *l)
{
	struct suite_full *f = l->full;
	const struct geometry **g = arena_array(l->arena, (size_t)l->geometries.n + 1, sizeof *g);
	const struct distribution **d = arena_array(l->arena, (size_t)l->distributions.n + 1, sizeof *d);
	for (int i = 0; i < l->geometries.n; i++)
		if (geometry_make(l, &l->geometries.at[i]))
			g[f->n_geometries++] = l->geometries.at[i].made;
	for (int i = 0; i < l->distributions.n; i++)
		if (distribution_make(l, &l->distributions.at[i]))
			d[f->n_distributions++] = l->distributions.at[i].made;
	f->geometry = g;
	f->distribution = d;
}

/* Top-level timing and defaults.timing are one layer: a key in both is a mistake. */
static void layers_check(struct loader *l, const char *section)
{
	const struct yaml_node *top = yaml_get(l->root, section, NULL), *low = yaml_get(l->defaults, section, NULL);
	for (int i = 0; top && low && low->kind == YAML_TREE_MAP && i < low->n; i++) {
		struct mark first;
		if (!yaml_get(top, low->key[i]->text, &first))
			continue;
		diag_add(l->diags, DIAG_ERROR, low->key[i]->mark, "'%s' is set in %s and in defaults.%s",
			 low->key[i]->text, section, section);
		diag_note(l->diags, first, "also here");
	}
}

static void top_make(struct loader *l)
{
	struct suite *s = &l->full->s;
	const struct yaml_node *v;
	s->name = (v = yaml_get(l->root, "suite", NULL)) && !v->bad ? v->text : "?";
	s->about = (v = yaml_get(l->root, "about", NULL)) && !v->bad ? v->text : NULL;
	const struct slot *cap = grammar_find(grammar_suite, "max_cells");
	scalar_int(cap->dflt, &s->max_cells, NULL);
	if ((v = yaml_get(l->root, "max_cells", NULL)) && !v->bad)
		scalar_int(v->text, &s->max_cells, NULL);
	for (int i = 0; i < l->n_overrides; i++)
		if ((v = yaml_get(l->override[i], "max_cells", NULL)))
			scalar_int(v->text, &s->max_cells, NULL);
	struct yaml_node *defaults = yaml_get(l->root, "defaults", NULL);
	l->defaults = defaults && defaults->kind == YAML_TREE_MAP ? defaults : NULL;
	layers_check(l, "timing");
	layers_check(l, "checks");
}

/* A bare --set word is an axis of some case, or a parameter that some kernel of a case knows. */
static void overrides_check(struct loader *l)
{
	const struct suite *s = &l->full->s;
	for (int o = 0; o < l->n_overrides; o++) {
		const struct yaml_node *axes = yaml_get(l->override[o], "axes", NULL);
		for (int i = 0; axes && axes->kind == YAML_TREE_MAP && i < axes->n; i++) {
			const char *name = axes->key[i]->text;
			bool used = false;
			int n = 0, most = 0;
			for (int c = 0; c < s->n_cases; c++)
				for (int k = 0; k < s->cases[c].n_kernels; k++)
					most += registry_find(l->opt->registry, s->cases[c].kernel[k])->n_params;
			const struct slot *top = grammar_override;
			const char **known = arena_array(l->arena, (size_t)most + 16, sizeof *known);
			for (int c = 0; c < s->n_cases; c++)
				for (int k = 0; k < s->cases[c].n_kernels; k++) {
					const struct assay_kernel *kernel =
						registry_find(l->opt->registry, s->cases[c].kernel[k]);
					used |= registry_param(kernel, name) >= 0;
					for (int p = 0; p < kernel->n_params; p++)
						known[n++] = kernel->params[p].name;
				}
			for (; top->key && n < most + 16; top++)
				known[n++] = top->key;
			if (used || !most)
				continue;
			diag_add(l->diags, DIAG_ERROR, axes->key[i]->mark, "no kernel of the suite knows the axis '%s'",
				 name);
			const char *near = diag_nearest(name, known, n);
			if (near)
				diag_note(l->diags, (struct mark){0}, "did you mean '%s'?", near);
			else
				diag_note(l->diags, (struct mark){0},
					  "a bare word is an axis; settings are paths: timing.rounds=9");
		}
	}
}

static void hash_files(struct suite *s)
{
	struct sha256 h;
	sha256_init(&h);
	for (int i = 0; i < s->n_files; i++)
		sha256_update(&h, s->file[i].sha256, sizeof s->file[i].sha256);
	sha256_hex_final(&h, s->sha256);
}

static void put_option(FILE *f, const char *option, const char *value)
{
	fprintf(f, " %s ", option);
	shell_put_quoted(f, value);
}

/* What the rerun command of a record needs beside the suite and the filter. */
static const char *set_words(struct arena *a, const struct suite_options *opt)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		abort();
	for (int i = 0; i < opt->n_plugins; i++)
		put_option(f, "--plugin", opt->plugin[i]);
	if (opt->backend)
		put_option(f, "--backend", opt->backend);
	if (opt->device)
		put_option(f, "--device", opt->device);
	for (int i = 0; i < opt->n_set; i++)
		put_option(f, "--set", opt->set[i].text);
	if (fclose(f) != 0)
		abort();
	const char *words = arena_strdup(a, text);
	free(text);
	return words;
}

static struct suite *load(const char *path, const char *text, size_t n, const struct suite_options *opt,
			  struct diags *diags)
{
	struct arena *a = arena_create();
	struct suite_full *full = arena_alloc(a, sizeof *full);
	struct loader l = {.arena = a, .diags = diags, .opt = opt, .full = full};
	full->s.arena = a;
	full->s.path = arena_strdup(a, path);
	full->s.set_words = set_words(a, opt);
	full->s.rerun_as = opt->rerun_as ? arena_strdup(a, opt->rerun_as) : NULL;
	int before = diags_errors(diags);
	struct mark at;
	bool loaded = load_files(&l, path, text, n);
	if (loaded && yaml_get(l.root, "suites", &at)) {
		diag_add(diags, DIAG_ERROR, at, "this file names suites, and one suite is wanted here");
		diag_note(diags, (struct mark){0}, "name one of them; run, check and list take the whole");
	} else if (loaded) {
		load_overrides(&l);
		top_make(&l);
		blocks_finish(&l);
		tables_make(&l);
		rules_make(&l);
		cases_make(&l);
		overrides_check(&l);
		hash_files(&full->s);
	}
	if (diags_errors(diags) == before)
		return &full->s;
	arena_destroy(a);
	return NULL;
}

struct suite *suite_load(const char *path, const struct suite_options *opt, struct diags *diags)
{
	return load(path, NULL, 0, opt, diags);
}

struct suite *suite_load_text(const char *path, const char *text, size_t n, const struct suite_options *opt,
			      struct diags *diags)
{
	return load(path, text, n, opt, diags);
}

void suite_destroy(struct suite *s)
{
	if (s)
		arena_destroy(s->arena);
}

struct suite *suite_derive(struct suite *s)
{
	struct suite_full *f = arena_alloc(s->arena, sizeof *f);

	*f = *(const struct suite_full *)(const void *)s;
	f->origin = NULL;
	f->n_origins = 0;
	return &f->s;
}

bool suite_provenance(const struct suite *s, const struct suite_case *c, const char *path, struct provenance *out)
{
	const struct suite_full *f = (const struct suite_full *)(const void *)s;
	int index = (int)(c - s->cases);
	for (int i = 0; i < f->n_origins; i++) {
		const struct origin *o = &f->origin[i];
		if (o->case_index != index || strcmp(o->path, path))
			continue;
		*out = (struct provenance){o->path, o->layer, o->node ? o->node->mark : (struct mark){0}};
		return true;
	}
	for (int i = 0; i < c->n_axes; i++)
		if (!strcmp(c->axis[i].name, path)) {
			bool set = c->axis[i].mark.file && !strncmp(c->axis[i].mark.file, "--set", 5);
			*out = (struct provenance){c->axis[i].name, set ? "command line" : "case", c->axis[i].mark};
			return true;
		}
	return false;
}

json_t *suite_schema(void)
{
	return grammar_schema(grammar_suite, "suite.schema.json", "assay suite");
}

void suite_reference(FILE *f)
{
	grammar_reference(grammar_suite, f);
}
