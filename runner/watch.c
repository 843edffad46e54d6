#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoy.h"
#include "finding.h"
#include "mix.h"
#include "rounds.h"

/* Outputs up to here are looked at in each round on the host: little beside a launch. */
#define EACH_ROUND_BYTES ((size_t)64 << 10)
/* Outputs that have to be brought to the host to be looked at, beyond these bytes, are looked at in one round of so many. */
#define SELDOM_BYTES ((size_t)4 << 20)
enum { OFTEN = 2, SELDOM = 16 };
/* Rounds that are thrown away at the end, at most; and what is called few rounds: each of them is looked at. */
enum { CLOSING = 2, FEW_ROUNDS = 8 };

struct wrong {
	struct image got; /* of the first launch that differed */
	struct diff diff;
	int64_t launch, round; /* from 1 */
	enum decoy_kind held;
	bool same_elements;
};

struct watch {
	struct stage *st;
	const struct evidence *ev;
	struct decoy *decoy;
	uint64_t random;
	int of_rounds; /* one round of so many is looked at */
	int chosen; /* of this group of rounds */
	int round, at; /* this round, and the launch of it that is looked at */
	bool seen_last;
	int closing;
	enum decoy_kind kind[ROUNDS_BATCH_MAX];
	int deck[DECOY_KINDS], drawn; /* decoys of the launches that are looked at, in an order drawn anew */
	int looks[DECOY_KINDS];
	uint32_t word; /* in the gaps of strided outputs */
	struct watched seen[STAGE_SUBJECTS];
	struct wrong wrong[STAGE_SUBJECTS];
	bool unstable[STAGE_SUBJECTS]; /* is known to give other bits each time, and judged for it */
};

static int index_of(const struct watch *w, const struct subject *s)
{
	return (int)(s - w->st->subject);
}

/* The subject whose checked answer this one's is. */
static int answer_of(const struct subject *s, int i)
{
	return s->role == ROLE_NULL ? 0 : i;
}

static int rounds_a_look(const struct stage *st, int rounds)
{
	const struct assay_kernel *k = st->cell->kernel;
	size_t bytes = 0;
	bool brought = false;

	for (int t = 0; t < k->n_tensors; t++) {
		const struct buffer *b = st->main.buf[t];
		if (k->tensors[t].role != ASSAY_OUT && k->tensors[t].role != ASSAY_INOUT)
			continue;
		bytes += b->bytes;
		brought = brought || st->main.mask[t] || !tensor_is_dense(&b->shape);
	}
	if (brought && bytes > SELDOM_BYTES)
		return SELDOM;
	const bool few = rounds > 0 && rounds < FEW_ROUNDS;
	return few || (st->ops->kind == ASSAY_HOST && bytes <= EACH_ROUND_BYTES) ? 1 : OFTEN;
}

struct watch *watch_create(struct stage *st, const struct evidence *ev, int rounds, uint64_t seed, struct err *err)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w) {
		err_set(err, "out of memory");
		return NULL;
	}
	w->st = st;
	w->ev = ev;
	w->random = seed ^ 0x5EED0FA11DEC0E5Bu;
	w->of_rounds = rounds_a_look(st, rounds);
	w->at = -1;
	w->drawn = DECOY_KINDS;
	for (int i = 0; i < DECOY_KINDS; i++)
		w->deck[i] = i;
	for (int i = 0; i < st->n_subjects; i++)
		w->unstable[i] =
			finding_failed(st->findings, "repeat", st->subject[answer_of(&st->subject[i], i)].name);
	w->decoy = decoy_create(st, ev, mix_next(&w->random), err);
	if (!w->decoy) {
		watch_destroy(w);
		return NULL;
	}
	return w;
}

void watch_destroy(struct watch *w)
{
	if (!w)
		return;
	for (int i = 0; i < STAGE_SUBJECTS; i++)
		image_drop(&w->wrong[i].got);
	decoy_destroy(w->decoy);
	free(w);
}

void watch_idle(struct watch *w)
{
	w->at = -1;
	w->kind[0] = (enum decoy_kind)mix_below(&w->random, DECOY_KINDS);
}

/* Four looks in a row find four decoys. */
static enum decoy_kind next_decoy(struct watch *w)
{
	if (w->drawn == DECOY_KINDS) {
		mix_shuffle(&w->random, DECOY_KINDS, w->deck);
		w->drawn = 0;
	}
	return (enum decoy_kind)w->deck[w->drawn++];
}

void watch_round(struct watch *w, int round, int batch, bool last)
{
	const int n = batch < ROUNDS_BATCH_MAX ? batch : ROUNDS_BATCH_MAX;

	/* Everything is drawn whether it is needed or not: what comes later does not depend on when the rounds end. */
	if (round % w->of_rounds == 0)
		w->chosen = (int)mix_below(&w->random, (uint64_t)w->of_rounds);
	for (int i = 0; i < n; i++)
		w->kind[i] = (enum decoy_kind)mix_below(&w->random, DECOY_KINDS);
	const int at = (int)mix_below(&w->random, (uint64_t)n);
	const bool looks = w->ev && (last || round % w->of_rounds == w->chosen);
	w->round = round;
	w->at = looks ? at : -1;
	w->seen_last = looks;
	if (looks) {
		w->kind[at] = next_decoy(w);
		w->looks[w->kind[at]]++;
	}
}

bool watch_before(struct watch *w, struct ready *r, int i, struct err *err)
{
	return decoy_put(w->decoy, r, w->kind[i], &w->word, err);
}

int watch_at(const struct watch *w)
{
	return w->at;
}

void watch_count(struct watch *w, const struct subject *s, int batch)
{
	w->seen[index_of(w, s)].launches += batch;
}

