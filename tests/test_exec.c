/* exec on the fake backend: every must-fail subject of probe.faults has its finding, and honest arms have none. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "fake.h"
#include "registry.h"
#include "test_bed.h"
#include "unit.h"

static void all_checks(struct cell *c)
{
	c->checks.on = 1u << CHECK_IDENTITY | 1u << CHECK_REPEAT | 1u << CHECK_INVARIANT | 1u << CHECK_REFERENCE |
		       1u << CHECK_REGRESSION;
	c->checks.identity.against = "shipped";
	c->checks.repeat = (struct check_repeat){.launches = 5, .addresses = true};
	c->checks.invariant = (struct check_invariant){.rows = "rows",
						       .leading = {1, 3},
						       .n_leading = 2,
						       .permute = true,
						       .neighbours = true};
	c->checks.reference.adapter = true;
}

/* Honest arms: every check passes, every pass is there, and the digests agree. */
START_TEST(honest)
{
	static const char *const checks[] = {"memory", "identity", "repeat", "invariant", "reference"};
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	test_cell(&c, b.registry, "probe.faults", "shipped", "split=4", NULL);
	all_checks(&c);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert(!noted(facts, "degenerate data"));
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		const json_t *f = find(facts, checks[i], "split=4");
		ck_assert_msg(f && !strcmp(text_of(f, "status"), "pass"), "%s: %s", checks[i],
			      f ? text_of(f, "text") : "none");
	}
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(facts, "checks"), i, f)
		ck_assert_msg(!strcmp(text_of(f, "status"), "pass"), "%s %s: %s", text_of(f, "check"),
			      text_of(f, "arm"), text_of(f, "text"));
	ck_assert_str_eq(text_of(find(facts, "data", NULL), "status"), "pass");
	const char *sha = text_of(arm_of(facts, "shipped"), "out_sha256");
	ck_assert_int_eq(strlen(sha), 64);
	ck_assert_str_eq(text_of(arm_of(facts, "split=4"), "out_sha256"), sha);
	ck_assert_int_eq(number_of(find(facts, "repeat", "split=4"), "launches_differ"), 0);
	/* 1 - 0.05^(1/5) = 0.4507 */
	json_array_foreach(json_object_get(facts, "checks"), i, f) if (!strcmp(text_of(f, "kind"), "launches"))
		ck_assert_double_eq_tol(json_real_value(json_object_get(f, "bound")), 0.4507, 5e-4);
	ck_assert(json_is_true(json_object_get(find(facts, "invariant", "split=4"), "control")));
	ck_assert_int_eq(number_of(find(facts, "reference", "shipped"), "rows"), 64);
	const json_t *audit = json_object_get(facts, "data_audit");
	ck_assert(json_object_get(json_object_get(audit, "a"), "digest"));
	ck_assert_double_eq(json_real_value(json_object_get(json_object_get(facts, "work"), "flop")), 2.0 * 64 * 96);
	ck_assert(json_is_object(json_object_get(facts, "measure")));
	ck_assert(json_is_object(json_object_get(facts, "device_state")));
	ck_assert_int_ge(b.parts, 6);
	/* However often it is told, the code of an arm is read once. */
	ck_assert_int_eq(fake_artifacts(b.be), 2);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

struct fault {
	const char *arm, *check, *status, *key, *value, *text;
};

