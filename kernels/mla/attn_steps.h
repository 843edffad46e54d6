/* attn_steps: the three steps of attention over gathered rows, on a block of heads, for the host arms of attn_gathered.
 *
 *   scores:   s[h][j] = scale * (q_lat[h] . c_j + q_pe[h] . c_j[kv_rank:])
 *   softmax:  p[h][j] = exp(s[h][j] - max), sum[h]
 *   gather:   acc[h][r] += p[h][j] * c_j[r], slot after slot in rising order
 *
 * A score is one chain per (h, slot), the softmax one pass per head, an output element one chain over the slots: no
 * result depends on how slots, heads or columns are divided into calls, as long as the slots of one element are added in order.
 * Rows are taken SLOT_BLOCK at a time, so that they come from memory once and from cache for every further head. */
#ifndef ASSAY_KERNELS_ATTN_STEPS_H
#define ASSAY_KERNELS_ATTN_STEPS_H

#include <stdint.h>

#include "mla.h"

/* The rows of one token: heads h0 .. h1-1, and its indices. */
struct attn_block {
	const struct mla_attn_shape *s;
	const float *q_lat, *q_pe; /* of head 0 of the token; q_pe may be NULL where d_rope is 0 */
	const float *cache;
	const int32_t *idx;
	int64_t h0, h1;
};

/* Scores of slots j0 .. j1-1 into score[h * n_slots + j] (score: of head 0 of the token). */
void attn_scores(const struct attn_block *b, int64_t j0, int64_t j1, float *score);

/* score[0..n-1] becomes exp(score - max); *max and *sum are those of the n values. n >= 1. */
void attn_softmax(float *score, int64_t n, float *max, float *sum);

/* Columns c0 .. c1-1: acc[h * ld + r] = sum over j0 <= j < j1 of p[h * n_slots + j] * c_j[r] (acc, p: of head 0). */
void attn_gather(const struct attn_block *b, int64_t j0, int64_t j1, int64_t c0, int64_t c1, const float *p, float *acc,
		 int64_t ld);

/* The same exp on n values, n >= 0; in may be out. For tests of its accuracy. */
void attn_exp(const float *in, float *out, int64_t n);

#endif
