/* The control bits of floating point that an arm leaves behind. */
#include <fenv.h>
#include <omp.h>

#include "test_zoo_bed.h"
#include "unit.h"

static const char *const fp_arms[] = {"rounds_up", "team_rounds_up"};

/* Whether what a thread of a team does to its own control bits is there in the next region: libomp gives a team those of the thread that
 * opens the region, libgomp does not. */
static bool team_keeps_control(void)
{
	int kept = 0;
#pragma omp parallel num_threads(2)
	if (omp_get_thread_num() == 1)
		fesetround(FE_UPWARD);
#pragma omp parallel num_threads(2) reduction(+ : kept)
	{
		kept += fegetround() != FE_TONEAREST;
		fesetround(FE_TONEAREST);
	}
	return kept > 0;
}

/* How an arm leaves the CPU rounding is its own fault, whichever of its threads it is, and nobody else has it. */
START_TEST(fp_control_is_left_behind)
{
	const struct fake_script script = {.threads = 2};
	struct bed b;
	struct cell c;
	size_t i;
	json_t *one;
	int turned = 0;
	bed_open(&b, &script);
	ZOO_CELL(&c, &zoo, "shipped", fp_arms[_i], "scratch");
	checks_of(&c);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	const json_t *f = find(facts, "memory", fp_arms[_i]);
	if (_i == 1 && !team_keeps_control()) {
		ck_assert_str_eq(text_of(f, "status"), "pass"); /* nothing is left behind */
	} else {
		ck_assert_str_eq(text_of(f, "status"), "wrong");
		ck_assert_str_eq(text_of(f, "where"), "fp_control");
		ck_assert(strstr(text_of(f, "text"), "leaves other floating-point control bits behind"));
	}
	json_array_foreach(json_object_get(facts, "checks"), i, one)
		ck_assert_msg(one == f || !strcmp(text_of(one, "status"), "pass"), "%s", text_of(one, "text"));
	ck_assert_int_eq(fegetround(), FE_TONEAREST);
	json_decref(facts);
	/* A cell after it, in the same threads. */
	ZOO_CELL(&c, &zoo, "shipped", "scratch");
	checks_of(&c);
	facts = run_cell(&b, &c, EXEC_OK);
	all_pass(facts);
#pragma omp parallel num_threads(2) reduction(+ : turned)
	turned += fegetround() != FE_TONEAREST;
	ck_assert_int_eq(turned, 0);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fp_control");
	TCase *t = tcase_create("fp_control");
	tcase_add_loop_test(t, fp_control_is_left_behind, 0, 2);
	suite_add_tcase(s, t);
	return unit_run(s);
}
