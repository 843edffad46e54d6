/* Arms that start a process, which neither ends by itself nor is waited for; one of them dies after that. And, as what is linked with
 * -ffast-math, it flushes denormals from the moment it is loaded. */
#include "assay/adapter.h"

#include <stdlib.h>
#include <unistd.h>

static const struct assay_param params[] = {
	{.name = "n", .type = ASSAY_INT, .min = 1, .max = 1 << 20, .dflt = 256, .doc = "elements"},
};
static const struct assay_tensor tensors[] = {
	{.name = "x", .role = ASSAY_IN, .dtype = ASSAY_F32, .dims = "n", .doc = "input"},
	{.name = "y", .role = ASSAY_OUT, .dtype = ASSAY_F32, .dims = "n", .doc = "output"},
};

static int shape(const struct assay_point *pt, int t, struct assay_shape *out)
{
	out->rank = 1;
	out->dim[0] = pt->v[0].i;
	return 0;
}

static void work(const struct assay_point *pt, const struct assay_facts *facts, struct assay_work *out)
{
	out->bytes = out->least_bytes = 8.0 * (double)pt->v[0].i;
	out->flop = (double)pt->v[0].i;
}

static int run(const struct assay_call *call, void *state)
{
	const float *x = call->tensor[0];
	float *y = call->tensor[1];

	for (int64_t i = 0; i < call->point->v[0].i; i++)
		y[i] = 2 * x[i];
	return 0;
}

static int run_forks(const struct assay_call *call, void *state)
{
	static int launches;

	if (launches++ == 0 && fork() == 0) {
		sleep(100);
		_exit(0);
	}
	return run(call, state);
}

static int run_dies(const struct assay_call *call, void *state)
{
	run_forks(call, state);
	abort();
}

#if defined(__x86_64__)
__attribute__((constructor)) static void flush(void)
{
	__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
}
#endif

static const struct assay_arm_ops shipped = {.run = run}, forks = {.run = run_forks}, dies = {.run = run_dies};
static const struct assay_arm arms[] = {
	{.name = "shipped", .doc = "a loop", .ops = {[ASSAY_HOST] = &shipped}},
	{.name = "forks", .doc = "leaves a process", .ops = {[ASSAY_HOST] = &forks}},
	{.name = "dies", .doc = "leaves a process and dies", .ops = {[ASSAY_HOST] = &dies}},
};

const struct assay_kernel assay_kernel = {
	.abi = ASSAY_ABI,
	.name = "demo.forks",
	.doc = "twice the input, and a process that nobody waits for",
	.params = params,
	.n_params = 1,
	.tensors = tensors,
	.n_tensors = 2,
	.arms = arms,
	.n_arms = 3,
	.shape = shape,
	.work = work,
};
