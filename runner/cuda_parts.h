/* cuda_parts: what the files of the cuda backend share. backend_cuda.c opens it and names its functions in the vtable, cuda_memory.c has
 * memory and fills, cuda_queue.c the one queue and its graphs, cuda_sentinels.c the fixed work that is timed. */
#ifndef ASSAY_CUDA_PARTS_H
#define ASSAY_CUDA_PARTS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend.h"
#include "cuda_device.h"
#include "err.h"

#define CUDA_SCRUB_LEAST_BYTES ((int64_t)512 << 20)

struct cuda_nvml;

struct cuda {
	const struct backend_ops *ops;
	struct cuda_device device;
	struct device_info info;
	struct cuda_nvml *nvml;
	cudaStream_t stream;
	cudaEvent_t mark[BACKEND_MARKS]; /* made when first used */
	uint64_t *scratch; /* on the device: 256 bytes for counts and sinks */
	char *scrub_from, *scrub_to; /* on the device */
	size_t scrub_room;
	json_t *code; /* of functions whose machine code was read (cuda_artifact.h) */
	double bytes_per_s, ops_per_s; /* of the sentinels; 0: not measured */
};

static inline struct cuda *cuda_of(struct backend *b)
{
	return (struct cuda *)(void *)b;
}

/* True, or false with "cuda: what: CUDA's sentence (its name)". A sticky error stays with the context; cuda_sync says so. */
bool cuda_told(int e, const char *what, struct err *err);

/* ---- cuda_memory.c: as backend.h has them ---- */
void *cuda_alloc(struct backend *b, size_t bytes, struct err *err);
void cuda_free(struct backend *b, void *p);
bool cuda_upload(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err);
bool cuda_download(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err);
bool cuda_copy(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err);
bool cuda_pattern(struct backend *b, void *dst, uint32_t word, size_t bytes, struct err *err);
bool cuda_scan(struct backend *b, const void *p, uint32_t word, size_t bytes, int64_t *n_differ, int64_t *first,
	       struct err *err);
bool cuda_scan_all(struct backend *b, const struct scan_range *range, int n, bool *intact, struct err *err);
bool cuda_compare(struct backend *b, const void *x, const void *y, size_t bytes, int64_t *n_differ, int64_t *first,
		  struct err *err);
bool cuda_digest(struct backend *b, const void *p, size_t bytes, uint64_t *out, struct err *err);
bool cuda_fill(struct backend *b, void *dst, const struct fill_job *job, struct err *err);
bool cuda_audit(struct backend *b, const void *src, const struct fill_job *job, uint32_t readings,
		struct fill_audit *out, struct err *err);

/* ---- cuda_queue.c: as backend.h has them ---- */
bool cuda_scrub(struct backend *b, int64_t bytes, struct err *err);
bool cuda_mark(struct backend *b, int slot, struct err *err);
bool cuda_launch(struct backend *b, const struct launch *l, struct err *err);
bool cuda_sync(struct backend *b, bool *lost, struct err *err);
bool cuda_drain(struct backend *b, int64_t *extra_ns, bool *lost, struct err *err);
bool cuda_elapsed(struct backend *b, int from, int to, int64_t *ns, struct err *err);
int64_t cuda_now(struct backend *b);
void cuda_pause(struct backend *b, int64_t ns);
void *cuda_stream(struct backend *b);
void *cuda_graph_capture(struct backend *b, const struct launch *l, int *n_kernels, struct err *err);
void cuda_graph_free(struct backend *b, void *graph);
int64_t cuda_scrub_auto_bytes(const struct cuda *c);
/* Both ends of the scrub, bytes each, on the device; kept. */
bool cuda_scrub_room(struct cuda *c, size_t bytes, struct err *err);

/* ---- cuda_sentinels.c: as backend.h has them ---- */
json_t *cuda_sentinels(struct backend *b, struct err *err);
double cuda_peak_bytes(struct backend *b);
double cuda_peak_ops(struct backend *b);
double cuda_flop_reach(struct backend *b);
extern const struct assay_arm_ops cuda_probe_null, cuda_probe_read;

#endif
