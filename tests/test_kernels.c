/* The built-in kernels: that descriptors hold together, that split arms give the bits of shipped on odd shapes, that arms lie
 * within their references' bounds and the bounds catch small mistakes, and that each fault is wrong in the way it names.
 * Tensors are allocated to the byte, so that the sanitizers see what leaves them. */
#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kernels/mla/attn_steps.h"
#include "../kernels/mla/mla.h"
#include "assay/adapter.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifndef ASAN
#define ASAN 0
#endif

extern const struct assay_kernel assay_kernel_mla_absorb_q, assay_kernel_mla_decompress_v,
	assay_kernel_mla_attn_gathered, assay_kernel_probe_faults, assay_kernel_probe_inout, assay_kernel_probe_null,
	assay_kernel_probe_work;

static const struct assay_kernel *const kernels[] = {
	&assay_kernel_mla_absorb_q, &assay_kernel_mla_decompress_v, &assay_kernel_mla_attn_gathered,
	&assay_kernel_probe_faults, &assay_kernel_probe_inout,      &assay_kernel_probe_null,
	&assay_kernel_probe_work,
};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

/* ---- a small bench: a kernel at a point, its tensors and one output ------------------------------------------------ */

struct rig {
	const struct assay_kernel *k;
	struct assay_point point;
	struct assay_shape shape[ASSAY_MAX_TENSORS];
	void *tensor[ASSAY_MAX_TENSORS];
	size_t bytes[ASSAY_MAX_TENSORS];
	int out; /* index of the output tensor */
	int threads;
	char error[ASSAY_ERROR_MAX];
};

/* 32-bit words of a fixed sequence: splitmix64. */
static uint32_t draw(uint64_t *state)
{
	uint64_t x = *state += 0x9E3779B97F4A7C15u;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return (uint32_t)((x ^ (x >> 31)) >> 32);
}

static void fill(struct rig *r, uint64_t seed)
{
	for (int t = 0; t < r->k->n_tensors; t++) {
		const int64_t n = assay_shape_count(&r->shape[t]);
		for (int64_t i = 0; i < n; i++)
			if (r->k->tensors[t].use == ASSAY_INDEX)
				((int32_t *)r->tensor[t])[i] =
					(int32_t)(draw(&seed) % (uint64_t)r->shape[t].index_bound);
			else
				((float *)r->tensor[t])[i] = (float)((double)draw(&seed) / 2147483648.0 - 1.0);
	}
}

static struct rig rig_create(const struct assay_kernel *k, struct assay_point point, int threads)
{
	struct rig r = {.k = k, .point = point, .out = -1, .threads = threads};
	for (int t = 0; t < k->n_tensors; t++) {
		ck_assert_int_eq(k->shape(&point, t, &r.shape[t]), 0);
		r.bytes[t] = (size_t)assay_shape_count(&r.shape[t]) * assay_dtype_bytes(k->tensors[t].dtype);
		r.tensor[t] = r.bytes[t] > 0 ? malloc(r.bytes[t]) : NULL; /* an empty tensor may be NULL */
		if (k->tensors[t].role == ASSAY_OUT || k->tensors[t].role == ASSAY_INOUT)
			r.out = t;
	}
	fill(&r, 1);
	return r;
}

static void rig_finish(struct rig *r)
{
	for (int t = 0; t < r->k->n_tensors; t++)
		free(r->tensor[t]);
}

static const struct assay_arm *arm_of(const struct assay_kernel *k, const char *name)
{
	for (int a = 0; a < k->n_arms; a++)
		if (strcmp(k->arms[a].name, name) == 0)
			return &k->arms[a];
	ck_abort_msg("%s has no arm %s", k->name, name);
}

static struct assay_call call_of(struct rig *r, int64_t arg)
{
	return (struct assay_call){.point = &r->point,
				   .arm_arg = arg,
				   .tensor = r->tensor,
				   .shape = r->shape,
				   .threads = r->threads,
				   .error = r->error};
}

