#include "rounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "finding.h"
#include "judge.h"
#include "mix.h"
#include "monotonic.h"
#include "rotate.h"
#include "sampler.h"

enum { GIVE_UP_AFTER = 3, WARM_SAMPLES = 512 };
/* After so long without a launch the clocks have come down. */
#define IDLE_NS 1000000000

struct play {
	struct stage *st;
	const struct timing *t;
	const struct rounds_job *job;
	struct rounds *out;
	int arm[STAGE_SUBJECTS], n_arms; /* subjects that are timed */
	struct sampler by;
	int failures[STAGE_SUBJECTS], in_a_row[STAGE_SUBJECTS];
	struct err why[STAGE_SUBJECTS];
};

void rounds_order(uint64_t seed, int round, int n, int order[])
{
	uint64_t s = seed ^ ((uint64_t)round + 1) * 0xD1342543DE82EF95u;

	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; i > 0; i--) {
		int k = (int)((mix_next(&s) >> 32) * (uint64_t)(i + 1) >> 32), keep = order[i];
		order[i] = order[k];
		order[k] = keep;
	}
}

static bool sample(struct play *p, int subject, int batch, int round, int64_t *ns, struct err *err)
{
	p->out->launches += batch;
	return sampler_take(&p->by, subject, batch, round, ns, err);
}

static bool asked_for(const struct rounds_job *job, const char *name)
{
	return !job->only[0] || stage_listed(job->only, name);
}

/* The arms in the order that `fixed` and `list` launch them in. */
static void arms_in_order(struct play *p)
{
	struct stage *st = p->st;
	bool taken[STAGE_SUBJECTS] = {false};

	for (int l = 0; p->t->order == ORDER_LIST && l < MAX_LIST && p->t->order_list[l]; l++) {
		const struct subject *s = stage_find(st, p->t->order_list[l]);
		int i = s ? (int)(s - st->subject) : -1;
		if (s && !taken[i] && subject_runs(s) && s->ready && asked_for(p->job, s->name)) {
			p->arm[p->n_arms++] = i;
			taken[i] = true;
		}
	}
	for (int i = 0; i < st->n_subjects; i++)
		if (!taken[i] && subject_runs(&st->subject[i]) && st->subject[i].ready &&
		    asked_for(p->job, st->subject[i].name))
			p->arm[p->n_arms++] = i;
}

static void arm_failed(struct play *p, int subject, const struct err *err)
{
	p->failures[subject]++;
	p->in_a_row[subject]++;
	p->why[subject] = *err;
}

/* Launches for the clocks and caches, outside of every sample. *t_ns: what shipped took, for the batch. */
static bool warm_up(struct play *p, struct warmth *warm, double *t_ns, struct err *err)
{
	struct stage *st = p->st;
	int64_t now = st->ops->now(st->be), ns, seen[WARM_SAMPLES];
	int n_seen = 0, launches = p->t->warmup_launches, base = p->n_arms ? p->arm[0] : 0;
	bool timed = !warm->warmed || now - warm->last_ns > IDLE_NS;
	struct err why;

	for (int a = 0; a < p->n_arms; a++)
		if (p->arm[a] == 0)
			base = 0;
	for (int k = 0; k < launches || k == 0; k++)
		for (int a = 0; a < p->n_arms; a++) {
			/* Shipped is launched once in any case: the batch is chosen by what it takes. */
			if (k >= launches && p->arm[a] != base)
				continue;
			watch_idle(p->by.watch);
			bool ok = sample(p, p->arm[a], 1, -1, &ns, &why);
			if (st->lost)
				return err_set(err, "%s: %s", st->subject[p->arm[a]].name, why.text);
			if (ok && p->arm[a] == base && n_seen < WARM_SAMPLES)
				seen[n_seen++] = ns;
		}
	for (int64_t until = now + p->t->warmup_ns; timed && p->n_arms && st->ops->now(st->be) < until;) {
		watch_idle(p->by.watch);
		if (!sample(p, base, 1, -1, &ns, &why)) {
			if (st->lost)
				return err_set(err, "%s: %s", st->subject[base].name, why.text);
			break;
		}
		if (n_seen == WARM_SAMPLES) {
			memmove(seen + WARM_SAMPLES / 2, seen + WARM_SAMPLES / 2 + 1,
				(WARM_SAMPLES / 2 - 1) * sizeof(*seen));
			n_seen--;
		}
		seen[n_seen++] = ns;
	}
	warm->warmed = true;
	*t_ns = 0;
	if (n_seen) {
		double tail[8];
		int n = n_seen < 8 ? n_seen : 8;
		for (int i = 0; i < n; i++)
			tail[i] = (double)seen[n_seen - n + i];
		*t_ns = stats_median(tail, n);
	}
	if (n_seen >= 16) {
		double head[8];
		for (int i = 0; i < 8; i++)
			head[i] = (double)seen[i];
		double from = stats_median(head, 8);
		if (from > 1.1 * *t_ns)
			stage_note(st, "clock ramp in the warm-up: shipped went from %.1f to %.1f us", from / 1000,
				   *t_ns / 1000);
	}
	return true;
}

