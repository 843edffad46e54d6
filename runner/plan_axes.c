/* plan_axes: the product of a case as numbers: digits, groups, points, ids. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_space.h"

const char *plan_number_text(const struct number *n, char buf[PLAN_NUMBER_MAX])
{
	if (n->is_int) {
		snprintf(buf, PLAN_NUMBER_MAX, "%" PRId64, n->i);
		return buf;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(buf, PLAN_NUMBER_MAX, "%.*g", digits, n->d);
		if (strtod(buf, NULL) == n->d)
			break;
	}
	return buf;
}

/* ---- a case -------------------------------------------------------------------------------------------------------- */

static bool resolve_arms(struct plan *p, const struct suite_case *c, const struct assay_kernel *k,
			 struct kernel_arms *out, struct diags *d)
{
	static const struct arm_use plain = {.name = "shipped", .arm = "shipped", .role = ROLE_SHIPPED};
	const struct arm_use *use = c->n_arms ? c->arm : &plain;
	int n = c->n_arms ? c->n_arms : 1;
	for (int i = 0; i < n; i++) {
		struct err why;
		int64_t arg = 0;
		const struct assay_arm *desc = registry_arm(k, use[i].arm, &arg, &why);
		/* A kernel whose first arm has a name of its own still ships it. */
		if (!desc && strcmp(use[i].arm, "shipped") == 0)
			desc = &k->arms[0];
		struct mark at = use[i].mark.file ? use[i].mark : c->mark;
		if (!desc && use[i].role == ROLE_SHIPPED)
			return diag_add(d, DIAG_ERROR, at, "case '%s': the shipped arm: %s", c->id, why.text);
		if (!desc)
			continue; /* another kernel of the case has it */
		if (out->n == MAX_ARMS)
			return diag_add(d, DIAG_ERROR, at,
					"case '%s' has more than %d arms for %s; divide it into cases", c->id, MAX_ARMS,
					k->name);
		out->arm[out->n++] = (struct cell_arm){
			.name = use[i].name ? use[i].name : use[i].arm,
			.role = (enum cell_arm_role)use[i].role,
			.desc = desc,
			.arg = arg,
			.env = use[i].env,
			.n_env = use[i].n_env,
			.graph = use[i].graph,
		};
	}
	if (!out->n || out->arm[0].role != ROLE_SHIPPED)
		return diag_add(d, DIAG_ERROR, c->mark, "case '%s': %s has no shipped arm", c->id, k->name);
	return true;
}

/* "kv 4 x t_q 1000", for the message of the cap. */
static void describe(const struct case_space *s, char *buf, size_t cap)
{
	size_t n = (size_t)snprintf(buf, cap, "%d kernels x %d geometries x %d data", s->n_kernels, s->n_geometries,
				    s->n_data);
	for (int i = 0; i < s->n_axes && n < cap; i++) {
		bool zipped = false;
		for (int j = 0; j < i; j++)
			zipped |= s->digit_of[j] == s->digit_of[i];
		if (!zipped)
			n += (size_t)snprintf(buf + n, cap - n, " x %s %d", s->c->axis[i].name, s->c->axis[i].n);
	}
}

static bool find_digits(struct case_space *s, struct diags *d)
{
	const struct suite_case *c = s->c;
	if (c->n_axes > MAX_AXES)
		return diag_add(d, DIAG_ERROR, c->axis[MAX_AXES].mark, "more than %d axes in case '%s'", MAX_AXES,
				c->id);
	s->n_axes = c->n_axes;
	for (int i = 0; i < c->n_axes; i++) {
		const struct axis *x = &c->axis[i];
		int j = 0;
		while (j < i && (x->zip_group < 0 || c->axis[j].zip_group != x->zip_group))
			j++;
		if (x->n < 1)
			return diag_add(d, DIAG_ERROR, x->mark, "axis '%s' has no value", x->name);
		if (j < i && c->axis[j].n != x->n)
			return diag_add(d, DIAG_ERROR, x->mark,
					"zipped axes must have as many values: %s has %d, %s has %d", c->axis[j].name,
					c->axis[j].n, x->name, x->n);
		s->digit_of[i] = j < i ? s->digit_of[j] : s->n_digits;
		if (j == i)
			s->digit_size[s->n_digits++] = x->n;
	}
	return true;
}

