/* run_confirm: the second look. A suspect is timed by a process that has not seen it yet: new allocations, the same data, another
 * order. What it saw is stored; the judge speaks later. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

struct worker *run_worker(const struct run_job *job, const struct timing *t, struct err *err)
{
	const struct worker_config cfg = {
		.self = "/proc/self/exe",
		.backend = job->backend,
		.device = job->device,
		.threads = t->threads,
		.plugins = job->plugins,
		.interrupted = job->interrupted,
	};
	return worker_start(&cfg, t, err);
}

static void say(const struct run_job *job, const char *sentence)
{
	if (job->events.say)
		job->events.say(job->events.ctx, sentence);
}

static void note(json_t *record, const char *before, const char *what)
{
	json_t *notes = json_object_get(record, "notes");
	json_t *text = json_sprintf("%s: %s", before, what);
	if (json_is_array(notes) && text)
		json_array_append(notes, text);
	json_decref(text);
}

/* Order seeds differ from the screening's and from each other; the same run gives the same ones. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (x ^ x >> 31) >> 1; /* fits a JSON integer */
}

/* Makes sure that *w runs. */
static bool need_worker(const struct run_job *job, const struct timing *t, struct worker **w, struct err *err)
{
	if (*w && !worker_alive(*w)) {
		worker_stop(*w);
		*w = NULL;
	}
	if (!*w)
		*w = run_worker(job, t, err);
	return *w != NULL;
}

void run_confirm(const struct run_job *job, struct run_pending *p, size_t n, uint64_t seed, struct worker **w)
{
	for (size_t i = 0; i < n && !(job->interrupted && *job->interrupted); i++) {
		if (!record_wants_confirm(p[i].record))
			continue;
		struct arena *a = arena_create();
		struct cell c;
		struct err err;
		if (!plan_cell(job->plan, p[i].index, a, &c, &err) || !need_worker(job, &c.timing, w, &err)) {
			note(p[i].record, "not confirmed", err.text);
			arena_destroy(a);
			continue;
		}
		if (job->events.progress)
			job->events.progress(job->events.ctx, &(struct run_progress){(int64_t)i, (int64_t)n, -1, c.id,
										     "confirm", c.selected, 0});
		const json_t *timing = json_object_get(p[i].record, "timing");
		const int rounds = judge_confirm_rounds((int)json_integer_value(json_object_get(timing, "n")));
		const uint64_t order_seed = mix(seed ^ mix((uint64_t)c.plan_index));
		struct worker_answer answer;
		worker_confirm(*w, &c, c.selected, rounds, order_seed, job->interrupted, &answer);
		if (answer.outcome == WORKER_OK)
			record_set_confirm(p[i].record, answer.facts);
		else if (answer.outcome != WORKER_INTERRUPTED)
			note(p[i].record, "not confirmed: the second process failed", answer.reason);
		json_decref(answer.facts);
		if (answer.outcome != WORKER_OK && answer.outcome != WORKER_FAILED) {
			worker_stop(*w);
			*w = NULL;
		}
		arena_destroy(a);
	}
}

static json_t *member(const json_t *o, const char *key)
{
	json_t *j = json_object_get(o, key);
	return j ? json_incref(j) : json_null();
}

/* The samples of every arm, without the rest. */
static json_t *samples_of(json_t *facts)
{
	json_t *out = json_array(), *arm;
	size_t i;
	json_array_foreach(json_object_get(facts, "arms"), i, arm)
	{
		json_t *samples = json_object_get(arm, "samples_ns");
		json_array_append_new(out, json_pack("{s:O, s:o}", "name", json_object_get(arm, "name"), "samples_ns",
						     samples ? json_incref(samples) : json_null()));
	}
	return out;
}

void run_repeat(const struct run_job *job, struct run_pending *p, size_t n, int process, struct worker **w)
{
	for (size_t i = 0; i < n && !(job->interrupted && *job->interrupted); i++) {
		if (!json_is_object(json_object_get(p[i].record, "measure")))
			continue; /* nothing was timed the first time */
		struct arena *a = arena_create();
		struct cell c;
		struct err err;
		if (!plan_cell(job->plan, p[i].index, a, &c, &err) || !need_worker(job, &c.timing, w, &err)) {
			say(job, err.text);
			note(p[i].record, "not repeated", err.text);
			arena_destroy(a);
			continue;
		}
		if (job->events.progress)
			job->events.progress(job->events.ctx, &(struct run_progress){(int64_t)i, (int64_t)n, -1, c.id,
										     "repeat", NULL, process});
		/* Bits were checked the first time; this one is for the clock. */
		c.checks.on &= 1u << CHECK_REGRESSION | 1u << CHECK_RATIO;
		struct worker_answer answer;
		worker_cell(*w, &c, process + 1, job->interrupted, NULL, NULL, &answer);
		if (answer.outcome == WORKER_OK) {
			json_t *repeats = json_object_get(p[i].record, "repeats");
			if (!json_is_array(repeats)) {
				repeats = json_array();
				json_object_set_new(p[i].record, "repeats", repeats);
			}
			json_t *measure = json_object_get(answer.facts, "measure");
			json_array_append_new(repeats, json_pack("{s:i, s:o, s:o}", "process", process, "order_seed",
								 member(measure, "order_seed"), "arms",
								 samples_of(answer.facts)));
		} else if (answer.outcome != WORKER_INTERRUPTED) {
			note(p[i].record, "not repeated", answer.reason);
		}
		json_decref(answer.facts);
		if (answer.outcome != WORKER_OK && answer.outcome != WORKER_FAILED) {
			worker_stop(*w);
			*w = NULL;
		}
		arena_destroy(a);
	}
}
