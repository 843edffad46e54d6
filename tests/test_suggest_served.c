/* A proposal beside the table that was served: what it keeps of it, and that no loss is silent. */
#include "test_suggest_bed.h"

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
	Suite *s = suite_create("suggest_served");
	TCase *c = tcase_create("served");
	tcase_add_loop_test(c, test_round_trip, 0, 4);
	tcase_add_test(c, test_what_is_lost_is_told);
	tcase_add_test(c, test_keys_of_two_tables);
	tcase_add_test(c, test_no_loss_is_silent);
	suite_add_tcase(s, c);
	return unit_run(s);
}
