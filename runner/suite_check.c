/* What checks and timing name, against the arms and kernels of the case. */
#include <fnmatch.h>
#include <string.h>

#include "suite_load.h"

static const char *const check_names[N_CHECKS] = {"identity",  "repeat",     "invariant",
						  "reference", "regression", "ratio"};

static bool on(const struct case_load *k, enum check_kind c)
{
	return k->c->checks.on >> c & 1;
}

/* Whether `name` means the arm: its name, its family, or a pattern. */
static bool means(const char *name, const struct arm_use *u)
{
	size_t n = strlen(name);
	return !strcmp(name, u->name) || (!strncmp(u->arm, name, n) && u->arm[n] == '=') ||
	       (strpbrk(name, "*?[") && !fnmatch(name, u->name, 0));
}

/* For messages of what several cases may share. */
static const char *quoted_id(struct loader *l, const struct case_load *k)
{
	return arena_printf(l->arena, "'%s'", k->c->id);
}

static void unknown_arm(struct loader *l, const struct case_load *k, struct mark at, const char *name)
{
	const char *const *known;
	int n = arm_words(k, l->arena, &known);
	diag_add_of(l->diags, DIAG_ERROR, at, " of case", quoted_id(l, k), "'%s' is no arm", name);
	const char *near = diag_nearest(name, known, n);
	if (near) {
		diag_note(l->diags, (struct mark){0}, "did you mean '%s'?", near);
		return;
	}
	const char *text = "";
	for (int i = 0; i < n; i++)
		text = arena_printf(l->arena, "%s%s%s", text, i ? ", " : "", known[i]);
	diag_note(l->diags, (struct mark){0}, "its arms: %s", text);
}

/* One arm, by name; `shipped` is the yardstick whatever its name. */
static void one_arm(struct loader *l, const struct case_load *k, const char **name, const char *path)
{
	if (!*name || k->bad_arms)
		return;
	for (int i = 0; i < k->c->n_arms; i++)
		if (!strcmp(k->c->arm[i].name, *name))
			return;
	if (!strcmp(*name, "shipped"))
		*name = k->c->shipped;
	else
		unknown_arm(l, k, origin_mark(l, path, k->c->mark), *name);
}

/* Whether some kernel of the case has an arm of that family, used in the case or not. */
static bool kernel_has(const struct case_load *k, const char *name)
{
	size_t n = strcspn(name, "=");
	for (int i = 0; i < k->c->n_kernels; i++)
		for (int j = 0; j < k->kernel[i]->n_arms; j++)
			if (strlen(k->kernel[i]->arms[j].name) == n && !strncmp(k->kernel[i]->arms[j].name, name, n))
				return true;
	return false;
}

/* A list of arms becomes the names in the case that it means. A family that no arm of the case is of is passed over where a
 * kernel has it: a suite may name it in `checks` before it is timed. */
static void arm_list(struct loader *l, const struct case_load *k, const char *list[MAX_LIST], const char *path)
{
	const char *out[MAX_LIST] = {0};
	int n = 0;
	if (!list[0] || k->bad_arms)
		return;
	const struct origin *o = origin_find(l, path);
	struct mark whole = origin_mark(l, path, k->c->mark);
	bool failed = false;
	for (int i = 0; i < MAX_LIST && list[i]; i++) {
		bool some = false;
		bool listed = o && o->node && o->node->kind == YAML_TREE_SEQ && i < o->node->n;
		for (int j = 0; j < k->c->n_arms; j++) {
			const struct arm_use *u = &k->c->arm[j];
			bool meant = means(list[i], u) || (!strcmp(list[i], "shipped") && j == 0);
			some |= meant;
			for (int m = 0; m < n && meant; m++)
				meant = strcmp(out[m], u->name) != 0;
			if (meant && n < MAX_LIST - 1)
				out[n++] = u->name;
		}
		if (!some && !kernel_has(k, list[i])) {
			unknown_arm(l, k, listed ? o->node->item[i]->mark : whole, list[i]);
			failed = true;
		}
	}
	if (!n && !failed)
		diag_add_of(l->diags, DIAG_ERROR, whole, " of case", quoted_id(l, k), "no arm is meant here");
	memcpy(list, out, sizeof out);
}

static bool has_dim(const struct assay_kernel *k, const char *name)
{
	size_t n = strlen(name);
	for (int i = 0; i < k->n_tensors; i++)
		for (const char *s = k->tensors[i].dims; s && *s; s += strspn(s, " ")) {
			size_t w = strcspn(s, " ");
			if (w == n && !strncmp(s, name, n))
				return true;
			s += w;
		}
	return false;
}

