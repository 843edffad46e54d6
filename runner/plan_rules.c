/* plan_rules: margins, waivers, rigs and serving tables: which of them speaks for a cell. The most specific one does; two that fit
 * equally are an error, but only where some cell meets both. */
#include <string.h>

#include "plan_space.h"
#include "table_file.h"

/* The built-in margin, where the suite states none for a cell. */
static const double builtin_margin = 0.05;

static void list_rule(struct rule_list *l, struct mark *marks, const struct selector *s, struct mark at)
{
	l->match[l->n] = s;
	marks[l->n++] = at;
}

static const struct table_set *table_set_of(const struct suite *s, const struct suite_case *c)
{
	const char *name = c->checks.regression.select;
	if (!(c->checks.on & 1u << CHECK_REGRESSION) || !name)
		return NULL;
	for (int i = 0; i < s->n_table_sets; i++)
		if (strcmp(s->table_set[i].name, name) == 0)
			return &s->table_set[i];
	return NULL;
}

void rules_collect(struct rules *r, const struct suite *s, const struct suite_case *c, struct arena *a)
{
	static const char *const what[N_RULE_KINDS] = {"margins", "waivers", "rigs", "tables"};
	memset(r, 0, sizeof *r);
	r->set = table_set_of(s, c);
	int n[N_RULE_KINDS] = {s->n_margins, s->n_waivers, s->n_rigs, r->set ? r->set->n : 0};
	for (int k = 0; k < N_RULE_KINDS; k++) {
		struct rule_list *l = &r->list[k];
		struct mark *marks = arena_array(a, (size_t)n[k], sizeof *marks);
		l->what = what[k];
		l->match = arena_array(a, (size_t)n[k], sizeof *l->match);
		l->mark = marks;
		for (int i = 0; i < n[k]; i++) {
			if (k == MARGIN)
				list_rule(l, marks, &s->margin[i].match, s->margin[i].mark);
			else if (k == WAIVER)
				list_rule(l, marks, &s->waiver[i].match, s->waiver[i].mark);
			else if (k == RIG)
				list_rule(l, marks, &s->rig[i].match, s->rig[i].mark);
			else
				list_rule(l, marks, &r->set->choice[i].match, r->set->choice[i].mark);
		}
	}
}

struct matcher *rules_compile(const struct rule_list *l, struct group *g, struct arena *a)
{
	struct matcher *m = arena_array(a, (size_t)l->n, sizeof *m);
	for (int i = 0; i < l->n; i++)
		matcher_compile(&m[i], l->match[i], g, a);
	return m;
}

/* ---- the serving table --------------------------------------------------------------------------------------------- */

/* The cell's values by name, axes first: what a table may be keyed on. */
static int values(const struct group *g, struct named_number out[MAX_AXES + ASSAY_MAX_PARAMS])
{
	int n = 0;
	for (int i = 0; i < g->space->n_axes; i++) {
		const struct axis *x = &g->space->c->axis[i];
		out[n++] = (struct named_number){.name = x->name, .value = x->value[g->at[i]], .mark = x->mark};
	}
	for (int i = 0; i < g->desc->n_params; i++)
		if (g->param_axis[i] < 0)
			out[n++] = (struct named_number){.name = g->desc->params[i].name,
							 .value = g->constant[i],
							 .mark = g->param_mark[i]};
	return n;
}

static const struct cell_arm *find_arm(const struct kernel_arms *arms, const char *name)
{
	for (int i = 0; i < arms->n; i++)
		if (strcmp(arms->arm[i].name, name) == 0)
			return &arms->arm[i];
	return NULL;
}

static bool pick_by_row(const struct group *g, const struct table_row *row, struct pick *out, struct err *err)
{
	const struct kernel_arms *arms = &g->space->arms[g->kernel];
	out->row = row->mark;
	out->selection = SELECT_ARM;
	out->arm = arms->arm[0].name;
	int64_t arg = 0;
	const struct assay_arm *desc = registry_arm(g->desc, row->arm, &arg, err);
	if (!desc && strcmp(row->arm, "shipped") != 0)
		return false;
	/* "shipped" is what ships here, where the kernel has no arm of that very name. */
	if (!desc || (desc == arms->arm[0].desc && arg == arms->arm[0].arg))
		return true;
	if (!(desc->flags & ASSAY_ARM_SELECTABLE) && desc != &g->desc->arms[0])
		return err_set(err, "arm '%s' of %s cannot be served: its descriptor does not say ASSAY_ARM_SELECTABLE",
			       row->arm, g->desc->name);
	out->arm = row->arm;
	for (int i = 1; i < arms->n; i++) {
		const struct cell_arm *a = &arms->arm[i];
		/* The same code under another name (an environment, a graph) is another arm; the table means the plain one. */
		if (a->desc != desc || a->arg != arg || a->n_env || a->graph)
			continue;
		if (a->role == ROLE_HEADROOM)
			return err_set(err,
				       "arm '%s' is headroom in case '%s': timed, never served; name a candidate, or "
				       "give it that role",
				       a->name, g->space->c->id);
		out->arm = a->name;
		return true;
	}
	out->selection = SELECT_NOT_TIMED;
	return true;
}

