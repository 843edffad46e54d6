#include "fill.h"

#include <stdlib.h>
#include <string.h>

#include "fill_gen.h"
#include "npy.h"

/* ---- digest --------------------------------------------------------------------------------------------------------- */

static uint64_t block_hash(const unsigned char *p, size_t bytes)
{
	uint64_t a = 0, b = 0, w, v;
	const size_t words = bytes / 8;
	size_t i = 0;
	for (; i + 2 <= words; i += 2) {
		memcpy(&w, p + 8 * i, 8);
		memcpy(&v, p + 8 * i + 8, 8);
		a += fill_hash_word(w, i);
		b += fill_hash_word(v, i + 1);
	}
	for (; i < words; i++) {
		memcpy(&w, p + 8 * i, 8);
		a += fill_hash_word(w, i);
	}
	if (bytes % 8) {
		w = 0;
		memcpy(&w, p + 8 * words, bytes % 8);
		a += fill_hash_word(w, words);
	}
	return fill_hash_block(a + b, bytes);
}

uint64_t fill_digest_part(const void *p, size_t bytes, uint64_t first_block)
{
	const unsigned char *at = p;
	uint64_t sum = 0;

	for (uint64_t j = first_block; bytes > 0; j++) {
		const size_t n = bytes < FILL_BLOCK_BYTES ? bytes : FILL_BLOCK_BYTES;
		sum += fill_hash_word(block_hash(at, n), j);
		at += n;
		bytes -= n;
	}
	return sum;
}

uint64_t fill_digest_whole(uint64_t sum, size_t bytes)
{
	return fill_hash_whole(sum, bytes);
}

uint64_t fill_digest(const void *p, size_t bytes)
{
	const unsigned char *base = p;
	const int64_t blocks = (int64_t)((bytes + FILL_BLOCK_BYTES - 1) / FILL_BLOCK_BYTES);
	uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (blocks > 16)
	for (int64_t j = 0; j < blocks; j++) {
		size_t at = (size_t)j * FILL_BLOCK_BYTES;
		size_t n = bytes - at < FILL_BLOCK_BYTES ? bytes - at : FILL_BLOCK_BYTES;
		sum += fill_hash_word(block_hash(base + at, n), (uint64_t)j);
	}
	return fill_hash_whole(sum, bytes);
}

/* ---- fill ----------------------------------------------------------------------------------------------------------- */

/* Elements first .. first+n-1 of a row whose element 0 is at p. */
static void fill_run(const struct fill_gen *g, const struct fill_row *row, unsigned char *base, int64_t first,
		     int64_t n)
{
	const int64_t step = g->last_stride_bytes;
	int64_t at = row->offset_bytes + first * step;
	if (g->kind == FILL_UNIFORM && g->dtype == ASSAY_F32 && step == 4) {
		/* fill_uniform, with what does not change taken out of the loop: most bytes of most suites are made here. */
		const double lo = g->lo, span = g->span, least = g->least, most = g->most;
		unsigned char *p = base + at;
		uint64_t counter = row->key + (uint64_t)first * FILL_GOLDEN;
		for (int64_t i = 0; i < n; i++) {
			double v = lo + span * fill_unit(fill_mix(counter + (uint64_t)i * FILL_GOLDEN));
			v = v > most ? most : v;
			v = v < least ? least : v;
			const float f = (float)v;
			memcpy(p + 4 * i, &f, 4);
		}
		return;
	}
	for (int64_t i = 0; i < n; i++, at += step)
		fill_store(base, at, g->element_bytes, fill_value(g, row, first + i));
}

static void fill_run_lcg(const struct fill_gen *g, const struct fill_row *row, unsigned char *base, int64_t first,
			 int64_t n, uint64_t *state)
{
	int64_t at = row->offset_bytes + first * g->last_stride_bytes;
	for (int64_t i = 0; i < n; i++, at += g->last_stride_bytes) {
		*state = fill_lcg_step(g, *state);
		fill_store(base, at, g->element_bytes, fill_seed_value(g, *state));
	}
}

/* Elements begin .. end-1 in row-major order. */
static void fill_span(const struct fill_gen *g, unsigned char *base, int64_t begin, int64_t end)
{
	const bool lcg = fill_is_lcg(g->kind);
	uint64_t state = lcg ? fill_lcg_after(g, (uint64_t)begin) : 0;
	while (begin < end) {
		const int64_t r = begin / g->last, first = begin % g->last;
		const int64_t n = g->last - first < end - begin ? g->last - first : end - begin;
		const struct fill_row row = fill_row_at(g, r);
		if (lcg)
			fill_run_lcg(g, &row, base, first, n, &state);
		else
			fill_run(g, &row, base, first, n);
		begin += n;
	}
}

