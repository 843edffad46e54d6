/* rotate: `scrub: rotate`. Copies of the inputs, so many that one is out of the caches when its turn comes again; every launch takes the
 * next one. */
#ifndef ASSAY_ROTATE_H
#define ASSAY_ROTATE_H

#include "stage.h"

struct rotate;
/* Plans each of these subjects over each copy. NULL with *err where there is no memory for them or an arm cannot be planned; st->lost may
 * be set. A note says where the copies are too few to be cold. */
struct rotate *rotate_create(struct stage *st, const int subject[], int n_subjects, struct err *err);
void rotate_destroy(struct rotate *r); /* NULL is fine */
/* The subject over the next copy. */
struct ready *rotate_next(struct rotate *r, int subject);
/* Before each round: shifts the turns where a round would give every arm the copy that it had in the last one. */
void rotate_round(struct rotate *r);

#endif
