#include "exec.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrate.h"
#include "check_cell.h"
#include "conduct.h"
#include "controls.h"
#include "escape.h"
#include "exec_facts.h"
#include "finding.h"
#include "inputs.h"
#include "judge.h"
#include "monotonic.h"
#include "rounds.h"
#include "stage.h"
#include "stats.h"

struct exec {
	struct backend *be;
	const struct backend_ops *ops;
	struct inputs *inputs;
	struct calibration *calibration;
	struct controls *controls;
	struct warmth warm;
	int attempt;
};

/* Between two tries of a throttled or shared window. */
#define RETRY_PAUSE_NS 500000000
/* Sentinels run again before a time is called implausible. */
enum { PEAK_TRIES = 3 };

struct exec *exec_create(struct backend *b, struct err *err)
{
	struct exec *x = calloc(1, sizeof(*x));
	int64_t memory;

	if (!x) {
		err_set(err, "out of memory");
		return NULL;
	}
	x->be = b;
	x->ops = backend_ops_of(b);
	x->attempt = 1;
	memory = x->ops->info(b)->memory_bytes;
	x->inputs = inputs_create(b, memory > 0 ? memory / 4 : (int64_t)2 << 30);
	x->calibration = calibration_create(b);
	x->controls = controls_create(b);
	if (!x->inputs || !x->calibration || !x->controls) {
		err_set(err, "out of memory");
		exec_destroy(x);
		return NULL;
	}
	return x;
}

void exec_destroy(struct exec *x)
{
	if (!x)
		return;
	inputs_destroy(x->inputs);
	calibration_destroy(x->calibration);
	controls_destroy(x->controls);
	free(x);
}

void exec_set_input_limit(struct exec *x, size_t bytes)
{
	inputs_set_limit(x->inputs, bytes);
}

void exec_set_attempt(struct exec *x, int attempt)
{
	x->attempt = attempt;
}

json_t *exec_calibration(struct exec *x, const struct timing *t, struct err *err)
{
	return calibration_json(x->calibration, t, err);
}

json_t *exec_sentinels(struct exec *x, struct err *err)
{
	if (!x->ops->sentinels) {
		err_set(err, "this backend has no sentinels");
		return NULL;
	}
	return x->ops->sentinels(x->be, err);
}

