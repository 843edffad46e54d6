#include "exec_facts.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "finding.h"
#include "record_parts.h"

static const char *const roles[] = {
	[ROLE_SHIPPED] = "shipped", [ROLE_CANDIDATE] = "candidate", [ROLE_HEADROOM] = "headroom", [ROLE_NULL] = "null"};
static const char *const orders[] = {[ORDER_RANDOM] = "random", [ORDER_FIXED] = "fixed", [ORDER_LIST] = "list"};

bool facts_data(struct stage *st, json_t *facts)
{
	json_t *audit = json_object();
	bool held = true, any = false;

	for (int t = 0; t < st->cell->kernel->n_tensors; t++) {
		const struct input *in = st->in[t];
		if (!in)
			continue;
		any = true;
		json_object_update(audit, in->audit);
		for (size_t i = 0; i < json_array_size(in->broken); i++) {
			const json_t *b = json_array_get(in->broken, i);
			json_t *f =
				finding_add(st->findings, "data", NULL, "invalid", "data promise broken, %s%s",
					    json_string_value(json_object_get(b, "text")),
					    json_integer_value(json_object_get(b, "set")) ? " (second input set)" : "");
			json_object_set(f, "tensor", json_object_get(b, "tensor"));
			held = false;
		}
	}
	if (any && held)
		json_object_set_new(finding_add(st->findings, "data", NULL, "pass", NULL), "tensor", json_null());
	json_object_set_new(facts, "data_audit", audit);
	return held;
}

static void set_real(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, isfinite(v) ? json_real(v) : json_null());
}

bool facts_work(struct stage *st, json_t *facts, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	struct assay_work w = {NAN, NAN, NAN};
	struct assay_facts f;
	json_t *o = json_object();

	for (int t = 0; t < ASSAY_MAX_TENSORS; t++) {
		f.distinct[t] = t < k->n_tensors && st->in[t] ? st->in[t]->distinct : -1;
		f.nonzero[t] = t < k->n_tensors && st->in[t] ? st->in[t]->nonzero : -1;
	}
	if (k->work) {
		/* The peaks are judged by them: of a NAN nothing would be implausible. */
		k->work(&st->cell->point, &f, &w);
		const struct {
			const char *name;
			double v;
		} part[] = {{"bytes", w.bytes}, {"least_bytes", w.least_bytes}, {"flop", w.flop}};
		for (size_t i = 0; i < sizeof part / sizeof *part; i++)
			if (!isfinite(part[i].v) || part[i].v < 0) {
				json_decref(o);
				return err_set(err, "the work hook of %s says %s %g: a finite number from 0 is wanted",
					       k->name, part[i].name, part[i].v);
			}
	}
	set_real(o, "bytes", w.bytes);
	set_real(o, "least_bytes", w.least_bytes);
	set_real(o, "flop", w.flop);
	json_object_set_new(facts, "work", o);
	return true;
}

bool facts_digests(struct stage *st, const struct evidence *ev, struct facts_sha *sha, struct err *err)
{
	const struct image *im[STAGE_SUBJECTS];
	char hex[STAGE_SUBJECTS][65];
	int which[STAGE_SUBJECTS], n = 0;

	memset(sha, 0, sizeof(*sha));
	for (int i = 0; i < st->n_subjects; i++) {
		const struct image *mine = &ev->first[0][i];
		which[i] = -1;
		if (!ev->have[0][i] || !mine->n)
			continue;
		/* Arms that share their bytes share the hash. */
		for (int k = 0; k < n && which[i] < 0; k++)
			if (im[k]->n == mine->n &&
			    !memcmp(im[k]->block, mine->block, (size_t)mine->n * sizeof(*mine->block)))
				which[i] = k;
		if (which[i] < 0) {
			which[i] = n;
			im[n++] = mine;
		}
	}
	if (!image_sha256(st, im, n, hex, err))
		return false;
	for (int i = 0; i < st->n_subjects; i++)
		if (which[i] >= 0)
			memcpy(sha->hex[i], hex[which[i]], sizeof(sha->hex[i]));
	return true;
}

void facts_arms(struct stage *st, const struct facts_sha *sha, const struct rounds *rounds, json_t *facts)
{
	const struct assay_kernel *k = st->cell->kernel;
	json_t *arms = json_array();

	for (int i = 0; i < st->n_subjects; i++) {
		struct subject *s = &st->subject[i];
		json_t *o;
		if (s->role == ROLE_NULL && (!rounds || !rounds->sample[i]))
			continue;
		o = json_object();
		json_object_set_new(o, "name", json_string(s->name));
		json_object_set_new(o, "role", json_string(roles[s->role]));
		json_object_set_new(o, "unsupported", record_text_or_null(s->unsupported));
		json_object_set_new(o, "out_sha256", record_text_or_null(sha->hex[i]));
		json_object_set_new(o, "form",
				    record_text_or_null(
					    k->form && !s->unsupported
						    ? k->form(s->arm->desc, st->ops->kind, st->ops->info(st->be)->cc)
						    : NULL));
		/* A record is told several times over; reading machine code takes longer than many a launch. */
		if (s->n_launches && st->ops->artifact && !s->artifact)
			s->artifact = st->ops->artifact(st->be, s->launch, s->n_launches);
		json_object_set_new(o, "artifact", s->artifact ? json_incref(s->artifact) : json_null());
		json_object_set_new(o, "samples_ns", rounds ? rounds_samples(rounds, i) : json_null());
		json_array_append_new(arms, o);
	}
	json_object_set_new(facts, "arms", arms);
}

