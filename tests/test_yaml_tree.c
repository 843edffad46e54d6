#include <check.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "test_said.h"
#include "unit.h"
#include "yaml_scalar.h"
#include "yaml_tree.h"

static struct arena *arena;
static struct diags *diags;

static void setup(void)
{
	arena = arena_create();
	diags = diags_create();
}

static void teardown(void)
{
	diags_destroy(diags);
	arena_destroy(arena);
}

static struct yaml_node *parse_n(const char *s, size_t n)
{
	return yaml_parse(arena, "f", s, n, diags);
}

static struct yaml_node *parse(const char *s)
{
	return parse_n(s, strlen(s));
}

static const char *messages(void)
{
	return said_by(diags);
}

/* The one message begins so. */
static void refused(const char *s, size_t n, const char *begins)
{
	ck_assert_ptr_null(parse_n(s, n));
	ck_assert_int_eq(diags_errors(diags), 1);
	const char *text = messages();
	ck_assert_msg(!strncmp(text, begins, strlen(begins)), "%s\nfor %s", text, begins);
	teardown();
	setup();
}
#define REFUSED(s, begins) refused(s, sizeof(s) - 1, begins)

START_TEST(tree_and_marks)
{
	struct yaml_node *t = parse("a: 1\nb:\n  - 'x y'\n  - {c: [2, \"3\"]}\n");
	ck_assert_ptr_nonnull(t);
	ck_assert_int_eq(t->kind, YAML_TREE_MAP);
	ck_assert_int_eq(t->n, 2);
	struct mark key;
	struct yaml_node *b = yaml_get(t, "b", &key);
	ck_assert_int_eq(key.line, 2);
	ck_assert_int_eq(key.col, 1);
	ck_assert_int_eq(b->kind, YAML_TREE_SEQ);
	ck_assert_str_eq(b->item[0]->text, "x y");
	ck_assert(b->item[0]->quoted);
	ck_assert_int_eq(b->item[0]->mark.line, 3);
	ck_assert_int_eq(b->item[0]->mark.col, 5);
	ck_assert_int_eq(b->item[0]->mark.len, 5);
	struct yaml_node *c = yaml_get(b->item[1], "c", NULL);
	ck_assert(!c->item[0]->quoted);
	ck_assert(c->item[1]->quoted);
	ck_assert_int_eq(c->item[1]->mark.col, 13);
	ck_assert_ptr_null(yaml_get(t, "z", NULL));
}
END_TEST

START_TEST(limits)
{
	REFUSED("", "f: error: the file is empty");
	REFUSED("# only\n", "f: error: the file is empty");
	REFUSED("---\n", "f: error: the file is empty");
	REFUSED("a: 1\n---\nb: 1\n", "f:2:1: error: a second document");
	REFUSED("a: 1\n...\n---\nb: 1\n", "f:3:1: error: a second document");
	REFUSED("a:\n\tb: 1\n", "f:2:1: error: tabs are not allowed as indentation");
	REFUSED("a:\n  b: 1\n\tc: 2\n", "f:3:1: error: tabs are not allowed as indentation");
	REFUSED("a: \xc3\x28\n", "f:1:4: error: byte 0xC3 is not UTF-8");
	REFUSED("\xc3\xa4: 1\n\xed\xa0\x80: 2\n", "f:2:1: error: byte 0xED is not UTF-8"); /* a surrogate */
	REFUSED("a: \xc0\xaf\n", "f:1:4: error: byte 0xC0 is not UTF-8"); /* overlong */
	REFUSED("a: x\0y\n", "f:1:5: error: NUL character");
	REFUSED("a: \"x\\0y\"\n", "f:1:4: error: a text that holds a NUL character");
	REFUSED("\xff\xfe"
		"a",
		"f:1:1: error: byte 0xFF is not UTF-8");
	REFUSED("x: *a\n", "f:1:4: error: alias '*a' has no anchor");
	REFUSED("x: &a [1, *a]\n", "f:1:11: error: alias '*a' stands inside its own anchor");
	REFUSED("x: &a {y: {z: *a}}\n", "f:1:15: error: alias '*a' stands inside its own anchor");
	REFUSED("x: &a 1\ny: &a 2\n", "f:2:4: error: anchor '&a' stands twice");
	REFUSED("a: [1, 2\nb: 3\n", "f:2:2: error: ',' or ']' is missing");
	REFUSED("[a]: 1\n", "f:1:1: error: a key is a plain word");
	REFUSED("a: !!str 1\n", "f:1:4: error: tags ('!!str') are not used");
}
END_TEST

