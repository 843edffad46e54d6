#include "suggest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* ---- rows ----------------------------------------------------------------------------------------------------------- */

static double key_of(const json_t *cell, const char *name)
{
	double x = text_number(json_object_get(cell, "point"), name);
	return isfinite(x) ? x : text_number(json_object_get(cell, "params"), name);
}

struct suggest_row *suggest_row_at(const struct suggest *s, const char *kernel, const double *key)
{
	for (size_t i = 0; i < s->n_rows; i++) {
		bool same = strcmp(s->row[i].kernel, kernel) == 0;
		for (int k = 0; k < s->n_keys && same; k++)
			same = s->row[i].key[k] == key[k];
		if (same)
			return &s->row[i];
	}
	return NULL;
}

/* The row there, made where there is none. */
static struct suggest_row *row_for(struct suggest *s, size_t *cap, const char *kernel, const double *key)
{
	struct suggest_row *old = suggest_row_at(s, kernel, key);
	if (old)
		return old;
	s->row = arena_grow(s->arena, s->row, s->n_rows, cap, sizeof *s->row);
	struct suggest_row *r = &s->row[s->n_rows++];
	*r = (struct suggest_row){.kernel = kernel};
	memcpy(r->key, key, sizeof r->key);
	return r;
}

static bool is_wanted(const json_t *cell)
{
	return !json_is_object(json_object_get(cell, "ratio_check")) && strcmp(text_get(cell, "status"), "skip") != 0;
}

static bool make_rows(struct suggest *s, const struct verdict_file *run, struct err *err)
{
	size_t cap = 0;
	for (size_t i = 0; i < run->n_cells; i++) {
		const json_t *cell = run->cell[i];
		double key[SUGGEST_MAX_KEYS] = {0};
		if (!is_wanted(cell))
			continue;
		for (int k = 0; k < s->n_keys; k++) {
			key[k] = key_of(cell, s->key[k]);
			if (!isfinite(key[k]))
				return err_set(err, "--key %s: %s has neither an axis nor a parameter of that name",
					       s->key[k], text_get(cell, "id"));
		}
		struct suggest_row *r = row_for(s, &cap, text_get(cell, "kernel"), key);
		r->cell = arena_grow(s->arena, (void *)r->cell, r->n_cells, &r->cell_cap, sizeof *r->cell);
		r->cell[r->n_cells++] = cell;
	}
	return s->n_rows > 0 || err_set(err, "no cell of this run compares arms: there is nothing to propose");
}

/* Where a kernel first stands. */
static size_t rank_of(const struct suggest_row *row, size_t n, const char *kernel)
{
	size_t i = 0;
	while (i < n && strcmp(row[i].kernel, kernel) != 0)
		i++;
	return i;
}

/* Kernels in the order of the run, keys rising. */
static void sort_rows(struct suggest *s)
{
	size_t *rank = arena_array(s->arena, s->n_rows, sizeof *rank);
	for (size_t i = 0; i < s->n_rows; i++)
		rank[i] = rank_of(s->row, s->n_rows, s->row[i].kernel);
	for (size_t i = 1; i < s->n_rows; i++) {
		struct suggest_row r = s->row[i];
		size_t mine = rank[i], at = i;
		for (; at > 0; at--) {
			const struct suggest_row *before = &s->row[at - 1];
			int k = 0;
			while (k < s->n_keys && before->key[k] == r.key[k])
				k++;
			bool rises = k == s->n_keys || before->key[k] < r.key[k];
			if (rank[at - 1] < mine || (rank[at - 1] == mine && rises))
				break;
			s->row[at] = *before;
			rank[at] = rank[at - 1];
		}
		s->row[at] = r;
		rank[at] = mine;
	}
}

/* ---- the choice ----------------------------------------------------------------------------------------------------- */

static double tau_of(const struct suggest *s)
{
	double tau = text_number(s->header, "tau");
	return isfinite(tau) ? tau : 0.0025;
}

static void find_incumbent(struct suggest_row *r)
{
	const json_t *arm;
	size_t i;
	json_array_foreach(json_object_get(r->cell[0], "arms"), i,
			   arm) if (strcmp(text_get(arm, "role"), "shipped") == 0) r->shipped = text_get(arm, "name");
	if (!r->shipped)
		r->shipped = "shipped";
	r->incumbent = NULL;
	for (size_t c = 0; c < r->n_cells; c++) {
		const char *selected = text_get(r->cell[c], "selected");
		if (!*selected)
			continue; /* a cell that no table judges says nothing of what is served */
		r->several = r->several || (r->incumbent && strcmp(r->incumbent, selected) != 0);
		r->incumbent = selected;
	}
	if (!r->incumbent || r->several)
		r->incumbent = r->shipped; /* of several only shipped is common to all */
	r->arm = r->incumbent;
}

