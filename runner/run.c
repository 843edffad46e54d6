#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "run_aggregate.h"
#include "run_tau.h"

/* Starts that may fail in a row before the device counts as lost. */
enum { MAX_FAILED_STARTS = 3 };

struct run {
	const struct run_job *job;
	struct verdict_writer *file;
	struct worker *worker;
	int worker_threads;
	int failed_starts;
	char lost[512]; /* why no worker can be started any more; "" : none */
	struct record_env env;
	char today[11];
	struct run_counts counts;
	int64_t timed; /* cells with a null arm, for the noisy-run rule */
	int64_t *waiver_used;
	struct run_pending *pending;
	size_t n_pending, cap_pending;
	struct run_aggregates *aggregates;
	struct run_pairs pairs;
	int64_t done, start_ns, checks_ns; /* checks_ns: wall time outside timing */
	int64_t measured; /* cells that a worker ran, for the pace */
	const char *cell_id; /* under way */
};

static bool interrupted(const struct run *r)
{
	return r->job->interrupted && *r->job->interrupted;
}

static void say(const struct run *r, const char *sentence)
{
	if (r->job->events.say)
		r->job->events.say(r->job->events.ctx, sentence);
}

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));
	return s ? s : "";
}

/* ---- records ------------------------------------------------------------------------------------------------------- */

/* Counts a final cell and tells it, wherever it comes from. */
static void account(struct run *r, json_t *cell)
{
	record_count(cell, &r->counts);
	if (json_is_object(json_object_get(json_object_get(cell, "timing"), "null")))
		r->timed++;
	const char *waiver = text_of(json_object_get(cell, "waiver"), "id");
	enum cell_status st = status_of(text_of(cell, "status"));
	for (int i = 0; i < r->job->suite->n_waivers; i++)
		if (st == ST_XFAIL && strcmp(r->job->suite->waiver[i].id, waiver) == 0)
			r->waiver_used[i]++;
	run_aggregates_add(r->aggregates, cell);
	run_pairs_add(&r->pairs, cell);
	r->done++;
	if (r->job->events.record)
		r->job->events.record(r->job->events.ctx, cell);
}

static bool write_final(struct run *r, json_t *cell, struct err *err)
{
	if (!verdict_write(r->file, cell, err))
		return false;
	account(r, cell);
	return true;
}

static bool write_and_tell(struct run *r, json_t *record, struct err *err)
{
	bool ok = verdict_write(r->file, record, err);
	if (ok && r->job->events.record)
		r->job->events.record(r->job->events.ctx, record);
	return ok;
}

/* Takes the record. */
static bool add_pending(struct run *r, json_t *record, int64_t index, struct err *err)
{
	if (r->n_pending == r->cap_pending) {
		size_t cap = r->cap_pending ? r->cap_pending * 2 : 16;
		struct run_pending *p = realloc(r->pending, cap * sizeof *p);
		if (!p) {
			json_decref(record);
			return err_set(err, "out of memory");
		}
		r->pending = p;
		r->cap_pending = cap;
	}
	r->pending[r->n_pending++] = (struct run_pending){record, index};
	return true;
}

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
	bool ok = screen ? write_and_tell(r, screen, err) : err_set(err, "out of memory");
	json_decref(screen);
	return ok;
}

/* ---- one cell ------------------------------------------------------------------------------------------------------ */

static void drop_worker(struct run *r)
{
	worker_stop(r->worker);
	r->worker = NULL;
}

