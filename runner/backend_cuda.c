/* An NVIDIA GPU as a device, on the CUDA runtime API. One stream, and everything that is timed goes through it in order: scrub, start,
 * launch and stop are queued before anything is waited for, so a launch's own cost on the host hides behind the scrub. */
#include "backend.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_artifact.h"
#include "cuda_device.h"
#include "cuda_nvml.h"
#include "fill_cuda.h"

enum { SAMPLES = 7, CHAIN_STEPS = 4096, MATRIX_ITERATIONS = 2000 };
#define SCRUB_LEAST_BYTES ((int64_t)512 << 20)
#define CHAIN_WORDS (1u << 24) /* 64 MiB, or twice the L2: see sentinels() */

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
	double bytes_per_s, ops_per_s; /* of the sentinels; 0: not measured */
};

static struct cuda *cuda_of(struct backend *b)
{
	return (struct cuda *)(void *)b;
}

/* True, or false with "cuda: what: CUDA's sentence (its name)". A sticky error stays with the context; sync() says so. */
static bool told(int e, const char *what, struct err *err)
{
	if (e == cudaSuccess)
		return true;
	(void)cudaGetLastError();
	return err_set(err, "cuda: %s: %s (%s)", what, cudaGetErrorString((cudaError_t)e),
		       cudaGetErrorName((cudaError_t)e));
}

static int64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- memory --------------------------------------------------------------------------------------------------------- */

static void *gpu_alloc(struct backend *b, size_t bytes, struct err *err)
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
		told(e, "allocation", err);
	return NULL;
}

static void gpu_free(struct backend *b, void *p)
{
	(void)cudaFree(p);
}

static bool copy_and_wait(struct cuda *c, void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
			  const char *what, struct err *err)
{
	return told(cudaMemcpyAsync(dst, src, bytes, kind, c->stream), what, err) &&
	       told(cudaStreamSynchronize(c->stream), what, err);
}

static bool gpu_upload(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err)
{
	return copy_and_wait(cuda_of(b), dst, src, bytes, cudaMemcpyHostToDevice, "upload", err);
}

static bool gpu_download(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err)
{
	return copy_and_wait(cuda_of(b), dst, src, bytes, cudaMemcpyDeviceToHost, "download", err);
}

static bool gpu_copy(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err)
{
	return told(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, cuda_of(b)->stream), "copy", err);
}

static bool gpu_pattern(struct backend *b, void *dst, uint32_t word, size_t bytes, struct err *err)
{
	return told(fill_cuda_pattern(dst, word, bytes, cuda_of(b)->stream), "pattern", err);
}

static bool gpu_scan(struct backend *b, const void *p, uint32_t word, size_t bytes, int64_t *n_differ, int64_t *first,
		     struct err *err)
{
	struct cuda *c = cuda_of(b);
	return told(fill_cuda_scan(p, word, bytes, c->scratch, c->stream, n_differ, first), "scan", err);
}

static bool gpu_digest(struct backend *b, const void *p, size_t bytes, uint64_t *out, struct err *err)
{
	struct cuda *c = cuda_of(b);
	return told(fill_cuda_digest(p, bytes, c->scratch, c->stream, out), "digest", err);
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
	bool ok = gpu_download(b, image, dst, bytes, err) && fill_host(image, job, err) &&
		  gpu_upload(b, dst, image, bytes, err);
	free(image);
	return ok;
}

static bool gpu_fill(struct backend *b, void *dst, const struct fill_job *job, struct err *err)
{
	struct cuda *c = cuda_of(b);
	if (job->spec.kind == FILL_NPY)
		return fill_from_file(b, dst, job, err);
	return fill_cuda(dst, job, c->stream, err) && told(cudaStreamSynchronize(c->stream), "fill", err);
}

static bool gpu_audit(struct backend *b, const void *src, const struct fill_job *job, uint32_t readings,
		      struct fill_audit *out, struct err *err)
{
	return fill_cuda_audit(src, job, readings, cuda_of(b)->stream, out, err);
}

/* ---- the queue ------------------------------------------------------------------------------------------------------ */

static int64_t scrub_auto_bytes(const struct cuda *c)
{
	return 2 * c->device.llc_bytes > SCRUB_LEAST_BYTES ? 2 * c->device.llc_bytes : SCRUB_LEAST_BYTES;
}

