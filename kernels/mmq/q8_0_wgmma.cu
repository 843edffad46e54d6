/* The device arms of mmq.q8_0_wgmma: one kernel for sm_90a, templated on the warpgroup instruction.
 *
 * Two numbers first. A warpgroup's m64n128k32 keeps the tensor cores busy for 64 cycles. Its fold is 64 outputs a thread: with s32 three
 * operations each (to f32; times one scale; times the other and added), 192 issue slots of each of the four schedulers; with f32 two,
 * 128. So the fold bounds both arms, 3 to 1 and 2 to 1, and the tensor cores idle most of the time. What counts is
 * that every scheduler has something to fold in every cycle, and that nothing else takes its slots: operands come by bulk tensor
 * copies, which one thread of a fourth warpgroup starts.
 *
 * The sections rise: 1 barriers and copies. 2 the instructions. 3 a stage. 4 the kernel. 5 launchers. */
#include <cuda.h>
#include <stdlib.h>

#include "device.cuh"

/* On other architectures the kernel is a trap, and all that it would call is unused. */
#pragma nv_diag_suppress 177

namespace {

#ifndef MMQ_GROUPS
#define MMQ_GROUPS 3
#endif
constexpr int GROUPS = MMQ_GROUPS; /* warpgroups that compute, 64 tokens each */
constexpr int BM = 64 * GROUPS, BN = 128, THREADS = 128 * (GROUPS + 1);
/* Registers: what a computing thread needs beside its 64 sums and 64 outputs; the copying group gives up the rest. */
constexpr int REGS_COPY = GROUPS == 2 ? 40 : 32, REGS_COMPUTE = GROUPS == 2 ? 232 : 160;

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
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
	             "l"(map), "r"(bar), "r"(c0), "r"(c1)
	             : "memory");
}

__device__ __forceinline__ void copy_3d(uint32_t to, const CUtensorMap *map, uint32_t bar, int c0, int c1, int c2)
{
	asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(
			     to),
	             "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2)
	             : "memory");
}

/* ---- 2 the instructions -------------------------------------------------------------------------------------------- */

/* A tile of rows of 128 bytes, swizzled by 128: groups of 8 rows lie 1024 bytes apart. */
__device__ __forceinline__ uint64_t descriptor(uint32_t address)
{
	return (uint64_t)(address >> 4 & 0x3FFF) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

#define EIGHT(C, d, o)                                                                                                 \
	C(d[o]), C(d[o + 1]), C(d[o + 2]), C(d[o + 3]), C(d[o + 4]), C(d[o + 5]), C(d[o + 6]), C(d[o + 7])
#define ALL(C, d)                                                                                                      \
	EIGHT(C, d, 0), EIGHT(C, d, 8), EIGHT(C, d, 16), EIGHT(C, d, 24), EIGHT(C, d, 32), EIGHT(C, d, 40), EIGHT(C, d, 48),   \
		EIGHT(C, d, 56)
#define REGISTERS                                                                                                      \
	"{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"     \
	"%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,"    \
	"%58,%59,%60,%61,%62,%63}"

template <mmq_arm ARM> struct sums;
template <> struct sums<MMQ_S32> {
	int d[64];
};
template <> struct sums<MMQ_F32> {
	float d[64];
};

/* s = a * b over 32 k, from zero. Asynchronous: s is not to be touched before sums_wait. */
__device__ __forceinline__ void multiply(sums<MMQ_S32> &s, uint64_t a, uint64_t b)
{
#define C(x) "=r"(x)
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"
	             "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 " REGISTERS ", %64, %65, p;\n}"
	             : ALL(C, s.d)
	             : "l"(a), "l"(b));
#undef C
}

__device__ __forceinline__ void multiply(sums<MMQ_F32> &s, uint64_t a, uint64_t b)
{
#define C(x) "=f"(x)
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"
	             "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 " REGISTERS ", %64, %65, p, 1, 1;\n}"
	             : ALL(C, s.d)
	             : "l"(a), "l"(b));
#undef C
}

