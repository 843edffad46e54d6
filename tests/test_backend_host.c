#define _GNU_SOURCE /* sched_getaffinity */
#include <check.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "fill.h"
#include "host_cpu.h"
#include "unit.h"

static struct backend *open_host(int threads)
{
	struct err e = {0};
	struct backend *b = backend_open("host", &(struct backend_config){.threads = threads}, &e);
	ck_assert_msg(b != NULL, "%s", e.text);
	return b;
}

START_TEST(unknown_backends_and_devices)
{
	struct err e = {0};
	struct device_peek p;
	ck_assert_ptr_null(backend_open("metal", NULL, &e));
	ck_assert_msg(strncmp(e.text, "no backend 'metal' in this build; backends: host", 48) == 0, "%s", e.text);
	ck_assert_ptr_null(backend_open("host", &(struct backend_config){.device = "7"}, &e));
	ck_assert_msg(strncmp(e.text, "no device '7' on the host backend: there is one, device 0 (", 59) == 0, "%s",
		      e.text);
	ck_assert(!backend_peek("host", &(struct backend_config){.device = "7"}, &p, &e));
	ck_assert_ptr_null(backend_open("host", &(struct backend_config){.threads = 100000}, &e));
	ck_assert_msg(strstr(e.text, "threads is 100000, but this process may use") != NULL, "%s", e.text);
	ck_assert_ptr_null(backend_open("host", &(struct backend_config){.threads = -1}, &e));
	ck_assert(backend_names()[0] && strcmp(backend_names()[0], "host") == 0);

	/* by index, by name and by UUID */
	ck_assert_msg(backend_peek("host", NULL, &p, &e), "%s", e.text);
	const char *const ways[] = {"0", p.name, p.uuid};
	for (int i = 0; i < 3; i++) {
		struct backend *b = backend_open("host", &(struct backend_config){.device = ways[i], .threads = 1}, &e);
		ck_assert_msg(b != NULL, "%s: %s", ways[i], e.text);
		ck_assert_str_eq(backend_ops_of(b)->info(b)->name, p.name);
		ck_assert_str_eq(backend_ops_of(b)->info(b)->uuid, p.uuid);
		backend_ops_of(b)->close(b);
	}
	ck_assert(strncmp(p.uuid, "CPU-", 4) == 0 && strlen(p.uuid) == 36);
}
END_TEST

/* A team on several last-level caches has to read twice the size through each of them. */
START_TEST(caches_of_a_team)
{
	const int64_t mib = 1 << 20;
	const struct host_cache one[3] = {{32 * mib, 0}, {32 * mib, 0}, {32 * mib, 0}},
				two[4] = {{32 * mib, 0}, {32 * mib, 0}, {32 * mib, 0}, {32 * mib, 8}},
				unlike[2] = {{96 * mib, 0}, {32 * mib, 8}},
				unknown[2] = {{16 * mib, -1}, {16 * mib, -1}}, none[2] = {{0, -1}, {0, -1}};
	int64_t llc, scrub;
	host_cpu_caches(one, 1, &llc, &scrub);
	ck_assert(llc == 32 * mib && scrub == 64 * mib);
	host_cpu_caches(one, 3, &llc, &scrub);
	ck_assert(llc == 32 * mib && scrub >= 64 * mib && scrub < 64 * mib + 3);
	host_cpu_caches(two, 4, &llc,
			&scrub); /* the one that is alone on its cache reads 64 MiB, so that all four do */
	ck_assert(llc == 64 * mib && scrub == 256 * mib);
	host_cpu_caches(unlike, 2, &llc, &scrub);
	ck_assert(llc == 128 * mib && scrub == 384 * mib);
	host_cpu_caches(unknown, 2, &llc, &scrub);
	ck_assert(llc == 16 * mib && scrub == 32 * mib);
	host_cpu_caches(none, 2, &llc, &scrub);
	ck_assert(llc == 0 && scrub == 0);
	struct host_cpu c;
	struct err e;
	ck_assert(host_cpu_read(&c, 0, &e));
	ck_assert(c.scrub_bytes >= 2 * c.llc_bytes && (c.llc_bytes > 0) == (c.scrub_bytes > 0));
}
END_TEST

