/* The fixed work of the harness: scrub, sentinels, probes. In PTX where it is timed, so that no compiler moves it. */
#include <cuda_runtime.h>

#include "cuda_work.h"

namespace {

constexpr int THREADS = 256;

cudaStream_t queue(void *stream)
{
	return (cudaStream_t)stream;
}

/* Blocks for n items, at most a few waves: kernels stride. */
unsigned blocks_for(int64_t n, int64_t per_block = THREADS)
{
	const int64_t b = (n + per_block - 1) / per_block;
	return (unsigned)(b < 1 ? 1 : b < 4096 ? b : 4096);
}

/* In PTX, so that what is timed does not move with the compiler's mood; ptxas still chooses registers. */
__device__ __forceinline__ float4 load_16(const float4 *p)
{
	float4 v;
	asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p) : "memory");
	return v;
}

__device__ __forceinline__ void store_16(float4 *p, float4 v)
{
	asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}

__global__ void __launch_bounds__(512) work_copy(const float4 *a, float4 *b, size_t n)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x)
		store_16(b + i, load_16(a + i));
}

__global__ void __launch_bounds__(512) work_read(const float4 *a, size_t n, unsigned *sink)
{
	unsigned x = 0;
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x) {
		const float4 v = load_16(a + i);
		x ^= __float_as_uint(v.x) ^ __float_as_uint(v.y) ^ __float_as_uint(v.z) ^ __float_as_uint(v.w);
	}
	if (x == 0x9E3779B9u) /* hardly ever: the compiler cannot know */
		*sink = x;
}

__global__ void work_null(void)
{
}

constexpr int CHAINS = 8;

__global__ void __launch_bounds__(THREADS) work_matrix_bf16(int iterations, float *sink)
{
	float d[CHAINS][4] = {};
	const unsigned a = 0x3f803f80u + threadIdx.x, b = 0x3f813f7fu ^ threadIdx.x; /* pairs of bf16 near 1 */
	for (int i = 0; i < iterations; i++)
#pragma unroll
		for (int c = 0; c < CHAINS; c++)
			asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, "
				     "{%0,%1,%2,%3};"
				     : "+f"(d[c][0]), "+f"(d[c][1]), "+f"(d[c][2]), "+f"(d[c][3])
				     : "r"(a), "r"(b));
	float s = 0;
	for (int c = 0; c < CHAINS; c++)
		s += d[c][0] + d[c][1] + d[c][2] + d[c][3];
	if (s == 12345.678f)
		*sink = s;
}

__global__ void __launch_bounds__(THREADS) work_matrix_s8(int iterations, int *sink)
{
	int d[CHAINS][4] = {};
	const unsigned a = 0x01020304u * (threadIdx.x + 1), b = 0x05060708u ^ threadIdx.x;
	for (int i = 0; i < iterations; i++)
#pragma unroll
		for (int c = 0; c < CHAINS; c++)
			asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, "
				     "{%0,%1,%2,%3};"
				     : "+r"(d[c][0]), "+r"(d[c][1]), "+r"(d[c][2]), "+r"(d[c][3])
				     : "r"(a), "r"(b));
	int s = 0;
	for (int c = 0; c < CHAINS; c++)
		s ^= d[c][0] ^ d[c][1] ^ d[c][2] ^ d[c][3];
	if (s == 0x12345678)
		*sink = s;
}

/* i -> (a i + c) mod 2^k runs through all of them in one cycle (a = 1 mod 4, c odd), far apart. */
__global__ void __launch_bounds__(THREADS) work_chain_make(uint32_t *chain, uint32_t n)
{
	for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
		chain[i] = (i * 2654435761u + 12345u) & (n - 1);
}

__global__ void work_chain_walk(const uint32_t *chain, uint32_t steps, uint32_t *sink)
{
	uint32_t at = 0;
	for (uint32_t i = 0; i < steps; i++)
		asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(chain + at) : "memory");
	if (at == 0xffffffffu)
		*sink = at;
}

