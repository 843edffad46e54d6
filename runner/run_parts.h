/* run_parts: what the files of a run over a plan share: its state, the writing of records, a cell, the end. */
#ifndef ASSAY_RUN_PARTS_H
#define ASSAY_RUN_PARTS_H

#include "run.h"
#include "run_aggregate.h"
#include "run_tau.h"

/* What the cells of a waiver did: failed as it expects, or passed (xpass). */
struct run_waived {
	int64_t used, passed;
};

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
	struct run_waived *waived; /* one a waiver of the suite */
	struct run_pending *pending;
	size_t n_pending, cap_pending;
	struct run_aggregates *aggregates;
	struct run_pairs pairs;
	int64_t done, start_ns, checks_ns; /* checks_ns: wall time outside timing */
	int64_t measured; /* cells that a worker ran, for the pace */
	int64_t to_do; /* cells that are still to be measured, the one under way among them: none that a resumed file has */
	const char *cell_id; /* under way */
};

bool run_interrupted(const struct run *r);
void run_say(const struct run *r, const char *sentence); /* for stderr */

/* Writes a record and tells it. */
bool run_write(struct run *r, json_t *record, struct err *err);
/* Writes a final cell, tells it and counts it. */
bool run_write_final(struct run *r, json_t *cell, struct err *err);
/* Counts and tells a final cell, wherever it comes from. */
void run_account(struct run *r, json_t *cell);
/* Takes the record. */
bool run_add_pending(struct run *r, json_t *record, int64_t index, struct err *err);

/* A worker that fits the timing's threads; *err where none can be had now. */
bool run_need_worker(struct run *r, const struct timing *t, struct err *err);
void run_drop_worker(struct run *r);
/* Measures cell i of the plan and writes it, or its screen where a second look may change it. Nothing where interrupted. */
bool run_one_cell(struct run *r, int64_t index, struct err *err);

/* Fresh processes look at what is pending; then the verdicts are final and their lines are written. */
bool run_settle(struct run *r, struct err *err);
bool run_write_aggregates(struct run *r, const json_t *header, struct err *err);
/* After the file is closed properly a signal outranks all but usage. */
int run_exit_status(const struct run *r);
json_t *run_footer(const struct run *r, int status); /* new reference */
bool run_write_footer(struct run *r, int status, struct err *err);

#endif
