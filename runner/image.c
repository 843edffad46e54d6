#include "image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "sha256.h"

struct image_block {
	int refs;
	size_t n;
	unsigned char data[];
};

static struct image_block *block_create(size_t n)
{
	struct image_block *b = malloc(sizeof(*b) + (n ? n : 1));

	if (b) {
		b->refs = 1;
		b->n = n;
	}
	return b;
}

static void block_drop(struct image_block *b)
{
	if (b && --b->refs == 0)
		free(b);
}

void image_drop(struct image *im)
{
	for (int k = 0; k < im->n; k++)
		block_drop(im->block[k]);
	memset(im, 0, sizeof(*im));
}

bool image_same(const struct image *a, const struct image *b)
{
	return a->n == b->n && !memcmp(a->digest, b->digest, (size_t)a->n * sizeof(*a->digest));
}

const unsigned char *image_bytes(const struct image *im, int k)
{
	return im->block[k] ? im->block[k]->data : NULL;
}

void image_sha256(const struct image *im, char out[65])
{
	struct sha256 s;

	sha256_init(&s);
	for (int k = 0; k < im->n; k++)
		sha256_update(&s, im->block[k]->data, im->block[k]->n);
	sha256_hex_final(&s, out);
}

/* The first byte of a strided output that lies between its rows and does not hold the poison any more; -1: none. */
static int64_t gap_damage(const struct buffer *b, const unsigned char *span, const unsigned char *dense,
			  uint32_t poison)
{
	unsigned char *want = malloc(b->bytes);
	int64_t at = -1;

	if (!want)
		return -1;
	for (size_t i = 0; i < b->bytes; i++)
		want[i] = (unsigned char)(poison >> 8 * (i % 4));
	tensor_scatter(&b->shape, b->elem_bytes, dense, want);
	for (size_t i = 0; at < 0 && i < b->bytes; i++)
		if (want[i] != span[i])
			at = (int64_t)i;
	free(want);
	return at;
}

/* Dense bytes of an output with undefined elements zeroed. NULL with *err. */
static struct image_block *fetch(struct stage *st, const struct buffer *b, const uint8_t *mask, uint32_t poison,
				 int64_t *gap, struct err *err)
{
	int64_t count = assay_shape_count(&b->shape);
	struct image_block *block = block_create((size_t)count * b->elem_bytes);
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
		*gap = gap_damage(b, span, block->data, poison);
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
	block_drop(block);
	return NULL;
}

/* A known block of the same digest (and, up to IMAGE_EXACT_BYTES, of the same bytes as `mine`), or NULL. */
static struct image_block *shared(const struct image *const *known, int n_known, int k, uint64_t digest,
				  const struct image_block *mine)
{
	for (int i = 0; i < n_known; i++) {
		struct image_block *b = known[i] && known[i]->n > k ? known[i]->block[k] : NULL;
		if (b && known[i]->digest[k] == digest &&
		    (!mine || (b->n == mine->n && !memcmp(b->data, mine->data, b->n))))
			return b;
	}
	return NULL;
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
		bool direct = tensor_is_dense(&b->shape) && !r->scene->mask[t];
		struct image_block *block = NULL, *same;
		int k = out->n;

		out->tensor[k] = t;
		out->gap[k] = -1;
		if (direct && !st->ops->digest(st->be, b->data, b->bytes, &out->digest[k], err))
			goto fail;
		if (direct && bytes && b->bytes > IMAGE_EXACT_BYTES) {
			same = shared(known, n_known, k, out->digest[k], NULL);
			if (same) {
				same->refs++;
				out->block[k] = same;
				out->n++;
				continue;
			}
		}
		if (bytes || !direct) {
			block = fetch(st, b, r->scene->mask[t], poison, &out->gap[k], err);
			if (!block)
				goto fail;
			if (!direct)
				out->digest[k] = fill_digest(block->data, block->n);
			same = shared(known, n_known, k, out->digest[k], block);
			if (same || !bytes) {
				block_drop(block);
				block = bytes ? same : NULL;
				if (block)
					block->refs++;
			}
		}
		out->block[k] = block;
		out->n++;
	}
	return true;
fail:
	image_drop(out);
	return false;
}