/* Lines of 128 bytes in WALKERS parts; in each, the first word of a line is the next line, all of them in one cycle. A walker waits
 * for each line before it asks for the next: time is latency, which is what a cache is about, and no prefetcher helps. */
constexpr int LINE_WORDS = 32, WALKERS = 64;

__global__ void __launch_bounds__(THREADS) work_lines_make(uint32_t *lines, uint32_t part)
{
	for (uint32_t i = threadIdx.x; i < part; i += THREADS)
		lines[((uint64_t)blockIdx.x * part + i) * LINE_WORDS] = (i * 2654435761u + 12345u) & (part - 1);
}

__global__ void work_lines_walk(const uint32_t *lines, uint32_t part, uint32_t *sink)
{
	const uint32_t *own = lines + (uint64_t)blockIdx.x * part * LINE_WORDS;
	uint32_t at = 0;
	for (uint32_t i = 0; i < part; i++)
		asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(own + (uint64_t)at * LINE_WORDS) : "memory");
	if (at == 0xffffffffu) /* never: a walk ends where it began */
		*sink = at;
}

/* Lines of a part: a power of two. */
uint32_t part_of(size_t bytes)
{
	uint32_t part = 1;
	while ((size_t)part * 2 * WALKERS * LINE_WORDS * 4 <= bytes)
		part *= 2;
	return part;
}

} // namespace

extern "C" {

int cuda_work_copy(const void *a, void *b, size_t bytes, void *stream)
{
	work_copy<<<blocks_for((int64_t)(bytes / 16), 8 * 512), 512, 0, queue(stream)>>>((const float4 *)a, (float4 *)b, bytes / 16);
	return cudaGetLastError();
}

int cuda_work_read(const void *a, size_t bytes, void *sink, void *stream)
{
	work_read<<<blocks_for((int64_t)(bytes / 16), 2 * 512), 512, 0, queue(stream)>>>((const float4 *)a, bytes / 16,
										     (unsigned *)sink);
	return cudaGetLastError();
}

int cuda_work_lines_make(void *lines, size_t bytes, void *stream)
{
	work_lines_make<<<WALKERS, THREADS, 0, queue(stream)>>>((uint32_t *)lines, part_of(bytes));
	return cudaGetLastError();
}

int cuda_work_lines_walk(const void *lines, size_t bytes, void *sink, void *stream)
{
	work_lines_walk<<<WALKERS, 1, 0, queue(stream)>>>((const uint32_t *)lines, part_of(bytes), (uint32_t *)sink);
	return cudaGetLastError();
}

int cuda_work_null(void *stream)
{
	work_null<<<1, 32, 0, queue(stream)>>>();
	return cudaGetLastError();
}

int cuda_work_matrix(bool integer, int iterations, int multiprocessors, void *sink, void *stream, double *ops)
{
	const unsigned blocks = 4u * (unsigned)multiprocessors;
	if (integer)
		work_matrix_s8<<<blocks, THREADS, 0, queue(stream)>>>(iterations, (int *)sink);
	else
		work_matrix_bf16<<<blocks, THREADS, 0, queue(stream)>>>(iterations, (float *)sink);
	*ops = 2.0 * 16 * 8 * (integer ? 32 : 16) * CHAINS * iterations * (THREADS / 32) * blocks;
	return cudaGetLastError();
}

int cuda_work_chain_make(uint32_t *chain, uint32_t n, void *stream)
{
	work_chain_make<<<blocks_for(n), THREADS, 0, queue(stream)>>>(chain, n);
	return cudaGetLastError();
}

int cuda_work_chain_walk(const uint32_t *chain, uint32_t steps, void *sink, void *stream)
{
	work_chain_walk<<<1, 1, 0, queue(stream)>>>(chain, steps, (uint32_t *)sink);
	return cudaGetLastError();
}

} // extern "C"