static void rows_check(struct loader *l, struct case_load *k, const char *rows, struct mark at)
{
	int most = 0, n = 0;
	bool some = false;
	for (int i = 0; i < k->c->n_kernels; i++)
		most += k->kernel[i]->n_params;
	const char **known = arena_array(l->arena, (size_t)most + 1, sizeof *known);
	for (int i = 0; i < k->c->n_kernels; i++)
		for (int p = 0; p < k->kernel[i]->n_params; p++) {
			const char *name = k->kernel[i]->params[p].name;
			if (!has_dim(k->kernel[i], name))
				continue;
			some |= !strcmp(name, rows);
			int j = 0;
			while (j < n && strcmp(known[j], name))
				j++;
			if (j == n)
				known[n++] = name;
		}
	if (!some)
		grammar_unknown(l->diags, at, "row parameter", rows, known, n);
}

static void needs(struct loader *l, const struct case_load *k, enum check_kind c, const char *key, const char *value)
{
	if (value)
		return;
	struct mark at = origin_mark(l, arena_printf(l->arena, "checks.%s", check_names[c]), k->c->mark);
	diag_add(l->diags, DIAG_ERROR, at, "the check '%s' lacks the key '%s'", check_names[c], key);
}

/* Every row of a table against the kernels of the case it speaks of, whether or not a device chooses the table. */
static void table_check(struct loader *l, struct case_load *k, const struct table_choice *choice)
{
	const struct table *t = choice->table;
	for (int i = 0; i < t->n_keys; i++) {
		bool known = false;
		for (int j = 0; j < k->c->n_kernels; j++)
			known |= registry_param(k->kernel[j], t->key[i]) >= 0;
		if (!known)
			diag_add_of(l->diags, DIAG_ERROR, choice->mark, " of case", quoted_id(l, k),
				    "the table is keyed on '%s', unknown to the kernels", t->key[i]);
	}
	for (int i = 0; i < t->n_rows; i++) {
		const struct table_row *row = &t->row[i];
		struct err why;
		int64_t arg;
		bool some = false, asked = false;
		for (int j = 0; j < k->c->n_kernels; j++) {
			if (row->kernel && fnmatch(row->kernel, k->kernel[j]->name, 0))
				continue;
			asked = true;
			some |= !strcmp(row->arm, "shipped") || !strcmp(row->arm, k->c->shipped) ||
				registry_arm(k->kernel[j], row->arm, &arg, &why);
		}
		if (asked && !some)
			diag_add(l->diags, DIAG_ERROR, row->mark, "%s", why.text);
		if (!asked && !strpbrk(row->kernel, "*?[") && !registry_find(l->opt->registry, row->kernel))
			diag_add(l->diags, DIAG_ERROR, row->mark, "unknown kernel '%s'", row->kernel);
	}
}

static void regression_check(struct loader *l, struct case_load *k)
{
	struct check_regression *c = &k->c->checks.regression;
	needs(l, k, CHECK_REGRESSION, "select", c->select);
	k->c->select_mark = origin_mark(l, "checks.regression.select", k->c->mark);
	one_arm(l, k, &c->against, "checks.regression.against");
	if (!c->select || k->bad_arms)
		return;
	const char *const *arm;
	int n = arm_words(k, l->arena, &arm), m = l->tables.n;
	const char **known = arena_array(l->arena, (size_t)(n + m), sizeof *known);
	for (int i = 0; i < m; i++)
		known[i] = l->tables.at[i].name;
	memcpy(known + m, arm, (size_t)n * sizeof *known);
	for (int i = 0; i < l->full->s.n_table_sets; i++) {
		const struct table_set *set = &l->full->s.table_set[i];
		for (int j = 0; j < set->n && !strcmp(set->name, c->select); j++)
			table_check(l, k, &set->choice[j]);
	}
	for (int i = 0; i < n + m; i++)
		if (!strcmp(known[i], c->select))
			return;
	if (!strcmp(c->select, "shipped"))
		c->select = k->c->shipped;
	else
		grammar_unknown(l->diags, origin_mark(l, "checks.regression.select", k->c->mark), "table or arm",
				c->select, known, n + m);
}

