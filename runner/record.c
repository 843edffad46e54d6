#include "record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "record_parts.h"
#include "shell_words.h"

static const char *const status_names[ST_N] = {
	[ST_ERROR] = "error",
	[ST_TIMEOUT] = "timeout",
	[ST_INVALID_DATA] = "invalid",
	[ST_WRONG] = "wrong",
	[ST_MISMATCH] = "mismatch",
	[ST_INVALID] = "invalid",
	[ST_REGRESSION] = "regression",
	[ST_INCONCLUSIVE] = "inconclusive",
	[ST_PASS] = "pass",
	[ST_SKIP] = "skip",
	[ST_XFAIL] = "xfail",
	[ST_XPASS] = "xpass",
};

const char *status_name(enum cell_status s)
{
	return s >= 0 && s < ST_N ? status_names[s] : "error";
}

enum cell_status status_of(const char *name)
{
	if (!name)
		return ST_N;
	if (strcmp(name, "invalid") == 0)
		return ST_INVALID;
	for (int s = 0; s < ST_N; s++)
		if (strcmp(name, status_names[s]) == 0)
			return (enum cell_status)s;
	return ST_N;
}

/* ---- small readers and writers -------------------------------------------------------------------------------------- */

json_t *record_real(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

const char *record_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

double record_number(const json_t *object, const char *key, double otherwise)
{
	const json_t *j = json_object_get(object, key);
	return json_is_number(j) ? json_number_value(j) : otherwise;
}

bool record_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

json_t *record_text_or_null(const char *s)
{
	json_t *j = s && s[0] ? json_string(s) : NULL;
	return j ? j : json_null();
}

static json_t *place_or_null(const struct mark *m)
{
	return m->file ? json_sprintf("%s:%d", m->file, m->line) : json_null();
}

static json_t *place_or_built_in(const struct mark *m)
{
	return m->file ? json_sprintf("%s:%d", m->file, m->line) : json_string("built-in");
}

/* ---- a cell before anything ran ------------------------------------------------------------------------------------- */

static json_t *number_json(const struct number *x)
{
	return x->is_int ? json_integer(x->i) : record_real(x->d);
}

static json_t *point_json(const struct cell *c)
{
	json_t *o = json_object();
	for (int i = 0; i < c->n_axes; i++)
		json_object_set_new(o, c->axis[i].name, number_json(&c->axis[i].value));
	return o;
}

static json_t *params_json(const struct cell *c)
{
	json_t *o = json_object();
	for (int i = 0; c->kernel && i < c->kernel->n_params; i++) {
		const union assay_value *v = &c->point.v[i];
		bool whole = c->kernel->params[i].type == ASSAY_INT;
		json_object_set_new(o, c->kernel->params[i].name, whole ? json_integer(v->i) : record_real(v->d));
	}
	return o;
}

static json_t *seed_json(uint64_t seed)
{
	/* JSON integers are signed here; a larger seed is text rather than another number. */
	return seed <= INT64_MAX ? json_integer((json_int_t)seed) : json_sprintf("%" PRIu64, seed);
}

static json_t *waiver_json(const struct cell *c)
{
	if (!c->waiver)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "id", json_string(c->waiver));
	json_object_set_new(o, "expect", record_text_or_null(c->waiver_expect));
	if (c->waiver_arm)
		json_object_set_new(o, "arm", json_string(c->waiver_arm));
	json_object_set_new(o, "reason", record_text_or_null(c->waiver_reason));
	json_object_set_new(o, "until", record_text_or_null(c->waiver_until));
	return o;
}

json_t *record_judge_settings(const struct timing *t)
{
	static const char *const estimators[] = {[EST_PAIRED] = "paired", [EST_MEAN] = "mean", [EST_MEDIAN] = "median"};
	json_t *o = json_object();
	json_object_set_new(o, "estimator", json_string(estimators[t->estimator]));
	json_object_set_new(o, "alpha", record_real(t->alpha));
	json_object_set_new(o, "rounds", json_integer(t->rounds));
	json_object_set_new(o, "min_rounds", json_integer(t->min_rounds));
	json_object_set_new(o, "max_rounds", json_integer(t->max_rounds));
	json_object_set_new(o, "confirm", json_string(t->confirm == CONFIRM_NONE ? "none" : "fresh"));
	json_object_set_new(o, "tau", t->tau >= 0 ? record_real(t->tau) : json_null());
	return o;
}

static json_t *ratio_json(const struct checks *k)
{
	if (!(k->on & (1u << CHECK_RATIO)))
		return json_null();
	const struct check_ratio *r = &k->ratio;
	json_t *o = json_object();
	json_object_set_new(o, "of", record_text_or_null(r->of));
	json_object_set_new(o, "over", record_text_or_null(r->over));
	json_object_set_new(o, "geomean", json_boolean(r->geomean));
	json_object_set_new(o, "weighted", json_boolean(r->weighted));
	json_object_set_new(o, "agree_tolerance", r->agree_over_data ? record_real(r->agree_tolerance) : json_null());
	json_t *may = json_array();
	for (int i = 0; i < MAX_LIST && r->may_differ[i]; i++)
		json_array_append_new(may, json_string(r->may_differ[i]));
	json_object_set_new(o, "may_differ", may);
	json_object_set_new(o, "equal_issue_interval",
			    r->equal_issue_interval >= 0 ? record_real(r->equal_issue_interval) : json_null());
	json_object_set_new(o, "bar_at_least", r->has_bar ? record_real(r->bar_at_least) : json_null());
	return o;
}

