/* escape: work that runs on after an arm's own queue is done, on a stream of its own, so that the clock does not see it. The backend tells how
 * long the device worked on (drain); a single telling is a host's time, and a host that was put aside in between makes the same gap. So
 * a gap is a suspicion only, and the launch is watched again: an escape is there each time. */
#ifndef ASSAY_ESCAPE_H
#define ASSAY_ESCAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "stage.h"

/* Work that runs on so long has escaped the marks. */
#define ESCAPE_LEAST_NS 50000
/* Watched launches of a suspect; the shortest gap counts. */
enum { ESCAPE_LOOKS = 8 };

/* What a sync told of a subject's launch. */
void escape_seen(struct subject *s, int64_t gap_ns);
/* Launches each subject under suspicion again, in the main scene. A gap in every one of them is a `run` finding, invalid, with the
 * shortest; otherwise nothing was there. False: the device is lost. */
bool escape_settle(struct stage *st, struct err *err);

#endif
