/* What one look cannot tell: work that runs on beside a queue against a host that was put aside, and a scrub that a neighbour hides. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "escape.h"
#include "test_rounds_bed.h"

/* Gaps between the end of the own queue and that of the device: at one wait only, at every third, or after every launch of an arm but each
 * `but`-th, or after each `nth` of them only. */
struct gaps {
	int64_t at, every;
	int64_t arg, ns;
	int64_t but, nth;
	int64_t more; /* every second gap is longer by so much */
	int64_t launches; /* of the arm so far */
};

static int64_t gap_of(void *ctx, int64_t k, const struct fake_event *last)
{
	struct gaps *g = ctx;
	bool here = g->at ? k == g->at : g->every ? k % g->every == 0 : last && last->arg == g->arg;
	if (here && g->arg) {
		g->launches++;
		here = g->but ? g->launches % g->but != 0 : !g->nth || g->launches % g->nth == 0;
	}
	return here ? g->ns + (k % 2 ? g->more : 0) : 0;
}

static bool suspected, anybody; /* of the last cell: split=4 is under suspicion, and whether anybody is */

/* The `run` findings that are not passes, of a cell with such gaps; the text of the last in out[256]. */
static int accused(struct gaps *g, enum clock_kind clock, char *out, int64_t *drains)
{
	struct fake_script s = {.gap_ns = gap_of, .gap_ctx = g};
	struct bed b;
	struct cell c;
	size_t i;
	json_t *f;
	int n = 0;
	bed_open(&b, &s);
	bench(&c, b.registry);
	c.timing.clock = clock;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	json_array_foreach(json_object_get(facts, "checks"), i, f)
	{
		if (strcmp(json_string_value(json_object_get(f, "check")), "run") != 0)
			continue;
		n++;
		ck_assert_str_eq(json_string_value(json_object_get(f, "status")), "invalid");
		snprintf(out, 256, "%s %s", json_string_value(json_object_get(f, "arm")),
			 json_string_value(json_object_get(f, "text")));
	}
	*drains = fake_drains(b.be);
	suspected = noted(facts, "split=4: a stream escape is suspected");
	anybody = noted(facts, "a stream escape is suspected");
	json_decref(facts);
	bed_close(&b);
	return n;
}

static const enum clock_kind clocks[] = {CLOCK_DEVICE, CLOCK_LAUNCH_TO_COMPLETION};

/* Work that runs on after its own queue is done, each time: the clock did not see it, and no verdict is given. The arm is named, and the
 * shortest gap is told. */
START_TEST(stream_escape)
{
	struct gaps g = {.arg = 4, .ns = 83200, .more = 12000};
	char text[256];
	int64_t drains;
	ck_assert_int_eq(accused(&g, clocks[_i], text, &drains), 1);
	ck_assert_msg(strstr(text, "split=4 stream escape: 83.2 us") == text, "%s", text);
	/* Less than the least that is told. */
	g.ns = 50000;
	g.more = 0;
	ck_assert_int_eq(accused(&g, clocks[_i], text, &drains), 0);
}
END_TEST

/* An arm whose work escapes in most of its launches is accused of it; in half of them, or in one of five, it is under suspicion, which the
 * record says. */
START_TEST(not_in_all_launches)
{
	struct gaps most = {.arg = 4, .ns = 83200, .but = 8}, half = {.arg = 4, .ns = 83200, .nth = 2},
		    few = {.arg = 4, .ns = 83200, .nth = 5};
	char text[256];
	int64_t drains;
	ck_assert_int_eq(accused(&most, clocks[_i], text, &drains), 1);
	ck_assert_msg(strstr(text, "split=4 stream escape: 83.2 us") == text && strstr(text, "in 20 of "), "%s", text);
	ck_assert_int_eq(accused(&half, clocks[_i], text, &drains), 0);
	ck_assert(suspected);
	ck_assert_int_eq(accused(&few, clocks[_i], text, &drains), 0);
	ck_assert(suspected);
	struct gaps none = {.at = -1, .ns = 1};
	ck_assert_int_eq(accused(&none, clocks[_i], text, &drains), 0);
	ck_assert(!anybody);
}
END_TEST

/* A host that was put aside between two waits, once, at whichever launch: nobody is accused. */
START_TEST(one_gap_is_no_escape)
{
	struct gaps none = {.at = -1, .ns = 1};
	char text[256];
	int64_t drains, had;
	ck_assert_int_eq(accused(&none, clocks[_i], text, &drains), 0);
	ck_assert_int_gt(drains, 40);
	for (int64_t at = 1; at <= drains; at++) {
		struct gaps g = {.at = at, .ns = 20000000};
		ck_assert_msg(accused(&g, clocks[_i], text, &had) == 0, "gap %lld: %s", (long long)at, text);
		ck_assert(!anybody);
		/* It was looked into, once, and for no longer than it takes to rule the arm out. */
		ck_assert_int_eq(had - drains, ESCAPE_LOOKS - ESCAPE_NEEDED + 1);
	}
}
END_TEST

/* A machine so busy that every third wait is late. */
START_TEST(many_gaps_are_no_escape)
{
	struct gaps g = {.every = 3, .ns = 20000000};
	char text[256] = "";
	int64_t drains;
	ck_assert_msg(accused(&g, clocks[_i], text, &drains) == 0, "%s", text);
}
END_TEST

/* A confirmation does not fail for a gap that is none. */
START_TEST(confirm_in_spite_of_a_gap)
{
	struct gaps g = {.at = 30, .ns = 20000000};
	struct fake_script s = {.gap_ns = gap_of, .gap_ctx = &g};
	struct bed b;
	struct cell c;
	struct err err;
	bed_open(&b, &s);
	const struct exec_sink sink = {.beat = &b.beat};
	json_t *facts = NULL;
	bench(&c, b.registry);
	ck_assert_int_eq(exec_confirm(b.exec, &c, "split=4", 33, 77, &sink, &facts, &err), EXEC_OK);
	ck_assert_int_gt(fake_drains(b.be), g.at);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* A neighbour hides the first looks at the scrub (of 9 scrubs each): another look proves it, in the same cell or in the next. */
START_TEST(scrub_proven_later)
{
	static const struct {
		int64_t masked;
		bool at_once;
	} of[] = {{9, true}, {27, true}, {36, false}};
	struct fake_script s = {.cold_factor = 10, .scrub_masked = of[_i].masked};
	struct bed b;
	struct cell c;
	bed_open(&b, &s);
	bench(&c, b.registry);
	for (int k = 0; k < 2; k++) {
		json_t *facts = run_cell(&b, &c, EXEC_OK);
		const json_t *proven = json_object_get(json_object_get(facts, "measure"), "scrub_proven");
		ck_assert_int_eq(json_is_true(proven), k || of[_i].at_once);
		ck_assert_int_eq(json_is_false(proven), !(k || of[_i].at_once));
		json_decref(facts);
	}
	bed_close(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("escape");
	TCase *t = tcase_create("escape");
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, stream_escape, 0, 2);
	tcase_add_loop_test(t, not_in_all_launches, 0, 2);
	tcase_add_loop_test(t, one_gap_is_no_escape, 0, 2);
	tcase_add_loop_test(t, many_gaps_are_no_escape, 0, 2);
	tcase_add_test(t, confirm_in_spite_of_a_gap);
	tcase_add_loop_test(t, scrub_proven_later, 0, 3);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