static void put_shortest(FILE *f, const char *name, double x)
{
	char buf[40];
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(buf, sizeof buf, "%.*g", digits, x);
		if (strtod(buf, NULL) == x)
			break;
	}
	fprintf(f, ",%s=%s", name, buf);
}

static json_t *rerun_json(const struct cell *c)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		return json_null();
	const char *path = c->suite_path ? c->suite_path : "";
	fprintf(f, "assay %s ", c->rerun_as ? c->rerun_as : "run");
	shell_put(f, path);
	fputs(c->set_words ? c->set_words : "", f);
	fputs(" --filter ", f);
	char *filter = NULL;
	size_t m = 0;
	FILE *g = open_memstream(&filter, &m);
	if (g) {
		fprintf(g, "case=%s,kernel=%s,geometry=%s,data=%s", c->case_id, c->kernel_name, c->geometry, c->data);
		for (int i = 0; i < c->n_axes; i++)
			if (c->axis[i].value.is_int)
				fprintf(g, ",%s=%" PRId64, c->axis[i].name, c->axis[i].value.i);
			else
				put_shortest(g, c->axis[i].name, c->axis[i].value.d);
		fclose(g);
	}
	shell_put_quoted(f, filter);
	fclose(f);
	json_t *j = record_text_or_null(text);
	free(filter);
	free(text);
	return j;
}

static json_t *arm_json(const char *name, const char *role, const char *unsupported)
{
	json_t *o = json_object();
	json_object_set_new(o, "name", json_string(name));
	json_object_set_new(o, "role", json_string(role));
	json_object_set_new(o, "unsupported", record_text_or_null(unsupported));
	static const char *const later[] = {"out_sha256", "form", "artifact", "summary", "samples_ns"};
	for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
		json_object_set_new(o, later[i], json_null());
	return o;
}

static json_t *finding_json(const char *check, const char *arm, const char *status, const char *text)
{
	json_t *o = json_object();
	json_object_set_new(o, "check", json_string(check));
	json_object_set_new(o, "arm", record_text_or_null(arm));
	json_object_set_new(o, "status", json_string(status));
	json_object_set_new(o, "text", record_text_or_null(text));
	return o;
}

json_t *record_cell_begin(const struct cell *c)
{
	static const char *const roles[] = {[ROLE_SHIPPED] = "shipped",
					    [ROLE_CANDIDATE] = "candidate",
					    [ROLE_HEADROOM] = "headroom",
					    [ROLE_NULL] = "null"};
	static const char *const selections[] =
		{[SELECT_NONE] = "none", [SELECT_ARM] = "arm", [SELECT_NOT_TIMED] = "not_timed"};
	json_t *o = json_object();
	json_object_set_new(o, "kind", json_string("cell"));
	json_object_set_new(o, "id", json_string(c->id));
	json_object_set_new(o, "plan_index", json_integer(c->plan_index));
	json_object_set_new(o, "status", json_string(c->skip ? "skip" : "error"));
	json_object_set_new(o, "reason", json_string(c->skip ? c->skip : "never ran"));
	json_object_set_new(o, "suite", json_string(c->suite));
	json_object_set_new(o, "case", json_string(c->case_id));
	json_object_set_new(o, "kernel", json_string(c->kernel_name));
	json_object_set_new(o, "geometry", json_string(c->geometry));
	json_object_set_new(o, "data", json_string(c->data));
	json_object_set_new(o, "point", point_json(c));
	json_object_set_new(o, "params", params_json(c));
	json_object_set_new(o, "seed", seed_json(c->seed));
	json_object_set_new(o, "weight", record_real(c->weight));
	json_object_set_new(o, "selection", json_string(selections[c->selection]));
	json_object_set_new(o, "selected",
			    c->selection == SELECT_NONE ? json_null() : record_text_or_null(c->selected));
	json_object_set_new(o, "selected_row", place_or_null(&c->selected_row));
	json_object_set_new(o, "margin", record_real(1 + c->margin_fail));
	json_object_set_new(o, "margin_warn", c->margin_warn >= 0 ? record_real(1 + c->margin_warn) : json_null());
	json_object_set_new(o, "margin_floor_ns", json_integer(c->margin_floor_ns));
	json_object_set_new(o, "rule", place_or_built_in(&c->margin_mark));
	json_object_set_new(o, "gating", json_boolean(c->gate));
	json_object_set_new(o, "rig", place_or_built_in(&c->rig_mark));
	json_object_set_new(o, "waiver", waiver_json(c));
	json_object_set_new(o, "judge", record_judge_settings(&c->timing));
	json_object_set_new(o, "ratio_check", ratio_json(&c->checks));
	json_object_set_new(o, "attempt", json_integer(1));
	json_object_set_new(o, "rerun", rerun_json(c));
	json_object_set_new(o, "checks", json_array());
	if (c->skip)
		json_array_append_new(json_object_get(o, "checks"), finding_json("plan", NULL, "skip", c->skip));
	json_object_set_new(o, "data_audit", json_null());
	json_object_set_new(o, "work", json_null());
	json_object_set_new(o, "timing", json_null());
	json_object_set_new(o, "notes", json_array());
	json_t *arms = json_array();
	for (int i = 0; i < c->n_arms; i++)
		json_array_append_new(arms, arm_json(c->arm[i].name, roles[c->arm[i].role], c->arm[i].unsupported));
	json_object_set_new(o, "arms", arms);
	static const char *const later[] = {"measure", "device_state", "cost", "confirm", "repeats"};
	for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
		json_object_set_new(o, later[i], json_null());
	return o;
}

