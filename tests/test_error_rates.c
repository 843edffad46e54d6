/* Error rates, through the rounds: hundreds of cells a line, on the scripted fake backend (test_script.h). */
#include <stdio.h>

#include "test_rates.h"
#include "test_script.h"
#include "unit.h"

struct tally {
	int cells, pass, suspect, open;
	double rounds;
};

/* Cells one after the other in one process, each with an id and so an order of its own. */
static struct tally many(const char *what, const struct fake_script *s, int cells)
{
	struct tally t = {.cells = cells};
	struct bed b;
	struct cell c;
	char id[64];
	bed_open(&b, s);
	for (int i = 0; i < cells; i++) {
		snprintf(id, sizeof id, "suite/many/probe.work/geometry/data/cell=%d", i);
		work_cell(&c, b.registry, id);
		json_t *record = play(&b, &c, false);
		const json_t *timing = json_object_get(record, "timing");
		const char *verdict = text_of(timing, "verdict"), *reason = text_of(timing, "reason");
		t.pass += !strcmp(verdict, "pass");
		/* A cell whose null arm is off is undecided; the screening did suspect it. */
		t.suspect += !strcmp(verdict, "regression") || !strcmp(reason, "biased");
		t.open += !strcmp(verdict, "inconclusive") && strcmp(reason, "biased");
		t.rounds += json_number_value(json_object_get(timing, "n")) / cells;
		json_decref(record);
	}
	bed_close(&b);
	printf("%-36s %5d   %6.2f %% pass  %6.2f %% suspect  %6.2f %% undecided   %4.1f rounds\n", what, cells,
	       100.0 * t.pass / cells, 100.0 * t.suspect / cells, 100.0 * t.open / cells, t.rounds);
	return t;
}

/* Noise of kinds, as scripts: 1.4 % a launch, and what comes on top. */
static struct fake_script noisy(double effect, int kind)
{
	struct fake_script s = script_of(effect);
	s.seed = 1000 + (uint64_t)kind;
	s.sigma = 0.014;
	if (kind == 1) {
		s.hiccup_p = 1.0 / 12;
		s.hiccup_factor = 1.4;
	} else if (kind == 2) {
		s.mode_p = 0.01;
		s.mode_factor = 1.09;
	} else if (kind == 3) {
		s.rho = 0.5; /* from launch to launch: what is left between the rounds is small */
	}
	return s;
}
static const char *const kinds[] = {"normal", "hiccups", "two clocks", "AR(1) from launch to launch"};

START_TEST(rates_at_the_margin)
{
	for (int k = 0; k < 4; k++) {
		struct fake_script s = noisy(0.02, k);
		char what[80];
		snprintf(what, sizeof what, "at the margin, %s", kinds[k]);
		struct tally t = many(what, &s, k == 0 ? 1000 : 300);
		at_most(t.pass, t.cells, 0.025, what);
		at_most(t.suspect, t.cells, 0.025, what);
		ck_assert_int_gt(t.pass + t.suspect, 0); /* a judge that never speaks would be within both */
	}
}
END_TEST

START_TEST(rates_of_itself)
{
	for (int k = 0; k < 4; k++) {
		struct fake_script s = noisy(0, k);
		char what[80];
		snprintf(what, sizeof what, "A/A, %s", kinds[k]);
		struct tally t = many(what, &s, k == 0 ? 400 : 150);
		ck_assert_int_eq(t.suspect, 0);
		if (k == 0)
			at_most(t.open, t.cells, 0.05, what);
	}
}
END_TEST

START_TEST(rates_planted)
{
	struct fake_script s = noisy(0.05, 0);
	struct tally t = many("+5 %, normal", &s, 400);
	at_most(t.cells - t.suspect, t.cells, 0.005, "+5 % missed");
	ck_assert_double_lt(t.rounds, 14);
	s = noisy(0.03, 0);
	t = many("+3 %, normal", &s, 200);
	at_most(t.cells - t.suspect, t.cells, 0.20, "+3 % not suspected");
	at_most(t.pass, t.cells, 0.025, "+3 % passed");
	s = noisy(0.05, 1);
	t = many("+5 %, hiccups", &s, 150);
	at_most(t.pass, t.cells, 0.025, "+5 % passed");
}
END_TEST

/* Suites of 48 cells with one at +5 %: fresh processes confirm it, and nothing else fails. */
START_TEST(suites_with_confirmation)
{
	enum { SUITES = 12, CELLS = 48 };
	int wrong = 0, found = 0;
	for (int k = 0; k < SUITES; k++) {
		json_t *cells[CELLS];
		char id[CELLS][64];
		struct cell c;
		for (int i = 0; i < CELLS; i++) {
			struct fake_script s = noisy(i == 7 ? 0.05 : 0, i % 2), fresh = s;
			struct bed b;
			s.seed = (uint64_t)(10000 * k + i);
			fresh.seed = s.seed + 5000;
			snprintf(id[i], sizeof id[i], "suite/confirm/probe.work/geometry/data/cell=%d", i);
			bed_open(&b, &s);
			work_cell(&c, b.registry, id[i]);
			c.timing.confirm = CONFIRM_FRESH;
			cells[i] = play(&b, &c, true);
			bed_close(&b);
			if (!record_wants_confirm(cells[i]))
				continue;
			const struct exec_sink sink = {.beat = &b.beat};
			struct err err = {{0}};
			json_t *facts = NULL;
			const int n = judge_confirm_rounds(
				(int)json_integer_value(json_object_get(json_object_get(cells[i], "timing"), "n")));
			bed_open(&b, &fresh);
			work_cell(&c, b.registry, id[i]);
			ck_assert_int_eq(exec_confirm(b.exec, &c, "more=50", n, 99, &sink, &facts, &err), EXEC_OK);
			/* The scripted device knows one process; the second look is by another one. */
			json_object_set_new(facts, "process", json_integer(1));
			record_set_confirm(cells[i], facts);
			json_decref(facts);
			bed_close(&b);
		}
		struct record_env mine = env;
		record_judge_run(cells, CELLS, &mine);
		for (int i = 0; i < CELLS; i++) {
			const bool failed = !strcmp(text_of(cells[i], "status"), "regression");
			wrong += failed && i != 7;
			found += failed && i == 7;
			json_decref(cells[i]);
		}
	}
	printf("%d suites of %d cells, one at +5 %%, margin 2 %%: %d wrong failures, found in %d\n", SUITES, CELLS,
	       wrong, found);
	ck_assert_int_eq(wrong, 0);
	ck_assert_int_ge(found, SUITES - 2);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("error_rates");
	TCase *t = tcase_create("error_rates");
	tcase_set_timeout(t, 100);
	tcase_add_test(t, rates_at_the_margin);
	tcase_add_test(t, rates_of_itself);
	tcase_add_test(t, rates_planted);
	tcase_add_test(t, suites_with_confirmation);
	suite_add_tcase(s, t);
	return unit_run(s);
}
