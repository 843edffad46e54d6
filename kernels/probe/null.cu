/* The device arm of probe.null: a launch and one word. */
#include "../mla/launch.cuh"
#include "probe.h"

namespace {

__global__ void probe_null(int *out)
{
	if (threadIdx.x == 0)
		*out = 1;
}

int run(const assay_call *call, void *state)
{
	void *args[] = {(void *)&call->tensor[0]};
	return launch(call, "probe_null", (const void *)probe_null, dim3(1), dim3(32), 0, args);
}

} // namespace

extern "C" {
extern const assay_arm_ops probe_null_cuda_shipped = {NULL, run, NULL, NULL, NULL};
}
