/* device: what the device arms of both mmq kernels share: the weights' container and the order of tiles. */
#ifndef ASSAY_KERNELS_MMQ_DEVICE_CUH
#define ASSAY_KERNELS_MMQ_DEVICE_CUH

#include <stdint.h>

#include "../mla/launch.cuh"
#include "mmq.h"

namespace
{

constexpr int RECORD = MMQ_RECORD; /* k of a stage: one activation record */
constexpr int STEPS = MMQ_RECORD / MMQ_BLOCK;

/* ---- wq and wd from w ---------------------------------------------------------------------------------------------- */

__device__ inline float f16_value(uint16_t bits)
{
	float v;
	asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
	return v;
}

/* What the s32 arm of mmq.q8_0 adds to a block's sum, from its start value on, times its scale. */
constexpr float MINUS_START = -12582912.0f;

/* A thread a block of w, and a thread a padding element of wd. Blocks begin at even addresses, so halfwords are what can be read. */
__global__ void mmq_unpack(const uint16_t *w, uint32_t *wq, float *wd, int64_t out_f, int64_t blocks, int64_t out_pad)
{
	const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, row = n % out_pad, b = n / out_pad;
	if (b >= blocks)
		return;
	float *scale = wd + 2 * b * out_pad + mmq_wd_place(row);
	if (row >= out_f) {
		scale[0] = scale[out_pad] = 0;
		return;
	}
	const uint16_t *from = w + (row * blocks + b) * (MMQ_W_BYTES / 2);
	uint32_t *to = wq + (row * blocks + b) * (MMQ_BLOCK / 4);
	scale[0] = f16_value(from[0]);
	scale[out_pad] = scale[0] * MINUS_START; /* exact: 11 bits times 2 */
	for (int i = 0; i < MMQ_BLOCK / 4; i++)
		to[i] = (uint32_t)from[1 + 2 * i] | (uint32_t)from[2 + 2 * i] << 16;
}

int derive(const assay_call *call)
{
	const mmq_shape s = mmq_of(call->point);
	const uint16_t *w = (const uint16_t *)call->tensor[MMQ_W];
	uint32_t *wq = (uint32_t *)call->tensor[MMQ_WQ];
	float *wd = (float *)call->tensor[MMQ_WD];
	int64_t out_f = s.out_f, blocks = s.blocks, out_pad = s.out_pad;
	const int64_t n = blocks * out_pad;
	void *args[] = {&w, &wq, &wd, &out_f, &blocks, &out_pad};
	return launch(call, "mmq_unpack", (const void *)mmq_unpack, dim3((unsigned)((n + 255) / 256)), dim3(256), 0,
		      args);
}

/* ---- order of tiles ------------------------------------------------------------------------------------------------ */

struct tile {
	int j, i; /* of tokens, of rows of w */
};

/* Tiles that run at the same time should share rows and tokens: bands of BAND tiles of tokens, and within one the
 * tokens run fastest. */
__device__ inline tile tile_of(int n, int tiles_j, int tiles_i)
{
	constexpr int BAND = 12;
	const int band = n / (BAND * tiles_i), first = band * BAND;
	const int width = tiles_j - first < BAND ? tiles_j - first : BAND, at = n - band * BAND * tiles_i;
	tile t;
	t.j = first + at % width;
	t.i = at / width;
	return t;
}

/* ---- within a kernel ----------------------------------------------------------------------------------------------- */

/* Nothing is moved across by the assembler, which otherwise orders what is independent as it likes, and then neither an operand of the products
 * nor one of the fma stays where it was for the next. (Named for what it does where kernels depend on one another. Here none does, and it
 * takes an issue slot.) */
__device__ __forceinline__ void in_order()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Two neighbours of a row of y; i < out_f is checked by the caller for the first. */
__device__ inline void store_pair(float *y, int64_t out_f, int64_t j, int64_t i, float a, float b)
{
	float *to = y + j * out_f + i;
	if (out_f % 2 == 0) {
		__stcs((float2 *)to, make_float2(a, b)); /* i is even: both are inside, and aligned */
	} else {
		to[0] = a;
		if (i + 1 < out_f)
			to[1] = b;
	}
}

} // namespace

#endif
