#include "rotate.h"

#include <math.h>
#include <stdlib.h>

/* Of the copies that are made where the suite names no number. */
enum { COPIES_MAX = 64 };

struct rotate {
	struct stage *st;
	/* Copy 0 is the main scene and belongs to the stage. */
	struct scene *scene;
	struct ready *(*ready)[STAGE_SUBJECTS]; /* [copy][subject] */
	int n;
	uint64_t turn, round_began;
};

void rotate_destroy(struct rotate *r)
{
	if (!r)
		return;
	for (int c = 1; c < r->n; c++) {
		for (int i = 0; i < STAGE_SUBJECTS; i++)
			ready_destroy(r->st, r->ready[c][i]);
		scene_destroy(r->st, &r->scene[c]);
	}
	free(r->scene);
	free(r->ready);
	free(r);
}

struct ready *rotate_next(struct rotate *r, int subject)
{
	return r->ready[r->turn++ % (uint64_t)r->n][subject];
}

void rotate_round(struct rotate *r)
{
	if (r->turn != r->round_began && (r->turn - r->round_began) % (uint64_t)r->n == 0)
		r->turn++;
	r->round_began = r->turn;
}

/* Everything that an arm only reads. */
static uint32_t read_only(const struct stage *st, int64_t *bytes)
{
	uint32_t bits = 0;

	*bytes = 0;
	for (int t = 0; t < st->cell->kernel->n_tensors; t++)
		if (st->in[t] && st->cell->kernel->tensors[t].role == ASSAY_IN) {
			bits |= 1u << t;
			*bytes += (int64_t)st->in[t]->live.bytes;
		}
	return bits;
}

static bool copy_fill(struct stage *st, struct scene *sc, uint32_t fresh, struct err *err)
{
	for (int t = 0; t < st->cell->kernel->n_tensors; t++)
		if ((fresh >> t & 1) && sc->own[t].bytes &&
		    !st->ops->copy(st->be, sc->own[t].data, st->in[t]->live.data, sc->own[t].bytes, err))
			return false;
	return true;
}

static bool copy_make(struct rotate *r, int c, uint32_t fresh, const int subject[], int n_subjects, struct err *err)
{
	struct stage *st = r->st;

	if (c && !scene_create(st, &st->cell->point, fresh, &r->scene[c], err))
		return false;
	r->n = c + 1;
	if (c && !copy_fill(st, &r->scene[c], fresh, err))
		return false;
	for (int a = 0; a < n_subjects; a++) {
		struct subject *s = &st->subject[subject[a]];
		struct ready *ready = c ? ready_create(st, &r->scene[c], s, err) : s->ready;
		r->ready[c][subject[a]] = ready;
		if (!ready)
			return err_prefix(err, "%s, copy %d of the inputs", s->name, c);
	}
	return true;
}

struct rotate *rotate_create(struct stage *st, const int subject[], int n_subjects, struct err *err)
{
	struct rotate *r = calloc(1, sizeof(*r));
	int64_t llc = st->ops->info(st->be)->llc_bytes, bytes;
	uint32_t fresh = read_only(st, &bytes);
	int want = st->cell->timing.rotate_copies;

	if (want <= 0)
		want = bytes > 0 && llc > 0 ? (int)fmin(COPIES_MAX, ceil(4.0 * (double)llc / (double)bytes)) + 1 : 4;
	if (r) {
		r->st = st;
		r->scene = calloc((size_t)want, sizeof(*r->scene));
		r->ready = calloc((size_t)want, sizeof(*r->ready));
	}
	if (!r || !r->scene || !r->ready) {
		err_set(err, "out of memory");
		rotate_destroy(r);
		return NULL;
	}
	for (int c = 0; c < want; c++)
		if (!copy_make(r, c, fresh, subject, n_subjects, err)) {
			rotate_destroy(r);
			return NULL;
		}
	if (bytes * want < 2 * llc)
		stage_note(st, "rotate: %d copies are %lld MiB, less than two last-level caches: this is warm", want,
			   (long long)(bytes * want >> 20));
	return r;
}
