/* probe.inout: y += x, in place.
 *
 * An ASSAY_INOUT tensor is filled, and restored before each launch, outside the clock. `shipped` is right if that happens;
 * `split=N` divides it. `accumulates` depends on it *not* happening: it adds x in its first launch only, and later trusts that the sum
 * is still in y. On a restored y that is wrong. It remembers in a file-scope flag, which no honest kernel would; that is its
 * fault. */
#include <math.h>
#include <stdatomic.h>

#include "../mla/host.h"
#include "probe.h"

enum { N, PARAMS };
enum { X, Y, TENSORS };

static const struct assay_param params[PARAMS] = {
	[N] = {"n", ASSAY_INT, 0, 1e9, false, 4096, 0, "elements"},
};

static const struct assay_tensor tensors[TENSORS] = {
	[X] = {.name = "x", .role = ASSAY_IN, .dtype = ASSAY_F32, .dims = "n", .doc = "what is added"},
	[Y] = {.name = "y", .role = ASSAY_INOUT, .dtype = ASSAY_F32, .dims = "n", .doc = "what it is added to"},
};

static int shape(const struct assay_point *p, int t, struct assay_shape *out)
{
	*out = (struct assay_shape){.rank = 1, .dim = {p->v[N].i}};
	return 0;
}

static void work(const struct assay_point *p, const struct assay_facts *facts, struct assay_work *out)
{
	const double n = (double)p->v[N].i;
	*out = (struct assay_work){.bytes = 12 * n, .least_bytes = 12 * n, .flop = n};
}

static void add(const struct assay_call *call, int64_t i0, int64_t i1, float times)
{
	const float *x = call->tensor[X];
	float *y = call->tensor[Y];
	for (int64_t i = i0; i < i1; i++)
		y[i] += times * x[i]; /* times 1 is exact */
}

static int run_shipped(const struct assay_call *call, void *state)
{
	host_note(call, "probe_inout_shipped", (void (*)(void))run_shipped);
	add(call, 0, call->point->v[N].i, 1);
	return 0;
}

static int run_split(const struct assay_call *call, void *state)
{
	const int64_t n = call->point->v[N].i, parts = call->arm_arg;
	host_note(call, "probe_inout_split", (void (*)(void))run_split);
#pragma omp parallel for schedule(static) num_threads(host_threads(call))
	for (int64_t p = 0; p < parts; p++)
		add(call, host_part(n, p, parts), host_part(n, p + 1, parts), 1);
	return 0;
}

static int run_accumulates(const struct assay_call *call, void *state)
{
	static atomic_bool added;
	host_note(call, "probe_inout_accumulates", (void (*)(void))run_accumulates);
	add(call, 0, call->point->v[N].i, atomic_exchange(&added, true) ? 0.0f : 1.0f);
	return 0;
}

/* ref is x + y of the y that was filled: the caller hands in the tensors as they were before the launch. One addition: u of
 * the sum. */
static int reference(const struct assay_call *call, int t, const struct assay_rows *rows, double *ref, double *bound)
{
	const float *x = call->tensor[X], *y = call->tensor[Y];
	for (int64_t i = 0; i < rows->n; i++) {
		const int64_t k = rows->row != NULL ? rows->row[i] : i;
		ref[i] = (double)x[k] + (double)y[k];
		bound[i] = host_gamma(1) * fabs(ref[i]);
	}
	return 0;
}

static const struct assay_arm_ops host_shipped = {.run = run_shipped}, host_split = {.run = run_split},
				  host_accumulates = {.run = run_accumulates};

static const struct assay_arm arms[] = {
	{.name = "shipped",
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_SELECTABLE,
	 .doc = "one loop",
	 .ops = {&host_shipped, PROBE_CUDA(probe_inout_cuda_shipped)}},
	{.name = "split",
	 .arg_name = "N",
	 .arg_min = 2,
	 .arg_max = 64,
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_SELECTABLE,
	 .doc = "N workers",
	 .ops = {&host_split, PROBE_CUDA(probe_inout_cuda_split)}},
	{.name = "accumulates",
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_FAULT,
	 .doc = "right once, then only if y is not restored",
	 .ops = {&host_accumulates, PROBE_CUDA(probe_inout_cuda_accumulates)}},
};

const struct assay_kernel assay_kernel_probe_inout = {
	.abi = ASSAY_ABI,
	.name = "probe.inout",
	.doc = "y += x in place: a tensor that is restored before each launch",
	.params = params,
	.n_params = PARAMS,
	.tensors = tensors,
	.n_tensors = TENSORS,
	.arms = arms,
	.n_arms = sizeof arms / sizeof *arms,
	.shape = shape,
	.work = work,
	.reference = reference,
	.row_rank = 1,
};
