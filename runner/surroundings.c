#define _GNU_SOURCE /* cpu_set_t */
#include "surroundings.h"

#include <stdlib.h>

#include "surroundings_parts.h"
#include "threads.h"

_Static_assert((int)SURROUNDINGS_THINGS <= (int)SURROUNDINGS_WATCHED, "an answer has room for all");

struct surroundings *surroundings_create(int team, int link)
{
	struct surroundings *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->team = team;
	for (int i = 0; i < FILES; i++)
		s->file[i].fd = i == FILES - 1 ? link : i;
	if (team > 1 && omp_get_proc_bind() != omp_proc_bind_false)
		s->team_cpus = calloc((size_t)team, sizeof(*s->team_cpus));
	s->threads = team > 0 ? threads_create(team) : NULL;
	if ((team > 1 && omp_get_proc_bind() != omp_proc_bind_false && !s->team_cpus) || (team > 0 && !s->threads)) {
		surroundings_destroy(s);
		return NULL;
	}
	for (int i = 0; i < SURROUNDINGS_THINGS; i++)
		surroundings_watched[i].take(s);
	return s;
}

void surroundings_destroy(struct surroundings *s)
{
	if (!s)
		return;
	threads_destroy(s->threads);
	free(s->team_cpus);
	free(s);
}

int surroundings_look(struct surroundings *s, bool quick, struct surroundings_change out[SURROUNDINGS_WATCHED])
{
	char again[SURROUNDINGS_TEXT];
	int n = 0;

	for (int i = 0; i < SURROUNDINGS_THINGS; i++) {
		struct surroundings_change *c = &out[n];
		if ((quick && !surroundings_watched[i].quick) || (s->gone >> i & 1) ||
		    !surroundings_watched[i].told(s, c->text))
			continue;
		c->watched = i;
		c->quick = surroundings_watched[i].quick;
		c->cut_off = surroundings_cut_off(s);
		c->restored = surroundings_watched[i].restore(s) && !surroundings_watched[i].told(s, again);
		if (!c->restored)
			s->gone |= 1u << i;
		n++;
	}
	return n;
}

void surroundings_threads(struct surroundings *s, int owner)
{
	if (s->threads)
		threads_look(s->threads, owner);
}

int surroundings_left(const struct surroundings *s)
{
	return s->threads ? threads_left(s->threads) : 0;
}

bool surroundings_runner(struct surroundings *s, int *owner, double *share)
{
	return s->threads && threads_runner(s->threads, owner, share);
}

double surroundings_restless(const struct surroundings *s, int *owner)
{
	return s->threads ? threads_restless(s->threads, owner) : 0;
}
