/* tau: the store, and what a run's processes differ by. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run_tau.h"
#include "stats.h"
#include "tau_store.h"
#include "unit.h"

static const char path[] = "deep/er/tau.json";

/* 16 pairs, half of them +1 %, half -1 %, without an error of their own: tau^2 = 1e-4 / 0.4549 / 2. */
static const double one_percent[16] = {.01, -.01, .01, -.01, .01, -.01, .01, -.01,
				       .01, -.01, .01, -.01, .01, -.01, .01, -.01};
static const double no_error[16];

START_TEST(kept_and_found)
{
	struct tau_known k;
	struct err err;
	ck_assert(tau_store_find(path, "GPU-1", &k, &err)); /* no file yet */
	ck_assert(k.n == 0 && !k.known);
	ck_assert_msg(tau_store_add(path, "GPU-1", "H200", one_percent, no_error, 15, &k, &err), "%s", err.text);
	ck_assert_int_eq(k.n, 15);
	ck_assert(!k.known); /* one pair too few */
	ck_assert(tau_store_add(path, "GPU-1", "H200", one_percent, no_error, 1, NULL, &err));
	ck_assert(tau_store_find(path, "GPU-1", &k, &err));
	ck_assert(k.n == 16 && k.known);
	ck_assert_double_eq_tol(k.tau, sqrt(1e-4 / 0.4549 / 2), 1e-12);
	/* Another device is another device. */
	ck_assert(tau_store_find(path, "GPU-2", &k, &err));
	ck_assert_int_eq(k.n, 0);
}
END_TEST

/* The newest count, and a pair without a number is none. */
START_TEST(newest_count)
{
	double zero[TAU_STORE_KEPT] = {0}, bad[3] = {NAN, .01, INFINITY}, se[3] = {0, NAN, 0};
	struct tau_known k;
	struct err err;
	ck_assert(tau_store_add(path, "G", "d", one_percent, no_error, 16, NULL, &err));
	ck_assert(tau_store_add(path, "G", "d", bad, se, 3, &k, &err));
	ck_assert_int_eq(k.n, 16);
	ck_assert(tau_store_add(path, "G", "d", zero, zero, TAU_STORE_KEPT, &k, &err));
	ck_assert_int_eq(k.n, TAU_STORE_KEPT);
	ck_assert_double_eq(k.tau, 0);
}
END_TEST

/* What is no store is neither used nor overwritten. */
START_TEST(not_ours)
{
	static const char *const texts[] = {"{", "[1]", "{\"format\": 2, \"devices\": {}}",
					    "{\"format\": 1, \"devices\": {}, \"format\": 1}"};
	struct tau_known k;
	struct err err;
	static const char flat[] = "tau.json";
	char read[80];
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		FILE *f = fopen(flat, "w");
		ck_assert(f && fputs(texts[i], f) >= 0 && fclose(f) == 0);
		ck_assert(!tau_store_find(flat, "G", &k, &err));
		ck_assert(strstr(err.text, flat));
		ck_assert(!tau_store_add(flat, "G", "d", one_percent, no_error, 16, NULL, &err));
		f = fopen(flat, "r");
		ck_assert(f && fgets(read, sizeof read, f) && fclose(f) == 0);
		ck_assert_str_eq(read, texts[i]);
	}
	/* Numbers that are none end the list; nothing is made up. */
	FILE *f = fopen(flat, "w");
	ck_assert(f &&
		  fputs("{\"format\": 1, \"devices\": {\"G\": {\"delta\": [0.01, \"x\"], \"se\": [0, 0]}}}", f) >= 0 &&
		  fclose(f) == 0);
	ck_assert(tau_store_find(flat, "G", &k, &err));
	ck_assert_int_eq(k.n, 1);
}
END_TEST

static void *writer(void *ctx)
{
	struct err err;
	for (int i = 0; i < 20; i++)
		if (!tau_store_add(path, ctx, "d", one_percent, no_error, 1, NULL, &err))
			return err.text[0] ? strdup(err.text) : NULL;
	return NULL;
}

