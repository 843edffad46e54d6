/* An arm planned in a scene: its container and its workspace, its graph, its launches, and a launch that is watched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conduct.h"
#include "fp_control.h"
#include "monotonic.h"
#include "stage.h"

/* So many checked launches of an arm are looked into thread by thread. */
enum { FP_LOOKS = 4 };

/* What an arm's code did to the floating-point control of the thread that called it is undone, and remembered. */
static void fp_leave(struct subject *s, uint64_t was)
{
	const uint64_t is = fp_control_get();

	if (is == was)
		return;
	fp_control_set(was);
	s->left_fp = true;
	fp_control_words(was, is, s->fp_words);
}

/* The same of the threads of its team, which live on from arm to arm: so only where they were looked at before the launch. */
static void fp_team(struct stage *st, struct subject *s, bool before)
{
	const int threads = st->ops->kind == ASSAY_HOST ? st->ops->info(st->be)->threads : 0;

	if (threads < 2 || s->fp_looks >= FP_LOOKS)
		return;
	s->fp_looks += !before;
	if (fp_control_team(fp_control_get(), threads) && !before) {
		if (!s->left_fp)
			snprintf(s->fp_words, sizeof(s->fp_words), "in a thread of its team");
		s->left_fp = true;
	}
}

/* The environment as it was, for as many names as an arm flips. */
struct env_saved {
	char *value[READY_FLIPS];
};

static void env_enter(const struct cell_arm *a, struct env_saved *saved)
{
	memset(saved, 0, sizeof(*saved));
	for (int i = 0; i < a->n_env && i < READY_FLIPS; i++) {
		const char *was = getenv(a->env[i].name);
		saved->value[i] = was ? strdup(was) : NULL;
		if (a->env[i].value)
			setenv(a->env[i].name, a->env[i].value, 1);
		else
			unsetenv(a->env[i].name);
	}
}

static void env_leave(const struct cell_arm *a, struct env_saved *saved)
{
	for (int i = a->n_env < READY_FLIPS ? a->n_env - 1 : READY_FLIPS - 1; i >= 0; i--) {
		if (saved->value[i])
			setenv(a->env[i].name, saved->value[i], 1);
		else
			unsetenv(a->env[i].name);
		free(saved->value[i]);
	}
}

bool ready_derive(struct stage *st, struct ready *r, uint32_t poison, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;

	if (!r->subject->ops->derive)
		return true;
	for (int t = 0; t < k->n_tensors; t++)
		if (r->derived[t].alloc && (!buffer_guard(st->be, &r->derived[t], TENSOR_GUARD_WORD, err) ||
					    !buffer_poison(st->be, &r->derived[t], poison, err)))
			return false;
	r->error[0] = '\0';
	struct env_saved saved;
	conduct_acts(st, r->subject);
	env_enter(r->subject->arm, &saved);
	const uint64_t fp = fp_control_get();
	int rc = r->subject->ops->derive(&r->call);
	fp_leave(r->subject, fp);
	env_leave(r->subject->arm, &saved);
	if (rc != 0)
		return err_set(err, "%s", r->error[0] ? r->error : "derive failed without a word");
	if (!stage_sync(st, NULL, err))
		return false;
	for (int t = 0; t < k->n_tensors; t++) {
		struct damage d;
		if (!r->derived[t].alloc)
			continue;
		if (!buffer_check(st->be, &r->derived[t], &d, err))
			return false;
		if (d.any)
			return err_set(err, "derive wrote outside of %s, at byte %lld of %zu", k->tensors[t].name,
				       (long long)d.offset, r->derived[t].bytes);
		if (!st->ops->digest(st->be, r->derived[t].data, r->derived[t].bytes, &r->derived_digest[t], err))
			return false;
	}
	return true;
}

static bool capture(struct stage *st, struct ready *r, struct err *err)
{
	struct launch l = {.ops = r->subject->ops, .call = &r->call, .state = r->state};
	struct env_saved saved;
	struct checked seen;

	/* Launched once outside of the graph, so that what the arm says it launches can be counted against the graph. Other scenes are
	 * not counted, and launch once only what they are there for: their inout tensors have no pristine copy. */
	if (r->scene == &st->main && ready_check(st, r, TENSOR_POISON_A, TAIL_NAN, true, &seen, err) != RUN_OK)
		return false;
	conduct_acts(st, r->subject);
	env_enter(r->subject->arm, &saved);
	const uint64_t fp = fp_control_get();
	r->graph = st->ops->graph_capture(st->be, &l, &r->graph_kernels, err);
	fp_leave(r->subject, fp);
	env_leave(r->subject->arm, &saved);
	return r->graph != NULL;
}

