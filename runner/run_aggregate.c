#include "run_aggregate.h"

#include <stdlib.h>

struct run_aggregates {
	json_t **cell;
	size_t n, cap;
};

struct run_aggregates *run_aggregates_create(void)
{
	return calloc(1, sizeof(struct run_aggregates));
}

void run_aggregates_destroy(struct run_aggregates *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n; i++)
		json_decref(a->cell[i]);
	free(a->cell);
	free(a);
}

bool run_aggregates_add(struct run_aggregates *a, json_t *cell)
{
	if (!json_is_object(json_object_get(cell, "ratio_check")))
		return true;
	if (a->n == a->cap) {
		size_t cap = a->cap ? a->cap * 2 : 64;
		json_t **p = realloc(a->cell, cap * sizeof *p);
		if (!p)
			return false;
		a->cell = p;
		a->cap = cap;
	}
	a->cell[a->n++] = json_incref(cell);
	return true;
}

json_t *run_aggregates_records(struct run_aggregates *a, const json_t *calibration, struct run_counts *counts)
{
	json_t *list = record_aggregates(a->cell, a->n), *x;
	size_t i;
	json_array_foreach(list, i, x) record_count_aggregate(x, counts);
	json_t *sentinels = json_object_get(calibration, "sentinels");
	if (json_is_object(sentinels))
		json_array_append_new(list, json_pack("{s:s, s:s, s:O}", "kind", "aggregate", "name", "sentinels",
						      "samples", sentinels));
	return list;
}
