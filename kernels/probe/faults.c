/* probe.faults: a small kernel with two honest arms and a crowd of dishonest ones.
 *
 *   out[r] = sum over k of a[r][k] * b[k]
 *
 * Each fault is one way in which a kernel under test can be wrong, and each must be caught by a check: `assay selftest`
 * shows it, and a check that no fault can fail proves nothing. What a fault does is in its doc line. Several remember
 * earlier launches in file-scope atomics, which no honest kernel may: that is what they are for.
 *
 * Nearly all have a like on a device (faults.cu): there `late` works on a stream of its own and `crash` writes to an address that
 * nobody owns; `asserts` is a device's alone. `stack` is a host's alone: run() has its process's stack whatever the backend. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "../mla/host.h"
#include "faults.h"
#include "probe.h"

enum { ROWS, D, PARAMS };
enum { A, B, OUT, TENSORS };
_Static_assert((int)TENSORS == PROBE_FAULTS_TENSORS, "faults.h");

static const struct assay_param params[PARAMS] = {
	[ROWS] = {"rows", ASSAY_INT, 1, 1e7, false, 64, 0, "rows of a, elements of out"},
	[D] = {"d", ASSAY_INT, 1, 65536, false, 96, 0, "length of a row"},
};

static const struct assay_tensor tensors[TENSORS] = {
	[A] = {.name = "a", .role = ASSAY_IN, .dtype = ASSAY_F32, .dims = "rows d", .doc = "rows"},
	[B] = {.name = "b",
	       .role = ASSAY_IN,
	       .dtype = ASSAY_F32,
	       .dims = "d",
	       .doc = "what every row is multiplied with"},
	[OUT] = {.name = "out", .role = ASSAY_OUT, .dtype = ASSAY_F32, .dims = "rows", .doc = "a dot product a row"},
};

static int shape(const struct assay_point *p, int t, struct assay_shape *out)
{
	const int64_t rows = p->v[ROWS].i, d = p->v[D].i;
	switch (t) {
	case A: *out = (struct assay_shape){.rank = 2, .dim = {rows, d}}; return 0;
	case B: *out = (struct assay_shape){.rank = 1, .dim = {d}}; return 0;
	case OUT: *out = (struct assay_shape){.rank = 1, .dim = {rows}}; return 0;
	default: return -1;
	}
}

static void work(const struct assay_point *p, const struct assay_facts *facts, struct assay_work *out)
{
	const double rows = (double)p->v[ROWS].i, d = (double)p->v[D].i;
	out->bytes = out->least_bytes = 4 * (rows * d + d + rows);
	out->flop = 2 * rows * d;
}

/* ---- the honest arms ----------------------------------------------------------------------------------------------- */

static float dot(const float *a, const float *b, int64_t n)
{
	float sum = 0;
	for (int64_t k = 0; k < n; k++)
		sum += a[k] * b[k];
	return sum;
}

static void compute(const struct assay_call *call, float *out, int64_t r0, int64_t r1)
{
	const float *a = call->tensor[A], *b = call->tensor[B];
	const int64_t d = call->point->v[D].i;
	for (int64_t r = r0; r < r1; r++)
		out[r] = dot(a + r * d, b, d);
}

static int run_shipped(const struct assay_call *call, void *state)
{
	host_note(call, "probe_faults_shipped", (void (*)(void))run_shipped);
	compute(call, call->tensor[OUT], 0, call->point->v[ROWS].i);
	return 0;
}

static int run_split(const struct assay_call *call, void *state)
{
	const int64_t rows = call->point->v[ROWS].i, parts = call->arm_arg;
	host_note(call, "probe_faults_split", (void (*)(void))run_split);
#pragma omp parallel for schedule(static) num_threads(host_threads(call))
	for (int64_t p = 0; p < parts; p++)
		compute(call, call->tensor[OUT], host_part(rows, p, parts), host_part(rows, p + 1, parts));
	return 0;
}

/* ---- the faults ---------------------------------------------------------------------------------------------------- */

/* What a fault gets: the output, already right where `right` was called. */
struct subject {
	const struct assay_call *call;
	float *a, *out;
	const float *b;
	int64_t rows, d;
};

