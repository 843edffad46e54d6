/* Inputs on a device. The generators are fill_gen.h's, compiled for the device: an element a thread, so that bytes depend
 * on coordinates only, here as on the host. */
#include <cuda_runtime.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "fill_gen.h"
}
#include "fill_cuda.h"

namespace {

constexpr int THREADS = 256;

cudaStream_t queue(void *stream)
{
	return (cudaStream_t)stream;
}

/* Blocks for n items, at most a few waves: kernels stride. */
unsigned blocks_for(int64_t n, int64_t per_block = THREADS)
{
	const int64_t b = (n + per_block - 1) / per_block;
	return (unsigned)(b < 1 ? 1 : b < 4096 ? b : 4096);
}

bool told(cudaError_t e, const char *what, struct err *err)
{
	return e == cudaSuccess || err_set(err, "cuda: %s: %s (%s)", what, cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- fill ----------------------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS) fill_elements(fill_gen g, unsigned char *base, int64_t n)
{
	for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n; i += gridDim.x * (int64_t)THREADS) {
		int64_t at;
		const uint64_t bits = fill_element_at(&g, i, &at);
		unsigned char *p = base + at;
		if (g.element_bytes == 4 && (uintptr_t)p % 4 == 0)
			*(uint32_t *)p = (uint32_t)bits;
		else
			for (int b = 0; b < g.element_bytes; b++)
				p[b] = (unsigned char)(bits >> 8 * b);
	}
}

/* ---- digest and scan ------------------------------------------------------------------------------------------------ */

__device__ uint64_t block_sum(uint64_t v)
{
	__shared__ uint64_t part[THREADS / 32];
	for (int m = 16; m > 0; m >>= 1)
		v += __shfl_xor_sync(~0u, v, m);
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = v;
	__syncthreads();
	v = 0;
	for (int i = 0; i < THREADS / 32; i++)
		v += part[i];
	return v;
}

__global__ void __launch_bounds__(THREADS) digest_blocks(const unsigned char *p, size_t bytes, unsigned long long *sum)
{
	for (size_t j = blockIdx.x; j * FILL_BLOCK_BYTES < bytes; j += gridDim.x) {
		const unsigned char *at = p + j * FILL_BLOCK_BYTES;
		const size_t left = bytes - j * FILL_BLOCK_BYTES, n = left < FILL_BLOCK_BYTES ? left : FILL_BLOCK_BYTES;
		uint64_t h = 0;
		for (size_t i = threadIdx.x; i * 8 < n; i += THREADS) {
			uint64_t w = 0;
			if (i * 8 + 8 <= n && (uintptr_t)at % 8 == 0)
				w = ((const uint64_t *)at)[i];
			else
				for (size_t b = 0; b < 8 && i * 8 + b < n; b++)
					w |= (uint64_t)at[i * 8 + b] << 8 * b;
			h += fill_hash_word(w, i);
		}
		h = block_sum(h);
		if (threadIdx.x == 0)
			atomicAdd(sum, (unsigned long long)fill_hash_word(fill_hash_block(h, n), j));
	}
}

/* found[0]: how many differ, found[1]: the first of them, as an index. */
__global__ void __launch_bounds__(THREADS) scan_words(const uint32_t *p, uint32_t word, int64_t n, unsigned long long *found)
{
	uint64_t differ = 0;
	int64_t first = INT64_MAX;
	for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n; i += gridDim.x * (int64_t)THREADS)
		if (p[i] != word) {
			differ++;
			first = i < first ? i : first;
		}
	if (differ) {
		atomicAdd(&found[0], (unsigned long long)differ);
		atomicMin(&found[1], (unsigned long long)first);
	}
}

__global__ void __launch_bounds__(THREADS) pattern_words(uint32_t *p, uint32_t word, int64_t n)
{
	for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n; i += gridDim.x * (int64_t)THREADS)
		p[i] = word;
}

/* ---- audit ---------------------------------------------------------------------------------------------------------- */

