/* Repeatability: an arm against its own first launch, n times here, once at other addresses. Other processes are the
 * supervisor's part (worker_cell): they report digests, which are compared with those of the record. */
#include "check_cell.h"

#include <string.h>

#include "finding.h"
#include "stats.h"

static void fields(json_t *f, const char *arm, const char *kind, int launches, int differ, bool same, double bound)
{
	json_object_set_new(f, "against", json_string(arm));
	json_object_set_new(f, "kind", json_string(kind));
	json_object_set_new(f, "launches", json_integer(launches));
	json_object_set_new(f, "launches_differ", json_integer(differ));
	json_object_set_new(f, "same_elements", differ ? json_boolean(same) : json_null());
	json_object_set_new(f, "bound", bound >= 0 ? json_real(bound) : json_null());
}

static void differing(struct stage *st, json_t *f, const struct image *got, const struct image *want,
		      const struct diff *d)
{
	if (d->out < 0) {
		const struct assay_tensor *t = &st->cell->kernel->tensors[want->tensor[0]];
		struct diff none = {.out = -1, .of = assay_shape_count(&st->main.shape[want->tensor[0]])};
		diff_fields(f, t, &st->main.shape[want->tensor[0]], NULL, NULL, &none);
		return;
	}
	int t = want->tensor[d->out];
	diff_fields(f, &st->cell->kernel->tensors[t], &st->main.shape[t], image_bytes(got, d->out),
		    image_bytes(want, d->out), d);
}

static void say(struct stage *st, char *text, size_t cap, const struct image *got, const struct image *want,
		const struct diff *d)
{
	int t = d->out >= 0 ? want->tensor[d->out] : -1;

	text[0] = '\0';
	if (t >= 0)
		diff_text(&st->cell->kernel->tensors[t], &st->main.shape[t], image_bytes(got, d->out),
			  image_bytes(want, d->out), d, text, cap);
}

static bool launches(struct stage *st, const struct evidence *ev, int i, struct err *err)
{
	struct subject *s = &st->subject[i];
	const struct image *want = &ev->first[0][i];
	struct relaunch rl;
	char text[512];

	if (!check_relaunch(st, s, st->cell->checks.repeat.launches, want, &rl, err))
		return false;
	bool intact = true;
	if (subject_runs(s) && !check_inputs(st, s, 0, "in a later launch", &intact, err)) {
		image_drop(&rl.image);
		return false;
	}
	if (rl.launches && want->n) {
		double bound = stats_binomial_upper(rl.launches, rl.differ, 0.95);
		json_t *f;
		say(st, text, sizeof(text), &rl.image, want, &rl.diff);
		if (rl.differ)
			f = finding_add(st->findings, "repeat", s->name, "mismatch",
					"%d of %d launches differ from the first, %s: %s", rl.differ, rl.launches,
					rl.differ == 1     ? "once"
					: rl.same_elements ? "in the same elements"
							   : "not in the same elements (race)",
					text);
		else
			f = finding_add(st->findings, "repeat", s->name, "pass",
					"0 of %d differ, under %.2g %% at 95 %%", rl.launches, 100 * bound);
		differing(st, f, &rl.image, want, &rl.diff);
		fields(f, s->name, "launches", rl.launches, rl.differ, rl.same_elements, bound);
	}
	image_drop(&rl.image);
	return true;
}

/* A second scene with copies of all inputs that have masters; an input of one set keeps its address. */
static bool addresses(struct stage *st, const struct evidence *ev, int i, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	struct subject *s = &st->subject[i];
	const struct image *want = &ev->first[0][i], *known[] = {want};
	struct ready *r = NULL;
	struct image im = {0};
	struct checked seen;
	struct scene sc;
	struct diff d;
	uint32_t fresh = 0;
	char text[512];
	bool ok = false, ran;

	for (int t = 0; t < k->n_tensors; t++)
		if (st->in[t] && !st->in[t]->one_set)
			fresh |= 1u << t;
	if (!check_masters(st, err) || !scene_create(st, &st->cell->point, fresh, &sc, err))
		return false;
	for (int t = 0; t < k->n_tensors; t++)
		if ((fresh >> t & 1) && sc.own[t].bytes &&
		    !st->ops->copy(st->be, sc.own[t].data, st->in[t]->master[0], sc.own[t].bytes, err))
			goto done;
	struct err why = {{0}};
	r = ready_create(st, &sc, s, &why);
	if (!r) {
		if (st->lost) {
			*err = why;
			goto done;
		}
		stage_fail(st, s, "plan at other addresses", why.text);
		ok = true;
		goto done;
	}
	if (!check_launch(st, r, TENSOR_POISON_A, TAIL_NAN, false, &seen, &ran, err))
		goto done;
	if (!ran) {
		ok = true;
		goto done;
	}
	check_guards(st, r, &seen);
	if (!image_take(st, r, known, 1, true, TENSOR_POISON_A, &im, err))
		goto done;
	check_gaps(st, s->name, &im);
	if (!image_diff(st, &st->main, &im, want, &d, err))
		goto done;
	say(st, text, sizeof(text), &im, want, &d);
	json_t *f = d.out >= 0
			    ? finding_add(st->findings, "repeat", s->name, "mismatch",
					  "other bits at other addresses: %s", text)
			    : finding_add(st->findings, "repeat", s->name, "pass", "the same bits at other addresses");
	differing(st, f, &im, want, &d);
	fields(f, s->name, "addresses", 1, d.out >= 0, true, -1);
	ok = true;
done:
	image_drop(&im);
	ready_destroy(st, r);
	scene_destroy(st, &sc);
	return ok;
}

bool check_repeat(struct stage *st, const struct evidence *ev, struct err *err)
{
	const struct check_repeat *c = &st->cell->checks.repeat;

	if (!check_set(st, 0, NULL, err))
		return false;
	for (int i = 0; i < st->n_subjects; i++) {
		struct subject *s = &st->subject[i];
		if (!subject_runs(s) || s->role == ROLE_NULL || !ev->have[0][i] || !stage_listed(c->arms, s->name))
			continue;
		stage_beat(st, "repeat", s->name, 0);
		if (c->launches > 0 && !launches(st, ev, i, err))
			return false;
		if (c->addresses && subject_runs(s) && !addresses(st, ev, i, err))
			return false;
	}
	return true;
}
