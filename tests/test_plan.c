#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

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

static struct mark line(int n)
{
	return (struct mark){.file = "s.yaml", .line = n, .col = 1, .len = 1};
}

static struct number whole(int64_t v)
{
	return (struct number){.is_int = true, .i = v, .d = (double)v};
}

static const struct number *numbers(int n, const int64_t *v)
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

static struct selector sel(const char *text)
{
	struct selector s = {0};
	if (*text)
		ck_assert_msg(selector_parse(fx.arena, text, &s, &fx.err), "%s", fx.err.text);
	return s;
}

static void setup(void)
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

static void teardown(void)
{
	diags_destroy(fx.diags);
	registry_destroy(fx.registry);
	arena_destroy(fx.arena);
}

static struct plan *build(void)
{
	return plan_build(&fx.suite, fx.registry, &fx.target, &fx.filter, fx.diags, &fx.err);
}

/* What diags would print, in one string of the arena. */
static const char *said(void)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	diags_print(fx.diags, f, false);
	fclose(f);
	const char *copy = arena_strdup(fx.arena, text);
	free(text);
	return copy;
}

static struct plan *must_build(void)
{
	struct plan *p = build();
	ck_assert_msg(p, "%s\n%s", fx.err.text, said());
	return p;
}

static struct cell cell_at(const struct plan *p, int64_t i)
{
	struct cell c;
	ck_assert_msg(plan_cell(p, i, fx.arena, &c, &fx.err), "%s", fx.err.text);
	return c;
}

static void must_fail(const char *diag, const char *err)
{
	struct plan *p = build();
	ck_assert_ptr_null(p);
	ck_assert_msg(!diag || strstr(said(), diag), "wanted '%s' in:\n%s", diag, said());
	ck_assert_msg(!err || strstr(fx.err.text, err), "wanted '%s' in: %s", err, fx.err.text);
}

/* Every cell: unique id, found again at its place, plan_index rising. Returns the count. */
static int64_t check_all(const struct plan *p)
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

START_TEST(order_and_values)
{
	fx.cases[0].n_kernels = 2;
	fx.cases[0].n_geometries = 2;
	fx.cases[0].n_data = 2;
	fx.row[1] = (struct table_row){.kernel = "demo.sevens", .is_default = true, .arm = "shipped"};
	fx.table[0].n_rows = 2;
	fx.cases[0].checks.regression.select = "shipped";
	struct plan *p = must_build();
	ck_assert_int_eq(plan_count(p), 2 * 2 * 2 * 3 * 4);
	/* The last axis is fastest, then the first axis, data, geometry, kernel. */
	ck_assert_str_eq(cell_at(p, 0).id, "s/c/demo.twice/long/unit/kv=2048,t=1");
	ck_assert_str_eq(cell_at(p, 1).id, "s/c/demo.twice/long/unit/kv=2048,t=2");
	ck_assert_str_eq(cell_at(p, 4).id, "s/c/demo.twice/long/unit/kv=32768,t=1");
	ck_assert_str_eq(cell_at(p, 12).id, "s/c/demo.twice/long/wide/kv=2048,t=1");
	ck_assert_str_eq(cell_at(p, 24).id, "s/c/demo.twice/short/unit/kv=2048,t=1");
	ck_assert_str_eq(cell_at(p, 48).id, "s/c/demo.sevens/long/unit/kv=2048,t=1");
	ck_assert_str_eq(cell_at(p, 95).id, "s/c/demo.sevens/short/wide/kv=131072,t=8");
	struct cell c = cell_at(p, 6);
	ck_assert_str_eq(c.id, "s/c/demo.twice/long/unit/kv=32768,t=4");
	ck_assert_int_eq(c.point.v[0].i, 4); /* t: the axis */
	ck_assert_int_eq(c.point.v[1].i, 64); /* n: the geometry */
	ck_assert_int_eq(c.point.v[2].i, 0); /* depth: the default */
	ck_assert_double_eq(c.point.v[3].d, 0.1); /* scale: the default */
	ck_assert_int_eq(c.n_axes, 2); /* kv is no parameter, and stands in the point */
	ck_assert_str_eq(c.axis[0].name, "kv");
	ck_assert_int_eq(c.axis[0].value.i, 32768);
	ck_assert_double_eq(c.weight, 2);
	ck_assert(isnan(cell_at(p, 24).weight));
	ck_assert_int_eq(c.n_arms, 3);
	ck_assert_int_eq(c.seed, 0xB200);
	ck_assert_str_eq(c.suite_path, "suites/s.yaml");
	/* demo.sevens has no split and no wide, and ships its first arm. */
	c = cell_at(p, 48);
	ck_assert_int_eq(c.n_arms, 1);
	ck_assert_str_eq(c.arm[0].desc->name, "s32");
	/* n = 8: wide cannot run there. */
	c = cell_at(p, 24);
	ck_assert_str_eq(c.arm[2].unsupported, "wants rows of 16 or more");
	ck_assert_ptr_null(c.arm[1].unsupported);
	ck_assert_ptr_null(c.skip);
	ck_assert_int_eq(check_all(p), 96);
	ck_assert_int_eq(plan_find(p, "s/c/demo.twice/long/unit/kv=2048,t=3"), -1);
	ck_assert_int_eq(plan_find(p, "s/c/demo.twice/long/unit/kv=2048"), -1);
	ck_assert_int_eq(plan_find(p, "s/c/demo.twice/long/unit/kv=2048,t=1,t=1"), -1);
	ck_assert_int_eq(plan_find(p, "nonsense"), -1);
	struct cell none;
	ck_assert(!plan_cell(p, 96, fx.arena, &none, &fx.err));
	ck_assert(!plan_cell(p, -1, fx.arena, &none, &fx.err));
	plan_destroy(p);
}
END_TEST

