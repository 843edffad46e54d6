#include "test_plan.h"
#include "unit.h"

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

int main(void)
{
	Suite *suite = suite_create("plan");
	TCase *tc = tcase_create("plan");
	tcase_add_checked_fixture(tc, setup, teardown);
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
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
