#include "run_aggregate.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

struct run_aggregates {
	json_t **cell;
	size_t n, cap;
	double *r1; /* of every timed cell, for the correlation of the run */
	size_t n_r1, cap_r1;
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
	free(a->r1);
	free(a);
}

static bool add_r1(struct run_aggregates *a, const json_t *cell)
{
	const json_t *r1 = json_object_get(json_object_get(cell, "timing"), "r1");
	if (!json_is_number(r1))
		return true;
	if (a->n_r1 == a->cap_r1) {
		size_t cap = a->cap_r1 ? a->cap_r1 * 2 : 64;
		double *p = realloc(a->r1, cap * sizeof *p);
		if (!p)
			return false;
		a->r1 = p;
		a->cap_r1 = cap;
	}
	a->r1[a->n_r1++] = json_number_value(r1);
	return true;
}

bool run_aggregates_add(struct run_aggregates *a, json_t *cell)
{
	if (!add_r1(a, cell))
		return false;
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

/* Median of a list of times; NAN where there is none. */
static double median_of(const json_t *list)
{
	double x[64];
	int n = 0;
	for (size_t i = 0; i < json_array_size(list) && n < 64; i++)
		if (json_is_number(json_array_get(list, i)))
			x[n++] = json_number_value(json_array_get(list, i));
	return stats_median(x, n);
}

/* The sentinels of both ends of a run. One that moved by more than this is worth a word. */
#define DRIFT_WORTH_A_WORD 0.05

static json_t *sentinels_record(json_t *start, json_t *end)
{
	char reason[300] = "";
	json_t *drift = json_object(), *list;
	const char *name;
	json_object_foreach(start, name, list)
	{
		double d = log(median_of(json_object_get(end, name))) - log(median_of(list));
		json_object_set_new(drift, name, isfinite(d) ? json_real(d) : json_null());
		size_t at = strlen(reason);
		if (fabs(d) > DRIFT_WORTH_A_WORD)
			snprintf(reason + at, sizeof reason - at, "%s%.60s %.1f %% %s at the end than at the start",
				 at ? "; " : "", name, 100 * fabs(exp(d) - 1), d > 0 ? "slower" : "faster");
	}
	json_t *o = json_object(), *words = reason[0] ? json_string(reason) : NULL;
	json_object_set_new(o, "kind", json_string("aggregate"));
	json_object_set_new(o, "name", json_string("sentinels"));
	json_object_set_new(o, "samples", json_incref(start));
	json_object_set_new(o, "end", end ? json_incref(end) : json_null());
	json_object_set_new(o, "drift", end ? json_incref(drift) : json_null());
	json_object_set_new(o, "reason",
			    !end    ? json_string("no worker measured them at the end")
			    : words ? json_incref(words)
				    : json_null());
	json_decref(words);
	json_decref(drift);
	return o;
}

/* One cell's r1 is of few rounds and says little; the median of many says whether rounds of this run resemble their neighbours. Independent rounds give
 * a median just below 0; so many cells keep it within 0.1 of that. */
enum { CORRELATION_LEAST_CELLS = 16 };
#define CORRELATION_WORTH_A_WORD 0.15

/* NULL where there are too few cells. */
static json_t *correlation_record(const struct run_aggregates *a)
{
	if (a->n_r1 < CORRELATION_LEAST_CELLS)
		return NULL;
	double median = stats_median(a->r1, (int)(a->n_r1 > INT_MAX ? INT_MAX : a->n_r1));
	json_t *o = json_object();
	json_object_set_new(o, "kind", json_string("aggregate"));
	json_object_set_new(o, "name", json_string("correlation"));
	json_object_set_new(o, "n", json_integer((json_int_t)a->n_r1));
	json_object_set_new(o, "r1", isfinite(median) ? json_real(median) : json_null());
	json_object_set_new(o, "reason",
			    median > CORRELATION_WORTH_A_WORD ? json_string("rounds resemble the ones before them: the "
									    "first looks are less sure than "
									    "they say; timing.min_rounds: 24 helps")
							      : json_null());
	return o;
}

json_t *run_aggregates_records(struct run_aggregates *a, const json_t *header, json_t *end, struct run_counts *counts)
{
	json_t *list = record_aggregates(a->cell, a->n, header), *x;
	size_t i;
	json_array_foreach(list, i, x) record_count_aggregate(x, counts);
	json_t *sentinels = json_object_get(json_object_get(header, "calibration"), "sentinels");
	if (json_is_object(sentinels))
		json_array_append_new(list, sentinels_record(sentinels, json_is_object(end) ? end : NULL));
	json_t *correlation = correlation_record(a);
	if (correlation)
		json_array_append_new(list, correlation);
	return list;
}
