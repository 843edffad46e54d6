/* probe.null: a launch and one word. What is timed here is the harness. */
#include "../mla/host.h"
#include "probe.h"

enum { OUT, TENSORS };

static const struct assay_tensor tensors[TENSORS] = {
	[OUT] = {.name = "out", .role = ASSAY_OUT, .dtype = ASSAY_I32, .dims = "one", .doc = "1: it ran"},
};

static int shape(const struct assay_point *p, int t, struct assay_shape *out)
{
	*out = (struct assay_shape){.rank = 1, .dim = {1}};
	return 0;
}

static void work(const struct assay_point *p, const struct assay_facts *facts, struct assay_work *out)
{
	*out = (struct assay_work){.bytes = 4, .least_bytes = 4};
}

static int run(const struct assay_call *call, void *state)
{
	host_note(call, "probe_null", (void (*)(void))run);
	*(int32_t *)call->tensor[OUT] = 1;
	return 0;
}

static int reference(const struct assay_call *call, int t, const struct assay_rows *rows, double *ref, double *bound)
{
	for (int64_t i = 0; i < rows->n; i++) {
		ref[i] = 1;
		bound[i] = 0;
	}
	return 0;
}

static const struct assay_arm_ops host_shipped = {.run = run};
static const struct assay_arm arms[] = {
	{.name = "shipped",
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_SELECTABLE,
	 .doc = "writes a 1",
	 .ops = {&host_shipped, PROBE_CUDA(probe_null_cuda_shipped)}},
};

const struct assay_kernel assay_kernel_probe_null = {
	.abi = ASSAY_ABI,
	.name = "probe.null",
	.doc = "nothing but a launch",
	.tensors = tensors,
	.n_tensors = TENSORS,
	.arms = arms,
	.n_arms = 1,
	.shape = shape,
	.work = work,
	.reference = reference,
	.row_rank = 1,
};
