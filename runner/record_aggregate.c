/* The aggregates of ratio checks: geomean and weighted total over the shapes of one case, kernel, point and distribution, and whether the
 * distributions agree. Believed only where the controls hold; the numbers are shown in any case. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record_parts.h"

/* What the cells say of one control: the worst of them, and its sentence. */
struct control {
	const char *status, *text; /* borrowed; NULL: not asked for */
};
static const char *const control_names[] = {"machine_code", "issue_interval"};

struct group {
	const json_t *first; /* a cell of it: names and the check as asked for */
	json_t *name, *family; /* texts: with and without the distribution */
	struct judge_ratio_cell *cell;
	int n, planned, slower;
	int null_arms, biased;
	int n_weighted_planned;
	struct control control[2]; /* machine code, issue interval */
	bool confounded; /* a cell is */
	struct judge_aggregate geomean, weighted;
};

static json_t *group_name(const json_t *cell, bool with_data)
{
	const char *c = record_text(cell, "case"), *k = record_text(cell, "kernel"), *d = record_text(cell, "data");
	char *point = json_dumps(json_object_get(cell, "point"), JSON_COMPACT);
	json_t *j = json_sprintf("%s/%s%s%s%s%s", c ? c : "", k ? k : "", with_data ? "/" : "", with_data && d ? d : "",
				 point && strcmp(point, "{}") != 0 ? "/" : "",
				 point && strcmp(point, "{}") != 0 ? point : "");
	free(point);
	return j;
}

static int badness(const char *status)
{
	return !status ? 0 : strcmp(status, "pass") == 0 ? 1 : strcmp(status, "invalid") == 0 ? 3 : 2;
}

static void take_controls(struct group *g, const json_t *cell)
{
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(cell, "checks"), i, f)
	{
		const char *check = record_text(f, "check"), *status = record_text(f, "status"),
			   *name = record_text(f, "control");
		if (!check || strcmp(check, "census") != 0)
			continue;
		struct control *c = &g->control[name && strcmp(name, control_names[1]) == 0];
		if (badness(status) > badness(c->status))
			*c = (struct control){status, record_text(f, "text")};
	}
}

/* Whether some check of the cell found an arm wrong: its time is then the time of something else, whatever else is said of the ratio. */
static bool found_wrong(const json_t *cell)
{
	size_t i;
	json_t *f;

	json_array_foreach(json_object_get(cell, "checks"), i, f)
	{
		const char *status = record_text(f, "status");
		const enum cell_status s = status ? status_of(status) : ST_PASS;
		if (s == ST_WRONG || s == ST_MISMATCH || s == ST_ERROR || s == ST_TIMEOUT)
			return true;
	}
	return false;
}

static void add_cell(struct group *g, const json_t *cell)
{
	const json_t *timing = json_object_get(cell, "timing"), *x = json_object_get(timing, "of_over");
	const char *status = record_text(cell, "status"), *reason = record_text(x, "reason");
	bool confounded = reason && strcmp(reason, "confounded") == 0;
	enum cell_status s = status_of(status);
	/* Slow and known to be is still a right ratio; wrong and known to be is none. */
	const char *expect = record_text(json_object_get(cell, "waiver"), "expect");
	bool known_slow =
		s == ST_XFAIL && expect && (strcmp(expect, "regression") == 0 || strcmp(expect, "inconclusive") == 0);
	bool right = s == ST_PASS || s == ST_INCONCLUSIVE || s == ST_REGRESSION || known_slow;
	double weight = record_number(cell, "weight", NAN);
	g->planned++;
	g->n_weighted_planned += isfinite(weight);
	if (json_is_object(json_object_get(timing, "null"))) {
		g->null_arms++;
		g->biased += record_true(json_object_get(timing, "null"), "biased");
	}
	g->confounded |= confounded;
	take_controls(g, cell);
	const char *verdict = record_text(x, "verdict");
	bool valid = verdict && strcmp(verdict, "invalid") != 0;
	if (!json_is_object(x) || !((confounded && !found_wrong(cell)) || (right && valid)))
		return;
	struct judge_ratio_cell *c = &g->cell[g->n];
	*c = (struct judge_ratio_cell){
		.estimate = log(record_number(x, "ratio", NAN)),
		.se = record_number(x, "se", NAN),
		.weight = weight,
		.of_ns = record_number(x, "of_ns", NAN),
		.over_ns = record_number(x, "over_ns", NAN),
	};
	if (!isfinite(c->estimate))
		return;
	g->slower += c->estimate > 0;
	g->n++;
}

