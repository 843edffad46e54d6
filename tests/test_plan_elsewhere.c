/* A plan where the device is not known: tables that other devices choose, rules that fit no cell; and what a part of a plan takes part in. */
#include "test_plan.h"
#include "unit.h"

static void expect_said(const char *what, bool wanted)
{
	ck_assert_msg((strstr(said(), what) != NULL) == wanted, "%s '%s' in:\n%s", wanted ? "wanted" : "unwanted", what,
		      said());
}

/* Two tables, keyed on t; the first for a device that is not here. */
static void two_tables(const char *match)
{
	for (int i = 0; i < 2; i++) {
		fx.table[i] =
			(struct table){.path = "t.yaml", .key = {"t"}, .n_keys = 1, .row = &fx.row[4 * i], .n_rows = 4};
		for (int k = 0; k < 4; k++)
			fx.row[4 * i + k] = (struct table_row){.key = {whole(1 << k)},
							       .arm = "split=2",
							       .mark = line(70 + 10 * i + k)};
	}
	fx.choice[0] = (struct table_choice){.match = sel(match), .table = &fx.table[0], .mark = line(30)};
	fx.choice[1] = (struct table_choice){.table = &fx.table[1], .mark = line(31)};
	fx.set.n = 2;
	fx.filter.every_table = true;
}

START_TEST(tables_of_other_devices)
{
	two_tables("device=*H900*");
	plan_destroy(must_build());
	/* It lacks t = 8: nothing is wrong here, and a run there would be refused. */
	fx.table[0].n_rows = 3;
	fx.filter.every_table = false;
	plan_destroy(must_build());
	fx.filter.every_table = true;
	must_fail("s.yaml:30:1: error: table t.yaml has no row for demo.twice at t=8", "1 error");
	/* An arm that is not there. */
	fx.table[0].n_rows = 4;
	fx.row[2].arm = "spilt=2";
	must_fail("s.yaml:72:1: error: kernel 'demo.twice' has no arm 'spilt=2'", "1 error");
}
END_TEST

/* A table that a more specific one always goes before lacks nothing. */
START_TEST(tables_that_never_speak)
{
	two_tables("kernel=demo.twice");
	fx.table[1].n_rows = 1;
	plan_destroy(must_build());
	/* On a device of its own the other one goes before nothing. */
	fx.choice[0].match = sel("kernel=demo.twice,device=*H900*");
	must_fail("s.yaml:31:1: error: table t.yaml has no row", NULL);
	/* Of two for one device the more specific one speaks for its kernel. */
	fx.choice[0].match = sel("device=*H900*");
	fx.choice[1].match = sel("device=*H900*,kernel=demo.*");
	fx.choice[2] = (struct table_choice){.table = &fx.table[1], .mark = line(32)};
	fx.set.n = 3;
	fx.table[0].n_rows = 1;
	fx.table[1].n_rows = 4;
	plan_destroy(must_build());
}
END_TEST

START_TEST(no_table_here)
{
	fx.choice[0].match = sel("device=*H900*");
	fx.filter.every_table = true;
	must_fail("s.yaml:29:1: error: no table of 'serving' is for device 'Some CPU'", "1 error");
	diags_destroy(fx.diags);
	fx.diags = diags_create();
	fx.filter.elsewhere = true;
	plan_destroy(must_build());
	expect_said("s.yaml:29:1: warning: no table of 'serving' is for device 'Some CPU'", true);
	expect_said("note: a run on this machine would be refused", true);
}
END_TEST

START_TEST(rules_that_fit_nothing)
{
	fx.suite.path = "s.yaml";
	fx.margin[1] = (struct margin){.match = sel("kernel=demo.twise"), .mark = line(41)};
	fx.margin[2] = (struct margin){.match = sel("device=*H900*,t=1"), .mark = line(42)}; /* on another device */
	fx.margin[3] =
		(struct margin){.match = sel("t=77"), .mark = {.file = "shared.yaml", .line = 3}}; /* of many suites */
	fx.suite.n_margins = 4;
	fx.waiver[0] = (struct waiver){.id = "w", .match = sel("kv=1"), .expect = "mismatch", .mark = line(45)};
	fx.suite.n_waivers = 1;
	fx.rig[0] = (struct rig){.match = sel("device=*H900*"), .gate = true, .mark = line(50)};
	fx.rig[1] = (struct rig){.match = sel("device=*H900*,case=d"), .gate = true, .mark = line(51)};
	fx.suite.n_rigs = 2;
	fx.choice[1] = (struct table_choice){.match = sel("kernel=demo.none"), .table = &fx.table[0], .mark = line(31)};
	fx.set.n = 2;
	struct selector out[] = {sel("t=8"), sel("t=9"), sel("t=8,kv=2048")};
	struct mark at[] = {line(60), line(61), line(62)};
	fx.cases[0].exclude = out;
	fx.cases[0].exclude_mark = at;
	fx.cases[0].n_excludes = 3;
	plan_destroy(must_build());
	expect_said("warning", false);
	fx.filter.say_unused = true;
	plan_destroy(must_build());
	expect_said("s.yaml:41:1: warning: this margin fits no cell: 'kernel=demo.twise' matches no cell", true);
	expect_said("did you mean 'demo.twice'?", true);
	expect_said("s.yaml:45:1: warning: this waiver fits no cell", true);
	expect_said("s.yaml:51:1: warning: this rig fits no cell: 'case=d'", true);
	expect_said("s.yaml:31:1: warning: this table fits no cell", true);
	expect_said("s.yaml:61:1: warning: this exclusion fits no cell", true);
	ck_assert_int_eq(diags_warnings(fx.diags), 5);
}
END_TEST

