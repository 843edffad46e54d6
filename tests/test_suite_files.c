/* Suites as files: those of the tree and of the tests, includes, files that name suites, and the pages made of the grammar. */
#include <sys/stat.h>

#include "test_suite_bed.h"

/* A file that names suites comes to them, each of which is read by itself too. */
static bool names_suites(const char *path)
{
	struct arena *a = arena_create();
	struct suite_uses u = {0};
	ck_assert_msg(suite_uses_add(a, path, diags, &u), "%s: %s", path, messages());
	const bool names = u.name != NULL;
	ck_assert_int_gt(u.n, 0);
	ck_assert(names || strcmp(u.use[0].path, path) == 0);
	for (int i = 0; names && i < u.n; i++)
		ck_assert_msg(access(u.use[i].path, R_OK) == 0, "%s: %s", path, u.use[i].path);
	arena_destroy(a);
	return names;
}

START_TEST(filters_of_both_must_match)
{
	struct arena *a = arena_create();
	const char *const own[] = {"tag=x", "tag=y"}, *const given[] = {"kv=1", "t_q=2"}, *const * out;
	const struct suite_use use = {.filter = own, .n_filters = 2}, plain = {0};
	ck_assert_int_eq(suite_use_filters(a, &use, given, 2, &out), 4);
	static const char *const want[] = {"tag=x,kv=1", "tag=x,t_q=2", "tag=y,kv=1", "tag=y,t_q=2"};
	for (int i = 0; i < 4; i++)
		ck_assert_str_eq(out[i], want[i]);
	ck_assert_ptr_null(out[4]);
	ck_assert_int_eq(suite_use_filters(a, &use, NULL, 0, &out), 2);
	ck_assert_str_eq(out[1], "tag=y");
	ck_assert_int_eq(suite_use_filters(a, &plain, given, 2, &out), 2);
	ck_assert_str_eq(out[0], "kv=1");
	ck_assert_int_eq(suite_use_filters(a, &plain, NULL, 0, &out), 0);
	arena_destroy(a);
}
END_TEST

static void round_trip(const char *path)
{
	struct suite_options opt = {.registry = registry};
	struct suite *s = suite_load(path, &opt, diags);
	ck_assert_msg(s != NULL, "%s: %s", path, messages());
	json_t *j = suite_to_json(s);
	char *dump = json_dumps(j, 0);
	struct suite *again = suite_load_text("again.json", dump, strlen(dump), &opt, diags);
	ck_assert_msg(again != NULL, "%s: %s\n%s", path, messages(), dump);
	json_t *k = suite_to_json(again);
	ck_assert_msg(json_equal(j, k), "%s", path);
	/* One that is derived has all that the loader knew, its declared blocks too. */
	json_t *derived = suite_to_json(suite_derive(s));
	ck_assert_msg(json_equal(j, derived), "%s", path);
	json_decref(derived);
	for (int i = 0; i < s->n_cases; i++) {
		struct timing a = s->cases[i].timing, b = again->cases[i].timing;
		for (int n = 0; n < MAX_LIST; n++) {
			ck_assert_pstr_eq(a.order_list[n], b.order_list[n]);
			a.order_list[n] = b.order_list[n] = NULL;
		}
		ck_assert_int_eq(a.scrub_bytes, b.scrub_bytes);
		ck_assert(a.tau == b.tau && a.alpha == b.alpha && a.timeout_ns == b.timeout_ns &&
			  a.warmup_ns == b.warmup_ns);
		ck_assert_uint_eq(s->cases[i].checks.on, again->cases[i].checks.on);
		ck_assert_int_eq(s->cases[i].n_axes, again->cases[i].n_axes);
	}
	json_decref(j);
	json_decref(k);
	free(dump);
	suite_destroy(s);
	suite_destroy(again);
}

START_TEST(json_gives_the_same_suite)
{
	static const char *const folders[] = {ASSAY_SOURCE_ROOT "/tests/good", ASSAY_SOURCE_ROOT "/suites"};
	int n = 0, lists = 0;
	for (size_t f = 0; f < 2; f++) {
		DIR *dir = opendir(folders[f]);
		ck_assert_ptr_nonnull(dir);
		for (const struct dirent *e; (e = readdir(dir));) {
			char path[1024];
			size_t len = strlen(e->d_name);
			if (len < 5 || strcmp(e->d_name + len - 5, ".yaml"))
				continue;
			snprintf(path, sizeof path, "%s/%s", folders[f], e->d_name);
			if (names_suites(path)) {
				lists++;
				continue;
			}
			round_trip(path);
			n++;
		}
		closedir(dir);
	}
	ck_assert_int_ge(n, 20);
	ck_assert_int_ge(lists, 1);
}
END_TEST

START_TEST(words_are_those_of_the_code)
{
	for (int i = 0; grammar_fills[i]; i++)
		ck_assert_str_eq(grammar_fills[i], fill_kind_name((enum fill_kind)i));
	for (int i = 0; grammar_dtypes[i]; i++)
		ck_assert_str_eq(grammar_dtypes[i], registry_dtype_name((enum assay_dtype)i));
}
END_TEST

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "rb");
	ck_assert_msg(f != NULL, "%s", path);
	char *s = calloc(1, 1 << 20);
	ck_assert_uint_lt(fread(s, 1, (1 << 20) - 1, f), (1 << 20) - 1);
	fclose(f);
	return s;
}

