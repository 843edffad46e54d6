/* The host arm `s32`: the bytes read as s8, a block's 32 products added in s32, exactly.
 *
 * Two neighbours in k are kept together as s16, so that one multiply-add of pairs (pmaddwd on x86) serves 16 rows and two k. A pair's sum is at
 * most 2 * 128 * 128, so nothing overflows. Only the fold of a block into y rounds. */
#include <omp.h>
#include <stdio.h>

#include "host_panel.h"

#if defined(__x86_64__) && !defined(VEC_PLAIN)
#include <immintrin.h>
#endif

typedef int8_t quants16 __attribute__((vector_size(16)));
typedef int16_t wide16 __attribute__((vector_size(32)));

/* acc + a0 b0 + a1 b1 in every lane; a lane is a pair of s16. */
VEC_INLINE veci pairs_any(veci acc, veci a, veci b)
{
	const veci a0 = (veci)((vecu)a << 16) >> 16, b0 = (veci)((vecu)b << 16) >> 16;
	return acc + a0 * b0 + (a >> 16) * (b >> 16);
}

/* One body, compiled once for each way to multiply pairs. No helper in it takes or gives a vector: clang holds such a call across targets
 * for a change of the ABI, inlined or not. */
#define PANEL_S32(NAME, TARGET, PAIRS)                                                                                 \
	TARGET static void NAME(const struct panel *p, const struct mmq_shape *s, const struct mmq_w *w,               \
				const struct mmq_x *x, float *y, int64_t i0)                                           \
	{                                                                                                              \
		int16_t *pw = p->w, *px = p->x; /* [k / 2][PANEL][2], [GROUP][in_f] */                                 \
		panel_scales_w(p, s, w, i0);                                                                           \
		for (int64_t r = 0; r < PANEL; r++)                                                                    \
			for (int64_t b = 0; b < s->blocks; b++) {                                                      \
				const int8_t *q = i0 + r < s->out_f ? w[(i0 + r) * s->blocks + b].qs : NULL;           \
				for (int64_t k = 0; k < MMQ_BLOCK; k += 2) {                                           \
					int16_t *to = pw + ((b * MMQ_BLOCK + k) / 2 * PANEL + r) * 2;                  \
					to[0] = q != NULL ? q[k] : 0;                                                  \
					to[1] = q != NULL ? q[k + 1] : 0;                                              \
				}                                                                                      \
			}                                                                                              \
		for (int64_t j0 = 0; j0 < s->m; j0 += GROUP) {                                                         \
			panel_scales_x(p, s, x, j0);                                                                   \
			for (int64_t g = 0; g < GROUP; g++)                                                            \
				for (int64_t k = 0; k < s->in_f; k += 16) {                                            \
					quants16 q = {0};                                                              \
					if (j0 + g < s->m)                                                             \
						memcpy(&q, x[k / MMQ_RECORD * s->m + j0 + g].qs + k % MMQ_RECORD, 16); \
					const wide16 v = __builtin_convertvector(q, wide16);                           \
					memcpy(px + g * s->in_f + k, &v, sizeof v);                                    \
				}                                                                                      \
			vec sum[GROUP][2] = {{{0}}};                                                                   \
			for (int64_t b = 0; b < s->blocks; b++) {                                                      \
				veci block[GROUP][2] = {{{0}}};                                                        \
				for (int64_t k = b * MMQ_BLOCK; k < (b + 1) * MMQ_BLOCK; k += 2) {                     \
					veci w0, w1;                                                                   \
					memcpy(&w0, pw + k * PANEL, sizeof w0);                                        \
					memcpy(&w1, pw + k * PANEL + 2 * VEC, sizeof w1);                              \
					VEC_UNROLL                                                                     \
					for (int g = 0; g < GROUP; g++) {                                              \
						int32_t pair;                                                          \
						memcpy(&pair, px + g * s->in_f + k, sizeof pair);                      \
						const veci xk = (veci){0} + pair;                                      \
						block[g][0] = PAIRS(block[g][0], w0, xk);                              \
						block[g][1] = PAIRS(block[g][1], w1, xk);                              \
					}                                                                              \
				}                                                                                      \
				vec d0, d1;                                                                            \
				memcpy(&d0, p->wd + b * PANEL, sizeof d0);                                             \
				memcpy(&d1, p->wd + b * PANEL + VEC, sizeof d1);                                       \
				VEC_UNROLL                                                                             \
				for (int g = 0; g < GROUP; g++) {                                                      \
					const float dx = p->xd[b * GROUP + g];                                         \
					const vec t0 = d0 * __builtin_convertvector(block[g][0], vec);                 \
					const vec t1 = d1 * __builtin_convertvector(block[g][1], vec);                 \
					for (int l = 0; l < VEC; l++) {                                                \
						sum[g][0][l] = __builtin_fmaf(dx, t0[l], sum[g][0][l]);                \
						sum[g][1][l] = __builtin_fmaf(dx, t1[l], sum[g][1][l]);                \
					}                                                                              \
				}                                                                                      \
			}                                                                                              \
			panel_store(y, s, i0, j0, sum);                                                                \
		}                                                                                                      \
	}

#if defined(__x86_64__) && !defined(VEC_PLAIN)
#define PAIRS_AVX512(acc, a, b) ((acc) + (veci)_mm512_madd_epi16((__m512i)(a), (__m512i)(b)))

typedef int32_t half __attribute__((vector_size(32)));
#define LOW(v) __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7)
#define HIGH(v) __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)
#define PAIRS_AVX2(acc, a, b)                                                                                          \
	((acc) + __builtin_shufflevector((half)_mm256_madd_epi16((__m256i)LOW(a), (__m256i)LOW(b)),                    \
					 (half)_mm256_madd_epi16((__m256i)HIGH(a), (__m256i)HIGH(b)), 0, 1, 2, 3, 4,   \
					 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))

PANEL_S32(panel_s32_avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))), PAIRS_AVX512)
PANEL_S32(panel_s32_avx2, __attribute__((target("avx2,fma"))), PAIRS_AVX2)
#endif
PANEL_S32(panel_s32_any, , pairs_any)

typedef void panel_fn(const struct panel *, const struct mmq_shape *, const struct mmq_w *, const struct mmq_x *,
		      float *, int64_t);

static panel_fn *choose(void)
{
#if defined(__x86_64__) && !defined(VEC_PLAIN)
	if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl"))
		return panel_s32_avx512;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return panel_s32_avx2;
#endif
	return panel_s32_any;
}

static int plan(const struct assay_call *call, void **state)
{
	return panels_plan(call, sizeof(int16_t), state);
}

static int run(const struct assay_call *call, void *state)
{
	const struct mmq_shape s = mmq_of(call->point);
	const struct panels *all = state;
	panel_fn *panel = choose();
	host_note(call, "mmq_s32", (void (*)(void))panel);
#pragma omp parallel num_threads(all->n)
	{
		const struct panel p = panel_of(all, omp_get_thread_num());
#pragma omp for schedule(dynamic, 1)
		for (int64_t i0 = 0; i0 < s.out_f; i0 += PANEL)
			panel(&p, &s, call->tensor[MMQ_W], call->tensor[MMQ_X], call->tensor[MMQ_Y], i0);
	}
	return 0;
}

const struct assay_arm_ops mmq_host_s32 = {.plan = plan, .run = run, .finish = panels_finish};
