#include "image.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fill.h"
#include "image_block.h"

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

bool image_diff(struct stage *st, const struct scene *sc, const struct image *got, const struct image *want,
		struct diff *out, struct err *err)
{
	*out = (struct diff){.out = -1};
	for (int k = 0; k < got->n; k++) {
		int t = got->tensor[k];
		if (got->block[k] == want->block[k])
			continue;
		if (!image_block_fetch(got->block[k], err) || !image_block_fetch(want->block[k], err))
			return false;
		image_diff_bytes(&st->cell->kernel->tensors[t], &sc->shape[t], image_bytes(got, k),
				 image_bytes(want, k), NULL, out);
		if (out->differ) {
			out->out = k;
			return true;
		}
		out->out = -1;
	}
	return true;
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
