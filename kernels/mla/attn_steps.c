#include "attn_steps.h"

#include "host.h"
#include "vec.h"

enum {
	SLOT_BLOCK = 64, /* rows of 2 KiB: 128 KiB, well within a second-level cache */
	TILE = 4, /* heads times slots, and heads times column vectors: 16 accumulators */
};

VEC_INLINE void dots(int nh, int nj, const float *q, int64_t ldq, const float *const *rows, int64_t offset, int64_t n,
		     float out[TILE][TILE])
{
	vec acc[TILE][TILE] = {{{0}}};
	const int64_t whole = n - n % VEC;
	for (int64_t k = 0; k < whole; k += VEC) {
		vec qs[TILE];
		VEC_UNROLL
		for (int h = 0; h < nh; h++)
			qs[h] = vec_load(q + h * ldq + k);
		VEC_UNROLL
		for (int j = 0; j < nj; j++) {
			const vec c = vec_load(rows[j] + offset + k);
			VEC_UNROLL
			for (int h = 0; h < nh; h++)
				acc[h][j] = vec_fma(qs[h], c, acc[h][j]);
		}
	}
	if (whole < n)
		for (int j = 0; j < nj; j++)
			for (int h = 0; h < nh; h++)
				acc[h][j] = vec_fma(vec_load_part(q + h * ldq + whole, n - whole),
						    vec_load_part(rows[j] + offset + whole, n - whole), acc[h][j]);
	VEC_UNROLL
	for (int h = 0; h < nh; h++) {
		if (nj == 4) {
			const vecq sums = vec_sum4(acc[h][0], acc[h][1], acc[h][2], acc[h][3]);
			memcpy(out[h], &sums, sizeof sums);
		} else {
			for (int j = 0; j < nj; j++)
				out[h][j] = vec_sum(acc[h][j]);
		}
	}
}

/* nh heads from h on, nj slots from j on. */
VEC_INLINE void score_tile(int nh, int nj, const struct attn_block *b, int64_t h, int64_t j, const float *const *rows,
			   float *score)
{
	const struct mla_attn_shape *s = b->s;
	float lat[TILE][TILE], pe[TILE][TILE];
	dots(nh, nj, b->q_lat + h * s->kv_rank, s->kv_rank, rows, 0, s->kv_rank, lat);
	if (s->d_rope > 0)
		dots(nh, nj, b->q_pe + h * s->d_rope, s->d_rope, rows, s->kv_rank, s->d_rope, pe);
	for (int a = 0; a < nh; a++)
		for (int c = 0; c < nj; c++)
			score[(h + a) * s->n_slots + j + c] =
				s->scale * (s->d_rope > 0 ? lat[a][c] + pe[a][c] : lat[a][c]);
}

VEC_INLINE void scores_body(const struct attn_block *b, int64_t j0, int64_t j1, float *score)
{
	for (int64_t j = j0; j < j1;) {
		const float *rows[TILE];
		const int nj = j1 - j >= TILE ? TILE : 1;
		for (int c = 0; c < nj; c++)
			rows[c] = b->cache + (int64_t)b->idx[j + c] * b->s->width;
		for (int64_t h = b->h0; h < b->h1;) {
			const int nh = b->h1 - h >= TILE ? TILE : 1;
			if (nh == TILE && nj == TILE)
				score_tile(TILE, TILE, b, h, j, rows, score);
			else if (nj == TILE)
				score_tile(1, TILE, b, h, j, rows, score);
			else if (nh == TILE)
				score_tile(TILE, 1, b, h, j, rows, score);
			else
				score_tile(1, 1, b, h, j, rows, score);
			h += nh;
		}
		j += nj;
	}
}

VEC_INLINE void softmax_body(float *score, int64_t n, float *max, float *sum)
{
	const int64_t whole = n - n % VEC;
	float m = score[0];
	if (whole > 0) {
		vec most = vec_load(score);
		for (int64_t j = VEC; j < whole; j += VEC) {
			const vec x = vec_load(score + j);
			for (int l = 0; l < VEC; l++)
				most[l] = x[l] > most[l] ? x[l] : most[l];
		}
		m = vec_max(most);
	}
	for (int64_t j = whole; j < n; j++)
		m = score[j] > m ? score[j] : m;

	vec total = {0};
	for (int64_t j = 0; j < whole; j += VEC) {
		const vec p = vec_exp(vec_load(score + j) - vec_all(m));
		vec_store(score + j, p);
		total += p;
	}
	if (whole < n) {
		const vec p = vec_exp(vec_load_part(score + whole, n - whole) - vec_all(m));
		vec_store_part(score + whole, p, n - whole);
		total += vec_load_part(score + whole, n - whole);
	}
	*max = m;
	*sum = vec_sum(total);
}

