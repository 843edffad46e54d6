#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "test_said.h"
#include "unit.h"

static struct mark at(const char *file, int line, int col, int len)
{
	return (struct mark){file, line, col, len};
}

START_TEST(caret_and_note)
{
	struct diags *d = diags_create();
	const char *src = "axes:\n  kvv: [1]\n";
	diag_source(d, "a.yaml", src, strlen(src));
	ck_assert(!diag_add(d, DIAG_ERROR, at("a.yaml", 2, 3, 3), "unknown key '%s'", "kvv"));
	diag_note(d, (struct mark){0}, "did you mean 'kv'?");
	ck_assert_str_eq(said_by(d), "a.yaml:2:3: error: unknown key 'kvv'\n"
				     "      kvv: [1]\n"
				     "      ^~~\n"
				     "a.yaml:2:3: note: did you mean 'kv'?\n");
	diags_destroy(d);
}
END_TEST

START_TEST(sorted_by_file_then_place)
{
	struct diags *d = diags_create();
	diag_source(d, "b", "x\ny\n", 4);
	diag_source(d, "a", "x\ny\n", 4);
	diag_add(d, DIAG_ERROR, at("a", 1, 1, 0), "third");
	diag_add(d, DIAG_ERROR, at("b", 2, 1, 0), "second");
	diag_add(d, DIAG_ERROR, at("b", 1, 1, 0), "first");
	const char *p = said_by(d);
	ck_assert_ptr_nonnull(strstr(p, "first"));
	ck_assert(strstr(p, "first") < strstr(p, "second"));
	ck_assert(strstr(p, "second") < strstr(p, "third"));
	diags_destroy(d);
}
END_TEST

START_TEST(same_message_counts_once)
{
	struct diags *d = diags_create();
	diag_add(d, DIAG_ERROR, at("a", 1, 1, 1), "twice");
	diag_note(d, (struct mark){0}, "a note");
	diag_add(d, DIAG_ERROR, at("a", 1, 1, 1), "other");
	diag_add(d, DIAG_ERROR, at("a", 1, 1, 1), "twice");
	diag_note(d, (struct mark){0}, "a note");
	ck_assert_int_eq(diags_errors(d), 2);
	ck_assert_str_eq(said_by(d), "a:1:1: error: twice\na:1:1: note: a note\na:1:1: error: other\n");
	diag_add(d, DIAG_WARNING, at("a", 1, 1, 1), "twice");
	ck_assert_int_eq(diags_errors(d), 2);
	ck_assert_int_eq(diags_warnings(d), 1);
	diags_destroy(d);
}
END_TEST

START_TEST(twenty_are_shown)
{
	struct diags *d = diags_create();
	for (int i = 1; i <= 22; i++)
		diag_add(d, DIAG_ERROR, at("a", i, 1, 0), "e");
	ck_assert_ptr_nonnull(strstr(said_by(d), "a:20:1: error: e\nand 2 more errors\n"));
	diags_destroy(d);
}
END_TEST

START_TEST(thousands_are_counted)
{
	struct diags *d = diags_create();
	for (int i = 1; i <= 200000; i++) {
		diag_add(d, DIAG_ERROR, at("a", i, 1, 0), "e");
		diag_note(d, (struct mark){0}, "n");
	}
	ck_assert_int_eq(diags_errors(d), 200000);
	ck_assert_ptr_nonnull(strstr(said_by(d), "a:20:1: error: e\na:20:1: note: n\nand 199980 more errors\n"));
	diags_destroy(d);
}
END_TEST

START_TEST(terminal_is_safe)
{
	struct diags *d = diags_create();
	const char *src = "k: \x1b[31m\xc2\x9b \xff\n";
	diag_source(d, "a", src, strlen(src));
	diag_add(d, DIAG_ERROR, at("a", 1, 4, 1), "word '%s'", "\x1b[31m\n\xc2\x9b\xff");
	const char *p = said_by(d);
	ck_assert_ptr_null(strchr(p, '\x1b'));
	ck_assert_ptr_null(strchr(p, '\xff'));
	ck_assert_ptr_null(strstr(p, "\xc2\x9b"));
	ck_assert_ptr_nonnull(strstr(p, "word '\\x1b[31m\\x0a\\xc2\\x9b\\xff'"));
	diags_destroy(d);
}
END_TEST

START_TEST(columns_count_characters)
{
	struct diags *d = diags_create();
	const char *src = "\xc3\xa4\xc3\xb6: bad\r\nnext\r\n";
	diag_source(d, "a", src, strlen(src));
	diag_add(d, DIAG_ERROR, at("a", 1, 5, 3), "here");
	ck_assert_str_eq(said_by(d), "a:1:5: error: here\n    \xc3\xa4\xc3\xb6: bad\n        ^~~\n");
	diags_destroy(d);
}
END_TEST

