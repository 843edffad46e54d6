/* The device arms of mmq.q8_0_wgmma: one kernel for sm_90a, templated on the warpgroup instruction.
 *
 * Two numbers first. A warpgroup's m64n64k32 keeps the tensor cores busy for 32 cycles. Its fold is 32 outputs a thread: with s32 three
 * operations each (to f32; times one scale; times the other and added), 96 issue slots of each of the four schedulers; with f32 two,
 * 64. So the fold bounds both arms, 3 to 1 and 2 to 1, and the tensor cores idle most of the time. What counts is that every scheduler has
 * something to fold in every cycle, and that nothing else takes its slots or its registers' ports. (With s32 they are all taken, by ncu: 73 % of the
 * cycles issue, in the others the dispatch waits for operands, as an fma of three registers out of two banks does not issue every cycle.)
 *
 * So operands come by bulk copies, which one thread of a fourth warpgroup starts: w as swizzled rows, x as it lies in memory, in one piece, and
 * from there through registers. And a warpgroup takes 128 tokens by 64 rows of w, in two products: a scale of w is then loaded for four outputs of a thread
 * and one of x for sixteen. (One product of 64 by 128: a scale of w for two. Its loads of 16 bytes a lane, 512 a warp however many lanes want the same
 * ones, kept the shared memory busy as long as the f32 fold the schedulers. x as a tensor of 128-byte rows 144 apart, with its scales as another of
 * 16-byte rows, made 700 requests a stage, and those were the bound.)
 *
 * The sections rise: 1 barriers and copies. 2 the instructions. 3 a stage. 4 the kernel. 5 launchers. */
#include <cuda.h>
#include <stdlib.h>

#include "device.cuh"

/* On other architectures the kernel is a trap, and all that it would call is unused. */
#pragma nv_diag_suppress 177

namespace
{

constexpr int GROUPS = 3; /* warpgroups that compute, all tokens of the tile by 64 rows of w each; one more copies */
constexpr int HALVES = 2, GN = 64; /* a group's products a step, 64 tokens each; its rows of w */
constexpr int BM = 64 * HALVES, BN = GN * GROUPS, THREADS = 128 * (GROUPS + 1);
/* Registers of a thread: 64 sums, 64 outputs and what they need; the copying group gives up the rest. */
constexpr int REGS_COPY = 32, REGS_COMPUTE = 160;

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

/* ---- 2 the instructions -------------------------------------------------------------------------------------------- */

/* A tile of rows of 128 bytes, swizzled by 128: groups of 8 rows lie 1024 bytes apart. */
__device__ __forceinline__ uint64_t descriptor(uint32_t address)
{
	return (uint64_t)(address >> 4 & 0x3FFF) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

#define EIGHT(C, d, o)                                                                                                 \
	C(d[o]), C(d[o + 1]), C(d[o + 2]), C(d[o + 3]), C(d[o + 4]), C(d[o + 5]), C(d[o + 6]), C(d[o + 7])
#define ALL(C, d) EIGHT(C, d, 0), EIGHT(C, d, 8), EIGHT(C, d, 16), EIGHT(C, d, 24)
#define REGISTERS                                                                                                      \
	"{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%" \
	"29,"                                                                                                          \
	"%30,%31}"
#define FRAGMENT(a) "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])

template <mmq_arm ARM> struct sums;
template <> struct sums<MMQ_S32> {
	int d[GN / 2];
};
template <> struct sums<MMQ_F32> {
	float d[GN / 2];
};

/* s = a * b over 32 k, from zero; a in registers, 16 tokens a warp as of mma.sync. Asynchronous: neither is to be touched before
 * sums_wait. */
__device__ __forceinline__ void multiply(sums<MMQ_S32> &s, const uint32_t (&a)[4], uint64_t b)
{
#define C(x) "=r"(x)
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"
		     "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 " REGISTERS ", {%32, %33, %34, %35}, %36, p;\n}"
		     : ALL(C, s.d)
		     : FRAGMENT(a), "l"(b));
#undef C
}

__device__ __forceinline__ void multiply(sums<MMQ_F32> &s, const uint32_t (&a)[4], uint64_t b)
{
#define C(x) "=f"(x)
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"
		     "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 " REGISTERS
		     ", {%32, %33, %34, %35}, %36, p, 1, 1;\n}"
		     : ALL(C, s.d)
		     : FRAGMENT(a), "l"(b));
#undef C
}

