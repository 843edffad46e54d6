/* The built-in kernels: that descriptors hold together, that split arms give the bits of shipped on odd shapes, that arms lie
 * within their references' bounds and the bounds catch small mistakes, and that each fault is wrong in the way it names.
 * Tensors are allocated to the byte, so that the sanitizers see what leaves them. */
#include "test_rig.h"
#include "unit.h"

/* ---- descriptors --------------------------------------------------------------------------------------------------- */

static struct assay_point defaults(const struct assay_kernel *k)
{
	struct assay_point p = {0};
	for (int i = 0; i < k->n_params; i++) {
		const struct assay_param *q = &k->params[i];
		const double v = q->required ? fmax(q->min, 2) : q->dflt;
		if (q->type == ASSAY_INT)
			p.v[i].i = (int64_t)v;
		else
			p.v[i].d = v;
	}
	return p;
}

START_TEST(descriptors_hold)
{
	const struct assay_kernel *k = kernels[_i];
	ck_assert_uint_eq(k->abi, ASSAY_ABI);
	ck_assert_ptr_nonnull(strchr(k->name, '.'));
	ck_assert_int_le(k->n_params, ASSAY_MAX_PARAMS);
	ck_assert_int_le(k->n_tensors, ASSAY_MAX_TENSORS);
	ck_assert_str_eq(k->arms[0].name, "shipped");
	const struct assay_point p = defaults(k);
	int outputs = 0;
	for (int t = 0; t < k->n_tensors; t++) {
		struct assay_shape s;
		ck_assert_int_eq(k->shape(&p, t, &s), 0);
		int words = 1;
		for (const char *c = k->tensors[t].dims; *c; c++)
			words += *c == ' ';
		ck_assert_int_eq(words, s.rank);
		outputs += k->tensors[t].role == ASSAY_OUT || k->tensors[t].role == ASSAY_INOUT;
		ck_assert_ptr_nonnull(k->tensors[t].doc);
	}
	ck_assert_int_eq(outputs, 1);
	for (int i = 0; i < k->n_params; i++) {
		ck_assert(k->params[i].min <= k->params[i].max);
		ck_assert(k->params[i].required ||
			  (k->params[i].dflt >= k->params[i].min && k->params[i].dflt <= k->params[i].max));
		/* A dimension named after a parameter has its value. */
		for (int t = 0; t < k->n_tensors; t++) {
			char dims[128], *save = NULL;
			struct assay_shape s;
			k->shape(&p, t, &s);
			snprintf(dims, sizeof dims, "%s", k->tensors[t].dims);
			int d = 0;
			for (char *w = strtok_r(dims, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save), d++)
				if (strcmp(w, k->params[i].name) == 0)
					ck_assert_int_eq(s.dim[d], p.v[i].i);
		}
	}
	for (int a = 0; a < k->n_arms; a++) {
		ck_assert_ptr_nonnull(k->arms[a].doc);
		/* An arm of an instruction that only some devices have is nowhere in a build without them. */
		ck_assert(k->arms[a].ops[ASSAY_HOST] == NULL || k->arms[a].ops[ASSAY_HOST]->run != NULL);
		ck_assert(a > 0 || k->arms[a].ops[ASSAY_HOST] != NULL);
		for (int b = 0; b < a; b++)
			ck_assert_str_ne(k->arms[a].name, k->arms[b].name);
	}
	ck_assert(k->shape != NULL);
	ck_assert(k->work != NULL);
	ck_assert(k->reference != NULL);
}
END_TEST

/* ---- mla ----------------------------------------------------------------------------------------------------------- */

static struct assay_point head_point(int64_t n_head, int64_t kv_rank, int64_t d, int64_t t_q)
{
	return (struct assay_point){{{.i = n_head}, {.i = kv_rank}, {.i = d}, {.i = t_q}}};
}

static struct assay_point attn_point(int64_t n_head, int64_t kv_rank, int64_t d_rope, int64_t top_k, int64_t kv,
				     int64_t t_q)
{
	return (struct assay_point){{{.i = n_head},
				     {.i = kv_rank},
				     {.i = d_rope},
				     {.i = top_k},
				     {.i = kv},
				     {.i = t_q},
				     {.i = 40},
				     {.d = 0}}};
}

