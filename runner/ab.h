/* ab: a suite turned into the question of a pull request: every arm of one build against the same arm of another, in the same rounds. */
#ifndef ASSAY_AB_H
#define ASSAY_AB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "registry.h"
#include "suite.h"

struct ab_options {
	double margin; /* 0.01; < 0: the suite's own margins */
	int least_rounds; /* no verdict before so many: the interval is what is asked for */
	bool bits_may_differ; /* the outputs are held against the reference, not against the base's bits */
};

/* For each case and each arm X of it a case of its own, "CASE.X", with the arms base/X (the yardstick) and head/X, which is judged: bit-identical,
 * and not slower. Kernels and arms that are not in both builds are left out; *left_out counts them. reg holds the pair (REGISTRY_PAIR). The result
 * lives in the suite's arena. NULL with *err where nothing is left. */
const struct suite *ab_suite(struct suite *s, const struct registry *reg, const struct ab_options *o, int *left_out,
			     struct err *err);

/* What a run of it found, as Markdown to paste. cells: n records. */
void ab_markdown(FILE *out, const json_t *header, json_t *const *cell, size_t n, int exit_status);

#endif
