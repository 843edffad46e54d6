/* run_tau: what the processes of one run differ by, from the null arm, which is A against A in every cell. */
#ifndef ASSAY_RUN_TAU_H
#define ASSAY_RUN_TAU_H

#include <jansson.h>
#include <stdbool.h>

#include "run.h"

/* The tau of a run and where it is from. */
struct run_tau {
	double tau; /* ln */
	int n; /* pairs; 0 where it is not from measurements */
	char source[600]; /* "suite", "built-in", or "store PATH" */
};
/* The suite's, else the store's, else RUN_TAU_DEFAULT. A store that cannot be read is told through the events and not used. */
void run_tau_choose(const struct run_job *job, struct run_tau *out);

/* Pairs of estimates, collected over cells with "repeats". */
struct run_pairs {
	double *delta, *se;
	int n, cap;
};
/* Each later process against the first. Cells without a null arm in both add nothing. False out of memory. */
bool run_pairs_add(struct run_pairs *p, const json_t *cell);
void run_pairs_free(struct run_pairs *p);
/* {"kind": "aggregate", "name": "processes", "n", "tau", "reason"}; NULL where there is no pair. New reference. */
json_t *run_pairs_record(const struct run_pairs *p);
/* Puts them into the device's store, and says so. Nothing to be stored: nothing is done. A failure is told and harms nothing. */
void run_pairs_store(const struct run_pairs *p, const struct run_job *job);

#endif
