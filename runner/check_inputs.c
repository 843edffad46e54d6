/* Whether the inputs of a cell are what they were: filled ones by their digest, packed ones by theirs. */
#include <stdio.h>
#include <stdlib.h>

#include "check_cell.h"
#include "finding.h"

/* Where live and its master differ, for the message. */
static void changed_place(struct stage *st, const struct input *in, int64_t *first, int64_t *bytes)
{
	size_t n = in->live.bytes;
	unsigned char *a = malloc(2 * n + 1);
	struct err ignored;

	*first = *bytes = -1;
	if (a && !in->one_set && st->ops->download(st->be, a, in->live.data, n, &ignored) &&
	    st->ops->download(st->be, a + n, in->master[st->set], n, &ignored)) {
		*bytes = 0;
		for (size_t i = 0; i < n; i++)
			if (a[i] != a[n + i]) {
				if (*first < 0)
					*first = (int64_t)i;
				(*bytes)++;
			}
	}
	free(a);
}

/* The packed inputs of one arm; packed anew where they have changed. alone: no other arm was launched since they were looked at. */
static bool derived_check(struct stage *st, struct subject *s, bool alone, const char *when, bool *all_intact,
			  struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	struct ready *r = s->ready;
	bool changed = false, others = false, ok;

	for (int i = 0; i < st->n_subjects && !alone; i++)
		others = others || (&st->subject[i] != s && st->subject[i].spoils);
	for (int t = 0; t < k->n_tensors; t++) {
		char text[256];
		uint64_t d;
		if (!r->derived[t].alloc)
			continue;
		if (!st->ops->digest(st->be, r->derived[t].data, r->derived[t].bytes, &d, err))
			return false;
		if (d == r->derived_digest[t])
			continue;
		snprintf(text, sizeof(text), "%s input %s%s%s", others ? "an arm changed the packed" : "changes its",
			 k->tensors[t].name, when ? " " : "", when ? when : "");
		check_memory_finding(st, others ? NULL : s->name, k->tensors[t].name, "input_changed", -1, -1, text);
		changed = true;
	}
	*all_intact = *all_intact && !changed;
	return !changed || check_derive(st, s, TENSOR_POISON_A, &ok, err);
}

static void changed_finding(struct stage *st, struct subject *s, int t, const char *when)
{
	const char *name = st->cell->kernel->tensors[t].name;
	int64_t first, bytes;
	char text[256], place[96] = "";

	if (s)
		s->spoils = true;
	changed_place(st, st->in[t], &first, &bytes);
	if (first >= 0)
		snprintf(place, sizeof(place), ": %lld byte%s, first at byte %lld", (long long)bytes,
			 bytes == 1 ? "" : "s", (long long)first);
	if (s)
		snprintf(text, sizeof(text), "changes its input %s%s%s%s", name, when ? " " : "", when ? when : "",
			 place);
	else
		snprintf(text, sizeof(text), "an arm changed the input %s %s%s", name, when, place);
	check_memory_finding(st, s ? s->name : NULL, name, "input_changed", first, bytes, text);
}

/* Of a master: nobody knows its address, so whoever wrote there wrote far outside. The arm that ran last is not it: it may have been an
 * innocent one, that was given what another had left. */
static void master_finding(struct stage *st, int t)
{
	const char *name = st->cell->kernel->tensors[t].name;
	char text[256];

	snprintf(text, sizeof(text), "an arm wrote far outside of its tensors: the kept bytes of the input %s changed",
		 name);
	check_memory_finding(st, NULL, name, "input_changed", -1, -1, text);
}

/* What is loaded of an input, loaded anew where it is not what it should be. */
static bool live_heal(struct stage *st, struct input *in, struct err *err)
{
	const int set = in->loaded;
	bool intact = true;

	if (set < 0)
		return true;
	return input_intact(st->inputs, in, &intact, err) && (intact || input_load(st->inputs, in, set, true, err));
}

bool check_load(struct stage *st, int set, bool force, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	bool loads[ASSAY_MAX_TENSORS] = {false};

	for (int t = 0; t < k->n_tensors; t++)
		loads[t] = st->in[t] && !st->in[t]->one_set && (force || st->in[t]->loaded != set || !st->proven[t]);
	if (!stage_load(st, set, force, err))
		return false;
	for (int t = 0; t < k->n_tensors; t++) {
		struct input *in = st->in[t];
		bool intact = true, whole = true;
		if (!loads[t])
			continue;
		/* Kept from another cell: all of it. */
		if ((!st->proven[t] && !input_heal(st->inputs, in, &whole, err)) ||
		    !input_intact(st->inputs, in, &intact, err))
			return false;
		if (!intact &&
		    (!input_heal(st->inputs, in, &whole, err) || !input_load(st->inputs, in, set, true, err)))
			return false;
		if ((!intact || !whole) && st->proven[t])
			master_finding(st, t);
		else if (!intact || !whole)
			stage_note(st, "%s was written to in an earlier cell of this process: filled again",
				   k->tensors[t].name);
		st->proven[t] = true;
	}
	return true;
}

bool check_masters(struct stage *st, struct err *err)
{
	bool whole;

	for (int t = 0; t < st->cell->kernel->n_tensors; t++) {
		if (!st->in[t])
			continue;
		if (!input_heal(st->inputs, st->in[t], &whole, err))
			return false;
		if (whole)
			continue;
		master_finding(st, t);
		if (!live_heal(st, st->in[t], err))
			return false;
	}
	return true;
}

bool check_heal(struct stage *st, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	const struct subject *by = st->spoiler;
	bool ok;

	st->spoiler = NULL;
	if (by && !check_masters(st, err))
		return false;
	for (int t = 0; by && t < k->n_tensors; t++)
		if (st->in[t] && !live_heal(st, st->in[t], err))
			return false;
	for (int i = 0; by && i < st->n_subjects; i++) {
		struct subject *s = &st->subject[i];
		bool changed = false;
		for (int t = 0; s != by && subject_runs(s) && s->ready && t < k->n_tensors; t++) {
			const struct buffer *b = &s->ready->derived[t];
			uint64_t d;
			if (!b->alloc)
				continue;
			if (!st->ops->digest(st->be, b->data, b->bytes, &d, err))
				return false;
			changed = changed || d != s->ready->derived_digest[t];
		}
		if (changed && !check_derive(st, s, TENSOR_POISON_A, &ok, err))
			return false;
	}
	return true;
}

bool check_inputs(struct stage *st, struct subject *s, size_t max_bytes, const char *when, bool *all_intact,
		  struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;

	for (int i = 0; i < st->n_subjects; i++)
		if (s ? s == &st->subject[i] : subject_runs(&st->subject[i]) && st->subject[i].ready)
			if (!derived_check(st, &st->subject[i], s != NULL, when, all_intact, err))
				return false;
	for (int t = 0; t < k->n_tensors; t++) {
		struct input *in = st->in[t];
		bool intact = true;
		if (!in || k->tensors[t].role == ASSAY_INOUT || (max_bytes && in->live.bytes > max_bytes))
			continue;
		if (!input_intact(st->inputs, in, &intact, err))
			return false;
		if (intact)
			continue;
		*all_intact = false;
		bool whole;
		if (!input_heal(st->inputs, in, &whole, err))
			return false;
		if (!whole)
			master_finding(st, t);
		else if (s || when)
			changed_finding(st, s, t, when);
		if (!input_load(st->inputs, in, st->set, true, err))
			return false;
	}
	return true;
}
