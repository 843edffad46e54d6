/* The device arms of mmq.q8_0 on sm_90a: the step of q8_0.cu, with the same instruction, fold and numbers, out of a ring of stages that one thread
 * fills by bulk copies (ring.cuh). q8_0.cu chooses.
 *
 * What it gains there (1.34 times, q_proj at m = 6257; results/h200/mmq-kernels.md): eight warps of 240 registers compute, two a scheduler, and none of them
 * copies or waits for the block. The four steps of a record are one piece of code, without arithmetic for addresses. And what is loaded is loaded where a
 * register has just become free, among instructions that do not wait for it: scales of w among the last products, fragments of the next step in the
 * second half of the fold. What bounds it is issue and register ports, as there: of 17.6 cycles a warp-MMA 8 are the fold's fma, 2 and more are what an IMMA
 * holds the dispatch up for, 1.9 what the fma's operands do, 1.8 are loads and the rest of the loop; and a scheduler that has fma from one warp
 * leaves the other's products waiting. (Tried, and slower or the same: the products of the next sixteen rows among the fold of these, one to eight fma; turns
 * of the two warps by named barriers; yields in the fold; twelve warps; warps of 48 x 64.) */
#include "fragments.cuh"
#include "ring.cuh"

namespace
{

/* ---- 1 the shape --------------------------------------------------------------------------------------------------- */

constexpr int MT = 4, NT = 6; /* a warp's tokens and rows of w, in units of the instruction's 16 and 8 */
constexpr int WARPS_J = 2, WARPS_I = 4, WARPS = WARPS_J * WARPS_I, THREADS = 32 * WARPS + 128;
constexpr int WARP_J = MT * 16, WARP_I = NT * 8;
constexpr int PITCH = MMQ_X_BYTES; /* of x: 36 words, so that 8 rows of 16 bytes meet no bank twice */
constexpr int REGS_COPY = 24, REGS_COMPUTE = 240;
static_assert(NT % 2 == 0, "scales of w are loaded for sixteen rows");

struct shape {
	static constexpr int BM = WARPS_J * WARP_J, BN = WARPS_I * WARP_I, SCALES = 2;
	static constexpr int W = 0, DW = W + BN * RECORD, X = DW + SCALES * STEPS * BN * 4,
			     STAGE = (X + BM * PITCH + 1023) / 1024 * 1024, STAGES = SHARED / STAGE;
};

/* The only shared memory of the kernel, so it begins where the hardware's own kilobyte ends. */
extern __shared__ __align__(1024) char shared[];

/* Where a lane finds its share of a stage, in bytes from the stage's start. */
struct places {
	uint32_t a, b; /* of the fragments, for ldmatrix; b of step 0 */
	uint32_t dx, dw; /* of its scales */
};

/* ---- 2 a step ------------------------------------------------------------------------------------------------------ */

/* As written, and where it is written: in the order that the assembler would choose, an fma in three more reads three registers. */
__device__ __forceinline__ float fma_here(float a, float b, float c)
{
	float d;
	asm volatile("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
	return d;
}

/* Of four rows of w, and what goes with them. f32 has no use for the second, and loads it as s32 does: the arms differ in their products alone. */
template <mmq_arm ARM> __device__ __forceinline__ void load_scales(float4 &dw, float4 &less, const char *from)
{
	dw = *(const float4 *)from;
	if constexpr (ARM == MMQ_S32)
		less = *(const float4 *)(from + shape::BN * 4);
	else
		asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
			     : "=f"(less.x), "=f"(less.y), "=f"(less.z), "=f"(less.w)
			     : "r"(shared_address(from + shape::BN * 4)));
}

/* Of a step: 16 tokens each, and 16 rows of w each. */
struct fragments {
	uint32_t a[MT][4], b[NT / 2][4];
};

constexpr int FRAGMENTS = MT + NT / 2;

/* Fragment n: those of w first, as the first products read all of them. */
__device__ __forceinline__ void load_fragment(fragments &f, int n, uint32_t x_at, uint32_t w_at)
{
	if (n < NT / 2)
		load_fragments(f.b[n], w_at + n * 16 * RECORD);
	else
		load_fragments(f.a[n - NT / 2], x_at + (n - NT / 2) * 16 * PITCH);
}

/* Where a warp is in the ring, and how many records are to come. */
struct ring {
	uint32_t base, full;
	int slot, turn, left;

