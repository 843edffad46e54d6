#include "test_zoo.h"

#include <fenv.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATE = 12 };

struct zoo_seen zoo_seen;
int zoo_launches;
float *(*zoo_far)(const void *x);
bool zoo_far_guard;
void (*zoo_stray)(void);
float *zoo_packed;

static const struct assay_param params[] = {
	{.name = "rows", .type = ASSAY_INT, .min = 0, .max = 1 << 22, .dflt = 8, .doc = "rows"},
};

static const struct assay_field fields[] = {
	{.name = "d", .dtype = ASSAY_F16, .offset = 0, .count = 1, .use = ASSAY_SCALE, .default_range = {0.5, 1}},
	{.name = "qs", .dtype = ASSAY_I8, .offset = 2, .count = 4},
};

static const struct assay_tensor tensors[] = {
	[ZOO_X] = {.name = "x", .role = ASSAY_IN, .dtype = ASSAY_F32, .dims = "rows n", .doc = "with gaps"},
	[ZOO_W] = {.name = "w", .role = ASSAY_DERIVED, .dtype = ASSAY_F32, .dims = "rows n", .doc = "x without gaps"},
	[ZOO_Y] = {.name = "y", .role = ASSAY_OUT, .dtype = ASSAY_F32, .dims = "rows n", .doc = "with gaps"},
	[ZOO_Z] = {.name = "z", .role = ASSAY_OUT, .dtype = ASSAY_I32, .dims = "rows", .doc = "sums"},
	[ZOO_E] = {.name = "e", .role = ASSAY_IN, .dtype = ASSAY_F32, .dims = "none n", .doc = "empty"},
	[ZOO_R] = {.name = "r",
		   .role = ASSAY_IN,
		   .dtype = ASSAY_RECORD,
		   .dims = "rows",
		   .fields = fields,
		   .n_fields = 2,
		   .record_bytes = 6,
		   .doc = "records"},
};

static int shape(const struct assay_point *pt, int t, struct assay_shape *out)
{
	out->rank = t == ZOO_Z || t == ZOO_R ? 1 : 2;
	out->dim[0] = t == ZOO_E ? 0 : pt->v[0].i;
	out->dim[1] = out->rank == 2 ? ZOO_N : 0;
	if (t == ZOO_X || t == ZOO_Y) {
		out->stride[0] = t == ZOO_X ? ZOO_X_PITCH : ZOO_Y_PITCH;
		out->stride[1] = 1;
	}
	return 0;
}

static void work(const struct assay_point *pt, const struct assay_facts *facts, struct assay_work *out)
{
	out->bytes = out->least_bytes = 48.0 * (double)pt->v[0].i;
	out->flop = 6.0 * (double)pt->v[0].i;
}

/* y and z as they should be, from x or from the packed w. */
static void compute(const struct assay_call *call, bool packed)
{
	const float *x = call->tensor[ZOO_X], *w = call->tensor[ZOO_W];
	const signed char *r = call->tensor[ZOO_R];
	float *y = call->tensor[ZOO_Y];
	int32_t *z = call->tensor[ZOO_Z];

	zoo_launches++;
	for (int64_t t = 0; t < call->point->v[0].i; t++) {
		for (int i = 0; i < ZOO_N; i++)
			y[t * ZOO_Y_PITCH + i] = 2 * (packed ? w[t * ZOO_N + i] : x[t * ZOO_X_PITCH + i]);
		z[t] = r[6 * t + 2] + r[6 * t + 3] + r[6 * t + 4] + r[6 * t + 5];
	}
}

static void pack(const struct assay_call *call)
{
	const float *x = call->tensor[ZOO_X];
	float *w = call->tensor[ZOO_W];

	zoo_packed = w;
	for (int64_t t = 0; t < call->point->v[0].i; t++)
		memcpy(w + t * ZOO_N, x + t * ZOO_X_PITCH, ZOO_N * sizeof(*w));
}

static int64_t last(const struct assay_call *call)
{
	return call->point->v[0].i * ZOO_N - 1;
}