/* nh heads times nv vectors of columns: acc stays in registers over the slots. */
VEC_INLINE void gather_tile(int nh, int nv, const float *const *rows, int64_t n, const float *p, int64_t ldp,
			    float *acc, int64_t ld)
{
	vec a[TILE][TILE];
	VEC_UNROLL
	for (int h = 0; h < nh; h++)
		VEC_UNROLL
	for (int v = 0; v < nv; v++)
		a[h][v] = vec_load(acc + h * ld + v * VEC);
	for (int64_t j = 0; j < n; j++) {
		vec c[TILE];
		VEC_UNROLL
		for (int v = 0; v < nv; v++)
			c[v] = vec_load(rows[j] + v * VEC);
		VEC_UNROLL
		for (int h = 0; h < nh; h++) {
			const vec w = vec_all(p[h * ldp + j]);
			VEC_UNROLL
			for (int v = 0; v < nv; v++)
				a[h][v] = vec_fma(w, c[v], a[h][v]);
		}
	}
	VEC_UNROLL
	for (int h = 0; h < nh; h++)
		VEC_UNROLL
	for (int v = 0; v < nv; v++)
		vec_store(acc + h * ld + v * VEC, a[h][v]);
}

/* Columns that do not fill a vector: the same chain, one column at a time. */
VEC_INLINE void gather_column(const float *const *rows, int64_t n, const float *p, float *acc)
{
	float a = *acc;
	for (int64_t j = 0; j < n; j++)
		a = __builtin_fmaf(p[j], *rows[j], a);
	*acc = a;
}

/* Columns c .. c1-1 (at most TILE vectors) of n slots; rows already point at column c. */
VEC_INLINE void gather_chunk(const struct attn_block *b, const float *const *rows, int64_t n, int64_t columns,
			     const float *p, float *acc, int64_t ld)
{
	const int64_t ldp = b->s->n_slots;
	for (int64_t h = b->h0; h < b->h1;) {
		const int nh = b->h1 - h >= TILE ? TILE : 1;
		const float *ph = p + h * ldp;
		float *ah = acc + h * ld;
		if (columns == TILE * VEC && nh == TILE)
			gather_tile(TILE, TILE, rows, n, ph, ldp, ah, ld);
		else if (columns == TILE * VEC)
			gather_tile(1, TILE, rows, n, ph, ldp, ah, ld);
		else if (columns == VEC && nh == TILE)
			gather_tile(TILE, 1, rows, n, ph, ldp, ah, ld);
		else if (columns == VEC)
			gather_tile(1, 1, rows, n, ph, ldp, ah, ld);
		else
			for (int a = 0; a < nh; a++)
				gather_column(rows, n, ph + a * ldp, ah + a * ld);
		h += nh;
	}
}

VEC_INLINE void gather_body(const struct attn_block *b, int64_t j0, int64_t j1, int64_t c0, int64_t c1, const float *p,
			    float *acc, int64_t ld)
{
	for (int64_t h = b->h0; h < b->h1; h++)
		memset(acc + h * ld + c0, 0, (size_t)(c1 - c0) * sizeof *acc);
	for (int64_t j = j0; j < j1; j += SLOT_BLOCK) {
		const float *rows[SLOT_BLOCK];
		const int64_t n = host_min(SLOT_BLOCK, j1 - j);
		for (int64_t c = c0; c < c1;) {
			const int64_t left = c1 - c;
			const int64_t columns = left >= TILE * VEC ? TILE * VEC : left >= VEC ? VEC : 1;
			for (int64_t i = 0; i < n; i++)
				rows[i] = b->cache + (int64_t)b->idx[j + i] * b->s->width + c;
			gather_chunk(b, rows, n, columns, p + j, acc + c, ld);
			c += columns;
		}
	}
}

VEC_INLINE void exp16_body(const float *in, float *out, int64_t n)
{
	for (int64_t i = 0; i < n; i += VEC) {
		const int64_t k = host_min(VEC, n - i);
		vec_store_part(out + i, vec_exp(vec_load_part(in + i, k)), k);
	}
}

VEC_CLONES(scores, (const struct attn_block *b, int64_t j0, int64_t j1, float *score), (b, j0, j1, score))
VEC_CLONES(softmax, (float *score, int64_t n, float *max, float *sum), (score, n, max, sum))
VEC_CLONES(gather,
	   (const struct attn_block *b, int64_t j0, int64_t j1, int64_t c0, int64_t c1, const float *p, float *acc,
	    int64_t ld),
	   (b, j0, j1, c0, c1, p, acc, ld))
VEC_CLONES(exp16, (const float *in, float *out, int64_t n), (in, out, n))

void attn_scores(const struct attn_block *b, int64_t j0, int64_t j1, float *score)
{
	scores(b, j0, j1, score);
}

void attn_softmax(float *score, int64_t n, float *max, float *sum)
{
	softmax(score, n, max, sum);
}

void attn_gather(const struct attn_block *b, int64_t j0, int64_t j1, int64_t c0, int64_t c1, const float *p, float *acc,
		 int64_t ld)
{
	gather(b, j0, j1, c0, c1, p, acc, ld);
}

void attn_exp(const float *in, float *out, int64_t n)
{
	exp16(in, out, n);
}