static bool pick_by_name(const struct group *g, const char *name, struct pick *out, struct mark *at, struct err *err)
{
	if (g->space->c->select_mark.file)
		*at = g->space->c->select_mark;
	const struct kernel_arms *arms = &g->space->arms[g->kernel];
	const struct cell_arm *arm = find_arm(arms, name);
	*out = (struct pick){.selection = SELECT_ARM, .arm = arms->arm[0].name};
	if (arm && arm->role == ROLE_HEADROOM)
		return err_set(err,
			       "arm '%s' is headroom in case '%s': timed, never served; select a candidate, or give it "
			       "that role",
			       arm->name, g->space->c->id);
	if (arm) {
		out->arm = arm->name;
		return true;
	}
	if (strcmp(name, "shipped") == 0)
		return true; /* what ships here, under its own name */
	int64_t arg;
	if (!registry_arm(g->desc, name, &arg, err))
		return err_prefix(err, "select '%s' is neither a table nor an arm", name);
	out->selection = SELECT_NOT_TIMED;
	out->arm = name;
	return true;
}

bool rules_pick(const struct group *g, const struct rules *r, int choice, struct pick *out, struct mark *at,
		struct err *err)
{
	const struct suite_case *c = g->space->c;
	*out = (struct pick){.selection = SELECT_NONE};
	*at = c->mark;
	if (!(c->checks.on & 1u << CHECK_REGRESSION))
		return true;
	if (!r->set)
		return pick_by_name(g, c->checks.regression.select ? c->checks.regression.select : "shipped", out, at,
				    err);
	*at = r->set->mark;
	if (choice < 0)
		return err_set(err, "no table of '%s' is for device '%s'; add one with match: {}", r->set->name,
			       g->plan->target.device ? g->plan->target.device : "unknown");
	*at = r->set->choice[choice].mark;
	struct named_number v[MAX_AXES + ASSAY_MAX_PARAMS];
	const struct table_row *row = table_lookup(r->set->choice[choice].table, g->desc->name, v, values(g, v), err);
	if (!row)
		return false;
	if (row->mark.file)
		*at = row->mark;
	return pick_by_row(g, row, out, err);
}

void rules_check_rows(const struct group *g, const struct table *t, struct diags *d)
{
	for (int i = 0; i < t->n_rows; i++) {
		struct err err;
		int64_t arg;
		const struct table_row *row = &t->row[i];
		if (row->kernel && strcmp(row->kernel, g->desc->name) == 0 && strcmp(row->arm, "shipped") != 0 &&
		    !registry_arm(g->desc, row->arm, &arg, &err))
			diag_add(d, DIAG_ERROR, row->mark, "%s", err.text);
	}
}

const char *rules_waiver_lacks(const struct group *g, const struct waiver *w, struct arena *a)
{
	const struct kernel_arms *arms = &g->space->arms[g->kernel];
	if (strcmp(w->expect, "regression") == 0 && !(g->space->c->checks.on & 1u << CHECK_REGRESSION))
		return "a regression check";
	if (!w->arm || find_arm(arms, w->arm))
		return NULL;
	const char **name = arena_array(a, (size_t)arms->n, sizeof *name);
	for (int i = 0; i < arms->n; i++)
		name[i] = arms->arm[i].name;
	const char *near = diag_nearest(w->arm, name, arms->n);
	return near ? arena_printf(a, "an arm '%s'; did you mean '%s'?", w->arm, near)
		    : arena_printf(a, "an arm '%s'", w->arm);
}

/* ---- one cell ------------------------------------------------------------------------------------------------------ */

bool rules_apply(struct group *g, struct arena *a, struct cell *c, struct err *err)
{
	const struct suite *s = g->plan->suite;
	struct rules r;
	int best[N_RULE_KINDS];
	rules_collect(&r, s, g->space->c, a);
	for (int k = 0; k < N_RULE_KINDS; k++) {
		int tie;
		struct matcher *m = rules_compile(&r.list[k], g, a);
		best[k] = matcher_best(m, r.list[k].n, g, &tie);
		if (tie >= 0)
			return err_set(err, "%s:%d and line %d: two %s fit %s equally", r.list[k].mark[tie].file,
				       r.list[k].mark[tie].line, r.list[k].mark[best[k]].line, r.list[k].what, c->id);
	}
	struct pick got;
	struct mark at;
	if (!rules_pick(g, &r, best[CHOICE], &got, &at, err))
		return at.file ? err_prefix(err, "%s:%d", at.file, at.line) : false;
	c->selection = got.selection;
	c->selected = got.arm;
	c->selected_row = got.row;

	const struct margin *margin = best[MARGIN] >= 0 ? &s->margin[best[MARGIN]] : NULL;
	c->margin_fail = margin ? margin->fail : builtin_margin;
	c->margin_warn = margin && margin->has_warn ? margin->warn : -1;
	c->margin_floor_ns = margin ? margin->floor_ns : 0;
	c->margin_mark = margin ? margin->mark : (struct mark){0};
	/* A suite without rigs gates everywhere; where it names rigs, the others only diagnose. */
	c->gate = best[RIG] >= 0 ? s->rig[best[RIG]].gate : s->n_rigs == 0;
	c->rig_mark = best[RIG] >= 0 ? s->rig[best[RIG]].mark : (struct mark){0};
	if (best[WAIVER] >= 0) {
		const struct waiver *w = &s->waiver[best[WAIVER]];
		c->waiver = w->id;
		c->waiver_expect = w->expect;
		c->waiver_reason = w->reason;
		c->waiver_until = w->until;
		c->waiver_arm = w->arm;
	}
	return true;
}
