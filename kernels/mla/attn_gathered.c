/* mla.attn_gathered: attention of a few tokens over gathered rows of the latent cache.
 *
 *   s[t,h,j] = scale * (q_lat[t,h,:] . cache[idx[t,j], :kv_rank] + q_pe[t,h,:] . cache[idx[t,j], kv_rank:])
 *   out[t,h,:] = sum over j of softmax_j(s[t,h,:]) * cache[idx[t,j], :kv_rank],   j < n_slots = min(top_k, kv)
 *
 * A sparse attention (DSA) picks top_k rows of a cache that all heads share. The rows of a token are read once and used
 * by every head, twice: as key and as value. So a row does 4 * kv_rank * n_head operations for 4 * kv_rank bytes, and unlike
 * its two neighbours this kernel is bound by arithmetic, if rows are kept in cache while the heads pass over them.
 *
 * Arms: `shipped` gives a worker some heads of a token, all slots. `split=N` divides every head's work over N workers: the
 * slots where scores are computed, the columns where rows are summed; scores are computed once and shared, and every element
 * is the same chain of operations, so the bits are equal by construction. `split_kv=N` (flash decoding) divides the slots
 * for everything, each part with a maximum of its own, and merges: another order of the sum, other bits, held to the
 * reference.
 *
 * The steps and their order of operations are attn_steps.h; the device arms are attn_gathered.cu. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "attn_steps.h"
#include "host.h"

static const struct assay_param params[MLA_ATTN_PARAMS] = {
	[MLA_ATTN_P_N_HEAD] = MLA_N_HEAD,
	[MLA_ATTN_P_KV_RANK] = MLA_KV_RANK,
	[MLA_ATTN_P_D_ROPE] = {"d_rope", ASSAY_INT, 0, 65536, false, 0, 0, "width of the part with position; 0: none"},
	[MLA_ATTN_P_TOP_K] = {"top_k", ASSAY_INT, 1, 1048576, true, 0, 0, "rows gathered for a token, at most kv"},
	[MLA_ATTN_P_KV] = {"kv", ASSAY_INT, 1, 2147483647, true, 0, 0, "rows of the cache: its depth"},
	[MLA_ATTN_P_T_Q] = MLA_T_Q,
	[MLA_ATTN_P_D_NOPE] = {"d_nope", ASSAY_INT, 0, 65536, false, 0, 0,
			       "width of a head's query before absorption; only scale = 0 reads it"},
	[MLA_ATTN_P_SCALE] = {"scale", ASSAY_REAL, 0, 1e6, false, 0, 0,
			      "factor of the scores; 0: 1/sqrt(d_nope + d_rope)"},
};

static const struct assay_tensor tensors[MLA_ATTN_TENSORS] = {
	[MLA_ATTN_Q_LAT] = {.name = "q_lat",
			    .role = ASSAY_IN,
			    .dtype = ASSAY_F32,
			    .dims = "t_q n_head kv_rank",
			    .doc = "queries in the space of the latent"},
	[MLA_ATTN_Q_PE] = {.name = "q_pe",
			   .role = ASSAY_IN,
			   .dtype = ASSAY_F32,
			   .dims = "t_q n_head d_rope",
			   .doc = "queries with position; empty where d_rope is 0"},
	[MLA_ATTN_CACHE] = {.name = "cache",
			    .role = ASSAY_IN,
			    .dtype = ASSAY_F32,
			    .dims = "kv width",
			    .doc = "cached rows: kv_rank of latent, then d_rope of position"},
	[MLA_ATTN_IDX] = {.name = "idx",
			  .role = ASSAY_IN,
			  .dtype = ASSAY_I32,
			  .use = ASSAY_INDEX,
			  .dims = "t_q n_slots",
			  .doc = "the rows a token attends to"},
	[MLA_ATTN_OUT] = {.name = "out",
			  .role = ASSAY_OUT,
			  .dtype = ASSAY_F32,
			  .dims = "t_q n_head kv_rank",
			  .doc = "attended latent"},
};

static int shape(const struct assay_point *p, int t, struct assay_shape *out)
{
	const struct mla_attn_shape s = mla_attn_of(p);
	switch (t) {
	case MLA_ATTN_Q_LAT:
	case MLA_ATTN_OUT: *out = (struct assay_shape){.rank = 3, .dim = {s.t_q, s.n_head, s.kv_rank}}; return 0;
	case MLA_ATTN_Q_PE: *out = (struct assay_shape){.rank = 3, .dim = {s.t_q, s.n_head, s.d_rope}}; return 0;
	case MLA_ATTN_CACHE: *out = (struct assay_shape){.rank = 2, .dim = {s.kv, s.width}}; return 0;
	case MLA_ATTN_IDX:
		*out = (struct assay_shape){.rank = 2, .dim = {s.t_q, s.n_slots}, .index_bound = s.kv};
		return 0;
	default: return -1;
	}
}

static const char *refuse(const struct assay_point *p)
{
	if (p->v[MLA_ATTN_P_SCALE].d == 0.0 && p->v[MLA_ATTN_P_D_NOPE].i == 0)
		return "scale is 0, which means 1/sqrt(d_nope + d_rope), and d_nope is not set: set d_nope or scale";
	return NULL;
}

static void work(const struct assay_point *p, const struct assay_facts *facts, struct assay_work *out)
{
	const struct mla_attn_shape s = mla_attn_of(p);
	const double rows = (double)s.t_q * (double)s.n_slots, heads = (double)s.t_q * (double)s.n_head;
	const double rest = 4.0 * (heads * (double)(2 * s.kv_rank + s.d_rope) + rows);
	double distinct = (double)facts->distinct[MLA_ATTN_IDX];
	if (distinct < 0)
		distinct = fmin((double)s.n_slots,
				(double)s.kv); /* not counted: at least one token's, if without repeats */
	out->bytes = rest + 4.0 * rows * (double)s.width;
	out->least_bytes = rest + 4.0 * distinct * (double)s.width;
	out->flop = 2.0 * heads * (double)s.n_slots * (double)(s.width + s.kv_rank);
}

