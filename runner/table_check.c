/* table_check: a serving table held against a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "suggest.h"
#include "table_tool.h"

enum { MAX_NUMBERS = 64 };

/* What a row of the table met in the run. */
struct met {
	int cells, slower;
	const json_t *worst;
	double worst_lo, ratio, lo, hi;
	const char *problem; /* the first: not there, not timed, wrong */
	const json_t *where;
	const char *word;
};

static int numbers_of(const json_t *cell, struct named_number *out)
{
	static const char *const objects[] = {"point", "params"};
	int n = 0;
	for (int k = 0; k < 2; k++) {
		const char *name;
		json_t *x;
		json_object_foreach(json_object_get(cell, objects[k]), name, x)
		{
			if (n < MAX_NUMBERS)
				out[n++] = (struct named_number){.name = name, .value = {.d = json_number_value(x)}};
		}
	}
	return n;
}

static const char *shipped_of(const json_t *cell)
{
	const json_t *arm;
	size_t i;
	json_array_foreach(json_object_get(cell, "arms"), i,
			   arm) if (strcmp(text_get(arm, "role"), "shipped") == 0) return text_get(arm, "name");
	return "shipped";
}

static void problem(struct met *m, const char *word, const char *text, const json_t *cell)
{
	if (m->problem)
		return;
	m->word = word;
	m->problem = text;
	m->where = cell;
}

/* The run's name for an arm of the table: a suite may give an arm a name of its own. */
static const char *name_in(const json_t *header, const json_t *cell, const char *word)
{
	const json_t *arm;
	size_t i;
	if (strcmp(word, "shipped") == 0)
		return report_arm(cell, word) ? word : shipped_of(cell);
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		const char *name = text_get(arm, "name"), *of_table = suggest_table_name(header, cell, name);
		if (of_table && strcmp(of_table, word) == 0)
			return name;
	}
	return word;
}

static void meet(struct arena *a, struct met *m, const json_t *header, const json_t *cell, const char *word, double tau)
{
	const char *shipped = shipped_of(cell), *arm = name_in(header, cell, word);
	m->cells++;
	const json_t *x = report_arm(cell, arm);
	if (!x) {
		problem(m, "not there", arena_printf(a, "%s is no arm of this run", arm), cell);
		return;
	}
	if (strcmp(text_get(x, "role"), "headroom") == 0)
		problem(m, "headroom", arena_printf(a, "%s is headroom: timed, never served", arm), cell);
	const char *wrong = suggest_wrong(a, &cell, 1, arm);
	if (wrong)
		problem(m, "wrong", wrong, cell);
	double e, lo, hi, floor, se;
	if (strcmp(arm, shipped) == 0)
		return;
	if (!suggest_compare(cell, arm, shipped, tau, &e, &lo, &hi, &floor, &se)) {
		problem(m, "not timed", arena_printf(a, "%s was not timed against shipped", arm), cell);
		return;
	}
	if (lo > floor) {
		m->slower++;
		if (!m->worst || lo > m->worst_lo) {
			m->worst = cell;
			m->worst_lo = lo;
			m->ratio = exp(e);
			m->lo = exp(lo);
			m->hi = exp(hi);
		}
	}
}

/* "table.yaml:5  mla.absorb_q t_q=8: " */
static const char *row_text(struct arena *a, const struct table *t, const struct table_row *r)
{
	const char *text = arena_printf(a, "%s:%d  %s", r->mark.file ? r->mark.file : t->path, r->mark.line,
					r->kernel ? r->kernel : "*");
	for (int k = 0; k < t->n_keys && !r->is_default; k++)
		text = arena_printf(a, "%s%s%s=%.10g", text, k ? "," : " ", t->key[k], r->key[k].d);
	return arena_printf(a, "%s%s: ", text, r->is_default && t->n_keys ? " default" : "");
}

static void put_line(FILE *f, const char *word, const char *text)
{
	enum { LABEL = 11, WIDTH = 100 };
	fprintf(f, "%-*s", LABEL, word);
	text_wrap(f, LABEL, WIDTH, text);
	fputc('\n', f);
}

bool table_check_keys(const struct table *t, const struct verdict_file *run, struct err *err)
{
	for (int k = 0; k < t->n_keys; k++) {
		bool known = run->n_cells == 0;
		for (size_t i = 0; i < run->n_cells && !known; i++)
			known = json_object_get(json_object_get(run->cell[i], "point"), t->key[k]) ||
				json_object_get(json_object_get(run->cell[i], "params"), t->key[k]);
		if (!known)
			return err_set(err, "key '%s' is neither an axis nor a parameter of any cell of the run",
				       t->key[k]);
	}
	return true;
}

int table_check(const struct table *t, const struct verdict_file *run, FILE *f, int *checked)
{
	struct arena *a = arena_create();
	struct met *met = arena_array(a, (size_t)t->n_rows, sizeof *met);
	double tau = text_number(run->header, "tau");
	int lines = 0;
	*checked = 0;
	for (size_t i = 0; i < run->n_cells; i++) {
		struct named_number at[MAX_NUMBERS];
		const json_t *cell = run->cell[i];
		struct err err;
		if (strcmp(text_get(cell, "status"), "skip") == 0 ||
		    json_is_object(json_object_get(cell, "ratio_check")))
			continue;
		const struct table_row *row = table_lookup(t, text_get(cell, "kernel"), at, numbers_of(cell, at), &err);
		if (!row) {
			put_line(f, "no row", arena_printf(a, "%s: %s", text_short_id(cell), err.text));
			lines++;
			continue;
		}
		meet(a, &met[row - t->row], run->header, cell, row->arm, isfinite(tau) ? tau : 0.0025);
	}
	for (int i = 0; i < t->n_rows; i++) {
		const struct table_row *r = &t->row[i];
		const struct met *m = &met[i];
		*checked += m->cells > 0;
		if (m->problem) {
			const char *where = text_short_id(m->where);
			put_line(f, m->word,
				 arena_printf(a, strstr(m->problem, where) ? "%s%s" : "%s%s (%s)", row_text(a, t, r),
					      m->problem, where));
			lines++;
		}
		if (m->slower) {
			put_line(f, "slower",
				 arena_printf(a, "%s%s is %.3f [%.3f, %.3f] of shipped in %s; slower in %d of %d cells",
					      row_text(a, t, r), r->arm, m->ratio, m->lo, m->hi,
					      text_short_id(m->worst), m->slower, m->cells));
			lines++;
		}
		/* A default row is for what was not thought of; a keyed one is a claim. */
		if (m->cells == 0 && !r->is_default) {
			put_line(f, "unmeasured",
				 arena_printf(a, "%sno cell of the run looks %s up", row_text(a, t, r), r->arm));
			lines++;
		}
	}
	arena_destroy(a);
	return lines;
}
