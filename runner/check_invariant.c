/* Invariance of rows, within one cell: relaunched with the leading rows of its own inputs, with its rows in another order, and with
 * other neighbours, an arm must give the same bits row by row. All three are one thing: a list that says where each new row comes
 * from. Each has a positive control, a comparison that must differ: without it two constant outputs would prove anything. */
#include "check_cell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "finding.h"
#include "registry.h"

/* New row i is row src[i] of input set set[i]. The output's row i is compared with row want[i] of set 0 where set[i] is 0. The
 * control compares rows with row control[i] of set control_set, those of set `control_rows` only (-1: all). */
struct rows {
	const char *kind;
	char what[64];
	int64_t n;
	int64_t *src, *control;
	int *set;
	int control_set, control_rows;
};

struct ctx {
	struct stage *st;
	const struct evidence *ev;
	int param;
	const char *name; /* of the parameter */
	int dim[ASSAY_MAX_TENSORS]; /* of each tensor the dimension tied to it, or -1 */
	unsigned char *in[INPUT_SETS][ASSAY_MAX_TENSORS]; /* dense bytes of tied inputs */
};

static void rows_free(struct rows *r)
{
	free(r->src);
	free(r->control);
	free(r->set);
	memset(r, 0, sizeof(*r));
}

static bool rows_alloc(struct rows *r, const char *kind, int64_t n)
{
	memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->n = n;
	r->src = calloc((size_t)n + 1, sizeof(*r->src));
	r->control = calloc((size_t)n + 1, sizeof(*r->control));
	r->set = calloc((size_t)n + 1, sizeof(*r->set));
	if (r->src && r->control && r->set)
		return true;
	rows_free(r);
	return false;
}

static void extents(const struct assay_shape *s, int dim, uint32_t eb, size_t *outer, size_t *inner)
{
	*outer = 1;
	*inner = eb;
	for (int i = 0; i < dim; i++)
		*outer *= (size_t)s->dim[i];
	for (int i = dim + 1; i < s->rank; i++)
		*inner *= (size_t)s->dim[i];
}

/* dst row i of n = row pick[i] of from[set[i]] (set NULL: from[0]); s is the shape of the sources. */
static void move_rows(const struct assay_shape *s, int dim, uint32_t eb, const unsigned char *const from[INPUT_SETS],
		      const int64_t *pick, const int *set, int64_t n, unsigned char *dst)
{
	size_t outer, inner;

	extents(s, dim, eb, &outer, &inner);
	for (size_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < n; i++)
			memcpy(dst + (o * (size_t)n + (size_t)i) * inner,
			       from[set ? set[i] : 0] + (o * (size_t)s->dim[dim] + (size_t)pick[i]) * inner, inner);
}

/* Dense bytes of a set of an input. NULL with *err. */
static unsigned char *fetch_input(struct stage *st, int t, int set, struct err *err)
{
	const struct input *in = st->in[t];
	const struct buffer *b = &in->live;
	unsigned char *span = malloc(b->bytes + 1), *dense;

	if (!span) {
		err_set(err, "out of memory");
		return NULL;
	}
	if (b->bytes && !st->ops->download(st->be, span, in->one_set ? b->data : in->master[set], b->bytes, err)) {
		free(span);
		return NULL;
	}
	if (tensor_is_dense(&b->shape))
		return span;
	dense = malloc((size_t)assay_shape_count(&b->shape) * b->elem_bytes + 1);
	if (dense)
		tensor_gather(&b->shape, b->elem_bytes, span, dense);
	else
		err_set(err, "out of memory");
	free(span);
	return dense;
}