/* Until all but the last PENDING products are there. The empty statement keeps the compiler from reading s earlier. */
template <int PENDING> __device__ __forceinline__ void sums_wait(sums<MMQ_S32> &s)
{
#define C(x) "+r"(x)
	asm volatile("wgmma.wait_group.sync.aligned %64;" : ALL(C, s.d) : "n"(PENDING) : "memory");
#undef C
}

template <int PENDING> __device__ __forceinline__ void sums_wait(sums<MMQ_F32> &s)
{
#define C(x) "+f"(x)
	asm volatile("wgmma.wait_group.sync.aligned %64;" : ALL(C, s.d) : "n"(PENDING) : "memory");
#undef C
}

/* ---- 3 a stage ----------------------------------------------------------------------------------------------------- */

/* Quants of both operands as rows of 128 bytes, swizzled; the tokens' four scales a row; the rows' scales a step. */
constexpr int X = 0, W = X + BM * RECORD, DX = W + BN * RECORD, DW = DX + BM * 16, STAGE = DW + STEPS * BN * 4;
constexpr int STAGES = (227 * 1024 - 2048) / STAGE, BARRIERS = STAGES * STAGE;
constexpr size_t SMEM = BARRIERS + 2 * STAGES * 8 + 1024; /* 1024: the tiles must begin at a multiple of it */
static_assert(STAGE % 1024 == 0, "swizzled tiles begin at multiples of 1024");

struct operands {
	CUtensorMap x, dx, w, dw;
	float *y;
	int m, out_f, blocks, tiles_j, tiles_i;
};

/* ---- 4 the kernel -------------------------------------------------------------------------------------------------- */

/* y += the block's sums times both scales. dx: of this thread's two tokens. dw: of this thread's 32 rows, two at a time. */
template <mmq_arm ARM>
__device__ __forceinline__ void fold(float (&y)[64], const sums<ARM> &s, float dx0, float dx1, const float *dw)
{
#pragma unroll
	for (int n = 0; n < BN / 8; n++) {
		const float2 d = *(const float2 *)(dw + n * 8);
		float v[4];
#pragma unroll
		for (int e = 0; e < 4; e++)
			v[e] = __fmul_rn((float)s.d[4 * n + e], e < 2 ? dx0 : dx1);
		y[4 * n] = __fmaf_rn(d.x, v[0], y[4 * n]);
		y[4 * n + 1] = __fmaf_rn(d.y, v[1], y[4 * n + 1]);
		y[4 * n + 2] = __fmaf_rn(d.x, v[2], y[4 * n + 2]);
		y[4 * n + 3] = __fmaf_rn(d.y, v[3], y[4 * n + 3]);
	}
}

__device__ __forceinline__ void copy_tiles(const operands &p, uint32_t base, uint32_t full, uint32_t empty)
{
	const int records = (p.blocks + STEPS - 1) / STEPS, tiles = p.tiles_j * p.tiles_i;
	int slot = 0, turn = 0;
	for (int n = blockIdx.x; n < tiles; n += gridDim.x) {
		const tile t = tile_of(n, p.tiles_j, p.tiles_i);
		for (int k = 0; k < records; k++) {
			const uint32_t to = base + slot * STAGE, bar = full + slot * 8;
			barrier_wait(empty + slot * 8, turn ^ 1);
			barrier_expect(bar, STAGE);
			copy_3d(to + X, &p.x, bar, 0, t.j * BM, k);
			copy_2d(to + W, &p.w, bar, k * RECORD, t.i * BN);
			copy_3d(to + DX, &p.dx, bar, 0, t.j * BM, k);
			copy_2d(to + DW, &p.dw, bar, t.i * BN, k * STEPS);
			if (++slot == STAGES)
				slot = 0, turn ^= 1;
		}
	}
}

