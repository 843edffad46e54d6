/* mmq: the two readings against values from exact rationals (gen_mmq.py), the small formats against the fill's own reading of them, the
 * arms against their references on odd shapes, and that the references' bounds catch one wrong quant. Tensors are allocated
 * to the byte, so that the sanitizers see what leaves them. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/mmq/mmq.h"
#include "fill.h"
#include "unit.h"

extern const struct assay_kernel assay_kernel_mmq_q8_0, assay_kernel_mmq_q8_0_wgmma;

static const struct assay_kernel *const kernels[] = {&assay_kernel_mmq_q8_0, &assay_kernel_mmq_q8_0_wgmma};

/* Both from gen_mmq.py: m = 2, in_f = 96, out_f = 3. */
static const double want_s32[] = {
	-0.96435546875, -1.914306640625, 63.588134765625, -74.9278564453125, -34.2967529296875, 83.5859375,
};
static const double want_f32[] = {
	44.01483228709549, 165.3375604734756, 200.10937374271452,
	20.63998131453991, 72.58869007928297, 349.0911351153627,
};

/* ---- a point and its tensors --------------------------------------------------------------------------------------- */

struct rig {
	struct assay_point point;
	struct mmq_shape s;
	struct assay_shape shape[MMQ_TENSORS];
	void *tensor[MMQ_TENSORS];
	char error[ASSAY_ERROR_MAX];
};

static void put_f16(uint16_t *to, int mantissa, int exponent)
{
	/* mantissa * 2^exponent, mantissa in 1..2047, a normal f16 */
	int m = mantissa, e = exponent + 25;
	while (m < 1024) {
		m *= 2;
		e--;
	}
	*to = (uint16_t)(e << 10 | (m - 1024));
}

static struct rig rig_create(int64_t m, int64_t in_f, int64_t out_f)
{
	struct rig r = {.point = {{{.i = m}, {.i = in_f}, {.i = out_f}}}};
	const size_t bytes[MMQ_TENSORS] = {MMQ_W_BYTES, MMQ_X_BYTES, 4, 0, 0}; /* the derived ones are the device's */
	r.s = mmq_of(&r.point);
	for (int t = 0; t < MMQ_TENSORS; t++) {
		ck_assert_int_eq(mmq_tensor_shape(&r.point, t, &r.shape[t]), 0);
		const size_t n = (size_t)assay_shape_count(&r.shape[t]) * bytes[t];
		r.tensor[t] = n ? malloc(n) : NULL;
	}
	return r;
}

static void rig_finish(struct rig *r)
{
	for (int t = 0; t < MMQ_TENSORS; t++)
		free(r->tensor[t]);
}

static uint32_t draw(uint64_t *state)
{
	uint64_t x = *state += 0x9E3779B97F4A7C15u;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return (uint32_t)((x ^ (x >> 31)) >> 32);
}

/* Sign-magnitude bytes of magnitudes 0..126, scales of both signs and many sizes. */
static void fill(struct rig *r, uint64_t seed)
{
	struct mmq_w *w = r->tensor[MMQ_W];
	struct mmq_x *x = r->tensor[MMQ_X];
	for (int64_t i = 0; i < r->s.out_f * r->s.blocks; i++) {
		put_f16(&w[i].d, 1024 + (int)(draw(&seed) % 1024), -19 + (int)(draw(&seed) % 4));
		w[i].d |= (uint16_t)((draw(&seed) & 1) << 15);
		for (int k = 0; k < MMQ_BLOCK; k++)
			w[i].qs[k] = (int8_t)(draw(&seed) % 127 | (draw(&seed) & 0x80));
	}
	for (int64_t i = 0; i < r->s.records * r->s.m; i++) {
		for (int k = 0; k < 4; k++)
			x[i].d[k] = (float)draw(&seed) * 0x1p-37f;
		for (int k = 0; k < MMQ_RECORD; k++)
			x[i].qs[k] = (int8_t)(draw(&seed) % 127 | (draw(&seed) & 0x80));
	}
}

static struct assay_call call_of(struct rig *r, const struct assay_arm *arm, int threads)
{
	return (struct assay_call){.point = &r->point,
				   .tensor = r->tensor,
				   .shape = r->shape,
				   .threads = threads,
				   .error = r->error,
				   .arm = arm};
}

static void run(struct rig *r, const struct assay_arm *arm, int threads)
{
	const struct assay_arm_ops *ops = arm->ops[ASSAY_HOST];
	struct assay_call call = call_of(r, arm, threads);
	void *state = NULL;
	memset(r->tensor[MMQ_Y], 0xFF, (size_t)(r->s.m * r->s.out_f) * 4);
	ck_assert_int_eq(ops->plan(&call, &state), 0);
	ck_assert_int_eq(ops->run(&call, state), 0);
	ops->finish(state);
}

