/* launch: small things that every device launcher needs: the error of a launch in the arm's words, and the note of what was
 * launched. */
#ifndef ASSAY_KERNELS_LAUNCH_CUH
#define ASSAY_KERNELS_LAUNCH_CUH

#include <cuda_runtime.h>
#include <stdio.h>

#include "assay/adapter.h"

/* 0, or -1 with "what: CUDA's sentence" in call->error. */
static inline int launch_check(const struct assay_call *call, cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return 0;
	snprintf(call->error, ASSAY_ERROR_MAX, "%s: %s (%s)", what, cudaGetErrorString(e), cudaGetErrorName(e));
	return -1;
}

static inline void launch_note(const struct assay_call *call, const char *symbol, const void *function, dim3 grid,
                               dim3 block, size_t dynamic_smem)
{
	if (call->note == NULL)
		return;
	struct assay_launch l = {};
	l.symbol = symbol;
	l.function = function;
	l.grid[0] = grid.x, l.grid[1] = grid.y, l.grid[2] = grid.z;
	l.block[0] = block.x, l.block[1] = block.y, l.block[2] = block.z;
	l.dynamic_smem_bytes = dynamic_smem;
	call->note(call->note_ctx, &l);
}

/* Launches function with args (addresses of the arguments) and notes it. */
static inline int launch(const struct assay_call *call, const char *symbol, const void *function, dim3 grid, dim3 block,
                         size_t dynamic_smem, void **args)
{
	launch_note(call, symbol, function, grid, block, dynamic_smem);
	return launch_check(call, cudaLaunchKernel(function, grid, block, args, dynamic_smem, (cudaStream_t)call->stream),
	                    symbol);
}

/* *value: what attribute is on the current device. 0, or -1 with call->error. */
static inline int device_attribute(const struct assay_call *call, const char *what, enum cudaDeviceAttr attribute, int *value)
{
	int device = 0;
	if (launch_check(call, cudaGetDevice(&device), what) != 0)
		return -1;
	return launch_check(call, cudaDeviceGetAttribute(value, attribute, device), what);
}

/* Lets function use all the dynamic shared memory that a block can have beside its static: two arms may launch one function with
 * different needs. For plan(): outside the clock. */
static inline int launch_allow(const struct assay_call *call, const char *symbol, const void *function)
{
	int most = 0;
	struct cudaFuncAttributes at;
	if (device_attribute(call, symbol, cudaDevAttrMaxSharedMemoryPerBlockOptin, &most) != 0 ||
	    launch_check(call, cudaFuncGetAttributes(&at, function), symbol) != 0)
		return -1;
	return launch_check(call,
	                    cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
	                                         most - (int)at.sharedSizeBytes),
	                    symbol);
}

#endif