/* Row numbers are addresses: a file's are looked at before a kernel sees them. */
static bool check_rows(const unsigned char *data, const struct fill_job *job, const struct fill_gen *g, struct err *err)
{
	const int64_t n = g->integer && job->shape.index_bound > 0 ? g->rows * g->last : 0;
	for (int64_t i = 0; i < n; i++) {
		const double v = fill_element(data, job->dtype, i);
		if (!(v >= 0 && v < (double)job->shape.index_bound))
			return err_set(err, "%s: element %lld is %.0f, but there are rows 0 to %lld", job->spec.path,
				       (long long)i, v, (long long)job->shape.index_bound - 1);
	}
	return true;
}

/* The shape of the array that fills the job: of a field of a record, its elements are the last dimension. */
static bool npy_shape(const struct fill_job *job, struct assay_shape *want, struct err *err)
{
	*want = job->shape;
	if (!job->record_bytes || job->field_count == 1)
		return true;
	if (want->rank == ASSAY_MAX_RANK)
		return err_set(err, "%s: a field of a tensor of rank %d cannot be read from a file", job->spec.path,
			       want->rank);
	want->dim[want->rank++] = job->field_count;
	return true;
}

bool fill_fits(const struct fill_job *job, struct err *err)
{
	struct fill_gen g;
	struct assay_shape want;
	if (job->spec.kind != FILL_NPY)
		return true;
	if (!fill_gen_make(job, &g, err))
		return false;
	const size_t bytes = (size_t)(g.rows * g.last) * (size_t)g.element_bytes;
	return bytes == 0 || (npy_shape(job, &want, err) && npy_fits(job->spec.path, job->dtype, &want, bytes, err));
}

static bool fill_npy(void *dst, const struct fill_job *job, const struct fill_gen *g, struct err *err)
{
	const size_t bytes = (size_t)(g->rows * g->last) * (size_t)g->element_bytes;
	struct assay_shape want;
	if (!npy_shape(job, &want, err))
		return false;
	unsigned char *data = malloc(bytes ? bytes : 1);
	if (!data)
		return err_set(err, "out of memory for %s (%zu bytes)", job->spec.path, bytes);
	const bool ok = npy_read(job->spec.path, job->dtype, &want, data, bytes, err) && check_rows(data, job, g, err);
	if (ok) {
		const unsigned char *p = data;
		for (int64_t r = 0; r < g->rows; r++) {
			const struct fill_row row = fill_row_at(g, r);
			for (int64_t i = 0; i < g->last; i++, p += g->element_bytes)
				memcpy((unsigned char *)dst + row.offset_bytes + i * g->last_stride_bytes, p,
				       (size_t)g->element_bytes);
		}
	}
	free(data);
	return ok;
}

bool fill_host(void *dst, const struct fill_job *job, struct err *err)
{
	struct fill_gen g;
	if (!fill_gen_make(job, &g, err))
		return false;
	const int64_t n = g.rows * g.last;
	if (n == 0)
		return true;
	if (g.kind == FILL_NPY)
		return fill_npy(dst, job, &g, err);
	const int64_t chunk = 1 << 14, chunks = (n + chunk - 1) / chunk;
#pragma omp parallel for schedule(static) if (chunks > 1)
	for (int64_t i = 0; i < chunks; i++)
		fill_span(&g, dst, i * chunk, i == chunks - 1 ? n : (i + 1) * chunk);
	return true;
}

double fill_element(const void *base, enum assay_dtype t, int64_t i)
{
	const unsigned char *p = (const unsigned char *)base + i * (int64_t)assay_dtype_bytes(t);
	switch (t) {
	case ASSAY_F64: {
		double v;
		memcpy(&v, p, sizeof v);
		return v;
	}
	case ASSAY_F32: {
		float v;
		memcpy(&v, p, sizeof v);
		return (double)v;
	}
	case ASSAY_F16:
	case ASSAY_BF16: {
		uint16_t v;
		memcpy(&v, p, sizeof v);
		return fill_decode(v, fill_format_of(t));
	}
	case ASSAY_E4M3:
	case ASSAY_E5M2: return fill_decode(*p, fill_format_of(t));
	case ASSAY_I64: {
		int64_t v;
		memcpy(&v, p, sizeof v);
		return (double)v;
	}
	case ASSAY_I32: {
		int32_t v;
		memcpy(&v, p, sizeof v);
		return v;
	}
	case ASSAY_I16: {
		int16_t v;
		memcpy(&v, p, sizeof v);
		return v;
	}
	case ASSAY_I8: return (signed char)*p;
	case ASSAY_U64: {
		uint64_t v;
		memcpy(&v, p, sizeof v);
		return (double)v;
	}
	case ASSAY_U32: {
		uint32_t v;
		memcpy(&v, p, sizeof v);
		return v;
	}
	case ASSAY_U16: {
		uint16_t v;
		memcpy(&v, p, sizeof v);
		return v;
	}
	case ASSAY_U8:
	case ASSAY_RECORD: break;
	}
	return *p;
}