	/* Where the fragments of the step after s of `steps` are: in this record, or in the next once it is there. */
	__device__ __forceinline__ void next(int s, int steps, const places &at, uint32_t &x_at, uint32_t &w_at) const
	{
		int to = slot, step = s + 1;
		if (step >= steps) {
			step = 0;
			if (++to == shape::STAGES)
				to = 0;
			if (left > 1)
				barrier_wait(full + to * 8, to == 0 ? turn ^ 1 : turn);
		}
		x_at = base + to * shape::STAGE + at.a + step * MMQ_BLOCK;
		w_at = (base + to * shape::STAGE + at.b) ^ step * MMQ_BLOCK;
	}
};

/* Step s of `steps` of a record; f: its fragments, and the next step's when this returns. All products first, by sixteens of tokens: six that share a
 * fragment of x read it once. Then the fold, in two passes of runs of outputs that share a scale. */
template <mmq_arm ARM>
__device__ __forceinline__ void step(float (&y)[MT][NT][4], fragments &f, const ring &r, int s, int steps,
				     const places &at)
{
	const char *here_x = shared + r.slot * shape::STAGE + s * 4,
		   *here_w = shared + r.slot * shape::STAGE + s * 2 * shape::BN * 4;
	acc d[MT][NT];
	float dx[MT][2];
	float4 dw[NT / 2], less[NT / 2];
#pragma unroll
	for (int i = 0; i <= MT; i++) {
		in_order();
		/* Scales of sixteen rows before the last products, when there is a register for them; the others' after those. */
#pragma unroll
		for (int c = 0; c < NT / 2; c++)
			if (i == (c == 0 ? MT - 1 : MT))
				load_scales<ARM>(dw[c], less[c], here_w + at.dw + c * 16 * 4);
#pragma unroll
		for (int n = 0; n < NT && i < MT; n++)
			d[i][n] = mma<ARM>(f.a[i], f.b[n / 2][n % 2 * 2], f.b[n / 2][n % 2 * 2 + 1]);
	}
#pragma unroll
	for (int i = 0; i < MT; i++) {
		dx[i][0] = *(const float *)(here_x + at.dx + i * 16 * PITCH);
		dx[i][1] = *(const float *)(here_x + at.dx + (i * 16 + 8) * PITCH);
	}
	float t[NT / 2][4][MT][2];
#pragma unroll
	for (int c = 0; c < NT / 2; c++) {
		const float w[4] = {dw[c].x, dw[c].y, dw[c].z, dw[c].w};
		const float l[4] = {less[c].x, less[c].y, less[c].z, less[c].w};
#pragma unroll
		for (int e = 0; e < 4; e++)
#pragma unroll
			for (int i = 0; i < MT; i++)
#pragma unroll
				for (int h = 0; h < 2; h++) {
					const uint32_t sum = d[i][2 * c + e / 2].r[2 * h + e % 2];
					t[c][e][i][h] = ARM == MMQ_S32 ? fma_here(__uint_as_float(sum), w[e], l[e])
								       : scaled<ARM>(sum, w[e], l[e]);
				}
	}
	uint32_t x_at = 0, w_at = 0;
#pragma unroll
	for (int run = 0; run < 2 * MT; run++) {
		const int i = run / 2, h = run % 2, first = (run - MT) * 2;
		if (run == MT)
			in_order();
		if (run == MT - 1)
			r.next(s, steps, at, x_at, w_at);
#pragma unroll
		for (int n = 0; n < FRAGMENTS; n++)
			if (run >= MT && n >= first && (n < first + 2 || run == 2 * MT - 1))
				load_fragment(f, n, x_at, w_at);
#pragma unroll
		for (int c = 0; c < NT / 2; c++)
#pragma unroll
			for (int e = 0; e < 4; e++) {
				float *o = &y[i][2 * c + e / 2][2 * h + e % 2];
				*o = __fmaf_rn(dx[i][h], t[c][e][i][h], *o);
			}
	}
}

/* ---- 3 the kernel -------------------------------------------------------------------------------------------------- */

template <mmq_arm ARM>
__device__ __forceinline__ void compute_tiles(const operands &p, uint32_t base, uint32_t full, uint32_t empty)
{
	const int records = (p.blocks + STEPS - 1) / STEPS, tiles = p.tiles_j * p.tiles_i;
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 4;
	const int warp_j = warp % WARPS_J * WARP_J, warp_i = warp / WARPS_J * WARP_I;
	places at;
	at.a = shape::X + (warp_j + lane % 16) * PITCH + 16 + lane / 16 * 16;
	at.b = shape::W + (warp_i + lane / 16 * 8 + lane % 8) * RECORD + ((lane / 8 % 2) ^ (lane % 8)) * 16;
	at.dx = shape::X + (warp_j + lane / 4) * PITCH;
	at.dw = shape::DW + (warp_i + lane % 4 * 4) * 4;
	ring r = {base, full, 0, 0, ((tiles - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x) * records};
	fragments f;
	barrier_wait(full, 0);
#pragma unroll
	for (int n = 0; n < FRAGMENTS; n++)
		load_fragment(f, n, base + at.a, base + at.b);
	for (int n = blockIdx.x; n < tiles; n += gridDim.x) {
		float y[MT][NT][4] = {};
		for (int k = 0; k < records; k++) {
			const int steps = p.blocks - k * STEPS;
			if (steps >= STEPS) {
#pragma unroll
				for (int s = 0; s < STEPS; s++)
					step<ARM>(y, f, r, s, STEPS, at);
			} else { /* of the last record fewer blocks may be in use */
#pragma unroll 1
				for (int s = 0; s < steps; s++)
					step<ARM>(y, f, r, s, steps, at);
			}
			r.left--;
			barrier_arrive(empty + r.slot * 8);
			if (++r.slot == shape::STAGES)
				r.slot = 0, r.turn ^= 1;
		}
		const tile t = tile_of(n, p.tiles_j, p.tiles_i);
#pragma unroll
		for (int i = 0; i < MT; i++)
#pragma unroll
			for (int h = 0; h < 2; h++) {
				const int j = t.j * shape::BM + warp_j + i * 16 + h * 8 + lane / 4;
				if (j >= p.m)
					continue;
#pragma unroll
				for (int c = 0; c < NT; c++) {
					const int row = t.i * shape::BN + warp_i + c * 8 + lane % 4 * 2;
					if (row < p.out_f)
						store_pair(p.y, p.out_f, j, row, y[i][c][2 * h], y[i][c][2 * h + 1]);
				}
			}
	}
}

template <mmq_arm ARM> __global__ void __launch_bounds__(THREADS, 1) mmq_ring(const __grid_constant__ operands p)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
	const uint32_t base = shared_address(shared), full = base + shape::STAGES * shape::STAGE,
		       empty = full + shape::STAGES * 8;
	ring_begin<shape>(base, full, empty, 32 * WARPS);
	if (threadIdx.x < 128) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGS_COPY));
		if (threadIdx.x == 0)
			copy_tiles<shape>(p, base, full, empty);
	} else {
		asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGS_COMPUTE));
		compute_tiles<ARM>(p, base, full, empty);
	}
