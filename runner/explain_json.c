/* explain_json: what `assay explain --json` prints: an object a cell; every value with the layer that set it and its line. */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "explain_cell.h"
#include "grammar.h"
#include "record_parts.h"

/* "suite.yaml:12"; null where nothing wrote it down. */
static json_t *place(const struct mark *m)
{
	if (!m->file)
		return json_null();
	return m->line > 0 && strncmp(m->file, "--set", 5) != 0 ? json_sprintf("%s:%d", m->file, m->line)
								: json_string(m->file);
}

/* Takes value. */
static json_t *said(json_t *value, const char *layer, const struct mark *at)
{
	return json_pack("{s:o, s:s, s:o}", "value", value, "set_by", layer, "at", place(at));
}

static json_t *number(const struct number *n)
{
	return n->is_int ? json_integer(n->i) : json_real(n->d);
}

static json_t *parameters(const struct suite *s, const struct suite_case *sc, const struct cell *c)
{
	json_t *o = json_object();
	for (int i = 0; i < c->n_axes; i++) {
		const struct provenance p = explain_axis_of(s, sc, &c->axis[i]);
		json_t *one = said(number(&c->axis[i].value), p.layer, &p.mark);
		json_object_set_new(one, "ignored", json_boolean(registry_param(c->kernel, c->axis[i].name) < 0));
		json_object_set_new(o, c->axis[i].name, one);
	}
	for (int i = 0; i < c->kernel->n_params; i++) {
		const struct assay_param *x = &c->kernel->params[i];
		if (json_object_get(o, x->name))
			continue;
		const struct provenance p = explain_param_of(sc, c, x->name);
		json_t *value = x->type == ASSAY_INT ? json_integer(c->point.v[i].i) : record_real(c->point.v[i].d);
		json_t *one = said(value, p.layer, &p.mark);
		json_object_set_new(one, "ignored", json_false());
		json_object_set_new(o, x->name, one);
	}
	return o;
}

/* The kernel's name of an arm, with its argument: "split=2". */
static const char *kernel_name(const struct suite_case *sc, const struct cell_arm *a)
{
	for (int k = 0; k < sc->n_arms; k++)
		if (sc->arm[k].name && strcmp(sc->arm[k].name, a->name) == 0)
			return sc->arm[k].arm;
	return a->desc->name;
}

static json_t *dtypes(uint32_t bits)
{
	json_t *list = json_array();
	for (int t = 0; t < 32; t++)
		if (bits >> t & 1)
			json_array_append_new(list, json_string(registry_dtype_name((enum assay_dtype)t)));
	return list;
}

static json_t *promise(const struct promise *p)
{
	static const char *const signs[] = {NULL, "positive", "negative", "both"};
	json_t *range =
		p->has_range ? json_pack("[o, o]", record_real(p->range[0]), record_real(p->range[1])) : json_null();
	return json_pack("{s:o, s:o, s:o, s:o}", "finite_as", dtypes(p->finite_as), "no_denormals_as",
			 dtypes(p->no_denormals_as), "sign",
			 record_text_or_null(p->sign > 0 && p->sign < 4 ? signs[p->sign] : NULL), "range", range);
}

static json_t *arms(const struct suite_case *sc, const struct cell *c)
{
	static const char *const roles[] = {"shipped", "candidate", "headroom", "null"};
	json_t *list = json_array();
	for (int i = 0; i < c->n_arms; i++) {
		const struct cell_arm *a = &c->arm[i];
		const struct mark at = explain_arm_mark(sc, a);
		json_t *env = json_object();
		for (int e = 0; e < a->n_env; e++)
			json_object_set_new(env, a->env[e].name, record_text_or_null(a->env[e].value));
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:b, s:o, s:o, s:s, s:o}", "name", a->name, "role",
						roles[a->role], "arm", kernel_name(sc, a), "graph", a->graph, "env",
						env, "unsupported", record_text_or_null(a->unsupported), "set_by",
						at.file ? "arms" : "built-in", "at", place(&at)));
	}
	return list;
}

/* The settings below a path, flat: "timing.budget.cell". */
static void settings(const struct suite *s, const struct suite_case *sc, const char *path, json_t *from, json_t *out)
{
	const char *key;
	json_t *v;
	json_object_foreach(from, key, v)
	{
		char below[256];
		if (snprintf(below, sizeof below, "%s.%s", path, key) >= (int)sizeof below)
			continue; /* no path of the grammar is as long */
		if (json_is_object(v) && json_object_size(v)) {
			settings(s, sc, below, v, out);
			continue;
		}
		const struct provenance p = explain_layer_of(s, sc, below);
		json_object_set_new(out, below,
				    said(json_is_object(v) ? json_true() : json_incref(v), p.layer, &p.mark));
	}
}

