/* probe.rate: how often a matrix instruction can be issued here.
 *
 * Each arm issues one form of instruction over and over in independent chains and leaves in its workspace how long that took
 * (struct rate_result). `ratio: {equal_issue_interval: …}` has the forms of two arms timed by it: two arms that differ in the
 * form of their matrix instruction differ in nothing else only if both forms issue at the same interval.
 *
 * On a device: two warps on each sub-partition of one multiprocessor (two warpgroups for wgmma), 8 chains each (for wgmma batches of 8 that add to the same accumulators), by the
 * multiprocessor's own clock. On the host: one thread, 6 chains of 16 lanes, operands in the first cache; there an "instruction" is 512
 * multiply-adds, 32 in each lane, so that forms of unequal width can be compared.
 *
 * All operands are 1, so every accumulator ends as 32 a pass: exact in s32 and in f32. `out` shows it: a form that skips work is wrong. */
#include <string.h>
#include <time.h>

#include "../mla/host.h"
#include "../mla/vec.h"
#include "rate.h"

#if defined(__x86_64__) && !defined(VEC_PLAIN)
#include <immintrin.h>
#endif

enum { CHAINS = 6, DEPTH = 32 };

static const struct assay_param params[RATE_PARAMS] = {
	[RATE_ITERS] = {"iters", ASSAY_INT, 8, 16000, false, 2000, RATE_BATCH,
			"passes; every chain issues one instruction in each"},
};

static const struct assay_tensor tensors[RATE_TENSORS] = {
	[RATE_OUT] = {.name = "out",
		      .role = ASSAY_OUT,
		      .dtype = ASSAY_F32,
		      .dims = "lane",
		      .doc = "an accumulator of each lane; NaN where its others differ from it"},
};

static int shape(const struct assay_point *p, int t, struct assay_shape *out)
{
	*out = (struct assay_shape){.rank = 1, .dim = {RATE_LANES}};
	return 0;
}

static void work(const struct assay_point *p, const struct assay_facts *facts, struct assay_work *out)
{
	out->bytes = out->least_bytes = RATE_LANES * 4.0;
	/* Of the least that an arm does: a chain of 512 multiply-adds on the host. */
	out->flop = 2.0 * 512 * CHAINS * (double)p->v[RATE_ITERS].i;
}

static int reference(const struct assay_call *call, int t, const struct assay_rows *rows, double *ref, double *bound)
{
	for (int64_t i = 0; i < rows->n; i++) {
		ref[i] = 32.0 * (double)call->point->v[RATE_ITERS].i;
		bound[i] = 0;
	}
	return 0;
}

static size_t workspace(const struct assay_point *p, int64_t arm_arg)
{
	return sizeof(struct rate_result);
}

/* ---- the host ------------------------------------------------------------------------------------------------------ */

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The operands come from memory that the compiler must take for changed in each pass. */
#define FORGET() __asm__ volatile("" ::: "memory")

struct fma_operands {
	vec a[DEPTH], b[CHAINS];
};

VEC_INLINE void rate_fma_body(const struct fma_operands *o, int64_t iters, vec *acc)
{
	vec sum[CHAINS];
	for (int c = 0; c < CHAINS; c++)
		sum[c] = vec_all(0);
	for (int64_t i = 0; i < iters; i++) {
		FORGET();
		for (int k = 0; k < DEPTH; k++) {
			const vec x = o->a[k];
			VEC_UNROLL
			for (int c = 0; c < CHAINS; c++)
				sum[c] = vec_fma(x, o->b[c], sum[c]);
		}
	}
	for (int c = 0; c < CHAINS; c++)
		acc[c] = sum[c];
}

VEC_CLONES(rate_fma, (const struct fma_operands *o, int64_t iters, vec *acc), (o, iters, acc))

/* Pairs of s16, as an arm keeps s8 on the host. */
struct dot_operands {
	veci a[DEPTH / 2], b[CHAINS]; /* one b for all chains would let a compiler multiply once */
};

