#include "escape.h"

#include "finding.h"

void escape_seen(struct subject *s, int64_t gap_ns)
{
	if (gap_ns > s->escaped_ns)
		s->escaped_ns = gap_ns;
	s->escapes += gap_ns > ESCAPE_LEAST_NS;
}

struct looks {
	int n, gaps;
	int64_t least_ns; /* the shortest gap */
};

/* Launches until it is clear whether enough of them show a gap. */
static bool look_again(struct stage *st, struct subject *s, struct looks *l, struct err *err)
{
	struct err why = {{0}};

	*l = (struct looks){.least_ns = s->escaped_ns};
	while (l->gaps < ESCAPE_NEEDED && l->n - l->gaps <= ESCAPE_LOOKS - ESCAPE_NEEDED) {
		int64_t gap = 0;
		stage_beat(st, "watched", s->name, l->n);
		bool ok = ready_restore(st, s->ready, &why) && ready_enqueue(st, s->ready, &why);
		if (!stage_sync(st, &gap, ok ? &why : NULL))
			ok = false;
		if (st->lost)
			return err_set(err, "%s: %s", s->name, why.text);
		if (!ok) {
			stage_fail(st, s, "launch", why.text);
			return true;
		}
		l->n++;
		if (gap <= ESCAPE_LEAST_NS)
			continue;
		l->gaps++;
		if (gap < l->least_ns)
			l->least_ns = gap;
	}
	return true;
}

bool escape_settle(struct stage *st, struct err *err)
{
	for (int i = 0; i < st->n_subjects; i++) {
		struct subject *s = &st->subject[i];
		struct looks l = {0};
		const bool suspect = s->escaped_ns > ESCAPE_LEAST_NS && subject_runs(s) && s->ready &&
				     !finding_failed(st->findings, "run", s->name);
		if (suspect && !look_again(st, s, &l, err))
			return false;
		if (suspect)
			st->spoiler = s; /* nobody has looked at what its watched launches hit */
		if (l.gaps >= ESCAPE_NEEDED)
			finding_add(st->findings, "run", s->name, "invalid",
				    "stream escape: %.1f us of work ran on after the arm's own stream was done, "
				    "in %d of %d watched launches, so the clock does not see it",
				    (double)l.least_ns / 1000, l.gaps, l.n);
		else if (suspect && s->escapes + l.gaps > 1)
			stage_note(st,
				   "%s: a stream escape is suspected: the device was late in %d launch%s, "
				   "and in %d of %d that were watched; a busy host does the same, so nobody is accused",
				   s->name, s->escapes, s->escapes == 1 ? "" : "es", l.gaps, l.n);
		s->escaped_ns = 0;
		s->escapes = 0;
	}
	return true;
}