static void add_note(struct suggest *s, struct suggest_row *r, const char *text)
{
	r->note = r->note ? arena_printf(s->arena, "%s; %s", r->note, text) : text;
}

/* Another arm: taken where it is the fastest yet; where it is fast and may not be taken, the note says why. */
static void consider(struct suggest *s, struct suggest_row *r, const char *arm, bool base_is_wrong)
{
	const double tau = tau_of(s);
	if (strcmp(arm, r->incumbent) == 0 || !suggest_selectable(r->cell, r->n_cells, arm))
		return;
	struct suggest_evidence e = suggest_pool(r->cell, r->n_cells, arm, r->incumbent, tau);
	const bool shipped = strcmp(arm, r->shipped) == 0;
	const char *wrong = suggest_wrong(s->arena, r->cell, r->n_cells, arm);
	if (base_is_wrong) {
		/* What is served cannot stay; shipped is the first to be right again. */
		if (!wrong &&
		    (r->outcome != SUGGEST_FIXED || (suggest_is_faster(&e) && e.estimate < r->evidence.estimate)) &&
		    (shipped || suggest_same_bits(r->cell, r->n_cells, arm, r->shipped))) {
			r->outcome = SUGGEST_FIXED;
			r->arm = arm;
			r->evidence = e;
		}
		return;
	}
	if (!suggest_is_faster(&e)) {
		if (e.faster > 0 && e.slower > 0)
			add_note(s, r,
				 arena_printf(s->arena, "%s is faster in %d and slower in %d of %d cells", arm,
					      e.faster, e.slower, e.cells));
		return;
	}
	if (wrong)
		add_note(s, r, arena_printf(s->arena, "%s is faster (%.3f), but %s", arm, exp(e.estimate), wrong));
	else if (!suggest_table_name(s->header, r->cell[0], arm))
		add_note(s, r,
			 arena_printf(s->arena,
				      "%s is faster (%.3f), but a table cannot name a graph or an environment", arm,
				      exp(e.estimate)));
	else if (!suggest_same_bits(r->cell, r->n_cells, arm, r->incumbent))
		add_note(s, r,
			 arena_printf(s->arena, "%s is faster (%.3f), but bits would change", arm, exp(e.estimate)));
	else if (r->outcome != SUGGEST_CHANGED || e.estimate < r->evidence.estimate) {
		r->outcome = SUGGEST_CHANGED;
		r->arm = arm;
		r->evidence = e;
	}
}

static void choose(struct suggest *s, struct suggest_row *r)
{
	const json_t *arm;
	size_t i;
	find_incumbent(r);
	const char *wrong = suggest_wrong(s->arena, r->cell, r->n_cells, r->incumbent);
	r->outcome = SUGGEST_KEPT;
	if (wrong)
		add_note(s, r, wrong);
	json_array_foreach(json_object_get(r->cell[0], "arms"), i, arm)
		consider(s, r, text_get(arm, "name"), wrong != NULL);
	if (r->outcome != SUGGEST_KEPT)
		return;
	r->evidence = suggest_pool(r->cell, r->n_cells, r->arm, r->shipped, tau_of(s));
	if (r->evidence.cells == 0)
		r->outcome = SUGGEST_UNMEASURED;
}

/* ---- a further key -------------------------------------------------------------------------------------------------- */

static bool is_key(const struct suggest *s, const char *name)
{
	for (int k = 0; k < s->n_keys; k++)
		if (strcmp(s->key[k], name) == 0)
			return true;
	return false;
}

/* An arm that is faster than the proposal at one value of an axis and slower at another, beyond the noise of both: one row cannot serve
 * both. */
static bool splits(struct suggest *s, const struct suggest_row *r, const char *axis, const char *arm)
{
	double fast = NAN, slow = NAN, fast_ratio = NAN, slow_ratio = NAN, fast_at = INFINITY, slow_at = -INFINITY;
	for (size_t i = 0; i < r->n_cells; i++) {
		double e, lo, hi, floor, se;
		if (!suggest_compare(r->cell[i], arm, r->arm, tau_of(s), &e, &lo, &hi, &floor, &se))
			continue;
		double at = key_of(r->cell[i], axis);
		if (hi < -floor && e < fast_at) {
			fast_at = e;
			fast = at;
			fast_ratio = exp(e);
		}
		if (lo > floor && e > slow_at) {
			slow_at = e;
			slow = at;
			slow_ratio = exp(e);
		}
	}
	if (!isfinite(fast) || !isfinite(slow) || fast == slow)
		return false;
	char at[200] = "";
	size_t n = 0;
	for (int k = 0; k < s->n_keys && n < sizeof at; k++)
		n += (size_t)snprintf(at + n, sizeof at - n, "%s%s=%.10g", k ? "," : " ", s->key[k], r->key[k]);
	s->advice = arena_grow(s->arena, (void *)s->advice, s->n_advice, &s->advice_cap, sizeof *s->advice);
	s->advice[s->n_advice++] =
		arena_printf(s->arena,
			     "%s%s: against %s, %s is %.3f at %s=%.10g and %.3f at %s=%.10g: a key on %s is "
			     "warranted",
			     r->kernel, at, r->arm, arm, fast_ratio, axis, fast, slow_ratio, axis, slow, axis);
	return true;
}

