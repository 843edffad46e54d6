/* One cell of a run: a worker that fits it, its facts, its record. */
#include "run_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monotonic.h"

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));
	return s ? s : "";
}

/* Starts that may fail in a row before the device counts as lost. */
enum { MAX_FAILED_STARTS = 3 };

/* A timing verdict that confirmation, Holm or the noisy-run rule may still change; with several processes every timed cell. */
static bool is_pending(const struct run *r, const json_t *cell)
{
	if (strcmp(text_of(json_object_get(cell, "timing"), "verdict"), judge_verdict_name(TV_SUSPECT)) == 0)
		return true;
	return r->job->processes > 1 && json_is_object(json_object_get(cell, "measure"));
}

static bool write_screen(struct run *r, json_t *cell, struct err *err)
{
	json_t *screen = json_pack("{s:s, s:s, s:O}", "kind", "screen", "id", text_of(cell, "id"), "cell", cell);
	bool ok = screen ? run_write(r, screen, err) : err_set(err, "out of memory");
	json_decref(screen);
	return ok;
}

void run_drop_worker(struct run *r)
{
	worker_stop(r->worker);
	r->worker = NULL;
}

/* A worker that fits the cell's threads; *err where none can be had now. */
bool run_need_worker(struct run *r, const struct timing *t, struct err *err)
{
	if (r->lost[0])
		return err_set(err, "%s", r->lost);
	if (r->worker && !worker_alive(r->worker)) {
		run_say(r, "the worker died while nothing was asked of it; another one is started");
		run_drop_worker(r);
	}
	if (r->worker && r->worker_threads != t->threads)
		run_drop_worker(r);
	while (!r->worker && !run_interrupted(r)) {
		r->worker = run_worker(r->job, t, err);
		if (r->worker) {
			r->failed_starts = 0;
			r->worker_threads = t->threads;
			return true;
		}
		if (++r->failed_starts >= MAX_FAILED_STARTS) {
			char why[400];
			snprintf(why, sizeof why, "%.399s", err ? err->text : "");
			snprintf(r->lost, sizeof r->lost, "device lost: no worker starts any more: %s", why);
			run_say(r, r->lost);
			return err_set(err, "%s", r->lost);
		}
	}
	return r->worker != NULL || err_set(err, "interrupted");
}

/* What the suite's budget leaves for the timing of this cell: an even share of what is left, so that what cheap cells do not use
 * goes to the dear ones after them. The checks of the cells to come are set aside at the pace so far. */
static void apply_budget(const struct run *r, struct timing *t, int64_t cells_left)
{
	if (t->suite_budget_ns <= 0)
		return;
	const int64_t per_check = r->measured > 0 ? r->checks_ns / r->measured : 0;
	const int64_t left = t->suite_budget_ns - (monotonic_ns() - r->start_ns) - per_check * cells_left;
	int64_t share = left / (cells_left > 0 ? cells_left : 1);
	if (share < 1)
		share = 1; /* checked all the same, and timed no further than it must */
	if (t->cell_budget_ns <= 0 || share < t->cell_budget_ns)
		t->cell_budget_ns = share;
}

static void tick(void *ctx, const char *phase, const char *arm, int round)
{
	struct run *r = ctx;
	if (!r->job->events.progress)
		return;
	int64_t total = plan_count(r->job->plan), elapsed = monotonic_ns() - r->start_ns;
	struct run_progress p = {r->done + (int64_t)r->n_pending, total, -1, r->cell_id, phase, arm, round};
	if (r->measured > 0)
		p.left_ns = elapsed / r->measured * (total - p.done);
	r->job->events.progress(r->job->events.ctx, &p);
}

/* Whether an arm wrote where nothing of it was: what else it hit in its process, nobody knows. */
static bool wrote_outside(const json_t *facts)
{
	size_t i;
	const json_t *f;

	json_array_foreach(json_object_get(facts, "checks"), i, f)
	{
		const char *where = text_of(f, "where");
		if (strncmp(where, "guard_", 6) == 0 ||
		    (strcmp(where, "input_changed") == 0 && json_is_null(json_object_get(f, "arm"))))
			return true;
	}
	return false;
}

/* Facts of the answer, and what its outcome says. False: interrupted, there is no record. */
static bool take_answer(struct run *r, json_t *record, struct worker_answer *answer)
{
	const bool outside = wrote_outside(answer->facts);

	record_merge_facts(record, answer->facts);
	json_decref(answer->facts);
	switch (answer->outcome) {
	case WORKER_FAILED: record_fail(record, ST_ERROR, answer->reason); /* fallthrough */
	case WORKER_OK:
		if (outside || answer->spent)
			run_drop_worker(
				r); /* the next cell gets a process that nobody wrote to, or made another one of */
		return true;
	case WORKER_TIMEOUT: record_fail(record, ST_TIMEOUT, answer->reason); break;
	case WORKER_CRASHED:
		if (answer->found)
			break;
		/* fallthrough */
	case WORKER_LOST: record_fail(record, ST_ERROR, answer->reason); break;
	case WORKER_INTERRUPTED: run_drop_worker(r); return false;
	}
	run_drop_worker(r);
	return true;
}

/* Measures one cell into a judged record: new reference in *out, NULL where it was interrupted. */
static bool measure_cell(struct run *r, int64_t index, json_t **out, struct err *err)
{
	*out = NULL;
	struct arena *a = arena_create();
	struct cell c;
	if (!plan_cell(r->job->plan, index, a, &c, err)) {
		arena_destroy(a);
		return false;
	}
	json_t *record = record_cell_begin(&c);
	bool whole = true;
	if (!c.skip) {
		struct err why;
		const int64_t begin = monotonic_ns();
		r->cell_id = c.id;
		tick(r, "start", NULL, 0);
		apply_budget(r, &c.timing, r->to_do);
		if (run_need_worker(r, &c.timing, &why)) {
			struct worker_answer answer;
			const int64_t asked = monotonic_ns();
			worker_cell(r->worker, &c, 1, r->job->interrupted, tick, r, &answer);
			whole = take_answer(r, record, &answer);
			/* The worker's own figure lacks the way there and back. */
			json_t *cost = json_object_get(record, "cost");
			if (json_is_object(cost))
				json_object_set_new(cost, "wall_ns", json_integer(monotonic_ns() - asked));
			const json_t *spent = json_object_get(json_object_get(record, "measure"), "wall_ns");
			r->checks_ns += monotonic_ns() - begin - (int64_t)json_integer_value(spent);
			r->measured++;
		} else if (run_interrupted(r)) {
			whole = false;
		} else {
			record_fail(record, ST_ERROR, why.text);
		}
	}
	arena_destroy(a);
	if (!whole) {
		json_decref(record);
		return true;
	}
	census_check(record, r->job->controls);
	record_judge(record, &r->env, true);
	*out = record;
	return true;
}

bool run_one_cell(struct run *r, int64_t index, struct err *err)
{
	json_t *record;
	if (!measure_cell(r, index, &record, err))
		return false;
	if (!record)
		return true;
	bool ok;
	if (is_pending(r, record)) {
		ok = write_screen(r, record, err);
		if (ok)
			return run_add_pending(r, record, index, err);
	} else {
		ok = run_write_final(r, record, err);
	}
	json_decref(record);
	return ok;
}
