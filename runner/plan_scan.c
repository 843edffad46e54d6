/* plan_scan: every point once, when the plan is built: bits of what is excluded and filtered, hits of the waivers, and the errors
 * that only the cells can show (ties of rules, missing rows of tables, points that the adapter refuses). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan_space.h"

struct scan {
	struct plan *p;
	const struct plan_filter *f;
	struct diags *d;
	struct rules rules;
	struct matcher *list[N_RULE_KINDS], *exclude, *exclude_open, *filter;
	/* Without what asks for a device: where rules that fit nothing, or tables of other devices, are looked for. */
	struct matcher *open[N_RULE_KINDS];
	struct unused unused;
	const char **lacks; /* per waiver, of the group's cells */
	const struct cell_set *ids; /* NULL: all */
	int64_t *filter_hits;
	bool tied[N_RULE_KINDS], refused;
	/* Table look-ups done in this group, a bit for each combination of the axes it is keyed on. */
	uint8_t **looked;
};

static void say_tie(struct scan *s, int kind, int a, int b, const struct group *g)
{
	const struct rule_list *l = &s->rules.list[kind];
	if (s->tied[kind])
		return;
	s->tied[kind] = true;
	char *id = NULL;
	size_t cap = 0;
	group_id(g, &id, &cap);
	diag_add(s->d, DIAG_ERROR, l->mark[b], "two %s fit %s equally; give one of them one more key", l->what, id);
	diag_note(s->d, l->mark[a], "the other one");
	free(id);
}

static bool table_is_keyed_on(const struct table *t, const char *axis)
{
	for (int i = 0; i < t->n_keys; i++)
		if (strcmp(t->key[i], axis) == 0)
			return true;
	return false;
}

/* Number of the combination of g's values on the axes that the table is keyed on; *n: how many there are. */
static int64_t combination(const struct group *g, const struct table *t, int64_t *n)
{
	int64_t c = 0;
	*n = 1;
	for (int i = 0; i < g->space->n_axes; i++) {
		const struct axis *x = &g->space->c->axis[i];
		if (!t || !table_is_keyed_on(t, x->name))
			continue;
		c = c * x->n + g->at[i];
		*n *= x->n;
	}
	return c;
}

static void scan_selection(struct scan *s, struct arena *a, const struct group *g, int choice)
{
	const struct table *t = choice >= 0 ? s->rules.set->choice[choice].table : NULL;
	int64_t n, c = combination(g, t, &n);
	uint8_t **bits = &s->looked[choice + 1];
	if (n > g->space->group_points) /* zipped axes: fewer points than combinations */
		c = -1;
	else if (!*bits)
		*bits = arena_array(a, (size_t)(n / 8 + 1), 1);
	if (c >= 0) {
		if ((*bits)[c / 8] >> (c % 8) & 1)
			return;
		(*bits)[c / 8] |= (uint8_t)(1u << (c % 8));
	}
	struct pick got;
	struct mark at;
	struct err err;
	if (rules_pick(g, &s->rules, choice, &got, &at, &err))
		return;
	if (choice >= 0 || !s->f || !s->f->elsewhere || !s->rules.set) {
		diag_add(s->d, DIAG_ERROR, at, "%s", err.text);
		return;
	}
	diag_add(s->d, DIAG_WARNING, at, "%s", err.text);
	diag_note(s->d, (struct mark){0}, "a run on this machine would be refused");
}

static void scan_refusal(struct scan *s, const struct group *g)
{
	struct assay_point pt;
	if (s->refused || !g->desc->refuse)
		return;
	group_point(g, &pt);
	const char *why = g->desc->refuse(&pt);
	if (!why)
		return;
	s->refused = true;
	char *id = NULL;
	size_t cap = 0;
	group_id(g, &id, &cap);
	diag_add(s->d, DIAG_ERROR, g->space->c->mark, "%s refuses %s: %s; change the geometry, or exclude the point",
		 g->desc->name, id, why);
	free(id);
}

static bool want_unused(const struct scan *s)
{
	return s->f && s->f->say_unused;
}

static void scan_point(struct scan *s, struct arena *a, struct case_space *space, const struct group *g, int64_t number)
{
	bool out = false;
	for (int i = 0; i < space->c->n_excludes; i++) {
		out = out || matcher_match(&s->exclude[i], g);
		bool *hit = want_unused(s) ? &s->unused.exclude[space->index][i] : NULL;
		if (hit && !*hit)
			*hit = matcher_match(&s->exclude_open[i], g);
	}
	if (out) {
		space->excluded++;
		return;
	}
	if (s->p->whole.word)
		cell_set_add(&s->p->whole, number);
	scan_refusal(s, g);
	int best[N_RULE_KINDS], tie;
	for (int k = 0; k < N_RULE_KINDS; k++) {
		best[k] = matcher_best(s->list[k], s->rules.list[k].n, g, &tie);
		if (tie >= 0)
			say_tie(s, k, best[k], tie, g);
	}
	if (best[WAIVER] >= 0) {
		const char *lacks = s->lacks[best[WAIVER]];
		s->p->waiver_hits[best[WAIVER]] += !lacks;
		if (lacks)
			s->p->waiver_lacks[best[WAIVER]] = lacks;
	}
	scan_selection(s, a, g, best[CHOICE]);
	for (int i = 0; s->f && s->f->every_table && i < s->rules.list[CHOICE].n; i++)
		if (i != best[CHOICE] && rules_may_speak(&s->rules.list[CHOICE], s->open[CHOICE], i, g))
			scan_selection(s, a, g, i);
	if (want_unused(s))
		unused_point(&s->unused, &s->rules, s->open, s->lacks, g);

	bool keep = !s->f || !s->f->n_filters;
	for (int i = 0; s->f && i < s->f->n_filters; i++)
		if (matcher_match(&s->filter[i], g)) {
			s->filter_hits[i]++;
			keep = true;
		}
	if (s->p->chosen.word && keep && (!s->ids || cell_set_has(s->ids, number)))
		cell_set_add(&s->p->chosen, number);
}

