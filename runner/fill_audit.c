#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "fill_gen.h"
#include "registry.h"

static bool is_integer(enum assay_dtype t)
{
	return t >= ASSAY_I64 && t <= ASSAY_U8;
}

enum { PART_ELEMENTS = 1 << 18 }; /* a part of the tensor: counted alone, then merged */

/* ---- counting ------------------------------------------------------------------------------------------------------- */

static void reading_init(struct fill_reading *r, enum assay_dtype as)
{
	*r = (struct fill_reading){.as = as, .min = INFINITY, .max = -INFINITY};
}

/* Counts times elements of value v. A denormal of the format is named by the caller, who has the bits. */
static void count(struct fill_reading *r, double v, bool denormal, int64_t times)
{
	r->n += times;
	if (isnan(v)) {
		r->nan += times;
		return;
	}
	r->zero += v == 0 ? times : 0;
	r->negative += v < 0 ? times : 0;
	r->positive += v > 0 ? times : 0;
	if (isinf(v)) {
		r->inf += times;
		return;
	}
	r->denormal += denormal ? times : 0;
	r->min = v < r->min ? v : r->min;
	r->max = v > r->max ? v : r->max;
}

static void reading_add(struct fill_reading *into, const struct fill_reading *r)
{
	into->n += r->n;
	into->nan += r->nan;
	into->inf += r->inf;
	into->denormal += r->denormal;
	into->zero += r->zero;
	into->negative += r->negative;
	into->positive += r->positive;
	into->min = r->min < into->min ? r->min : into->min;
	into->max = r->max > into->max ? r->max : into->max;
}

/* 2^(1 - bias): what is nearer to 0 and not 0 is denormal. 0 for integers. */
static double least_normal(enum assay_dtype t)
{
	return is_integer(t) ? 0 : ldexp(1, 2 - (1 << (fill_format_of(t).exponent_bits - 1)));
}

/* What is read per part of the tensor, merged afterwards. */
struct part {
	struct fill_reading reading[FILL_READINGS];
	double least_normal[FILL_READINGS];
	int64_t bytes[256]; /* of one-byte readings: how often each byte occurs */
	bool want_bytes;
};

/* n floats: as count(), without its branches. */
static void count_floats(struct fill_reading *r, const unsigned char *p, int64_t n, int64_t step)
{
	int64_t nan = 0, inf = 0, denormal = 0, zero = 0, negative = 0;
	float min = INFINITY, max = -INFINITY;
	for (int64_t i = 0; i < n; i++, p += step) {
		uint32_t u;
		float v;
		memcpy(&u, p, 4);
		memcpy(&v, p, 4);
		const uint32_t m = u & 0x7FFFFFFF;
		nan += m > 0x7F800000;
		inf += m == 0x7F800000;
		zero += m == 0;
		denormal += m - 1 < 0x7FFFFF;
		negative += (u >> 31) & (m - 1 < 0x7F800000);
		min = m < 0x7F800000 && v < min ? v : min;
		max = m < 0x7F800000 && v > max ? v : max;
	}
	r->n += n;
	r->nan += nan;
	r->inf += inf;
	r->denormal += denormal;
	r->zero += zero;
	r->negative += negative;
	r->positive += n - nan - zero - negative;
	r->min = (double)min < r->min ? (double)min : r->min;
	r->max = (double)max > r->max ? (double)max : r->max;
}

/* Elements first..first+n-1 of a row. One-byte readings come from the histogram of bytes, also of wider elements. */
static void audit_run(const struct fill_gen *g, const unsigned char *p, int64_t n, int n_readings, struct part *out)
{
	const int64_t step = g->last_stride_bytes;
	if (out->want_bytes)
		for (int64_t i = 0; i < n; i++)
			for (int b = 0; b < g->element_bytes; b++)
				out->bytes[p[i * step + b]]++;
	for (int k = 0; k < n_readings; k++) {
		struct fill_reading *r = &out->reading[k];
		const int size = (int)assay_dtype_bytes(r->as);
		if (size == 1)
			continue;
		if (r->as == ASSAY_F32 && g->element_bytes == 4) {
			count_floats(r, p, n, step);
			continue;
		}
		for (int64_t i = 0; i < n; i++)
			for (int at = 0; at < g->element_bytes; at += size) {
				const double v = fill_element(p + i * step + at, r->as, 0);
				count(r, v, v != 0 && fabs(v) < out->least_normal[k], 1);
			}
	}
}

static void audit_span(const struct fill_gen *g, const unsigned char *base, int64_t begin, int64_t end, int n_readings,
		       struct part *out)
{
	while (begin < end) {
		const int64_t first = begin % g->last;
		const int64_t n = g->last - first < end - begin ? g->last - first : end - begin;
		const struct fill_row row = fill_row_at(g, begin / g->last);
		audit_run(g, base + row.offset_bytes + first * g->last_stride_bytes, n, n_readings, out);
		begin += n;
	}
}