START_TEST(threads_are_pinned_and_given_back)
{
	cpu_set_t before, now;
	CPU_ZERO(&before);
	ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
	int cpus = CPU_COUNT(&before), limit = omp_get_max_threads();
	struct backend *b = open_host(cpus);
	const struct device_info *info = backend_ops_of(b)->info(b);
	ck_assert_int_eq(info->threads, cpus);
	ck_assert_int_eq(info->cc, 0);
	ck_assert_ptr_null(info->driver);
	ck_assert_uint_eq(json_array_size(json_object_get(info->more, "cpus")), (size_t)cpus);
	ck_assert_int_eq(omp_get_max_threads(), cpus);

	/* a team that shrank and grew again: the scrub pins its new threads */
	for (int round = 0; round < 2; round++) {
		int wrong = 0, many = 0;
		cpu_set_t all;
		CPU_ZERO(&all);
#pragma omp parallel num_threads(cpus)
		{
			cpu_set_t mine;
			sched_getaffinity(0, sizeof mine, &mine);
#pragma omp critical
			{
				wrong += CPU_COUNT(&mine) != 1;
				CPU_OR(&all, &all, &mine);
				many++;
			}
		}
		ck_assert_int_eq(many, cpus);
		ck_assert_int_eq(wrong, 0);
		ck_assert_int_eq(CPU_COUNT(&all), cpus);
#pragma omp parallel num_threads(cpus > 2 ? 2 : 1)
		wrong = 0;
		ck_assert(backend_ops_of(b)->scrub(b, 1 << 16, NULL));
	}
	backend_ops_of(b)->close(b);
	sched_getaffinity(0, sizeof now, &now);
	ck_assert(CPU_EQUAL(&before, &now));
	ck_assert_int_eq(omp_get_max_threads(), limit);
}
END_TEST

START_TEST(default_leaves_a_core)
{
	struct host_cpu c;
	char places[4096], one[4];
	ck_assert(host_cpu_read(&c, 0, NULL));
	ck_assert_int_ge(c.threads, 1);
	ck_assert(c.n_cores == 1 ? c.threads == 1 : c.threads < c.n_cores);
	for (int i = 0; i < c.threads; i++)
		for (int k = 0; k < i; k++)
			ck_assert_int_ne(c.team[i], c.team[k]);
	ck_assert(host_cpu_places(&c, places, sizeof places));
	int first = -1;
	ck_assert_int_eq(sscanf(places, "{%d}", &first), 1);
	ck_assert_int_eq(first, c.team[0]);
	ck_assert(!host_cpu_places(&c, one, 3));
}
END_TEST

START_TEST(memory_and_patterns)
{
	struct backend *b = open_host(0);
	const struct backend_ops *o = backend_ops_of(b);
	struct err e = {0};
	size_t bytes = 5 << 20;
	int64_t differ, first;
	uint32_t *p = o->alloc(b, bytes, &e), *q = o->alloc(b, bytes, &e);
	ck_assert(p && q);
	ck_assert_uint_eq((uintptr_t)p % 256, 0);
	ck_assert_uint_eq((uintptr_t)q % 256, 0);
	ck_assert(o->pattern(b, p, 0xDEADBEEF, bytes, &e));
	ck_assert(o->scan(b, p, 0xDEADBEEF, bytes, &differ, &first, &e));
	ck_assert_int_eq(differ, 0);
	ck_assert_int_eq(first, -1);
	p[70000] = p[1200000] = 1;
	ck_assert(o->scan(b, p, 0xDEADBEEF, bytes, &differ, &first, &e));
	ck_assert_int_eq(differ, 2);
	ck_assert_int_eq(first, 280000);
	ck_assert(o->copy(b, q, p, bytes, &e));
	ck_assert_mem_eq(p, q, bytes);
	/* sizes that are no multiple of anything, on the large path too */
	memset(q, 0, bytes);
	ck_assert(o->upload(b, q, p, bytes - 13, &e));
	ck_assert_mem_eq(p, q, bytes - 13);
	ck_assert_int_eq(((unsigned char *)q)[bytes - 13], 0);
	uint64_t d;
	ck_assert(o->digest(b, p, bytes - 3, &d, &e));
	ck_assert_uint_eq(d, fill_digest(p, bytes - 3));
	o->free(b, p);
	o->free(b, q);
	o->free(b, NULL);
	void *empty = o->alloc(b, 0, &e);
	ck_assert_ptr_nonnull(empty);
	o->free(b, empty);
	ck_assert_ptr_null(o->alloc(b, SIZE_MAX - 5, &e));
	ck_assert_msg(strstr(e.text, "cannot allocate") != NULL, "%s", e.text);
	o->close(b);
}
END_TEST

