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
 * The sections rise: 1 the instructions. 2 the kernel. 3 launchers. */
#include "ring.cuh"

namespace
{

constexpr int GROUPS = 3, THREADS = 128 * (GROUPS + 1); /* warpgroups that compute, and one more that copies */
constexpr int HALVES = 2, GN = 64; /* a group's products a step, and the rows of w of each, by 64 tokens */

/* What a block makes. TALL: the halves are of tokens, the groups side by side: 128 by 192. Else the halves are of rows, the groups one below the other:
 * 192 by 128, for out_f that 192 does not fit; a scale of w is then loaded for two outputs. */
template <bool TALL> struct shape {
	static constexpr int HT = TALL ? HALVES : 1, HR = TALL ? 1 : HALVES;
	static constexpr int BM = 64 * (TALL ? HALVES : GROUPS), BN = GN * (TALL ? GROUPS : HALVES);
	/* A stage. w: quants as rows of 128 bytes, swizzled, and the rows' scales a step. x: records as they lie in memory, one piece for a tile of
	 * tokens; at 36 words a record, 8 rows of 16 bytes meet no bank twice. */
	static constexpr int SCALES = 1, W = 0, DW = W + BN * RECORD, X = DW + STEPS * BN * 4, STAGE = X + BM * MMQ_X_BYTES;
	static constexpr int STAGES = SHARED / STAGE;
	static_assert(STAGE % 1024 == 0, "swizzled tiles begin at multiples of 1024");
};

/* Registers of a thread: 64 sums, 64 outputs and what they need; the copying group gives up the rest. */
constexpr int REGS_COPY = 32, REGS_COMPUTE = 160;

/* ---- 1 the instructions -------------------------------------------------------------------------------------------- */

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

/* Until both products are there. Naming all keeps the compiler from reading s earlier and from using the fragments' registers again. */
__device__ __forceinline__ void sums_wait(sums<MMQ_S32> (&s)[HALVES], const uint32_t (&a)[4], const uint32_t (&a1)[4])
{
#define C(x) "+r"(x)
	asm volatile("wgmma.wait_group.sync.aligned 0;"
		     : ALL(C, s[0].d), ALL(C, s[1].d)
		     : FRAGMENT(a), FRAGMENT(a1)
		     : "memory");
#undef C
}

__device__ __forceinline__ void sums_wait(sums<MMQ_F32> (&s)[HALVES], const uint32_t (&a)[4], const uint32_t (&a1)[4])
{
#define C(x) "+f"(x)
	asm volatile("wgmma.wait_group.sync.aligned 0;"
		     : ALL(C, s[0].d), ALL(C, s[1].d)
		     : FRAGMENT(a), FRAGMENT(a1)
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

/* ---- 2 the kernel -------------------------------------------------------------------------------------------------- */

/* The only shared memory of the kernel, so it begins where the hardware's own kilobyte ends. */
extern __shared__ __align__(1024) char shared[];

constexpr int EARLY = 1; /* scales of so many sixteens of rows are loaded while the product runs, as registers allow */

/* y += the block's sums times both scales, in the same order in both arms. dx: of this thread's tokens. dw: of this thread's rows, four of two
 * eights a load. (s32 alone would be 5 % faster in two passes, first all products by the scales of w, as an fma that reads three registers holds the
 * next one up; f32 would be slower by it. The arms are to differ in their instruction.) */
template <mmq_arm ARM, class S>
__device__ __forceinline__ void fold(float (&y)[HALVES][GN / 2], const sums<ARM> (&s)[HALVES],
				     const float (&dx)[S::HT][2], const float4 (&dw)[S::HR][GN / 16])
{
#pragma unroll
	for (int r = 0; r < S::HR; r++)
#pragma unroll
		for (int n = 0; n < GN / 16; n++) {
			const float d[4] = {dw[r][n].x, dw[r][n].y, dw[r][n].z, dw[r][n].w};
#pragma unroll
			for (int e = 0; e < 4; e++)
#pragma unroll
				for (int m = 0; m < S::HT; m++)
#pragma unroll
					for (int h = 0; h < 2; h++) {
						const int at = 8 * n + e / 2 * 4 + 2 * h + e % 2;
						float *o = &y[m + r][at];
						*o = __fmaf_rn(d[e], __fmul_rn((float)s[m + r].d[at], dx[m][h]), *o);
					}
		}
}

/* Where a thread finds its share of a stage, in bytes from the stage's start. */
struct places {
	uint32_t a, dx, dw; /* of the first half's fragment, for ldmatrix; of its scales */
	int row; /* the group's first */
};

/* 32 k of a stage. The fragments of x are the next step's when this returns. */
template <mmq_arm ARM, class S>
__device__ __forceinline__ void step(float (&y)[HALVES][GN / 2], uint32_t (&a)[S::HT][4], uint32_t base, int stage,
				     int s, const places &at)
{
	const char *here = shared + stage;
	const uint64_t b = descriptor(base + stage + S::W + at.row * RECORD) + s * (MMQ_BLOCK >> 4);
	sums<ARM> sum[HALVES];
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
	for (int m = 0; m < HALVES; m++)
		multiply(sum[m], a[m % S::HT], b + m / S::HT * (GN * RECORD >> 4));
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
	float dx[S::HT][2];
#pragma unroll
	for (int m = 0; m < S::HT; m++)
#pragma unroll
		for (int h = 0; h < 2; h++)
			dx[m][h] = *(const float *)(here + at.dx + (m * 64 + h * 8) * MMQ_X_BYTES + s * 4);
	float4 dw[S::HR][GN / 16];
#pragma unroll
	for (int c = 0; c < S::HR * GN / 16; c++) {
		if (c == EARLY) {
			sums_wait(sum, a[0], a[S::HT - 1]);
			if (s + 1 < STEPS) /* in the last record perhaps of a step that does not come */
#pragma unroll
				for (int m = 0; m < S::HT; m++)
					load_fragments(a[m], base + stage + at.a + m * 64 * MMQ_X_BYTES +
								     (s + 1) * MMQ_BLOCK);
		}
		dw[c / (GN / 16)][c % (GN / 16)] = *(const float4 *)(here + at.dw + s * S::BN * 4 + c * 64);
	}
	fold<ARM, S>(y, sum, dx, dw);
}

template <mmq_arm ARM, class S>
__device__ __forceinline__ void compute_tiles(const operands &p, uint32_t base, uint32_t full, uint32_t empty)
{
	const int records = (p.blocks + STEPS - 1) / STEPS, tiles = p.tiles_j * p.tiles_i;
	const int lane = threadIdx.x % 32, in_group = threadIdx.x % 128 / 32;
	places at;
	/* so that the compiler knows it for one of a warp */
	const int group = __shfl_sync(~0u, (int)threadIdx.x / 128 - 1, 0);
	at.row = S::HT > 1 ? group * GN : 0;
	const int first = (S::HT > 1 ? 0 : group * 64) + in_group * 16; /* of the warp's tokens */
	const int token = first + lane / 4, row = at.row + lane % 4 * 2; /* of the first of this thread's outputs */
	at.a = S::X + (first + lane % 16) * MMQ_X_BYTES + 16 + lane / 16 * 16;
	at.dx = S::X + token * MMQ_X_BYTES;
	at.dw = S::DW + (at.row + lane % 4 * 4) * 4;
	int slot = 0, turn = 0;
	for (int n = blockIdx.x; n < tiles; n += gridDim.x) {
		const tile t = tile_of(n, p.tiles_j, p.tiles_i);
		float y[HALVES][GN / 2] = {};
		for (int k = 0; k < records; k++) {
			const int steps = p.blocks - k * STEPS < STEPS ? p.blocks - k * STEPS : STEPS;
			barrier_wait(full + slot * 8, turn);
			uint32_t a[S::HT][4];
#pragma unroll
			for (int m = 0; m < S::HT; m++)
				load_fragments(a[m], base + slot * S::STAGE + at.a + m * 64 * MMQ_X_BYTES);
#pragma unroll
			for (int s = 0; s < STEPS; s++) {
				if (s >= steps)
					break;
				step<ARM, S>(y, a, base, slot * S::STAGE, s, at);
			}
			barrier_arrive(empty + slot * 8); /* each thread, for its own reads */
			if (++slot == S::STAGES)
				slot = 0, turn ^= 1;
		}
#pragma unroll
		for (int r = 0; r < HALVES * 2; r++) { /* half r / 2, of tokens or of rows; its token or the one 8 on */
			const int j = t.j * S::BM + r / 2 % S::HT * 64 + r % 2 * 8 + token;
			if (j >= p.m)
				continue;
#pragma unroll
			for (int c = 0; c < GN / 8; c++) {
				const int i = t.i * S::BN + r / 2 / S::HT * GN + row + c * 8;
				if (i < p.out_f)
					store_pair(p.y, p.out_f, j, i, y[r / 2][4 * c + r % 2 * 2],
						   y[r / 2][4 * c + r % 2 * 2 + 1]);
			}
		}
	}
}

template <mmq_arm ARM, bool TALL>
__global__ void __launch_bounds__(THREADS, 1) mmq_wgmma(const __grid_constant__ operands p)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
	using S = shape<TALL>;
	const uint32_t base = shared_address(shared), full = base + S::STAGES * S::STAGE, empty = full + S::STAGES * 8;
	ring_begin<S>(base, full, empty, 128 * GROUPS);
	if (threadIdx.x < 128) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGS_COPY));
		if (threadIdx.x == 0)
			copy_tiles<S>(p, base, full, empty);
	} else {
		asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGS_COMPUTE));
		compute_tiles<ARM, S>(p, base, full, empty);
	}
