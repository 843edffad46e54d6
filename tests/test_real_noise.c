/* The judge over noise as it was: shipped against shipped, from verdict files and samples of real machines that lie in results/ and docs/data/. A cell is
 * drawn from them with a fixed seed: of blocks of eight neighbouring rounds, so that bursts, tails, the correlation of neighbours and what a process
 * is off by stay as they were; or round by round, which leaves the shape of the noise alone. The two names may be changed over, block by block, since
 * either is the shipped arm. Then the arm is made slower by a known factor. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "test_rates.h"
#include "test_two_percent.h"
#include "unit.h"

enum { BLOCK = 8, ROUNDS = 64, MOST = 4096 };

struct pool {
	const char *name;
	double d[MOST][BLOCK]; /* ln(again / shipped), neighbours together */
	int n;
};

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state += 0x9e3779b97f4a7c15u; /* splitmix64 */
	uint64_t x = state;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (x ^ x >> 31) % below;
}

/* A time that reads as x. */
static double within_tick(double x, double tick)
{
	return x + tick * ((double)draw(1 << 20) / (1 << 20) - 0.5);
}

static void add(struct pool *p, const double *d, int n)
{
	for (int at = 0; at + BLOCK <= n && p->n < MOST; at += BLOCK)
		memcpy(p->d[p->n++], d + at, sizeof p->d[0]);
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}

/* Every arm of a list that is the shipped kernel under another name, against shipped. */
static void add_arms(struct pool *p, const json_t *arms, double tick)
{
	static const char *const same[] = {"again", "null", NULL};
	const json_t *shipped = NULL;
	size_t i;
	json_t *a;
	json_array_foreach(arms, i, a) if (!strcmp(text(a, "name"), "shipped")) shipped =
		json_object_get(a, "samples_ns");
	json_array_foreach(arms, i, a)
	{
		const json_t *x = json_object_get(a, "samples_ns");
		double d[ROUNDS];
		int n = 0;
		for (int k = 0; same[k]; k++)
			if (!strcmp(text(a, "name"), same[k]))
				for (size_t r = 0; r < json_array_size(x) && n < ROUNDS; r++) {
					const json_t *arm = json_array_get(x, r), *base = json_array_get(shipped, r);
					if (json_is_number(arm) && json_is_number(base))
						d[n++] = log(within_tick(json_number_value(arm), tick) /
							     within_tick(json_number_value(base), tick));
				}
		add(p, d, n);
	}
}

static void add_file(struct pool *p, const char *path, const char *kernel)
{
	FILE *f = fopen(path, "r");
	ck_assert_msg(f != NULL, "%s", path);
	for (json_t *j; (j = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL)) != NULL; json_decref(j)) {
		if (strcmp(text(j, "kind"), "cell") != 0 || strncmp(text(j, "kernel"), kernel, strlen(kernel)) != 0)
			continue;
		const double tick = json_number_value(json_object_get(json_object_get(j, "measure"), "tick_ns"));
		size_t i;
		json_t *repeat;
		add_arms(p, json_object_get(j, "arms"), tick);
		json_array_foreach(json_object_get(j, "repeats"), i, repeat)
			add_arms(p, json_object_get(repeat, "arms"), tick);
	}
	fclose(f);
}

/* Rows of docs/data/h200-aa.csv: scrub,round,shipped_us,again_us. */
static void add_table(struct pool *p, const char *path)
{
	char line[128], scrub[8];
	double d[MOST], shipped, again;
	int round, n = 0;
	FILE *f = fopen(path, "r");
	ck_assert_msg(f != NULL, "%s", path);
	while (fgets(line, sizeof line, f) && n < MOST)
		if (sscanf(line, "%7[^,],%d,%lf,%lf", scrub, &round, &shipped, &again) == 4 && !strcmp(scrub, "on"))
			d[n++] = log(within_tick(again, 0.032) / within_tick(shipped, 0.032));
	fclose(f);
	add(p, d, n);
}

/* block: 8, or 1 for rounds that know nothing of each other. */
static void cell(const struct pool *p, int block, double effect, double *arm, double *shipped)
{
	for (int r = 0; r < ROUNDS; r += block) {
		const double *from = p->d[draw((uint64_t)p->n)] + (block == BLOCK ? 0 : draw(BLOCK));
		const double sign = draw(2) ? 1 : -1;
		for (int k = 0; k < block; k++) {
			shipped[r + k] = 20000;
			arm[r + k] = 20000 * exp(sign * from[k]) * (1 + effect);
		}
	}
}

struct tally {
	int cells, pass, suspect, failed;
	double rounds;
};