START_TEST(no_axes)
{
	fx.cases[0].n_axes = 0;
	struct plan *p = must_build();
	ck_assert_int_eq(plan_count(p), 1);
	ck_assert_str_eq(cell_at(p, 0).id, "s/c/demo.twice/long/unit");
	ck_assert_int_eq(cell_at(p, 0).point.v[0].i, 1);
	ck_assert_int_eq(check_all(p), 1);
	plan_destroy(p);
}
END_TEST

START_TEST(zip)
{
	fx.axis[0] = AXIS("a", 1, 2, 3);
	fx.axis[1] = AXIS("t", 1, 2);
	fx.axis[2] = AXIS("b", 10, 20, 30);
	fx.axis[0].zip_group = fx.axis[2].zip_group = 0;
	fx.cases[0].n_axes = 3;
	struct plan *p = must_build();
	ck_assert_int_eq(check_all(p), 6);
	ck_assert_str_eq(cell_at(p, 3).id, "s/c/demo.twice/long/unit/a=2,t=2,b=20");
	ck_assert_int_eq(plan_find(p, "s/c/demo.twice/long/unit/a=2,t=2,b=30"), -1);
	plan_destroy(p);
	fx.axis[2].n = 2;
	must_fail("zipped axes must have as many values: a has 3, b has 2", "1 error");
}
END_TEST

START_TEST(exclude)
{
	struct selector ex[2] = {sel("kv=2048,t>=4"), sel("t=1,kv!=2048")};
	fx.cases[0].exclude = ex;
	fx.cases[0].n_excludes = 2;
	struct plan *p = must_build();
	ck_assert_int_eq(check_all(p), 12 - 2 - 2);
	ck_assert_int_eq(plan_case_points(p, 0), 12);
	ck_assert_int_eq(plan_case_excluded(p, 0), 4);
	static const char *const left[] = {"kv=2048,t=1",  "kv=2048,t=2",   "kv=32768,t=2",  "kv=32768,t=4",
					   "kv=32768,t=8", "kv=131072,t=2", "kv=131072,t=4", "kv=131072,t=8"};
	for (int i = 0; i < 8; i++) {
		struct cell c = cell_at(p, i);
		ck_assert_ptr_nonnull(strstr(c.id, left[i]));
		ck_assert_int_eq(c.plan_index, i);
	}
	ck_assert_int_eq(plan_find(p, "s/c/demo.twice/long/unit/kv=2048,t=4"), -1);
	plan_destroy(p);
}
END_TEST

