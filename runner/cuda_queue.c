/* The cuda backend's one queue. Everything that is timed goes through it in order: scrub, start, launch and stop are queued before anything
 * is waited for, so a launch's own cost on the host hides behind the scrub. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "cuda_parts.h"
#include "cuda_work.h"
#include "fill_cuda.h"

static int64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t cuda_scrub_auto_bytes(const struct cuda *c)
{
	return 2 * c->device.llc_bytes > CUDA_SCRUB_LEAST_BYTES ? 2 * c->device.llc_bytes : CUDA_SCRUB_LEAST_BYTES;
}

bool cuda_scrub_room(struct cuda *c, size_t bytes, struct err *err)
{
	if (bytes <= c->scrub_room)
		return true;
	(void)cudaFree(c->scrub_from);
	(void)cudaFree(c->scrub_to);
	c->scrub_from = c->scrub_to = NULL;
	c->scrub_room = 0;
	if (!cuda_told(cudaMalloc((void **)&c->scrub_from, bytes), "room for the scrub", err) ||
	    !cuda_told(cudaMalloc((void **)&c->scrub_to, bytes), "room for the scrub", err) ||
	    !cuda_told(fill_cuda_pattern(c->scrub_from, 0x3f9d70a4u, bytes, c->stream), "room for the scrub", err))
		return false;
	c->scrub_room = bytes;
	return true;
}

bool cuda_scrub(struct backend *b, int64_t bytes, struct err *err)
{
	struct cuda *c = cuda_of(b);
	const size_t want = (size_t)((bytes < 0 ? cuda_scrub_auto_bytes(c) : bytes) + 15) / 16 * 16;

	if (!want)
		return true;
	if (!cuda_scrub_room(c, want, err))
		return false;
	/* Lines that somebody asked to persist would outlive any traffic. */
	if (c->device.persisting_l2 && !cuda_told(cudaCtxResetPersistingL2Cache(), "reset of the persisting L2", err))
		return false;
	return cuda_told(cuda_work_copy(c->scrub_from, c->scrub_to, want, c->stream), "scrub", err);
}

bool cuda_mark(struct backend *b, int slot, struct err *err)
{
	struct cuda *c = cuda_of(b);

	if (slot < 0 || slot >= BACKEND_MARKS)
		return err_set(err, "cuda: mark %d is not in 0..%d", slot, BACKEND_MARKS - 1);
	if (!c->mark[slot] && !cuda_told(cudaEventCreate(&c->mark[slot]), "event", err))
		return false;
	return cuda_told(cudaEventRecord(c->mark[slot], c->stream), "event", err);
}

bool cuda_launch(struct backend *b, const struct launch *l, struct err *err)
{
	struct cuda *c = cuda_of(b);

	if (l->graph)
		return cuda_told(cudaGraphLaunch((cudaGraphExec_t)l->graph, c->stream), "graph launch", err);
	l->call->error[0] = '\0';
	int rc = l->ops->run(l->call, l->state);
	cudaError_t e = cudaGetLastError();
	l->call->error[ASSAY_ERROR_MAX - 1] = '\0';
	if (rc != 0)
		return err_set(err, "%s", l->call->error[0] ? l->call->error : "the arm failed and gave no reason");
	return cuda_told(e, "launch", err);
}

/* Whether the context still works: an error that comes again is one that stays. */
static bool context_lost(void)
{
	(void)cudaGetLastError();
	cudaError_t e = cudaDeviceSynchronize();
	(void)cudaGetLastError();
	return e != cudaSuccess;
}

bool cuda_sync(struct backend *b, bool *lost, struct err *err)
{
	cudaError_t e = cudaStreamSynchronize(cuda_of(b)->stream);

	*lost = false;
	if (e == cudaSuccess)
		e = cudaGetLastError();
	if (e == cudaSuccess)
		return true;
	*lost = context_lost();
	return cuda_told(e, *lost ? "the device failed, and this process can do no more on it" : "the device failed",
			 err);
}

bool cuda_drain(struct backend *b, int64_t *extra_ns, bool *lost, struct err *err)
{
	const int64_t from = clock_ns();
	cudaError_t e = cudaDeviceSynchronize();

	*extra_ns = clock_ns() - from;
	*lost = false;
	if (e == cudaSuccess)
		return true;
	*lost = context_lost();
	return cuda_told(e, "the device failed", err);
}

bool cuda_elapsed(struct backend *b, int from, int to, int64_t *ns, struct err *err)
{
	struct cuda *c = cuda_of(b);
	float ms;

	if (from < 0 || from >= BACKEND_MARKS || to < 0 || to >= BACKEND_MARKS || !c->mark[from] || !c->mark[to])
		return err_set(err, "cuda: marks %d and %d were not both made", from, to);
	if (!cuda_told(cudaEventElapsedTime(&ms, c->mark[from], c->mark[to]), "event time", err))
		return false;
	*ns = llround((double)ms * 1e6);
	return true;
}

int64_t cuda_now(struct backend *b)
{
	return clock_ns();
}

void cuda_pause(struct backend *b, int64_t ns)
{
	if (ns <= 0)
		return;
	struct timespec t = {ns / 1000000000, ns % 1000000000};
	nanosleep(&t, NULL); /* an early end by a signal is welcome: somebody wants to stop */
}

void *cuda_stream(struct backend *b)
{
	return cuda_of(b)->stream;
}

/* ---- graphs --------------------------------------------------------------------------------------------------------- */

static bool count_kernels(cudaGraph_t graph, int *n, struct err *err)
{
	size_t nodes = 0;
	bool ok = false;

	*n = 0;
	if (!cuda_told(cudaGraphGetNodes(graph, NULL, &nodes), "graph", err))
		return false;
	cudaGraphNode_t *list = calloc(nodes ? nodes : 1, sizeof *list);
	if (!list)
		return err_set(err, "cuda: out of memory for a graph of %zu nodes", nodes);
	if (!cuda_told(cudaGraphGetNodes(graph, list, &nodes), "graph", err))
		goto done;
	for (size_t i = 0; i < nodes; i++) {
		enum cudaGraphNodeType type;
		if (!cuda_told(cudaGraphNodeGetType(list[i], &type), "graph", err))
			goto done;
		*n += type == cudaGraphNodeTypeKernel;
	}
	ok = true;
done:
	free(list);
	return ok;
}

void *cuda_graph_capture(struct backend *b, const struct launch *l, int *n_kernels, struct err *err)
{
	struct cuda *c = cuda_of(b);
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;

	if (!cuda_told(cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal), "capture", err))
		return NULL;
	l->call->error[0] = '\0';
	int rc = l->ops->run(l->call, l->state);
	cudaError_t e = cudaStreamEndCapture(c->stream, &graph); /* always: else the stream stays in capture */
	if (rc != 0) {
		(void)cudaGetLastError();
		err_set(err, "%s",
			l->call->error[0] ? l->call->error : "the arm failed under capture and gave no reason");
	} else if (cuda_told(e, "capture", err) && count_kernels(graph, n_kernels, err) &&
		   cuda_told(cudaGraphInstantiate(&exec, graph, 0), "graph", err)) {
		(void)cudaGraphUpload(exec, c->stream);
	}
	if (graph)
		(void)cudaGraphDestroy(graph);
	return exec;
}

void cuda_graph_free(struct backend *b, void *graph)
{
	if (graph)
		(void)cudaGraphExecDestroy((cudaGraphExec_t)graph);
}
