/* Inputs that rotate over copies in place of a scrub. */
#include "test_zoo_bed.h"
#include "unit.h"

/* Every launch takes the next copy; in a fixed order of as many arms as copies no arm keeps one. */
START_TEST(rotates)
{
	enum { ROUNDS = 12, COPIES = 3 };
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	ZOO_CELL(&c, &zoo, "shipped", "scratch");
	c.timing.scrub = SCRUB_ROTATE;
	c.timing.order = ORDER_FIXED;
	c.timing.rounds = ROUNDS;
	c.timing.rotate_copies = COPIES;
	c.timing.batch = 1;
	c.checks.on = 1u << CHECK_REGRESSION;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert(noted(facts, "this is warm"));
	ck_assert_int_eq(fake_scrubs(b.be, NULL), 0);
	/* The timed launches are the last ones but two arms on two sets, and with each of two inputs changed. */
	const int64_t from = fake_launches(b.be) - 8 - 3 * ROUNDS;
	const void *seen[COPIES] = {0}, *of_arm[3][ROUNDS];
	int n = 0;
	for (int64_t k = 0; k < 3 * ROUNDS; k++) {
		const void *at = fake_event_at(b.be, from + 1 + k)->first;
		int s = 0;
		while (s < n && seen[s] != at)
			s++;
		ck_assert_int_lt(s, COPIES);
		if (s == n)
			seen[n++] = at;
		of_arm[k % 3][k / 3] = at;
		if (k)
			ck_assert_ptr_ne(at, fake_event_at(b.be, from + k)->first);
	}
	ck_assert_int_eq(n, COPIES);
	for (int a = 0; a < 3; a++)
		for (int r = 1; r < ROUNDS; r++)
			ck_assert_ptr_ne(of_arm[a][r], of_arm[a][r - 1]);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* By itself as many as fill four last-level caches; a graph arm replays over each of them. */
START_TEST(rotates_cold)
{
	const struct fake_script script = {.graphs = true, .graph_kernels = 2};
	struct bed b;
	struct cell c;
	bed_open(&b, &script);
	ZOO_CELL(&c, &zoo, "shipped", "two");
	c.arm[1].graph = true;
	c.point.v[0].i = 8192;
	c.timing.scrub = SCRUB_ROTATE;
	c.timing.rounds = 40;
	c.timing.null_arm = false;
	c.checks.on = 1u << CHECK_REGRESSION;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert(!noted(facts, "this is warm"));
	/* x: 8192 rows of 10 floats without the last gap; r: 8192 records of 6 bytes; the fake's cache: 1 MiB. */
	const int64_t bytes = (8191 * 10 + 6) * 4 + 8192 * 6;
	const void *seen[64];
	int n = 0, plain = 0;
	for (int64_t k = 1; k <= fake_launches(b.be); k++) {
		const struct fake_event *e = fake_event_at(b.be, k);
		int s = 0;
		if (!e->first)
			continue;
		while (s < n && seen[s] != e->first)
			s++;
		ck_assert_int_lt(s, 64);
		if (s == n)
			seen[n++] = e->first;
		plain += e->ops == zoo_two && !e->graph;
	}
	ck_assert_int_ge(n * bytes, 4 << 20);
	ck_assert_int_le(n * bytes, 6 << 20);
	ck_assert_int_eq(plain, 1); /* the launch that is counted, before the capture */
	ck_assert_int_eq(fake_graphs(b.be, NULL), n);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rotate");
	TCase *t = tcase_create("rotate");
	tcase_add_test(t, rotates);
	tcase_add_test(t, rotates_cold);
	suite_add_tcase(s, t);
	return unit_run(s);
}
