/* Guards, poison, tails, inputs. Every arm is launched four times: two input sets, each once with the first poison and NaN behind
 * the inputs, once with the second poison and huge numbers there. Equal outputs of the two prove that every element was written,
 * that nothing of what lay around was read, and (as far as two launches can) that the arm repeats itself. What differs is told
 * apart by more launches. */
#include "check_cell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conduct.h"
#include "escape.h"
#include "finding.h"

/* Up to here an input is digested after every arm; a larger one at the end, and again arm by arm where it has changed. */
#define DIGEST_EACH_BYTES ((size_t)16 << 20)

void evidence_drop(struct evidence *ev)
{
	for (int set = 0; set < INPUT_SETS; set++)
		for (int i = 0; i < STAGE_SUBJECTS; i++)
			image_drop(&ev->first[set][i]);
	memset(ev->have, 0, sizeof(ev->have));
}

bool check_derive(struct stage *st, struct subject *s, uint32_t poison, bool *ok, struct err *err)
{
	struct err why = {{0}};

	*ok = ready_derive(st, s->ready, poison, &why);
	if (*ok)
		return true;
	if (st->lost)
		return err_set(err, "%s: %s", s->name, why.text);
	stage_fail(st, s, "derive", why.text);
	return true;
}

bool check_set(struct stage *st, int set, struct subject *s, struct err *err)
{
	if (!check_heal(st, err) || !check_load(st, set, false, err))
		return false;
	for (int i = 0; i < st->n_subjects; i++) {
		struct subject *one = &st->subject[i];
		bool ok;
		if ((s && s != one) || !subject_runs(one) || !one->ready)
			continue;
		if (!check_derive(st, one, TENSOR_POISON_A, &ok, err))
			return false;
	}
	return true;
}

/* Somebody wrote to what is not his, and it is not known who. */
static void anyone_spoils(struct stage *st)
{
	for (int i = 0; i < st->n_subjects; i++)
		st->subject[i].spoils = true;
}

/* Whether somebody is known to have written there. */
static bool blamed(const struct stage *st, const char *tensor, const char *where)
{
	for (size_t i = 0; i < json_array_size(st->findings); i++) {
		const json_t *f = json_array_get(st->findings, i);
		const char *t = json_string_value(json_object_get(f, "tensor"));
		const char *w = json_string_value(json_object_get(f, "where"));
		if (t && w && !strcmp(t, tensor) && !strcmp(w, where))
			return true;
	}
	return false;
}

/* A guard after launches that were not looked into one by one: what is found there is nobody's in particular. */
static bool guard_left(struct stage *st, struct buffer *b, const char *name, struct err *err)
{
	struct damage d;
	char text[256];

	if (!b || !b->alloc || !b->guarded)
		return true;
	if (!buffer_check(st->be, b, &d, err))
		return false;
	const char *where = d.before_data ? "guard_before" : "guard_after";
	if (!d.any || blamed(st, name, where))
		return true;
	snprintf(text, sizeof(text), "an arm wrote %s %s in a timed or watched launch: first at byte %lld",
		 d.before_data ? "before" : "behind", name, (long long)d.offset);
	check_memory_finding(st, NULL, name, where, d.offset, 4 * d.words, text);
	anyone_spoils(st);
	return true;
}

/* So that the arm which is launched next is not blamed for what was done before it. */
static bool guards_left(struct stage *st, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	bool ok = true;

	if (!st->unseen)
		return true;
	st->unseen = false;
	for (int t = 0; ok && t < k->n_tensors; t++) {
		ok = guard_left(st, st->main.buf[t], k->tensors[t].name, err);
		for (int i = 0; ok && i < st->n_subjects; i++)
			if (st->subject[i].ready)
				ok = guard_left(st, &st->subject[i].ready->derived[t], k->tensors[t].name, err);
	}
	for (int i = 0; ok && i < st->n_subjects; i++)
		if (st->subject[i].ready)
			ok = guard_left(st, &st->subject[i].ready->workspace, "workspace", err);
	return ok;
}

