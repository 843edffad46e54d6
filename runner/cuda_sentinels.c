/* The fixed work that the cuda backend times: sentinels, and the probes of calibration. */
#include <math.h>
#include <stdio.h>

#include "cuda_parts.h"
#include "cuda_work.h"

enum { SAMPLES = 7, CHAIN_STEPS = 4096, MATRIX_ITERATIONS = 2000 };
#define CHAIN_WORDS (1u << 24) /* 64 MiB, or twice the L2: see cuda_sentinels */

struct work {
	enum { COPY, READ, MATRIX_BF16, MATRIX_S8, LATENCY, N_WORKS } what;
	uint32_t *chain;
	size_t bytes;
};

static int enqueue(struct cuda *c, const struct work *w, double *ops)
{
	switch (w->what) {
	case COPY: return cuda_work_copy(c->scrub_from, c->scrub_to, w->bytes, c->stream);
	case READ: return cuda_work_read(c->scrub_from, w->bytes, c->scratch, c->stream);
	case MATRIX_BF16:
	case MATRIX_S8:
		return cuda_work_matrix(w->what == MATRIX_S8, MATRIX_ITERATIONS, c->device.multiprocessors, c->scratch,
					c->stream, ops);
	default: return cuda_work_chain_walk(w->chain, CHAIN_STEPS, c->scratch, c->stream);
	}
}

/* One warm-up, then SAMPLES; *best is the shortest. */
static json_t *sample_work(struct backend *b, const struct work *w, double *ops, int64_t *best, struct err *err)
{
	struct cuda *c = cuda_of(b);
	json_t *list = json_array();
	bool lost;

	*best = 0;
	for (int i = -1; list && i < SAMPLES; i++) {
		int64_t ns = 0;
		if (!cuda_mark(b, 0, err) || !cuda_told(enqueue(c, w, ops), "sentinel", err) || !cuda_mark(b, 1, err) ||
		    !cuda_sync(b, &lost, err) || !cuda_elapsed(b, 0, 1, &ns, err)) {
			json_decref(list);
			return NULL;
		}
		if (i < 0)
			continue;
		json_array_append_new(list, json_integer(ns));
		*best = !*best || ns < *best ? ns : *best;
	}
	return list;
}

json_t *cuda_sentinels(struct backend *b, struct err *err)
{
	static const char *const names[N_WORKS] = {"copy", "read", "matrix_bf16", "matrix_s8", "latency"};
	struct cuda *c = cuda_of(b);
	struct work w = {.bytes = (size_t)CUDA_SCRUB_LEAST_BYTES};
	uint32_t words = CHAIN_WORDS;
	json_t *o = json_object();

	while ((int64_t)words * 4 < 2 * c->device.llc_bytes)
		words *= 2;
	if (!o || !cuda_scrub_room(c, w.bytes, err) ||
	    !cuda_told(cudaMalloc((void **)&w.chain, (size_t)words * 4), "sentinels", err) ||
	    !cuda_told(cuda_work_chain_make(w.chain, words, c->stream), "sentinels", err))
		goto fail;
	for (int i = 0; i < N_WORKS; i++) {
		double ops = 0;
		int64_t best;
		w.what = i;
		json_t *list = sample_work(b, &w, &ops, &best, err);
		if (!list)
			goto fail;
		json_object_set_new(o, names[i], list);
		const double bytes = i == COPY ? 2.0 * (double)w.bytes : i == READ ? (double)w.bytes : 0;
		if (best > 0) {
			c->bytes_per_s = fmax(c->bytes_per_s, bytes / (double)best * 1e9);
			c->ops_per_s = fmax(c->ops_per_s, ops / (double)best * 1e9);
		}
	}
	(void)cudaFree(w.chain);
	return o;
fail:
	json_decref(o);
	(void)cudaFree(w.chain);
	return NULL;
}

double cuda_peak_bytes(struct backend *b)
{
	return cuda_of(b)->bytes_per_s;
}

double cuda_peak_ops(struct backend *b)
{
	return cuda_of(b)->ops_per_s;
}

/* The matrix sentinel is the warp's mma.sync in bf16 and int8, which runs wherever this tool does. What a device has beyond: the
 * warpgroup's form, in which int8 issues 1.54 times as often (9.0); fp8 and fp4 of tcgen05 against a warp's form of generations before
 * (10.x, 11.x); block-scaled fp4 (12.x) and int4 (8.x); each of them twice with sparse operands. */
double cuda_flop_reach(struct backend *b)
{
	const int cc = cuda_of(b)->device.cc;
	return cc < 80 ? 2 : cc < 90 ? 4 : cc == 90 ? 3.1 : cc / 10 == 12 ? 8 : 16;
}

/* ---- probes of the harness ------------------------------------------------------------------------------------------ */

static int probe(const struct assay_call *call, int e)
{
	if (e == cudaSuccess)
		return 0;
	snprintf(call->error, ASSAY_ERROR_MAX, "probe: %s", cudaGetErrorString((cudaError_t)e));
	return -1;
}

static int null_run(const struct assay_call *call, void *state)
{
	return probe(call, cuda_work_null(call->stream));
}

static size_t probe_bytes(const struct assay_call *call)
{
	return (size_t)call->shape[0].dim[0];
}

static int read_plan(const struct assay_call *call, void **state)
{
	*state = NULL;
	if (probe_bytes(call) >= 8192)
		return probe(call, cuda_work_lines_make(call->tensor[0], probe_bytes(call), call->stream));
	snprintf(call->error, ASSAY_ERROR_MAX, "probe: a cache is not tested with %zu bytes", probe_bytes(call));
	return -1;
}

/* The sink is a place between the lines, and is never written. */
static int read_run(const struct assay_call *call, void *state)
{
	char *lines = call->tensor[0];
	return probe(call, cuda_work_lines_walk(lines, probe_bytes(call), lines + 64, call->stream));
}

const struct assay_arm_ops cuda_probe_null = {.run = null_run}, cuda_probe_read = {.plan = read_plan, .run = read_run};