struct found {
	int64_t beyond;
	double worst; /* |y - ref| / bound */
};

/* y against an arm's reference on the rig's inputs. */
static struct found held(struct rig *r, const struct assay_arm *arm, enum assay_backend backend)
{
	const int64_t n = r->s.m * r->s.out_f;
	double *ref = malloc((size_t)n * sizeof *ref), *bound = malloc((size_t)n * sizeof *bound);
	struct assay_call call = call_of(r, arm, 1);
	struct found f = {0, 0};
	call.backend = backend;
	ck_assert_int_eq(mmq_reference(&call, MMQ_Y, &(struct assay_rows){NULL, r->s.m}, ref, bound), 0);
	for (int64_t i = 0; i < n; i++) {
		const double e = fabs((double)((float *)r->tensor[MMQ_Y])[i] - ref[i]);
		f.beyond += !(e <= bound[i]);
		f.worst = fmax(f.worst, e / bound[i]);
	}
	free(ref);
	free(bound);
	return f;
}

static const struct assay_arm *arm_of(const struct assay_kernel *k, enum mmq_arm which)
{
	return &k->arms[which];
}

/* ---- tests --------------------------------------------------------------------------------------------------------- */

START_TEST(formats_are_read_exactly)
{
	for (int i = 0; i < 65536; i++) {
		const uint16_t b = (uint16_t)i;
		const double got = (double)mmq_f16(b), want = fill_element(&b, ASSAY_F16, 0);
		ck_assert_msg(got == want || (isnan(got) && isnan(want)), "f16 %04x", i);
		ck_assert_int_eq(signbit(got) != 0, i >> 15);
	}
	for (int i = 0; i < 256; i++) {
		const uint8_t b = (uint8_t)i;
		const double got = (double)mmq_e4m3(b), want = fill_element(&b, ASSAY_E4M3, 0);
		ck_assert_msg(got == want || (isnan(got) && isnan(want)), "e4m3 %02x", i);
	}
}
END_TEST

static int8_t known_byte(int64_t i)
{
	const int b = (int)((i * 37 + 11) % 256);
	return (int8_t)(uint8_t)(b == 0x7F || b == 0xFF ? b ^ 1 : b);
}

START_TEST(known_answers)
{
	enum { M = 2, IN_F = 96, OUT_F = 3, BLOCKS = IN_F / 32 };
	struct rig r = rig_create(M, IN_F, OUT_F);
	struct mmq_w *w = r.tensor[MMQ_W];
	struct mmq_x *x = r.tensor[MMQ_X];
	memset(x, 0x7F, (size_t)(r.s.records * M) * sizeof *x); /* the padding holds NaN codes: it must not be used */
	for (int i = 0; i < OUT_F; i++)
		for (int b = 0; b < BLOCKS; b++) {
			put_f16(&w[i * BLOCKS + b].d, 1 + (3 * i + b) % 5, -6);
			for (int k = 0; k < 32; k++)
				w[i * BLOCKS + b].qs[k] = known_byte(i * IN_F + b * 32 + k);
		}
	for (int j = 0; j < M; j++)
		for (int b = 0; b < BLOCKS; b++) {
			x[j].d[b] = (float)(1 + (2 * j + b) % 7) / 128.0f;
			for (int k = 0; k < 32; k++)
				x[j].qs[b * 32 + k] = known_byte(1000 + 7 * (j * IN_F + b * 32 + k));
		}
	for (int a = MMQ_S32; a <= MMQ_F32; a++) {
		const double *want = a == MMQ_S32 ? want_s32 : want_f32;
		const struct assay_arm *arm = arm_of(&assay_kernel_mmq_q8_0, (enum mmq_arm)a);
		double ref[M * OUT_F], bound[M * OUT_F];
		struct assay_call call = call_of(&r, arm, 1);
		ck_assert_int_eq(mmq_reference(&call, MMQ_Y, &(struct assay_rows){NULL, M}, ref, bound), 0);
		run(&r, arm, 1);
		for (int i = 0; i < M * OUT_F; i++) {
			const double y = (double)((float *)r.tensor[MMQ_Y])[i];
			ck_assert_msg(fabs(ref[i] - want[i]) <= 1e-13 * fabs(want[i]), "%s ref[%d] %.17g", arm->name, i,
				      ref[i]);
			ck_assert_msg(fabs(y - want[i]) <= 2e-6 * fabs(want[i]) + 1e-5, "%s y[%d] %.9g", arm->name, i,
				      y);
		}
		/* One row out of order is that row. */
		const int64_t last = M - 1;
		ck_assert_int_eq(mmq_reference(&call, MMQ_Y, &(struct assay_rows){&last, 1}, ref, bound), 0);
		ck_assert(fabs(ref[0] - want[last * OUT_F]) <= 1e-13 * fabs(want[last * OUT_F]));
	}
	rig_finish(&r);
}
END_TEST

