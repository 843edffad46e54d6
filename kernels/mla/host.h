/* host: small things that every host arm needs. */
#ifndef ASSAY_KERNELS_HOST_H
#define ASSAY_KERNELS_HOST_H

#include <stdint.h>
#include <string.h>

#include "assay/adapter.h"

static inline int host_threads(const struct assay_call *call)
{
	return call->threads > 0 ? call->threads : 1;
}

/* Tells an inspected launch what runs: a name, the function, and the threads. */
static inline void host_note(const struct assay_call *call, const char *symbol, void (*function)(void))
{
	if (call->note == NULL)
		return;
	struct assay_launch l = {.symbol = symbol, .grid = {(unsigned)host_threads(call), 1, 1}, .block = {1, 1, 1}};
	memcpy(&l.function, &function, sizeof l.function); /* ISO C has no cast for this */
	call->note(call->note_ctx, &l);
}

/* Start of part p of n units divided over `parts`; parts may be more than n (some are empty then). */
static inline int64_t host_part(int64_t n, int64_t p, int64_t parts)
{
	return n * p / parts;
}

static inline int64_t host_ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static inline int64_t host_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* What the gate must catch: flips the lowest bit of the middle one of n floats. The must-fail arms `flipped=N` end in it. */
static inline void host_flip_bit(void *out, int64_t n)
{
	uint32_t bits;
	char *at = (char *)out + n / 2 * (int64_t)sizeof bits;
	if (n == 0)
		return;
	memcpy(&bits, at, sizeof bits);
	bits ^= 1;
	memcpy(at, &bits, sizeof bits);
}

/* gamma_n = n u / (1 - n u) of f32, u = 2^-24: what n roundings in a row can do to a number, relatively. */
static inline double host_gamma(int64_t n)
{
	const double nu = (double)n / 16777216.0;
	return nu / (1.0 - nu);
}

/* Roundings on the longest path of a dot product of n that keeps at least 16 partial sums: that is what the arms of these
 * kernels must do (a lane-parallel loop does on any machine), and what lets the bounds be tight. */
static inline int64_t host_dot_depth(int64_t n)
{
	return host_ceil_div(n, 16) + 5;
}

#endif
