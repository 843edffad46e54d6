/* Escapes, each against what its format says. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "gnuplot.h"
#include "markup.h"
#include "unit.h"

static void expect(void (*put)(FILE *, const char *), const char *text, const char *want)
{
	char *got = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&got, &n);
	put(f, text);
	fclose(f);
	ck_assert_str_eq(got, want);
	free(got);
}

START_TEST(test_xml)
{
	expect(markup_xml, NULL, "");
	expect(markup_xml, "a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;");
	expect(markup_xml, "tab\tline\n", "tab\tline\n");
	expect(markup_xml, "\x01\x1b\x7f\r", "\\x01\\x1b\x7f\\x0d");
	expect(markup_xml, "\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80");
	/* Not UTF-8: a lone byte, cut short, too long for its value, a surrogate, beyond U+10FFFF. */
	expect(markup_xml, "\xff \xe2\x82", "\\xff \\xe2\\x82");
	expect(markup_xml, "\xc0\xaf \xe0\x80\xaf", "\\xc0\\xaf \\xe0\\x80\\xaf");
	expect(markup_xml, "\xed\xa0\x80", "\\xed\\xa0\\x80");
	expect(markup_xml, "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	/* U+FFFE is UTF-8 and no character of XML; U+FFFD is one. */
	expect(markup_xml, "\xef\xbf\xbe\xef\xbf\xbd", "\\xef\\xbf\\xbe\xef\xbf\xbd");
}
END_TEST

START_TEST(test_md)
{
	expect(markup_md, "a|b_c*d`e", "a\\|b\\_c\\*d\\`e");
	expect(markup_md, "<b> & @team\nnext", "&lt;b> &amp; &#64;team next");
	expect(markup_md, "[x](y)~", "\\[x\\](y)\\~");
	expect(markup_md_code, "plain", "`plain`");
	expect(markup_md_code, "a|b", "`a\\|b`");
	expect(markup_md_code, "x``y`", "``` x``y` ```");
}
END_TEST

START_TEST(test_csv)
{
	expect(markup_csv, "plain text", "plain text");
	expect(markup_csv, "a,b", "\"a,b\"");
	expect(markup_csv, "say \"x\"\r\n", "\"say \"\"x\"\"\r\n\"");
	expect(markup_csv, NULL, "");
}
END_TEST

static void put_json(FILE *f, const char *s)
{
	json_t *j = json_string(s);
	markup_json(f, j);
	json_decref(j);
}

START_TEST(test_json_cannot_end_its_script)
{
	expect(put_json, "</script><!--&", "\"\\u003c/script\\u003e\\u003c!--\\u0026\"");
}
END_TEST

START_TEST(test_gnuplot_text_is_only_text)
{
	expect(gnuplot_text, "a\"b\\c`date`\n\x1b", "\"a\\\"b\\\\c'date'??\"");
	expect(gnuplot_text, NULL, "\"\"");
}
END_TEST

START_TEST(test_pictures_come_apart_again)
{
	struct gnuplot *g = gnuplot_create();
	struct err err;
	bool none;
	for (int i = 0; i < 3; i++) {
		FILE *f = gnuplot_add(g, 200 + i, 100);
		fprintf(f, "set label 1 at 1,1 ");
		gnuplot_text(f, "<title>&\"`");
		fprintf(f, "\nplot [0:2] [0:%d] x lc rgb '#010102'\n", i + 1);
	}
	ck_assert_uint_eq(gnuplot_count(g), 3);
	ck_assert_ptr_null(gnuplot_svg(g, 0));
	if (!gnuplot_draw(g, &none, &err)) {
		ck_assert_msg(none, "%s", err.text); /* no gnuplot here: nothing to look at */
	} else {
		for (size_t i = 0; i < 3; i++) {
			char box[40];
			const char *svg = gnuplot_svg(g, i);
			snprintf(box, sizeof box, "viewBox=\"0 0 %zu 100\"", 200 + i);
			ck_assert_ptr_nonnull(svg);
			ck_assert_ptr_eq(strstr(svg, "<svg"), svg);
			ck_assert_str_eq(svg + strlen(svg) - 6, "</svg>");
			ck_assert_ptr_nonnull(strstr(svg, box));
			ck_assert_ptr_nonnull(strstr(svg, "&lt;title>&amp;"));
			ck_assert_ptr_nonnull(strstr(svg, "var(--p2)"));
			ck_assert_ptr_null(strstr(svg, "black"));
			ck_assert_ptr_null(strstr(svg + 1, "<svg"));
		}
		ck_assert_ptr_null(gnuplot_svg(g, 3));
	}
	gnuplot_destroy(g);
}
END_TEST

START_TEST(test_a_script_that_fails_says_why)
{
	struct gnuplot *g = gnuplot_create();
	struct err err = {""};
	bool none;
	fprintf(gnuplot_add(g, 100, 100), "plot no_such_function(x)\n");
	ck_assert(!gnuplot_draw(g, &none, &err));
	ck_assert(none || strstr(err.text, "no_such_function"));
	gnuplot_destroy(g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("markup");
	TCase *c = tcase_create("escapes");
	tcase_add_test(c, test_xml);
	tcase_add_test(c, test_md);
	tcase_add_test(c, test_csv);
	tcase_add_test(c, test_json_cannot_end_its_script);
	tcase_add_test(c, test_gnuplot_text_is_only_text);
	tcase_add_test(c, test_pictures_come_apart_again);
	tcase_add_test(c, test_a_script_that_fails_says_why);
	suite_add_tcase(s, c);
	return unit_run(s);
}