static int run_twice(const struct assay_call *c, void *state)
{
	*(int *)state += 2;
	return 0;
}

static int run_badly(const struct assay_call *c, void *state)
{
	snprintf(c->error, ASSAY_ERROR_MAX, "no luck with %lld", (long long)c->arm_arg);
	return -1;
}

static int run_mutely(const struct assay_call *c, void *state)
{
	return -1;
}

START_TEST(launches_and_marks)
{
	struct backend *b = open_host(1);
	const struct backend_ops *o = backend_ops_of(b);
	struct err e = {0};
	char error[ASSAY_ERROR_MAX] = "stale";
	int state = 0;
	bool lost = true;
	int64_t ns = -1;
	struct assay_arm_ops good = {.run = run_twice}, bad = {.run = run_badly}, mute = {.run = run_mutely};
	struct assay_call call = {.arm_arg = 7, .error = error};
	ck_assert(o->mark(b, 0, &e));
	ck_assert(o->launch(b, &(struct launch){.ops = &good, .call = &call, .state = &state}, &e));
	ck_assert(o->mark(b, BACKEND_MARKS - 1, &e));
	ck_assert(o->sync(b, &lost, &e));
	ck_assert(!lost);
	ck_assert_int_eq(state, 2);
	ck_assert(o->elapsed(b, 0, BACKEND_MARKS - 1, &ns, &e));
	ck_assert_int_ge(ns, 0);
	ck_assert(!o->launch(b, &(struct launch){.ops = &bad, .call = &call}, &e));
	ck_assert_str_eq(e.text, "no luck with 7");
	ck_assert(!o->launch(b, &(struct launch){.ops = &mute, .call = &call}, &e));
	ck_assert_str_eq(e.text, "the arm failed and gave no reason");
	ck_assert(!o->launch(b, &(struct launch){.ops = &good, .call = &call, .graph = &state}, &e));
	ck_assert(!o->mark(b, BACKEND_MARKS, &e));
	ck_assert(!o->mark(b, -1, &e));
	ck_assert(!o->elapsed(b, 0, BACKEND_MARKS, &ns, &e));
	int64_t t = o->now(b);
	o->pause(b, 2000000);
	ck_assert_int_ge(o->now(b) - t, 1900000); /* the raw clock may run a little slower than the one of nanosleep */
	o->close(b);
}
END_TEST

START_TEST(scrub_and_sentinels)
{
	struct backend *b = open_host(0);
	const struct backend_ops *o = backend_ops_of(b);
	struct err e = {0};
	struct device_state s;
	ck_assert(o->scrub(b, -1, &e));
	ck_assert(o->scrub(b, 0, &e));
	ck_assert(o->scrub(b, 1 << 20, &e));
	ck_assert_double_eq(o->peak_bytes_per_s(b), 0);
	json_t *j = o->sentinels(b, &e);
	ck_assert_msg(j != NULL, "%s", e.text);
	static const char *const names[] = {"copy", "read", "arithmetic", "latency"};
	for (size_t i = 0; i < 4; i++) {
		json_t *a = json_object_get(j, names[i]);
		ck_assert_uint_ge(json_array_size(a), 5);
		for (size_t k = 0; k < json_array_size(a); k++)
			ck_assert_int_gt(json_integer_value(json_array_get(a, k)), 0);
	}
	json_decref(j);
	ck_assert_double_gt(o->peak_bytes_per_s(b), 1e7);
	ck_assert_double_gt(o->peak_flop_per_s(b), 1e7);
	ck_assert(o->state(b, &s, &e));
	ck_assert_int_eq(s.other_processes, -1);
	ck_assert_int_eq(s.power_w, -1);
	ck_assert(s.sm_mhz == -1 || (s.sm_mhz > 50 && s.sm_mhz < 20000));
	ck_assert((s.throttle == 0) == (s.throttle_text == NULL));
	ck_assert_int_ge(s.preemptions, 0);
	o->close(b);
}
END_TEST

