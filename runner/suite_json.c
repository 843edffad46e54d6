/* The suite as understood: one file, everything resolved, valid under the schema; loaded again it is the same suite. */
#include <inttypes.h>
#include <string.h>

#include "plan.h"
#include "suite_load.h"

static json_t *number_json(const struct number *v)
{
	return v->is_int ? json_integer(v->i) : json_real(v->d);
}

/* One name alone stands without a list. */
static void put_words(json_t *map, const char *key, const char *const *word, int n)
{
	json_t *list = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_string(word[i]));
	json_object_set_new(map, key, list);
}

static json_t *geometry_json(const struct geometry *g)
{
	json_t *j = json_object();
	for (int i = 0; i < g->n_params; i++)
		json_object_set_new(j, g->param[i].name, number_json(&g->param[i].value));
	if (g->has_weight)
		json_object_set_new(j, "weight", json_real(g->weight));
	return j;
}

static json_t *fill_json(const struct fill_spec *f)
{
	json_t *j = json_pack("{s:s}", "fill", grammar_fills[f->kind]);
	for (const char *const *key = fill_keys(f->kind); *key; key++) {
		json_t *v = NULL;
		if (!strcmp(*key, "range"))
			v = json_pack("[f,f]", f->range[0], f->range[1]);
		else if (!strcmp(*key, "mean"))
			v = json_real(f->mean);
		else if (!strcmp(*key, "sd"))
			v = json_real(f->sd);
		else if (!strcmp(*key, "magnitude"))
			v = json_pack("[I,I]", (json_int_t)f->magnitude[0], (json_int_t)f->magnitude[1]);
		else if (!strcmp(*key, "value"))
			v = json_real(f->value);
		else if (!strcmp(*key, "exponent"))
			v = json_real(f->exponent);
		else if (!strcmp(*key, "k"))
			v = json_integer(f->k);
		else if (!strcmp(*key, "repeats"))
			v = json_boolean(f->repeats);
		else if (!strcmp(*key, "base"))
			v = json_real(f->base);
		else if (!strcmp(*key, "step"))
			v = json_real(f->step);
		else if (!strcmp(*key, "modulus"))
			v = json_integer(f->modulus);
		else if (!strcmp(*key, "path"))
			v = json_string(f->path);
		else if (!strcmp(*key, "seed"))
			v = json_integer((json_int_t)f->seed);
		else if (!strcmp(*key, "seed_xor") && f->seed_xor[0]) {
			v = json_array();
			for (int i = 0; i < 4 && f->seed_xor[i]; i++)
				json_array_append_new(v, json_string(f->seed_xor[i]));
		}
		if (v)
			json_object_set_new(j, *key, v);
	}
	return j;
}

static json_t *dtypes_json(uint32_t bits)
{
	json_t *j = json_array();
	for (int i = 0; grammar_dtypes[i]; i++)
		if (bits >> i & 1)
			json_array_append_new(j, json_string(grammar_dtypes[i]));
	return j;
}

static json_t *promise_json(const struct promise *p)
{
	static const char *const sign[] = {"any", "positive", "negative", "both"};
	json_t *j = json_object();
	if (p->finite_as)
		json_object_set_new(j, "finite_as", dtypes_json(p->finite_as));
	if (p->sign)
		json_object_set_new(j, "sign", json_string(sign[p->sign]));
	if (p->no_denormals_as) {
		json_t *map = json_object();
		for (int i = 0; grammar_dtypes[i]; i++)
			if (p->no_denormals_as >> i & 1)
				json_object_set_new(map, grammar_dtypes[i], json_string("none"));
		json_object_set_new(j, "denormals", map);
	}
	if (p->has_range)
		json_object_set_new(j, "range", json_pack("[f,f]", p->range[0], p->range[1]));
	return j;
}

static json_t *distribution_json(const struct distribution *d)
{
	json_t *j = fill_json(&d->rules[0].spec), *tensors = json_object(), *promise = promise_json(&d->promise);
	for (int i = 1; i < d->n_rules; i++) {
		const struct fill_rule *r = &d->rules[i];
		char name[256];
		snprintf(name, sizeof name, "%s%s%s", r->tensor, r->field ? "." : "", r->field ? r->field : "");
		json_object_set_new(tensors, name, fill_json(&r->spec));
	}
	if (json_object_size(tensors))
		json_object_set(j, "tensors", tensors);
	if (json_object_size(promise))
		json_object_set(j, "promise", promise);
	json_decref(tensors);
	json_decref(promise);
	return j;
}

