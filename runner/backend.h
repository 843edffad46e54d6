/* backend: what a device can do, as a vtable. exec.c drives a cell through it and knows no device; backend_host.c,
 * backend_cuda.c and the lying fake of the tests fill it.
 *
 * The vtable enqueues: scrub, mark and launch put work on one in-order queue and return; sync waits for it; elapsed reads the
 * marks afterwards. So a launch can be hidden behind the scrub (clock `device`) and a graph can be replayed. On the host the
 * queue is the calling thread and everything is done at once. */
#ifndef ASSAY_BACKEND_H
#define ASSAY_BACKEND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "assay/adapter.h"
#include "err.h"
#include "fill_spec.h"

struct fill_job;
struct fill_audit;
struct backend; /* each filler has its own; the first member is `const struct backend_ops *ops` (backend_ops_of) */

/* Facts of the device, at open. Strings are owned by the backend. */
struct device_info {
	const char *name; /* "NVIDIA H200", CPU model name */
	const char *uuid; /* GPU UUID; on the host a hash of machine id and CPU model */
	int cc; /* 90; 0 on the host */
	int threads; /* host: OpenMP threads; 0 on cuda */
	int64_t memory_bytes, llc_bytes; /* llc: L2 on cuda, last-level cache on the host (0: unknown) */
	const char *driver, *runtime; /* NULL on the host */
	json_t *more; /* object: clocks, ecc, mig, power limit, cpu pinning …; borrowed */
};

/* State around a cell. Unknown numbers are -1. */
struct device_state {
	int sm_mhz, mem_mhz, temperature_c, power_w;
	uint64_t throttle; /* backend's bits; 0: none */
	const char *throttle_text; /* static, or NULL */
	int other_processes; /* on the device, beside us and our own */
	int64_t preemptions; /* host: times that a CPU was taken from our threads since state() was last called */
	const char *
		limit_text; /* what holds the clock of a device that works as it is meant to ("power cap"); static, or NULL */
};

/* One launch to be put on the queue. */
struct launch {
	const struct assay_arm_ops *ops;
	const struct assay_call *call;
	void *state; /* of plan() */
	void *graph; /* non-NULL: replay this instead of calling run (see graph_capture) */
};

/* Words of device memory that should all be one. bytes is a multiple of 4. */
struct scan_range {
	const void *at;
	size_t bytes;
	uint32_t word;
};
enum { BACKEND_RANGES = 64 }; /* of one scan_all */

enum { BACKEND_MARKS = 4096 };

struct backend_ops {
	const char *name; /* "host", "cuda", "fake" */
	enum assay_backend kind;

	void (*close)(struct backend *b);
	const struct device_info *(*info)(struct backend *b);

	/* Device memory, 256-byte aligned. alloc: NULL with *err (says how much was wanted and how much there is). */
	void *(*alloc)(struct backend *b, size_t bytes, struct err *err);
	void (*free)(struct backend *b, void *p); /* NULL is fine */
	bool (*upload)(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err);
	bool (*download)(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err);
	bool (*copy)(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err); /* on the device */
	/* Repeats a 4-byte pattern; bytes is a multiple of 4 and dst is 4-byte aligned. Queued. */
	bool (*pattern)(struct backend *b, void *dst, uint32_t word, size_t bytes, struct err *err);
	/* The number of 4-byte words in [p, p+bytes) that differ from word, and the byte offset of the first (-1: none). Waits. */
	bool (*scan)(struct backend *b, const void *p, uint32_t word, size_t bytes, int64_t *n_differ, int64_t *first,
		     struct err *err);
	/* Whether all words of n ranges are as they should be: scan of all of them at once, for the usual case that none has changed. Waits. NULL op:
	 * each range is scanned. */
	bool (*scan_all)(struct backend *b, const struct scan_range *range, int n, bool *intact, struct err *err);
	/* The number of bytes in which x and y differ (both as alloc gave them, or 16-byte aligned), and the offset of the first (-1: none). Waits.
	 * NULL op: memory of this backend is not compared in place, large outputs are brought to the host. */
	bool (*compare)(struct backend *b, const void *x, const void *y, size_t bytes, int64_t *n_differ,
			int64_t *first, struct err *err);
	/* xxh3-like 64-bit digest of bytes, the same on every backend (fill_digest of fill.h). Waits. */
	bool (*digest)(struct backend *b, const void *p, size_t bytes, uint64_t *out, struct err *err);
	/* Fills a tensor by the spec: the same bytes on every backend (fill.h says how). Waits.
	 * NULL op: the caller fills on the host and uploads. */
	bool (*fill)(struct backend *b, void *dst, const struct fill_job *job, struct err *err);
	/* Counts what the audit reports, the same on every backend. NULL op: the caller downloads and audits on the host. */
	bool (*audit)(struct backend *b, const void *src, const struct fill_job *job, uint32_t readings,
		      struct fill_audit *out, struct err *err);

