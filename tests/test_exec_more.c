/* exec on a kernel of strided, packed, masked, empty and recorded tensors: each broken rule has its finding, an honest arm has none. */
#include <math.h>
#include <stdlib.h>

#include "inputs.h"
#include "test_zoo_bed.h"
#include "unit.h"

/* Strides, an own container, a workspace, records and an empty tensor: nothing is wrong with any of them. */
START_TEST(honest)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	ZOO_CELL(&c, &zoo, "shipped", "packed", "scratch", "two");
	checks_of(&c);
	c.checks.on |= 1u << CHECK_INVARIANT;
	c.checks.invariant = (struct check_invariant){.rows = "rows",
						      .leading = {3},
						      .n_leading = 1,
						      .permute = true,
						      .neighbours = true};
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	all_pass(facts);
	for (int i = 1; i < 4; i++) {
		ck_assert_str_eq(text_of(arm_of(facts, c.arm[i].name), "out_sha256"),
				 text_of(arm_of(facts, "shipped"), "out_sha256"));
		ck_assert_str_eq(text_of(find(facts, "invariant", c.arm[i].name), "status"), "pass");
	}
	/* 8 rows of 6 floats and of one sum. */
	ck_assert_int_eq(number_of(find(facts, "identity", "packed"), "of"), 8 * 6 + 8);
	ck_assert(json_object_get(json_object_get(facts, "data_audit"), "r.qs"));
	ck_assert(json_object_get(json_object_get(facts, "data_audit"), "e"));
	json_decref(facts);
	/* All of it empty. */
	c.point.v[0].i = 0;
	c.checks.on &= ~(1u << CHECK_INVARIANT);
	facts = run_cell(&b, &c, EXEC_OK);
	all_pass(facts);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* What is no amount of work makes the cell an error: by it nothing could be called implausible. */
static struct assay_work told;

static void tell_work(const struct assay_point *pt, const struct assay_facts *facts, struct assay_work *out)
{
	*out = told;
}

START_TEST(no_amount_of_work)
{
	static const struct {
		struct assay_work work;
		const char *name; /* NULL: taken */
	} cases[] = {{{NAN, 1, 1}, "bytes nan"}, {{1, INFINITY, 1}, "least_bytes inf"},
		     {{1, 1, -1}, "flop -1"},    {{1, 1, NAN}, "flop nan"},
		     {{-8, 1, 1}, "bytes -8"},   {{0, 0, 0}, NULL},
		     {{1e15, 1e15, 1e18}, NULL}};
	struct assay_kernel k = zoo;
	k.work = tell_work;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct bed b;
		struct cell c;
		struct err err = {{0}};
		json_t *facts = NULL;
		bed_open(&b, NULL);
		ZOO_CELL(&c, &k, "shipped", "packed");
		checks_of(&c);
		told = cases[i].work;
		const struct exec_sink sink = {.beat = &b.beat, .part = part, .ctx = &b};
		const enum exec_outcome got = exec_cell(b.exec, &c, &sink, &facts, &err);
		ck_assert_int_eq(got, cases[i].name ? EXEC_FAILED : EXEC_OK);
		if (cases[i].name)
			ck_assert_msg(strstr(err.text, cases[i].name) && strstr(err.text, "test.zoo"), "%s", err.text);
		else
			all_pass(facts);
		json_decref(facts);
		bed_close(&b);
	}
}
END_TEST

struct fault {
	const char *arm, *check, *status, *key, *value, *text;
};