bool check_launch(struct stage *st, struct ready *r, uint32_t poison, enum tail tail, bool inspect, struct checked *out,
		  bool *ok, struct err *err)
{
	struct err why = {{0}};

	if (!conduct_before(st, r->subject, err) || !guards_left(st, err) || !check_heal(st, err))
		return false;
	enum run_result rr = ready_check(st, r, poison, tail, inspect, out, &why);

	*ok = rr == RUN_OK;
	if (rr == RUN_LOST)
		return err_set(err, "%s: %s", r->subject->name, why.text);
	if (out->n_damages)
		r->subject->spoils = true;
	if (r->subject->spoils)
		st->spoiler = r->subject;
	if (rr == RUN_FAILED)
		stage_fail(st, r->subject, "launch", why.text);
	else
		escape_seen(r->subject, out->escaped_ns);
	check_fp(st, r->subject);
	return conduct_after(st, r->subject, err);
}

void check_fp(struct stage *st, const struct subject *s)
{
	char text[256];

	if (!s->left_fp)
		return;
	snprintf(text, sizeof(text),
		 "leaves other floating-point control bits behind (%s); they were put back, so that no other arm has "
		 "them",
		 s->fp_words);
	check_memory_finding(st, s->name, NULL, "fp_control", -1, -1, text);
}

int check_affordable(const struct stage *st, int n)
{
	size_t bytes = 1;

	for (int t = 0; t < st->cell->kernel->n_tensors; t++)
		if (st->main.buf[t] && !st->in[t])
			bytes += st->main.buf[t]->bytes;
	size_t most = ((size_t)4 << 30) / bytes;
	return most < 3 ? (n < 3 ? n : 3) : most < (size_t)n ? (int)most : n;
}

void check_guards(struct stage *st, const struct ready *r, const struct checked *seen)
{
	const struct assay_kernel *k = st->cell->kernel;
	const char *arm = r->subject->name;

	for (int i = 0; i < seen->n_damages; i++) {
		const struct guard_damage *g = &seen->damage[i];
		const char *name = g->tensor < 0 ? "workspace" : k->tensors[g->tensor].name;
		const struct buffer *b = g->tensor < 0                                 ? &r->workspace
					 : k->tensors[g->tensor].role == ASSAY_DERIVED ? &r->derived[g->tensor]
										       : r->scene->buf[g->tensor];
		char text[256];
		if (g->damage.before_data)
			snprintf(text, sizeof(text), "writes before %s: first %lld bytes ahead of it, %lld word%s",
				 name, (long long)-g->damage.offset, (long long)g->damage.words,
				 g->damage.words == 1 ? "" : "s");
		else
			snprintf(text, sizeof(text), "writes behind %s: first at byte %lld of %zu, %lld word%s", name,
				 (long long)g->damage.offset, b->bytes, (long long)g->damage.words,
				 g->damage.words == 1 ? "" : "s");
		check_memory_finding(st, arm, name, g->damage.before_data ? "guard_before" : "guard_after",
				     g->damage.offset, 4 * g->damage.words, text);
	}
}

void check_gaps(struct stage *st, const char *arm, const struct image *im)
{
	for (int k = 0; k < im->n; k++) {
		const char *name = st->cell->kernel->tensors[im->tensor[k]].name;
		char text[256];
		if (im->gap[k] < 0)
			continue;
		snprintf(text, sizeof(text), "writes between the rows of %s: first at byte %lld", name,
			 (long long)im->gap[k]);
		check_memory_finding(st, arm, name, "guard_after", im->gap[k], -1, text);
	}
}

bool check_relaunch(struct stage *st, struct subject *s, int n, const struct image *want, struct relaunch *out,
		    struct err *err)
{
	struct image im = {0};

