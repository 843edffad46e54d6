#include "stage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conduct.h"
#include "finding.h"
#include "monotonic.h"

void stage_beat(struct stage *st, const char *phase, const char *arm, int round)
{
	struct exec_beat *b = st->sink->beat;

	if (phase)
		snprintf(b->phase, sizeof(b->phase), "%s", phase);
	snprintf(b->arm, sizeof(b->arm), "%s", arm ? arm : "");
	b->round = round;
	b->count++;
}

void stage_note(struct stage *st, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < json_array_size(st->notes); i++)
		if (!strcmp(json_string_value(json_array_get(st->notes, i)), text))
			return;
	json_array_append_new(st->notes, json_string(text));
}

struct subject *stage_find(struct stage *st, const char *name)
{
	for (int i = 0; name && i < st->n_subjects; i++)
		if (!strcmp(st->subject[i].name, name))
			return &st->subject[i];
	return NULL;
}

bool subject_runs(const struct subject *s)
{
	return !s->unsupported && !s->failed;
}

bool stage_listed(const char *const arms[MAX_LIST], const char *name)
{
	if (!arms[0])
		return true;
	for (int i = 0; i < MAX_LIST && arms[i]; i++)
		if (!strcmp(arms[i], name))
			return true;
	return false;
}

void stage_fail(struct stage *st, struct subject *s, const char *phase, const char *text)
{
	json_t *f = finding_add(st->findings, "run", s->name, "error", "%s: %s", phase, text);

	json_object_set_new(f, "phase", json_string(phase));
	s->failed = true;
}

bool stage_load(struct stage *st, int set, bool force, struct err *err)
{
	for (int t = 0; t < st->cell->kernel->n_tensors; t++)
		if (st->in[t] && !input_load(st->inputs, st->in[t], set, force, err))
			return false;
	st->set = set;
	return true;
}

static bool shapes_of(const struct assay_kernel *k, const struct assay_point *pt, struct assay_shape shape[],
		      struct err *err)
{
	for (int t = 0; t < k->n_tensors; t++) {
		memset(&shape[t], 0, sizeof(shape[t]));
		if (k->shape(pt, t, &shape[t]) != 0)
			return err_set(err, "%s: no shape of tensor %s at this point", k->name, k->tensors[t].name);
	}
	return true;
}

/* The defined region of each output, where the kernel has one. */
static bool masks_of(struct stage *st, struct scene *sc, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	void *ptr[ASSAY_MAX_TENSORS] = {0};
	char text[ASSAY_ERROR_MAX] = "";
	struct assay_call call = {.point = &sc->point, .tensor = ptr, .shape = sc->shape, .error = text};

	for (int t = 0; t < k->n_tensors; t++)
		if (st->ops->kind == ASSAY_HOST && sc->buf[t])
			ptr[t] = sc->buf[t]->data;
	for (int t = 0; k->defined && t < k->n_tensors; t++) {
		int64_t n = assay_shape_count(&sc->shape[t]);
		if (k->tensors[t].role != ASSAY_OUT && k->tensors[t].role != ASSAY_INOUT)
			continue;
		sc->mask[t] = malloc(n ? (size_t)n : 1);
		if (!sc->mask[t])
			return err_set(err, "out of memory");
		memset(sc->mask[t], 1, (size_t)n);
		if (k->defined(&call, t, sc->mask[t]) != 0)
			return err_set(err, "%s: no defined region of %s: %s", k->name, k->tensors[t].name, text);
	}
	return true;
}

bool scene_create(struct stage *st, const struct assay_point *pt, uint32_t fresh, struct scene *sc, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;

	memset(sc, 0, sizeof(*sc));
	sc->point = *pt;
	if (!shapes_of(k, pt, sc->shape, err))
		return false;
	for (int t = 0; t < k->n_tensors; t++) {
		const struct assay_tensor *desc = &k->tensors[t];
		bool own = desc->role == ASSAY_OUT || desc->role == ASSAY_WORKSPACE || (fresh >> t & 1);
		if (desc->role == ASSAY_DERIVED)
			continue;
		if (!own && !tensor_same_shape(&sc->shape[t], &st->in[t]->live.shape)) {
			err_set(err,
				"the shape of %s depends on this parameter, but none of its dimensions is named so",
				desc->name);
			goto fail;
		}
		if (own && !buffer_create(st->be, desc, &sc->shape[t], 0, &sc->own[t], err))
			goto fail;
		sc->buf[t] = own ? &sc->own[t] : &st->in[t]->live;
	}
	if (!masks_of(st, sc, err))
		goto fail;
	return true;
fail:
	scene_destroy(st, sc);
	return false;
}

void scene_destroy(struct stage *st, struct scene *sc)
{
	for (int t = 0; t < ASSAY_MAX_TENSORS; t++) {
		buffer_destroy(st->be, &sc->own[t]);
		free(sc->mask[t]);
	}
	memset(sc, 0, sizeof(*sc));
}