static const struct {
	int64_t m, in_f, out_f;
} shapes[] = {{1, 32, 1},   {1, 96, 33},  {3, 160, 31}, {4, 128, 32},
	      {5, 512, 65}, {9, 544, 17}, {13, 64, 64}, {2, 4096, 40}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

START_TEST(arms_are_within_their_bounds)
{
	struct rig r = rig_create(shapes[_i].m, shapes[_i].in_f, shapes[_i].out_f);
	const size_t bytes = (size_t)(r.s.m * r.s.out_f) * 4;
	float *once = malloc(bytes);
	fill(&r, 7 + (uint64_t)_i);
	for (size_t k = 0; k < 2; k++)
		for (int a = MMQ_S32; a <= MMQ_F32; a++) {
			const struct assay_arm *arm = arm_of(kernels[k], (enum mmq_arm)a);
			run(&r, arm, 1);
			const struct found f = held(&r, arm, ASSAY_HOST);
			ck_assert_msg(f.beyond == 0, "%s %s: %ld beyond, worst %g", kernels[k]->name, arm->name,
				      (long)f.beyond, f.worst);
			/* The same bits from any number of threads. */
			memcpy(once, r.tensor[MMQ_Y], bytes);
			run(&r, arm, 3);
			ck_assert_mem_eq(once, r.tensor[MMQ_Y], bytes);
			/* The other arm's reference is another question. */
			if (r.s.m * r.s.out_f > 8)
				ck_assert_int_gt(held(&r, arm_of(kernels[k], a == MMQ_S32 ? MMQ_F32 : MMQ_S32),
						      ASSAY_HOST)
							 .beyond,
						 0);
		}
	free(once);
	rig_finish(&r);
}
END_TEST

/* One quant off by one step, in one block of 128: both references must see it in every output it touches. */
START_TEST(bounds_catch_one_wrong_quant)
{
	struct rig r = rig_create(3, 4096, 5);
	fill(&r, 99);
	struct mmq_w *w = r.tensor[MMQ_W];
	for (int a = MMQ_S32; a <= MMQ_F32; a++) {
		const struct assay_arm *arm = arm_of(&assay_kernel_mmq_q8_0, (enum mmq_arm)a);
		int8_t *q = &w[2 * r.s.blocks + 77].qs[13], was = *q;
		put_f16(&w[2 * r.s.blocks + 77].d, 1024, -16);
		for (int j = 0; j < 3; j++) {
			struct mmq_x *x = (struct mmq_x *)r.tensor[MMQ_X] + 77 / 4 * r.s.m + j;
			x->d[77 % 4] = 0.03f;
			x->qs[77 % 4 * 32 + 13] = 0x50;
		}
		*q = 0x60;
		run(&r, arm, 1);
		*q = 0x61;
		ck_assert_int_eq(held(&r, arm, ASSAY_HOST).beyond, 3);
		*q = was;
	}
	rig_finish(&r);
}
END_TEST

/* The device's bound is wider than the host's and never below it; and it is not so wide that a wrong block passes. */
START_TEST(device_bound_covers_and_catches)
{
	struct rig r = rig_create(2, 512, 4);
	fill(&r, 5);
	const struct assay_arm *arm = arm_of(&assay_kernel_mmq_q8_0, MMQ_F32);
	run(&r, arm, 1);
	const struct found host = held(&r, arm, ASSAY_HOST), device = held(&r, arm, ASSAY_CUDA);
	ck_assert_int_eq(device.beyond, 0);
	ck_assert(device.worst < host.worst);
	struct mmq_w *w = r.tensor[MMQ_W];
	for (int i = 0; i < 4; i++)
		w[i * r.s.blocks + 3].d ^= 0x8000;
	ck_assert_int_eq(held(&r, arm, ASSAY_CUDA).beyond, 8);
	rig_finish(&r);
}
END_TEST

START_TEST(greatest_sums_are_exact)
{
	struct rig r = rig_create(5, 64, 33);
	struct mmq_w *w = r.tensor[MMQ_W];
	struct mmq_x *x = r.tensor[MMQ_X];
	for (int64_t i = 0; i < r.s.out_f * r.s.blocks; i++) {
		memset(w[i].qs, 0x80, MMQ_BLOCK);
		put_f16(&w[i].d, 1, 0);
	}
	for (int64_t i = 0; i < r.s.records * r.s.m; i++) {
		memset(x[i].qs, 0x80, MMQ_RECORD);
		for (int k = 0; k < 4; k++)
			x[i].d[k] = 1;
	}
	run(&r, arm_of(&assay_kernel_mmq_q8_0, MMQ_S32), 2);
	for (int64_t i = 0; i < r.s.m * r.s.out_f; i++)
		ck_assert(((float *)r.tensor[MMQ_Y])[i] == 2 * 32 * 128 * 128);
	/* -0 times -0, 32 times */
	run(&r, arm_of(&assay_kernel_mmq_q8_0, MMQ_F32), 2);
	for (int64_t i = 0; i < r.s.m * r.s.out_f; i++)
		ck_assert(((float *)r.tensor[MMQ_Y])[i] == 0);
	rig_finish(&r);
}
END_TEST

START_TEST(a_nan_code_is_one_arm_s)
{
	struct rig r = rig_create(4, 64, 35);
	fill(&r, 3);
	((struct mmq_w *)r.tensor[MMQ_W])[34 * r.s.blocks + 1].qs[31] = -1; /* 0xFF */
	run(&r, arm_of(&assay_kernel_mmq_q8_0, MMQ_S32), 1);
	ck_assert_int_eq(held(&r, arm_of(&assay_kernel_mmq_q8_0, MMQ_S32), ASSAY_HOST).beyond, 0);
	run(&r, arm_of(&assay_kernel_mmq_q8_0, MMQ_F32), 1);
	for (int64_t j = 0; j < r.s.m; j++)
		for (int64_t i = 0; i < r.s.out_f; i++)
			ck_assert_int_eq(isnan(((float *)r.tensor[MMQ_Y])[j * r.s.out_f + i]) != 0, i == 34);
	ck_assert_int_eq(held(&r, arm_of(&assay_kernel_mmq_q8_0, MMQ_F32), ASSAY_HOST).beyond, r.s.m);
	rig_finish(&r);
}
END_TEST

START_TEST(architectures_and_forms)
{
	const struct assay_kernel *k = &assay_kernel_mmq_q8_0;
	ck_assert(k->arms[MMQ_S32].unsupported_on == NULL);
	ck_assert_ptr_nonnull(k->arms[MMQ_F32].unsupported_on(ASSAY_CUDA, 86));
	ck_assert_ptr_null(k->arms[MMQ_F32].unsupported_on(ASSAY_CUDA, 89));
	ck_assert_ptr_null(k->arms[MMQ_F32].unsupported_on(ASSAY_HOST, 0));
	ck_assert_ptr_nonnull(k->arms[MMQ_F32_BS].unsupported_on(ASSAY_CUDA, 100));
	ck_assert_ptr_null(k->arms[MMQ_F32_BS].unsupported_on(ASSAY_CUDA, 120));
	ck_assert_ptr_null(k->arms[MMQ_F32_BS].ops[ASSAY_HOST]);
	ck_assert_ptr_nonnull(strstr(k->form(&k->arms[MMQ_F32], ASSAY_CUDA, 90), "emulated"));
	ck_assert_ptr_nonnull(strstr(k->form(&k->arms[MMQ_F32], ASSAY_CUDA, 100), "emulated"));
	ck_assert_ptr_nonnull(strstr(k->form(&k->arms[MMQ_F32], ASSAY_CUDA, 120), "native"));
	ck_assert_ptr_nonnull(strstr(k->form(&k->arms[MMQ_S32], ASSAY_CUDA, 90), "native"));
	const struct assay_kernel *g = &assay_kernel_mmq_q8_0_wgmma;
	for (int a = MMQ_S32; a <= MMQ_F32; a++) {
		ck_assert_ptr_null(g->arms[a].unsupported_on(ASSAY_CUDA, 90));
		ck_assert_ptr_nonnull(g->arms[a].unsupported_on(ASSAY_CUDA, 100));
		ck_assert_ptr_nonnull(strstr(g->form(&g->arms[a], ASSAY_CUDA, 90), a == MMQ_S32 ? "IGMMA" : "QGMMA"));
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("mmq");
	TCase *c = tcase_create("mmq");
	tcase_add_test(c, formats_are_read_exactly);
	tcase_add_test(c, known_answers);
	tcase_add_loop_test(c, arms_are_within_their_bounds, 0, N_SHAPES);
	tcase_add_test(c, bounds_catch_one_wrong_quant);
	tcase_add_test(c, device_bound_covers_and_catches);
	tcase_add_test(c, greatest_sums_are_exact);
	tcase_add_test(c, a_nan_code_is_one_arm_s);
	tcase_add_test(c, architectures_and_forms);
	suite_add_tcase(s, c);
	return unit_run(s);
}
