/* The CPU as a device. The queue is the calling thread: everything is done at once, in order, and sync has nothing to wait for. */
#define _GNU_SOURCE /* sched_setaffinity, gettid */
#include "backend.h"

#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>

#include "census.h"
#include "fence.h"
#include "fill.h"
#include "host_artifact.h"
#include "host_cpu.h"
#include "host_sentinel.h"

#define SCRUB_UNKNOWN_BYTES ((int64_t)64 << 20) /* where the size of the last-level cache cannot be read */

struct host {
	const struct backend_ops *ops;
	struct host_cpu cpu;
	struct device_info info;
	struct host_throttle throttle;
	int64_t preemptions; /* as of the last look at the state */
	unsigned char *scrub_area;
	size_t scrub_area_bytes;
	struct sentinel_result sentinel;
	bool sentinel_done;
	bool runtime_pins; /* OMP_PROC_BIND was set: the OpenMP runtime pins its threads */
	cpu_set_t mask_before;
	int omp_before;
	volatile uint64_t keep; /* what a scrub read, so that it had to be read */
	int64_t mark_ns[BACKEND_MARKS];
};

static struct host *host_of(struct backend *b)
{
	return (struct host *)(void *)b;
}

static int64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- pinning -------------------------------------------------------------------------------------------------------- */

/* The team of a process is pinned once, but an OpenMP runtime ends threads when a team shrinks and makes new ones later, which
 * inherit the CPU of the thread that made them. So every region of ours looks whether its thread has been pinned. */
static _Thread_local int pinned_to = -1;

static void pin_self(const struct host *h)
{
	if (h->runtime_pins)
		return;
	int want = h->cpu.team[omp_get_thread_num() % h->cpu.threads];
	if (pinned_to == want)
		return;
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET((size_t)want, &one);
	if (sched_setaffinity(0, sizeof one, &one) == 0)
		pinned_to = want;
}

static void pin_team(struct host *h)
{
#pragma omp parallel num_threads(h->cpu.threads)
	pin_self(h);
}

static void unpin_team(struct host *h)
{
	if (h->runtime_pins)
		return;
#pragma omp parallel num_threads(h->cpu.threads)
	{
		sched_setaffinity(0, sizeof h->mask_before, &h->mask_before);
		pinned_to = -1;
	}
}

/* ---- memory --------------------------------------------------------------------------------------------------------- */

static void *host_alloc(struct backend *b, size_t bytes, struct err *err)
{
	struct host *h = host_of(b);
	void *p = fence_alloc(bytes);
	if (!p)
		err_set(err, "host: cannot allocate %zu bytes (%.1f GiB); this machine has %.1f GiB", bytes,
			(double)bytes / (1 << 30), (double)h->cpu.memory_bytes / (1 << 30));
	return p;
}

static void host_free(struct backend *b, void *p)
{
	fence_free(p);
}

static bool host_copy(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err)
{
	struct host *h = host_of(b);
	int n = bytes < (1u << 20) ? 1 : h->cpu.threads;
	size_t part = bytes / (size_t)n / 64 * 64;
#pragma omp parallel num_threads(n) if (n > 1)
	{
		pin_self(h);
#pragma omp for schedule(static)
		for (int k = 0; k < n; k++)
			memmove((char *)dst + part * (size_t)k, (const char *)src + part * (size_t)k,
				k == n - 1 ? bytes - part * (size_t)k : part);
	}
	return true;
}

static bool host_pattern(struct backend *b, void *dst, uint32_t word, size_t bytes, struct err *err)
{
	struct host *h = host_of(b);
	uint32_t *w = dst;
	int64_t n = (int64_t)(bytes / 4);
#pragma omp parallel for num_threads(h->cpu.threads) schedule(static) if (n > 1 << 16)
	for (int64_t i = 0; i < n; i++)
		w[i] = word;
	return true;
}