static bool want_scrub_room(struct cuda *c, size_t bytes, struct err *err)
{
	if (bytes <= c->scrub_room)
		return true;
	(void)cudaFree(c->scrub_from);
	(void)cudaFree(c->scrub_to);
	c->scrub_from = c->scrub_to = NULL;
	c->scrub_room = 0;
	if (!told(cudaMalloc((void **)&c->scrub_from, bytes), "room for the scrub", err) ||
	    !told(cudaMalloc((void **)&c->scrub_to, bytes), "room for the scrub", err) ||
	    !told(fill_cuda_pattern(c->scrub_from, 0x3f9d70a4u, bytes, c->stream), "room for the scrub", err))
		return false;
	c->scrub_room = bytes;
	return true;
}

static bool gpu_scrub(struct backend *b, int64_t bytes, struct err *err)
{
	struct cuda *c = cuda_of(b);
	const size_t want = (size_t)((bytes < 0 ? scrub_auto_bytes(c) : bytes) + 15) / 16 * 16;

	if (!want)
		return true;
	if (!want_scrub_room(c, want, err))
		return false;
	/* Lines that somebody asked to persist would outlive any traffic. */
	if (c->device.persisting_l2 && !told(cudaCtxResetPersistingL2Cache(), "reset of the persisting L2", err))
		return false;
	return told(cuda_work_copy(c->scrub_from, c->scrub_to, want, c->stream), "scrub", err);
}

static bool gpu_mark(struct backend *b, int slot, struct err *err)
{
	struct cuda *c = cuda_of(b);

	if (slot < 0 || slot >= BACKEND_MARKS)
		return err_set(err, "cuda: mark %d is not in 0..%d", slot, BACKEND_MARKS - 1);
	if (!c->mark[slot] && !told(cudaEventCreate(&c->mark[slot]), "event", err))
		return false;
	return told(cudaEventRecord(c->mark[slot], c->stream), "event", err);
}

static bool gpu_launch(struct backend *b, const struct launch *l, struct err *err)
{
	struct cuda *c = cuda_of(b);

	if (l->graph)
		return told(cudaGraphLaunch((cudaGraphExec_t)l->graph, c->stream), "graph launch", err);
	l->call->error[0] = '\0';
	int rc = l->ops->run(l->call, l->state);
	cudaError_t e = cudaGetLastError();
	l->call->error[ASSAY_ERROR_MAX - 1] = '\0';
	if (rc != 0)
		return err_set(err, "%s", l->call->error[0] ? l->call->error : "the arm failed and gave no reason");
	return told(e, "launch", err);
}

/* Whether the context still works: an error that comes again is one that stays. */
static bool context_lost(void)
{
	(void)cudaGetLastError();
	cudaError_t e = cudaDeviceSynchronize();
	(void)cudaGetLastError();
	return e != cudaSuccess;
}

static bool gpu_sync(struct backend *b, bool *lost, struct err *err)
{
	cudaError_t e = cudaStreamSynchronize(cuda_of(b)->stream);

	*lost = false;
	if (e == cudaSuccess)
		e = cudaGetLastError();
	if (e == cudaSuccess)
		return true;
	*lost = context_lost();
	return told(e, *lost ? "the device failed, and this process can do no more on it" : "the device failed", err);
}

static bool gpu_drain(struct backend *b, int64_t *extra_ns, bool *lost, struct err *err)
{
	const int64_t from = clock_ns();
	cudaError_t e = cudaDeviceSynchronize();

	*extra_ns = clock_ns() - from;
	*lost = false;
	if (e == cudaSuccess)
		return true;
	*lost = context_lost();
	return told(e, "the device failed", err);
}

static bool gpu_elapsed(struct backend *b, int from, int to, int64_t *ns, struct err *err)
{
	struct cuda *c = cuda_of(b);
	float ms;

	if (from < 0 || from >= BACKEND_MARKS || to < 0 || to >= BACKEND_MARKS || !c->mark[from] || !c->mark[to])
		return err_set(err, "cuda: marks %d and %d were not both made", from, to);
	if (!told(cudaEventElapsedTime(&ms, c->mark[from], c->mark[to]), "event time", err))
		return false;
	*ns = llround((double)ms * 1e6);
	return true;
}

static int64_t gpu_now(struct backend *b)
{
	return clock_ns();
}

