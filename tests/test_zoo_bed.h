/* test_zoo_bed: cells of the zoo, what is asked of them, and what their facts say. */
#ifndef ASSAY_TEST_ZOO_BED_H
#define ASSAY_TEST_ZOO_BED_H

#include "test_bed.h"
#include "test_zoo.h"

/* Bytes in a range of their own: the others' would leave them two values. */
static const struct fill_rule zoo_rules[] = {
	{.spec = {.kind = FILL_UNIFORM, .range = {-1, 1}}},
	{.tensor = "r", .field = "qs", .spec = {.kind = FILL_UNIFORM, .range = {-100, 100}}},
};

#define ZOO_CELL(c, ...) (test_cell_own(c, __VA_ARGS__, NULL), (c)->dist.rules = zoo_rules, (c)->dist.n_rules = 2)

static inline void checks_of(struct cell *c)
{
	c->checks.on = 1u << CHECK_IDENTITY | 1u << CHECK_REPEAT | 1u << CHECK_REFERENCE | 1u << CHECK_REGRESSION;
	c->checks.identity.against = "shipped";
	c->checks.repeat = (struct check_repeat){.launches = 20, .addresses = true};
	c->checks.reference.adapter = true;
}

static inline void all_pass(const json_t *facts)
{
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(facts, "checks"), i, f)
		ck_assert_msg(!strcmp(text_of(f, "status"), "pass"), "%s %s: %s", text_of(f, "check"),
			      text_of(f, "arm"), text_of(f, "text"));
}

#endif
