/* A proposal and its second look: what is taken, what stays, what a fresh run withdraws. */
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

START_TEST(test_faster_is_taken)
{
	struct made m;
	two_depths(&m, 0.9, 0.95, "aa");
	struct suggest *s = propose(&m);
	ck_assert_int_eq(s->row[0].outcome, SUGGEST_CHANGED);
	ck_assert_str_eq(s->row[0].arm, "split=4");
	ck_assert_int_eq(s->row[0].evidence.faster, 2);
	/* The pooled ratio is the geometric mean of the cells'. */
	ck_assert_double_eq_tol(exp(s->row[0].evidence.estimate), sqrt(0.9 * 0.95), 2e-3);
	ck_assert_double_eq_tol(s->row[0].evidence.floor, 2 * sqrt(2) * 0.002, 1e-9);
	suggest_destroy(s);
	end(&m);
}
END_TEST

START_TEST(test_noise_is_not_taken)
{
	struct made m;
	two_depths(&m, 0.997, 0.997, "aa"); /* within 2 sqrt(2) tau = 0.57 % */
	expect(&m, SUGGEST_KEPT, "shipped", NULL);
	/* The same gain in a cell where shipped differs from itself by 6 %. */
	two_depths(&m, 0.95, 0.95, "aa");
	for (int i = 0; i < 2; i++)
		json_object_set_new(json_object_get(json_object_get(m.cell[i], "timing"), "null"), "estimate",
				    json_real(-0.06));
	expect(&m, SUGGEST_KEPT, "shipped", NULL);
}
END_TEST

START_TEST(test_slower_somewhere_is_not_taken)
{
	struct made m;
	two_depths(&m, 0.8, 1.05, "aa");
	expect(&m, SUGGEST_KEPT, "shipped", "faster in 1 and slower in 1 of 2");
}
END_TEST

START_TEST(test_other_bits_are_not_taken)
{
	struct made m;
	two_depths(&m, 0.8, 0.8, "bb");
	expect(&m, SUGGEST_KEPT, "shipped", "bits would change");
	/* Without digests the identity check speaks. */
	two_depths(&m, 0.8, 0.8, "");
	expect(&m, SUGGEST_CHANGED, "split=4", NULL);
	two_depths(&m, 0.8, 0.8, "");
	json_object_set_new(json_array_get(json_object_get(m.cell[1], "checks"), 1), "check", json_string("memory"));
	expect(&m, SUGGEST_KEPT, "shipped", "bits would change");
}
END_TEST

START_TEST(test_wrong_is_not_taken)
{
	struct made m;
	two_depths(&m, 0.8, 0.8, "aa");
	json_object_set_new(json_array_get(json_object_get(m.cell[1], "checks"), 1), "status", json_string("wrong"));
	expect(&m, SUGGEST_KEPT, "shipped", "split=4 is wrong");
}
END_TEST

START_TEST(test_headroom_is_not_taken)
{
	struct made m;
	two_depths(&m, 0.8, 0.8, "aa");
	json_object_set_new(json_array_get(json_object_get(m.cell[0], "arms"), 1), "role", json_string("headroom"));
	expect(&m, SUGGEST_KEPT, "shipped", NULL);
}
END_TEST

START_TEST(test_wrong_incumbent_is_replaced)
{
	struct made m;
	two_depths(&m, 0.8, 0.8, "aa");
	for (int i = 0; i < 2; i++)
		json_object_set_new(m.cell[i], "selected", json_string("split=4"));
	json_object_set_new(json_array_get(json_object_get(m.cell[1], "checks"), 1), "status", json_string("mismatch"));
	expect(&m, SUGGEST_FIXED, "shipped", "split=4 is mismatch");
}
END_TEST

START_TEST(test_incumbent_gives_way_to_shipped)
{
	struct made m;
	two_depths(&m, 1.2, 1.2, "aa");
	for (int i = 0; i < 2; i++)
		json_object_set_new(m.cell[i], "selected", json_string("split=4"));
	expect(&m, SUGGEST_CHANGED, "shipped", NULL);
}
END_TEST

/* ---- what was served ------------------------------------------------------------------------------------------------ */

