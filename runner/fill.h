/* fill: seeded generators and the audit, the same bytes on every backend.
 *
 * A value is a function of (seed, kernel, tensor, field, input set, coordinates) and of nothing else: not of the shape, so that
 * a filter, a shard or a wider t_q does not change the rows it shares. The arithmetic is in fill_gen.h, inline for C and for
 * CUDA, and uses only integer operations and exactly rounded + - * / sqrt without contraction. */
#ifndef ASSAY_FILL_H
#define ASSAY_FILL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "assay/adapter.h"
#include "err.h"
#include "fill_spec.h"

/* One tensor (or one field of a record tensor) to be filled. */
struct fill_job {
	struct fill_spec spec; /* never FILL_DEFAULT: fill_resolve picked it */
	uint64_t key; /* fill_key() */
	enum assay_dtype dtype; /* of the elements written */
	struct assay_shape shape; /* of the tensor; of a record tensor in records */
	uint32_t record_bytes; /* 0: not a record */
	uint32_t field_offset, field_count;
	uint64_t lcg_seed; /* seed-document generators: seed ^ parameter values, | 1 where the document does so */
};

/* What was counted, in one reading (dtype). min and max are of finite values, NAN where there is none. */
struct fill_reading {
	enum assay_dtype as;
	int64_t n, nan, inf, denormal, zero, negative, positive;
	double min, max;
};
enum { FILL_READINGS = 4 };
struct fill_audit {
	struct fill_reading reading[FILL_READINGS];
	int n_readings;
	int64_t distinct; /* index tensors; else -1 */
	int64_t out_of_bound; /* index tensors: elements outside 0..index_bound-1; a broken promise whatever was promised */
};

uint64_t fill_key(uint64_t suite_seed, const char *kernel, const char *tensor, const char *field, int input_set);

/* The jobs of tensor t of a kernel at a point: one, or one a field of a record. Returns how many (<= ASSAY_MAX_FIELDS), or -1
 * with *err (a fill that does not fit the dtype: "fill 'zipf' wants integers, q is f32"). */
int fill_resolve(const struct assay_kernel *k, int t, const struct assay_point *pt, const struct distribution *d,
		 uint64_t suite_seed, int input_set, struct fill_job jobs[ASSAY_MAX_FIELDS], struct err *err);

/* Whether the file of an `npy` fill is of the job's element type and shape; true for every other fill. Reads its header only. */
bool fill_fits(const struct fill_job *job, struct err *err);
/* Fills dst on the host. Uses OpenMP threads; the bytes do not depend on how many. */
bool fill_host(void *dst, const struct fill_job *job, struct err *err);
/* Counts on the host. readings: bits 1u << dtype beyond the job's own dtype (from the promise); those of another width than the element
 * are left out, but that elements made of bytes are also read byte by byte. */
bool fill_audit_host(const void *src, const struct fill_job *job, uint32_t readings, struct fill_audit *out,
		     struct err *err);
/* 64-bit digest: xxh3-like; must be computable in parallel: defined as a hash of per-64KiB-block hashes (fill_gen.h). */
uint64_t fill_digest(const void *p, size_t bytes);
/* The same in parts of whole blocks (the last may end anywhere): fill_digest_whole of the sum of fill_digest_part over all of them. */
uint64_t fill_digest_part(const void *p, size_t bytes, uint64_t first_block);
uint64_t fill_digest_whole(uint64_t sum, size_t bytes);

/* NULL, or the broken promise as a sentence ("NaN: 1024 of 16384 elements of w.qs read as e4m3"), written into buf. p may be NULL: then
 * only row numbers outside their bound are looked for. A promised reading that was not counted is held against the tensor's own;
 * `sign: both` is asked of tensors of 64 elements and more. */
const char *fill_broken_promise(const struct promise *p, const struct fill_audit *a, const char *tensor, char *buf,
				size_t cap);
json_t *fill_audit_to_json(const struct fill_audit *a);
/* Value of one element as a double, for messages and references; bits as hex text. */
double fill_element(const void *base, enum assay_dtype t, int64_t i);
/* Name of a fill as written in suites; -1 for an unknown one. */
const char *fill_kind_name(enum fill_kind k);
int fill_kind_of(const char *name);

#endif
