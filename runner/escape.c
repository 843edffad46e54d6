#include "escape.h"

#include "finding.h"

void escape_seen(struct subject *s, int64_t gap_ns)
{
	if (gap_ns > s->escaped_ns)
		s->escaped_ns = gap_ns;
}

/* The shortest gap of so many launches; it ends at the first that is none. */
static bool look_again(struct stage *st, struct subject *s, int64_t *least_ns, struct err *err)
{
	struct err why = {{0}};

	*least_ns = s->escaped_ns;
	for (int i = 0; i<ESCAPE_LOOKS && * least_ns> ESCAPE_LEAST_NS; i++) {
		int64_t gap = 0;
		stage_beat(st, "watched", s->name, i);
		bool ok = ready_restore(st, s->ready, &why) && ready_enqueue(st, s->ready, &why);
		if (!stage_sync(st, &gap, ok ? &why : NULL))
			ok = false;
		if (st->lost)
			return err_set(err, "%s: %s", s->name, why.text);
		if (!ok) {
			stage_fail(st, s, "launch", why.text);
			*least_ns = 0;
			return true;
		}
		if (gap < *least_ns)
			*least_ns = gap;
	}
	return true;
}

bool escape_settle(struct stage *st, struct err *err)
{
	for (int i = 0; i < st->n_subjects; i++) {
		struct subject *s = &st->subject[i];
		int64_t least_ns = 0;
		const bool suspect = s->escaped_ns > ESCAPE_LEAST_NS && subject_runs(s) && s->ready &&
				     !finding_failed(st->findings, "run", s->name);
		if (suspect && !look_again(st, s, &least_ns, err))
			return false;
		if (least_ns > ESCAPE_LEAST_NS)
			finding_add(st->findings, "run", s->name, "invalid",
				    "stream escape: %.1f us of work ran on after the arm's own stream was done, in "
				    "each of %d "
				    "launches, so the clock does not see it",
				    (double)least_ns / 1000, ESCAPE_LOOKS + 1);
		s->escaped_ns = 0;
	}
	return true;
}