static const struct fault faults[] = {
	{"nothing", "memory", "wrong", "where", "unwritten", "64 of 64 elements of out unwritten, first out[rows=0]"},
	{"ulp", "identity", "mismatch", "tensor", "out", "1 of 64 elements of out differ; first out[rows=32]"},
	{"ulp", "identity", "mismatch", "tensor", "out", "50 of 50 launches, the same elements: not a race"},
	{"flip_bit", "identity", "mismatch", "tensor", "out", "first out[rows=21]"},
	{"unwritten_tail", "memory", "wrong", "where", "unwritten",
	 "1 of 64 elements of out unwritten, first out[rows=63]"},
	{"zero_rows", "reference", "wrong", "tensor", "out", "11 of 64 elements are outside"},
	{"nan", "reference", "wrong", "tensor", "out",
	 "1 of 64 elements are outside of the tolerance; worst out[rows=63]"},
	{"nan", "identity", "mismatch", "tensor", "out", "NaN among them"},
	{"leaves_ftz", "memory", "wrong", "where", "fp_control", "denormals are flushed to zero"},
	{"inf", "reference", "wrong", "tensor", "out", "worst out[rows=0]"},
	{"overrun", "memory", "wrong", "where", "guard_after", "writes behind out: first at byte 256 of 256"},
	{"underrun", "memory", "wrong", "where", "guard_before", "writes before out: first 4 bytes ahead of it"},
	{"over_read", "memory", "wrong", "where", "over_read", "1 element is not finite, only with NaN behind a"},
	{"over_read_max", "memory", "wrong", "where", "over_read", "depends on what lies behind a"},
	{"changes_input", "memory", "wrong", "where", "input_changed",
	 "changes its input a: 1 byte, first at byte 12288"},
	{"caches", "identity", "mismatch", "tensor", "out", "(second input set)"},
	{"drifts", "repeat", "mismatch", "against", "drifts", "differ"},
	{"batch", "invariant", "mismatch", "kind", "leading", "with its leading rows alone (rows=1)"},
	{"position", "invariant", "mismatch", "kind", "permute", "permuted"},
	{"neighbours", "invariant", "mismatch", "kind", "neighbours", "with other data"},
	{"late", "memory", "wrong", "where", "unwritten", "works on after it has returned"},
	{"fails", "run", "error", "phase", "launch", "this arm fails, as it says"},
	{"fails_sometimes", "run", "error", "phase", "launch", "every seventh launch"},
};