VEC_INLINE veci pairs_any(veci acc, veci a, veci b)
{
	const veci a0 = (veci)((vecu)a << 16) >> 16, b0 = (veci)((vecu)b << 16) >> 16;
	return acc + a0 * b0 + (a >> 16) * (b >> 16);
}

#define RATE_DOT(NAME, TARGET, PAIRS)                                                                                  \
	TARGET static void NAME(const struct dot_operands *o, int64_t iters, veci *acc)                                \
	{                                                                                                              \
		veci sum[CHAINS] = {{0}};                                                                              \
		for (int64_t i = 0; i < iters; i++) {                                                                  \
			FORGET();                                                                                      \
			for (int k = 0; k < DEPTH / 2; k++) {                                                          \
				const veci x = o->a[k];                                                                \
				VEC_UNROLL                                                                             \
				for (int c = 0; c < CHAINS; c++)                                                       \
					sum[c] = PAIRS(sum[c], x, o->b[c]);                                            \
			}                                                                                              \
		}                                                                                                      \
		for (int c = 0; c < CHAINS; c++)                                                                       \
			acc[c] = sum[c];                                                                               \
	}

#if defined(__x86_64__) && !defined(VEC_PLAIN)
#define PAIRS_512(acc, a, b) ((acc) + (veci)_mm512_madd_epi16((__m512i)(a), (__m512i)(b)))
RATE_DOT(rate_dot_avx512, __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2"))), PAIRS_512)

/* The halves of a vector one after the other. */
__attribute__((target("avx2"))) VEC_INLINE veci pairs_256(veci acc, veci a, veci b)
{
	__m256i x[2], y[2], z[2];
	memcpy(x, &a, sizeof x);
	memcpy(y, &b, sizeof y);
	z[0] = _mm256_madd_epi16(x[0], y[0]);
	z[1] = _mm256_madd_epi16(x[1], y[1]);
	veci sum;
	memcpy(&sum, z, sizeof sum);
	return acc + sum;
}
RATE_DOT(rate_dot_avx2, __attribute__((target("avx2"))), pairs_256)
RATE_DOT(rate_dot_base, , pairs_any)

static void rate_dot(const struct dot_operands *o, int64_t iters, veci *acc)
{
	if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq"))
		rate_dot_avx512(o, iters, acc);
	else if (__builtin_cpu_supports("avx2"))
		rate_dot_avx2(o, iters, acc);
	else
		rate_dot_base(o, iters, acc);
}
#else
RATE_DOT(rate_dot, , pairs_any)
#endif

static void leave(const struct assay_call *call, double elapsed_ns, bool all_equal, float value)
{
	const struct rate_result r = {elapsed_ns, (double)call->point->v[RATE_ITERS].i * CHAINS};
	float *out = call->tensor[RATE_OUT];
	memcpy(call->workspace, &r, sizeof r);
	for (int l = 0; l < RATE_LANES; l++)
		out[l] = all_equal ? value : __builtin_nanf("");
}

static int run_dot(const struct assay_call *call, void *state)
{
	struct dot_operands o;
	veci acc[CHAINS];
	bool same = true;
	host_note(call, "rate_dot", (void (*)(void))rate_dot);
	const veci ones = (veci){0} + 0x00010001;
	for (int k = 0; k < DEPTH / 2; k++)
		o.a[k] = ones;
	for (int c = 0; c < CHAINS; c++)
		o.b[c] = ones;
	const double from = now_ns();
	rate_dot(&o, call->point->v[RATE_ITERS].i, acc);
	const double took = now_ns() - from;
	for (int c = 0; c < CHAINS; c++)
		for (int l = 0; l < VEC; l++)
			same &= acc[c][l] == acc[0][0];
	leave(call, took, same, (float)acc[0][0]);
	return 0;
}

static int run_fma(const struct assay_call *call, void *state)
{
	struct fma_operands o;
	vec acc[CHAINS];
	bool same = true;
	host_note(call, "rate_fma", (void (*)(void))rate_fma);
	for (int k = 0; k < DEPTH; k++)
		o.a[k] = vec_all(1);
	for (int c = 0; c < CHAINS; c++)
		o.b[c] = vec_all(1);
	const double from = now_ns();
	rate_fma(&o, call->point->v[RATE_ITERS].i, acc);
	const double took = now_ns() - from;
	for (int c = 0; c < CHAINS; c++)
		for (int l = 0; l < VEC; l++)
			same &= acc[c][l] == acc[0][0];
	leave(call, took, same, acc[0][0]);
	return 0;
}

/* ---- the descriptor ------------------------------------------------------------------------------------------------ */

static const char *e4m3_on(enum assay_backend b, int cc)
{
	return b == ASSAY_CUDA && cc < 89 ? "e4m3 instructions begin with compute capability 8.9" : NULL;
}

static const char *bs_on(enum assay_backend b, int cc)
{
	return b == ASSAY_CUDA && cc != 120 ? "the block-scale instruction is built for sm_120a" : NULL;
}

static const char *wgmma_on(enum assay_backend b, int cc)
{
	return b == ASSAY_CUDA && cc != 90 ? "wgmma is an instruction of sm_90a" : NULL;
}

static const struct assay_arm_ops host_dot = {.run = run_dot, .workspace_bytes = workspace};
static const struct assay_arm_ops host_fma = {.run = run_fma, .workspace_bytes = workspace};

static const struct assay_arm arms[] = {
	{.name = "mma_s8",
	 .doc = "mma.sync m16n8k32 s8, s32 accumulators",
	 .ops = {NULL, PROBE_CUDA(probe_rate_cuda_mma_s8)}},
	{.name = "mma_e4m3",
	 .doc = "mma.sync m16n8k32 e4m3, f32 accumulators; kind::f8f6f4 on sm_120a, F2FP and two HMMA on sm_90 and "
		"sm_100a",
	 .ops = {NULL, PROBE_CUDA(probe_rate_cuda_mma_e4m3)},
	 .unsupported_on = e4m3_on},
	{.name = "mma_e4m3_bs",
	 .doc = "the same by kind::mxf8f6f4 with block scale 1",
	 .ops = {NULL, PROBE_CUDA(probe_rate_cuda_mma_e4m3_bs)},
	 .unsupported_on = bs_on},
	{.name = "wgmma_s8",
	 .doc = "wgmma m64n128k32 s8, operands in shared memory",
	 .ops = {NULL, PROBE_CUDA(probe_rate_cuda_wgmma_s8)},
	 .unsupported_on = wgmma_on},
	{.name = "wgmma_e4m3",
	 .doc = "wgmma m64n128k32 e4m3, operands in shared memory",
	 .ops = {NULL, PROBE_CUDA(probe_rate_cuda_wgmma_e4m3)},
	 .unsupported_on = wgmma_on},
	{.name = "dot_s8", .doc = "pairs of s16 multiplied and added to s32 (pmaddwd)", .ops = {&host_dot, NULL}},
	{.name = "fma_e4m3",
	 .doc = "fused multiply-add of f32, as e4m3 is computed on the host",
	 .ops = {&host_fma, NULL}},
};

const struct assay_kernel assay_kernel_probe_rate = {
	.abi = ASSAY_ABI,
	.name = "probe.rate",
	.doc = "how often a matrix instruction issues: what makes the ratio of two arms that differ in it believable",
	.params = params,
	.n_params = RATE_PARAMS,
	.tensors = tensors,
	.n_tensors = RATE_TENSORS,
	.arms = arms,
	.n_arms = sizeof arms / sizeof *arms,
	.shape = shape,
	.work = work,
	.reference = reference,
	.row_rank = 1,
};
