/* image_block: the bytes of one output of one launch. They lie on the host, or stay on the device as a copy until the host asks for them.
 * Counted: images whose bytes are equal share a block. For image*.c only. */
#ifndef ASSAY_IMAGE_BLOCK_H
#define ASSAY_IMAGE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stage.h"

struct image_block {
	int refs;
	struct stage *st; /* borrowed; outlives the block */
	const char *name; /* of the output; borrowed */
	size_t n;
	uint64_t digest; /* fill_digest of the bytes */
	unsigned char *data; /* on the host; NULL: not brought there yet */
	void *device; /* the copy on the device; NULL: none */
};

/* n bytes on the host, to be filled by the caller. NULL: out of memory. */
struct image_block *image_block_host(struct stage *st, const char *name, size_t n);
/* A copy of n bytes of device memory, made on the device (queued). NULL: there is no room that may be taken. */
struct image_block *image_block_device(struct stage *st, const char *name, const void *src, size_t n);
void image_block_drop(struct image_block *b); /* NULL is fine */

/* Makes data valid. False with *err: out of host memory, a lost device, or bytes that do not have the digest which the device gave for them. */
bool image_block_fetch(struct image_block *b, struct err *err);
/* Whether p, n bytes of device memory of this digest, holds the bytes of b, which has a copy there and the same digest: all of them compared
 * by the device and some of them by the host. False with *err: a lost device, or one that contradicts itself. */
bool image_block_confirm(struct image_block *b, const void *p, struct err *err);

#endif
