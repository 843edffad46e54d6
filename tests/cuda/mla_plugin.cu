/* The mla kernels as a plugin, as another build of them is one: for `assay ab` on a device. Linked with the build's own objects by
 * test_device.py. With -DPLANT, split=2 of mla.absorb_q does its work twice, and split=4 flips a bit of its last output. */
#include <cuda_runtime.h>
#include <stdlib.h>

#include "assay/adapter.h"

extern "C" {
extern const assay_kernel assay_kernel_mla_absorb_q, assay_kernel_mla_attn_gathered, assay_kernel_mla_decompress_v;
}

#ifdef PLANT
namespace {

const assay_arm_ops *real;

__global__ void flip_last(unsigned *out, long long n)
{
	out[n - 1] ^= 1;
}

int run_planted(const assay_call *call, void *state)
{
	const assay_kernel *k = &assay_kernel_mla_absorb_q;
	if (real->run(call, state) != 0 || (call->arm_arg == 2 && real->run(call, state) != 0))
		return -1;
	for (int t = 0; call->arm_arg == 4 && t < k->n_tensors; t++)
		if (k->tensors[t].role == ASSAY_OUT)
			flip_last<<<1, 1, 0, (cudaStream_t)call->stream>>>((unsigned *)call->tensor[t],
									   assay_shape_count(&call->shape[t]));
	return cudaGetLastError() == cudaSuccess ? 0 : -1;
}

/* A copy of the descriptor with an arm of its own. */
const assay_kernel *planted()
{
	static assay_kernel kernel = assay_kernel_mla_absorb_q;
	static assay_arm_ops ops;
	assay_arm *arms = (assay_arm *)malloc((size_t)kernel.n_arms * sizeof *arms);
	for (int i = 0; i < kernel.n_arms; i++) {
		arms[i] = kernel.arms[i];
		if (arms[i].arg_name == NULL || arms[i].name[0] != 's')
			continue;
		real = arms[i].ops[ASSAY_CUDA];
		ops = *real;
		ops.run = run_planted;
		arms[i].ops[ASSAY_CUDA] = &ops;
	}
	kernel.arms = arms;
	return &kernel;
}

} // namespace
#define ABSORB_Q planted()
#else
#define ABSORB_Q &assay_kernel_mla_absorb_q
#endif

extern "C" {
extern const assay_kernel *const assay_kernels[];
const assay_kernel *const assay_kernels[] = {ABSORB_Q, &assay_kernel_mla_decompress_v, &assay_kernel_mla_attn_gathered, NULL};
}