/* Until both products are there. Naming all keeps the compiler from reading s earlier and from using a's registers again. */
__device__ __forceinline__ void sums_wait(sums<MMQ_S32> (&s)[HALVES], const uint32_t (&a)[HALVES][4])
{
#define C(x) "+r"(x)
	asm volatile("wgmma.wait_group.sync.aligned 0;"
		     : ALL(C, s[0].d), ALL(C, s[1].d)
		     : FRAGMENT(a[0]), FRAGMENT(a[1])
		     : "memory");
#undef C
}

__device__ __forceinline__ void sums_wait(sums<MMQ_F32> (&s)[HALVES], const uint32_t (&a)[HALVES][4])
{
#define C(x) "+f"(x)
	asm volatile("wgmma.wait_group.sync.aligned 0;"
		     : ALL(C, s[0].d), ALL(C, s[1].d)
		     : FRAGMENT(a[0]), FRAGMENT(a[1])
		     : "memory");
#undef C
}

__device__ __forceinline__ void load_fragments(uint32_t (&r)[4], uint32_t address)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(address)
		     : "memory");
}

/* ---- 3 a stage ----------------------------------------------------------------------------------------------------- */

/* w: quants as rows of 128 bytes, swizzled, and the rows' scales a step. x: records as they lie in memory, one piece for a tile of
 * tokens; at 36 words a record, 8 rows of 16 bytes meet no bank twice. */
constexpr int W = 0, DW = W + BN * RECORD, X = DW + STEPS * BN * 4, STAGE = X + BM * MMQ_X_BYTES;
constexpr int STAGES = (227 * 1024 - 1024) / STAGE, BARRIERS = STAGES * STAGE;
constexpr size_t SMEM = BARRIERS + 2 * STAGES * 8;
static_assert(STAGE % 1024 == 0, "swizzled tiles begin at multiples of 1024");

/* The only shared memory of the kernel, so it begins where the hardware's own kilobyte ends. */
extern __shared__ __align__(1024) char shared[];

struct operands {
	CUtensorMap w, dw;
	const char *x;
	float *y;
	int m, out_f, blocks, tiles_j, tiles_i;
};

/* ---- 4 the kernel -------------------------------------------------------------------------------------------------- */

constexpr int EARLY = 1; /* scales of so many sixteens of rows are loaded while the product runs, as registers allow */

/* y += the block's sums times both scales. dx: of this thread's tokens. dw: of this thread's rows, four of two eights a load. */
template <mmq_arm ARM>
__device__ __forceinline__ void fold(float (&y)[HALVES][GN / 2], const sums<ARM> (&s)[HALVES],
				     const float (&dx)[HALVES][2], const float4 (&dw)[GN / 16])
{
#pragma unroll
	for (int n = 0; n < GN / 16; n++) {
		const float d[4] = {dw[n].x, dw[n].y, dw[n].z, dw[n].w};
#pragma unroll
		for (int e = 0; e < 4; e++)
#pragma unroll
			for (int m = 0; m < HALVES; m++)
#pragma unroll
				for (int h = 0; h < 2; h++) {
					const int at = 8 * n + e / 2 * 4 + 2 * h + e % 2;
					y[m][at] = __fmaf_rn(d[e], __fmul_rn((float)s[m].d[at], dx[m][h]), y[m][at]);
				}
	}
}