/* Brings the outputs here and remembers where they differ. */
static bool remember(struct watch *w, struct ready *r, int i, struct err *err)
{
	const struct image *want = &w->ev->first[0][answer_of(r->subject, i)], *known[] = {want};
	struct wrong *wrong = &w->wrong[i];
	struct image im = {0};
	struct diff d;

	if (!image_take(w->st, r, known, 1, true, w->word, &im, err) ||
	    !image_diff(w->st, &w->st->main, &im, want, &d, err)) {
		image_drop(&im);
		return false;
	}
	if (w->seen[i].differ > 1) {
		wrong->same_elements = wrong->same_elements && d.out == wrong->diff.out && d.where == wrong->diff.where;
		image_drop(&im);
		return true;
	}
	*wrong = (struct wrong){.got = im,
				.diff = d,
				.launch = w->seen[i].launches + w->at + 1,
				.round = w->round + 1,
				.held = w->kind[w->at],
				.same_elements = true};
	return true;
}

/* Whether what the launch read is what the checked one read: where somebody has written to it, that is told, and not the innocent arm that was
 * given it (check_inputs). */
static bool same_inputs(struct watch *w, struct ready *r, bool *same, struct err *err)
{
	const struct stage *st = w->st;

	*same = true;
	for (int t = 0; *same && t < st->cell->kernel->n_tensors; t++) {
		const bool packed = r->derived[t].alloc != NULL;
		const struct buffer *b = packed ? &r->derived[t] : r->scene->buf[t];
		uint64_t digest;
		if (!packed && (!st->in[t] || st->cell->kernel->tensors[t].role != ASSAY_IN))
			continue;
		if (!b->bytes)
			continue;
		if (!st->ops->digest(st->be, b->data, b->bytes, &digest, err))
			return false;
		*same = digest == (packed ? r->derived_digest[t] : st->in[t]->digest[st->set]);
	}
	return true;
}

void watch_look(struct watch *w, struct ready *r, bool *lived, struct err *err)
{
	const int i = index_of(w, r->subject), a = answer_of(r->subject, i);
	struct image im;

	*lived = true;
	if (!w->ev->have[0][a])
		return;
	*lived = image_take(w->st, r, NULL, 0, false, w->word, &im, err);
	if (!*lived)
		return;
	check_gaps(w->st, r->subject->name, &im);
	const bool same = image_same(&im, &w->ev->first[0][a]);
	bool clean = true;
	image_drop(&im);
	if (!same)
		*lived = same_inputs(w, r, &clean, err);
	if (!*lived || !clean)
		return;
	w->seen[i].looked++;
	if (same || w->unstable[i])
		return;
	w->seen[i].differ++;
	*lived = remember(w, r, i, err);
}

bool watch_wants_more(struct watch *w)
{
	bool all = w->seen_last;

	for (int k = 0; k < DECOY_KINDS; k++)
		all = all && w->looks[k] > 0;
	return w->ev && !all && w->closing++ < CLOSING;
}

static void finding(struct watch *w, int i)
{
	struct stage *st = w->st;
	const struct subject *s = &st->subject[i];
	const struct watched *seen = &w->seen[i];
	const struct wrong *wrong = &w->wrong[i];
	const struct image *want = &w->ev->first[0][answer_of(s, i)];
	const int k = wrong->diff.out < 0 ? 0 : wrong->diff.out, t = want->tensor[k];
	const struct assay_tensor *desc = &st->cell->kernel->tensors[t];
	const struct assay_shape *shape = &st->main.shape[t];
	char text[512] = "no element can be named";

	if (wrong->diff.out >= 0)
		diff_text(desc, shape, image_bytes(&wrong->got, k), image_bytes(want, k), &wrong->diff, text,
			  sizeof(text));
	json_t *f =
		finding_add(st->findings, "timed", s->name, "mismatch",
			    "wrong under the clock: %lld of %lld timed launches that were looked at give other bits "
			    "than "
			    "the checked ones, the first of them launch %lld (round %lld), whose output held %s: %s",
			    (long long)seen->differ, (long long)seen->looked, (long long)wrong->launch,
			    (long long)wrong->round, decoy_name(wrong->held), text);
	json_object_set_new(f, "against", json_string(s->name));
	diff_fields(f, desc, shape, image_bytes(&wrong->got, k), image_bytes(want, k), &wrong->diff);
	json_object_set_new(f, "launches", json_integer(seen->looked));
	json_object_set_new(f, "launches_differ", json_integer(seen->differ));
	json_object_set_new(f, "same_elements", json_boolean(wrong->same_elements));
	json_object_set_new(f, "launch", json_integer(wrong->launch));
	json_object_set_new(f, "launches_timed", json_integer(seen->launches));
}

void watch_findings(struct watch *w, struct watched out[STAGE_SUBJECTS])
{
	memcpy(out, w->seen, sizeof(w->seen));
	for (int i = 0; i < w->st->n_subjects; i++)
		if (w->seen[i].differ && !finding_failed(w->st->findings, "timed", w->st->subject[i].name))
			finding(w, i);
}

void watch_passed(struct stage *st, const struct watched seen[STAGE_SUBJECTS])
{
	for (int i = 0; i < st->n_subjects; i++) {
		const char *name = st->subject[i].name;
		if (!seen[i].looked || seen[i].differ || finding_failed(st->findings, "timed", name))
			continue;
		json_t *f = finding_add(st->findings, "timed", name, "pass", NULL);
		json_object_set_new(f, "launches", json_integer(seen[i].looked));
		json_object_set_new(f, "launches_differ", json_integer(0));
		json_object_set_new(f, "launches_timed", json_integer(seen[i].launches));
	}
}