static void look_for_keys(struct suggest *s, const struct suggest_row *r)
{
	const char *axis;
	json_t *ignored;
	const json_t *arm;
	size_t i;
	json_object_foreach(json_object_get(r->cell[0], "point"), axis, ignored)
	{
		bool found = is_key(s, axis);
		json_array_foreach(json_object_get(r->cell[0], "arms"), i, arm)
		{
			const char *name = text_get(arm, "name");
			if (!found && strcmp(name, r->arm) != 0 && suggest_selectable(r->cell, r->n_cells, name) &&
			    !suggest_wrong(s->arena, r->cell, r->n_cells, name) &&
			    suggest_same_bits(r->cell, r->n_cells, name, r->arm))
				found = splits(s, r, axis, name);
		}
	}
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

struct suggest *suggest_create(const struct verdict_file *run, const char *const *key, int n_keys, struct err *err)
{
	struct suggest *s = calloc(1, sizeof *s);
	if (!s)
		abort();
	s->arena = arena_create();
	s->header = run->header;
	s->n_keys = n_keys;
	for (int k = 0; k < n_keys; k++)
		s->key[k] = key[k];
	suggest_find_served(s);
	if (!make_rows(s, run, err)) {
		suggest_destroy(s);
		return NULL;
	}
	sort_rows(s);
	for (size_t i = 0; i < s->n_rows; i++)
		choose(s, &s->row[i]);
	for (size_t i = 0; i < s->n_rows; i++)
		look_for_keys(s, &s->row[i]);
	return s;
}

void suggest_destroy(struct suggest *s)
{
	if (!s)
		return;
	arena_destroy(s->arena);
	free(s);
}

size_t suggest_changes(const struct suggest *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n_rows; i++)
		n += s->row[i].outcome == SUGGEST_CHANGED || s->row[i].outcome == SUGGEST_FIXED;
	return n;
}

static const json_t *cell_of(const struct verdict_file *v, const char *id)
{
	for (size_t i = 0; i < v->n_cells; i++)
		if (strcmp(text_get(v->cell[i], "id"), id) == 0)
			return v->cell[i];
	return NULL;
}

void suggest_confirm(struct suggest *s, const struct verdict_file *fresh)
{
	double tau = text_number(fresh->header, "tau");
	for (size_t i = 0; i < s->n_rows; i++) {
		struct suggest_row *r = &s->row[i];
		if (r->outcome != SUGGEST_CHANGED && r->outcome != SUGGEST_FIXED)
			continue;
		const json_t **cell = arena_array(s->arena, r->n_cells, sizeof *cell);
		size_t n = 0;
		for (size_t c = 0; c < r->n_cells; c++) {
			cell[n] = cell_of(fresh, text_get(r->cell[c], "id"));
			n += cell[n] != NULL;
		}
		r->fresh = suggest_pool(cell, n, r->arm, r->incumbent, isfinite(tau) ? tau : tau_of(s));
		r->measured_anew = r->fresh.cells > 0;
		const char *wrong = suggest_wrong(s->arena, cell, n, r->arm);
		if (r->outcome == SUGGEST_FIXED && !wrong)
			continue;
		if (n == r->n_cells && !wrong && suggest_is_faster(&r->fresh) &&
		    suggest_same_bits(cell, n, r->arm, r->incumbent))
			continue;
		add_note(s, r,
			 wrong ? arena_printf(s->arena, "measured anew: %s", wrong)
			 : r->measured_anew
				 ? arena_printf(s->arena, "measured anew, %s is %.3f [%.3f, %.3f] of %s: not borne out",
						r->arm, exp(r->fresh.estimate), exp(r->fresh.lo), exp(r->fresh.hi),
						r->incumbent)
				 : arena_printf(s->arena, "the fresh run did not time %s", r->arm));
		r->outcome = SUGGEST_WITHDRAWN;
		r->arm = r->incumbent;
		r->evidence = suggest_pool(r->cell, r->n_cells, r->arm, r->shipped, tau_of(s));
	}
}
