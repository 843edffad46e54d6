/* attn_plain: attn_gathered for shapes that the tiles do not fit, section 1 of attn_gathered.cu's story. */
#ifndef ASSAY_KERNELS_ATTN_PLAIN_CUH
#define ASSAY_KERNELS_ATTN_PLAIN_CUH

#include "attn_tiles.cuh"

namespace {

/* For shapes that the tiles below do not fit. Three launches: scores, softmax, sum; each element is one chain, so blocks may be
 * divided at will. Grid: (parts, n_head, t_q). */
__global__ void __launch_bounds__(THREADS) attn_plain_scores(attn a)
{
	const int lane = threadIdx.x % 32, h = blockIdx.y;
	const int64_t th = (int64_t)blockIdx.z * a.n_head + h;
	const float *q = a.q_lat + th * a.kv_rank, *pe = a.q_pe + th * a.d_rope;
	for (int j = blockIdx.x * WARPS + threadIdx.x / 32; j < a.n_slots; j += gridDim.x * WARPS) {
		const float *row = a.cache + (int64_t)a.idx[(int64_t)blockIdx.z * a.n_slots + j] * a.width;
		float dot = 0;
		for (int k = lane; k < a.kv_rank; k += 32)
			dot = fmaf(q[k], row[k], dot);
		for (int k = lane; k < a.d_rope; k += 32)
			dot = fmaf(pe[k], row[a.kv_rank + k], dot);
		for (int m = 16; m > 0; m >>= 1)
			dot += __shfl_xor_sync(~0u, dot, m);
		if (lane == 0)
			a.part[th * a.n_slots + j] = dot * a.scale;
	}
}

/* A warp a row; grid: (1, n_head, t_q), one warp a block. */
__global__ void __launch_bounds__(32) attn_plain_softmax(attn a)
{
	const int lane = threadIdx.x;
	const int64_t th = (int64_t)blockIdx.z * a.n_head + blockIdx.y;
	float *s = a.part + th * a.n_slots, most = -INFINITY, sum = 0;
	for (int j = lane; j < a.n_slots; j += 32)
		most = fmaxf(most, s[j]);
	for (int m = 16; m > 0; m >>= 1)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
	for (int j = lane; j < a.n_slots; j += 32) {
		s[j] = expf(s[j] - most);
		sum += s[j];
	}
	for (int m = 16; m > 0; m >>= 1)
		sum += __shfl_xor_sync(~0u, sum, m);
	if (lane == 0)
		a.sum[th] = sum;
}

/* A column a thread. Sixteen chains of every sixteenth slot, for accuracy and to have loads in flight. */
__global__ void __launch_bounds__(THREADS) attn_plain_gather(attn a)
{
	const int64_t th = (int64_t)blockIdx.z * a.n_head + blockIdx.y;
	const float *p = a.part + th * a.n_slots;
	const int *idx = a.idx + (int64_t)blockIdx.z * a.n_slots;
	for (int r = blockIdx.x * THREADS + threadIdx.x; r < a.kv_rank; r += gridDim.x * THREADS) {
		float acc[16] = {};
		for (int j = 0; j < a.n_slots; j += 16)
#pragma unroll
			for (int i = 0; i < 16; i++)
				if (j + i < a.n_slots)
					acc[i] = fmaf(p[j + i], a.cache[(int64_t)idx[j + i] * a.width + r], acc[i]);
#pragma unroll
		for (int n = 8; n > 0; n >>= 1)
#pragma unroll
			for (int i = 0; i < n; i++)
				acc[i] += acc[i + n];
		a.out[th * a.kv_rank + r] = acc[0] / a.sum[th];
	}
}

} // namespace

#endif
