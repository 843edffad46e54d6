/* test_suggest_bed: runs made cell by cell, for the tests of suggest. Each file that includes it has its own. */
#ifndef ASSAY_TEST_SUGGEST_BED_H
#define ASSAY_TEST_SUGGEST_BED_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "suggest.h"
#include "table_file.h"
#include "unit.h"

enum { ROUNDS = 16 };

struct made {
	struct verdict_file v;
	json_t *cell[32];
};

/* Samples around level ns, by +-0.3 %, alike for every arm of a round. */
static json_t *samples(double level, int salt)
{
	static const int wobble[ROUNDS] = {0, 3, -2, 1, -3, 2, 0, -1, 1, -2, 3, 0, 2, -3, -1, 1};
	json_t *a = json_array();
	for (int r = 0; r < ROUNDS; r++)
		json_array_append_new(a, json_integer(lround(level * (1 + 0.001 * wobble[(r + salt) % ROUNDS]))));
	return a;
}

static void add_arm(json_t *cell, const char *name, const char *role, double level, const char *bits, int salt)
{
	json_t *check = json_pack("{s:s, s:s, s:s, s:n}", "check", "identity", "arm", name, "status", "pass", "text");
	json_array_append_new(json_object_get(cell, "checks"), check);
	json_array_append_new(json_object_get(cell, "arms"),
			      json_pack("{s:s, s:s, s:n, s:s, s:{s:i}, s:o}", "name", name, "role", role, "unsupported",
					"out_sha256", bits, "summary", "n", ROUNDS, "samples_ns",
					samples(level, salt)));
}

static json_t *add_cell(struct made *m, const char *kernel, int t_q, int kv, const char *selected)
{
	char id[80];
	snprintf(id, sizeof id, "s/c/%s/g/d/t_q=%d,kv=%d", kernel, t_q, kv);
	json_t *c = json_pack("{s:s, s:s, s:s, s:s, s:{s:i, s:i}, s:s, s:[], s:[], s:{s:{s:f}}}", "id", id, "kernel",
			      kernel, "case", "c", "status", "pass", "point", "t_q", t_q, "kv", kv, "selected",
			      selected, "checks", "arms", "timing", "null", "estimate", 0.0);
	m->cell[m->v.n_cells++] = c;
	m->v.cell = m->cell;
	return c;
}

static void begin(struct made *m)
{
	*m = (struct made){.v.header = json_pack("{s:s, s:f}", "suite", "s", "tau", 0.002)};
}

static void end(struct made *m)
{
	for (size_t i = 0; i < m->v.n_cells; i++)
		json_decref(m->cell[i]);
	json_decref(m->v.header);
}

/* One kernel at t_q 1 and two depths: shipped 10 us, split=4 that much of it. */
static void two_depths(struct made *m, double at_2048, double at_32768, const char *bits)
{
	begin(m);
	for (int i = 0; i < 2; i++) {
		json_t *c = add_cell(m, "k", 1, i ? 32768 : 2048, "shipped");
		add_arm(c, "shipped", "shipped", 10000, "aa", 0);
		add_arm(c, "split=4", "candidate", 10000 * (i ? at_32768 : at_2048), bits, 5);
		add_arm(c, "null", "null", 10000, "aa", 9);
	}
}

static struct suggest *propose(struct made *m)
{
	static const char *const key[] = {"t_q"};
	struct err err;
	struct suggest *s = suggest_create(&m->v, key, 1, &err);
	ck_assert_msg(s != NULL, "%s", s ? "" : err.text);
	ck_assert_uint_eq(s->n_rows, 1);
	return s;
}

static void expect(struct made *m, enum suggest_outcome outcome, const char *arm, const char *note)
{
	struct suggest *s = propose(m);
	ck_assert_int_eq(s->row[0].outcome, outcome);
	ck_assert_str_eq(s->row[0].arm, arm);
	if (note)
		ck_assert_msg(s->row[0].note && strstr(s->row[0].note, note), "%s",
			      s->row[0].note ? s->row[0].note : "no note");
	suggest_destroy(s);
	end(m);
}

#endif