/* Fills the scene's own inputs with the rows. */
static bool fill_rows(struct ctx *x, struct scene *sc, const struct rows *rows, struct err *err)
{
	struct stage *st = x->st;

	for (int t = 0; t < st->cell->kernel->n_tensors; t++) {
		struct buffer *b = &sc->own[t];
		if (!st->in[t] || x->dim[t] < 0 || !b->bytes)
			continue;
		const bool gaps = !tensor_is_dense(&b->shape);
		size_t n = (size_t)assay_shape_count(&b->shape) * b->elem_bytes;
		unsigned char *dense = malloc(n + 1), *span = gaps ? malloc(b->bytes + 1) : NULL;
		const unsigned char *from[INPUT_SETS] = {x->in[0][t], x->in[1][t]};
		bool ok = dense && (span || !gaps);
		if (!ok)
			err_set(err, "out of memory");
		if (ok)
			move_rows(&st->main.shape[t], x->dim[t], b->elem_bytes, from, rows->src, rows->set, rows->n,
				  dense);
		if (ok && gaps) {
			/* As the fill leaves gaps. */
			tensor_words(span, b->bytes, tensor_tail_word(b->desc, &b->shape, TAIL_NAN));
			tensor_scatter(&b->shape, b->elem_bytes, dense, span);
		}
		ok = ok && st->ops->upload(st->be, b->data, gaps ? span : dense, b->bytes, err);
		free(dense);
		free(span);
		if (!ok)
			return false;
	}
	return true;
}

/* Whether n elements differ where they are defined (NULL: everywhere). */
static bool run_differs(const unsigned char *a, const unsigned char *b, size_t n, uint32_t eb, const uint8_t *defined)
{
	if (!defined)
		return memcmp(a, b, n * eb) != 0;
	for (size_t i = 0; i < n; i++)
		if (defined[i] && memcmp(a + i * eb, b + i * eb, eb) != 0)
			return true;
	return false;
}

/* One output of a relaunch and what it is held against: dense bytes; own and foreign are of the full shape. */
struct rows_out {
	const struct assay_tensor *desc;
	const struct assay_shape *full, *shape;
	int dim;
	const uint8_t *defined;
	const unsigned char *got, *own, *foreign;
	bool next; /* the control is the row next to it, of the same bytes */
};

/* Row by row: whether the rows that must be the same differ, and whether some of the control do. */
static void rows_look(const struct rows *rows, const struct rows_out *o, bool *differ, bool *control)
{
	const uint32_t eb = tensor_elem_bytes(o->desc);
	size_t outer, run;

	extents(o->shape, o->dim, 1, &outer, &run);
	*differ = *control = false;
	for (size_t k = 0; k < outer; k++)
		for (int64_t i = 0; i < rows->n; i++) {
			const size_t at = (k * (size_t)rows->n + (size_t)i) * run,
				     base = k * (size_t)o->full->dim[o->dim];
			const unsigned char *mine = o->got + at * eb;
			const uint8_t *defined = o->defined ? o->defined + at : NULL;
			if (!*differ && rows->set[i] == 0)
				*differ = run_differs(mine, o->own + (base + (size_t)rows->src[i]) * run * eb, run, eb,
						      defined);
			const int64_t other =
				o->next ? (rows->control[i] + 1) % o->full->dim[o->dim] : rows->control[i];
			if (!*control && (rows->control_rows < 0 || rows->set[i] == rows->control_rows))
				*control = run_differs(mine, o->foreign + (base + (size_t)other) * run * eb, run, eb,
						       defined);
		}
}

/* The finding of rows that differ. NULL: out of memory. */
static json_t *rows_finding(struct stage *st, const char *arm, const struct rows *rows, const struct rows_out *o, int k)
{
	const uint32_t eb = tensor_elem_bytes(o->desc);
	const size_t n = (size_t)assay_shape_count(o->shape);
	unsigned char *want = malloc(n * eb + 1);
	uint8_t *keep = malloc(n);
	json_t *f = NULL;
	size_t outer, run;
	struct diff d;

	if (want && keep) {
		const unsigned char *own[INPUT_SETS] = {o->own};
		char text[512];
		move_rows(o->full, o->dim, eb, own, rows->src, NULL, rows->n, want);
		extents(o->shape, o->dim, 1, &outer, &run);
		for (size_t e = 0; e < n; e++)
			keep[e] = rows->set[e / run % (size_t)rows->n] == 0 && (!o->defined || o->defined[e]);
		image_diff_bytes(o->desc, o->shape, o->got, want, keep, &d);
		d.out = k;
		diff_text(o->desc, o->shape, o->got, want, &d, text, sizeof(text));
		f = finding_add(st->findings, "invariant", arm, "mismatch", "%s: %s", rows->what, text);
		diff_fields(f, o->desc, o->shape, o->got, want, &d);
	}
	free(want);
	free(keep);
	return f;
}

