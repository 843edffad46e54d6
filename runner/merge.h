/* merge: the shards of one plan as one file, judged as one run. Pure of files. */
#ifndef ASSAY_MERGE_H
#define ASSAY_MERGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "verdict.h"

struct merge_shard {
	const char *path;
	struct verdict_file file;
};

/* False with *err where these are no shards of one plan: another plan, suite text, settings or backend. */
bool merge_check(const struct merge_shard *shard, size_t n, struct err *err);
/* What keeps the result from being whole (a shard missing, double or cut short, a cell twice or missing): sentences, one a problem. New
 * array. */
json_t *merge_problems(const struct merge_shard *shard, size_t n);
/* The records of the merged file, in order: header, cells by plan_index, aggregates, footer. Holm is over all suspects. New array, NULL out of
 * memory. command: for the header; borrowed. *exit_status: of the run as a whole; 3 at least where it is not whole. */
json_t *merge_records(struct merge_shard *shard, size_t n, json_t *command, bool whole, int *exit_status);

#endif
