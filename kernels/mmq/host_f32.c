/* The host arm `f32`: the bytes read as e4m3, a block's 32 products added in f32.
 *
 * A product of two e4m3 numbers is exact in f32, so an fma rounds once: the addition. The chain of a block starts at 0 and goes on in
 * rising k; blocks join y in rising order. */
#include <omp.h>
#include <stdio.h>

#include "host_panel.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));

/* 16 bytes as e4m3. The seven bits below the sign, moved to where f32 has its exponent, are the number times 2^-120, denormals and
 * all; only the code of NaN would read as 480. */
VEC_INLINE vec decode(const int8_t *p)
{
	bytes16 b;
	memcpy(&b, p, sizeof b);
	const vecu u = __builtin_convertvector(b, vecu), size = u & 0x7F;
	const vecu bits = size << 20;
	vec v;
	memcpy(&v, &bits, sizeof v);
	v *= vec_all(0x1p120f);
	vecu out;
	memcpy(&out, &v, sizeof out);
	out |= (u & 0x80) << 24;
	out |= (vecu)(size == 0x7F) & 0x7FC00000;
	memcpy(&v, &out, sizeof v);
	return v;
}

VEC_INLINE void panel_f32_body(const struct panel *p, const struct mmq_shape *s, const struct mmq_w *w,
			       const struct mmq_x *x, float *y, int64_t i0)
{
	float *pw = p->w, *px = p->x; /* [k][PANEL], [GROUP][in_f] */
	panel_scales_w(p, s, w, i0);
	for (int64_t r = 0; r < PANEL; r++)
		for (int64_t b = 0; b < s->blocks; b++)
			for (int64_t h = 0; h < 2; h++) {
				const bool in = i0 + r < s->out_f;
				const vec v = in ? decode(w[(i0 + r) * s->blocks + b].qs + h * VEC) : vec_all(0);
				for (int64_t k = 0; k < VEC; k++)
					pw[(b * MMQ_BLOCK + h * VEC + k) * PANEL + r] = v[k];
			}
	for (int64_t j0 = 0; j0 < s->m; j0 += GROUP) {
		panel_scales_x(p, s, x, j0);
		for (int64_t g = 0; g < GROUP; g++)
			for (int64_t k = 0; k < s->in_f; k += VEC) {
				const bool in = j0 + g < s->m;
				vec_store(px + g * s->in_f + k,
					  in ? decode(x[k / MMQ_RECORD * s->m + j0 + g].qs + k % MMQ_RECORD)
					     : vec_all(0));
			}
		vec sum[GROUP][2];
		for (int g = 0; g < GROUP; g++)
			sum[g][0] = sum[g][1] = vec_all(0);
		for (int64_t b = 0; b < s->blocks; b++) {
			vec block[GROUP][2];
			VEC_UNROLL
			for (int g = 0; g < GROUP; g++)
				block[g][0] = block[g][1] = vec_all(0);
			for (int64_t k = b * MMQ_BLOCK; k < (b + 1) * MMQ_BLOCK; k++) {
				const vec w0 = vec_load(pw + k * PANEL), w1 = vec_load(pw + k * PANEL + VEC);
				VEC_UNROLL
				for (int g = 0; g < GROUP; g++) {
					const vec xk = vec_all(px[g * s->in_f + k]);
					block[g][0] = vec_fma(w0, xk, block[g][0]);
					block[g][1] = vec_fma(w1, xk, block[g][1]);
				}
			}
			const vec d0 = vec_load(p->wd + b * PANEL), d1 = vec_load(p->wd + b * PANEL + VEC);
			VEC_UNROLL
			for (int g = 0; g < GROUP; g++) {
				const vec dx = vec_all(p->xd[b * GROUP + g]);
				sum[g][0] = vec_fma(dx, d0 * block[g][0], sum[g][0]);
				sum[g][1] = vec_fma(dx, d1 * block[g][1], sum[g][1]);
			}
		}
		panel_store(y, s, i0, j0, sum);
	}
}

VEC_CLONES(panel_f32,
	   (const struct panel *p, const struct mmq_shape *s, const struct mmq_w *w, const struct mmq_x *x, float *y,
	    int64_t i0),
	   (p, s, w, x, y, i0))

static int plan(const struct assay_call *call, void **state)
{
	return panels_plan(call, sizeof(float), state);
}

static int run(const struct assay_call *call, void *state)
{
	const struct mmq_shape s = mmq_of(call->point);
	const struct panels *all = state;
	host_note(call, "mmq_f32", (void (*)(void))panel_f32);
#pragma omp parallel num_threads(all->n)
	{
		const struct panel p = panel_of(all, omp_get_thread_num());
#pragma omp for schedule(dynamic, 1)
		for (int64_t i0 = 0; i0 < s.out_f; i0 += PANEL)
			panel_f32(&p, &s, call->tensor[MMQ_W], call->tensor[MMQ_X], call->tensor[MMQ_Y], i0);
	}
	return 0;
}

const struct assay_arm_ops mmq_host_f32 = {.plan = plan, .run = run, .finish = panels_finish};
