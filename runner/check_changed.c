/* After the timed rounds: two elements of an input change places, and every arm is run again. An answer that was kept from an earlier launch,
 * under a key that is less than the data, is the old one. What changes places lies in one row, has one meaning and stays as it was filled, so
 * that every promise, bound and number of non-zeros still holds; row numbers are left alone. Packed inputs are packed again.
 *
 * An arm that claims the bits of shipped must have them. Any other is wrong where shipped moved by much more than the two ever differed, and
 * the arm did not follow half of the way. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_cell.h"
#include "fill.h"
#include "finding.h"
#include "mix.h"
#include "registry.h"

/* Draws for two places of unlike bytes; changes that are tried a tensor; outputs above are held to their bits alone. */
enum { DRAWS = 16, TRIES = 3, RECORD_MAX = 1024 };
#define NEAR_BYTES IMAGE_HOST_BYTES

struct change {
	int t;
	int64_t at[2]; /* elements */
	size_t offset[2];
	uint32_t bytes;
	unsigned char was[2][RECORD_MAX];
};

static size_t offset_of(const struct buffer *b, int64_t i)
{
	int64_t coord[ASSAY_MAX_RANK], at = 0;

	if (tensor_is_dense(&b->shape))
		return (size_t)i * b->elem_bytes;
	tensor_coords(&b->shape, i, coord);
	for (int k = 0; k < b->shape.rank; k++)
		at += coord[k] * b->shape.stride[k];
	return (size_t)at * b->elem_bytes;
}

/* Whether its elements may change places in a row: no row numbers, and no numbers of somebody's file that may be sorted. */
static bool may_change(const struct stage *st, int t)
{
	const struct assay_tensor *desc = &st->cell->kernel->tensors[t];
	const struct cell *c = st->cell;
	struct fill_job job[ASSAY_MAX_FIELDS];
	struct err ignored;

	if (!st->in[t] || desc->role != ASSAY_IN || desc->use == ASSAY_INDEX ||
	    assay_shape_count(&st->main.shape[t]) < 2 || tensor_elem_bytes(desc) > RECORD_MAX)
		return false;
	for (int f = 0; f < desc->n_fields; f++)
		if (desc->fields[f].use == ASSAY_INDEX)
			return false;
	const int n = fill_resolve(c->kernel, t, &c->point, &c->dist, c->seed, 0, job, &ignored);
	for (int j = 0; j < n; j++)
		if (job[j].spec.kind == FILL_NPY && desc->dtype > ASSAY_E5M2)
			return false;
	return n > 0;
}

/* Two places of unlike bytes in one row, in the middle half of the tensor where it is long enough. *found false: there are none. */
static bool change_draw(struct stage *st, int t, uint64_t *random, struct change *c, bool *found, struct err *err)
{
	const struct buffer *b = &st->in[t]->live;
	const int64_t n = assay_shape_count(&b->shape), row = b->shape.rank ? b->shape.dim[b->shape.rank - 1] : 1;

	*found = false;
	c->t = t;
	c->bytes = b->elem_bytes;
	for (int i = 0; i < DRAWS && !*found && row > 1; i++) {
		const int64_t quarter = n >= 16 ? n / 4 : 0;
		c->at[0] = quarter + (int64_t)mix_below(random, (uint64_t)(n - 2 * quarter));
		const int64_t first = c->at[0] / row * row;
		/* Of the row that is the whole tensor the middle half too. */
		const int64_t skip = row == n ? quarter : 0;
		c->at[1] = first + skip + (int64_t)mix_below(random, (uint64_t)(row - 2 * skip));
		for (int k = 0; k < 2; k++) {
			c->offset[k] = offset_of(b, c->at[k]);
			if (!st->ops->download(st->be, c->was[k], (unsigned char *)b->data + c->offset[k], c->bytes,
					       err))
				return false;
		}
		*found = memcmp(c->was[0], c->was[1], c->bytes) != 0;
	}
	return true;
}

