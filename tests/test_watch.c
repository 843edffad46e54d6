/* Launches that are timed are held to the checked ones: what is wrong under the clock alone, what is left out where it seems to be there, and
 * what is answered from an earlier launch. And honest arms are not accused. */
#include "test_rounds_bed.h"
#include "unit.h"

static json_t *timed(struct bed *b, struct cell *c, const char *kernel, const char *arm, int64_t rows)
{
	test_cell(c, b->registry, kernel, "shipped", arm, NULL);
	if (rows)
		c->point.v[0].i = rows;
	c->checks.on = 1u << CHECK_IDENTITY | 1u << CHECK_REGRESSION;
	c->selection = SELECT_ARM;
	c->selected = arm;
	return run_cell(b, c, EXEC_OK);
}

/* Small outputs are looked at in each round; of large ones each second round is, and the last. */
static const int64_t sizes[] = {64, 100000};

START_TEST(wrong_under_the_clock)
{
	static const struct {
		const char *arm, *held;
	} lies[] = {{"flips_timed", "answer"}, {"keeps_last", "answer"}, {"leaves_out", "with holes"}};
	for (size_t k = 0; k < sizeof lies / sizeof *lies; k++) {
		struct bed b;
		struct cell c;
		bed_open(&b, NULL);
		json_t *facts = timed(&b, &c, "probe.faults", lies[k].arm, sizes[_i]);
		const json_t *f = find(facts, "timed", lies[k].arm);
		ck_assert(f);
		ck_assert_str_eq(text_of(f, "status"), "mismatch");
		ck_assert(strstr(text_of(f, "text"), "wrong under the clock"));
		ck_assert_msg(strstr(text_of(f, "text"), lies[k].held), "%s", text_of(f, "text"));
		ck_assert_int_gt(number_of(f, "launches_differ"), 0);
		ck_assert_int_le(number_of(f, "launches_differ"), number_of(f, "launches"));
		ck_assert_int_gt(number_of(f, "launch"), 0);
		ck_assert(json_is_string(json_object_get(json_object_get(f, "first"), "at")));
		/* What was checked, before and after, was right. */
		ck_assert_str_eq(text_of(find(facts, "identity", lies[k].arm), "status"), "pass");
		ck_assert_str_eq(text_of(find(facts, "timed", "shipped"), "status"), "pass");
		ck_assert_str_eq(text_of(find(facts, "timed", "null"), "status"), "pass");
		json_decref(facts);
		bed_close(&b);
	}
}
END_TEST

START_TEST(kept_answers)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	json_t *facts = timed(&b, &c, "probe.faults", "caches_part", 0);
	const json_t *f = find(facts, "changed", "caches_part");
	ck_assert(f);
	ck_assert_str_eq(text_of(f, "status"), "wrong");
	ck_assert(strstr(text_of(f, "text"), "changed places"));
	ck_assert_str_eq(text_of(find(facts, "changed", "shipped"), "status"), "pass");
	ck_assert(json_is_true(json_object_get(find(facts, "changed", "shipped"), "control")));
	json_decref(facts);
	/* The inputs are as they were: the next cell finds nothing that was written to, and the same digests. */
	facts = timed(&b, &c, "probe.faults", "split=4", 0);
	ck_assert(!noted(facts, "was written to"));
	ck_assert_str_eq(text_of(find(facts, "changed", "split=4"), "status"), "pass");
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* Also where a tensor is changed by the arm itself in place, and restored. */
START_TEST(honest_arms)
{
	static const char *const kernels[] = {"probe.faults", "probe.inout"};
	for (int k = 0; k < 2; k++) {
		struct bed b;
		struct cell c;
		bed_open(&b, NULL);
		json_t *facts = timed(&b, &c, kernels[k], "split=4", k ? 0 : sizes[_i]);
		const json_t *f = find(facts, "timed", "split=4");
		ck_assert_str_eq(text_of(f, "status"), "pass");
		ck_assert_int_ge(number_of(f, "launches"), 4);
		ck_assert_int_le(number_of(f, "launches"), number_of(f, "launches_timed"));
		size_t i;
		json_t *g;
		json_array_foreach(json_object_get(facts, "checks"), i, g)
			ck_assert_msg(!strcmp(text_of(g, "status"), "pass"), "%s", text_of(g, "text"));
		json_decref(facts);
		bed_close(&b);
	}
}
END_TEST

/* A device that says it has launched and has not: from the last round on, whoever comes then. */
START_TEST(silent_device)
{
	static const enum clock_kind clocks[] = {CLOCK_DEVICE, CLOCK_LAUNCH_TO_COMPLETION};
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	bench(&c, b.registry);
	c.timing.clock = clocks[_i];
	json_decref(run_cell(&b, &c, EXEC_OK));
	const int64_t whole = fake_launches(b.be);
	json_decref(run_cell(&b, &c, EXEC_OK));
	/* The last of the timed launches is the first that is not run. */
	fake_script_of(b.be)->silent_launch = whole + 2 * (fake_launches(b.be) - whole) - AFTER;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	int wrong = 0;
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(facts, "checks"), i, f) wrong +=
		!strcmp(text_of(f, "check"), "timed") && !strcmp(text_of(f, "status"), "mismatch") &&
		number_of(f, "launches_differ") == 1 && number_of(f, "launch") == number_of(f, "launches_timed");
	ck_assert_int_eq(wrong, 1);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* What is looked at is drawn by the seed: the same cell, the same looks. */
START_TEST(looks_repeat)
{
	int64_t looked[2];
	for (int k = 0; k < 2; k++) {
		struct bed b;
		struct cell c;
		bed_open(&b, NULL);
		json_t *facts = timed(&b, &c, "probe.faults", "flips_timed", sizes[1]);
		const json_t *f = find(facts, "timed", "flips_timed");
		looked[k] = number_of(f, "launches") * 1000 + number_of(f, "launch");
		ck_assert_int_lt(number_of(f, "launches"), number_of(f, "launches_timed") + 1);
		json_decref(facts);
		bed_close(&b);
	}
	ck_assert_int_eq(looked[0], looked[1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("watch");
	TCase *t = tcase_create("watch");
	tcase_add_loop_test(t, wrong_under_the_clock, 0, 2);
	tcase_add_test(t, kept_answers);
	tcase_add_loop_test(t, honest_arms, 0, 2);
	tcase_add_loop_test(t, silent_device, 0, 2);
	tcase_add_test(t, looks_repeat);
	suite_add_tcase(s, t);
	return unit_run(s);
}
