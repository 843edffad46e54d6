/* The device arms of probe.rate: one form of matrix instruction a kernel, in chains that do not wait for each other, on one
 * multiprocessor. The clock is the multiprocessor's own, so neither its frequency nor the launch matters. */
#include <stdint.h>

#include "../mla/launch.cuh"
#include "rate.h"

namespace
{

enum form { MMA_S8, MMA_E4M3, MMA_E4M3_BS, WGMMA_S8, WGMMA_E4M3 };

constexpr int THREADS = 256; /* two warps on each sub-partition, two warpgroups */
constexpr int WARPS = THREADS / 32 / 4;
constexpr int MMA_CHAINS = 8;
constexpr int OPERAND_BYTES = 2048; /* 64 rows of 32 bytes, b of wgmma */

template <bool S8> struct accumulator {
	using type = int;
};
template <> struct accumulator<false> {
	using type = float;
};

template <form F> struct is {
	static constexpr bool s8 = F == MMA_S8 || F == WGMMA_S8, wg = F == WGMMA_S8 || F == WGMMA_E4M3;
	static constexpr int chains = wg ? 1 : MMA_CHAINS, regs = wg ? 32 : 4;
	using type = typename accumulator<s8>::type;
	static constexpr uint32_t ones = s8 ? 0x01010101u : 0x38383838u;
};

#define OPERANDS "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}"
#define BOUND(c) : c(d[0]), c(d[1]), c(d[2]), c(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])

/* d += a b over 32 k. */
template <form F> __device__ __forceinline__ void mma(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
	asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 " OPERANDS ";" BOUND("+r"));
}

template <form F> __device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1200
	if constexpr (F == MMA_E4M3)
		asm volatile("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e4m3.f32 " OPERANDS
			     ";" BOUND("+f"));
	else /* the byte 127 is a scale of 1 */
		asm volatile("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3."
			     "f32.ue8m0 " OPERANDS ", {%10}, {%11,%11}, {%10}, {%11,%11};" BOUND("+f"),
			     "r"(0x7F7F7F7Fu), "h"((unsigned short)0));
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
	asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 " OPERANDS ";" BOUND("+f"));
#else
	d[0] = __int_as_float(0x7FC00000); /* not on this architecture: the arm is refused before */
#endif
}

#define FOUR(c, d, i) c((d)[i]), c((d)[i + 1]), c((d)[i + 2]), c((d)[i + 3])
#define SIXTEEN(c, d, i) FOUR(c, d, i), FOUR(c, d, i + 4), FOUR(c, d, i + 8), FOUR(c, d, i + 12)
#define ALL(c, d) SIXTEEN(c, d, 0), SIXTEEN(c, d, 16)
#define REGISTERS                                                                                                      \
	"{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%" \
	"29,%30,%31}"
#define WGMMA(types, tail, bind)                                                                                       \
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                                      \
		     "wgmma.mma_async.sync.aligned.m64n64k32." types " " REGISTERS ", {%32,%33,%34,%35}, %36, p" tail  \
		     ";\n}"                                                                                            \
		     : ALL(bind, d)                                                                                    \
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add))

/* The first of a chain starts from zero. a in registers, as the arms have it. */
__device__ __forceinline__ void wgmma(int (&d)[32], const uint32_t (&a)[4], uint64_t b, int add)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
	WGMMA("s32.s8.s8", "", "+r");
#endif
}

__device__ __forceinline__ void wgmma(float (&d)[32], const uint32_t (&a)[4], uint64_t b, int add)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
	WGMMA("f32.e4m3.e4m3", ", 1, 1", "+f");
#endif
}

__device__ __forceinline__ void wgmma_wait(int (&d)[32])
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
	asm volatile("wgmma.wait_group.sync.aligned 0;" : ALL("+r", d)::"memory");
#endif
}

__device__ __forceinline__ void wgmma_wait(float (&d)[32])
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
	asm volatile("wgmma.wait_group.sync.aligned 0;" : ALL("+f", d)::"memory");
#endif
}

/* Core matrices of 8 rows by 16 bytes, 128 bytes apart in k and 256 in rows, no swizzle. */
__device__ __forceinline__ uint64_t descriptor(const void *p)
{
	const uint64_t at = (uint64_t)__cvta_generic_to_shared(p);
	return (at & 0x3FFFF) >> 4 | (uint64_t)(128 >> 4) << 16 | (uint64_t)(256 >> 4) << 32;
}

/* Batches that are waited for, in which each adds to the accumulators of the one before, as in a kernel that walks k. The other warpgroup
 * covers the wait. */
