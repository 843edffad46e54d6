/* The exported header does what table_lookup does: compiled, and asked at every key, between keys and beyond, for every kernel; and a
 * suggestion's pieces. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suggest_fresh.h"
#include "table_tool.h"
#include "unit.h"

static const char *const kernels[] = {"mla.absorb_q", "mla.decompress_v", "moe.gemm", "a\"b?\?/", "mla.", "x"};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };
static const double points[] = {-3, 0, 0.5, 1, 2, 3, 4, 4.5, 8, 9, 100, 2048, 32768, 1e9};
enum { N_POINTS = sizeof points / sizeof *points };

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

/* What the header's function says, for every kernel and point, a line each. */
static void compile_and_ask(const char *name, int n_keys, const char *compiler, const char *source, char *out,
			    size_t cap)
{
	char program[4096], command[1024];
	size_t n = (size_t)snprintf(program, sizeof program,
				    "#include <stdio.h>\n#include \"serving.h\"\nint main(void)\n{\n");
	n += (size_t)snprintf(program + n, sizeof program - n, "static const char *const kernels[] = {");
	for (int k = 0; k < N_KERNELS; k++) {
		n += (size_t)snprintf(program + n, sizeof program - n, "%s\"", k ? ", " : "");
		for (const char *p = kernels[k]; *p; p++)
			n += (size_t)snprintf(program + n, sizeof program - n, "\\%03o", (unsigned)*p);
		n += (size_t)snprintf(program + n, sizeof program - n, "\"");
	}
	n += (size_t)snprintf(program + n, sizeof program - n, "};\nstatic const double p[] = {");
	for (int k = 0; k < N_POINTS; k++)
		n += (size_t)snprintf(program + n, sizeof program - n, "%s%.17g", k ? ", " : "", points[k]);
	snprintf(program + n, sizeof program - n,
		 "};\nfor (int k = 0; k < %d; k++) for (int i = 0; i < %d; i++) for (int j = 0; j < %d; j++) {\n"
		 "(void)p;\nconst char *arm = %s_arm(kernels[k]%s);\nputs(arm ? arm : \"-\");\n}\nreturn 0;\n}\n",
		 N_KERNELS, n_keys > 0 ? N_POINTS : 1, n_keys > 1 ? N_POINTS : 1, name,
		 n_keys == 0   ? ""
		 : n_keys == 1 ? ", p[i]"
			       : ", p[i], p[j]");
	write_text(source, program);
	snprintf(command, sizeof command, "%s -Wall -Wextra -Werror -o ask %s", compiler, source);
	ck_assert_msg(system(command) == 0, "%s", command);
	FILE *f = popen("./ask", "r");
	ck_assert_ptr_nonnull(f);
	size_t got = fread(out, 1, cap - 1, f);
	out[got] = 0;
	ck_assert_int_eq(pclose(f), 0);
}

/* Rows, globs, defaults and rules that pull in different directions. */
static const char *const tables[] = {
	"key: [t_q]\nlookup: exact\nrows:\n  mla.absorb_q: {1: split=2, 4: split=4, 8: shipped}\n  'mla.*': {2: "
	"split=8, default: shipped}\n",
	"key: [t_q]\nlookup: floor\nrows:\n  mla.absorb_q: {1: split=2, 4: split=4}\n  'mla.*': {2: a, default: b}\n  "
	"'*': {0: c}\ndefault: shipped\n",
	"key: [t_q]\nlookup: ceil\nrows:\n  mla.absorb_q: {1: split=2, 4: split=4}\n  '?oe.gemm': {9: a}\ndefault: "
	"shipped\n",
	"key: [t_q]\nlookup: nearest\nrows:\n  '*q': {1: a, 3: b, 9: c}\n  mla.decompress_v: {0.5: d, default: e}\n",
	"key: [t_q, kv]\nlookup: floor\nrows:\n  mla.absorb_q:\n    - {t_q: 1, kv: 2048, arm: a}\n    - {t_q: 1, kv: "
	"4, arm: b}\n"
	"    - {t_q: 4, kv: 0, arm: c}\n    - {arm: d}\n  moe.gemm:\n    - {t_q: 1, kv: 1, arm: "
	"\"e\\\"f?\\\\\"}\ndefault: "
	"shipped\n",
	"key: [t_q, kv]\nlookup: nearest\nrows:\n  '*':\n    - {t_q: 2, kv: 8, arm: a}\n    - {t_q: 4, kv: 2, arm: "
	"b}\n    - {t_q: 4, kv: 9, arm: c}\n",
	"default: split=4\n",
	"rows: {mla.absorb_q: split=2, 'm*': split=4}\n",
};

