#include "suite_list.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "grammar.h"
#include "suite_load.h"
#include "yaml_scalar.h"
#include "yaml_tree.h"

static const char *const *texts_of(struct arena *a, const struct yaml_node *v, int *n)
{
	*n = !v ? 0 : v->kind == YAML_TREE_SEQ ? v->n : 1;
	const char **list = arena_array(a, (size_t)*n + 1, sizeof *list);
	for (int i = 0; i < *n; i++)
		list[i] = v->kind == YAML_TREE_SEQ ? v->item[i]->text : v->text;
	return list;
}

static void add(struct arena *a, struct suite_uses *u, struct suite_use one)
{
	u->use = arena_grow(a, u->use, (size_t)u->n, &u->cap, sizeof *u->use);
	u->use[u->n++] = one;
}

/* An item that the grammar found good. */
static struct suite_use read_item(struct arena *a, const struct yaml_node *item, const char *dir)
{
	struct suite_use use = {0};
	const struct yaml_node *v;
	if (item->kind == YAML_TREE_SCALAR) {
		use.path = path_join(a, dir, item->text);
		return use;
	}
	use.path = path_join(a, dir, yaml_get(item, "suite", NULL)->text);
	use.filter = texts_of(a, yaml_get(item, "filter", NULL), &use.n_filters);
	if ((v = yaml_get(item, "processes", NULL))) {
		int64_t n = 0;
		scalar_int(v->text, &n, NULL);
		use.processes = (int)n;
	}
	if ((v = yaml_get(item, "backend", NULL)))
		use.backend = v->text;
	return use;
}

/* The tree of a file that names suites, whose text d knows then; NULL for any other. What is wrong with a suite, suite_load says. */
static struct yaml_node *tree_of_list(struct arena *a, const char *path, struct diags *d)
{
	struct stat st;
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return NULL; /* a pipe can be read once only */
	struct diags *quiet = diags_create();
	size_t n;
	const char *text = yaml_read_file(a, path, (struct mark){0}, &n, quiet);
	struct yaml_node *root = text ? yaml_parse(a, path, text, n, quiet) : NULL;
	diags_destroy(quiet);
	if (!root || root->kind != YAML_TREE_MAP || !yaml_get(root, "suites", NULL))
		return NULL;
	diag_source(d, path, text, n);
	return root;
}

bool suite_uses_add(struct arena *a, const char *path, struct diags *d, struct suite_uses *out)
{
	static const char *const own[] = {"assay", "suite", "about", "suites"};
	struct yaml_node *root = tree_of_list(a, path, d);
	if (!root) {
		add(a, out, (struct suite_use){.path = path});
		return true;
	}
	int before = diags_errors(d);
	if (!grammar_check(grammar_suite, root, "the suite", d) || diags_errors(d) > before)
		return false;
	for (int i = 0; i < root->n; i++) {
		bool known = false;
		for (size_t k = 0; k < sizeof own / sizeof *own; k++)
			known |= strcmp(root->key[i]->text, own[k]) == 0;
		if (known)
			continue;
		diag_add(d, DIAG_ERROR, root->key[i]->mark, "'%s' cannot stand beside 'suites'", root->key[i]->text);
		diag_note(d, (struct mark){0}, "each suite keeps its own; a change for all of them is --set");
	}
	if (diags_errors(d) > before)
		return false;
	const char *slash = strrchr(path, '/');
	const char *dir = slash ? arena_strndup(a, path, slash == path ? 1 : (size_t)(slash - path)) : "";
	const struct yaml_node *list = yaml_get(root, "suites", NULL), *about = yaml_get(root, "about", NULL);
	out->name = yaml_get(root, "suite", NULL)->text;
	out->about = about ? about->text : NULL;
	if (list->kind != YAML_TREE_SEQ)
		add(a, out, read_item(a, list, dir));
	for (int i = 0; list->kind == YAML_TREE_SEQ && i < list->n; i++)
		add(a, out, read_item(a, list->item[i], dir));
	return true;
}

int suite_use_filters(struct arena *a, const struct suite_use *use, const char *const *filter, int n,
		      const char *const **out)
{
	int mine = use->n_filters ? use->n_filters : 1, theirs = n ? n : 1, count = 0;
	const char **list = arena_array(a, (size_t)mine * (size_t)theirs + 1, sizeof *list);
	for (int i = 0; i < mine; i++)
		for (int k = 0; k < theirs; k++) {
			const char *x = use->n_filters ? use->filter[i] : NULL, *y = n ? filter[k] : NULL;
			if (x || y)
				list[count++] = x && y ? arena_printf(a, "%s,%s", x, y) : x ? x : y;
		}
	*out = list;
	return count;
}

json_t *suite_uses_json(const struct suite_uses *u)
{
	json_t *j = json_pack("{s:i, s:s}", "assay", 1, "suite", u->name), *list = json_array();
	if (u->about)
		json_object_set_new(j, "about", json_string(u->about));
	for (int i = 0; i < u->n; i++) {
		const struct suite_use *use = &u->use[i];
		json_t *one = json_pack("{s:s}", "suite", use->path), *filters = json_array();
		for (int k = 0; k < use->n_filters; k++)
			json_array_append_new(filters, json_string(use->filter[k]));
		if (use->n_filters)
			json_object_set(one, "filter", filters);
		json_decref(filters);
		if (use->processes)
			json_object_set_new(one, "processes", json_integer(use->processes));
		if (use->backend)
			json_object_set_new(one, "backend", json_string(use->backend));
		json_array_append_new(list, one);
	}
	json_object_set_new(j, "suites", list);
	return j;
}
