/* mla.decompress_v: out[t,h,v] = sum over r of o_lat[t,h,r] * wv_b[h,v,r].
 *
 * The other end of latent attention: what attention summed up in the space of the latent becomes each head's value, through
 * the head's own [d_v][kv_rank] matrix. As absorb_q it reads the matrices once for one to eight tokens: bandwidth.
 *
 * The host arms, the reference and its bound are head_product.c; the device arms are decompress_v.cu. */
#include "head_product.h"
#include "host.h"

static const struct assay_param params[MLA_HEAD_PARAMS] = {
	[MLA_HEAD_P_N_HEAD] = MLA_N_HEAD,
	[MLA_HEAD_P_KV_RANK] = MLA_KV_RANK,
	[MLA_HEAD_P_D] = MLA_D_V,
	[MLA_HEAD_P_T_Q] = MLA_T_Q,
};

static const struct assay_tensor tensors[MLA_HEAD_TENSORS] = {
	[MLA_HEAD_X] = {.name = "o_lat",
			.role = ASSAY_IN,
			.dtype = ASSAY_F32,
			.dims = "t_q n_head kv_rank",
			.doc = "attention output in the space of the latent"},
	[MLA_HEAD_W] = {.name = "wv_b",
			.role = ASSAY_IN,
			.dtype = ASSAY_F32,
			.dims = "n_head d_v kv_rank",
			.doc = "value projection, a matrix a head"},
	[MLA_HEAD_OUT] = {.name = "out",
			  .role = ASSAY_OUT,
			  .dtype = ASSAY_F32,
			  .dims = "t_q n_head d_v",
			  .doc = "values, a head at a time"},
};

static int shape(const struct assay_point *p, int t, struct assay_shape *out)
{
	return head_product_shape(mla_decompress_v_of(p), t, out);
}

static void work(const struct assay_point *p, const struct assay_facts *facts, struct assay_work *out)
{
	head_product_work(mla_decompress_v_of(p), out);
}

static int reference(const struct assay_call *call, int t, const struct assay_rows *rows, double *ref, double *bound)
{
	return head_product_reference(call, mla_decompress_v_of(call->point), rows, ref, bound);
}

static int run_shipped(const struct assay_call *call, void *state)
{
	return head_product_shipped(call, mla_decompress_v_of(call->point));
}

static int run_split(const struct assay_call *call, void *state)
{
	return head_product_split(call, mla_decompress_v_of(call->point));
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
	 .ops = {&host_shipped, MLA_CUDA(mla_decompress_v_cuda_shipped)}},
	{.name = "split",
	 .arg_name = "N",
	 .arg_min = MLA_SPLIT_MIN,
	 .arg_max = MLA_SPLIT_MAX,
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_SELECTABLE,
	 .doc = "N workers a head, each with its part of the outputs; the same operations an element",
	 .ops = {&host_split, MLA_CUDA(mla_decompress_v_cuda_split)}},
	MLA_FLIPPED(host_flipped),
};

const struct assay_kernel assay_kernel_mla_decompress_v = {
	.abi = ASSAY_ABI,
	.name = "mla.decompress_v",
	.doc = "value projection of the attended latent: o_lat x wv_b, a head at a time",
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
