#include "sampler.h"

#include "escape.h"
#include "monotonic.h"

static struct ready *next_ready(struct sampler *s, int subject)
{
	return s->rotate ? rotate_next(s->rotate, subject) : s->st->subject[subject].ready;
}

static bool scrub(struct sampler *s, struct err *err)
{
	if (s->t->scrub == SCRUB_NONE || s->t->scrub == SCRUB_ROTATE)
		return true;
	const int64_t from = monotonic_ns();
	const bool ok = s->st->ops->scrub(s->st->be, s->t->scrub == SCRUB_AUTO ? -1 : s->t->scrub_bytes, err);
	s->st->cost.scrub_ns += monotonic_ns() - from;
	return ok;
}

/* After a launch that was waited for, outside of the clock. */
static bool look(struct sampler *s, struct ready *r, struct err *err)
{
	bool lived;

	watch_look(s->watch, r, &lived, err);
	s->broken = !lived;
	return lived;
}

/* The bracket queued behind the scrub: nothing is waited for until all launches of the sample are queued, but to look at an output. */
static bool sample_device(struct sampler *s, int subject, int batch, int64_t *sum, struct err *err)
{
	struct stage *st = s->st;
	const int at = s->counts ? watch_at(s->watch) : -1;
	int64_t ns, escaped = 0;
	int done = 0;
	bool ok = true;

	for (; ok && done < batch; done++) {
		struct ready *r = next_ready(s, subject);
		ok = ready_restore(st, r, err) && watch_before(s->watch, r, done, err) && scrub(s, err);
		const int64_t from = monotonic_ns();
		ok = ok && st->ops->mark(st->be, 2 * done, err) && ready_enqueue(st, r, err) &&
		     st->ops->mark(st->be, 2 * done + 1, err);
		st->cost.launch_ns += monotonic_ns() - from;
		if (!ok || done != at)
			continue;
		ok = stage_sync(st, &escaped, err);
		escape_seen(&st->subject[subject], escaped);
		ok = ok && look(s, r, err);
	}
	if (!stage_sync(st, &escaped, ok ? err : NULL))
		ok = false;
	escape_seen(&st->subject[subject], escaped);
	*sum = 0;
	for (int i = 0; ok && i < batch; i++) {
		ok = st->ops->elapsed(st->be, 2 * i, 2 * i + 1, &ns, err);
		*sum += ns;
	}
	return ok;
}

static bool sample_host(struct sampler *s, int subject, int batch, int64_t *sum, struct err *err)
{
	struct stage *st = s->st;
	const int at = s->counts ? watch_at(s->watch) : -1;

	*sum = 0;
	for (int i = 0; i < batch; i++) {
		struct ready *r = next_ready(s, subject);
		int64_t from, to, escaped = 0;
		bool lost = false;
		if (!ready_restore(st, r, err) || !watch_before(s->watch, r, i, err) || !scrub(s, err) ||
		    !stage_sync(st, NULL, err))
			return false;
		from = st->ops->now(st->be);
		bool ok = ready_enqueue(st, r, err);
		bool synced = st->ops->sync(st->be, &lost, ok ? err : NULL);
		to = st->ops->now(st->be);
		st->cost.launch_ns += to - from;
		st->lost = st->lost || lost;
		if (!ok || !synced)
			return false;
		*sum += to - from;
		if (st->ops->drain && !st->ops->drain(st->be, &escaped, &st->lost, err))
			return false;
		escape_seen(&st->subject[subject], escaped);
		if (i == at && !look(s, r, err))
			return false;
	}
	return true;
}

bool sampler_take(struct sampler *s, int subject, int batch, int round, int64_t *ns, struct err *err)
{
	int64_t sum;

	stage_beat(s->st, "timing", s->st->subject[subject].name, round);
	const bool ok = s->t->clock == CLOCK_DEVICE ? sample_device(s, subject, batch, &sum, err)
						    : sample_host(s, subject, batch, &sum, err);
	*ns = ok ? (sum + batch / 2) / batch : -1;
	if (s->counts)
		watch_count(s->watch, &s->st->subject[subject], batch);
	return ok;
}