bool space_init(struct plan *p, struct case_space *s, const struct suite_case *c, int index, struct diags *d,
		struct err *err)
{
	s->c = c;
	s->index = index;
	s->n_kernels = c->n_kernels;
	s->n_geometries = c->n_geometries ? c->n_geometries : 1;
	s->n_data = c->n_data ? c->n_data : 1;
	if (c->n_kernels < 1)
		return diag_add(d, DIAG_ERROR, c->mark, "case '%s' has no kernel", c->id);
	if (!find_digits(s, d))
		return false;
	bool over = false;
	s->group_points = 1;
	for (int i = 0; i < s->n_digits; i++)
		over |= __builtin_mul_overflow(s->group_points, (int64_t)s->digit_size[i], &s->group_points);
	s->count = s->group_points;
	over |= __builtin_mul_overflow(s->count, (int64_t)s->n_kernels, &s->count);
	over |= __builtin_mul_overflow(s->count, (int64_t)s->n_geometries, &s->count);
	over |= __builtin_mul_overflow(s->count, (int64_t)s->n_data, &s->count);
	s->first = p->n_points;
	over |= __builtin_add_overflow(p->n_points, s->count, &p->n_points);
	/* Before anything is allocated. */
	if (over || (p->suite->max_cells > 0 && p->n_points > p->suite->max_cells)) {
		char sizes[400];
		describe(s, sizes, sizeof sizes);
		if (over)
			return diag_add(d, DIAG_ERROR, c->mark,
					"case '%s' expands to more cells than can be counted (%s)", c->id, sizes);
		return diag_add(d, DIAG_ERROR, c->mark,
				"the suite expands to %" PRId64 " cells with case '%s' (%s), over max_cells %" PRId64
				"; shorten an axis or raise max_cells",
				p->n_points, c->id, sizes, p->suite->max_cells);
	}
	s->kernel = arena_array(p->arena, (size_t)s->n_kernels, sizeof *s->kernel);
	s->arms = arena_array(p->arena, (size_t)s->n_kernels, sizeof *s->arms);
	for (int i = 0; i < s->n_kernels; i++) {
		s->kernel[i] = registry_find(p->registry, c->kernel[i]);
		if (!s->kernel[i])
			return diag_add(d, DIAG_ERROR, c->mark,
					"case '%s': unknown kernel '%s'; `assay list` names them all", c->id,
					c->kernel[i]);
		if (!resolve_arms(p, c, s->kernel[i], &s->arms[i], d))
			return false;
	}
	for (int i = 0; i < s->n_axes; i++) {
		s->text[i] = arena_array(p->arena, (size_t)c->axis[i].n, sizeof *s->text[i]);
		for (int v = 0; v < c->axis[i].n; v++) {
			char buf[PLAN_NUMBER_MAX];
			s->text[i][v] = arena_strdup(p->arena, plan_number_text(&c->axis[i].value[v], buf));
		}
	}
	return true;
}

/* ---- a group ------------------------------------------------------------------------------------------------------- */

static const struct geometry *geometry_of(const struct group *g)
{
	return g->space->c->n_geometries ? g->space->c->geometry[g->geometry] : NULL;
}

const char *group_geometry_name(const struct group *g)
{
	const struct geometry *geo = geometry_of(g);
	return geo ? geo->name : "none";
}

const char *group_data_name(const struct group *g)
{
	return g->space->c->n_data ? g->space->c->data[g->data]->name : "default";
}

/* A value in the parameter's type, or false with an error. */
static bool convert(const struct assay_param *p, const struct number *n, union assay_value *out, struct mark at,
		    struct diags *d)
{
	double v = n->is_int ? (double)n->i : n->d;
	char text[PLAN_NUMBER_MAX];
	if (p->type == ASSAY_REAL)
		out->d = v;
	else if (n->is_int || (v == floor(v) && fabs(v) < 9.2e18))
		out->i = n->is_int ? n->i : (int64_t)v;
	else
		return d && diag_add(d, DIAG_ERROR, at, "%s must be a whole number, not %s", p->name,
				     plan_number_text(n, text));
	if (!(v >= p->min && v <= p->max))
		return d && diag_add(d, DIAG_ERROR, at, "%s = %s is out of its range %.17g..%.17g", p->name,
				     plan_number_text(n, text), p->min, p->max);
	if (p->type == ASSAY_INT && p->multiple_of && out->i % p->multiple_of)
		return d && diag_add(d, DIAG_ERROR, at, "%s = %s is not a multiple of %" PRId64, p->name,
				     plan_number_text(n, text), p->multiple_of);
	return true;
}

