/* A suite made by hand, its plan, and what was said of it. */
#ifndef ASSAY_TEST_PLAN_H
#define ASSAY_TEST_PLAN_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "test_said.h"

#define PLUGIN(name) ASSAY_TEST_BUILD "/plugin/" name ".so"

/* A suite as suite_load would give it, changed by each test before the plan is built. */
struct fixture {
	struct arena *arena;
	struct registry *registry;
	struct diags *diags;
	struct err err;
	struct suite suite;
	struct suite_case cases[2];
	struct geometry geometry[2];
	struct named_number param[2][2];
	struct axis axis[4];
	struct distribution data[2];
	struct arm_use arm[4];
	struct margin margin[4];
	struct waiver waiver[3];
	struct rig rig[3];
	struct table table[2];
	struct table_row row[8];
	struct table_choice choice[3];
	struct table_set set;
	const char *kernels[3];
	const struct geometry *geometries[2];
	const struct distribution *distributions[2];
	struct plan_target target;
	struct plan_filter filter;
	struct selector selector[4];
};

static struct fixture fx;

static inline struct mark line(int n)
{
	return (struct mark){.file = "s.yaml", .line = n, .col = 1, .len = 1};
}

static inline struct number whole(int64_t v)
{
	return (struct number){.is_int = true, .i = v, .d = (double)v};
}

static inline const struct number *numbers(int n, const int64_t *v)
{
	struct number *x = arena_array(fx.arena, (size_t)n, sizeof *x);
	for (int i = 0; i < n; i++)
		x[i] = whole(v[i]);
	return x;
}

#define AXIS(name_, ...)                                                                                               \
	(struct axis)                                                                                                  \
	{                                                                                                              \
		.name = name_,                                                                                         \
		.value = numbers((int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__}),               \
		.n = (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), .zip_group = -1, .mark = line(20)                    \
	}

static inline struct selector sel(const char *text)
{
	struct selector s = {0};
	if (*text)
		ck_assert_msg(selector_parse(fx.arena, text, &s, &fx.err), "%s", fx.err.text);
	return s;
}

static inline void setup(void)
{
	memset(&fx, 0, sizeof fx);
	fx.arena = arena_create();
	fx.registry = registry_create();
	fx.diags = diags_create();
	ck_assert_msg(registry_load_plugin(fx.registry, PLUGIN("twice"), NULL, &fx.err), "%s", fx.err.text);
	ck_assert_msg(registry_load_plugin(fx.registry, PLUGIN("pair"), NULL, &fx.err), "%s", fx.err.text);
	fx.kernels[0] = "demo.twice";
	fx.kernels[1] = "demo.sevens";
	fx.param[0][0] = (struct named_number){.name = "n", .value = whole(64), .mark = line(3)};
	fx.param[1][0] = (struct named_number){.name = "n", .value = whole(8), .mark = line(4)};
	fx.geometry[0] = (struct geometry){.name = "long",
					   .param = fx.param[0],
					   .n_params = 1,
					   .has_weight = true,
					   .weight = 2,
					   .mark = line(3)};
	fx.geometry[1] = (struct geometry){.name = "short", .param = fx.param[1], .n_params = 1, .mark = line(4)};
	fx.geometries[0] = &fx.geometry[0];
	fx.geometries[1] = &fx.geometry[1];
	fx.data[0] = (struct distribution){.name = "unit"};
	fx.data[1] = (struct distribution){.name = "wide"};
	fx.distributions[0] = &fx.data[0];
	fx.distributions[1] = &fx.data[1];
	fx.arm[0] = (struct arm_use){.name = "shipped", .arm = "shipped", .role = ROLE_SHIPPED};
	fx.arm[1] = (struct arm_use){.name = "split=2", .arm = "split=2", .role = ROLE_CANDIDATE};
	fx.arm[2] = (struct arm_use){.name = "wide", .arm = "wide", .role = ROLE_CANDIDATE};
	fx.axis[0] = AXIS("kv", 2048, 32768, 131072);
	fx.axis[1] = AXIS("t", 1, 2, 4, 8);
	fx.cases[0] = (struct suite_case){
		.id = "c",
		.kernel = fx.kernels,
		.n_kernels = 1,
		.geometry = fx.geometries,
		.n_geometries = 1,
		.arm = fx.arm,
		.n_arms = 3,
		.shipped = "shipped",
		.data = fx.distributions,
		.n_data = 1,
		.axis = fx.axis,
		.n_axes = 2,
		.seed = 0xB200,
		.checks = {.on = 1u << CHECK_IDENTITY | 1u << CHECK_REGRESSION,
			   .regression = {.select = "serving", .against = "shipped"}},
		.mark = line(10),
	};
	fx.row[0] = (struct table_row){.is_default = true,
				       .arm = "split=2",
				       .mark = {.file = "t.yaml", .line = 7, .col = 1, .len = 1}};
	fx.table[0] = (struct table){.path = "t.yaml", .row = fx.row, .n_rows = 1};
	fx.choice[0] = (struct table_choice){.table = &fx.table[0], .mark = line(30)};
	fx.set = (struct table_set){.name = "serving", .choice = fx.choice, .n = 1, .mark = line(29)};
	fx.margin[0] = (struct margin){.fail = 0.05, .has_warn = true, .warn = 0.03, .floor_ns = 500, .mark = line(40)};
	fx.suite = (struct suite){
		.arena = fx.arena,
		.path = "suites/s.yaml",
		.name = "s",
		.cases = fx.cases,
		.n_cases = 1,
		.table_set = &fx.set,
		.n_table_sets = 1,
		.margin = fx.margin,
		.n_margins = 1,
		.waiver = fx.waiver,
		.rig = fx.rig,
		.max_cells = 1000000,
	};
	fx.target = (struct plan_target){.backend = ASSAY_HOST, .device = "Some CPU", .host = "box"};
	fx.filter.filter = fx.selector;
}

static inline void teardown(void)
{
	diags_destroy(fx.diags);
	registry_destroy(fx.registry);
	arena_destroy(fx.arena);
}

static inline struct plan *build(void)
{
	return plan_build(&fx.suite, fx.registry, &fx.target, &fx.filter, fx.diags, &fx.err);
}

static inline const char *said(void)
{
	return said_by(fx.diags);
}

static inline struct plan *must_build(void)
{
	struct plan *p = build();
	ck_assert_msg(p, "%s\n%s", fx.err.text, said());
	return p;
}

static inline struct cell cell_at(const struct plan *p, int64_t i)
{
	struct cell c;
	ck_assert_msg(plan_cell(p, i, fx.arena, &c, &fx.err), "%s", fx.err.text);
	return c;
}

static inline void must_fail(const char *diag, const char *err)
{
	struct plan *p = build();
	ck_assert_ptr_null(p);
	ck_assert_msg(!diag || strstr(said(), diag), "wanted '%s' in:\n%s", diag, said());
	ck_assert_msg(!err || strstr(fx.err.text, err), "wanted '%s' in: %s", err, fx.err.text);
}

/* Every cell: unique id, found again at its place, plan_index rising. Returns the count. */
static inline int64_t check_all(const struct plan *p)
{
	int64_t last = -1;
	for (int64_t i = 0; i < plan_count(p); i++) {
		struct cell c = cell_at(p, i);
		ck_assert_int_eq(plan_find(p, c.id), i);
		ck_assert_int_gt(c.plan_index, last);
		last = c.plan_index;
	}
	return plan_count(p);
}

#endif
