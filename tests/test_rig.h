/* A small bench: a kernel at a point, its tensors and one output. */
#ifndef ASSAY_TEST_RIG_H
#define ASSAY_TEST_RIG_H

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
static inline uint32_t draw(uint64_t *state)
{
	uint64_t x = *state += 0x9E3779B97F4A7C15u;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return (uint32_t)((x ^ (x >> 31)) >> 32);
}

static inline void fill(struct rig *r, uint64_t seed)
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

static inline struct rig rig_create(const struct assay_kernel *k, struct assay_point point, int threads)
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

static inline void rig_finish(struct rig *r)
{
	for (int t = 0; t < r->k->n_tensors; t++)
		free(r->tensor[t]);
}

static inline const struct assay_arm *arm_of(const struct assay_kernel *k, const char *name)
{
	for (int a = 0; a < k->n_arms; a++)
		if (strcmp(k->arms[a].name, name) == 0)
			return &k->arms[a];
	ck_abort_msg("%s has no arm %s", k->name, name);
}

static inline struct assay_call call_of(struct rig *r, int64_t arg)
{
	return (struct assay_call){.point = &r->point,
				   .arm_arg = arg,
				   .tensor = r->tensor,
				   .shape = r->shape,
				   .threads = r->threads,
				   .error = r->error};
}

/* Runs an arm on a poisoned output and workspace. Returns what run() returned. */
static inline int rig_run(struct rig *r, const char *name, int64_t arg)
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

static inline void *copy_out(const struct rig *r)
{
	void *p = malloc(r->bytes[r->out]);
	memcpy(p, r->tensor[r->out], r->bytes[r->out]);
	return p;
}

/* How many elements of the output differ in bits from want. */
static inline int64_t differ(const struct rig *r, const void *want)
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

static inline struct verdict against_reference(struct rig *r)
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

#endif