static const char served_settings[] =
	"{\"tables\": {\"other\": [], \"serving\": [{\"match\": {\"device\": \"x\"}, \"table\": {\"key\": [], "
	"\"lookup\": \"exact\", \"rows\": []}},"
	" {\"match\": {}, \"table\": {\"key\": [\"t_q\"], \"lookup\": \"%s\", \"rows\": ["
	" {\"kernel\": \"o\", \"t_q\": 1, \"arm\": \"split=4\"},"
	" {\"kernel\": \"k\", \"t_q\": 1, \"arm\": \"split=4\"}, {\"kernel\": \"k\", \"t_q\": 4, \"arm\": \"split=2\"},"
	" {\"kernel\": \"k\", \"t_q\": 64, \"arm\": \"shipped\"}, {\"kernel\": \"l*\", \"t_q\": 2, \"arm\": "
	"\"split=2\"},"
	" {\"kernel\": \"l*\", \"arm\": \"split=4\"}, {\"t_q\": 8, \"arm\": \"split=4\"}, {\"arm\": \"shipped\"}]}}]}}";

/* A run at t_q 2, 8 and 16 of kernels k, l and m that was served by that table: every arm as fast as the others. */
static void served_run(struct made *m, const char *lookup)
{
	static const char *const kernel[] = {"k", "l", "m"};
	static const int t_q[] = {2, 8, 16};
	char settings[1200];
	begin(m);
	snprintf(settings, sizeof settings, served_settings, lookup);
	json_t *serving = json_array();
	for (int k = 0; k < 3; k++)
		json_array_append_new(serving,
				      json_pack("{s:s, s:s, s:[s], s:s, s:i, s:[]}", "kernel", kernel[k], "table",
						"t.yaml", "keys", "t_q", "set", "serving", "choice", 1, "rows"));
	json_object_set_new(m->v.header, "settings", json_loads(settings, 0, NULL));
	json_object_set_new(m->v.header, "serving", serving);
	struct suggest look = {.arena = arena_create(), .header = m->v.header};
	suggest_find_served(&look);
	ck_assert_ptr_nonnull(look.served);
	ck_assert_int_eq(look.served->n_rows, 8);
	for (int k = 0; k < 3; k++)
		for (int t = 0; t < 3; t++) {
			struct named_number at = {.name = "t_q", .value = {.d = t_q[t]}};
			struct err err;
			const struct table_row *row = table_lookup(look.served, kernel[k], &at, 1, &err);
			ck_assert_msg(row != NULL, "%s", row ? "" : err.text);
			json_t *c = add_cell(m, kernel[k], t_q[t], 0, row->arm);
			add_arm(c, "shipped", "shipped", 10000, "aa", 0);
			add_arm(c, "split=2", "candidate", 10000, "aa", 5);
			add_arm(c, "split=4", "candidate", 10000, "aa", 7);
			add_arm(c, "null", "null", 10000, "aa", 9);
		}
	arena_destroy(look.arena);
}

static const char *arm_at(const struct table *t, const char *kernel, int t_q)
{
	struct named_number at = {.name = "t_q", .value = {.d = t_q}};
	const struct table_row *row = table_lookup(t, kernel, &at, 1, NULL);
	return row ? row->arm : "none";
}

static struct suggest *propose_with(struct made *m, const char *const *key, int n)
{
	struct err err;
	struct suggest *s = suggest_create(&m->v, key, n, &err);
	ck_assert_msg(s != NULL, "%s", s ? "" : err.text);
	suggest_propose(s);
	return s;
}

/* Where nothing is faster, the proposal serves what was served, at every point: measured, between and beyond. */
START_TEST(test_round_trip)
{
	static const char *const lookups[] = {"exact", "floor", "ceil", "nearest"};
	struct made m;
	const char *key[SUGGEST_MAX_KEYS];
	int n_keys;
	struct err err;
	served_run(&m, lookups[_i]);
	ck_assert(suggest_default_keys(m.v.header, key, &n_keys, &err));
	ck_assert_int_eq(n_keys, 1);
	ck_assert_str_eq(key[0], "t_q");
	struct suggest *s = propose_with(&m, key, n_keys);
	ck_assert_uint_eq(suggest_changes(s), 0);
	for (size_t i = 0; i < s->n_lost; i++)
		ck_abort_msg("%s", s->lost[i]);
	ck_assert_uint_eq(suggest_losses(s), 0);
	ck_assert_int_eq(s->table->lookup, s->served->lookup);
	for (int t = 1; t < 100; t++)
		for (const char *k = "klmno"; *k; k++) { /* n, o: kernels that the run knows nothing of */
			const char name[] = {*k, 0};
			ck_assert_msg(strcmp(arm_at(s->served, name, t), arm_at(s->table, name, t)) == 0,
				      "%s %s t_q=%d: %s was served, now %s", lookups[_i], name, t,
				      arm_at(s->served, name, t), arm_at(s->table, name, t));
		}
	/* What is written has a row of the one that the served table knows by name. */
	int written = 0;
	for (size_t i = 0; i < s->n_entries; i++)
		written += s->entry[i].row.kernel && strcmp(s->entry[i].row.kernel, "o") == 0;
	ck_assert_int_eq(written, 1);
	suggest_destroy(s);
	end(&m);
}
END_TEST