/* Leaves one finding, also in *out: of the first output whose rows differ from what they should be, of a control that does not differ, or a pass.
 * Where no output has rows, a note and no finding. */
static bool compare(struct ctx *x, const struct scene *sc, const struct rows *rows, int i, const struct image *got,
		    json_t **out, struct err *err)
{
	struct stage *st = x->st;
	struct subject *s = &st->subject[i];
	const struct image *own = &x->ev->first[0][i], *foreign = &x->ev->first[rows->control_set][i];
	bool compared = false, shown = false;
	const char *vacuous = NULL; /* the first output whose control does not differ: nothing is proven of it */
	json_t *f = NULL;

	if (!image_fetch(got, err) || !image_fetch(own, err) || !image_fetch(foreign, err))
		return false;
	for (int k = 0; k < got->n && !f; k++) {
		const int t = got->tensor[k];
		/* Where both sets give the same bytes, the other set's are no control: the row next to it is. */
		const bool alike = own->digest[k] == x->ev->first[1][i].digest[k];
		const struct rows_out o = {.desc = &st->cell->kernel->tensors[t],
					   .full = &st->main.shape[t],
					   .shape = &sc->shape[t],
					   .dim = x->dim[t],
					   .defined = sc->mask[t],
					   .got = image_bytes(got, k),
					   .own = image_bytes(own, k),
					   .foreign = image_bytes(foreign, k),
					   .next = alike && rows->control_set == 1};
		bool differ, other;
		if (o.dim < 0 || o.shape->dim[o.dim] != rows->n || !assay_shape_count(o.shape))
			continue;
		compared = true;
		rows_look(rows, &o, &differ, &other);
		shown = shown || other || differ; /* what differs is not vacuous */
		if (!other && !differ && alike && rows->control_rows == 1)
			stage_note(st,
				   "invariant: %s shows nothing of the neighbours of a row, both input sets give the "
				   "same bytes of it",
				   o.desc->name);
		else if (!other && !differ && !vacuous)
			vacuous = o.desc->name;
		if (!differ)
			continue;
		f = rows_finding(st, s->name, rows, &o, k);
		if (!f)
			return err_set(err, "out of memory");
	}
	if (!compared) {
		stage_note(st, "invariant: no output of %s has a dimension named %s", st->cell->kernel->name, x->name);
		return true;
	}
	const bool control = f || (shown && !vacuous);
	if (!control)
		f = finding_add(st->findings, "invariant", s->name, "invalid",
				"%s: vacuous, the positive control does not differ either%s%s", rows->what,
				vacuous ? " in " : "", vacuous ? vacuous : "");
	*out = f;
	if (!f)
		*out = f = finding_add(st->findings, "invariant", s->name, "pass", NULL);
	json_object_set_new(f, "against", json_string(s->name));
	json_object_set_new(f, "kind", json_string(rows->kind));
	json_object_set_new(f, "launches", json_integer(1));
	json_object_set_new(f, "control", json_boolean(control));
	return true;
}

/* Relaunches subject i at a point with these rows and compares. */
static bool relaunch(struct ctx *x, const struct assay_point *pt, const struct rows *rows, int i, json_t **out,
		     struct err *err)
{
	struct stage *st = x->st;
	struct subject *s = &st->subject[i];
	struct err why = {{0}};
	struct image im = {0};
	struct checked seen;
	struct scene sc;
	struct ready *r = NULL;
	uint32_t fresh = 0;
	bool ok = false, ran = false;

