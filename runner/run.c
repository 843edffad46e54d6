#include "run_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "monotonic.h"

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));
	return s ? s : "";
}

bool run_interrupted(const struct run *r)
{
	return r->job->interrupted && *r->job->interrupted;
}

void run_say(const struct run *r, const char *sentence)
{
	if (r->job->events.say)
		r->job->events.say(r->job->events.ctx, sentence);
}

/* Counts a final cell and tells it, wherever it comes from. */
void run_account(struct run *r, json_t *cell)
{
	record_count(cell, &r->counts);
	if (json_is_object(json_object_get(json_object_get(cell, "timing"), "null")))
		r->timed++;
	const char *waiver = text_of(json_object_get(cell, "waiver"), "id");
	enum cell_status st = status_of(text_of(cell, "status"));
	for (int i = 0; i < r->job->suite->n_waivers; i++) {
		if (strcmp(r->job->suite->waiver[i].id, waiver) != 0)
			continue;
		r->waived[i].used += st == ST_XFAIL;
		r->waived[i].passed += st == ST_XPASS;
	}
	run_aggregates_add(r->aggregates, cell);
	run_pairs_add(&r->pairs, cell);
	r->done++;
	if (r->job->events.record)
		r->job->events.record(r->job->events.ctx, cell);
}

bool run_write_final(struct run *r, json_t *cell, struct err *err)
{
	if (!verdict_write(r->file, cell, err))
		return false;
	run_account(r, cell);
	return true;
}

bool run_write(struct run *r, json_t *record, struct err *err)
{
	bool ok = verdict_write(r->file, record, err);
	if (ok && r->job->events.record)
		r->job->events.record(r->job->events.ctx, record);
	return ok;
}

/* Takes the record. */
bool run_add_pending(struct run *r, json_t *record, int64_t index, struct err *err)
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

/* The first worker, so that the header can say on what the cells run. Its absence is no end: every cell then says so. */
static void first_worker(struct run *r)
{
	struct arena *a = arena_create();
	struct cell c;
	struct err err;
	if (plan_count(r->job->plan) > 0 && plan_cell(r->job->plan, 0, a, &c, &err))
		(void)run_need_worker(r, &c.timing, &err);
	arena_destroy(a);
}

static bool take_resumed(struct run *r, const struct run_resumed *old, struct err *err)
{
	char now[21];
	run_time_text(now);
	json_t *resume = json_pack("{s:s, s:s, s:i, s:s}", "kind", "resume", "started", now, "process", (int)getpid(),
				   "command", r->job->command);
	bool ok = run_write(r, resume, err);
	json_decref(resume);
	for (size_t i = 0; i < old->n_kept; i++)
		run_account(r, old->kept[i]);
	for (size_t i = 0; i < old->n_screen && ok; i++) {
		int64_t index = plan_find(r->job->plan, text_of(old->screen[i], "id"));
		if (index >= 0)
			ok = run_add_pending(r, json_incref(old->screen[i]), index, err);
	}
	return ok;
}

static bool run_cells(struct run *r, const json_t *skip_ids, struct err *err)
{
	const int64_t n = plan_count(r->job->plan);
	r->to_do = n - (int64_t)json_object_size(skip_ids);
	for (int64_t i = 0; i < n && !run_interrupted(r); i++) {
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
		if (!run_one_cell(r, i, err))
			return false;
		r->to_do--;
	}
	return true;
}

/* What the caller has to add before the footer. */
static bool conclude(struct run *r, int *status, struct err *err)
{
	if (!r->job->events.conclude || run_interrupted(r))
		return true;
	json_t *list = r->job->events.conclude(r->job->events.ctx, status), *record;
	bool ok = true;
	size_t i;
	json_array_foreach(list, i, record) ok = ok && run_write(r, record, err);
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
	} else if (!run_write(r, header, err)) {
		return false;
	}
	if (!run_cells(r, resumed ? old->ids : NULL, err) || !run_settle(r, err))
		return false;
	if (!run_write_aggregates(r, header, err))
		return false;
	if (!r->job->keep_tau_out && !run_interrupted(r))
		run_pairs_store(&r->pairs, r->job);
	*status = run_exit_status(r);
	return conclude(r, status, err) && run_write_footer(r, *status, err);
}

bool run_plan(const struct run_job *job, int *status, struct err *err)
{
	struct run r = {.job = job, .start_ns = monotonic_ns()};
	struct run_resumed old = {0};
	json_t *header = NULL;
	bool ok = false;
	*status = EXIT_USAGE;
	struct run_lock *lock = run_lock_take(job->peek->uuid, job->peek->name, job->suite->name, job->no_wait,
					      &job->events, job->interrupted, err);
	if (!lock) {
		if (run_interrupted(&r))
			*status = 128 + *job->interrupted;
		return false;
	}
	r.waived = calloc((size_t)job->suite->n_waivers + 1, sizeof *r.waived);
	r.aggregates = run_aggregates_create();
	if (!r.waived || !r.aggregates) {
		err_set(err, "out of memory");
		goto out;
	}
	r.start_ns = monotonic_ns();
	first_worker(&r);
	if (run_interrupted(&r)) {
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
	if (job->can_resume)
		verdict_can_resume(r.file);
	*status = EXIT_INCOMPLETE;
	ok = run_all(&r, &old, header, status, err);
	/* Not even a header: nothing was run. */
	const bool begun = verdict_begun(r.file);
	if (!verdict_close(r.file, ok ? err : NULL))
		ok = false;
	if (!ok && *status < 128)
		*status = begun ? EXIT_INCOMPLETE : EXIT_USAGE;
out:
	run_drop_worker(&r);
	run_lock_release(lock);
	for (size_t i = 0; i < r.n_pending; i++)
		json_decref(r.pending[i].record);
	free(r.pending);
	free(r.waived);
	run_aggregates_destroy(r.aggregates);
	run_pairs_free(&r.pairs);
	run_resume_free(&old);
	json_decref(header);
	return ok;
}
