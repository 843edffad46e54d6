/* A record opened for judging: roles found, samples as doubles. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record_parts.h"

json_t *record_samples(const json_t *arms, const char *name)
{
	size_t i;
	json_t *a;
	json_array_foreach(arms, i, a)
	{
		const char *is = record_text(a, "name");
		if (name && is && strcmp(is, name) == 0) {
			json_t *s = json_object_get(a, "samples_ns");
			return json_is_array(s) ? s : NULL;
		}
	}
	return NULL;
}

const char *record_limit(const json_t *cell)
{
	const json_t *state = json_object_get(cell, "device_state");
	const char *after = record_text(json_object_get(state, "after"), "limit");
	return after ? after : record_text(json_object_get(state, "before"), "limit");
}

bool record_view_open(struct cell_view *v, json_t *cell)
{
	*v = (struct cell_view){.cell = cell};
	json_t *arms = json_object_get(cell, "arms"), *a;
	size_t n = json_array_size(arms), rounds = 0, i;
	json_array_foreach(arms, i, a)
	{
		size_t k = json_array_size(json_object_get(a, "samples_ns"));
		rounds = k > rounds ? k : rounds;
	}
	if (rounds > STATS_MAX_ROUNDS)
		rounds = STATS_MAX_ROUNDS;
	v->arm = calloc(n + 1, sizeof *v->arm);
	v->pool = calloc(n * rounds + 1, sizeof *v->pool);
	if (!v->arm || !v->pool)
		return false;
	v->n_arms = (int)n;
	v->n_rounds = (int)rounds;
	json_array_foreach(arms, i, a)
	{
		struct arm_view *out = &v->arm[i];
		const json_t *s = json_object_get(a, "samples_ns");
		out->arm = a;
		out->name = record_text(a, "name") ? record_text(a, "name") : "";
		out->role = record_text(a, "role") ? record_text(a, "role") : "";
		out->unsupported = json_is_string(json_object_get(a, "unsupported"));
		if (json_is_array(s))
			out->t = v->pool + i * rounds;
		for (size_t r = 0; out->t && r < rounds; r++) {
			const json_t *x = json_array_get(s, r);
			out->t[r] = json_is_number(x) ? json_number_value(x) : NAN;
		}
		if (!v->shipped && strcmp(out->role, "shipped") == 0)
			v->shipped = out;
		if (!v->null && strcmp(out->role, "null") == 0)
			v->null = out;
	}
	v->selected = record_view_arm(v, record_text(cell, "selected"));
	return true;
}

void record_view_close(struct cell_view *v)
{
	free(v->pool);
	free(v->arm);
	*v = (struct cell_view){0};
}

const struct arm_view *record_view_arm(const struct cell_view *v, const char *name)
{
	for (int i = 0; name && i < v->n_arms; i++)
		if (strcmp(v->arm[i].name, name) == 0)
			return &v->arm[i];
	return NULL;
}

void record_rule(const json_t *cell, const struct record_env *env, struct judge_rule *out)
{
	const json_t *j = json_object_get(cell, "judge");
	const char *estimator = record_text(j, "estimator"), *confirm = record_text(j, "confirm");
	*out = (struct judge_rule){
		.estimator = EST_PAIRED,
		.fail = record_number(cell, "margin", NAN) - 1,
		.warn = record_number(cell, "margin_warn", 0) - 1,
		.floor_ns = (int64_t)record_number(cell, "margin_floor_ns", 0),
		.alpha = record_number(j, "alpha", 0.025),
		.rounds = (int)record_number(j, "rounds", 0),
		.min_rounds = (int)record_number(j, "min_rounds", stats_looks[0]),
		.max_rounds = (int)record_number(j, "max_rounds", 64),
		.confirm = confirm && strcmp(confirm, "none") == 0 ? CONFIRM_NONE : CONFIRM_FRESH,
		.tau = record_number(j, "tau", env->tau),
	};
	if (estimator && strcmp(estimator, "mean") == 0)
		out->estimator = EST_MEAN;
	else if (estimator && strcmp(estimator, "median") == 0)
		out->estimator = EST_MEDIAN;
}

int record_cut(const json_t *cell, int n, int *cut)
{
	struct judge_rule rule;
	record_rule(cell, &(struct record_env){.tau = 0}, &rule);
	/* A ratio check wants every round there is: nothing it saw could stop it. */
	const bool fixed =
		rule.rounds > 0 || rule.estimator != EST_PAIRED || json_is_object(json_object_get(cell, "ratio_check"));
	int look = 0;
	for (int i = 0; !fixed && stats_looks[i] && stats_looks[i] <= n; i++)
		if (stats_looks[i] >= rule.min_rounds && stats_looks[i] <= rule.max_rounds)
			look = stats_looks[i];
	*cut = fixed ? stats_fixed_cut_at(rule.alpha, n) : look ? stats_look_cut(rule.alpha, look) : -1;
	if (*cut == INT_MIN)
		*cut = -1;
	return look ? look : n;
}