/* A waiver of an arm, or of a check, that none of its cells has can never be needed. */
START_TEST(waivers_of_nothing)
{
	fx.suite.path = "s.yaml";
	fx.waiver[0] = (struct waiver){.id = "a",
				       .match = sel("t=1"),
				       .expect = "mismatch",
				       .arm = "spilt=2",
				       .mark = line(45)};
	fx.waiver[1] = (struct waiver){.id = "b",
				       .match = sel("t=2"),
				       .expect = "mismatch",
				       .arm = "split=2",
				       .mark = line(46)};
	fx.waiver[2] = (struct waiver){.id = "c", .match = sel("t=8"), .expect = "regression", .mark = line(47)};
	fx.suite.n_waivers = 3;
	fx.cases[0].checks.on = 1u << CHECK_IDENTITY;
	fx.filter.say_unused = true;
	struct plan *p = must_build();
	expect_said("s.yaml:45:1: warning: this waiver fits no cell: none that it matches has an arm 'spilt=2'", true);
	expect_said("did you mean 'split=2'?", true);
	expect_said("s.yaml:47:1: warning: this waiver fits no cell: none that it matches has a regression check",
		    true);
	ck_assert_int_eq(diags_warnings(fx.diags), 2);
	ck_assert_int_eq(plan_waiver_hits(p)[0], 0);
	ck_assert_int_gt(plan_waiver_hits(p)[1], 0);
	ck_assert_int_eq(plan_waiver_hits(p)[2], 0);
	plan_destroy(p);
}
END_TEST

static struct plan_seen seen_of(const struct plan *p)
{
	struct plan_seen s;
	plan_case_seen(p, 0, fx.arena, &s);
	return s;
}

/* A part of a plan says what it does, and no more. */
START_TEST(what_a_part_takes_part_in)
{
	fx.cases[0].n_kernels = 2;
	fx.cases[0].n_geometries = 2;
	fx.cases[0].checks.regression.select = "shipped";
	struct plan *p = must_build();
	struct plan_seen s = seen_of(p);
	int n_arms;
	ck_assert_int_eq(s.cells, 48);
	ck_assert(s.kernel[0] && s.kernel[1] && s.geometry[1] && s.data[0] && s.value[0][2] && s.value[1][3]);
	plan_case_arms(p, 0, &s, fx.arena, &n_arms);
	ck_assert_int_eq(n_arms, 3);
	plan_destroy(p);
	fx.selector[0] = sel("kernel=demo.sevens,t=2,kv>=32768");
	fx.filter.n_filters = 1;
	fx.filter.checks = 1u << CHECK_IDENTITY;
	p = must_build();
	s = seen_of(p);
	ck_assert_int_eq(s.cells, 4);
	ck_assert_int_eq(plan_whole_count(p), 48);
	ck_assert(!s.kernel[0] && s.kernel[1] && s.geometry[0] && s.geometry[1]);
	ck_assert(!s.value[0][0] && s.value[0][1] && s.value[0][2]);
	ck_assert(!s.value[1][0] && s.value[1][1] && !s.value[1][2] && !s.value[1][3]);
	ck_assert_uint_eq(s.checks, 1u << CHECK_IDENTITY);
	/* demo.sevens has no split=2 and no wide. */
	const char *const *arm = plan_case_arms(p, 0, &s, fx.arena, &n_arms);
	ck_assert_int_eq(n_arms, 1);
	ck_assert_str_eq(arm[0], "shipped");
	plan_destroy(p);
	/* The last of five shards of four cells has none, the fourth the last one. */
	fx.filter.shard_n = 5;
	fx.filter.shard_i = 5;
	p = must_build();
	ck_assert_int_eq(seen_of(p).cells, 0);
	plan_destroy(p);
	fx.filter.shard_i = 4;
	p = must_build();
	s = seen_of(p);
	ck_assert_int_eq(s.cells, 1);
	ck_assert(!s.geometry[0] && s.geometry[1] && !s.value[0][1] && s.value[0][2]);
	plan_destroy(p);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("plan_elsewhere");
	TCase *tc = tcase_create("plan");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, tables_of_other_devices);
	tcase_add_test(tc, tables_that_never_speak);
	tcase_add_test(tc, no_table_here);
	tcase_add_test(tc, rules_that_fit_nothing);
	tcase_add_test(tc, waivers_of_nothing);
	tcase_add_test(tc, what_a_part_takes_part_in);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
