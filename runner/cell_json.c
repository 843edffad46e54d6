/* cell_json: a cell as sent to a worker. Every plain struct has one table of its fields, used for both ways, so that what is written
 * is what is read. Doubles go as numbers of 17 digits, 64-bit patterns as hexadecimal text; NaN (no weight) is null. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

enum type {
	T_INT,
	T_U32,
	T_I64,
	T_U64,
	T_DOUBLE,
	T_BOOL,
	T_TEXT, /* const char *, may be NULL */
};

struct field {
	const char *name;
	size_t offset;
	enum type type;
	int n; /* 1, or an array of n; of texts it may end early in NULL */
};

#define F(s, member, t)                                                                                                \
	{                                                                                                              \
#member, offsetof(struct s, member), t, 1                                                              \
	}
#define A(s, member, t, n)                                                                                             \
	{                                                                                                              \
#member, offsetof(struct s, member), t, n                                                              \
	}

/* Enums are written as numbers: the worker is the same binary. */
_Static_assert(sizeof(enum clock_kind) == sizeof(int) && sizeof(enum fill_kind) == sizeof(int), "enums travel as int");

/* A struct that has grown has a field that would not travel: add it to its table, then correct the size here. */
#ifdef __LP64__
_Static_assert(sizeof(struct timing) == 256, "timing_fields");
_Static_assert(sizeof(struct checks) == 920, "checks_fields");
_Static_assert(sizeof(struct fill_rule) == 184, "rule_fields");
_Static_assert(sizeof(struct promise) == 32, "promise_fields");
_Static_assert(sizeof(struct cell_arm) == 56, "arm_fields");
_Static_assert(sizeof(struct cell) == 4016, "cell_fields");
#endif

static const struct field timing_fields[] = {
	F(timing, clock, T_INT),
	F(timing, estimator, T_INT),
	F(timing, rounds, T_INT),
	F(timing, min_rounds, T_INT),
	F(timing, max_rounds, T_INT),
	F(timing, alpha, T_DOUBLE),
	F(timing, warmup_launches, T_INT),
	F(timing, warmup_ns, T_I64),
	F(timing, scrub, T_INT),
	F(timing, scrub_bytes, T_I64),
	F(timing, rotate_copies, T_INT),
	F(timing, order, T_INT),
	A(timing, order_list, T_TEXT, MAX_LIST),
	F(timing, null_arm, T_BOOL),
	F(timing, confirm, T_INT),
	F(timing, batch, T_INT),
	F(timing, cell_budget_ns, T_I64),
	F(timing, suite_budget_ns, T_I64),
	F(timing, timeout_ns, T_I64),
	F(timing, retries, T_INT),
	F(timing, threads, T_INT),
	F(timing, tau, T_DOUBLE),
	{NULL, 0, T_INT, 0},
};

#define C(member, t) F(checks, member, t)
static const struct field checks_fields[] = {
	C(on, T_U32),
	C(identity.against, T_TEXT),
	A(checks, identity.arms, T_TEXT, MAX_LIST),
	C(repeat.launches, T_INT),
	C(repeat.processes, T_INT),
	C(repeat.addresses, T_BOOL),
	A(checks, repeat.arms, T_TEXT, MAX_LIST),
	C(invariant.rows, T_TEXT),
	A(checks, invariant.leading, T_I64, MAX_LIST),
	C(invariant.n_leading, T_INT),
	C(invariant.permute, T_BOOL),
	C(invariant.neighbours, T_BOOL),
	A(checks, invariant.arms, T_TEXT, MAX_LIST),
	A(checks, reference.arms, T_TEXT, MAX_LIST),
	C(reference.adapter, T_BOOL),
	C(reference.abs, T_DOUBLE),
	C(reference.rel, T_DOUBLE),
	C(reference.sample_rows, T_I64),
	C(regression.select, T_TEXT),
	C(regression.against, T_TEXT),
	C(ratio.of, T_TEXT),
	C(ratio.over, T_TEXT),
	C(ratio.geomean, T_BOOL),
	C(ratio.weighted, T_BOOL),
	C(ratio.agree_over_data, T_BOOL),
	C(ratio.agree_tolerance, T_DOUBLE),
	A(checks, ratio.may_differ, T_TEXT, MAX_LIST),
	C(ratio.equal_issue_interval, T_DOUBLE),
	C(ratio.has_bar, T_BOOL),
	C(ratio.bar_at_least, T_DOUBLE),
	{NULL, 0, T_INT, 0},
};

