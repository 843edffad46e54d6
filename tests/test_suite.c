/* A suite: built-in values, layers, --set, arms, axes, and every error at once. */
#include "test_suite_bed.h"

START_TEST(built_in_values)
{
	struct suite *s = load(HEAD CASE CHECKS);
	const struct timing *t = &s->cases[0].timing;
	ck_assert_int_eq(t->clock, CLOCK_DEVICE);
	ck_assert_int_eq(t->estimator, EST_PAIRED);
	ck_assert_int_eq(t->rounds, 0);
	ck_assert_int_eq(t->min_rounds, 8);
	ck_assert_int_eq(t->max_rounds, 64);
	ck_assert(t->alpha == 0.025);
	ck_assert_int_eq(t->warmup_launches, 2);
	ck_assert_int_eq(t->scrub, SCRUB_AUTO);
	ck_assert_int_eq(t->order, ORDER_RANDOM);
	ck_assert(t->null_arm);
	ck_assert_int_eq(t->confirm, CONFIRM_FRESH);
	ck_assert_int_eq(t->batch, 0);
	ck_assert_int_eq(t->cell_budget_ns, 0);
	ck_assert_int_eq(t->timeout_ns, 60000000000);
	ck_assert_int_eq(t->threads, 0);
	ck_assert(t->tau < 0);
	const struct checks *c = &s->cases[0].checks;
	ck_assert_uint_eq(c->on, 1u << CHECK_IDENTITY);
	ck_assert_str_eq(c->identity.against, "shipped");
	ck_assert_ptr_null(c->identity.arms[0]);
	/* what is off has its defaults, for --checks */
	ck_assert_int_eq(c->repeat.launches, 100);
	ck_assert_int_eq(c->invariant.n_leading, 1);
	ck_assert_int_eq(c->invariant.leading[0], 1);
	ck_assert(c->invariant.permute && c->invariant.neighbours && c->reference.adapter);
	ck_assert(c->ratio.equal_issue_interval < 0 && !c->ratio.has_bar);
	ck_assert_uint_eq(s->cases[0].seed, 1);
	ck_assert_int_eq(s->max_cells, 100000);
	suite_destroy(s);
}
END_TEST

START_TEST(seed_protocols)
{
	struct suite *s = load(HEAD "timing: {estimator: mean, rounds: 5, order: fixed, scrub: 512MiB, null_arm: "
				    "false, warmup: {launches: 2}}\n" CASE CHECKS);
	const struct timing *t = &s->cases[0].timing;
	ck_assert_int_eq(t->estimator, EST_MEAN);
	ck_assert_int_eq(t->rounds, 5);
	ck_assert_int_eq(t->order, ORDER_FIXED);
	ck_assert_int_eq(t->scrub, SCRUB_BYTES);
	ck_assert_int_eq(t->scrub_bytes, 512 << 20);
	ck_assert(!t->null_arm);
	ck_assert_int_eq(t->warmup_launches, 2);
	suite_destroy(s);
	s = load(HEAD "timing: {estimator: median, rounds: 9, scrub: none, order: [split=2, shipped], warmup: "
		      "{launches: 1}}\n" CASE CHECKS);
	t = &s->cases[0].timing;
	ck_assert_int_eq(t->estimator, EST_MEDIAN);
	ck_assert_int_eq(t->rounds, 9);
	ck_assert_int_eq(t->scrub, SCRUB_NONE);
	ck_assert_int_eq(t->order, ORDER_LIST);
	ck_assert_str_eq(t->order_list[0], "split=2");
	ck_assert_str_eq(t->order_list[1], "shipped");
	ck_assert_ptr_null(t->order_list[2]);
	suite_destroy(s);
}
END_TEST

static void expect_layer(const struct suite *s, const char *path, const char *layer, int line)
{
	struct provenance p;
	ck_assert_msg(suite_provenance(s, &s->cases[0], path, &p), "%s", path);
	ck_assert_str_eq(p.layer, layer);
	ck_assert_int_eq(p.mark.line, line);
}