/* A worker that fits the cell's threads; *err where none can be had now. */
static bool need_worker(struct run *r, const struct timing *t, struct err *err)
{
	if (r->lost[0])
		return err_set(err, "%s", r->lost);
	if (r->worker && !worker_alive(r->worker)) {
		say(r, "the worker died while nothing was asked of it; another one is started");
		drop_worker(r);
	}
	if (r->worker && r->worker_threads != t->threads)
		drop_worker(r);
	while (!r->worker && !interrupted(r)) {
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
			say(r, r->lost);
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
	const int64_t left = t->suite_budget_ns - (run_now_ns() - r->start_ns) - per_check * cells_left;
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
	int64_t total = plan_count(r->job->plan), elapsed = run_now_ns() - r->start_ns;
	struct run_progress p = {r->done + (int64_t)r->n_pending, total, -1, r->cell_id, phase, arm, round};
	if (r->measured > 0)
		p.left_ns = elapsed / r->measured * (total - p.done);
	r->job->events.progress(r->job->events.ctx, &p);
}

/* Facts of the answer, and what its outcome says. False: interrupted, there is no record. */
static bool take_answer(struct run *r, json_t *record, struct worker_answer *answer)
{
	record_merge_facts(record, answer->facts);
	json_decref(answer->facts);
	switch (answer->outcome) {
	case WORKER_OK: return true;
	case WORKER_FAILED: record_fail(record, ST_ERROR, answer->reason); return true;
	case WORKER_TIMEOUT: record_fail(record, ST_TIMEOUT, answer->reason); break;
	case WORKER_LOST:
	case WORKER_CRASHED: record_fail(record, ST_ERROR, answer->reason); break;
	case WORKER_INTERRUPTED: drop_worker(r); return false;
	}
	drop_worker(r);
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
		const int64_t begin = run_now_ns();
		r->cell_id = c.id;
		tick(r, "start", NULL, 0);
		apply_budget(r, &c.timing, plan_count(r->job->plan) - index);
		if (need_worker(r, &c.timing, &why)) {
			struct worker_answer answer;
			const int64_t asked = run_now_ns();
			worker_cell(r->worker, &c, 1, r->job->interrupted, tick, r, &answer);
			whole = take_answer(r, record, &answer);
			/* The worker's own figure lacks the way there and back. */
			json_t *cost = json_object_get(record, "cost");
			if (json_is_object(cost))
				json_object_set_new(cost, "wall_ns", json_integer(run_now_ns() - asked));
			const json_t *spent = json_object_get(json_object_get(record, "measure"), "wall_ns");
			r->checks_ns += run_now_ns() - begin - (int64_t)json_integer_value(spent);
			r->measured++;
		} else if (interrupted(r)) {
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

static bool run_cell(struct run *r, int64_t index, struct err *err)
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
			return add_pending(r, record, index, err);
	} else {
		ok = write_final(r, record, err);
	}
	json_decref(record);
	return ok;
}

/* ---- the end of a run ---------------------------------------------------------------------------------------------- */

/* Fresh processes look at what is pending; then the verdicts are final and their lines are written. */
static bool settle_pending(struct run *r, struct err *err)
{
	if (r->n_pending == 0)
		return true;
	for (int k = 1; k < r->job->processes && !interrupted(r); k++) {
		drop_worker(r);
		run_repeat(r->job, r->pending, r->n_pending, k, &r->worker);
	}
	drop_worker(r); /* the process that screened must not confirm */
	if (!interrupted(r))
		run_confirm(r->job, r->pending, r->n_pending, 0, &r->worker);
	json_t **cells = calloc(r->n_pending, sizeof *cells);
	if (!cells)
		return err_set(err, "out of memory");
	int64_t biased = r->counts.biased, timed = r->timed;
	for (size_t i = 0; i < r->n_pending; i++) {
		cells[i] = r->pending[i].record;
		const json_t *null = json_object_get(json_object_get(cells[i], "timing"), "null");
		timed += json_is_object(null);
		biased += json_is_true(json_object_get(null, "biased"));
	}
	r->env.noisy = judge_noisy((int)biased, (int)timed);
	record_judge_run(cells, r->n_pending, &r->env);
	bool ok = true;
	for (size_t i = 0; i < r->n_pending && ok; i++)
		ok = write_final(r, cells[i], err);
	free(cells);
	return ok;
}

/* The sentinels once more, from a worker that lives or a fresh one. NULL: none, because the device is lost or the run was interrupted. */
static json_t *end_sentinels(struct run *r)
{
	struct worker_answer answer;
	struct arena *a = arena_create();
	struct cell c;
	struct err err;
	json_t *sentinels = NULL;
	if (!interrupted(r) && !r->lost[0] && plan_count(r->job->plan) > 0 && plan_cell(r->job->plan, 0, a, &c, &err)) {
		c.timing.threads = r->worker ? r->worker_threads : c.timing.threads;
		if (need_worker(r, &c.timing, &err)) {
			worker_sentinels(r->worker, r->job->interrupted, &answer);
			sentinels = json_incref(json_object_get(answer.facts, "sentinels"));
			json_decref(answer.facts);
			if (answer.outcome != WORKER_OK)
				drop_worker(r);
		}
	}
	arena_destroy(a);
	return sentinels;
}

static bool write_aggregates(struct run *r, const json_t *calibration, struct err *err)
{
	json_t *end = json_object_get(calibration, "sentinels") ? end_sentinels(r) : NULL;
	json_t *list = run_aggregates_records(r->aggregates, calibration, end, &r->counts), *record;
	json_t *processes = run_pairs_record(&r->pairs);
	bool ok = true;
	if (processes)
		json_array_append_new(list, processes);
	json_decref(end);
	size_t i;
	json_array_foreach(list, i, record) ok = ok && write_and_tell(r, record, err);
	json_decref(list);
	return ok;
}

static json_t *waivers_json(const struct run *r)
{
	json_t *list = json_array();
	const int64_t *hits = plan_waiver_hits(r->job->plan);
	for (int i = 0; i < r->job->suite->n_waivers; i++) {
		const struct waiver *w = &r->job->suite->waiver[i];
		json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:b}", "id", w->id, "used",
						      (json_int_t)r->waiver_used[i], "cells", (json_int_t)hits[i],
						      "expired", w->until[0] && strcmp(w->until, r->env.today) < 0));
	}
	return list;
}

