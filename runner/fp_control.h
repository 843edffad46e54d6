/* fp_control: how a thread rounds, and whether it flushes denormals: state of the CPU that an arm can change and leave behind, for every
 * arm after it. Exception flags are no part of it. */
#ifndef ASSAY_FP_CONTROL_H
#define ASSAY_FP_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

/* The control bits of the calling thread; a few nanoseconds. */
uint64_t fp_control_get(void);
void fp_control_set(uint64_t control);
/* Sets them in every thread of a team of so many; true where one of them had others. A parallel region: not for what is timed. */
bool fp_control_team(uint64_t control, int threads);
/* "denormals are flushed, rounds towards zero" of bits that differ from what they were; returns text. */
const char *fp_control_words(uint64_t was, uint64_t is, char text[96]);

#endif
