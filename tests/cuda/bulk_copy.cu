/* A ring of one stage between a thread that copies in bulk and the warps that read: the protocol of mmq.q8_0_wgmma, and nothing else. Readers
 * wait at `full`; when they have read, each warp arrives at `empty`, and the next copy waits there. `bulk_copy one`: one lane arrives for its
 * warp, behind a __syncwarp. `bulk_copy all`: every lane does. Both are right. What racecheck says of them says what its word about such
 * a kernel is worth (test_device.py). */
#include <cuda_runtime.h>
#include <stdint.h>
#include <string.h>

namespace {

constexpr int READERS = 128, N = READERS, ROUNDS = 3;

__device__ void barrier_wait(uint32_t bar, int parity)
{
	asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone:\n}" ::"r"(
			     bar),
	             "r"(parity)
	             : "memory");
}

template <bool ALL> __global__ void __launch_bounds__(READERS + 32) ring(const float *in, float *out)
{
	__shared__ __align__(16) float part[N];
	__shared__ __align__(8) uint64_t barrier[2];
	const uint32_t full = (uint32_t)__cvta_generic_to_shared(barrier), empty = full + 8;
	const uint32_t to = (uint32_t)__cvta_generic_to_shared(part);
	if (threadIdx.x == 0) {
		asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full) : "memory");
		asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(empty), "r"(ALL ? READERS : READERS / 32) : "memory");
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	__syncthreads();
	for (int k = 0; k < ROUNDS; k++) {
		if (threadIdx.x == READERS) {
			barrier_wait(empty, k % 2 ^ 1);
			asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"((int)sizeof part) : "memory");
			asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
			             "l"(in + k * N), "r"((int)sizeof part), "r"(full)
			             : "memory");
		}
		if (threadIdx.x >= READERS)
			continue;
		barrier_wait(full, k % 2);
		out[k * N + threadIdx.x] = part[N - 1 - threadIdx.x];
		__syncwarp();
		if (ALL || threadIdx.x % 32 == 0)
			asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(empty) : "memory");
	}
}

} // namespace

/* 0: what was read is what was copied. 1: it is not. 2: no such device, or an error of it. */
int main(int argc, char **argv)
{
	static float host[ROUNDS * N];
	const bool all = argc > 1 && strcmp(argv[1], "all") == 0;
	float *in, *out;
	for (int i = 0; i < ROUNDS * N; i++)
		host[i] = (float)i;
	if (cudaMalloc(&in, sizeof host) != cudaSuccess || cudaMalloc(&out, sizeof host) != cudaSuccess ||
	    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice) != cudaSuccess)
		return 2;
	if (all)
		ring<true><<<1, READERS + 32>>>(in, out);
	else
		ring<false><<<1, READERS + 32>>>(in, out);
	if (cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess)
		return 2;
	for (int i = 0; i < ROUNDS * N; i++)
		if (host[i] != (float)(i / N * N + N - 1 - i % N))
			return 1;
	return 0;
}
