/* rejudge_set: `--set NAME=VALUE` of rejudge, into the records of cells. What a value may be is what the grammar of a suite says of the same setting:
 * one set of limits, and the same messages with the same caret. */
#ifndef ASSAY_REJUDGE_SET_H
#define ASSAY_REJUDGE_SET_H

#include <jansson.h>

#include "diag.h"

/* Each text of set into each of the n cells, in order. False with the mistakes in d: then the cells may be half changed, and are not to be judged. */
bool rejudge_set(const char *const *set, int n_set, json_t **cell, size_t n, struct diags *d);

#endif
