/* Two kernels in one shared object, as a list; the second knows other parameters than the first. */
#include "assay/adapter.h"

static const struct assay_param params[] = {
	{.name = "t", .type = ASSAY_INT, .min = 1, .max = 64, .dflt = 1, .doc = "rows"},
};
static const struct assay_tensor tensors[] = {
	{.name = "y", .role = ASSAY_OUT, .dtype = ASSAY_U8, .dims = "t", .doc = "output"},
};

static int shape(const struct assay_point *pt, int t, struct assay_shape *out)
{
	out->rank = 1;
	out->dim[0] = pt->v[0].i;
	return 0;
}

static void work(const struct assay_point *pt, const struct assay_facts *facts, struct assay_work *out)
{
	out->bytes = out->least_bytes = (double)pt->v[0].i;
	out->flop = 0;
}

static int run(const struct assay_call *call, void *state)
{
	for (int64_t i = 0; i < call->point->v[0].i; i++)
		((unsigned char *)call->tensor[0])[i] = 7;
	return 0;
}

static const struct assay_arm_ops ops = {.run = run};
static const struct assay_arm s32[] = {
	{.name = "s32", .flags = ASSAY_ARM_SELECTABLE, .doc = "the first arm ships", .ops = {[ASSAY_HOST] = &ops}},
	{.name = "f32", .flags = ASSAY_ARM_SELECTABLE, .doc = "another one", .ops = {[ASSAY_HOST] = &ops}},
};
static const struct assay_arm cuda_only[] = {
	{.name = "shipped", .flags = ASSAY_ARM_SELECTABLE, .doc = "no host code", .ops = {[ASSAY_CUDA] = &ops}},
};

#define KERNEL(name_, arms_)                                                                                           \
	{                                                                                                              \
		.abi = ASSAY_ABI, .name = name_, .doc = "sevens", .params = params, .n_params = 1, .tensors = tensors, \
		.n_tensors = 1, .arms = arms_, .n_arms = sizeof arms_ / sizeof arms_[0], .shape = shape, .work = work  \
	}

static const struct assay_kernel sevens = KERNEL("demo.sevens", s32);
static const struct assay_kernel device = KERNEL("demo.device", cuda_only);

const struct assay_kernel *const assay_kernels[] = {&sevens, &device, 0};