	memset(out, 0, sizeof(*out));
	out->same_elements = true;
	out->diff.out = -1;
	for (int i = 0; i < n && subject_runs(s); i++) {
		struct checked seen;
		struct diff d;
		bool ok;
		st->sink->beat->round = i;
		if (!check_launch(st, s->ready, TENSOR_POISON_A, TAIL_NAN, false, &seen, &ok, err))
			goto fail;
		if (!ok)
			break;
		out->launches++;
		check_guards(st, s->ready, &seen);
		if (!image_take(st, s->ready, NULL, 0, false, TENSOR_POISON_A, &im, err))
			goto fail;
		check_gaps(st, s->name, &im);
		bool same = image_same(&im, want), as_before = out->differ && image_same(&im, &out->image);
		image_drop(&im);
		if (same)
			continue;
		out->differ++;
		if (as_before)
			continue;
		const struct image *known[] = {want};
		if (!image_take(st, s->ready, known, 1, true, TENSOR_POISON_A, &im, err) ||
		    !image_diff(st, &st->main, &im, want, &d, err))
			goto fail;
		if (out->differ == 1) {
			out->diff = d;
			out->image = im;
			im = (struct image){0};
			continue;
		}
		out->same_elements = out->same_elements && d.out == out->diff.out && d.where == out->diff.where;
		image_drop(&im);
	}
	return true;
fail:
	image_drop(&im);
	image_drop(&out->image);
	return false;
}

static bool one_arm(struct stage *st, struct evidence *ev, int set, int i, size_t digest_max, struct err *err)
{
	struct subject *s = &st->subject[i];
	const struct image *known[STAGE_SUBJECTS];
	struct image *first = &ev->first[set][i], second;
	struct checked seen;
	bool ok, intact = true;

	for (int k = 0; k < st->n_subjects; k++)
		known[k] = ev->have[set][k] ? &ev->first[set][k] : NULL;
	if (!check_launch(st, s->ready, TENSOR_POISON_A, TAIL_NAN, set == 0 && !s->ready->graph, &seen, &ok, err))
		return false;
	if (!ok)
		return true;
	check_guards(st, s->ready, &seen);
	if (!image_take(st, s->ready, known, st->n_subjects, true, TENSOR_POISON_A, first, err))
		return false;
	ev->have[set][i] = true;
	check_gaps(st, s->name, first);
	if (!check_inputs(st, s, digest_max, NULL, &intact, err))
		return false;
	/* A container that was not packed to its last byte must not show either. */
	if (!check_derive(st, s, TENSOR_POISON_B, &ok, err))
		return false;
	if (!ok)
		return true;
	if (!check_launch(st, s->ready, TENSOR_POISON_B, TAIL_HUGE, false, &seen, &ok, err))
		return false;
	if (!ok)
		return true;
	check_guards(st, s->ready, &seen);
	known[i] = first;
	if (!image_take(st, s->ready, known, st->n_subjects, false, TENSOR_POISON_B, &second, err))
		return false;
	ok = image_same(first, &second);
	if (!ok) {
		image_drop(&second);
		if (!image_take(st, s->ready, known, st->n_subjects, true, TENSOR_POISON_B, &second, err))
			return false;
	}
	if (ok || !intact) {
		/* An arm that changes its inputs cannot give the same output twice: one finding is enough. */
		image_drop(&second);
		return check_inputs(st, s, digest_max, NULL, &intact, err);
	}
	if (!check_inputs(st, s, digest_max, NULL, &intact, err)) {
		image_drop(&second);
		return false;
	}
	/* The launches that tell why are as the first one was. */
	bool packed, lived = check_derive(st, s, TENSOR_POISON_A, &packed, err);
	if (lived && packed && intact)
		lived = check_tell_apart(st, s, first, &second, err);
	image_drop(&second);
	return lived;
}

static void graph_finding(struct stage *st, const struct subject *s)
{
	int want = s->n_launches, got = s->ready->graph_kernels;
	json_t *f;

	if (got < 0)
		return;
	if (want && got != want)
		f = finding_add(st->findings, "graph", s->name, "wrong", "graph has %d of %d launches", got, want);
	else
		f = finding_add(st->findings, "graph", s->name, "pass", NULL);
	json_object_set_new(f, "launches", json_integer(want));
	json_object_set_new(f, "captured", json_integer(got));
}

