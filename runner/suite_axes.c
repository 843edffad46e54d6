/* Axes of a case: lists, ranges, powers of two, zips. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "suite_load.h"
#include "yaml_scalar.h"

enum { AXIS_VALUES_MAX = 100000 };

struct gather {
	struct loader *l;
	struct case_load *k;
	struct axis *axis;
	int n, groups;
	size_t cap;
};

static bool too_many(struct loader *l, struct mark at, double n)
{
	return diag_add(l->diags, DIAG_ERROR, at, "%.0f values; an axis has at most %d", n, AXIS_VALUES_MAX);
}

/* A value of a list and where it stands. */
struct placed {
	struct number v;
	int at;
};

static int by_value(const void *pa, const void *pb)
{
	const struct placed *a = pa, *b = pb;
	if (a->v.d != b->v.d)
		return a->v.d < b->v.d ? -1 : 1;
	if (a->v.i != b->v.i)
		return a->v.i < b->v.i ? -1 : 1;
	return a->at - b->at;
}

static bool list_values(struct loader *l, const struct yaml_node *v, struct axis *x)
{
	int n = v->kind == YAML_TREE_SEQ ? v->n : 1;
	struct number *value = arena_array(l->arena, (size_t)n, sizeof *value);
	struct placed *sorted = arena_array(l->arena, (size_t)n, sizeof *sorted);
	bool good = true;
	if (n > AXIS_VALUES_MAX)
		return too_many(l, v->mark, n);
	for (int i = 0; i < n; i++) {
		number_read(v->kind == YAML_TREE_SEQ ? v->item[i] : v, &value[i]);
		sorted[i] = (struct placed){value[i], i};
	}
	qsort(sorted, (size_t)n, sizeof *sorted, by_value);
	for (int i = 1; i < n; i++) {
		const struct placed *a = &sorted[i - 1], *b = &sorted[i];
		if (a->v.d != b->v.d || a->v.i != b->v.i)
			continue;
		good = diag_add(l->diags, DIAG_ERROR, v->item[b->at]->mark, "the value %s stands twice on the axis",
				v->item[b->at]->text);
		diag_note(l->diags, v->item[a->at]->mark, "first here");
	}
	x->value = value;
	x->n = n;
	return good;
}

/* The power of ten that makes both whole, as decimals of a suite are; 0 where none does. */
static double decimal_scale(double a, double b)
{
	double p = 1;
	for (int digits = 0; digits <= 12; digits++) {
		if (fabs(a * p) < 1e15 && fabs(b * p) < 1e15 && fabs(a * p - round(a * p)) < 1e-6 &&
		    fabs(b * p - round(b * p)) < 1e-6)
			return p;
		p *= 10;
	}
	return 0;
}

/* Values from + i * step, computed by index so that no error adds up. */
static bool range_values(struct loader *l, const struct yaml_node *from, const struct yaml_node *to,
			 const struct yaml_node *step, struct axis *x)
{
	struct number a, b, s = {.is_int = true, .i = 1, .d = 1};
	number_read(from, &a);
	number_read(to, &b);
	if (step)
		number_read(step, &s);
	struct mark at = step ? step->mark : to->mark;
	if (s.d == 0)
		return diag_add(l->diags, DIAG_ERROR, at, "step 0 never gets anywhere");
	if ((b.d - a.d) * s.d < 0) {
		diag_add(l->diags, DIAG_ERROR, at, "from %s to %s by %s is empty", from->text, to->text,
			 step ? step->text : "1");
		diag_note(l->diags, (struct mark){0},
			  step ? "the step has the wrong sign" : "a range goes up; a step of -1 goes down");
		return false;
	}
	bool whole = a.is_int && b.is_int && s.is_int;
	double steps = floor((b.d - a.d) / s.d + 1e-9) + 1;
	if (steps > AXIS_VALUES_MAX)
		return too_many(l, at, steps);
	int n = whole ? (int)((b.i - a.i) / s.i) + 1 : (int)steps;
	struct number *value = arena_array(l->arena, (size_t)n, sizeof *value);
	double p = decimal_scale(a.d, s.d);
	for (int i = 0; i < n; i++) {
		/* 0.7 + 2 * 0.05 is 0.8 to who wrote it, and 0.9 ends it. */
		double d = p > 0 ? (round(a.d * p) + i * round(s.d * p)) / p : a.d + i * s.d;
		if (fabs(d - b.d) < fabs(s.d) * 1e-9)
			d = b.d;
		value[i] = whole ? (struct number){true, a.i + i * s.i, (double)(a.i + i * s.i)}
				 : (struct number){false, 0, d};
	}
	x->value = value;
	x->n = n;
	return true;
}

static bool pair(struct loader *l, const struct yaml_node *v)
{
	if (v->kind == YAML_TREE_SEQ && v->n == 2)
		return true;
	return diag_add(l->diags, DIAG_ERROR, v->mark, "two values are wanted here: [first, last]");
}

static bool pow2_values(struct loader *l, const struct yaml_node *v, struct axis *x)
{
	int64_t lo, hi;
	if (!pair(l, v))
		return false;
	for (int i = 0; i < 2; i++) {
		int64_t e;
		scalar_int(v->item[i]->text, &e, NULL);
		if (e < 0 || e > 62) {
			diag_add(l->diags, DIAG_ERROR, v->item[i]->mark, "%s is out of range 0..62", v->item[i]->text);
			diag_note(l->diags, (struct mark){0},
				  "exponents stand here: {pow2: [10, 14]} is 1024 to 16384");
			return false;
		}
		*(i ? &hi : &lo) = e;
	}
	if (hi < lo)
		return diag_add(l->diags, DIAG_ERROR, v->item[1]->mark, "from 2^%" PRId64 " to 2^%" PRId64 " is empty",
				lo, hi);
	x->n = (int)(hi - lo) + 1;
	struct number *value = arena_array(l->arena, (size_t)x->n, sizeof *value);
	for (int i = 0; i < x->n; i++) {
		int64_t p = (int64_t)1 << (lo + i);
		value[i] = (struct number){true, p, (double)p};
	}
	x->value = value;
	return true;
}