/* ---- differences ---------------------------------------------------------------------------------------------------- */

static uint64_t element_raw(const unsigned char *p, uint32_t bytes)
{
	uint64_t v = 0;

	memcpy(&v, p, bytes < 8 ? bytes : 8);
	return v;
}

/* Bits of the exponent and mantissa: all float dtypes are sign and magnitude. */
static bool is_float(enum assay_dtype t)
{
	return t <= ASSAY_E5M2;
}

static bool is_nan(enum assay_dtype t, uint64_t bits)
{
	switch (t) {
	case ASSAY_F64: return (bits & INT64_MAX) > 0x7FF0000000000000u;
	case ASSAY_F32: return (bits & 0x7FFFFFFF) > 0x7F800000;
	case ASSAY_F16: return (bits & 0x7FFF) > 0x7C00;
	case ASSAY_BF16: return (bits & 0x7FFF) > 0x7F80;
	case ASSAY_E4M3: return (bits & 0x7F) == 0x7F;
	case ASSAY_E5M2: return (bits & 0x7F) > 0x7C;
	default: return false;
	}
}

/* Steps between two values along the dtype's number line. */
static uint64_t ulp_distance(enum assay_dtype t, uint64_t a, uint64_t b)
{
	unsigned top = 8 * assay_dtype_bytes(t) - 1;
	uint64_t mag = ((uint64_t)1 << top) - 1;

	if (is_float(t)) {
		uint64_t ma = a & mag, mb = b & mag;
		if ((a ^ b) >> top & 1)
			return ma + mb;
		return ma > mb ? ma - mb : mb - ma;
	}
	if (t >= ASSAY_I64 && t <= ASSAY_I8 && ((a ^ b) >> top & 1)) {
		/* Signed and of unlike signs: flipping the top bit keeps their order. */
		a ^= (uint64_t)1 << top;
		b ^= (uint64_t)1 << top;
	}
	return a > b ? a - b : b - a;
}

void image_diff_bytes(const struct assay_tensor *t, const struct assay_shape *s, const unsigned char *got,
		      const unsigned char *want, const uint8_t *keep, struct diff *out)
{
	int64_t n = assay_shape_count(s);
	uint32_t eb = tensor_elem_bytes(t);
	bool vary[ASSAY_MAX_RANK] = {false};

	*out = (struct diff){.out = -1,
			     .of = n,
			     .first = -1,
			     .ulp_known = t->dtype != ASSAY_RECORD,
			     .where = 0xCBF29CE484222325u};
	for (int64_t i = 0; i < n; i++) {
		const unsigned char *a = got + (size_t)i * eb, *b = want + (size_t)i * eb;
		int64_t coord[ASSAY_MAX_RANK];
		if ((keep && !keep[i]) || !memcmp(a, b, eb))
			continue;
		tensor_coords(s, i, coord);
		if (!out->differ) {
			out->first = i;
			memcpy(out->common, coord, sizeof(coord));
		}
		for (int k = 0; k < s->rank; k++)
			vary[k] = vary[k] || coord[k] != out->common[k];
		out->differ++;
		out->where = (out->where ^ (uint64_t)i) * 0x100000001B3u;
		if (t->dtype == ASSAY_RECORD)
			continue;
		uint64_t ra = element_raw(a, eb), rb = element_raw(b, eb);
		if (is_nan(t->dtype, ra) || is_nan(t->dtype, rb)) {
			out->ulp_known = false;
			continue;
		}
		uint64_t ulp = ulp_distance(t->dtype, ra, rb);
		if (ulp > out->ulp_max)
			out->ulp_max = ulp;
	}
	for (int k = 0; k < s->rank; k++)
		/* A dimension of one says nothing, nor does a single element. */
		if (vary[k] || s->dim[k] < 2 || out->differ < 2)
			out->common[k] = -1;
}

void image_diff(struct stage *st, const struct scene *sc, const struct image *got, const struct image *want,
		struct diff *out)
{
	*out = (struct diff){.out = -1};
	for (int k = 0; k < got->n; k++) {
		int t = got->tensor[k];
		if (got->block[k] == want->block[k])
			continue;
		image_diff_bytes(&st->cell->kernel->tensors[t], &sc->shape[t], got->block[k]->data,
				 want->block[k]->data, NULL, out);
		if (out->differ) {
			out->out = k;
			return;
		}
		out->out = -1;
	}
}