static bool host_scan(struct backend *b, const void *p, uint32_t word, size_t bytes, int64_t *n_differ, int64_t *first,
		      struct err *err)
{
	struct host *h = host_of(b);
	const uint32_t *w = p;
	int64_t n = (int64_t)(bytes / 4), differ = 0;
#pragma omp parallel for num_threads(h->cpu.threads) schedule(static) reduction(+ : differ) if (n > 1 << 16)
	for (int64_t i = 0; i < n; i++)
		differ += w[i] != word;
	*n_differ = differ;
	*first = -1;
	for (int64_t i = 0; differ && i < n; i++)
		if (w[i] != word) {
			*first = 4 * i;
			break;
		}
	return true;
}

static bool host_scan_all(struct backend *b, const struct scan_range *range, int n, bool *intact, struct err *err)
{
	int64_t differ = 0, first;
	for (int i = 0; i < n && differ == 0; i++)
		host_scan(b, range[i].at, range[i].word, range[i].bytes, &differ, &first, err);
	*intact = differ == 0;
	return true;
}

static bool host_digest(struct backend *b, const void *p, size_t bytes, uint64_t *out, struct err *err)
{
	*out = fill_digest(p, bytes);
	return true;
}

static bool host_fill(struct backend *b, void *dst, const struct fill_job *job, struct err *err)
{
	return fill_host(dst, job, err);
}

static bool host_audit(struct backend *b, const void *src, const struct fill_job *job, uint32_t readings,
		       struct fill_audit *out, struct err *err)
{
	return fill_audit_host(src, job, readings, out, err);
}

/* ---- the queue ------------------------------------------------------------------------------------------------------ */

static int64_t scrub_auto_bytes(const struct host *h)
{
	return h->cpu.scrub_bytes > 0 ? h->cpu.scrub_bytes : SCRUB_UNKNOWN_BYTES;
}

/* Makes the area that scrubs and sentinels use at least so large, touched by the team so that every page exists. */
static bool want_area(struct host *h, size_t bytes, struct err *err)
{
	if (bytes <= h->scrub_area_bytes)
		return true;
	unsigned char *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	if (!p)
		return err_set(err,
			       "host: cannot allocate %zu MiB for the scrub; name a smaller one, such as scrub: 64MiB",
			       bytes >> 20);
	free(h->scrub_area);
	h->scrub_area = p;
	h->scrub_area_bytes = bytes;
	int n = h->cpu.threads;
	size_t part = bytes / (size_t)n;
#pragma omp parallel num_threads(n)
	{
		pin_self(h);
#pragma omp for schedule(static)
		for (int k = 0; k < n; k++)
			memset(p + part * (size_t)k, 0x5A, k == n - 1 ? bytes - part * (size_t)k : part);
	}
	return true;
}

static bool host_scrub(struct backend *b, int64_t bytes, struct err *err)
{
	struct host *h = host_of(b);
	size_t want = (size_t)(bytes < 0 ? scrub_auto_bytes(h) : bytes);
	pin_team(h);
	if (!want)
		return true;
	if (!want_area(h, want, err))
		return false;
	h->keep += host_read_lines(h->scrub_area, want, h->cpu.threads);
	return true;
}

static bool slot_ok(int slot, struct err *err)
{
	if (slot >= 0 && slot < BACKEND_MARKS)
		return true;
	return err_set(err, "host: mark %d is not in 0..%d", slot, BACKEND_MARKS - 1);
}

static bool host_mark(struct backend *b, int slot, struct err *err)
{
	if (!slot_ok(slot, err))
		return false;
	host_of(b)->mark_ns[slot] = clock_ns();
	return true;
}

static bool host_launch(struct backend *b, const struct launch *l, struct err *err)
{
	if (l->graph)
		return err_set(err, "host: there are no graphs on the host; take `graph` off this arm or run it with "
				    "--backend cuda");
	l->call->error[0] = '\0';
	if (l->ops->run(l->call, l->state) == 0)
		return true;
	l->call->error[ASSAY_ERROR_MAX - 1] = '\0';
	return err_set(err, "%s", l->call->error[0] ? l->call->error : "the arm failed and gave no reason");
}

static bool host_sync(struct backend *b, bool *lost, struct err *err)
{
	*lost = false;
	return true;
}

