#include "calibrate.h"

#include <stdlib.h>
#include <string.h>

#include "stats.h"

enum { TICKS = 256, BRACKETS = 21, READS = 9, CLOCKS = 2, SCRUBS = 8, LINE = 64 };
/* Looks at a scrub before it is called unproven, and the time between two of them: what disturbs one should be over by then. */
enum { SCRUB_LOOKS = 4, SCRUB_PAUSE_NS = 20000000 };

struct calibration {
	struct backend *be;
	const struct backend_ops *ops;
	bool have_clock[CLOCKS];
	double tick_ns[CLOCKS];
	int64_t floor_ns[CLOCKS];
	struct {
		enum scrub_kind kind;
		int64_t bytes;
		struct scrub_proof proof;
	} scrub[SCRUBS];
	int n_scrubs;
	json_t *sentinels;
	bool have_sentinels;
};

struct calibration *calibration_create(struct backend *be)
{
	struct calibration *c = calloc(1, sizeof(*c));

	if (c) {
		c->be = be;
		c->ops = backend_ops_of(be);
	}
	return c;
}

void calibration_destroy(struct calibration *c)
{
	if (!c)
		return;
	json_decref(c->sentinels);
	free(c);
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static bool sync(struct calibration *c, struct err *err)
{
	bool lost;
	return c->ops->sync(c->be, &lost, err);
}

/* The smallest nonzero reading and the smallest nonzero difference of two readings, whichever is less: events of a device are never
 * one tick apart, but their distances are whole ticks. */
static bool measure_tick(struct calibration *c, enum clock_kind clock, double *tick_ns, struct err *err)
{
	int64_t x[TICKS], least = 0;

	if (clock == CLOCK_DEVICE) {
		for (int i = 0; i <= TICKS; i++)
			if (!c->ops->mark(c->be, i, err))
				return false;
		if (!sync(c, err))
			return false;
		for (int i = 0; i < TICKS; i++)
			if (!c->ops->elapsed(c->be, i, i + 1, &x[i], err))
				return false;
	} else {
		for (int i = 0; i < TICKS; i++) {
			int64_t from = c->ops->now(c->be);
			x[i] = c->ops->now(c->be) - from;
		}
	}
	qsort(x, TICKS, sizeof(*x), ascending);
	for (int i = 0; i < TICKS; i++) {
		int64_t step = i ? x[i] - x[i - 1] : 0;
		if (x[i] > 0 && (!least || x[i] < least))
			least = x[i];
		if (step > 0 && (!least || step < least))
			least = step;
	}
	/* A clock that never moved in so many readings is coarser than all of them: waited for, longer and longer. */
	for (int64_t wait = 1; !least && wait < 100000000; wait *= 2) {
		int64_t from = c->ops->now(c->be), now = from;
		if (clock == CLOCK_DEVICE && !c->ops->mark(c->be, 0, err))
			return false;
		while (now - from < wait)
			now = c->ops->now(c->be);
		least = now - from;
		if (clock == CLOCK_DEVICE &&
		    (!c->ops->mark(c->be, 1, err) || !sync(c, err) || !c->ops->elapsed(c->be, 0, 1, &least, err)))
			return false;
	}
	*tick_ns = least > 0 ? (double)least : 1;
	return true;
}

static int null_run(const struct assay_call *call, void *state)
{
	(void)call;
	(void)state;
	return 0;
}

/* One bracketed launch. */
static bool bracket(struct calibration *c, enum clock_kind clock, const struct launch *l, int64_t *ns, struct err *err)
{
	if (clock == CLOCK_DEVICE)
		return c->ops->mark(c->be, 0, err) && c->ops->launch(c->be, l, err) && c->ops->mark(c->be, 1, err) &&
		       sync(c, err) && c->ops->elapsed(c->be, 0, 1, ns, err);
	if (!sync(c, err))
		return false;
	int64_t from = c->ops->now(c->be);
	bool ok = c->ops->launch(c->be, l, err) && sync(c, err);
	*ns = c->ops->now(c->be) - from;
	return ok;
}

static void call_begin(struct calibration *c, struct assay_call *call, char *error)
{
	*call = (struct assay_call){.threads = c->ops->info(c->be)->threads, .error = error};
	call->stream = c->ops->stream ? c->ops->stream(c->be) : NULL;
	error[0] = '\0';
}

static bool measure_floor(struct calibration *c, enum clock_kind clock, int64_t *floor_ns, struct err *err)
{
	static const struct assay_arm_ops own = {.run = null_run};
	static const struct assay_point nowhere;
	const struct assay_arm_ops *ops = c->ops->probe_null           ? c->ops->probe_null
					  : c->ops->kind == ASSAY_HOST ? &own
								       : NULL;
	char error[ASSAY_ERROR_MAX];
	struct assay_call call;
	struct launch l = {.ops = ops, .call = &call};
	int64_t x[BRACKETS];

	*floor_ns = 0;
	if (!ops)
		return true;
	call_begin(c, &call, error);
	call.point = &nowhere;
	for (int i = -3; i < BRACKETS; i++) {
		int64_t ns;
		/* On a device the bracket is hidden behind a scrub, as in the rounds. */
		if (c->ops->kind != ASSAY_HOST && !c->ops->scrub(c->be, -1, err))
			return false;
		if (!bracket(c, clock, &l, &ns, err))
			return err_prefix(err, "null launch");
		if (i >= 0)
			x[i] = ns;
	}
	qsort(x, BRACKETS, sizeof(*x), ascending);
	*floor_ns = x[BRACKETS / 2];
	return true;
}

bool calibration_clock(struct calibration *c, enum clock_kind clock, double *tick_ns, int64_t *floor_ns,
		       struct err *err)
{
	if (!c->have_clock[clock]) {
		if (!measure_tick(c, clock, &c->tick_ns[clock], err) ||
		    !measure_floor(c, clock, &c->floor_ns[clock], err))
			return false;
		c->have_clock[clock] = true;
	}
	*tick_ns = c->tick_ns[clock];
	*floor_ns = c->floor_ns[clock];
	return true;
}

/* ---- scrub proof ------------------------------------------------------------------------------------------------------ */

/* A chain through all lines of the buffer in random order (one cycle): each load waits for the one before. */
static int chain_plan(const struct assay_call *call, void **state)
{
	size_t n = (size_t)call->shape[0].dim[0] / LINE;
	char *base = call->tensor[0];
	uint32_t *next = malloc(n * sizeof(*next));
	uint64_t s = 0x5EED;

	*state = NULL;
	if (!next)
		return -1;
	for (size_t i = 0; i < n; i++)
		next[i] = (uint32_t)i;
	for (size_t i = n - 1; i > 0; i--) {
		s = s * 6364136223846793005u + 1442695040888963407u;
		size_t k = (size_t)((s >> 33) % i);
		uint32_t keep = next[i];
		next[i] = next[k];
		next[k] = keep;
	}
	for (size_t i = 0; i < n; i++)
		memcpy(base + i * LINE, &next[i], sizeof(*next));
	free(next);
	return 0;
}

static int chain_run(const struct assay_call *call, void *state)
{
	size_t n = (size_t)call->shape[0].dim[0] / LINE;
	const char *base = call->tensor[0];
	uint32_t at = 0;

	(void)state;
	for (size_t i = 0; i < n; i++)
		memcpy(&at, base + (size_t)at * LINE, sizeof(at));
	/* The walk ends where it began; the compiler cannot know, so it has to walk. */
	if (at != 0 && call->error)
		call->error[0] = '\0';
	return 0;
}

static bool scrub_once(struct calibration *c, const struct timing *t, struct err *err)
{
	return c->ops->scrub(c->be, t->scrub == SCRUB_AUTO ? -1 : t->scrub_bytes, err);
}

static bool measure_scrub(struct calibration *c, const struct timing *t, struct scrub_proof *out, struct err *err)
{
	static const struct assay_arm_ops own = {.plan = chain_plan, .run = chain_run};
	static const struct assay_point nowhere;
	const struct assay_arm_ops *ops = c->ops->probe_read           ? c->ops->probe_read
					  : c->ops->kind == ASSAY_HOST ? &own
								       : NULL;
	enum clock_kind clock = c->ops->kind == ASSAY_HOST ? CLOCK_LAUNCH_TO_COMPLETION : CLOCK_DEVICE;
	int64_t llc = c->ops->info(c->be)->llc_bytes, bytes = llc > 0 ? llc / 8 : 1 << 20, x[READS], ns;
	char error[ASSAY_ERROR_MAX];
	struct assay_shape shape;
	struct assay_call call;
	struct launch l = {.ops = ops, .call = &call};
	void *tensor[1], *state = NULL;
	bool ok = false, planned = false;

	memset(out, 0, sizeof(*out));
	if (!ops)
		return true;
	/* On the host small enough to be warm even where neighbours share the last-level cache. */
	bytes = c->ops->kind == ASSAY_HOST ? 128 << 10 : bytes < 256 << 10 ? 256 << 10 : bytes;
	bytes = bytes / LINE * LINE;
	tensor[0] = c->ops->alloc(c->be, (size_t)bytes, err);
	if (!tensor[0])
		return false;
	shape = (struct assay_shape){.rank = 1, .dim = {bytes}};
	call_begin(c, &call, error);
	call.point = &nowhere;
	call.tensor = tensor;
	call.shape = &shape;
	if (!c->ops->pattern(c->be, tensor[0], 0, (size_t)bytes, err) || !sync(c, err))
		goto done;
	if (ops->plan && ops->plan(&call, &state) != 0) {
		err_set(err, "%s", error[0] ? error : "the probe of the scrub cannot be planned");
		goto done;
	}
	planned = true;
	l.state = state;
	for (int i = -2; i < READS; i++) {
		if (!bracket(c, clock, &l, &ns, err))
			goto done;
		if (i >= 0)
			x[i] = ns;
	}
	qsort(x, READS, sizeof(*x), ascending);
	out->warm_ns = x[READS / 2];
	for (int i = 0; i < READS; i++)
		if (!scrub_once(c, t, err) || !bracket(c, clock, &l, &x[i], err))
			goto done;
	qsort(x, READS, sizeof(*x), ascending);
	out->scrubbed_ns = x[READS / 2];
	out->probe_bytes = bytes;
	out->measured = true;
	out->ratio = out->warm_ns > 0 ? (double)out->scrubbed_ns / (double)out->warm_ns : 0;
	out->proven = out->ratio >= (c->ops->kind == ASSAY_HOST ? CALIBRATE_SCRUB_RATIO_HOST : CALIBRATE_SCRUB_RATIO);
	ok = true;
done:
	if (planned && ops->finish)
		ops->finish(state);
	c->ops->free(c->be, tensor[0]);
	return ok;
}

bool calibration_scrub(struct calibration *c, const struct timing *t, struct scrub_proof *out, struct err *err)
{
	struct scrub_proof *known = NULL, look;
	int looks = SCRUB_LOOKS;

	memset(out, 0, sizeof(*out));
	if (t->scrub == SCRUB_NONE || t->scrub == SCRUB_ROTATE)
		return true;
	for (int i = 0; i < c->n_scrubs && !known; i++)
		if (c->scrub[i].kind == t->scrub && (t->scrub == SCRUB_AUTO || c->scrub[i].bytes == t->scrub_bytes))
			known = &c->scrub[i].proof;
	if (known) {
		*out = *known;
		looks = known->measured && !known->proven ? 1 : 0;
	}
	/* Interference can hide an eviction that did happen, never make one up: more looks are fair, and what was not proven then is asked
	 * again for the next cell. */
	for (int i = 0; i < looks; i++) {
		if (i > 0 && c->ops->pause)
			c->ops->pause(c->be, SCRUB_PAUSE_NS);
		if (!measure_scrub(c, t, &look, err))
			return err_prefix(err, "scrub proof");
		if (!out->measured || look.ratio > out->ratio)
			*out = look;
		if (!look.measured || look.proven)
			break;
	}
	if (known) {
		*known = *out;
	} else if (c->n_scrubs < SCRUBS) {
		c->scrub[c->n_scrubs].kind = t->scrub;
		c->scrub[c->n_scrubs].bytes = t->scrub_bytes;
		c->scrub[c->n_scrubs++].proof = *out;
	}
	return true;
}

int64_t calibration_scrub_bytes(struct calibration *c, const struct timing *t)
{
	const json_t *automatic = json_object_get(c->ops->info(c->be)->more, "scrub_auto_bytes");

	if (t->scrub == SCRUB_NONE || t->scrub == SCRUB_ROTATE)
		return 0;
	if (t->scrub == SCRUB_BYTES)
		return t->scrub_bytes;
	return json_is_integer(automatic) ? json_integer_value(automatic) : -1;
}

static void set_positive(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, v > 0 ? json_real(v) : json_null());
}

