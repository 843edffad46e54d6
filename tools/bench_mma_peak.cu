/* bench_mma_peak: what mma.sync m16n8k32 s8 does at most on this device when nothing else is to be done, by what its operands are. A full grid of
 * 16 warps a multiprocessor, eight independent chains a warp, operands in registers; nothing is loaded or stored in the loop.
 *
 *   nvcc -O3 -std=c++17 -arch=native tools/bench_mma_peak.cu -o bench_mma_peak && ./bench_mma_peak [REPS]
 *
 * zeros, random: the bytes of both operands. start: each sum begins anew from constant registers, as in mmq.q8_0; in place: it adds to what is there.
 * TOP/s by device events over the whole grid; cycles a warp-MMA of each scheduler by the multiprocessor's clock, and that clock beside the global
 * timer: the MHz at which it ran while it did this, which nvidia-smi's samples need not show. */
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(x)                                                                                                       \
	do {                                                                                                           \
		const cudaError_t e_ = (x);                                                                            \
		if (e_ != cudaSuccess) {                                                                               \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));                      \
			exit(3);                                                                                       \
		}                                                                                                      \
	} while (0)

constexpr int WARPS = 16, CHAINS = 8, PASSES = 8192;

struct seen {
	long long cycles, ns;
};

__device__ uint32_t mixed(uint32_t x)
{
	x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
	return x ^ x >> 16;
}

__device__ long long nanoseconds()
{
	long long t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

template <bool START> __global__ void __launch_bounds__(32 * WARPS) peak(uint32_t mask, int *sink, seen *at)
{
	const uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t a[4], b[CHAINS][2];
	int d[CHAINS][4] = {};
	const int start = 0x4B400000;
	for (int i = 0; i < 4; i++)
		a[i] = mixed(id * 16 + i) & mask;
	for (int c = 0; c < CHAINS; c++)
		for (int i = 0; i < 2; i++)
			b[c][i] = mixed(id * 16 + 4 + c * 2 + i + 0x9E3779B9u) & mask;
	const long long t0 = nanoseconds(), c0 = clock64();
#pragma unroll 1
	for (int n = 0; n < PASSES; n++) {
#pragma unroll
		for (int c = 0; c < CHAINS; c++)
			if (START)
				asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
					     "{%8,%9}, {%10,%10,%10,%10};"
					     : "=r"(d[c][0]), "=r"(d[c][1]), "=r"(d[c][2]), "=r"(d[c][3])
					     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[c][0]), "r"(b[c][1]), "r"(start));
			else
				asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
					     "{%8,%9}, {%0,%1,%2,%3};"
					     : "+r"(d[c][0]), "+r"(d[c][1]), "+r"(d[c][2]), "+r"(d[c][3])
					     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[c][0]), "r"(b[c][1]));
		if (n % 4 == 3) { /* other bytes, as a kernel that loads them has: a rotation keeps their number */
#pragma unroll
			for (int i = 0; i < 4; i++)
				a[i] = __funnelshift_l(a[i], a[i], 8);
		}
	}
	const long long c1 = clock64(), t1 = nanoseconds();
	int sum = 0;
	for (int c = 0; c < CHAINS; c++)
		for (int i = 0; i < 4; i++)
			sum += d[c][i];
	if (sum == 0x7fffffff)
		*sink = sum;
	if (threadIdx.x == 0)
		at[blockIdx.x] = {c1 - c0, t1 - t0};
}

template <bool START> static void measure(const char *what, uint32_t mask, int blocks, int reps, int *sink, seen *at)
{
	cudaEvent_t from, to;
	CHECK(cudaEventCreate(&from));
	CHECK(cudaEventCreate(&to));
	std::vector<float> ms;
	std::vector<seen> all((size_t)blocks);
	for (int r = 0; r < reps + 2; r++) {
		CHECK(cudaEventRecord(from));
		peak<START><<<blocks, 32 * WARPS>>>(mask, sink, at);
		CHECK(cudaGetLastError());
		CHECK(cudaEventRecord(to));
		CHECK(cudaEventSynchronize(to));
		float t = 0;
		CHECK(cudaEventElapsedTime(&t, from, to));
		if (r >= 2)
			ms.push_back(t);
	}
	CHECK(cudaMemcpy(all.data(), at, all.size() * sizeof(seen), cudaMemcpyDeviceToHost));
	std::nth_element(ms.begin(), ms.begin() + (ptrdiff_t)ms.size() / 2, ms.end());
	const double t = ms[ms.size() / 2], products = (double)blocks * WARPS * CHAINS * PASSES;
	double cycles = 0, mhz = 0;
	for (const seen &s : all) {
		cycles += (double)s.cycles / (WARPS / 4 * CHAINS * (double)PASSES) / blocks;
		mhz += (double)s.cycles / (double)s.ns * 1e3 / blocks;
	}
	printf("%-22s %8.1f TOP/s  %.3f ms  %5.2f cycles a warp-MMA  %6.0f MHz\n", what, products * 16 * 8 * 32 * 2 / (t * 1e9), t,
	       cycles, mhz);
	CHECK(cudaEventDestroy(from));
	CHECK(cudaEventDestroy(to));
}

int main(int argc, char **argv)
{
	const int reps = argc > 1 ? atoi(argv[1]) : 21;
	int device = 0, blocks = 0, *sink = NULL;
	seen *at = NULL;
	CHECK(cudaGetDevice(&device));
	CHECK(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, device));
	CHECK(cudaMalloc(&sink, sizeof *sink));
	CHECK(cudaMalloc(&at, sizeof *at * (size_t)blocks));
	measure<true>("zeros, start", 0, blocks, reps, sink, at);
	measure<false>("zeros, in place", 0, blocks, reps, sink, at);
	measure<true>("random, start", 0xFFFFFFFF, blocks, reps, sink, at);
	measure<false>("random, in place", 0xFFFFFFFF, blocks, reps, sink, at);
	measure<true>("zeros, start", 0, blocks, reps, sink, at);
	measure<true>("random, start", 0xFFFFFFFF, blocks, reps, sink, at);
	CHECK(cudaFree(at));
	CHECK(cudaFree(sink));
	return 0;
}
