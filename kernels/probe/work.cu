/* The device arms of probe.work: the recurrence of work.c, a lane a thread; time is proportional to steps. */
#include <stdint.h>

#include "../mla/launch.cuh"
#include "probe.h"

namespace {

enum { STEPS };
enum { SEED, OUT };
constexpr int LANES = 16;

__device__ uint32_t advance(uint32_t x, long long steps)
{
	for (long long s = 0; s < steps; s++) {
		x = x * 1664525u + 1013904223u;
		x = x << 13 | x >> 19;
	}
	return x;
}

/* extra steps go on in a copy that lands in rest. */
__global__ void __launch_bounds__(LANES) probe_work(const uint32_t *seed, uint32_t *out, uint32_t *rest, long long steps,
						    long long extra)
{
	const uint32_t x = advance(seed[threadIdx.x], steps);
	out[threadIdx.x] = x;
	if (extra > 0)
		rest[threadIdx.x] = advance(x, extra);
}

int run(const assay_call *call, void *state)
{
	long long steps = call->point->v[STEPS].i, extra = (steps * call->arm_arg + 500) / 1000;
	void *rest = call->workspace;
	void *args[] = {(void *)&call->tensor[SEED], (void *)&call->tensor[OUT], &rest, &steps, &extra};
	return launch(call, "probe_work", (const void *)probe_work, dim3(1), dim3(LANES), 0, args);
}

size_t workspace_more(const assay_point *p, int64_t arm_arg)
{
	return LANES * sizeof(uint32_t);
}

} // namespace

extern "C" {
extern const assay_arm_ops probe_work_cuda_shipped = {NULL, run, NULL, NULL, NULL};
extern const assay_arm_ops probe_work_cuda_more = {NULL, run, NULL, workspace_more, NULL};
}