#else
	asm volatile("trap;");
#endif
}

/* ---- 4 launchers --------------------------------------------------------------------------------------------------- */

template <mmq_arm ARM> int plan(const assay_call *call, void **state)
{
	int n = 0;
	if (device_attribute(call, "mmq_ring", cudaDevAttrMultiProcessorCount, &n) != 0)
		return -1;
	return ring_plan<shape>(call, "mmq_ring", (const void *)mmq_ring<ARM>, THREADS, n, state);
}

int run(const assay_call *call, void *state)
{
	return ring_run(call, "mmq_ring", state);
}

} // namespace

extern "C" {
extern const assay_arm_ops mmq_q8_0_ring_s32 = {plan<MMQ_S32>, run, ring_finish, NULL, derive};
extern const assay_arm_ops mmq_q8_0_ring_f32 = {plan<MMQ_F32>, run, ring_finish, NULL, derive};

bool mmq_q8_0_ring_here(void)
{
	struct cudaFuncAttributes at;
	/* Where it is a trap it has next to no registers: of another architecture, or of sm_90 without what sm_90a has more. */
	return cudaFuncGetAttributes(&at, (const void *)mmq_ring<MMQ_S32>) == cudaSuccess && at.binaryVersion == 90 && at.numRegs > 64;
}
}
