#include "conduct.h"

#include <stdio.h>
#include <string.h>

#include "finding.h"
#include "surroundings.h"

/* So many checked launches of an arm are followed by a whole look each. */
enum { LOOKS = 2 };
/* A thread that works so much while nothing runs is told, though it rests. */
#define RESTLESS_SHARE 0.002

bool conduct_begin(struct stage *st, struct err *err)
{
	st->around = surroundings_create(st->ops->kind == ASSAY_HOST ? st->ops->info(st->be)->threads : 0,
					 st->sink->link ? st->sink->link : -1);
	return st->around || err_set(err, "out of memory");
}

void conduct_acts(struct stage *st, struct subject *s)
{
	for (int i = 0; i < 2; i++) {
		struct acts *a = &st->acts[i];
		a->several = a->one && (a->several || a->one != s);
		a->one = s;
	}
}

/* Who is to be blamed for what came about since then; NULL: one of several. The null arm is shipped's code. */
static struct subject *blamed(struct stage *st, const struct acts *a)
{
	return a->several || !a->one ? NULL : a->one->role == ROLE_NULL ? &st->subject[0] : a->one;
}

/* The next cell gets another process. */
static void spend(struct stage *st)
{
	st->sink->beat->spent = 1;
}

/* Whether some arm was seen to do that. */
static bool known(const struct stage *st, int watched)
{
	bool some = false;

	for (int i = 0; i < st->n_subjects; i++)
		some = some || (st->subject[i].strayed >> watched & 1);
	return some;
}

static void tell(struct stage *st, struct subject *s, const struct surroundings_change *c)
{
	unsigned *told = s ? &s->strayed : &st->strayed;
	const char *after =
		c->restored ? "put back" : "that cannot be put back, and the next cell gets another process";

	if (!c->restored)
		spend(st);
	if ((*told >> c->watched & 1) || (!s && known(st, c->watched)))
		return;
	*told |= 1u << c->watched;
	if (s)
		finding_add(st->findings, "run", s->name, "invalid",
			    "leaves the process otherwise than it found it: %s; %s", c->text, after);
	else
		finding_add(st->findings, "run", NULL, "invalid",
			    "an arm left the process otherwise than it found it, in a launch that was not looked into: "
			    "%s; %s",
			    c->text, after);
}

/* The process cannot say anything any more: the last words are read by the supervisor. */
static bool cut_off(struct stage *st, const struct subject *s, struct err *err)
{
	struct exec_beat *b = st->sink->beat;

	stage_beat(st, NULL, s ? s->name : NULL, 0);
	snprintf(b->said, sizeof(b->said), "%s the descriptor by which the worker answers",
		 s ? "closes" : "an arm closed");
	st->lost = true;
	return err_set(err, "%s", b->said);
}

static bool look(struct stage *st, bool quick, struct err *err)
{
	struct surroundings_change change[SURROUNDINGS_WATCHED];

	if (!st->around || !st->acts[!quick].one)
		return true;
	const int n = surroundings_look(st->around, quick, change);
	for (int i = 0; i < n; i++) {
		struct subject *s = blamed(st, &st->acts[!change[i].quick]);
		tell(st, s, &change[i]);
		if (change[i].cut_off)
			return cut_off(st, s, err);
	}
	if (!quick) {
		const struct subject *s = blamed(st, &st->acts[1]);
		surroundings_threads(st->around, s ? (int)(s - st->subject) : -1);
		st->acts[1] = (struct acts){0};
	}
	st->acts[0] = (struct acts){0};
	return true;
}

bool conduct_before(struct stage *st, const struct subject *s, struct err *err)
{
	return !st->acts[0].one || st->acts[0].one == s || look(st, true, err);
}

bool conduct_after(struct stage *st, struct subject *s, struct err *err)
{
	if (s->looks >= LOOKS)
		return true;
	s->looks++;
	return look(st, false, err);
}

bool conduct_look(struct stage *st, struct err *err)
{
	return look(st, false, err);
}

static const char *plural(int n)
{
	return n == 1 ? "" : "s";
}

void conduct_rest(struct stage *st)
{
	int runners[STAGE_SUBJECTS + 1] = {0}, owner = -1; /* the last: of nobody in particular */
	double together[STAGE_SUBJECTS + 1] = {0}, share;

	if (!st->around)
		return;
	while (surroundings_runner(st->around, &owner, &share)) {
		const int i = owner < 0 ? STAGE_SUBJECTS : owner;
		runners[i]++;
		together[i] += share;
	}
	for (int i = 0; i <= STAGE_SUBJECTS; i++) {
		const int n = runners[i];
		const bool nobodys = i == STAGE_SUBJECTS;
		if (!n)
			continue;
		spend(st);
		finding_add(st->findings, "run", nobodys ? NULL : st->subject[i].name, "invalid",
			    "%s %d thread%s that never rest%s: %.0f %% of a CPU while nothing ran, beside whatever is "
			    "timed; the next cell gets another process",
			    nobodys ? "an arm left" : "leaves", n, plural(n), n == 1 ? "s" : "", 100 * together[i]);
	}
	share = surroundings_restless(st->around, &owner);
	if (share > RESTLESS_SHARE)
		stage_note(st, "%s: a thread that it left behind works while nothing runs, %.1f %% of a CPU",
			   owner < 0 ? "an arm" : st->subject[owner].name, 100 * share);
}

void conduct_finish(struct stage *st)
{
	bool wrong = false;

	for (size_t i = 0; i < json_array_size(st->findings); i++) {
		const char *status = json_string_value(json_object_get(json_array_get(st->findings, i), "status"));
		wrong = wrong || !status || strcmp(status, "pass");
	}
	if (st->around && wrong) {
		surroundings_threads(st->around, -1);
		if (surroundings_left(st->around))
			spend(st);
	}
	surroundings_destroy(st->around);
	st->around = NULL;
}