static void ratio_check(struct loader *l, struct case_load *k)
{
	struct check_ratio *c = &k->c->checks.ratio;
	needs(l, k, CHECK_RATIO, "of", c->of);
	needs(l, k, CHECK_RATIO, "over", c->over);
	one_arm(l, k, &c->of, "checks.ratio.of");
	one_arm(l, k, &c->over, "checks.ratio.over");
	if (c->of && c->over && !strcmp(c->of, c->over))
		diag_add(l->diags, DIAG_ERROR, origin_mark(l, "checks.ratio.over", k->c->mark),
			 "the ratio of '%s' over itself is always 1", c->of);
	bool weights = false;
	for (int i = 0; i < k->c->n_geometries; i++)
		weights |= k->c->geometry[i]->has_weight;
	if (c->weighted && !weights && k->c->n_geometries)
		diag_add_of(l->diags, DIAG_ERROR, origin_mark(l, "checks.ratio.aggregates", k->c->mark), " in case",
			    quoted_id(l, k), "a weighted total, but no geometry has a 'weight'");
	if (c->agree_over_data && k->c->n_data == 1)
		diag_add_of(l->diags, DIAG_ERROR, origin_mark(l, "checks.ratio.agree_over.data", k->c->mark),
			    " in case", quoted_id(l, k), "nothing to agree: one distribution");
}

static void order_check(struct loader *l, struct case_load *k)
{
	struct timing *t = &k->c->timing;
	const struct origin *o = origin_find(l, "timing.order");
	if (t->order != ORDER_LIST || k->bad_arms)
		return;
	struct mark whole = origin_mark(l, "timing.order", k->c->mark);
	bool failed = false;
	for (int i = 0; i < MAX_LIST && t->order_list[i]; i++) {
		const char **name = &t->order_list[i];
		struct mark at = o && o->node && o->node->kind == YAML_TREE_SEQ ? o->node->item[i]->mark : whole;
		bool known = !strcmp(*name, "null");
		for (int j = 0; j < k->c->n_arms; j++)
			known |= !strcmp(*name, k->c->arm[j].name);
		if (!known && !strcmp(*name, "shipped")) {
			*name = k->c->shipped;
			known = true;
		}
		if (!known)
			unknown_arm(l, k, at, *name);
		failed |= !known;
		for (int j = 0; j < i && known; j++)
			if (!strcmp(t->order_list[j], *name))
				failed = !diag_add(l->diags, DIAG_ERROR, at, "arm '%s' stands twice in the order",
						   *name);
	}
	for (int j = 0; j < k->c->n_arms && !failed; j++) {
		bool listed = false;
		for (int i = 0; i < MAX_LIST && t->order_list[i]; i++)
			listed |= !strcmp(t->order_list[i], k->c->arm[j].name);
		if (!listed)
			diag_add_of(l->diags, DIAG_ERROR, whole, " of case", quoted_id(l, k),
				    "the order lacks the arm '%s'", k->c->arm[j].name);
	}
}

static void timing_check(struct loader *l, struct case_load *k)
{
	const struct timing *t = &k->c->timing;
	if (t->min_rounds > t->max_rounds)
		diag_add(l->diags, DIAG_ERROR,
			 origin_mark(l, "timing.min_rounds", origin_mark(l, "timing.max_rounds", k->c->mark)),
			 "min_rounds %d is above max_rounds %d", t->min_rounds, t->max_rounds);
	if (t->estimator != EST_PAIRED && !t->rounds) {
		diag_add(l->diags, DIAG_ERROR, origin_mark(l, "timing.estimator", k->c->mark),
			 "the estimator '%s' needs a fixed number of rounds",
			 t->estimator == EST_MEAN ? "mean" : "median");
		diag_note(l->diags, (struct mark){0}, "add 'rounds: 5'");
	}
	order_check(l, k);
}

/* Tensors that a distribution names are tensors of a kernel of the case. */
static void tensor_check(struct loader *l, struct case_load *k, const struct distribution *d,
			 const struct fill_rule *rule)
{
	const char *text = rule->field ? arena_printf(l->arena, "%s.%s", rule->tensor, rule->field) : rule->tensor;
	int n = 0, most = 0;
	for (int i = 0; i < k->c->n_kernels; i++)
		for (int t = 0; t < k->kernel[i]->n_tensors; t++)
			most += 1 + k->kernel[i]->tensors[t].n_fields;
	const char **known = arena_array(l->arena, (size_t)most + 1, sizeof *known);
	for (int i = 0; i < k->c->n_kernels; i++)
		for (int t = 0; t < k->kernel[i]->n_tensors; t++) {
			const struct assay_tensor *x = &k->kernel[i]->tensors[t];
			if (x->role != ASSAY_IN && x->role != ASSAY_INOUT)
				continue;
			known[n++] = x->name;
			for (int f = 0; f < x->n_fields; f++)
				known[n++] = arena_printf(l->arena, "%s.%s", x->name, x->fields[f].name);
		}
	for (int i = 0; i < n; i++)
		if (!strcmp(known[i], text))
			return;
	const struct block *b = block_find(&l->distributions, d->name);
	struct mark at = k->c->mark;
	yaml_get(yaml_get(b->value, "tensors", NULL), text, &at);
	grammar_unknown(l->diags, at, "input tensor", text, known, n);
}

