/* mla: what the kernels of this family share: their parameters, the shapes read from a point, and the names of their
 * device arms. All tensors are f32, row-major; idx is i32.
 *
 * The scale of attention is a parameter: `scale` > 0 is the scale itself, `scale` = 0 (the default) means
 * 1/sqrt(d_nope + d_rope), and then d_nope must be set. An arm uses the scale rounded to f32 (mla_attn_of). */
#ifndef ASSAY_KERNELS_MLA_H
#define ASSAY_KERNELS_MLA_H

#include <math.h>
#include <stdint.h>

#include "assay/adapter.h"

#define MLA_N_HEAD                                                                                                     \
	{                                                                                                              \
		"n_head", ASSAY_INT, 1, 4096, true, 0, 0, "query heads"                                                \
	}
#define MLA_KV_RANK                                                                                                    \
	{                                                                                                              \
		"kv_rank", ASSAY_INT, 1, 65536, true, 0, 0,                                                            \
			"width of the latent: what a cached row holds for all heads"                                   \
	}
#define MLA_D_NOPE                                                                                                     \
	{                                                                                                              \
		"d_nope", ASSAY_INT, 1, 65536, true, 0, 0, "width of a head's query without position"                  \
	}
#define MLA_D_V                                                                                                        \
	{                                                                                                              \
		"d_v", ASSAY_INT, 1, 65536, true, 0, 0, "width of a head's value"                                      \
	}
#define MLA_T_Q                                                                                                        \
	{                                                                                                              \
		"t_q", ASSAY_INT, 1, 4096, true, 0, 0, "query tokens of the launch"                                    \
	}

/* The family of arms that divide the work of a head over N workers. */
enum { MLA_SPLIT_MIN = 2, MLA_SPLIT_MAX = 64 };

/* The must-fail arm of every kernel here: a right split whose output has one wrong bit. Host only. */
#define MLA_FLIPPED(host_ops)                                                                                          \
	{                                                                                                              \
		.name = "flipped", .arg_name = "N", .arg_min = MLA_SPLIT_MIN, .arg_max = MLA_SPLIT_MAX,                \
		.flags = ASSAY_ARM_FAULT,                                                                              \
		.doc = "must fail: split=N, then the lowest bit of the middle element flipped",                        \
		.ops = { &(host_ops) }                                                                                 \
	}

/* ---- absorb_q and decompress_v: out[t,h,i] = sum over k of x[t,h,k] * w[h,i,k] ------------------------------------- */

/* Both kernels: the same order of parameters and tensors. */
enum { MLA_HEAD_P_N_HEAD, MLA_HEAD_P_KV_RANK, MLA_HEAD_P_D, MLA_HEAD_P_T_Q, MLA_HEAD_PARAMS };
enum { MLA_HEAD_X, MLA_HEAD_W, MLA_HEAD_OUT, MLA_HEAD_TENSORS };

/* absorb_q:     x = q_nope [t][h][d_nope],  w = wk_b [h][kv_rank][d_nope], out [t][h][kv_rank]
 * decompress_v: x = o_lat  [t][h][kv_rank], w = wv_b [h][d_v][kv_rank],    out [t][h][d_v] */
struct mla_head_shape {
	int64_t n_head, t_q, n_in, n_out;
};

static inline struct mla_head_shape mla_absorb_q_of(const struct assay_point *p)
{
	return (struct mla_head_shape){p->v[MLA_HEAD_P_N_HEAD].i, p->v[MLA_HEAD_P_T_Q].i, p->v[MLA_HEAD_P_D].i,
				       p->v[MLA_HEAD_P_KV_RANK].i};
}

static inline struct mla_head_shape mla_decompress_v_of(const struct assay_point *p)
{
	return (struct mla_head_shape){p->v[MLA_HEAD_P_N_HEAD].i, p->v[MLA_HEAD_P_T_Q].i, p->v[MLA_HEAD_P_KV_RANK].i,
				       p->v[MLA_HEAD_P_D].i};
}

/* ---- attn_gathered ------------------------------------------------------------------------------------------------- */

enum {
	MLA_ATTN_P_N_HEAD,
	MLA_ATTN_P_KV_RANK,
	MLA_ATTN_P_D_ROPE,
	MLA_ATTN_P_TOP_K,
	MLA_ATTN_P_KV,
	MLA_ATTN_P_T_Q,
	MLA_ATTN_P_D_NOPE,
	MLA_ATTN_P_SCALE,
	MLA_ATTN_PARAMS
};
enum { MLA_ATTN_Q_LAT, MLA_ATTN_Q_PE, MLA_ATTN_CACHE, MLA_ATTN_IDX, MLA_ATTN_OUT, MLA_ATTN_TENSORS };

/* q_lat [t][h][kv_rank], q_pe [t][h][d_rope] (empty at d_rope 0: the pointer may be NULL), cache [kv][width],
 * idx [t][n_slots], out [t][h][kv_rank]. */
struct mla_attn_shape {
	int64_t n_head, t_q, kv_rank, d_rope, kv, n_slots;
	int64_t width; /* of a cached row: kv_rank + d_rope */
	double scale_real; /* as meant; the reference uses it */
	float scale; /* as used by the arms */
};

static inline struct mla_attn_shape mla_attn_of(const struct assay_point *p)
{
	struct mla_attn_shape s;
	s.n_head = p->v[MLA_ATTN_P_N_HEAD].i;
	s.t_q = p->v[MLA_ATTN_P_T_Q].i;
	s.kv_rank = p->v[MLA_ATTN_P_KV_RANK].i;
	s.d_rope = p->v[MLA_ATTN_P_D_ROPE].i;
	s.kv = p->v[MLA_ATTN_P_KV].i;
	s.n_slots = p->v[MLA_ATTN_P_TOP_K].i < s.kv ? p->v[MLA_ATTN_P_TOP_K].i : s.kv;
	s.width = s.kv_rank + s.d_rope;
	s.scale_real = p->v[MLA_ATTN_P_SCALE].d;
	if (s.scale_real <= 0.0)
		s.scale_real = 1.0 / sqrt((double)(p->v[MLA_ATTN_P_D_NOPE].i + s.d_rope));
	s.scale = (float)s.scale_real;
	return s;
}

/* ---- device arms, defined in the .cu files ------------------------------------------------------------------------- */

#ifdef ASSAY_WITH_CUDA
#ifdef __cplusplus
extern "C" {
#endif
extern const struct assay_arm_ops mla_absorb_q_cuda_shipped, mla_absorb_q_cuda_split;
extern const struct assay_arm_ops mla_decompress_v_cuda_shipped, mla_decompress_v_cuda_split;
extern const struct assay_arm_ops mla_attn_gathered_cuda_shipped, mla_attn_gathered_cuda_split,
	mla_attn_gathered_cuda_split_kv;
#ifdef __cplusplus
}
#endif
#define MLA_CUDA(ops) (&(ops))
#else
#define MLA_CUDA(ops) NULL
#endif

#endif