START_TEST(byte_order_mark_and_line_ends)
{
	struct yaml_node *t = parse("\xef\xbb\xbf"
				    "a: 1\r\nb: 2\rc: 3\n");
	ck_assert_ptr_nonnull(t);
	ck_assert_int_eq(t->n, 3);
	ck_assert_int_eq(t->item[2]->mark.line, 3);
	ck_assert_str_eq(t->key[0]->text, "a");
}
END_TEST

START_TEST(columns_are_characters)
{
	struct yaml_node *t = parse("{\xc3\xa4: \xe4\xb8\xad, b: x}\n");
	ck_assert_int_eq(t->key[1]->mark.col, 8);
	ck_assert_int_eq(t->item[0]->mark.len, 1);
}
END_TEST

START_TEST(depth)
{
	char s[256] = "";
	for (int i = 0; i < 64; i++)
		strcat(s, "[");
	strcat(s, "1");
	for (int i = 0; i < 64; i++)
		strcat(s, "]");
	ck_assert_ptr_nonnull(parse(s));
	/* All of this would keep libyaml busy for the better part of an hour: whoever does not stop where it is too deep never ends. */
	enum { DEEP = 1000000 };
	char *deep = malloc(DEEP + 1);
	memset(deep, '[', DEEP);
	deep[DEEP] = '\0';
	refused(deep, DEEP, "f:1:65: error: nesting deeper than 64");
	free(deep);
}
END_TEST

