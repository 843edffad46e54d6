/* watch: whether launches that are timed do what the checked ones did. Before each of them its outputs are given something else to hold
 * (decoy.h); after some of them, outside of the clock, the outputs are held against the arm's checked answer, bit for bit.
 *
 * Which ones is drawn by the seed, for all arms of a round alike, so that none finds caches that another does not: of small outputs on the
 * host one launch of each sample, else one of each arm in one round of two, and always in the last one. What could not be known to be the last
 * is made up for by a round that is thrown away, which no arm can tell from one that counts. The looks go through all four decoys. */
#ifndef ASSAY_WATCH_H
#define ASSAY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "check_cell.h"
#include "stage.h"

/* Of one subject: timed launches so far, those that were looked at, and those that gave other bits than the checked one. */
struct watched {
	int64_t launches, looked, differ;
};

struct watch;
/* ev: the checked answers; borrowed, NULL: none, then nothing is looked at. rounds: so many are to come; 0: it is not known. */
struct watch *watch_create(struct stage *st, const struct evidence *ev, int rounds, uint64_t seed, struct err *err);
void watch_destroy(struct watch *w); /* NULL is fine */

/* Before a round of samples of `batch` launches: draws what they find, and what is looked at. last: no other will come. */
void watch_round(struct watch *w, int round, int batch, bool last);
/* The same for launches that no sample is made of: nothing is looked at. */
void watch_idle(struct watch *w);
/* Before launch i of a sample, and before its scrub. Queued. */
bool watch_before(struct watch *w, struct ready *r, int i, struct err *err);
/* The launch of each sample of this round after which watch_look is to be called, once it was waited for; -1: none. */
int watch_at(const struct watch *w);
/* *lived false: the device is lost, or contradicts itself, with *err; an arm that is wrong is remembered. */
void watch_look(struct watch *w, struct ready *r, bool *lived, struct err *err);
/* Counts the launches of a sample that was taken. */
void watch_count(struct watch *w, const struct subject *s, int batch);
/* After the last round: whether one more is wanted, that is thrown away. It is drawn by watch_round as the last one. Bounded. */
bool watch_wants_more(struct watch *w);
/* Leaves a `timed` finding of each arm that was wrong in a timed launch. */
void watch_findings(struct watch *w, struct watched out[STAGE_SUBJECTS]);
/* And one of each arm that was looked at and right. Nothing is said of an arm that has such a finding already. */
void watch_passed(struct stage *st, const struct watched seen[STAGE_SUBJECTS]);

#endif