/* After the file is closed properly a signal outranks all but usage. */
static int exit_status(const struct run *r)
{
	if (interrupted(r))
		return 128 + *r->job->interrupted;
	return record_exit(&r->counts, r->job->strict, r->job->require_run);
}

static bool write_footer(struct run *r, int status, struct err *err)
{
	static const enum cell_status order[] = {ST_ERROR,    ST_TIMEOUT,    ST_INVALID,      ST_WRONG,
						 ST_MISMATCH, ST_REGRESSION, ST_INCONCLUSIVE, ST_PASS,
						 ST_SKIP,     ST_XFAIL,      ST_XPASS};
	json_t *counts = json_object();
	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		int64_t n = r->counts.by_status[order[i]] +
			    (order[i] == ST_INVALID ? r->counts.by_status[ST_INVALID_DATA] : 0);
		json_object_set_new(counts, status_name(order[i]), json_integer(n));
	}
	char now[21];
	run_time_text(now);
	json_t *footer = json_object();
	json_object_set_new(footer, "kind", json_string("footer"));
	json_object_set_new(footer, "counts", counts);
	json_object_set_new(footer, "gated", json_integer(r->counts.gated));
	json_object_set_new(footer, "gated_undecided", json_integer(r->counts.gated_undecided));
	json_object_set_new(footer, "warned", json_integer(r->counts.warned));
	json_object_set_new(footer, "biased", json_integer(r->counts.biased));
	json_object_set_new(footer, "noisy", json_boolean(r->env.noisy));
	json_object_set_new(footer, "not_run", json_integer(plan_count(r->job->plan) - r->done));
	json_object_set_new(footer, "waivers", waivers_json(r));
	json_object_set_new(footer, "wall_ns", json_integer(run_now_ns() - r->start_ns));
	json_object_set_new(footer, "exit", json_integer(status));
	json_object_set_new(footer, "finished", json_string(now));
	bool ok = write_and_tell(r, footer, err);
	json_decref(footer);
	return ok;
}

/* ---- a run --------------------------------------------------------------------------------------------------------- */

/* The first worker, so that the header can say on what the cells run. Its absence is no end: every cell then says so. */
static void first_worker(struct run *r)
{
	struct arena *a = arena_create();
	struct cell c;
	struct err err;
	if (plan_count(r->job->plan) > 0 && plan_cell(r->job->plan, 0, a, &c, &err))
		(void)need_worker(r, &c.timing, &err);
	arena_destroy(a);
}

static bool take_resumed(struct run *r, const struct run_resumed *old, struct err *err)
{
	char now[21];
	run_time_text(now);
	json_t *resume = json_pack("{s:s, s:s, s:i, s:s}", "kind", "resume", "started", now, "process", (int)getpid(),
				   "command", r->job->command);
	bool ok = write_and_tell(r, resume, err);
	json_decref(resume);
	for (size_t i = 0; i < old->n_kept; i++)
		account(r, old->kept[i]);
	for (size_t i = 0; i < old->n_screen && ok; i++) {
		int64_t index = plan_find(r->job->plan, text_of(old->screen[i], "id"));
		if (index >= 0)
			ok = add_pending(r, json_incref(old->screen[i]), index, err);
	}
	return ok;
}

