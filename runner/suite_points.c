/* Parameters of a case against its kernels: names, ranges, what lacks, and the relations that a kernel refuses. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "fill.h"
#include "suite_load.h"

/* Points tried against the hooks of a kernel, per kernel and geometry; a larger case is looked at as it is planned. */
enum { POINTS_TRIED = 4096 };

bool param_check(const struct assay_kernel *k, int p, const struct number *v, struct mark at, struct diags *d)
{
	const struct assay_param *x = &k->params[p];
	if (x->type == ASSAY_INT && !v->is_int)
		return diag_add_of(d, DIAG_ERROR, at, " by", k->name, "%s = %.17g is not a whole number, as wanted",
				   x->name, v->d);
	if (v->d < x->min || v->d > x->max) {
		if (v->is_int)
			return diag_add_of(d, DIAG_ERROR, at, " of", k->name,
					   "%s = %" PRId64 " is out of range %.17g..%.17g", x->name, v->i, x->min,
					   x->max);
		return diag_add_of(d, DIAG_ERROR, at, " of", k->name, "%s = %.17g is out of range %.17g..%.17g",
				   x->name, v->d, x->min, x->max);
	}
	if (x->multiple_of && v->i % x->multiple_of)
		return diag_add_of(d, DIAG_ERROR, at, " by", k->name,
				   "%s = %" PRId64 " is not a multiple of %" PRId64 ", as wanted", x->name, v->i,
				   x->multiple_of);
	return true;
}

static int known_params(struct loader *l, const struct case_load *k, const char ***out)
{
	int n = 0, most = 0;
	for (int i = 0; i < k->c->n_kernels; i++)
		most += k->kernel[i]->n_params;
	const char **known = arena_array(l->arena, (size_t)most + 1, sizeof *known);
	for (int i = 0; i < k->c->n_kernels; i++)
		for (int p = 0; p < k->kernel[i]->n_params; p++) {
			int seen = 0;
			while (seen < n && strcmp(known[seen], k->kernel[i]->params[p].name))
				seen++;
			if (seen == n)
				known[n++] = k->kernel[i]->params[p].name;
		}
	*out = known;
	return n;
}

/* A name and its values against every kernel of the case that knows it. mark[i] of value i, or one mark. */
static void values_check(struct loader *l, struct case_load *k, const char *what, const char *name,
			 struct mark name_mark, const struct number *v, int n, struct mark at)
{
	bool known = false;
	for (int i = 0; i < k->c->n_kernels; i++) {
		int p = registry_param(k->kernel[i], name);
		known |= p >= 0;
		for (int j = 0; p >= 0 && j < n; j++)
			if (!param_check(k->kernel[i], p, &v[j], at, l->diags)) {
				k->bad_params = true;
				return;
			}
	}
	if (known)
		return;
	const char **words;
	int n_words = known_params(l, k, &words);
	grammar_unknown(l->diags, name_mark, what, name, words, n_words);
	k->bad_params = true;
}

/* The place of value i of an axis, where it stands alone in a list. */
static struct mark value_mark(const struct loader *l, const struct case_load *k, const struct axis *x, int i)
{
	const struct yaml_node *axes = yaml_get(k->node, "axes", NULL), *zip = yaml_get(axes, "zip", NULL);
	const struct yaml_node *v = NULL;
	struct mark key;
	const struct yaml_node *maps[32];
	int n = 0;
	maps[n++] = axes;
	if (zip && zip->kind == YAML_TREE_MAP)
		maps[n++] = zip;
	for (int j = 0; zip && zip->kind == YAML_TREE_SEQ && j < zip->n && n < 16; j++)
		maps[n++] = zip->item[j];
	for (int j = 0; j < l->n_overrides && n < 32; j++)
		maps[n++] = yaml_get(l->override[j], "axes", NULL);
	for (int j = 0; j < n && !v; j++)
		if ((v = yaml_get(maps[j], x->name, &key)) &&
		    (key.line != x->mark.line || key.col != x->mark.col || key.file != x->mark.file))
			v = NULL;
	if (v && v->kind == YAML_TREE_SEQ && i < v->n)
		return v->item[i]->mark;
	return v ? v->mark : x->mark;
}

static void names_check(struct loader *l, struct case_load *k)
{
	for (int g = 0; g < k->c->n_geometries; g++)
		for (int i = 0; i < k->c->geometry[g]->n_params; i++) {
			const struct named_number *p = &k->c->geometry[g]->param[i];
			const struct block *b = block_find(&l->geometries, k->c->geometry[g]->name);
			struct mark key = p->mark;
			/* The key stands where the value is said: in this geometry or in one that it extends. */
			while (b) {
				const struct yaml_node *v = yaml_get(b->value, p->name, NULL);
				const struct yaml_node *extends = yaml_get(b->value, "extends", NULL);
				if (v) {
					yaml_get(b->value, p->name, &key);
					break;
				}
				b = extends ? block_find(&l->geometries, extends->text) : NULL;
			}
			values_check(l, k, "parameter", p->name, key, &p->value, 1, p->mark);
		}
	for (int i = 0; i < k->c->n_axes; i++) {
		const struct axis *x = &k->c->axis[i];
		for (int j = 0; j < x->n; j++) {
			bool was = k->bad_params;
			k->bad_params = false;
			values_check(l, k, "axis", x->name, x->mark, &x->value[j], 1, value_mark(l, k, x, j));
			bool bad = k->bad_params;
			k->bad_params |= was;
			if (bad && !(j + 1 < x->n && diags_errors(l->diags) < 100))
				break;
		}
	}
}

