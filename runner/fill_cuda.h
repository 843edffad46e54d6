/* fill_cuda: the harness's own kernels: fill, audit, digest, scan, pattern, scrub, and the fixed workloads of sentinels and
 * probes. C on this side, so that backend_cuda.c needs no C++. Functions take a cudaStream_t and return a cudaError_t as int (0:
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

/* Reads bytes from a and writes as many to b through the multiprocessors: the scrub, and the copy sentinel. Queued. */
int cuda_work_copy(const void *a, void *b, size_t bytes, void *stream);
/* Reads bytes; sink is 8 bytes of device memory that keep the reads alive. Queued. */
int cuda_work_read(const void *a, size_t bytes, void *sink, void *stream);
/* A cache's test: make writes chains of lines into bytes (8 KiB at least), walk follows all of them, each load after the one before.
 * Queued. */
int cuda_work_lines_make(void *lines, size_t bytes, void *stream);
int cuda_work_lines_walk(const void *lines, size_t bytes, void *sink, void *stream);
/* A launch of nothing. Queued. */
int cuda_work_null(void *stream);
/* iterations of 8 independent matrix instructions a warp, on every multiprocessor; *ops: operations, multiply and add counted as
 * two. integer: s8 instead of bf16. Queued. */
int cuda_work_matrix(bool integer, int iterations, int multiprocessors, void *sink, void *stream, double *ops);
/* chain: n words (n a power of two), each the index of the next, one cycle. make: writes it. walk: steps dependent loads by one
 * thread. Queued. */
int cuda_work_chain_make(uint32_t *chain, uint32_t n, void *stream);
int cuda_work_chain_walk(const uint32_t *chain, uint32_t steps, void *sink, void *stream);

#ifdef __cplusplus
}
#endif
#endif
