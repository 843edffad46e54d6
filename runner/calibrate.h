/* calibrate: what the harness itself is like in this process: the clock's tick, the floor of an empty bracket, whether the scrub
 * evicts what it should, and the sentinels that tell a slow machine from a slow kernel. Measured once for each clock and scrub. */
#ifndef ASSAY_CALIBRATE_H
#define ASSAY_CALIBRATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "err.h"
#include "settings.h"

/* A probe that was evicted is slower by at least this. On the host the probe is a chain of loads through 128 KiB, which sits in the
 * second cache: from there to memory is a factor of 15 to 30, to a last-level cache that still holds it 3 to 5. A device's probe streams
 * through its last-level cache. */
#define CALIBRATE_SCRUB_RATIO_HOST 6
#define CALIBRATE_SCRUB_RATIO 1.2

struct scrub_proof {
	bool measured; /* false: this scrub is none or rotate, or the backend has no probe */
	int64_t probe_bytes, warm_ns, scrubbed_ns;
	double ratio;
	bool proven;
};

struct calibration;
struct calibration *calibration_create(struct backend *be); /* NULL out of memory */
void calibration_destroy(struct calibration *c); /* NULL is fine */

/* The smallest step of a clock, and the median of an empty bracket, in ns. */
bool calibration_clock(struct calibration *c, enum clock_kind clock, double *tick_ns, int64_t *floor_ns,
		       struct err *err);
bool calibration_scrub(struct calibration *c, const struct timing *t, struct scrub_proof *out, struct err *err);
/* The bytes a scrub of this timing reads; 0 for none, -1 where the backend does not say. */
int64_t calibration_scrub_bytes(struct calibration *c, const struct timing *t);
/* All of it as JSON, sentinels included (run once). New reference, NULL with *err. */
json_t *calibration_json(struct calibration *c, const struct timing *t, struct err *err);

#endif
