/* assay/adapter.h: what a kernel tells assay about itself.
 *
 * The one public header. It holds no CUDA type and compiles as C11 and as C++17. A kernel is one const
 * `struct assay_kernel`; a built-in kernel's file ends in it, an out-of-tree kernel exports it as the data symbol
 * `assay_kernel` (one) or `assay_kernels` (a NULL-terminated array of pointers) of a shared object.
 *
 * Conventions: functions return 0, or -1 after writing a sentence into call->error (never NULL, ASSAY_ERROR_MAX bytes).
 * Nothing here is owned by the adapter unless it says so. Shapes are in elements (or records), sizes in bytes.
 * All hooks but run() are called outside the clock.
 */
#ifndef ASSAY_ADAPTER_H
#define ASSAY_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a struct below changes its shape. A plugin of another number is refused with both numbers named. */
#define ASSAY_ABI 2

#define ASSAY_MAX_RANK 6
#define ASSAY_MAX_PARAMS 16
#define ASSAY_MAX_TENSORS 16
#define ASSAY_MAX_FIELDS 8
#define ASSAY_ERROR_MAX 512

/* ---- values -------------------------------------------------------------------------------------------------------- */

enum assay_type { ASSAY_INT, ASSAY_REAL };

/* A parameter of the kernel: set by the geometry, by an axis, or by its default. Every parameter has a value at a point. */
struct assay_param {
	const char *name; /* [a-z][a-z0-9_]*, unique in the kernel */
	enum assay_type type;
	double min, max; /* inclusive; for ASSAY_INT both are whole and within +-2^53 */
	bool required; /* true: no default, the suite must set it */
	double dflt; /* used when !required */
	int64_t multiple_of; /* 0, or the value must be a multiple of it (ASSAY_INT) */
	const char *doc; /* one line, shown by `assay list` */
};

union assay_value {
	int64_t i; /* ASSAY_INT */
	double d; /* ASSAY_REAL */
};

/* One point of a kernel: v[k] is the value of kernel->params[k]. */
struct assay_point {
	union assay_value v[ASSAY_MAX_PARAMS];
};

/* ---- tensors ------------------------------------------------------------------------------------------------------- */

enum assay_dtype {
	ASSAY_F64,
	ASSAY_F32,
	ASSAY_F16,
	ASSAY_BF16,
	ASSAY_E4M3,
	ASSAY_E5M2,
	ASSAY_I64,
	ASSAY_I32,
	ASSAY_I16,
	ASSAY_I8,
	ASSAY_U64,
	ASSAY_U32,
	ASSAY_U16,
	ASSAY_U8,
	ASSAY_RECORD /* a packed record of fields, see assay_tensor.fields */
};

enum assay_role {
	ASSAY_IN, /* filled by the distribution, must not change */
	ASSAY_OUT, /* poisoned before each checked launch, compared */
	ASSAY_INOUT, /* filled, restored before each launch outside the clock, compared */
	ASSAY_DERIVED, /* an input of its own, packed by derive() from the filled ones; must not change */
	ASSAY_WORKSPACE /* poisoned, never compared */
};

/* What the numbers of a tensor mean; it picks the fill where the suite names none for this tensor. */
enum assay_use {
	ASSAY_DATA, /* the distribution's fill */
	ASSAY_INDEX, /* row numbers in 0 .. shape.index_bound-1 (integer dtypes); `indices` with repeats by default */
	ASSAY_SCALE /* block scales: small positive numbers in default_range */
};

struct assay_field {
	const char *name;
	enum assay_dtype dtype;
	uint32_t offset; /* bytes from the start of the record */
	uint32_t count; /* elements */
	enum assay_use use;
	double default_range[2]; /* of ASSAY_SCALE fields */
};

/* Filled by assay_kernel.shape(). Row-major when stride is all zero; else strides in elements (gaps are not written by
 * the fill and are guarded like a tail). A dimension may be 0: the tensor is then empty and its pointer may be NULL. */
struct assay_shape {
	int rank;
	int64_t dim[ASSAY_MAX_RANK];
	int64_t stride[ASSAY_MAX_RANK];
	int64_t index_bound; /* of ASSAY_INDEX tensors: exclusive upper bound of a value */
};