static int run_direct(const struct assay_call *call, void *state)
{
	compute(call, false);
	return 0;
}

static int run_packed(const struct assay_call *call, void *state)
{
	compute(call, true);
	return 0;
}

static int derive(const struct assay_call *call)
{
	pack(call);
	return 0;
}

static int derive_wrong(const struct assay_call *call)
{
	pack(call);
	((float *)call->tensor[ZOO_W])[7] += 0.25f;
	return 0;
}

/* Leaves the last element to what the container held. */
static int derive_short(const struct assay_call *call)
{
	float *w = call->tensor[ZOO_W], keep = w[last(call)];

	pack(call);
	w[last(call)] = keep;
	return 0;
}

static int derive_overrun(const struct assay_call *call)
{
	pack(call);
	((float *)call->tensor[ZOO_W])[last(call) + 1] = 1;
	return 0;
}

static int derive_fails(const struct assay_call *call)
{
	snprintf(call->error, ASSAY_ERROR_MAX, "cannot pack that");
	return -1;
}

/* Reads the container, then changes it. */
static int run_clobbers(const struct assay_call *call, void *state)
{
	compute(call, true);
	((float *)call->tensor[ZOO_W])[3] = -9;
	return 0;
}

static int run_clobbers_late(const struct assay_call *call, void *state)
{
	compute(call, false);
	if (zoo_launches >= LATE)
		((float *)call->tensor[ZOO_W])[3] = -9;
	return 0;
}

static int run_gap(const struct assay_call *call, void *state)
{
	compute(call, false);
	((float *)call->tensor[ZOO_Y])[ZOO_Y_PITCH + ZOO_N] = 5;
	return 0;
}

static int run_gap_late(const struct assay_call *call, void *state)
{
	compute(call, false);
	if (zoo_launches >= LATE)
		((float *)call->tensor[ZOO_Y])[ZOO_N] = 5;
	return 0;
}

/* The very first byte, and no other. */
static int run_input_begin(const struct assay_call *call, void *state)
{
	compute(call, false);
	*(unsigned char *)call->tensor[ZOO_X] &= 0xfe; /* odd, as it was filled */
	return 0;
}

static int run_input_gap(const struct assay_call *call, void *state)
{
	compute(call, false);
	((float *)call->tensor[ZOO_X])[ZOO_N + 1] = 5;
	return 0;
}

static int run_overrun_late(const struct assay_call *call, void *state)
{
	compute(call, false);
	if (zoo_launches >= LATE)
		((int32_t *)call->tensor[ZOO_Z])[call->point->v[0].i] = 5;
	return 0;
}

static int run_second(const struct assay_call *call, void *state)
{
	compute(call, false);
	((int32_t *)call->tensor[ZOO_Z])[5] -= 300;
	return 0;
}

static size_t workspace(const struct assay_point *pt, int64_t arg)
{
	return 100;
}

/* Takes it for granted that a new workspace is zero. */
static int run_zeroed(const struct assay_call *call, void *state)
{
	float *ws = call->workspace;

	compute(call, false);
	ws[24] += ((float *)call->tensor[ZOO_Y])[0];
	((float *)call->tensor[ZOO_Y])[0] = ws[24];
	return 0;
}

static int run_scratch(const struct assay_call *call, void *state)
{
	memset(call->workspace, 1, call->workspace_bytes);
	compute(call, false);
	return 0;
}

static int run_workspace_overrun(const struct assay_call *call, void *state)
{
	compute(call, false);
	((unsigned char *)call->workspace)[call->workspace_bytes] = 1;
	return 0;
}

static int run_two(const struct assay_call *call, void *state)
{
	const struct assay_launch one = {.symbol = "half", .grid = {1, 1, 1}, .block = {1, 1, 1}};

	compute(call, false);
	for (int i = 0; i < 2 && call->note; i++)
		call->note(call->note_ctx, &one);
	return 0;
}