START_TEST(filters)
{
	fx.cases[0].n_geometries = 2;
	fx.selector[0] = sel("t=1..2,kv<100000");
	fx.selector[1] = sel("geometry=short,kv=131072");
	fx.filter.n_filters = 2;
	struct plan *p = must_build();
	ck_assert_int_eq(check_all(p), 8 + 4);
	ck_assert_int_eq(cell_at(p, 11).plan_index, 23); /* its place in the whole plan */
	char filtered[65], all[65];
	plan_hash(p, filtered);
	plan_destroy(p);
	fx.filter.n_filters = 0;
	p = must_build();
	plan_hash(p, all);
	ck_assert_str_eq(filtered, all); /* the hash is of the whole plan */
	plan_destroy(p);
	fx.selector[0] = sel("arm=split=2");
	fx.filter.n_filters = 1;
	p = must_build();
	ck_assert_int_eq(plan_count(p), 24);
	plan_destroy(p);
	fx.selector[0] = sel("id=s/*/kv=2048*");
	p = must_build();
	ck_assert_int_eq(plan_count(p), 8);
	plan_destroy(p);
}
END_TEST

static const struct {
	const char *filter, *message;
} empty_filters[] = {
	{"kernel=demo.twise", "none has kernel=demo.twise; did you mean 'demo.twice'?"},
	{"kvv=2048", "no cell has a key 'kvv'; did you mean 'kv'?"},
	{"kv=2049", "none has kv=2049; kv is one of 2048, 32768, 131072"},
	{"t=16", "none has t=16; t is one of 1, 2, 4, 8"},
	{"t>8", "t is one of 1, 2, 4, 8"},
	{"geometry=tall", "none has geometry=tall; geometry is one of long"},
	{"kv=2048,kv=32768", "each term matches some, no cell meets all"},
	{"wholly_other=1", "no cell has a key 'wholly_other'; keys are kernel, case,"},
};

START_TEST(filter_that_matches_nothing)
{
	fx.selector[0] = sel("t=1");
	fx.selector[1] = sel(empty_filters[_i].filter);
	fx.filter.n_filters = 2; /* that another filter matches does not help it */
	must_fail(NULL, empty_filters[_i].message);
}
END_TEST

START_TEST(only_ids)
{
	const char *ids[] = {"s/c/demo.twice/long/unit/kv=131072,t=8", "s/c/demo.twice/long/unit/kv=2048,t=2", NULL};
	fx.filter.only_ids = ids;
	struct plan *p = must_build();
	ck_assert_int_eq(check_all(p), 2);
	ck_assert_str_eq(cell_at(p, 0).id, ids[1]); /* in the order of the plan */
	plan_destroy(p);
	fx.selector[0] = sel("t=8");
	fx.filter.n_filters = 1;
	p = must_build();
	ck_assert_int_eq(check_all(p), 1);
	plan_destroy(p);
	ids[1] = "s/c/demo.twice/long/unit/kv=2048,t=3";
	must_fail(NULL, "no cell 's/c/demo.twice/long/unit/kv=2048,t=3'");
}
END_TEST

START_TEST(checks_mask)
{
	fx.filter.checks = 1u << CHECK_IDENTITY;
	struct plan *p = must_build();
	struct cell c = cell_at(p, 0);
	ck_assert_uint_eq(c.checks.on, 1u << CHECK_IDENTITY);
	ck_assert_int_eq(c.selection, SELECT_NONE);
	ck_assert_ptr_null(c.selected);
	plan_destroy(p);
	fx.filter.checks = 1u << CHECK_RATIO;
	must_fail(NULL, "none of the checks asked for");
	fx.cases[1] = fx.cases[0];
	fx.cases[1].id = "d";
	fx.cases[1].checks.on = 1u << CHECK_RATIO;
	fx.suite.n_cases = 2;
	p = must_build();
	ck_assert_int_eq(plan_count(p), 24);
	ck_assert_str_eq(cell_at(p, 0).skip, "none of the checks asked for is in this case");
	ck_assert_ptr_null(cell_at(p, 12).skip);
	ck_assert_str_eq(cell_at(p, 12).id, "s/d/demo.twice/long/unit/kv=2048,t=1");
	ck_assert_int_eq(check_all(p), 24);
	plan_destroy(p);
}
END_TEST

