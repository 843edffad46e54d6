/* Judging records: one cell, and the cells of a run together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record_parts.h"

enum cell_status record_judge(json_t *cell, const struct record_env *env, bool more_to_come)
{
	struct timing_outcome t = record_judge_timing(cell, env, more_to_come);
	return record_judge_status(cell, env, t);
}

bool record_wants_confirm(const json_t *cell)
{
	const json_t *judge = json_object_get(cell, "judge");
	const char *estimator = record_text(judge, "estimator"), *confirm = record_text(judge, "confirm");
	return judge_verdict_of(record_text(json_object_get(cell, "timing"), "verdict")) == TV_SUSPECT &&
	       (!estimator || strcmp(estimator, "paired") == 0) && (!confirm || strcmp(confirm, "none") != 0) &&
	       !json_is_object(json_object_get(cell, "confirm"));
}

static json_t *member(const json_t *o, const char *key)
{
	json_t *j = json_object_get(o, key);
	return j ? json_deep_copy(j) : json_null();
}

void record_set_confirm(json_t *cell, json_t *facts)
{
	json_t *arms = json_object_get(facts, "arms"), *a, *c = json_object();
	size_t n = 0, i;
	json_array_foreach(arms, i, a)
	{
		size_t k = json_array_size(json_object_get(a, "samples_ns"));
		n = k > n ? k : n;
	}
	json_object_set_new(c, "process", member(facts, "process"));
	json_object_set_new(c, "n", json_integer((json_int_t)n));
	json_object_set_new(c, "order_seed", member(facts, "order_seed"));
	json_object_set_new(c, "p", json_null());
	json_object_set_new(c, "estimate", json_null());
	json_object_set_new(c, "confirmed", json_null());
	json_object_set_new(c, "arms", json_is_array(arms) ? json_deep_copy(arms) : json_array());
	json_object_set_new(cell, "confirm", c);
}

/* ---- the suspects of a run ------------------------------------------------------------------------------------------ */

/* Opens the fresh process's samples of a suspect as ln ratios; false out of memory. d is malloc'd, owned by the caller. */
static bool suspect_open(const json_t *cell, const struct record_env *env, struct judge_suspect *s, double **d)
{
	const json_t *arms = json_object_get(json_object_get(cell, "confirm"), "arms");
	const char *shipped_name = NULL;
	size_t i;
	json_t *a;
	json_array_foreach(json_object_get(cell, "arms"), i, a)
	{
		const char *role = record_text(a, "role");
		if (!shipped_name && role && strcmp(role, "shipped") == 0)
			shipped_name = record_text(a, "name");
	}
	const json_t *arm = record_samples(arms, record_text(cell, "selected"));
	const json_t *shipped = record_samples(arms, shipped_name);
	size_t n = json_array_size(arm) < json_array_size(shipped) ? json_array_size(arm) : json_array_size(shipped);
	if (n > STATS_MAX_ROUNDS)
		n = STATS_MAX_ROUNDS;
	double t[STATS_MAX_ROUNDS];
	*d = malloc((n ? n : 1) * sizeof **d);
	if (!*d)
		return false;
	int k = 0;
	for (size_t r = 0; r < n; r++) {
		const json_t *x = json_array_get(arm, r), *y = json_array_get(shipped, r);
		if (!json_is_number(x) || !json_is_number(y) || !(json_number_value(x) > 0) ||
		    !(json_number_value(y) > 0))
			continue;
		t[k] = json_number_value(y);
		(*d)[k++] = log(json_number_value(x)) - log(json_number_value(y));
	}
	struct judge_rule rule;
	record_rule(cell, env, &rule);
	*s = (struct judge_suspect){
		.d = *d,
		.n = k,
		.ln_margin = judge_ln_margin(rule.fail, rule.floor_ns, stats_median(t, k)),
		.tau = rule.tau,
	};
	return true;
}

static void suspect_store(json_t *cell, const struct judge_suspect *s)
{
	json_t *c = json_object_get(cell, "confirm");
	json_object_set_new(c, "p", record_real(s->p));
	json_object_set_new(c, "estimate", record_real(s->n > 0 ? s->estimate : NAN));
	json_object_set_new(c, "confirmed", json_boolean(s->confirmed));
}

/* Holm over those that screening suspects; a stored confirmation of a cell that is none (under other margins) confirms nothing. */
static void confirm_suspects(json_t **cells, size_t n, const struct record_env *env)
{
	struct judge_suspect *s = calloc(n + 1, sizeof *s);
	double **d = calloc(n + 1, sizeof *d);
	json_t **of = calloc(n + 1, sizeof *of);
	int k = 0;
	for (size_t i = 0; s && d && of && i < n; i++) {
		json_t *c = json_object_get(cells[i], "confirm");
		if (!json_is_object(c))
			continue;
		bool suspect =
			judge_verdict_of(record_text(json_object_get(cells[i], "timing"), "verdict")) == TV_SUSPECT;
		json_object_set_new(c, "confirmed", json_null());
		if (!suspect) {
			json_object_set_new(c, "p", json_null());
			json_object_set_new(c, "estimate", json_null());
		} else if (suspect_open(cells[i], env, &s[k], &d[k])) {
			of[k++] = cells[i];
		}
	}
	if (s)
		judge_confirm(s, k);
	for (int i = 0; i < k; i++) {
		suspect_store(of[i], &s[i]);
		free(d[i]);
	}
	free(of);
	free(d);
	free(s);
}

void record_judge_run(json_t **cells, size_t n, struct record_env *env)
{
	struct record_env first = *env;
	int biased = 0, with_null = 0;
	first.noisy = false;
	for (size_t i = 0; i < n; i++) {
		record_judge(cells[i], &first, true);
		const json_t *null = json_object_get(json_object_get(cells[i], "timing"), "null");
		with_null += json_is_object(null);
		biased += record_true(null, "biased");
	}
	env->noisy = env->noisy || judge_noisy(biased, with_null);
	confirm_suspects(cells, n, env);
	for (size_t i = 0; i < n; i++)
		record_judge(cells[i], env, false);
}
