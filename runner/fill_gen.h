/* fill_gen: the generators themselves, one element at a time; inline for C11 and for CUDA, the same bits on both.
 *
 * Random fills are counter-based. A row is one combination of all coordinates but the last (of a record's field: of all record
 * coordinates; the last one is then the place in the field):
 *
 *     row key = mix(… mix(mix(key + g) + (c[0] + 1) * g) … + (c[r-2] + 1) * g)       g = 2^64 / golden ratio, rounded to odd
 *     draw    = mix(row key + last * g)                                             mix: the finaliser of splitmix64
 *
 * so a value depends on its coordinates and not on the shape. Where an element needs more than one draw, it goes on from its own
 * draw: draw' = mix(draw + g).
 */
#ifndef ASSAY_FILL_GEN_H
#define ASSAY_FILL_GEN_H

#include <stdbool.h>
#include <stdint.h>

#include "fill.h"
#include "fill_math.h"

/* ---- digest --------------------------------------------------------------------------------------------------------- */

/* A digest is made in parallel, in any order:
 *   word   i of a block (little-endian, the last one padded with zeros): fill_hash_word(w, i)
 *   block  fill_hash_block(sum of its words, its bytes)      blocks of FILL_BLOCK_BYTES, the last one shorter
 *   whole  fill_hash_whole(sum over blocks j of fill_hash_word(block, j), bytes)
 * sums modulo 2^64. fill_hash_word is one-to-one in w for every i, so one changed word always changes the digest. */
enum { FILL_BLOCK_BYTES = 65536 };

ASSAY_HD uint64_t fill_hash_word(uint64_t w, uint64_t i)
{
	w = (w + (i + 1) * FILL_GOLDEN) * 0xBF58476D1CE4E5B9ull;
	return (w ^ w >> 32) * 0x94D049BB133111EBull;
}

ASSAY_HD uint64_t fill_hash_block(uint64_t sum, uint64_t bytes)
{
	return fill_mix(sum ^ bytes * FILL_GOLDEN);
}

ASSAY_HD uint64_t fill_hash_whole(uint64_t sum, uint64_t bytes)
{
	return fill_mix(fill_mix(sum) + bytes * FILL_GOLDEN);
}

/* ---- a job, made ready ---------------------------------------------------------------------------------------------- */

/* Everything that an element needs, by value: a kernel's argument on the device. Made by fill_gen_make on the host. */
struct fill_gen {
	enum fill_kind kind;
	enum assay_dtype dtype;
	struct fill_format format;
	int element_bytes;
	bool integer;
	uint64_t key, scatter_key;
	int rank; /* of the coordinates that pick a row: of a record all, else all but the last */
	int64_t dim[ASSAY_MAX_RANK]; /* of those */
	int64_t stride_bytes[ASSAY_MAX_RANK];
	int64_t rows, last; /* rows * last elements in all */
	int64_t last_stride_bytes;
	int64_t offset_bytes; /* of the field in its record */
	double lo, span, least, most; /* uniform; mean and sd of normal in lo and span */
	int64_t base_integer; /* uniform on integers: base + below(bound) */
	uint64_t bound;
	uint64_t constant, zero; /* bits */
	int64_t k;
	uint64_t magnitude, magnitudes; /* bytes: least, and how many */
	struct fill_perm perm; /* over the last dimension, or over the bound */
	struct fill_zipf zipf;
	float base, step;
	double base_wide, step_wide;
	int64_t modulus;
	uint64_t lcg;
};

struct fill_row {
	uint64_t key;
	int64_t coordinate_sum, offset_bytes;
};

