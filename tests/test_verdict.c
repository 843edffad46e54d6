/* The verdict file: what is written reads back, what is broken is named, what was there is kept. */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "verdict.h"

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static char *get_file(const char *path)
{
	static char buf[1 << 16];
	FILE *f = fopen(path, "rb");
	ck_assert_ptr_nonnull(f);
	buf[fread(buf, 1, sizeof buf - 1, f)] = 0;
	fclose(f);
	return buf;
}

static json_t *cell(const char *id, const char *status)
{
	return json_pack("{s:s, s:s, s:s}", "kind", "cell", "id", id, "status", status);
}

#define HEADER "{\"kind\":\"header\",\"format\":1}\n"
#define CELL(id) "{\"kind\":\"cell\",\"id\":\"" id "\",\"status\":\"pass\"}\n"
#define RESUME "{\"kind\":\"resume\"}\n"
#define FOOTER "{\"kind\":\"footer\",\"exit\":0}\n"

/* ---- numbers and strings ------------------------------------------------------------------------------------------- */

static void line_is(json_t *j, const char *want)
{
	char *got = verdict_line(j);
	ck_assert_str_eq(got, want);
	free(got);
	json_decref(j);
}

START_TEST(test_numbers)
{
	/* By Python's repr, which is the shortest form. */
	static const struct {
		double x;
		const char *want;
	} cases[] = {
		{0.1, "[0.1]"},
		{0.1 + 0.2, "[0.30000000000000004]"},
		{1.0 / 3, "[0.3333333333333333]"},
		{1.05, "[1.05]"},
		{13.0, "[13.0]"},
		{-0.0, "[-0.0]"},
		{1e300, "[1e+300]"},
		{5e-324, "[5e-324]"},
		{1.5e-310, "[1.5e-310]"},
		{DBL_MAX, "[1.7976931348623157e+308]"},
		{DBL_MIN, "[2.2250738585072014e-308]"},
		{123456.789, "[123456.789]"},
		{0.1 * 3, "[0.30000000000000004]"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		line_is(json_pack("[f]", cases[i].x), cases[i].want);
	line_is(json_pack("[I, I]", (json_int_t)INT64_MAX, (json_int_t)INT64_MIN),
		"[9223372036854775807,-9223372036854775808]");
}
END_TEST

START_TEST(test_numbers_read_back)
{
	uint64_t s = 42;
	for (int i = 0; i < 20000; i++) {
		s = s * 6364136223846793005u + 1442695040888963407u;
		double x;
		uint64_t bits = s;
		memcpy(&x, &bits, 8);
		if (!isfinite(x))
			continue;
		json_t *j = json_pack("[f]", x);
		char *text = verdict_line(j), *again;
		json_t *back = json_loads(text, 0, NULL);
		ck_assert_ptr_nonnull(back);
		ck_assert(json_is_real(json_array_get(back, 0)));
		double y = json_real_value(json_array_get(back, 0));
		ck_assert_int_eq(memcmp(&x, &y, 8), 0);
		again = verdict_line(back);
		ck_assert_str_eq(text, again);
		free(text);
		free(again);
		json_decref(j);
		json_decref(back);
	}
}
END_TEST

START_TEST(test_strings)
{
	line_is(json_pack("{s:s}", "a,b\"c\\", "tab\tnew\nbell\a\x7f"),
		"{\"a,b\\\"c\\\\\":\"tab\\tnew\\nbell\\u0007\\u007f\"}");
	line_is(json_pack("[s]", "\u00b5s \u2264 \U0001F600"), "[\"\u00b5s \u2264 \U0001F600\"]");
	/* What jansson would refuse must not make a broken line. */
	json_t *j = json_array();
	json_array_append_new(j, json_string_nocheck("\xff\xc0\xaf\xed\xa0\x80x"));
	line_is(j, "[\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffdx\"]");
	line_is(json_pack("{s:n, s:b, s:b, s:[], s:{}}", "z", "y", 1, "a", 0, "e", "o"),
		"{\"z\":null,\"y\":true,\"a\":false,\"e\":[],\"o\":{}}");
}
END_TEST

/* ---- the writer ---------------------------------------------------------------------------------------------------- */

static void write_lines(const char *path, enum verdict_open how, const char *id)
{
	struct err err;
	struct verdict_writer *w = verdict_create(path, how, &err);
	ck_assert_msg(w != NULL, "%s", err.text);
	if (how != VERDICT_RESUME) {
		json_t *h = json_pack("{s:s, s:i}", "kind", "header", "format", 1);
		ck_assert(verdict_write(w, h, &err));
		json_decref(h);
	}
	json_t *c = cell(id, "pass");
	ck_assert(verdict_write(w, c, &err));
	json_decref(c);
	ck_assert(verdict_close(w, &err));
}

START_TEST(test_writer_makes_folders_and_refuses_to_overwrite)
{
	struct err err;
	write_lines("a/b/c.jsonl", VERDICT_NEW, "s/c/1");
	ck_assert_str_eq(get_file("a/b/c.jsonl"), HEADER CELL("s/c/1"));
	ck_assert_ptr_null(verdict_create("a/b/c.jsonl", VERDICT_NEW, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "a/b/c.jsonl"));
	ck_assert_ptr_nonnull(strstr(err.text, "--force"));
	ck_assert_ptr_null(strstr(err.text, "--resume")); /* only `run` has it, and says so itself */
	ck_assert_str_eq(get_file("a/b/c.jsonl"), HEADER CELL("s/c/1"));
	write_lines("a/b/c.jsonl", VERDICT_FORCE, "s/c/2");
	ck_assert_str_eq(get_file("a/b/c.jsonl"), HEADER CELL("s/c/2"));
	ck_assert_ptr_null(verdict_create("a/b", VERDICT_NEW, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "folder"));
	put_file("plain", "x");
	ck_assert_ptr_null(verdict_create("plain/x.jsonl", VERDICT_NEW, &err));
}
END_TEST

START_TEST(test_one_writer_a_file)
{
	struct err err;
	struct verdict_writer *w = verdict_create("x.jsonl", VERDICT_NEW, &err);
	json_t *h = json_pack("{s:s, s:i}", "kind", "header", "format", 1);
	ck_assert(verdict_write(w, h, &err));
	ck_assert_ptr_null(verdict_create("x.jsonl", VERDICT_FORCE, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "another run"));
	ck_assert_str_eq(get_file("x.jsonl"), HEADER);
	json_decref(h);
	ck_assert(verdict_close(w, &err));
	ck_assert(verdict_close(NULL, &err));
}
END_TEST

START_TEST(test_resume_drops_footer_and_torn_tail)
{
	static const char *const before[] = {
		HEADER CELL("s/c/1") FOOTER,
		HEADER CELL("s/c/1"),
		HEADER CELL("s/c/1") "{\"kind\":\"cell\",\"id\":\"s/c",
		HEADER CELL("s/c/1") "{\"kind\":\"foot",
		HEADER "{\"kind\":\"cell\",\"id\":\"s/c/1\",\"status\":\"pass\"}", /* whole, without its newline */
	};
	for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
		put_file("r.jsonl", before[i]);
		write_lines("r.jsonl", VERDICT_RESUME, "s/c/2");
		ck_assert_str_eq(get_file("r.jsonl"), HEADER CELL("s/c/1") CELL("s/c/2"));
	}
	struct err err;
	put_file("bad.jsonl", HEADER "nonsense\n" CELL("s/c/1"));
	ck_assert_ptr_null(verdict_create("bad.jsonl", VERDICT_RESUME, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "bad.jsonl:2"));
	ck_assert_str_eq(get_file("bad.jsonl"), HEADER "nonsense\n" CELL("s/c/1"));
}
END_TEST

START_TEST(test_disk_full)
{
	struct err err;
	if (access("/dev/full", W_OK) != 0)
		return;
	struct verdict_writer *w = verdict_create("/dev/full", VERDICT_NEW, &err);
	ck_assert_msg(w != NULL, "%s", err.text);
	json_t *c = cell("s/c/1", "pass");
	ck_assert(!verdict_write(w, c, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "No space left"));
	ck_assert(!verdict_write(w, c, &err)); /* stays failed */
	ck_assert(!verdict_close(w, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "No space left"));
	json_decref(c);
}
END_TEST

START_TEST(test_file_limit_leaves_whole_lines)
{
	/* RLIMIT_FSIZE tears a write as a full disk does: part of the line is written, then an error. */
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGXFSZ, SIG_IGN);
		struct err err;
		struct verdict_writer *w = verdict_create("limit.jsonl", VERDICT_NEW, &err);
		json_t *h = json_pack("{s:s, s:i}", "kind", "header", "format", 1), *c = cell("s/c/1", "pass");
		bool ok = verdict_write(w, h, &err);
		struct rlimit lim = {40, 40};
		setrlimit(RLIMIT_FSIZE, &lim);
		bool full = !verdict_write(w, c, &err) && strstr(err.text, "limit.jsonl") != NULL;
		_exit(ok && full && !verdict_close(w, &err) ? 0 : 1);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_str_eq(get_file("limit.jsonl"), HEADER);
}
END_TEST