START_TEST(expansion)
{
	char s[1024] = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
	for (int i = 1; i < 9; i++) {
		char line[128];
		snprintf(line, sizeof line, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1,
			 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
		strcat(s, line);
	}
	ck_assert_ptr_null(parse(s));
	ck_assert_ptr_nonnull(strstr(messages(), "more than 100000 values, aliases expanded"));
}
END_TEST

START_TEST(size)
{
	size_t n = (1 << 20) + 1;
	char *s = malloc(n);
	memset(s, '#', n);
	refused(s, n, "f: error: the file is larger than 1 MiB");
	s[0] = 'a';
	s[1] = ':';
	s[2] = ' ';
	ck_assert_ptr_nonnull(parse_n(s, n - 1)); /* just so large */
	free(s);
}
END_TEST

START_TEST(keys_twice_leave_the_rest)
{
	struct yaml_node *t = parse("a: 1\nb: 2\na: 3\n<<: {c: 1}\nd: 4\n");
	ck_assert_ptr_nonnull(t);
	ck_assert_int_eq(diags_errors(diags), 2);
	ck_assert_int_eq(t->n, 3);
	ck_assert_str_eq(yaml_get(t, "a", NULL)->text, "1");
	ck_assert_str_eq(yaml_get(t, "d", NULL)->text, "4");
	const char *m = messages();
	ck_assert_ptr_nonnull(strstr(m, "f:3:1: error: key 'a' stands twice"));
	ck_assert_ptr_nonnull(strstr(m, "f:1:1: note: first here"));
	ck_assert_ptr_nonnull(strstr(m, "f:4:1: error: merge keys ('<<') are not used"));
}
END_TEST

START_TEST(many_keys)
{
	char *s = malloc(1 << 20);
	size_t n = 0;
	for (int i = 0; i < 40000; i++)
		n += (size_t)sprintf(s + n, "k%d: 1\n", i);
	n += (size_t)sprintf(s + n, "k777: 2\n");
	struct yaml_node *t = parse_n(s, n);
	ck_assert_int_eq(t->n, 40000);
	ck_assert_int_eq(diags_errors(diags), 1);
	ck_assert_ptr_nonnull(strstr(messages(), "f:40001:1: error: key 'k777' stands twice"));
	free(s);
}
END_TEST

START_TEST(aliases_share)
{
	struct yaml_node *t = parse("a: &x [1, 2]\nb: *x\n");
	ck_assert_ptr_eq(t->item[0], t->item[1]);
}
END_TEST

/* ---- scalars ---- */

static const struct {
	const char *text;
	int64_t value;
} ints[] = {{"0", 0},
	    {"7", 7},
	    {"-3", -3},
	    {"-0", 0},
	    {"0x10", 16},
	    {"0xB200", 0xB200},
	    {"1e3", 1000},
	    {"1.5e3", 1500},
	    {"10e-1", 1},
	    {"1E2", 100},
	    {"-1e2", -100},
	    {"0e9", 0},
	    {"1.50e1", 15},
	    {"9223372036854775807", INT64_MAX},
	    {"-9223372036854775808", INT64_MIN},
	    {"9e18", 9000000000000000000}};

START_TEST(integers)
{
	int64_t v;
	struct err why;
	ck_assert_msg(scalar_int(ints[_i].text, &v, &why), "%s: %s", ints[_i].text, why.text);
	ck_assert_int_eq(v, ints[_i].value);
}
END_TEST

static const struct {
	const char *text, *says;
} bad_ints[] = {{"8k", "write 8192 or 8000"},
		{"2M", "write 2097152 or 2000000"},
		{"8Ki", "write 8192"},
		{"1.5k", "write 1536 or 1500"},
		{"010", "write 10, or 0x8"},
		{"08", "write 8"},
		{"-08", "not a whole number"},
		{"0o10", "write 8 or 0x8"},
		{"0b101", "write 5"},
		{"1_000", "write 1000"},
		{"1,000", "write 1000"},
		{"+5", "write 5"},
		{"12abc", "not a whole number"},
		{"", "is missing"},
		{"1e-1", "not a whole number"},
		{"2.0", "write 2"},
		{"2.5", "not a whole number"},
		{"9223372036854775808", "out of range"},
		{"-9223372036854775809", "out of range"},
		{"1e19", "out of range"},
		{"1e400", "out of range"},
		{"0x1FFFFFFFFFFFFFFFF", "out of range"},
		{"0xFFFFFFFFFFFFFFFF", "out of range"},
		{"0x", "not a whole number"},
		{"0X10", "not a whole number"},
		{"-0x10", "not a whole number"},
		{"1:30", "not a whole number"},
		{".inf", "not a whole number"},
		{"true", "not a whole number"},
		{"~", "not a whole number"},
		{" 5", "not a whole number"},
		{"5 ", "not a whole number"},
		{"1e", "not a whole number"},
		{"99999999999999999999999999", "out of range"}};

START_TEST(integers_refused)
{
	int64_t v = 42;
	struct err why;
	ck_assert_msg(!scalar_int(bad_ints[_i].text, &v, &why), "%s", bad_ints[_i].text);
	ck_assert_msg(strstr(why.text, bad_ints[_i].says) != NULL, "%s: %s", bad_ints[_i].text, why.text);
	ck_assert_int_eq(v, 42);
}
END_TEST

START_TEST(reals)
{
	double v;
	ck_assert(scalar_real("2e-5", &v, NULL));
	ck_assert(v == 2e-5);
	ck_assert(scalar_real("0.1", &v, NULL));
	ck_assert(v == 0.1);
	ck_assert(scalar_real("-12", &v, NULL));
	ck_assert(v == -12);
	static const char *const bad[] = {".5",    "5.",    ".nan", ".inf", "nan",  "inf",
					  "1e999", "0x1p3", "1,5",  "",     "01.5", "1.5f"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(!scalar_real(bad[i], &v, NULL), "%s", bad[i]);
}
END_TEST

START_TEST(booleans)
{
	bool v = false;
	struct err why;
	ck_assert(scalar_bool("true", &v, NULL) && v);
	ck_assert(scalar_bool("false", &v, NULL) && !v);
	ck_assert(!scalar_bool("yes", &v, &why));
	ck_assert_ptr_nonnull(strstr(why.text, "write true"));
	ck_assert(!scalar_bool("Off", &v, &why));
	ck_assert_ptr_nonnull(strstr(why.text, "write false"));
	ck_assert(!scalar_bool("True", &v, &why));
	ck_assert(!scalar_bool("", &v, &why));
}
END_TEST

START_TEST(sizes_times_percentages)
{
	int64_t v;
	double p;
	struct err why;
	ck_assert(scalar_size("512MiB", &v, NULL) && v == 512 << 20);
	ck_assert(scalar_size("1.5KiB", &v, NULL) && v == 1536);
	ck_assert(scalar_size("0", &v, NULL) && v == 0);
	ck_assert(!scalar_size("512", &v, &why) && strstr(why.text, "lacks a unit"));
	ck_assert(!scalar_size("512M", &v, &why) && strstr(why.text, "write 512MiB"));
	ck_assert(!scalar_size("512mib", &v, &why) && strstr(why.text, "write 512MiB"));
	ck_assert(!scalar_size("512 MiB", &v, &why) && strstr(why.text, "write 512MiB"));
	ck_assert(!scalar_size("1.3B", &v, &why) && strstr(why.text, "whole number of bytes"));
	ck_assert(!scalar_size("9999999999GiB", &v, &why) && strstr(why.text, "out of range"));
	ck_assert(!scalar_size("-1KiB", &v, &why) && strstr(why.text, "negative"));
	ck_assert(scalar_time("2us", &v, NULL) && v == 2000);
	ck_assert(scalar_time("0.5us", &v, NULL) && v == 500);
	ck_assert(scalar_time("150s", &v, NULL) && v == 150000000000);
	ck_assert(scalar_time("2min", &v, NULL) && v == 120000000000);
	ck_assert(!scalar_time("2", &v, &why) && strstr(why.text, "lacks a unit"));
	ck_assert(!scalar_time("2sec", &v, &why) && strstr(why.text, "write 2s"));
	ck_assert(!scalar_time("2\xc2\xb5s", &v, &why) && strstr(why.text, "write 2us"));
	ck_assert(scalar_percent("5%", &p, NULL) && p == 0.05);
	ck_assert(scalar_percent("+10pp", &p, NULL) && p == 0.1);
	ck_assert(scalar_percent("0%", &p, NULL) && p == 0);
	ck_assert(scalar_percent("-2.5%", &p, NULL) && p == -0.025);
	ck_assert(!scalar_percent("5", &p, &why) && strstr(why.text, "write 5%"));
	ck_assert(!scalar_percent("0.05", &p, &why) && strstr(why.text, "write 5%"));
	ck_assert(!scalar_percent("five", &p, &why));
}
END_TEST

START_TEST(quotes_make_no_number)
{
	struct yaml_node *t = parse("[\"8\", '5%', \"true\", {a: 1}]\n");
	int64_t v;
	double p;
	bool b;
	ck_assert(!yaml_int(t->item[0], 0, 10, &v, diags));
	ck_assert(yaml_percent(t->item[1], &p, diags));
	ck_assert(!yaml_bool(t->item[2], &b, diags));
	ck_assert(!yaml_int(t->item[3], 0, 10, &v, diags));
	ck_assert_int_eq(diags_errors(diags), 3);
	ck_assert_ptr_nonnull(
		strstr(messages(), "f:1:2: error: a whole number is wanted here, not text in quotes; write 8"));
}
END_TEST

START_TEST(another_locale)
{
	double v;
	if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
		return; /* this machine has none */
	ck_assert(scalar_real("0.5", &v, NULL));
	ck_assert(v == 0.5);
	setlocale(LC_NUMERIC, "C");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("yaml_tree");
	TCase *t = tcase_create("tree");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, tree_and_marks);
	tcase_add_test(t, limits);
	tcase_add_test(t, byte_order_mark_and_line_ends);
	tcase_add_test(t, columns_are_characters);
	tcase_add_test(t, depth);
	tcase_add_test(t, expansion);
	tcase_add_test(t, size);
	tcase_add_test(t, keys_twice_leave_the_rest);
	tcase_add_test(t, many_keys);
	tcase_add_test(t, aliases_share);
	tcase_add_loop_test(t, integers, 0, (int)(sizeof ints / sizeof *ints));
	tcase_add_loop_test(t, integers_refused, 0, (int)(sizeof bad_ints / sizeof *bad_ints));
	tcase_add_test(t, reals);
	tcase_add_test(t, booleans);
	tcase_add_test(t, sizes_times_percentages);
	tcase_add_test(t, quotes_make_no_number);
	tcase_add_test(t, another_locale);
	suite_add_tcase(s, t);
	return unit_run(s);
}
