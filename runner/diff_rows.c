/* diff_rows: a cell's memory to rows. First in brief, so that they can be counted a million at a time; texts are for those that are shown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff_parts.h"

static const struct {
	char letter;
	const char *name;
} states[DIFF_N] = {
	[DIFF_FAILS] = {'!', "fails"},         [DIFF_SLOWER] = {'+', "slower"},
	[DIFF_UNDECIDED] = {'?', "undecided"}, [DIFF_INCOMPARABLE] = {'x', "incomparable"},
	[DIFF_BITS] = {'b', "bits"},           [DIFF_MISSING] = {'<', "missing"},
	[DIFF_ADDED] = {'>', "added"},         [DIFF_FASTER] = {'-', "faster"},
	[DIFF_FIXED] = {'*', "fixed"},         [DIFF_WAIVED] = {'w', "waived"},
	[DIFF_SAME] = {'~', "same"},
};

char diff_letter(enum diff_state s)
{
	return states[s].letter;
}

const char *diff_state_name(enum diff_state s)
{
	return states[s].name;
}

static int by_cell(const void *a, const void *b)
{
	const struct diff_extra *x = a, *y = b;
	return (x->cell > y->cell) - (x->cell < y->cell);
}

static int by_cell_and_arm(const void *a, const void *b)
{
	const struct diff_ulp *x = a, *y = b;
	if (x->cell != y->cell)
		return x->cell > y->cell ? 1 : -1;
	return (x->arm > y->arm) - (x->arm < y->arm);
}

void diff_sort_side_lists(struct diff *d)
{
	if (d->n_extra)
		qsort(d->extra, d->n_extra, sizeof *d->extra, by_cell);
	if (d->n_ulp)
		qsort(d->ulp, d->n_ulp, sizeof *d->ulp, by_cell_and_arm);
}

static size_t first_extra(const struct diff *d, uint32_t cell)
{
	size_t lo = 0, hi = d->n_extra;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (d->extra[mid].cell < cell)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct briefs {
	struct diff_brief *out;
	int n;
};

static struct diff_brief *say(struct briefs *b, enum diff_state state, int arm)
{
	if (b->n == DIFF_MAX_BRIEFS)
		b->n--;
	b->out[b->n] = (struct diff_brief){.state = state, .arm = arm};
	return &b->out[b->n++];
}

/* Arms whose bits changed: one row where it is all of them. */
static void bits_of(const struct diff *d, const struct diff_cell *c, struct briefs *b)
{
	int changed = 0, known = 0;
	for (uint32_t i = 0; i < c->n_arms; i++) {
		const struct diff_arm *a = &d->arm[c->arm + i];
		if (a->flags & (DA_BAD_BASE | DA_BAD_HEAD))
			continue; /* what was wrong has other bits when it is right */
		known += a->out != 0 && a->flags & DA_IN_HEAD;
		changed += (a->flags & DA_BITS) != 0;
	}
	if (changed > 1 && changed == known) {
		say(b, DIFF_BITS, -1);
		return;
	}
	for (uint32_t i = 0; i < c->n_arms; i++) {
		const struct diff_arm *a = &d->arm[c->arm + i];
		if (a->flags & DA_BITS && !(a->flags & (DA_BAD_BASE | DA_BAD_HEAD)))
			say(b, DIFF_BITS, (int)i);
	}
}

static void times_of(const struct diff *d, const struct diff_cell *c, int i, struct briefs *b)
{
	const struct diff_arm *a = &d->arm[c->arm + (uint32_t)i];
	struct diff_compared x;
	if (diff_compare_arm(d, c, a, &x)) {
		struct diff_brief *r = NULL;
		if (d->other_device) {
			r = say(b, DIFF_INCOMPARABLE, i);
			r->text = "another device: not judged";
		} else if (x.state != DIFF_SAME || !(a->flags & DA_BITS)) {
			r = say(b, x.state, i);
		}
		if (r) {
			r->timed = true;
			r->compared = x;
		}
		return;
	}
	if (c->times || a->flags & (DA_BAD_BASE | DA_BAD_HEAD) || c->class[0] != DC_OK || c->class[1] != DC_OK)
		return;
	bool base = isfinite(a->y[0]), head = isfinite(a->y[1]);
	if (base && head)
		say(b, DIFF_INCOMPARABLE, i)->text = "clocks differ";
	else if (base || head)
		say(b, DIFF_INCOMPARABLE, i)->text = base ? "not timed in head" : "not timed in base";
}

