/* explain_cell: what `assay explain` prints of one cell. */
#include "explain_cell.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar.h"
#include "text_parts.h"
#include "verdict.h"

enum { NAME = 24, VALUE = 34, WIDTH = 100 };

/* ---- lines --------------------------------------------------------------------------------------------------------- */

static void place_text(char *buf, size_t cap, const char *layer, const struct mark *m)
{
	if (m->file && !*layer)
		snprintf(buf, cap, "%s:%d", m->file, m->line);
	else if (m->file && m->line > 0 && strncmp(m->file, "--set", 5) != 0) /* of --set a line says nothing */
		snprintf(buf, cap, "%s  %s:%d", layer, m->file, m->line);
	else if (m->file)
		snprintf(buf, cap, "%s  %s", layer, m->file);
	else
		snprintf(buf, cap, "%s", layer);
}

/* name, value, who set it and where; two lines where the value is long. */
static void line(int indent, const char *name, const char *value, const char *layer, struct mark at)
{
	char place[400];
	place_text(place, sizeof place, layer, &at);
	int col = printf("%*s%-*s ", indent, "", NAME - indent, name), wide = text_columns(value),
	    at_place = NAME + VALUE + 2;
	/* Names are bytes to printf and columns here; what is wider than the page goes on below itself. */
	if (col + wide > WIDTH)
		text_wrap(stdout, NAME + 1, WIDTH, value);
	else
		fputs(value, stdout);
	col += wide;
	if (at_place + text_columns(place) > WIDTH)
		at_place = WIDTH - text_columns(place) > NAME + 1 ? WIDTH - text_columns(place) : NAME + 1;
	if (*place && col + 1 > at_place)
		printf("\n%*s", at_place, "");
	else if (*place)
		printf("%*s", at_place - col, "");
	puts(place);
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

const struct suite_case *explain_case_of(const struct suite *s, const struct cell *c)
{
	for (int i = 0; i < s->n_cases; i++)
		if (strcmp(s->cases[i].id, c->case_id) == 0)
			return &s->cases[i];
	return NULL;
}

const struct geometry *explain_geometry_of(const struct suite_case *sc, const struct cell *c)
{
	for (int i = 0; i < sc->n_geometries; i++)
		if (strcmp(sc->geometry[i]->name, c->geometry) == 0)
			return sc->geometry[i];
	return NULL;
}

struct provenance explain_axis_of(const struct suite *s, const struct suite_case *sc, const struct named_number *axis)
{
	struct provenance p = {.layer = "axis", .mark = axis->mark};
	suite_provenance(s, sc, axis->name, &p);
	if (!p.layer || strcmp(p.layer, "case") == 0)
		p.layer = "axis";
	return p;
}

struct provenance explain_param_of(const struct suite_case *sc, const struct cell *c, const char *name)
{
	const struct geometry *geo = explain_geometry_of(sc, c);
	for (int k = 0; geo && k < geo->n_params; k++)
		if (strcmp(geo->param[k].name, name) == 0)
			return (struct provenance){.layer = "geometry", .mark = geo->param[k].mark};
	return (struct provenance){.layer = "the kernel's default"};
}

struct mark explain_arm_mark(const struct suite_case *sc, const struct cell_arm *a)
{
	struct mark at = {0};
	for (int k = 0; k < sc->n_arms; k++)
		if (sc->arm[k].name && strcmp(sc->arm[k].name, a->name) == 0)
			at = sc->arm[k].mark;
	return at;
}

struct mark explain_waiver_mark(const struct suite *s, const char *id)
{
	for (int i = 0; id && i < s->n_waivers; i++)
		if (strcmp(s->waiver[i].id, id) == 0)
			return s->waiver[i].mark;
	return (struct mark){0};
}

static void print_axes(const struct suite *s, const struct suite_case *sc, const struct cell *c)
{
	for (int i = 0; i < c->n_axes; i++) {
		char text[PLAN_NUMBER_MAX], value[160];
		const struct provenance p = explain_axis_of(s, sc, &c->axis[i]);
		bool known = registry_param(c->kernel, c->axis[i].name) >= 0;
		snprintf(value, sizeof value, "%s%s", plan_number_text(&c->axis[i].value, text),
			 known ? "" : "  (the kernel ignores it)");
		line(2, c->axis[i].name, value, p.layer, p.mark);
	}
}

static void print_params(const struct suite_case *sc, const struct cell *c)
{
	for (int i = 0; i < c->kernel->n_params; i++) {
		const struct assay_param *p = &c->kernel->params[i];
		bool axis = false;
		for (int x = 0; x < c->n_axes; x++)
			axis |= strcmp(c->axis[x].name, p->name) == 0;
		if (axis)
			continue;
		bool whole = p->type == ASSAY_INT;
		struct number n = {.is_int = whole,
				   .i = whole ? c->point.v[i].i : 0,
				   .d = whole ? (double)c->point.v[i].i : c->point.v[i].d};
		char text[PLAN_NUMBER_MAX];
		const struct provenance from = explain_param_of(sc, c, p->name);
		line(2, p->name, plan_number_text(&n, text), from.layer, from.mark);
	}
}

static void print_arms(const struct suite_case *sc, const struct cell *c)
{
	static const char *const roles[] = {"shipped", "candidate", "headroom", "null"};
	for (int i = 0; i < c->n_arms; i++) {
		const struct cell_arm *a = &c->arm[i];
		char value[300], own[80] = "";
		const struct mark at = explain_arm_mark(sc, a);
		if (strncmp(a->name, a->desc->name, strlen(a->desc->name)) != 0)
			snprintf(own, sizeof own, " is %s", a->desc->name);
		snprintf(value, sizeof value, "%s%s%s%s%s", roles[a->role], own, a->graph ? ", graph" : "",
			 a->unsupported ? ", cannot run here: " : "", a->unsupported ? a->unsupported : "");
		line(2, a->name, value, at.file ? "arms" : "built-in", at);
		for (int e = 0; e < a->n_env; e++)
			printf("%*s%s=%s\n", NAME + 1, "", a->env[e].name,
			       a->env[e].value ? a->env[e].value : "(unset)");
	}
}

struct provenance explain_layer_of(const struct suite *s, const struct suite_case *sc, const char *path)
{
	char up[256];
	struct provenance p;
	snprintf(up, sizeof up, "%s", path);
	for (;;) {
		if (suite_provenance(s, sc, up, &p))
			return p;
		char *dot = strrchr(up, '.');
		if (!dot)
			return (struct provenance){.layer = "built-in"};
		*dot = 0;
	}
}

/* A value without the quotes and brackets of JSON. Owned by the caller. */
static char *value_text(const json_t *v)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		abort();
	size_t items = json_is_array(v) ? json_array_size(v) : 1;
	for (size_t i = 0; i < items; i++) {
		const json_t *item = json_is_array(v) ? json_array_get(v, i) : v;
		char *number = json_is_string(item) ? NULL : verdict_line(item);
		fprintf(f, "%s%s", i ? ", " : "",
			number                 ? number
			: json_is_string(item) ? json_string_value(item)
					       : "?");
		free(number);
	}
	fclose(f);
	return text;
}

