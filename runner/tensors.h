/* tensors: one guarded allocation a tensor, and how its elements lie in it.
 *
 *   | guard before (4 KiB) | data (256-byte aligned) | guard after (64 KiB or one row, whichever is more, at most 1 MiB; to a page's end) |
 *
 * On the host each lies in a mapping of its own, between fences (fence.h): what is written beyond the guards ends the process.
 * Guards hold a 4-byte word and are scanned after every checked launch. Behind an input the word is NaN in the first pass and a
 * huge finite number in the second (tensor_tail_word), so that an over-read shows in the output. */
#ifndef ASSAY_TENSORS_H
#define ASSAY_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "assay/adapter.h"
#include "backend.h"
#include "err.h"

enum { TENSOR_AT_MAX = 160 };

/* Words of guards around outputs and of the two poisons. The first poison is NaN in every float dtype of 16 bits and more, so
 * that an arm that adds to what it finds shows; the second is an ordinary number. */
#define TENSOR_GUARD_WORD 0xA5C3E187u
#define TENSOR_POISON_A 0x7FF5A55Au
#define TENSOR_POISON_B 0x4B1D3C2Eu

/* What stands behind the inputs: NaN (integers: 0), huge and finite (indices: the last valid one), or zero. */
enum tail { TAIL_NAN, TAIL_HUGE, TAIL_ZERO };
uint32_t tensor_tail_word(const struct assay_tensor *t, const struct assay_shape *s, enum tail tail);

struct buffer {
	const struct assay_tensor *desc; /* NULL: a workspace */
	struct assay_shape shape;
	uint32_t elem_bytes; /* of an element or a record */
	size_t bytes; /* of the data, gaps of a strided shape included; may be 0 */
	size_t before, after; /* of the guards */
	void *alloc, *data; /* data is never NULL after buffer_create */
	uint32_t word; /* in the guards */
	bool guarded; /* the guards hold it */
};

/* Where a guard was first damaged. offset: bytes from the start of the data (negative before it, >= bytes behind it). */
struct damage {
	bool any, before_data;
	int64_t offset;
	int64_t words; /* 4-byte words changed */
};

uint32_t tensor_elem_bytes(const struct assay_tensor *t);
/* Bytes from the first element to the end of the last; 0 where a dimension is 0. False: overflow, or a stride that folds over. */
bool tensor_span(const struct assay_tensor *t, const struct assay_shape *s, size_t *bytes, struct err *err);
bool tensor_same_shape(const struct assay_shape *a, const struct assay_shape *b);
bool tensor_is_dense(const struct assay_shape *s);
/* Copies a strided image to a dense one of count * elem bytes, and back (gaps are not touched). */
void tensor_gather(const struct assay_shape *s, uint32_t elem, const void *span, void *dense);
void tensor_scatter(const struct assay_shape *s, uint32_t elem, const void *dense, void *span);

/* n bytes of host memory as the device writes a repeated word: 4 bytes at a time, the last of them in part. */
void tensor_words(void *at, size_t n, uint32_t word);

/* Coordinates of the index-th element in row-major order, and "out[t=2,h=17,r=301]". */
void tensor_coords(const struct assay_shape *s, int64_t index, int64_t coord[ASSAY_MAX_RANK]);
void tensor_at(const struct assay_tensor *t, const struct assay_shape *s, int64_t index, char *buf, size_t cap);
/* Name of dimension k, "d0" where the tensor names none. Returns buf. */
const char *tensor_dim_name(const struct assay_tensor *t, int k, char *buf, size_t cap);
/* The dimension named so, or -1. */
int tensor_dim(const struct assay_tensor *t, const char *name);

/* t NULL: a workspace of `bytes`. On failure *b is as after buffer_destroy. */
bool buffer_create(struct backend *be, const struct assay_tensor *t, const struct assay_shape *s, size_t bytes,
		   struct buffer *b, struct err *err);
void buffer_destroy(struct backend *be, struct buffer *b);
/* Writes the guards, unless they hold the word already. Queued. */
bool buffer_guard(struct backend *be, struct buffer *b, uint32_t word, struct err *err);
/* Scans both guards. Waits. Damaged guards are written anew by the next buffer_guard. */
bool buffer_check(struct backend *be, struct buffer *b, struct damage *out, struct err *err);
/* The two guards as ranges. False: the first bytes of the guard behind are none of whole words, and take buffer_check. */
bool buffer_ranges(const struct buffer *b, struct scan_range range[2]);
/* Fills the data with a word. Queued. */
bool buffer_poison(struct backend *be, struct buffer *b, uint32_t word, struct err *err);

#endif