START_TEST(layers)
{
	static const struct suite_override set[] = {{"timing.batch=3"}, {"seed=9"}};
	const char *yaml =
		"assay: 1\nsuite: t\n"
		"timing: {rounds: 9, max_rounds: 48}\n" /* 3 */
		"defaults:\n"
		"  timing: {retries: 1, batch: 2}\n" /* 5 */
		"  checks: {repeat: {launches: 7}, identity: true}\n" /* 6 */
		"  seed: 3\n"
		"geometries:\n  g: {n_head: 4, kv_rank: 16, d_nope: 8}\n"
		"cases:\n  - id: c\n    kernels: mla.absorb_q\n    geometry: g\n    axes: {t_q: 1}\n" /* 11..14 */
		"    timing: {rounds: 16}\n" /* 15 */
		"    checks: {repeat: {processes: 2}, identity: false}\n"; /* 16 */
	struct suite *s = load_set(yaml, set, 2);
	ck_assert_msg(s != NULL, "%s", messages());
	const struct suite_case *c = &s->cases[0];
	ck_assert_int_eq(c->timing.rounds, 16);
	ck_assert_int_eq(c->timing.max_rounds, 48);
	ck_assert_int_eq(c->timing.retries, 1);
	ck_assert_int_eq(c->timing.batch, 3);
	ck_assert_uint_eq(c->seed, 9);
	ck_assert_uint_eq(c->checks.on, 1u << CHECK_REPEAT);
	ck_assert_int_eq(c->checks.repeat.launches, 7);
	ck_assert_int_eq(c->checks.repeat.processes, 2);
	expect_layer(s, "timing.min_rounds", "built-in", 0);
	expect_layer(s, "timing.max_rounds", "suite", 3);
	expect_layer(s, "timing.retries", "defaults", 5);
	expect_layer(s, "timing.rounds", "case", 15);
	expect_layer(s, "timing.batch", "command line", 1);
	expect_layer(s, "checks.repeat.launches", "defaults", 6);
	expect_layer(s, "checks.repeat.processes", "case", 16);
	expect_layer(s, "seed", "command line", 1);
	expect_layer(s, "geometry", "case", 13);
	expect_layer(s, "t_q", "case", 14);
	struct provenance p;
	ck_assert(!suite_provenance(s, c, "timing.no", &p));
	suite_destroy(s);
}
END_TEST

START_TEST(set_axes)
{
	static const struct suite_override set[] = {{"t_q=1,8"},
						    {"d_nope=16"},
						    {"timing.order=split=2,shipped"},
						    {"checks.identity.against=split=2"}};
	struct suite *s = load_set(HEAD CASE CHECKS, set, 4);
	ck_assert_msg(s != NULL, "%s", messages());
	const struct suite_case *c = &s->cases[0];
	ck_assert_int_eq(c->n_axes, 2);
	ck_assert_str_eq(c->axis[0].name, "t_q");
	ck_assert_int_eq(c->axis[0].n, 2);
	ck_assert_int_eq(c->axis[0].value[1].i, 8);
	ck_assert_str_eq(c->axis[1].name, "d_nope");
	ck_assert_int_eq(c->axis[1].value[0].i, 16);
	ck_assert_str_eq(c->timing.order_list[0], "split=2");
	ck_assert_str_eq(c->checks.identity.against, "split=2");
	suite_destroy(s);
}
END_TEST

static const struct {
	const char *set, *says;
} bad_sets[] = {
	{"timing.rouds=9", "--set 'timing.rouds=9':1:8: error: unknown key 'rouds'\n    timing.rouds=9\n           "
			   "^~~~~\n--set 'timing.rouds=9':1:8: note: did you mean 'rounds'?"},
	{"timing.rounds=010", "--set 'timing.rounds=010':1:15: error: '010' has a leading zero; write 10"},
	{"tq=1,8", "--set 'tq=1,8':1:1: error: no kernel of the suite knows the axis 'tq'"},
	{"t_q=1,1", "--set 't_q=1,1':1:7: error: the value 1 stands twice on the axis"},
	{"t_q=0", "--set 't_q=0':1:5: error: t_q = 0 is out of range 1..4096 of mla.absorb_q"},
	{"t_q", "--set 't_q':1:1: error: not PATH=VALUE"},
	{"=4", "--set '=4':1:1: error: not PATH=VALUE"},
	{"timing.order=split=2,shiped",
	 "--set 'timing.order=split=2,shiped':1:22: error: 'shiped' is no arm of case 'c'"},
	{"t_q=[1", "--set 't_q=[1'"},
	{"tming.rounds=9", "--set 'tming.rounds=9':1:1: error: unknown key 'tming'"},
};

START_TEST(set_refused)
{
	const struct suite_override set = {bad_sets[_i].set};
	ck_assert_ptr_null(load_set(HEAD CASE CHECKS, &set, 1));
	ck_assert_int_eq(diags_errors(diags), 1);
	const char *text = messages();
	ck_assert_msg(strstr(text, bad_sets[_i].says) == text, "%s\nfor %s", text, bad_sets[_i].says);
}
END_TEST