/* "code: sentence; sentence" of the controls that are so bad; NULL: none is. New reference. */
static json_t *controls_reason(const struct group *g, const char *code, int bad)
{
	const char *said[2] = {NULL, NULL};
	int n = 0;
	for (int i = 0; i < 2; i++)
		if (badness(g->control[i].status) == bad && g->control[i].text)
			said[n++] = g->control[i].text;
	if (n == 0)
		return NULL;
	return json_sprintf("%s: %s%s%s", code, said[0], n > 1 ? "; " : "", n > 1 ? said[1] : "");
}

static json_t *controls_json(const struct group *g)
{
	json_t *o = json_object();
	for (int i = 0; i < 2; i++) {
		const struct control *c = &g->control[i];
		json_object_set_new(o, control_names[i],
				    c->status ? json_pack("{s:s, s:s?}", "status", c->status, "text", c->text)
					      : json_null());
	}
	json_object_set_new(o, "null", json_pack("{s:i, s:i}", "biased", g->biased, "of", g->null_arms));
	return o;
}

static json_t *aggregate_json(const struct judge_aggregate *a, int planned)
{
	json_t *o = json_object();
	json_object_set_new(o, "n", json_integer(a->n));
	json_object_set_new(o, "of", json_integer(planned));
	json_object_set_new(o, "ratio", record_real(a->ratio));
	json_object_set_new(o, "lo", record_real(a->lo));
	json_object_set_new(o, "hi", record_real(a->hi));
	json_object_set_new(o, "pp", record_real(100 * (a->ratio - 1)));
	return o;
}

/* Distributions agree where each two intervals overlap or the ratios differ by no more than the tolerance. */
static json_t *agree_json(const struct group *g, int n, const struct group *me, double tolerance, bool *holds)
{
	double lo = INFINITY, hi = -INFINITY;
	int members = 0;
	*holds = true;
	for (int i = 0; i < n; i++) {
		if (!json_equal(g[i].family, me->family) || !isfinite(g[i].geomean.ratio))
			continue;
		members++;
		lo = fmin(lo, g[i].geomean.ratio);
		hi = fmax(hi, g[i].geomean.ratio);
		for (int k = 0; k < i; k++) {
			const struct judge_aggregate *a = &g[i].geomean, *b = &g[k].geomean;
			if (!json_equal(g[k].family, me->family) || !isfinite(b->ratio))
				continue;
			bool overlap = a->lo <= b->hi && b->lo <= a->hi; /* false with an unknown end */
			if (!overlap && !(fabs(a->ratio - b->ratio) <= tolerance))
				*holds = false;
		}
	}
	json_t *o = json_object();
	json_object_set_new(o, "over", json_string("data"));
	json_object_set_new(o, "tolerance", record_real(tolerance));
	json_object_set_new(o, "distributions", json_integer(members));
	json_object_set_new(o, "difference", record_real(members > 0 ? hi - lo : NAN));
	json_object_set_new(o, "holds", members > 1 ? json_boolean(*holds) : json_null());
	return o;
}

/* What the run was to give, before filters and shards: cells by the name of a group, and of a family. */
struct whole {
	const json_t *groups; /* of the header; NULL: it does not say */
	int64_t left; /* cells of the plan that are not here, where it does not say */
};