static const struct field rule_fields[] = {
	F(fill_rule, tensor, T_TEXT),
	F(fill_rule, field, T_TEXT),
	F(fill_rule, spec.kind, T_INT),
	A(fill_rule, spec.range, T_DOUBLE, 2),
	F(fill_rule, spec.mean, T_DOUBLE),
	F(fill_rule, spec.sd, T_DOUBLE),
	A(fill_rule, spec.magnitude, T_I64, 2),
	F(fill_rule, spec.value, T_DOUBLE),
	F(fill_rule, spec.exponent, T_DOUBLE),
	F(fill_rule, spec.k, T_I64),
	F(fill_rule, spec.repeats, T_BOOL),
	F(fill_rule, spec.base, T_DOUBLE),
	F(fill_rule, spec.step, T_DOUBLE),
	F(fill_rule, spec.modulus, T_I64),
	F(fill_rule, spec.path, T_TEXT),
	F(fill_rule, spec.has_seed, T_BOOL),
	F(fill_rule, spec.seed, T_U64),
	A(fill_rule, spec.seed_xor, T_TEXT, 4),
	{NULL, 0, T_INT, 0},
};

static const struct field promise_fields[] = {
	F(promise, finite_as, T_U32),  F(promise, no_denormals_as, T_U32), F(promise, sign, T_INT),
	F(promise, has_range, T_BOOL), A(promise, range, T_DOUBLE, 2),     {NULL, 0, T_INT, 0},
};

static const struct field mark_fields[] = {
	F(mark, file, T_TEXT), F(mark, line, T_INT), F(mark, col, T_INT), F(mark, len, T_INT), {NULL, 0, T_INT, 0},
};

static const struct field number_fields[] = {
	F(named_number, name, T_TEXT),
	F(named_number, value.is_int, T_BOOL),
	F(named_number, value.i, T_I64),
	F(named_number, value.d, T_DOUBLE),
	{NULL, 0, T_INT, 0},
};

static const struct field env_fields[] = {
	F(env_flip, name, T_TEXT),
	F(env_flip, value, T_TEXT),
	{NULL, 0, T_INT, 0},
};

static const struct field arm_fields[] = {
	F(cell_arm, name, T_TEXT),  F(cell_arm, role, T_INT),         F(cell_arm, arg, T_I64),
	F(cell_arm, graph, T_BOOL), F(cell_arm, unsupported, T_TEXT), {NULL, 0, T_INT, 0},
};

static const struct field cell_fields[] = {
	F(cell, plan_index, T_I64),
	F(cell, id, T_TEXT),
	F(cell, suite, T_TEXT),
	F(cell, suite_path, T_TEXT),
	F(cell, rerun_as, T_TEXT),
	F(cell, set_words, T_TEXT),
	F(cell, case_id, T_TEXT),
	F(cell, kernel_name, T_TEXT),
	F(cell, geometry, T_TEXT),
	F(cell, data, T_TEXT),
	F(cell, seed, T_U64),
	F(cell, weight, T_DOUBLE),
	F(cell, selection, T_INT),
	F(cell, selected, T_TEXT),
	F(cell, margin_fail, T_DOUBLE),
	F(cell, margin_warn, T_DOUBLE),
	F(cell, margin_floor_ns, T_I64),
	F(cell, gate, T_BOOL),
	F(cell, waiver, T_TEXT),
	F(cell, waiver_expect, T_TEXT),
	F(cell, waiver_reason, T_TEXT),
	F(cell, waiver_until, T_TEXT),
	F(cell, waiver_arm, T_TEXT),
	A(cell, tag, T_TEXT, MAX_LIST),
	F(cell, skip, T_TEXT),
	{NULL, 0, T_INT, 0},
};