struct tally {
	long long n, nan, inf, denormal, zero, negative, positive;
	double min, max;
};

__device__ uint64_t bits_at(const unsigned char *p, int size)
{
	uint64_t u = 0;
	for (int b = 0; b < size; b++)
		u |= (uint64_t)p[b] << 8 * b;
	return u;
}

/* The value as a double, as fill_element has it. */
__device__ double value_of(uint64_t u, enum assay_dtype t, const fill_format &f)
{
	switch (t) {
	case ASSAY_F64: return fill_double_of(u);
	case ASSAY_F32: return (double)fill_float_of((uint32_t)u);
	case ASSAY_I64: return (double)(int64_t)u;
	case ASSAY_I32: return (double)(int32_t)u;
	case ASSAY_I16: return (double)(int16_t)u;
	case ASSAY_I8: return (double)(int8_t)u;
	case ASSAY_U64:
	case ASSAY_U32:
	case ASSAY_U16:
	case ASSAY_U8: return (double)u;
	default: return fill_decode((uint32_t)u, f);
	}
}

__device__ void tally_add(tally *into, const tally &t)
{
	into->n += t.n, into->nan += t.nan, into->inf += t.inf, into->denormal += t.denormal;
	into->zero += t.zero, into->negative += t.negative, into->positive += t.positive;
	into->min = t.min < into->min ? t.min : into->min;
	into->max = t.max > into->max ? t.max : into->max;
}

/* One reading of all elements; a partial count a block. */
__global__ void __launch_bounds__(THREADS) audit_elements(fill_gen g, const unsigned char *base, int64_t n, enum assay_dtype as,
							  int size, fill_format f, double least_normal, tally *out)
{
	__shared__ tally part[THREADS];
	tally t = {0, 0, 0, 0, 0, 0, 0, INFINITY, -INFINITY};
	for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n; i += gridDim.x * (int64_t)THREADS) {
		const fill_row row = fill_row_at(&g, i / g.last);
		const unsigned char *p = base + row.offset_bytes + i % g.last * g.last_stride_bytes;
		for (int at = 0; at < g.element_bytes; at += size) {
			const double v = value_of(bits_at(p + at, size), as, f);
			t.n++;
			if (isnan(v)) {
				t.nan++;
				continue;
			}
			t.zero += v == 0, t.negative += v < 0, t.positive += v > 0;
			if (isinf(v)) {
				t.inf++;
				continue;
			}
			t.denormal += v != 0 && fabs(v) < least_normal;
			t.min = v < t.min ? v : t.min;
			t.max = v > t.max ? v : t.max;
		}
	}
	part[threadIdx.x] = t;
	for (int m = THREADS / 2; m > 0; m /= 2) {
		__syncthreads();
		if (threadIdx.x < m)
			tally_add(&part[threadIdx.x], part[threadIdx.x + m]);
	}
	if (threadIdx.x == 0)
		out[blockIdx.x] = part[0];
}

/* found[0]: distinct row numbers (where seen is not NULL), found[1]: those outside 0..bound-1. */
__global__ void __launch_bounds__(THREADS) audit_rows(fill_gen g, const unsigned char *base, int64_t n, int64_t bound,
						      fill_format f, unsigned *seen, unsigned long long *found)
{
	for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n; i += gridDim.x * (int64_t)THREADS) {
		const fill_row row = fill_row_at(&g, i / g.last);
		const unsigned char *p = base + row.offset_bytes + i % g.last * g.last_stride_bytes;
		const double d = value_of(bits_at(p, g.element_bytes), g.dtype, f);
		if (!(d >= 0 && d < (double)bound)) {
			atomicAdd(&found[1], 1ull);
			continue;
		}
		const int64_t v = (int64_t)d;
		if (seen != NULL && !(atomicOr(&seen[v >> 5], 1u << (v & 31)) & 1u << (v & 31)))
			atomicAdd(&found[0], 1ull);
	}
}

bool is_integer(enum assay_dtype t)
{
	return t >= ASSAY_I64 && t <= ASSAY_U8;
}