/* Of the cell, its seed and the attempt; 53 bits, so that any reader of JSON keeps it whole. */
static uint64_t order_seed_of(const struct cell *c, int attempt)
{
	uint64_t h = 0xCBF29CE484222325u ^ c->seed;

	for (const char *p = c->id; p && *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001B3u;
	h += (uint64_t)attempt * 0x9E3779B97F4A7C15u;
	h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9u;
	return (h ^ h >> 27) & (((uint64_t)1 << 53) - 1);
}

/* ---- a cell ----------------------------------------------------------------------------------------------------------- */

struct run {
	struct exec *x;
	const struct cell *c;
	const struct exec_sink *sink;
	struct stage *st;
	struct evidence *ev;
	struct facts_sha sha;
	struct rounds rounds;
	bool timed;
	int64_t begin_ns, reference_ns; /* wall time: start of the cell, time in the reference without its launches */
	json_t *facts;
};

static bool asked(const struct cell *c, enum check_kind k)
{
	return c->checks.on >> k & 1;
}

/* Timing is asked for by the checks that judge it, and by a case that checks nothing: a bench. A cell whose table names an arm that
 * is not timed has failed already. */
static bool wants_timing(const struct cell *c)
{
	if (asked(c, CHECK_RATIO))
		return true;
	return (asked(c, CHECK_REGRESSION) && c->selection != SELECT_NOT_TIMED) || c->checks.on == 0;
}

static void tell(struct run *r)
{
	facts_arms(r->st, &r->sha, r->timed ? &r->rounds : NULL, r->facts);
	if (r->sink->part)
		r->sink->part(r->sink->ctx, r->facts);
}

static bool checks_run(struct run *r, struct err *err)
{
	static bool (*const check[])(struct stage *, const struct evidence *, struct err *) = {
		[CHECK_IDENTITY] = check_identity,
		[CHECK_REPEAT] = check_repeat,
		[CHECK_INVARIANT] = check_invariant,
		[CHECK_REFERENCE] = check_reference,
	};

	if (!stage_prepare(r->st, err) || !check_memory(r->st, r->ev, err))
		return false;
	if (!facts_digests(r->st, r->ev, &r->sha, err))
		return false;
	conduct_rest(r->st);
	tell(r);
	for (size_t k = 0; k < sizeof(check) / sizeof(*check); k++) {
		if (!asked(r->c, (enum check_kind)k))
			continue;
		const int64_t from = monotonic_ns(), launched = r->st->cost.launch_ns;
		const bool ok = check[k](r->st, r->ev, err);
		if (k == CHECK_REFERENCE)
			r->reference_ns = monotonic_ns() - from - (r->st->cost.launch_ns - launched);
		if (!ok || !escape_settle(r->st, err))
			return false;
		tell(r);
	}
	return true;
}

static bool disturbed(const struct device_state *before, const struct device_state *after)
{
	return before->throttle || after->throttle || before->other_processes > 0 || after->other_processes > 0;
}

static bool state_read(struct run *r, struct device_state *s, struct err *err)
{
	*s = (struct device_state){.sm_mhz = -1,
				   .mem_mhz = -1,
				   .temperature_c = -1,
				   .power_w = -1,
				   .other_processes = -1,
				   .preemptions = -1};
	return !r->x->ops->state || r->x->ops->state(r->x->be, s, err);
}

/* Whether some arm was faster than the judge believes by the peaks of this process. */
static bool beats_the_peak(const struct run *r, const struct facts_measure *m)
{
	const struct backend_ops *ops = r->x->ops;
	const struct judge_work w = {
		.cold_bytes = m->cold_bytes,
		.bytes_per_s = ops->peak_bytes_per_s ? ops->peak_bytes_per_s(r->x->be) : 0,
		.flop = json_number_value(json_object_get(json_object_get(r->facts, "work"), "flop")),
		.flop_per_s = ops->peak_flop_per_s ? ops->peak_flop_per_s(r->x->be) * facts_flop_reach(r->st) : 0,
	};

	for (int s = 0; s < r->st->n_subjects; s++) {
		double x[ROUNDS_MAX];
		int n = 0;
		for (int i = 0; r->rounds.sample[s] && i < r->rounds.n && n < ROUNDS_MAX; i++)
			if (r->rounds.sample[s][i] >= 0)
				x[n++] = (double)r->rounds.sample[s][i] * 1e-9;
		if (judge_implausible(&w, stats_median(x, n)))
			return true;
	}
	return false;
}

/* A peak that was measured while a neighbour was busy is no peak. Before a kernel is called implausible the sentinels run again, in the time
 * that it was timed in; the highest rate counts. */
static void peaks_again(struct run *r, const struct facts_measure *m)
{
	for (int i = 0; i < PEAK_TRIES && beats_the_peak(r, m); i++) {
		struct err why;
		stage_beat(r->st, "sentinels", NULL, i);
		json_t *sentinels = exec_sentinels(r->x, &why);
		if (!sentinels)
			return;
		json_decref(sentinels);
		facts_measure(r->st, m, &r->rounds, r->facts);
	}
}

static bool timing_run(struct run *r, struct err *err)
{
	const struct timing *t = &r->c->timing;
	struct facts_measure m = {0};
	struct device_state before, after;
	int retries = 0;

	if (!check_set(r->st, 0, NULL, err))
		return false;
	stage_beat(r->st, "calibration", NULL, 0);
	if (!calibration_clock(r->x->calibration, t->clock, &m.tick_ns, &m.floor_ns, err) ||
	    !calibration_scrub(r->x->calibration, t, &m.proof, err))
		return false;
	m.scrub_bytes = calibration_scrub_bytes(r->x->calibration, t);
	m.cold_bytes = facts_cold_bytes(r->st, r->facts, m.scrub_bytes);
	size_t n_findings = json_array_size(r->st->findings);
	for (;; retries++) {
		m.order_seed = order_seed_of(r->c, r->x->attempt + 1000 * retries);
		struct rounds_job job = {.order_seed = m.order_seed, .tick_ns = m.tick_ns};
		/* Read twice: a backend that counts what happened since the last reading starts at zero. */
		if (!state_read(r, &before, err) || !state_read(r, &before, err))
			return false;
		rounds_free(&r->rounds);
		bool ok = conduct_look(r->st, err) && rounds_run(r->st, r->ev, &job, &r->x->warm, &r->rounds, err) &&
			  conduct_look(r->st, err);
		r->timed = true;
		facts_measure(r->st, &m, &r->rounds, r->facts);
		if (!ok)
			return false;
		if (!state_read(r, &after, err))
			return false;
		json_object_set_new(r->facts, "device_state",
				    json_pack("{s:o, s:o, s:i}", "before", facts_state(&before), "after",
					      facts_state(&after), "retries", retries));
		if (!disturbed(&before, &after) || retries >= t->retries || r->rounds.cut ||
		    json_array_size(r->st->findings) != n_findings)
			break;
		stage_beat(r->st, "pause", NULL, retries);
		if (r->x->ops->pause)
			r->x->ops->pause(r->x->be, RETRY_PAUSE_NS);
	}
	watch_passed(r->st, r->rounds.watched);
	peaks_again(r, &m);
	if (m.proof.measured && !m.proof.proven)
		stage_note(r->st, "scrub unproven: a probe of %lld KiB was only %.2f times slower after it",
			   (long long)m.proof.probe_bytes >> 10, m.proof.ratio);
	if (t->scrub == SCRUB_NONE)
		stage_note(r->st, "warm: no scrub");
	conduct_rest(r->st);
	tell(r);
	return r->rounds.n == 0 || (check_again(r->st, r->ev, (int)r->rounds.launches, err) &&
				    check_changed(r->st, r->ev, m.order_seed, err) && escape_settle(r->st, err));
}

/* What the cell took, and what of it was not the harness. */
static void tell_cost(struct run *r)
{
	json_object_set_new(r->facts, "cost",
			    json_pack("{s:I, s:I, s:I, s:I}", "wall_ns", (json_int_t)(monotonic_ns() - r->begin_ns),
				      "launch_ns", (json_int_t)r->st->cost.launch_ns, "scrub_ns",
				      (json_int_t)r->st->cost.scrub_ns, "reference_ns", (json_int_t)r->reference_ns));
}

enum exec_outcome exec_cell(struct exec *x, const struct cell *c, const struct exec_sink *sink, json_t **facts,
			    struct err *err)
{
	struct run r = {.x = x, .c = c, .sink = sink, .facts = json_object(), .begin_ns = monotonic_ns()};
	json_t *findings = json_array(), *notes = json_array();
	enum exec_outcome outcome = EXEC_FAILED;
	bool timing = wants_timing(c), held;

	*facts = r.facts;
	json_object_set_new(r.facts, "attempt", json_integer(x->attempt));
	json_object_set_new(r.facts, "checks", findings);
	json_object_set_new(r.facts, "notes", notes);
	if (c->skip)
		return EXEC_OK;
	r.ev = calloc(1, sizeof(*r.ev));
	if (!r.ev) {
		err_set(err, "out of memory");
		return EXEC_FAILED;
	}
	r.st = stage_create(x->be, x->inputs, c, timing && c->timing.null_arm, sink, findings, notes, err);
	if (!r.st)
		goto done;
	held = facts_data(r.st, r.facts);
	if (!facts_work(r.st, r.facts, err))
		goto done;
	tell(&r);
	if (r.st->subject[0].unsupported) {
		outcome = EXEC_OK; /* nothing to hold the other arms against: the cell is skipped */
		goto done;
	}
	if (!checks_run(&r, err))
		goto lost;
	if (timing && !held)
		stage_note(r.st, "not timed: the data break their promise");
	else if (timing && subject_runs(&r.st->subject[0]) && !timing_run(&r, err))
		goto lost;
	outcome = EXEC_OK;
lost:
	facts_arms(r.st, &r.sha, r.timed ? &r.rounds : NULL, r.facts);
	if (outcome == EXEC_OK && r.timed && asked(c, CHECK_RATIO))
		controls_facts(x->controls, r.st, r.facts);
	tell_cost(&r);
	if (outcome != EXEC_OK && r.st->lost)
		outcome = EXEC_LOST;
done:
	evidence_drop(r.ev);
	free(r.ev);
	rounds_free(&r.rounds);
	stage_destroy(r.st);
	return outcome;
}

/* ---- the other things a worker is asked ---------------------------------------------------------------------------------- */

static json_t *sampled_arms(const struct stage *st, const struct rounds *rounds)
{
	json_t *arms = json_array();

	for (int i = 0; i < st->n_subjects; i++)
		if (rounds->sample[i])
			json_array_append_new(arms, json_pack("{s:s, s:o}", "name", st->subject[i].name, "samples_ns",
							      rounds_samples(rounds, i)));
	return arms;
}

/* A checked launch of each arm that is to be timed, for what is timed to be held against; none of an arm that gives other bits at once again,
 * which the cell itself has been told of. */
static bool confirm_evidence(struct stage *st, const struct rounds_job *job, struct evidence *ev, struct err *err)
{
	for (int i = 0; i < st->n_subjects; i++) {
		struct subject *s = &st->subject[i];
		struct image *im = &ev->first[0][i], again = {0};
		struct checked seen;
		bool ok = true;
		if (!subject_runs(s) || !s->ready || !stage_listed(job->only, s->name))
			continue;
		stage_beat(st, "memory", s->name, 0);
		for (int k = 0; ok && k < 2; k++)
			if (!check_launch(st, s->ready, TENSOR_POISON_A, TAIL_NAN, false, &seen, &ok, err) ||
			    (ok && !image_take(st, s->ready, NULL, 0, k == 0, TENSOR_POISON_A, k ? &again : im, err)))
				return false;
		ev->have[0][i] = ok && image_same(im, &again);
		image_drop(&again);
	}
	return true;
}

enum exec_outcome exec_confirm(struct exec *x, const struct cell *c, const char *arm, int n, uint64_t order_seed,
			       const struct exec_sink *sink, json_t **facts, struct err *err)
{
	struct cell mine = *c;
	struct rounds_job job = {.only = {c->arm[0].name, arm}, .rounds = n, .order_seed = order_seed};
	json_t *findings = json_array(), *notes = json_array();
	enum exec_outcome outcome = EXEC_FAILED;
	struct evidence *ev = calloc(1, sizeof(*ev));
	struct rounds rounds = {0};
	struct stage *st = NULL;
	int64_t floor_ns;

	*facts = json_object();
	json_object_set_new(*facts, "process", json_integer(getpid()));
	json_object_set_new(*facts, "order_seed", json_integer((json_int_t)(order_seed & INT64_MAX)));
	/* A confirmation is a fixed number of rounds: the budget has spoken when the suspect was found. */
	mine.timing.cell_budget_ns = 0;
	if (!ev) {
		err_set(err, "out of memory");
		goto done;
	}
	st = stage_create(x->be, x->inputs, &mine, false, sink, findings, notes, err);
	if (!st)
		goto done;
	if (!stage_find(st, arm)) {
		err_set(err, "%s: there is no arm '%s' to confirm", c->id, arm);
		goto done;
	}
	if (!stage_prepare(st, err) ||
	    !calibration_clock(x->calibration, mine.timing.clock, &job.tick_ns, &floor_ns, err) ||
	    !confirm_evidence(st, &job, ev, err) || !rounds_run(st, ev, &job, &x->warm, &rounds, err))
		goto done;
	json_object_set_new(*facts, "arms", sampled_arms(st, &rounds));
	json_object_set_new(*facts, "batch", json_integer(rounds.batch));
	outcome = EXEC_OK;
	if (json_array_size(findings)) {
		outcome = EXEC_FAILED;
		err_set(err, "%s", json_string_value(json_object_get(json_array_get(findings, 0), "text")));
	}
done:
	if (outcome != EXEC_OK && st && st->lost)
		outcome = EXEC_LOST;
	if (ev)
		evidence_drop(ev);
	free(ev);
	rounds_free(&rounds);
	stage_destroy(st);
	json_decref(findings);
	json_decref(notes);
	return outcome;
}

enum exec_outcome exec_digests(struct exec *x, const struct cell *c, const struct exec_sink *sink, json_t **facts,
			       struct err *err)
{
	json_t *findings = json_array(), *notes = json_array(), *arms = json_array();
	enum exec_outcome outcome = EXEC_FAILED;
	struct stage *st = stage_create(x->be, x->inputs, c, false, sink, findings, notes, err);

	*facts = json_object();
	json_object_set_new(*facts, "process", json_integer(getpid()));
	json_object_set_new(*facts, "arms", arms);
	if (!st || !stage_prepare(st, err))
		goto done;
	for (int i = 0; i < st->n_subjects; i++) {
		struct subject *s = &st->subject[i];
		struct checked seen;
		struct image im;
		char hex[1][65];
		bool ok;
		if (!subject_runs(s) || !s->ready)
			continue;
		stage_beat(st, "repeat", s->name, 0);
		if (!check_launch(st, s->ready, TENSOR_POISON_A, TAIL_NAN, false, &seen, &ok, err))
			goto done;
		if (!ok)
			continue;
		if (!image_take(st, s->ready, NULL, 0, true, TENSOR_POISON_A, &im, err))
			goto done;
		const struct image *const one[] = {&im};
		const bool hashed = image_sha256(st, one, 1, hex, err);
		image_drop(&im);
		if (!hashed)
			goto done;
		json_array_append_new(arms, json_pack("{s:s, s:s}", "name", s->name, "out_sha256", hex[0]));
	}
	outcome = EXEC_OK;
done:
	if (outcome != EXEC_OK && st && st->lost)
		outcome = EXEC_LOST;
	stage_destroy(st);
	json_decref(findings);
	json_decref(notes);
	return outcome;
}

bool exec_launch_only(struct exec *x, const struct cell *c, const char *arm, int launches, struct err *err)
{
	struct exec_beat beat = {0};
	const struct exec_sink sink = {.beat = &beat};
	json_t *findings = json_array(), *notes = json_array();
	struct stage *st = stage_create(x->be, x->inputs, c, false, &sink, findings, notes, err);
	struct subject *s = st ? stage_find(st, arm) : NULL;
	bool ok = false;

	if (!st)
		goto done;
	if (!s || s->unsupported) {
		err_set(err, s ? "%s: arm '%s' cannot run here: %s" : "%s: there is no arm '%s'%s", c->id, arm,
			s ? s->unsupported : "");
		goto done;
	}
	s->ready = ready_create(st, &st->main, s, err);
	if (!s->ready)
		goto done;
	ok = true;
	for (int i = -1; ok && i < launches; i++)
		ok = ready_restore(st, s->ready, err) && ready_enqueue(st, s->ready, err) && stage_sync(st, NULL, err);
done:
	stage_destroy(st);
	json_decref(findings);
	json_decref(notes);
	return ok;
}
