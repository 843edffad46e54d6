/* The end of a run: second looks, aggregates, the footer. */
#include "run_parts.h"

#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "monotonic.h"

/* Fresh processes look at what is pending; then the verdicts are final and their lines are written. */
bool run_settle(struct run *r, struct err *err)
{
	/* Biased cells make a noisy run whether or not anything in it is suspect: diff and baselines ask. */
	r->env.noisy = judge_noisy((int)r->counts.biased, (int)r->timed);
	if (r->n_pending == 0)
		return true;
	for (int k = 1; k < r->job->processes && !run_interrupted(r); k++) {
		run_drop_worker(r);
		run_repeat(r->job, r->pending, r->n_pending, k, &r->worker);
	}
	run_drop_worker(r); /* the process that screened must not confirm */
	if (!run_interrupted(r))
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
		ok = run_write_final(r, cells[i], err);
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
	if (!run_interrupted(r) && !r->lost[0] && plan_count(r->job->plan) > 0 &&
	    plan_cell(r->job->plan, 0, a, &c, &err)) {
		c.timing.threads = r->worker ? r->worker_threads : c.timing.threads;
		if (run_need_worker(r, &c.timing, &err)) {
			worker_sentinels(r->worker, r->job->interrupted, &answer);
			sentinels = json_incref(json_object_get(answer.facts, "sentinels"));
			json_decref(answer.facts);
			if (answer.outcome != WORKER_OK)
				run_drop_worker(r);
		}
	}
	arena_destroy(a);
	return sentinels;
}

bool run_write_aggregates(struct run *r, const json_t *header, struct err *err)
{
	const json_t *calibration = json_object_get(header, "calibration");
	json_t *end = json_object_get(calibration, "sentinels") ? end_sentinels(r) : NULL;
	json_t *list = run_aggregates_records(r->aggregates, header, end, &r->counts), *record;
	json_t *processes = run_pairs_record(&r->pairs);
	bool ok = true;
	if (processes)
		json_array_append_new(list, processes);
	json_decref(end);
	size_t i;
	json_array_foreach(list, i, record) ok = ok && run_write(r, record, err);
	json_decref(list);
	return ok;
}

/* Whether it may well fit nothing here: it chooses by where the run is, or stands in a file that other suites include too. */
static bool meant_for_more(const struct waiver *w, const struct suite *s)
{
	for (int i = 0; i < w->match.n_terms; i++)
		if (plan_key_is_of_target(w->match.term[i].key))
			return true;
	return w->mark.file && s->path && strcmp(w->mark.file, s->path) != 0;
}

static json_t *waivers_json(const struct run *r)
{
	json_t *list = json_array();
	const int64_t *hits = plan_waiver_hits(r->job->plan);
	for (int i = 0; i < r->job->suite->n_waivers; i++) {
		const struct waiver *w = &r->job->suite->waiver[i];
		const bool elsewhere = hits[i] == 0 && meant_for_more(w, r->job->suite);
		json_array_append_new(list, json_pack("{s:s, s:s*, s:I, s:I, s:I, s:b, s:b}", "id", w->id, "lacks",
						      hits[i] == 0 ? plan_waiver_lacks(r->job->plan)[i] : NULL, "used",
						      (json_int_t)r->waived[i].used, "passed",
						      (json_int_t)r->waived[i].passed, "cells", (json_int_t)hits[i],
						      "elsewhere", elsewhere, "expired",
						      w->until[0] && strcmp(w->until, r->env.today) < 0));
	}
	return list;
}

/* After the file is closed properly a signal outranks all but usage. */
int run_exit_status(const struct run *r)
{
	if (run_interrupted(r))
		return 128 + *r->job->interrupted;
	return record_exit(&r->counts, r->job->strict, r->job->require_run);
}

json_t *run_footer(const struct run *r, int status)
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
	json_object_set_new(footer, "wall_ns", json_integer(monotonic_ns() - r->start_ns));
	json_object_set_new(footer, "exit", json_integer(status));
	json_object_set_new(footer, "finished", json_string(now));
	return footer;
}

bool run_write_footer(struct run *r, int status, struct err *err)
{
	json_t *footer = run_footer(r, status);
	bool ok = run_write(r, footer, err);
	json_decref(footer);
	return ok;
}