template <form F, typename T>
__device__ __forceinline__ void issue(T (&acc)[1][32], const uint32_t *operands, int iters, uint32_t zero)
{
	const uint64_t b = descriptor(operands);
	uint32_t a[4];
	for (int k = 0; k < 4; k++)
		a[k] = operands[k];
	for (int i = 0; i < iters; i += RATE_BATCH) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
		asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
#pragma unroll
		for (int k = 0; k < RATE_BATCH; k++)
			wgmma(acc[0], a, b, (i + k) % RATE_WRAP);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
		asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
		wgmma_wait(acc[0]);
	}
}

/* One a for all chains of a pass, as a kernel holds one fragment against several. Where the instruction is emulated the assembler sees what it
 * is made of, and would multiply once for equal operands, or once before the loop: so each chain has a b of its own, and a may change from
 * pass to pass (zero is 0, which it cannot know). */
template <form F, typename T>
__device__ __forceinline__ void issue(T (&acc)[MMA_CHAINS][4], const uint32_t *operands, int iters, uint32_t zero)
{
	uint32_t a[4], b[MMA_CHAINS][2];
	for (int k = 0; k < 4; k++)
		a[k] = operands[(threadIdx.x * 4 + k) % (OPERAND_BYTES / 4)];
	for (int c = 0; c < MMA_CHAINS; c++)
		for (int k = 0; k < 2; k++)
			b[c][k] = operands[(threadIdx.x * 2 + c * 64 + k) % (OPERAND_BYTES / 4)];
	for (int i = 0; i < iters; i++) {
		if (i % RATE_WRAP == 0)
			for (int c = 0; c < MMA_CHAINS; c++)
				for (int r = 0; r < 4; r++)
					acc[c][r] = 0;
		for (int k = 0; k < 4; k++)
			a[k] ^= zero;
#pragma unroll
		for (int c = 0; c < MMA_CHAINS; c++)
			mma<F>(acc[c], a, b[c]);
	}
}

template <form F>
__global__ void __launch_bounds__(THREADS, 1) probe_rate(float *out, rate_result *result, int iters, uint32_t zero)
{
	__shared__ __align__(1024) uint32_t operands[OPERAND_BYTES / 4];
	typename is<F>::type acc[is<F>::chains][is<F>::regs];
	for (int i = threadIdx.x; i < OPERAND_BYTES / 4; i += THREADS)
		operands[i] = is<F>::ones;
	for (int c = 0; c < is<F>::chains; c++)
		for (int r = 0; r < is<F>::regs; r++)
			acc[c][r] = 0;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
	__syncthreads();
	issue<F>(acc, operands, RATE_BATCH, zero); /* the code is in the instruction cache, the pipes are awake */
	__syncthreads();
	const long long from = clock64();
	issue<F>(acc, operands, iters, zero);
	__syncthreads();
	const long long to = clock64();
	bool same = true;
	for (int c = 0; c < is<F>::chains; c++)
		for (int r = 0; r < is<F>::regs; r++)
			same &= acc[c][r] == acc[0][0];
	if (threadIdx.x < RATE_LANES)
		out[threadIdx.x] = same ? (float)acc[0][0] : __int_as_float(0x7FC00000);
	if (threadIdx.x == 0)
		*result = rate_result{(double)(to - from), (double)iters * is<F>::chains * WARPS};
}

template <form F> int run(const assay_call *call, void *state)
{
	int iters = (int)call->point->v[RATE_ITERS].i;
	uint32_t zero = 0;
	void *out = call->tensor[RATE_OUT], *result = call->workspace;
	void *args[] = {&out, &result, &iters, &zero};
	return launch(call, "probe_rate", (const void *)probe_rate<F>, dim3(1), dim3(THREADS), 0, args);
}

size_t workspace(const assay_point *, int64_t)
{
	return sizeof(rate_result);
}

} // namespace

extern "C" {
extern const assay_arm_ops probe_rate_cuda_mma_s8 = {NULL, run<MMA_S8>, NULL, workspace, NULL};
extern const assay_arm_ops probe_rate_cuda_mma_e4m3 = {NULL, run<MMA_E4M3>, NULL, workspace, NULL};
extern const assay_arm_ops probe_rate_cuda_mma_e4m3_bs = {NULL, run<MMA_E4M3_BS>, NULL, workspace, NULL};
extern const assay_arm_ops probe_rate_cuda_wgmma_s8 = {NULL, run<WGMMA_S8>, NULL, workspace, NULL};
extern const assay_arm_ops probe_rate_cuda_wgmma_e4m3 = {NULL, run<WGMMA_E4M3>, NULL, workspace, NULL};
}