/* The shards of n are disjoint and together the whole, for a filtered plan with exclusions too. */
START_TEST(shards)
{
	struct selector ex = sel("kv=32768,t=4");
	fx.cases[0].exclude = &ex;
	fx.cases[0].n_excludes = 1;
	fx.cases[0].n_geometries = 2;
	fx.selector[0] = sel("t>1");
	fx.filter.n_filters = 1;
	struct plan *all = must_build();
	ck_assert_int_eq(plan_count(all), 2 * (9 - 1));
	for (int n = 1; n <= 20; n++) {
		int seen[16] = {0};
		for (int i = 1; i <= n; i++) {
			fx.filter.shard_i = i;
			fx.filter.shard_n = n;
			struct plan *p = must_build();
			check_all(p);
			for (int64_t k = 0; k < plan_count(p); k++) {
				struct cell c = cell_at(p, k);
				int64_t at = plan_find(all, c.id);
				ck_assert_int_ge(at, 0);
				ck_assert_int_eq(c.plan_index, cell_at(all, at).plan_index);
				seen[at]++;
			}
			plan_destroy(p);
		}
		for (int k = 0; k < 16; k++)
			ck_assert_int_eq(seen[k], 1);
	}
	plan_destroy(all);
	fx.filter.shard_i = 0;
	fx.filter.shard_n = 3;
	must_fail(NULL, "shard 0/3");
	fx.filter.shard_i = 4;
	must_fail(NULL, "shard 4/3");
}
END_TEST

/* A million cells: counted, reached and found again without a list of them. */
START_TEST(million)
{
	static struct number v[1000];
	for (int i = 0; i < 1000; i++)
		v[i] = whole(i);
	fx.axis[0] = (struct axis){.name = "kv", .value = v, .n = 1000, .zip_group = -1};
	fx.axis[1] = (struct axis){.name = "depth", .value = v, .n = 1000, .zip_group = -1};
	struct selector ex = sel("kv=7");
	fx.cases[0].exclude = &ex;
	fx.cases[0].n_excludes = 1;
	struct plan *p = must_build();
	ck_assert_int_eq(plan_count(p), 999000);
	for (int64_t i = 0; i < plan_count(p); i += 9973) {
		struct arena *a = arena_create();
		struct cell c;
		ck_assert(plan_cell(p, i, a, &c, &fx.err));
		ck_assert_int_eq(plan_find(p, c.id), i);
		ck_assert_int_eq(c.plan_index, i);
		arena_destroy(a);
	}
	plan_destroy(p);
	fx.suite.max_cells = 999999;
	must_fail("expands to 1000000 cells with case 'c' (1 kernels x 1 geometries x 1 data x kv 1000 x depth 1000), "
		  "over max_cells 999999",
		  "1 error");
}
END_TEST

START_TEST(overflow)
{
	static struct number v[100000];
	for (int i = 0; i < 100000; i++)
		v[i] = whole(i);
	for (int i = 0; i < 4; i++)
		fx.axis[i] = (struct axis){.name = (const char *[]){"a", "b", "c", "d"}[i],
					   .value = v,
					   .n = 100000,
					   .zip_group = -1};
	fx.cases[0].n_axes = 4;
	fx.suite.max_cells = 0;
	must_fail("more cells than can be counted", NULL);
}
END_TEST

START_TEST(bad_values)
{
	fx.geometry[0].n_params = 0;
	must_fail("s.yaml:3:1: error: geometry 'long' lacks 'n' (elements of a row), which demo.twice requires",
		  "1 error");
	fx.geometry[0].n_params = 1;
	fx.param[0][0].value = whole(66);
	must_fail("n = 66 is not a multiple of 4", NULL);
	fx.param[0][0].value = whole(2);
	must_fail("n = 2 is out of its range 4..1048576", NULL);
	fx.param[0][0].value = (struct number){.d = 64.5};
	must_fail("n must be a whole number, not 64.5", NULL);
	fx.param[0][0].value = whole(64);
	fx.axis[1] = AXIS("t", 1, 65);
	must_fail("t = 65 is out of its range 1..64", NULL);
	/* In range each, refused together. */
	fx.axis[1] = AXIS("t", 1, 64);
	fx.param[0][0].value = whole(1 << 20);
	must_fail("demo.twice refuses s/c/demo.twice/long/unit/kv=2048,t=64: t * n is at most 4194304", NULL);
	struct selector ex = sel("t=64");
	fx.cases[0].exclude = &ex;
	fx.cases[0].n_excludes = 1;
	diags_destroy(fx.diags);
	fx.diags = diags_create();
	plan_destroy(must_build());
}
END_TEST

