/* Text of others, made plain: what a terminal acts on is shown as what it is, and nothing else is changed. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../runner/arena.h"
#include "../runner/err.h"
#include "../runner/plain.h"
#include "unit.h"

static const struct {
	const char *text, *plain;
} texts[] = {
	{"", ""},
	{"split=4, \xc2\xb5s \xe2\x89\xa4 2 \xf0\x9f\x98\x80", "split=4, \xc2\xb5s \xe2\x89\xa4 2 \xf0\x9f\x98\x80"},
	{"\x1b[2J\x07", "\\x1b[2J\\x07"},
	{"a\x7f", "a\\x7f"},
	{"\xc2\x9b"
	 "31m",
	 "\\xc2\\x9b31m"}, /* C1: the same as ESC [ */
	{"\xff\xc3", "\\xff\\xc3"},
	{"\xc0\x80 \xc1\xbf", "\\xc0\\x80 \\xc1\\xbf"}, /* too long a form */
	{"\x9b"
	 "31m",
	 "\\x9b31m"},
};

START_TEST(one_text)
{
	struct arena *a = arena_create();
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		char buf[64];
		ck_assert_str_eq(plain_text(a, texts[i].text), texts[i].plain);
		strcpy(buf, texts[i].text);
		plain_buffer(buf, sizeof buf);
		ck_assert_str_eq(buf, texts[i].plain);
		/* Twice is once. */
		ck_assert_ptr_eq(plain_text(a, texts[i].plain), texts[i].plain);
	}
	ck_assert_ptr_null(plain_text(a, NULL));
	ck_assert_str_eq(plain_text(a, "a\nb\t"), "a\\x0ab\\x09");
	arena_destroy(a);
}
END_TEST

START_TEST(cut_at_a_character)
{
	char buf[8] = "abcd\x1b", lines[] = "a\nb\tc";
	plain_buffer(buf, sizeof buf);
	ck_assert_str_eq(buf, "abcd");
	plain_buffer(lines, sizeof lines);
	ck_assert_str_eq(lines, "a\nb\tc");
	struct err e;
	err_set(&e, "kernel %s", "\x1b[31m");
	ck_assert_str_eq(e.text, "kernel \\x1b[31m");
	err_prefix(&e, "%s", "a\x07");
	ck_assert_str_eq(e.text, "a\\x07: kernel \\x1b[31m");
}
END_TEST

START_TEST(records)
{
	static const char line[] =
		"{\"id\":\"s/\\u001b[2J\",\"point\":{\"k\\b\":1},\"list\":[\"\x7f\",2,\"a\\nb\"],\"\xc2\x85\":null}";
	json_t *j = plain_record(line, strlen(line), NULL);
	ck_assert(j);
	char *text = json_dumps(j, JSON_COMPACT);
	ck_assert_str_eq(text, "{\"id\":\"s/"
			       "\\\\x1b[2J\",\"point\":{\"k\\\\x08\":1},\"list\":[\"\\\\x7f\",2,\"a\\nb\"],"
			       "\"\\\\xc2\\\\x85\":null}");
	free(text);
	json_decref(j);
	json_error_t why;
	ck_assert(!plain_record("{\"a\":1,\"a\":2}", 13, &why));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("plain");
	TCase *t = tcase_create("plain");
	tcase_add_test(t, one_text);
	tcase_add_test(t, cut_at_a_character);
	tcase_add_test(t, records);
	suite_add_tcase(s, t);
	return unit_run(s);
}
