/* The device arms of mla.absorb_q. The story is absorb_q.c's, the kernel is head_product.cuh: `shipped` launches four blocks a head,
 * `split=N` four times N, with an Nth of the rows each. More blocks fill the chip in finer grains, which is worth most when
 * there is one token; fewer load the queries less often, which is worth most when there are eight. */
#include "head_product.cuh"

static int plan(const assay_call *call, void **state)
{
	*state = NULL;
	return product_plan(call, mla_absorb_q_of(call->point));
}

static int run(const assay_call *call, void *state)
{
	return product_run(call, mla_absorb_q_of(call->point));
}

extern "C" {
extern const assay_arm_ops mla_absorb_q_cuda_shipped = {plan, run, NULL, NULL, NULL};
extern const assay_arm_ops mla_absorb_q_cuda_split = {plan, run, NULL, NULL, NULL};
}