struct assay_tensor {
	const char *name;
	enum assay_role role;
	enum assay_dtype dtype;
	enum assay_use use;
	/* The dimensions by name, blank-separated ("t h r"). A name that equals a parameter's ties the dimension to it: the
	 * `invariant` check finds the rows of t_q by it. */
	const char *dims;
	const struct assay_field *fields; /* ASSAY_RECORD only: n_fields of them, record_bytes long together */
	int n_fields;
	uint32_t record_bytes;
	const char *doc;
};

/* ---- a launch ------------------------------------------------------------------------------------------------------ */

enum assay_backend { ASSAY_HOST, ASSAY_CUDA, ASSAY_N_BACKENDS };

/* What was launched, as launched. On the host grid[0] is the number of threads. */
struct assay_launch {
	const char *symbol; /* name for people */
	const void *function; /* host function, or the __global__ function's host stub */
	unsigned grid[3], block[3];
	size_t dynamic_smem_bytes;
};

struct assay_arm;

/* All that a hook of an arm gets. Pointers in `tensor` are host addresses on the host and device addresses on cuda, in
 * the order of kernel->tensors; equal for every arm of a cell. */
struct assay_call {
	const struct assay_point *point;
	int64_t arm_arg; /* N of `split=N`; 0 for an arm without an argument */
	void *const *tensor;
	const struct assay_shape *shape; /* per tensor */
	void *workspace; /* arm->workspace_bytes() bytes, aligned to 256; NULL if none */
	size_t workspace_bytes;
	int threads; /* host: OpenMP threads to use; 0 on cuda */
	void *stream; /* cuda: a cudaStream_t; NULL on the host */
	/* Non-NULL on inspected launches only (never inside the clock): the arm reports each kernel it launches. */
	void (*note)(void *ctx, const struct assay_launch *launch);
	void *note_ctx;
	char *error; /* ASSAY_ERROR_MAX bytes */
	/* The arm that is called, and where; in reference() the arm that is held against it (NULL unless reference_per_arm). */
	const struct assay_arm *arm;
	enum assay_backend backend;
};

/* How an arm runs on one backend. run() only enqueues on cuda (no synchronisation, no allocation); on the host it computes.
 * state is what plan() made, or NULL. */
struct assay_arm_ops {
	int (*plan)(const struct assay_call *call, void **state); /* NULL: nothing to plan */
	int (*run)(const struct assay_call *call, void *state); /* required */
	void (*finish)(void *state); /* NULL: nothing to free */
	size_t (*workspace_bytes)(const struct assay_point *, int64_t arm_arg); /* NULL: none */
	int (*derive)(const struct assay_call *call); /* NULL: arm has no ASSAY_DERIVED tensor */
};

enum assay_arm_flag {
	ASSAY_ARM_BITWISE = 1u << 0, /* claims the bits of `shipped` */
	ASSAY_ARM_FAULT = 1u << 1, /* a must-fail subject: listed apart, never proposed for a table */
	ASSAY_ARM_SELECTABLE = 1u << 2 /* a serving table may name it */
};

struct assay_arm {
	const char *name; /* "shipped", "split", "split_kv" */
	/* With arg_name the arm is a family written NAME=N (`split=4`), arg_min <= N <= arg_max; arg_pow2: powers of two only. */
	const char *arg_name;
	int64_t arg_min, arg_max;
	bool arg_pow2;
	unsigned flags;
	const char *doc;
	const struct assay_arm_ops *ops[ASSAY_N_BACKENDS]; /* NULL: not on this backend */
	/* NULL, or why this arm cannot run at this point (the cell then says `skip`, or fails where a table names it). Returns
	 * NULL if it can. The text is static. */
	const char *(*unsupported)(const struct assay_point *, int64_t arm_arg, enum assay_backend);
	/* The same for a whole architecture, asked where the device is known. cc as in form(). NULL hook: runs on all. */
	const char *(*unsupported_on)(enum assay_backend, int cc);
};

/* ---- facts, work, reference ---------------------------------------------------------------------------------------- */

