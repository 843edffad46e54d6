/* fragments: the matrix instruction of both device kernels of mmq.q8_0, with what its operands come from and its sums go to. */
#ifndef ASSAY_KERNELS_MMQ_FRAGMENTS_CUH
#define ASSAY_KERNELS_MMQ_FRAGMENTS_CUH

#include "device.cuh"

namespace
{

constexpr uint32_t START = 0x4B400000; /* 12582912.0f */

struct acc {
	uint32_t r[4]; /* s32 or f32 bits: rows lane/4 and lane/4 + 8, columns 2 (lane % 4) and the next */
};

/* d = a * b over 32 k, from the arm's start value. A is 16 x 32 of the tokens, B is 32 x 8 of the weights. */
template <mmq_arm ARM> __device__ __forceinline__ acc mma(const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
	/* -0: what is added to a sum and leaves it as it is. (+0 would turn -0 into +0, so an emulation could not leave it out.) */
	[[maybe_unused]] constexpr float NOTHING = -0.0f;
	acc d;
	if constexpr (ARM == MMQ_S32) {
		asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
			     "{%10,%10,%10,%10};"
			     : "=r"(d.r[0]), "=r"(d.r[1]), "=r"(d.r[2]), "=r"(d.r[3])
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(START));
	} else {
#if __CUDA_ARCH__ >= 1200
		if constexpr (ARM == MMQ_F32_BS)
			/* Scales of 2^0 (ue8m0 127), one for each row and column. */
			asm volatile("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32."
				     "e4m3.e4m3.f32."
				     "ue8m0 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10}, {%11}, "
				     "{%12,%12}, {%11}, "
				     "{%12,%12};"
				     : "=r"(d.r[0]), "=r"(d.r[1]), "=r"(d.r[2]), "=r"(d.r[3])
				     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(NOTHING),
				       "r"(0x7F7F7F7F), "h"((uint16_t)0));
		else
			asm volatile("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, "
				     "{%4,%5,%6,%7}, "
				     "{%8,%9}, {%10,%10,%10,%10};"
				     : "=r"(d.r[0]), "=r"(d.r[1]), "=r"(d.r[2]), "=r"(d.r[3])
				     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(NOTHING));
#elif __CUDA_ARCH__ >= 890
		asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
			     "{%8,%9}, "
			     "{%10,%10,%10,%10};"
			     : "=r"(d.r[0]), "=r"(d.r[1]), "=r"(d.r[2]), "=r"(d.r[3])
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(NOTHING));
#endif
	}
	return d;
}

/* Whether the arm can be compiled for this architecture; its kernel is a trap elsewhere. */
template <mmq_arm ARM> __device__ constexpr bool exists()
{
#if __CUDA_ARCH__ >= 1200
	return true;
#elif __CUDA_ARCH__ >= 890
	return ARM != MMQ_F32_BS;
#else
	return ARM == MMQ_S32;
#endif
}

/* A block's sum times the scale of w. less = -scale * 1.5 * 2^23 for s32. */
template <mmq_arm ARM> __device__ __forceinline__ float scaled(uint32_t r, float scale, float less)
{
	if constexpr (ARM == MMQ_S32)
		return __fmaf_rn(__uint_as_float(r), scale, less);
	else
		return __fmul_rn(__uint_as_float(r), scale);
}

__device__ __forceinline__ void load_fragments(uint32_t (&r)[4], uint32_t address)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(address));
}

} // namespace

#endif
