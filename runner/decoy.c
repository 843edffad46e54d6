#include "decoy.h"

#include <stdlib.h>
#include <string.h>

#include "mix.h"

/* Numbers of the answer that are kept at hand; holes, one in each part of an output, and their bytes. */
enum { NUMBERS = 4, HOLES = 8, HOLE_BYTES = 64 };

struct decoy {
	struct stage *st;
	const struct evidence *ev;
	uint64_t random;
	/* By subject and output: where the answer can be copied from on the device; NULL: nowhere. */
	const void *from[STAGE_SUBJECTS][ASSAY_MAX_TENSORS];
	void *made[STAGE_SUBJECTS][ASSAY_MAX_TENSORS]; /* those that were brought there for it */
	uint32_t number[ASSAY_MAX_TENSORS][NUMBERS];
};

const char *decoy_name(enum decoy_kind k)
{
	static const char *const name[] = {
		[DECOY_NAN] = "NaN",
		[DECOY_NUMBER] = "a number of its answer",
		[DECOY_MOVED] = "its answer, moved along",
		[DECOY_HOLES] = "its answer, with holes",
	};
	return name[k];
}

/* The subject whose checked answer is s's too: the null arm is shipped once more. */
static int answer_of(const struct stage *st, const struct subject *s)
{
	return s->role == ROLE_NULL ? 0 : (int)(s - st->subject);
}

static const struct image *image_of(const struct decoy *d, int i)
{
	return d->ev && d->ev->have[0][i] ? &d->ev->first[0][i] : NULL;
}

/* One that has the same bytes as output k of subject i and lies on the device already. */
static const void *shared(const struct decoy *d, int i, int k)
{
	for (int j = 0; j < i; j++) {
		const struct image *other = image_of(d, j);
		if (other && d->from[j][k] && image_shares(other, image_of(d, i), k))
			return d->from[j][k];
	}
	return NULL;
}

/* False: lost. Without room on the device words have to do. */
static bool answer_there(struct decoy *d, int i, int k, struct err *err)
{
	const struct stage *st = d->st;
	const struct image *im = image_of(d, i);
	const struct buffer *b = st->main.buf[im->tensor[k]];
	struct err no_room;

	if (!b->bytes || !tensor_is_dense(&b->shape))
		return true;
	d->from[i][k] = image_place(im, k);
	if (!d->from[i][k])
		d->from[i][k] = shared(d, i, k);
	if (d->from[i][k] || !image_bytes(im, k) || b->bytes > IMAGE_HOST_BYTES)
		return true;
	d->made[i][k] = st->ops->alloc(st->be, b->bytes, &no_room);
	d->from[i][k] = d->made[i][k];
	return !d->made[i][k] || st->ops->upload(st->be, d->made[i][k], image_bytes(im, k), b->bytes, err);
}

/* Four bytes each from anywhere in the answer; an answer that is nothing but zeros has the second poison. */
static bool numbers_get(struct decoy *d, int i, int k, struct err *err)
{
	const struct image *im = image_of(d, i);
	const struct buffer *b = d->st->main.buf[im->tensor[k]];
	const unsigned char *here = image_bytes(im, k);
	const size_t words = here || d->from[i][k] ? (size_t)assay_shape_count(&b->shape) * b->elem_bytes / 4 : 0;

	for (int n = 0; n < NUMBERS && words; n++) {
		const size_t at = 4 * (size_t)mix_below(&d->random, words);
		uint32_t word;
		if (here)
			memcpy(&word, here + at, 4);
		else if (!d->st->ops->download(d->st->be, &word, (const unsigned char *)d->from[i][k] + at, 4, err))
			return false;
		if (word)
			d->number[im->tensor[k]][n] = word;
	}
	return true;
}

struct decoy *decoy_create(struct stage *st, const struct evidence *ev, uint64_t seed, struct err *err)
{
	struct decoy *d = calloc(1, sizeof(*d));
	bool numbers = false;

