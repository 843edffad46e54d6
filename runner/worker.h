/* worker: the process that owns the device. The same binary executed anew (`assay __worker FD BEATFD`), never a bare fork. It speaks
 * JSON lines on a socket pair, so that what a kernel prints to stdout or stderr cannot harm the protocol.
 *
 *   supervisor -> worker   {"op": "open", "backend", "device", "threads", "plugins": [], "timing": null | {clock, scrub, …}}
 *                          {"op": "cell", "cell": {…}, "attempt": 1}   {"op": "confirm", "cell", "arm", "n", "order_seed"}
 *                          {"op": "digests", "cell": {…}}
 *                          {"op": "sentinels"}
 *                          {"op": "quit"}
 *   worker -> supervisor   {"ev": "opened", "device": {…}, "calibration": {…}}   {"ev": "part", "facts": {…}}
 *                          {"ev": "done", "outcome": "ok"|"failed"|"lost", "error": text, "facts": {…}}
 *                          {"ev": "failed", "error": text}   (instead of "opened")
 */
#ifndef ASSAY_WORKER_H
#define ASSAY_WORKER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "plan.h"

/* The worker's main loop; returns its exit status. */
int worker_main(int argc, char **argv);

struct worker_config {
	const char *self; /* path of this binary (/proc/self/exe) */
	const char *backend, *device;
	int threads;
	const char *const *plugins; /* NULL-terminated */
	/* All of these may be 0 or NULL: 120 s to open its device; 64 MiB a line and 512 MiB an answer of the worker, and whoever sends more
	 * is broken; not interruptible while it opens. */
	int64_t open_timeout_ns;
	size_t line_max_bytes, answer_max_bytes;
	const volatile int *interrupted;
};

struct worker; /* the supervisor's side of one worker process */
/* Starts one and waits until it has opened its device. t: what is to be calibrated; NULL: nothing is. NULL with
 * *err. */
struct worker *worker_start(const struct worker_config *cfg, const struct timing *t, struct err *err);
const json_t *worker_opened(const struct worker *w); /* the "opened" event; borrowed */

enum worker_outcome { WORKER_OK, WORKER_FAILED, WORKER_LOST, WORKER_CRASHED, WORKER_TIMEOUT, WORKER_INTERRUPTED };
struct worker_answer {
	enum worker_outcome outcome;
	json_t *facts; /* new reference; partial where not OK; may be an empty object */
	char reason[768]; /* "killed by SIGSEGV in arm split=4, phase identity" */
	bool spent; /* an arm made of the process what cannot be undone: no other cell is to run in it */
	bool found; /* CRASHED, and a finding in the facts says what the arm did: it is wrong, and no error of the cell */
};
/* Runs a cell there. Blocks; kills the worker after timeout_ns without a sign of life, or when *interrupted becomes true. After any
 * outcome but OK and FAILED the worker is dead: start another one. tick is called a few times a second (progress), may be NULL. */
void worker_cell(struct worker *w, const struct cell *c, int attempt, const volatile int *interrupted,
		 void (*tick)(void *ctx, const char *phase, const char *arm, int round), void *ctx,
		 struct worker_answer *out);
void worker_confirm(struct worker *w, const struct cell *c, const char *arm, int n, uint64_t order_seed,
		    const volatile int *interrupted, struct worker_answer *out);
/* For `repeat: {processes: K}`: the digests of the cell's arms from another worker; worker_cell asks K - 1 fresh ones for them by itself
 * and adds the `repeat` findings of kind "processes" to the facts. */
void worker_digests(struct worker *w, const struct cell *c, const volatile int *interrupted, struct worker_answer *out);
/* The sentinels anew: {"sentinels": {name: [ns, …]}}. */
void worker_sentinels(struct worker *w, const volatile int *interrupted, struct worker_answer *out);
/* Whether its process still runs: one that died while nothing was asked of it is to be replaced, and no cell is to blame. */
bool worker_alive(struct worker *w);
/* Process id, for messages and tests; 0: dead. */
int worker_pid(const struct worker *w);
/* Asks it to quit, then makes it. NULL is fine. */
void worker_stop(struct worker *w);

#endif
