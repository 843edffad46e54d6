/* record: the lines of a verdict file, as JSON objects with keys in a fixed order. docs/verdict.md lists every field.
 *
 * Facts (what the worker saw) and verdicts (what the judge says) live in one object: record_cell_begin makes it from the plan,
 * the worker's facts are merged in by record_merge_facts, record_judge adds timing, status and reason from what is
 * stored and from nothing else. `rejudge` calls record_judge again. */
#ifndef ASSAY_RECORD_H
#define ASSAY_RECORD_H

#include <jansson.h>
#include <stdbool.h>

#include "err.h"
#include "judge.h"
#include "plan.h"

enum { RECORD_FORMAT = 1 };

/* In the order of precedence: where several hold, the first names the cell. */
enum cell_status {
	ST_ERROR, ST_TIMEOUT, ST_INVALID_DATA, ST_WRONG, ST_MISMATCH, ST_INVALID, ST_REGRESSION, ST_INCONCLUSIVE,
	ST_PASS, ST_SKIP, ST_XFAIL, ST_XPASS, ST_N
};
const char *status_name(enum cell_status s); /* ST_INVALID_DATA and ST_INVALID are both "invalid" */
enum cell_status status_of(const char *name); /* ST_N: unknown */

/* A check's findings, made by the executor: {"check": "identity", "arm": "split=4", "status": "mismatch", "text": "…", …}. status is
 * "pass" or a cell status. */

/* The record of a planned cell before anything ran. New reference. */
json_t *record_cell_begin(const struct cell *c);
/* Merges what a worker saw; facts is borrowed. Later facts win. */
void record_merge_facts(json_t *cell, json_t *facts);
/* The record of a cell that never answered: error or timeout, with the arm and phase that was under way. */
void record_fail(json_t *cell, enum cell_status st, const char *reason);

struct record_env {
	bool noisy;        /* by judge_noisy over the run */
	double tau;        /* ln */
	const char *today; /* YYYY-MM-DD, for waivers */
};
/* Judges one cell from its own record: writes "timing", "status", "reason" in place. Pure. A suspect gets timing.verdict
 * "suspect" where its rule asks for confirmation and no "confirm" is stored and `more_to_come`; else what is final. */
enum cell_status record_judge(json_t *cell, const struct record_env *env, bool more_to_come);
/* Holm over the suspects of a run that carry "confirm", the noisy-run rule; judges every cell again. cells: n records. */
void record_judge_run(json_t **cells, size_t n, struct record_env *env);

/* Exit status of a run by the counts (product.md, Exit status), before signals. */
struct run_counts { int64_t by_status[ST_N]; int64_t gated, gated_undecided, warned, biased; };
void record_count(const json_t *cell, struct run_counts *c);
int record_exit(const struct run_counts *c, bool strict, bool require_run);

#endif
