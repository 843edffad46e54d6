#include "image_block.h"

#include <stdlib.h>
#include <string.h>

#include "fence.h"
#include "fill.h"

/* Copies on the device take at most this part of its memory, so that there is room for what a cell needs later. */
enum { MEMORY_PART = 8 };
/* Where and how much the host looks into two outputs that the device calls equal. */
enum { LOOKS = 16, LOOK_BYTES = 16384 };

static struct image_block *create(struct stage *st, const char *name, size_t n)
{
	struct image_block *b = calloc(1, sizeof(*b));

	if (b)
		*b = (struct image_block){.refs = 1, .st = st, .name = name, .n = n};
	return b;
}

struct image_block *image_block_host(struct stage *st, const char *name, size_t n)
{
	struct image_block *b = create(st, name, n);

	if (!b)
		return NULL;
	b->data = fence_alloc(n);
	if (b->data)
		return b;
	free(b);
	return NULL;
}

struct image_block *image_block_device(struct stage *st, const char *name, const void *src, size_t n)
{
	const int64_t memory = st->ops->info(st->be)->memory_bytes;
	struct image_block *b;
	struct err ignored;

	if ((int64_t)(st->image_bytes + n) > memory / MEMORY_PART)
		return NULL;
	b = create(st, name, n);
	if (!b)
		return NULL;
	b->device = st->ops->alloc(st->be, n, &ignored);
	if (b->device && st->ops->copy(st->be, b->device, src, n, &ignored)) {
		st->image_bytes += n;
		return b;
	}
	if (b->device)
		st->ops->free(st->be, b->device);
	free(b);
	return NULL;
}

void image_block_drop(struct image_block *b)
{
	if (!b || --b->refs > 0)
		return;
	if (b->device) {
		b->st->ops->free(b->st->be, b->device);
		b->st->image_bytes -= b->n;
	}
	fence_free(b->data);
	free(b);
}

bool image_block_fetch(struct image_block *b, struct err *err)
{
	if (b->data)
		return true;
	b->data = fence_alloc(b->n);
	if (!b->data)
		return err_set(err, "%s: no %zu bytes of host memory to look at it", b->name, b->n);
	if (b->st->ops->download(b->st->be, b->data, b->device, b->n, err)) {
		if (fill_digest(b->data, b->n) == b->digest) {
			fence_seal(b->data);
			return true;
		}
		err_set(err, "%s: the device digests other bytes than it gives to the host", b->name);
	}
	fence_free(b->data);
	b->data = NULL;
	return false;
}

/* Places over all of it, the first and the last bytes among them; which ones follows from the digest. */
static size_t look_at(const struct image_block *b, int i, size_t bytes)
{
	const size_t last = b->n - bytes;

	if (i == 0 || i == LOOKS - 1)
		return i ? last : 0;
	return last ? (size_t)((b->digest + (uint64_t)i * 0x9E3779B97F4A7C15u) % last) : 0;
}

bool image_block_confirm(struct image_block *b, const void *p, struct err *err)
{
	const struct backend_ops *ops = b->st->ops;
	const size_t bytes = b->n < LOOK_BYTES ? b->n : LOOK_BYTES;
	unsigned char mine[LOOK_BYTES], theirs[LOOK_BYTES];
	int64_t n, first;

	if (!ops->compare(b->st->be, p, b->device, b->n, &n, &first, err))
		return false;
	if (n)
		return err_set(err, "%s: the device gives one digest to outputs that it finds to differ at byte %lld",
			       b->name, (long long)first);
	for (int i = 0; i < LOOKS; i++) {
		const size_t at = look_at(b, i, bytes);
		if (!ops->download(b->st->be, mine, (const unsigned char *)p + at, bytes, err) ||
		    !ops->download(b->st->be, theirs, (const unsigned char *)b->device + at, bytes, err))
			return false;
		if (memcmp(mine, theirs, bytes) != 0)
			return err_set(err, "%s: the device calls outputs equal that differ behind byte %zu", b->name,
				       at);
	}
	return true;
}