static void add_histogram(struct part *p, int n_readings)
{
	for (int k = 0; k < n_readings; k++)
		for (int c = 0; c < 256 && assay_dtype_bytes(p->reading[k].as) == 1; c++) {
			const unsigned char byte = (unsigned char)c;
			const double v = fill_element(&byte, p->reading[k].as, 0);
			if (p->bytes[c])
				count(&p->reading[k], v, v != 0 && fabs(v) < p->least_normal[k], p->bytes[c]);
		}
}

/* ---- distinct ------------------------------------------------------------------------------------------------------- */

#define DISTINCT_BOUND_MAX ((int64_t)1 << 33) /* a bitmap of 1 GiB */

static bool count_distinct(const struct fill_gen *g, const unsigned char *base, int64_t bound, struct fill_audit *out,
			   struct err *err)
{
	out->distinct = -1;
	out->out_of_bound = 0;
	if (bound <= 0 || !g->integer)
		return true;
	uint64_t *seen = NULL;
	if (bound <= DISTINCT_BOUND_MAX) {
		seen = calloc((size_t)(bound + 63) / 64, 8);
		if (!seen)
			return err_set(err, "out of memory for the audit of %lld row numbers", (long long)bound);
	}
	int64_t distinct = 0, wrong = 0;
	const int64_t n = g->rows * g->last;
#pragma omp parallel for schedule(static) reduction(+ : distinct, wrong) if (n > PART_ELEMENTS)
	for (int64_t at = 0; at < n; at++) {
		/* A row number is looked up in memory far away: the division costs little beside it. */
		const struct fill_row row = fill_row_at(g, at / g->last);
		const double d =
			fill_element(base + row.offset_bytes + at % g->last * g->last_stride_bytes, g->dtype, 0);
		if (!(d >= 0 && d < (double)bound)) {
			wrong++;
			continue;
		}
		if (!seen)
			continue;
		const int64_t v = (int64_t)d;
		const uint64_t bit = 1ull << (v & 63);
		uint64_t was;
		/* most bits are set already where rows repeat: look before locking the line */
#pragma omp atomic read
		was = seen[v >> 6];
		if (was & bit)
			continue;
#pragma omp atomic capture
		{
			was = seen[v >> 6];
			seen[v >> 6] |= bit;
		}
		distinct += !(was & bit);
	}
	free(seen);
	out->distinct = seen ? distinct : -1;
	out->out_of_bound = wrong;
	return true;
}

bool fill_audit_host(const void *src, const struct fill_job *job, uint32_t readings, struct fill_audit *out,
		     struct err *err)
{
	/* Only where the elements lie matters here, not how they were made. */
	struct fill_job where = *job;
	where.spec = (struct fill_spec){.kind = FILL_CONSTANT};
	struct fill_gen g;
	memset(out, 0, sizeof *out);
	if (!fill_gen_make(&where, &g, err))
		return false;

	reading_init(&out->reading[out->n_readings++], job->dtype);
	for (int t = 0; t < ASSAY_RECORD; t++) {
		if (!(readings & 1u << t) || t == (int)job->dtype)
			continue;
		/* Other readings are of the same width; the bytes of a wider element count one by one where it was made of bytes. */
		const int size = (int)assay_dtype_bytes((enum assay_dtype)t);
		if (size != g.element_bytes && !(size == 1 && job->spec.kind == FILL_BYTES))
			continue;
		if (out->n_readings == FILL_READINGS)
			return err_set(err, "the audit counts %d readings of a tensor, the promise names more",
				       FILL_READINGS);
		reading_init(&out->reading[out->n_readings++], (enum assay_dtype)t);
	}

	const int64_t n = g.rows * g.last, parts = (n + PART_ELEMENTS - 1) / PART_ELEMENTS;
	bool want_bytes = false, ok = true;
	for (int k = 0; k < out->n_readings; k++)
		want_bytes |= assay_dtype_bytes(out->reading[k].as) == 1;
#pragma omp parallel for schedule(static) if (parts > 1)
	for (int64_t i = 0; i < parts; i++) {
		struct part *p = calloc(1, sizeof *p);
		if (!p) {
#pragma omp atomic write
			ok = false;
			continue;
		}
		p->want_bytes = want_bytes;
		for (int k = 0; k < out->n_readings; k++) {
			reading_init(&p->reading[k], out->reading[k].as);
			p->least_normal[k] = least_normal(out->reading[k].as);
		}
		audit_span(&g, src, i * PART_ELEMENTS, i == parts - 1 ? n : (i + 1) * PART_ELEMENTS, out->n_readings,
			   p);
		add_histogram(p, out->n_readings);
#pragma omp critical(fill_audit_merge)
		for (int k = 0; k < out->n_readings; k++)
			reading_add(&out->reading[k], &p->reading[k]);
		free(p);
	}
	if (!ok)
		return err_set(err, "out of memory for the audit");
	for (int k = 0; k < out->n_readings; k++)
		if (out->reading[k].min > out->reading[k].max)
			out->reading[k].min = out->reading[k].max = NAN;
	return count_distinct(&g, src, job->shape.index_bound, out, err);
}