/* A key that does not tell the served arms apart loses some of them, and says which. */
START_TEST(test_what_is_lost_is_told)
{
	struct made m;
	served_run(&m, "floor");
	struct suggest *s = propose_with(&m, NULL, 0);
	ck_assert_uint_eq(s->n_rows, 3);
	ck_assert_str_eq(s->row[0].arm, "shipped");
	ck_assert_str_eq(s->row[0].lost, "split=4 is served in 1 of 3 cells, split=2 is served in 2 of 3 cells");
	ck_assert_ptr_null(s->row[1].lost); /* split=2 at all three */
	ck_assert_str_eq(s->row[1].arm, "split=2");
	ck_assert_str_eq(s->row[2].lost, "split=4 is served in 2 of 3 cells");
	ck_assert_uint_eq(s->n_lost, 1);
	ck_assert_ptr_nonnull(strstr(s->lost[0], "t.yaml has other keys"));
	ck_assert_uint_eq(suggest_losses(s), 3);
	suggest_destroy(s);
	/* A change at one point moves what a floor says above it: a point of the old table that was not measured. */
	const char *key[] = {"t_q"};
	for (int i = 0; i < 3; i++) /* k at 2, 8 and 16: shipped is faster */
		for (int a = 1; a < 3; a++)
			json_object_set_new(json_array_get(json_object_get(m.cell[i], "arms"), (size_t)a), "samples_ns",
					    samples(12000, a));
	s = propose_with(&m, key, 1);
	ck_assert_uint_eq(suggest_changes(s), 3);
	ck_assert_str_eq(arm_at(s->table, "k", 4), "split=2"); /* the row stays */
	ck_assert_str_eq(arm_at(s->table, "k", 64), "shipped");
	ck_assert_uint_eq(s->n_lost, 0);
	suggest_destroy(s);
	end(&m);
	/* A cell that no table judges says nothing of what is served. */
	two_depths(&m, 1.0, 1.0, "aa");
	json_object_set_new(m.cell[0], "selected", json_string("split=4"));
	json_object_set_new(m.cell[1], "selected", json_null());
	expect(&m, SUGGEST_KEPT, "split=4", NULL);
}
END_TEST

START_TEST(test_keys_of_two_tables)
{
	struct made m;
	const char *key[SUGGEST_MAX_KEYS];
	int n;
	struct err err;
	served_run(&m, "exact");
	json_object_set_new(json_array_get(json_object_get(m.v.header, "serving"), 2), "keys", json_pack("[s]", "kv"));
	ck_assert(!suggest_default_keys(m.v.header, key, &n, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "other keys: t.yaml for k, t.yaml for m; say which with --key"));
	end(&m);
}
END_TEST

static void confirm(double fresh_2048, double fresh_32768, const char *bits, int wrong, int drop,
		    enum suggest_outcome want, const char *note)
{
	struct made m, fresh;
	two_depths(&m, 0.9, 0.9, "aa");
	two_depths(&fresh, fresh_2048, fresh_32768, bits);
	if (wrong)
		json_object_set_new(json_array_get(json_object_get(fresh.cell[0], "checks"), 1), "status",
				    json_string("wrong"));
	struct suggest *s = propose(&m);
	ck_assert_uint_eq(suggest_changes(s), 1);
	fresh.v.n_cells -= (size_t)drop;
	suggest_confirm(s, &fresh.v);
	fresh.v.n_cells += (size_t)drop;
	ck_assert_int_eq(s->row[0].outcome, want);
	ck_assert_str_eq(s->row[0].arm, want == SUGGEST_CHANGED ? "split=4" : "shipped");
	ck_assert_uint_eq(suggest_changes(s), want == SUGGEST_CHANGED);
	if (note)
		ck_assert_msg(s->row[0].note && strstr(s->row[0].note, note), "%s",
			      s->row[0].note ? s->row[0].note : "no note");
	suggest_destroy(s);
	end(&m);
	end(&fresh);
}