/* Runs an arm on a poisoned output and workspace. Returns what run() returned. */
static int rig_run(struct rig *r, const char *name, int64_t arg)
{
	const struct assay_arm_ops *ops = arm_of(r->k, name)->ops[ASSAY_HOST];
	struct assay_call call = call_of(r, arg);
	if (ops->workspace_bytes != NULL) {
		call.workspace_bytes = ops->workspace_bytes(&r->point, arg);
		call.workspace = malloc(call.workspace_bytes);
		memset(call.workspace, 0xFF, call.workspace_bytes);
	}
	if (r->k->tensors[r->out].role == ASSAY_OUT)
		memset(r->tensor[r->out], 0xFF, r->bytes[r->out]);
	void *state = NULL;
	if (ops->plan != NULL)
		ck_assert_int_eq(ops->plan(&call, &state), 0);
	const int rc = ops->run(&call, state);
	if (ops->finish != NULL)
		ops->finish(state);
	free(call.workspace);
	return rc;
}

static void *copy_out(const struct rig *r)
{
	void *p = malloc(r->bytes[r->out]);
	memcpy(p, r->tensor[r->out], r->bytes[r->out]);
	return p;
}

/* How many elements of the output differ in bits from want. */
static int64_t differ(const struct rig *r, const void *want)
{
	const uint32_t *x = r->tensor[r->out], *y = want;
	int64_t n = 0;
	for (size_t i = 0; i < r->bytes[r->out] / 4; i++)
		n += x[i] != y[i];
	return n;
}

struct verdict {
	double worst; /* greatest |out - ref| / bound */
	int64_t beyond;
};

static struct verdict against_reference(struct rig *r)
{
	const struct assay_call call = call_of(r, 0);
	const int64_t n = assay_shape_count(&r->shape[r->out]);
	int64_t rows = 1;
	for (int i = 0; i < r->k->row_rank; i++)
		rows *= r->shape[r->out].dim[i];
	double *ref = malloc((size_t)n * sizeof *ref), *bound = malloc((size_t)n * sizeof *bound);
	ck_assert_int_eq(r->k->reference(&call, r->out, &(struct assay_rows){NULL, rows}, ref, bound), 0);
	struct verdict v = {0, 0};
	for (int64_t i = 0; i < n; i++) {
		const double x = r->k->tensors[r->out].dtype == ASSAY_F32 ? (double)((float *)r->tensor[r->out])[i]
									  : (double)((int32_t *)r->tensor[r->out])[i];
		const double off = fabs(x - ref[i]);
		if (!(off <= bound[i]))
			v.beyond++;
		if (bound[i] > 0)
			v.worst = fmax(v.worst, off / bound[i]);
	}
	free(ref);
	free(bound);
	return v;
}

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

/* ---- probes -------------------------------------------------------------------------------------------------------- */

START_TEST(probe_work_more_has_the_same_output)
{
	struct rig r = rig_create(&assay_kernel_probe_work, (struct assay_point){{{.i = 1234}}}, 1);
	rig_run(&r, "shipped", 0);
	ck_assert_int_eq(against_reference(&r).beyond, 0);
	void *want = copy_out(&r);
	rig_run(&r, "more", 50);
	ck_assert_int_eq(differ(&r, want), 0);
	r.point.v[0].i++;
	rig_run(&r, "shipped", 0);
	ck_assert_int_eq(differ(&r, want), 16);
	free(want);
	rig_finish(&r);
}
END_TEST

