#include "selftest_timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "record_parts.h"
#include "stats.h"

/* What a cell may cost beside launches, scrubs and the reference. */
#define OVERHEAD_MOST_NS 150e6
/* A share that chance gives in one selftest of a thousand is a broken promise. */
#define CHANCE 0.001
#define ALPHA 0.025

static struct timed_group *group_of(struct timed *t, const char *name)
{
	for (int i = 0; i < t->n; i++)
		if (strcmp(t->group[i].name, name) == 0)
			return &t->group[i];
	if (t->n == TIMED_GROUPS)
		return NULL;
	struct timed_group *g = &t->group[t->n++];
	snprintf(g->name, sizeof g->name, "%s", name);
	return g;
}

static void take_overhead(struct timed *t, const json_t *cell)
{
	const json_t *cost = json_object_get(cell, "cost");
	if (!json_is_object(cost))
		return;
	if (t->n_overhead == t->cap_overhead) {
		int cap = t->cap_overhead ? 2 * t->cap_overhead : 256;
		double *p = realloc(t->overhead_ns, (size_t)cap * sizeof *p);
		if (!p)
			return;
		t->overhead_ns = p;
		t->cap_overhead = cap;
	}
	t->overhead_ns[t->n_overhead++] = record_number(cost, "wall_ns", 0) - record_number(cost, "launch_ns", 0) -
					  record_number(cost, "scrub_ns", 0) - record_number(cost, "reference_ns", 0);
}

bool timed_take(struct timed *t, const json_t *cell)
{
	const char *name = record_text(cell, "case");
	if (!name || (strncmp(name, "aa-", 3) != 0 && strncmp(name, "plant-", 6) != 0))
		return false;
	struct timed_group *g = group_of(t, name);
	if (!g)
		return false;
	const json_t *timing = json_object_get(cell, "timing");
	const enum timing_verdict v = judge_verdict_of(record_text(timing, "verdict"));
	const double lo = record_number(timing, "lo", -INFINITY), m = record_number(timing, "ln_margin", NAN),
		     estimate = record_number(timing, "estimate", NAN);
	g->cells++;
	g->passed += v == TV_PASS;
	g->confirmed += v == TV_REGRESSION;
	g->invalid += v == TV_INVALID || v == TV_N;
	g->suspect += v != TV_INVALID && v != TV_N && v != TV_PASS && lo > m;
	g->undecided += v == TV_INCONCLUSIVE && !(lo > m);
	g->ln_margin = isfinite(m) ? m : g->ln_margin;
	if (isfinite(estimate)) {
		g->numbers++;
		g->rounds += record_number(timing, "n", 0);
		g->ratios += estimate;
		g->worst = fabs(estimate) > fabs(g->worst) ? estimate : g->worst;
	}
	take_overhead(t, cell);
	return true;
}

void timed_free(struct timed *t)
{
	free(t->overhead_ns);
	*t = (struct timed){.n = 0};
}

/* ---- claims --------------------------------------------------------------------------------------------------------- */

/* "in 14.2 rounds, mean ratio 1.0001, farthest 1.004" */
static void figures(const struct timed_group *g, char *out, size_t cap)
{
	out[0] = '\0';
	if (g->numbers > 0)
		snprintf(out, cap, "; %.1f rounds, ratio %.4f (farthest %.4f)", g->rounds / g->numbers,
			 exp(g->ratios / g->numbers), exp(g->worst));
}

static void claim_aa(const struct timed_group *g, bool quick, struct claim *c)
{
	char more[120];
	figures(g, more, sizeof more);
	snprintf(c->name, sizeof c->name, "A/A %s", g->name + 3);
	snprintf(c->text, sizeof c->text,
		 "%d of %d cells wrongly failed (under %.2g %% at 95 %%), %d decided, %d undecided, %d invalid, margin "
		 "%.3g %%%s",
		 g->confirmed, g->cells, 100 * stats_binomial_upper(g->cells, g->confirmed, 0.95),
		 g->passed + g->confirmed, g->cells - g->passed - g->confirmed - g->invalid, g->invalid,
		 100 * (exp(g->ln_margin) - 1), more);
	c->state = quick                      ? CLAIM_TOLD
		   : g->confirmed > 0         ? CLAIM_BROKEN
		   : 2 * g->passed < g->cells ? CLAIM_OPEN
					      : CLAIM_HOLDS;
}

static void claim_planted(const struct timed_group *g, bool quick, struct claim *c)
{
	const double planted = strtod(g->name + 6, NULL) / 1000, margin = exp(g->ln_margin) - 1;
	/* At the margin either answer is right: a step more or less decides, and a quiet device sees even that. The error rates there are those of
	 * tests/test_simulate.c. */
	const bool at_margin = fabs(planted - margin)<0.005, slower = planted> margin;
	char more[120];
	figures(g, more, sizeof more);
	snprintf(c->name, sizeof c->name, "planted +%.3g %%", 100 * planted);
	snprintf(c->text, sizeof c->text,
		 "%d of %d cells suspect, %d of them confirmed; %d passed, %d undecided, %d invalid, margin %.3g %%%s",
		 g->suspect, g->cells, g->confirmed, g->passed, g->undecided, g->invalid, 100 * margin, more);
	/* A slowdown beyond the margin passes in 2.5 % of cells at most; one below it is suspected in as many. */
	if (quick || at_margin)
		c->state = CLAIM_TOLD;
	else if ((slower && g->passed > 0 && stats_binomial_tail(g->cells, g->passed, ALPHA) < CHANCE) ||
		 (!slower && g->suspect > 0 && stats_binomial_tail(g->cells, g->suspect, ALPHA) < CHANCE))
		c->state = CLAIM_BROKEN;
	else if (planted > margin + 0.025 && 2 * g->suspect < g->cells)
		c->state = CLAIM_OPEN;
	else
		c->state = CLAIM_HOLDS;
}

static void claim_overhead(const struct timed *t, bool quick, struct claim *c)
{
	struct summary s;
	stats_summary(t->overhead_ns, t->n_overhead, &s);
	snprintf(c->name, sizeof c->name, "overhead");
	snprintf(c->text, sizeof c->text,
		 "%.1f ms a cell outside of scrub, launch and reference (median of %d; at most %.1f), %.0f ms are "
		 "allowed",
		 s.median / 1e6, s.n, s.max / 1e6, OVERHEAD_MOST_NS / 1e6);
	c->state = quick ? CLAIM_TOLD : s.median <= OVERHEAD_MOST_NS ? CLAIM_HOLDS : CLAIM_BROKEN;
}

int timed_close(const struct timed *t, bool quick, struct claim *out, int cap)
{
	int n = 0;
	for (int i = 0; i < t->n && n < cap; i++, n++) {
		out[n] = (struct claim){.name = ""};
		(t->group[i].name[0] == 'a' ? claim_aa : claim_planted)(&t->group[i], quick, &out[n]);
	}
	if (t->n_overhead > 0 && n < cap) {
		out[n] = (struct claim){.name = ""};
		claim_overhead(t, quick, &out[n++]);
	}
	return n;
}
