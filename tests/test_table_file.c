#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "table_file.h"
#include "test_said.h"
#include "unit.h"

static struct arena *arena;
static struct diags *diags;

static void setup(void)
{
	unit_enter();
	arena = arena_create();
	diags = diags_create();
}

static void teardown(void)
{
	diags_destroy(diags);
	arena_destroy(arena);
}

static const char *said(void)
{
	return said_by(diags);
}

/* A table from text, by way of a file with that ending. */
static const struct table *load(const char *ending, const char *text)
{
	char path[64];
	snprintf(path, sizeof path, "table%s", ending);
	FILE *f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert(fputs(text, f) >= 0 && fclose(f) == 0);
	return table_load(arena, path, (struct mark){0}, diags);
}

static const struct table *must_load(const char *ending, const char *text)
{
	const struct table *t = load(ending, text);
	ck_assert_msg(t, "%s", said());
	return t;
}

/* The arm at t_q and kv; "-" for none. */
static const char *at(const struct table *t, const char *kernel, double t_q, double kv)
{
	struct named_number v[] = {{.name = "t_q", .value = {.d = t_q}},
				   {.name = "kv", .value = {.d = kv}},
				   {.name = "other", .value = {.d = 0}}};
	const struct table_row *r = table_lookup(t, kernel, v, 3, NULL);
	return r ? r->arm : "-";
}

static const char yaml_short[] = "about: by width\n"
				 "key: [t_q]\n"
				 "lookup: exact\n"
				 "rows:\n"
				 "  mla.absorb_q: {1: split=4, 2: split=2, 0x8: split=8, default: shipped}\n"
				 "  mla.decompress_v: split=2\n"
				 "  mla.*:\n"
				 "    4: split=8\n"
				 "    1e3: split=16\n"
				 "default: shipped\n";

START_TEST(short_form)
{
	const struct table *t = must_load(".yaml", yaml_short);
	ck_assert_int_eq(t->n_keys, 1);
	ck_assert_int_eq(t->n_rows, 8);
	ck_assert_str_eq(at(t, "mla.absorb_q", 1, 0), "split=4");
	ck_assert_str_eq(at(t, "mla.absorb_q", 8, 0), "split=8");
	ck_assert_str_eq(at(t, "mla.absorb_q", 4, 0), "shipped"); /* its own default before the glob's row */
	ck_assert_str_eq(at(t, "mla.decompress_v", 4, 0), "split=2");
	ck_assert_str_eq(at(t, "mla.attn", 4, 0), "split=8");
	ck_assert_str_eq(at(t, "mla.attn", 1000, 0), "split=16");
	ck_assert_str_eq(at(t, "mla.attn", 1, 0), "shipped"); /* every kernel's default */
	ck_assert_str_eq(at(t, "mmq.q8_0", 4, 0), "shipped");
	struct named_number v = {.name = "t_q", .value = {.d = 2}};
	const struct table_row *r = table_lookup(t, "mla.absorb_q", &v, 1, NULL);
	ck_assert_int_eq(r->mark.line, 5);
	ck_assert_int_eq(r->mark.col, 30);
	ck_assert_ptr_nonnull(strstr(r->mark.file, "table."));
}
END_TEST

/* One table in each form that a file can have. */
static const struct {
	const char *ending, *text;
} forms[] = {
	{".yaml", "key: [t_q, kv]\nlookup: LOOKUP\nrows:\n  a.b:\n    - {t_q: 1, kv: 100, arm: x}\n    - {t_q: 1, kv: "
		  "1000, arm: y}\n"
		  "    - {kv: 100, t_q: 4, arm: z}\n    - {arm: d}\n"},
	{".yml", "key: [t_q, kv]\nlookup: LOOKUP\nrows:\n  - {kernel: a.b, t_q: 1, kv: 100, arm: x}\n  - {kernel: a.b, "
		 "t_q: 1, kv: 1000, arm: "
		 "y}\n  - {kernel: a.b, t_q: 4, kv: 100, arm: z}\n  - {kernel: a.b, arm: d}\n"},
	{".json",
	 "{\"key\": [\"t_q\", \"kv\"], \"lookup\": \"LOOKUP\", \"rows\": {\"a.b\": [{\"t_q\": 1, \"kv\": 100, \"arm\": "
	 "\"x\"},"
	 "{\"t_q\": 1, \"kv\": 1000, \"arm\": \"y\"},{\"t_q\": 4, \"kv\": 100, \"arm\": \"z\"},{\"arm\": \"d\"}]}}"},
	{".csv", "# lookup: LOOKUP\nkernel, t_q, kv, arm\n\na.b,1,100,x\n\"a.b\", 1 ,1000,\"y\"\r\n# a "
		 "comment\na.b,4,100,z\na.b,*,default,d"},
};

