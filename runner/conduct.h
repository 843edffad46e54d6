/* conduct: what an arm made of the process that all arms share (surroundings.h), and who it was. Code of an arm is followed by a look before
 * another arm's code runs, so that the blame does not depend on the order of arms; only timed launches are not looked into one by one, and what
 * is found after them is nobody's in particular. */
#ifndef ASSAY_CONDUCT_H
#define ASSAY_CONDUCT_H

#include <stdbool.h>

#include "stage.h"

/* Takes the process as it is, before any arm's code runs. False: out of memory. */
bool conduct_begin(struct stage *st, struct err *err);
/* Threads that an arm left behind are no harm as long as all is right; where something is not, the next cell has another process: they may
 * yet write to what is its own by then. */
void conduct_finish(struct stage *st);

/* Code of s is about to run: costs nothing. */
void conduct_acts(struct stage *st, struct subject *s);
/* Before a checked launch of s, and after it. False with *err: the process cannot answer any more, and *st is lost. */
bool conduct_before(struct stage *st, const struct subject *s, struct err *err);
bool conduct_after(struct stage *st, struct subject *s, struct err *err);
/* Looks at everything, whoever acted last. */
bool conduct_look(struct stage *st, struct err *err);
/* Whether the threads that arms left behind rest. Takes no time where there are none that are new. */
void conduct_rest(struct stage *st);

#endif