	*out = NULL;
	for (int t = 0; t < st->cell->kernel->n_tensors; t++)
		if (st->in[t] && x->dim[t] >= 0)
			fresh |= 1u << t;
	if (!scene_create(st, pt, fresh, &sc, &why)) {
		if (st->lost) {
			*err = why;
			return false;
		}
		finding_add(st->findings, "invariant", s->name, "error", "%s: %s", rows->what, why.text);
		return true;
	}
	if (!fill_rows(x, &sc, rows, err))
		goto done;
	r = ready_create(st, &sc, s, &why);
	if (!r) {
		if (st->lost) {
			*err = why;
			goto done;
		}
		finding_add(st->findings, "invariant", s->name, "error", "%s: %s", rows->what, why.text);
		ok = true;
		goto done;
	}
	if (!check_launch(st, r, TENSOR_POISON_A, TAIL_NAN, false, &seen, &ran, err))
		goto done;
	ok = true;
	if (!ran)
		goto done;
	check_guards(st, r, &seen);
	ok = image_take(st, r, NULL, 0, true, TENSOR_POISON_A, &im, err);
	if (!ok)
		goto done;
	check_gaps(st, s->name, &im);
	ok = compare(x, &sc, rows, i, &im, out, err);
done:
	image_drop(&im);
	ready_destroy(st, r);
	scene_destroy(st, &sc);
	return ok;
}

static bool leading(struct ctx *x, int64_t n, int i, struct err *err)
{
	const struct cell *c = x->st->cell;
	const struct assay_param *p = &c->kernel->params[x->param];
	struct assay_point pt = c->point;
	struct rows rows;
	json_t *f;

	if (n >= c->point.v[x->param].i || n < 1)
		return true; /* the cell has no more rows than that */
	pt.v[x->param].i = n;
	if ((double)n < p->min || (p->multiple_of && n % p->multiple_of) ||
	    (c->kernel->refuse && c->kernel->refuse(&pt)) ||
	    (x->st->subject[i].arm->desc->unsupported &&
	     x->st->subject[i].arm->desc->unsupported(&pt, x->st->subject[i].arm->arg, x->st->ops->kind))) {
		stage_note(x->st, "invariant: %s cannot run with %s=%lld", x->st->subject[i].name, x->name,
			   (long long)n);
		return true;
	}
	if (!rows_alloc(&rows, "leading", n))
		return err_set(err, "out of memory");
	snprintf(rows.what, sizeof(rows.what), "with its leading rows alone (%s=%lld)", x->name, (long long)n);
	rows.control_set = 1; /* the same rows of the other input set must differ */
	rows.control_rows = -1;
	for (int64_t k = 0; k < n; k++)
		rows.src[k] = rows.control[k] = k;
	bool ok = relaunch(x, &pt, &rows, i, &f, err);
	if (f)
		json_object_set_new(f, "rows", json_integer(n));
	rows_free(&rows);
	return ok;
}

static bool permuted(struct ctx *x, int64_t n, int i, struct err *err)
{
	struct rows rows;
	uint64_t s = x->st->cell->seed + 0x9E3779B97F4A7C15u;
	bool moved = false;
	json_t *f;

	if (!rows_alloc(&rows, "permute", n))
		return err_set(err, "out of memory");
	snprintf(rows.what, sizeof(rows.what), "with the rows of %s permuted", x->name);
	rows.control_rows = -1;
	for (int64_t k = 0; k < n; k++)
		rows.src[k] = rows.control[k] = k; /* the unpermuted output must differ */
	for (int64_t k = n - 1; k > 0; k--) {
		s = s * 6364136223846793005u + 1442695040888963407u;
		int64_t other = (int64_t)((s >> 33) % (uint64_t)(k + 1)), keep = rows.src[k];
		rows.src[k] = rows.src[other];
		rows.src[other] = keep;
	}
	for (int64_t k = 0; k < n; k++)
		moved = moved || rows.src[k] != k;
	for (int64_t k = 0; !moved && k < n; k++)
		rows.src[k] = (k + 1) % n;
	bool ok = relaunch(x, &x->st->cell->point, &rows, i, &f, err);
	rows_free(&rows);
	return ok;
}

