#include "rejudge_set.h"

#include <string.h>

#include "grammar.h"
#include "record_parts.h"
#include "set_value.h"
#include "settings.h"
#include "yaml_scalar.h"

/* The parts of a margin: their names here, in a suite, in a record. */
static const struct {
	const char *name, *row, *key;
} margin_part[] = {{"margin", "fail", "margin"},
		   {"warn", "warn", "margin_warn"},
		   {"floor", "floor", "margin_floor_ns"}};
enum { MARGIN_PARTS = sizeof margin_part / sizeof *margin_part };

/* The settings of `timing` that judging reads; the rest of them is about measuring, which is over. */
static const char *const timing_part[] = {"estimator", "alpha", "rounds", "min_rounds", "max_rounds", "confirm", "tau"};
enum { TIMING_PARTS = sizeof timing_part / sizeof *timing_part };

/* One --set as it was read. */
struct setting {
	const char *key; /* in the record */
	bool in_judge; /* of the cell's "judge", not of the cell */
	struct mark at;
	json_t *value;
};

static json_t *margin_value(int part, const struct yaml_node *v)
{
	double x = 0;
	int64_t ns = 0;
	if (strcmp(margin_part[part].name, "floor") == 0) {
		scalar_time(v->text, &ns, NULL);
		return json_integer(ns);
	}
	scalar_percent(v->text, &x, NULL);
	return json_real(1 + x);
}

static bool margin_read(int part, struct yaml_node *v, struct setting *out, struct diags *d)
{
	const struct slot *rows = grammar_find(grammar_suite, "margins")->item->sub;
	out->key = margin_part[part].key;
	out->at = v->mark;
	/* A suite leaves the level out; over a level that is there, it takes a word. */
	if (strcmp(margin_part[part].name, "warn") == 0 && v->kind == YAML_TREE_SCALAR &&
	    strcmp(v->text, "none") == 0) {
		out->value = json_null();
		return true;
	}
	if (!grammar_check_value(grammar_find(rows, margin_part[part].row), v, d))
		return false;
	out->value = margin_value(part, v);
	return true;
}

static bool timing_read(struct arena *a, const char *key, struct yaml_node *v, struct setting *out, struct diags *d)
{
	struct yaml_node name = {.kind = YAML_TREE_SCALAR, .text = key, .mark = v->mark}, *keys[] = {&name},
			 *items[] = {v};
	const struct yaml_node map = {.kind = YAML_TREE_MAP, .mark = v->mark, .n = 1, .key = keys, .item = items};
	if (!grammar_check_value(grammar_find(grammar_timing, key), v, d))
		return false;
	struct timing t = {0};
	grammar_apply(grammar_timing, a, &map, &t, NULL, NULL);
	json_t *judge = record_judge_settings(&t);
	*out = (struct setting){key, true, v->mark, json_incref(json_object_get(judge, key))};
	json_decref(judge);
	return true;
}

static bool set_read(struct arena *a, const char *text, struct setting *out, struct diags *d)
{
	const char *file = arena_printf(a, "--set '%s'", text), *eq = strchr(text, '=');
	struct mark at = {file, 1, 1, (int)(eq ? eq - text : (long)strlen(text))};
	diag_source(d, file, text, strlen(text));
	if (!eq || eq == text || !eq[1]) {
		diag_add(d, DIAG_ERROR, at, "not NAME=VALUE");
		diag_note(d, (struct mark){0}, "as in --set margin=3%%");
		return false;
	}
	/* As a suite's path, too. */
	const char *name = arena_strndup(a, text, (size_t)(eq - text));
	const bool path = strncmp(name, "timing.", 7) == 0;
	const char *known[MARGIN_PARTS + TIMING_PARTS];
	int n = 0;
	for (int i = 0; i < MARGIN_PARTS; i++)
		known[n++] = margin_part[i].name;
	for (int i = 0; i < TIMING_PARTS; i++)
		known[n++] = timing_part[i];
	name += path ? 7 : 0;
	for (int i = path ? MARGIN_PARTS : 0; i < n; i++) {
		if (strcmp(name, known[i]) != 0)
			continue;
		struct yaml_node *v = set_value(a, file, text, d);
		return v && (i < MARGIN_PARTS ? margin_read(i, v, out, d) : timing_read(a, name, v, out, d));
	}
	if (grammar_find(grammar_timing, name)) {
		diag_add(d, DIAG_ERROR, at, "'%s' is about measuring, which is over", name);
		diag_note(d, (struct mark){0}, "assay run SUITE --set timing.%s measures anew", text + (path ? 7 : 0));
		return false;
	}
	grammar_unknown(d, at, "setting of the judge", name, known, n);
	return false;
}

/* What a suite may not say of two settings together, a cell may not either; said once, of the setting that was given. */
static bool fit(const struct setting *s, const json_t *cell, struct diags *d)
{
	const json_t *judge = json_object_get(cell, "judge");
	const double least = record_number(judge, "min_rounds", 0), most = record_number(judge, "max_rounds", least);
	const double fail = record_number(cell, "margin", 0), warn = record_number(cell, "margin_warn", 0);
	const char *id = record_text(cell, "id");
	if ((strcmp(s->key, "min_rounds") == 0 || strcmp(s->key, "max_rounds") == 0) && least > most)
		return diag_add(d, DIAG_ERROR, s->at, "min_rounds %g is above max_rounds %g in %s", least, most, id);
	if ((strcmp(s->key, "margin") == 0 || strcmp(s->key, "margin_warn") == 0) && fail > 0 && warn > fail) {
		diag_add(d, DIAG_ERROR, s->at, "the warn level %.4g%% is above the fail level %.4g%% in %s",
			 (warn - 1) * 100, (fail - 1) * 100, id);
		diag_note(d, (struct mark){0}, "--set warn=none takes the level away");
		return false;
	}
	return true;
}

bool rejudge_set(const char *const *set, int n_set, json_t **cell, size_t n, struct diags *d)
{
	struct arena *a = arena_create();
	struct setting *s = arena_array(a, (size_t)n_set + 1, sizeof *s);
	bool ok = true;
	for (int i = 0; i < n_set; i++)
		ok = set_read(a, set[i], &s[i], d) && ok;
	for (size_t k = 0; ok && k < n; k++)
		for (int i = 0; i < n_set; i++) {
			json_t *to = s[i].in_judge ? json_object_get(cell[k], "judge") : cell[k];
			if (json_is_object(to))
				json_object_set(to, s[i].key, s[i].value);
		}
	for (size_t k = 0; ok && k < n; k++)
		for (int i = 0; ok && i < n_set; i++)
			ok = fit(&s[i], cell[k], d);
	for (int i = 0; i < n_set; i++)
		json_decref(s[i].value);
	arena_destroy(a);
	return ok;
}