static int choose_batch(const struct play *p, double t_ns)
{
	const struct cell *c = p->st->cell;

	if (p->job->batch > 0)
		return p->job->batch;
	if (p->t->batch > 0)
		return p->t->batch;
	/* A margin of nothing would ask for a perfect clock: it counts as half a per cent at least. */
	double ln_m = fmax(judge_ln_margin(c->margin_fail, c->margin_floor_ns, t_ns), log(1.005));
	int b = t_ns > 0 ? judge_batch(p->job->tick_ns, t_ns, ln_m) : ROUNDS_BATCH_MAX + 1;
	return b < 1 ? 1 : b;
}

/* False: lost. *dropped: a launch failed, the round counts for nobody. into NULL: a round that is thrown away. */
static bool one_round(struct play *p, int round, bool last, int64_t *const *into, bool *dropped, struct err *err)
{
	struct stage *st = p->st;
	int order[STAGE_SUBJECTS];
	int64_t ns;
	struct err why = {{0}};

	*dropped = false;
	watch_round(p->by.watch, round, p->out->batch, last);
	if (p->by.rotate)
		rotate_round(p->by.rotate);
	if (p->t->order == ORDER_RANDOM) {
		rounds_order(p->job->order_seed, round, p->n_arms, order);
		/* One launch of shipped is thrown away, so that no arm is first after whatever went before. */
		for (int a = 0; a < p->n_arms; a++)
			if (p->arm[a] == 0 && !sample(p, 0, 1, round, &ns, &why) && st->lost)
				return err_set(err, "%s: %s", st->subject[0].name, why.text);
	} else {
		for (int i = 0; i < p->n_arms; i++)
			order[i] = i;
	}
	for (int i = 0; i < p->n_arms; i++) {
		int s = p->arm[order[i]];
		p->by.counts = true;
		bool ok = sample(p, s, p->out->batch, round, &ns, &why);
		p->by.counts = false;
		if (into)
			into[s][round] = ns;
		if (st->lost || p->by.broken)
			return err_set(err, "%s: %s", st->subject[s].name, why.text);
		if (ok) {
			p->in_a_row[s] = 0;
			continue;
		}
		*dropped = true;
		arm_failed(p, s, &why);
	}
	for (int a = 0; into && *dropped && a < p->n_arms; a++)
		into[p->arm[a]][round] = -1;
	return true;
}

/* Takes an arm that fails again and again out of the rounds. */
static void drop_failing(struct play *p)
{
	for (int a = 0; a < p->n_arms; a++) {
		int s = p->arm[a];
		if (p->in_a_row[s] < GIVE_UP_AFTER)
			continue;
		p->st->subject[s].failed = true;
		memmove(&p->arm[a], &p->arm[a + 1], (size_t)(p->n_arms - a - 1) * sizeof(*p->arm));
		p->n_arms--;
		a--;
		/* Whatever it had is of rounds that were dropped, or from before it broke: it is no measurement of this arm. */
		for (int r = 0; r < ROUNDS_MAX; r++)
			p->out->sample[s][r] = -1;
	}
}

/* Whether no round will come after this one, as far as it can be known. */
static bool surely_last(const struct play *p)
{
	const int limit = p->job->rounds > 0 ? p->job->rounds : p->t->rounds > 0 ? p->t->rounds : p->t->max_rounds;

	return p->out->n - p->out->dropped + 1 >= limit || p->out->n + 1 == ROUNDS_MAX;
}

/* After the rounds: what nobody could know to be the last launch is made up for. */
static bool closing_rounds(struct play *p, struct err *err)
{
	bool dropped, ok = true;

	for (int i = 0; ok && p->out->n && p->n_arms && !p->st->subject[0].failed && watch_wants_more(p->by.watch);
	     i++) {
		ok = one_round(p, p->out->n + i, true, NULL, &dropped, err);
		if (ok && dropped)
			drop_failing(p);
	}
	return ok;
}

static bool pair_done(const struct play *p, int arm, int base, const struct judge_rule *rule)
{
	double x[2][ROUNDS_MAX];
	struct judge_result res;
	bool done = false;
	int n = p->out->n;

	for (int r = 0; r < n; r++)
		for (int k = 0; k < 2; k++) {
			int64_t ns = p->out->sample[k ? base : arm][r];
			x[k][r] = ns < 0 ? NAN : (double)ns;
		}
	struct judge_pair pair = {.arm = x[0], .shipped = x[1], .n = n};
	if (rule->estimator == EST_PAIRED)
		judge_paired(&pair, rule, &res, &done);
	else
		judge_seed(&pair, rule, &res, &done);
	return done;
}

static int index_of(struct play *p, const char *name)
{
	const struct subject *s = stage_find(p->st, name);

	return s && p->out->sample[s - p->st->subject] && subject_runs(s) ? (int)(s - p->st->subject) : -1;
}

