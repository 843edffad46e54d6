/* probe.work: a kernel that takes as long as it is told to.
 *
 * `shipped` does `steps` steps of a recurrence that no compiler can shorten: 16 integers that are multiplied, added and
 * rotated, each step on the one before. `more=P` does exactly P per mille more steps of the same, rounded to whole
 * steps, and then hands back the same output: the extra steps go on in a copy whose result lands in the workspace. So a
 * slowdown of a known size can be planted, and the output does not betray it. `selftest` holds the judge against it.
 *
 * It is latency-bound, in registers, on one thread, and touches no memory: time is proportional to steps. */
#include <string.h>

#include "../mla/host.h"
#include "probe.h"

enum { STEPS, PARAMS };
enum { SEED, OUT, TENSORS };
enum { LANES = 16 };

static const struct assay_param params[PARAMS] = {
	[STEPS] = {"steps", ASSAY_INT, 1, 1e9, false, 100000, 0, "steps of the recurrence, a nanosecond or two each"},
};

static const struct assay_tensor tensors[TENSORS] = {
	[SEED] = {.name = "seed",
		  .role = ASSAY_IN,
		  .dtype = ASSAY_F32,
		  .dims = "lane",
		  .doc = "start of the recurrence"},
	[OUT] = {.name = "out",
		 .role = ASSAY_OUT,
		 .dtype = ASSAY_I32,
		 .dims = "lane",
		 .doc = "the recurrence after `steps`"},
};

static int shape(const struct assay_point *p, int t, struct assay_shape *out)
{
	*out = (struct assay_shape){.rank = 1, .dim = {LANES}};
	return 0;
}

static void work(const struct assay_point *p, const struct assay_facts *facts, struct assay_work *out)
{
	out->bytes = out->least_bytes = 2.0 * LANES * 4.0;
	out->flop = 3.0 * LANES * (double)p->v[STEPS].i; /* integer operations */
}

static void advance(uint32_t x[LANES], int64_t steps)
{
	for (int64_t s = 0; s < steps; s++)
		for (int l = 0; l < LANES; l++) {
			x[l] = x[l] * 1664525u + 1013904223u;
			x[l] = (x[l] << 13) | (x[l] >> 19);
		}
}

static int64_t extra_steps(const struct assay_call *call)
{
	return (call->point->v[STEPS].i * call->arm_arg + 500) / 1000;
}

static int run_shipped(const struct assay_call *call, void *state)
{
	uint32_t x[LANES];
	host_note(call, "probe_work_shipped", (void (*)(void))run_shipped);
	memcpy(x, call->tensor[SEED], sizeof x);
	advance(x, call->point->v[STEPS].i);
	memcpy(call->tensor[OUT], x, sizeof x);
	return 0;
}

static int run_more(const struct assay_call *call, void *state)
{
	uint32_t x[LANES];
	host_note(call, "probe_work_more", (void (*)(void))run_more);
	memcpy(x, call->tensor[SEED], sizeof x);
	advance(x, call->point->v[STEPS].i);
	memcpy(call->tensor[OUT], x, sizeof x);
	advance(x, extra_steps(call));
	memcpy(call->workspace, x, sizeof x); /* somebody may look: the steps must be done */
	return 0;
}

static size_t workspace_more(const struct assay_point *p, int64_t arm_arg)
{
	return LANES * sizeof(uint32_t);
}

/* Integers: the reference is exact and the bound 0. The k-th power of one lane's step has no short form because of the
 * rotation, so the reference walks it too, a lane at a time and in 64 bits. */
static int reference(const struct assay_call *call, int t, const struct assay_rows *rows, double *ref, double *bound)
{
	const uint32_t *seed = call->tensor[SEED];
	for (int64_t i = 0; i < rows->n; i++) {
		const int64_t lane = rows->row != NULL ? rows->row[i] : i;
		uint64_t x = seed[lane];
		for (int64_t s = 0; s < call->point->v[STEPS].i; s++) {
			x = (x * 1664525u + 1013904223u) % 4294967296u;
			x = x * 8192u % 4294967296u + x / 524288u;
		}
		ref[i] = x < 2147483648u ? (double)x : (double)x - 4294967296.0; /* out is i32 */
		bound[i] = 0;
	}
	return 0;
}

static const struct assay_arm_ops host_shipped = {.run = run_shipped};
static const struct assay_arm_ops host_more = {.run = run_more, .workspace_bytes = workspace_more};

static const struct assay_arm arms[] = {
	{.name = "shipped",
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_SELECTABLE,
	 .doc = "`steps` steps",
	 .ops = {&host_shipped, PROBE_CUDA(probe_work_cuda_shipped)}},
	{.name = "more",
	 .arg_name = "P",
	 .arg_min = 1,
	 .arg_max = 10000,
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_SELECTABLE,
	 .doc = "P per mille more steps, the same output: a planted slowdown (more=10 is +1 %)",
	 .ops = {&host_more, PROBE_CUDA(probe_work_cuda_more)}},
};

const struct assay_kernel assay_kernel_probe_work = {
	.abi = ASSAY_ABI,
	.name = "probe.work",
	.doc = "a stated number of steps: time that is known, and slowdowns that are planted",
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