static bool change_put(struct stage *st, const struct change *c, bool changed, struct err *err)
{
	struct input *in = st->in[c->t];

	in->loaded = -1; /* it holds no set while it is changed */
	for (int k = 0; k < 2; k++)
		if (!st->ops->upload(st->be, (unsigned char *)in->live.data + c->offset[k], c->was[changed ? !k : k],
				     c->bytes, err))
			return false;
	if (changed)
		return true;
	bool intact;
	in->loaded = st->set;
	return input_intact(st->inputs, in, &intact, err) && (intact || input_load(st->inputs, in, st->set, true, err));
}

static double step_of(enum assay_dtype t, double v)
{
	static const int mantissa[] = {[ASSAY_F64] = 52, [ASSAY_F32] = 23, [ASSAY_F16] = 10,
				       [ASSAY_BF16] = 7, [ASSAY_E4M3] = 3, [ASSAY_E5M2] = 2};

	return t > ASSAY_E5M2 ? 1 : ldexp(fabs(v), -mantissa[t]);
}

/* How far two answers to the same inputs are apart at most, where both are defined and finite; *scale grows to the largest of them. */
static double apart_of(enum assay_dtype dtype, int64_t n, const unsigned char *a, const unsigned char *b,
		       const uint8_t *mask, double *scale)
{
	double apart = 0;

	for (int64_t i = 0; i < n; i++) {
		const double x = fill_element(a, dtype, i), y = fill_element(b, dtype, i);
		if ((mask && !mask[i]) || !isfinite(x) || !isfinite(y))
			continue;
		apart = fmax(apart, fabs(x - y));
		*scale = fmax(*scale, fabs(x));
	}
	return apart;
}

/* Elements in which one (moved, before and after) moved by much more than `apart` and than rounding makes, and the other did not go half of
 * the way. keep: an element each. The number of them. */
static int64_t left_behind(enum assay_dtype dtype, int64_t n, const unsigned char *const moved[2],
			   const unsigned char *other, double apart, double scale, const uint8_t *mask, uint8_t *keep)
{
	const double least = fmax(8 * apart, fmax(4 * step_of(dtype, scale), scale / 1000));
	int64_t count = 0;

	for (int64_t i = 0; i < n; i++) {
		const double is = fill_element(moved[1], dtype, i), by = fabs(is - fill_element(moved[0], dtype, i));
		keep[i] = (!mask || mask[i]) && isfinite(by) && by > least &&
			  !(fabs(fill_element(other, dtype, i) - is) <= by / 2);
		count += keep[i];
	}
	return count;
}

struct trial {
	struct stage *st;
	const struct evidence *ev;
	struct change change;
	struct image im[STAGE_SUBJECTS];
	bool ran[STAGE_SUBJECTS], moved; /* moved: some output is another than before */
};

static void wrong(struct trial *tr, int i, const char *against, int k, const unsigned char *got,
		  const unsigned char *want, const struct diff *d)
{
	struct stage *st = tr->st;
	const struct assay_tensor *in = &st->cell->kernel->tensors[tr->change.t];
	const int t = tr->im[i].tensor[k];
	char a[TENSOR_AT_MAX], b[TENSOR_AT_MAX], text[512];

	tensor_at(in, &st->main.shape[tr->change.t], tr->change.at[0], a, sizeof(a));
	tensor_at(in, &st->main.shape[tr->change.t], tr->change.at[1], b, sizeof(b));
	diff_text(&st->cell->kernel->tensors[t], &st->main.shape[t], got, want, d, text, sizeof(text));
	json_t *f =
		finding_add(st->findings, "changed", st->subject[i].name, "wrong",
			    "answers from what it kept of other inputs: %s and %s changed places, and it does not give "
			    "what %s gives: %s",
			    a, b, against, text);
	json_object_set_new(f, "against", json_string(against));
	diff_fields(f, &st->cell->kernel->tensors[t], &st->main.shape[t], got, want, d);
	json_object_set_new(f, "control", json_true());
}