/* ---- promises ------------------------------------------------------------------------------------------------------- */

enum { SIGN_MIN_ELEMENTS = 64 }; /* fewer may all fall on one side by chance: two in 2^64 at most for 64 */

const char *fill_broken_promise(const struct promise *p, const struct fill_audit *a, const char *tensor, char *buf,
				size_t cap)
{
	const struct fill_reading *own = &a->reading[0];
	if (a->out_of_bound) {
		snprintf(buf, cap, "row numbers: %lld of %lld elements of %s are outside their bound (%g to %g)",
			 (long long)a->out_of_bound, (long long)own->n, tensor, own->min, own->max);
		return buf;
	}
	if (!p)
		return NULL;
	/* A promised reading that the element type cannot have is held against the tensor's own. */
	uint32_t counted = 0;
	for (int k = 0; k < a->n_readings; k++)
		counted |= 1u << a->reading[k].as;
	const uint32_t finite = p->finite_as | (p->finite_as & ~counted ? 1u << own->as : 0);
	const uint32_t normal = p->no_denormals_as | (p->no_denormals_as & ~counted ? 1u << own->as : 0);
	for (int k = 0; k < a->n_readings; k++) {
		const struct fill_reading *r = &a->reading[k];
		const char *as = registry_dtype_name(r->as);
		const char *what = NULL;
		int64_t n = 0;
		if (finite & 1u << r->as && r->nan) {
			what = "NaN";
			n = r->nan;
		} else if (finite & 1u << r->as && r->inf) {
			what = "infinity";
			n = r->inf;
		} else if (normal & 1u << r->as && r->denormal) {
			what = "denormals";
			n = r->denormal;
		}
		if (what) {
			snprintf(buf, cap, "%s: %lld of %lld elements of %s read as %s", what, (long long)n,
				 (long long)r->n, tensor, as);
			return buf;
		}
	}
	if (p->sign == PROMISE_BOTH && own->n >= SIGN_MIN_ELEMENTS && (!own->negative || !own->positive)) {
		snprintf(buf, cap,
			 "sign: both promised, but of %lld elements of %s %lld are negative and %lld positive",
			 (long long)own->n, tensor, (long long)own->negative, (long long)own->positive);
		return buf;
	}
	if ((p->sign == PROMISE_POSITIVE && own->negative) || (p->sign == PROMISE_NEGATIVE && own->positive)) {
		bool up = p->sign == PROMISE_POSITIVE;
		snprintf(buf, cap, "sign: %s promised, but %lld of %lld elements of %s are %s",
			 up ? "positive" : "negative", (long long)(up ? own->negative : own->positive),
			 (long long)own->n, tensor, up ? "negative" : "positive");
		return buf;
	}
	/* Accept on inside. An empty tensor keeps every promise. */
	if (p->has_range && (own->nan || own->inf)) {
		snprintf(buf, cap, "range: %g to %g promised, %lld of %lld elements of %s are NaN or infinity",
			 p->range[0], p->range[1], (long long)(own->nan + own->inf), (long long)own->n, tensor);
		return buf;
	}
	if (p->has_range && own->n && !(own->min >= p->range[0] && own->max <= p->range[1])) {
		snprintf(buf, cap, "range: %g to %g promised, %s reaches from %g to %g", p->range[0], p->range[1],
			 tensor, own->min, own->max);
		return buf;
	}
	return NULL;
}

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

json_t *fill_audit_to_json(const struct fill_audit *a)
{
	json_t *list = json_array();
	for (int k = 0; k < a->n_readings; k++) {
		const struct fill_reading *r = &a->reading[k];
		json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "as",
						      registry_dtype_name(r->as), "n", (json_int_t)r->n, "nan",
						      (json_int_t)r->nan, "inf", (json_int_t)r->inf, "denormal",
						      (json_int_t)r->denormal, "zero", (json_int_t)r->zero, "negative",
						      (json_int_t)r->negative, "positive", (json_int_t)r->positive,
						      "min", number(r->min), "max", number(r->max)));
	}
	return json_pack("{s:o, s:o}", "readings", list, "distinct",
			 a->distinct < 0 ? json_null() : json_integer(a->distinct));
}