START_TEST(committed_pages_are_current)
{
	char *page = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&page, &n);
	suite_reference(f);
	fclose(f);
	char *committed = slurp(ASSAY_SOURCE_ROOT "/docs/suite.md");
	ck_assert_msg(!strcmp(page, committed), "docs/suite.md is old: assay schema suite --reference > docs/suite.md");
	free(page);
	free(committed);
	json_t *schema = suite_schema(), *old = json_load_file(ASSAY_SOURCE_ROOT "/schemas/suite.schema.json", 0, NULL);
	ck_assert_msg(json_equal(schema, old),
		      "schemas/suite.schema.json is old: assay schema suite > schemas/suite.schema.json");
	json_decref(schema);
	json_decref(old);
}
END_TEST

START_TEST(files_are_known)
{
	struct suite_options opt = {.registry = registry};
	struct suite *s = suite_load(ASSAY_SOURCE_ROOT "/tests/good/include.yaml", &opt, diags);
	ck_assert_msg(s != NULL, "%s", messages());
	ck_assert_int_eq(s->n_files, 4); /* three.yaml once, though two files include it */
	char sha[65];
	memcpy(sha, s->sha256, sizeof sha);
	for (int i = 0; i < s->n_files; i++)
		ck_assert_uint_eq(strlen(s->file[i].sha256), 64);
	suite_destroy(s);
	/* the hash is of what the files hold */
	s = load(HEAD CASE CHECKS);
	ck_assert_str_ne(s->sha256, sha);
	memcpy(sha, s->sha256, sizeof sha);
	suite_destroy(s);
	s = load(HEAD CASE CHECKS "# a word more\n");
	ck_assert_str_ne(s->sha256, sha);
	suite_destroy(s);
}
END_TEST

/* Into a folder that is not where the test is. */
static void put_file(const char *name, const char *content)
{
	char path[64];
	snprintf(path, sizeof path, "suites/%s", name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(content, f);
	fclose(f);
}

START_TEST(includes_are_so_deep)
{
	static const char path[] = "suites/top.yaml";
	char name[32], content[512];
	unit_enter();
	ck_assert_int_eq(mkdir("suites", 0777), 0);
	struct suite_options opt = {.registry = registry};
	for (int deepest = 16; deepest <= 17; deepest++) {
		snprintf(content, sizeof content, "%sinclude: x1.yaml\n%s%s", HEAD, CASE, CHECKS);
		put_file("top.yaml", content);
		for (int i = 1; i <= deepest; i++) {
			snprintf(name, sizeof name, "x%d.yaml", i);
			snprintf(content, sizeof content, i < deepest ? "include: x%d.yaml\n" : "margins: []\n", i + 1);
			put_file(name, content);
		}
		struct suite *s = suite_load(path, &opt, diags);
		ck_assert_msg((s != NULL) == (deepest == 16), "%s", messages());
		suite_destroy(s);
	}
	ck_assert_ptr_nonnull(strstr(messages(), "x16.yaml:1:10: error: includes nested deeper than 16"));
	put_file("a.npy", "no array");
	snprintf(content, sizeof content,
		 "assay: 1\nsuite: t\ngeometries: {g: {n_head: 4, kv_rank: 16, d_nope: 8}}\n"
		 "distributions: {unit: {fill: uniform, range: [-1, 1], tensors: {wk_b: {fill: npy, path: "
		 "a.npy}}}}\n%s%s",
		 CASE, CHECKS);
	put_file("top.yaml", content);
	diags_destroy(diags);
	diags = diags_create();
	/* A file that is no array is refused here, not by each cell. */
	ck_assert_ptr_null(suite_load(path, &opt, diags));
	ck_assert_ptr_nonnull(strstr(messages(), "suites/a.npy: it is no .npy file"));
	static const char head[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 16, 8), }";
	FILE *f = fopen("suites/a.npy", "wb");
	fwrite("\x93NUMPY\1\0", 1, 8, f);
	fputc((int)strlen(head), f);
	fputc(0, f);
	fputs(head, f);
	for (int i = 0; i < 4 * 16 * 8 * 4; i++)
		fputc(0, f);
	fclose(f);
	diags_destroy(diags);
	diags = diags_create();
	struct suite *s = suite_load(path, &opt, diags);
	ck_assert_msg(s != NULL, "%s", messages());
	const char *npy = s->cases[0].data[0]->rules[1].spec.path;
	ck_assert_int_eq(npy[0], '/');
	ck_assert_ptr_nonnull(strstr(npy, "/suites/a.npy"));
	suite_destroy(s);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("suite_files");
	TCase *t = tcase_create("suite_files");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, filters_of_both_must_match);
	tcase_add_test(t, json_gives_the_same_suite);
	tcase_add_test(t, words_are_those_of_the_code);
	tcase_add_test(t, committed_pages_are_current);
	tcase_add_test(t, files_are_known);
	tcase_add_test(t, includes_are_so_deep);
	suite_add_tcase(s, t);
	return unit_run(s);
}
