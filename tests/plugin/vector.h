/* vector: what plugins of one input and one output of n elements share. */
#ifndef ASSAY_TEST_VECTOR_H
#define ASSAY_TEST_VECTOR_H

#include "assay/adapter.h"

static const struct assay_param params[] = {
	{.name = "n", .type = ASSAY_INT, .min = 1, .max = 1 << 20, .dflt = 256, .doc = "elements"},
};
static const struct assay_tensor tensors[] = {
	{.name = "x", .role = ASSAY_IN, .dtype = ASSAY_F32, .dims = "n", .doc = "input"},
	{.name = "y", .role = ASSAY_OUT, .dtype = ASSAY_F32, .dims = "n", .doc = "output"},
};

static int vector_shape(const struct assay_point *pt, int t, struct assay_shape *out)
{
	out->rank = 1;
	out->dim[0] = pt->v[0].i;
	return 0;
}

static void vector_work(const struct assay_point *pt, const struct assay_facts *facts, struct assay_work *out)
{
	out->bytes = out->least_bytes = 8 * (double)pt->v[0].i;
	out->flop = (double)pt->v[0].i;
}

#define VECTOR                                                                                                         \
	.abi = ASSAY_ABI, .params = params, .n_params = 1, .tensors = tensors, .n_tensors = 2, .work = vector_work

#endif