static json_t *selector_json(struct arena *a, const struct selector *s)
{
	return s->n_terms ? json_string(selector_text(a, s)) : json_object();
}

static json_t *arm_json(const struct arm_use *u)
{
	json_t *j = json_pack("{s:s}", "arm", u->arm);
	if (strcmp(u->name, u->arm))
		json_object_set_new(j, "name", json_string(u->name));
	if (u->n_env) {
		json_t *env = json_object();
		for (int i = 0; i < u->n_env; i++)
			json_object_set_new(env, u->env[i].name, json_string(u->env[i].value ? u->env[i].value : ""));
		json_object_set_new(j, "env", env);
	}
	if (u->graph)
		json_object_set_new(j, "graph", json_true());
	return json_object_size(j) == 1 ? (json_decref(j), json_string(u->arm)) : j;
}

/* Arms keep their order within a role; roles are written one by one where they are mixed. */
static json_t *arms_json(const struct suite_case *c)
{
	json_t *j = json_object(), *list = json_array();
	for (int i = 0; i < c->n_arms; i++) {
		const struct arm_use *u = &c->arm[i];
		json_t *v = arm_json(u);
		if (u->role == ROLE_SHIPPED) {
			json_object_set_new(j, "shipped", v);
			continue;
		}
		if (u->role == ROLE_HEADROOM) {
			if (json_is_string(v)) {
				json_decref(v);
				v = json_pack("{s:s}", "arm", u->arm);
			}
			json_object_set_new(v, "role", json_string("headroom"));
		}
		json_array_append_new(list, v);
	}
	json_object_set_new(j, "arms", list);
	return j;
}

static json_t *axes_json(const struct suite_case *c)
{
	json_t *j = json_object(), *zips = json_array();
	int groups = 0;
	for (int i = 0; i < c->n_axes; i++) {
		const struct axis *x = &c->axis[i];
		json_t *list = json_array();
		for (int k = 0; k < x->n; k++)
			json_array_append_new(list, number_json(&x->value[k]));
		if (x->zip_group < 0) {
			json_object_set_new(j, x->name, list);
			continue;
		}
		for (; groups <= x->zip_group; groups++)
			json_array_append_new(zips, json_object());
		if (!json_array_size(json_object_get(j, "zip")))
			json_object_set(j, "zip", zips);
		json_object_set_new(json_array_get(zips, (size_t)x->zip_group), x->name, list);
	}
	json_decref(zips);
	return j;
}

static json_t *case_json(struct arena *a, const struct suite_case *c)
{
	json_t *j = json_pack("{s:s}", "id", c->id), *list = json_array();
	put_words(j, "kernels", c->kernel, c->n_kernels);
	for (int i = 0; i < c->n_geometries; i++)
		json_array_append_new(list, json_string(c->geometry[i]->name));
	json_object_set_new(j, "geometry", list);
	json_object_set_new(j, "arms", arms_json(c));
	list = json_array();
	for (int i = 0; i < c->n_data; i++)
		json_array_append_new(list, json_string(c->data[i]->name));
	json_object_set_new(j, "data", list);
	json_object_set_new(j, "seed", json_integer((json_int_t)c->seed));
	if (c->n_axes)
		json_object_set_new(j, "axes", axes_json(c));
	if (c->n_excludes) {
		list = json_array();
		for (int i = 0; i < c->n_excludes; i++)
			json_array_append_new(list, selector_json(a, &c->exclude[i]));
		json_object_set_new(j, "exclude", list);
	}
	json_object_set_new(j, "timing", grammar_to_json(grammar_timing, &c->timing));
	json_object_set_new(j, "checks", grammar_to_json(grammar_checks, &c->checks));
	if (c->n_tags)
		put_words(j, "tags", c->tag, c->n_tags);
	return j;
}

static json_t *table_json(const struct table *t)
{
	json_t *j = json_object(), *rows = json_array();
	put_words(j, "key", t->key, t->n_keys);
	json_object_set_new(j, "lookup", json_string(table_lookup_names[t->lookup]));
	for (int i = 0; i < t->n_rows; i++) {
		const struct table_row *r = &t->row[i];
		json_t *row = json_object();
		if (r->kernel)
			json_object_set_new(row, "kernel", json_string(r->kernel));
		for (int k = 0; k < t->n_keys && !r->is_default; k++)
			json_object_set_new(row, t->key[k], number_json(&r->key[k]));
		json_object_set_new(row, "arm", json_string(r->arm));
		json_array_append_new(rows, row);
	}
	json_object_set_new(j, "rows", rows);
	return j;
}