/* ---- facts ---------------------------------------------------------------------------------------------------------- */

/* Members of `from` that `to` has a place for, in the places they have there. */
static void take_known(json_t *to, json_t *from, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		json_t *j = json_object_get(from, keys[i]);
		if (j)
			json_object_set_new(to, keys[i], json_deep_copy(j));
	}
}

static void merge_arm(json_t *arms, json_t *fact)
{
	static const char *const keys[] = {"unsupported", "out_sha256", "form", "artifact", "samples_ns"};
	const char *name = record_text(fact, "name");
	if (!name)
		return;
	json_t *mine = NULL, *a;
	size_t i;
	json_array_foreach(arms, i, a) if (record_text(a, "name") && strcmp(record_text(a, "name"), name) == 0) mine =
		a;
	if (!mine) {
		const char *role = record_text(fact, "role");
		mine = arm_json(name, role ? role : strcmp(name, "null") == 0 ? "null" : "candidate", NULL);
		/* The null arm comes last. */
		size_t n = json_array_size(arms);
		const char *last = n ? record_text(json_array_get(arms, n - 1), "role") : NULL;
		json_array_insert_new(arms, last && strcmp(last, "null") == 0 ? n - 1 : n, mine);
	}
	take_known(mine, fact, keys, sizeof keys / sizeof keys[0]);
}

void record_merge_facts(json_t *cell, json_t *facts)
{
	static const char *const keys[] = {"checks",       "data_audit", "work",    "notes",   "measure",
					   "device_state", "cost",       "confirm", "repeats", "attempt"};
	if (!json_is_object(facts))
		return;
	take_known(cell, facts, keys, sizeof keys / sizeof keys[0]);
	json_t *arms = json_object_get(cell, "arms"), *fact;
	size_t i;
	json_array_foreach(json_object_get(facts, "arms"), i, fact) merge_arm(arms, fact);
}

void record_fail(json_t *cell, enum cell_status st, const char *reason)
{
	json_t *checks = json_object_get(cell, "checks");
	if (!json_is_array(checks)) {
		json_object_set_new(cell, "checks", json_array());
		checks = json_object_get(cell, "checks");
	}
	/* A finding, so that judging the record again says the same. */
	json_array_append_new(checks, finding_json(st == ST_SKIP ? "plan" : "run", NULL, status_name(st), reason));
	json_object_set_new(cell, "status", json_string(status_name(st)));
	json_object_set_new(cell, "reason", record_text_or_null(reason));
}

/* ---- counts --------------------------------------------------------------------------------------------------------- */

void record_count(const json_t *cell, struct run_counts *c)
{
	enum cell_status s = status_of(record_text(cell, "status"));
	c->by_status[s == ST_N ? ST_ERROR : s]++;
	const json_t *timing = json_object_get(cell, "timing");
	const char *selection = record_text(cell, "selection");
	if (!json_is_object(timing))
		return;
	c->warned += record_true(timing, "warned");
	c->biased += record_true(json_object_get(timing, "null"), "biased");
	if (record_true(timing, "gating") && selection && strcmp(selection, "none") != 0) {
		c->gated++;
		enum timing_verdict v = judge_verdict_of(record_text(timing, "verdict"));
		c->gated_undecided += v == TV_INCONCLUSIVE || v == TV_SUSPECT;
	}
}

int record_exit(const struct run_counts *c, bool strict, bool require_run)
{
	int64_t total = 0;
	for (int s = 0; s < ST_N; s++)
		total += c->by_status[s];
	if (c->by_status[ST_WRONG] || c->by_status[ST_MISMATCH] || c->by_status[ST_REGRESSION] ||
	    c->by_status[ST_XPASS] || c->bars_missed)
		return EXIT_FAIL;
	if (c->by_status[ST_ERROR] || c->by_status[ST_TIMEOUT] || c->by_status[ST_INVALID] ||
	    c->by_status[ST_INVALID_DATA] || c->aggregates_invalid)
		return EXIT_INCOMPLETE;
	if (strict ? c->gated_undecided > 0 : c->gated_undecided * 10 > c->gated)
		return EXIT_INCOMPLETE;
	if (require_run && c->by_status[ST_SKIP] == total)
		return EXIT_NOTHING_RUN;
	return EXIT_PASS;
}