void element_bits(const struct assay_tensor *t, const unsigned char *base, int64_t i, char *buf, size_t cap)
{
	uint32_t eb = tensor_elem_bytes(t);

	snprintf(buf, cap, "%0*llx", (int)(2 * (eb < 8 ? eb : 8)),
		 (unsigned long long)element_raw(base + (size_t)i * eb, eb));
}

json_t *element_json(const struct assay_tensor *t, const unsigned char *base, int64_t i)
{
	double v;

	if (t->dtype == ASSAY_RECORD)
		return json_null();
	v = fill_element(base, t->dtype, i);
	return isfinite(v) ? json_real(v) : json_null();
}

static void element_text(const struct assay_tensor *t, const unsigned char *base, int64_t i, char *buf, size_t cap)
{
	char bits[24];
	int digits = t->dtype == ASSAY_F64 ? 17 : t->dtype == ASSAY_F32 ? 9 : is_float(t->dtype) ? 5 : 17;

	element_bits(t, base, i, bits, sizeof(bits));
	if (t->dtype == ASSAY_RECORD)
		snprintf(buf, cap, "%s", bits);
	else
		snprintf(buf, cap, "%s %.*g", bits, digits, fill_element(base, t->dtype, i));
}

void diff_text(const struct assay_tensor *t, const struct assay_shape *s, const unsigned char *got,
	       const unsigned char *want, const struct diff *d, char *buf, size_t cap)
{
	char at[TENSOR_AT_MAX], a[64], b[64], name[64], where[128] = "", ulp[48] = "";
	size_t n = 0;

	tensor_at(t, s, d->first, at, sizeof(at));
	element_text(t, got, d->first, a, sizeof(a));
	element_text(t, want, d->first, b, sizeof(b));
	for (int k = 0; k < s->rank && n < sizeof(where); k++)
		if (d->common[k] >= 0)
			n += (size_t)snprintf(where + n, sizeof(where) - n, "%s %s=%lld", n ? "" : ", all",
					      tensor_dim_name(t, k, name, sizeof(name)), (long long)d->common[k]);
	if (d->ulp_known)
		snprintf(ulp, sizeof(ulp), "; at most %llu %s", (unsigned long long)d->ulp_max,
			 is_float(t->dtype) ? "ULP" : "apart");
	else if (t->dtype != ASSAY_RECORD)
		snprintf(ulp, sizeof(ulp), "; NaN among them");
	snprintf(buf, cap, "%lld of %lld elements of %s differ%s; first %s %s for %s%s", (long long)d->differ,
		 (long long)d->of, t->name, where, at, a, b, ulp);
}

void diff_fields(json_t *f, const struct assay_tensor *t, const struct assay_shape *s, const unsigned char *got,
		 const unsigned char *want, const struct diff *d)
{
	json_t *first = json_null(), *ulp = json_null();

	if (d->differ) {
		char at[TENSOR_AT_MAX], a[24], b[24];
		tensor_at(t, s, d->first, at, sizeof(at));
		element_bits(t, got, d->first, a, sizeof(a));
		element_bits(t, want, d->first, b, sizeof(b));
		first = json_object();
		json_object_set_new(first, "at", json_string(at));
		json_object_set_new(first, "index", json_integer(d->first));
		json_object_set_new(first, "got", element_json(t, got, d->first));
		json_object_set_new(first, "want", element_json(t, want, d->first));
		json_object_set_new(first, "got_bits", json_string(a));
		json_object_set_new(first, "want_bits", json_string(b));
		if (d->ulp_known)
			ulp = d->ulp_max <= INT64_MAX ? json_integer((json_int_t)d->ulp_max) : json_integer(INT64_MAX);
	} else {
		ulp = json_integer(0);
	}
	json_object_set_new(f, "tensor", json_string(t->name));
	json_object_set_new(f, "differ", json_integer(d->differ));
	json_object_set_new(f, "of", json_integer(d->of));
	json_object_set_new(f, "ulp_max", ulp);
	json_object_set_new(f, "first", first);
}