static void print_settings(const struct suite *s, const struct suite_case *sc, const char *path, const json_t *j,
			   int indent)
{
	const char *key;
	json_t *v;
	json_object_foreach((json_t *)(uintptr_t)j, key, v)
	{
		char below[256];
		if (snprintf(below, sizeof below, "%s.%s", path, key) >= (int)sizeof below)
			continue; /* no path of the grammar is as long */
		if (json_is_object(v)) {
			if (!json_object_size(v)) {
				struct provenance p = explain_layer_of(s, sc, below);
				line(indent, key, "on", p.layer, p.mark);
			} else {
				printf("%*s%s\n", indent, "", key);
				print_settings(s, sc, below, v, indent + 2);
			}
			continue;
		}
		struct provenance p = explain_layer_of(s, sc, below);
		char *text = value_text(v);
		line(indent, key, text, p.layer, p.mark);
		free(text);
	}
}

static void print_promise(const struct promise *p)
{
	static const char *const signs[] = {"", "positive", "negative", "both"};
	for (int t = 0; t < 32; t++) {
		if (p->finite_as & 1u << t)
			printf("  promise: finite as %s\n", registry_dtype_name((enum assay_dtype)t));
		if (p->no_denormals_as & 1u << t)
			printf("  promise: no denormals as %s\n", registry_dtype_name((enum assay_dtype)t));
	}
	if (p->sign > 0 && p->sign < 4)
		printf("  promise: sign %s\n", signs[p->sign]);
	if (p->has_range)
		printf("  promise: range %.10g..%.10g\n", p->range[0], p->range[1]);
}