static const struct fault faults[] = {
	{"packed_wrong", "identity", "mismatch", "tensor", "y", "1 of 48 elements of y differ; first y[rows=1,n=1]"},
	{"packed_wrong", "reference", "wrong", "tensor", "y", "1 of 48 elements are outside"},
	{"packed_short", "memory", "wrong", "where", "unwritten", "what w held before it was packed"},
	{"packed_overrun", "run", "error", "phase", "plan", "derive wrote outside of w, at byte 192 of 192"},
	{"packed_fails", "run", "error", "phase", "plan", "cannot pack that"},
	{"clobbers", "memory", "wrong", "where", "input_changed", "changes its input w"},
	{"clobbers_late", "memory", "wrong", "where", "input_changed", "changes its input w"},
	{"gap", "memory", "wrong", "where", "guard_after", "writes between the rows of y: first at byte 60"},
	{"gap_late", "memory", "wrong", "where", "guard_after", "writes between the rows of y: first at byte 24"},
	{"input_begin", "memory", "wrong", "where", "input_changed", "changes its input x: 1 byte, first at byte 0"},
	{"input_gap", "memory", "wrong", "where", "input_changed", "changes its input x: 4 bytes, first at byte 28"},
	{"overrun_late", "memory", "wrong", "where", "guard_after", "writes behind z: first at byte 32 of 32"},
	{"second", "identity", "mismatch", "tensor", "z", "1 of 8 elements of z differ; first z[rows=5]"},
	{"second", "identity", "mismatch", "tensor", "z", "at most 300 apart"},
	{"zeroed", "memory", "wrong", "where", "unwritten", "or adds to what was there before"},
	{"workspace_overrun", "memory", "wrong", "where", "guard_after",
	 "writes behind workspace: first at byte 100 of 100"},
};