static json_t *tables_json(const struct suite *s, struct arena *a)
{
	json_t *j = json_object();
	for (int i = 0; i < s->n_table_sets; i++) {
		json_t *list = json_array();
		for (int k = 0; k < s->table_set[i].n; k++) {
			const struct table_choice *c = &s->table_set[i].choice[k];
			json_array_append_new(list, json_pack("{s:o,s:o}", "match", selector_json(a, &c->match),
							      "table", table_json(c->table)));
		}
		json_object_set_new(j, s->table_set[i].name, list);
	}
	return j;
}

static json_t *rules_json(const struct suite *s, struct arena *a, json_t *out)
{
	json_t *margins = json_array(), *waivers = json_array(), *rigs = json_array();
	for (int i = 0; i < s->n_margins; i++) {
		const struct margin *m = &s->margin[i];
		json_t *j =
			json_pack("{s:o,s:o}", "match", selector_json(a, &m->match), "fail", grammar_percent(m->fail));
		if (m->has_warn)
			json_object_set_new(j, "warn", grammar_percent(m->warn));
		if (m->floor_ns)
			json_object_set_new(j, "floor", grammar_time(m->floor_ns));
		json_array_append_new(margins, j);
	}
	for (int i = 0; i < s->n_waivers; i++) {
		const struct waiver *w = &s->waiver[i];
		json_t *j = json_pack("{s:s,s:o,s:s,s:s}", "id", w->id, "match", selector_json(a, &w->match), "expect",
				      w->expect, "reason", w->reason);
		if (*w->until)
			json_object_set_new(j, "until", json_string(w->until));
		json_array_append_new(waivers, j);
	}
	for (int i = 0; i < s->n_rigs; i++)
		json_array_append_new(rigs, json_pack("{s:o,s:s}", "match", selector_json(a, &s->rig[i].match),
						      "timing", s->rig[i].gate ? "gate" : "diagnostic"));
	json_object_set_new(out, "margins", margins);
	json_object_set_new(out, "waivers", waivers);
	json_object_set_new(out, "rigs", rigs);
	return out;
}

/* Blocks that are declared, and the built-in ones that cases fell back to. */
static json_t *geometries_json(const struct suite_full *f)
{
	json_t *j = json_object();
	for (int i = 0; i < f->n_geometries; i++)
		json_object_set_new(j, f->geometry[i]->name, geometry_json(f->geometry[i]));
	for (int c = 0; c < f->s.n_cases; c++)
		for (int i = 0; i < f->s.cases[c].n_geometries; i++) {
			const struct geometry *g = f->s.cases[c].geometry[i];
			if (!json_object_get(j, g->name))
				json_object_set_new(j, g->name, geometry_json(g));
		}
	return j;
}

static json_t *distributions_json(const struct suite_full *f)
{
	json_t *j = json_object();
	for (int i = 0; i < f->n_distributions; i++)
		json_object_set_new(j, f->distribution[i]->name, distribution_json(f->distribution[i]));
	for (int c = 0; c < f->s.n_cases; c++)
		for (int i = 0; i < f->s.cases[c].n_data; i++) {
			const struct distribution *d = f->s.cases[c].data[i];
			if (!json_object_get(j, d->name))
				json_object_set_new(j, d->name, distribution_json(d));
		}
	return j;
}

json_t *suite_to_json(const struct suite *s)
{
	const struct suite_full *f = (const struct suite_full *)(const void *)s;
	struct arena *a = arena_create();
	json_t *j = json_pack("{s:i,s:s}", "assay", 1, "suite", s->name), *cases = json_array();
	if (s->about)
		json_object_set_new(j, "about", json_string(s->about));
	json_object_set_new(j, "geometries", geometries_json(f));
	json_object_set_new(j, "distributions", distributions_json(f));
	json_object_set_new(j, "tables", tables_json(s, a));
	for (int i = 0; i < s->n_cases; i++)
		json_array_append_new(cases, case_json(a, &s->cases[i]));
	json_object_set_new(j, "cases", cases);
	rules_json(s, a, j);
	json_object_set_new(j, "max_cells", json_integer(s->max_cells));
	arena_destroy(a);
	return j;
}