START_TEST(test_broken_pipe)
{
	struct err err;
	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(mkfifo("pipe", 0600), 0);
	int r = open("pipe", O_RDONLY | O_NONBLOCK);
	struct verdict_writer *w = verdict_create("pipe", VERDICT_NEW, &err);
	ck_assert_msg(w != NULL, "%s", err.text);
	json_t *c = cell("s/c/1", "pass");
	ck_assert(verdict_write(w, c, &err));
	close(r);
	ck_assert(!verdict_write(w, c, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "pipe"));
	ck_assert(!verdict_close(w, &err));
	json_decref(c);
}
END_TEST

/* ---- the reader ---------------------------------------------------------------------------------------------------- */

static void loads(const char *text, size_t cells, bool torn, bool footer)
{
	struct verdict_file f;
	struct err err;
	put_file("f.jsonl", text);
	ck_assert_msg(verdict_load("f.jsonl", &f, &err), "%s", err.text);
	ck_assert_uint_eq(f.n_cells, cells);
	ck_assert_int_eq(f.torn, torn);
	ck_assert_int_eq(f.footer != NULL, footer);
	ck_assert_ptr_nonnull(f.header);
	verdict_unload(&f);
}

static void refused(const char *text, const char *want)
{
	struct verdict_file f;
	struct err err;
	put_file("f.jsonl", text);
	ck_assert_msg(!verdict_load("f.jsonl", &f, &err), "accepted: %s", text);
	ck_assert_msg(strstr(err.text, want) != NULL, "%s\nlacks: %s", err.text, want);
}

