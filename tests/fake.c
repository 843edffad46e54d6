#include "fake_parts.h"

#include <stdlib.h>
#include <string.h>

#include "fill.h"

enum { ALIGN_BYTES = 256, HEAD_BYTES = 256 };

static struct fake *fake_of(struct backend *b)
{
	return (struct fake *)(void *)b;
}

static const struct fake *fake_const(const struct backend *b)
{
	return (const struct fake *)(const void *)b;
}

static bool counted(int64_t k, int64_t from, int64_t n)
{
	return from > 0 && k >= from && k < from + n;
}

/* ---- vtable --------------------------------------------------------------------------------------------------------- */

static void fake_close(struct backend *b)
{
	struct fake *f = fake_of(b);
	json_decref(f->info.more);
	free(f->event);
	free(f);
}

static const struct device_info *fake_info(struct backend *b)
{
	return &fake_of(b)->info;
}

static bool gone(const struct fake *f, struct err *err)
{
	if (f->lost)
		err_set(err, "fake: the device is lost");
	return f->lost;
}

static void *fake_alloc(struct backend *b, size_t bytes, struct err *err)
{
	struct fake *f = fake_of(b);
	if (gone(f, err))
		return NULL;
	if (f->s.alloc_limit_bytes > 0 && bytes > (size_t)f->s.alloc_limit_bytes) {
		err_set(err, "fake: cannot allocate %zu bytes, there are %lld", bytes,
			(long long)f->s.alloc_limit_bytes);
		return NULL;
	}
	if (f->s.memory_bytes > 0 && f->in_use + (int64_t)bytes > f->s.memory_bytes) {
		err_set(err, "fake: cannot allocate %zu bytes, the memory is full", bytes);
		return NULL;
	}
	unsigned char *p =
		aligned_alloc(ALIGN_BYTES, HEAD_BYTES + (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES);
	if (!p) {
		err_set(err, "fake: out of memory");
		return NULL;
	}
	memcpy(p, &bytes, sizeof bytes);
	f->in_use += (int64_t)bytes;
	return p + HEAD_BYTES;
}

static void fake_free(struct backend *b, void *p)
{
	if (!p)
		return;
	unsigned char *head = (unsigned char *)p - HEAD_BYTES;
	size_t bytes;
	memcpy(&bytes, head, sizeof bytes);
	fake_of(b)->in_use -= (int64_t)bytes;
	free(head);
}

static bool fake_copy(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err)
{
	if (gone(fake_of(b), err))
		return false;
	if (bytes)
		memmove(dst, src, bytes);
	return true;
}

static bool fake_pattern(struct backend *b, void *dst, uint32_t word, size_t bytes, struct err *err)
{
	if (gone(fake_of(b), err))
		return false;
	for (size_t i = 0; i < bytes / 4; i++)
		memcpy((unsigned char *)dst + 4 * i, &word, 4);
	return true;
}

static bool fake_scan(struct backend *b, const void *p, uint32_t word, size_t bytes, int64_t *n_differ, int64_t *first,
		      struct err *err)
{
	if (gone(fake_of(b), err))
		return false;
	*n_differ = 0;
	*first = -1;
	for (size_t i = 0; i < bytes / 4; i++)
		if (memcmp((const unsigned char *)p + 4 * i, &word, 4) != 0 && (*n_differ)++ == 0)
			*first = (int64_t)(4 * i);
	return true;
}

static bool fake_scan_all(struct backend *b, const struct scan_range *range, int n, bool *intact, struct err *err)
{
	int64_t differ = 0, first;
	for (int i = 0; i < n && differ == 0; i++)
		if (!fake_scan(b, range[i].at, range[i].word, range[i].bytes, &differ, &first, err))
			return false;
	*intact = differ == 0;
	return true;
}

static bool fake_digest(struct backend *b, const void *p, size_t bytes, uint64_t *out, struct err *err)
{
	struct fake *f = fake_of(b);
	*out = fill_digest(p, bytes);
	f->digests++;
	if (f->s.digest_lie > 0 && f->digests >= f->s.digest_lie)
		*out = 0x11E;
	if (f->s.stale_digest_bytes > 0 && (int64_t)bytes == f->s.stale_digest_bytes)
		*out = f->stale = f->stale ? f->stale : *out;
	return !gone(f, err);
}

static bool fake_compare(struct backend *b, const void *x, const void *y, size_t bytes, int64_t *n_differ,
			 int64_t *first, struct err *err)
{
	struct fake *f = fake_of(b);
	const unsigned char *p = x, *q = y;
	f->comparisons++;
	*n_differ = 0;
	*first = -1;
	for (size_t i = 0; i < bytes; i++)
		if (p[i] != q[i] && (*n_differ)++ == 0)
			*first = (int64_t)i;
	if (f->s.equal_lie > 0 && f->comparisons >= f->s.equal_lie) {
		*n_differ = 0;
		*first = -1;
	}
	if (f->s.differ_lie > 0 && f->comparisons >= f->s.differ_lie) {
		*n_differ = (int64_t)bytes;
		*first = 0;
	}
	return !gone(f, err);
}

static bool fake_scrub(struct backend *b, int64_t bytes, struct err *err)
{
	struct fake *f = fake_of(b);
	if (gone(f, err))
		return false;
	if (bytes == 0)
		return true;
	f->scrubs++;
	if (f->scrubs == f->s.scrub_fail_call)
		return err_set(err, "scripted failure of the scrub");
	f->last_scrub = bytes;
	fake_pass_time(f, f->s.scrub_ns > 0 ? f->s.scrub_ns : 1000);
	f->scrubbed = true;
	return true;
}

static bool fake_mark(struct backend *b, int slot, struct err *err)
{
	struct fake *f = fake_of(b);
	if (gone(f, err))
		return false;
	if (slot < 0 || slot >= BACKEND_MARKS)
		return err_set(err, "fake: mark %d is not in 0..%d", slot, BACKEND_MARKS - 1);
	f->mark_ns[slot] = f->clock_ns + f->queued_ns;
	return true;
}

static bool remember(struct fake *f, const struct fake_event *e)
{
	if (f->launches > f->event_room) {
		int64_t room = f->event_room ? 2 * f->event_room : 256;
		struct fake_event *p = realloc(f->event, (size_t)room * sizeof *p);
		if (!p)
			return false;
		f->event = p;
		f->event_room = room;
	}
	f->event[f->launches - 1] = *e;
	return true;
}

static bool fake_launch(struct backend *b, const struct launch *l, struct err *err)
{
	struct fake *f = fake_of(b);
	if (gone(f, err))
		return false;
	const int64_t k = ++f->launches;
	const double ns = fake_duration(f, l, k);
	if (!remember(f, &(struct fake_event){l->ops, l->call->arm_arg, ns, f->scrubbed, l->graph != NULL,
					      l->call->tensor ? l->call->tensor[0] : NULL}))
		return err_set(err, "fake: out of memory");
	fake_pass_time(f, ns);
	f->scrubbed = false;
	if (f->s.lost_launch > 0 && k >= f->s.lost_launch) {
		f->lost = true; /* as on a GPU: the launch itself is accepted, the wait for it tells */
		return true;
	}
	if (k == f->s.fail_launch || (f->s.fail_arm && l->call->arm_arg == f->s.fail_arm && k >= f->s.fail_arm_from) ||
	    (f->s.fail_every > 0 && k % f->s.fail_every == 0))
		return err_set(err, "scripted failure");
	if (f->s.silent_launch > 0 && k >= f->s.silent_launch)
		return true;
	if (l->graph && f->s.graph_empty)
		return true;
	l->call->error[0] = '\0';
	if (l->ops->run(l->call, l->state) != 0)
		return err_set(err, "%s", l->call->error[0] ? l->call->error : "the arm failed and gave no reason");
	if (k == f->s.flip_launch)
		*(unsigned char *)l->call->tensor[f->s.flip_tensor] ^= 1;
	return true;
}

/* As on a device, nothing runs while it is captured; what the arm reads of its environment then is fixed by it. */
static void *fake_graph_capture(struct backend *b, const struct launch *l, int *n_kernels, struct err *err)
{
	struct fake *f = fake_of(b);
	if (gone(f, err))
		return NULL;
	f->graphs++;
	*n_kernels = f->s.graph_kernels > 0 ? f->s.graph_kernels : 1;
	if (f->s.captured)
		f->s.captured(f->s.ctx, l);
	return &f->s.graphs;
}

static void fake_graph_free(struct backend *b, void *graph)
{
	fake_of(b)->graphs_freed += graph != NULL;
}

static bool fake_sync(struct backend *b, bool *lost, struct err *err)
{
	struct fake *f = fake_of(b);
	f->clock_ns += f->queued_ns;
	f->queued_ns = 0;
	if (f->launches > 0 && f->launches == f->s.wait_fails_launch) {
		f->s.wait_fails_launch = 0;
		*lost = false;
		return err_set(err, "scripted failure of the wait");
	}
	*lost = fake_of(b)->lost;
	return !gone(fake_of(b), err);
}

static bool fake_drain(struct backend *b, int64_t *extra_ns, bool *lost, struct err *err)
{
	struct fake *f = fake_of(b);
	*lost = f->lost;
	*extra_ns = 0;
	if (gone(f, err))
		return false;
	f->drain_calls++;
	*extra_ns = f->s.gap_ns(f->s.gap_ctx, f->drain_calls, f->launches ? &f->event[f->launches - 1] : NULL);
	f->clock_ns += (double)*extra_ns;
	return true;
}

static bool fake_elapsed(struct backend *b, int from, int to, int64_t *ns, struct err *err)
{
	struct fake *f = fake_of(b);
	if (gone(f, err))
		return false;
	if (from < 0 || from >= BACKEND_MARKS || to < 0 || to >= BACKEND_MARKS)
		return err_set(err, "fake: marks %d and %d are not in 0..%d", from, to, BACKEND_MARKS - 1);
	double factor = f->s.marks_factor != 0 ? f->s.marks_factor : 1;
	*ns = f->s.elapsed_zero ? 0 : fake_ticks(f, (f->mark_ns[to] - f->mark_ns[from]) * factor);
	return true;
}

static int64_t fake_now(struct backend *b)
{
	struct fake *f = fake_of(b);
	f->clock_ns += 1; /* reading a clock takes time; and a loop that waits for a later one must end */
	if (++f->now_calls == f->s.now_jump_call)
		f->clock_ns += (double)f->s.now_jump_ns;
	return fake_ticks(f, f->clock_ns);
}

static bool fake_state(struct backend *b, struct device_state *out, struct err *err)
{
	struct fake *f = fake_of(b);
	if (gone(f, err))
		return false;
	const int64_t k = ++f->state_calls;
	const bool throttled = counted(k, f->s.throttle_call, f->s.throttle_calls);
	*out = (struct device_state){
		.sm_mhz = f->s.sm_mhz > 0 ? f->s.sm_mhz : 1000,
		.mem_mhz = -1,
		.temperature_c = 40,
		.power_w = 100,
		.throttle = throttled,
		.throttle_text = throttled ? "scripted throttling" : NULL,
		.other_processes = counted(k, f->s.shared_call, f->s.shared_calls),
		.preemptions = -1,
	};
	return true;
}

static json_t *fake_artifact(struct backend *b, const struct assay_launch *launches, int n)
{
	fake_of(b)->artifact_calls++;
	return json_pack("{s:n, s:s, s:i}", "hash", "hash_reason", "a fake device has no machine code", "launches", n);
}

static void fake_pause(struct backend *b, int64_t ns)
{
	fake_of(b)->clock_ns += ns > 0 ? (double)ns : 0;
}

static json_t *fake_sentinels(struct backend *b, struct err *err)
{
	if (gone(fake_of(b), err))
		return NULL;
	fake_of(b)->sentinel_calls++;
	if (fake_of(b)->s.sentinels_fail) {
		err_set(err, "scripted failure of the sentinels");
		return NULL;
	}
	return json_pack("{s:[i,i,i], s:[i,i,i], s:[i,i,i]}", "copy", 1000, 1001, 999, "arithmetic", 2000, 2002, 1998,
			 "latency", 300, 300, 301);
}

static double fake_peak_bytes(struct backend *b)
{
	const struct fake *f = fake_of(b);
	const bool quiet = f->s.quiet_sentinels > 0 && f->sentinel_calls >= f->s.quiet_sentinels;
	return quiet ? f->s.quiet_bytes_per_s : f->s.peak_bytes_per_s;
}

static double fake_peak_flop(struct backend *b)
{
	return fake_of(b)->s.peak_flop_per_s;
}

static double fake_flop_reach(struct backend *b)
{
	const double reach = fake_of(b)->s.flop_reach;
	return reach < 0 ? 0 : reach > 0 ? reach : 1;
}

static const struct backend_ops fake_ops = {
	.name = "fake",
	.kind = ASSAY_HOST,
	.close = fake_close,
	.info = fake_info,
	.alloc = fake_alloc,
	.free = fake_free,
	.upload = fake_copy,
	.download = fake_copy,
	.copy = fake_copy,
	.pattern = fake_pattern,
	.scan = fake_scan,
	.scan_all = fake_scan_all,
	.digest = fake_digest,
	.scrub = fake_scrub,
	.mark = fake_mark,
	.launch = fake_launch,
	.sync = fake_sync,
	.elapsed = fake_elapsed,
	.now = fake_now,
	.state = fake_state,
	.artifact = fake_artifact,
	.pause = fake_pause,
	.sentinels = fake_sentinels,
	.peak_bytes_per_s = fake_peak_bytes,
	.peak_flop_per_s = fake_peak_flop,
	.flop_reach = fake_flop_reach,
};

struct backend *fake_create(const struct fake_script *s)
{
	struct fake *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	if (s)
		f->s = *s;
	f->table = fake_ops;
	if (f->s.compares)
		f->table.compare = fake_compare;
	if (f->s.graphs) {
		f->table.graph_capture = fake_graph_capture;
		f->table.graph_free = fake_graph_free;
	}
	if (f->s.gap_ns)
		f->table.drain = fake_drain;
	f->ops = &f->table;
	f->random = f->s.seed;
	f->clock_ns = 1e9; /* a clock at 0 would hide a forgotten mark */
	f->info = (struct device_info){
		.name = "Fake Device",
		.uuid = "FAKE-0",
		.threads = f->s.threads ? f->s.threads : 1,
		.memory_bytes = (int64_t)1 << (f->s.small_memory ? 20 : 33),
		.llc_bytes = 1 << 20,
		.more = json_object(),
	};
	return (struct backend *)(void *)f;
}

struct fake_script *fake_script_of(struct backend *b)
{
	return &fake_of(b)->s;
}

int64_t fake_artifacts(const struct backend *b)
{
	return fake_const(b)->artifact_calls;
}

int64_t fake_drains(const struct backend *b)
{
	return fake_const(b)->drain_calls;
}

int64_t fake_launches(const struct backend *b)
{
	return fake_const(b)->launches;
}

int64_t fake_graphs(const struct backend *b, int64_t *freed)
{
	if (freed)
		*freed = fake_const(b)->graphs_freed;
	return fake_const(b)->graphs;
}

const struct fake_event *fake_event_at(const struct backend *b, int64_t k)
{
	const struct fake *f = fake_const(b);
	return k >= 1 && k <= f->launches ? &f->event[k - 1] : NULL;
}

int64_t fake_memory_in_use(const struct backend *b)
{
	return fake_const(b)->in_use;
}

int64_t fake_scrubs(const struct backend *b, int64_t *last_bytes)
{
	if (last_bytes)
		*last_bytes = fake_const(b)->last_scrub;
	return fake_const(b)->scrubs;
}
