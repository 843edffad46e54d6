/* What one look cannot tell: work that runs on beside a queue against a host that was put aside, and a scrub that a neighbour hides. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "escape.h"
#include "test_rounds_bed.h"
#include "unit.h"

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

/* Gaps of split=4, one a word of `in`: the phase that it comes in. And what becomes of the launches that are watched then. */
struct watch {
	struct bed *b;
	const char *in[2];
	int given;
	int64_t small_ns; /* all other gaps */
	int again; /* gaps of watched launches, from the first on */
	enum { ALL_WELL, LAUNCH_FAILS, WAIT_FAILS, IS_LOST } end; /* of the first one */
	int launches; /* watched ones */
};

static bool in_phase(const struct watch *w, const char *phase)
{
	return phase && strcmp(w->b->beat.phase, phase) == 0;
}

static int64_t gap_to_watch(void *ctx, int64_t k, const struct fake_event *last)
{
	struct watch *w = ctx;
	if (in_phase(w, "watched"))
		return w->launches <= w->again ? 83200 : w->small_ns;
	if (!last || last->arg != 4 || w->given == 2 || !in_phase(w, w->in[w->given]))
		return w->small_ns;
	w->given++;
	return 83200;
}

static double time_to_watch(void *ctx, const struct launch *l, int64_t k)
{
	struct watch *w = ctx;
	struct fake_script *s = fake_script_of(w->b->be);
	if (in_phase(w, "watched") && ++w->launches == 1 && w->end != ALL_WELL)
		*(w->end == LAUNCH_FAILS ? &s->fail_launch
		  : w->end == WAIT_FAILS ? &s->wait_fails_launch
					 : &s->lost_launch) = k;
	return 10000;
}

static json_t *watched(struct watch *w, enum exec_outcome want)
{
	struct bed b;
	struct cell c;
	const struct fake_script s = {.gap_ns = gap_to_watch, .gap_ctx = w, .time_ns = time_to_watch, .ctx = w};
	w->b = &b;
	bed_open(&b, &s);
	bench(&c, b.registry);
	json_t *facts = run_cell(&b, &c, want);
	ck_assert_int_eq(w->given, 1 + (w->in[1] != NULL));
	bed_close(&b);
	return facts;
}

/* Of one gap, what comes in the watched launches decides: that, and how many are told. Gaps that are too short are none. */
START_TEST(what_is_told_of_gaps)
{
	static const struct {
		struct watch w;
		int launches; /* watched: until five of them show no gap */
		const char *note; /* NULL: none */
	} of[] = {
		{{.in = {"memory"}}, 5, NULL},
		{{.in = {"timing"}}, 5, NULL},
		{{.in = {"memory"}, .small_ns = 50000}, 5, NULL},
		{{.in = {"memory", "timing"}}, 10, NULL}, /* each is looked into, and neither comes again */
		{{.in = {"memory"}, .again = 1}, 6, "late in 1 launch, and in 1 of 6 that were watched"},
		{{.in = {"memory", "memory"}}, 5, "late in 2 launches, and in 0 of 5 that were watched"},
		{{.in = {"timing", "timing"}, .again = 3}, 8, "late in 2 launches, and in 3 of 8 that were watched"},
	};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct watch w = of[i].w;
		json_t *facts = watched(&w, EXEC_OK);
		ck_assert_msg(w.launches == of[i].launches, "case %zu: %d launches", i, w.launches);
		ck_assert_ptr_null(find(facts, "run", NULL));
		ck_assert_int_eq(noted(facts, "a stream escape is suspected"), of[i].note != NULL);
		ck_assert_msg(!of[i].note || noted(facts, of[i].note), "case %zu", i);
		json_decref(facts);
	}
}
END_TEST

/* A launch that fails while it is watched is the arm's failure; the device that is lost then ends the cell. */
START_TEST(watched_launch_fails)
{
	static const char *const text[] = {"launch: scripted failure", "launch: scripted failure of the wait"};
	for (int end = LAUNCH_FAILS; end <= IS_LOST; end++) {
		struct watch w = {.in = {"memory"}, .end = end};
		json_t *facts = watched(&w, end == IS_LOST ? EXEC_LOST : EXEC_OK);
		ck_assert_int_eq(w.launches, 1);
		if (end != IS_LOST) {
			ck_assert_str_eq(text_of(find(facts, "run", "split=4"), "status"), "error");
			ck_assert_str_eq(text_of(find(facts, "run", "split=4"), "text"), text[end - LAUNCH_FAILS]);
			ck_assert(!json_is_array(samples(facts, "split=4"))); /* not timed */
			ck_assert_uint_gt(json_array_size(samples(facts, "split=2")), 0);
		}
		json_decref(facts);
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
	tcase_add_loop_test(t, stream_escape, 0, 2);
	tcase_add_loop_test(t, not_in_all_launches, 0, 2);
	tcase_add_loop_test(t, one_gap_is_no_escape, 0, 2);
	tcase_add_test(t, what_is_told_of_gaps);
	tcase_add_test(t, watched_launch_fails);
	tcase_add_loop_test(t, many_gaps_are_no_escape, 0, 2);
	tcase_add_test(t, confirm_in_spite_of_a_gap);
	tcase_add_loop_test(t, scrub_proven_later, 0, 3);
	suite_add_tcase(s, t);
	return unit_run(s);
}