static struct tally play(const struct pool *p, int block, double effect, int cells)
{
	struct tally t = {.cells = cells};
	for (int c = 0; c < cells; c++) {
		double arm[ROUNDS], shipped[ROUNDS], d[ROUNDS];
		struct judge_result out;
		cell(p, block, effect, arm, shipped);
		judge_paired(&(struct judge_pair){arm, shipped, ROUNDS}, &two_percent, &out, NULL);
		t.pass += out.verdict == TV_PASS;
		t.suspect += out.verdict == TV_SUSPECT;
		t.rounds += (double)out.iv.n / cells;
		if (out.verdict != TV_SUSPECT)
			continue;
		cell(p, block, effect, arm, shipped);
		struct judge_suspect s = {.d = d,
					  .n = judge_confirm_rounds(out.iv.n),
					  .ln_margin = out.ln_margin,
					  .tau = 0.0025};
		for (int r = 0; r < s.n; r++)
			d[r] = log(arm[r] / shipped[r]);
		judge_confirm(&s, 1);
		t.failed += s.confirmed;
	}
	printf("%-26s %s %+5.1f %%  %6d cells  %6.2f %% pass  %6.2f %% suspect  %6.2f %% failed  %6.2f %% undecided   "
	       "%4.1f rounds\n",
	       p->name, block == 1 ? "round by round" : "blocks of 8   ", 100 * effect, cells, 100.0 * t.pass / cells,
	       100.0 * t.suspect / cells, 100.0 * t.failed / cells, 100.0 * (cells - t.pass - t.suspect) / cells,
	       t.rounds);
	return t;
}

static struct pool pools[] = {{.name = "H200 mla.absorb_q"},
			      {.name = "H200 probe.work"},
			      {.name = "H200 mla-decode, null"},
			      {.name = "H200 fixed order, bursts"}};

static void load(void)
{
	static const char selftest[] = ASSAY_SOURCE_ROOT "/results/h200/selftest.jsonl";
	add_file(&pools[0], selftest, "mla.absorb_q");
	add_file(&pools[1], selftest, "probe.work");
	add_file(&pools[2], ASSAY_SOURCE_ROOT "/results/h200/mla-decode.jsonl", "mla.");
	add_table(&pools[3], ASSAY_SOURCE_ROOT "/docs/data/h200-aa.csv");
	for (size_t k = 0; k < sizeof pools / sizeof *pools; k++)
		ck_assert_msg(pools[k].n >= 40, "%s: %d blocks", pools[k].name, pools[k].n);
}

/* Shipped against itself: nothing fails, and nearly everything is decided. */
START_TEST(itself)
{
	for (size_t k = 0; k < sizeof pools / sizeof *pools; k++) {
		state = 100 + k;
		struct tally t = play(&pools[k], BLOCK, 0, 4000);
		ck_assert_int_eq(t.failed, 0);
		at_most(t.suspect, t.cells, 0.001, pools[k].name);
		at_most(t.cells - t.pass - t.suspect, t.cells, 0.05, pools[k].name);
	}
}
END_TEST

/* Exactly at the margin both answers are wrong: at most 2.5 % each, and hardly a failure after the second process has looked. */
START_TEST(at_the_margin)
{
	for (size_t k = 0; k < sizeof pools / sizeof *pools; k++) {
		state = 200 + k;
		struct tally t = play(&pools[k], 1, 0.02, 4000);
		at_most(t.pass, t.cells, 0.025, pools[k].name);
		at_most(t.suspect, t.cells, 0.025, pools[k].name);
		ck_assert_int_gt(t.pass + t.suspect, 40); /* a judge that never speaks would be within both */
		t = play(&pools[k], BLOCK, 0.02, 4000);
		at_most(t.pass, t.cells, 0.025, pools[k].name);
		at_most(t.suspect, t.cells, 0.025, pools[k].name);
		at_most(t.failed, t.cells, 0.005, pools[k].name);
	}
}
END_TEST

START_TEST(planted)
{
	for (size_t k = 0; k < sizeof pools / sizeof *pools; k++) {
		state = 300 + k;
		struct tally t = play(&pools[k], BLOCK, 0.03, 2000);
		at_most(t.pass, t.cells, 0.025, pools[k].name);
		t = play(&pools[k], BLOCK, 0.05, 2000);
		at_most(t.pass, t.cells, 0.001, pools[k].name);
		at_most(t.cells - t.failed, t.cells, 0.01, pools[k].name);
	}
}
END_TEST

/* The null arm of an honest cell is biased in 1.2 % at most, wherever the cell stopped: the rate that the noisy-run point is made of. */
START_TEST(null_arms)
{
	for (size_t k = 0; k < sizeof pools / sizeof *pools; k++) {
		enum { CELLS = 2000 };
		printf("%-26s null arm biased, by rounds:", pools[k].name);
		for (int i = 0; stats_looks[i]; i++) {
			int biased = 0;
			state = 400 + k;
			for (int c = 0; c < CELLS; c++) {
				double null[ROUNDS], shipped[ROUNDS];
				struct judge_null out;
				cell(&pools[k], 1, 0, null, shipped);
				judge_null_arm(&(struct judge_pair){null, shipped, stats_looks[i]}, log(1.02), 0.0025,
					       &out);
				biased += out.biased;
			}
			printf("  %d: %.2f %%", stats_looks[i], 100.0 * biased / CELLS);
			at_most(biased, CELLS, 0.012, pools[k].name);
		}
		printf("\n");
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("real_noise");
	TCase *t = tcase_create("real_noise");
	tcase_set_timeout(t, 100);
	tcase_add_unchecked_fixture(t, load, NULL);
	tcase_add_test(t, itself);
	tcase_add_test(t, at_the_margin);
	tcase_add_test(t, planted);
	tcase_add_test(t, null_arms);
	suite_add_tcase(s, t);
	return unit_run(s);
}