/* What a whole architecture lacks is said before what a point lacks. */
START_TEST(unsupported_on_device)
{
	struct plan *p = must_build();
	ck_assert_ptr_null(cell_at(p, 0).arm[2].unsupported);
	plan_destroy(p);
	fx.target.cc = 7;
	p = must_build();
	ck_assert_str_eq(cell_at(p, 0).arm[2].unsupported, "the host has no compute capability");
	ck_assert_ptr_null(cell_at(p, 0).arm[1].unsupported);
	plan_destroy(p);
}
END_TEST

START_TEST(shipped_cannot_run)
{
	fx.kernels[0] = "demo.device";
	fx.cases[0].checks.regression.select = "shipped";
	struct plan *p = must_build();
	ck_assert_str_eq(cell_at(p, 0).skip, "shipped: has no code for the host");
	plan_destroy(p);
	fx.target.backend = ASSAY_CUDA;
	p = must_build();
	ck_assert_ptr_null(cell_at(p, 0).skip);
	plan_destroy(p);
	fx.arm[0].arm = "other";
	must_fail("case 'c': the shipped arm: kernel 'demo.device' has no arm 'other'", NULL);
}
END_TEST

/* ---- rules --------------------------------------------------------------------------------------------------------- */

START_TEST(margins)
{
	fx.margin[1] = (struct margin){.match = sel("t=1..2"), .fail = 0.01, .mark = line(41)};
	fx.margin[2] = (struct margin){.match = sel("t=2,kv=2048"), .fail = 0, .mark = line(42)};
	fx.suite.n_margins = 3;
	struct plan *p = must_build();
	struct cell c = cell_at(p, 0);
	ck_assert_double_eq(c.margin_fail, 0.01);
	ck_assert_double_eq(c.margin_warn, -1);
	ck_assert_int_eq(c.margin_mark.line, 41);
	c = cell_at(p, 1);
	ck_assert_double_eq(c.margin_fail, 0); /* 0 % is a real limit */
	ck_assert_int_eq(c.margin_mark.line, 42);
	c = cell_at(p, 2);
	ck_assert_double_eq(c.margin_fail, 0.05);
	ck_assert_double_eq(c.margin_warn, 0.03);
	ck_assert_int_eq(c.margin_floor_ns, 500);
	plan_destroy(p);
	/* Two that fit equally, but meet in no cell: no error. */
	fx.margin[3] = (struct margin){.match = sel("t=4"), .fail = 0.02, .mark = line(43)};
	fx.suite.n_margins = 4;
	plan_destroy(must_build());
	fx.margin[3].match = sel("t=2..4");
	must_fail("two margins fit s/c/demo.twice/long/unit/kv=32768,t=2 equally", "1 error");
	ck_assert_ptr_nonnull(strstr(said(), "s.yaml:43:1: error"));
	ck_assert_ptr_nonnull(strstr(said(), "s.yaml:41:1: note"));
	/* None fits: the built-in one. */
	fx.suite.n_margins = 0;
	diags_destroy(fx.diags);
	fx.diags = diags_create();
	p = must_build();
	c = cell_at(p, 0);
	ck_assert_ptr_null(c.margin_mark.file);
	ck_assert_double_eq(c.margin_fail, 0.05);
	plan_destroy(p);
}
END_TEST

/* A later rule that is more specific than two tied ones settles it. */
START_TEST(tie_settled)
{
	fx.margin[0] = (struct margin){.match = sel("t=1..8"), .fail = 0.01, .mark = line(40)};
	fx.margin[1] = (struct margin){.match = sel("kv>0"), .fail = 0.02, .mark = line(41)};
	fx.margin[2] = (struct margin){.match = sel("kv>0,t>0"), .fail = 0.03, .mark = line(42)};
	fx.suite.n_margins = 3;
	struct plan *p = must_build();
	ck_assert_double_eq(cell_at(p, 5).margin_fail, 0.03);
	plan_destroy(p);
	/* Two bounds on one key are one key. */
	fx.margin[2].match = sel("kv>0,kv<1e9");
	must_fail("two margins fit", NULL);
}
END_TEST