#else
	asm volatile("trap;");
#endif
}

/* ---- 3 launchers --------------------------------------------------------------------------------------------------- */

template <class S> int64_t waves(const mmq_shape &s, int multiprocessors)
{
	const int64_t tiles = (s.m + S::BM - 1) / S::BM * ((s.out_f + S::BN - 1) / S::BN);
	return (tiles + multiprocessors - 1) / multiprocessors;
}

/* Both shapes have as many outputs, and a block of each takes as long, but for a twentieth that the scales of the wide one cost at most: which
 * one is decided by how often all multiprocessors must make a tile. */
template <mmq_arm ARM> int plan(const assay_call *call, void **state)
{
	const mmq_shape s = mmq_of(call->point);
	int n = 0;
	if (device_attribute(call, "mmq_wgmma", cudaDevAttrMultiProcessorCount, &n) != 0)
		return -1;
	if (21 * waves<shape<false>>(s, n) >= 20 * waves<shape<true>>(s, n))
		return ring_plan<shape<true>>(call, "mmq_wgmma", (const void *)mmq_wgmma<ARM, true>, THREADS, n, state);
	return ring_plan<shape<false>>(call, "mmq_wgmma", (const void *)mmq_wgmma<ARM, false>, THREADS, n, state);
}

int run(const assay_call *call, void *state)
{
	return ring_run(call, "mmq_wgmma", state);
}

} // namespace

extern "C" {
extern const assay_arm_ops mmq_q8_0_wgmma_cuda_s32 = {plan<MMQ_S32>, run, ring_finish, NULL, derive};
extern const assay_arm_ops mmq_q8_0_wgmma_cuda_f32 = {plan<MMQ_F32>, run, ring_finish, NULL, derive};
}
