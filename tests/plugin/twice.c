/* demo.twice: an out-of-tree kernel. y[t,i] = factor * x[t,i], built as a shared object against assay/adapter.h alone and loaded with
 * `--plugin PATH`. FACTOR at compile time makes a second build of it, to be loaded beside the first. */
#include "assay/adapter.h"

#ifndef FACTOR
#define FACTOR 2.0f
#endif

enum { P_T, P_N, P_DEPTH, P_SCALE };

static const struct assay_param params[] = {
	{.name = "t", .type = ASSAY_INT, .min = 1, .max = 64, .dflt = 1, .doc = "rows"},
	{.name = "n",
	 .type = ASSAY_INT,
	 .min = 4,
	 .max = 1 << 20,
	 .required = true,
	 .multiple_of = 4,
	 .doc = "elements of a row"},
	{.name = "depth",
	 .type = ASSAY_INT,
	 .min = 0,
	 .max = 1e9,
	 .dflt = 0,
	 .doc = "not used: stands for a cache depth"},
	{.name = "scale", .type = ASSAY_REAL, .min = -8, .max = 8, .dflt = 0.1, .doc = "a real parameter"},
};

static const struct assay_tensor tensors[] = {
	{.name = "x", .role = ASSAY_IN, .dtype = ASSAY_F32, .dims = "t n", .doc = "input"},
	{.name = "y", .role = ASSAY_OUT, .dtype = ASSAY_F32, .dims = "t n", .doc = "output"},
};

static int shape(const struct assay_point *pt, int t, struct assay_shape *out)
{
	out->rank = 2;
	out->dim[0] = pt->v[P_T].i;
	out->dim[1] = pt->v[P_N].i;
	return 0;
}

static const char *refuse(const struct assay_point *pt)
{
	return pt->v[P_T].i * pt->v[P_N].i > 1 << 22 ? "t * n is at most 4194304" : 0;
}

static void work(const struct assay_point *pt, const struct assay_facts *facts, struct assay_work *out)
{
	double elements = (double)pt->v[P_T].i * (double)pt->v[P_N].i;
	out->bytes = out->least_bytes = 8 * elements;
	out->flop = elements;
}

static int run(const struct assay_call *call, void *state)
{
	const float *x = call->tensor[0];
	float *y = call->tensor[1];
	for (int64_t i = 0; i < assay_shape_count(&call->shape[1]); i++)
		y[i] = FACTOR * x[i];
	return 0;
}

#ifdef FAULTY
/* A second build with two planted faults, for `assay ab` to find: an arm that does its work three times, and one with a flipped bit. */
static int run_slow(const struct assay_call *call, void *state)
{
	int (*volatile again)(const struct assay_call *, void *) =
		run; /* called each time, whatever the compiler sees */
	again(call, state);
	again(call, state);
	return again(call, state);
}

static int run_flipped(const struct assay_call *call, void *state)
{
	int rc = run(call, state);
	((unsigned char *)call->tensor[1])[4] ^= 1;
	return rc;
}

static const struct assay_arm_ops slow_ops = {.run = run_slow}, flipped_ops = {.run = run_flipped};
#define TRIAL_OPS slow_ops
#define WIDE_OPS flipped_ops
#else
#define TRIAL_OPS host_ops
#define WIDE_OPS host_ops
#endif

static int reference(const struct assay_call *call, int t, const struct assay_rows *rows, double *ref, double *bound)
{
	const float *x = call->tensor[0];
	int64_t n = call->point->v[P_N].i;
	for (int64_t r = 0; r < rows->n; r++) {
		int64_t row = rows->row ? rows->row[r] : r;
		for (int64_t i = 0; i < n; i++) {
			ref[r * n + i] = (double)FACTOR * (double)x[row * n + i];
			bound[r * n + i] = 0; /* a product by a power of two is exact; by 3 it is rounded once */
		}
	}
	return 0;
}

static const char *wide_unsupported(const struct assay_point *pt, int64_t arg, enum assay_backend backend)
{
	return pt->v[P_N].i < 16 ? "wants rows of 16 or more" : 0;
}

static const char *wide_unsupported_on(enum assay_backend backend, int cc)
{
	return backend == ASSAY_HOST && cc != 0 ? "the host has no compute capability" : 0;
}

static const struct assay_arm_ops host_ops = {.run = run};

static const struct assay_arm arms[] = {
	{.name = "shipped", .flags = ASSAY_ARM_SELECTABLE, .doc = "one loop", .ops = {[ASSAY_HOST] = &host_ops}},
	{.name = "split",
	 .arg_name = "workers",
	 .arg_min = 2,
	 .arg_max = 64,
	 .arg_pow2 = true,
	 .flags = ASSAY_ARM_SELECTABLE | ASSAY_ARM_BITWISE,
	 .doc = "the rows in N parts",
	 .ops = {[ASSAY_HOST] = &host_ops}},
	{.name = "wide",
	 .flags = ASSAY_ARM_SELECTABLE,
	 .doc = "for long rows",
	 .ops = {[ASSAY_HOST] = &WIDE_OPS},
	 .unsupported = wide_unsupported,
	 .unsupported_on = wide_unsupported_on},
	{.name = "trial", .doc = "not to be served", .ops = {[ASSAY_HOST] = &TRIAL_OPS}},
};

const struct assay_kernel assay_kernel = {
	.abi = ASSAY_ABI,
	.name = "demo.twice",
	.doc = "every element times a constant",
	.params = params,
	.n_params = sizeof params / sizeof params[0],
	.tensors = tensors,
	.n_tensors = sizeof tensors / sizeof tensors[0],
	.arms = arms,
	.n_arms = sizeof arms / sizeof arms[0],
	.shape = shape,
	.refuse = refuse,
	.work = work,
	.reference = reference,
	.row_rank = 1,
};
