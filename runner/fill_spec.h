/* fill_spec: how the inputs of a cell are made and what is promised of them. Plain data: the suite parses it, the cell carries
 * it to the worker, fill.c and the device's fill execute it. */
#ifndef ASSAY_FILL_SPEC_H
#define ASSAY_FILL_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "assay/adapter.h"

enum fill_kind {
	FILL_DEFAULT, /* by the tensor's use: the distribution's fill, indices, or scales */
	FILL_UNIFORM, /* reals in range[0] <= x < range[1] */
	FILL_NORMAL, /* mean, sd */
	FILL_BYTES, /* every byte: sign bit times a magnitude in magnitude[0..1] (inclusive), as sign-magnitude bits */
	FILL_CONSTANT, /* value */
	FILL_ZIPF, /* integers in 0..bound-1, P(k) ~ 1/(k+1)^exponent, ranks scattered by a seeded permutation */
	FILL_K_HOT, /* along the last dimension exactly k elements are `value`, the rest 0 */
	FILL_PERMUTATION, /* along the last dimension a permutation of 0..n-1 */
	FILL_INDICES, /* integers in 0..index_bound-1, with or without repeats along the last dimension */
	FILL_PATTERN, /* base + step * ((sum of coordinates) mod modulus): structured block scales */
	FILL_NPY, /* read from a .npy file of the tensor's dtype and shape */
	/* The generators of the seed documents, by name, byte for byte. */
	FILL_SEED_LCG64_F32, /* 64-bit LCG, top 31 bits over 2^31 minus 1: -1..0 */
	FILL_SEED_LCG64_INDEX, /* the same draw modulo index_bound */
	FILL_SEED_LCG32_WIDE, /* 32-bit LCG, (s>>17) % 253 - 126 as two's complement bytes */
	FILL_SEED_LCG32_MID, /* 32-bit LCG, 0x30 + (s>>17) % 0x20, sign from bit 9 */
};

/* One fill. Fields that a kind does not use are zero. */
struct fill_spec {
	enum fill_kind kind;
	double range[2];
	double mean, sd;
	int64_t magnitude[2];
	double value;
	double exponent;
	int64_t k;
	bool repeats;
	double base, step;
	int64_t modulus;
	const char *path; /* absolute */
	/* Seed of a seed-document generator: seed ^ the values of the named parameters. Others use the cell's seed. */
	bool has_seed;
	uint64_t seed;
	const char *seed_xor[4]; /* parameter names, NULL-terminated within the array or full */
};

/* A fill for one tensor, or one field of a record tensor (field NULL: the whole tensor). */
struct fill_rule {
	const char *tensor; /* NULL: every ASSAY_DATA tensor */
	const char *field;
	struct fill_spec spec;
};

enum { PROMISE_NONE = 0, PROMISE_POSITIVE = 1, PROMISE_NEGATIVE = 2, PROMISE_BOTH = 3 };

/* What a distribution promises. Readings are dtypes, as bits 1u << enum assay_dtype. */
struct promise {
	uint32_t finite_as; /* every element finite and not NaN, read as each of these */
	uint32_t no_denormals_as;
	int sign; /* PROMISE_* : both signs occur, or one only */
	bool has_range;
	double range[2]; /* inclusive; of the tensor's own dtype */
};

struct distribution {
	const char *name;
	const struct fill_rule *rules; /* later rules win; rule 0 is the distribution's own fill */
	int n_rules;
	struct promise promise; /* of ASSAY_DATA tensors (of the ASSAY_DATA fields of records) */
};

#endif
