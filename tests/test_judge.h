/* The vectors of the judge, and rules to hold them against. */
#ifndef ASSAY_TEST_JUDGE_H
#define ASSAY_TEST_JUDGE_H

#include <check.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"

static json_t *vectors, *more;

static inline json_t *load_file(const char *path)
{
	json_error_t e;
	json_t *j = json_load_file(path, 0, &e);
	ck_assert_msg(j != NULL, "%s:%d: %s", path, e.line, e.text);
	return j;
}

static inline void load(void)
{
	vectors = load_file(ASSAY_SOURCE_ROOT "/tests/data/judge-vectors.json");
	more = load_file(ASSAY_SOURCE_ROOT "/tests/data/judge-more.json");
}

static inline void unload(void)
{
	json_decref(vectors);
	json_decref(more);
}

static inline double num(const json_t *o, const char *key)
{
	const json_t *j = json_object_get(o, key);
	return json_is_number(j) ? json_number_value(j) : NAN;
}

static inline double *list(const json_t *o, const char *key, double scale, int *n)
{
	const json_t *a = json_object_get(o, key);
	*n = (int)json_array_size(a);
	double *x = malloc(sizeof(double) * (size_t)(*n + 1));
	for (int i = 0; i < *n; i++)
		x[i] = scale * json_number_value(json_array_get(a, (size_t)i));
	return x;
}

static inline void near(double got, double want, double tol)
{
	ck_assert_msg(fabs(got - want) <= tol, "%.17g for %.17g", got, want);
}

static inline struct judge_rule rule_of(double fail)
{
	return (struct judge_rule){.estimator = EST_PAIRED,
				   .fail = fail,
				   .warn = -1,
				   .alpha = 0.025,
				   .min_rounds = 8,
				   .max_rounds = 64,
				   .confirm = CONFIRM_FRESH,
				   .tau = 0.0025};
}

static inline enum timing_verdict verdict_of(const char *name)
{
	return strcmp(name, "regression") == 0 ? TV_SUSPECT
					       : judge_verdict_of(name); /* the vectors' word for a suspect */
}

#endif