START_TEST(test_reader)
{
	loads(HEADER, 0, false, false);
	loads(HEADER FOOTER, 0, false, true);
	loads(HEADER CELL("s/c/1") CELL("s/c/2") FOOTER, 2, false, true);
	loads(HEADER CELL("s/c/1") "{\"kind\":\"cell\"", 1, true, false);
	loads(HEADER CELL("s/c/1") RESUME CELL("s/c/1") CELL("s/c/2") FOOTER, 2, false, true);
	loads(HEADER "{\"kind\":\"from the future\",\"x\":1}\n" FOOTER, 0, false, true);
	loads(HEADER "{\"kind\":\"cell\",\"id\":\"s/c/1\",\"status\":\"pass\",\"future\":[1]}\n", 1, false, false);
	/* Without its newline, but whole. */
	loads(HEADER "{\"kind\":\"footer\",\"exit\":0}", 0, false, true);
}
END_TEST

START_TEST(test_reader_refuses)
{
	refused("", "empty");
	refused("{\"kind\":\"head", "cut short");
	refused(HEADER "nonsense\n", "f.jsonl:2");
	refused(HEADER "\n" FOOTER, "f.jsonl:2");
	refused(HEADER "[1]\n", "f.jsonl:2");
	refused(HEADER "{\"a\":1}\n", "kind");
	refused("{\"kind\":\"header\",\"format\":2}\n", "newer");
	refused("{\"kind\":\"header\"}\n", "format");
	refused(CELL("s/c/1"), "header");
	refused(HEADER HEADER, "second header");
	refused(HEADER FOOTER CELL("s/c/1"), "f.jsonl:3");
	refused(HEADER CELL("s/c/1") CELL("s/c/2") CELL("s/c/1"), "f.jsonl:4");
	refused(HEADER CELL("s/c/1") CELL("s/c/2") CELL("s/c/1"), "line 2");
	refused(HEADER CELL("s/c/1") RESUME CELL("s/c/1") CELL("s/c/1"), "f.jsonl:5");
	refused(HEADER "{\"kind\":\"cell\",\"id\":\"s/c/1\",\"id\":\"s/c/2\",\"status\":\"pass\"}\n", "f.jsonl:2");
	refused(HEADER "{\"kind\":\"cell\",\"id\":\"s/c/1\",\"status\":\"excellent\"}\n", "status");
	refused(HEADER "{\"kind\":\"cell\",\"status\":\"pass\"}\n", "id");
	refused(HEADER "{\"kind\":\"cell\",\"id\":\"x\",\"status\":\"pass\",\"v\":NaN}\n", "f.jsonl:2");
	refused(HEADER "{\"kind\":\"cell\",\"id\":\"x\xff\",\"status\":\"pass\"}\n", "f.jsonl:2");
	refused(HEADER "{\"kind\":\"cell\",\"id\":\"x\",\"status\":\"pass\",\"v\":1e999}\n", "f.jsonl:2");
}
END_TEST