static const struct {
	const struct assay_kernel *k;
	int64_t v[6];
} shapes[] = {
	{&assay_kernel_mla_absorb_q, {1, 1, 1, 1}},
	{&assay_kernel_mla_absorb_q, {3, 37, 19, 5}},
	{&assay_kernel_mla_absorb_q, {5, 64, 48, 7}},
	{&assay_kernel_mla_absorb_q, {2, 66, 33, 8}},
	{&assay_kernel_mla_decompress_v, {3, 37, 19, 2}},
	{&assay_kernel_mla_decompress_v, {4, 128, 21, 3}},
	{&assay_kernel_mla_decompress_v, {2, 50, 65, 4}},
	{&assay_kernel_mla_attn_gathered, {1, 1, 0, 1, 1, 1}},
	{&assay_kernel_mla_attn_gathered, {5, 37, 0, 33, 100, 3}},
	{&assay_kernel_mla_attn_gathered, {3, 24, 5, 64, 21, 2}}, /* kv < top_k */
	{&assay_kernel_mla_attn_gathered, {6, 80, 16, 130, 500, 7}},
	{&assay_kernel_mla_attn_gathered, {9, 112, 8, 70, 1000, 4}},
	{&assay_kernel_mla_attn_gathered, {33, 64, 0, 65, 90, 1}},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static struct rig mla_rig(int i, int threads)
{
	const int64_t *v = shapes[i].v;
	return rig_create(shapes[i].k,
			  shapes[i].k == &assay_kernel_mla_attn_gathered
				  ? attn_point(v[0], v[1], v[2], v[3], v[4], v[5])
				  : head_point(v[0], v[1], v[2], v[3]),
			  threads);
}

START_TEST(split_has_the_bits_of_shipped)
{
	static const int64_t parts[] = {2, 3, 4, 7, 8, 64};
	struct rig r = mla_rig(_i, 1);
	ck_assert_int_eq(rig_run(&r, "shipped", 0), 0);
	void *want = copy_out(&r);
	for (int threads = 1; threads <= 3; threads++) {
		r.threads = threads;
		rig_run(&r, "shipped", 0);
		ck_assert_int_eq(differ(&r, want), 0);
		for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
			ck_assert_int_eq(rig_run(&r, "split", parts[p]), 0);
			ck_assert_msg(differ(&r, want) == 0, "%s: split=%d, %d threads", r.k->name, (int)parts[p],
				      threads);
		}
	}
	free(want);
	rig_finish(&r);
}
END_TEST

START_TEST(arms_are_within_the_bound)
{
	struct rig r = mla_rig(_i, 2);
	const struct assay_point p = r.point;
	rig_run(&r, "shipped", 0);
	const struct verdict v = against_reference(&r);
	ck_assert_msg(v.beyond == 0, "%s: %d beyond, worst %g of the bound", r.k->name, (int)v.beyond, v.worst);
	if (r.k == &assay_kernel_mla_attn_gathered) {
		for (int parts = 2; parts <= 64; parts = parts * 2 + 1) {
			rig_run(&r, "split_kv", parts);
			const struct verdict s = against_reference(&r);
			ck_assert_msg(s.beyond == 0, "split_kv=%d: %d beyond, worst %g", parts, (int)s.beyond, s.worst);
		}
		/* Sharp softmax: one slot takes nearly all. */
		r.point.v[MLA_ATTN_P_SCALE].d = 20;
		rig_run(&r, "split_kv", 3);
		ck_assert_int_eq(against_reference(&r).beyond, 0);
		r.point = p;
	}
	rig_finish(&r);
}
END_TEST

/* The rows of a token do not depend on how many tokens there are, nor on where they stand. */
START_TEST(rows_are_invariant)
{
	struct rig r = mla_rig(_i, 1);
	rig_run(&r, "shipped", 0);
	const int t_q = r.k == &assay_kernel_mla_attn_gathered ? MLA_ATTN_P_T_Q : MLA_HEAD_P_T_Q;
	const int64_t tokens = r.point.v[t_q].i;
	void *all = copy_out(&r);
	r.point.v[t_q].i = 1;
	rig_run(&r, "shipped", 0);
	ck_assert_mem_eq(r.tensor[r.out], all, r.bytes[r.out] / (size_t)tokens);
	free(all);
	rig_finish(&r);
}
END_TEST

/* A bound that no mistake can leave is no bound. */
START_TEST(bound_catches_a_changed_product)
{
	/* Rows of 256, as absorb_q has. One factor of the largest product moves by 2^-12. */
	struct rig r = rig_create(&assay_kernel_mla_absorb_q, head_point(2, 8, 256, 1), 1);
	float *q = r.tensor[MLA_HEAD_X];
	const float *w = r.tensor[MLA_HEAD_W];
	int64_t most = 0;
	for (int64_t k = 1; k < 256; k++)
		if (fabsf(q[k] * w[k]) > fabsf(q[most] * w[most]))
			most = k;
	const float was = q[most];
	q[most] *= 1 + ldexpf(1, -12);
	rig_run(&r, "shipped", 0);
	q[most] = was;
	ck_assert_int_ge(against_reference(&r).beyond, 1);
	rig_run(&r, "shipped", 0);
	ck_assert_int_eq(against_reference(&r).beyond, 0);
	rig_finish(&r);
}
END_TEST

