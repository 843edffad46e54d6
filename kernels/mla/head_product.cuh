/* head_product, on the device: out[t,h,i] = sum over k of x[t,h,k] * w[h,i,k].
 *
 * Two numbers first. At 64 x 512 x 256 the weights are 33.5 MB: 7.8 us at 4.3 TB/s. The arithmetic at t_q = 8 is 134 MFLOP: 2 us
 * of a 67 TFLOP/s chip. So bytes are the floor at every width that decode has, and all that counts is to have enough of them in
 * flight from the first cycle on: 4.3 TB/s times a microsecond of loaded latency is 4.3 MB, 33 KB for each of 132
 * multiprocessors. That is more than the registers of a plain kernel hold beside its operands.
 *
 * The sections rise: 1 one output by one warp, any shape. 2 a sum over the lanes that costs one shuffle an output instead
 * of five. 3 loads in flight without registers. 4 the kernel. 5 a kernel for one or two tokens, where the order of the
 * bytes counts. 6 launchers.
 *
 * One output is always the same chain: a lane adds its 8 products of a slab of 256 columns (4 consecutive, then 4 more 128
 * further on) with fma, the lanes are added by the tree 16, 8, 4, 2, 1, the slabs in rising order. Neither the tile of rows nor the
 * number of tokens is in it, so every split and every t_q gives the same bits. */
#ifndef ASSAY_KERNELS_HEAD_PRODUCT_CUH
#define ASSAY_KERNELS_HEAD_PRODUCT_CUH

#include <stdint.h>
#include <stdlib.h>

#include "launch.cuh"
#include "mla.h"

namespace {

constexpr int WARPS = 8, THREADS = 32 * WARPS;
constexpr int SLAB = 256;       /* columns that a warp adds up: 8 a lane */
constexpr int MAX_SLABS = 8;
constexpr int PAIR_BYTES = 2 * SLAB * 4; /* two rows of a slab */
constexpr int BASE_PARTS = 4;   /* blocks a head of `shipped` */

struct product {
	const float *x;   /* [t_q][n_head][n_in] */
	const float *w;   /* [n_head][n_out][n_in] */
	float *out;       /* [t_q][n_head][n_out] */
	int n_head, n_in, n_out, t_q;
	int slabs;        /* warps that share a row: 1, 2, 4 or 8 */
	int ring;         /* row pairs that a warp has in flight: RING, or all it has where they are fewer */
};

/* ---- 1 any shape --------------------------------------------------------------------------------------------------- */

/* A warp an output, one column a lane and step. For widths that are no multiple of 4 or beyond MAX_SLABS slabs. */
__global__ void __launch_bounds__(THREADS) head_product_plain(product p)
{
	const int lane = threadIdx.x % 32, h = blockIdx.y;
	const int64_t parts = gridDim.x;
	const int i0 = (int)(p.n_out * (int64_t)blockIdx.x / parts), i1 = (int)(p.n_out * (int64_t)(blockIdx.x + 1) / parts);
	for (int t = blockIdx.z; t < p.t_q; t += gridDim.z) {
		const float *x = p.x + ((int64_t)t * p.n_head + h) * p.n_in;
		for (int i = i0 + threadIdx.x / 32; i < i1; i += WARPS) {
			const float *w = p.w + ((int64_t)h * p.n_out + i) * p.n_in;
			float sum = 0;
			for (int k = lane; k < p.n_in; k += 32)
				sum = fmaf(x[k], w[k], sum);
			for (int m = 16; m > 0; m >>= 1)
				sum += __shfl_xor_sync(~0u, sum, m);
			if (lane == 0)
				p.out[((int64_t)t * p.n_head + h) * p.n_out + i] = sum;
		}
	}
}

/* ---- 2 many sums over the lanes at once ---------------------------------------------------------------------------- */

/* v[0..N-1] of every lane are N sums to be taken over the 32 lanes; N is a power of two, at most 32. In each step a lane gives
 * away the half of its values that it will not finish and takes the partner's other half: N - 1 shuffles and a few more for N
 * sums, where a butterfly for each takes 5 N. Lane l returns sum l / (32 / N). The tree is that of the butterfly. */
template <int N, int M = 16> __device__ __forceinline__ float sums_over_lanes(float (&v)[N], int lane)
{
	if constexpr (N > 1) {
		const bool upper = lane & M;
		float half[N / 2];
#pragma unroll
		for (int k = 0; k < N / 2; k++) {
			const float give = upper ? v[k] : v[k + N / 2], keep = upper ? v[k + N / 2] : v[k];
			half[k] = keep + __shfl_xor_sync(~0u, give, M);
		}
		if constexpr (M > 1)
			return sums_over_lanes<N / 2, M / 2>(half, lane);
		return half[0];
	} else {
#pragma unroll
		for (int m = M; m > 0; m >>= 1)
			v[0] += __shfl_xor_sync(~0u, v[0], m);
		return v[0];
	}
}

/* ---- 3 loads in flight --------------------------------------------------------------------------------------------- */

/* Shared memory as more registers: a lane copies 16 bytes into its own place and reads them back itself. No other lane looks at
 * that place, so no barrier is needed, only the lane's own count of copies that have landed. bytes = 0 writes zeros. */
__device__ __forceinline__ void copy_16(float4 *dst, const float *src, int bytes, uint64_t policy)
{
	asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(
			     (unsigned)__cvta_generic_to_shared(dst)),
	             "l"(src), "r"(bytes), "l"(policy)
	             : "memory");
}