static const size_t type_size[] = {
	[T_INT] = sizeof(int),       [T_U32] = sizeof(uint32_t), [T_I64] = sizeof(int64_t), [T_U64] = sizeof(uint64_t),
	[T_DOUBLE] = sizeof(double), [T_BOOL] = sizeof(bool),    [T_TEXT] = sizeof(char *),
};

/* ---- out ----------------------------------------------------------------------------------------------------------- */

static json_t *put_value(enum type t, const void *p)
{
	char hex[24];
	switch (t) {
	case T_INT: return json_integer(*(const int *)p);
	case T_U32: return json_integer(*(const uint32_t *)p);
	case T_I64: return json_integer(*(const int64_t *)p);
	case T_U64: snprintf(hex, sizeof hex, "0x%" PRIx64, *(const uint64_t *)p); return json_string(hex);
	case T_DOUBLE: {
		double d = *(const double *)p;
		/* JSON has no infinity; a plan has none either. */
		return isfinite(d) ? json_real(d) : json_null();
	}
	case T_BOOL: return json_boolean(*(const bool *)p);
	case T_TEXT: {
		const char *s = *(const char *const *)p;
		return s ? json_string(s) : json_null();
	}
	}
	return NULL;
}

static json_t *put(const struct field *f, const void *base)
{
	json_t *o = json_object();
	for (; f->name; f++) {
		const char *p = (const char *)base + f->offset;
		if (f->n == 1) {
			json_object_set_new(o, f->name, put_value(f->type, p));
			continue;
		}
		json_t *list = json_array();
		for (int i = 0; i < f->n; i++, p += type_size[f->type]) {
			if (f->type == T_TEXT && !*(const char *const *)(const void *)p)
				break;
			json_array_append_new(list, put_value(f->type, p));
		}
		json_object_set_new(o, f->name, list);
	}
	return o;
}

static json_t *put_list(const struct field *f, const void *base, int n, size_t bytes)
{
	json_t *list = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(list, put(f, (const char *)base + (size_t)i * bytes));
	return list;
}

static json_t *put_mark(const struct mark *m)
{
	return m->file ? put(mark_fields, m) : json_null();
}

static int desc_index(const struct assay_kernel *k, const struct assay_arm *desc)
{
	for (int i = 0; i < k->n_arms; i++)
		if (&k->arms[i] == desc)
			return i;
	return -1;
}

json_t *cell_to_json(const struct cell *c)
{
	json_t *o = put(cell_fields, c);
	json_t *point = json_array(), *arms = json_array();
	for (int i = 0; i < c->kernel->n_params; i++)
		json_array_append_new(point, put_value(c->kernel->params[i].type == ASSAY_INT ? T_I64 : T_DOUBLE,
						       &c->point.v[i]));
	json_object_set_new(o, "point", point);
	json_object_set_new(o, "axis", put_list(number_fields, c->axis, c->n_axes, sizeof c->axis[0]));
	for (int i = 0; i < c->n_arms; i++) {
		json_t *arm = put(arm_fields, &c->arm[i]);
		json_object_set_new(arm, "desc", json_string(c->arm[i].desc->name));
		json_object_set_new(arm, "desc_index", json_integer(desc_index(c->kernel, c->arm[i].desc)));
		json_object_set_new(arm, "env",
				    put_list(env_fields, c->arm[i].env, c->arm[i].n_env, sizeof c->arm[i].env[0]));
		json_array_append_new(arms, arm);
	}
	json_object_set_new(o, "arm", arms);
	json_object_set_new(o, "dist",
			    json_pack("{s:s?, s:o, s:o}", "name", c->dist.name, "rules",
				      put_list(rule_fields, c->dist.rules, c->dist.n_rules, sizeof c->dist.rules[0]),
				      "promise", put(promise_fields, &c->dist.promise)));
	json_object_set_new(o, "timing", put(timing_fields, &c->timing));
	json_object_set_new(o, "checks", put(checks_fields, &c->checks));
	json_object_set_new(o, "selected_row", put_mark(&c->selected_row));
	json_object_set_new(o, "margin_mark", put_mark(&c->margin_mark));
	json_object_set_new(o, "rig_mark", put_mark(&c->rig_mark));
	return o;
}

