/* selftest_timing: claims over many timed cells: A against A, planted slowdowns, what the harness costs. Inside of selftest.c. */
#ifndef ASSAY_SELFTEST_TIMING_H
#define ASSAY_SELFTEST_TIMING_H

#include "selftest.h"

enum { TIMED_GROUPS = 16 };

/* The cells of one case. */
struct timed_group {
	char name[48]; /* the case: "aa-…" or "plant-P", P per mille */
	int cells, passed, suspect, confirmed, undecided, invalid, numbers;
	double rounds, ratios, worst, ln_margin; /* sums; the estimate farthest from 0; of the last cell */
};

struct timed {
	struct timed_group group[TIMED_GROUPS];
	int n;
	double *overhead_ns; /* of each cell that was timed: wall without launches, scrubs and reference */
	int n_overhead, cap_overhead;
};

/* A cell of a timing case; false: it is none. */
bool timed_take(struct timed *t, const json_t *cell);
int timed_close(const struct timed *t, bool quick, struct claim *out, int cap);
void timed_free(struct timed *t);

#endif