/* Row r in row-major order: its key, and where its element 0 is. */
ASSAY_HD struct fill_row fill_row_at(const struct fill_gen *g, int64_t r)
{
	struct fill_row out;
	int64_t c[ASSAY_MAX_RANK] = {0};
	out.coordinate_sum = 0;
	out.offset_bytes = g->offset_bytes;
	for (int i = g->rank - 1; i >= 0; i--) {
		c[i] = r % g->dim[i];
		r /= g->dim[i];
		out.coordinate_sum += c[i];
		out.offset_bytes += c[i] * g->stride_bytes[i];
	}
	out.key = fill_mix(g->key + FILL_GOLDEN);
	for (int i = 0; i < g->rank; i++)
		out.key = fill_mix(out.key + ((uint64_t)c[i] + 1) * FILL_GOLDEN);
	return out;
}

/* Bits of a double in the job's element type. */
ASSAY_HD uint64_t fill_put(const struct fill_gen *g, double v)
{
	if (g->integer)
		return (uint64_t)(int64_t)v;
	if (g->dtype == ASSAY_F64)
		return fill_bits_of(v);
	if (g->dtype == ASSAY_F32)
		return fill_bits_of_float((float)v);
	return fill_encode(v, g->format);
}

ASSAY_HD uint64_t fill_uniform(const struct fill_gen *g, uint64_t draw)
{
	double v;
	if (g->integer)
		return (uint64_t)g->base_integer + fill_below(draw, g->bound);
	/* Held within the element type's own numbers of lo <= x < hi, so that rounding cannot reach hi. */
	v = FILL_ADD(g->lo, FILL_MUL(g->span, fill_unit(draw)));
	v = v > g->most ? g->most : v;
	v = v < g->least ? g->least : v;
	return fill_put(g, v);
}

/* Every byte of the element: a sign bit, and a magnitude in the seven bits below it. 0x80 (minus zero; -128 as s8) is among them where
 * magnitude 0 is; with magnitudes up to 126 no byte is 0x7F or 0xFF, the NaN codes of e4m3, and read as s8 every byte is a number
 * whatever it is. */
ASSAY_HD uint64_t fill_bytes(const struct fill_gen *g, uint64_t row_key, int64_t last)
{
	uint64_t bits = 0;
	for (int b = 0; b < g->element_bytes; b++) {
		const uint64_t draw =
			fill_mix(row_key + ((uint64_t)last * (uint64_t)g->element_bytes + (uint64_t)b) * FILL_GOLDEN);
		/* 63 bits for the magnitude: a bias below 2^-56 is left, and the sign stays independent of it */
		const uint64_t m = g->magnitude + fill_mulhi(draw << 1, g->magnitudes);
		bits |= ((draw >> 63) << 7 | m) << (8 * b);
	}
	return bits;
}

/* The seed documents' generators, for the state after this element's step. */
ASSAY_HD uint64_t fill_seed_value(const struct fill_gen *g, uint64_t s)
{
	const uint32_t top = (uint32_t)(s >> 33), low = (uint32_t)s;
	switch (g->kind) {
	case FILL_SEED_LCG64_F32: {
		/* 2147483648 is what half of 2^32 - 1 is in f32 */
		const float f = FILL_ADDF(FILL_MULF((float)top, 4.656612873077392578125e-10f), -1.0f);
		return fill_put(g, (double)f);
	}
	case FILL_SEED_LCG64_INDEX: return top % (uint32_t)g->bound;
	case FILL_SEED_LCG32_WIDE: return (uint64_t)(int64_t)((int)((low >> 17) % 253u) - 126);
	default: return (0x30u + (low >> 17) % 0x20u) | (low >> 9 & 1u) << 7;
	}
}

ASSAY_HD bool fill_is_lcg(enum fill_kind k)
{
	return k == FILL_SEED_LCG64_F32 || k == FILL_SEED_LCG64_INDEX || k == FILL_SEED_LCG32_WIDE ||
	       k == FILL_SEED_LCG32_MID;
}

