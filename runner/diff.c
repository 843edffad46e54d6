/* diff: records of two files, one at a time, into the memory of a comparison; its summary. */
#include "diff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "diff_parts.h"
#include "record_parts.h"

struct diff *diff_create(const struct diff_options *o)
{
	struct diff *d = calloc(1, sizeof *d);
	if (!d)
		return NULL;
	d->o = *o;
	for (int k = 0; k < 2; k++)
		d->sum.processes[k] = d->sum.all_processes[k] = 1;
	if (diff_word(&d->words, "") != 0) {
		diff_destroy(d);
		return NULL;
	}
	return d;
}

void diff_destroy(struct diff *d)
{
	if (!d)
		return;
	for (int k = 0; k < 2; k++) {
		json_decref(d->header[k]);
		json_decref(d->sentinels_end[k]);
		json_decref(d->processes[k]);
	}
	diff_words_free(&d->words);
	free(d->text);
	free(d->cell);
	free(d->place);
	free(d->arm);
	free(d->extra);
	free(d->ulp);
	free(d->order);
	free(d->shipped.c);
	free(d->null.c);
	free(d->sentinel.c);
	free(d);
}

static void keep(json_t **at, json_t *j)
{
	json_incref(j);
	json_decref(*at);
	*at = j;
}

/* Of a header only what is asked for later: the settings of a large suite are not. */
static json_t *short_header(const json_t *record)
{
	static const char *const keys[] = {"suite",     "plan_hash", "backend",     "device", "host",       "git",
					   "processes", "started",   "calibration", "tau",    "tau_source", "command"};
	json_t *h = json_object();
	for (size_t i = 0; h && i < sizeof keys / sizeof *keys; i++)
		json_object_set(h, keys[i],
				json_object_get(record, keys[i]) ? json_object_get(record, keys[i]) : json_null());
	return h;
}

bool diff_take(struct diff *d, enum diff_side side, const json_t *record, int64_t line, struct err *err)
{
	const char *kind = record_text(record, "kind"), *name = record_text(record, "name");
	if (!kind)
		return err_set(err, "line %lld: a record without a kind", (long long)line);
	if (strcmp(kind, "cell") == 0)
		return diff_take_cell(d, side, record, line, err);
	if (strcmp(kind, "header") == 0) {
		json_decref(d->header[side]);
		if (!(d->header[side] = short_header(record)))
			return err_set(err, "out of memory");
		/* The header is another program's word: in range before it is an int. */
		int n = (int)fmin(fmax(1, record_number(record, "processes", 1)), 1000);
		d->sum.all_processes[side] = n;
		d->sum.processes[side] = d->o.processes > 0 && d->o.processes < n ? d->o.processes : n;
	} else if (strcmp(kind, "aggregate") == 0 && name && strcmp(name, "sentinels") == 0) {
		keep(&d->sentinels_end[side], json_object_get(record, "end"));
	} else if (strcmp(kind, "aggregate") == 0 && name && strcmp(name, "processes") == 0) {
		json_t *copy = json_deep_copy(record);
		keep(&d->processes[side], copy);
		json_decref(copy);
	} else if (strcmp(kind, "resume") == 0) {
		d->resumed[side] = line;
		d->footer[side] = false; /* of what went on */
	} else if (strcmp(kind, "footer") == 0) {
		d->footer[side] = true;
		d->not_run[side] = record_number(record, "not_run", 0);
		d->noisy[side] = record_true(record, "noisy");
	}
	return true;
}

/* ---- the summary ----------------------------------------------------------------------------------------------------- */

/* Which parts of ids differ over the files: a label has to name those. */
static void look_at_names(struct diff *d)
{
	const char *first = NULL;
	uint32_t seen = UINT32_MAX;
	for (size_t i = 0; i < d->n_cells; i++) {
		if (d->cell[i].prefix == seen)
			continue;
		seen = d->cell[i].prefix;
		const char *a = d->words.word[seen], *b = first ? first : a;
		first = b;
		bool *const many[] = {NULL, &d->sum.many_cases, NULL, &d->sum.many_geometries, &d->sum.many_data};
		for (int k = 0; k < 5; k++) {
			size_t na = strcspn(a, "/"), nb = strcspn(b, "/");
			if (many[k] && (na != nb || strncmp(a, b, na) != 0))
				*many[k] = true;
			a += na + (a[na] == '/');
			b += nb + (b[nb] == '/');
		}
	}
}