/* ---- in ------------------------------------------------------------------------------------------------------------ */

static bool get_integer(const json_t *j, int64_t min, int64_t max, int64_t *out)
{
	if (!json_is_integer(j))
		return false;
	*out = json_integer_value(j);
	return *out >= min && *out <= max;
}

static bool get_value(enum type t, const json_t *j, struct arena *a, void *p)
{
	int64_t v;
	switch (t) {
	case T_INT:
		if (!get_integer(j, INT32_MIN, INT32_MAX, &v))
			return false;
		*(int *)p = (int)v;
		return true;
	case T_U32:
		if (!get_integer(j, 0, UINT32_MAX, &v))
			return false;
		*(uint32_t *)p = (uint32_t)v;
		return true;
	case T_I64: return get_integer(j, INT64_MIN, INT64_MAX, p);
	case T_U64: {
		const char *s = json_string_value(j);
		char *end;
		if (!s || strncmp(s, "0x", 2) != 0)
			return false;
		errno = 0;
		*(uint64_t *)p = strtoull(s, &end, 16);
		return !*end && !errno;
	}
	case T_DOUBLE:
		*(double *)p = json_is_null(j) ? NAN : json_number_value(j);
		return json_is_null(j) || json_is_number(j);
	case T_BOOL: *(bool *)p = json_is_true(j); return json_is_boolean(j);
	case T_TEXT:
		*(const char **)p = arena_strdup(a, json_string_value(j));
		return json_is_null(j) || json_is_string(j);
	}
	return false;
}

static bool get(const struct field *f, const json_t *o, struct arena *a, void *base, const char *what, struct err *err)
{
	for (; f->name; f++) {
		const json_t *j = json_object_get(o, f->name);
		char *p = (char *)base + f->offset;
		bool ok = f->n == 1 ? j && get_value(f->type, j, a, p)
				    : json_is_array(j) && json_array_size(j) <= (size_t)f->n;
		for (size_t i = 0; f->n > 1 && ok && i < json_array_size(j); i++, p += type_size[f->type])
			ok = get_value(f->type, json_array_get(j, i), a, p);
		if (!ok)
			return err_set(err, "a cell's %s: field '%s' is missing or of the wrong type", what, f->name);
	}
	return true;
}

/* An array of structs from the arena; *n its length. NULL where it is no list or too long. */
static void *get_list(const struct field *f, const json_t *list, size_t bytes, size_t max, struct arena *a, int *n,
		      const char *what, struct err *err)
{
	size_t count = json_array_size(list);
	if (!json_is_array(list) || count > max) {
		err_set(err, "a cell's %s: a list of at most %zu is wanted", what, max);
		return NULL;
	}
	char *base = arena_array(a, count, bytes);
	for (size_t i = 0; i < count; i++)
		if (!get(f, json_array_get(list, i), a, base + i * bytes, what, err))
			return NULL;
	*n = (int)count;
	return base;
}

static bool get_mark(const json_t *j, struct arena *a, struct mark *out, const char *what, struct err *err)
{
	return json_is_null(j) || get(mark_fields, j, a, out, what, err);
}