/* ---- host arms ----------------------------------------------------------------------------------------------------- */

/* A launch, unpacked. */
struct attn {
	struct mla_attn_shape s;
	const float *q_lat, *q_pe, *cache;
	const int32_t *idx;
	float *out, *score; /* score: [t_q][n_head][n_slots], workspace */
	int64_t group, groups; /* heads of a task, and tasks of a token */
};

static struct attn unpack(const struct assay_call *call)
{
	struct attn a = {.s = mla_attn_of(call->point)};
	a.q_lat = call->tensor[MLA_ATTN_Q_LAT];
	a.q_pe = call->tensor[MLA_ATTN_Q_PE];
	a.cache = call->tensor[MLA_ATTN_CACHE];
	a.idx = call->tensor[MLA_ATTN_IDX];
	a.out = call->tensor[MLA_ATTN_OUT];
	a.score = call->workspace;
	/* Many heads a task keep a row in cache for all of them; few of them keep all threads at work. */
	a.group = 32;
	while (a.group > 4 && a.s.t_q * host_ceil_div(a.s.n_head, a.group) < host_threads(call))
		a.group /= 2;
	a.groups = host_ceil_div(a.s.n_head, a.group);
	return a;
}

/* Heads of task `g` of token t. */
static struct attn_block block(const struct attn *a, int64_t t, int64_t g)
{
	const struct mla_attn_shape *s = &a->s;
	return (struct attn_block){
		.s = s,
		.q_lat = a->q_lat + t * s->n_head * s->kv_rank,
		.q_pe = s->d_rope > 0 ? a->q_pe + t * s->n_head * s->d_rope : NULL,
		.cache = a->cache,
		.idx = a->idx + t * s->n_slots,
		.h0 = g * a->group,
		.h1 = host_min(s->n_head, (g + 1) * a->group),
	};
}

static float *score_of(const struct attn *a, int64_t t)
{
	return a->score + t * a->s.n_head * a->s.n_slots;
}

/* Columns c0 .. c1-1 of part p, whole vectors where they last. */
static int64_t column_part(const struct mla_attn_shape *s, int64_t p, int64_t parts)
{
	return host_min(s->kv_rank, 16 * host_part(host_ceil_div(s->kv_rank, 16), p, parts));
}

static void divide(const struct attn_block *b, const float *sum, int64_t c0, int64_t c1, float *out)
{
	for (int64_t h = b->h0; h < b->h1; h++)
		for (int64_t r = c0; r < c1; r++)
			out[h * b->s->kv_rank + r] /= sum[h];
}

static size_t workspace_scores(const struct assay_point *p, int64_t arm_arg)
{
	const struct mla_attn_shape s = mla_attn_of(p);
	return (size_t)(s.t_q * s.n_head * (s.n_slots + 1)) * sizeof(float);
}