double facts_cold_bytes(const struct stage *st, const json_t *facts, int64_t scrub_bytes)
{
	const double least = json_number_value(json_object_get(json_object_get(facts, "work"), "least_bytes"));
	const int64_t llc = st->ops->info(st->be)->llc_bytes;
	double written = 0;

	/* Half of that leaves a third of a cache that replaces at random. */
	if (scrub_bytes <= 0 || scrub_bytes < 2 * llc)
		return 0;
	for (int t = 0; t < st->cell->kernel->n_tensors; t++)
		if (st->cell->kernel->tensors[t].role != ASSAY_IN && st->main.buf[t])
			written += (double)st->main.buf[t]->bytes;
	if (llc > 0 && written > (double)llc)
		written = (double)llc;
	return least > written ? least - written : 0;
}

double facts_flop_reach(const struct stage *st)
{
	return st->ops->flop_reach ? st->ops->flop_reach(st->be) : 1;
}

static void set_peak(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, v > 0 && isfinite(v) ? json_real(v) : json_null());
}

void facts_measure(struct stage *st, const struct facts_measure *m, const struct rounds *r, json_t *facts)
{
	const struct timing *t = &st->cell->timing;
	json_t *o = json_object();

	json_object_set_new(o, "clock", json_string(t->clock == CLOCK_DEVICE ? "device" : "launch_to_completion"));
	json_object_set_new(o, "scrub_bytes", m->scrub_bytes >= 0 ? json_integer(m->scrub_bytes) : json_null());
	json_object_set_new(o, "batch", json_integer(r->batch));
	json_object_set_new(o, "order", json_string(orders[t->order]));
	json_object_set_new(o, "order_seed", json_integer((json_int_t)m->order_seed));
	json_object_set_new(o, "rounds", json_integer(r->n));
	json_object_set_new(o, "dropped", json_integer(r->dropped));
	json_object_set_new(o, "cut", r->cut ? json_string("budget") : json_null());
	const int64_t budget = st->cell->timing.cell_budget_ns;
	json_object_set_new(o, "budget_ns", budget > 0 ? json_integer(budget) : json_null());
	json_object_set_new(o, "floor_ns", m->floor_ns > 0 ? json_integer(m->floor_ns) : json_null());
	json_object_set_new(o, "tick_ns", json_real(m->tick_ns));
	json_object_set_new(o, "wall_ns", json_integer(r->wall_ns));
	json_object_set_new(o, "threads", json_integer(st->ops->info(st->be)->threads));
	set_peak(o, "peak_bytes_per_s", st->ops->peak_bytes_per_s ? st->ops->peak_bytes_per_s(st->be) : 0);
	set_peak(o, "peak_flop_per_s", st->ops->peak_flop_per_s ? st->ops->peak_flop_per_s(st->be) : 0);
	json_object_set_new(o, "cold_bytes", json_real(m->cold_bytes));
	json_object_set_new(o, "flop_reach", json_real(facts_flop_reach(st)));
	/* A scrub that could not be tried is neither proven nor disproven. */
	json_object_set_new(o, "scrub_proven", m->proof.measured ? json_boolean(m->proof.proven) : json_null());
	json_object_set_new(o, "scrub_ratio", m->proof.measured ? json_real(m->proof.ratio) : json_null());
	json_object_set_new(o, "rotate", json_boolean(t->scrub == SCRUB_ROTATE));
	json_object_set_new(o, "process", json_integer(getpid()));
	json_object_set_new(facts, "measure", o);
}

static json_t *known(int64_t v)
{
	return v >= 0 ? json_integer(v) : json_null();
}

json_t *facts_state(const struct device_state *s)
{
	json_t *o = json_object();

	json_object_set_new(o, "sm_mhz", known(s->sm_mhz));
	json_object_set_new(o, "mem_mhz", known(s->mem_mhz));
	json_object_set_new(o, "temperature_c", known(s->temperature_c));
	json_object_set_new(o, "power_w", known(s->power_w));
	json_object_set_new(o, "throttle",
			    !s->throttle       ? json_null()
			    : s->throttle_text ? json_string(s->throttle_text)
					       : json_integer((json_int_t)(s->throttle & INT64_MAX)));
	json_object_set_new(o, "limit", record_text_or_null(s->limit_text));
	json_object_set_new(o, "other_processes", known(s->other_processes));
	json_object_set_new(o, "preemptions", known(s->preemptions));
	return o;
}

json_t *facts_device(const struct device_info *d)
{
	json_t *o = json_object();

	json_object_set_new(o, "name", record_text_or_null(d->name));
	json_object_set_new(o, "uuid", record_text_or_null(d->uuid));
	json_object_set_new(o, "cc", json_integer(d->cc));
	json_object_set_new(o, "threads", json_integer(d->threads));
	json_object_set_new(o, "driver", record_text_or_null(d->driver));
	json_object_set_new(o, "runtime", record_text_or_null(d->runtime));
	json_object_set_new(o, "memory_bytes", json_integer(d->memory_bytes));
	json_object_set_new(o, "llc_bytes", json_integer(d->llc_bytes));
	json_object_set_new(o, "more", d->more ? json_incref(d->more) : json_object());
	return o;
}