START_TEST(bound_catches_a_dropped_slot)
{
	/* The full width of the gather: 2048 slots; the arm sees one other row in one of them. */
	struct rig r = rig_create(&assay_kernel_mla_attn_gathered, attn_point(4, 512, 0, 2048, 4096, 1), 1);
	r.point.v[MLA_ATTN_P_D_NOPE].i = 256;
	rig_run(&r, "shipped", 0);
	const struct verdict clean = against_reference(&r);
	ck_assert_int_eq(clean.beyond, 0);
	/* Not vacuous the other way either: the arm's worst error is not a millionth of the bound. */
	ck_assert_msg(clean.worst > 1e-3, "worst error is %g of the bound", clean.worst);
	if (getenv("ASSAY_TEST_PRINT") != NULL)
		fprintf(stderr, "attn_gathered: worst error %.4f of the bound\n", clean.worst);
	int32_t *idx = r.tensor[MLA_ATTN_IDX];
	const int32_t was = idx[1000];
	idx[1000] = (was + 1) % 4096;
	rig_run(&r, "shipped", 0);
	idx[1000] = was;
	ck_assert_int_ge(against_reference(&r).beyond, 4 * 512 / 4);
	rig_finish(&r);
}
END_TEST

START_TEST(exp_is_accurate)
{
	double worst = 0;
	float in[64], out[64];
	for (int64_t i = 0; i < 4000000; i += 64) {
		for (int l = 0; l < 64; l++)
			in[l] = (float)(-87.0 * (double)(i + l) / 4000000.0);
		attn_exp(in, out, 64);
		for (int l = 0; l < 64; l++)
			worst = fmax(worst, fabs((double)out[l] / exp((double)in[l]) - 1));
	}
	ck_assert_msg(worst <= ldexp(1, -22), "relative error %g", worst);
	const float edge[4] = {0, -87.5f, -1e30f, -INFINITY};
	attn_exp(edge, out, 4);
	ck_assert(out[0] == 1 && out[1] == 0 && out[2] == 0 && out[3] == 0);
}
END_TEST

START_TEST(scale_is_what_is_meant)
{
	struct assay_point p = attn_point(1, 4, 8, 2, 2, 1);
	p.v[MLA_ATTN_P_D_NOPE].i = 256;
	ck_assert_double_eq_tol(mla_attn_of(&p).scale_real, 1 / sqrt(264), 1e-15);
	p.v[MLA_ATTN_P_SCALE].d = 0.25;
	ck_assert(mla_attn_of(&p).scale == 0.25f);
	p.v[MLA_ATTN_P_D_NOPE].i = 0;
	ck_assert_ptr_null(assay_kernel_mla_attn_gathered.refuse(&p));
	p.v[MLA_ATTN_P_SCALE].d = 0;
	ck_assert_ptr_nonnull(assay_kernel_mla_attn_gathered.refuse(&p));
}
END_TEST

START_TEST(work_counts_what_is_touched)
{
	struct assay_facts f;
	struct assay_work w;
	memset(&f, 0xFF, sizeof f); /* -1: not counted */
	const struct assay_point head = head_point(64, 512, 256, 1);
	assay_kernel_mla_absorb_q.work(&head, &f, &w);
	ck_assert(w.least_bytes == 4.0 * (64 * 256 + 64 * 512 * 256 + 64 * 512) && w.flop == 2.0 * 64 * 512 * 256);
	const struct assay_point attn = attn_point(64, 512, 64, 2048, 32768, 8);
	f.distinct[MLA_ATTN_IDX] = 1000;
	assay_kernel_mla_attn_gathered.work(&attn, &f, &w);
	const double rest = 4.0 * (8 * 64 * (512 + 64 + 512) + 8 * 2048);
	ck_assert(w.least_bytes == rest + 4.0 * 1000 * 576 && w.bytes == rest + 4.0 * 8 * 2048 * 576);
	ck_assert(w.flop == 2.0 * 8 * 64 * 2048 * (576 + 512));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kernels");
	TCase *c = tcase_create("descriptors");
	tcase_add_loop_test(c, descriptors_hold, 0, N_KERNELS);
	suite_add_tcase(s, c);

	c = tcase_create("mla");
	tcase_add_loop_test(c, split_has_the_bits_of_shipped, 0, N_SHAPES);
	tcase_add_loop_test(c, arms_are_within_the_bound, 0, N_SHAPES);
	tcase_add_loop_test(c, rows_are_invariant, 0, N_SHAPES);
	tcase_add_test(c, bound_catches_a_changed_product);
	tcase_add_test(c, bound_catches_a_dropped_slot);
	tcase_add_test(c, exp_is_accurate);
	tcase_add_test(c, scale_is_what_is_meant);
	tcase_add_test(c, work_counts_what_is_touched);
	suite_add_tcase(s, c);

	return unit_run(s);
}