/* Rates of the arm, by the work of the point; null where work or time is unknown. */
static void put_rates(const struct cell_view *v, json_t *s, double median_ns)
{
	const json_t *work = json_object_get(v->cell, "work"), *measure = json_object_get(v->cell, "measure");
	double bytes = record_number(work, "bytes", NAN), flop = record_number(work, "flop", NAN);
	double t = median_ns > 0 ? median_ns * 1e-9 : NAN;
	/* The nearer of the two ceilings is the one that bounds. */
	double by_bytes = bytes / t / record_number(measure, "peak_bytes_per_s", NAN);
	double by_flop = flop / t / record_number(measure, "peak_flop_per_s", NAN);
	json_object_set_new(s, "gb_per_s", record_real(bytes / t * 1e-9));
	json_object_set_new(s, "tflop_per_s", record_real(flop / t * 1e-12));
	json_object_set_new(s, "peak_fraction", record_real(fmax(by_bytes, by_flop)));
}

int record_view_pair(const struct cell_view *v, const struct arm_view *a, const struct arm_view *b,
		     double d[STATS_MAX_ROUNDS])
{
	int n = 0;
	for (int r = 0; a->t && b->t && r < v->n_rounds; r++)
		if (a->t[r] > 0 && b->t[r] > 0 && isfinite(a->t[r]) && isfinite(b->t[r]))
			d[n++] = log(a->t[r]) - log(b->t[r]);
	return n;
}

static void summarise(const struct cell_view *v, const struct arm_view *a)
{
	double x[STATS_MAX_ROUNDS];
	int n = 0;
	for (int r = 0; a->t && r < v->n_rounds; r++)
		if (isfinite(a->t[r]))
			x[n++] = a->t[r];
	if (n == 0) {
		json_object_set_new(a->arm, "summary", json_null());
		return;
	}
	struct summary sum;
	stats_summary(x, n, &sum);
	struct interval iv = {0, -1, NAN, NAN, NAN, 0, 1};
	double se = NAN;
	if (v->shipped && a != v->shipped && v->shipped->t) {
		int k = record_view_pair(v, a, v->shipped, x);
		int cut;
		se = stats_walsh_se(x, k);
		k = record_cut(v->cell, k, &cut);
		stats_walsh(x, k, cut, &iv);
	}
	json_t *s = json_object();
	json_object_set_new(s, "n", json_integer(n));
	json_object_set_new(s, "median_ns", record_real(sum.median));
	json_object_set_new(s, "mean_ns", record_real(sum.mean));
	json_object_set_new(s, "min_ns", record_real(sum.min));
	json_object_set_new(s, "q1_ns", record_real(sum.q1));
	json_object_set_new(s, "q3_ns", record_real(sum.q3));
	json_object_set_new(s, "ratio", record_real(exp(iv.estimate)));
	json_object_set_new(s, "estimate", record_real(iv.estimate));
	json_object_set_new(s, "lo", record_real(iv.lo));
	json_object_set_new(s, "hi", record_real(iv.hi));
	json_object_set_new(s, "se", record_real(se));
	put_rates(v, s, sum.median);
	json_object_set_new(a->arm, "summary", s);
}

void record_summaries(const struct cell_view *v)
{
	for (int i = 0; i < v->n_arms; i++)
		summarise(v, &v->arm[i]);
}
