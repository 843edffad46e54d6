/* --set PATH=VALUE: each one a small tree of the override grammar, whose marks show the option as it was written. */
#include <string.h>

#include "set_value.h"
#include "suite_load.h"

static struct yaml_node *map_of(struct loader *l, const char *key, struct mark at, struct yaml_node *value)
{
	struct yaml_node *map = arena_alloc(l->arena, sizeof *map), *k = arena_alloc(l->arena, sizeof *k);
	*k = (struct yaml_node){.kind = YAML_TREE_SCALAR, .text = key, .mark = at};
	*map = (struct yaml_node){.kind = YAML_TREE_MAP, .mark = at, .n = 1};
	map->key = arena_array(l->arena, 1, sizeof *map->key);
	map->item = arena_array(l->arena, 1, sizeof *map->item);
	map->key[0] = k;
	map->item[0] = value;
	return map;
}

struct yaml_node *set_value(struct arena *a, const char *file, const char *text, struct diags *d)
{
	const size_t at = (size_t)(strchr(text, '=') + 1 - text);
	const char *value = text + at;
	size_t n = strlen(text);
	char *yaml = arena_alloc(a, n + 3);
	memset(yaml, ' ', at);
	memcpy(yaml + at, value, n - at);
	if (strchr(value, ',') && !strchr("[{\"'", *value)) {
		yaml[at - 1] = '[';
		yaml[n++] = ']';
	}
	return yaml_parse(a, file, yaml, n, d);
}

/* What rejudge calls the parts of a margin. A kernel's axis may have such a name: then its values are numbers. */
static bool names_a_margin(const char *path)
{
	static const char *const names[] = {"margin", "warn", "floor"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(path, names[i]) == 0)
			return true;
	return false;
}

static void override_make(struct loader *l, const char *text)
{
	struct arena *a = l->arena;
	const char *file = arena_printf(a, "--set '%s'", text);
	const char *eq = strchr(text, '=');
	diag_source(l->diags, file, text, strlen(text));
	struct mark at = {file, 1, 1, (int)(eq ? eq - text : (long)strlen(text))};
	if (!eq || eq == text || !eq[1]) {
		diag_add(l->diags, DIAG_ERROR, at, "not PATH=VALUE");
		diag_note(l->diags, (struct mark){0}, "as in --set timing.rounds=9 or --set t_q=1,8");
		return;
	}
	struct yaml_node *v = set_value(a, file, text, l->diags);
	if (!v)
		return;
	char *path = arena_strndup(a, text, (size_t)(eq - text));
	if (names_a_margin(path) && eq[1 + strspn(eq + 1, "0123456789.,+- []")]) {
		diag_add(l->diags, DIAG_ERROR, at, "'%s' cannot be set from the command line", path);
		diag_note(l->diags, (struct mark){0},
			  "a margin is a rule of the suite: margins: [{match: {}, fail: 3%%}]; assay rejudge FILE "
			  "--set "
			  "margin=3%% judges a run again under another one");
		return;
	}
	if (!strchr(path, '.') && !grammar_find(grammar_override, path) && grammar_find(grammar_suite, path)) {
		diag_add(l->diags, DIAG_ERROR, at, "'%s' cannot be set from the command line", path);
		diag_note(l->diags, (struct mark){0},
			  "axes can (t_q=1,8), and settings of timing and checks (timing.rounds=9); copy the suite for "
			  "the rest");
		return;
	}
	if (!strchr(path, '.') && !grammar_find(grammar_override, path)) {
		v = map_of(l, "axes", at, map_of(l, path, at, v));
	} else {
		/* From the last part to the first, each a map around the one before. */
		for (char *dot; (dot = strrchr(path, '.')); *dot = '\0')
			v = map_of(l, dot + 1, (struct mark){file, 1, (int)(dot - path) + 2, (int)strlen(dot + 1)}, v);
		v = map_of(l, path, (struct mark){file, 1, 1, (int)strlen(path)}, v);
	}
	if (grammar_check(grammar_override, v, "--set", l->diags))
		l->override[l->n_overrides++] = v;
}

void load_overrides(struct loader *l)
{
	l->override = arena_array(l->arena, (size_t)l->opt->n_set, sizeof *l->override);
	for (int i = 0; i < l->opt->n_set; i++)
		override_make(l, l->opt->set[i].text);
}