static const struct axis *axis_of(const struct suite_case *c, const char *name)
{
	for (int i = 0; i < c->n_axes; i++)
		if (!strcmp(c->axis[i].name, name))
			return &c->axis[i];
	return NULL;
}

static const struct named_number *param_of(const struct geometry *g, const char *name)
{
	for (int i = 0; i < g->n_params; i++)
		if (!strcmp(g->param[i].name, name))
			return &g->param[i];
	return NULL;
}

static void required_check(struct loader *l, struct case_load *k)
{
	for (int i = 0; i < k->c->n_kernels; i++)
		for (int g = 0; g < k->c->n_geometries; g++) {
			const char *list = "";
			int n = 0;
			for (int p = 0; p < k->kernel[i]->n_params; p++) {
				const struct assay_param *x = &k->kernel[i]->params[p];
				if (!x->required || axis_of(k->c, x->name) || param_of(k->c->geometry[g], x->name))
					continue;
				list = arena_printf(l->arena, "%s%s'%s'", list, n++ ? ", " : "", x->name);
			}
			if (!n)
				continue;
			k->bad_params = true;
			diag_add_of(l->diags, DIAG_ERROR, origin_mark(l, "geometry", k->c->mark), " for",
				    k->kernel[i]->name, "the parameter%s %s must be set", n > 1 ? "s" : "", list);
			if (origin_find(l, "geometry")->node)
				diag_note(l->diags, (struct mark){0}, "set in geometry '%s', or swept under axes",
					  k->c->geometry[g]->name);
			else
				diag_note(l->diags, (struct mark){0}, "name a geometry, or sweep them under axes");
		}
}

/* ---- points ---- */

struct subject {
	const struct suite_case *c;
	const struct assay_kernel *kernel;
	const struct geometry *geometry;
	const int *at; /* index of each axis */
	const char *suite;
};

static const char *number_text(const struct number *v, char *buf, size_t cap)
{
	if (v->is_int)
		snprintf(buf, cap, "%" PRId64, v->i);
	else
		snprintf(buf, cap, "%.17g", v->d);
	return buf;
}

static const char *subject_get(const void *subject, const char *key, int i, char *buf, size_t cap)
{
	const struct subject *s = subject;
	if (!strcmp(key, "tag"))
		return i < s->c->n_tags ? s->c->tag[i] : NULL;
	if (!strcmp(key, "arm"))
		return i < s->c->n_arms ? s->c->arm[i].name : NULL;
	if (i)
		return NULL;
	if (!strcmp(key, "kernel"))
		return s->kernel->name;
	if (!strcmp(key, "case"))
		return s->c->id;
	if (!strcmp(key, "geometry"))
		return s->geometry->name;
	if (!strcmp(key, "suite"))
		return s->suite;
	for (int x = 0; x < s->c->n_axes; x++)
		if (!strcmp(key, s->c->axis[x].name))
			return number_text(&s->c->axis[x].value[s->at[x]], buf, cap);
	const struct named_number *p = param_of(s->geometry, key);
	return p ? number_text(&p->value, buf, cap) : NULL;
}

/* The next combination of axes; zipped ones advance together. */
static bool advance(const struct suite_case *c, int *at)
{
	for (int i = c->n_axes - 1; i >= 0; i--) {
		int group = c->axis[i].zip_group;
		bool first = true; /* of its group, so that the group moves once */
		for (int j = 0; j < i && group >= 0; j++)
			first &= c->axis[j].zip_group != group;
		if (!first)
			continue;
		int next = at[i] + 1 < c->axis[i].n ? at[i] + 1 : 0;
		for (int j = 0; j < c->n_axes; j++)
			if (j == i || (group >= 0 && c->axis[j].zip_group == group))
				at[j] = next;
		if (next)
			return true;
	}
	return false;
}

static void point_fill(const struct subject *s, struct assay_point *pt)
{
	memset(pt, 0, sizeof *pt);
	for (int p = 0; p < s->kernel->n_params; p++) {
		const struct assay_param *x = &s->kernel->params[p];
		struct number v = {true, (int64_t)x->dflt, x->dflt};
		const struct named_number *set = param_of(s->geometry, x->name);
		if (set)
			v = set->value;
		for (int i = 0; i < s->c->n_axes; i++)
			if (!strcmp(s->c->axis[i].name, x->name))
				v = s->c->axis[i].value[s->at[i]];
		if (x->type == ASSAY_INT)
			pt->v[p].i = v.is_int ? v.i : (int64_t)v.d;
		else
			pt->v[p].d = v.d;
	}
}