static struct subject subject_of(const struct assay_call *call)
{
	return (struct subject){call,
				call->tensor[A],
				call->tensor[OUT],
				call->tensor[B],
				call->point->v[ROWS].i,
				call->point->v[D].i};
}

static struct subject right(const struct assay_call *call)
{
	const struct subject s = subject_of(call);
	compute(call, s.out, 0, s.rows);
	return s;
}

void probe_faults_right(const struct assay_call *call)
{
	right(call);
}

static void flip(float *x, uint32_t mask)
{
	uint32_t bits;
	memcpy(&bits, x, sizeof bits);
	bits ^= mask;
	memcpy(x, &bits, sizeof bits);
}

/* The same sum from two halves: right, but rounded otherwise. */
static float dot_halves(const float *a, const float *b, int64_t n)
{
	return dot(a, b, n / 2) + dot(a + n / 2, b + n / 2, n - n / 2);
}

static int run_nothing(const struct assay_call *call, void *state)
{
	return 0;
}

static int run_ulp(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	s.out[s.rows / 2] = nextafterf(s.out[s.rows / 2], INFINITY);
	return 0;
}

static int run_flip_bit(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	flip(&s.out[s.rows / 3], 1u << 20);
	return 0;
}

static int run_unwritten_tail(const struct assay_call *call, void *state)
{
	const struct subject s = subject_of(call);
	compute(call, s.out, 0, s.rows - 1);
	return 0;
}

static int run_zero_rows(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	for (int64_t r = 0; r < s.rows; r += 6)
		s.out[r] = 0;
	return 0;
}

static int run_nan(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	s.out[s.rows - 1] = NAN;
	return 0;
}

static int run_inf(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	s.out[0] = INFINITY;
	return 0;
}

static int run_overrun(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	s.out[s.rows] = 1;
	return 0;
}

static int run_underrun(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	s.out[-1] = 1;
	return 0;
}

/* Beyond any guard: 2 MiB behind the output, and 16 KB before it. */
static int run_overrun_far(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	s.out[s.rows + (1 << 19)] = 1;
	return 0;
}

static int run_underrun_far(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	s.out[-4000] = 1;
	return 0;
}

static int run_over_read(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	for (int64_t k = 0; k < s.d; k++)
		s.out[s.rows - 1] += 0.0f * s.a[s.rows * s.d + k];
	return 0;
}

static int run_over_read_max(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	s.out[s.rows - 1] = fmaxf(s.out[s.rows - 1], s.a[s.rows * s.d]); /* fmaxf passes a NaN over */
	return 0;
}

static int run_changes_input(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	flip(&s.a[s.rows * s.d / 2], 1);
	return 0;
}

static int run_caches(const struct assay_call *call, void *state)
{
	static _Atomic(const void *) key;
	static float kept[4096];
	const struct subject s = subject_of(call);
	const int64_t n = host_min(s.rows, 4096);
	compute(call, s.out, 0, s.rows);
	if (atomic_load(&key) == call->tensor[A]) {
		memcpy(s.out, kept, (size_t)n * sizeof *kept);
	} else {
		memcpy(kept, s.out, (size_t)n * sizeof *kept);
		atomic_store(&key, call->tensor[A]);
	}
	return 0;
}

static int run_drifts(const struct assay_call *call, void *state)
{
	static atomic_long launches;
	const struct subject s = right(call);
	if (atomic_fetch_add(&launches, 1) >= 10)
		flip(&s.out[0], 1);
	return 0;
}

/* splitmix64: launches that differ are spread without a period. */
static uint64_t scatter(uint64_t x)
{
	x += 0x9E3779B97F4A7C15u;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return x ^ (x >> 31);
}

static int run_racy(const struct assay_call *call, void *state)
{
	static atomic_ullong launches;
	const struct subject s = right(call);
	const uint64_t draw = scatter(atomic_fetch_add(&launches, 1));
	if (draw % 50 == 0)
		flip(&s.out[draw / 50 % (uint64_t)s.rows], 1);
	return 0;
}

static int run_batch(const struct assay_call *call, void *state)
{
	const struct subject s = subject_of(call);
	for (int64_t r = 0; r < s.rows; r++)
		s.out[r] = s.rows > 1 ? dot_halves(s.a + r * s.d, s.b, s.d) : dot(s.a + r * s.d, s.b, s.d);
	return 0;
}

