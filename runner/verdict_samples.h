/* verdict_samples: whether the samples of a cell's record can be what a run wrote. */
#ifndef ASSAY_VERDICT_SAMPLES_H
#define ASSAY_VERDICT_SAMPLES_H

#include <jansson.h>
#include <stdbool.h>

#include "err.h"

/* Entry r of every timed arm's samples_ns is round r: nanoseconds, not negative, or null in every arm for a round that was dropped.
 * Holds for "arms", "confirm" and each of "repeats". False with *err, which says what is wrong with which arm and not where the line stands. */
bool verdict_samples_good(const json_t *cell, struct err *err);

#endif
