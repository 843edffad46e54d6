/* test_bed: a cell of probe.faults on the fake backend, for the tests of rounds. Each function is whole in here, since a test is one file. */
#ifndef ASSAY_TEST_BED_H
#define ASSAY_TEST_BED_H

#include <check.h>
#include <string.h>

#include "exec.h"
#include "fake.h"
#include "registry.h"
#include "test_cell.h"

struct bed {
	struct registry *registry;
	struct backend *be;
	struct exec *exec;
	struct exec_beat beat;
};

static inline void bed_open(struct bed *b, const struct fake_script *script)
{
	struct err err;
	memset(b, 0, sizeof(*b));
	b->registry = registry_create();
	b->be = fake_create(script);
	b->exec = exec_create(b->be, &err);
	ck_assert(b->exec);
}

static inline void bed_close(struct bed *b)
{
	exec_destroy(b->exec);
	ck_assert_int_eq(fake_memory_in_use(b->be), 0);
	backend_ops_of(b->be)->close(b->be);
	registry_destroy(b->registry);
}

static inline json_t *run_cell(struct bed *b, const struct cell *c)
{
	const struct exec_sink sink = {.beat = &b->beat};
	struct err err = {{0}};
	json_t *facts = NULL;
	enum exec_outcome got = exec_cell(b->exec, c, &sink, &facts, &err);
	ck_assert_msg(got == EXEC_OK, "%s", err.text);
	return facts;
}

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
