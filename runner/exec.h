/* exec: one cell on one backend: fill, audit, poison, run, check, time. Runs in the worker (or, with --no-fork, in the one process
 * there is). Knows backends by their vtable only, kernels by their descriptor only. */
#ifndef ASSAY_EXEC_H
#define ASSAY_EXEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend.h"
#include "err.h"
#include "fault.h"
#include "plan.h"

/* Where the work is, for the watchdog and for the blame: shared with the supervisor, written before each launch. */
struct exec_beat {
	_Atomic uint64_t count; /* grows with every sign of life */
	char phase[32]; /* "fill", "identity", "timing", … */
	char arm[64];
	int32_t round;
	struct fault_note fault; /* where the process was when the CPU stopped it */
	int32_t spent; /* what an arm made of this process cannot be undone: no other cell is to run in it */
	char said[128]; /* last words of a worker that cannot answer; empty: none */
};

struct exec_sink {
	struct exec_beat *beat; /* never NULL */
	void (*part)(void *ctx, json_t *facts); /* facts so far (borrowed), after each stage: survives a crash */
	void *ctx;
	int link; /* the descriptor by which the facts are sent, which an arm may close; 0: none */
};

struct exec;
/* Keeps input tensors between cells (they are functions of the seed), calibration and sentinels. b is borrowed. */
struct exec *exec_create(struct backend *b, struct err *err);
void exec_destroy(struct exec *x); /* NULL is fine */
/* Inputs above so many bytes have one set instead of two (inputs.h has the default). */
void exec_set_input_limit(struct exec *x, size_t bytes);

/* Calibration of this process, once: {tick_ns, null_launch_ns, scrub: {bytes, warm_ns, scrubbed_ns, ratio}, peak…, sentinels, warmup}.
 * New reference. */
json_t *exec_calibration(struct exec *x, const struct timing *t, struct err *err);

/* The sentinels now, whatever the calibration keeps. New reference; NULL with *err where they fail or the backend has none. */
json_t *exec_sentinels(struct exec *x, struct err *err);

enum exec_outcome {
	EXEC_OK,
	EXEC_FAILED,
	EXEC_LOST
}; /* LOST: the device is gone for this process, start another worker */
/* Runs a cell: *facts is a new reference, never NULL, partial where the outcome is not EXEC_OK (then *err says what failed). */
enum exec_outcome exec_cell(struct exec *x, const struct cell *c, const struct exec_sink *sink, json_t **facts,
			    struct err *err);
/* The samples of shipped and one arm anew, n rounds, this order seed: {process, order_seed, arms: […]}. */
enum exec_outcome exec_confirm(struct exec *x, const struct cell *c, const char *arm, int n, uint64_t order_seed,
			       const struct exec_sink *sink, json_t **facts, struct err *err);
/* The digests of one checked launch of each arm, for `repeat: {processes: K}`: {process, arms: [{name, out_sha256}]}. */
enum exec_outcome exec_digests(struct exec *x, const struct cell *c, const struct exec_sink *sink, json_t **facts,
			       struct err *err);
/* The attempt that the next exec_cell is, from 1: another attempt draws other orders. 1 until it is called. */
void exec_set_attempt(struct exec *x, int attempt);
/* `--no-fork --arm NAME --launches N`: nothing but that arm, after fill and one warm-up. */
bool exec_launch_only(struct exec *x, const struct cell *c, const char *arm, int launches, struct err *err);

#endif
