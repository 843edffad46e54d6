/* run_single: one cell in this process, so that a debugger, a profiler or a sanitizer sees the kernel and not a supervisor. */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "exec.h"
#include "exec_facts.h"
#include "monotonic.h"
#include "run_parts.h"

struct here {
	struct arena *arena;
	struct run_lock *lock;
	struct backend *backend;
	struct exec *exec;
	struct cell cell;
};

static bool here_open(struct here *h, const struct run_job *job, struct err *err)
{
	*h = (struct here){.arena = arena_create()};
	if (!plan_cell(job->plan, 0, h->arena, &h->cell, err))
		return false;
	h->lock = run_lock_take(job->peek->uuid, job->peek->name, job->suite->name, job->no_wait, &job->events,
				job->interrupted, err);
	if (!h->lock)
		return false;
	const struct backend_config config = {.device = job->device, .threads = h->cell.timing.threads};
	h->backend = backend_open(job->backend, &config, err);
	h->exec = h->backend ? exec_create(h->backend, err) : NULL;
	return h->exec != NULL;
}

static void here_close(struct here *h)
{
	exec_destroy(h->exec);
	if (h->backend)
		backend_ops_of(h->backend)->close(h->backend);
	run_lock_release(h->lock);
	arena_destroy(h->arena);
}

bool run_launches(const struct run_job *job, const char *arm, int launches, struct err *err)
{
	struct here h;
	const bool ok = here_open(&h, job, err) && exec_launch_only(h.exec, &h.cell, arm, launches, err);
	here_close(&h);
	return ok;
}

/* The judged record. */
static json_t *run_here(struct here *h, const struct run *r)
{
	const struct cell *c = &h->cell;
	json_t *cell = record_cell_begin(c), *facts = NULL;
	if (!c->skip) {
		struct exec_beat *beat = calloc(1, sizeof *beat);
		if (!beat)
			abort();
		struct err why = {{0}};
		enum exec_outcome got = exec_cell(h->exec, c, &(struct exec_sink){.beat = beat}, &facts, &why);
		record_merge_facts(cell, facts);
		json_decref(facts);
		/* Other processes are what this one is there to do without. */
		if ((c->checks.on >> CHECK_REPEAT & 1) && c->checks.repeat.processes > 1)
			json_array_append_new(json_object_get(cell, "notes"),
					      json_sprintf("repeat: %d processes are not tried with --no-fork",
							   c->checks.repeat.processes));
		if (got != EXEC_OK)
			record_fail(cell, ST_ERROR, why.text);
		free(beat);
	}
	census_check(cell, r->job->controls);
	record_judge(cell, &r->env, false);
	return cell;
}

/* Into the file, where there is one that can be written still, and told in any case. */
static void put(struct run *r, json_t *record, bool *written, struct err *err)
{
	*written = *written && (!r->file || verdict_write(r->file, record, err));
	if (r->job->events.record)
		r->job->events.record(r->job->events.ctx, record);
}

static void put_end(struct run *r, const json_t *header, int *status, bool *written, struct err *err)
{
	json_t *list = run_aggregates_records(r->aggregates, header, NULL, &r->counts), *record;
	size_t i;
	json_array_foreach(list, i, record) put(r, record, written, err);
	json_decref(list);
	*status = *written || run_interrupted(r) ? run_exit_status(r) : EXIT_INCOMPLETE;
	json_t *footer = run_footer(r, *status);
	const bool before = *written;
	put(r, footer, written, err);
	if (before && !*written && *status < 128)
		*status = EXIT_INCOMPLETE;
	json_decref(footer);
}

bool run_single(const struct run_job *job, int *status, struct err *err)
{
	struct run r = {.job = job, .start_ns = monotonic_ns()};
	struct here h;
	json_t *header = NULL, *opened = NULL, *cell;
	bool ok = false, written = true;
	*status = EXIT_INCOMPLETE;
	r.waived = calloc((size_t)job->suite->n_waivers + 1, sizeof *r.waived);
	r.aggregates = run_aggregates_create();
	if (!here_open(&h, job, err)) {
		*status = run_interrupted(&r) ? 128 + *job->interrupted : EXIT_INCOMPLETE;
		goto out;
	}
	if (!r.waived || !r.aggregates) {
		err_set(err, "out of memory");
		goto out;
	}
	/* Not calibrated: who looks at a kernel wants it alone. */
	opened = json_pack("{s:o}", "device", facts_device(backend_ops_of(h.backend)->info(h.backend)));
	header = run_header(job, opened, run_lock_path(h.lock));
	snprintf(r.today, sizeof r.today, "%.10s", json_string_value(json_object_get(header, "started")));
	r.env = (struct record_env){.tau = json_number_value(json_object_get(header, "tau")), .today = r.today};
	r.file = job->out ? verdict_create(job->out, job->how, err) : NULL;
	if (job->out && !r.file) {
		*status = EXIT_USAGE;
		goto out;
	}
	if (r.file && !verdict_write(r.file, header, err)) { /* nothing is run whose record could not be kept */
		verdict_close(r.file, NULL);
		*status = EXIT_USAGE;
		goto out;
	}
	if (job->events.record)
		job->events.record(job->events.ctx, header);
	cell = run_here(&h, &r);
	written = written && (!r.file || verdict_write(r.file, cell, err));
	run_account(&r, cell);
	json_decref(cell);
	put_end(&r, header, status, &written, err);
	ok = !r.file || verdict_close(r.file, written ? err : NULL);
	ok = ok && written;
	if (!ok && *status < 128)
		*status = EXIT_INCOMPLETE;
out:
	here_close(&h);
	run_aggregates_destroy(r.aggregates);
	run_pairs_free(&r.pairs);
	free(r.waived);
	json_decref(header);
	json_decref(opened);
	return ok;
}
