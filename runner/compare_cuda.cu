/* Outputs are compared where they lie: bringing them to the host takes a hundred times as long. Bytes are compared, never numbers: NaN is
 * equal to itself, and -0 is not 0. */
#include <cuda_runtime.h>
#include <string.h>

#include "compare_cuda.h"

namespace {

constexpr int THREADS = 256, VECTORS = 4; /* loads in flight of each side */
constexpr int BLOCKS_MOST = 4096, RANGE_BLOCKS = 16;

/* found[0]: how many bytes differ, found[1]: the first of them. */
__device__ void tell(unsigned long long *found, uint64_t differ, uint64_t first)
{
	if (differ) {
		atomicAdd(&found[0], (unsigned long long)differ);
		atomicMin(&found[1], (unsigned long long)first);
	}
}

__device__ void look(uint32_t a, uint32_t b, uint64_t at, uint64_t *differ, uint64_t *first)
{
	for (int k = 0; k < 4; k++)
		if ((a ^ b) >> 8 * k & 0xff) {
			++*differ;
			*first = at + k < *first ? at + k : *first;
		}
}

__device__ bool same(uint4 a, uint4 b)
{
	return ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w)) == 0;
}

__global__ void __launch_bounds__(THREADS) compare_bytes(const unsigned char *x, const unsigned char *y, size_t bytes,
							 unsigned long long *found)
{
	const uint4 *p = (const uint4 *)x, *q = (const uint4 *)y;
	const int64_t n = (int64_t)(bytes / 16), stride = gridDim.x * (int64_t)THREADS,
		      self = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	uint64_t differ = 0, first = UINT64_MAX;

	for (int64_t from = self; from < n; from += VECTORS * stride) {
		uint4 a[VECTORS] = {}, b[VECTORS] = {};
#pragma unroll
		for (int k = 0; k < VECTORS; k++)
			if (from + k * stride < n) {
				a[k] = p[from + k * stride];
				b[k] = q[from + k * stride];
			}
#pragma unroll
		for (int k = 0; k < VECTORS; k++) {
			const uint64_t at = 16 * (uint64_t)(from + k * stride);
			if (same(a[k], b[k]))
				continue;
			look(a[k].x, b[k].x, at, &differ, &first);
			look(a[k].y, b[k].y, at + 4, &differ, &first);
			look(a[k].z, b[k].z, at + 8, &differ, &first);
			look(a[k].w, b[k].w, at + 12, &differ, &first);
		}
	}
	/* What is left behind the last whole vector. */
	for (size_t i = 16 * (size_t)n + (size_t)self; i < bytes; i += (size_t)stride)
		look(x[i], y[i], i, &differ, &first);
	tell(found, differ, first);
}

struct ranges {
	scan_range range[BACKEND_RANGES];
};

/* RANGE_BLOCKS blocks a range. */
__global__ void __launch_bounds__(THREADS) scan_ranges(ranges all, unsigned long long *found)
{
	const scan_range &r = all.range[blockIdx.x / RANGE_BLOCKS];
	const uint32_t *p = (const uint32_t *)r.at;
	const size_t n = r.bytes / 4, stride = RANGE_BLOCKS * (size_t)THREADS;
	bool differ = false;

	for (size_t i = blockIdx.x % RANGE_BLOCKS * (size_t)THREADS + threadIdx.x; i < n; i += stride)
		differ = differ || p[i] != r.word;
	if (differ)
		atomicAdd(found, 1ull);
}

} // namespace

extern "C" {

int compare_cuda_bytes(const void *x, const void *y, size_t bytes, uint64_t *scratch, void *stream, int64_t *n_differ,
		       int64_t *first)
{
	const cudaStream_t queue = (cudaStream_t)stream;
	const size_t per_block = 16 * (size_t)THREADS * VECTORS, want = (bytes + per_block - 1) / per_block;
	const unsigned blocks = (unsigned)(want < 1 ? 1 : want < BLOCKS_MOST ? want : BLOCKS_MOST);
	uint64_t found[2] = {0, UINT64_MAX};
	cudaError_t e = cudaMemcpyAsync(scratch, found, sizeof found, cudaMemcpyHostToDevice, queue);
	if (e == cudaSuccess && bytes > 0) {
		compare_bytes<<<blocks, THREADS, 0, queue>>>((const unsigned char *)x, (const unsigned char *)y, bytes,
							     (unsigned long long *)scratch);
		e = cudaGetLastError();
	}
	if (e == cudaSuccess)
		e = cudaMemcpyAsync(found, scratch, sizeof found, cudaMemcpyDeviceToHost, queue);
	if (e == cudaSuccess)
		e = cudaStreamSynchronize(queue);
	*n_differ = (int64_t)found[0];
	*first = found[0] > 0 ? (int64_t)found[1] : -1;
	return e;
}

int compare_cuda_ranges(const struct scan_range *range, int n, uint64_t *scratch, void *stream, bool *intact)
{
	const cudaStream_t queue = (cudaStream_t)stream;
	ranges all;
	uint64_t found = 1;

	*intact = false;
	if (n > BACKEND_RANGES)
		return cudaErrorInvalidValue;
	memset(&all, 0, sizeof all);
	memcpy(all.range, range, (size_t)n * sizeof *range);
	cudaError_t e = cudaMemsetAsync(scratch, 0, sizeof found, queue);
	if (e == cudaSuccess && n > 0) {
		scan_ranges<<<(unsigned)n * RANGE_BLOCKS, THREADS, 0, queue>>>(all, (unsigned long long *)scratch);
		e = cudaGetLastError();
	}
	if (e == cudaSuccess)
		e = cudaMemcpyAsync(&found, scratch, sizeof found, cudaMemcpyDeviceToHost, queue);
	if (e == cudaSuccess)
		e = cudaStreamSynchronize(queue);
	*intact = e == cudaSuccess && found == 0;
	return e;
}

} // extern "C"