static bool scan_group(struct scan *s, struct case_space *space, int kernel, int geometry, int data)
{
	struct group g;
	if (!group_init(&g, s->p, space, kernel, geometry, data, s->d))
		return false;
	struct arena *a = arena_create();
	rules_collect(&s->rules, s->p->suite, space->c, a);
	for (int k = 0; k < N_RULE_KINDS; k++)
		s->list[k] = rules_compile(&s->rules.list[k], &g, a);
	for (int k = 0; k < N_RULE_KINDS; k++)
		s->open[k] = rules_open(&s->rules.list[k], &g, a);
	s->lacks = arena_array(a, (size_t)s->p->suite->n_waivers, sizeof *s->lacks);
	for (int i = 0; i < s->p->suite->n_waivers; i++)
		s->lacks[i] = rules_waiver_lacks(&g, &s->p->suite->waiver[i], s->p->arena);
	s->exclude = arena_array(a, (size_t)space->c->n_excludes, sizeof *s->exclude);
	for (int i = 0; i < space->c->n_excludes; i++)
		matcher_compile(&s->exclude[i], &space->c->exclude[i], &g, a);
	s->exclude_open = arena_array(a, (size_t)space->c->n_excludes, sizeof *s->exclude_open);
	for (int i = 0; i < space->c->n_excludes; i++) {
		struct selector *anywhere = arena_alloc(a, sizeof *anywhere);
		*anywhere = selector_anywhere(&space->c->exclude[i], a);
		matcher_compile(&s->exclude_open[i], anywhere, &g, a);
	}
	int n_filters = s->f ? s->f->n_filters : 0;
	s->filter = arena_array(a, (size_t)n_filters, sizeof *s->filter);
	for (int i = 0; i < n_filters; i++)
		matcher_compile(&s->filter[i], &s->f->filter[i], &g, a);
	s->looked = arena_array(a, (size_t)s->rules.list[CHOICE].n + 1, sizeof *s->looked);
	for (int i = 0; i < s->rules.list[CHOICE].n; i++)
		if (!(s->f && s->f->every_table ? s->open : s->list)[CHOICE][i].never)
			rules_check_rows(&g, s->rules.set->choice[i].table, s->d);
	int64_t number = g.first;
	do
		scan_point(s, a, space, &g, number++);
	while (group_next(&g));
	arena_destroy(a);
	return true;
}

bool plan_scan(struct plan *p, const struct plan_filter *f, struct diags *d, struct err *err)
{
	struct scan s = {.p = p, .f = f, .d = d};
	struct cell_set ids = {0};
	bool excludes = false, ok = false;
	int n_filters = f ? f->n_filters : 0;
	s.filter_hits = arena_array(p->arena, (size_t)n_filters, sizeof *s.filter_hits);
	for (int i = 0; i < p->n_spaces; i++)
		excludes |= p->space[i].c->n_excludes > 0;
	p->whole.n = p->whole.count = p->n_points;
	if (want_unused(&s))
		unused_init(&s.unused, p);
	if (excludes && !cell_set_create(&p->whole, p->n_points, err))
		goto out;
	if ((n_filters || (f && f->only_ids)) && !cell_set_create(&p->chosen, p->n_points, err))
		goto out;
	if (f && f->only_ids) {
		if (!cell_set_create(&ids, p->n_points, err))
			goto out;
		for (int i = 0; f->only_ids[i]; i++) {
			int64_t number = plan_number_of(p, f->only_ids[i]);
			if (number < 0) {
				err_set(err, "no cell '%s' in this plan; was the suite changed since?", f->only_ids[i]);
				goto out;
			}
			cell_set_add(&ids, number);
		}
		s.ids = &ids;
	}
	for (int i = 0; i < n_filters; i++)
		if (!filter_check_keys(p, &f->filter[i], err))
			goto out;
	for (int i = 0; i < p->n_spaces; i++) {
		struct case_space *space = &p->space[i];
		for (int k = 0; k < space->n_kernels; k++) {
			memset(s.tied, 0, sizeof s.tied);
			s.refused = false;
			for (int geo = 0; geo < space->n_geometries; geo++)
				for (int data = 0; data < space->n_data; data++)
					if (!scan_group(&s, space, k, geo, data))
						break;
		}
	}
	if (p->whole.word)
		cell_set_seal(&p->whole);
	if (p->chosen.word)
		cell_set_seal(&p->chosen);
	if (p->whole.count == 0 && !diags_errors(d)) {
		err_set(err, "no cell is left: every point of the suite is excluded");
		goto out;
	}
	for (int i = 0; i < n_filters; i++)
		if (!s.filter_hits[i] && !diags_errors(d)) {
			selector_explain(p, &f->filter[i], err);
			err_set(err, "filter %s", arena_strdup(p->arena, err->text));
			goto out;
		}
	if (want_unused(&s) && !diags_errors(d))
		unused_say(&s.unused, p, d);
	ok = true;
out:
	cell_set_free(&ids);
	return ok;
}
