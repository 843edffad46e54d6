/* The device arms of mmq.q8_0: one kernel, templated on the matrix instruction and on nothing else.
 *
 * Two numbers first. q_proj at m = 6257 is 394 G multiply-adds: 0.6 ms at the 1284 TOP/s that an H200 does in this instruction, 6.6 cycles a
 * warp-MMA of each scheduler. The fold is dearer than that: each 32 k, every output wants two more operations of the f32 units (times one
 * scale; times the other and added), 8 issue slots a warp-MMA, so 0.74 ms. They do not hide behind one another: both live on the read ports of
 * the registers. An IMMA reads ten of them, and while it does nothing else is dispatched; put between the fma of a fold, one every eight, each
 * IMMA stops the scheduler for six cycles (ncu: `dispatch`), so that a loop in which they alternate perfectly is no faster than one with all
 * IMMA first. And of the fma, one in four meets another operand in its bank. So what is left to win is slots and operands: the conversion of s32 to
 * f32 must be free, scales loaded for many outputs and used for runs of outputs, copies cheap, and two blocks a multiprocessor, so that one
 * computes while the other waits for its operands. (Tried and slower or the same: 8, 12 or 16 warps a block with tiles of a warp from 32 x 32 to
 * 64 x 64; two to five stages; sums kept in registers over the step, folded in the next between its products; bulk copies. results/h200/mmq-kernels.md
 * has the figures.)
 *
 * The conversion is free because the accumulator does not start at 0 but at 0x4B400000, the bits of 1.5 * 2^23 as f32: read as f32, the
 * result is that number plus the block's sum, exactly, for sums within +-2^22 (they are within 2^19). Subtracting it and
 * multiplying by the scale of w is one fma, rounded once: the scale has 11 bits, so its product with 1.5 * 2^23 is exact.
 *
 * The sections rise: 1 copies. 2 a stage of operands. 3 the kernel. 4 launchers. 5 which kernel: on sm_90a it is q8_0_ring.cu's. */
#include <stdlib.h>

#include "fragments.cuh"

