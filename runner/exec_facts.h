/* exec_facts: what exec saw, as the JSON of docs/verdict.md. */
#ifndef ASSAY_EXEC_FACTS_H
#define ASSAY_EXEC_FACTS_H

#include <jansson.h>

#include "calibrate.h"
#include "check_cell.h"
#include "rounds.h"
#include "stage.h"

/* `data` findings of broken promises (a pass where there is none) and the audit. Returns whether every promise held. */
bool facts_data(struct stage *st, json_t *facts);
/* False with *err where the kernel gives what is no amount: NAN, infinite, below 0. */
bool facts_work(struct stage *st, json_t *facts, struct err *err);
/* out_sha256 by subject, empty where it did not run. */
struct facts_sha {
	char hex[STAGE_SUBJECTS][65];
};
bool facts_digests(struct stage *st, const struct evidence *ev, struct facts_sha *sha, struct err *err);
/* Sets "arms". rounds NULL: not timed. */
void facts_arms(struct stage *st, const struct facts_sha *sha, const struct rounds *rounds, json_t *facts);
struct facts_measure {
	double tick_ns;
	int64_t floor_ns, scrub_bytes;
	double cold_bytes; /* of the least bytes, those that have to come from memory between start and stop; 0: none has to */
	struct scrub_proof proof;
	uint64_t order_seed;
};
void facts_measure(struct stage *st, const struct facts_measure *m, const struct rounds *rounds, json_t *facts);
/* Of the cell's least bytes (facts_work comes first) those that a scrub of so many bytes has put out of the cache. What is written may stay
 * in the cache, as far as it fits. */
double facts_cold_bytes(const struct stage *st, const json_t *facts, int64_t scrub_bytes);
/* How often the backend can do at most what its arithmetic sentinel does; 0: unknown, so that nothing follows from operations. */
double facts_flop_reach(const struct stage *st);
json_t *facts_state(const struct device_state *s);
json_t *facts_device(const struct device_info *d);

#endif