bool stage_sync(struct stage *st, int64_t *escaped_ns, struct err *err)
{
	const int64_t from = monotonic_ns();
	bool lost = false, ok = st->ops->sync(st->be, &lost, err);

	st->cost.launch_ns += monotonic_ns() - from;
	if (escaped_ns)
		*escaped_ns = 0;
	if (ok && st->ops->drain && escaped_ns)
		ok = st->ops->drain(st->be, escaped_ns, &lost, err);
	if (lost)
		st->lost = true;
	return ok;
}

bool stage_prepare(struct stage *st, struct err *err)
{
	for (int i = 0; i < st->n_subjects; i++) {
		struct subject *s = &st->subject[i];
		struct err why = {{0}};
		if (!subject_runs(s) || s->ready)
			continue;
		stage_beat(st, "plan", s->name, 0);
		s->ready = ready_create(st, &st->main, s, &why);
		if (!st->lost && !conduct_look(st, &why))
			st->lost = true;
		if (st->lost)
			return err_set(err, "%s: %s", s->name, why.text);
		if (!s->ready)
			stage_fail(st, s, "plan", why.text);
	}
	return true;
}

static void subjects_of(struct stage *st, bool null_arm)
{
	const struct cell *c = st->cell;
	enum assay_backend kind = st->ops->kind;

	for (int i = 0; i < c->n_arms; i++) {
		const struct cell_arm *a = &c->arm[i];
		struct subject *s = &st->subject[st->n_subjects++];
		*s = (struct subject){.arm = a,
				      .name = a->name,
				      .role = a->role,
				      .ops = a->desc->ops[kind],
				      .unsupported = a->unsupported};
		if (!s->unsupported && a->desc->unsupported)
			s->unsupported = a->desc->unsupported(&c->point, a->arg, kind);
		if (!s->unsupported && a->desc->unsupported_on)
			s->unsupported = a->desc->unsupported_on(kind, st->ops->info(st->be)->cc);
		if (!s->unsupported && !s->ops)
			s->unsupported = kind == ASSAY_HOST ? "it has no host code" : "it has no cuda code";
		if (!s->unsupported && a->graph && !st->ops->graph_capture)
			s->unsupported = "graphs are not captured on this backend";
		if (!s->unsupported && a->n_env > READY_FLIPS)
			s->unsupported = "it flips more than 16 environment variables";
	}
	if (null_arm && c->n_arms) {
		st->subject[st->n_subjects] = st->subject[0];
		st->subject[st->n_subjects].name = "null";
		st->subject[st->n_subjects++].role = ROLE_NULL;
	}
}

struct stage *stage_create(struct backend *be, struct inputs *inputs, const struct cell *c, bool null_arm,
			   const struct exec_sink *sink, json_t *findings, json_t *notes, struct err *err)
{
	struct stage *st = calloc(1, sizeof(*st));
	struct assay_shape shape[ASSAY_MAX_TENSORS];

	if (!st) {
		err_set(err, "out of memory");
		return NULL;
	}
	st->be = be;
	st->ops = backend_ops_of(be);
	st->cell = c;
	st->inputs = inputs;
	st->sink = sink;
	st->findings = findings;
	st->notes = notes;
	st->set = -1;
	st->nan_only = -1;
	st->null_arm = null_arm;
	if (!shapes_of(c->kernel, &c->point, shape, err))
		goto fail;
	for (int t = 0; t < c->kernel->n_tensors; t++) {
		const struct assay_tensor *desc = &c->kernel->tensors[t];
		if (desc->role != ASSAY_IN && desc->role != ASSAY_INOUT)
			continue;
		stage_beat(st, "fill", desc->name, 0);
		st->in[t] = inputs_get(inputs, c, t, &shape[t], err);
		if (!st->in[t])
			goto fail;
		if (st->in[t]->one_set)
			stage_note(st, "%s is larger than %.4g MiB: both input sets hold the same bytes of it",
				   desc->name, (double)inputs_limit(inputs) / (1 << 20));
	}
	stage_beat(st, "fill", NULL, 0);
	if (!stage_load(st, 0, false, err) || !scene_create(st, &c->point, 0, &st->main, err) ||
	    !conduct_begin(st, err))
		goto fail;
	subjects_of(st, null_arm);
	return st;
fail:
	stage_destroy(st);
	return NULL;
}

void stage_destroy(struct stage *st)
{
	struct err ignored;

	if (!st)
		return;
	for (int i = 0; i < st->n_subjects; i++) {
		ready_destroy(st, st->subject[i].ready);
		json_decref(st->subject[i].artifact);
		if (!st->lost)
			conduct_look(st, &ignored); /* at what finish() left */
	}
	conduct_finish(st);
	scene_destroy(st, &st->main);
	inputs_unpin(st->inputs);
	free(st);
}