template <mmq_arm ARM>
__device__ __forceinline__ void compute_tiles(const operands &p, const char *shared, uint32_t base, uint32_t full, uint32_t empty)
{
	const int records = (p.blocks + STEPS - 1) / STEPS, tiles = p.tiles_j * p.tiles_i;
	const int lane = threadIdx.x % 32, group = threadIdx.x / 128 - 1, in_group = threadIdx.x % 128 / 32;
	const int token = group * 64 + in_group * 16 + lane / 4, row = lane % 4 * 2; /* of the first of this thread's outputs */
	int slot = 0, turn = 0;
	for (int n = blockIdx.x; n < tiles; n += gridDim.x) {
		const tile t = tile_of(n, p.tiles_j, p.tiles_i);
		float y[64] = {};
		for (int k = 0; k < records; k++) {
			const char *here = shared + slot * STAGE;
			const uint64_t a = descriptor(base + slot * STAGE + X + group * 64 * RECORD);
			const uint64_t b = descriptor(base + slot * STAGE + W);
			const int steps = p.blocks - k * STEPS < STEPS ? p.blocks - k * STEPS : STEPS;
			barrier_wait(full + slot * 8, turn);
			const float4 dx0 = *(const float4 *)(here + DX + token * 16);
			const float4 dx1 = *(const float4 *)(here + DX + (token + 8) * 16);
#pragma unroll
			for (int s = 0; s < STEPS; s++) {
				if (s >= steps)
					break;
				sums<ARM> sum;
				asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
				multiply(sum, a + s * (MMQ_BLOCK >> 4), b + s * (MMQ_BLOCK >> 4));
				asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
				sums_wait<0>(sum);
				fold<ARM>(y, sum, s == 0 ? dx0.x : s == 1 ? dx0.y : s == 2 ? dx0.z : dx0.w,
				          s == 0 ? dx1.x : s == 1 ? dx1.y : s == 2 ? dx1.z : dx1.w,
				          (const float *)(here + DW) + s * BN + row);
			}
			if (lane == 0)
				barrier_arrive(empty + slot * 8);
			if (++slot == STAGES)
				slot = 0, turn ^= 1;
		}
#pragma unroll
		for (int h = 0; h < 2; h++) {
			const int j = t.j * BM + token + h * 8;
			if (j >= p.m)
				continue;
#pragma unroll
			for (int c = 0; c < BN / 8; c++) {
				const int i = t.i * BN + row + c * 8;
				if (i < p.out_f)
					store_pair(p.y, p.out_f, j, i, y[4 * c + 2 * h], y[4 * c + 2 * h + 1]);
			}
		}
	}
}

template <mmq_arm ARM> __global__ void __launch_bounds__(THREADS, 1) mmq_wgmma(const __grid_constant__ operands p)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
	extern __shared__ char unaligned[];
	char *shared = (char *)(((uintptr_t)unaligned + 1023) & ~(uintptr_t)1023);
	const uint32_t base = shared_address(shared), full = base + BARRIERS, empty = full + STAGES * 8;
	if (threadIdx.x == 0) {
		for (int i = 0; i < STAGES; i++) {
			barrier_init(full + i * 8, 1);
			barrier_init(empty + i * 8, 4 * GROUPS);
		}
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	__syncthreads();
	if (threadIdx.x < 128) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGS_COPY));
		if (threadIdx.x == 0)
			copy_tiles(p, base, full, empty);
	} else {
		asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGS_COMPUTE));
		compute_tiles<ARM>(p, shared, base, full, empty);
	}
#else
	asm volatile("trap;");
#endif
}

/* ---- 5 launchers --------------------------------------------------------------------------------------------------- */

struct planned {
	operands p;
	unsigned blocks;
};

