/* Arms of a case: by role, by split set, one by one. */
#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "plan.h"
#include "suite_load.h"
#include "yaml_scalar.h"

/* The arms of a case as they are gathered. */
struct gather {
	struct loader *l;
	struct case_load *k;
	struct arm_use *use;
	int n;
	size_t cap;
};

static const char *arm_text(struct loader *l, const struct yaml_node *v)
{
	if (v->kind == YAML_TREE_SCALAR)
		return v->text;
	const struct yaml_node *arm = yaml_get(v, "arm", NULL);
	if (arm)
		return arm->text;
	int64_t n = 0;
	scalar_int(v->item[0]->text, &n, NULL);
	return arena_printf(l->arena, "%s=%lld", v->key[0]->text, (long long)n);
}

/* Where an arm is named. */
static struct mark arm_mark(const struct yaml_node *v)
{
	const struct yaml_node *arm = v->kind == YAML_TREE_MAP ? yaml_get(v, "arm", NULL) : v;
	return arm ? arm->mark : v->key[0]->mark;
}

static const struct assay_arm *family(const struct assay_kernel *k, const char *name)
{
	size_t n = strcspn(name, "=");
	for (int i = 0; i < k->n_arms; i++)
		if (strlen(k->arms[i].name) == n && !strncmp(k->arms[i].name, name, n))
			return &k->arms[i];
	return NULL;
}

/* Names of arms, families as NAME=N, over the kernels of the case. */
static int known_arms(struct loader *l, const struct case_load *k, const char ***out)
{
	int n = 0, most = 0;
	for (int i = 0; i < k->c->n_kernels; i++)
		most += k->kernel[i]->n_arms;
	const char **known = arena_array(l->arena, (size_t)most + 1, sizeof *known);
	for (int i = 0; i < k->c->n_kernels; i++)
		for (int j = 0; j < k->kernel[i]->n_arms; j++) {
			const char *name = k->kernel[i]->arms[j].name;
			int seen = 0;
			while (seen < n && strcmp(known[seen], name))
				seen++;
			if (seen == n && !(k->kernel[i]->arms[j].flags & ASSAY_ARM_FAULT))
				known[n++] = name;
		}
	*out = known;
	return n;
}

/* Whether some kernel of the case has the arm, and none has it with another range. */
static bool arm_check(struct loader *l, const struct case_load *k, const char *arm, struct mark at, bool *set_meant)
{
	bool some = false;
	*set_meant = false;
	if (!k->c->n_kernels)
		return true; /* the kernels were refused */
	if (!strcmp(arm, "shipped"))
		return true;
	for (int i = 0; i < k->c->n_kernels; i++) {
		struct err why;
		int64_t arg;
		if (registry_arm(k->kernel[i], arm, &arg, &why))
			some = true;
		else if (family(k->kernel[i], arm))
			return diag_add(l->diags, DIAG_ERROR, at, "%s", why.text);
	}
	*set_meant = !some;
	return some;
}

static const struct env_flip *env_make(struct loader *l, const struct yaml_node *v, int *n)
{
	*n = v ? v->n : 0;
	struct env_flip *env = arena_array(l->arena, (size_t)*n, sizeof *env);
	for (int i = 0; i < *n; i++)
		env[i] = (struct env_flip){v->key[i]->text, *v->item[i]->text ? v->item[i]->text : NULL};
	return env;
}

static void add_arm(struct gather *g, const struct yaml_node *v, int role)
{
	struct loader *l = g->l;
	const struct yaml_node *map = v->kind == YAML_TREE_MAP && yaml_get(v, "arm", NULL) ? v : NULL;
	const struct yaml_node *name = yaml_get(map, "name", NULL), *as = yaml_get(map, "role", NULL),
			       *graph = yaml_get(map, "graph", NULL);
	struct arm_use use = {.arm = arm_text(l, v), .role = role, .mark = arm_mark(v)};
	use.name = name ? name->text : use.arm;
	use.env = env_make(l, yaml_get(map, "env", NULL), &use.n_env);
	use.graph = graph && !strcmp(graph->text, "true");
	if (as) {
		int said = !strcmp(as->text, "shipped")    ? ROLE_SHIPPED
			   : !strcmp(as->text, "headroom") ? ROLE_HEADROOM
							   : ROLE_CANDIDATE;
		if ((said == ROLE_SHIPPED) != (role == ROLE_SHIPPED)) {
			diag_add(l->diags, DIAG_ERROR, as->mark, "this arm is %sthe shipped one",
				 role == ROLE_SHIPPED ? "" : "not ");
			diag_note(l->diags, (struct mark){0}, "the shipped arm is named by 'arms: {shipped: …}'");
			g->k->bad_arms = true;
			return;
		}
		use.role = said;
	}
	if (!strcmp(use.name, "null")) {
		diag_add(l->diags, DIAG_ERROR, use.mark, "'null' is the name of the null arm");
		g->k->bad_arms = true;
		return;
	}
	for (int i = 0; i < g->n; i++) {
		bool other_name = strcmp(g->use[i].name, use.name) != 0;
		if (other_name)
			continue;
		g->k->bad_arms = true;
		if (g->use[i].role == ROLE_SHIPPED) {
			diag_add(l->diags, DIAG_ERROR, use.mark, "'%s' is the shipped arm, which is always there",
				 use.name);
			diag_note(l->diags, (struct mark){0},
				  "leave it out, or give this one a name of its own: {arm: %s, name: …}", use.arm);
		} else {
			diag_add(l->diags, DIAG_ERROR, use.mark, "arm '%s' stands twice", use.name);
			diag_note(l->diags, g->use[i].mark, "first here");
		}
		return;
	}
	if (g->n == MAX_ARMS) {
		diag_add(l->diags, DIAG_ERROR, use.mark, "more than %d arms in case '%s'", MAX_ARMS, g->k->c->id);
		g->k->bad_arms = true;
		return;
	}
	g->use = arena_grow(l->arena, g->use, (size_t)g->n, &g->cap, sizeof *g->use);
	g->use[g->n++] = use;
}

