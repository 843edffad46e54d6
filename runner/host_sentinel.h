/* host_sentinel: fixed workloads that tell a slow machine from a slow kernel, and what this machine can do at most. Their code
 * does not change with the kernels under test. */
#ifndef ASSAY_HOST_SENTINEL_H
#define ASSAY_HOST_SENTINEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

enum { SENTINEL_SAMPLES = 7 };

struct sentinel_result {
	int64_t copy_ns[SENTINEL_SAMPLES]; /* half of the area copied into the other half, by all threads */
	int64_t read_ns[SENTINEL_SAMPLES]; /* the whole area read, by all threads */
	int64_t arithmetic_ns[SENTINEL_SAMPLES]; /* multiply-add on registers, by all threads */
	int64_t latency_ns[SENTINEL_SAMPLES]; /* dependent loads over 64 MiB, by one thread */
	double bytes_per_s; /* the better of copy (read + written) and read */
	double flop_per_s; /* float multiply-add, widest vectors that the CPU has, two a multiply-add */
	const char *arithmetic_form; /* "avx512f", "avx2+fma", "scalar" */
};

/* area: memory that may be overwritten, at least twice the last-level cache; now() in ns. False: out of memory. */
bool host_sentinel_run(unsigned char *area, size_t bytes, int threads, int64_t (*now)(void),
		       struct sentinel_result *out, struct err *err);
/* How often this CPU's fastest instruction on narrow numbers (int8 and bfloat16 dot products, matrix tiles) does what its float multiply-add does;
 * 0: unknown. */
double host_sentinel_reach(void);
/* {"copy": […], "read": […], "arithmetic": […], "latency": […]}. New reference or NULL. */
json_t *host_sentinel_json(const struct sentinel_result *r);

/* Reads every cache line of [p, p+bytes) with all threads. The result depends on what was read; pass it on, so that nothing is
 * optimised away. */
uint64_t host_read_lines(const unsigned char *p, size_t bytes, int threads);

#endif