START_TEST(test_second_look)
{
	confirm(0.91, 0.92, "aa", 0, 0, SUGGEST_CHANGED, NULL);
	confirm(1.0, 1.0, "aa", 0, 0, SUGGEST_WITHDRAWN, "not borne out");
	confirm(0.9, 1.04, "aa", 0, 0, SUGGEST_WITHDRAWN, "not borne out");
	confirm(0.9, 0.9, "cc", 0, 0, SUGGEST_WITHDRAWN, NULL);
	confirm(0.9, 0.9, "aa", 1, 0, SUGGEST_WITHDRAWN, "measured anew: split=4 is wrong");
	confirm(0.9, 0.9, "aa", 0, 1, SUGGEST_WITHDRAWN, NULL);
	confirm(0.9, 0.9, "aa", 0, 2, SUGGEST_WITHDRAWN, "did not time");
}
END_TEST

/* A row that stays is not looked at again. One that was put right stays so, faster or not, unless what is served instead is wrong too. */
START_TEST(test_second_look_at_what_is_not_faster)
{
	static const struct {
		bool fixed;
		const char *fresh; /* what a fresh run says of shipped */
		enum suggest_outcome want;
	} of[] = {{false, "wrong", SUGGEST_KEPT}, {true, "pass", SUGGEST_FIXED}, {true, "wrong", SUGGEST_WITHDRAWN}};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct made m, fresh;
		two_depths(&m, 1.0, 1.0, "aa");
		two_depths(&fresh, 0.8, 0.8, "aa");
		json_object_set_new(json_array_get(json_object_get(fresh.cell[0], "checks"), 0), "status",
				    json_string(of[i].fresh));
		for (int c = 0; c < 2 && of[i].fixed; c++) {
			json_object_set_new(m.cell[c], "selected", json_string("split=4"));
			json_object_set_new(json_array_get(json_object_get(m.cell[c], "checks"), 1), "status",
					    json_string("mismatch"));
		}
		struct suggest *s = propose(&m);
		ck_assert_int_eq(s->row[0].outcome, of[i].fixed ? SUGGEST_FIXED : SUGGEST_KEPT);
		suggest_confirm(s, &fresh.v);
		ck_assert_int_eq(s->row[0].outcome, of[i].want);
		ck_assert_int_eq(s->row[0].measured_anew, of[i].fixed);
		ck_assert_str_eq(s->row[0].arm, of[i].want == SUGGEST_WITHDRAWN ? "split=4" : "shipped");
		suggest_destroy(s);
		end(&m);
		end(&fresh);
	}
}
END_TEST

/* A further key is warranted by where an arm is fastest and where it is slowest. */
START_TEST(test_further_key)
{
	static const double ratio[] = {0.8, 0.9, 1.2, 1.1};
	struct made m;
	begin(&m);
	for (int i = 0; i < 4; i++) {
		json_t *c = add_cell(&m, "k", 1, 1 << i, "shipped");
		add_arm(c, "shipped", "shipped", 10000, "aa", 0);
		add_arm(c, "split=4", "candidate", 10000 * ratio[i], "aa", 0);
		add_arm(c, "null", "null", 10000, "aa", 9);
	}
	struct suggest *s = propose(&m);
	ck_assert_str_eq(s->row[0].arm, "shipped");
	ck_assert_uint_eq(s->n_advice, 1);
	ck_assert_str_eq(s->advice[0], "k t_q=1: against shipped, split=4 is 0.800 at kv=1 and 1.200 at kv=4: a key on "
				       "kv is warranted");
	suggest_destroy(s);
	end(&m);
}
END_TEST

START_TEST(test_rows_are_sorted_and_keys_checked)
{
	struct made m;
	static const char *const t_q[] = {"t_q"}, *const depth[] = {"depth"};
	static const int order[] = {4, 1, 2};
	static const double sorted[] = {1, 2, 4};
	struct err err;
	begin(&m);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 2; k++) {
			json_t *c = add_cell(&m, k ? "b" : "a", order[i], 64, "shipped");
			add_arm(c, "shipped", "shipped", 10000, "aa", 0);
		}
	struct suggest *s = suggest_create(&m.v, t_q, 1, &err);
	ck_assert_ptr_nonnull(s);
	ck_assert_uint_eq(s->n_rows, 6);
	for (size_t i = 0; i < 6; i++) {
		ck_assert_str_eq(s->row[i].kernel, i < 3 ? "a" : "b");
		ck_assert_double_eq(s->row[i].key[0], sorted[i % 3]);
	}
	suggest_destroy(s);
	ck_assert_ptr_null(suggest_create(&m.v, depth, 1, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "depth"));
	end(&m);
	begin(&m);
	ck_assert_ptr_null(suggest_create(&m.v, t_q, 1, &err));
	end(&m);
}
END_TEST

