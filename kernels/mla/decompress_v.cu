/* The device arms of mla.decompress_v. The story is decompress_v.c's, the kernel is head_product.cuh: `shipped` launches four blocks a head,
 * `split=N` four times N. With one token (or two and short rows) those of a split sweep over the weights in the order of memory; with
 * more they have an Nth of the rows each, and fewer blocks load the queries less often, which is worth most at eight tokens. */
#include "head_product.cuh"

static int plan(const assay_call *call, void **state)
{
	*state = NULL;
	return product_plan(call, mla_decompress_v_of(call->point));
}

static int run(const assay_call *call, void *state)
{
	return product_run(call, mla_decompress_v_of(call->point));
}

extern "C" {
extern const assay_arm_ops mla_decompress_v_cuda_shipped = {plan, run, NULL, NULL, NULL};
extern const assay_arm_ops mla_decompress_v_cuda_split = {plan, run, NULL, NULL, NULL};
}