static const struct {
	const char *lookup;
	double t_q, kv;
	const char *arm;
} lookups[] = {
	{"exact", 1, 100, "x"},   {"exact", 1, 1000, "y"},  {"exact", 4, 100, "z"},   {"exact", 4, 1000, "d"},
	{"exact", 2, 100, "d"},   {"floor", 1, 100, "x"},   {"floor", 1, 999, "x"},   {"floor", 1, 5000, "y"},
	{"floor", 3, 1000, "y"},  {"floor", 4, 1000, "z"},  {"floor", 9, 9999, "z"},  {"floor", 0, 100, "d"},
	{"floor", 1, 99, "d"},    {"ceil", 1, 1, "x"},      {"ceil", 1, 101, "y"},    {"ceil", 2, 50, "z"},
	{"ceil", 2, 101, "d"},    {"ceil", 5, 1, "d"},      {"nearest", 2, 100, "x"}, {"nearest", 3, 900, "z"},
	{"nearest", 1, 551, "y"}, {"nearest", 1, 550, "x"}, {"nearest", 99, 0, "z"},  {"nearest", 2.5, 2000, "y"},
};

START_TEST(every_form)
{
	for (size_t l = 0; l < sizeof lookups / sizeof lookups[0]; l++) {
		const char *text = forms[_i].text, *word = strstr(text, "LOOKUP");
		const char *filled = arena_printf(arena, "%.*s%s%s", (int)(word - text), text, lookups[l].lookup,
						  word + strlen("LOOKUP"));
		const struct table *t = must_load(forms[_i].ending, filled);
		ck_assert_int_eq(t->n_rows, 4);
		ck_assert_msg(strcmp(at(t, "a.b", lookups[l].t_q, lookups[l].kv), lookups[l].arm) == 0,
			      "%s %s t_q=%g kv=%g: %s, not %s", forms[_i].ending, lookups[l].lookup, lookups[l].t_q,
			      lookups[l].kv, at(t, "a.b", lookups[l].t_q, lookups[l].kv), lookups[l].arm);
		ck_assert_str_eq(at(t, "a.c", 1, 100), "-");
	}
}
END_TEST

START_TEST(bare_list)
{
	const struct table *t =
		must_load(".json", "[{\"t_q\": 1, \"arm\": \"x\"}, {\"t_q\": 2, \"kernel\": \"a.*\", \"arm\": \"y\"}]");
	ck_assert_int_eq(t->n_keys, 1);
	ck_assert_str_eq(at(t, "a.b", 1, 0), "x");
	ck_assert_str_eq(at(t, "a.b", 2, 0), "y");
	ck_assert_str_eq(at(t, "b.b", 2, 0), "-");
	t = must_load(".csv", "t_q,arm\n1,x\n,y\n");
	ck_assert_str_eq(at(t, "any.thing", 1, 0), "x");
	ck_assert_str_eq(at(t, "any.thing", 7, 0), "y");
	t = must_load(".yaml", "default: shipped\n");
	ck_assert_str_eq(at(t, "any.thing", 7, 0), "shipped");
}
END_TEST

START_TEST(missing_row)
{
	struct err err = {""};
	struct named_number v = {.name = "t_q", .value = {.d = 3}};
	const struct table *t = must_load(".yaml", "key: t_q\nlookup: exact\nrows: {a.b: {1: x, 2: y}}\n");
	ck_assert_ptr_null(table_lookup(t, "a.b", &v, 1, &err));
	ck_assert_msg(strstr(err.text, "has no row for a.b at t_q=3 (lookup: exact); it has t_q=1 t_q=2; add the row, "
				       "or a default"),
		      "%s", err.text);
	ck_assert_ptr_null(table_lookup(t, "a.c", &v, 1, &err));
	ck_assert_msg(strstr(err.text, "it has none for this kernel"), "%s", err.text);
	v.name = "kv";
	ck_assert_ptr_null(table_lookup(t, "a.b", &v, 1, &err));
	ck_assert_msg(strstr(err.text, "is keyed on 't_q', which is neither an axis nor a parameter of a.b"), "%s",
		      err.text);
}
END_TEST