static void unknown_arm(struct gather *g, const struct yaml_node *v, bool sets_too)
{
	struct loader *l = g->l;
	const char **known;
	int n = known_arms(l, g->k, &known);
	const char *arm = arm_text(l, v);
	struct mark at = arm_mark(v);
	g->k->bad_arms = true;
	if (!sets_too || strchr(arm, '=')) {
		char *head = arena_strndup(l->arena, arm, strcspn(arm, "="));
		diag_add(l->diags, DIAG_ERROR, at, "unknown arm '%s'", arm);
		const char *near = diag_nearest(head, known, n);
		if (near)
			diag_note(l->diags, (struct mark){0}, "did you mean '%s%s'?", near, arm + strlen(head));
		else
			for (int i = 0; i < g->k->c->n_kernels; i++) {
				struct err why;
				int64_t arg;
				registry_arm(g->k->kernel[i], arm, &arg, &why);
				diag_note(l->diags, (struct mark){0}, "%s", why.text);
			}
		return;
	}
	const char **both = arena_array(l->arena, (size_t)(n + l->split_sets.n), sizeof *both);
	for (int i = 0; i < l->split_sets.n; i++)
		both[i] = l->split_sets.at[i].name;
	memcpy(both + l->split_sets.n, known, (size_t)n * sizeof *known);
	grammar_unknown(l->diags, at, "arm or split set", arm, both, n + l->split_sets.n);
}

static void add_items(struct gather *g, const struct yaml_node *v, int role, bool sets);

static void add_one(struct gather *g, const struct yaml_node *v, int role, bool sets)
{
	if (v->bad) {
		g->k->bad_arms = true;
		return;
	}
	struct block *set = sets && v->kind == YAML_TREE_SCALAR ? block_find(&g->l->split_sets, v->text) : NULL;
	if (set) {
		add_items(g, set->value, role, false);
		return;
	}
	bool unknown;
	if (arm_check(g->l, g->k, arm_text(g->l, v), arm_mark(v), &unknown))
		add_arm(g, v, role);
	else if (unknown)
		unknown_arm(g, v, sets && v->kind == YAML_TREE_SCALAR);
	else
		g->k->bad_arms = true;
}

static void add_items(struct gather *g, const struct yaml_node *v, int role, bool sets)
{
	if (v->kind == YAML_TREE_SEQ)
		for (int i = 0; i < v->n; i++)
			add_one(g, v->item[i], role, sets);
	else
		add_one(g, v, role, sets);
}

void arms_make(struct loader *l, struct case_load *k, const struct yaml_node *v)
{
	static const struct yaml_node plain = {.kind = YAML_TREE_SCALAR, .text = "shipped"};
	struct gather g = {.l = l, .k = k};
	bool roles = v && v->kind == YAML_TREE_MAP;
	const struct yaml_node *shipped = roles ? yaml_get(v, "shipped", NULL) : NULL, *part;
	add_one(&g, shipped ? shipped : &plain, ROLE_SHIPPED, false);
	if (roles) {
		part = yaml_get(v, "sets", NULL);
		for (int i = 0; part && i < (part->kind == YAML_TREE_SEQ ? part->n : 1); i++) {
			const struct yaml_node *name = part->kind == YAML_TREE_SEQ ? part->item[i] : part;
			struct block *set = name->bad ? NULL : block_want(l, &l->split_sets, name);
			if (set)
				add_items(&g, set->value, ROLE_CANDIDATE, false);
			else
				k->bad_arms = true;
		}
		if ((part = yaml_get(v, "arms", NULL)))
			add_items(&g, part, ROLE_CANDIDATE, true);
		if ((part = yaml_get(v, "headroom", NULL)))
			add_items(&g, part, ROLE_HEADROOM, true);
	} else if (v) {
		add_items(&g, v, ROLE_CANDIDATE, true);
	}
	k->c->arm = g.use;
	k->c->n_arms = g.n;
	k->c->shipped = g.n && g.use[0].role == ROLE_SHIPPED ? g.use[0].name : "shipped";
}

int arm_words(const struct case_load *k, struct arena *a, const char *const **out)
{
	const char **known = arena_array(a, (size_t)k->c->n_arms + 1, sizeof *known);
	for (int i = 0; i < k->c->n_arms; i++)
		known[i] = k->c->arm[i].name;
	*out = known;
	return k->c->n_arms;
}
