/* escape: work that runs on after an arm's own queue is done, on a stream of its own, so that the clock does not see it. The backend tells how
 * long the device worked on (drain); a single telling is a host's time, and a host that was put aside in between makes the same gap. So
 * a gap is a suspicion only, and the launch is watched again: of 24 watched launches an escape shows in 20 or more. On a host so busy that each
 * wait is late by chance with probability 1/3, that happens to an innocent arm once in a million suspicions. What shows more than once,
 * and in fewer, is a note in the record: nobody is accused, and nobody is believed without a word. */
#ifndef ASSAY_ESCAPE_H
#define ASSAY_ESCAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "stage.h"

/* Work that runs on so long has escaped the marks. */
#define ESCAPE_LEAST_NS 50000
/* Watched launches of a suspect, and how many of them must show a gap. */
enum { ESCAPE_LOOKS = 24, ESCAPE_NEEDED = 20 };

/* What a sync told of a subject's launch. */
void escape_seen(struct subject *s, int64_t gap_ns);
/* Launches each subject under suspicion again, in the main scene. A gap in ESCAPE_NEEDED of them is a `run` finding, invalid, with the
 * shortest; fewer are a note, and a single gap that did not come again is nothing. False: the device is lost. */
bool escape_settle(struct stage *st, struct err *err);

#endif