static const struct {
	const char *ending, *text, *message;
} bad[] = {
	{".yaml", "key: [t_q]\nrow: {}\n", ":2:1: error: unknown key 'row'"},
	{".yaml", "key: [t_q]\nrow: {}\n", "did you mean 'rows'?"},
	{".yaml", "key: [t_q]\nmla.absorb_q: {1: x}\n", "kernels stand under rows:"},
	{".yaml", "key: [t_q]\n", "the table has no row"},
	{".yaml", "key: [t_q, t_q]\nrows: {a.b: x}\n", ":1:12: error: key 't_q' stands twice"},
	{".yaml", "key: [t_q]\nlookup: flor\nrows: {a.b: {1: x}}\n", ":2:9: error: unknown lookup 'flor'"},
	{".yaml", "key: [t_q]\nlookup: flor\nrows: {a.b: {1: x}}\n", "did you mean 'floor'?"},
	{".yaml", "key: [t_q]\nrows:\n  a.b: {1: x, 0x1: y}\n", ":3:15: error: a second row for a.b at the same place"},
	{".yaml", "key: [t_q]\nrows:\n  a.b: {1: x, 0x1: y}\n", ":3:9: note: the first one"},
	{".yaml", "key: [t_q]\nrows: {a.b: {8k: x}}\n", ":2:14: error:"},
	{".yaml", "key: [t_q]\nrows: {a.b: {\"1\": x}}\n", "text in quotes; write 1"},
	{".yaml", "key: [t_q]\nrows: {a.b: {1: [x]}}\n", ":2:17: error:"},
	{".yaml", "key: [t_q, kv]\nrows: {a.b: {1: x}}\n", "this short form is for tables with one key, here are 2"},
	{".yaml", "key: [t_q, kv]\nrows: [{t_q: 1, arm: x}]\n", "the row lacks 'kv'"},
	{".yaml", "key: [t_q, kv]\nrows: [{t_q: 1, kv: default, arm: x}]\n", "the row lacks 'kv'"},
	{".yaml", "key: [t_q]\nrows: [{tq: 1, arm: x}]\n", "'tq' is no key of this table"},
	{".yaml", "key: [t_q]\nrows: [{tq: 1, arm: x}]\n", "did you mean 't_q'?"},
	{".yaml", "key: [t_q]\nrows: [{t_q: 1}]\n", "the row lacks its arm"},
	{".yaml", "key: [t_q]\nrows: [x]\n", "a row is a map such as"},
	{".yaml", "key: [t_q]\nrows: x\n", "rows is a map by kernel, or a list of rows"},
	{".yaml", "key: {t_q: 1}\nrows: {a.b: x}\n", "key is a list of axes such as [t_q]"},
	{".yaml", "shipped\n", "a table is a map with key and rows"},
	{".yaml", "key: [a, b, c, d, e, f, g, h, i]\nrows: {a.b: x}\n", "more than 8 keys"},
	{".yaml", "default: x\nrows: {'*': y}\n", "a second row for every kernel"},
	{".txt", "t_q,arm\n1,x\n", "a table file ends in .yaml, .csv or .json"},
	{".csv", "t_q\n1\n", "lacks the column 'arm'"},
	{".csv", "arm,arm\nx,y\n", "column 'arm' stands twice"},
	{".csv", "t_q,,arm\n1,2,x\n", "a column without a name"},
	{".csv", "t_q,arm\n1,x,y\n", ":2:5: error: 3 values in a table of 2 columns"},
	{".csv", "t_q,arm\n1\n", "1 values in a table of 2 columns"},
	{".csv", "t_q,arm\n010,x\n", ":2:1: error:"},
	{".csv", "t_q,arm\n1,\n", ":2:3: error: the row lacks its arm"},
	{".csv", "t_q,arm\n1,\"x\n", ":2:3: error: a quote that does not end at a comma"},
	{".csv", "t_q,arm\n1,\"x\"y\n", "a quote that does not end at a comma"},
	{".csv", "t_q,kv,arm\n1,*,x\n", "the row lacks some of its keys"},
	{".csv", "# lookup: next\nt_q,arm\n1,x\n", ":1:11: error: unknown lookup 'next'"},
	{".csv", "t_q,arm\n1,x\n1,y\n", "a second row"},
	{".csv", "", "the table has no row"},
};

START_TEST(errors)
{
	const struct table *t = load(bad[_i].ending, bad[_i].text);
	ck_assert_msg(!t, "accepted: %s", bad[_i].text);
	ck_assert_int_gt(diags_errors(diags), 0);
	ck_assert_msg(strstr(said(), bad[_i].message), "wanted '%s' in:\n%s", bad[_i].message, said());
}
END_TEST

START_TEST(absent_file)
{
	struct mark from = {.file = "suite.yaml", .line = 9, .col = 3, .len = 4};
	ck_assert_ptr_null(table_load(arena, "no/such/table.yaml", from, diags));
	ck_assert_msg(strstr(said(), "suite.yaml:9:3: error:") && strstr(said(), "no/such/table.yaml"), "%s", said());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("table_file");
	TCase *tc = tcase_create("table_file");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, short_form);
	tcase_add_loop_test(tc, every_form, 0, (int)(sizeof forms / sizeof forms[0]));
	tcase_add_test(tc, bare_list);
	tcase_add_test(tc, missing_row);
	tcase_add_loop_test(tc, errors, 0, (int)(sizeof bad / sizeof bad[0]));
	tcase_add_test(tc, absent_file);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