static int run_shipped(const struct assay_call *call, void *state)
{
	const struct attn a = unpack(call);
	float *sums = a.score + a.s.t_q * a.s.n_head * a.s.n_slots;
	host_note(call, "attn_gathered_shipped", (void (*)(void))run_shipped);
#pragma omp parallel for schedule(static) num_threads(host_threads(call))
	for (int64_t task = 0; task < a.s.t_q * a.groups; task++) {
		const int64_t t = task / a.groups;
		const struct attn_block b = block(&a, t, task % a.groups);
		float *score = score_of(&a, t), *sum = sums + t * a.s.n_head,
		      *out = a.out + t * a.s.n_head * a.s.kv_rank;
		float max;
		attn_scores(&b, 0, a.s.n_slots, score);
		for (int64_t h = b.h0; h < b.h1; h++)
			attn_softmax(score + h * a.s.n_slots, a.s.n_slots, &max, sum + h);
		attn_gather(&b, 0, a.s.n_slots, 0, a.s.kv_rank, score, out, a.s.kv_rank);
		divide(&b, sum, 0, a.s.kv_rank, out);
	}
	return 0;
}

static int run_split(const struct assay_call *call, void *state)
{
	const struct attn a = unpack(call);
	const int64_t parts = call->arm_arg, tasks = a.s.t_q * a.groups * parts;
	float *sums = a.score + a.s.t_q * a.s.n_head * a.s.n_slots;
	host_note(call, "attn_gathered_split", (void (*)(void))run_split);
#pragma omp parallel num_threads(host_threads(call))
	{
#pragma omp for schedule(static)
		for (int64_t task = 0; task < tasks; task++) {
			const int64_t t = task / (a.groups * parts), p = task % parts;
			const struct attn_block b = block(&a, t, task / parts % a.groups);
			attn_scores(&b, host_part(a.s.n_slots, p, parts), host_part(a.s.n_slots, p + 1, parts),
				    score_of(&a, t));
		}
#pragma omp for schedule(static)
		for (int64_t row = 0; row < a.s.t_q * a.s.n_head; row++) {
			float max;
			attn_softmax(a.score + row * a.s.n_slots, a.s.n_slots, &max, sums + row);
		}
#pragma omp for schedule(static)
		for (int64_t task = 0; task < tasks; task++) {
			const int64_t t = task / (a.groups * parts), p = task % parts;
			const struct attn_block b = block(&a, t, task / parts % a.groups);
			const int64_t c0 = column_part(&a.s, p, parts), c1 = column_part(&a.s, p + 1, parts);
			float *out = a.out + t * a.s.n_head * a.s.kv_rank;
			attn_gather(&b, 0, a.s.n_slots, c0, c1, score_of(&a, t), out, a.s.kv_rank);
			divide(&b, sums + t * a.s.n_head, c0, c1, out);
		}
	}
	return 0;
}

/* split_kv: of every part and row the maximum, the sum, and the unscaled output, after the scores. */
static size_t workspace_split_kv(const struct assay_point *p, int64_t arm_arg)
{
	const struct mla_attn_shape s = mla_attn_of(p);
	return (size_t)(s.t_q * s.n_head * (s.n_slots + arm_arg * (s.kv_rank + 2))) * sizeof(float);
}

/* Row (t, h): parts of weight exp(max_p - max). */
static void merge(const struct mla_attn_shape *s, int64_t parts, const float *max, const float *sum, const float *acc,
		  int64_t part_stride, int64_t row_stride, float *out)
{
	float most = -INFINITY, total = 0, weight[MLA_SPLIT_MAX];
	for (int64_t p = 0; p < parts; p++)
		most = fmaxf(most, max[p * part_stride]);
	for (int64_t p = 0; p < parts; p++)
		weight[p] = max[p * part_stride] - most;
	attn_exp(weight, weight, parts);
	for (int64_t p = 0; p < parts; p++)
		total += weight[p] * sum[p * part_stride];
	for (int64_t r = 0; r < s->kv_rank; r++) {
		float x = 0;
		for (int64_t p = 0; p < parts; p++)
			x += weight[p] * acc[p * row_stride + r];
		out[r] = x / total;
	}
}