/* A cell that fails or is waived on one side has times that no one asks for. */
static bool can_have_times(const struct diff_cell *c)
{
	for (int k = 0; k < 2; k++)
		if (c->class[k] != DC_OK && c->class[k] != DC_TIME_INVALID)
			return false;
	return true;
}

static void count(struct diff *d)
{
	struct diff_summary *s = &d->sum;
	struct diff_brief b[DIFF_MAX_BRIEFS];
	double ln_sum = 0;
	int64_t ln_n = 0;
	double largest = -1;
	look_at_names(d);
	for (uint32_t i = 0; i < d->n_cells; i++) {
		const struct diff_cell *c = &d->cell[i];
		if (!c->line[0] && !c->line[1])
			continue;
		s->all_cells++;
		unsigned seen = 0;
		double cell_sum = 0;
		int n = diff_briefs(d, i, b), cell_n = 0;
		for (int k = 0; k < n; k++) {
			s->rows[b[k].state]++;
			seen |= 1u << b[k].state;
			if (b[k].state == DIFF_SAME && b[k].timed && fabs(b[k].compared.change) > largest) {
				largest = fabs(b[k].compared.change);
				d->largest_same = i + 1;
			}
		}
		for (int k = 0; k < DIFF_N; k++)
			if (seen & 1u << k && (k != DIFF_SAME || seen == 1u << DIFF_SAME))
				s->cells[k]++;
		bool refused = d->n_refusals > 0 && !d->other_device, times = c->times != 0;
		if (!c->line[0] || !c->line[1] || refused || c->state == DIFF_INCOMPARABLE)
			continue;
		if (c->class[0] == DC_SKIP && c->class[1] == DC_SKIP) {
			s->skipped++;
			continue;
		}
		s->compared++;
		s->still_failing += c->state == DIFF_SAME && c->class[0] == DC_FAILING && c->class[1] == DC_FAILING;
		for (uint32_t k = 0; k < c->n_arms; k++) {
			const struct diff_arm *a = &d->arm[c->arm + k];
			struct diff_compared x;
			times = times || ((isfinite(a->y[0]) || isfinite(a->y[1])) && can_have_times(c));
			if (!d->other_device && diff_compare_arm(d, c, a, &x)) {
				cell_sum += x.change;
				cell_n++;
			}
		}
		s->timed += times || cell_n;
		if (cell_n) {
			s->times_compared++;
			ln_sum += cell_sum / cell_n;
			ln_n++;
		}
	}
	s->geomean = ln_n ? exp(ln_sum / (double)ln_n) : NAN;
	s->geomean_cells = ln_n;
	s->base_cells = d->n_side[0];
	s->head_cells = d->n_side[1];
	s->filtered_out = d->filtered_out;
	for (int k = 0; k < 2; k++)
		s->unfinished[k] = !d->footer[k] || d->not_run[k] > 0;
}

bool diff_judge(struct diff *d, struct err *err)
{
	diff_sort_side_lists(d);
	diff_compare_headers(d);
	if (!diff_weigh(d))
		return err_set(err, "out of memory to compare %zu cells", d->n_cells);
	count(d);
	if (d->other_device || d->n_refusals > 0) {
		d->sum.judged = 0;
		d->sum.expected_false = 0;
	}
	return true;
}

void diff_summary(const struct diff *d, struct diff_summary *out)
{
	*out = d->sum;
}

const json_t *diff_header(const struct diff *d, enum diff_side side)
{
	return d->header[side];
}

const char *diff_refusal(const struct diff *d, int i)
{
	return i < d->n_refusals ? d->refusal[i] : NULL;
}

const char *diff_warning(const struct diff *d, int i)
{
	return i < d->n_warnings ? d->warning[i] : NULL;
}

bool diff_nothing(const struct diff_summary *s)
{
	return s->compared == 0 || (s->timed > 0 && s->times_compared == 0);
}

bool diff_incomplete(const struct diff_summary *s)
{
	return diff_nothing(s) || s->unfinished[DIFF_BASE] || s->unfinished[DIFF_HEAD];
}

int diff_exit(const struct diff *d, unsigned fail_on)
{
	for (int k = 0; k < DIFF_N; k++)
		if (fail_on & 1u << k && d->sum.rows[k] > 0)
			return EXIT_FAIL;
	return diff_incomplete(&d->sum) ? EXIT_INCOMPLETE : EXIT_PASS;
}
