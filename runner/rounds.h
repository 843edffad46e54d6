/* rounds: the timed part of a cell. In each round every arm is launched once (B times), scrub before every launch, in an order drawn
 * anew; the judge is asked at each look whether more rounds are wanted. */
#ifndef ASSAY_ROUNDS_H
#define ASSAY_ROUNDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "stage.h"
#include "watch.h"

enum { ROUNDS_MAX = 1024, ROUNDS_BATCH_MAX = 32 };

/* How warm this process and its device are. Kept by exec between cells; zero at first. */
struct warmth {
	bool warmed;
	int64_t last_ns; /* backend clock at the end of the last launch */
};

struct rounds_job {
	const char *only[MAX_LIST]; /* arms to time, NULL-terminated; empty: all that run, and the null arm */
	int rounds; /* > 0: exactly so many, no early stop, no batch search beyond `batch` */
	int batch; /* > 0: instead of timing.batch */
	uint64_t order_seed;
	double tick_ns;
};

struct rounds {
	int n, dropped; /* rounds in the samples, dropped ones included */
	int batch; /* launches a sample; above ROUNDS_BATCH_MAX no round was taken */
	bool cut; /* by the budget */
	int64_t wall_ns;
	int64_t launches; /* timed ones, of all arms */
	struct watched watched[STAGE_SUBJECTS];
	int64_t *sample[STAGE_SUBJECTS]; /* by subject: ns, -1 in a dropped round; NULL: not timed */
};

/* The order of n arms in one round: a permutation of 0..n-1 that depends on seed and round only. */
void rounds_order(uint64_t seed, int round, int n, int order[]);

/* ev: the checked answers, against which timed launches are looked at (watch.h). False: the device is lost or contradicts itself, with *err.
 * Launches that fail drop their round and leave a `run` finding, wrong ones a `timed` one. */
bool rounds_run(struct stage *st, const struct evidence *ev, const struct rounds_job *job, struct warmth *warm,
		struct rounds *out, struct err *err);
void rounds_free(struct rounds *r);
/* Samples of a subject as an array with null for dropped rounds; JSON null where it was not timed. New reference. */
json_t *rounds_samples(const struct rounds *r, int subject);

#endif