static bool all_arms(struct stage *st, struct evidence *ev, size_t digest_max, struct err *err)
{
	for (int set = 0; set < INPUT_SETS; set++) {
		if (!check_set(st, set, NULL, err))
			return false;
		for (int i = 0; i < st->n_subjects; i++) {
			struct subject *s = &st->subject[i];
			if (s->role == ROLE_NULL || !subject_runs(s) || !s->ready)
				continue;
			stage_beat(st, "memory", s->name, set);
			if (!one_arm(st, ev, set, i, digest_max, err))
				return false;
		}
	}
	return true;
}

bool check_memory(struct stage *st, struct evidence *ev, struct err *err)
{
	bool intact = true;

	if (!all_arms(st, ev, DIGEST_EACH_BYTES, err) || !check_inputs(st, NULL, 0, NULL, &intact, err))
		return false;
	if (!intact) {
		/* Somebody changed a large input: all over again, with a digest after every launch, to say who. */
		evidence_drop(ev);
		finding_drop(st->findings, "memory", NULL);
		finding_drop(st->findings, "repeat",
			     NULL); /* of launches on inputs that were not what they should be */
		if (!check_load(st, 0, true, err) || !all_arms(st, ev, 0, err))
			return false;
	}
	if (!escape_settle(st, err))
		return false;
	for (int i = 0; i < st->n_subjects; i++) {
		struct subject *s = &st->subject[i];
		if (s->role == ROLE_NULL || s->unsupported || !s->ready)
			continue;
		graph_finding(st, s);
		check_fp(st, s);
		if (!s->failed && !finding_failed(st->findings, "memory", s->name))
			finding_add(st->findings, "memory", s->name, "pass", NULL);
	}
	return true;
}

bool check_again(struct stage *st, const struct evidence *ev, int launches_before, struct err *err)
{
	bool intact = true;

	/* First guards and inputs as the rounds left them: nothing is loaded before this. */
	if (!guards_left(st, err) || !check_inputs(st, NULL, 0, "during the timed rounds", &intact, err))
		return false;
	if (!intact)
		anyone_spoils(st);
	for (int set = INPUT_SETS - 1; set >= 0; set--) {
		if (!check_set(st, set, NULL, err))
			return false;
		for (int i = 0; i < st->n_subjects; i++) {
			struct subject *s = &st->subject[i];
			struct relaunch rl;
			if (!subject_runs(s) || s->role == ROLE_NULL || !ev->have[set][i])
				continue;
			stage_beat(st, "again", s->name, set);
			if (!check_relaunch(st, s, 1, &ev->first[set][i], &rl, err))
				return false;
			if (rl.differ && rl.diff.out >= 0 && !finding_failed(st->findings, "repeat", s->name)) {
				char text[512];
				int t = rl.image.tensor[rl.diff.out];
				const struct assay_tensor *desc = &st->cell->kernel->tensors[t];
				const unsigned char *got = image_bytes(&rl.image, rl.diff.out);
				const unsigned char *want = image_bytes(&ev->first[set][i], rl.diff.out);
				diff_text(desc, &st->main.shape[t], got, want, &rl.diff, text, sizeof(text));
				json_t *f = finding_add(st->findings, "repeat", s->name, "mismatch",
							"after the timed rounds (%d launches) it gives other bits than "
							"at first: %s",
							launches_before, text);
				json_object_set_new(f, "against", json_string(s->name));
				diff_fields(f, desc, &st->main.shape[t], got, want, &rl.diff);
				json_object_set_new(f, "launches", json_integer(1));
				json_object_set_new(f, "launches_differ", json_integer(1));
				json_object_set_new(f, "same_elements", json_true());
				json_object_set_new(f, "bound", json_null());
			}
			image_drop(&rl.image);
		}
	}
	return true;
}
