/* plan_match: selectors compiled for a group of cells. What is constant in the group is asked once, what hangs on an axis is a bit for
 * each of its values; so a scan over a million cells compares no text. */
#include <string.h>

#include "plan_space.h"

void matcher_compile(struct matcher *m, const struct selector *s, struct group *g, struct arena *a)
{
	*m = (struct matcher){.specificity = selector_specificity(s)};
	struct match_term *term = arena_array(a, (size_t)s->n_terms, sizeof *term);
	m->term = term;
	int kept[MAX_AXES];
	memcpy(kept, g->at, sizeof kept);
	for (int i = 0; i < s->n_terms && !m->never; i++) {
		struct selector one = {.term = &s->term[i], .n_terms = 1};
		int axis = g->space->n_axes - 1;
		while (axis >= 0 && strcmp(g->space->c->axis[axis].name, s->term[i].key) != 0)
			axis--;
		if (strcmp(s->term[i].key, "id") == 0) {
			term[m->n++] = (struct match_term){.axis = -1, .one = one};
		} else if (axis < 0) {
			m->never = !selector_match(&one, g, group_get);
		} else {
			int n = g->space->c->axis[axis].n;
			uint8_t *ok = arena_array(a, (size_t)n, 1);
			for (int v = 0; v < n; v++) {
				g->at[axis] = v;
				ok[v] = selector_match(&one, g, group_get);
			}
			term[m->n++] = (struct match_term){.axis = axis, .ok = ok};
		}
	}
	memcpy(g->at, kept, sizeof kept);
}

bool matcher_match(const struct matcher *m, const struct group *g)
{
	if (m->never)
		return false;
	for (int i = 0; i < m->n; i++) {
		const struct match_term *t = &m->term[i];
		if (t->axis >= 0 ? !t->ok[g->at[t->axis]] : !selector_match(&t->one, g, group_get))
			return false;
	}
	return true;
}

int matcher_best(const struct matcher *m, int n, const struct group *g, int *tie)
{
	int best = -1;
	*tie = -1;
	for (int i = 0; i < n; i++) {
		int more = best < 0 ? 1 : m[i].specificity - m[best].specificity;
		if (more < 0 || !matcher_match(&m[i], g))
			continue;
		if (more > 0) {
			best = i;
			*tie = -1;
		} else if (*tie < 0) {
			*tie = i;
		}
	}
	return best;
}
