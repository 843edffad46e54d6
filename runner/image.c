#include "image.h"

#include <stdlib.h>
#include <string.h>

#include "fence.h"
#include "fill.h"
#include "image_block.h"

void image_drop(struct image *im)
{
	for (int k = 0; k < im->n; k++)
		image_block_drop(im->block[k]);
	memset(im, 0, sizeof(*im));
}

bool image_same(const struct image *a, const struct image *b)
{
	return a->n == b->n && !memcmp(a->digest, b->digest, (size_t)a->n * sizeof(*a->digest));
}

bool image_fetch(const struct image *im, struct err *err)
{
	for (int k = 0; k < im->n; k++)
		if (im->block[k] && !image_block_fetch(im->block[k], err))
			return false;
	return true;
}

const unsigned char *image_bytes(const struct image *im, int k)
{
	return im->block[k] ? im->block[k]->data : NULL;
}

const void *image_place(const struct image *im, int k)
{
	const struct image_block *b = im->block[k];

	if (!b)
		return NULL;
	return b->device ? b->device : b->st->ops->kind == ASSAY_HOST ? b->data : NULL;
}

bool image_shares(const struct image *a, const struct image *b, int k)
{
	return a->block[k] && a->block[k] == b->block[k];
}

unsigned char *image_rows(const struct image *im, int k, const int64_t *row, int64_t n, size_t row_bytes,
			  struct err *err)
{
	const struct image_block *b = im->block[k];
	unsigned char *at = malloc(b->n ? b->n : 1);

	if (!at) {
		err_set(err, "%s: no %zu bytes of host memory for its rows", b->name, b->n);
		return NULL;
	}
	for (int64_t i = 0; i < n; i++) {
		const size_t from = (size_t)row[i] * row_bytes;
		if (b->data) {
			memcpy(at + from, b->data + from, row_bytes);
		} else if (!b->st->ops->download(b->st->be, at + from, (const unsigned char *)b->device + from,
						 row_bytes, err)) {
			free(at);
			return NULL;
		}
	}
	return at;
}

/* *at: the first byte of a strided output that lies between its rows and does not hold the poison any more; -1: none. False: out of memory. */
static bool gap_damage(const struct buffer *b, const unsigned char *span, const unsigned char *dense, uint32_t poison,
		       int64_t *at)
{
	unsigned char *want = malloc(b->bytes ? b->bytes : 1);

	*at = -1;
	if (!want)
		return false;
	tensor_words(want, b->bytes, poison);
	tensor_scatter(&b->shape, b->elem_bytes, dense, want);
	for (size_t i = 0; *at < 0 && i < b->bytes; i++)
		if (want[i] != span[i])
			*at = (int64_t)i;
	free(want);
	return true;
}

/* Dense bytes of an output with undefined elements zeroed. NULL with *err. */
static struct image_block *fetch(struct stage *st, const struct buffer *b, const uint8_t *mask, uint32_t poison,
				 int64_t *gap, struct err *err)
{
	int64_t count = assay_shape_count(&b->shape);
	struct image_block *block = image_block_host(st, b->desc->name, (size_t)count * b->elem_bytes);
	unsigned char *span = NULL;

	*gap = -1;
	if (!block)
		goto nomem;
	if (tensor_is_dense(&b->shape)) {
		if (b->bytes && !st->ops->download(st->be, block->data, b->data, b->bytes, err))
			goto fail;
	} else {
		span = malloc(b->bytes ? b->bytes : 1);
		if (!span)
			goto nomem;
		if (b->bytes && !st->ops->download(st->be, span, b->data, b->bytes, err))
			goto fail;
		tensor_gather(&b->shape, b->elem_bytes, span, block->data);
		/* The gaps of what is filled and written hold what the fill left there. */
		if (b->desc->role == ASSAY_INOUT)
			poison = tensor_tail_word(b->desc, &b->shape, TAIL_NAN);
		if (!gap_damage(b, span, block->data, poison, gap))
			goto nomem;
		free(span);
	}
	for (int64_t i = 0; mask && i < count; i++)
		if (!mask[i])
			memset(block->data + (size_t)i * b->elem_bytes, 0, b->elem_bytes);
	return block;
nomem:
	err_set(err, "%s: no %zu bytes of host memory to look at it", b->desc->name, b->bytes);
fail:
	free(span);
	image_block_drop(block);
	return NULL;
}

