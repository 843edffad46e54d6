/* sampler: one sample of an arm: launches that each find outputs of the watch's choice, are scrubbed and bracketed on their own, and of which one
 * may be looked at afterwards. */
#ifndef ASSAY_SAMPLER_H
#define ASSAY_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "rotate.h"
#include "stage.h"
#include "watch.h"

struct sampler {
	struct stage *st;
	const struct timing *t;
	struct rotate *rotate; /* SCRUB_ROTATE, else NULL; borrowed, as the watch is */
	struct watch *watch;
	bool counts; /* the samples are of a round, not of what is thrown away before it */
	bool broken; /* out: what the device says of an output cannot be */
};

/* *ns: the mean of `batch` launches of a subject, -1 where one failed. round: for whoever watches the run; -1: none. False: a launch failed, the
 * device is lost (st->lost) or broken, with *err. */
bool sampler_take(struct sampler *s, int subject, int batch, int round, int64_t *ns, struct err *err);

#endif