static bool run_cells(struct run *r, const json_t *skip_ids, struct err *err)
{
	for (int64_t i = 0, n = plan_count(r->job->plan); i < n && !interrupted(r); i++) {
		if (skip_ids) {
			struct arena *a = arena_create();
			struct cell c;
			bool have = plan_cell(r->job->plan, i, a, &c, err),
			     skip = have && json_object_get(skip_ids, c.id);
			arena_destroy(a);
			if (!have)
				return false;
			if (skip)
				continue;
		}
		if (!run_cell(r, i, err))
			return false;
	}
	return true;
}

/* What the caller has to add before the footer. */
static bool conclude(struct run *r, int *status, struct err *err)
{
	if (!r->job->events.conclude || interrupted(r))
		return true;
	json_t *list = r->job->events.conclude(r->job->events.ctx, status), *record;
	bool ok = true;
	size_t i;
	json_array_foreach(list, i, record) ok = ok && write_and_tell(r, record, err);
	json_decref(list);
	return ok;
}

static bool run_all(struct run *r, const struct run_resumed *old, json_t *header, int *status, struct err *err)
{
	const bool resumed = old->file.header != NULL;
	if (resumed) {
		if (r->job->events.record)
			r->job->events.record(r->job->events.ctx, header);
		if (!take_resumed(r, old, err))
			return false;
	} else if (!write_and_tell(r, header, err)) {
		return false;
	}
	if (!run_cells(r, resumed ? old->ids : NULL, err) || !settle_pending(r, err))
		return false;
	if (!write_aggregates(r, json_object_get(header, "calibration"), err))
		return false;
	if (!r->job->keep_tau_out && !interrupted(r))
		run_pairs_store(&r->pairs, r->job);
	*status = exit_status(r);
	return conclude(r, status, err) && write_footer(r, *status, err);
}

bool run_plan(const struct run_job *job, int *status, struct err *err)
{
	struct run r = {.job = job, .start_ns = run_now_ns()};
	struct run_resumed old = {0};
	json_t *header = NULL;
	bool ok = false;
	*status = EXIT_USAGE;
	struct run_lock *lock = run_lock_take(job->peek->uuid, job->peek->name, job->suite->name, job->no_wait,
					      &job->events, job->interrupted, err);
	if (!lock) {
		if (interrupted(&r))
			*status = 128 + *job->interrupted;
		return false;
	}
	r.waiver_used = calloc((size_t)job->suite->n_waivers + 1, sizeof *r.waiver_used);
	r.aggregates = run_aggregates_create();
	if (!r.waiver_used || !r.aggregates) {
		err_set(err, "out of memory");
		goto out;
	}
	r.start_ns = run_now_ns();
	first_worker(&r);
	if (interrupted(&r)) {
		*status = 128 + *job->interrupted;
		err_set(err, "interrupted before the first cell");
		goto out;
	}
	header = run_header(job, r.worker ? worker_opened(r.worker) : NULL, run_lock_path(lock));
	if (job->how == VERDICT_RESUME && !run_resume_load(job->out, header, &old, err))
		goto out;
	/* The day of the header, as rejudge reads it: a run over midnight has one day. */
	snprintf(r.today, sizeof r.today, "%.10s", text_of(old.file.header ? old.file.header : header, "started"));
	r.env = (struct record_env){.tau = json_number_value(json_object_get(header, "tau")), .today = r.today};
	r.file = verdict_create(job->out, job->how, err);
	if (!r.file)
		goto out;
	*status = EXIT_INCOMPLETE;
	ok = run_all(&r, &old, header, status, err);
	if (!verdict_close(r.file, ok ? err : NULL))
		ok = false;
	if (!ok && *status < 128)
		*status = EXIT_INCOMPLETE;
out:
	drop_worker(&r);
	run_lock_release(lock);
	for (size_t i = 0; i < r.n_pending; i++)
		json_decref(r.pending[i].record);
	free(r.pending);
	free(r.waiver_used);
	run_aggregates_destroy(r.aggregates);
	run_pairs_free(&r.pairs);
	run_resume_free(&old);
	json_decref(header);
	return ok;
}