/* A known block of the same digest (and, up to IMAGE_EXACT_BYTES, of the same bytes as `mine`), or NULL. */
static struct image_block *shared(const struct image *const *known, int n_known, int k, uint64_t digest,
				  const struct image_block *mine)
{
	for (int i = 0; i < n_known; i++) {
		struct image_block *b = known[i] && known[i]->n > k ? known[i]->block[k] : NULL;
		if (b && known[i]->digest[k] == digest &&
		    (!mine || (b->data && b->n == mine->n && !memcmp(b->data, mine->data, b->n))))
			return b;
	}
	return NULL;
}

/* A block for an output that stays on the device: a known one of the same bytes, or a copy; NULL where there is no room for a copy. */
static bool keep_there(struct stage *st, const struct buffer *b, const struct image *const *known, int n_known, int k,
		       uint64_t digest, struct image_block **out, struct err *err)
{
	*out = NULL;
	for (int i = 0; i < n_known; i++) {
		struct image_block *same = known[i] && known[i]->n > k ? known[i]->block[k] : NULL;
		if (!same || !same->device || known[i]->digest[k] != digest || same->n != b->bytes)
			continue;
		if (!image_block_confirm(same, b->data, err))
			return false;
		same->refs++;
		*out = same;
		return true;
	}
	*out = image_block_device(st, b->desc->name, b->data, b->bytes);
	if (*out)
		(*out)->digest = digest;
	return true;
}

/* A block on the host: a known one of the same bytes where there is one. Without `bytes` it is made for the digest alone, and dropped. */
static bool bring_here(struct stage *st, const struct buffer *b, const uint8_t *mask, bool bytes, uint32_t poison,
		       const struct image *const *known, int n_known, struct image *out, struct err *err)
{
	const bool direct = tensor_is_dense(&b->shape) && !mask;
	const int k = out->n;
	struct image_block *block = fetch(st, b, mask, poison, &out->gap[k], err), *same;

	if (!block)
		return false;
	/* A device that digests for itself is held to it. */
	if (!direct || st->ops->compare) {
		const uint64_t digest = fill_digest(block->data, block->n);
		if (direct && digest != out->digest[k]) {
			image_block_drop(block);
			return err_set(err, "%s: the device digests other bytes than it gives to the host",
				       b->desc->name);
		}
		out->digest[k] = digest;
	}
	block->digest = out->digest[k];
	same = shared(known, n_known, k, out->digest[k], block);
	if (same || !bytes) {
		image_block_drop(block);
		block = bytes ? same : NULL;
		if (block)
			block->refs++;
	} else {
		fence_seal(block->data); /* no arm may change what it is held against */
	}
	out->block[k] = block;
	return true;
}

bool image_take(struct stage *st, struct ready *r, const struct image *const *known, int n_known, bool bytes,
		uint32_t poison, struct image *out, struct err *err)
{
	const struct assay_kernel *kernel = st->cell->kernel;

	memset(out, 0, sizeof(*out));
	for (int t = 0; t < kernel->n_tensors; t++) {
		if (kernel->tensors[t].role != ASSAY_OUT && kernel->tensors[t].role != ASSAY_INOUT)
			continue;
		const struct buffer *b = r->scene->buf[t];
		const uint8_t *mask = r->scene->mask[t];
		const bool direct = tensor_is_dense(&b->shape) && !mask;
		struct image_block **block = &out->block[out->n];
		const int k = out->n;

		out->tensor[k] = t;
		out->gap[k] = -1;
		if (direct && !st->ops->digest(st->be, b->data, b->bytes, &out->digest[k], err))
			goto fail;
		if (direct && bytes && st->ops->compare && b->bytes > IMAGE_HOST_BYTES) {
			if (!keep_there(st, b, known, n_known, k, out->digest[k], block, err))
				goto fail;
		} else if (direct && bytes && b->bytes > IMAGE_EXACT_BYTES) {
			*block = shared(known, n_known, k, out->digest[k], NULL);
			if (*block)
				(*block)->refs++;
		}
		if (!*block && (bytes || !direct) && !bring_here(st, b, mask, bytes, poison, known, n_known, out, err))
			goto fail;
		out->n++;
	}
	return true;
fail:
	image_drop(out);
	return false;
}