/* Whether enough rounds are taken: by count, or because the judge has decided what this cell asks. */
static bool enough(struct play *p)
{
	const struct cell *c = p->st->cell;
	const struct timing *t = p->t;
	int valid = p->out->n - p->out->dropped, arm;
	struct judge_rule rule = {.estimator = t->estimator,
				  .fail = c->margin_fail,
				  .warn = c->margin_warn,
				  .floor_ns = c->margin_floor_ns,
				  .alpha = t->alpha,
				  .rounds = t->rounds,
				  .min_rounds = t->min_rounds,
				  .max_rounds = t->max_rounds,
				  .confirm = t->confirm,
				  .tau = 0};

	if (p->job->rounds > 0)
		return valid >= p->job->rounds;
	if (valid < judge_first_look(&rule))
		return false;
	if (t->rounds > 0 || valid >= t->max_rounds)
		return true;
	if (c->checks.on & 1u << CHECK_RATIO)
		return false; /* its interval is what is asked for: all rounds */
	if (c->selection == SELECT_ARM) {
		arm = index_of(p, c->selected);
		return arm <= 0 || pair_done(p, arm, 0, &rule);
	}
	for (int a = 0; a < p->n_arms; a++)
		if (p->arm[a] != 0 && p->st->subject[p->arm[a]].role == ROLE_CANDIDATE &&
		    !pair_done(p, p->arm[a], 0, &rule))
			return false;
	return true;
}

static void failure_findings(struct play *p)
{
	for (int s = 0; s < p->st->n_subjects; s++) {
		if (!p->failures[s])
			continue;
		json_t *f =
			finding_add(p->st->findings, "run", p->st->subject[s].name, "error",
				    "launch failed in %d of %d rounds: %s", p->failures[s], p->out->n, p->why[s].text);
		json_object_set_new(f, "phase", json_string("timing"));
	}
}

bool rounds_run(struct stage *st, const struct evidence *ev, const struct rounds_job *job, struct warmth *warm,
		struct rounds *out, struct err *err)
{
	const struct timing *t = &st->cell->timing;
	struct play p = {.st = st, .t = t, .job = job, .out = out, .by = {.st = st, .t = t}};
	int64_t start = st->ops->now(st->be), budget = t->cell_budget_ns, round_ns = 0;
	double t_ns = 0;
	bool ok = false;

	memset(out, 0, sizeof(*out));
	arms_in_order(&p);
	for (int a = 0; a < p.n_arms; a++) {
		out->sample[p.arm[a]] = malloc(ROUNDS_MAX * sizeof(int64_t));
		if (!out->sample[p.arm[a]])
			return err_set(err, "out of memory");
	}
	out->batch = 1;
	/* Without the time for a single launch nothing is warmed up either. */
	if (budget > 0 && budget <= 1000) {
		out->cut = true;
		return true;
	}
	if (t->scrub == SCRUB_ROTATE) {
		p.by.rotate = rotate_create(st, p.arm, p.n_arms, err);
		if (!p.by.rotate) {
			if (!st->lost) {
				stage_note(st, "not timed: %s", err->text);
				ok = true;
			}
			goto done;
		}
	}
	p.by.watch = watch_create(st, ev, job->rounds > 0 ? job->rounds : t->rounds, job->order_seed, err);
	if (!p.by.watch || !warm_up(&p, warm, &t_ns, err))
		goto done;
	out->launches = 0;
	out->batch = choose_batch(&p, t_ns);
	ok = true;
	while (out->batch <= ROUNDS_BATCH_MAX && p.n_arms && out->n < ROUNDS_MAX && !enough(&p)) {
		int64_t from = st->ops->now(st->be);
		bool dropped;
		if (budget > 0 && from - start + round_ns > budget) {
			out->cut = true;
			break;
		}
		ok = one_round(&p, out->n, surely_last(&p), out->sample, &dropped, err);
		if (!ok)
			break;
		out->n++;
		out->dropped += dropped;
		if (dropped)
			drop_failing(&p);
		if (st->subject[0].failed)
			break;
		round_ns = st->ops->now(st->be) - from;
	}
	ok = ok && closing_rounds(&p, err);
	failure_findings(&p);
	watch_findings(p.by.watch, out->watched);
	ok = ok && escape_settle(st, err);
	warm->last_ns = st->ops->now(st->be);
done:
	out->wall_ns = st->ops->now(st->be) - start;
	watch_destroy(p.by.watch);
	rotate_destroy(p.by.rotate);
	return ok;
}

void rounds_free(struct rounds *r)
{
	for (int i = 0; i < STAGE_SUBJECTS; i++)
		free(r->sample[i]);
	memset(r, 0, sizeof(*r));
}

json_t *rounds_samples(const struct rounds *r, int subject)
{
	json_t *a;

	if (!r->sample[subject])
		return json_null();
	a = json_array();
	for (int i = 0; i < r->n; i++)
		json_array_append_new(a, r->sample[subject][i] < 0 ? json_null() : json_integer(r->sample[subject][i]));
	return a;
}
