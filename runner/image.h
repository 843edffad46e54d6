/* image: the outputs of one launch, and what differs between two of them. Images are dense and row-major, with zeros where the kernel leaves
 * an output undefined, so that equal images are equal bytes. Arms whose bytes are equal share them.
 *
 * A large output stays on its device as a copy, where the backend can compare there; image_fetch brings it to the host, which few images
 * need: those that differ, and those whose rows are rearranged. What the device says of bytes is held against what the host sees of them:
 * an output that is brought over whole must have the digest that the device gave (single rows of one, image_rows, have none to be held to), and
 * outputs that the device calls equal are looked into. */
#ifndef ASSAY_IMAGE_H
#define ASSAY_IMAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "stage.h"

/* Up to here an output is brought to the host at once. */
#define IMAGE_HOST_BYTES ((size_t)4 << 20)
/* Up to here an image on the host is compared byte by byte with those it may share bytes with; above, by its 64-bit digest. */
#define IMAGE_EXACT_BYTES ((size_t)64 << 20)

struct image_block;
struct image {
	int n; /* outputs */
	int tensor[ASSAY_MAX_TENSORS]; /* index in the kernel */
	uint64_t digest[ASSAY_MAX_TENSORS];
	struct image_block *block[ASSAY_MAX_TENSORS]; /* NULL where only digests were taken */
	int64_t gap[ASSAY_MAX_TENSORS]; /* offset of a byte written between the rows of a strided output; -1: none */
};

/* Takes the outputs of r's last launch. known: images of the same shapes to share bytes with (their entries may be NULL). bytes
 * false: digests only. poison: the word the gaps must still hold. */
bool image_take(struct stage *st, struct ready *r, const struct image *const *known, int n_known, bool bytes,
		uint32_t poison, struct image *out, struct err *err);
void image_drop(struct image *im); /* zeroes it; an image that was never taken is fine */
bool image_same(const struct image *a, const struct image *b);
/* Brings all outputs to the host. False with *err: no memory, a lost device, or one that gives other bytes than it digested. */
bool image_fetch(const struct image *im, struct err *err);
const unsigned char *image_bytes(const struct image *im,
				 int k); /* dense bytes of output k, after image_fetch; else NULL */
/* Where the backend can copy the dense bytes of output k from: a copy that stayed on the device, or, where that is the host, the bytes here.
 * NULL: nowhere. */
const void *image_place(const struct image *im, int k);
/* Whether output k is one and the same memory in both. */
bool image_shares(const struct image *a, const struct image *b, int k);
/* Memory for all of output k with only these rows in it. The caller frees it. NULL with *err. */
unsigned char *image_rows(const struct image *im, int k, const int64_t *row, int64_t n, size_t row_bytes,
			  struct err *err);
/* sha-256 over the bytes of all outputs, 64 hex digits and a NUL, of n images at once over the threads. What lies on the device is read in
 * pieces. False with *err as image_fetch. */
bool image_sha256(struct stage *st, const struct image *const im[], int n, char out[][65], struct err *err);

struct diff {
	int out; /* output index in the image; -1: equal */
	int64_t differ, of, first;
	bool ulp_known; /* false: a NaN is in it, or the dtype has none */
	uint64_t ulp_max;
	uint64_t where; /* a hash of the indices that differ */
	int64_t common[ASSAY_MAX_RANK]; /* the coordinate that all of them share, or -1 */
};
/* The first output in which got and want differ; its bytes are on the host then. Both images were taken with bytes; shapes are those of sc.
 * False with *err as image_fetch. */
bool image_diff(struct stage *st, const struct scene *sc, const struct image *got, const struct image *want,
		struct diff *out, struct err *err);
/* The same for elements picked by keep[i] (NULL: all) of one output's dense bytes. */
void image_diff_bytes(const struct assay_tensor *t, const struct assay_shape *s, const unsigned char *got,
		      const unsigned char *want, const uint8_t *keep, struct diff *out);
/* "3 of 131072 elements of out differ, all h=17; first out[…] 3f9d70a5 1.2300001 for 3f9d70a4 1.23; at most 1 ULP" */
void diff_text(const struct assay_tensor *t, const struct assay_shape *s, const unsigned char *got,
	       const unsigned char *want, const struct diff *d, char *buf, size_t cap);
/* Sets tensor, differ, of, ulp_max and first of a finding. */
void diff_fields(json_t *finding, const struct assay_tensor *t, const struct assay_shape *s, const unsigned char *got,
		 const unsigned char *want, const struct diff *d);
/* One element as a number for JSON (null where it is not finite or has none), and its bits in hex. */
json_t *element_json(const struct assay_tensor *t, const unsigned char *base, int64_t i);
void element_bits(const struct assay_tensor *t, const unsigned char *base, int64_t i, char *buf, size_t cap);

#endif
