/* threads: those of this process that somebody's code started and left behind, and whether they rest. */
#ifndef ASSAY_THREADS_H
#define ASSAY_THREADS_H

#include <stdbool.h>

/* A thread has rested where it used less than this part of a CPU in a window of 10 ms; whoever has not in 300 ms never does. OpenMP runtimes
 * let theirs wait actively for up to 200 ms. */
#define THREADS_REST_SHARE 0.05

struct threads;
/* All that there are now are nobody's. team: of how many threads the OpenMP team is, which may be made anew at any time. NULL: out of memory. */
struct threads *threads_create(int team);
void threads_destroy(struct threads *t); /* NULL is fine */

/* Whoever is here that was not at the last look is `owner`'s. Opens a parallel region where there is anybody. */
void threads_look(struct threads *t, int owner);
/* How many of somebody's live. */
int threads_left(const struct threads *t);
/* Watches whoever is new, for 300 ms at most, and no longer than until each has rested. True: one never did and was not told yet; its owner, and
 * its part of a CPU in the last window. */
bool threads_runner(struct threads *t, int *owner, double *share);
/* The largest part of a CPU that one of those who rest used all the same in its last window, and its owner. */
double threads_restless(const struct threads *t, int *owner);

#endif