void zoo_environment(char out[64])
{
	const char *a = getenv("ASSAY_ZOO_A"), *b = getenv("ASSAY_ZOO_B"), *c = getenv("ASSAY_ZOO_C");

	snprintf(out, 64, "A=%s B=%s C=%s", a ? a : "-", b ? b : "-", c ? c : "-");
}

static int env_plan(const struct assay_call *call, void **state)
{
	zoo_environment(zoo_seen.plan);
	return 0;
}

static int env_derive(const struct assay_call *call)
{
	zoo_environment(zoo_seen.derive);
	pack(call);
	return 0;
}

static int env_run(const struct assay_call *call, void *state)
{
	zoo_environment(zoo_seen.run);
	zoo_seen.runs++;
	compute(call, true);
	return 0;
}

static int run_far(const struct assay_call *call, void *state)
{
	float *at = zoo_far ? zoo_far(call->tensor[ZOO_X]) : NULL;

	compute(call, false);
	if (!at)
		return 0;
	at[2] += 1;
	if (zoo_far_guard)
		((int32_t *)call->tensor[ZOO_Z])[call->point->v[0].i] = 5;
	return 0;
}

/* Right, and does something to the process. */
static int run_strays(const struct assay_call *call, void *state)
{
	compute(call, false);
	if (zoo_stray)
		zoo_stray();
	return 0;
}

/* As `far`, and its outputs are wrong. */
static int run_far_wrong(const struct assay_call *call, void *state)
{
	run_far(call, state);
	((int32_t *)call->tensor[ZOO_Z])[5] -= 300;
	return 0;
}

/* As `far`, and what it gives depends on what its workspace held. */
static int run_far_dirty(const struct assay_call *call, void *state)
{
	run_far(call, state);
	((int32_t *)call->tensor[ZOO_Z])[0] += ((unsigned char *)call->workspace)[0];
	return 0;
}

/* Right, but whoever comes after it rounds upwards. */
static int run_rounds_up(const struct assay_call *call, void *state)
{
	compute(call, false);
	fesetround(FE_UPWARD);
	return 0;
}

/* Right, and its own thread as it was; the others of its team are not. */
static int run_team_rounds_up(const struct assay_call *call, void *state)
{
	compute(call, false);
#pragma omp parallel num_threads(2)
	if (omp_get_thread_num() > 0)
		fesetround(FE_UPWARD);
	return 0;
}

#define OPS(name, ...) static const struct assay_arm_ops name##_ops = {__VA_ARGS__}
OPS(direct, .run = run_direct);
OPS(packed, .run = run_packed, .derive = derive);
OPS(packed_wrong, .run = run_packed, .derive = derive_wrong);
OPS(packed_short, .run = run_packed, .derive = derive_short);
OPS(packed_overrun, .run = run_packed, .derive = derive_overrun);
OPS(packed_fails, .run = run_packed, .derive = derive_fails);
OPS(clobbers, .run = run_clobbers, .derive = derive);
OPS(clobbers_late, .run = run_clobbers_late, .derive = derive);
OPS(gap, .run = run_gap);
OPS(gap_late, .run = run_gap_late);
OPS(input_begin, .run = run_input_begin);
OPS(input_gap, .run = run_input_gap);
OPS(overrun_late, .run = run_overrun_late);
OPS(second, .run = run_second);
OPS(zeroed, .run = run_zeroed, .workspace_bytes = workspace);
OPS(scratch, .run = run_scratch, .workspace_bytes = workspace);
OPS(workspace_overrun, .run = run_workspace_overrun, .workspace_bytes = workspace);
OPS(two, .run = run_two);
OPS(far, .run = run_far);
OPS(strays, .run = run_strays);
OPS(far_wrong, .run = run_far_wrong);
OPS(far_dirty, .run = run_far_dirty, .workspace_bytes = workspace);
OPS(rounds_up, .run = run_rounds_up);
OPS(team_rounds_up, .run = run_team_rounds_up);
OPS(env, .plan = env_plan, .run = env_run, .derive = env_derive);