int diff_briefs(const struct diff *d, uint32_t cell, struct diff_brief out[DIFF_MAX_BRIEFS])
{
	const struct diff_cell *c = &d->cell[cell];
	struct briefs b = {out, 0};
	if (!c->line[0] || !c->line[1]) {
		say(&b, (enum diff_state)c->state, c->why_arm - 1)->why = c->why;
		return b.n;
	}
	if (d->n_refusals > 0 && !d->other_device) {
		say(&b, DIFF_INCOMPARABLE, -1)->text = d->refusal[0];
		return b.n;
	}
	if (c->state != DIFF_SAME)
		say(&b, (enum diff_state)c->state, c->why_arm - 1)->why = c->why;
	if (c->state == DIFF_INCOMPARABLE)
		return b.n;
	if (c->times)
		say(&b, DIFF_INCOMPARABLE, -1)->why = c->times;
	bits_of(d, c, &b);
	for (int i = 0; i < c->n_arms; i++) {
		const struct diff_arm *a = &d->arm[c->arm + (uint32_t)i];
		if (!(a->flags & DA_IN_HEAD)) {
			if (c->class[1] == DC_OK)
				say(&b, DIFF_MISSING, i);
			continue;
		}
		times_of(d, c, i, &b);
	}
	for (size_t k = first_extra(d, cell); k < d->n_extra && d->extra[k].cell == cell; k++)
		if (c->class[0] == DC_OK)
			say(&b, DIFF_ADDED, -2 - (int)k);
	if (b.n == 0)
		say(&b, DIFF_SAME, -1);
	return b.n;
}

/* ---- texts ----------------------------------------------------------------------------------------------------------- */

struct texts {
	char id[4200], parts[4200], why[400];
};

static void split_id(struct texts *t, struct diff_row *row)
{
	const char **part[] = {NULL, NULL, &row->kernel, &row->geometry, &row->data, &row->point};
	snprintf(t->parts, sizeof t->parts, "%s", t->id);
	char *s = t->parts;
	row->kernel = row->geometry = row->data = row->point = "";
	for (int i = 0; i < 6 && s; i++) {
		char *slash = i < 5 ? strchr(s, '/') : NULL;
		if (slash)
			*slash = 0;
		if (part[i])
			*part[i] = s;
		s = slash ? slash + 1 : NULL;
	}
}

/* What else changed of an arm. */
static void artifact_text(const struct diff_arm *a, char *out, size_t cap)
{
	size_t n = 0;
	out[0] = 0;
	if (a->regs[0] && a->regs[1] && a->regs[0] != a->regs[1])
		n += (size_t)snprintf(out, cap, "regs %d>%d", a->regs[0], a->regs[1]);
	if (a->spills[0] != a->spills[1] && n < cap)
		n += (size_t)snprintf(out + n, cap - n, "%sspills %d>%d B", n ? ", " : "", a->spills[0], a->spills[1]);
	if (n == 0 && a->flags & (DA_SAME_CODE | DA_OTHER_CODE))
		snprintf(out, cap, a->flags & DA_SAME_CODE ? "same code" : "other code");
}

static const struct diff_ulp *ulp_of(const struct diff *d, uint32_t cell, int arm)
{
	struct diff_ulp key = {cell, (uint8_t)arm, 0};
	return d->n_ulp ? bsearch(&key, d->ulp, d->n_ulp, sizeof key, by_cell_and_arm) : NULL;
}

static void bits_text(const struct diff *d, uint32_t cell, int arm, char *out, size_t cap)
{
	const struct diff_cell *c = &d->cell[cell];
	double worst = 0;
	bool known = true;
	for (int i = arm < 0 ? 0 : arm; i < (arm < 0 ? c->n_arms : arm + 1); i++) {
		const uint8_t flags = d->arm[c->arm + (uint32_t)i].flags;
		if (!(flags & DA_BITS) || flags & (DA_BAD_BASE | DA_BAD_HEAD))
			continue;
		const struct diff_ulp *u = ulp_of(d, cell, i);
		if (!u)
			known = false;
		if (u)
			worst = fmax(worst, u->ulp);
	}
	if (known)
		snprintf(out, cap, "<= %.0f ULP", worst);
	else
		snprintf(out, cap, "digests only: assay ab gives the ULP");
}