/* Two functions that differ, and one that is asked for twice. */
int artifact_one(const struct assay_call *c, void *state);
int artifact_two(const struct assay_call *c, void *state);
__attribute__((noinline)) int artifact_one(const struct assay_call *c, void *state)
{
	return c->threads * 3;
}
__attribute__((noinline)) int artifact_two(const struct assay_call *c, void *state)
{
	return c->threads ^ (int)c->arm_arg;
}

static struct assay_launch note(int (*f)(const struct assay_call *, void *))
{
	struct assay_launch l = {.grid = {3, 1, 1}};
	memcpy(&l.function, &f, sizeof f);
	return l;
}

START_TEST(artifacts_hash_code)
{
	struct backend *b = open_host(1);
	const struct backend_ops *o = backend_ops_of(b);
	struct assay_launch l[2] = {note(artifact_one), note(artifact_two)};
	json_t *one = o->artifact(b, l, 1), *again = o->artifact(b, l, 1), *two = o->artifact(b, l + 1, 1),
	       *both = o->artifact(b, l, 2), *none = o->artifact(b, l, 0);
	const char *h1 = json_string_value(json_object_get(one, "hash")),
		   *h2 = json_string_value(json_object_get(two, "hash"));
	ck_assert_msg(h1 && h2, "%s", json_string_value(json_object_get(one, "hash_reason")));
	ck_assert_uint_eq(strlen(h1), 64);
	ck_assert_str_eq(h1, json_string_value(json_object_get(again, "hash")));
	ck_assert_str_ne(h1, h2);
	ck_assert_str_eq(json_string_value(json_object_get(one, "function")), "artifact_one");
	ck_assert_int_gt(json_integer_value(json_object_get(one, "code_bytes")), 0);
	ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(one, "grid"), 0)), 3);
	ck_assert(json_is_null(json_object_get(one, "registers")));
	ck_assert(json_is_string(json_object_get(one, "registers_reason")));
	ck_assert_uint_eq(json_array_size(json_object_get(both, "launches")), 2);
	ck_assert_str_ne(json_string_value(json_object_get(both, "hash")), h1);
	ck_assert(json_is_null(json_object_get(none, "hash")));
	ck_assert(json_is_string(json_object_get(none, "hash_reason")));
	l[0].function = NULL;
	json_t *blind = o->artifact(b, l, 1);
	ck_assert(json_is_null(json_object_get(blind, "hash")));
	ck_assert(json_is_string(json_object_get(blind, "hash_reason")));
	json_decref(one);
	json_decref(again);
	json_decref(two);
	json_decref(both);
	json_decref(none);
	json_decref(blind);
	o->close(b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("backend_host");
	TCase *c = tcase_create("backend_host");
	tcase_add_test(c, caches_of_a_team);
	tcase_add_test(c, unknown_backends_and_devices);
	tcase_add_test(c, threads_are_pinned_and_given_back);
	tcase_add_test(c, default_leaves_a_core);
	tcase_add_test(c, memory_and_patterns);
	tcase_add_test(c, launches_and_marks);
	tcase_add_test(c, scrub_and_sentinels);
	tcase_add_test(c, artifacts_hash_code);
	suite_add_tcase(s, c);
	return unit_run(s);
}