const struct assay_arm_ops *const zoo_two = &two_ops;

#define ARM(name_)                                                                                                     \
	{                                                                                                              \
		.name = #name_, .flags = ASSAY_ARM_BITWISE, .doc = "", .ops = { [ASSAY_HOST] = &name_##_ops }          \
	}
static const struct assay_arm arms[] = {
	{.name = "shipped", .doc = "", .ops = {[ASSAY_HOST] = &direct_ops}},
	ARM(packed),
	ARM(packed_wrong),
	ARM(packed_short),
	ARM(packed_overrun),
	ARM(packed_fails),
	ARM(clobbers),
	ARM(clobbers_late),
	ARM(gap),
	ARM(gap_late),
	ARM(input_begin),
	ARM(input_gap),
	ARM(overrun_late),
	ARM(second),
	ARM(zeroed),
	ARM(scratch),
	ARM(workspace_overrun),
	ARM(two),
	ARM(env),
	ARM(far),
	ARM(strays),
	ARM(far_wrong),
	ARM(far_dirty),
	ARM(rounds_up),
	ARM(team_rounds_up),
};

/* Of y all but the last two columns; the arms of the masked kernel write them all the same, or not at all. */
static int defined(const struct assay_call *call, int t, uint8_t *mask)
{
	for (int64_t i = 0; t == ZOO_Y && i < assay_shape_count(&call->shape[t]); i++)
		mask[i] = i % ZOO_N < ZOO_N - 2;
	return 0;
}

static int run_masked(const struct assay_call *call, void *state)
{
	const float *x = call->tensor[ZOO_X];
	float *y = call->tensor[ZOO_Y];

	compute(call, false);
	for (int64_t t = 0; t < call->point->v[0].i; t++)
		y[t * ZOO_Y_PITCH + 4] = x[t * ZOO_X_PITCH] + (float)++zoo_launches; /* nobody looks */
	return 0;
}

/* Wrong in the last column that somebody looks at. */
static int run_masked_wrong(const struct assay_call *call, void *state)
{
	run_masked(call, state);
	((float *)call->tensor[ZOO_Y])[2 * ZOO_Y_PITCH + 3] = 7;
	return 0;
}

static int masked_reference(const struct assay_call *call, int t, const struct assay_rows *rows, double *ref,
			    double *bound)
{
	const float *x = call->tensor[ZOO_X];
	const signed char *q = call->tensor[ZOO_R];

	for (int64_t k = 0; k < rows->n; k++) {
		int64_t row = rows->row ? rows->row[k] : k;
		if (t == ZOO_Z)
			ref[k] = q[6 * row + 2] + q[6 * row + 3] + q[6 * row + 4] + q[6 * row + 5];
		for (int i = 0; t == ZOO_Y && i < ZOO_N; i++)
			ref[k * ZOO_N + i] = 2.0 * (double)x[row * ZOO_X_PITCH + i];
	}
	return 0;
}

OPS(masked, .run = run_masked);
OPS(masked_wrong, .run = run_masked_wrong);
static const struct assay_arm masked_arms[] = {
	{.name = "shipped", .doc = "", .ops = {[ASSAY_HOST] = &direct_ops}},
	ARM(masked),
	ARM(masked_wrong),
};

#define KERNEL(name_, arms_, ...)                                                                                      \
	{                                                                                                              \
		.abi = ASSAY_ABI, .name = name_, .doc = "", .params = params, .n_params = 1, .tensors = tensors,       \
		.n_tensors = ZOO_TENSORS, .arms = arms_, .n_arms = sizeof(arms_) / sizeof(*arms_), .shape = shape,     \
		.work = work, __VA_ARGS__                                                                              \
	}

const struct assay_kernel zoo = KERNEL("test.zoo", arms, .reference = masked_reference, .row_rank = 1);
const struct assay_kernel zoo_masked =
	KERNEL("test.masked", masked_arms, .defined = defined, .reference = masked_reference, .row_rank = 1);