/* What is nearer to 0 than this, and not 0, is denormal. */
double least_normal_of(enum assay_dtype t)
{
	return is_integer(t) ? 0 : ldexp(1, 2 - (1 << (fill_format_of(t).exponent_bits - 1)));
}

/* Integers have no format; what is passed for them is not looked at. */
fill_format format_of(enum assay_dtype t)
{
	fill_format f;
	memset(&f, 0, sizeof f);
	return is_integer(t) ? f : fill_format_of(t);
}

constexpr int64_t DISTINCT_BOUND_MAX = (int64_t)1 << 33; /* as on the host */

bool count_rows(const fill_gen &g, const unsigned char *src, int64_t bound, cudaStream_t stream, fill_audit *out, struct err *err)
{
	out->distinct = -1;
	out->out_of_bound = 0;
	if (bound <= 0 || !g.integer)
		return true;
	const size_t bytes = bound <= DISTINCT_BOUND_MAX ? (size_t)(bound + 31) / 32 * 4 : 0;
	unsigned char *scratch = NULL;
	unsigned long long found[2];
	const int64_t n = g.rows * g.last;
	if (!told(cudaMalloc(&scratch, 16 + bytes), "the audit of row numbers", err))
		return false;
	cudaError_t e = cudaMemsetAsync(scratch, 0, 16 + bytes, stream);
	if (e == cudaSuccess && n > 0) {
		audit_rows<<<blocks_for(n), THREADS, 0, stream>>>(g, src, n, bound, format_of(g.dtype),
								  bytes > 0 ? (unsigned *)(scratch + 16) : NULL,
								  (unsigned long long *)scratch);
		e = cudaGetLastError();
	}
	if (e == cudaSuccess)
		e = cudaMemcpyAsync(found, scratch, 16, cudaMemcpyDeviceToHost, stream);
	if (e == cudaSuccess)
		e = cudaStreamSynchronize(stream);
	cudaFree(scratch);
	if (!told(e, "the audit of row numbers", err))
		return false;
	out->distinct = bytes > 0 ? (int64_t)found[0] : -1;
	out->out_of_bound = (int64_t)found[1];
	return true;
}

} // namespace

/* ---- for C ---------------------------------------------------------------------------------------------------------- */