/* One arm against its check; the finding names arm, kind and place. */
START_TEST(fault_is_caught)
{
	const struct fault *f = &faults[_i];
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	test_cell(&c, b.registry, "probe.faults", "shipped", f->arm, NULL);
	all_checks(&c);
	if (!strcmp(f->arm, "drifts"))
		c.checks.repeat.launches = 30;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	const json_t *got = NULL, *one;
	size_t i;
	json_array_foreach(json_object_get(facts, "checks"), i, one)
	{
		if (!strcmp(text_of(one, "check"), f->check) && !strcmp(text_of(one, "arm"), f->arm) &&
		    !strcmp(text_of(one, "status"), f->status) && !strcmp(text_of(one, f->key), f->value))
			got = got ? got : one;
		/* No finding blames the honest arm. */
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

/* The 2 % racy arm: 300 launches find it, two say how little they know. */
START_TEST(racy)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	test_cell(&c, b.registry, "probe.faults", "shipped", "racy", NULL);
	c.checks.on = 1u << CHECK_REPEAT;
	c.checks.repeat.launches = 2;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	const json_t *f = find(facts, "repeat", "shipped");
	ck_assert_str_eq(text_of(f, "status"), "pass");
	ck_assert(strstr(text_of(f, "text"), "0 of 2 differ, under 78 %"));
	json_decref(facts);
	c.checks.repeat.launches = 300;
	facts = run_cell(&b, &c, EXEC_OK);
	f = find(facts, "repeat", "racy");
	ck_assert_str_eq(text_of(f, "status"), "mismatch");
	ck_assert_int_ge(number_of(f, "launches_differ"), 2);
	ck_assert_int_le(number_of(f, "launches_differ"), 20);
	ck_assert(json_is_false(json_object_get(f, "same_elements")));
	ck_assert_str_eq(text_of(find(facts, "repeat", "shipped"), "status"), "pass");
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* Whichever launch of all is odd, once: the arm that did it does not repeat itself, and nobody is told that buffers or inputs are to
 * blame. */
START_TEST(one_odd_launch)
{
	int64_t n = 0;
	for (int64_t k = 0; k <= n; k++) {
		struct fake_script s = {.flip_launch = k, .flip_tensor = 2};
		struct bed b;
		struct cell c;
		bed_open(&b, &s);
		test_cell(&c, b.registry, "probe.faults", "shipped", "split=4", NULL);
		c.checks.on = 1u << CHECK_IDENTITY | 1u << CHECK_REPEAT;
		c.checks.identity.against = "shipped";
		c.checks.repeat.launches = 5;
		json_t *facts = run_cell(&b, &c, EXEC_OK);
		if (k == 0)
			n = fake_launches(b.be);
		for (int i = 0; i < 2; i++)
			ck_assert_msg(!strcmp(text_of(find(facts, "memory", c.arm[i].name), "status"), "pass"),
				      "launch %lld: %s", (long long)k,
				      text_of(find(facts, "memory", c.arm[i].name), "text"));
		const char *odd = k && fake_event_at(b.be, k)->arg == 4 ? "split=4" : "shipped";
		ck_assert_msg(!strcmp(text_of(find(facts, "repeat", odd), "status"), k ? "mismatch" : "pass"),
			      "launch %lld of %lld by %s", (long long)k, (long long)n, odd);
		json_decref(facts);
		bed_close(&b);
	}
	ck_assert_int_gt(n, 15);
}
END_TEST

/* Right until the rounds are over: the launches after them find it. */
START_TEST(drift_after_rounds)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	test_cell(&c, b.registry, "probe.faults", "shipped", "drifts", NULL);
	c.checks.on = 1u << CHECK_REGRESSION;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	const json_t *f = find(facts, "repeat", "drifts");
	/* The fault counts launches over the whole process: in a process of its own (CK_FORK) it has ten right ones. */
	ck_assert(f);
	ck_assert_str_eq(text_of(f, "status"), "mismatch");
	/* Shipped once more at the start of a round, then shipped, the arm and the null arm. */
	char count[64];
	snprintf(count, sizeof count, "after the timed rounds (%d launches)",
		 4 * (int)json_integer_value(json_object_get(json_object_get(facts, "measure"), "rounds")));
	ck_assert_msg(strstr(text_of(f, "text"), count), "%s: %s", count, text_of(f, "text"));
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* inout is restored: shipped is right in every launch, and the arm that trusts that it is not is caught. */
START_TEST(inout)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	test_cell(&c, b.registry, "probe.inout", "shipped", "split=2", "accumulates", NULL);
	all_checks(&c);
	c.checks.invariant.rows = "n";
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_str_eq(text_of(find(facts, "identity", "split=2"), "status"), "pass");
	ck_assert_str_eq(text_of(find(facts, "reference", "shipped"), "status"), "pass");
	ck_assert_str_eq(text_of(find(facts, "memory", "shipped"), "status"), "pass");
	ck_assert_str_eq(text_of(find(facts, "identity", "accumulates"), "status"), "mismatch");
	json_decref(facts);
	/* Empty tensors. */
	c.point.v[0].i = 0;
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_str_eq(text_of(find(facts, "identity", "split=2"), "status"), "pass");
	json_decref(facts);
	bed_close(&b);
}
END_TEST

START_TEST(unsupported_arm)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	test_cell(&c, b.registry, "probe.faults", "shipped", "unsupported", NULL);
	all_checks(&c);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert(strstr(text_of(arm_of(facts, "unsupported"), "unsupported"), "runs nowhere"));
	ck_assert(json_is_null(json_object_get(arm_of(facts, "unsupported"), "out_sha256")));
	ck_assert(!find(facts, "identity", "unsupported"));
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* A constant fill makes rows equal: the permutation proves nothing, and says so. */
START_TEST(vacuous)
{
	struct bed b;
	struct cell c;
	struct fill_rule rule = {.spec = {.kind = FILL_CONSTANT, .value = 0.5}};
	bed_open(&b, NULL);
	test_cell(&c, b.registry, "probe.faults", "shipped", NULL);
	c.dist.rules = &rule;
	c.checks.on = 1u << CHECK_INVARIANT | 1u << CHECK_REFERENCE;
	c.checks.invariant = (struct check_invariant){.rows = "rows", .permute = true};
	c.checks.reference.adapter = true;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	const json_t *f = find(facts, "invariant", "shipped");
	ck_assert_str_eq(text_of(f, "status"), "invalid");
	ck_assert(strstr(text_of(f, "text"), "vacuous"));
	ck_assert(json_is_false(json_object_get(f, "control")));
	ck_assert(noted(facts, "degenerate data"));
	json_decref(facts);
	bed_close(&b);
}
END_TEST

static const struct assay_kernel *sampled;
static int asked[64]; /* how often for each row */

static int count_rows(const struct assay_call *call, int t, const struct assay_rows *rows, double *ref, double *bound)
{
#pragma omp critical
	for (int64_t i = 0; i < rows->n; i++)
		asked[rows->row[i]]++;
	return sampled->reference(call, t, rows, ref, bound);
}

/* A sample of rows is of rows that differ, from all over the output. */
START_TEST(sample_of_rows)
{
	struct bed b;
	struct cell c;
	int n = 0, upper = 0;
	bed_open(&b, NULL);
	sampled = registry_find(b.registry, "probe.faults");
	struct assay_kernel mine = *sampled;
	mine.reference = count_rows;
	test_cell_own(&c, &mine, "shipped", NULL);
	ck_assert_int_eq(c.point.v[0].i, 64);
	c.checks.on = 1u << CHECK_REFERENCE;
	c.checks.reference.adapter = true;
	c.checks.reference.sample_rows = 16;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(number_of(find(facts, "reference", "shipped"), "of"), 16);
	for (int i = 0; i < 64; i++) {
		ck_assert_int_le(asked[i], 1);
		n += asked[i];
		upper += i < 32 ? asked[i] : 0;
	}
	ck_assert_int_eq(n, 16);
	ck_assert_msg(upper >= 4 && upper <= 12, "%d of 16 in the upper half", upper);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* A broken promise: invalid, with the tensor named, and no timing. */
START_TEST(broken_promise)
{
	struct bed b;
	struct cell c;
	struct fill_rule rule = {.spec = {.kind = FILL_UNIFORM, .range = {0.5, 1}}};
	bed_open(&b, NULL);
	test_cell(&c, b.registry, "probe.faults", "shipped", NULL);
	c.dist.rules = &rule;
	c.dist.promise.sign = PROMISE_BOTH;
	c.checks.on = 1u << CHECK_REGRESSION;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	const json_t *f = find(facts, "data", NULL);
	ck_assert_str_eq(text_of(f, "status"), "invalid");
	ck_assert_str_eq(text_of(f, "tensor"), "a");
	ck_assert(!json_object_get(facts, "measure"));
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* A lost device ends the cell with what was known. */
START_TEST(lost)
{
	struct fake_script s = {.lost_launch = 30};
	struct bed b;
	struct cell c;
	bed_open(&b, &s);
	test_cell(&c, b.registry, "probe.faults", "shipped", "split=2", NULL);
	all_checks(&c);
	json_t *facts = run_cell(&b, &c, EXEC_LOST);
	ck_assert(find(facts, "memory", "split=2"));
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* Inputs stay between cells, and an alloc that fails is an error with a name. */
START_TEST(memory)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	test_cell(&c, b.registry, "probe.faults", "shipped", NULL);
	c.checks.on = 1u << CHECK_REPEAT;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	int64_t held = fake_memory_in_use(b.be);
	char *digest = strdup(text_of(json_object_get(json_object_get(facts, "data_audit"), "a"), "digest"));
	ck_assert_int_gt(held, 0);
	json_decref(facts);
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(fake_memory_in_use(b.be), held);
	ck_assert_str_eq(text_of(json_object_get(json_object_get(facts, "data_audit"), "a"), "digest"), digest);
	json_decref(facts);
	free(digest);
	fake_script_of(b.be)->alloc_limit_bytes = 1 << 20;
	c.point.v[0].i = 100000;
	facts = run_cell(&b, &c, EXEC_FAILED);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* Launches of --no-fork --arm: one warm-up and n. */
START_TEST(launch_only)
{
	struct bed b;
	struct cell c;
	struct err err = {{0}};
	bed_open(&b, NULL);
	test_cell(&c, b.registry, "probe.faults", "shipped", "split=2", NULL);
	ck_assert(exec_launch_only(b.exec, &c, "split=2", 20, &err));
	ck_assert_int_eq(fake_launches(b.be), 21);
	ck_assert(!exec_launch_only(b.exec, &c, "splat", 20, &err));
	ck_assert(strstr(err.text, "no arm 'splat'"));
	bed_close(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("exec");
	TCase *t = tcase_create("exec");
	tcase_add_test(t, honest);
	tcase_add_loop_test(t, fault_is_caught, 0, sizeof(faults) / sizeof(*faults));
	tcase_add_test(t, racy);
	tcase_add_test(t, one_odd_launch);
	tcase_add_test(t, drift_after_rounds);
	tcase_add_test(t, inout);
	tcase_add_test(t, unsupported_arm);
	tcase_add_test(t, vacuous);
	tcase_add_test(t, sample_of_rows);
	tcase_add_test(t, broken_promise);
	tcase_add_test(t, lost);
	tcase_add_test(t, memory);
	tcase_add_test(t, launch_only);
	suite_add_tcase(s, t);
	return unit_run(s);
}