static bool host_elapsed(struct backend *b, int from, int to, int64_t *ns, struct err *err)
{
	if (!slot_ok(from, err) || !slot_ok(to, err))
		return false;
	const struct host *h = host_of(b);
	*ns = h->mark_ns[to] - h->mark_ns[from];
	return true;
}

static int64_t host_now(struct backend *b)
{
	return clock_ns();
}

static void host_pause(struct backend *b, int64_t ns)
{
	if (ns <= 0)
		return;
	struct timespec t = {ns / 1000000000, ns % 1000000000};
	nanosleep(&t, NULL); /* an early end by a signal is welcome: somebody wants to stop */
}

/* ---- facts ---------------------------------------------------------------------------------------------------------- */

static const struct device_info *host_info(struct backend *b)
{
	return &host_of(b)->info;
}

static bool host_state(struct backend *b, struct device_state *out, struct err *err)
{
	struct host *h = host_of(b);
	struct host_throttle t;
	host_cpu_throttle(&h->cpu, &t);
	bool thermal = t.thermal != h->throttle.thermal, quota = t.quota != h->throttle.quota;
	h->throttle = t;
	struct rusage usage;
	const int64_t taken = getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : -1;
	const int64_t since = taken >= 0 && h->preemptions >= 0 ? taken - h->preemptions : -1;
	h->preemptions = taken;
	*out = (struct device_state){
		.sm_mhz = host_cpu_mhz(&h->cpu),
		.mem_mhz = -1,
		.temperature_c = -1,
		.power_w = -1,
		.throttle = (thermal ? HOST_THROTTLE_THERMAL : 0u) | (quota ? HOST_THROTTLE_QUOTA : 0u),
		.throttle_text = thermal && quota ? "thermal throttling, CPU quota of the control group used up"
				 : thermal        ? "thermal throttling"
				 : quota          ? "CPU quota of the control group used up"
						  : NULL,
		.other_processes = -1, /* a host is never exclusive; its noise is what the null arm measures */
		.preemptions = since,
	};
	return true;
}

static json_t *host_artifact(struct backend *b, const struct assay_launch *launches, int n)
{
	return host_artifact_json(launches, n);
}

static json_t *host_census(struct backend *b, const struct assay_launch *launches, int n, char *reason)
{
	return census_of_host(launches, n, reason);
}

static double host_peak_bytes(struct backend *b)
{
	const struct host *h = host_of(b);
	return h->sentinel_done ? h->sentinel.bytes_per_s : 0;
}

static double host_peak_flop(struct backend *b)
{
	const struct host *h = host_of(b);
	return h->sentinel_done ? h->sentinel.flop_per_s : 0;
}

static double host_flop_reach(struct backend *b)
{
	(void)b;
	return host_sentinel_reach();
}

static json_t *host_sentinels(struct backend *b, struct err *err)
{
	struct host *h = host_of(b);
	int64_t bytes = scrub_auto_bytes(h);
	if (!want_area(h, (size_t)bytes, err))
		return NULL;
	const double bytes_before = host_peak_bytes(b), flop_before = host_peak_flop(b);
	pin_team(h);
	if (!host_sentinel_run(h->scrub_area, (size_t)bytes, h->cpu.threads, clock_ns, &h->sentinel, err))
		return NULL;
	/* A neighbour can only slow it: the peak is the highest rate that was ever seen. */
	h->sentinel.bytes_per_s = fmax(h->sentinel.bytes_per_s, bytes_before);
	h->sentinel.flop_per_s = fmax(h->sentinel.flop_per_s, flop_before);
	h->sentinel_done = true;
	json_t *o = host_sentinel_json(&h->sentinel);
	if (!o)
		err_set(err, "host: out of memory");
	return o;
}

static void host_close(struct backend *b)
{
	struct host *h = host_of(b);
	unpin_team(h);
	omp_set_num_threads(h->omp_before);
	json_decref(h->info.more);
	free(h->scrub_area);
	free(h);
}

