/* test_cell: a cell made by hand, for tests of what runs cells. */
#ifndef ASSAY_TEST_CELL_H
#define ASSAY_TEST_CELL_H

#include <check.h>
#include <stdarg.h>
#include <string.h>

#include "plan.h"
#include "registry.h"

/* Parameters at their defaults, uniform data in -1..1, device clock, auto scrub, random order, a null arm, no check. Arms by name,
 * NULL-terminated, the first one shipped. */
static inline void test_cell_list(struct cell *c, const struct assay_kernel *kernel, va_list ap)
{
	static const struct fill_rule rule = {.spec = {.kind = FILL_UNIFORM, .range = {-1, 1}}};
	struct err err = {{0}};
	const char *name;

	memset(c, 0, sizeof(*c));
	c->id = "suite/case/kernel/geometry/data/";
	c->suite = "suite";
	c->case_id = "case";
	c->geometry = "geometry";
	c->data = "data";
	c->suite_path = "suite.yaml";
	c->kernel = kernel;
	c->kernel_name = kernel->name;
	for (int i = 0; i < c->kernel->n_params; i++) {
		const struct assay_param *p = &c->kernel->params[i];
		if (p->type == ASSAY_INT)
			c->point.v[i].i = (int64_t)p->dflt;
		else
			c->point.v[i].d = p->dflt;
	}
	while ((name = va_arg(ap, const char *))) {
		struct cell_arm *a = &c->arm[c->n_arms];
		a->name = name;
		a->role = c->n_arms ? ROLE_CANDIDATE : ROLE_SHIPPED;
		a->desc = registry_arm(c->kernel, name, &a->arg, &err);
		ck_assert_msg(a->desc, "%s", err.text);
		c->n_arms++;
	}
	c->dist = (struct distribution){.name = "unit", .rules = &rule, .n_rules = 1};
	c->seed = 0xB200;
	c->weight = NAN;
	c->timing = (struct timing){.clock = CLOCK_DEVICE,
				    .estimator = EST_PAIRED,
				    .min_rounds = 8,
				    .max_rounds = 64,
				    .alpha = 0.025,
				    .warmup_launches = 2,
				    .scrub = SCRUB_AUTO,
				    .order = ORDER_RANDOM,
				    .null_arm = true,
				    .timeout_ns = 20000000000,
				    .tau = -1};
	c->margin_fail = 0.05;
	c->margin_warn = -1;
}

static inline void test_cell(struct cell *c, const struct registry *r, const char *kernel, ...)
{
	const struct assay_kernel *k = registry_find(r, kernel);
	va_list ap;

	ck_assert_msg(k, "no kernel %s", kernel);
	va_start(ap, kernel);
	test_cell_list(c, k, ap);
	va_end(ap);
}

/* The same of a kernel that a test has made itself. */
static inline void test_cell_own(struct cell *c, const struct assay_kernel *kernel, ...)
{
	va_list ap;

	va_start(ap, kernel);
	test_cell_list(c, kernel, ap);
	va_end(ap);
}

#endif