static void gpu_pause(struct backend *b, int64_t ns)
{
	if (ns <= 0)
		return;
	struct timespec t = {ns / 1000000000, ns % 1000000000};
	nanosleep(&t, NULL); /* an early end by a signal is welcome: somebody wants to stop */
}

static void *gpu_stream(struct backend *b)
{
	return cuda_of(b)->stream;
}

/* ---- graphs --------------------------------------------------------------------------------------------------------- */

static bool count_kernels(cudaGraph_t graph, int *n, struct err *err)
{
	size_t nodes = 0;
	bool ok = false;

	*n = 0;
	if (!told(cudaGraphGetNodes(graph, NULL, &nodes), "graph", err))
		return false;
	cudaGraphNode_t *list = calloc(nodes ? nodes : 1, sizeof *list);
	if (!list)
		return err_set(err, "cuda: out of memory for a graph of %zu nodes", nodes);
	if (!told(cudaGraphGetNodes(graph, list, &nodes), "graph", err))
		goto done;
	for (size_t i = 0; i < nodes; i++) {
		enum cudaGraphNodeType type;
		if (!told(cudaGraphNodeGetType(list[i], &type), "graph", err))
			goto done;
		*n += type == cudaGraphNodeTypeKernel;
	}
	ok = true;
done:
	free(list);
	return ok;
}

static void *gpu_graph_capture(struct backend *b, const struct launch *l, int *n_kernels, struct err *err)
{
	struct cuda *c = cuda_of(b);
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;

	if (!told(cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal), "capture", err))
		return NULL;
	l->call->error[0] = '\0';
	int rc = l->ops->run(l->call, l->state);
	cudaError_t e = cudaStreamEndCapture(c->stream, &graph); /* always: else the stream stays in capture */
	if (rc != 0) {
		(void)cudaGetLastError();
		err_set(err, "%s",
			l->call->error[0] ? l->call->error : "the arm failed under capture and gave no reason");
	} else if (told(e, "capture", err) && count_kernels(graph, n_kernels, err) &&
		   told(cudaGraphInstantiate(&exec, graph, 0), "graph", err)) {
		(void)cudaGraphUpload(exec, c->stream);
	}
	if (graph)
		(void)cudaGraphDestroy(graph);
	return exec;
}

static void gpu_graph_free(struct backend *b, void *graph)
{
	if (graph)
		(void)cudaGraphExecDestroy((cudaGraphExec_t)graph);
}

/* ---- facts ---------------------------------------------------------------------------------------------------------- */

static const struct device_info *gpu_info(struct backend *b)
{
	return &cuda_of(b)->info;
}

static bool gpu_state(struct backend *b, struct device_state *out, struct err *err)
{
	cuda_nvml_state(cuda_of(b)->nvml, out);
	return true;
}

static json_t *gpu_artifact(struct backend *b, const struct assay_launch *launches, int n)
{
	return cuda_artifact_json(launches, n, cuda_of(b)->device.cc);
}

static json_t *gpu_census(struct backend *b, const struct assay_launch *launches, int n, char *reason)
{
	return cuda_artifact_census(launches, n, cuda_of(b)->device.cc, reason);
}

