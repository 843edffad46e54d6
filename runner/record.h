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
	ST_ERROR,
	ST_TIMEOUT,
	ST_INVALID_DATA,
	ST_WRONG,
	ST_MISMATCH,
	ST_INVALID,
	ST_REGRESSION,
	ST_INCONCLUSIVE,
	ST_PASS,
	ST_SKIP,
	ST_XFAIL,
	ST_XPASS,
	ST_N
};
const char *status_name(enum cell_status s); /* ST_INVALID_DATA and ST_INVALID are both "invalid" */
enum cell_status status_of(const char *name); /* ST_N: unknown; "invalid" is ST_INVALID */

/* A check's findings, made by the executor: {"check": "identity", "arm": "split=4", "status": "mismatch", "text": "…", …}. status is
 * "pass" or a cell status. */

/* The record of a planned cell before anything ran. New reference. */
json_t *record_cell_begin(const struct cell *c);
/* Merges what a worker saw; facts is borrowed. Later facts win. */
void record_merge_facts(json_t *cell, json_t *facts);
/* The record of a cell that never answered: error or timeout, with the arm and phase that was under way. */
void record_fail(json_t *cell, enum cell_status st, const char *reason);

/* What held the clock while the cell was timed ("power cap"), or NULL. */
const char *record_limit(const json_t *cell);

struct record_env {
	bool noisy; /* by judge_noisy over the run */
	double tau; /* ln; what cells use that state none themselves: the header's tau */
	const char *
		today; /* YYYY-MM-DD, for waivers; NULL: none has expired. A run's start, so that rejudge sees the same day */
};
/* Judges one cell from its own record: writes "timing", "status", "reason" and the summaries in place. Pure, and the same again
 * when done twice. With `more_to_come` a cell whose timing would fail keeps timing.verdict "suspect" (status inconclusive): its line
 * waits for the end of the run, where the noisy-run rule speaks; record_wants_confirm says which of these a fresh process is to
 * look at. Without it the verdict is final; confirm.confirmed is taken as record_judge_run wrote it. */
enum cell_status record_judge(json_t *cell, const struct record_env *env, bool more_to_come);
/* A suspect under `confirm: fresh` that has no "confirm" yet. Its rounds: judge_confirm_rounds(timing.n). */
bool record_wants_confirm(const json_t *cell);
/* Stores what the fresh process measured ({process, order_seed, arms}; borrowed) as the cell's "confirm". */
void record_set_confirm(json_t *cell, json_t *facts);
/* The end of a run: Holm over the suspects that carry "confirm", the noisy-run rule, every cell judged to the end. cells: n records,
 * all of the run; or the suspects alone, with env->noisy already set by judge_noisy over all. Sets env->noisy. */
void record_judge_run(json_t **cells, size_t n, struct record_env *env);

/* Exit status of a run by the counts (product.md, Exit status), before signals. */
struct run_counts {
	int64_t by_status[ST_N]; /* an "invalid" cell counts under ST_INVALID */
	int64_t gated, gated_undecided, warned, biased;
	int64_t bars_missed, aggregates_invalid; /* by record_count_aggregate */
};
void record_count(const json_t *cell, struct run_counts *c);
/* The aggregates of the ratio checks in these cells: one a case, kernel, point and distribution, in the order of the cells. New array of
 * records, empty where no cell has such a check. One of which the plan has more cells, by its header, is `incomplete`; header: NULL: these are
 * all. Pure. */
json_t *record_aggregates(json_t *const *cells, size_t n, const json_t *header);
/* For the header: how many cells, before filters and shards, each ratio check's aggregate is over, by its name and by that without the
 * distribution. New object. */
json_t *record_ratio_groups(const struct plan *p);
void record_count_aggregate(const json_t *aggregate, struct run_counts *c);
int record_exit(const struct run_counts *c, bool strict, bool require_run);

#endif
