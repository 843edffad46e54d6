/* fake_time: the virtual time of the fake: noise, ramps, two clocks and hiccups by the script. */
#include <math.h>

#include "fake_parts.h"

/* ---- random --------------------------------------------------------------------------------------------------------- */

static double uniform(struct fake *f)
{
	uint64_t x = f->random += 0x9E3779B97F4A7C15u;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return ((double)((x ^ x >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct fake *f)
{
	double r = sqrt(-2 * log(uniform(f)));
	return r * cos(6.283185307179586 * uniform(f));
}

/* ---- how long a launch takes ---------------------------------------------------------------------------------------- */

double fake_duration(struct fake *f, const struct launch *l, int64_t k)
{
	const struct fake_script *s = &f->s;
	if (s->time_ns)
		return s->time_ns(s->ctx, l, k);
	double ns = s->launch_ns > 0 ? s->launch_ns : 10000, hiccup_p = s->hiccup_p, hiccup_factor = s->hiccup_factor;
	for (int i = 0; i < s->n_arms; i++) {
		const struct fake_arm *a = &s->arm[i];
		if ((a->ops && a->ops != l->ops) || (a->has_arg && a->arg != l->call->arm_arg))
			continue;
		ns = a->ns > 0 ? a->ns : ns;
		if (a->hiccup_p > 0) {
			hiccup_p = a->hiccup_p;
			hiccup_factor = a->hiccup_factor;
		}
		break;
	}
	if (s->sigma > 0) {
		f->error = s->rho * f->error + sqrt(1 - s->rho * s->rho) * normal(f);
		ns *= exp(s->sigma * f->error);
	}
	if (s->ramp_launches > 0)
		ns *= 1 + s->ramp * exp(-(double)k / s->ramp_launches);
	if (s->mode_p > 0 && uniform(f) < s->mode_p)
		f->slow_mode = !f->slow_mode;
	if (f->slow_mode)
		ns *= s->mode_factor;
	if (hiccup_p > 0 && uniform(f) < hiccup_p)
		ns *= hiccup_factor;
	if (s->first_every > 0 && k >= s->first_from && (k - s->first_from) % s->first_every == 0)
		ns *= s->first_factor;
	if (f->scrubbed && !s->scrub_ineffective && f->scrubs > s->scrub_masked && s->cold_factor > 0)
		ns *= s->cold_factor;
	return ns * (1 + s->drift * (double)k) + s->overhead_ns;
}

int64_t fake_ticks(const struct fake *f, double ns)
{
	int64_t tick = f->s.tick_ns > 0 ? f->s.tick_ns : 1;
	return (int64_t)floor(ns / (double)tick) * tick;
}

void fake_pass_time(struct fake *f, double ns)
{
	*(f->s.queued ? &f->queued_ns : &f->clock_ns) += ns;
}
