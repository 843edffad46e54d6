/* Bit identity of arms: bytes decide, NaN and -0 are no wildcards. */
#include "check_cell.h"

#include <stdio.h>
#include <string.h>

#include "finding.h"

enum { RELAUNCHES = 50 };

/* Without a list: the arms that claim the bits, the must-fail subjects, and the same code under another environment. */
static bool applies(const struct stage *st, const struct subject *s, const struct subject *against)
{
	const struct check_identity *c = &st->cell->checks.identity;

	if (s == against || s->role == ROLE_NULL)
		return false;
	if (c->arms[0])
		return stage_listed(c->arms, s->name);
	return registry_has_bits(s->arm->desc, s->arm->arg, against->arm->desc, against->arm->arg);
}

static bool mismatch(struct stage *st, const struct evidence *ev, int set, int i, int against, const struct diff *d,
		     struct err *err)
{
	struct subject *s = &st->subject[i];
	const struct image *got = &ev->first[set][i], *want = &ev->first[set][against];
	int t = got->tensor[d->out];
	const struct assay_tensor *desc = &st->cell->kernel->tensors[t];
	const struct assay_shape *shape = &st->main.shape[t];
	char text[512], times[128] = "";
	struct relaunch rl;

	diff_text(desc, shape, image_bytes(got, d->out), image_bytes(want, d->out), d, text, sizeof(text));
	if (!check_set(st, set, s, err))
		return false;
	if (!check_relaunch(st, s, check_affordable(st, RELAUNCHES), want, &rl, err))
		return false;
	bool same = rl.same_elements && (!rl.differ || rl.diff.where == d->where);
	if (rl.launches)
		snprintf(times, sizeof(times), "; %d of %d launches, %s", rl.differ, rl.launches,
			 same && rl.differ == rl.launches ? "the same elements: not a race"
			 : same                           ? "the same elements, not always: a race or a state"
							  : "not the same elements: a race or a state");
	json_t *f = finding_add(st->findings, "identity", s->name, "mismatch", "%s%s%s", text, times,
				set ? " (second input set)" : "");
	json_object_set_new(f, "against", json_string(st->subject[against].name));
	diff_fields(f, desc, shape, image_bytes(got, d->out), image_bytes(want, d->out), d);
	json_object_set_new(f, "launches", json_integer(rl.launches));
	json_object_set_new(f, "launches_differ", json_integer(rl.differ));
	json_object_set_new(f, "same_elements", rl.launches ? json_boolean(same) : json_null());
	image_drop(&rl.image);
	return true;
}

bool check_identity(struct stage *st, const struct evidence *ev, struct err *err)
{
	const char *name = st->cell->checks.identity.against;
	struct subject *against = name ? stage_find(st, name) : &st->subject[0];

	if (!against) {
		finding_add(st->findings, "identity", NULL, "error", "there is no arm '%s' to compare with", name);
		return true;
	}
	int w = (int)(against - st->subject);
	for (int i = 0; i < st->n_subjects; i++) {
		struct subject *s = &st->subject[i];
		bool differs = false;
		if (!applies(st, s, against) || s->unsupported || !ev->have[0][i])
			continue;
		stage_beat(st, "identity", s->name, 0);
		if (!ev->have[0][w]) {
			finding_add(st->findings, "identity", s->name, "error",
				    "%s did not run: nothing to compare with", against->name);
			continue;
		}
		for (int set = 0; set < INPUT_SETS && !differs; set++) {
			struct diff d;
			if (!ev->have[set][i] || !ev->have[set][w])
				continue;
			if (!image_diff(st, &st->main, &ev->first[set][i], &ev->first[set][w], &d, err))
				return false;
			differs = d.out >= 0;
			if (differs && !mismatch(st, ev, set, i, w, &d, err))
				return false;
		}
		if (differs)
			continue;
		const struct image *im = &ev->first[0][i];
		int64_t of = 0;
		for (int k = 0; k < im->n; k++)
			of += assay_shape_count(&st->main.shape[im->tensor[k]]);
		json_t *f = finding_add(st->findings, "identity", s->name, "pass", NULL);
		json_object_set_new(f, "against", json_string(against->name));
		json_object_set_new(f, "tensor",
				    im->n == 1 ? json_string(st->cell->kernel->tensors[im->tensor[0]].name)
					       : json_null());
		json_object_set_new(f, "differ", json_integer(0));
		json_object_set_new(f, "of", json_integer(of));
		json_object_set_new(f, "ulp_max", json_integer(0));
		json_object_set_new(f, "first", json_null());
		json_object_set_new(f, "launches", json_integer(2 * INPUT_SETS));
		json_object_set_new(f, "launches_differ", json_integer(0));
		json_object_set_new(f, "same_elements", json_null());
	}
	return true;
}