START_TEST(columns_of_wide_characters)
{
	/* Two columns each, one that joins the one before, and a tab, which is shown as a blank. */
	struct diags *d = diags_create();
	const char *src = "\xe6\x97\xa5\xe6\x9c\xac"
			  "e\xcc\x81:\tbad\n";
	diag_source(d, "a", src, strlen(src));
	diag_add(d, DIAG_ERROR, at("a", 1, 7, 3), "here");
	diag_add(d, DIAG_ERROR, at("a", 1, 1, 2), "there");
	ck_assert_str_eq(said_by(d), "a:1:1: error: there\n    \xe6\x97\xa5\xe6\x9c\xac"
				     "e\xcc\x81: bad\n    ^~~~\n"
				     "a:1:7: error: here\n    \xe6\x97\xa5\xe6\x9c\xac"
				     "e\xcc\x81: bad\n           ^~~\n");
	diags_destroy(d);
}
END_TEST

START_TEST(place_after_the_end_of_a_line)
{
	struct diags *d = diags_create();
	diag_source(d, "a", "ab\n", 3);
	diag_add(d, DIAG_ERROR, at("a", 1, 5, 0), "here");
	ck_assert_str_eq(said_by(d), "a:1:5: error: here\n    ab\n        ^\n");
	diags_destroy(d);
}
END_TEST

START_TEST(one_mistake_of_several)
{
	struct diags *d = diags_create();
	static const char *const whose[] = {"k.a", "k.b", "k.a", "k.c"};
	for (size_t i = 0; i < 4; i++) {
		diag_add_of(d, DIAG_ERROR, at("a", 1, 1, 1), " of", whose[i], "x = %d is too much", 9);
		diag_note(d, (struct mark){0}, "a note");
	}
	ck_assert_int_eq(diags_errors(d), 1);
	/* Another text, joint or place is another mistake. */
	diag_add_of(d, DIAG_ERROR, at("a", 1, 1, 1), " of", "k.a", "x = %d is too much", 8);
	diag_add_of(d, DIAG_ERROR, at("a", 1, 1, 1), " in", "k.a", "x = %d is too much", 9);
	diag_add_of(d, DIAG_ERROR, at("a", 1, 2, 1), " of", "k\n.a", "x = %d is too much", 9);
	diag_add(d, DIAG_ERROR, at("a", 1, 1, 1), "x = %d is too much", 9);
	ck_assert_str_eq(said_by(d), "a:1:1: error: x = 9 is too much of k.a, k.b and k.c\n"
				     "a:1:1: note: a note\n"
				     "a:1:1: error: x = 8 is too much of k.a\n"
				     "a:1:1: error: x = 9 is too much in k.a\n"
				     "a:1:1: error: x = 9 is too much\n"
				     "a:1:2: error: x = 9 is too much of k\\x0a.a\n");
	ck_assert_int_eq(diags_errors(d), 5);
	diags_destroy(d);
	d = diags_create();
	for (int i = 0; i < 9; i++) {
		const char name[] = {(char)('a' + i), 0};
		diag_add_of(d, DIAG_ERROR, at("a", 1, 1, 1), " of", name, "bad");
		if (i == 6)
			ck_assert_str_eq(said_by(d), "a:1:1: error: bad of a, b, c, d, e, f and g\n");
	}
	ck_assert_str_eq(said_by(d), "a:1:1: error: bad of a, b, c, d, e, f and 3 more\n");
	diags_destroy(d);
}
END_TEST

START_TEST(long_lines_are_cut)
{
	struct diags *d = diags_create();
	char src[1002];
	memset(src, 'x', 1000);
	src[499] = '!';
	src[1000] = '\n';
	src[1001] = '\0';
	diag_source(d, "a", src, 1001);
	diag_add(d, DIAG_ERROR, at("a", 1, 500, 1), "here");
	const char *line = strchr(said_by(d), '\n') + 1, *caret = strchr(line, '\n') + 1;
	ck_assert_uint_lt((size_t)(caret - line), 120);
	ck_assert_int_eq(strcspn(line, "!"), strcspn(caret, "^"));
	diags_destroy(d);
}
END_TEST

START_TEST(nearest)
{
	static const char *const words[] = {"geometry", "kernels", "kv", "max_rounds", "t_q"};
	ck_assert_str_eq(diag_nearest("geomtery", words, 5), "geometry");
	ck_assert_str_eq(diag_nearest("Kernels", words, 5), "kernels");
	ck_assert_str_eq(diag_nearest("kvv", words, 5), "kv");
	ck_assert_str_eq(diag_nearest("tq", words, 5), "t_q");
	ck_assert_ptr_null(diag_nearest("output", words, 5));
	ck_assert_ptr_null(diag_nearest("x", words, 5)); /* one letter is near nothing */
	ck_assert_ptr_null(diag_nearest("ma_rods", words, 5)); /* three edits of seven letters */
	ck_assert_ptr_null(diag_nearest("kv", NULL, 0));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("diag");
	TCase *t = tcase_create("diag");
	tcase_add_test(t, caret_and_note);
	tcase_add_test(t, sorted_by_file_then_place);
	tcase_add_test(t, same_message_counts_once);
	tcase_add_test(t, twenty_are_shown);
	tcase_add_test(t, thousands_are_counted);
	tcase_add_test(t, terminal_is_safe);
	tcase_add_test(t, columns_count_characters);
	tcase_add_test(t, columns_of_wide_characters);
	tcase_add_test(t, place_after_the_end_of_a_line);
	tcase_add_test(t, one_mistake_of_several);
	tcase_add_test(t, long_lines_are_cut);
	tcase_add_test(t, nearest);
	suite_add_tcase(s, t);
	return unit_run(s);
}