/* Weights are read once. Lines that leave the L2 first take each other's place there, instead of pushing out what others left, which
 * may have to be written back first. */
__device__ __forceinline__ uint64_t read_once()
{
	uint64_t policy;
	asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
	return policy;
}

__device__ __forceinline__ void copies_commit()
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void copies_wait()
{
	asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* ---- 4 the kernel -------------------------------------------------------------------------------------------------- */

/* A block has rows i0 .. i1-1 of one head and T tokens. Its warps are (8 / slabs) groups of rows times the slabs of a row; a
 * warp keeps its slab of x for all T tokens in registers (8 T of them) and streams pairs of rows past it. Sums of slabs
 * meet in shared memory at the end, where the outputs of a token are also made contiguous. */
template <int T, int RING> __global__ void __launch_bounds__(THREADS, 2) head_product_stream(product p)
{
	extern __shared__ float4 shared[];
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, h = blockIdx.y, t0 = blockIdx.z * T;
	const int slab = warp % p.slabs, group = warp / p.slabs, groups = WARPS / p.slabs;
	const int64_t parts = gridDim.x;
	const int i0 = (int)(p.n_out * (int64_t)blockIdx.x / parts), i1 = (int)(p.n_out * (int64_t)(blockIdx.x + 1) / parts);
	const int rows = i1 - i0, steps = (rows + 2 * groups - 1) / (2 * groups);
	const int k = slab * SLAB + 4 * lane; /* the lane's columns: k .. k+3 and k+128 .. k+131 */

	float4 *ring = shared + warp * p.ring * (PAIR_BYTES / 16) + lane; /* [slot][row of pair][half of slab], 32 apart */
	float *sums = (float *)(shared + WARPS * p.ring * (PAIR_BYTES / 16)); /* [slab][t][row] */

	/* x goes first: it is needed first, and the queue of the weights is long. */
	float x[T][8];
#pragma unroll
	for (int t = 0; t < T; t++)
#pragma unroll
		for (int half = 0; half < 2; half++) {
			float4 v = make_float4(0, 0, 0, 0);
			if (t0 + t < p.t_q && k + 128 * half < p.n_in)
				v = __ldg((const float4 *)(p.x + ((int64_t)(t0 + t) * p.n_head + h) * p.n_in + k + 128 * half));
			x[t][4 * half] = v.x, x[t][4 * half + 1] = v.y, x[t][4 * half + 2] = v.z, x[t][4 * half + 3] = v.w;
		}

	const float *w = p.w + (int64_t)h * p.n_out * p.n_in;
	const uint64_t policy = read_once();
	auto fetch = [&](int step, int slot) {
		if (step < steps) {
			const int i = i0 + 2 * (step * groups + group);
#pragma unroll
			for (int c = 0; c < 4; c++) {
				const int row = i + c / 2, col = k + 128 * (c % 2);
				const bool in = row < i1 && col < p.n_in;
				copy_16(ring + (slot * 4 + c) * 32, in ? w + (int64_t)row * p.n_in + col : w, in ? 16 : 0,
				        policy);
			}
		}
		copies_commit();
	};
#pragma unroll
	for (int s = 0; s < RING; s++)
		fetch(s, s);

	int slot = 0;
	for (int step = 0; step < steps; step++) {
		copies_wait<RING - 1>();
		float acc[2 * T];
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const float4 a = ring[(slot * 4 + 2 * r) * 32], b = ring[(slot * 4 + 2 * r + 1) * 32];
#pragma unroll
			for (int t = 0; t < T; t++) {
				float s = a.x * x[t][0];
				s = fmaf(a.y, x[t][1], s);
				s = fmaf(a.z, x[t][2], s);
				s = fmaf(a.w, x[t][3], s);
				s = fmaf(b.x, x[t][4], s);
				s = fmaf(b.y, x[t][5], s);
				s = fmaf(b.z, x[t][6], s);
				acc[r * T + t] = fmaf(b.w, x[t][7], s);
			}
		}
		fetch(step + RING, slot); /* past the ring only if there are more steps than slots */
		slot = slot + 1 == p.ring ? 0 : slot + 1;

		const float sum = sums_over_lanes(acc, lane);
		const int which = lane / (16 / T), r = which / T, t = which % T; /* 2 T sums on 32 lanes */
		const int row = 2 * (step * groups + group) + r;
		if (lane % (16 / T) == 0 && row < rows)
			sums[(slab * T + t) * rows + row] = sum;
	}
	__syncthreads();

	for (int n = threadIdx.x; n < T * rows; n += THREADS) {
		const int t = n / rows, row = n % rows;
		if (t0 + t >= p.t_q)
			break;
		float sum = sums[n];
		for (int s = 1; s < p.slabs; s++)
			sum += sums[s * T * rows + n];
		p.out[((int64_t)(t0 + t) * p.n_head + h) * p.n_out + i0 + row] = sum;
	}
}

