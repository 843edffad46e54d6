/* An NVIDIA GPU as a device, on the CUDA runtime API: opened, described, and the one vtable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_artifact.h"
#include "cuda_nvml.h"
#include "cuda_parts.h"

bool cuda_told(int e, const char *what, struct err *err)
{
	if (e == cudaSuccess)
		return true;
	(void)cudaGetLastError();
	return err_set(err, "cuda: %s: %s (%s)", what, cudaGetErrorString((cudaError_t)e),
		       cudaGetErrorName((cudaError_t)e));
}

static const struct device_info *cuda_info(struct backend *b)
{
	return &cuda_of(b)->info;
}

static bool cuda_state(struct backend *b, struct device_state *out, struct err *err)
{
	cuda_nvml_state(cuda_of(b)->nvml, out);
	return true;
}

static json_t *cuda_artifact(struct backend *b, const struct assay_launch *launches, int n)
{
	return cuda_artifact_json(launches, n, cuda_of(b)->device.cc, cuda_of(b)->code);
}

static json_t *cuda_census(struct backend *b, const struct assay_launch *launches, int n, char *reason)
{
	return cuda_artifact_census(launches, n, cuda_of(b)->device.cc, reason);
}

/* ---- open and close ------------------------------------------------------------------------------------------------- */

static void cuda_close(struct backend *b)
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
	json_decref(c->code);
	free(c);
}

static const struct backend_ops cuda_ops = {
	.name = "cuda",
	.kind = ASSAY_CUDA,
	.close = cuda_close,
	.info = cuda_info,
	.alloc = cuda_alloc,
	.free = cuda_free,
	.upload = cuda_upload,
	.download = cuda_download,
	.copy = cuda_copy,
	.pattern = cuda_pattern,
	.scan = cuda_scan,
	.scan_all = cuda_scan_all,
	.compare = cuda_compare,
	.digest = cuda_digest,
	.fill = cuda_fill,
	.audit = cuda_audit,
	.scrub = cuda_scrub,
	.mark = cuda_mark,
	.launch = cuda_launch,
	.sync = cuda_sync,
	.elapsed = cuda_elapsed,
	.now = cuda_now,
	.graph_capture = cuda_graph_capture,
	.graph_free = cuda_graph_free,
	.state = cuda_state,
	.artifact = cuda_artifact,
	.census = cuda_census,
	.pause = cuda_pause,
	.sentinels = cuda_sentinels,
	.peak_bytes_per_s = cuda_peak_bytes,
	.peak_flop_per_s = cuda_peak_ops,
	.flop_reach = cuda_flop_reach,
	.drain = cuda_drain,
	.stream = cuda_stream,
	.probe_null = &cuda_probe_null,
	.probe_read = &cuda_probe_read,
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
	c->nvml = cuda_nvml_open(c->device.uuid, &why);
	if (!cuda_told(cudaSetDevice(c->device.index), c->device.name, err) ||
	    !cuda_told(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking), c->device.name, err) ||
	    !cuda_told(cudaMalloc((void **)&c->scratch, 256), c->device.name, err))
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
				  c->device.multiprocessors, "scrub_auto_bytes", (json_int_t)cuda_scrub_auto_bytes(c),
				  "sm_mhz", c->device.sm_mhz, "mem_mhz", c->device.mem_mhz, "build_flags",
				  ASSAY_CUDA_FLAGS),
	};
	c->code = json_object();
	if (!c->info.more || !c->code) {
		err_set(err, "cuda: out of memory");
		goto fail;
	}
	cuda_nvml_present(c->nvml);
	json_object_set_new(c->info.more, "nvml", c->nvml ? json_true() : json_string(why));
	cuda_nvml_describe(c->nvml, c->info.more);
	return (struct backend *)(void *)c;
fail:
	cuda_close((struct backend *)(void *)c);
	return NULL;
}