/* Whether identity without a list of arms has something to compare in a kernel. */
static bool some_bits(const struct case_load *k, const struct assay_kernel *kernel)
{
	const char *against = k->c->checks.identity.against ? k->c->checks.identity.against : k->c->shipped;
	const struct assay_arm *of = NULL;
	int64_t of_arg = 0, arg;
	int yardstick = -1;
	struct err err; /* an arm that is not there has been told of */
	for (int i = 0; i < k->c->n_arms; i++)
		if (!strcmp(k->c->arm[i].name, against)) {
			yardstick = i;
			of = registry_arm(kernel, k->c->arm[i].arm, &of_arg, &err);
		}
	for (int i = 0; i < k->c->n_arms; i++) {
		const struct assay_arm *a = i == yardstick ? NULL : registry_arm(kernel, k->c->arm[i].arm, &arg, &err);
		if (a && registry_has_bits(a, arg, of, of_arg))
			return true;
	}
	return false;
}

static void identity_check(struct loader *l, const struct case_load *k)
{
	struct check_identity *c = &k->c->checks.identity;
	const struct mark at = origin_mark(l, "checks.identity", k->c->mark);
	if (k->c->n_arms == 1 && !k->bad_arms) {
		diag_add_of(l->diags, DIAG_WARNING, at, " in case", quoted_id(l, k),
			    "nothing to compare: there is no arm beside '%s'", k->c->shipped);
		diag_note(l->diags, (struct mark){0}, "name some: arms: {arms: [{split: 2}]}");
	}
	one_arm(l, k, &c->against, "checks.identity.against");
	arm_list(l, k, c->arms, "checks.identity.arms");
	for (int i = 0; i < k->c->n_kernels && !c->arms[0] && k->c->n_arms > 1 && !k->bad_arms; i++) {
		if (some_bits(k, k->kernel[i]))
			continue;
		diag_add_of(l->diags, DIAG_WARNING, at, " of case", quoted_id(l, k),
			    "nothing to compare: no arm claims the bits of '%s' in %s",
			    c->against ? c->against : k->c->shipped, k->kernel[i]->name);
		diag_note(l->diags, (struct mark){0}, "name those that must have them: identity: {arms: [NAME]}");
	}
}

void case_check(struct loader *l, struct case_load *k)
{
	struct checks *c = &k->c->checks;
	const struct yaml_node *checks = yaml_get(k->node, "checks", NULL);
	if (!c->on && !(checks && checks->bad) && !k->unknown_key) {
		diag_add(l->diags, DIAG_ERROR, origin_mark(l, "checks", k->c->mark), "case '%s' checks nothing",
			 k->c->id);
		diag_note(l->diags, (struct mark){0},
			  "add 'checks: {identity: true}', or repeat, invariant, reference, regression, ratio");
	}
	if (on(k, CHECK_IDENTITY))
		identity_check(l, k);
	if (on(k, CHECK_REPEAT))
		arm_list(l, k, c->repeat.arms, "checks.repeat.arms");
	if (on(k, CHECK_INVARIANT)) {
		needs(l, k, CHECK_INVARIANT, "rows", c->invariant.rows);
		if (c->invariant.rows)
			rows_check(l, k, c->invariant.rows, origin_mark(l, "checks.invariant.rows", k->c->mark));
		arm_list(l, k, c->invariant.arms, "checks.invariant.arms");
	}
	if (on(k, CHECK_REFERENCE)) {
		bool some = false;
		arm_list(l, k, c->reference.arms, "checks.reference.arms");
		for (int i = 0; i < k->c->n_kernels; i++)
			some |= k->kernel[i]->reference != NULL;
		if (!some)
			diag_add_of(l->diags, DIAG_ERROR, origin_mark(l, "checks.reference", k->c->mark), " in case",
				    quoted_id(l, k), "no kernel has a reference");
	}
	if (on(k, CHECK_REGRESSION))
		regression_check(l, k);
	if (on(k, CHECK_RATIO))
		ratio_check(l, k);
	timing_check(l, k);
	for (int i = 0; i < k->c->n_data; i++)
		for (int r = 1; r < k->c->data[i]->n_rules; r++)
			tensor_check(l, k, k->c->data[i], &k->c->data[i]->rules[r]);
}