START_TEST(fault_is_caught)
{
	const struct fault *f = &faults[_i];
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	ZOO_CELL(&c, &zoo, "shipped", f->arm);
	checks_of(&c);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	const json_t *got = NULL, *one;
	size_t i;
	json_array_foreach(json_object_get(facts, "checks"), i, one)
	{
		if (!strcmp(text_of(one, "check"), f->check) && !strcmp(text_of(one, "arm"), f->arm) &&
		    !strcmp(text_of(one, "status"), f->status) && !strcmp(text_of(one, f->key), f->value))
			got = got ? got : one;
		if (!strcmp(text_of(one, "arm"), "shipped"))
			ck_assert_msg(!strcmp(text_of(one, "status"), "pass"), "%s: shipped is blamed: %s", f->arm,
				      text_of(one, "text"));
	}
	char *all = json_dumps(json_object_get(facts, "checks"), JSON_INDENT(1));
	ck_assert_msg(got, "%s: no %s finding with %s=%s in %s", f->arm, f->check, f->key, f->value, all);
	ck_assert_msg(strstr(text_of(got, "text"), f->text), "%s: '%s' is not in '%s'", f->arm, f->text,
		      text_of(got, "text"));
	free(all);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

static void rows_check(struct cell *c)
{
	c->checks.on = 1u << CHECK_INVARIANT;
	c->checks.invariant = (struct check_invariant){.rows = "rows", .permute = true};
}

/* However little memory there is: an invariance check that could not be made is no pass. */
START_TEST(invariance_without_memory)
{
	int not_made = 0, made = 0;
	for (double limit = 4096; limit < 1e8; limit *= 1.05) {
		const struct fake_script script = {.memory_bytes = (int64_t)limit};
		struct err err = {{0}};
		json_t *facts = NULL;
		struct bed b;
		struct cell c;
		bed_open(&b, &script);
		const struct exec_sink sink = {.beat = &b.beat};
		ZOO_CELL(&c, &zoo, "shipped");
		rows_check(&c);
		if (exec_cell(b.exec, &c, &sink, &facts, &err) == EXEC_OK && !find(facts, "run", "shipped")) {
			const char *status = text_of(find(facts, "invariant", "shipped"), "status");
			made += !strcmp(status, "pass");
			not_made += !strcmp(status, "error");
			ck_assert_msg(!strcmp(status, "pass") || !strcmp(status, "error"), "'%s' with %.0f bytes",
				      status, limit);
		}
		json_decref(facts);
		bed_close(&b);
	}
	ck_assert_int_gt(made, 0);
	ck_assert_int_gt(not_made, 0);
}
END_TEST

/* One output that is alive proves nothing of another that is the same in every row. */
START_TEST(one_vacuous_output)
{
	static const struct fill_rule flat[] = {
		{.spec = {.kind = FILL_UNIFORM, .range = {-1, 1}}},
		{.tensor = "r", .field = "qs", .spec = {.kind = FILL_CONSTANT, .value = 3}},
	};
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	ZOO_CELL(&c, &zoo, "shipped");
	c.dist.rules = flat;
	rows_check(&c);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	const json_t *f = find(facts, "invariant", "shipped");
	ck_assert_str_eq(text_of(f, "status"), "invalid");
	ck_assert_msg(strstr(text_of(f, "text"), "does not differ either in z"), "%s", text_of(f, "text"));
	json_decref(facts);
	bed_close(&b);
}
END_TEST

static int64_t digests, digest_fails;
static bool (*real_digest)(struct backend *b, const void *p, size_t bytes, uint64_t *out, struct err *err);

static bool digest_once_not(struct backend *b, const void *p, size_t bytes, uint64_t *out, struct err *err)
{
	if (++digests == digest_fails)
		return err_set(err, "scripted failure of a digest");
	return real_digest(b, p, bytes, out, err);
}

/* Whichever digest fails: no cell is said to be done without it, no finding rests on it, and nothing stays behind. */
START_TEST(digest_fails_somewhere)
{
	for (digest_fails = 1;; digest_fails++) {
		struct err err = {{0}};
		json_t *facts = NULL;
		struct bed b;
		struct cell c;
		bed_open(&b, NULL);
		const struct exec_sink sink = {.beat = &b.beat};
		struct backend_ops mine = *backend_ops_of(b.be);
		real_digest = mine.digest;
		mine.digest = digest_once_not;
		*(const struct backend_ops **)(void *)b.be = &mine;
		digests = 0;
		if (_i >= 2) /* `packed` has an input of its own making, which is looked at again after an overrun */
			ZOO_CELL(&c, &zoo, "shipped", "packed", _i == 2 ? "scratch" : "workspace_overrun");
		else
			test_cell(&c, b.registry, "probe.faults", "shipped", _i ? "over_read" : "racy", NULL);
		c.checks.on = 1u << CHECK_IDENTITY | 1u << CHECK_REPEAT | 1u << CHECK_REGRESSION;
		/* A cell a digest: no more launches than bring each place that digests. */
		c.checks.repeat = (struct check_repeat){.launches = 6, .addresses = true};
		const enum exec_outcome got = exec_cell(b.exec, &c, &sink, &facts, &err);
		const bool all = digests < digest_fails;
		const bool found = find(facts, "run", NULL) != NULL;
		ck_assert_msg(all || got != EXEC_OK || found, "digest %lld failed and nobody says so",
			      (long long)digest_fails);
		json_decref(facts);
		bed_close(&b);
		if (all)
			break;
	}
	ck_assert_int_gt(digest_fails, 40);
}
END_TEST

/* Writes between the rows only where they come in another order. */
START_TEST(gap_of_permuted_rows)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	ZOO_CELL(&c, &zoo, "shipped", "gap_late");
	c.checks.on = 1u << CHECK_INVARIANT;
	c.checks.invariant = (struct check_invariant){.rows = "rows", .permute = true};
	zoo_launches = 2; /* the arm's permuted launch is the tenth, and a twelfth */
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(zoo_launches, 12);
	const json_t *f = find(facts, "memory", "gap_late");
	ck_assert_str_eq(text_of(f, "status"), "wrong");
	ck_assert_str_eq(text_of(f, "text"), "writes between the rows of y: first at byte 24");
	ck_assert_str_eq(text_of(find(facts, "invariant", "gap_late"), "status"), "pass");
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* The rounds alone: no check relaunches anything, what a timed launch did is found after them. */
START_TEST(container_changed_in_the_rounds)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	ZOO_CELL(&c, &zoo, "shipped", "clobbers_late");
	c.checks.on = 1u << CHECK_REGRESSION;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	const json_t *f = find(facts, "memory", "clobbers_late");
	ck_assert_str_eq(text_of(f, "status"), "wrong");
	ck_assert_str_eq(text_of(f, "tensor"), "w");
	ck_assert_msg(strstr(text_of(f, "text"), "during the timed rounds"), "%s", text_of(f, "text"));
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* Writes behind an output in the timed rounds alone, where nobody looks: told of the arm, or of none, and of no innocent one. */
START_TEST(overrun_in_the_rounds)
{
	struct bed b;
	struct cell c;
	size_t i;
	json_t *f;
	bool seen = false;
	bed_open(&b, NULL);
	ZOO_CELL(&c, &zoo, "shipped", "overrun_late", "scratch");
	c.checks.on = 1u << CHECK_REGRESSION;
	zoo_launches = -20; /* past the checks */
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_gt(zoo_launches, 20);
	json_array_foreach(json_object_get(facts, "checks"), i, f)
	{
		const char *arm = text_of(f, "arm");
		if (!strcmp(text_of(f, "status"), "pass"))
			continue;
		ck_assert_msg(!*arm || !strcmp(arm, "overrun_late"), "%s: %s", arm, text_of(f, "text"));
		if (strcmp(text_of(f, "where"), "guard_after") != 0)
			continue;
		seen = true;
		ck_assert_int_eq(number_of(f, "bytes"), 4);
		ck_assert_int_eq(number_of(f, "offset_bytes"), 8 * 4); /* behind 8 sums */
	}
	ck_assert(seen);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* Undefined elements are written by one arm and not by another: neither is wrong. One column further it is. */
START_TEST(masked)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	const struct check_invariant rows = {.rows = "rows",
					     .leading = {3},
					     .n_leading = 1,
					     .permute = true,
					     .neighbours = true};
	ZOO_CELL(&c, &zoo_masked, "shipped", "masked");
	checks_of(&c);
	c.checks.on |= 1u << CHECK_INVARIANT;
	c.checks.invariant = rows;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	all_pass(facts);
	ck_assert_str_eq(text_of(find(facts, "invariant", "masked"), "status"), "pass");
	size_t i;
	json_t *one;
	json_array_foreach(json_object_get(facts, "checks"), i,
			   one) if (!strcmp(text_of(one, "check"), "reference") && !strcmp(text_of(one, "tensor"), "y"))
		ck_assert_int_eq(number_of(one, "of"), 8 * 4);
	json_decref(facts);
	ZOO_CELL(&c, &zoo_masked, "shipped", "masked_wrong");
	checks_of(&c);
	c.checks.on |= 1u << CHECK_INVARIANT;
	c.checks.invariant = rows;
	facts = run_cell(&b, &c, EXEC_OK);
	const json_t *f = find(facts, "identity", "masked_wrong");
	ck_assert_str_eq(text_of(f, "status"), "mismatch");
	ck_assert_int_eq(number_of(f, "differ"), 1);
	ck_assert_msg(strstr(text_of(f, "text"), "y[rows=2,n=3]"), "%s", text_of(f, "text"));
	ck_assert_str_eq(text_of(find(facts, "reference", "masked_wrong"), "status"), "wrong");
	ck_assert_str_eq(text_of(find(facts, "memory", "masked_wrong"), "status"), "pass");
	ck_assert_str_eq(text_of(find(facts, "invariant", "masked_wrong"), "status"),
			 "mismatch"); /* wrong in one place */
	json_decref(facts);
	bed_close(&b);
}
END_TEST

static const struct env_flip flips[] = {{"ASSAY_ZOO_A", "1"}, {"ASSAY_ZOO_B", NULL}, {"ASSAY_ZOO_C", "2"}};

static void captured(void *ctx, const struct launch *l)
{
	zoo_environment(ctx);
}

/* Set, unset and changed around plan, derive, capture and run; as before when they are over. */
START_TEST(env_flips)
{
	char at_capture[64] = "", now[64];
	const struct fake_script script = {.graphs = true, .captured = captured, .ctx = at_capture};
	struct bed b;
	struct cell c;
	unsetenv("ASSAY_ZOO_A");
	setenv("ASSAY_ZOO_B", "before", 1);
	setenv("ASSAY_ZOO_C", "3", 1);
	bed_open(&b, &script);
	ZOO_CELL(&c, &zoo, "shipped", "env");
	c.arm[1].env = flips;
	c.arm[1].n_env = 3;
	c.arm[1].graph = _i == 1;
	checks_of(&c);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	all_pass(facts);
	json_decref(facts);
	ck_assert_str_eq(zoo_seen.plan, "A=1 B=- C=2");
	ck_assert_str_eq(zoo_seen.derive, "A=1 B=- C=2");
	ck_assert_str_eq(zoo_seen.run, "A=1 B=- C=2");
	ck_assert_int_gt(zoo_seen.runs, 20);
	ck_assert_str_eq(at_capture, _i == 1 ? "A=1 B=- C=2" : "");
	zoo_environment(now);
	ck_assert_str_eq(now, "A=- B=before C=3");
	/* And where the arm fails. */
	ZOO_CELL(&c, &zoo, "shipped", "packed_fails");
	c.arm[1].env = flips;
	c.arm[1].n_env = 3;
	json_decref(run_cell(&b, &c, EXEC_OK));
	zoo_environment(now);
	ck_assert_str_eq(now, "A=- B=before C=3");
	bed_close(&b);
}
END_TEST

/* A graph is captured once a scene, counted against what the arm says it launches, and replayed into poisoned buffers. */
START_TEST(graphs)
{
	struct fake_script script = {.graphs = true, .graph_kernels = 2};
	struct bed b;
	struct cell c;
	int64_t made, freed;
	bed_open(&b, &script);
	ZOO_CELL(&c, &zoo, "shipped", "two");
	c.arm[1].graph = true;
	checks_of(&c);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	all_pass(facts);
	ck_assert_int_eq(number_of(find(facts, "graph", "two"), "captured"), 2);
	ck_assert_int_eq(number_of(find(facts, "graph", "two"), "launches"), 2);
	json_decref(facts);
	made = fake_graphs(b.be, &freed);
	ck_assert_int_eq(made, 2); /* at the cell's addresses, and at the others of `repeat` */
	ck_assert_int_eq(freed, 2);
	/* One of its launches went elsewhere. */
	fake_script_of(b.be)->graph_kernels = 1;
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_str_eq(text_of(find(facts, "graph", "two"), "status"), "wrong");
	ck_assert_str_eq(text_of(find(facts, "graph", "two"), "text"), "graph has 1 of 2 launches");
	json_decref(facts);
	/* It runs nothing: what was launched before the capture must not pass for its output. */
	fake_script_of(b.be)->graph_kernels = 2;
	fake_script_of(b.be)->graph_empty = true;
	facts = run_cell(&b, &c, EXEC_OK);
	const json_t *f = find(facts, "memory", "two");
	ck_assert_str_eq(text_of(f, "status"), "wrong");
	ck_assert_str_eq(text_of(f, "where"), "unwritten");
	json_decref(facts);
	bed_close(&b);
	/* Without graphs the arm cannot run, and says why. */
	bed_open(&b, NULL);
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_str_eq(text_of(arm_of(facts, "two"), "unsupported"), "graphs are not captured on this backend");
	json_decref(facts);
	bed_close(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("exec_more");
	TCase *t = tcase_create("exec_more");
	tcase_add_test(t, honest);
	tcase_add_test(t, no_amount_of_work);
	tcase_add_loop_test(t, fault_is_caught, 0, sizeof(faults) / sizeof(*faults));
	tcase_add_test(t, invariance_without_memory);
	tcase_add_test(t, one_vacuous_output);
	tcase_add_loop_test(t, digest_fails_somewhere, 0, 4);
	tcase_add_test(t, gap_of_permuted_rows);
	tcase_add_test(t, container_changed_in_the_rounds);
	tcase_add_test(t, overrun_in_the_rounds);
	tcase_add_test(t, masked);
	tcase_add_loop_test(t, env_flips, 0, 2);
	tcase_add_test(t, graphs);
	suite_add_tcase(s, t);
	return unit_run(s);
}
