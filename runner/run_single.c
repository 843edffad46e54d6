/* run_single: one cell in this process, so that a debugger, a profiler or a sanitizer sees the kernel and not a supervisor. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "run_tau.h"

bool run_single(const struct run_job *job, const char *arm, int launches, json_t **record, struct err *err)
{
	*record = NULL;
	bool ok = false;
	struct arena *a = arena_create();
	struct backend *b = NULL;
	struct exec *x = NULL;
	struct run_lock *lock = NULL;
	struct cell c;
	char today[11];
	struct run_tau tau;
	if (!plan_cell(job->plan, 0, a, &c, err))
		goto out;
	lock = run_lock_take(job->peek->uuid, job->peek->name, job->suite->name, job->no_wait, &job->events,
			     job->interrupted, err);
	if (!lock)
		goto out;
	b = backend_open(job->backend, &(struct backend_config){.device = job->device, .threads = c.timing.threads},
			 err);
	x = b ? exec_create(b, err) : NULL;
	if (!x)
		goto out;
	if (arm) {
		ok = exec_launch_only(x, &c, arm, launches, err);
		goto out;
	}
	run_today(today);
	run_tau_choose(job, &tau);
	const struct record_env env = {.tau = c.timing.tau >= 0 ? c.timing.tau : tau.tau, .today = today};
	json_t *cell = record_cell_begin(&c), *facts = NULL;
	if (!c.skip) {
		struct exec_beat *beat = calloc(1, sizeof *beat);
		if (!beat)
			abort();
		struct err why = {{0}};
		enum exec_outcome got = exec_cell(x, &c, &(struct exec_sink){.beat = beat}, &facts, &why);
		record_merge_facts(cell, facts);
		json_decref(facts);
		/* Other processes are what this one is there to do without. */
		if ((c.checks.on >> CHECK_REPEAT & 1) && c.checks.repeat.processes > 1)
			json_array_append_new(json_object_get(cell, "notes"),
					      json_sprintf("repeat: %d processes are not tried with --no-fork",
							   c.checks.repeat.processes));
		if (got != EXEC_OK)
			record_fail(cell, ST_ERROR, why.text);
		free(beat);
	}
	census_check(cell, job->controls);
	record_judge(cell, &env, false);
	*record = cell;
	ok = true;
out:
	exec_destroy(x);
	if (b)
		backend_ops_of(b)->close(b);
	run_lock_release(lock);
	arena_destroy(a);
	return ok;
}