	if (!d) {
		err_set(err, "out of memory");
		return NULL;
	}
	d->st = st;
	d->ev = ev;
	d->random = seed;
	for (int t = 0; t < ASSAY_MAX_TENSORS; t++)
		for (int n = 0; n < NUMBERS; n++)
			d->number[t][n] = TENSOR_POISON_B;
	for (int i = 0; i < st->n_subjects; i++) {
		const struct image *im = image_of(d, i);
		for (int k = 0; im && k < im->n; k++)
			if (!answer_there(d, i, k, err) || (!numbers && !numbers_get(d, i, k, err))) {
				decoy_destroy(d);
				return NULL;
			}
		numbers = numbers || im;
	}
	return d;
}

void decoy_destroy(struct decoy *d)
{
	if (!d)
		return;
	for (int i = 0; i < STAGE_SUBJECTS; i++)
		for (int k = 0; k < ASSAY_MAX_TENSORS; k++)
			if (d->made[i][k])
				d->st->ops->free(d->st->be, d->made[i][k]);
	free(d);
}

static bool copy(struct decoy *d, const struct buffer *b, size_t to, const void *from, size_t at, size_t n,
		 struct err *err)
{
	return d->st->ops->copy(d->st->be, (unsigned char *)b->data + to, (const unsigned char *)from + at, n, err);
}

static bool put_moved(struct decoy *d, const struct buffer *b, const void *from, struct err *err)
{
	const uint64_t count = b->bytes / b->elem_bytes;
	const size_t by = (size_t)(1 + mix_below(&d->random, count - 1)) * b->elem_bytes;

	return copy(d, b, 0, from, by, b->bytes - by, err) && copy(d, b, b->bytes - by, from, 0, by, err);
}

/* Whatever stretch of a quarter is left out holds a hole. */
static bool put_holes(struct decoy *d, const struct buffer *b, const void *from, struct err *err)
{
	const uint64_t count = b->bytes / b->elem_bytes, parts = count < HOLES ? count : HOLES;
	uint64_t hole = HOLE_BYTES / b->elem_bytes;
	bool ok = copy(d, b, 0, from, 0, b->bytes, err);

	if (hole > count / parts / 8)
		hole = count / parts / 8;
	hole = hole ? hole : 1;
	for (uint64_t i = 0; ok && i < parts; i++) {
		const uint64_t first = count * i / parts, end = count * (i + 1) / parts;
		const uint64_t to = first + mix_below(&d->random, end - first - hole + 1);
		uint64_t at = mix_below(&d->random, count - hole + 1);
		if (at == to)
			at = to ? to - 1 : count - hole;
		ok = copy(d, b, (size_t)to * b->elem_bytes, from, (size_t)at * b->elem_bytes,
			  (size_t)hole * b->elem_bytes, err);
	}
	return ok;
}

bool decoy_put(struct decoy *d, struct ready *r, enum decoy_kind kind, uint32_t *word, struct err *err)
{
	const struct stage *st = d->st;
	const struct assay_kernel *k = st->cell->kernel;
	const int i = answer_of(st, r->subject), n = (int)mix_below(&d->random, NUMBERS);
	bool ok = true;

	*word = kind == DECOY_NAN ? TENSOR_POISON_A : TENSOR_POISON_B;
	for (int t = 0, out = 0; ok && t < k->n_tensors; t++) {
		const enum assay_role role = k->tensors[t].role;
		struct buffer *b = r->scene->buf[t];
		const void *from = role == ASSAY_OUT ? d->from[i][out] : NULL;
		out += role == ASSAY_OUT || role == ASSAY_INOUT;
		if (role != ASSAY_OUT && role != ASSAY_WORKSPACE)
			continue;
		if (from && kind >= DECOY_MOVED && b->bytes > b->elem_bytes)
			ok = kind == DECOY_MOVED ? put_moved(d, b, from, err) : put_holes(d, b, from, err);
		else if (kind == DECOY_NUMBER && tensor_is_dense(&b->shape))
			ok = buffer_poison(st->be, b, d->number[t][n], err);
		else
			ok = buffer_poison(st->be, b, *word, err);
	}
	return ok && (!r->workspace.alloc || buffer_poison(st->be, &r->workspace, *word, err));
}