	/* Queued. scrub: bytes < 0: auto. read-only on the host, read and written through the SMs on cuda. */
	bool (*scrub)(struct backend *b, int64_t bytes, struct err *err);
	bool (*mark)(struct backend *b, int slot, struct err *err); /* 0 <= slot < BACKEND_MARKS */
	/* Calls run() (or replays the graph). The error is the arm's own words or the launch error. */
	bool (*launch)(struct backend *b, const struct launch *l, struct err *err);
	/* Waits for the queue. False: a device error, sticky or not, named; *lost says that this process can do no more. */
	bool (*sync)(struct backend *b, bool *lost, struct err *err);
	/* After sync: nanoseconds between two marks (by the device's clock on cuda). */
	bool (*elapsed)(struct backend *b, int from, int to, int64_t *ns, struct err *err);
	/* Host clock, for launch_to_completion and budgets; monotonic nanoseconds. The fake lies here. */
	int64_t (*now)(struct backend *b);

	/* Captures one run() into a graph and counts its kernel nodes; NULL op or false: not on this backend. */
	void *(*graph_capture)(struct backend *b, const struct launch *l, int *n_kernels, struct err *err);
	void (*graph_free)(struct backend *b, void *graph);

	bool (*state)(struct backend *b, struct device_state *out, struct err *err);
	/* Artifact facts of what a call launches: object {hash, registers, spills_bytes, shared_bytes, grid, block, occupancy,
	 * …}; each unknown is null with a "…_reason". New reference; NULL only out of memory. */
	json_t *(*artifact)(struct backend *b, const struct assay_launch *launches, int n);
	/* Waits some, so that a throttled or shared window can pass. */
	void (*pause)(struct backend *b, int64_t ns);
	/* Sentinels: fixed workloads, named, each some samples in ns: {"copy": […], "latency": […], …}. New reference or NULL. */
	json_t *(*sentinels)(struct backend *b, struct err *err);
	/* Bytes a second of the copy sentinel and flop/s of the arithmetic one, measured in this process; 0: not measured. */
	double (*peak_bytes_per_s)(struct backend *b);
	double (*peak_flop_per_s)(struct backend *b);
	/* How often the fastest instruction of the device, in whatever format, can do what the arithmetic sentinel does: a kernel of narrower
	 * numbers than the sentinel's may be so much faster. 0: unknown. NULL op: 1. */
	double (*flop_reach)(struct backend *b);
	/* After sync: waits for everything the process has on the device, whatever its queue, and tells how much longer that
	 * took: work on a stream of its own escapes the marks. NULL op: the backend cannot tell. *lost as in sync. */
	bool (*drain)(struct backend *b, int64_t *extra_ns, bool *lost, struct err *err);
	/* The cudaStream_t that arms are given as call->stream. NULL op: NULL. */
	void *(*stream)(struct backend *b);
	/* Fixed arms of the harness for calibration: a launch of nothing, and one that reads tensor[0] (shape[0].dim[0] bytes) in
	 * an order no prefetcher follows. NULL: calibration takes its own, on the host. */
	const struct assay_arm_ops *probe_null, *probe_read;
	/* The machine code of what a call launches, counted (census.h): runs a disassembler, seconds at most. A JSON null where it cannot be read,
	 * with reason[256] a sentence. NULL op: the backend reads no code. New reference. */
	json_t *(*census)(struct backend *b, const struct assay_launch *launches, int n, char *reason);
};

struct backend_config {
	const char *device; /* index, UUID or name; NULL: the first */
	int threads; /* host; 0: cores - 1, at least 1 */
};

/* NULL with *err: no such backend in this build, no driver, no such device (with the count and the names). */
struct backend *backend_open(const char *name, const struct backend_config *cfg, struct err *err);
/* The backends of this build, NULL-terminated: {"host", "cuda"}. */
const char *const *backend_names(void);
/* The device's name without opening it for work (plan_target): cheap, no context. False with *err. */
struct device_peek {
	char name[128];
	char uuid[80];
	int cc;
};
bool backend_peek(const char *name, const struct backend_config *cfg, struct device_peek *out, struct err *err);

static inline const struct backend_ops *backend_ops_of(struct backend *b)
{
	return *(const struct backend_ops *const *)b;
}

struct backend *backend_host_open(const struct backend_config *cfg, struct err *err);
struct backend *backend_cuda_open(const struct backend_config *cfg, struct err *err); /* only in a CUDA build */
/* For a process that is to be started with pinned OpenMP threads: the value of OMP_PLACES (with OMP_PROC_BIND=true, OMP_DYNAMIC=false), and
 * how many threads that makes, to be passed on as cfg->threads. The runtime then pins threads that it makes anew too. */
bool backend_host_places(const struct backend_config *cfg, char *places, size_t cap, int *threads, struct err *err);
bool backend_host_peek(const struct backend_config *cfg, struct device_peek *out, struct err *err);
bool backend_cuda_peek(const struct backend_config *cfg, struct device_peek *out,
		       struct err *err); /* only in a CUDA build */

#endif