/* The forms of one axis. */
static bool axis_values(struct loader *l, const struct yaml_node *v, struct axis *x)
{
	if (v->kind != YAML_TREE_MAP)
		return list_values(l, v, x);
	const struct yaml_node *range = yaml_get(v, "range", NULL), *from = yaml_get(v, "from", NULL),
			       *to = yaml_get(v, "to", NULL), *step = yaml_get(v, "step", NULL),
			       *pow2 = yaml_get(v, "pow2", NULL);
	int forms = (range != NULL) + (from || to) + (pow2 != NULL);
	if (forms != 1 || (pow2 && step)) {
		diag_add(l->diags, DIAG_ERROR, v->mark,
			 forms ? "forms of an axis are mixed" : "no values on this axis");
		diag_note(l->diags, (struct mark){0},
			  "one of: [1, 2], {range: [1, 7], step: 2}, {from: 1, to: 7, step: 2}, {pow2: [10, 14]}");
		return false;
	}
	if (pow2)
		return pow2_values(l, pow2, x);
	if (range)
		return pair(l, range) && range_values(l, range->item[0], range->item[1], step, x);
	if (!from || !to)
		return diag_add(l->diags, DIAG_ERROR, v->mark, "this range lacks its '%s'", from ? "to" : "from");
	return range_values(l, from, to, step, x);
}

static struct axis *axis_find(struct gather *g, const char *name)
{
	for (int i = 0; i < g->n; i++)
		if (!strcmp(g->axis[i].name, name))
			return &g->axis[i];
	return NULL;
}

static void add_axis(struct gather *g, const struct yaml_node *key, const struct yaml_node *v, int group)
{
	struct axis x = {.name = key->text, .zip_group = group, .mark = key->mark};
	struct axis *old = axis_find(g, key->text);
	if (v->bad || key->bad || !axis_values(g->l, v, &x)) {
		g->k->bad_params = true;
		return;
	}
	if (old) {
		diag_add(g->l->diags, DIAG_ERROR, key->mark, "axis '%s' stands twice", key->text);
		diag_note(g->l->diags, old->mark, "first here");
		return;
	}
	g->axis = arena_grow(g->l->arena, g->axis, (size_t)g->n, &g->cap, sizeof *g->axis);
	g->axis[g->n++] = x;
}

static void add_zip(struct gather *g, const struct yaml_node *v)
{
	if (v->kind == YAML_TREE_SEQ) {
		for (int i = 0; i < v->n; i++)
			add_zip(g, v->item[i]);
		return;
	}
	int first = g->n;
	for (int i = 0; v->kind == YAML_TREE_MAP && i < v->n; i++)
		add_axis(g, v->key[i], v->item[i], g->groups);
	for (int i = first + 1; i < g->n; i++)
		if (g->axis[i].n != g->axis[first].n) {
			diag_add(g->l->diags, DIAG_ERROR, g->axis[i].mark,
				 "axes of a zip have one length: %d values here, %d of '%s'", g->axis[i].n,
				 g->axis[first].n, g->axis[first].name);
			diag_note(g->l->diags, g->axis[first].mark, "the first axis of the zip");
			g->k->bad_params = true;
		}
	g->groups++;
}

static bool knows(const struct case_load *k, const char *name)
{
	for (int i = 0; i < k->c->n_kernels; i++)
		if (registry_param(k->kernel[i], name) >= 0)
			return true;
	return false;
}

/* --set t_q=1,8: other values for an axis, or one more axis where the kernels know the parameter. */
static void override_axes(struct gather *g, const struct yaml_node *axes)
{
	for (int i = 0; i < axes->n; i++) {
		struct axis x = {.name = axes->key[i]->text, .zip_group = -1, .mark = axes->key[i]->mark};
		struct axis *old = axis_find(g, x.name);
		if ((!old && !knows(g->k, x.name)) || axes->item[i]->bad || !axis_values(g->l, axes->item[i], &x))
			continue;
		if (!old) {
			g->axis = arena_grow(g->l->arena, g->axis, (size_t)g->n, &g->cap, sizeof *g->axis);
			g->axis[g->n++] = x;
			continue;
		}
		if (old->zip_group >= 0 && old->n != x.n) {
			diag_add(g->l->diags, DIAG_ERROR, x.mark,
				 "axis '%s' is zipped with others of %d values, %d are given", x.name, old->n, x.n);
			continue;
		}
		x.zip_group = old->zip_group;
		*old = x;
	}
}

void axes_make(struct loader *l, struct case_load *k, const struct yaml_node *v)
{
	struct gather g = {.l = l, .k = k};
	for (int i = 0; v && v->kind == YAML_TREE_MAP && i < v->n; i++) {
		if (!strcmp(v->key[i]->text, "zip")) {
			if (!v->item[i]->bad)
				add_zip(&g, v->item[i]);
			else
				k->bad_params = true;
		} else {
			add_axis(&g, v->key[i], v->item[i], -1);
		}
	}
	for (int i = 0; i < l->n_overrides; i++) {
		const struct yaml_node *axes = yaml_get(l->override[i], "axes", NULL);
		if (axes && axes->kind == YAML_TREE_MAP)
			override_axes(&g, axes);
	}
	k->c->axis = g.axis;
	k->c->n_axes = g.n;
}
