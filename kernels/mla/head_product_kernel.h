/* head_product_kernel: the descriptor of a kernel that is a head_product by another name. Included once by absorb_q.c and once by
 * decompress_v.c, after they defined what differs:
 *
 *   HEAD_KERNEL  the name behind "mla."; mla_NAME_of gives the shape of a point (mla.h)
 *   HEAD_DOC     the kernel in a line
 *   HEAD_WIDTH   the parameter beside n_head, kv_rank and t_q
 *   HEAD_IN, HEAD_WEIGHTS, HEAD_OUT  each tensor's name, dims and doc */
#include "head_product.h"
#include "host.h"

#define HEAD_PASTE_(a, b, c) a##b##c
#define HEAD_PASTE(a, b, c) HEAD_PASTE_(a, b, c)
#define HEAD_STRING_(a) #a
#define HEAD_STRING(a) HEAD_STRING_(a)
#define HEAD_SHAPE(point) HEAD_PASTE(mla_, HEAD_KERNEL, _of)(point)
#define HEAD_TENSOR(role_, words) HEAD_TENSOR_(role_, words)
#define HEAD_TENSOR_(role_, name_, dims_, doc_)                                                                        \
	{                                                                                                              \
		.name = name_, .role = role_, .dtype = ASSAY_F32, .dims = dims_, .doc = doc_                           \
	}

static const struct assay_param params[MLA_HEAD_PARAMS] = {
	[MLA_HEAD_P_N_HEAD] = MLA_N_HEAD,
	[MLA_HEAD_P_KV_RANK] = MLA_KV_RANK,
	[MLA_HEAD_P_D] = HEAD_WIDTH,
	[MLA_HEAD_P_T_Q] = MLA_T_Q,
};

static const struct assay_tensor tensors[MLA_HEAD_TENSORS] = {
	[MLA_HEAD_X] = HEAD_TENSOR(ASSAY_IN, HEAD_IN),
	[MLA_HEAD_W] = HEAD_TENSOR(ASSAY_IN, HEAD_WEIGHTS),
	[MLA_HEAD_OUT] = HEAD_TENSOR(ASSAY_OUT, HEAD_OUT),
};

static int shape(const struct assay_point *p, int t, struct assay_shape *out)
{
	return head_product_shape(HEAD_SHAPE(p), t, out);
}

static void work(const struct assay_point *p, const struct assay_facts *facts, struct assay_work *out)
{
	head_product_work(HEAD_SHAPE(p), out);
}

static int reference(const struct assay_call *call, int t, const struct assay_rows *rows, double *ref, double *bound)
{
	return head_product_reference(call, HEAD_SHAPE(call->point), rows, ref, bound);
}

static int run_shipped(const struct assay_call *call, void *state)
{
	return head_product_shipped(call, HEAD_SHAPE(call->point));
}

static int run_split(const struct assay_call *call, void *state)
{
	return head_product_split(call, HEAD_SHAPE(call->point));
}

static int run_flipped(const struct assay_call *call, void *state)
{
	int rc = run_split(call, state);
	host_flip_bit(call->tensor[MLA_HEAD_OUT], assay_shape_count(&call->shape[MLA_HEAD_OUT]));
	return rc;
}

static const struct assay_arm_ops host_shipped = {.run = run_shipped};
static const struct assay_arm_ops host_split = {.run = run_split};
static const struct assay_arm_ops host_flipped = {.run = run_flipped};

static const struct assay_arm arms[] = {
	{.name = "shipped",
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_SELECTABLE,
	 .doc = "one worker a head",
	 .ops = {&host_shipped, MLA_CUDA(HEAD_PASTE(mla_, HEAD_KERNEL, _cuda_shipped))}},
	{.name = "split",
	 .arg_name = "N",
	 .arg_min = MLA_SPLIT_MIN,
	 .arg_max = MLA_SPLIT_MAX,
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_SELECTABLE,
	 .doc = "N workers a head, each with its part of the outputs; the same operations an element",
	 .ops = {&host_split, MLA_CUDA(HEAD_PASTE(mla_, HEAD_KERNEL, _cuda_split))}},
	MLA_FLIPPED(host_flipped),
};

const struct assay_kernel HEAD_PASTE(assay_kernel_mla_, HEAD_KERNEL, ) = {
	.abi = ASSAY_ABI,
	.name = "mla." HEAD_STRING(HEAD_KERNEL),
	.doc = HEAD_DOC,
	.params = params,
	.n_params = MLA_HEAD_PARAMS,
	.tensors = tensors,
	.n_tensors = MLA_HEAD_TENSORS,
	.arms = arms,
	.n_arms = sizeof arms / sizeof *arms,
	.shape = shape,
	.work = work,
	.reference = reference,
	.row_rank = 2,
};
