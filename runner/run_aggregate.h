/* run_aggregate: what is said over cells. Keeps the cells of ratio checks until the run ends, and the sentinels. */
#ifndef ASSAY_RUN_AGGREGATE_H
#define ASSAY_RUN_AGGREGATE_H

#include <jansson.h>
#include <stdbool.h>

#include "record.h"
#include "suite.h"

struct run_aggregates;
struct run_aggregates *run_aggregates_create(void);
void run_aggregates_destroy(struct run_aggregates *a); /* NULL is fine */
/* A final cell; kept (a reference) where a ratio check wants it. */
bool run_aggregates_add(struct run_aggregates *a, json_t *cell);
/* The aggregate records, a list. header: for what was planned and the sentinels at the start; end: those at the end, or NULL. New reference. */
json_t *run_aggregates_records(struct run_aggregates *a, const json_t *header, json_t *end, struct run_counts *counts);

#endif