/* The workspace of more=P holds the recurrence P per mille further on: the extra work is done, and is exactly that much. */
START_TEST(probe_work_more_does_more)
{
	struct rig r = rig_create(&assay_kernel_probe_work, (struct assay_point){{{.i = 2000}}}, 1);
	struct assay_call call = call_of(&r, 30);
	uint32_t further[16];
	call.workspace = further;
	ck_assert_uint_eq(arm_of(r.k, "more")->ops[ASSAY_HOST]->workspace_bytes(&r.point, 30), sizeof further);
	ck_assert_int_eq(arm_of(r.k, "more")->ops[ASSAY_HOST]->run(&call, NULL), 0);
	r.point.v[0].i = 2060;
	rig_run(&r, "shipped", 0);
	ck_assert_mem_eq(r.tensor[r.out], further, sizeof further);
	rig_finish(&r);
}
END_TEST

START_TEST(probe_inout_wants_to_be_restored)
{
	struct rig r = rig_create(&assay_kernel_probe_inout, (struct assay_point){{{.i = 100}}}, 2);
	void *filled = copy_out(&r);
	rig_run(&r, "shipped", 0);
	void *want = copy_out(&r);
	memcpy(r.tensor[r.out], filled, r.bytes[r.out]);
	rig_run(&r, "split", 7);
	ck_assert_int_eq(differ(&r, want), 0);
	for (int launch = 0; launch < 3; launch++) {
		memcpy(r.tensor[r.out], filled, r.bytes[r.out]);
		rig_run(&r, "accumulates", 0);
		if (launch > 0)
			ck_assert_int_ge(differ(&r, want), 90);
		else
			ck_assert_int_eq(differ(&r, want), 0);
	}
	free(want);
	free(filled);
	rig_finish(&r);
}
END_TEST

/* A rig whose output and first input have 256 floats of margin on both sides, poisoned with NaN. */
struct margins {
	struct rig r;
	float *memory[2], *want;
};

static struct margins margins_create(void)
{
	struct margins m = {
		.r = rig_create(&assay_kernel_probe_faults, (struct assay_point){{{.i = 66}, {.i = 33}}}, 2)};
	const int which[2] = {0, m.r.out};
	for (int i = 0; i < 2; i++) {
		const size_t bytes = m.r.bytes[which[i]];
		m.memory[i] = malloc(bytes + 2048);
		memset(m.memory[i], 0xFF, bytes + 2048);
		memcpy(m.memory[i] + 256, m.r.tensor[which[i]], bytes);
		free(m.r.tensor[which[i]]);
		m.r.tensor[which[i]] = m.memory[i] + 256;
	}
	rig_run(&m.r, "shipped", 0);
	ck_assert_int_eq(against_reference(&m.r).beyond, 0);
	m.want = copy_out(&m.r);
	return m;
}

static void margins_finish(struct margins *m)
{
	free(m->memory[0]);
	free(m->memory[1]);
	free(m->want);
	free(m->r.tensor[1]);
}

static const struct {
	const char *arm;
	int64_t differ; /* elements that differ from shipped in the first launch */
} first_launch[] = {
	{"split", 0},           {"nothing", 66},      {"ulp", 1},    {"flip_bit", 1},      {"unwritten_tail", 1},
	{"zero_rows", 11},      {"nan", 1},           {"inf", 1},    {"overrun", 0},       {"underrun", 0},
	{"over_read", 1},       {"over_read_max", 0}, {"caches", 0}, {"changes_input", 0}, {"drifts", 0},
	{"fails_sometimes", 0}, {"late", 0},          {"slow", 0},
};

START_TEST(faults_differ_as_they_say)
{
	struct margins m = margins_create();
	ck_assert_int_eq(rig_run(&m.r, first_launch[_i].arm, 3), 0);
	ck_assert_msg(differ(&m.r, m.want) == first_launch[_i].differ, "%s: %d elements differ", first_launch[_i].arm,
		      (int)differ(&m.r, m.want));
	margins_finish(&m);
}
END_TEST