/* ---- 5 one sweep over the weights ---------------------------------------------------------------------------------- */

__device__ __forceinline__ float4 load_once(const float *from, uint64_t policy)
{
	float4 v;
	asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
	             : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
	             : "l"(from), "l"(policy));
	return v;
}

/* Blocks that each read a run of their own keep hundreds of places of the memory open. Here all warps of the chip together read
 * it from the first byte to the last, a step of 2 KB a warp: on an H200 0.7 us less for 33.5 MB, as little as the same read
 * takes with nothing summed. The price: the next step of a warp is in another head, so x is loaded at every step; which is cheap
 * from the L1, as long as it is no more than the weights of the step.
 *
 * A step is ROWS whole rows of SLABS slabs; n_out is a multiple of ROWS, so no step is of two heads.
 *
 * No more than 64 KB of weights are asked for at once on a multiprocessor; with 48 or 32 KB the memory waits. Each line that
 * is under way holds a place in the L2 that something else had to leave, and what leaves after other work is often dirty: with as
 * many blocks as the registers allow, 0.1 to 0.25 us more. See product_sweep() for how blocks are held back. */
constexpr int IN_FLIGHT = 64 << 10;
constexpr int sweep_blocks(int slabs, int rows) /* blocks a multiprocessor whose steps are IN_FLIGHT bytes together */
{
	return IN_FLIGHT / (WARPS * rows * slabs * SLAB * 4);
}