START_TEST(waivers)
{
	fx.waiver[0] = (struct waiver){.id = "w1",
				       .match = sel("kv=2048"),
				       .expect = "mismatch",
				       .reason = "known",
				       .mark = line(50)};
	fx.waiver[1] = (struct waiver){.id = "w2",
				       .match = sel("kv=2048,t=8"),
				       .expect = "regression",
				       .reason = "slow",
				       .until = "2030-01-01",
				       .mark = line(51)};
	fx.waiver[2] = (struct waiver){.id = "w3",
				       .match = sel("kv=999"),
				       .expect = "wrong",
				       .reason = "old",
				       .mark = line(52)};
	fx.suite.n_waivers = 3;
	struct plan *p = must_build();
	ck_assert_str_eq(cell_at(p, 0).waiver, "w1");
	struct cell c = cell_at(p, 3);
	ck_assert_str_eq(c.waiver, "w2");
	ck_assert_str_eq(c.waiver_expect, "regression");
	ck_assert_str_eq(c.waiver_reason, "slow");
	ck_assert_str_eq(c.waiver_until, "2030-01-01");
	ck_assert_ptr_null(cell_at(p, 4).waiver);
	ck_assert_int_eq(plan_waiver_hits(p)[0], 3);
	ck_assert_int_eq(plan_waiver_hits(p)[1], 1);
	ck_assert_int_eq(plan_waiver_hits(p)[2], 0);
	plan_destroy(p);
	fx.waiver[2].match = sel("kv=2048,t=8");
	must_fail("two waivers fit s/c/demo.twice/long/unit/kv=2048,t=8 equally", NULL);
}
END_TEST

START_TEST(rigs)
{
	struct plan *p = must_build();
	ck_assert(cell_at(p, 0).gate); /* no rigs: timing gates */
	ck_assert_ptr_null(cell_at(p, 0).rig_mark.file);
	plan_destroy(p);
	fx.rig[0] = (struct rig){.match = sel("device=*B200*"), .gate = true, .mark = line(60)};
	fx.suite.n_rigs = 1;
	p = must_build();
	ck_assert(!cell_at(p, 0).gate); /* rigs are named, and this is none */
	plan_destroy(p);
	fx.rig[1] = (struct rig){.match = sel(""), .gate = false, .mark = line(61)};
	fx.suite.n_rigs = 2;
	p = must_build();
	ck_assert(!cell_at(p, 0).gate);
	ck_assert_int_eq(cell_at(p, 0).rig_mark.line, 61);
	plan_destroy(p);
	fx.target.device = "NVIDIA B200";
	fx.target.cc = 100;
	p = must_build();
	ck_assert(cell_at(p, 0).gate);
	ck_assert_int_eq(cell_at(p, 0).rig_mark.line, 60);
	plan_destroy(p);
	fx.rig[2] = (struct rig){.match = sel("cc>=90"), .gate = false, .mark = line(62)};
	fx.suite.n_rigs = 3;
	must_fail("two rigs fit", NULL);
}
END_TEST

/* ---- selection by table -------------------------------------------------------------------------------------------- */

START_TEST(selection)
{
	fx.table[0].key[0] = "t";
	fx.table[0].n_keys = 1;
	fx.row[0] = (struct table_row){.key = {whole(1)}, .arm = "split=2", .mark = line(70)};
	fx.row[1] = (struct table_row){.key = {whole(2)}, .arm = "shipped", .mark = line(71)};
	fx.row[2] =
		(struct table_row){.key = {whole(4)}, .arm = "split=4", .mark = line(72)}; /* is there, is not timed */
	fx.row[3] = (struct table_row){.key = {whole(8)}, .arm = "wide", .mark = line(73)};
	fx.table[0].n_rows = 4;
	fx.cases[0].n_geometries = 2;
	struct plan *p = must_build();
	struct cell c = cell_at(p, 0);
	ck_assert_int_eq(c.selection, SELECT_ARM);
	ck_assert_str_eq(c.selected, "split=2");
	ck_assert_int_eq(c.selected_row.line, 70);
	ck_assert_str_eq(cell_at(p, 1).selected, "shipped");
	c = cell_at(p, 2);
	ck_assert_int_eq(c.selection, SELECT_NOT_TIMED);
	ck_assert_str_eq(c.selected, "split=4");
	ck_assert_int_eq(c.selected_row.line, 72);
	ck_assert_int_eq(cell_at(p, 3).selection, SELECT_ARM);
	/* n = 8: the table names an arm that cannot run there. */
	ck_assert_int_eq(cell_at(p, 12 + 3).selection, SELECT_NOT_TIMED);
	plan_destroy(p);
}
END_TEST