struct ready *ready_create(struct stage *st, struct scene *sc, struct subject *s, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	struct ready *r = calloc(1, sizeof(*r));
	struct env_saved saved;
	int rc;

	if (!r) {
		err_set(err, "out of memory");
		return NULL;
	}
	r->scene = sc;
	r->subject = s;
	r->graph_kernels = -1;
	for (int t = 0; t < k->n_tensors; t++) {
		if (k->tensors[t].role == ASSAY_DERIVED) {
			if (!s->ops->derive)
				continue;
			if (!buffer_create(st->be, &k->tensors[t], &sc->shape[t], 0, &r->derived[t], err))
				goto fail;
			r->ptr[t] = r->derived[t].data;
		} else {
			r->ptr[t] = sc->buf[t]->data;
		}
	}
	r->call = (struct assay_call){
		.point = &sc->point,
		.arm_arg = s->arm->arg,
		.tensor = r->ptr,
		.shape = sc->shape,
		.threads = st->ops->info(st->be)->threads,
		.stream = st->ops->stream ? st->ops->stream(st->be) : NULL,
		.error = r->error,
		.arm = s->arm->desc,
		.backend = st->ops->kind,
	};
	if (s->ops->workspace_bytes)
		r->call.workspace_bytes = s->ops->workspace_bytes(&sc->point, s->arm->arg);
	if (r->call.workspace_bytes) {
		if (!buffer_create(st->be, NULL, NULL, r->call.workspace_bytes, &r->workspace, err))
			goto fail;
		r->call.workspace = r->workspace.data;
	}
	if (s->ops->plan) {
		conduct_acts(st, s);
		env_enter(s->arm, &saved);
		const uint64_t fp = fp_control_get();
		rc = s->ops->plan(&r->call, &r->state);
		fp_leave(s, fp);
		env_leave(s->arm, &saved);
		if (rc != 0) {
			err_set(err, "%s", r->error[0] ? r->error : "plan failed without a word");
			goto fail;
		}
		r->planned = true;
	}
	if (!ready_derive(st, r, TENSOR_POISON_A, err))
		goto fail;
	if (s->arm->graph && !capture(st, r, err))
		goto fail;
	return r;
fail:
	ready_destroy(st, r);
	return NULL;
}

void ready_destroy(struct stage *st, struct ready *r)
{
	if (!r)
		return;
	if (r->graph)
		st->ops->graph_free(st->be, r->graph);
	if (r->planned && r->subject->ops->finish) {
		conduct_acts(st, r->subject);
		const uint64_t fp = fp_control_get();
		r->subject->ops->finish(r->state);
		fp_control_set(fp);
	}
	buffer_destroy(st->be, &r->workspace);
	for (int t = 0; t < ASSAY_MAX_TENSORS; t++)
		buffer_destroy(st->be, &r->derived[t]);
	free(r);
}

bool ready_enqueue(struct stage *st, struct ready *r, struct err *err)
{
	struct launch l = {.ops = r->subject->ops, .call = &r->call, .state = r->state, .graph = r->graph};
	const bool flips = r->subject->arm->n_env > 0;
	struct env_saved saved;
	bool ok;

	st->unseen = true;
	conduct_acts(st, r->subject);

	if (flips)
		env_enter(r->subject->arm, &saved);
	const uint64_t fp = fp_control_get();
	ok = st->ops->launch(st->be, &l, err);
	fp_leave(r->subject, fp);
	if (flips)
		env_leave(r->subject->arm, &saved);
	return ok;
}

bool ready_restore(struct stage *st, struct ready *r, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;

	for (int t = 0; t < k->n_tensors; t++)
		if (k->tensors[t].role == ASSAY_INOUT && r->scene->buf[t] == &st->in[t]->live &&
		    !input_load(st->inputs, st->in[t], st->set, true, err))
			return false;
	return true;
}

