/* attn_merge: the groups of a token become one output, section 8 of attn_gathered.cu's story. */
#ifndef ASSAY_KERNELS_ATTN_MERGE_CUH
#define ASSAY_KERNELS_ATTN_MERGE_CUH

#include "attn_tiles.cuh"

namespace {

constexpr int MERGE_THREADS = 128;
constexpr int AHEAD = 16;

__device__ __forceinline__ void merge_in(float2 &x, float &total, float weight, float sum, const float2 &part)
{
	total = fmaf(weight, sum, total);
	x.x = fmaf(weight, part.x, x.x), x.y = fmaf(weight, part.y, x.y);
}

/* A part of a row (t, head) a block, 2 columns a thread; groups in rising order. Few registers, so that these blocks find room beside
 * those that they wait for; small code, since behind a scrub code comes from memory too. */
__global__ void __launch_bounds__(MERGE_THREADS) attn_merge(attn a)
{
	__shared__ float weight[MERGE_THREADS], sum[MERGE_THREADS], warp_most[MERGE_THREADS / 32];
	const int64_t row0 = (int64_t)blockIdx.y * a.groups * a.n_head + blockIdx.x;
	const int r = 2 * (blockIdx.z * MERGE_THREADS + threadIdx.x);
	wait_for_predecessor();

	/* All that the first groups need is asked for at once: their parts, and a group's maximum and sum by a thread each. */
	const float *at = a.part + row0 * a.kv_rank + (r < a.kv_rank ? r : 0);
	const int64_t step = (int64_t)a.n_head * a.kv_rank;
	float own_most = -INFINITY, own_sum = 0;
	float2 part[AHEAD];
	if (threadIdx.x < a.groups) {
		own_most = a.most[row0 + (int64_t)threadIdx.x * a.n_head];
		own_sum = a.sum[row0 + (int64_t)threadIdx.x * a.n_head];
	}
#pragma unroll
	for (int i = 0; i < AHEAD; i++)
		part[i] = i < a.groups ? *(const float2 *)(at + i * step) : make_float2(0, 0);

	float most = own_most;
	for (int g = threadIdx.x + MERGE_THREADS; g < a.groups; g += MERGE_THREADS)
		most = fmaxf(most, a.most[row0 + (int64_t)g * a.n_head]);
	for (int m = 16; m > 0; m >>= 1)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
	if (threadIdx.x % 32 == 0)
		warp_most[threadIdx.x / 32] = most;
	__syncthreads();
	for (int w = 0; w < MERGE_THREADS / 32; w++)
		most = fmaxf(most, warp_most[w]);

	float2 x = make_float2(0, 0);
	float total = 0;
	for (int g0 = 0; g0 < a.groups; g0 += MERGE_THREADS) {
		const int g = g0 + threadIdx.x, n = min(MERGE_THREADS, a.groups - g0);
		if (g0 > 0) {
			__syncthreads(); /* the weights before were used */
			own_most = g < a.groups ? a.most[row0 + (int64_t)g * a.n_head] : -INFINITY;
			own_sum = g < a.groups ? a.sum[row0 + (int64_t)g * a.n_head] : 0;
		}
		weight[threadIdx.x] = expf(own_most - most);
		sum[threadIdx.x] = own_sum;
		__syncthreads();
		int i = 0;
		if (g0 == 0) {
#pragma unroll
			for (; i < AHEAD; i++) /* past the last group: weight, sum and part are 0 */
				merge_in(x, total, weight[i], sum[i], part[i]);
		}
		for (; i < n; i++)
			merge_in(x, total, weight[i], sum[i], *(const float2 *)(at + (int64_t)(g0 + i) * step));
	}
	const float inverse = 1 / total;
	if (r < a.kv_rank)
		*(float2 *)(a.out + ((int64_t)blockIdx.y * a.n_head + blockIdx.x) * a.kv_rank + r) = make_float2(x.x * inverse, x.y * inverse);
}

} // namespace

#endif
