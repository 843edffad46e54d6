/* compare_cuda: looks of the harness at device memory: two outputs compared, guards looked at all at once. C on this side. Functions take a
 * cudaStream_t and return a cudaError_t as int (0: success); they wait. */
#ifndef ASSAY_COMPARE_CUDA_H
#define ASSAY_COMPARE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many bytes differ, and the offset of the first (-1: none). x and y are 16-byte aligned; scratch: 16 bytes of device memory. */
int compare_cuda_bytes(const void *x, const void *y, size_t bytes, uint64_t *scratch, void *stream, int64_t *n_differ,
		       int64_t *first);
/* Whether each range holds its word throughout. n <= BACKEND_RANGES; scratch: 8 bytes of device memory. */
int compare_cuda_ranges(const struct scan_range *range, int n, uint64_t *scratch, void *stream, bool *intact);

#ifdef __cplusplus
}
#endif
#endif