static void note_launch(void *ctx, const struct assay_launch *launch)
{
	struct subject *s = ctx;

	if (s->n_launches < STAGE_LAUNCHES)
		s->launch[s->n_launches++] = *launch;
}

/* Guards of everything a launch could reach, inputs by tail, the rest by the guard's own word. */
static bool arm_guards(struct stage *st, struct ready *r, uint32_t poison, enum tail tail, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;

	for (int t = 0; t < k->n_tensors; t++) {
		const struct assay_tensor *desc = &k->tensors[t];
		struct buffer *b = desc->role == ASSAY_DERIVED ? &r->derived[t] : r->scene->buf[t];
		bool read = desc->role == ASSAY_IN || desc->role == ASSAY_INOUT || desc->role == ASSAY_DERIVED;
		if (!b || !b->alloc)
			continue;
		enum tail mine = st->nan_only >= 0 && st->nan_only != t && tail == TAIL_NAN ? TAIL_HUGE : tail;
		if (!buffer_guard(st->be, b, read ? tensor_tail_word(desc, &b->shape, mine) : TENSOR_GUARD_WORD, err))
			return false;
		if (!read && !buffer_poison(st->be, b, poison, err))
			return false;
	}
	return !r->workspace.alloc || (buffer_guard(st->be, &r->workspace, TENSOR_GUARD_WORD, err) &&
				       buffer_poison(st->be, &r->workspace, poison, err));
}

static struct buffer *guarded(struct ready *r, int t)
{
	return t < 0 ? &r->workspace : r->scene->buf[t] ? r->scene->buf[t] : &r->derived[t];
}

/* All guards in one look, where they can be; most launches leave all of them as they were. */
static bool guards_intact(struct stage *st, struct ready *r, bool *intact, struct err *err)
{
	struct scan_range range[2 * (ASSAY_MAX_TENSORS + 1)];
	int n = 0;

	*intact = false;
	for (int t = -1; t < st->cell->kernel->n_tensors; t++) {
		const struct buffer *b = guarded(r, t);
		if (!b->alloc)
			continue;
		if (!buffer_ranges(b, range + n))
			return true;
		n += 2;
	}
	return !st->ops->scan_all || n > BACKEND_RANGES || st->ops->scan_all(st->be, range, n, intact, err);
}

static bool scan_guards(struct stage *st, struct ready *r, struct checked *out, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	bool intact;

	if (!guards_intact(st, r, &intact, err))
		return false;
	if (intact)
		return true;
	for (int t = -1; t < k->n_tensors; t++) {
		struct buffer *b = guarded(r, t);
		struct damage d;
		if (!b->alloc)
			continue;
		if (!buffer_check(st->be, b, &d, err))
			return false;
		if (d.any)
			out->damage[out->n_damages++] = (struct guard_damage){.tensor = t, .damage = d};
	}
	return true;
}

enum run_result ready_check(struct stage *st, struct ready *r, uint32_t poison, enum tail tail, bool inspect,
			    struct checked *out, struct err *err)
{
	memset(out, 0, sizeof(*out));
	stage_beat(st, NULL, r->subject->name, 0);
	if (!arm_guards(st, r, poison, tail, err) || !ready_restore(st, r, err))
		return st->lost ? RUN_LOST : RUN_FAILED;
	/* Waited for before the launch, so that an error of what stands before is never blamed on the arm. */
	if (!stage_sync(st, NULL, err))
		return st->lost ? RUN_LOST : RUN_FAILED;
	if (inspect) {
		r->subject->n_launches = 0;
		json_decref(r->subject->artifact);
		r->subject->artifact = NULL;
		r->call.note = note_launch;
		r->call.note_ctx = r->subject;
	}
	fp_team(st, r->subject, true);
	const int64_t from = monotonic_ns();
	bool ok = ready_enqueue(st, r, err);
	st->cost.launch_ns += monotonic_ns() - from;
	r->call.note = NULL;
	r->call.note_ctx = NULL;
	if (!stage_sync(st, &out->escaped_ns, ok ? err : NULL))
		ok = false;
	if (st->lost)
		return RUN_LOST;
	fp_team(st, r->subject, false);
	if (!ok || !scan_guards(st, r, out, err))
		return RUN_FAILED;
	st->unseen = false;
	return RUN_OK;
}