static struct number default_of(const struct assay_param *p)
{
	bool whole = p->type == ASSAY_INT;
	return (struct number){.is_int = whole, .i = whole ? (int64_t)p->dflt : 0, .d = p->dflt};
}

static bool set_constant(struct group *g, int i, struct diags *d)
{
	const struct assay_param *p = &g->desc->params[i];
	const struct geometry *geo = geometry_of(g);
	g->constant[i] = default_of(p);
	bool found = !p->required;
	for (int j = 0; geo && j < geo->n_params; j++) {
		if (strcmp(geo->param[j].name, p->name) != 0)
			continue;
		g->constant[i] = geo->param[j].value;
		g->param_mark[i] = geo->param[j].mark;
		found = true;
	}
	struct mark at = g->param_mark[i].file ? g->param_mark[i] : geo ? geo->mark : g->space->c->mark;
	if (!found)
		return d && diag_add(d, DIAG_ERROR, at,
				     "geometry '%s' lacks '%s' (%s), which %s requires and no axis of case '%s' gives",
				     group_geometry_name(g), p->name, p->doc, g->desc->name, g->space->c->id);
	plan_number_text(&g->constant[i], g->constant_text[i]);
	return convert(p, &g->constant[i], &g->base.v[i], at, d);
}

bool group_init(struct group *g, const struct plan *p, const struct case_space *s, int kernel, int geometry, int data,
		struct diags *d)
{
	memset(g, 0, sizeof *g);
	g->plan = p;
	g->space = s;
	g->kernel = kernel;
	g->geometry = geometry;
	g->data = data;
	g->desc = s->kernel[kernel];
	g->first = s->first + (((int64_t)kernel * s->n_geometries + geometry) * s->n_data + data) * s->group_points;
	bool ok = true;
	for (int i = 0; i < s->n_axes; i++)
		g->axis_param[i] = registry_param(g->desc, s->c->axis[i].name);
	for (int i = 0; i < g->desc->n_params; i++) {
		g->param_axis[i] = -1;
		for (int x = 0; x < s->n_axes; x++)
			if (g->axis_param[x] == i)
				g->param_axis[i] = x;
		if (g->param_axis[i] < 0) {
			ok &= set_constant(g, i, d);
			continue;
		}
		const struct axis *axis = &s->c->axis[g->param_axis[i]];
		union assay_value unused;
		for (int v = 0; d && v < axis->n; v++)
			ok &= convert(&g->desc->params[i], &axis->value[v], &unused, axis->mark, d);
	}
	return ok;
}

void group_seek(struct group *g, int64_t offset)
{
	const struct case_space *s = g->space;
	int digit[MAX_AXES] = {0};
	for (int i = s->n_digits; i-- > 0;) {
		digit[i] = (int)(offset % s->digit_size[i]);
		offset /= s->digit_size[i];
	}
	for (int i = 0; i < s->n_axes; i++)
		g->at[i] = digit[s->digit_of[i]];
}

bool group_next(struct group *g)
{
	const struct case_space *s = g->space;
	for (int digit = s->n_digits; digit-- > 0;) {
		int value = 0;
		for (int i = 0; i < s->n_axes; i++)
			if (s->digit_of[i] == digit)
				value = g->at[i] = (g->at[i] + 1) % s->digit_size[digit];
		if (value)
			return true;
	}
	return false;
}

void group_point(const struct group *g, struct assay_point *pt)
{
	*pt = g->base;
	for (int x = 0; x < g->space->n_axes; x++) {
		int i = g->axis_param[x];
		if (i >= 0)
			convert(&g->desc->params[i], &g->space->c->axis[x].value[g->at[x]], &pt->v[i], (struct mark){0},
				NULL);
	}
}

void plan_locate(const struct plan *p, int64_t number, struct group *g)
{
	int lo = 0, hi = p->n_spaces - 1;
	while (lo < hi) {
		int mid = (lo + hi + 1) / 2;
		if (p->space[mid].first <= number)
			lo = mid;
		else
			hi = mid - 1;
	}
	const struct case_space *s = &p->space[lo];
	int64_t group = (number - s->first) / s->group_points;
	int64_t kernel = group / s->n_data / s->n_geometries;
	group_init(g, p, s, (int)kernel, (int)(group / s->n_data % s->n_geometries), (int)(group % s->n_data), NULL);
	group_seek(g, (number - s->first) % s->group_points);
}