namespace
{

/* ---- 1 copies ------------------------------------------------------------------------------------------------------ */

/* 16 bytes; of an edge zeros where !in. */
template <bool EDGE> __device__ __forceinline__ void copy_16(uint32_t to, const void *from, bool in)
{
	if constexpr (EDGE)
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(in ? 16 : 0)
			     : "memory");
	else
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/* ---- 2 a stage of operands ----------------------------------------------------------------------------------------- */

constexpr int MT = 4, NT = 6; /* a warp's tokens and rows of w, in units of the instruction's 16 and 8 */
constexpr int WARPS_J = 2, WARPS_I = 2, THREADS = 32 * WARPS_J * WARPS_I;
constexpr int RESIDENT = 2; /* blocks a multiprocessor, where its shared memory has room for two */
constexpr int WARP_J = MT * 16, WARP_I = NT * 8, BM = WARPS_J * WARP_J, BN = WARPS_I * WARP_I;
constexpr int PITCH = MMQ_X_BYTES; /* of both operands: 36 words, so that 8 rows of 16 bytes meet no bank twice */

/* x as it lies in memory, [token] of records; wq [row] at the same pitch; wd [step][row]. */
constexpr int X = 0, W = X + BM * PITCH, D = W + BN * PITCH, STAGE = D + STEPS * BN * 4;

/* arch: 900 of sm_90. Blocks of the others have 99 KB of shared memory, and some of that is the system's. */
constexpr int stages_of(int arch)
{
	return arch == 800 || arch == 900 || arch == 1000 ? 3 : 2;
}

#ifdef __CUDA_ARCH__
constexpr int STAGES = stages_of(__CUDA_ARCH__);
#else
constexpr int STAGES = 2; /* the host's pass compiles no code of them */
#endif
static_assert(2 * STAGE <= 98 * 1024, "two stages go everywhere");

extern __shared__ __align__(128) char shared[];

struct operands {
	const char *x;
	const char *wq;
	const float *wd;
	float *y;
	int m, in_f, out_f, out_pad, blocks;
	int tiles_j, tiles_i;
};

/* What a thread copies of a record: pieces of 16 bytes of x, of w and of w's scales. */
constexpr int X_PIECES = BM * (MMQ_X_BYTES / 16), W_PARTS = RECORD / 16, W_ROWS = THREADS / W_PARTS,
	      D_PIECES = STEPS * BN / 4;
static_assert(BN % W_ROWS == 0 && D_PIECES <= THREADS, "all rows of w, and one piece of its scales a thread");

/* Where the next record has this thread's first pieces, and where in a stage they go. */
struct cursor {
	const char *x, *w;
	const float *d;
	uint32_t x_to, w_to, d_to;
};

__device__ __forceinline__ cursor cursor_at(const operands &p, int j0, int i0)
{
	const int tid = threadIdx.x;
	cursor c;
	c.x = p.x + (int64_t)j0 * MMQ_X_BYTES + tid * 16;
	c.w = p.wq + (int64_t)(i0 + tid / W_PARTS) * p.in_f + tid % W_PARTS * 16;
	c.d = p.wd + (int64_t)(tid / (BN / 4)) * 2 * p.out_pad + i0 + tid % (BN / 4) * 4;
	c.x_to = X + tid * 16;
	c.w_to = W + tid / W_PARTS * PITCH + tid % W_PARTS * 16;
	c.d_to = D + tid * 16;
	return c;
}

/* Record k of both tiles. Tokens lie k-major, then by token: a tile of them is contiguous. EDGE: some of it is outside, and zeros. */
template <bool EDGE>
__device__ __forceinline__ void fetch_part(const operands &p, const cursor &c, uint32_t to, int k, int j0, int i0)
{
	const int tid = threadIdx.x, inside = (p.m - j0) * (MMQ_X_BYTES / 16);
#pragma unroll
	for (int n = 0; n < X_PIECES; n += THREADS)
		if (n + THREADS <= X_PIECES || n + tid < X_PIECES)
			copy_16<EDGE>(to + c.x_to + n * 16, c.x + n * 16, n + tid < inside);
	const int rows = k * RECORD + tid % W_PARTS * 16 < p.in_f ? p.out_f - i0 - tid / W_PARTS : 0;
	const char *w = c.w;
#pragma unroll
	for (int r = 0; r < BN; r += W_ROWS, w += (uint32_t)p.in_f * W_ROWS)
		copy_16<EDGE>(to + c.w_to + r * PITCH, w, r < rows);
	if (tid < D_PIECES) {
		const int step = k * STEPS + tid / (BN / 4), i = i0 + tid % (BN / 4) * 4;
		copy_16<EDGE>(to + c.d_to, c.d, step < p.blocks && i < p.out_pad);
	}
}

__device__ __forceinline__ void fetch(const operands &p, cursor &c, uint32_t to, int k, int j0, int i0)
{
	/* One branch for all copies: tests of each of them would take as many issue slots as the copies. */
	if (j0 + BM <= p.m && i0 + BN <= p.out_f && (k + 1) * RECORD <= p.in_f)
		fetch_part<false>(p, c, to, k, j0, i0);
	else
		fetch_part<true>(p, c, to, k, j0, i0);
	c.x += (uint32_t)p.m * MMQ_X_BYTES;
	c.w += RECORD;
	c.d += (uint32_t)p.out_pad * 2 * STEPS; /* of the second half of a row nothing is read */
}

/* ---- 3 the kernel -------------------------------------------------------------------------------------------------- */

/* Where a lane finds its share of a stage. */
struct places {
	uint32_t a, b; /* of the fragments, for ldmatrix */
	uint32_t dx, dw; /* of its scales */
};

/* y of sixteen rows of w += the block's sums times both scales. Runs of outputs that share a scale: an operand that the fma before had in the
 * same place is not read again. */
template <mmq_arm ARM>
__device__ __forceinline__ void fold(float (&y)[MT][NT][4], int n, const acc (&d)[2][MT], const float (&dx)[MT][2],
				     float4 dw)
{
	const float w[4] = {dw.x, dw.y, dw.z, dw.w};
	float t[4][MT][2];
#pragma unroll
	for (int e = 0; e < 4; e++) {
		const float less = w[e] * MINUS_START;
#pragma unroll
		for (int i = 0; i < MT; i++)
#pragma unroll
			for (int h = 0; h < 2; h++)
				t[e][i][h] = scaled<ARM>(d[e / 2][i].r[2 * h + e % 2], w[e], less);
	}
#pragma unroll
	for (int i = 0; i < MT; i++)
#pragma unroll
		for (int h = 0; h < 2; h++)
#pragma unroll
			for (int e = 0; e < 4; e++) {
				float *o = &y[i][n + e / 2][2 * h + e % 2];
				*o = __fmaf_rn(dx[i][h], t[e][i][h], *o);
			}
}

/* 32 k of a stage, sixteen rows of w at a time. Products of the next sixteen are started before those of these are folded, so that the matrix
 * instruction's latency lies behind the fold. */
template <mmq_arm ARM> __device__ __forceinline__ void step(float (&y)[MT][NT][4], int stage, int s, const places &at)
{
	const char *here_x = shared + stage + s * 4, *here_w = shared + stage + s * BN * 4;
	const uint32_t here_at = (uint32_t)__cvta_generic_to_shared(shared) + stage + s * MMQ_BLOCK;
	uint32_t a[MT][4], b[4];
	acc d[2][2][MT];
	float dx[MT][2];
	float4 dw = {};
	static_assert(NT % 2 == 0, "scales of w are loaded for sixteen rows");
#pragma unroll
	for (int i = 0; i < MT; i++) {
		load_fragments(a[i], here_at + at.a + i * 16 * PITCH);
		dx[i][0] = *(const float *)(here_x + at.dx + i * 16 * PITCH);
		dx[i][1] = *(const float *)(here_x + at.dx + (i * 16 + 8) * PITCH);
	}
#pragma unroll
	for (int n = 0; n <= NT; n += 2) {
		const float4 before = dw;
		if (n < NT) {
			load_fragments(b, here_at + at.b + n * 8 * PITCH);
			dw = *(const float4 *)(here_w + at.dw + n * 8 * 4);
#pragma unroll
			for (int c = 0; c < 2; c++)
#pragma unroll
				for (int i = 0; i < MT; i++)
					d[n / 2 % 2][c][i] = mma<ARM>(a[i], b[c * 2], b[c * 2 + 1]);
		}
		if (n > 0)
			fold<ARM>(y, n - 2, d[(n / 2 + 1) % 2], dx, before);
	}
}

template <mmq_arm ARM> __device__ __forceinline__ void product(const operands &p)
{
	const uint32_t base = (uint32_t)__cvta_generic_to_shared(shared);
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const int warp_j = warp % WARPS_J * WARP_J, warp_i = warp / WARPS_J * WARP_I;
	const tile t = tile_of(blockIdx.x, p.tiles_j, p.tiles_i);
	const int j0 = t.j * BM, i0 = t.i * BN;
	const int records = (p.blocks + STEPS - 1) / STEPS;
	places at;
	at.a = X + (warp_j + lane % 16) * PITCH + 16 + lane / 16 * 16;
	at.b = W + (warp_i + lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 16;
	at.dx = X + (warp_j + lane / 4) * PITCH;
	at.dw = D + (warp_i + lane % 4 * 4) * 4;

	cursor c = cursor_at(p, j0, i0);
	float y[MT][NT][4] = {};
#pragma unroll
	for (int k = 0; k < STAGES - 1; k++) {
		if (k < records)
			fetch(p, c, base + k * STAGE, k, j0, i0);
		asm volatile("cp.async.commit_group;" ::: "memory");
	}
	for (int k = 0; k < records; k++) {
		asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
		__syncthreads(); /* all have stage k, and none is still in the one that is filled next */
		if (k + STAGES - 1 < records)
			fetch(p, c, base + (k + STAGES - 1) % STAGES * STAGE, k + STAGES - 1, j0, i0);
		asm volatile("cp.async.commit_group;" ::: "memory");

		/* Of the last record fewer than four blocks may be in use. Step by step: with all four in sight the compiler loads so far
		 * ahead that registers run out. */
		const int n = p.blocks - k * STEPS < STEPS ? p.blocks - k * STEPS : STEPS;
#pragma unroll 1
		for (int s = 0; s < n; s++)
			step<ARM>(y, k % STAGES * STAGE, s, at);
	}

#pragma unroll
	for (int i = 0; i < MT; i++)
#pragma unroll
		for (int h = 0; h < 2; h++) {
			const int j = j0 + warp_j + i * 16 + h * 8 + lane / 4;
			if (j >= p.m)
				continue;
#pragma unroll
			for (int n = 0; n < NT; n++) {
				const int row = i0 + warp_i + n * 8 + lane % 4 * 2;
				if (row < p.out_f)
					store_pair(p.y, p.out_f, j, row, y[i][n][2 * h], y[i][n][2 * h + 1]);
			}
		}
}

template <mmq_arm ARM> __global__ void __launch_bounds__(THREADS, RESIDENT) mmq_tile(const __grid_constant__ operands p)
{
	if constexpr (exists<ARM>())
		product<ARM>(p);
	else
		asm volatile("trap;");
}

/* ---- 4 launchers --------------------------------------------------------------------------------------------------- */

/* state: bytes of shared memory. */
template <mmq_arm ARM> int plan(const assay_call *call, void **state)
{
	const void *function = (const void *)mmq_tile<ARM>;
	struct cudaFuncAttributes at;
	if (launch_check(call, cudaFuncGetAttributes(&at, function), "mmq_tile") != 0)
		return -1;
	*state = (void *)((size_t)stages_of(10 * at.binaryVersion) * STAGE); /* of the code that this device runs */
	return launch_allow(call, "mmq_tile", function);
}

template <mmq_arm ARM> int run(const assay_call *call, void *state)
{
	const mmq_shape s = mmq_of(call->point);
	operands p = {};
	p.x = (const char *)call->tensor[MMQ_X];
	p.wq = (const char *)call->tensor[MMQ_WQ];
	p.wd = (const float *)call->tensor[MMQ_WD];
	p.y = (float *)call->tensor[MMQ_Y];
	p.m = (int)s.m, p.in_f = (int)s.in_f, p.out_f = (int)s.out_f, p.out_pad = (int)s.out_pad,
	p.blocks = (int)s.blocks;
	p.tiles_j = (int)((s.m + BM - 1) / BM), p.tiles_i = (int)((s.out_f + BN - 1) / BN);
	void *args[] = {&p};
	return launch(call, "mmq_tile", (const void *)mmq_tile<ARM>, dim3((unsigned)p.tiles_j * (unsigned)p.tiles_i),
		      dim3(THREADS), (size_t)state, args);
}

/* ---- 5 which kernel ------------------------------------------------------------------------------------------------ */

template <mmq_arm ARM> constexpr assay_arm_ops tiles = {plan<ARM>, run<ARM>, NULL, NULL, derive};

struct chosen {
	const assay_arm_ops *ops;
	void *state;
};

/* sm_90a has a kernel of its own for the arms that it can execute. Its tiles are larger, a block a multiprocessor: where there are
 * too few of them (m = 512 by out_f up to 2048 on an H200) it takes 1.2 times as long as the one above, which has a tile or none for
 * each multiprocessor then. NULL: call->error says why. */
template <mmq_arm ARM> const assay_arm_ops *ops_here(const assay_call *call)
{
	if (ARM == MMQ_F32_BS || !mmq_q8_0_ring_here())
		return &tiles<ARM>;
	const mmq_shape s = mmq_of(call->point);
	int multiprocessors = 0;
	if (device_attribute(call, "mmq_tile", cudaDevAttrMultiProcessorCount, &multiprocessors) != 0)
		return NULL;
	if ((s.m + BM - 1) / BM * ((s.out_f + BN - 1) / BN) <= multiprocessors)
		return &tiles<ARM>;
	return ARM == MMQ_S32 ? &mmq_q8_0_ring_s32 : &mmq_q8_0_ring_f32;
}

template <mmq_arm ARM> int chosen_plan(const assay_call *call, void **state)
{
	chosen *c = (chosen *)calloc(1, sizeof *c);
	if (c == NULL) {
		snprintf(call->error, ASSAY_ERROR_MAX, "no memory for %zu bytes of plan", sizeof *c);
		return -1;
	}
	c->ops = ops_here<ARM>(call);
	if (c->ops == NULL || c->ops->plan(call, &c->state) != 0) {
		free(c);
		return -1;
	}
	*state = c;
	return 0;
}

int chosen_run(const assay_call *call, void *state)
{
	const chosen *c = (const chosen *)state;
	return c->ops->run(call, c->state);
}

void chosen_finish(void *state)
{
	chosen *c = (chosen *)state;
	if (c->ops->finish != NULL)
		c->ops->finish(c->state);
	free(c);
}

} // namespace

extern "C" {
extern const assay_arm_ops mmq_q8_0_cuda_s32 = {chosen_plan<MMQ_S32>, chosen_run, chosen_finish, NULL, derive};
extern const assay_arm_ops mmq_q8_0_cuda_f32 = {chosen_plan<MMQ_F32>, chosen_run, chosen_finish, NULL, derive};
extern const assay_arm_ops mmq_q8_0_cuda_f32_bs = {chosen_plan<MMQ_F32_BS>, chosen_run, chosen_finish, NULL, derive};
}