/* Whether subject i was left behind where subject w moved. False: an output could not be had. */
static bool follows(struct trial *tr, int i, int w, bool *behind, struct err *err)
{
	const struct stage *st = tr->st;
	const struct evidence *ev = tr->ev;

	*behind = false;
	for (int k = 0; k < tr->im[i].n && !*behind; k++) {
		const int t = tr->im[i].tensor[k];
		const struct assay_tensor *desc = &st->cell->kernel->tensors[t];
		const int64_t n = assay_shape_count(&st->main.shape[t]);
		const uint8_t *mask = st->main.mask[t];
		double apart = 0, scale = 0;
		if (desc->dtype == ASSAY_RECORD || !n || (size_t)n * tensor_elem_bytes(desc) > NEAR_BYTES ||
		    ev->first[0][w].digest[k] == tr->im[w].digest[k])
			continue;
		if (!image_fetch(&tr->im[w], err) || !image_fetch(&tr->im[i], err))
			return false;
		for (int set = 0; set < INPUT_SETS; set++) {
			const struct image *x = &ev->first[set][w], *y = &ev->first[set][i];
			if (!ev->have[set][w] || !ev->have[set][i])
				continue;
			if (!image_fetch(x, err) || !image_fetch(y, err))
				return false;
			apart = fmax(apart,
				     apart_of(desc->dtype, n, image_bytes(x, k), image_bytes(y, k), mask, &scale));
		}
		const unsigned char *const moved[] = {image_bytes(&ev->first[0][w], k), image_bytes(&tr->im[w], k)};
		const unsigned char *other = image_bytes(&tr->im[i], k);
		uint8_t *keep = malloc((size_t)n);
		struct diff d;
		if (!keep)
			return err_set(err, "out of memory");
		if (left_behind(desc->dtype, n, moved, other, apart, scale, mask, keep)) {
			image_diff_bytes(desc, &st->main.shape[t], other, moved[1], keep, &d);
			wrong(tr, i, st->subject[w].name, k, other, moved[1], &d);
			*behind = true;
		}
		free(keep);
	}
	return true;
}

/* One arm against shipped, which is subject 0. */
static bool judge_arm(struct trial *tr, int i, struct err *err)
{
	struct stage *st = tr->st;
	const struct cell_arm *a = st->subject[i].arm, *of = st->subject[0].arm;
	bool behind = false;
	struct diff d;

	if (finding_failed(st->findings, "changed", st->subject[i].name))
		return true;
	if (registry_has_bits(a->desc, a->arg, of->desc, of->arg) &&
	    image_same(&tr->ev->first[0][i], &tr->ev->first[0][0])) {
		if (image_same(&tr->im[i], &tr->im[0]))
			return true;
		if (!image_diff(st, &st->main, &tr->im[i], &tr->im[0], &d, err))
			return false;
		/* Shipped that stays behind is not what others are held against. */
		if (d.out >= 0 && !image_same(&tr->im[0], &tr->ev->first[0][0]))
			wrong(tr, i, st->subject[0].name, d.out, image_bytes(&tr->im[i], d.out),
			      image_bytes(&tr->im[0], d.out), &d);
		else if (d.out >= 0 && !finding_failed(st->findings, "changed", st->subject[0].name))
			wrong(tr, 0, st->subject[i].name, d.out, image_bytes(&tr->im[0], d.out),
			      image_bytes(&tr->im[i], d.out), &d);
		return true;
	}
	if (!follows(tr, i, 0, &behind, err))
		return false;
	if (behind || finding_failed(st->findings, "changed", st->subject[0].name) ||
	    !image_same(&tr->im[0], &tr->ev->first[0][0]))
		return true;
	return follows(tr, 0, i, &behind, err);
}