/* What ships in a case need not be the kernel's first arm: then `shipped` is one arm more. */
START_TEST(another_ships)
{
	fx.arm[0] = (struct arm_use){.name = "split=2", .arm = "split=2", .role = ROLE_SHIPPED};
	fx.arm[1] = (struct arm_use){.name = "shipped", .arm = "shipped", .role = ROLE_CANDIDATE};
	fx.row[0].arm = "shipped";
	struct plan *p = must_build();
	ck_assert_str_eq(cell_at(p, 0).selected, "shipped");
	ck_assert_int_eq(cell_at(p, 0).selection, SELECT_ARM);
	plan_destroy(p);
	fx.row[0].arm = "split=2";
	p = must_build();
	ck_assert_str_eq(cell_at(p, 0).selected, "split=2");
	plan_destroy(p);
	/* The kernel has no arm of that name: the word means what ships. */
	fx.kernels[0] = "demo.sevens";
	fx.arm[0] = (struct arm_use){.name = "f32", .arm = "f32", .role = ROLE_SHIPPED};
	fx.cases[0].n_arms = 1;
	fx.row[0].arm = "shipped";
	p = must_build();
	ck_assert_str_eq(cell_at(p, 0).selected, "f32");
	plan_destroy(p);
}
END_TEST

static void two_rows(const char *arm)
{
	fx.table[0].key[0] = "t";
	fx.table[0].n_keys = 1;
	fx.row[0] = (struct table_row){.is_default = true, .arm = "shipped", .mark = line(70)};
	fx.row[1] = (struct table_row){.kernel = "demo.twice", .key = {whole(8)}, .arm = arm, .mark = line(71)};
	fx.table[0].n_rows = 2;
}

START_TEST(bad_tables)
{
	two_rows("split=3");
	must_fail("s.yaml:71:1: error: arm 'split=3' of 'demo.twice': workers must be", "1 error");
	two_rows("spilt=4");
	must_fail("has no arm 'spilt=4'", NULL);
	two_rows("trial");
	must_fail("arm 'trial' of demo.twice cannot be served", NULL);
	two_rows("wide");
	fx.arm[2].role = ROLE_HEADROOM;
	must_fail("arm 'wide' is headroom in case 'c'", NULL);
	/* An arm that is wrong in a row that no cell looks up. */
	two_rows("split=5");
	fx.row[1].key[0] = whole(64);
	must_fail("arm 'split=5'", NULL);
	/* A row is missing. */
	fx.row[1].arm = "split=2";
	fx.row[0] = fx.row[1];
	fx.table[0].n_rows = 1;
	must_fail("table t.yaml has no row for demo.twice at t=1 (lookup: exact); it has t=64", NULL);
	/* No table for this device, and two. */
	fx.choice[0].match = sel("device=*B200*");
	must_fail("no table of 'serving' is for device 'Some CPU'", NULL);
	fx.choice[0].match = sel("device=Some*");
	fx.choice[1] = (struct table_choice){.match = sel("backend=host"), .table = &fx.table[0], .mark = line(31)};
	fx.set.n = 2;
	must_fail("two tables fit", NULL);
	/* Neither a table nor an arm. */
	fx.cases[0].checks.regression.select = "servin";
	must_fail("select 'servin' is neither a table nor an arm", NULL);
}
END_TEST