__device__ __forceinline__ void copy_tiles(const operands &p, uint32_t base, uint32_t full, uint32_t empty)
{
	const int records = (p.blocks + STEPS - 1) / STEPS, tiles = p.tiles_j * p.tiles_i;
	int slot = 0, turn = 0;
	for (int n = blockIdx.x; n < tiles; n += gridDim.x) {
		const tile t = tile_of(n, p.tiles_j, p.tiles_i);
		/* Beyond the last token the stage keeps what was there: it reaches only outputs that nobody stores. */
		const uint32_t x_bytes = (uint32_t)(p.m - t.j * BM < BM ? p.m - t.j * BM : BM) * MMQ_X_BYTES;
		const char *x = p.x + (int64_t)t.j * BM * MMQ_X_BYTES;
		for (int k = 0; k < records; k++, x += (int64_t)p.m * MMQ_X_BYTES) {
			const uint32_t to = base + slot * STAGE, bar = full + slot * 8;
			barrier_wait(empty + slot * 8, turn ^ 1);
			barrier_expect(bar, X - W + x_bytes);
			copy_2d(to + W, &p.w, bar, k * RECORD, t.i * BN);
			copy_1d(to + X, x, bar, x_bytes);
			copy_2d(to + DW, &p.dw, bar, t.i * BN, k * STEPS);
			if (++slot == STAGES)
				slot = 0, turn ^= 1;
		}
	}
}

/* Where a thread finds its share of a stage, in bytes from the stage's start. */
struct places {
	uint32_t a, dx, dw; /* of the first half's fragment, for ldmatrix; of its scales */
	int group;
};

/* 32 k of a stage. The fragments of x are the next step's when this returns. */
template <mmq_arm ARM>
__device__ __forceinline__ void step(float (&y)[HALVES][GN / 2], uint32_t (&a)[HALVES][4], uint32_t base, int stage,
				     int s, const places &at)
{
	const char *here = shared + stage;
	const uint64_t b = descriptor(base + stage + W + at.group * GN * RECORD) + s * (MMQ_BLOCK >> 4);
	sums<ARM> sum[HALVES];
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
	for (int m = 0; m < HALVES; m++)
		multiply(sum[m], a[m], b);
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
	float dx[HALVES][2];
#pragma unroll
	for (int m = 0; m < HALVES; m++)
#pragma unroll
		for (int h = 0; h < 2; h++)
			dx[m][h] = *(const float *)(here + at.dx + (m * 64 + h * 8) * MMQ_X_BYTES + s * 4);
	float4 dw[GN / 16];
#pragma unroll
	for (int c = 0; c < GN / 16; c++) {
		if (c == EARLY) {
			sums_wait(sum, a);
			if (s + 1 < STEPS) /* in the last record perhaps of a step that does not come */
#pragma unroll
				for (int m = 0; m < HALVES; m++)
					load_fragments(a[m], base + stage + at.a + m * 64 * MMQ_X_BYTES +
								     (s + 1) * MMQ_BLOCK);
		}
		dw[c] = *(const float4 *)(here + at.dw + s * BN * 4 + c * 64);
	}
	fold<ARM>(y, sum, dx, dw);
}

