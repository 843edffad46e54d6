/* plan_elsewhere: rules and tables where the device is not known: which of them may speak for a cell on some device, and which speak for none
 * on any. */
#include <string.h>

#include "plan_space.h"

bool plan_key_is_of_target(const char *key)
{
	static const char *const keys[] = {"device", "backend", "cc", "host"};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

struct selector selector_anywhere(const struct selector *s, struct arena *a)
{
	struct select_term *term = arena_array(a, (size_t)s->n_terms, sizeof *term);
	struct selector out = {.term = term};
	for (int i = 0; i < s->n_terms; i++)
		if (!plan_key_is_of_target(s->term[i].key))
			term[out.n_terms++] = s->term[i];
	return out;
}

struct matcher *rules_open(const struct rule_list *l, struct group *g, struct arena *a)
{
	struct matcher *m = arena_array(a, (size_t)l->n, sizeof *m);
	for (int i = 0; i < l->n; i++) {
		struct selector *s = arena_alloc(a, sizeof *s);
		*s = selector_anywhere(l->match[i], a);
		matcher_compile(&m[i], s, g, a);
	}
	return m;
}

static bool same_term(const struct select_term *x, const struct select_term *y)
{
	if (strcmp(x->key, y->key) != 0 || x->op != y->op || x->n_alt != y->n_alt)
		return false;
	for (int i = 0; i < x->n_alt; i++)
		if (strcmp(x->alt[i].glob, y->alt[i].glob) != 0)
			return false;
	return true;
}

/* Whether every device that `of` wants is one that `s` wants too. */
static bool asks_no_more(const struct selector *s, const struct selector *of)
{
	for (int i = 0; i < s->n_terms; i++) {
		bool found = !plan_key_is_of_target(s->term[i].key);
		for (int k = 0; k < of->n_terms && !found; k++)
			found = same_term(&s->term[i], &of->term[k]);
		if (!found)
			return false;
	}
	return true;
}

bool rules_may_speak(const struct rule_list *l, const struct matcher *open, int i, const struct group *g)
{
	if (!matcher_match(&open[i], g))
		return false;
	for (int k = 0; k < l->n; k++)
		if (k != i && selector_specificity(l->match[k]) > selector_specificity(l->match[i]) &&
		    asks_no_more(l->match[k], l->match[i]) && matcher_match(&open[k], g))
			return false;
	return true;
}

/* ---- what speaks for no cell ---------------------------------------------------------------------------------------- */

void unused_init(struct unused *u, const struct plan *p)
{
	const struct suite *s = p->suite;
	const int n[] = {[MARGIN] = s->n_margins, [WAIVER] = s->n_waivers, [RIG] = s->n_rigs, [CHOICE] = 0};
	for (int k = 0; k < N_RULE_KINDS; k++)
		u->rule[k] = arena_array(p->arena, (size_t)n[k], sizeof(bool));
	u->idle = arena_array(p->arena, (size_t)s->n_waivers, sizeof *u->idle);
	u->choice = arena_array(p->arena, (size_t)s->n_table_sets, sizeof *u->choice);
	u->asked = arena_array(p->arena, (size_t)s->n_table_sets, sizeof(bool));
	for (int i = 0; i < s->n_table_sets; i++)
		u->choice[i] = arena_array(p->arena, (size_t)s->table_set[i].n, sizeof(bool));
	u->exclude = arena_array(p->arena, (size_t)s->n_cases, sizeof *u->exclude);
	for (int i = 0; i < s->n_cases; i++)
		u->exclude[i] = arena_array(p->arena, (size_t)s->cases[i].n_excludes, sizeof(bool));
}

void unused_point(struct unused *u, const struct rules *r, struct matcher *const open[N_RULE_KINDS],
		  const char *const *lacks, const struct group *g)
{
	for (int k = 0; k < N_RULE_KINDS; k++) {
		bool *hit = u->rule[k];
		if (k == CHOICE) {
			if (!r->set)
				continue;
			size_t set = (size_t)(r->set - g->plan->suite->table_set);
			u->asked[set] = true;
			hit = u->choice[set];
		}
		for (int i = 0; i < r->list[k].n; i++) {
			if (hit[i] || !matcher_match(&open[k][i], g))
				continue;
			hit[i] = k != WAIVER || !lacks[i];
			if (!hit[i])
				u->idle[i] = lacks[i];
		}
	}
}

/* A file of rules may be included by many suites: what fits none of this one's cells may fit another's. */
static bool may_say(const struct plan *p, struct mark at)
{
	return at.file && strcmp(at.file, p->suite->path) == 0;
}

static void say(const struct plan *p, const char *what, const struct selector *s, struct mark at, struct diags *d)
{
	struct err why;
	if (!may_say(p, at))
		return;
	struct selector anywhere = selector_anywhere(s, p->arena);
	selector_explain(p, &anywhere, &why);
	diag_add(d, DIAG_WARNING, at, "%s fits no cell: %s", what, why.text);
}

void unused_say(const struct unused *u, const struct plan *p, struct diags *d)
{
	const struct suite *s = p->suite;
	for (int i = 0; i < s->n_margins; i++)
		if (!u->rule[MARGIN][i])
			say(p, "this margin", &s->margin[i].match, s->margin[i].mark, d);
	for (int i = 0; i < s->n_waivers; i++) {
		const struct mark at = s->waiver[i].mark;
		if (u->rule[WAIVER][i])
			continue;
		if (!u->idle[i])
			say(p, "this waiver", &s->waiver[i].match, at, d);
		else if (may_say(p, at))
			diag_add(d, DIAG_WARNING, at, "this waiver fits no cell: none that it matches has %s",
				 u->idle[i]);
	}
	for (int i = 0; i < s->n_rigs; i++)
		if (!u->rule[RIG][i])
			say(p, "this rig", &s->rig[i].match, s->rig[i].mark, d);
	for (int t = 0; t < s->n_table_sets; t++)
		for (int i = 0; i < s->table_set[t].n && u->asked[t]; i++)
			if (!u->choice[t][i])
				say(p, "this table", &s->table_set[t].choice[i].match, s->table_set[t].choice[i].mark,
				    d);
	for (int c = 0; c < s->n_cases; c++)
		for (int i = 0; i < s->cases[c].n_excludes; i++)
			if (!u->exclude[c][i])
				say(p, "this exclusion", &s->cases[c].exclude[i], s->cases[c].exclude_mark[i], d);
}