START_TEST(select_by_name)
{
	fx.cases[0].checks.regression.select = "trial"; /* not in a table: any arm may be asked for */
	fx.arm[2] = (struct arm_use){.name = "trial", .arm = "trial", .role = ROLE_HEADROOM};
	struct plan *p = must_build();
	ck_assert_int_eq(cell_at(p, 0).selection, SELECT_ARM);
	ck_assert_str_eq(cell_at(p, 0).selected, "trial");
	ck_assert_ptr_null(cell_at(p, 0).selected_row.file);
	plan_destroy(p);
	fx.cases[0].checks.regression.select = "split=8";
	p = must_build();
	ck_assert_int_eq(cell_at(p, 0).selection, SELECT_NOT_TIMED);
	plan_destroy(p);
}
END_TEST

static int n_said;
static void count_ignored(void *ctx, const char *kernel, const char *name)
{
	n_said++;
	ck_assert(strcmp(name, "kv") == 0 || (strcmp(name, "n") == 0 && strcmp(kernel, "demo.sevens") == 0));
}

START_TEST(ignored)
{
	fx.cases[0].n_kernels = 2;
	fx.cases[0].n_geometries = 2;
	fx.cases[0].checks.regression.select = "shipped";
	struct plan *p = must_build();
	n_said = 0;
	plan_ignored(p, count_ignored, NULL);
	ck_assert_int_eq(n_said, 3); /* kv by both, n by demo.sevens, once each */
	plan_destroy(p);
}
END_TEST

/* What a selector sees of a built cell is what it saw when the plan was made. */
START_TEST(cell_as_subject)
{
	static const char *const tags[] = {"slow", "decode"};
	fx.cases[0].tag = tags;
	fx.cases[0].n_tags = 2;
	struct plan *p = must_build();
	struct cell c = cell_at(p, 6);
	static const char *const yes[] = {"kernel=demo.*", "case=c",          "geometry=long", "data=unit", "suite=s",
					  "tag=decode",    "arm=split=2",     "t=4",           "n=64",      "kv=32768",
					  "scale=0.1",     "id=s/c/*kv=327*", "depth=0"};
	static const char *const no[] = {"t=2", "tag=fast", "m=3", "arm=split=4", "kernel=mla.*"};
	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		struct selector s = sel(yes[i]);
		ck_assert_msg(selector_match(&s, &c, cell_get), "%s", yes[i]);
		fx.selector[0] = s;
		fx.filter.n_filters = 1;
		plan_destroy(must_build());
	}
	for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
		struct selector s = sel(no[i]);
		ck_assert_msg(!selector_match(&s, &c, cell_get), "%s", no[i]);
	}
	plan_destroy(p);
}
END_TEST

START_TEST(number_texts)
{
	char buf[PLAN_NUMBER_MAX];
	struct number a = whole(-9007199254740993), b = {.d = 0.1}, c = {.d = 1.0 / 3}, d = {.d = 1e300};
	ck_assert_str_eq(plan_number_text(&a, buf), "-9007199254740993");
	ck_assert_str_eq(plan_number_text(&b, buf), "0.1");
	ck_assert_str_eq(plan_number_text(&c, buf), "0.3333333333333333");
	ck_assert_str_eq(plan_number_text(&d, buf), "1e+300");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("plan");
	TCase *tc = tcase_create("plan");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, order_and_values);
	tcase_add_test(tc, no_axes);
	tcase_add_test(tc, zip);
	tcase_add_test(tc, exclude);
	tcase_add_test(tc, filters);
	tcase_add_loop_test(tc, filter_that_matches_nothing, 0, (int)(sizeof empty_filters / sizeof empty_filters[0]));
	tcase_add_test(tc, only_ids);
	tcase_add_test(tc, checks_mask);
	tcase_add_test(tc, shards);
	tcase_add_test(tc, million);
	tcase_add_test(tc, overflow);
	tcase_add_test(tc, bad_values);
	tcase_add_test(tc, unsupported_on_device);
	tcase_add_test(tc, shipped_cannot_run);
	tcase_add_test(tc, margins);
	tcase_add_test(tc, tie_settled);
	tcase_add_test(tc, waivers);
	tcase_add_test(tc, rigs);
	tcase_add_test(tc, selection);
	tcase_add_test(tc, another_ships);
	tcase_add_test(tc, bad_tables);
	tcase_add_test(tc, select_by_name);
	tcase_add_test(tc, ignored);
	tcase_add_test(tc, cell_as_subject);
	tcase_add_test(tc, number_texts);
	suite_add_tcase(suite, tc);
	SRunner *r = srunner_create(suite);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
