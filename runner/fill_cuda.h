/* fill_cuda: inputs on a device: fill, audit, digest, scan, pattern. C on this side, so that who calls needs no C++. Functions take a cudaStream_t and return a cudaError_t as int (0:
 * success); they wait where the comment says so. */
#ifndef ASSAY_FILL_CUDA_H
#define ASSAY_FILL_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "fill.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills by the job, byte for byte as fill_host. Not .npy files. Queued. False with *err: the job does not fit. */
bool fill_cuda(void *dst, const struct fill_job *job, void *stream, struct err *err);
/* As fill_audit_host. Waits. */
bool fill_cuda_audit(const void *src, const struct fill_job *job, uint32_t readings, void *stream,
		     struct fill_audit *out, struct err *err);
/* As fill_digest. scratch: 8 bytes of device memory. Waits. */
int fill_cuda_digest(const void *p, size_t bytes, uint64_t *scratch, void *stream, uint64_t *out);
/* Counts words that differ; scratch: 16 bytes of device memory. Waits. */
int fill_cuda_scan(const void *p, uint32_t word, size_t bytes, uint64_t *scratch, void *stream, int64_t *n_differ,
		   int64_t *first);
/* Queued. */
int fill_cuda_pattern(void *dst, uint32_t word, size_t bytes, void *stream);

#ifdef __cplusplus
}
#endif
#endif