/* Facts of the data that speed and least bytes depend on, per tensor; counted by the fill. -1: not counted. */
struct assay_facts {
	int64_t distinct[ASSAY_MAX_TENSORS]; /* distinct values of an ASSAY_INDEX tensor */
	int64_t nonzero[ASSAY_MAX_TENSORS];
};

/* Finite and at least 0, or the cell is an error. */
struct assay_work {
	double bytes; /* moved by the shipped algorithm: each operand once per use that misses */
	double least_bytes; /* each distinct element touched once: no launch can move less */
	double flop; /* multiply and add counted as two */
};

/* Which rows of the output a reference computes. A row is one combination of the first `row_rank` dimensions of the output
 * tensor. row == NULL: all n of them in order. */
struct assay_rows {
	const int64_t *row;
	int64_t n;
};

struct assay_kernel {
	uint32_t abi; /* ASSAY_ABI */
	const char *name; /* family.name */
	const char *doc; /* one line */
	const struct assay_param *params;
	int n_params;
	const struct assay_tensor *tensors;
	int n_tensors;
	const struct assay_arm *arms; /* the first one is `shipped` unless the suite names another */
	int n_arms;
	const char *const
		*data_axes; /* NULL-terminated names of parameters that only the data depend on; may be NULL */

	/* Shape of tensor t at a point. Must be cheap and pure. */
	int (*shape)(const struct assay_point *, int t, struct assay_shape *out);

	/* A relation between parameters that ranges cannot say. NULL hook: none. Returns NULL, or a static sentence. */
	const char *(*refuse)(const struct assay_point *);

	void (*work)(const struct assay_point *, const struct assay_facts *, struct assay_work *out);

	/* Plain and in double, independent of every arm, on host copies of the tensors (call->tensor). For output tensor t and the
	 * given rows: ref[r*row_len + k] the value, bound[same] the greatest |arm - ref| that rounding can cause (derived, and
	 * explained in the kernel's file). Several threads may compute disjoint rows at once: it must be pure. NULL hook: none. */
	int (*reference)(const struct assay_call *, int t, const struct assay_rows *, double *ref, double *bound);
	int row_rank; /* leading dimensions of the outputs that make a row */
	bool reference_per_arm; /* the arms compute different things: reference() is asked for each with call->arm set */

	/* Which elements of output t are defined at this point: mask[i] = 1. NULL hook: all of them. */
	int (*defined)(const struct assay_call *, int t, uint8_t *mask);

	/* Forms and emulations worth telling per backend and architecture ("e4m3 mma emulated by F2FP + HMMA"); may return
	 * NULL. cc: 90 for compute capability 9.0; 0 on the host. NULL hook: nothing to tell. */
	const char *(*form)(const struct assay_arm *, enum assay_backend, int cc);

	/* The matrix instruction that an arm's inner loop issues, by the name of the arm of `probe.rate` that times it ("mma_s8"):
	 * `ratio: {equal_issue_interval: …}` compares what these take. cc as in form(). NULL, or a NULL hook: it names none. */
	const char *(*issue_form)(const struct assay_arm *, enum assay_backend, int cc);
};

/* Bytes of one element; of ASSAY_RECORD 0. */
static inline uint32_t assay_dtype_bytes(enum assay_dtype t)
{
	switch (t) {
	case ASSAY_F64:
	case ASSAY_I64:
	case ASSAY_U64: return 8;
	case ASSAY_F32:
	case ASSAY_I32:
	case ASSAY_U32: return 4;
	case ASSAY_F16:
	case ASSAY_BF16:
	case ASSAY_I16:
	case ASSAY_U16: return 2;
	case ASSAY_E4M3:
	case ASSAY_E5M2:
	case ASSAY_I8:
	case ASSAY_U8: return 1;
	case ASSAY_RECORD: return 0;
	}
	return 0;
}

/* Elements (or records) of a shape: the product of its dimensions. */
static inline int64_t assay_shape_count(const struct assay_shape *s)
{
	int64_t n = 1;
	for (int i = 0; i < s->rank; i++)
		n *= s->dim[i];
	return n;
}

#ifdef __cplusplus
}
#endif
#endif