/* The driver's function, found through the runtime so that nothing is linked against the driver. */
typedef CUresult encode_fn(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                           const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

int encode(const assay_call *call, encode_fn *f, const char *name, CUtensorMap *map, CUtensorMapDataType type, int rank,
           const void *base, const cuuint64_t *dim, const cuuint64_t *stride_bytes, const cuuint32_t *box, bool swizzle)
{
	const cuuint32_t one[3] = {1, 1, 1};
	const CUresult e = f(map, type, (cuuint32_t)rank, (void *)base, dim, stride_bytes, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,
	                     swizzle ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
	                     CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	if (e == CUDA_SUCCESS)
		return 0;
	snprintf(call->error, ASSAY_ERROR_MAX, "cuTensorMapEncodeTiled of %s: driver error %d", name, (int)e);
	return -1;
}

int maps_create(const assay_call *call, const mmq_shape &s, operands *p)
{
	void *f = NULL;
	cudaDriverEntryPointQueryResult found;
	if (launch_check(call, cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found),
	                 "cuTensorMapEncodeTiled") != 0)
		return -1;
	if (f == NULL || found != cudaDriverEntryPointSuccess) {
		snprintf(call->error, ASSAY_ERROR_MAX, "this driver has no cuTensorMapEncodeTiled");
		return -1;
	}
	encode_fn *e = (encode_fn *)f;
	const cuuint64_t m = (cuuint64_t)s.m, records = (cuuint64_t)s.records;
	const cuuint64_t x_stride[2] = {MMQ_X_BYTES, MMQ_X_BYTES * m};
	const cuuint64_t x_dim[3] = {RECORD, m, records}, dx_dim[3] = {STEPS, m, records};
	const cuuint32_t x_box[3] = {RECORD, BM, 1}, dx_box[3] = {STEPS, BM, 1};
	const cuuint64_t w_dim[2] = {(cuuint64_t)s.in_f, (cuuint64_t)s.out_f}, w_stride[1] = {(cuuint64_t)s.in_f};
	const cuuint64_t dw_dim[2] = {(cuuint64_t)s.out_pad, (cuuint64_t)s.blocks}, dw_stride[1] = {(cuuint64_t)s.out_pad * 4};
	const cuuint32_t w_box[2] = {RECORD, BN}, dw_box[2] = {BN, STEPS};
	const char *x = (const char *)call->tensor[MMQ_X];
	return encode(call, e, "x.qs", &p->x, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, x + 16, x_dim, x_stride, x_box, true) ||
	                       encode(call, e, "x.d", &p->dx, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, x, dx_dim, x_stride, dx_box, false) ||
	                       encode(call, e, "wq", &p->w, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, call->tensor[MMQ_WQ], w_dim, w_stride,
	                              w_box, true) ||
	                       encode(call, e, "wd", &p->dw, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, call->tensor[MMQ_WD], dw_dim, dw_stride,
	                              dw_box, false)
	               ? -1
	               : 0;
}

template <mmq_arm ARM> int plan(const assay_call *call, void **state)
{
	const mmq_shape s = mmq_of(call->point);
	int device = 0, multiprocessors = 0;
	if (launch_allow(call, "mmq_wgmma", (const void *)mmq_wgmma<ARM>) != 0 ||
	    launch_check(call, cudaGetDevice(&device), "mmq_wgmma") != 0 ||
	    launch_check(call, cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "mmq_wgmma") != 0)
		return -1;
	planned *q = (planned *)aligned_alloc(64, (sizeof(planned) + 63) / 64 * 64); /* tensor maps are aligned to 64 */
	if (q == NULL) {
		snprintf(call->error, ASSAY_ERROR_MAX, "no memory for %zu bytes of plan", sizeof(planned));
		return -1;
	}
	if (maps_create(call, s, &q->p) != 0) {
		free(q);
		return -1;
	}
	q->p.y = (float *)call->tensor[MMQ_Y];
	q->p.m = (int)s.m, q->p.out_f = (int)s.out_f, q->p.blocks = (int)s.blocks;
	q->p.tiles_j = (int)((s.m + BM - 1) / BM), q->p.tiles_i = (int)((s.out_f + BN - 1) / BN);
	const int64_t tiles = (int64_t)q->p.tiles_j * q->p.tiles_i;
	q->blocks = (unsigned)(tiles < multiprocessors ? tiles : multiprocessors);
	*state = q;
	return 0;
}

template <mmq_arm ARM> int run(const assay_call *call, void *state)
{
	planned *q = (planned *)state;
	void *args[] = {&q->p};
	return launch(call, "mmq_wgmma", (const void *)mmq_wgmma<ARM>, dim3(q->blocks), dim3(THREADS), SMEM, args);
}

void finish(void *state)
{
	free(state);
}

} // namespace

extern "C" {
extern const assay_arm_ops mmq_q8_0_wgmma_cuda_s32 = {plan<MMQ_S32>, run<MMQ_S32>, finish, NULL, derive};
extern const assay_arm_ops mmq_q8_0_wgmma_cuda_f32 = {plan<MMQ_F32>, run<MMQ_F32>, finish, NULL, derive};
}