/* Every second row keeps its data, the rest get those of the other input set; then the other way round. */
static bool neighbours(struct ctx *x, int64_t n, int i, struct err *err)
{
	bool ok = true;

	for (int parity = 0; ok && parity < 2; parity++) {
		struct rows rows;
		json_t *f;
		if (!rows_alloc(&rows, "neighbours", n))
			return err_set(err, "out of memory");
		snprintf(rows.what, sizeof(rows.what), "with other data in every %s row of %s", parity ? "even" : "odd",
			 x->name);
		rows.control_rows = 1; /* the rows that got other data must differ */
		for (int64_t k = 0; k < n; k++) {
			rows.src[k] = rows.control[k] = k;
			rows.set[k] = k % 2 != parity;
		}
		ok = relaunch(x, &x->st->cell->point, &rows, i, &f, err);
		rows_free(&rows);
		/* One finding an arm: the second half only speaks where it has something to say. */
		if (f && parity == 1 && !strcmp(json_string_value(json_object_get(f, "status")), "pass"))
			json_array_remove(x->st->findings, json_array_size(x->st->findings) - 1);
		else if (f && strcmp(json_string_value(json_object_get(f, "status")), "pass"))
			break;
	}
	return ok;
}

bool check_invariant(struct stage *st, const struct evidence *ev, struct err *err)
{
	const struct check_invariant *c = &st->cell->checks.invariant;
	const struct assay_kernel *k = st->cell->kernel;
	struct ctx x = {.st = st, .ev = ev, .name = c->rows};
	bool tied = false, others = false, ok = true;

	x.param = c->rows ? registry_param(k, c->rows) : -1;
	for (int t = 0; t < k->n_tensors; t++) {
		x.dim[t] = c->rows ? tensor_dim(&k->tensors[t], c->rows) : -1;
		tied = tied || (x.dim[t] >= 0 && st->in[t]);
		others = others || (x.dim[t] >= 0 && st->in[t] && !st->in[t]->one_set);
	}
	if (x.param < 0 || !tied) {
		stage_note(st, "invariant: %s has no input with rows of %s", k->name,
			   c->rows ? c->rows : "(none named)");
		return true;
	}
	int64_t n = st->cell->point.v[x.param].i;
	if (n < 2) {
		stage_note(st, "invariant: %s=%lld, there is nothing to rearrange", c->rows, (long long)n);
		return true;
	}
	if (c->neighbours && !others)
		stage_note(st,
			   "invariant: no other data for the neighbours of a row, both input sets hold the same bytes");
	if (!check_set(st, 0, NULL, err) || !check_masters(st, err))
		return false;
	for (int set = 0; ok && set < INPUT_SETS; set++)
		for (int t = 0; ok && t < k->n_tensors; t++)
			if (st->in[t] && x.dim[t] >= 0)
				ok = (x.in[set][t] = fetch_input(st, t, set, err)) != NULL;
	for (int i = 0; ok && i < st->n_subjects; i++) {
		struct subject *s = &st->subject[i];
		if (!subject_runs(s) || s->role == ROLE_NULL || !stage_listed(c->arms, s->name) || !ev->have[0][i] ||
		    !ev->have[1][i])
			continue;
		stage_beat(st, "invariant", s->name, 0);
		for (int l = 0; ok && l < c->n_leading && subject_runs(s); l++)
			ok = leading(&x, c->leading[l], i, err);
		if (ok && c->permute && subject_runs(s))
			ok = permuted(&x, n, i, err);
		if (ok && c->neighbours && others && subject_runs(s))
			ok = neighbours(&x, n, i, err);
	}
	for (int set = 0; set < INPUT_SETS; set++)
		for (int t = 0; t < k->n_tensors; t++)
			free(x.in[set][t]);
	return ok;
}