START_TEST(faults_leave_their_buffers)
{
	struct margins m = margins_create();
	const uint32_t poison = 0xFFFFFFFF;
	float *out = m.r.tensor[m.r.out], *a = m.r.tensor[0];
	rig_run(&m.r, "overrun", 0);
	ck_assert_mem_ne(out + 66, &poison, 4);
	ck_assert_mem_eq(out - 1, &poison, 4);
	rig_run(&m.r, "underrun", 0);
	ck_assert_mem_ne(out - 1, &poison, 4);
	for (int k = 0; k < 33; k++)
		a[66 * 33 + k] = 1e30f; /* a huge tail: now the maximum shows, and 0 times it does not */
	rig_run(&m.r, "over_read_max", 0);
	ck_assert_int_eq(differ(&m.r, m.want), 1);
	rig_run(&m.r, "over_read", 0);
	ck_assert_int_eq(differ(&m.r, m.want), 0);
	float *before = malloc(m.r.bytes[0]);
	memcpy(before, a, m.r.bytes[0]);
	rig_run(&m.r, "split", 2);
	ck_assert_mem_eq(before, a, m.r.bytes[0]);
	rig_run(&m.r, "changes_input", 0);
	ck_assert_mem_ne(before, a, m.r.bytes[0]);
	free(before);
	margins_finish(&m);
}
END_TEST

START_TEST(faults_remember)
{
	struct margins m = margins_create();
	for (int launch = 0; launch < 20; launch++) {
		rig_run(&m.r, "drifts", 0);
		ck_assert_int_eq(differ(&m.r, m.want), launch >= 10);
	}
	int wrong = 0, failed = 0;
	for (int launch = 0; launch < 2000; launch++) {
		rig_run(&m.r, "racy", 0);
		wrong += differ(&m.r, m.want) != 0;
	}
	ck_assert_int_ge(wrong, 20);
	ck_assert_int_le(wrong, 65);
	for (int launch = 0; launch < 70; launch++)
		failed += rig_run(&m.r, "fails_sometimes", 0) != 0;
	ck_assert_int_eq(failed, 10);
	/* Other data at the same address: the cached result is returned. */
	rig_run(&m.r, "caches", 0);
	((float *)m.r.tensor[1])[0] += 1;
	rig_run(&m.r, "caches", 0);
	ck_assert_int_eq(differ(&m.r, m.want), 0);
	rig_run(&m.r, "shipped", 0);
	ck_assert_int_ge(differ(&m.r, m.want), 60);
	margins_finish(&m);
}
END_TEST

static const char *const rounded[] = {"batch", "position", "neighbours"};

/* Right by the reference, and yet their rows follow what they should not. */
START_TEST(faults_break_invariance)
{
	struct margins m = margins_create();
	const int64_t rows = 66, d = 33;
	rig_run(&m.r, rounded[_i], 0);
	ck_assert_int_eq(against_reference(&m.r).beyond, 0);
	ck_assert_int_ge(differ(&m.r, m.want), 10);
	float *out = m.r.tensor[m.r.out], *a = m.r.tensor[0];
	float *whole = copy_out(&m.r);
	int64_t changed = 0;
	if (_i == 0) { /* fewer rows: relaunched one by one */
		m.r.point.v[0].i = 1;
		for (int64_t r = 0; r < rows; r++) {
			m.r.tensor[0] = a + r * d;
			rig_run(&m.r, rounded[_i], 0);
			changed += memcmp(out, whole + r, sizeof *out) != 0;
		}
		m.r.tensor[0] = a;
	} else if (_i == 1) { /* rows moved up by one */
		m.r.point.v[0].i = rows - 1;
		m.r.tensor[0] = a + d;
		rig_run(&m.r, rounded[_i], 0);
		for (int64_t r = 0; r < rows - 1; r++)
			changed += memcmp(out + r, whole + r + 1, sizeof *out) != 0;
		m.r.tensor[0] = a;
	} else { /* every other row's sign turned */
		for (int64_t r = 1; r < rows; r += 2)
			for (int64_t k = 0; k < d; k++)
				a[r * d + k] *= -1;
		rig_run(&m.r, rounded[_i], 0);
		for (int64_t r = 0; r < rows; r += 2)
			changed += memcmp(out + r, whole + r, sizeof *out) != 0;
	}
	ck_assert_msg(changed >= 5, "%s: %d rows changed", rounded[_i], (int)changed);
	free(whole);
	margins_finish(&m);
}
END_TEST

