/* @NAME@: y[t,i] = factor * x[t,i]. A start: it builds, runs and passes; put your own kernel in its place, one part at a time.
 *
 *   cc -std=c11 -O3 -fPIC -shared -o @SHORT@.so @SHORT@.c          (-I FOLDER where assay/adapter.h is not installed)
 *   assay check @SHORT@.yaml --plugin ./@SHORT@.so
 *   assay run @SHORT@.yaml --plugin ./@SHORT@.so
 *
 * Each field of the descriptor is told in assay/adapter.h, the rules of a run() in docs/adapter.md. */
#include <math.h>

#include <assay/adapter.h>

/* ---- parameters: what a suite sets by a geometry or sweeps by an axis. Their order is that of point->v. ---- */
enum { P_T, P_N, P_FACTOR };

static const struct assay_param params[] = {
	{.name = "t", .type = ASSAY_INT, .min = 1, .max = 4096, .dflt = 1, .doc = "rows"},
	{.name = "n", .type = ASSAY_INT, .min = 1, .max = 1 << 20, .required = true, .doc = "elements of a row"},
	{.name = "factor",
	 .type = ASSAY_REAL,
	 .min = -8,
	 .max = 8,
	 .dflt = 0.75,
	 .doc = "what each element is multiplied by"},
};

/* ---- tensors: a dimension with a parameter's name is tied to it, so that the rows of `t` can be taken away and rearranged. ---- */
enum { T_X, T_Y };

static const struct assay_tensor tensors[] = {
	{.name = "x", .role = ASSAY_IN, .dtype = ASSAY_F32, .dims = "t n", .doc = "input"},
	{.name = "y", .role = ASSAY_OUT, .dtype = ASSAY_F32, .dims = "t n", .doc = "output"},
};

static int shape(const struct assay_point *point, int tensor, struct assay_shape *out)
{
	(void)tensor; /* both are alike */
	out->rank = 2;
	out->dim[0] = point->v[P_T].i;
	out->dim[1] = point->v[P_N].i;
	return 0;
}

/* Bytes and operations of a point. least_bytes: what no launch can do without; a time that would need more than the memory can give is not believed. */
static void work(const struct assay_point *point, const struct assay_facts *facts, struct assay_work *out)
{
	(void)facts; /* of the data; nothing depends on it here */
	const double elements = (double)point->v[P_T].i * (double)point->v[P_N].i;
	out->bytes = out->least_bytes = elements * 2 * sizeof(float);
	out->flop = elements;
}

/* ---- arms: the code that is timed. The first one is shipped, the yardstick. ---- */
static void scale(float *y, const float *x, float factor, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = factor * x[i];
}

static int run_shipped(const struct assay_call *call, void *state)
{
	(void)state;
	scale(call->tensor[T_Y], call->tensor[T_X], (float)call->point->v[P_FACTOR].d,
	      assay_shape_count(&call->shape[T_Y]));
	return 0;
}

/* The rows in parts of at most `part` elements: another order of the same work, so the same bits. */
static int run_part(const struct assay_call *call, void *state)
{
	(void)state;
	const float *x = call->tensor[T_X];
	float *y = call->tensor[T_Y];
	const int64_t n = assay_shape_count(&call->shape[T_Y]), part = call->arm_arg;
	for (int64_t at = 0; at < n; at += part)
		scale(y + at, x + at, (float)call->point->v[P_FACTOR].d, n - at < part ? n - at : part);
	return 0;
}

static const struct assay_arm_ops shipped_ops = {.run = run_shipped}, part_ops = {.run = run_part};

static const struct assay_arm arms[] = {
	{.name = "shipped", .flags = ASSAY_ARM_SELECTABLE, .doc = "one loop", .ops = {[ASSAY_HOST] = &shipped_ops}},
	{.name = "part", /* in a suite: {part: 64} */
	 .arg_name = "elements",
	 .arg_min = 1,
	 .arg_max = 4096,
	 .flags = ASSAY_ARM_SELECTABLE | ASSAY_ARM_BITWISE,
	 .doc = "in parts of N elements",
	 .ops = {[ASSAY_HOST] = &part_ops}},
};

/* ---- the reference: plain, in double, and nothing of the arms in it. bound: how far an arm may be off by rounding alone. ---- */
static int reference(const struct assay_call *call, int tensor, const struct assay_rows *rows, double *ref,
		     double *bound)
{
	(void)tensor;
	const float *x = call->tensor[T_X];
	const double factor = (float)call->point->v[P_FACTOR].d;
	const int64_t n = call->point->v[P_N].i;
	for (int64_t r = 0; r < rows->n; r++) {
		const int64_t row = rows->row ? rows->row[r] : r;
		for (int64_t i = 0; i < n; i++) {
			const double y = factor * (double)x[row * n + i];
			ref[r * n + i] = y; /* exact: 24 bits by 24 bits */
			bound[r * n + i] = fabs(y) * 0x1p-24 + 0x1p-150; /* rounded once, to the nearest float */
		}
	}
	return 0;
}

const struct assay_kernel assay_kernel = {
	.abi = ASSAY_ABI,
	.name = "@NAME@",
	.doc = "every element times a factor",
	.params = params,
	.n_params = sizeof params / sizeof *params,
	.tensors = tensors,
	.n_tensors = sizeof tensors / sizeof *tensors,
	.arms = arms,
	.n_arms = sizeof arms / sizeof *arms,
	.shape = shape,
	.work = work,
	.reference = reference,
	.row_rank = 1,
};
