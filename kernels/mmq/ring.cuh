/* ring: operands of the sm_90a kernels of both mmq's: one thread brings them by bulk copies into a ring of stages, and the grid stays: a block
 * makes tile after tile. The sections rise: 1 barriers and copies. 2 the thread that copies. 3 the block's beginning. 4 launchers.
 *
 * A kernel's shape of tile is a class S:
 *   BM, BN          tokens and rows of w of a tile
 *   SCALES          rows of wd a step: 1, the scales alone; 2, what goes with them too
 *   W, DW, X        where in a stage lie wq [row][128 bytes, swizzled], wd [step][SCALES][row] and x [token] of records: in this order
 *   STAGE, STAGES   bytes of a stage, a multiple of 1024; how many */
#ifndef ASSAY_KERNELS_MMQ_RING_CUH
#define ASSAY_KERNELS_MMQ_RING_CUH

#include <cuda.h>
#include <stdlib.h>

#include "device.cuh"

/* On other architectures the kernels are traps, and all that they would call is unused. */
#pragma nv_diag_suppress 177

namespace
{

constexpr int SHARED = 227 * 1024 - 1024; /* bytes of shared memory for stages, beside barriers */

struct operands {
	CUtensorMap w, dw;
	const char *x;
	float *y;
	int m, out_f, blocks, tiles_j, tiles_i;
};

/* ---- 1 barriers and copies ----------------------------------------------------------------------------------------- */

__device__ __forceinline__ uint32_t shared_address(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void barrier_init(uint32_t bar, int arrivals)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barrier_arrive(uint32_t bar)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void barrier_expect(uint32_t bar, uint32_t bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_wait(uint32_t bar, uint32_t parity)
{
	asm volatile("{\n"
		     ".reg .pred p;\n"
		     "again:\n"
		     "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
		     "@p bra done;\n"
		     "bra again;\n"
		     "done:\n"
		     "}" ::"r"(bar),
		     "r"(parity)
		     : "memory");
}

__device__ __forceinline__ void copy_2d(uint32_t to, const CUtensorMap *map, uint32_t bar, int c0, int c1)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
		     "%4}], [%2];" ::"r"(to),
		     "l"(map), "r"(bar), "r"(c0), "r"(c1)
		     : "memory");
}

/* bytes: a multiple of 16; both addresses too. */
__device__ __forceinline__ void copy_1d(uint32_t to, const void *from, uint32_t bar, uint32_t bytes)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %3, [%2];" ::"r"(
			     to),
		     "l"(from), "r"(bar), "r"(bytes)
		     : "memory");
}

/* ---- 2 the thread that copies -------------------------------------------------------------------------------------- */

/* full, empty: addresses of a barrier a stage. */
template <class S>
__device__ __forceinline__ void copy_tiles(const operands &p, uint32_t base, uint32_t full, uint32_t empty)
{
	const int records = (p.blocks + STEPS - 1) / STEPS, tiles = p.tiles_j * p.tiles_i;
	int slot = 0, turn = 0;
	for (int n = blockIdx.x; n < tiles; n += gridDim.x) {
		const tile t = tile_of(n, p.tiles_j, p.tiles_i);
		/* Beyond the last token the stage keeps what was there: it reaches only outputs that nobody stores. */
		const uint32_t x_bytes =
			(uint32_t)(p.m - t.j * S::BM < S::BM ? p.m - t.j * S::BM : S::BM) * MMQ_X_BYTES;
		const char *x = p.x + (int64_t)t.j * S::BM * MMQ_X_BYTES;
		for (int k = 0; k < records; k++, x += (int64_t)p.m * MMQ_X_BYTES) {
			const uint32_t to = base + slot * S::STAGE, bar = full + slot * 8;
			barrier_wait(empty + slot * 8, turn ^ 1);
			barrier_expect(bar, S::X - S::W + x_bytes);
			copy_2d(to + S::W, &p.w, bar, k * RECORD, t.i * S::BN);
			copy_1d(to + S::X, x, bar, x_bytes);
			copy_2d(to + S::DW, &p.dw, bar, t.i * S::BN, k * STEPS * S::SCALES);
			if (++slot == S::STAGES)
				slot = 0, turn ^= 1;
		}
	}
}

/* ---- 3 the block's beginning --------------------------------------------------------------------------------------- */

template <class S> constexpr size_t ring_bytes()
{
	return S::STAGES * S::STAGE + 2 * S::STAGES * 8;
}

/* The barriers of a ring at base. readers: threads that arrive when they are done with a stage, each for its own reads. (One lane for its warp,
 * after __syncwarp, is as right and not faster, but racecheck does not see that the others' reads come before.) */
