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
 * All operands are 1, so every accumulator grows by 32 a pass, exactly, until it starts anew (RATE_WRAP). `out` shows it: a form that skips
 * work is wrong. */
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
		ref[i] = rate_expected(call->point->v[RATE_ITERS].i);
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

struct operands {
	_Alignas(64) int32_t a[DEPTH][VEC]; /* bits of a float, or a pair of s16: all lanes alike */
	/* One b for all chains would let a compiler multiply once. */
	_Alignas(64) int32_t b[CHAINS][VEC];
};

/* The vectors are the machine's own: wider ones would go through the stack. */
#define RATE_LOOP(NAME, TARGET, V, STEP, STEPS)                                                                        \
	TARGET static void NAME(const struct operands *o, int64_t iters, int32_t acc[CHAINS][VEC])                     \
	{                                                                                                              \
		enum { ALL = CHAINS * VEC * 4 / (int)sizeof(V) };                                                      \
		V sum[ALL];                                                                                            \
		for (int64_t i = 0; i < iters; i++) {                                                                  \
			if (i % RATE_WRAP == 0)                                                                        \
				memset(sum, 0, sizeof sum);                                                            \
			FORGET();                                                                                      \
			for (int k = 0; k < (STEPS); k++) {                                                            \
				V x, y;                                                                                \
				memcpy(&x, o->a[k], sizeof x);                                                         \
				VEC_UNROLL                                                                             \
				for (int c = 0; c < ALL; c++) {                                                        \
					memcpy(&y, (const char *)o->b + (size_t)c * sizeof y, sizeof y);               \
					sum[c] = STEP(sum[c], x, y);                                                   \
				}                                                                                      \
			}                                                                                              \
		}                                                                                                      \
		memcpy(acc, sum, sizeof sum);                                                                          \
	}

typedef float float4 __attribute__((vector_size(16)));
typedef int32_t int4 __attribute__((vector_size(16)));
typedef uint32_t uint4 __attribute__((vector_size(16)));

/* Two products a lane, of the low and of the high halves. */
VEC_INLINE int4 pairs_any(int4 acc, int4 a, int4 b)
{
	const int4 a0 = (int4)((uint4)a << 16) >> 16, b0 = (int4)((uint4)b << 16) >> 16;
	return acc + a0 * b0 + (a >> 16) * (b >> 16);
}

VEC_INLINE float4 fma_any(float4 acc, float4 a, float4 b)
{
	for (int l = 0; l < 4; l++)
		acc[l] = __builtin_fmaf(a[l], b[l], acc[l]);
	return acc;
}

RATE_LOOP(rate_dot_base, , int4, pairs_any, DEPTH / 2)
RATE_LOOP(rate_fma_base, , float4, fma_any, DEPTH)

#if defined(__x86_64__) && !defined(VEC_PLAIN)
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")))
#define AVX2 __attribute__((target("avx2,fma")))
#define DOT_512(acc, a, b) _mm512_add_epi32(acc, _mm512_madd_epi16(a, b))
#define DOT_256(acc, a, b) _mm256_add_epi32(acc, _mm256_madd_epi16(a, b))
#define FMA_512(acc, a, b) _mm512_fmadd_ps(a, b, acc)
#define FMA_256(acc, a, b) _mm256_fmadd_ps(a, b, acc)
RATE_LOOP(rate_dot_avx512, AVX512, __m512i, DOT_512, DEPTH / 2)
RATE_LOOP(rate_dot_avx2, AVX2, __m256i, DOT_256, DEPTH / 2)
RATE_LOOP(rate_fma_avx512, AVX512, __m512, FMA_512, DEPTH)
RATE_LOOP(rate_fma_avx2, AVX2, __m256, FMA_256, DEPTH)

static int width(void)
{
	if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq"))
		return 2;
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#define RATE_PICK(NAME)                                                                                                \
	static void NAME(const struct operands *o, int64_t iters, int32_t acc[CHAINS][VEC])                            \
	{                                                                                                              \
		const int w = width();                                                                                 \
		(w == 2 ? NAME##_avx512 : w == 1 ? NAME##_avx2 : NAME##_base)(o, iters, acc);                          \
	}
#else
#define RATE_PICK(NAME)                                                                                                \
	static void NAME(const struct operands *o, int64_t iters, int32_t acc[CHAINS][VEC])                            \
	{                                                                                                              \
		NAME##_base(o, iters, acc);                                                                            \
	}
#endif

RATE_PICK(rate_dot)
RATE_PICK(rate_fma)

/* One pass after another over operands whose lanes hold `one`. */
static int run(const struct assay_call *call, const char *symbol, int32_t one, bool is_float,
	       void (*loop)(const struct operands *, int64_t, int32_t[CHAINS][VEC]))
{
	struct operands o;
	int32_t acc[CHAINS][VEC];
	float *out = call->tensor[RATE_OUT], value;
	const int64_t iters = call->point->v[RATE_ITERS].i;
	bool same = true;
	host_note(call, symbol, (void (*)(void))loop);
	for (int l = 0; l < VEC; l++) {
		for (int k = 0; k < DEPTH; k++)
			o.a[k][l] = one;
		for (int c = 0; c < CHAINS; c++)
			o.b[c][l] = one;
	}
	const double from = now_ns();
	loop(&o, iters, acc);
	const struct rate_result r = {now_ns() - from, (double)iters * CHAINS};
	for (int c = 0; c < CHAINS; c++)
		for (int l = 0; l < VEC; l++)
			same &= acc[c][l] == acc[0][0];
	memcpy(&value, &acc[0][0], sizeof value);
	if (!is_float)
		value = (float)acc[0][0];
	memcpy(call->workspace, &r, sizeof r);
	for (int l = 0; l < RATE_LANES; l++)
		out[l] = same ? value : __builtin_nanf("");
	return 0;
}

static int run_dot(const struct assay_call *call, void *state)
{
	return run(call, "rate_dot", 0x00010001, false, rate_dot);
}

static int run_fma(const struct assay_call *call, void *state)
{
	return run(call, "rate_fma", 0x3F800000, true, rate_fma);
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
	 .doc = "wgmma m64n64k32 s8, a in registers and b in shared memory",
	 .ops = {NULL, PROBE_CUDA(probe_rate_cuda_wgmma_s8)},
	 .unsupported_on = wgmma_on},
	{.name = "wgmma_e4m3",
	 .doc = "wgmma m64n64k32 e4m3, a in registers and b in shared memory",
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