static json_t *all_settings(const struct suite *s, const struct suite_case *sc, const struct cell *c)
{
	json_t *o = json_object(), *timing = grammar_to_json(grammar_timing, &c->timing),
	       *checks = grammar_to_json(grammar_checks, &c->checks);
	settings(s, sc, "timing", timing, o);
	settings(s, sc, "checks", checks, o);
	json_decref(timing);
	json_decref(checks);
	return o;
}

static json_t *serving(const struct cell *c)
{
	if (c->selection == SELECT_NONE)
		return json_null();
	return json_pack("{s:s, s:b, s:s, s:o}", "arm", c->selected, "timed", c->selection == SELECT_ARM, "set_by",
			 c->selected_row.file ? "table row" : "by name", "at", place(&c->selected_row));
}

static json_t *waiver(const struct suite *s, const struct cell *c)
{
	const struct mark at = explain_waiver_mark(s, c->waiver);
	if (!c->waiver)
		return json_null();
	return json_pack("{s:s, s:s, s:o, s:o, s:s, s:o}", "id", c->waiver, "expect", c->waiver_expect, "arm",
			 record_text_or_null(c->waiver_arm), "until", record_text_or_null(c->waiver_until), "reason",
			 c->waiver_reason, "at", place(&at));
}

json_t *explain_json(const struct plan *p, const struct registry *r, const struct target *t, const struct cell *c,
		     const char *rerun)
{
	const struct suite *s = plan_suite(p);
	const struct suite_case *sc = explain_case_of(s, c);
	const struct geometry *geo = explain_geometry_of(sc, c);
	const struct provenance data = explain_layer_of(s, sc, "data"), seed = explain_layer_of(s, sc, "seed");
	const struct mark at_geo = geo ? geo->mark : (struct mark){0};
	char hex[24];
	snprintf(hex, sizeof hex, "0x%" PRIx64, c->seed);
	json_t *margin = json_pack("{s:o, s:o, s:I, s:s, s:o}", "fail", record_real(c->margin_fail), "warn",
				   c->margin_warn >= 0 ? record_real(c->margin_warn) : json_null(), "floor_ns",
				   (json_int_t)c->margin_floor_ns, "set_by",
				   c->margin_mark.file ? "margins" : "built-in", "at", place(&c->margin_mark));
	json_t *j = json_object();
	json_object_set_new(j, "kind", json_string("explain"));
	json_object_set_new(j, "format", json_integer(1));
	json_object_set_new(j, "id", json_string(c->id));
	json_object_set_new(j, "plan_index", json_integer(c->plan_index));
	json_object_set_new(j, "suite", json_string(s->name));
	json_object_set_new(j, "suite_path", json_string(s->path));
	json_object_set_new(j, "backend", json_string(t->backend));
	json_object_set_new(j, "device", json_string(t->peek.name));
	json_object_set_new(j, "skip", record_text_or_null(c->skip));
	json_object_set_new(j, "case", said(json_string(c->case_id), "case", &sc->mark));
	json_object_set_new(j, "kernel", json_string(c->kernel_name));
	json_object_set_new(j, "plugin", record_text_or_null(registry_origin(r, c->kernel)));
	json_object_set_new(j, "geometry", said(json_string(c->geometry), geo ? "geometries" : "built-in", &at_geo));
	json_object_set_new(j, "weight", record_real(c->weight));
	json_object_set_new(j, "data", said(json_string(c->data), data.layer, &data.mark));
	json_object_set_new(j, "promise", promise(&c->dist.promise));
	json_object_set_new(j, "seed", said(json_string(hex), seed.layer, &seed.mark));
	json_object_set_new(j, "parameters", parameters(s, sc, c));
	json_object_set_new(j, "arms", arms(sc, c));
	json_object_set_new(j, "settings", all_settings(s, sc, c));
	json_object_set_new(j, "serving", serving(c));
	json_object_set_new(j, "margin", margin);
	json_object_set_new(j, "gating",
			    said(json_boolean(c->gate),
				 c->rig_mark.file ? "rigs"
				 : s->n_rigs      ? "no rig fits"
						  : "built-in",
				 &c->rig_mark));
	json_object_set_new(j, "waiver", waiver(s, c));
	json_object_set_new(j, "rerun", json_string(rerun));
	return j;
}
