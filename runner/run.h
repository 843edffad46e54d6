/* run: a plan to a verdict file. The supervisor's side: it owns the file, the lock of the device and the workers, and touches no
 * device. Prints nothing: what happens is told through run_events. */
#ifndef ASSAY_RUN_H
#define ASSAY_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "census.h"
#include "err.h"
#include "plan.h"
#include "record.h"
#include "registry.h"
#include "suite.h"
#include "verdict.h"
#include "worker.h"

struct run_progress {
	int64_t done, total; /* cells */
	int64_t left_ns; /* by the pace so far; -1: unknown */
	const char *cell; /* id of the current one */
	const char *phase, *arm; /* NULL: unknown */
	int round;
};

/* Any of them may be NULL. */
struct run_events {
	void (*record)(void *ctx,
		       const json_t *record); /* each record that is written, and with a resume each that is kept */
	void (*say)(void *ctx, const char *sentence); /* a message for stderr */
	void (*progress)(void *ctx, const struct run_progress *p);
	/* Before the footer of a run that was not interrupted: more aggregates to be written (new reference, or NULL); *status is what the run's
	 * exit status would be and may be changed. */
	json_t *(*conclude)(void *ctx, int *status);
	void *ctx;
};

struct run_job {
	const struct suite *suite;
	const struct registry *registry;
	const struct plan *plan;
	const char *backend, *device; /* device may be NULL */
	const struct device_peek *peek;
	const char *const *plugins; /* NULL-terminated */
	const char *out; /* path or "-" */
	enum verdict_open how;
	bool can_resume; /* the verb has --resume: a full disk is told with that remedy */
	int processes; /* at least 1 */
	int shard_i, shard_n; /* 0/0: none */
	bool no_wait, strict, require_run;
	const char *tau_store; /* path; NULL: the default one (tau_store.h) */
	bool keep_tau_out; /* what processes differ by is not put into the store */
	const char *command; /* the command line, quoted */
	const char *const *filter; /* as given, NULL-terminated; NULL: none */
	const struct census_files *controls; /* what stands in for measured controls of ratio checks; NULL: nothing */
	struct run_events events;
	const volatile int *interrupted; /* the signal's number once one came */
};

/* Runs it. False with *err and *exit 2 where nothing was run (lock, file, another plan), or 3 where the file could not be written to
 * its end. Else *exit is the run's status, as the footer has it. */
bool run_plan(const struct run_job *job, int *exit_status, struct err *err);

/* One cell in this process: for debuggers, profilers and sanitizers. As run_plan, without a calibration; into job->out, or into no file where
 * that is NULL. */
bool run_single(const struct run_job *job, int *exit_status, struct err *err);
/* Nothing but so many launches of an arm of that cell, and no record. */
bool run_launches(const struct run_job *job, const char *arm, int launches, struct err *err);

/* ---- parts --------------------------------------------------------------------------------------------------------- */

const char *run_tool_version(void);
const char *run_tool_commit(void);
void run_time_text(char out[21]); /* 2026-11-30T17:50:22Z */
void run_today(char out[11]); /* UTC, as the header's start */

/* The default tau where neither suite nor store has one (ln). */
#define RUN_TAU_DEFAULT 0.0025

/* The header. opened: the worker's "opened" event or NULL. New reference. */
json_t *run_header(const struct run_job *job, const json_t *opened, const char *lock_path);

/* One run a device: an advisory lock named after the device. Waits for the holder, saying so; NULL with *err where no_wait is set
 * and it is held, where *interrupted came, or where it cannot be made. Released by run_lock_release and by the end of the process. */
struct run_lock;
struct run_lock *run_lock_take(const char *uuid, const char *device, const char *suite, bool no_wait,
			       const struct run_events *ev, const volatile int *interrupted, struct err *err);
const char *run_lock_path(const struct run_lock *l);
void run_lock_release(struct run_lock *l); /* NULL is fine */

/* What a resumed file holds. */
struct run_resumed {
	struct verdict_file file;
	json_t **kept; /* final cells that are not done again, borrowed from file */
	size_t n_kept;
	json_t **screen; /* records of suspects without a final verdict, borrowed */
	size_t n_screen;
	json_t *ids; /* id -> true of both */
};
/* Loads path; false where it was written for another plan, suite, settings, device or by another binary. No file: *out is empty. */
bool run_resume_load(const char *path, const json_t *header, struct run_resumed *out, struct err *err);
void run_resume_free(struct run_resumed *r);

/* A record that is not final yet, with the cell it belongs to. */
struct run_pending {
	json_t *record;
	int64_t index; /* in the plan's filtered list */
};
/* Has every pending suspect looked at by a fresh worker and stores what it saw under "confirm". Stops early where *interrupted. */
void run_confirm(const struct run_job *job, struct run_pending *p, size_t n, uint64_t seed, struct worker **worker);
/* Times every pending cell once more in a fresh worker and appends to "repeats". */
void run_repeat(const struct run_job *job, struct run_pending *p, size_t n, int process, struct worker **worker);

/* Starts a worker for cells with this timing; NULL with *err. */
struct worker *run_worker(const struct run_job *job, const struct timing *t, struct err *err);

/* `--shard i/n` and `--shard auto`. *i and *n are 0 where auto finds nothing. words: what was picked and from where. */
bool run_shard_parse(const char *text, int *i, int *n, char *words, size_t cap, struct err *err);

#endif