static const struct backend_ops host_ops = {
	.name = "host",
	.kind = ASSAY_HOST,
	.close = host_close,
	.info = host_info,
	.alloc = host_alloc,
	.free = host_free,
	.upload = host_copy,
	.download = host_copy,
	.copy = host_copy,
	.pattern = host_pattern,
	.scan = host_scan,
	.scan_all = host_scan_all,
	.digest = host_digest,
	.fill = host_fill,
	.audit = host_audit,
	.scrub = host_scrub,
	.mark = host_mark,
	.launch = host_launch,
	.sync = host_sync,
	.elapsed = host_elapsed,
	.now = host_now,
	.graph_capture = NULL,
	.graph_free = NULL,
	.state = host_state,
	.artifact = host_artifact,
	.census = host_census,
	.pause = host_pause,
	.sentinels = host_sentinels,
	.peak_bytes_per_s = host_peak_bytes,
	.peak_flop_per_s = host_peak_flop,
	.flop_reach = host_flop_reach,
};

/* ---- open ----------------------------------------------------------------------------------------------------------- */

static bool device_matches(const struct backend_config *cfg, const char *model, const char *uuid, struct err *err)
{
	const char *want = cfg ? cfg->device : NULL;
	if (!want || strcmp(want, "0") == 0 || strcasecmp(want, model) == 0 || strcasecmp(want, uuid) == 0)
		return true;
	return err_set(err, "no device '%s' on the host backend: there is one, device 0 (%s, %s)", want, model, uuid);
}

bool backend_host_peek(const struct backend_config *cfg, struct device_peek *out, struct err *err)
{
	struct host_cpu c;
	memset(out, 0, sizeof *out);
	if (!host_cpu_read(&c, 0, err) || !device_matches(cfg, c.model, c.uuid, err))
		return false;
	snprintf(out->name, sizeof out->name, "%s", c.model);
	snprintf(out->uuid, sizeof out->uuid, "%s", c.uuid);
	return true;
}

bool backend_host_places(const struct backend_config *cfg, char *places, size_t cap, int *threads, struct err *err)
{
	struct host_cpu c;
	if (!host_cpu_read(&c, cfg ? cfg->threads : 0, err))
		return false;
	*threads = c.threads;
	return host_cpu_places(&c, places, cap) || err_set(err, "host: too many threads to name their places");
}

struct backend *backend_host_open(const struct backend_config *cfg, struct err *err)
{
	struct host *h = calloc(1, sizeof *h);
	if (!h) {
		err_set(err, "host: out of memory");
		return NULL;
	}
	h->ops = &host_ops;
	if (!host_cpu_read(&h->cpu, cfg ? cfg->threads : 0, err) ||
	    !device_matches(cfg, h->cpu.model, h->cpu.uuid, err))
		goto fail;
	if (sched_getaffinity(0, sizeof h->mask_before, &h->mask_before) != 0) {
		err_set(err, "host: cannot read the CPU affinity of this process");
		goto fail;
	}
	h->runtime_pins = omp_get_proc_bind() != omp_proc_bind_false;
	h->omp_before = omp_get_max_threads();
	omp_set_dynamic(0);
	omp_set_num_threads(h->cpu.threads); /* regions without num_threads, as in the fill, are the team too */
	json_t *more = host_cpu_json(&h->cpu);
	if (!more) {
		err_set(err, "host: out of memory");
		goto fail;
	}
	json_object_set_new(more, "pinned_by", json_string(h->runtime_pins ? "OpenMP runtime" : "sched_setaffinity"));
	json_object_set_new(more, "scrub_auto_bytes", json_integer(scrub_auto_bytes(h)));
	pin_team(h);
	host_cpu_throttle(&h->cpu, &h->throttle);
	h->info = (struct device_info){
		.name = h->cpu.model,
		.uuid = h->cpu.uuid,
		.threads = h->cpu.threads,
		.memory_bytes = h->cpu.memory_bytes,
		.llc_bytes = h->cpu.llc_bytes,
		.more = more,
	};
	return (struct backend *)(void *)h;
fail:
	free(h);
	return NULL;
}