/* Writers at the same time lose nothing of each other. */
START_TEST(locked)
{
	static char a[] = "A", b[] = "B";
	pthread_t t[4];
	struct tau_known k;
	struct err err;
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, writer, i % 2 ? a : b), 0);
	for (int i = 0; i < 4; i++) {
		void *why;
		pthread_join(t[i], &why);
		ck_assert_msg(!why, "%s", (const char *)why);
	}
	ck_assert(tau_store_find(path, "A", &k, &err));
	ck_assert_int_eq(k.n, 40);
	ck_assert(tau_store_find(path, "B", &k, &err));
	ck_assert_int_eq(k.n, 40);
}
END_TEST

START_TEST(where)
{
	char out[64];
	struct err err;
	setenv("ASSAY_TAU_STORE", "/env/t.json", 1);
	ck_assert(tau_store_path("/given.json", out, sizeof out, &err));
	ck_assert_str_eq(out, "/given.json");
	ck_assert(tau_store_path(NULL, out, sizeof out, &err));
	ck_assert_str_eq(out, "/env/t.json");
	unsetenv("ASSAY_TAU_STORE");
	setenv("XDG_STATE_HOME", "/state", 1);
	setenv("HOME", "/home/u", 1);
	ck_assert(tau_store_path(NULL, out, sizeof out, &err));
	ck_assert_str_eq(out, "/state/assay/tau.json");
	setenv("XDG_STATE_HOME", "relative", 1);
	ck_assert(tau_store_path(NULL, out, sizeof out, &err));
	ck_assert_str_eq(out, "/home/u/.local/state/assay/tau.json");
	unsetenv("HOME");
	ck_assert(!tau_store_path(NULL, out, sizeof out, &err));
	ck_assert(!tau_store_path("/long", out, 3, &err));
}
END_TEST

/* ---- pairs of a run --------------------------------------------------------------------------------------------------- */

static json_t *samples(int n, double t, double step)
{
	json_t *a = json_array();
	for (int r = 0; r < n; r++)
		json_array_append_new(a, r == 2 ? json_null() : json_real(t * exp(step * (r % 3 - 1))));
	return a;
}

static json_t *arms(int n, double ratio)
{
	return json_pack("[{s:s,s:s,s:o},{s:s,s:s,s:o}]", "name", "old", "role", "shipped", "samples_ns",
			 samples(n, 1000, 0), "name", "null", "role", "null", "samples_ns",
			 samples(n, 1000 * ratio, 0.001));
}

START_TEST(pairs)
{
	struct run_pairs p = {0};
	json_t *cell = json_pack("{s:o, s:[{s:i,s:o},{s:i,s:o},{s:i,s:o}]}", "arms", arms(24, 1), "repeats", "process",
				 1, "arms", arms(24, exp(0.003)), "process", 2, "arms", arms(24, exp(-0.001)),
				 "process", 3, "arms", arms(7, 1));
	ck_assert(run_pairs_add(&p, cell));
	ck_assert_int_eq(p.n, 2); /* the last has too few rounds for an error */
	ck_assert_double_eq_tol(p.delta[0], 0.003, 1e-12);
	ck_assert_double_eq_tol(p.delta[1], -0.001, 1e-12);
	ck_assert(p.se[0] > 0);
	json_t *o = run_pairs_record(&p);
	ck_assert_int_eq(json_integer_value(json_object_get(o, "n")), 2);
	ck_assert_double_eq(json_number_value(json_object_get(o, "tau")), stats_tau(p.delta, p.se, 2));
	json_decref(o);
	json_decref(cell);
	run_pairs_free(&p);
	/* Nothing repeated, or no null arm: no pair. */
	cell = json_pack("{s:o, s:n}", "arms", arms(24, 1), "repeats");
	ck_assert(run_pairs_add(&p, cell));
	ck_assert_int_eq(p.n, 0);
	ck_assert(!run_pairs_record(&p));
	json_decref(cell);
	run_pairs_free(&p);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tau");
	TCase *t = tcase_create("tau");
	tcase_add_checked_fixture(t, unit_enter, NULL);
	tcase_add_test(t, kept_and_found);
	tcase_add_test(t, newest_count);
	tcase_add_test(t, not_ours);
	tcase_add_test(t, locked);
	tcase_add_test(t, where);
	tcase_add_test(t, pairs);
	suite_add_tcase(s, t);
	return unit_run(s);
}