/* A table of n by n known values, of which most have no row of their own: one point is changed, and with it whatever lies above it in its column.
 * All of these are told or counted, and what is not looked at is said. */
static struct suggest *propose_over_grid(struct made *m, int n)
{
	json_t *rows = json_array(), *settings, *serving;
	for (int i = 1; i <= n; i++)
		json_array_append_new(rows, json_pack("{s:s, s:i, s:i, s:s}", "kernel", "k", "t_q", i, "kv", 1, "arm",
						      "split=2"));
	for (int i = 2; i <= n; i++)
		json_array_append_new(rows, json_pack("{s:s, s:i, s:i, s:s}", "kernel", "k", "t_q", 1, "kv", i, "arm",
						      "split=2"));
	begin(m);
	settings = json_pack("{s:{s:[{s:{}, s:{s:[s,s], s:s, s:o}}]}}", "tables", "serving", "match", "table", "key",
			     "t_q", "kv", "lookup", "floor", "rows", rows);
	serving = json_pack("[{s:s, s:s, s:[s,s], s:s, s:i, s:[]}]", "kernel", "k", "table", "t.yaml", "keys", "t_q",
			    "kv", "set", "serving", "choice", 0, "rows");
	json_object_set_new(m->v.header, "settings", settings);
	json_object_set_new(m->v.header, "serving", serving);
	json_t *c = add_cell(m, "k", 35, 35, "split=2");
	add_arm(c, "shipped", "shipped", 10000, "aa", 0);
	add_arm(c, "split=2", "candidate", 12000, "aa", 5);
	add_arm(c, "null", "null", 10000, "aa", 9);
	static const char *const key[] = {"t_q", "kv"};
	return propose_with(m, key, 2);
}

START_TEST(test_no_loss_is_silent)
{
	struct made m;
	struct suggest *s = propose_over_grid(&m, 70);
	ck_assert_uint_eq(suggest_changes(s), 1);
	ck_assert_uint_eq(s->n_lost, 21);
	ck_assert_str_eq(s->lost[0], "k t_q=35,kv=36: split=2 is served, this table says shipped; not measured");
	ck_assert_str_eq(s->lost[20], "k: 15 more such points"); /* 36 to 70 */
	suggest_destroy(s);
	end(&m);
	s = propose_over_grid(&m, 300);
	ck_assert_uint_eq(s->n_lost, 22);
	ck_assert_str_eq(s->lost[20], "k: 164 more such points"); /* to 219 */
	ck_assert_str_eq(s->lost[21],
			 "k: perhaps more: 65536 of 90000 combinations of the keys' known values were looked at");
	suggest_destroy(s);
	end(&m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("suggest");
	TCase *c = tcase_create("rows");
	tcase_add_test(c, test_faster_is_taken);
	tcase_add_test(c, test_noise_is_not_taken);
	tcase_add_test(c, test_slower_somewhere_is_not_taken);
	tcase_add_test(c, test_other_bits_are_not_taken);
	tcase_add_test(c, test_wrong_is_not_taken);
	tcase_add_test(c, test_headroom_is_not_taken);
	tcase_add_test(c, test_wrong_incumbent_is_replaced);
	tcase_add_test(c, test_incumbent_gives_way_to_shipped);
	tcase_add_test(c, test_second_look);
	tcase_add_test(c, test_second_look_at_what_is_not_faster);
	tcase_add_test(c, test_further_key);
	tcase_add_test(c, test_rows_are_sorted_and_keys_checked);
	tcase_add_loop_test(c, test_round_trip, 0, 4);
	tcase_add_test(c, test_what_is_lost_is_told);
	tcase_add_test(c, test_no_loss_is_silent);
	tcase_add_test(c, test_keys_of_two_tables);
	suite_add_tcase(s, c);
	return unit_run(s);
}