template <int SLABS, int ROWS, int T> __global__ void __launch_bounds__(THREADS, sweep_blocks(SLABS, ROWS)) head_product_sweep(product p)
{
	constexpr int COPIES = 2 * SLABS, SUMS = T * ROWS * SLABS, SPREAD = 32 / SUMS; /* lanes a sum */
	const int lane = threadIdx.x % 32;
	const unsigned steps = (unsigned)p.n_head * (unsigned)(p.n_out / ROWS), warps = gridDim.x * WARPS;
	const uint64_t policy = read_once();

	float4 w[ROWS][COPIES];
	auto load = [&](unsigned step) {
		const float *from = p.w + (int64_t)step * ROWS * p.n_in + 4 * lane;
#pragma unroll
		for (int r = 0; r < ROWS; r++)
#pragma unroll
			for (int c = 0; c < COPIES; c++)
				w[r][c] = 4 * lane + 128 * c < p.n_in ? load_once(from + r * p.n_in + 128 * c, policy)
				                                     : make_float4(0, 0, 0, 0);
	};
	unsigned step = blockIdx.x * WARPS + threadIdx.x / 32;
	if (step < steps)
		load(step);
	for (; step < steps; step += warps) {
		const unsigned row0 = step * ROWS, h = row0 / (unsigned)p.n_out, i = row0 - h * (unsigned)p.n_out;
		float acc[SUMS];
#pragma unroll
		for (int t = 0; t < T; t++) {
			float4 x[COPIES];
#pragma unroll
			for (int c = 0; c < COPIES; c++)
				x[c] = t < p.t_q && 4 * lane + 128 * c < p.n_in
				               ? __ldg((const float4 *)(p.x + ((int64_t)t * p.n_head + h) * p.n_in + 4 * lane + 128 * c))
				               : make_float4(0, 0, 0, 0);
#pragma unroll
			for (int r = 0; r < ROWS; r++)
#pragma unroll
				for (int s = 0; s < SLABS; s++) {
					const float4 a = w[r][2 * s], b = w[r][2 * s + 1], y = x[2 * s], z = x[2 * s + 1];
					float sum = a.x * y.x;
					sum = fmaf(a.y, y.y, sum);
					sum = fmaf(a.z, y.z, sum);
					sum = fmaf(a.w, y.w, sum);
					sum = fmaf(b.x, z.x, sum);
					sum = fmaf(b.y, z.y, sum);
					sum = fmaf(b.z, z.z, sum);
					acc[(t * ROWS + r) * SLABS + s] = fmaf(b.w, z.w, sum);
				}
		}
		if (step + warps < steps)
			load(step + warps);

		float sum = sums_over_lanes(acc, lane);
		if (SLABS == 2)
			sum += __shfl_down_sync(~0u, sum, SPREAD);
		const int which = lane / (SPREAD * SLABS), t = which / ROWS, r = which % ROWS;
		if (lane % (SPREAD * SLABS) == 0 && t < p.t_q)
			p.out[((int64_t)t * p.n_head + h) * p.n_out + i + r] = sum;
	}
}

/* ---- 6 launchers --------------------------------------------------------------------------------------------------- */

/* Which kernel runs with what: the same for plan() and run(). */
struct product_launch {
	const char *symbol;
	const void *function;
	dim3 grid;
	size_t smem = 0;
	int carveout = cudaSharedmemCarveoutDefault; /* percent of the L1 that shared memory is to have */
};

template <int T> product_launch product_stream(const mla_head_shape &s, product *p, int64_t parts)
{
	constexpr int RING = 2; /* 64 KB a multiprocessor, see section 5; on an H200 3 and 4 take up to 2.5 and 3 % more, 1 is slower */
	const int64_t rows = (s.n_out + parts - 1) / parts, step_rows = 2 * WARPS / p->slabs;
	const int64_t steps = (rows + step_rows - 1) / step_rows;
	p->ring = (int)(steps < RING ? steps : RING);
	product_launch l;
	l.symbol = "head_product_stream";
	l.function = (const void *)head_product_stream<T, RING>;
	l.grid = dim3((unsigned)parts, (unsigned)s.n_head, (unsigned)((s.t_q + T - 1) / T));
	l.smem = (size_t)(WARPS * p->ring * PAIR_BYTES) + (size_t)(p->slabs * T * rows) * 4;
	return l;
}

/* room: bytes of shared memory a multiprocessor. A block asks for some that it does not use, so that no more than sweep_blocks() of them
 * share a multiprocessor; of the L1 they leave enough for x beside the lines under way, which an L1 of 60 KB has no room for (0.7 us). */
template <int SLABS, int ROWS, int T> product_launch product_sweep(const mla_head_shape &s, int64_t parts, int room)
{
	constexpr int CARVEOUT = 58, RESERVED = 1024; /* bytes that CUDA takes for each block */
	product_launch l;
	l.symbol = "head_product_sweep";
	l.function = (const void *)head_product_sweep<SLABS, ROWS, T>;
	const int64_t blocks = (s.n_head * s.n_out / ROWS + WARPS - 1) / WARPS; /* with one step a warp; more would be idle */
	l.grid = dim3((unsigned)(s.n_head * parts < blocks ? s.n_head * parts : blocks));
	const int each = (int)((int64_t)room * CARVEOUT / 100 / sweep_blocks(SLABS, ROWS)) - RESERVED;
	l.smem = each > 0 ? (size_t)each / 1024 * 1024 : 0;
	l.carveout = CARVEOUT;
	return l;
}

