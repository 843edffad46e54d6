/* Rules, tables and selection of a plan. */
#include "test_plan.h"
#include "unit.h"

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
	fx.cases[0].checks.regression.select = "trial"; /* not in a table: a candidate may be asked for */
	fx.arm[2] = (struct arm_use){.name = "trial", .arm = "trial", .role = ROLE_CANDIDATE};
	struct plan *p = must_build();
	ck_assert_int_eq(cell_at(p, 0).selection, SELECT_ARM);
	ck_assert_str_eq(cell_at(p, 0).selected, "trial");
	ck_assert_ptr_null(cell_at(p, 0).selected_row.file);
	plan_destroy(p);
	fx.cases[0].checks.regression.select = "split=8";
	p = must_build();
	ck_assert_int_eq(cell_at(p, 0).selection, SELECT_NOT_TIMED);
	plan_destroy(p);
	/* Headroom is never served, by a table or by name; the line that names it is told. */
	fx.cases[0].checks.regression.select = "trial";
	fx.cases[0].select_mark = line(55);
	fx.arm[2].role = ROLE_HEADROOM;
	must_fail("s.yaml:55:1: error: arm 'trial' is headroom in case 'c': timed, never served", "1 error");
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
	Suite *suite = suite_create("plan_rules");
	TCase *tc = tcase_create("plan");
	tcase_add_checked_fixture(tc, setup, teardown);
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
	return unit_run(suite);
}
