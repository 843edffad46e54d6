/* cuda_work: the fixed work of the harness on a device: scrub, and what sentinels and probes time. C on this side. Functions take a
 * cudaStream_t, queue, and return a cudaError_t as int (0: success). */
#ifndef ASSAY_CUDA_WORK_H
#define ASSAY_CUDA_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
