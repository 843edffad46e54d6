/* image: the outputs of one launch, kept on the host, and what differs between two of them. Images are dense and row-major, with
 * zeros where the kernel leaves an output undefined, so that equal images are equal bytes. Arms whose bytes are equal share them. */
#ifndef ASSAY_IMAGE_H
#define ASSAY_IMAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "stage.h"

/* Up to here an image is compared byte by byte with those it may share bytes with; above, by its 64-bit digest. */
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
const unsigned char *image_bytes(const struct image *im, int k); /* dense bytes of output k */
/* sha-256 over the bytes of all outputs, 64 hex digits and a NUL. */
void image_sha256(const struct image *im, char out[65]);

struct diff {
	int out; /* output index in the image; -1: equal */
	int64_t differ, of, first;
	bool ulp_known; /* false: a NaN is in it, or the dtype has none */
	uint64_t ulp_max;
	uint64_t where; /* a hash of the indices that differ */
	int64_t common[ASSAY_MAX_RANK]; /* the coordinate that all of them share, or -1 */
};
/* The first output in which got and want differ. Both need bytes; shapes are those of sc. */
void image_diff(struct stage *st, const struct scene *sc, const struct image *got, const struct image *want,
		struct diff *out);
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