static int run_split_kv(const struct assay_call *call, void *state)
{
	const struct attn a = unpack(call);
	const struct mla_attn_shape *s = &a.s;
	const int64_t rows = s->t_q * s->n_head, parts = call->arm_arg;
	float *max = a.score + rows * s->n_slots, *sum = max + rows * parts, *acc = sum + rows * parts;
	host_note(call, "attn_gathered_split_kv", (void (*)(void))run_split_kv);
#pragma omp parallel num_threads(host_threads(call))
	{
#pragma omp for schedule(static)
		for (int64_t task = 0; task < s->t_q * a.groups * parts; task++) {
			const int64_t t = task / (a.groups * parts), p = task % parts;
			const struct attn_block b = block(&a, t, task / parts % a.groups);
			const int64_t j0 = host_part(s->n_slots, p, parts), j1 = host_part(s->n_slots, p + 1, parts);
			const int64_t row0 = p * rows + t * s->n_head; /* of this part, head 0 of this token */
			float *score = score_of(&a, t);
			attn_scores(&b, j0, j1, score);
			for (int64_t h = b.h0; h < b.h1; h++) {
				max[row0 + h] = -INFINITY; /* an empty part weighs nothing */
				sum[row0 + h] = 0;
				if (j0 < j1)
					attn_softmax(score + h * s->n_slots + j0, j1 - j0, &max[row0 + h],
						     &sum[row0 + h]);
			}
			attn_gather(&b, j0, j1, 0, s->kv_rank, score, acc + row0 * s->kv_rank, s->kv_rank);
		}
#pragma omp for schedule(static)
		for (int64_t row = 0; row < rows; row++)
			merge(s, parts, max + row, sum + row, acc + row * s->kv_rank, rows, rows * s->kv_rank,
			      a.out + row * s->kv_rank);
	}
	return 0;
}

/* ---- reference ----------------------------------------------------------------------------------------------------- */

/* The bound, with u = 2^-24 and gamma_n = n u / (1 - n u):
 *   a score is off by e_j <= scale * gamma_(d+3) * sum_k |q_k c_k|, d the depth of the two dot products (host_dot_depth), 3 for
 *     adding them, scaling, and the scale's own rounding to f32;
 *   exp(s - max): the maximum cancels between numerator and denominator, whatever it is, so a weight is off by a factor
 *     1 + theta_j, |theta_j| <= expm1(e_j + 2 u |s_j - max|) + K u: two subtractions (a part's maximum, then the merge), and K = 16
 *     for two exps of 4 u each, the products of a merge and what is of second order;
 *   out = sum w_j (1 + theta_j) c_j / sum w_j (1 + theta_j) is then off by at most sum w_j |theta_j| |c_j - out| / (1 - max theta);
 *   the two sums over n slots, in any order and with the merge, and the division add gamma_(n+8) sum w_j |c_j| and
 *     gamma_(n+8) |out|.
 * Weights below exp(-87) may be flushed to zero: at most n 2^-125 of max |c|. */
struct row {
	double *p, *theta; /* a slot: weight, and what it may be off by */
	double *abs_sum, *moved, *most; /* a column */
};

static void reference_row(const struct mla_attn_shape *s, const float *q_lat, const float *q_pe, const float *cache,
			  const int32_t *idx, struct row w, double *ref, double *bound)
{
	const double u = ldexp(1.0, -24);
	const double gamma_dot =
		host_gamma(host_dot_depth(s->kv_rank) + (s->d_rope > 0 ? host_dot_depth(s->d_rope) : 0) + 3);
	const double gamma_sum = host_gamma(s->n_slots + 8);
	double most = -INFINITY, total = 0, worst = 0;
	for (int64_t j = 0; j < s->n_slots; j++) {
		const float *c = cache + (int64_t)idx[j] * s->width;
		double dot = 0, abs_dot = 0;
		for (int64_t k = 0; k < s->width; k++) {
			const double product =
				(double)(k < s->kv_rank ? q_lat[k] : q_pe[k - s->kv_rank]) * (double)c[k];
			dot += product;
			abs_dot += fabs(product);
		}
		w.p[j] = s->scale_real * dot;
		w.theta[j] = s->scale_real * gamma_dot * abs_dot;
		most = fmax(most, w.p[j]);
	}
	for (int64_t j = 0; j < s->n_slots; j++) {
		w.theta[j] = expm1(w.theta[j] + 2 * u * (most - w.p[j])) + 16 * u;
		w.p[j] = exp(w.p[j] - most);
		total += w.p[j];
		worst = fmax(worst, w.theta[j]);
	}
	/* A theta of 1 or more says that rounding can move a weight by its own size: then nothing is known. */
	const double spread = worst < 1 ? 1 / (1 - worst) : INFINITY;

	for (int64_t r = 0; r < s->kv_rank; r++)
		ref[r] = w.abs_sum[r] = w.moved[r] = w.most[r] = 0;
	for (int64_t j = 0; j < s->n_slots; j++) {
		const float *c = cache + (int64_t)idx[j] * s->width;
		for (int64_t r = 0; r < s->kv_rank; r++) {
			ref[r] += w.p[j] * (double)c[r];
			w.abs_sum[r] += w.p[j] * fabs((double)c[r]);
			w.most[r] = fmax(w.most[r], fabs((double)c[r]));
		}
	}
	for (int64_t r = 0; r < s->kv_rank; r++)
		ref[r] /= total;
	for (int64_t j = 0; j < s->n_slots; j++) {
		const float *c = cache + (int64_t)idx[j] * s->width;
		for (int64_t r = 0; r < s->kv_rank; r++)
			w.moved[r] += w.p[j] * w.theta[j] * fabs((double)c[r] - ref[r]);
	}
	for (int64_t r = 0; r < s->kv_rank; r++)
		bound[r] = spread * (w.moved[r] + gamma_sum * w.abs_sum[r]) / total + gamma_sum * fabs(ref[r]) +
			   (double)s->n_slots * ldexp(w.most[r], -125) + ldexp(1.0, -149);
}