template <class S> __device__ __forceinline__ void ring_begin(uint32_t base, uint32_t full, uint32_t empty, int readers)
{
	if (threadIdx.x == 0) {
		if (base % 1024 != 0) /* swizzled rows count on it */
			asm volatile("trap;");
		for (int i = 0; i < S::STAGES; i++) {
			barrier_init(full + i * 8, 1);
			barrier_init(empty + i * 8, readers);
		}
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	__syncthreads();
}

/* ---- 4 launchers --------------------------------------------------------------------------------------------------- */

/* An arm's state from plan to finish. */
struct planned {
	operands p;
	const void *function;
	unsigned blocks, threads;
	size_t smem;
};

/* The driver's function, found through the runtime so that nothing is linked against the driver. */
typedef CUresult encode_fn(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
			   const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
			   CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

int encode(const assay_call *call, encode_fn *f, const char *name, CUtensorMap *map, CUtensorMapDataType type,
	   const void *base, const cuuint64_t *dim, const cuuint64_t *stride_bytes, const cuuint32_t *box, bool swizzle)
{
	const cuuint32_t one[2] = {1, 1};
	const CUresult e = f(map, type, 2, (void *)base, dim, stride_bytes, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,
			     swizzle ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
			     CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	if (e == CUDA_SUCCESS)
		return 0;
	snprintf(call->error, ASSAY_ERROR_MAX, "cuTensorMapEncodeTiled of %s: driver error %d", name, (int)e);
	return -1;
}

template <class S> int maps_create(const assay_call *call, const mmq_shape &s, operands *p)
{
	void *f = NULL;
	cudaDriverEntryPointQueryResult found;
	if (launch_check(call,
			 cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault,
							  &found),
			 "cuTensorMapEncodeTiled") != 0)
		return -1;
	if (f == NULL || found != cudaDriverEntryPointSuccess) {
		snprintf(call->error, ASSAY_ERROR_MAX, "this driver has no cuTensorMapEncodeTiled");
		return -1;
	}
	encode_fn *e = (encode_fn *)f;
	static_assert(S::SCALES == 1 || S::SCALES == 2, "of the two halves of a row of wd");
	const cuuint64_t w_dim[2] = {(cuuint64_t)s.in_f, (cuuint64_t)s.out_f}, w_stride[1] = {(cuuint64_t)s.in_f};
	const cuuint64_t dw_dim[2] = {(cuuint64_t)s.out_pad, (cuuint64_t)s.blocks * S::SCALES},
			 dw_stride[1] = {(cuuint64_t)s.out_pad * (2 / S::SCALES) * 4};
	const cuuint32_t w_box[2] = {RECORD, S::BN}, dw_box[2] = {S::BN, S::SCALES * STEPS};
	return encode(call, e, "wq", &p->w, CU_TENSOR_MAP_DATA_TYPE_UINT8, call->tensor[MMQ_WQ], w_dim, w_stride, w_box,
		      true) || encode(call, e, "wd", &p->dw, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, call->tensor[MMQ_WD],
				      dw_dim, dw_stride, dw_box, false)
		       ? -1
		       : 0;
}

/* state: of ring_run, freed by ring_finish. */
template <class S>
int ring_plan(const assay_call *call, const char *symbol, const void *function, int threads, int multiprocessors,
	      void **state)
{
	const mmq_shape s = mmq_of(call->point);
	if (launch_allow(call, symbol, function) != 0)
		return -1;
	planned *q = (planned *)aligned_alloc(64, (sizeof(planned) + 63) / 64 * 64); /* tensor maps are aligned to 64 */
	if (q == NULL) {
		snprintf(call->error, ASSAY_ERROR_MAX, "no memory for %zu bytes of plan", sizeof(planned));
		return -1;
	}
	if (maps_create<S>(call, s, &q->p) != 0) {
		free(q);
		return -1;
	}
	q->p.x = (const char *)call->tensor[MMQ_X];
	q->p.y = (float *)call->tensor[MMQ_Y];
	q->p.m = (int)s.m, q->p.out_f = (int)s.out_f, q->p.blocks = (int)s.blocks;
	q->p.tiles_j = (int)((s.m + S::BM - 1) / S::BM), q->p.tiles_i = (int)((s.out_f + S::BN - 1) / S::BN);
	const int64_t tiles = (int64_t)q->p.tiles_j * q->p.tiles_i;
	q->blocks = (unsigned)(tiles < multiprocessors ? tiles : multiprocessors);
	q->threads = (unsigned)threads;
	q->function = function;
	q->smem = ring_bytes<S>();
	*state = q;
	return 0;
}

int ring_run(const assay_call *call, const char *symbol, void *state)
{
	planned *q = (planned *)state;
	void *args[] = {&q->p};
	return launch(call, symbol, q->function, dim3(q->blocks), dim3(q->threads), q->smem, args);
}

void ring_finish(void *state)
{
	free(state);
}

} // namespace

#endif
