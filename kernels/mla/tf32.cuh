/* tf32: a f32 product on matrix units. In tf32 they have 11 bits, and a f32 number is the sum of two such numbers and a rest of 2^-22; so
 * three products of halves (the fourth is as small as the rest) are as good as f32 needs, at a third of several hundred TFLOP/s. */
#ifndef ASSAY_KERNELS_TF32_CUH
#define ASSAY_KERNELS_TF32_CUH

#include <cuda_runtime.h>

namespace {

/* x = high + low + rest, both with 11 bits, |rest| <= 2^-22 |x|. The unit itself drops the 13 bits under them. */
struct halves {
	unsigned high, low;
};

__device__ __forceinline__ halves split_f32(float x)
{
	halves s;
	s.high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
	s.low = __float_as_uint(x - __uint_as_float(s.high));
	return s;
}

__device__ __forceinline__ float part_of(const float4 &v, int i)
{
	return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/* d += a b of a 16 x 8 and an 8 x 8 tile. With g = lane / 4, c = lane % 4 a lane holds
 * a: (g, c) (g+8, c) (g, c+4) (g+8, c+4)   b: (c, g) (c+4, g)   d: (g, 2c) (g, 2c+1) (g+8, 2c) (g+8, 2c+1) */
__device__ __forceinline__ void mma(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
	    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

} // namespace

#endif