/* Row r is (t, h) = (r / n_head, r % n_head). */
static int reference(const struct assay_call *call, int tensor, const struct assay_rows *rows, double *ref,
		     double *bound)
{
	const struct attn a = unpack(call);
	const struct mla_attn_shape *s = &a.s;
	double *buffer = malloc((size_t)(2 * s->n_slots + 3 * s->kv_rank) * sizeof *buffer);
	if (buffer == NULL) {
		snprintf(call->error, ASSAY_ERROR_MAX,
			 "attn_gathered: no memory for the reference of a row of %lld slots", (long long)s->n_slots);
		return -1;
	}
	struct row w = {.p = buffer, .theta = buffer + s->n_slots, .abs_sum = buffer + 2 * s->n_slots};
	w.moved = w.abs_sum + s->kv_rank;
	w.most = w.moved + s->kv_rank;
	for (int64_t i = 0; i < rows->n; i++) {
		const int64_t row = rows->row != NULL ? rows->row[i] : i;
		reference_row(s, a.q_lat + row * s->kv_rank, s->d_rope > 0 ? a.q_pe + row * s->d_rope : NULL, a.cache,
			      a.idx + row / s->n_head * s->n_slots, w, ref + i * s->kv_rank, bound + i * s->kv_rank);
	}
	free(buffer);
	return 0;
}

static int run_flipped(const struct assay_call *call, void *state)
{
	int rc = run_split(call, state);
	host_flip_bit(call->tensor[MLA_ATTN_OUT], assay_shape_count(&call->shape[MLA_ATTN_OUT]));
	return rc;
}

/* ---- descriptor ---------------------------------------------------------------------------------------------------- */

static const struct assay_arm_ops host_shipped = {.run = run_shipped, .workspace_bytes = workspace_scores};
static const struct assay_arm_ops host_split = {.run = run_split, .workspace_bytes = workspace_scores};
static const struct assay_arm_ops host_flipped = {.run = run_flipped, .workspace_bytes = workspace_scores};
static const struct assay_arm_ops host_split_kv = {.run = run_split_kv, .workspace_bytes = workspace_split_kv};

static const struct assay_arm arms[] = {
	{.name = "shipped",
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_SELECTABLE,
	 .doc = "a worker for some heads of a token, all slots",
	 .ops = {&host_shipped, MLA_CUDA(mla_attn_gathered_cuda_shipped)}},
	{.name = "split",
	 .arg_name = "N",
	 .arg_min = MLA_SPLIT_MIN,
	 .arg_max = MLA_SPLIT_MAX,
	 .flags = ASSAY_ARM_BITWISE | ASSAY_ARM_SELECTABLE,
	 .doc = "N workers a head: slots of the scores, then columns of the sum; the same operations an element",
	 .ops = {&host_split, MLA_CUDA(mla_attn_gathered_cuda_split)}},
	{.name = "split_kv",
	 .arg_name = "N",
	 .arg_min = MLA_SPLIT_MIN,
	 .arg_max = MLA_SPLIT_MAX,
	 .flags = ASSAY_ARM_SELECTABLE,
	 .doc = "flash decoding: N parts of the slots with a maximum each, then a merge; not the bits of shipped",
	 .ops = {&host_split_kv, MLA_CUDA(mla_attn_gathered_cuda_split_kv)}},
	MLA_FLIPPED(host_flipped),
};

const struct assay_kernel assay_kernel_mla_attn_gathered = {
	.abi = ASSAY_ABI,
	.name = "mla.attn_gathered",
	.doc = "attention over gathered rows of the latent cache, shared by all heads",
	.params = params,
	.n_params = MLA_ATTN_PARAMS,
	.tensors = tensors,
	.n_tensors = MLA_ATTN_TENSORS,
	.arms = arms,
	.n_arms = sizeof arms / sizeof *arms,
	.shape = shape,
	.refuse = refuse,
	.work = work,
	.reference = reference,
	.row_rank = 2,
};
