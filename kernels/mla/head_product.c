#include "head_product.h"

#include <math.h>

#include "host.h"
#include "vec.h"

enum { TILE_T = 4, TILE_I = 4 };

/* nt <= TILE_T tokens times ni <= TILE_I rows of w. */
VEC_INLINE void tile(int nt, int ni, const float *x, int64_t ldx, const float *w, int64_t ldw, int64_t n, float *out,
		     int64_t ldo)
{
	vec acc[TILE_T][TILE_I] = {{{0}}};
	const int64_t whole = n - n % VEC;
	for (int64_t k = 0; k < whole; k += VEC) {
		vec xs[TILE_T];
		VEC_UNROLL
		for (int t = 0; t < nt; t++)
			xs[t] = vec_load(x + t * ldx + k);
		VEC_UNROLL
		for (int i = 0; i < ni; i++) {
			const vec ws = vec_load(w + i * ldw + k);
			if (ni > 1)
				__builtin_prefetch(w + ni * ldw + k * ni + i * VEC);
			VEC_UNROLL
			for (int t = 0; t < nt; t++)
				acc[t][i] = vec_fma(xs[t], ws, acc[t][i]);
		}
	}
	if (whole < n)
		for (int i = 0; i < ni; i++)
			for (int t = 0; t < nt; t++)
				acc[t][i] = vec_fma(vec_load_part(x + t * ldx + whole, n - whole),
						    vec_load_part(w + i * ldw + whole, n - whole), acc[t][i]);
	VEC_UNROLL
	for (int t = 0; t < nt; t++) {
		if (ni == 4) {
			const vecq sums = vec_sum4(acc[t][0], acc[t][1], acc[t][2], acc[t][3]);
			memcpy(out + t * ldo, &sums, sizeof sums);
		} else {
			for (int i = 0; i < ni; i++)
				out[t * ldo + i] = vec_sum(acc[t][i]);
		}
	}
}

/* ni rows of w for all tokens: memory is read for the first, cache serves the others. */
VEC_INLINE void row_group(int ni, struct mla_head_shape s, const float *x, const float *w, float *out)
{
	const int64_t ldx = s.n_head * s.n_in, ldo = s.n_head * s.n_out;
	int64_t t = 0;
	for (; t + 4 <= s.t_q; t += 4)
		tile(4, ni, x + t * ldx, ldx, w, s.n_in, s.n_in, out + t * ldo, ldo);
	for (; t + 2 <= s.t_q; t += 2)
		tile(2, ni, x + t * ldx, ldx, w, s.n_in, s.n_in, out + t * ldo, ldo);
	for (; t < s.t_q; t++)
		tile(1, ni, x + t * ldx, ldx, w, s.n_in, s.n_in, out + t * ldo, ldo);
}

/* Outputs i0 .. i1-1 of head h, all tokens. Few tokens are bound by memory, and take rows of w one at a time: one sequential
 * stream, which prefetchers follow at full bandwidth (four rows at once ran at less than half of it). From four tokens on
 * arithmetic counts, and tiles of four rows halve the loads of x; they ask for the next rows in sequence. */
VEC_INLINE void rows_body(struct mla_head_shape s, const float *x, const float *w, float *out, int64_t h, int64_t i0,
			  int64_t i1)
{
	x += h * s.n_in;
	w += h * s.n_out * s.n_in;
	out += h * s.n_out;
	int64_t i = i0;
	if (s.t_q >= TILE_T)
		for (; i + TILE_I <= i1; i += TILE_I)
			row_group(TILE_I, s, x, w + i * s.n_in, out + i);
	for (; i < i1; i++)
		row_group(1, s, x, w + i * s.n_in, out + i);
}

VEC_CLONES(rows,
	   (struct mla_head_shape s, const float *x, const float *w, float *out, int64_t h, int64_t i0, int64_t i1),
	   (s, x, w, out, h, i0, i1))

int head_product_shipped(const struct assay_call *call, struct mla_head_shape s)
{
	const float *x = call->tensor[MLA_HEAD_X], *w = call->tensor[MLA_HEAD_W];
	float *out = call->tensor[MLA_HEAD_OUT];
	host_note(call, "head_product_shipped", (void (*)(void))head_product_shipped);
#pragma omp parallel for schedule(static) num_threads(host_threads(call))
	for (int64_t h = 0; h < s.n_head; h++)
		rows(s, x, w, out, h, 0, s.n_out);
	return 0;
}

int head_product_split(const struct assay_call *call, struct mla_head_shape s)
{
	const float *x = call->tensor[MLA_HEAD_X], *w = call->tensor[MLA_HEAD_W];
	float *out = call->tensor[MLA_HEAD_OUT];
	const int64_t parts = call->arm_arg;
	host_note(call, "head_product_split", (void (*)(void))head_product_split);
#pragma omp parallel for schedule(static) num_threads(host_threads(call))
	for (int64_t task = 0; task < s.n_head * parts; task++) {
		const int64_t h = task / parts, p = task % parts;
		rows(s, x, w, out, h, host_part(s.n_out, p, parts), host_part(s.n_out, p + 1, parts));
	}
	return 0;
}

/* The bound: a sum of products whose longest path has depth roundings is off by at most gamma_depth * sum |x w|
 * (Higham, section 3.1), with an fma or without, in any order that keeps at least 16 partial sums. An underflow adds at most
 * 2^-150 a product. */
int head_product_reference(const struct assay_call *call, struct mla_head_shape s, const struct assay_rows *rows_wanted,
			   double *ref, double *bound)
{
	const float *x = call->tensor[MLA_HEAD_X], *w = call->tensor[MLA_HEAD_W];
	const double gamma = host_gamma(host_dot_depth(s.n_in)), tiny = (double)s.n_in * ldexp(1.0, -149);
	for (int64_t r = 0; r < rows_wanted->n; r++) {
		const int64_t row = rows_wanted->row != NULL ? rows_wanted->row[r] : r;
		const float *xr = x + row * s.n_in, *wh = w + row % s.n_head * s.n_out * s.n_in;
		for (int64_t i = 0; i < s.n_out; i++) {
			double sum = 0, abs_sum = 0;
			for (int64_t k = 0; k < s.n_in; k++) {
				const double product = (double)xr[k] * (double)wh[i * s.n_in + k];
				sum += product;
				abs_sum += fabs(product);
			}
			ref[r * s.n_out + i] = sum;
			bound[r * s.n_out + i] = gamma * abs_sum + tiny;
		}
	}
	return 0;
}

void head_product_work(struct mla_head_shape s, struct assay_work *out)
{
	const double heads = (double)s.n_head, n_in = (double)s.n_in, n_out = (double)s.n_out, t = (double)s.t_q;
	out->bytes = 4.0 * heads * (t * n_in + n_in * n_out + t * n_out);
	out->least_bytes = out->bytes; /* the shipped algorithm touches each element once */
	out->flop = 2.0 * heads * t * n_in * n_out;
}

int head_product_shape(struct mla_head_shape s, int t, struct assay_shape *out)
{
	switch (t) {
	case MLA_HEAD_X: *out = (struct assay_shape){.rank = 3, .dim = {s.t_q, s.n_head, s.n_in}}; return 0;
	case MLA_HEAD_W: *out = (struct assay_shape){.rank = 3, .dim = {s.n_head, s.n_out, s.n_in}}; return 0;
	case MLA_HEAD_OUT: *out = (struct assay_shape){.rank = 3, .dim = {s.t_q, s.n_head, s.n_out}}; return 0;
	default: return -1;
	}
}