template <mmq_arm ARM>
__device__ __forceinline__ void compute_tiles(const operands &p, uint32_t base, uint32_t full, uint32_t empty)
{
	const int records = (p.blocks + STEPS - 1) / STEPS, tiles = p.tiles_j * p.tiles_i;
	const int lane = threadIdx.x % 32, in_group = threadIdx.x % 128 / 32;
	places at;
	at.group =
		__shfl_sync(~0u, (int)threadIdx.x / 128 - 1, 0); /* so that the compiler knows it for one of a warp */
	const int token = in_group * 16 + lane / 4,
		  row = at.group * GN + lane % 4 * 2; /* of the first of this thread's outputs */
	at.a = X + (in_group * 16 + lane % 16) * MMQ_X_BYTES + 16 + lane / 16 * 16;
	at.dx = X + token * MMQ_X_BYTES;
	at.dw = DW + (at.group * GN + lane % 4 * 4) * 4;
	int slot = 0, turn = 0;
	for (int n = blockIdx.x; n < tiles; n += gridDim.x) {
		const tile t = tile_of(n, p.tiles_j, p.tiles_i);
		float y[HALVES][GN / 2] = {};
		for (int k = 0; k < records; k++) {
			const int steps = p.blocks - k * STEPS < STEPS ? p.blocks - k * STEPS : STEPS;
			barrier_wait(full + slot * 8, turn);
			uint32_t a[HALVES][4];
#pragma unroll
			for (int m = 0; m < HALVES; m++)
				load_fragments(a[m], base + slot * STAGE + at.a + m * 64 * MMQ_X_BYTES);
#pragma unroll
			for (int s = 0; s < STEPS; s++) {
				if (s >= steps)
					break;
				step<ARM>(y, a, base, slot * STAGE, s, at);
			}
			__syncwarp(); /* one lane speaks for all: their reads must be over, too */
			if (lane == 0)
				barrier_arrive(empty + slot * 8);
			if (++slot == STAGES)
				slot = 0, turn ^= 1;
		}
#pragma unroll
		for (int r = 0; r < HALVES * 2; r++) { /* half r / 2, its token or the one 8 on */
			const int j = t.j * BM + r / 2 * 64 + r % 2 * 8 + token;
			if (j >= p.m)
				continue;
#pragma unroll
			for (int c = 0; c < GN / 8; c++) {
				const int i = t.i * BN + row + c * 8;
				if (i < p.out_f)
					store_pair(p.y, p.out_f, j, i, y[r / 2][4 * c + r % 2 * 2],
						   y[r / 2][4 * c + r % 2 * 2 + 1]);
			}
		}
	}
}

template <mmq_arm ARM> __global__ void __launch_bounds__(THREADS, 1) mmq_wgmma(const __grid_constant__ operands p)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
	const uint32_t base = shared_address(shared), full = base + BARRIERS, empty = full + STAGES * 8;
	if (threadIdx.x == 0) {
		if (base % 1024 != 0)
			asm volatile("trap;");
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
		compute_tiles<ARM>(p, base, full, empty);
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

int maps_create(const assay_call *call, const mmq_shape &s, operands *p)
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
	const cuuint64_t w_dim[2] = {(cuuint64_t)s.in_f, (cuuint64_t)s.out_f}, w_stride[1] = {(cuuint64_t)s.in_f};
	const cuuint64_t dw_dim[2] = {(cuuint64_t)s.out_pad, (cuuint64_t)s.blocks},
			 dw_stride[1] = {(cuuint64_t)s.out_pad * 4};
	const cuuint32_t w_box[2] = {RECORD, BN}, dw_box[2] = {BN, STEPS};
	return encode(call, e, "wq", &p->w, CU_TENSOR_MAP_DATA_TYPE_UINT8, call->tensor[MMQ_WQ], w_dim, w_stride, w_box,
		      true) || encode(call, e, "wd", &p->dw, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, call->tensor[MMQ_WD],
				      dw_dim, dw_stride, dw_box, false)
		       ? -1
		       : 0;
}

template <mmq_arm ARM> int plan(const assay_call *call, void **state)
{
	const mmq_shape s = mmq_of(call->point);
	int device = 0, multiprocessors = 0;
	if (launch_allow(call, "mmq_wgmma", (const void *)mmq_wgmma<ARM>) != 0 ||
	    launch_check(call, cudaGetDevice(&device), "mmq_wgmma") != 0 ||
	    launch_check(call, cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
			 "mmq_wgmma") != 0)
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
	q->p.x = (const char *)call->tensor[MMQ_X];
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