extern "C" {

bool fill_cuda(void *dst, const struct fill_job *job, void *stream, struct err *err)
{
	fill_gen g;
	if (!fill_gen_make(job, &g, err))
		return false;
	const int64_t n = g.rows * g.last;
	if (n <= 0)
		return true;
	fill_elements<<<blocks_for(n), THREADS, 0, queue(stream)>>>(g, (unsigned char *)dst, n);
	return told(cudaGetLastError(), "fill", err);
}

bool fill_cuda_audit(const void *src, const struct fill_job *job, uint32_t readings, void *stream, struct fill_audit *out,
		     struct err *err)
{
	struct fill_job where = *job; /* only where the elements lie matters here */
	memset(&where.spec, 0, sizeof where.spec);
	where.spec.kind = FILL_CONSTANT;
	fill_gen g;
	memset(out, 0, sizeof *out);
	if (!fill_gen_make(&where, &g, err))
		return false;
	out->reading[out->n_readings++].as = job->dtype;
	for (int t = 0; t < ASSAY_RECORD; t++) {
		const int size = (int)assay_dtype_bytes((enum assay_dtype)t);
		if (!(readings & 1u << t) || t == (int)job->dtype ||
		    (size != g.element_bytes && !(size == 1 && job->spec.kind == FILL_BYTES)))
			continue;
		if (out->n_readings == FILL_READINGS)
			return err_set(err, "the audit counts %d readings of a tensor, the promise names more", FILL_READINGS);
		out->reading[out->n_readings++].as = (enum assay_dtype)t;
	}

	const int64_t n = g.rows * g.last;
	const unsigned blocks = blocks_for(n) < 1024 ? blocks_for(n) : 1024;
	tally *parts = NULL, *kept = (tally *)malloc(blocks * sizeof *kept);
	cudaError_t e = kept == NULL ? cudaErrorMemoryAllocation : cudaMalloc(&parts, blocks * sizeof *parts);
	for (int k = 0; e == cudaSuccess && k < out->n_readings; k++) {
		struct fill_reading *r = &out->reading[k];
		r->min = INFINITY, r->max = -INFINITY;
		audit_elements<<<blocks, THREADS, 0, queue(stream)>>>(g, (const unsigned char *)src, n, r->as,
								      (int)assay_dtype_bytes(r->as), format_of(r->as),
								      least_normal_of(r->as), parts);
		e = cudaGetLastError();
		if (e == cudaSuccess)
			e = cudaMemcpyAsync(kept, parts, blocks * sizeof *parts, cudaMemcpyDeviceToHost, queue(stream));
		if (e == cudaSuccess)
			e = cudaStreamSynchronize(queue(stream));
		for (unsigned b = 0; e == cudaSuccess && b < blocks; b++) {
			const tally &t = kept[b];
			r->n += t.n, r->nan += t.nan, r->inf += t.inf, r->denormal += t.denormal;
			r->zero += t.zero, r->negative += t.negative, r->positive += t.positive;
			r->min = t.min < r->min ? t.min : r->min;
			r->max = t.max > r->max ? t.max : r->max;
		}
		if (r->min > r->max)
			r->min = r->max = NAN;
	}
	cudaFree(parts);
	free(kept);
	return told(e, "audit", err) && count_rows(g, (const unsigned char *)src, job->shape.index_bound, queue(stream), out, err);
}

int fill_cuda_digest(const void *p, size_t bytes, uint64_t *scratch, void *stream, uint64_t *out)
{
	uint64_t sum = 0;
	cudaError_t e = cudaMemsetAsync(scratch, 0, 8, queue(stream));
	if (e == cudaSuccess && bytes > 0) {
		digest_blocks<<<blocks_for((int64_t)bytes, FILL_BLOCK_BYTES), THREADS, 0, queue(stream)>>>(
			(const unsigned char *)p, bytes, (unsigned long long *)scratch);
		e = cudaGetLastError();
	}
	if (e == cudaSuccess)
		e = cudaMemcpyAsync(&sum, scratch, 8, cudaMemcpyDeviceToHost, queue(stream));
	if (e == cudaSuccess)
		e = cudaStreamSynchronize(queue(stream));
	*out = fill_hash_whole(sum, bytes);
	return e;
}

int fill_cuda_scan(const void *p, uint32_t word, size_t bytes, uint64_t *scratch, void *stream, int64_t *n_differ,
		   int64_t *first)
{
	const int64_t n = (int64_t)(bytes / 4);
	uint64_t found[2] = {0, UINT64_MAX};
	cudaError_t e = cudaMemcpyAsync(scratch, found, 16, cudaMemcpyHostToDevice, queue(stream));
	if (e == cudaSuccess && n > 0) {
		scan_words<<<blocks_for(n), THREADS, 0, queue(stream)>>>((const uint32_t *)p, word, n,
									 (unsigned long long *)scratch);
		e = cudaGetLastError();
	}
	if (e == cudaSuccess)
		e = cudaMemcpyAsync(found, scratch, 16, cudaMemcpyDeviceToHost, queue(stream));
	if (e == cudaSuccess)
		e = cudaStreamSynchronize(queue(stream));
	*n_differ = (int64_t)found[0];
	*first = found[0] > 0 ? (int64_t)found[1] * 4 : -1;
	return e;
}

int fill_cuda_pattern(void *dst, uint32_t word, size_t bytes, void *stream)
{
	const int64_t n = (int64_t)(bytes / 4);
	if (n == 0)
		return cudaSuccess;
	pattern_words<<<blocks_for(n), THREADS, 0, queue(stream)>>>((uint32_t *)dst, word, n);
	return cudaGetLastError();
}

} // extern "C"