static int run_position(const struct assay_call *call, void *state)
{
	const struct subject s = subject_of(call);
	for (int64_t r = 0; r < s.rows; r++)
		s.out[r] = r % 2 ? dot_halves(s.a + r * s.d, s.b, s.d) : dot(s.a + r * s.d, s.b, s.d);
	return 0;
}

static int run_neighbours(const struct assay_call *call, void *state)
{
	const struct subject s = subject_of(call);
	for (int64_t r = 0; r < s.rows; r++) {
		const float *a = s.a + r * s.d, *next = s.a + (r + 1) % s.rows * s.d;
		s.out[r] = next[0] > a[0] ? dot_halves(a, s.b, s.d) : dot(a, s.b, s.d);
	}
	return 0;
}

static int run_slow(const struct assay_call *call, void *state)
{
	const struct subject s = right(call);
	volatile float sink = 0; /* keeps the two more passes alive */
	for (int pass = 0; pass < 2; pass++)
		for (int64_t r = 0; r < s.rows; r++)
			sink = dot(s.a + r * s.d, s.b, s.d);
	(void)sink;
	return 0;
}

static const char *unsupported_always(const struct assay_point *p, int64_t arm_arg, enum assay_backend backend)
{
	return "this arm runs nowhere, so that a skip can be seen";
}

/* A sum of d products in any order: gamma_d of the sum of magnitudes, whatever the split (Higham, section 3.1). */
static int reference(const struct assay_call *call, int t, const struct assay_rows *rows, double *ref, double *bound)
{
	const float *a = call->tensor[A], *b = call->tensor[B];
	const int64_t d = call->point->v[D].i;
	for (int64_t i = 0; i < rows->n; i++) {
		const int64_t r = rows->row != NULL ? rows->row[i] : i;
		double sum = 0, abs_sum = 0;
		for (int64_t k = 0; k < d; k++) {
			const double product = (double)a[r * d + k] * (double)b[k];
			sum += product;
			abs_sum += fabs(product);
		}
		ref[i] = sum;
		bound[i] = host_gamma(d) * abs_sum + (double)d * ldexp(1.0, -149);
	}
	return 0;
}

/* ---- descriptor ---------------------------------------------------------------------------------------------------- */

#define OPS(name)                                                                                                      \
	&(const struct assay_arm_ops)                                                                                  \
	{                                                                                                              \
		.run = run_##name                                                                                      \
	}