START_TEST(test_later_line_counts)
{
	struct verdict_file f;
	struct err err;
	put_file("f.jsonl",
		 HEADER "{\"kind\":\"cell\",\"id\":\"a\",\"status\":\"error\"}\n" CELL("b") RESUME CELL("a"));
	ck_assert(verdict_load("f.jsonl", &f, &err));
	ck_assert_uint_eq(f.n_cells, 2);
	ck_assert_str_eq(json_string_value(json_object_get(f.cell[0], "id")), "a");
	ck_assert_str_eq(json_string_value(json_object_get(f.cell[0], "status")), "pass");
	verdict_unload(&f);
}
END_TEST

START_TEST(test_many_ids)
{
	FILE *f = fopen("many.jsonl", "w");
	fputs(HEADER, f);
	for (int i = 0; i < 5000; i++)
		fprintf(f, "{\"kind\":\"cell\",\"id\":\"s/c/%d\",\"status\":\"pass\"}\n", i);
	fputs(CELL("s/c/4321"), f);
	fclose(f);
	struct verdict_file v;
	struct err err;
	ck_assert(!verdict_load("many.jsonl", &v, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "many.jsonl:5002"));
	ck_assert_ptr_nonnull(strstr(err.text, "line 4323"));
}
END_TEST

START_TEST(test_every_prefix_is_readable)
{
	static const char whole[] = HEADER CELL("s/c/1") CELL("s/c/2") FOOTER;
	size_t header = strlen(HEADER);
	for (size_t n = header - 1; n < sizeof whole; n++) {
		char text[sizeof whole];
		memcpy(text, whole, n);
		text[n] = 0;
		put_file("p.jsonl", text);
		struct verdict_file f;
		struct err err;
		ck_assert_msg(verdict_load("p.jsonl", &f, &err), "%zu: %s", n, err.text);
		ck_assert_uint_le(f.n_cells, 2);
		verdict_unload(&f);
	}
}
END_TEST

START_TEST(test_from_git)
{
	struct verdict_file f;
	struct err err;
	if (system("git --version >/dev/null 2>&1") != 0)
		return;
	put_file("g.jsonl", HEADER CELL("s/c/1"));
	ck_assert_int_eq(
		system("git init -q . && git add g.jsonl && git -c user.name=t -c user.email=t@t commit -qm t"), 0);
	put_file("g.jsonl", HEADER CELL("s/c/1") CELL("s/c/2"));
	ck_assert_msg(verdict_load("HEAD:g.jsonl", &f, &err), "%s", err.text);
	ck_assert_uint_eq(f.n_cells, 1);
	verdict_unload(&f);
	ck_assert(!verdict_load("HEAD:none.jsonl", &f, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "none.jsonl"));
	/* Nothing that begins with a dash is an option of git. */
	ck_assert(!verdict_load("--output=stolen:g.jsonl", &f, &err));
	ck_assert_int_ne(access("stolen", F_OK), 0);
	ck_assert_int_ne(access("stolen:g.jsonl", F_OK), 0);
}
END_TEST

START_TEST(test_schema_is_the_file)
{
	json_t *told = verdict_schema(),
	       *file = json_load_file(ASSAY_SOURCE_ROOT "/schemas/verdict.schema.json", 0, NULL);
	ck_assert_ptr_nonnull(file);
	ck_assert(json_equal(told, file));
	json_decref(told);
	json_decref(file);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("verdict");
	TCase *c = tcase_create("verdict");
	tcase_add_checked_fixture(c, unit_enter, NULL);
	tcase_add_test(c, test_numbers);
	tcase_add_test(c, test_numbers_read_back);
	tcase_add_test(c, test_strings);
	tcase_add_test(c, test_writer_makes_folders_and_refuses_to_overwrite);
	tcase_add_test(c, test_one_writer_a_file);
	tcase_add_test(c, test_resume_drops_footer_and_torn_tail);
	tcase_add_test(c, test_disk_full);
	tcase_add_test(c, test_file_limit_leaves_whole_lines);
	tcase_add_test(c, test_broken_pipe);
	tcase_add_test(c, test_reader);
	tcase_add_test(c, test_reader_refuses);
	tcase_add_test(c, test_later_line_counts);
	tcase_add_test(c, test_many_ids);
	tcase_add_test(c, test_every_prefix_is_readable);
	tcase_add_test(c, test_from_git);
	tcase_add_test(c, test_schema_is_the_file);
	suite_add_tcase(s, c);
	return unit_run(s);
}