/* ---- sentinels ------------------------------------------------------------------------------------------------------ */

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
		if (!gpu_mark(b, 0, err) || !told(enqueue(c, w, ops), "sentinel", err) || !gpu_mark(b, 1, err) ||
		    !gpu_sync(b, &lost, err) || !gpu_elapsed(b, 0, 1, &ns, err)) {
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

static json_t *gpu_sentinels(struct backend *b, struct err *err)
{
	static const char *const names[N_WORKS] = {"copy", "read", "matrix_bf16", "matrix_s8", "latency"};
	struct cuda *c = cuda_of(b);
	struct work w = {.bytes = (size_t)SCRUB_LEAST_BYTES};
	uint32_t words = CHAIN_WORDS;
	json_t *o = json_object();

	while ((int64_t)words * 4 < 2 * c->device.llc_bytes)
		words *= 2;
	if (!o || !want_scrub_room(c, w.bytes, err) ||
	    !told(cudaMalloc((void **)&w.chain, (size_t)words * 4), "sentinels", err) ||
	    !told(cuda_work_chain_make(w.chain, words, c->stream), "sentinels", err))
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

static double gpu_peak_bytes(struct backend *b)
{
	return cuda_of(b)->bytes_per_s;
}

static double gpu_peak_ops(struct backend *b)
{
	return cuda_of(b)->ops_per_s;
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

static const struct assay_arm_ops probe_null = {.run = null_run}, probe_read = {.plan = read_plan, .run = read_run};

/* ---- open and close ------------------------------------------------------------------------------------------------- */

static void gpu_close(struct backend *b)
{
	struct cuda *c = cuda_of(b);

	for (int i = 0; i < BACKEND_MARKS; i++)
		if (c->mark[i])
			(void)cudaEventDestroy(c->mark[i]);
	(void)cudaFree(c->scrub_from);
	(void)cudaFree(c->scrub_to);
	(void)cudaFree(c->scratch);
	if (c->stream)
		(void)cudaStreamDestroy(c->stream);
	cuda_nvml_close(c->nvml);
	json_decref(c->info.more);
	free(c);
}

static const struct backend_ops cuda_ops = {
	.name = "cuda",
	.kind = ASSAY_CUDA,
	.close = gpu_close,
	.info = gpu_info,
	.alloc = gpu_alloc,
	.free = gpu_free,
	.upload = gpu_upload,
	.download = gpu_download,
	.copy = gpu_copy,
	.pattern = gpu_pattern,
	.scan = gpu_scan,
	.digest = gpu_digest,
	.fill = gpu_fill,
	.audit = gpu_audit,
	.scrub = gpu_scrub,
	.mark = gpu_mark,
	.launch = gpu_launch,
	.sync = gpu_sync,
	.elapsed = gpu_elapsed,
	.now = gpu_now,
	.graph_capture = gpu_graph_capture,
	.graph_free = gpu_graph_free,
	.state = gpu_state,
	.artifact = gpu_artifact,
	.census = gpu_census,
	.pause = gpu_pause,
	.sentinels = gpu_sentinels,
	.peak_bytes_per_s = gpu_peak_bytes,
	.peak_flop_per_s = gpu_peak_ops,
	.drain = gpu_drain,
	.stream = gpu_stream,
	.probe_null = &probe_null,
	.probe_read = &probe_read,
};

bool backend_cuda_peek(const struct backend_config *cfg, struct device_peek *out, struct err *err)
{
	struct cuda_device d;

	memset(out, 0, sizeof *out);
	if (!cuda_device_pick(cfg ? cfg->device : NULL, &d, err))
		return false;
	snprintf(out->name, sizeof out->name, "%s", d.name);
	snprintf(out->uuid, sizeof out->uuid, "%s", d.uuid);
	out->cc = d.cc;
	return true;
}

struct backend *backend_cuda_open(const struct backend_config *cfg, struct err *err)
{
	const char *why;
	struct cuda *c = calloc(1, sizeof *c);

	if (!c) {
		err_set(err, "cuda: out of memory");
		return NULL;
	}
	c->ops = &cuda_ops;
	if (!cuda_device_pick(cfg ? cfg->device : NULL, &c->device, err))
		goto fail;
	if (!told(cudaSetDevice(c->device.index), c->device.name, err) ||
	    !told(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking), c->device.name, err) ||
	    !told(cudaMalloc((void **)&c->scratch, 256), c->device.name, err))
		goto fail;
	c->info = (struct device_info){
		.name = c->device.name,
		.uuid = c->device.uuid,
		.cc = c->device.cc,
		.memory_bytes = c->device.memory_bytes,
		.llc_bytes = c->device.llc_bytes,
		.driver = c->device.driver,
		.runtime = c->device.runtime,
		.more = json_pack("{s:i, s:i, s:I, s:i, s:i, s:s}", "index", c->device.index, "multiprocessors",
				  c->device.multiprocessors, "scrub_auto_bytes", (json_int_t)scrub_auto_bytes(c),
				  "sm_mhz", c->device.sm_mhz, "mem_mhz", c->device.mem_mhz, "build_flags",
				  ASSAY_CUDA_FLAGS),
	};
	if (!c->info.more) {
		err_set(err, "cuda: out of memory");
		goto fail;
	}
	c->nvml = cuda_nvml_open(c->device.uuid, &why);
	json_object_set_new(c->info.more, "nvml", c->nvml ? json_true() : json_string(why));
	cuda_nvml_describe(c->nvml, c->info.more);
	return (struct backend *)(void *)c;
fail:
	gpu_close((struct backend *)(void *)c);
	return NULL;
}