/* Claims the bits of shipped, and lies. */
#define FAULT(name_, doc_)                                                                                             \
	{                                                                                                              \
		.name = #name_, .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_FAULT, .doc = doc_,                             \
		.ops = { OPS(name_),                                                                                   \
			 PROBE_CUDA(probe_faults_cuda_##name_) }                                                       \
	}
/* The same on the host alone. */
#define FAULT_HOST(name_, doc_)                                                                                        \
	{                                                                                                              \
		.name = #name_, .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_FAULT, .doc = doc_, .ops = { OPS(name_) }       \
	}
/* One of faults_end.c, faults_leaves.c or faults_timed.c; on_device: its like there, or NULL. */
#define FAULT_END(name_, on_device, doc_)                                                                              \
	{                                                                                                              \
		.name = #name_, .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_FAULT, .doc = doc_,                             \
		.ops = { &probe_faults_##name_,                                                                        \
			 on_device }                                                                                   \
	}
/* Right within the reference's bound, and wrong otherwise. */
#define ROUNDED(name_, doc_)                                                                                           \
	{                                                                                                              \
		.name = #name_, .flags = ASSAY_ARM_FAULT, .doc = doc_,                                                 \
		.ops = { OPS(name_),                                                                                   \
			 PROBE_CUDA(probe_faults_cuda_##name_) }                                                       \
	}

static const struct assay_arm arms[] = {
	{.name = "shipped",
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_SELECTABLE,
	 .doc = "right: a loop a row",
	 .ops = {OPS(shipped), PROBE_CUDA(probe_faults_cuda_shipped)}},
	{.name = "split",
	 .arg_name = "N",
	 .arg_min = 2,
	 .arg_max = 64,
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_SELECTABLE,
	 .doc = "right: N workers",
	 .ops = {OPS(split), PROBE_CUDA(probe_faults_cuda_split)}},
	FAULT(nothing, "writes nothing"),
	FAULT(ulp, "one element is one ULP off"),
	FAULT(flip_bit, "one bit of one element is flipped"),
	FAULT(unwritten_tail, "the last element is not written"),
	FAULT(zero_rows, "17 % of the elements are 0"),
	FAULT(nan, "the last element is NaN"),
	FAULT(inf, "the first element is infinite"),
	FAULT(overrun, "writes one element beyond the output"),
	FAULT(underrun, "writes one element before the output"),
	FAULT_HOST(overrun_far, "writes 2 MiB beyond the output"),
	FAULT_HOST(underrun_far, "writes 16,000 bytes before the output"),
	FAULT(over_read, "adds 0 times the row beyond a: only a NaN there shows"),
	FAULT(over_read_max, "maximum with what is beyond a: only a huge number there shows"),
	FAULT(changes_input, "flips a bit of a"),
	FAULT(caches, "returns its first result for the same address of a"),
	FAULT_END(caches_part, NULL, "returns an earlier result where a begins as it did then"),
	FAULT_END(flips_timed, NULL, "one bit off where the output held a number before"),
	FAULT_END(keeps_last, NULL, "does not write the last element where a number is there already"),
	FAULT_END(leaves_out, NULL, "does nothing where both ends of the output seem to be right already"),
	FAULT(drifts, "right ten times, then one bit off"),
	FAULT(racy, "2 % of its launches are one bit off, at changing places"),
	ROUNDED(batch, "the order of the sum follows the number of rows"),
	ROUNDED(position, "the order of the sum follows the row's position"),
	ROUNDED(neighbours, "the order of the sum follows the next row's data"),
	FAULT(slow, "does its work three times"),
	{.name = "late",
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_FAULT,
	 .doc = "returns at once, writes 20 ms later from a thread",
	 .ops = {&probe_faults_late, PROBE_CUDA(probe_faults_cuda_late)}},
	{.name = "asserts",
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_FAULT,
	 .doc = "fails an assertion on the device",
	 .ops = {NULL, PROBE_CUDA(probe_faults_cuda_asserts)}},
	FAULT_END(hang, PROBE_CUDA(probe_faults_cuda_hang), "never returns"),
	FAULT_END(crash, PROBE_CUDA(probe_faults_cuda_crash), "writes to address 0"),
	FAULT_END(stack, NULL, "needs 256 MiB of stack"),
	FAULT_END(leaves_ftz, NULL, "right, but leaves the CPU flushing denormals to zero"),
	FAULT_END(leaves_timer, NULL, "right, but leaves a timer running that will send SIGALRM"),
	FAULT_END(leaves_omp, NULL, "right, but leaves OpenMP with another number of threads"),
	FAULT_END(leaves_thread, NULL, "right, but leaves a thread that never rests"),
	FAULT_END(leaves_signals, NULL, "right, but leaves SIGSEGV ignored"),
	FAULT_END(closes_files, NULL, "right, but closes every descriptor that it has not opened"),
	FAULT_END(exits, PROBE_CUDA(probe_faults_cuda_exits), "ends its process with status 0"),
	FAULT_END(fails, PROBE_CUDA(probe_faults_cuda_fails), "returns an error"),
	FAULT_END(fails_sometimes, PROBE_CUDA(probe_faults_cuda_fails_sometimes),
		  "returns an error in every seventh launch"),
	FAULT_END(stdout_noise, PROBE_CUDA(probe_faults_cuda_stdout_noise),
		  "right, but prints something like a record on stdout"),
	{.name = "unsupported",
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_FAULT,
	 .doc = "runs nowhere",
	 .ops = {OPS(shipped)},
	 .unsupported = unsupported_always},
};

const struct assay_kernel assay_kernel_probe_faults = {
	.abi = ASSAY_ABI,
	.name = "probe.faults",
	.doc = "a dot product a row, with arms that are wrong in every way that a check must catch",
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