static bool get_arm(const json_t *j, const struct assay_kernel *k, struct arena *a, struct cell_arm *out,
		    struct err *err)
{
	const char *desc = json_string_value(json_object_get(j, "desc"));
	if (!desc || !get(arm_fields, j, a, out, "arm", err))
		return desc ? false : err_set(err, "a cell's arm: field 'desc' is missing");
	/* A pair of builds has each name twice: the place tells them apart. */
	json_int_t at = json_integer_value(json_object_get(j, "desc_index"));
	for (int i = 0; i < k->n_arms; i++)
		if (strcmp(k->arms[i].name, desc) == 0 && (!out->desc || i == at))
			out->desc = &k->arms[i];
	if (!out->desc)
		return err_set(err, "kernel '%s' has no arm '%s' in this process", k->name, desc);
	out->env = get_list(env_fields, json_object_get(j, "env"), sizeof *out->env, 1024, a, &out->n_env, "env", err);
	return out->env;
}

static bool get_point(const json_t *j, const struct assay_kernel *k, struct assay_point *out, struct err *err)
{
	if (!json_is_array(j) || json_array_size(j) != (size_t)k->n_params)
		return err_set(err, "a cell's point has not the %d parameters of '%s'", k->n_params, k->name);
	for (int i = 0; i < k->n_params; i++)
		if (!get_value(k->params[i].type == ASSAY_INT ? T_I64 : T_DOUBLE, json_array_get(j, (size_t)i), NULL,
			       &out->v[i]))
			return err_set(err, "a cell's point: parameter '%s' of '%s' is no number", k->params[i].name,
				       k->name);
	return true;
}

bool cell_from_json(const json_t *j, const struct registry *r, struct arena *a, struct cell *out, struct err *err)
{
	memset(out, 0, sizeof *out);
	if (!get(cell_fields, j, a, out, "line", err))
		return false;
	if (!out->kernel_name || !out->id)
		return err_set(err, "a cell without a kernel or an id");
	out->kernel = registry_find(r, out->kernel_name);
	if (!out->kernel)
		return err_set(err, "no kernel '%s' in this process; was its plugin given?", out->kernel_name);
	if (!get_point(json_object_get(j, "point"), out->kernel, &out->point, err))
		return false;
	int n = 0;
	const struct named_number *axis =
		get_list(number_fields, json_object_get(j, "axis"), sizeof *axis, ASSAY_MAX_PARAMS, a, &n, "axis", err);
	if (!axis)
		return false;
	memcpy(out->axis, axis, (size_t)n * sizeof *axis);
	out->n_axes = n;
	const json_t *arms = json_object_get(j, "arm");
	if (json_array_size(arms) < 1 || json_array_size(arms) > MAX_ARMS)
		return err_set(err, "a cell's arm: a list of 1 to %d is wanted", MAX_ARMS);
	out->n_arms = (int)json_array_size(arms);
	for (int i = 0; i < out->n_arms; i++)
		if (!get_arm(json_array_get(arms, (size_t)i), out->kernel, a, &out->arm[i], err))
			return false;
	const json_t *dist = json_object_get(j, "dist");
	out->dist.name = arena_strdup(a, json_string_value(json_object_get(dist, "name")));
	out->dist.rules = get_list(rule_fields, json_object_get(dist, "rules"), sizeof *out->dist.rules, 4096, a,
				   &out->dist.n_rules, "data", err);
	return out->dist.rules &&
	       get(promise_fields, json_object_get(dist, "promise"), a, &out->dist.promise, "promise", err) &&
	       get(timing_fields, json_object_get(j, "timing"), a, &out->timing, "timing", err) &&
	       get(checks_fields, json_object_get(j, "checks"), a, &out->checks, "checks", err) &&
	       get_mark(json_object_get(j, "selected_row"), a, &out->selected_row, "selected_row", err) &&
	       get_mark(json_object_get(j, "margin_mark"), a, &out->margin_mark, "margin_mark", err) &&
	       get_mark(json_object_get(j, "rig_mark"), a, &out->rig_mark, "rig_mark", err);
}