static void why_of(const struct diff *d, uint32_t cell, const struct diff_brief *b, struct texts *t,
		   struct diff_row *row)
{
	const struct diff_cell *c = &d->cell[cell];
	row->why = t->why;
	t->why[0] = 0;
	if (b->why)
		snprintf(t->why, sizeof t->why, "%s", d->words.word[b->why]);
	else if (b->text)
		snprintf(t->why, sizeof t->why, "%s", b->text);
	else if (b->state == DIFF_BITS)
		bits_text(d, cell, b->arm, t->why, sizeof t->why);
	else if (b->state == DIFF_UNDECIDED && b->compared.more_processes > 0)
		snprintf(t->why, sizeof t->why, "%d more process%s it", b->compared.more_processes,
			 b->compared.more_processes > 1 ? "es settle" : " settles");
	else if (b->state == DIFF_UNDECIDED)
		snprintf(t->why, sizeof t->why, "no number of processes: assay ab");
	else if (b->arm >= 0 && (b->state == DIFF_SLOWER || b->state == DIFF_FASTER))
		artifact_text(&d->arm[c->arm + (uint32_t)b->arm], t->why, sizeof t->why);
	else if (b->state == DIFF_SAME && c->class[1] == DC_FAILING && c->class[0] == DC_FAILING &&
		 c->state == DIFF_SAME)
		snprintf(t->why, sizeof t->why, "fails as before: %s", status_name((enum cell_status)c->status[1]));
	else if (b->state == DIFF_SAME && c->class[1] == DC_SKIP && c->class[0] == DC_SKIP)
		snprintf(t->why, sizeof t->why, "skipped in both");
	else if (b->state == DIFF_SAME && c->class[1] == DC_TIME_INVALID && c->class[0] == DC_TIME_INVALID)
		snprintf(t->why, sizeof t->why, "timing invalid in both");
	if (!t->why[0])
		row->why = NULL;
}

static void numbers_of(const struct diff *d, const struct diff_cell *c, const struct diff_brief *b,
		       struct diff_row *row)
{
	row->base_ns = row->head_ns = row->ratio = row->lo = row->hi = row->p = NAN;
	struct diff_compared x = b->compared;
	int arm = b->arm;
	bool timed = b->timed;
	/* A changed output has its times too; of a whole cell those of its first arm, the shipped one. */
	if (b->state == DIFF_BITS && c->n_arms > 0) {
		arm = arm < 0 ? 0 : arm;
		timed = !d->other_device && diff_compare_arm(d, c, &d->arm[c->arm + (uint32_t)arm], &x);
	}
	if (!timed || arm < 0)
		return;
	const struct diff_arm *a = &d->arm[c->arm + (uint32_t)arm];
	row->base_ns = exp((double)a->y[0]);
	row->head_ns = exp((double)a->y[1]);
	row->ratio = exp(x.change);
	row->lo = exp(x.change - 1.959964 * x.se);
	row->hi = exp(x.change + 1.959964 * x.se);
	row->p = x.p;
	row->of_ratio = d->sum.clocks_differ;
	row->more_processes = x.more_processes;
}

static void emit(const struct diff *d, uint32_t cell, enum diff_state state, struct texts *t, diff_row_fn *f, void *ctx)
{
	struct diff_brief b[DIFF_MAX_BRIEFS];
	const struct diff_cell *c = &d->cell[cell];
	int n = diff_briefs(d, cell, b);
	for (int i = 0; i < n; i++) {
		if (state != DIFF_N && b[i].state != state)
			continue;
		struct diff_row row = {.state = b[i].state, .id = t->id};
		snprintf(t->id, sizeof t->id, "%s%s", d->words.word[c->prefix], d->text + c->tail);
		split_id(t, &row);
		if (b[i].arm >= 0)
			row.arm = d->words.word[d->arm[c->arm + (uint32_t)b[i].arm].name];
		else if (b[i].arm < -1)
			row.arm = d->words.word[d->extra[-2 - b[i].arm].name];
		numbers_of(d, c, &b[i], &row);
		why_of(d, cell, &b[i], t, &row);
		f(ctx, &row);
	}
}

void diff_rows(const struct diff *d, enum diff_state state, diff_row_fn *f, void *ctx)
{
	struct texts t;
	if (state != DIFF_N && d->sum.rows[state] == 0)
		return;
	for (size_t i = 0; i < d->n_order; i++)
		emit(d, d->order[i], state, &t, f, ctx);
	for (uint32_t i = 0; i < d->n_cells; i++)
		if (!d->cell[i].line[DIFF_HEAD])
			emit(d, i, state, &t, f, ctx);
}

void diff_largest_same(const struct diff *d, diff_row_fn *f, void *ctx)
{
	struct texts t;
	if (d->largest_same)
		emit(d, d->largest_same - 1, DIFF_SAME, &t, f, ctx);
}
