/* The cuda backend's memory: allocations, copies, and the fills and counts that run on the device. */
#include <stdlib.h>

#include "compare_cuda.h"
#include "cuda_parts.h"
#include "fill_cuda.h"

void *cuda_alloc(struct backend *b, size_t bytes, struct err *err)
{
	void *p = NULL;
	cudaError_t e = cudaMalloc(&p, bytes ? bytes : 256);

	if (e == cudaSuccess)
		return p;
	(void)cudaGetLastError();
	size_t left = 0, all = 0;
	if (e == cudaErrorMemoryAllocation && cudaMemGetInfo(&left, &all) == cudaSuccess)
		err_set(err, "cuda: cannot allocate %zu bytes (%.1f GiB); %.1f of %.1f GiB are free on %s", bytes,
			(double)bytes / (1 << 30), (double)left / (1 << 30), (double)all / (1 << 30),
			cuda_of(b)->device.name);
	else
		cuda_told(e, "allocation", err);
	return NULL;
}

void cuda_free(struct backend *b, void *p)
{
	(void)cudaFree(p);
}

static bool copy_and_wait(struct cuda *c, void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
			  const char *what, struct err *err)
{
	return cuda_told(cudaMemcpyAsync(dst, src, bytes, kind, c->stream), what, err) &&
	       cuda_told(cudaStreamSynchronize(c->stream), what, err);
}

bool cuda_upload(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err)
{
	return copy_and_wait(cuda_of(b), dst, src, bytes, cudaMemcpyHostToDevice, "upload", err);
}

bool cuda_download(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err)
{
	return copy_and_wait(cuda_of(b), dst, src, bytes, cudaMemcpyDeviceToHost, "download", err);
}

bool cuda_copy(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err)
{
	return cuda_told(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, cuda_of(b)->stream), "copy", err);
}

bool cuda_pattern(struct backend *b, void *dst, uint32_t word, size_t bytes, struct err *err)
{
	return cuda_told(fill_cuda_pattern(dst, word, bytes, cuda_of(b)->stream), "pattern", err);
}

bool cuda_scan(struct backend *b, const void *p, uint32_t word, size_t bytes, int64_t *n_differ, int64_t *first,
	       struct err *err)
{
	struct cuda *c = cuda_of(b);
	return cuda_told(fill_cuda_scan(p, word, bytes, c->scratch, c->stream, n_differ, first), "scan", err);
}

bool cuda_scan_all(struct backend *b, const struct scan_range *range, int n, bool *intact, struct err *err)
{
	struct cuda *c = cuda_of(b);
	return cuda_told(compare_cuda_ranges(range, n, c->scratch, c->stream, intact), "scan", err);
}

bool cuda_compare(struct backend *b, const void *x, const void *y, size_t bytes, int64_t *n_differ, int64_t *first,
		  struct err *err)
{
	struct cuda *c = cuda_of(b);
	return cuda_told(compare_cuda_bytes(x, y, bytes, c->scratch, c->stream, n_differ, first), "comparison", err);
}

bool cuda_digest(struct backend *b, const void *p, size_t bytes, uint64_t *out, struct err *err)
{
	struct cuda *c = cuda_of(b);
	return cuda_told(fill_cuda_digest(p, bytes, c->scratch, c->stream, out), "digest", err);
}

/* A file's values are read by the host: they come from there anyway. The image on the device is taken down first, for the gaps. */
static bool fill_from_file(struct backend *b, void *dst, const struct fill_job *job, struct err *err)
{
	int64_t last = 0, unit = job->record_bytes ? job->record_bytes : assay_dtype_bytes(job->dtype), step = 1;
	for (int i = job->shape.rank - 1; i >= 0; i--) {
		bool dense = true;
		for (int k = 0; k < job->shape.rank; k++)
			dense = dense && job->shape.stride[k] == 0;
		last += (job->shape.dim[i] - 1) * (dense ? step : job->shape.stride[i]);
		step *= job->shape.dim[i];
	}
	if (step == 0)
		return true;
	const size_t bytes = (size_t)((last + 1) * unit);
	void *image = malloc(bytes);
	if (!image)
		return err_set(err, "cuda: out of memory for %zu bytes of %s", bytes, job->spec.path);
	bool ok = cuda_download(b, image, dst, bytes, err) && fill_host(image, job, err) &&
		  cuda_upload(b, dst, image, bytes, err);
	free(image);
	return ok;
}

bool cuda_fill(struct backend *b, void *dst, const struct fill_job *job, struct err *err)
{
	struct cuda *c = cuda_of(b);
	if (job->spec.kind == FILL_NPY)
		return fill_from_file(b, dst, job, err);
	return fill_cuda(dst, job, c->stream, err) && cuda_told(cudaStreamSynchronize(c->stream), "fill", err);
}

bool cuda_audit(struct backend *b, const void *src, const struct fill_job *job, uint32_t readings,
		struct fill_audit *out, struct err *err)
{
	return fill_cuda_audit(src, job, readings, cuda_of(b)->stream, out, err);
}