/* Cells without which nothing can be said of g. */
static int64_t cells_left(const struct whole *w, const struct group *g, int n, const struct group *me, bool agree)
{
	const json_t *planned = agree ? me->family : me->name;
	int64_t here = 0;
	if (!w->groups)
		return w->left;
	for (int i = 0; i < n; i++)
		if (&g[i] == me || (agree && json_equal(g[i].family, me->family)))
			here += g[i].planned;
	return json_integer_value(json_object_get(w->groups, json_string_value(planned))) - here;
}

static json_t *copy(const json_t *o, const char *key)
{
	json_t *j = json_object_get(o, key);
	return j ? json_deep_copy(j) : json_null();
}

static json_t *group_json(const struct group *all, int n, const struct group *g, const struct whole *w)
{
	const json_t *check = json_object_get(g->first, "ratio_check");
	bool geomean = record_true(check, "geomean"), weighted = record_true(check, "weighted");
	double tolerance = record_number(check, "agree_tolerance", NAN),
	       bar = record_number(check, "bar_at_least", NAN);
	bool agrees = true;
	json_t *o = json_object();
	json_object_set_new(o, "kind", json_string("aggregate"));
	json_object_set_new(o, "name", json_incref(g->name));
	json_object_set_new(o, "case", copy(g->first, "case"));
	json_object_set_new(o, "kernel", copy(g->first, "kernel"));
	json_object_set_new(o, "data", copy(g->first, "data"));
	json_object_set_new(o, "point", copy(g->first, "point"));
	json_object_set_new(o, "check", json_string("ratio"));
	json_object_set_new(o, "of", copy(check, "of"));
	json_object_set_new(o, "over", copy(check, "over"));
	json_object_set_new(o, "geomean", geomean ? aggregate_json(&g->geomean, g->planned) : json_null());
	json_object_set_new(o, "weighted",
			    weighted ? aggregate_json(&g->weighted, g->n_weighted_planned) : json_null());
	json_object_set_new(o, "slower", json_integer(g->slower));
	json_object_set_new(o, "agree", isfinite(tolerance) ? agree_json(all, n, g, tolerance, &agrees) : json_null());

	const struct judge_aggregate *judged = geomean || !weighted ? &g->geomean : &g->weighted;
	json_t *b = json_null();
	if (isfinite(bar)) {
		b = json_object();
		json_object_set_new(b, "at_least", json_real(bar));
		json_object_set_new(b, "by", json_string(geomean || !weighted ? "geomean" : "weighted"));
		json_object_set_new(b, "met", json_boolean(judged->lo >= bar)); /* an unknown end meets nothing */
	}
	json_object_set_new(o, "bar", b);

	const char *verdict = isfinite(bar) ? judged->lo >= bar ? "met" : "missed" : "none";
	json_t *reason = json_null();
	json_t *unproven = controls_reason(g, "unproven", 2);
	const int64_t left = cells_left(w, all, n, g, isfinite(tolerance));
	if (g->confounded) {
		verdict = "invalid";
		reason = controls_reason(g, "confounded", 3);
		if (!reason)
			reason = json_string("confounded: the arms differ in more than they claim");
	} else if (left > 0) {
		/* What a part says is no answer to a question that is asked of all. */
		verdict = "invalid";
		reason = json_sprintf("incomplete: %lld cell%s of %s did not run", (long long)left,
				      left == 1 ? "" : "s", w->groups ? "this ratio" : "the plan");
	} else if (g->n == 0) {
		verdict = "invalid";
		reason = json_sprintf("no_cells: none of %d cells has a ratio", g->planned);
	} else if (!agrees) {
		verdict = "invalid";
		reason = json_string("disagree: the distributions give different ratios");
	} else if (judge_noisy(g->biased, g->null_arms)) {
		verdict = "invalid";
		reason = json_sprintf("biased: in %d of %d cells an arm differs from itself", g->biased, g->null_arms);
	} else if (unproven) {
		verdict = "invalid";
		reason = json_incref(unproven);
	}
	json_decref(unproven);
	json_object_set_new(o, "controls", controls_json(g));
	json_object_set_new(o, "verdict", json_string(verdict));
	json_object_set_new(o, "reason", reason ? reason : json_null());
	return o;
}

