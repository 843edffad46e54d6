/* test_rounds_bed: cells of probe.faults that are timed on the fake backend, and what was measured. */
#ifndef ASSAY_TEST_ROUNDS_BED_H
#define ASSAY_TEST_ROUNDS_BED_H

#include "test_bed.h"

/* Launches that come after the rounds of a bench: three arms on both input sets, and three with each of its two inputs changed. */
enum { AFTER = 3 * 2 + 3 * 2 };

static inline json_t *samples(const json_t *facts, const char *arm)
{
	size_t i;
	json_t *a;
	json_array_foreach(json_object_get(facts, "arms"), i,
			   a) if (!strcmp(json_string_value(json_object_get(a, "name")),
					  arm)) return json_object_get(a, "samples_ns");
	return NULL;
}

static inline int64_t measured(const json_t *facts, const char *key)
{
	return json_integer_value(json_object_get(json_object_get(facts, "measure"), key));
}

/* shipped 10 us, split=2 half of it, by the script. */
static inline const struct assay_arm_ops *ops_of(const struct cell *c, int arm)
{
	return c->arm[arm].desc->ops[ASSAY_HOST];
}

static inline void bench(struct cell *c, const struct registry *r)
{
	test_cell(c, r, "probe.faults", "shipped", "split=2", "split=4", NULL);
	c->checks.on = 1u << CHECK_REGRESSION;
	c->selection = SELECT_ARM;
	c->selected = "split=4";
}

#endif