START_TEST(arms)
{
	struct suite *s =
		load(HEAD "split_sets: {heads: [{split: 4}, split=8]}\n"
			  "cases:\n  - id: c\n    kernels: [mla.absorb_q]\n    geometry: g\n    axes: {t_q: 1}\n"
			  "    arms: {sets: heads, arms: [{arm: split=2, name: two, env: {A: 1, B: }, graph: true}], "
			  "headroom: [split=16]}\n" CHECKS);
	const struct suite_case *c = &s->cases[0];
	ck_assert_int_eq(c->n_arms, 5);
	static const char *const names[] = {"shipped", "split=4", "split=8", "two", "split=16"};
	static const int roles[] = {ROLE_SHIPPED, ROLE_CANDIDATE, ROLE_CANDIDATE, ROLE_CANDIDATE, ROLE_HEADROOM};
	for (int i = 0; i < 5; i++) {
		ck_assert_str_eq(c->arm[i].name, names[i]);
		ck_assert_int_eq(c->arm[i].role, roles[i]);
	}
	ck_assert_str_eq(c->arm[3].arm, "split=2");
	ck_assert(c->arm[3].graph);
	ck_assert_int_eq(c->arm[3].n_env, 2);
	ck_assert_str_eq(c->arm[3].env[0].value, "1");
	ck_assert_ptr_null(c->arm[3].env[1].value);
	suite_destroy(s);
}
END_TEST

START_TEST(axis_values)
{
	struct suite *s = load("assay: 1\nsuite: t\ngeometries: {g: {n_head: 4, kv_rank: 16, top_k: 8, d_nope: 8}}\n"
			       "cases:\n  - id: c\n    kernels: [mla.attn_gathered]\n    geometry: g\n"
			       "    axes: {t_q: {range: [1, 8], step: 2}, kv: {pow2: [10, 14]}, scale: {from: 0.7, to: "
			       "0.9, step: 0.05}}\n"
			       "    checks: {repeat: true}\n");
	const struct axis *x = s->cases[0].axis;
	ck_assert_int_eq(x[0].n, 4); /* 1 3 5 7: the end is not met */
	ck_assert_int_eq(x[0].value[3].i, 7);
	ck_assert_int_eq(x[1].n, 5);
	ck_assert_int_eq(x[1].value[4].i, 16384);
	static const double scale[] = {0.7, 0.75, 0.8, 0.85, 0.9};
	ck_assert_int_eq(x[2].n, 5);
	for (int i = 0; i < 5; i++)
		ck_assert(x[2].value[i].d == scale[i] && !x[2].value[i].is_int);
	suite_destroy(s);
}
END_TEST

START_TEST(every_error_at_once)
{
	ck_assert_ptr_null(load_set("assay: 1\nsuit: t\ntiming: {rounds: 010, scrub: 5M}\ncases:\n  - id: a/b\n    "
				    "kernels: [mla.absorbq]\n",
				    NULL, 0));
	ck_assert_int_eq(diags_errors(diags), 5);
	const char *m = messages(), *last = m;
	static const char *const in_order[] = {":2:1: error", ":3:18: error", ":3:30: error", ":5:9: error",
					       ":6:15: error"};
	for (size_t i = 0; i < 5; i++) {
		const char *at = strstr(m, in_order[i]);
		ck_assert_msg(at != NULL && at >= last, "%s", in_order[i]);
		last = at;
	}
}
END_TEST

START_TEST(long_lists_are_quick)
{
	size_t cap = 1 << 20, n = 0;
	char *yaml = malloc(cap);
	n += (size_t)
		sprintf(yaml,
			"assay: 1\nsuite: t\nmax_cells: 1000000\ngeometries: {g: {kv_rank: 16, n_head: 1, top_k: 4, "
			"d_nope: 8, t_q: 1}}\ncases:\n"
			"  - {id: c, kernels: mla.attn_gathered, geometry: g, checks: {repeat: true}, axes: {kv: [");
	for (int i = 0; i < 90000; i++)
		n += (size_t)sprintf(yaml + n, "%d,", i + 1);
	n += (size_t)sprintf(yaml + n, "90001]}}\n");
	struct suite_options opt = {.registry = registry};
	struct suite *s = suite_load_text("t.yaml", yaml, n, &opt, diags);
	ck_assert_msg(s != NULL, "%s", messages());
	ck_assert_int_eq(s->cases[0].axis[0].n, 90001);
	suite_destroy(s);
	free(yaml);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("suite");
	TCase *t = tcase_create("suite");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, built_in_values);
	tcase_add_test(t, seed_protocols);
	tcase_add_test(t, layers);
	tcase_add_test(t, set_axes);
	tcase_add_loop_test(t, set_refused, 0, (int)(sizeof bad_sets / sizeof *bad_sets));
	tcase_add_test(t, arms);
	tcase_add_test(t, axis_values);
	tcase_add_test(t, every_error_at_once);
	tcase_add_test(t, long_lists_are_quick);
	suite_add_tcase(s, t);
	return unit_run(s);
}
