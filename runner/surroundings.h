/* surroundings: what a process is beside its memory, and what an arm can change for whoever runs after it: the CPUs and the priority it has,
 * signals, timers, its folder, limits, descriptors, what OpenMP was told, threads. Taken before the first arm of a cell, looked at between
 * arms, put back where that can be done. The table in surroundings.c says what is watched.
 *
 * Threads are not counted as such: a pool that sleeps is an arm's own affair. One that never rests is not. */
#ifndef ASSAY_SURROUNDINGS_H
#define ASSAY_SURROUNDINGS_H

#include <stdbool.h>
#include <stdint.h>

enum { SURROUNDINGS_WATCHED = 16, SURROUNDINGS_TEXT = 256 };

struct surroundings;
/* As it is now. team: threads of the OpenMP team whose CPUs and ids are to be known; 0: none is. link: a descriptor that this process cannot do
 * without, -1: none. NULL: out of memory. */
struct surroundings *surroundings_create(int team, int link);
void surroundings_destroy(struct surroundings *s); /* NULL is fine */

/* One thing that is not as it was. */
struct surroundings_change {
	int watched; /* its number, for whoever wants to say it once; < SURROUNDINGS_WATCHED */
	bool quick; /* of those that a quick look sees */
	bool restored; /* it was put back */
	bool cut_off; /* it was the link */
	char text[SURROUNDINGS_TEXT]; /* "nice is 19, was 0" */
};
/* Looks at everything, or (quick) at what is cheap and does most harm. The changes, at most SURROUNDINGS_WATCHED; what could be put back is as
 * it was, what could not is not told again. */
int surroundings_look(struct surroundings *s, bool quick, struct surroundings_change out[SURROUNDINGS_WATCHED]);

/* Lists threads that were not there before, as `owner`'s; those of the team are nobody's. */
void surroundings_threads(struct surroundings *s, int owner);
/* How many of those live. */
int surroundings_left(const struct surroundings *s);
/* Waits until each of them has rested, for 300 ms at most; no time at all where there are none, or where all have been seen to rest. True: one
 * never did, and is told this once: its owner, and its share of a CPU. */
bool surroundings_runner(struct surroundings *s, int *owner, double *share);
/* The thread that works most of those that rest: its share of a CPU, 0: all of them sleep. */
double surroundings_restless(const struct surroundings *s, int *owner);

#endif