/* Whether an arm takes part: it is not known for giving other bits each time, nor for being wrong. */
static bool takes_part(const struct stage *st, const struct evidence *ev, int i)
{
	static const char *const failed[] = {"memory", "repeat", "timed", "run"};
	const struct subject *s = &st->subject[i];

	if (s->role == ROLE_NULL || !subject_runs(s) || !s->ready || !ev->have[0][i])
		return false;
	for (size_t k = 0; k < sizeof(failed) / sizeof(*failed); k++)
		if (finding_failed(st->findings, failed[k], s->name))
			return false;
	return true;
}

static bool trial_run(struct trial *tr, struct err *err)
{
	struct stage *st = tr->st;

	for (int i = 0; i < st->n_subjects; i++) {
		struct subject *s = &st->subject[i];
		const struct image *known[STAGE_SUBJECTS + 1] = {&tr->ev->first[0][i]};
		struct checked seen;
		bool ok;
		if (!takes_part(st, tr->ev, i))
			continue;
		stage_beat(st, "changed", s->name, 0);
		for (int k = 0; k < i; k++)
			known[k + 1] = tr->ran[k] ? &tr->im[k] : NULL;
		if (!check_derive(st, s, TENSOR_POISON_A, &ok, err))
			return false;
		if (!ok)
			continue;
		if (!check_launch(st, s->ready, TENSOR_POISON_A, TAIL_NAN, false, &seen, &ok, err))
			return false;
		if (!ok)
			continue;
		check_guards(st, s->ready, &seen);
		if (!image_take(st, s->ready, known, i + 1, true, TENSOR_POISON_A, &tr->im[i], err))
			return false;
		tr->ran[i] = true;
		tr->moved = tr->moved || !image_same(&tr->im[i], &tr->ev->first[0][i]);
	}
	for (int i = 1; i < st->n_subjects && tr->ran[0]; i++)
		if (tr->ran[i] && !judge_arm(tr, i, err))
			return false;
	return true;
}

/* Two places of tensor t; found: there are two of unlike bytes; moved: some output followed. */
static bool one_change(struct stage *st, const struct evidence *ev, int t, uint64_t *random, bool *found, bool *moved,
		       struct err *err)
{
	struct trial tr = {.st = st, .ev = ev};

	*moved = false;
	if (!change_draw(st, t, random, &tr.change, found, err))
		return false;
	if (!*found)
		return true;
	bool ok = change_put(st, &tr.change, true, err) && trial_run(&tr, err);
	*moved = tr.moved;
	for (int i = 0; i < STAGE_SUBJECTS; i++)
		image_drop(&tr.im[i]);
	return ok && change_put(st, &tr.change, false, err);
}

bool check_changed(struct stage *st, const struct evidence *ev, uint64_t seed, struct err *err)
{
	uint64_t random = seed ^ 0xC4A46EDB17E5u;
	bool tried = false, any = false;

	for (int i = 0; i < st->n_subjects; i++)
		if (st->subject[i].spoils)
			return true; /* what an input holds is not known to be what it should be */
	if (!takes_part(st, ev, 0))
		return true;
	if (!check_set(st, 0, NULL, err))
		return false;
	for (int t = 0; t < st->cell->kernel->n_tensors; t++) {
		bool found = true, moved = false;
		for (int i = 0; i < TRIES && found && !moved && may_change(st, t) && takes_part(st, ev, 0); i++) {
			if (!one_change(st, ev, t, &random, &found, &moved, err))
				return false;
			tried = tried || found;
		}
		any = any || moved;
	}
	/* What is packed is packed as it was. */
	if (tried && !check_set(st, 0, NULL, err))
		return false;
	for (int i = 0; i < st->n_subjects && any; i++) {
		const char *name = st->subject[i].name;
		if (!takes_part(st, ev, i) || finding_failed(st->findings, "changed", name))
			continue;
		json_t *f = finding_add(st->findings, "changed", name, "pass", NULL);
		json_object_set_new(f, "control", json_true());
	}
	if (tried && !any)
		stage_note(st, "no output follows when two elements of an input change places: an answer that is kept "
			       "cannot "
			       "be told from one that is computed");
	return true;
}