static void count_into(json_t *o, const json_t *name)
{
	const char *key = json_string_value(name);
	if (key)
		json_object_set_new(o, key, json_integer(json_integer_value(json_object_get(o, key)) + 1));
}

json_t *record_ratio_groups(const struct plan *p)
{
	const struct suite *s = plan_suite(p);
	json_t *o = json_object();
	bool asked = false;
	for (int i = 0; i < s->n_cases; i++)
		asked |= (s->cases[i].checks.on & 1u << CHECK_RATIO) != 0;
	for (int64_t i = 0, n = asked ? plan_whole_count(p) : 0; i < n; i++) {
		struct arena *a = arena_create();
		struct cell c;
		if (plan_whole_cell(p, i, a, &c, NULL) && c.checks.on & 1u << CHECK_RATIO) {
			json_t *cell = record_cell_begin(&c), *name = group_name(cell, true),
			       *family = group_name(cell, false);
			count_into(o, name);
			count_into(o, family);
			json_decref(family);
			json_decref(name);
			json_decref(cell);
		}
		arena_destroy(a);
	}
	return o;
}

json_t *record_aggregates(json_t *const *cells, size_t n, const json_t *header)
{
	json_t *out = json_array(), *index = json_object();
	struct whole w = {.groups = json_object_get(header, "ratio_groups")};
	if (!w.groups) /* a file of before: the plan as a whole */
		w.left = (int64_t)fmax(0, record_number(header, "plan_cells", 0) - (double)n);
	struct group *g = NULL;
	int n_groups = 0;
	size_t ratio_cells = 0;
	for (size_t i = 0; i < n; i++)
		ratio_cells += json_is_object(json_object_get(cells[i], "ratio_check"));
	if (ratio_cells)
		g = calloc(ratio_cells, sizeof *g);
	for (size_t i = 0; g && i < n; i++) {
		if (!json_is_object(json_object_get(cells[i], "ratio_check")))
			continue;
		json_t *name = group_name(cells[i], true);
		const char *key = json_string_value(name);
		const json_t *at = json_object_get(index, key ? key : "");
		struct group *to = at ? &g[json_integer_value(at)] : &g[n_groups];
		if (!at) {
			*to = (struct group){.first = cells[i], .name = name, .family = group_name(cells[i], false)};
			json_object_set_new(index, key ? key : "", json_integer(n_groups++));
		} else {
			json_decref(name);
		}
		struct judge_ratio_cell *grown = realloc(to->cell, (size_t)(to->n + 1) * sizeof *grown);
		if (!grown)
			continue;
		to->cell = grown;
		add_cell(to, cells[i]);
	}
	for (int i = 0; i < n_groups; i++) {
		judge_geomean(g[i].cell, g[i].n, &g[i].geomean);
		judge_weighted(g[i].cell, g[i].n, &g[i].weighted);
	}
	for (int i = 0; i < n_groups; i++)
		json_array_append_new(out, group_json(g, n_groups, &g[i], &w));
	for (int i = 0; i < n_groups; i++) {
		json_decref(g[i].name);
		json_decref(g[i].family);
		free(g[i].cell);
	}
	free(g);
	json_decref(index);
	return out;
}

void record_count_aggregate(const json_t *aggregate, struct run_counts *c)
{
	const char *verdict = record_text(aggregate, "verdict"), *reason = record_text(aggregate, "reason");
	/* Who asks for a part is told that the bar is not judged, and gets the status of the part. */
	if (reason && strncmp(reason, "incomplete:", 11) == 0)
		return;
	c->bars_missed += verdict && strcmp(verdict, "missed") == 0;
	c->aggregates_invalid += verdict && strcmp(verdict, "invalid") == 0;
}
