/* mix: a small seeded generator for choices of the harness (SplitMix64): the same seed, the same choices, on every machine. Never for data. */
#ifndef ASSAY_MIX_H
#define ASSAY_MIX_H

#include <stdint.h>

static inline uint64_t mix_next(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/* 0 .. n-1, each about as often; n 0 is 0. */
static inline uint64_t mix_below(uint64_t *state, uint64_t n)
{
	return n ? mix_next(state) % n : 0;
}

/* Another order of n numbers. */
static inline void mix_shuffle(uint64_t *state, int n, int a[])
{
	for (int i = n - 1; i > 0; i--) {
		const int k = (int)mix_below(state, (uint64_t)i + 1), keep = a[i];
		a[i] = a[k];
		a[k] = keep;
	}
}

#endif