static void round_trip(int which, const char *compiler, const char *source)
{
	struct arena *a = arena_create();
	struct diags *d = diags_create();
	static const char path[] = "serving.yaml";
	char text[1 << 16];
	struct err err;
	write_text(path, tables[which]);
	const struct table *t = table_load(a, path, (struct mark){0}, d);
	if (!t)
		diags_print(d, stderr, false);
	ck_assert_ptr_nonnull(t);
	FILE *f = fopen("serving.h", "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_msg(table_export_c(t, table_identifier(a, path), f, &err), "%s", err.text);
	ck_assert_int_eq(fclose(f), 0);
	compile_and_ask("serving", t->n_keys, compiler, source, text, sizeof text);
	const char *at = text;
	int asked = 0;
	for (int k = 0; k < N_KERNELS; k++)
		for (int i = 0; i < (t->n_keys > 0 ? N_POINTS : 1); i++)
			for (int j = 0; j < (t->n_keys > 1 ? N_POINTS : 1); j++, asked++) {
				const struct named_number axis[] = {{.name = "t_q", .value = {.d = points[i]}},
								    {.name = "kv", .value = {.d = points[j]}}};
				const struct table_row *row = table_lookup(t, kernels[k], axis, 2, &err);
				const char *want = row ? row->arm : "-";
				size_t n = strcspn(at, "\n");
				ck_assert_msg(strlen(want) == n && strncmp(want, at, n) == 0,
					      "table %d, %s at %g,%g: %s for %.*s", which, kernels[k], points[i],
					      points[j], want, (int)n, at);
				at += n + (at[n] == '\n');
			}
	ck_assert_str_eq(at, "");
	ck_assert_int_ge(asked, N_KERNELS);
	diags_destroy(d);
	arena_destroy(a);
}

START_TEST(test_header_looks_up_alike)
{
	round_trip(_i, "cc -std=c11 -pedantic", "ask.c");
}
END_TEST

START_TEST(test_header_is_cpp_too)
{
	if (system("c++ --version >/dev/null 2>&1") != 0)
		return;
	round_trip(4, "c++ -std=c++17", "ask.cc");
}
END_TEST

START_TEST(test_names_are_identifiers)
{
	struct arena *a = arena_create();
	ck_assert_str_eq(table_identifier(a, "suites/tables/mla-h200.yaml"), "mla_h200");
	ck_assert_str_eq(table_identifier(a, "8k.csv"), "_8k");
	ck_assert_str_eq(table_identifier(a, "noending"), "noending");
	struct table t = {.path = "t", .key = {"t-q"}, .n_keys = 1};
	struct err err;
	ck_assert(!table_export_c(&t, "t", stderr, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "t-q"));
	ck_assert(!table_export_c(&t, "for", stderr, &err));
	arena_destroy(a);
}
END_TEST

START_TEST(test_command_is_split_as_a_shell_would)
{
	struct arena *a = arena_create();
	int n;
	char **w = suggest_split(a, "assay run 's u/it'\\''e.yaml' --set  't_q=1' -o x", &n);
	ck_assert_int_eq(n, 7);
	ck_assert_str_eq(w[2], "s u/it'e.yaml");
	ck_assert_str_eq(w[4], "t_q=1");
	ck_assert_ptr_null(w[7]);
	suggest_split(a, "   ", &n);
	ck_assert_int_eq(n, 0);
	arena_destroy(a);
}
END_TEST

START_TEST(test_fresh_run_is_the_run_again)
{
	struct suggest_row rows[] = {
		{.kernel = "mla.a", .key = {1}, .outcome = SUGGEST_CHANGED},
		{.kernel = "mla.b", .key = {2}, .outcome = SUGGEST_KEPT},
		{.kernel = "mla.a", .key = {4}, .outcome = SUGGEST_CHANGED},
		{.kernel = "mla.c", .key = {4}, .outcome = SUGGEST_FIXED},
	};
	json_t *header = json_pack("{s:s, s:s}", "suite_path", "s.yaml", "command",
				   "assay run s.yaml --backend host --set timing.rounds=9 --filter kv=1 -o run.jsonl "
				   "--force --plugin=p.so -v");
	struct suggest s =
		{.arena = arena_create(), .header = header, .key = {"t_q"}, .n_keys = 1, .row = rows, .n_rows = 4};
	struct err err;
	char **w = suggest_fresh_command(&s, "/bin/assay", "/tmp/anew.jsonl", &err), line[1024] = "";
	ck_assert_ptr_nonnull(w);
	for (int i = 0; w[i]; i++) {
		strcat(line, i ? " " : "");
		strcat(line, w[i]);
	}
	ck_assert_str_eq(line, "/bin/assay run s.yaml --backend host --set timing.rounds=9 --plugin=p.so --filter "
			       "kernel=mla.a|mla.c "
			       "--filter t_q=1|4 -o /tmp/anew.jsonl --force -q");
	json_object_del(header, "command");
	ck_assert_ptr_null(suggest_fresh_command(&s, "/bin/assay", "x", &err));
	json_decref(header);
	arena_destroy(s.arena);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("table_tool");
	TCase *c = tcase_create("export");
	tcase_add_checked_fixture(c, unit_enter, NULL);
	tcase_add_loop_test(c, test_header_looks_up_alike, 0, (int)(sizeof tables / sizeof *tables));
	tcase_add_test(c, test_header_is_cpp_too);
	suite_add_tcase(s, c);
	c = tcase_create("parts");
	tcase_add_test(c, test_names_are_identifiers);
	tcase_add_test(c, test_command_is_split_as_a_shell_would);
	tcase_add_test(c, test_fresh_run_is_the_run_again);
	suite_add_tcase(s, c);
	return unit_run(s);
}