static void print_verdict_rules(const struct suite *s, const struct cell *c)
{
	char text[200];
	static const struct mark nowhere = {0};
	if (c->selection == SELECT_NONE)
		line(0, "serving", "no regression check", "", nowhere);
	else
		snprintf(text, sizeof text, "%s%s", c->selected,
			 c->selection == SELECT_NOT_TIMED ? "  (not timed: fails as a regression)" : "");
	if (c->selection != SELECT_NONE)
		line(0, "serving", text, c->selected_row.file ? "table row" : "by name", c->selected_row);
	int n = snprintf(text, sizeof text, "fail %.6g %%", 100 * c->margin_fail);
	if (c->margin_warn >= 0)
		n += snprintf(text + n, sizeof text - (size_t)n, ", warn %.6g %%", 100 * c->margin_warn);
	if (c->margin_floor_ns)
		snprintf(text + n, sizeof text - (size_t)n, ", floor %" PRId64 " ns", c->margin_floor_ns);
	line(0, "margin", text, c->margin_mark.file ? "margins" : "built-in", c->margin_mark);
	line(0, "timing is", c->gate ? "a gate" : "a diagnostic",
	     c->rig_mark.file ? "rigs"
	     : s->n_rigs      ? "no rig fits"
			      : "built-in",
	     c->rig_mark);
	if (!c->waiver) {
		line(0, "waiver", "none", "", nowhere);
		return;
	}
	snprintf(text, sizeof text, "%s expects %s%s%s%s%s: %s", c->waiver, c->waiver_expect,
		 c->waiver_arm ? " of " : "", c->waiver_arm ? c->waiver_arm : "",
		 c->waiver_until && *c->waiver_until ? " until " : "", c->waiver_until ? c->waiver_until : "",
		 c->waiver_reason);
	line(0, "waiver", text, "waivers", explain_waiver_mark(s, c->waiver));
}

void explain_cell(const struct plan *p, const struct registry *r, const struct target *t, const struct cell *c)
{
	const struct suite *s = plan_suite(p);
	const struct suite_case *sc = explain_case_of(s, c);
	const struct geometry *geo = explain_geometry_of(sc, c);
	const char *origin = registry_origin(r, c->kernel);
	char text[300];
	static const struct mark nowhere = {0};
	puts(c->id);
	snprintf(text, sizeof text, "%" PRId64, c->plan_index);
	line(0, "plan index", text, "", nowhere);
	snprintf(text, sizeof text, "%s %s%s", t->backend, t->peek.name, t->elsewhere ? ", which is not here" : "");
	line(0, "where", text, "", nowhere);
	if (c->skip)
		line(0, "skipped", c->skip, "", nowhere);
	line(0, "case", c->case_id, "", sc->mark);
	line(0, "kernel", c->kernel_name, origin ? origin : "", nowhere);
	line(0, "geometry", c->geometry, "", geo ? geo->mark : nowhere);
	if (!isnan(c->weight)) {
		snprintf(text, sizeof text, "%.10g", c->weight);
		line(0, "weight", text, "geometry", geo ? geo->mark : nowhere);
	}
	struct provenance data = explain_layer_of(s, sc, "data"), seed = explain_layer_of(s, sc, "seed");
	line(0, "data", c->data, data.layer, data.mark);
	print_promise(&c->dist.promise);
	snprintf(text, sizeof text, "0x%" PRIx64, c->seed);
	line(0, "seed", text, seed.layer, seed.mark);
	puts("\nparameters");
	print_axes(s, sc, c);
	print_params(sc, c);
	puts("\narms");
	print_arms(sc, c);
	json_t *timing = grammar_to_json(grammar_timing, &c->timing),
	       *checks = grammar_to_json(grammar_checks, &c->checks);
	puts("\ntiming");
	print_settings(s, sc, "timing", timing, 2);
	puts("\nchecks");
	print_settings(s, sc, "checks", checks, 2);
	json_decref(timing);
	json_decref(checks);
	putchar('\n');
	print_verdict_rules(s, c);
}