START_TEST(faults_fail_in_words)
{
	struct margins m = margins_create();
	ck_assert_int_eq(rig_run(&m.r, "fails", 0), -1);
	ck_assert_str_eq(m.r.error, "probe.faults: this arm fails, as it says");
	ck_assert(arm_of(m.r.k, "unsupported")->unsupported(&m.r.point, 0, ASSAY_HOST) != NULL);
	margins_finish(&m);
}
END_TEST

static const struct {
	const char *arm;
	int signal; /* that ends the process, or 0: exit status 0 */
} fatal[] = {{"crash", SIGSEGV}, {"stack", SIGSEGV}, {"exits", 0}, {"hang", SIGALRM}, {"stdout_noise", -1}};

/* In a child of their own: how the process ends is what they are for. */
START_TEST(faults_end_their_process)
{
	const bool needs_signal = fatal[_i].signal == SIGSEGV;
	if (ASAN && needs_signal)
		return; /* the sanitizer takes the signal */
	struct margins m = margins_create();
	int ends[2];
	ck_assert_int_eq(pipe(ends), 0);
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGALRM, SIG_DFL);
		dup2(ends[1], STDOUT_FILENO);
		alarm(1);
		m.r.threads = 1;
		rig_run(&m.r, fatal[_i].arm, 0);
		_exit(77);
	}
	close(ends[1]);
	char text[256] = "";
	const ssize_t got = read(ends[0], text, sizeof text - 1);
	close(ends[0]);
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (fatal[_i].signal > 0) {
		ck_assert(WIFSIGNALED(status));
		ck_assert_int_eq(WTERMSIG(status), fatal[_i].signal);
	} else {
		ck_assert(WIFEXITED(status));
		ck_assert_int_eq(WEXITSTATUS(status), fatal[_i].signal < 0 ? 77 : 0);
		ck_assert_int_eq(got > 0, fatal[_i].signal < 0);
	}
	margins_finish(&m);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
	Suite *s = suite_create("kernels");
	TCase *c = tcase_create("descriptors");
	tcase_add_loop_test(c, descriptors_hold, 0, N_KERNELS);
	suite_add_tcase(s, c);

	c = tcase_create("mla");
	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, split_has_the_bits_of_shipped, 0, N_SHAPES);
	tcase_add_loop_test(c, arms_are_within_the_bound, 0, N_SHAPES);
	tcase_add_loop_test(c, rows_are_invariant, 0, N_SHAPES);
	tcase_add_test(c, bound_catches_a_changed_product);
	tcase_add_test(c, bound_catches_a_dropped_slot);
	tcase_add_test(c, exp_is_accurate);
	tcase_add_test(c, scale_is_what_is_meant);
	tcase_add_test(c, work_counts_what_is_touched);
	suite_add_tcase(s, c);

	c = tcase_create("probes");
	tcase_set_timeout(c, 60);
	tcase_add_test(c, probe_work_more_has_the_same_output);
	tcase_add_test(c, probe_work_more_does_more);
	tcase_add_test(c, probe_inout_wants_to_be_restored);
	tcase_add_loop_test(c, faults_differ_as_they_say, 0, COUNT(first_launch));
	tcase_add_test(c, faults_leave_their_buffers);
	tcase_add_test(c, faults_remember);
	tcase_add_loop_test(c, faults_break_invariance, 0, COUNT(rounded));
	tcase_add_test(c, faults_fail_in_words);
	tcase_add_loop_test(c, faults_end_their_process, 0, COUNT(fatal));
	suite_add_tcase(s, c);

	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	const int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
