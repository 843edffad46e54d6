#include "run_tau.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record_parts.h"
#include "stats.h"
#include "tau_store.h"

static void say(const struct run_job *job, const char *sentence)
{
	if (job->events.say)
		job->events.say(job->events.ctx, sentence);
}

void run_tau_choose(const struct run_job *job, struct run_tau *out)
{
	char path[512], words[700];
	struct err err = {{0}};
	struct tau_known known;
	*out = (struct run_tau){.tau = RUN_TAU_DEFAULT, .source = "built-in"};
	if (job->suite->n_cases > 0 && job->suite->cases[0].timing.tau >= 0) {
		*out = (struct run_tau){.tau = job->suite->cases[0].timing.tau, .source = "suite"};
		return;
	}
	if (!tau_store_path(job->tau_store, path, sizeof path, &err))
		return; /* a process without a home: nothing was kept for it either */
	if (!tau_store_find(path, job->peek->uuid, &known, &err)) {
		snprintf(words, sizeof words, "tau store not used: %.600s", err.text);
		say(job, words);
		return;
	}
	if (!known.known)
		return;
	out->tau = known.tau;
	out->n = known.n;
	snprintf(out->source, sizeof out->source, "store %s", path);
}

/* ---- pairs ---------------------------------------------------------------------------------------------------------- */

/* Estimate and standard error of ln(null / shipped) in a list of arms; false where there are too few rounds. */
static bool estimate_of(const json_t *arms, const char *shipped, const char *null, double *estimate, double *se)
{
	const json_t *a = record_samples(arms, null), *b = record_samples(arms, shipped);
	size_t n = json_array_size(a) < json_array_size(b) ? json_array_size(a) : json_array_size(b);
	double d[STATS_MAX_ROUNDS];
	int k = 0;
	for (size_t r = 0; r < n && k < STATS_MAX_ROUNDS; r++) {
		double x = json_number_value(json_array_get(a, r)), y = json_number_value(json_array_get(b, r));
		if (x > 0 && y > 0)
			d[k++] = log(x) - log(y);
	}
	if (k < 8)
		return false;
	struct interval iv;
	stats_walsh(d, k, stats_fixed_cut(k), &iv);
	*estimate = iv.estimate;
	*se = stats_walsh_se(d, k);
	return isfinite(*estimate) && isfinite(*se);
}

static const char *arm_of_role(const json_t *cell, const char *role)
{
	size_t i;
	json_t *a;
	json_array_foreach(json_object_get(cell, "arms"), i, a)
	{
		const char *r = record_text(a, "role");
		if (r && strcmp(r, role) == 0)
			return record_text(a, "name");
	}
	return NULL;
}

static bool push(struct run_pairs *p, double delta, double se)
{
	if (p->n == p->cap) {
		int cap = p->cap ? 2 * p->cap : 64;
		double *d = realloc(p->delta, (size_t)cap * sizeof *d);
		if (d)
			p->delta = d;
		double *s = realloc(p->se, (size_t)cap * sizeof *s);
		if (s)
			p->se = s;
		if (!d || !s)
			return false;
		p->cap = cap;
	}
	p->delta[p->n] = delta;
	p->se[p->n++] = se;
	return true;
}

bool run_pairs_add(struct run_pairs *p, const json_t *cell)
{
	const char *shipped = arm_of_role(cell, "shipped"), *null = arm_of_role(cell, "null");
	double first, first_se, later, later_se;
	size_t i;
	json_t *repeat;
	if (!shipped || !null || !json_is_array(json_object_get(cell, "repeats")) ||
	    !estimate_of(json_object_get(cell, "arms"), shipped, null, &first, &first_se))
		return true;
	json_array_foreach(json_object_get(cell, "repeats"), i, repeat)
	{
		if (estimate_of(json_object_get(repeat, "arms"), shipped, null, &later, &later_se) &&
		    /* The two may have stopped at different looks: half the variance of both is that of one of a like pair. */
		    !push(p, later - first, sqrt((first_se * first_se + later_se * later_se) / 2)))
			return false;
	}
	return true;
}

void run_pairs_free(struct run_pairs *p)
{
	free(p->delta);
	free(p->se);
	*p = (struct run_pairs){0};
}

json_t *run_pairs_record(const struct run_pairs *p)
{
	if (p->n == 0)
		return NULL;
	json_t *o = json_object();
	json_object_set_new(o, "kind", json_string("aggregate"));
	json_object_set_new(o, "name", json_string("processes"));
	json_object_set_new(o, "n", json_integer(p->n));
	json_object_set_new(o, "tau", record_real(stats_tau(p->delta, p->se, p->n)));
	return o;
}

void run_pairs_store(const struct run_pairs *p, const struct run_job *job)
{
	char path[512], words[700];
	struct err err = {{0}};
	struct tau_known known;
	if (p->n == 0)
		return;
	if (!tau_store_path(job->tau_store, path, sizeof path, &err) ||
	    !tau_store_add(path, job->peek->uuid, job->peek->name, p->delta, p->se, p->n, &known, &err)) {
		snprintf(words, sizeof words, "tau not kept: %.600s", err.text);
		say(job, words);
		return;
	}
	snprintf(words, sizeof words, "tau %.3f %% from %d pairs of processes%s, kept in %.500s", 100 * known.tau,
		 known.n, known.known ? "" : " (too few to be used)", path);
	say(job, words);
}