static const char *point_text(struct loader *l, const struct subject *s)
{
	const char *text = s->geometry->name;
	char buf[40];
	for (int i = 0; i < s->c->n_axes; i++)
		if (registry_param(s->kernel, s->c->axis[i].name) >= 0)
			text = arena_printf(l->arena, "%s%s%s=%s", text, strchr(text, '=') ? "," : " ",
					    s->c->axis[i].name,
					    number_text(&s->c->axis[i].value[s->at[i]], buf, sizeof buf));
	return text;
}

/* True where the kernel takes the point. */
static bool point_check(struct loader *l, struct case_load *k, const struct subject *s)
{
	struct assay_point pt;
	struct assay_shape shape;
	struct mark at = k->c->n_axes ? k->c->axis[0].mark : origin_mark(l, "geometry", k->c->mark);
	point_fill(s, &pt);
	const char *why = s->kernel->refuse ? s->kernel->refuse(&pt) : NULL;
	if (why)
		return diag_add(l->diags, DIAG_ERROR, at, "%s refuses %s: %s", s->kernel->name, point_text(l, s), why);
	for (int t = 0; t < s->kernel->n_tensors; t++)
		if (s->kernel->shape(&pt, t, &shape))
			return diag_add(l->diags, DIAG_ERROR, at, "%s has no shape for tensor '%s' at %s",
					s->kernel->name, s->kernel->tensors[t].name, point_text(l, s));
	return true;
}

/* Whether each fill suits its tensor at the point, as far as no data are read: types, ranges, seeds, the shapes of files. */
static bool fills_check(struct loader *l, struct case_load *k, const struct subject *s, const struct distribution *d)
{
	struct assay_point pt;
	struct fill_job job[ASSAY_MAX_FIELDS];
	struct err err;
	const struct block *b = block_find(&l->distributions, d->name);
	point_fill(s, &pt);
	for (int t = 0; t < s->kernel->n_tensors; t++) {
		const int n = fill_resolve(s->kernel, t, &pt, d, k->c->seed, 0, job, &err);
		bool fits = n >= 0;
		for (int i = 0; i < n && fits; i++)
			if (!fill_fits(&job[i], &err))
				fits = err_prefix(&err, "%s.%s", s->kernel->name, s->kernel->tensors[t].name);
		if (!fits)
			return diag_add(l->diags, DIAG_ERROR, b ? b->value->mark : k->c->mark,
					"distribution '%s' at %s: %s", d->name, point_text(l, s), err.text);
	}
	return true;
}

static void refused_check(struct loader *l, struct case_load *k)
{
	bool *bad = arena_array(l->arena, (size_t)k->c->n_data, sizeof *bad);
	int *at = arena_array(l->arena, (size_t)k->c->n_axes + 1, sizeof *at);
	for (int i = 0; i < k->c->n_kernels; i++)
		for (int g = 0; g < k->c->n_geometries; g++) {
			struct subject s = {k->c, k->kernel[i], k->c->geometry[g], at, l->full->s.name};
			memset(at, 0, ((size_t)k->c->n_axes + 1) * sizeof *at);
			memset(bad, 0, (size_t)k->c->n_data * sizeof *bad);
			int tried = 0;
			do {
				bool out = false;
				for (int e = 0; e < k->c->n_excludes && !out; e++)
					out = selector_match(&k->c->exclude[e], &s, subject_get);
				if (!out && !point_check(l, k, &s))
					break; /* one message a kernel and geometry */
				for (int j = 0; j < k->c->n_data && !out; j++) /* and a distribution */
					bad[j] = bad[j] || !fills_check(l, k, &s, k->c->data[j]);
			} while (++tried < POINTS_TRIED && advance(k->c, at));
		}
}

static void cap_check(struct loader *l, struct case_load *k)
{
	double n = (double)k->c->n_kernels * k->c->n_geometries * k->c->n_data;
	for (int i = 0; i < k->c->n_axes; i++) {
		bool first = true;
		for (int j = 0; j < i && k->c->axis[i].zip_group >= 0; j++)
			first &= k->c->axis[j].zip_group != k->c->axis[i].zip_group;
		n *= first ? k->c->axis[i].n : 1;
	}
	if (n <= (double)l->full->s.max_cells)
		return;
	diag_add(l->diags, DIAG_ERROR, k->c->axis[0].mark, "case '%s' has %.0f cells; max_cells is %" PRId64, k->c->id,
		 n, l->full->s.max_cells);
	diag_note(l->diags, (struct mark){0}, "shorten an axis, or raise max_cells");
	k->bad_params = true;
}

void points_check(struct loader *l, struct case_load *k)
{
	names_check(l, k);
	if (k->bad_params || !k->c->n_geometries)
		return;
	required_check(l, k);
	if (k->c->n_axes)
		cap_check(l, k);
	if (!k->bad_params)
		refused_check(l, k);
}
