/* check_cell: whether the arms of a cell are right. Each check_* plays on a stage and leaves findings; false means that the device is
 * lost (or host memory is), with *err. A wrong arm is a finding, not an error. */
#ifndef ASSAY_CHECK_CELL_H
#define ASSAY_CHECK_CELL_H

#include <stdbool.h>

#include "image.h"
#include "stage.h"

/* The outputs of each subject's first checked launch, per input set. */
struct evidence {
	struct image first[INPUT_SETS][STAGE_SUBJECTS];
	bool have[INPUT_SETS][STAGE_SUBJECTS];
};
void evidence_drop(struct evidence *ev);

/* Two input sets x two poisons for every arm: takes the evidence, and leaves the `memory`, `graph` and `run` findings. */
bool check_memory(struct stage *st, struct evidence *ev, struct err *err);
bool check_identity(struct stage *st, const struct evidence *ev, struct err *err);
bool check_repeat(struct stage *st, const struct evidence *ev, struct err *err);
bool check_invariant(struct stage *st, const struct evidence *ev, struct err *err);
bool check_reference(struct stage *st, const struct evidence *ev, struct err *err);
/* After the timed rounds: every arm once more on both sets, against the evidence; inputs as they were. */
bool check_again(struct stage *st, const struct evidence *ev, int launches_before, struct err *err);

/* After that: with two elements of an input changed, all arms against shipped; whoever answers from what he kept is wrong. */
bool check_changed(struct stage *st, const struct evidence *ev, uint64_t seed, struct err *err);

/* Loads a set, and makes sure of it: nobody is blamed for a copy that somebody else had written to. */
bool check_load(struct stage *st, int set, bool force, struct err *err);
/* Makes sure of what inputs are loaded from, before it is copied to somewhere else. */
bool check_masters(struct stage *st, struct err *err);
/* After a launch that wrote outside of its tensors, or of an arm that changes inputs: what it may have hit of the inputs and of the others'
 * packed ones is made anew, before anybody else is held against it. Nothing to do where no launch did. */
bool check_heal(struct stage *st, struct err *err);
/* Loads a set and derives the tensors of one subject, or of all where s is NULL. A derive that fails is a finding. */
bool check_set(struct stage *st, int set, struct subject *s, struct err *err);
/* Packs the derived tensors of a subject; ok says whether it could, and a finding if not. False: lost. */
bool check_derive(struct stage *st, struct subject *s, uint32_t poison, bool *ok, struct err *err);
/* Whether the inputs (up to max_bytes; 0: of any size) and what s has packed (NULL: every arm) are as they were. What has changed is made
 * anew, and is a finding where s is given or `when` ("during the timed rounds") says how it came to be known. */
bool check_inputs(struct stage *st, struct subject *s, size_t max_bytes, const char *when, bool *all_intact,
		  struct err *err);
/* A finding where an arm left other floating-point control bits behind than it found. */
void check_fp(struct stage *st, const struct subject *s);
/* Findings of what a checked launch did to guards, and to the gaps between rows. */
void check_guards(struct stage *st, const struct ready *r, const struct checked *seen);
void check_gaps(struct stage *st, const char *arm, const struct image *im);
/* A checked launch whose failure is a finding of the subject; ok says whether it ran. False: lost. */
bool check_launch(struct stage *st, struct ready *r, uint32_t poison, enum tail tail, bool inspect, struct checked *out,
		  bool *ok, struct err *err);

/* Launches an arm n times and compares each with `want`; guards and gaps are looked at too. */
struct relaunch {
	int launches, differ;
	bool same_elements; /* every launch that differed did so in the same elements */
	struct diff diff; /* of the first that differed */
	struct image image; /* its outputs; the caller drops it, unless false was returned */
};
bool check_relaunch(struct stage *st, struct subject *s, int n, const struct image *want, struct relaunch *out,
		    struct err *err);
/* A `memory` finding of status wrong, one an arm, tensor and place: NULL where there is one already. arm and tensor may be NULL; offset and bytes
 * -1: unknown. */
json_t *check_memory_finding(struct stage *st, const char *arm, const char *tensor, const char *where, int64_t offset,
			     int64_t bytes, const char *text);
/* a: first poison and NaN tails, b: second poison and huge tails, of one arm; they differ. Says why, in findings. False: lost. */
bool check_tell_apart(struct stage *st, struct subject *s, const struct image *a, const struct image *b,
		      struct err *err);
/* How many relaunches of this cell's outputs are affordable, at most n. */
int check_affordable(const struct stage *st, int n);

#endif