/* One step, and n of them. The 32-bit generator is the low half of a 64-bit state. */
ASSAY_HD uint64_t fill_lcg_step(const struct fill_gen *g, uint64_t s)
{
	if (g->kind == FILL_SEED_LCG64_F32 || g->kind == FILL_SEED_LCG64_INDEX)
		return s * FILL_LCG64_A + FILL_LCG64_C;
	return s * FILL_LCG32_A + FILL_LCG32_C;
}

ASSAY_HD uint64_t fill_lcg_after(const struct fill_gen *g, uint64_t n)
{
	if (g->kind == FILL_SEED_LCG64_F32 || g->kind == FILL_SEED_LCG64_INDEX)
		return fill_lcg_jump(g->lcg, FILL_LCG64_A, FILL_LCG64_C, n);
	return fill_lcg_jump(g->lcg, FILL_LCG32_A, FILL_LCG32_C, n);
}

/* Bits of element `last` of a row, of every kind but the seed documents' and .npy files. */
ASSAY_HD uint64_t fill_value(const struct fill_gen *g, const struct fill_row *row, int64_t last)
{
	const uint64_t draw = fill_mix(row->key + (uint64_t)last * FILL_GOLDEN);
	switch (g->kind) {
	case FILL_UNIFORM: return fill_uniform(g, draw);
	case FILL_NORMAL: return fill_put(g, FILL_ADD(g->lo, FILL_MUL(g->span, fill_normal(draw))));
	case FILL_BYTES: return fill_bytes(g, row->key, last);
	case FILL_ZIPF: return fill_permute(&g->perm, g->scatter_key, (uint64_t)fill_zipf_rank(&g->zipf, draw));
	case FILL_K_HOT:
		return (int64_t)fill_permute(&g->perm, row->key, (uint64_t)last) < g->k ? g->constant : g->zero;
	case FILL_PERMUTATION: return fill_permute(&g->perm, row->key, (uint64_t)last);
	case FILL_INDICES:
		return g->perm.n ? fill_permute(&g->perm, row->key, (uint64_t)last) : fill_below(draw, g->bound);
	case FILL_PATTERN: {
		const int64_t turn = (row->coordinate_sum + last) % g->modulus;
		if (g->integer || g->dtype == ASSAY_F64)
			return fill_put(g, FILL_ADD(g->base_wide, FILL_MUL((double)turn, g->step_wide)));
		/* in f32, as the seed documents compute their block scales */
		return fill_put(g, (double)FILL_ADDF(g->base, FILL_MULF((float)turn, g->step)));
	}
	default: return g->constant;
	}
}

/* Bits of element i in row-major order (records by fields), and where they go. For kernels with a thread an element; a run of
 * consecutive elements is cheaper by rows (fill_row_at, fill_value) and by steps (fill_lcg_step). */
ASSAY_HD uint64_t fill_element_at(const struct fill_gen *g, int64_t i, int64_t *offset_bytes)
{
	const int64_t r = i / g->last, last = i % g->last;
	const struct fill_row row = fill_row_at(g, r);
	*offset_bytes = row.offset_bytes + last * g->last_stride_bytes;
	return fill_is_lcg(g->kind) ? fill_seed_value(g, fill_lcg_after(g, (uint64_t)i + 1))
				    : fill_value(g, &row, last);
}

ASSAY_HD void fill_store(unsigned char *base, int64_t offset_bytes, int element_bytes, uint64_t bits)
{
	unsigned char *p = base + offset_bytes;
	switch (element_bytes) {
	case 1: *p = (unsigned char)bits; break;
	case 2: {
		const uint16_t v = (uint16_t)bits;
		memcpy(p, &v, sizeof v);
		break;
	}
	case 4: {
		const uint32_t v = (uint32_t)bits;
		memcpy(p, &v, sizeof v);
		break;
	}
	default: memcpy(p, &bits, sizeof bits); break;
	}
}

/* Makes a job ready. False with *err: the fill does not fit (fill_resolve has asked the same). Host only. */
bool fill_gen_make(const struct fill_job *job, struct fill_gen *g, struct err *err);

#endif