/* parts: blocks a head. More blocks than rows would be idle ones. room: as of product_sweep. */
product_launch product_choose(const mla_head_shape &s, product *p, int64_t parts, int room)
{
	p->n_head = (int)s.n_head, p->n_in = (int)s.n_in, p->n_out = (int)s.n_out, p->t_q = (int)s.t_q;
	p->slabs = 1;
	while (p->slabs * SLAB < s.n_in && p->slabs < MAX_SLABS)
		p->slabs *= 2;
	/* Blocks of more rows than their sums find room for (16 KB at 8 tokens and one slab) are divided further. */
	while ((s.n_out + parts - 1) / parts * p->slabs > 512)
		parts *= 2;
	if (parts > s.n_out)
		parts = s.n_out;
	if (s.n_in % 4 != 0 || s.n_in > MAX_SLABS * SLAB) {
		product_launch l;
		l.symbol = "head_product_plain";
		l.function = (const void *)head_product_plain;
		l.grid = dim3((unsigned)parts, (unsigned)s.n_head, (unsigned)s.t_q);
		return l;
	}
	/* A sweep where a head is divided finely anyway and x is no more than the weights beside it. */
	if (parts > BASE_PARTS && s.n_head * s.n_out < INT32_MAX) {
		if (s.n_in <= SLAB && s.n_out % 2 == 0 && s.t_q <= 2)
			return s.t_q <= 1 ? product_sweep<1, 2, 1>(s, parts, room) : product_sweep<1, 2, 2>(s, parts, room);
		if (s.n_in > SLAB && s.n_in <= 2 * SLAB && s.t_q <= 1)
			return product_sweep<2, 1, 1>(s, parts, room);
	}
	return s.t_q <= 1   ? product_stream<1>(s, p, parts)
	       : s.t_q <= 2 ? product_stream<2>(s, p, parts)
	       : s.t_q <= 4 ? product_stream<4>(s, p, parts)
	                    : product_stream<8>(s, p, parts);
}

struct product_planned {
	product p; /* without its tensors */
	product_launch l;
};

/* *state: a product_planned, for product_run(), freed by product_finish(). */
int product_plan(const assay_call *call, const mla_head_shape &s, void **state)
{
	product_planned q = {};
	int room = 0;
	if (device_attribute(call, "head_product", cudaDevAttrMaxSharedMemoryPerMultiprocessor, &room) != 0)
		return -1;
	q.l = product_choose(s, &q.p, BASE_PARTS * (call->arm_arg > 0 ? call->arm_arg : 1), room);
	if (launch_allow(call, q.l.symbol, q.l.function) != 0 ||
	    launch_check(call, cudaFuncSetAttribute(q.l.function, cudaFuncAttributePreferredSharedMemoryCarveout, q.l.carveout),
	                 q.l.symbol) != 0)
		return -1;
	product_planned *kept = (product_planned *)malloc(sizeof *kept);
	if (kept == NULL)
		return launch_check(call, cudaErrorMemoryAllocation, q.l.symbol);
	*kept = q;
	*state = kept;
	return 0;
}

int product_run(const assay_call *call, void *state)
{
	const product_planned *q = (const product_planned *)state;
	product p = q->p;
	p.x = (const float *)call->tensor[MLA_HEAD_X];
	p.w = (const float *)call->tensor[MLA_HEAD_W];
	p.out = (float *)call->tensor[MLA_HEAD_OUT];
	void *args[] = {&p};
	return launch(call, q->l.symbol, q->l.function, q->l.grid, dim3(THREADS), q->l.smem, args);
}

void product_finish(void *state)
{
	free(state);
}

} // namespace

/* The device arms of mla.NAME: `shipped` launches four blocks a head, `split=N` four times N. With one token (or two and short rows) those
 * of a split sweep over the weights in the order of memory; with more they have an Nth of the rows each, and fewer blocks load
 * the tokens less often, which is worth most at eight. */
#define HEAD_PRODUCT_ARMS(NAME)												\
	static int plan(const assay_call *call, void **state)								\
	{														\
		return product_plan(call, mla_##NAME##_of(call->point), state);						\
	}														\
	extern "C" {													\
	extern const assay_arm_ops mla_##NAME##_cuda_shipped = {plan, product_run, product_finish, NULL, NULL};		\
	extern const assay_arm_ops mla_##NAME##_cuda_split = {plan, product_run, product_finish, NULL, NULL};		\
	}

#endif