json_t *calibration_json(struct calibration *c, const struct timing *t, struct err *err)
{
	struct scrub_proof proof;
	double tick_ns;
	int64_t floor_ns, bytes = calibration_scrub_bytes(c, t);
	json_t *o, *s = json_null();

	if (!calibration_clock(c, t->clock, &tick_ns, &floor_ns, err) || !calibration_scrub(c, t, &proof, err))
		return NULL;
	if (!c->have_sentinels) {
		c->sentinels = c->ops->sentinels ? c->ops->sentinels(c->be, err) : NULL;
		c->have_sentinels = true;
	}
	o = json_object();
	json_object_set_new(o, "clock", json_string(t->clock == CLOCK_DEVICE ? "device" : "launch_to_completion"));
	json_object_set_new(o, "tick_ns", json_real(tick_ns));
	json_object_set_new(o, "null_launch_ns", floor_ns > 0 ? json_integer(floor_ns) : json_null());
	if (proof.measured) {
		s = json_object();
		json_object_set_new(s, "bytes", bytes >= 0 ? json_integer(bytes) : json_null());
		json_object_set_new(s, "probe_bytes", json_integer(proof.probe_bytes));
		json_object_set_new(s, "warm_ns", json_integer(proof.warm_ns));
		json_object_set_new(s, "scrubbed_ns", json_integer(proof.scrubbed_ns));
		json_object_set_new(s, "ratio", json_real(proof.ratio));
		json_object_set_new(s, "proven", json_boolean(proof.proven));
	}
	json_object_set_new(o, "scrub", s);
	set_positive(o, "peak_bytes_per_s", c->ops->peak_bytes_per_s ? c->ops->peak_bytes_per_s(c->be) : 0);
	set_positive(o, "peak_flop_per_s", c->ops->peak_flop_per_s ? c->ops->peak_flop_per_s(c->be) : 0);
	json_object_set_new(o, "sentinels", c->sentinels ? json_incref(c->sentinels) : json_null());
	s = json_object();
	json_object_set_new(s, "launches", json_integer(t->warmup_launches));
	json_object_set_new(s, "ns", json_integer(t->warmup_ns));
	json_object_set_new(o, "warmup", s);
	return o;
}
