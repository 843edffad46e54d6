/* mmq: what the kernels of this family share: parameters, tensors, shapes, and the names of their arms.
 *
 * y[m][out_f] = x * w^T with w in blocks of 32 (ggml's Q8_0) and x in records of 128 (four scales, 128 quants):
 *
 *     y[j][i] = sum over blocks b of  dw[i][b] * dx[j][b] * (sum over the 32 elements of block b of  w[i][k] * x[j][k])
 *
 * The inner sum is what an arm is about. `s32` reads the bytes as s8 and adds in s32: exact. `f32` reads the same bytes as e4m3 and adds
 * in f32. The scales, and the f32 fold of a block's sum into y, are the same in both. */
#ifndef ASSAY_KERNELS_MMQ_H
#define ASSAY_KERNELS_MMQ_H

#include <stdint.h>

#include "assay/adapter.h"

enum { MMQ_P_M, MMQ_P_IN_F, MMQ_P_OUT_F, MMQ_PARAMS };
enum { MMQ_W, MMQ_X, MMQ_Y, MMQ_WQ, MMQ_WD, MMQ_TENSORS };

enum {
	MMQ_BLOCK = 32, /* elements that share a scale */
	MMQ_W_BYTES = 34, /* f16 scale, 32 quants */
	MMQ_RECORD = 128, /* elements of an activation record */
	MMQ_X_BYTES = 144, /* four f32 scales, 128 quants */
	MMQ_WD_GROUP = 16, /* rows of w whose scales stand together in wd, in the order of mmq_wd_place */
	MMQ_X_PAD = 512, /* in_f of the activations is padded to a multiple of it; what is beyond in_f is never used */
};

/* One tensor in memory: w[row][block], x[record][token]. */
struct mmq_w {
	uint16_t d; /* f16 */
	int8_t qs[MMQ_BLOCK];
};
struct mmq_x {
	float d[MMQ_RECORD / MMQ_BLOCK];
	int8_t qs[MMQ_RECORD];
};

struct mmq_shape {
	int64_t m, in_f, out_f, blocks, records;
	int64_t out_pad; /* out_f rounded up to MMQ_WD_GROUP: half a row of wd */
};

static inline struct mmq_shape mmq_of(const struct assay_point *p)
{
	struct mmq_shape s;
	s.m = p->v[MMQ_P_M].i;
	s.in_f = p->v[MMQ_P_IN_F].i;
	s.out_f = p->v[MMQ_P_OUT_F].i;
	s.blocks = s.in_f / MMQ_BLOCK;
	s.records = (s.in_f + MMQ_X_PAD - 1) / MMQ_X_PAD * (MMQ_X_PAD / MMQ_RECORD);
	s.out_pad = (s.out_f + MMQ_WD_GROUP - 1) / MMQ_WD_GROUP * MMQ_WD_GROUP;
	return s;
}

/* Where row i of w has its scale in a row of wd. A thread of a matrix instruction has columns 2 q and 2 q + 1 of each 8; so that it loads
 * those of two eights at once, they stand together. */
static inline
#ifdef __CUDACC__
	__host__ __device__
#endif
		int64_t
		mmq_wd_place(int64_t i)
{
	return i / 16 * 16 + i % 8 / 2 * 4 + i % 16 / 8 * 2 + i % 2;
}

/* How an arm reads the bytes and where it adds: assay_arm's place in the kernels' list of arms. */
enum mmq_arm { MMQ_S32, MMQ_F32, MMQ_F32_BS };

/* ---- operands.c: what the descriptors have in common --------------------------------------------------------------- */

extern const struct assay_param mmq_params[MMQ_PARAMS];
extern const struct assay_tensor mmq_tensors[MMQ_TENSORS];
int mmq_tensor_shape(const struct assay_point *p, int t, struct assay_shape *out);
void mmq_work(const struct assay_point *p, const struct assay_facts *facts, struct assay_work *out);
float mmq_f16(uint16_t bits); /* exact */
float mmq_e4m3(uint8_t bits); /* exact; 0x7F and 0xFF are NaN */

/* ---- host arms and the reference of both kernels ------------------------------------------------------------------- */

extern const struct assay_arm_ops mmq_host_s32, mmq_host_f32; /* host_s32.c, host_f32.c */
/* reference.c. call->arm says which reading, by its name; call->backend how exact the arm's adder is. */
int mmq_reference(const struct assay_call *call, int t, const struct assay_rows *rows, double *ref, double *bound);

/* ---- device arms --------------------------------------------------------------------------------------------------- */

#ifdef ASSAY_WITH_CUDA
#ifdef __cplusplus
extern "C" {
#endif
extern const struct assay_arm_ops mmq_q8_0_cuda_s32, mmq_q8_0_cuda_f32, mmq_q8_0_cuda_f32_bs;
extern const struct assay_arm_ops mmq_q8_0_wgmma_cuda_s32, mmq_q8_0_wgmma_cuda_f32;
/* q8_0_ring.cu, of which q8_0.cu makes use: the arms on sm_90a, and whether the current device is one that has been compiled for. */
extern const struct assay_arm_ops mmq_q8_0_ring_s32, mmq_q8_0_ring_f32;
bool mmq_q8_0_ring_here(void);
#ifdef __cplusplus
}
#endif
#define MMQ_CUDA(ops) (&(ops))
#else
#define MMQ_CUDA(ops) NULL
#endif

#endif
