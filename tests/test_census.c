/* What disassemblers write, counted; two arms compared. The expected counts are those of a grep over the excerpts in data/census/. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "census.h"
#include "host_artifact.h"
#include "unit.h"

static char *file_text(const char *name, size_t *bytes)
{
	char path[512];
	snprintf(path, sizeof path, "%s/tests/data/census/%s", ASSAY_SOURCE_ROOT, name);
	FILE *f = fopen(path, "rb");
	ck_assert_ptr_nonnull(f);
	char *text = malloc(1 << 20);
	*bytes = fread(text, 1, 1 << 20, f);
	fclose(f);
	return text;
}

static int64_t of(const struct census *c, const char *class)
{
	const int k = census_class_find(class);
	ck_assert_msg(k >= 0, "no class %s", class);
	return c->count[k];
}

static struct census sass(const char *file, const char *function, const char *arch)
{
	struct census c = {0};
	size_t n;
	char *text = file_text(file, &n);
	const int64_t got = census_parse_sass(text, n, function, arch, &c);
	ck_assert_int_eq(got, c.total);
	free(text);
	return c;
}

START_TEST(cuobjdump_by_function)
{
	struct census c = sass("sm_90a.sass", "_Z10probe_rateILi0E", "sm_90a");
	ck_assert_int_eq(c.total, 19);
	ck_assert_int_eq(of(&c, "IMMA"), 4);
	ck_assert_int_eq(of(&c, "STS"), 2);
	ck_assert_int_eq(of(&c, "LDS"), 2);
	ck_assert_int_eq(of(&c, "BRANCH"), 3); /* two BRA, one of them predicated, and EXIT */
	ck_assert_int_eq(of(&c, "I2F"), 1); /* I2FP */
	ck_assert_int_eq(of(&c, "BAR"), 1);
	ck_assert_int_eq(of(&c, "HMMA"), 0);
	c = sass("sm_90a.sass", "_Z10probe_rateILi1E", "sm_90a");
	ck_assert_int_eq(c.total, 22);
	ck_assert_int_eq(of(&c, "HMMA"), 3);
	ck_assert_int_eq(of(&c, "F2FP"), 3);
	ck_assert_int_eq(of(&c, "FADD"), 2);
	c = sass("sm_90a.sass", "_Z10probe_rateILi3E", NULL);
	ck_assert_int_eq(of(&c, "IGMMA"), 3);
	c = sass("sm_90a.sass", "_Z10probe_rateILi4E", NULL);
	ck_assert_int_eq(of(&c, "QGMMA"), 3);
	ck_assert_int_eq(c.total, 15);
}
END_TEST

START_TEST(cuobjdump_other_arch)
{
	struct census c = sass("sm_120a.sass", "_Z10probe_rateILi2E", "sm_120a");
	ck_assert_int_eq(of(&c, "QMMA"), 4); /* QMMA.SF */
	ck_assert_int_eq(c.total, 17);
	ck_assert_int_eq(sass("sm_120a.sass", "_Z10probe_rateILi2E", "sm_90a").total, 0);
	ck_assert_int_eq(sass("sm_120a.sass", "_Z10probe_rateILi2", NULL).total, 0); /* no prefix of a name */
	ck_assert_int_eq(sass("sm_120a.sass", NULL, NULL).total, 17 + 17 + 18);
}
END_TEST

START_TEST(nvdisasm)
{
	struct census c = sass("sm_90a.nvdisasm", "_Z10probe_rateILi0E", "sm_90a");
	ck_assert_int_eq(c.total, 7);
	ck_assert_int_eq(of(&c, "IMMA"), 6);
	c = sass("sm_90a.nvdisasm", "_Z10probe_rateILi1E", NULL);
	ck_assert_int_eq(c.total, 44);
	ck_assert_int_eq(of(&c, "HMMA"), 4);
	ck_assert_int_eq(of(&c, "F2FP"), 6);
	ck_assert_int_eq(of(&c, "STS"), 3);
}
END_TEST

START_TEST(objdump)
{
	struct census c = {0};
	size_t n;
	char *text = file_text("x86.objdump", &n);
	census_parse_objdump(text, n, &c);
	free(text);
	ck_assert_int_eq(c.total, 117);
	ck_assert_int_eq(of(&c, "FMA"), 12);
	ck_assert_int_eq(of(&c, "DOT16"), 8);
	ck_assert_int_eq(of(&c, "I2F"), 2);
	ck_assert_int_eq(of(&c, "LOAD"), 16);
	ck_assert_int_eq(of(&c, "STORE"), 5);
	ck_assert_int_eq(of(&c, "STACK_LOAD"), 4);
	ck_assert_int_eq(of(&c, "STACK_STORE"), 4);
	ck_assert_int_eq(of(&c, "BRANCH"), 8);
}
END_TEST

/* Mnemonics by hand: those that the excerpts lack. */
START_TEST(classes)
{
	static const struct {
		const char *text, *class;
	} device[] = {{"HGMMA.64x256x16.F32.BF16", "HGMMA"},
		      {"UTCQMMA.2CTA", "UTCQMMA"},
		      {"UTMALDG.2D", "UTMA"},
		      {"UTMASTG.3D", "UTMA"},
		      {"LDGSTS.E.BYPASS.128", "LDGSTS"},
		      {"LDG.E.128.CONSTANT", "LDG"},
		      {"LDL.64", "LDL"},
		      {"STL", "STL"},
		      {"LDSM.16.M88.4", "LDSM"},
		      {"F2F.F64.F32", "F2F"},
		      {"I2F.S8", "I2F"},
		      {"F2I.TRUNC", "F2I"},
		      {"IDP.4A.S8.S8", "DOT8"},
		      {"LDC", NULL},
		      {"IMMANENT", NULL}};
	for (size_t i = 0; i < sizeof device / sizeof *device; i++) {
		const int c = census_class_sass(device[i].text, strlen(device[i].text));
		ck_assert_msg(device[i].class ? c >= 0 && strcmp(census_class_name(c), device[i].class) == 0 : c < 0,
			      "%s", device[i].text);
	}
	static const struct {
		const char *op, *operands, *class;
	} host[] = {{"vpdpbusd", " zmm0,zmm1,ZMMWORD PTR [rax]", "DOT8"},
		    {"vpmaddubsw", " ymm0,ymm1,ymm2", "DOT8"},
		    {"vpgatherdd", " ymm0,DWORD PTR [rax+ymm1*4],ymm2", "GATHER"},
		    {"vcvtdq2ps", " ymm0,ymm1", "I2F"},
		    {"vcvttps2dq", " ymm0,ymm1", "F2I"},
		    {"vcvtph2ps", " ymm0,XMMWORD PTR [rax]", "F2FP"},
		    {"vpmovsxbw", " ymm0,XMMWORD PTR [rax]", "EXTEND"},
		    {"cmp", " DWORD PTR [rax],0x1", "LOAD"},
		    {"add", " DWORD PTR [rax],0x1", "STORE"},
		    {"mov", " rax,QWORD PTR [rsp+0x8]", "STACK_LOAD"},
		    {"mov", " QWORD PTR [rsp+0x8],rax", "STACK_STORE"},
		    {"lea", " rax,[rsp+0x8]", NULL},
		    {"mov", " rax,rbx", NULL},
		    {"jne", " 1a70 <f>", "BRANCH"},
		    {"nop", " WORD PTR cs:[rax+rax*1+0x0]", "NOP"},
		    {"ldr", " x0, [x1]", "LOAD"},
		    {"stp", " q0, q1, [sp, #16]", "STACK_STORE"},
		    {"sdot", " v0.4s, v1.16b, v2.16b", "DOT8"}};
	for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
		const int c = census_class_host(host[i].op, strlen(host[i].op), host[i].operands);
		ck_assert_msg(host[i].class ? c >= 0 && strcmp(census_class_name(c), host[i].class) == 0 : c < 0,
			      "%s %s (%s)", host[i].op, host[i].operands, c >= 0 ? census_class_name(c) : "-");
	}
}
END_TEST

/* A function of this very program, by the objdump of this machine. */
__attribute__((noinline)) static double convert_all(const int *x, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += (double)x[i] * 3;
	return sum;
}

START_TEST(own_code)
{
	struct assay_launch l = {.symbol = "convert_all"};
	double (*f)(const int *, int) = convert_all;
	char reason[256] = "";
	const int x[2] = {1, 2};
	ck_assert_double_eq(convert_all(x, 2), 9);
	memcpy(&l.function, &f, sizeof l.function);
	json_t *c = census_of_host(&l, 1, reason);
	if (json_is_null(c)) {
		ck_assert_msg(strstr(reason, "no objdump") != NULL, "%s", reason);
		return;
	}
	ck_assert_int_gt(json_integer_value(json_object_get(c, "instructions")), 3);
	ck_assert_int_ge(json_integer_value(json_object_get(json_object_get(c, "counts"), "I2F")), 1);
	json_decref(c);
	l.function = NULL;
	c = census_of_host(&l, 1, reason);
	ck_assert(json_is_null(c) && reason[0]);
	json_decref(c);
	c = census_of_host(NULL, 0, reason);
	ck_assert(json_is_null(c) && strstr(reason, "no launch"));
	json_decref(c);
}
END_TEST

START_TEST(tool_that_is_not_there)
{
	const char *none[] = {"assay-no-such-tool", NULL}, *fails[] = {"false", NULL}, *says[] = {"echo", "IMMA", NULL};
	char reason[256], *text;
	size_t n;
	ck_assert(!census_run_tool(none, &text, &n, reason));
	ck_assert_str_eq(reason, "no assay-no-such-tool on the PATH");
	ck_assert(!census_run_tool(fails, &text, &n, reason));
	ck_assert_str_eq(reason, "false failed (exit 1)");
	ck_assert(census_run_tool(says, &text, &n, reason));
	ck_assert_int_eq(n, 5);
	ck_assert_mem_eq(text, "IMMA\n", 5);
	free(text);
}
END_TEST

/* ---- the comparison ------------------------------------------------------------------------------------------------ */

static json_t *cell_of(const char *may_differ, const char *bound, const char *of_artifact, const char *over_artifact)
{
	char text[4096];
	snprintf(text, sizeof text,
		 "{\"kernel\": \"k.x\", \"ratio_check\": {\"of\": \"f32\", \"over\": \"s32\", \"may_differ\": %s, "
		 "\"equal_issue_interval\": %s}, \"checks\": [], \"measure\": {}, \"arms\": [{\"name\": \"s32\", "
		 "\"artifact\": %s}, "
		 "{\"name\": \"f32\", \"artifact\": %s}]}",
		 may_differ, bound, over_artifact, of_artifact);
	json_error_t e;
	json_t *j = json_loads(text, 0, &e);
	ck_assert_msg(j != NULL, "%s: %s", e.text, text);
	return j;
}

/* The finding of a control, or NULL. */
static const json_t *finding(const json_t *cell, const char *control)
{
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(cell, "checks"), i, f)
	{
		ck_assert_str_eq(json_string_value(json_object_get(f, "check")), "census");
		if (strcmp(json_string_value(json_object_get(f, "control")), control) == 0)
			return f;
	}
	return NULL;
}

static void expect(const char *may_differ, const char *of_artifact, const char *over_artifact, const char *status,
		   const char *words)
{
	json_t *cell = cell_of(may_differ, "null", of_artifact, over_artifact);
	census_check(cell, NULL);
	census_check(cell, NULL); /* done twice is the same again */
	ck_assert_int_eq(json_array_size(json_object_get(cell, "checks")), 1);
	const json_t *f = finding(cell, "machine_code");
	ck_assert_ptr_nonnull(f);
	const char *text = json_string_value(json_object_get(f, "text"));
	ck_assert_msg(strcmp(json_string_value(json_object_get(f, "status")), status) == 0, "%s: %s", may_differ, text);
	ck_assert_msg(strstr(text, words) != NULL, "%s lacks '%s'", text, words);
	json_decref(cell);
}

#define CODE(counts, more) "{\"census\": {\"counts\": {" counts "}}" more "}"
#define S32 CODE("\"IMMA\": 64, \"I2F\": 256, \"LDS\": 100", "")

START_TEST(what_may_differ)
{
	expect("[\"matrix_instruction\"]", S32, S32, "pass", "nothing differs");
	expect("[\"matrix_instruction\"]", CODE("\"QMMA\": 64, \"I2F\": 256, \"LDS\": 100", ""), S32, "pass",
	       "IMMA 0 against 64");
	/* One conversion more. */
	expect("[\"matrix_instruction\"]", CODE("\"QMMA\": 64, \"I2F\": 257, \"LDS\": 100", ""), S32, "invalid",
	       "I2F 257 against 256");
	expect("[\"matrix_instruction\", \"i2f\"]", CODE("\"QMMA\": 64, \"I2F\": 2, \"LDS\": 100", ""), S32, "pass",
	       "I2F 2 against 256");
	/* The class that may differ is not the whole group. */
	expect("[\"matrix_instruction\", \"i2f\"]", CODE("\"QMMA\": 64, \"F2FP\": 1, \"LDS\": 100", ""), S32, "invalid",
	       "F2FP 1 against 0");
	expect("[\"matrix_instruction\", \"conversions\"]", CODE("\"QMMA\": 64, \"F2FP\": 384, \"LDS\": 100", ""), S32,
	       "pass", "F2FP 384");
	/* Built out of others: twice as many. */
	expect("[\"matrix_instruction\", \"conversions\"]", CODE("\"HMMA\": 128, \"F2FP\": 384, \"LDS\": 100", ""), S32,
	       "invalid", "matrix instructions 128 against 64");
	expect("[\"matrix_instruction\", \"conversions\", \"matrix_count\"]",
	       CODE("\"HMMA\": 128, \"I2F\": 256, \"LDS\": 100", ""), S32, "pass", "HMMA 128");
	expect("[\"conversions\"]", CODE("\"QMMA\": 64, \"I2F\": 256, \"LDS\": 100", ""), S32, "invalid",
	       "QMMA 64 against 0");
	/* Two of a hundred are within the bound, three are not. */
	expect("[\"nothing\"]", CODE("\"IMMA\": 64, \"I2F\": 256, \"LDS\": 102", ""), S32, "pass", "nothing");
	expect("[\"nothing\"]", CODE("\"IMMA\": 64, \"I2F\": 256, \"LDS\": 103", ""), S32, "invalid",
	       "LDS 103 against 100");
	expect("[\"memory_instructions\"]", CODE("\"IMMA\": 64, \"I2F\": 256, \"LDS\": 150", ""), S32, "pass",
	       "LDS 150");
	expect("[\"memory_instructions\"]", CODE("\"IMMA\": 64, \"I2F\": 256, \"LDS\": 100, \"STL\": 1", ""), S32,
	       "invalid", "STL 1 against 0");
}
END_TEST

/* What is left when matrix instructions, conversions, memory and spills are taken off. */
START_TEST(other_instructions)
{
	const char *base = "{\"census\": {\"instructions\": 1164, \"counts\": {\"IMMA\": 64, \"LDS\": 100}}}";
	expect("[\"i2f\"]",
	       "{\"census\": {\"instructions\": 1464, \"counts\": {\"IMMA\": 64, \"I2F\": 300, \"LDS\": 100}}}", base,
	       "pass", "I2F 300 against 0");
	expect("[\"nothing\"]",
	       "{\"census\": {\"instructions\": 1214, \"counts\": {\"IMMA\": 64, \"LDS\": 100, \"FFMA\": 50}}}", base,
	       "pass", "nothing");
	expect("[\"nothing\"]", "{\"census\": {\"instructions\": 1224, \"counts\": {\"IMMA\": 64, \"LDS\": 100}}}",
	       base, "invalid", "other instructions 1060 against 1000 (+6 %, bound 5 %)");
	expect("[\"nothing\"]",
	       "{\"census\": {\"instructions\": 1264, \"counts\": {\"IMMA\": 64, \"LDS\": 100, \"NOP\": 100}}}", base,
	       "pass", "nothing"); /* padding */
	expect("[\"instructions\"]", "{\"census\": {\"instructions\": 1224, \"counts\": {\"IMMA\": 64, \"LDS\": 100}}}",
	       base, "pass", "other instructions 1060 against 1000");
}
END_TEST

START_TEST(facts_of_the_artifact)
{
#define ARM(more) CODE("\"IMMA\": 64", more)
	const char *base = ARM(", \"registers\": 168, \"shared_bytes\": 65536, \"local_bytes\": 0, \"occupancy\": 1, "
			       "\"grid\": [8,1,1], "
			       "\"block\": [256,1,1]");
	expect("[\"nothing\"]", base, base, "pass", "nothing");
	expect("[\"nothing\"]",
	       ARM(", \"registers\": 172, \"shared_bytes\": 65536, \"local_bytes\": 0, \"occupancy\": 1, \"grid\": "
		   "[8,1,1], \"block\": "
		   "[256,1,1]"),
	       base, "pass", "nothing");
	expect("[\"nothing\"]",
	       ARM(", \"registers\": 180, \"shared_bytes\": 65536, \"local_bytes\": 0, \"occupancy\": 1, \"grid\": "
		   "[8,1,1], \"block\": "
		   "[256,1,1]"),
	       base, "invalid", "registers 180 against 168 (+7.14 %, bound 5 %)");
	expect("[\"registers\"]",
	       ARM(", \"registers\": 180, \"shared_bytes\": 65552, \"local_bytes\": 0, \"occupancy\": 1, \"grid\": "
		   "[8,1,1], \"block\": "
		   "[256,1,1]"),
	       base, "invalid", "shared bytes 65552 against 65536");
	expect("[\"registers\"]",
	       ARM(", \"registers\": 168, \"shared_bytes\": 65536, \"local_bytes\": 16, \"occupancy\": 2, \"grid\": "
		   "[9,1,1], \"block\": "
		   "[256,1,1]"),
	       base, "invalid",
	       "local bytes 16 against 0, blocks a multiprocessor 2 against 1 (+100 %, bound 0 %), grid 9 against 8");
	expect("[\"nothing\"]",
	       ARM(", \"shared_bytes\": 65536, \"local_bytes\": 0, \"occupancy\": 1, \"grid\": [8,1,1], \"block\": "
		   "[256,1,1]"),
	       base, "invalid", "registers known of s32 alone");
	expect("[\"nothing\"]", "{\"census\": null, \"census_reason\": \"no cuobjdump on the PATH\"}", base,
	       "inconclusive", "the machine code of f32 was not read: no cuobjdump on the PATH");
}
END_TEST

START_TEST(not_asked)
{
	json_t *cell = cell_of("[]", "null", S32, CODE("\"HMMA\": 9", ""));
	census_check(cell, NULL);
	ck_assert_int_eq(json_array_size(json_object_get(cell, "checks")), 0);
	json_decref(cell);
	cell = cell_of("[\"nothing\"]", "0.05", S32, CODE("\"HMMA\": 9", ""));
	json_object_set_new(cell, "measure", json_null());
	census_check(cell, NULL);
	ck_assert_int_eq(json_array_size(json_object_get(cell, "checks")), 0);
	json_decref(cell);
}
END_TEST

/* The published experiment that was withdrawn: the plain e4m3 form issued every 32.0 cycles, the s8 form every 16.1; with the block-scale form
 * 16.1 and 16.1. */
static void issue_case(double f32, double s32, const char *status, const char *words)
{
	json_t *cell = cell_of("[]", "0.05", "{\"instruction\": \"mma_e4m3\"}", "{\"instruction\": \"mma_s8\"}"),
	       *rates = json_pack("{s:f, s:f}", "mma_e4m3", f32, "mma_s8", s32);
	census_check(cell, &(struct census_files){.rates = rates, .rates_path = "rates.json"});
	const json_t *f = finding(cell, "issue_interval");
	ck_assert_ptr_nonnull(f);
	const char *text = json_string_value(json_object_get(f, "text"));
	ck_assert_str_eq(json_string_value(json_object_get(f, "status")), status);
	ck_assert_msg(strstr(text, words) != NULL, "%s", text);
	/* What was planted stands in the record, with where it is from. */
	const json_t *issue =
		json_object_get(json_object_get(json_array_get(json_object_get(cell, "arms"), 1), "artifact"), "issue");
	ck_assert_str_eq(json_string_value(json_object_get(issue, "source")), "rates.json");
	json_decref(cell);
	json_decref(rates);
}

START_TEST(withdrawn_experiment)
{
	issue_case(32.0, 16.1, "invalid", "mma_e4m3 32 cycles, mma_s8 16.1 (98.8 % apart, bound 5 %)");
	issue_case(16.1, 16.1, "pass", "16.1");
	issue_case(16.9, 16.1, "pass", "16.9"); /* 4.97 % */
	issue_case(17.0, 16.1, "invalid", "5.59 %");
	issue_case(16.1, 17.0, "invalid", "5.59 %"); /* either way round */
}
END_TEST

START_TEST(interval_unknown)
{
	json_t *cell = cell_of("[]", "0.05", "{\"instruction\": null, \"issue\": null, \"issue_reason\": \"no form\"}",
			       "{\"issue\": {\"form\": \"mma_s8\", \"interval\": 6.1, \"unit\": \"cycles\"}}");
	census_check(cell, NULL);
	const json_t *f = finding(cell, "issue_interval");
	ck_assert_str_eq(json_string_value(json_object_get(f, "status")), "inconclusive");
	ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(f, "text")), "f32 was not measured: no form"));
	json_decref(cell);
}
END_TEST

START_TEST(planted_census)
{
	json_t *cell = cell_of("[\"matrix_instruction\"]", "null", S32, S32),
	       *file = json_pack("{s:{s:{s:i, s:i}}}", "k.x/f32", "counts", "QMMA", 64, "F2F", 1);
	census_check(cell, &(struct census_files){.census = file, .census_path = "c.json"});
	const json_t *f = finding(cell, "machine_code");
	ck_assert_str_eq(json_string_value(json_object_get(f, "status")), "invalid");
	ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(f, "text")), "F2F 1 against 0"));
	ck_assert_int_eq(json_array_size(json_object_get(f, "moved")), 3); /* I2F, F2F, LDS */
	json_decref(cell);
	json_decref(file);
}
END_TEST

/* ---- files --------------------------------------------------------------------------------------------------------- */

static void refuse(json_t *(*load)(const char *, struct err *), const char *content, const char *words)
{
	struct err err = {{0}};
	FILE *f = fopen("census.json", "w");
	ck_assert(f && fputs(content, f) >= 0 && fclose(f) == 0);
	json_t *j = load("census.json", &err);
	if (!words) {
		ck_assert_msg(j != NULL, "%s", err.text);
		json_decref(j);
		return;
	}
	ck_assert_ptr_null(j);
	ck_assert_msg(strstr(err.text, words) != NULL, "'%s' lacks '%s'", err.text, words);
}

START_TEST(files)
{
	refuse(census_file_load, "{\"f32\": {\"counts\": {\"IMMA\": 64}, \"registers\": 12}}", NULL);
	refuse(census_file_load, "{\"f32\": {\"counts\": {\"IMA\": 64}}}",
	       "there is no class \"IMA\"; do you mean \"IMMA\"?");
	refuse(census_file_load, "{\"f32\": {\"counts\": {\"IMMA\": -1}}}", "IMMA is not a whole number");
	refuse(census_file_load, "{\"f32\": {\"counts\": {\"IMMA\": 1.5}}}", "IMMA is not a whole number");
	refuse(census_file_load, "{\"f32\": {\"count\": {\"IMMA\": 1}}}", "unknown key \"count\"");
	refuse(census_file_load, "{\"f32\": {\"registers\": 1}}", "has no \"counts\"");
	refuse(census_file_load, "{\"f32\": 3}", "is no object");
	refuse(census_file_load, "{}", "not an object with something in it");
	refuse(census_file_load, "[1", "--census");
	refuse(rates_file_load, "{\"mma_s8\": 16.1}", NULL);
	refuse(rates_file_load, "{\"mma_s8\": 0}", "is no number of cycles above 0");
	refuse(rates_file_load, "{\"mma_s8\": \"16\"}", "is no number of cycles");
	struct err err = {{0}};
	ck_assert_ptr_null(rates_file_load("/nonexistent/rates.json", &err));
	ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent/rates.json"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("census");
	TCase *t = tcase_create("census");
	tcase_add_checked_fixture(t, unit_enter, NULL);
	tcase_add_test(t, cuobjdump_by_function);
	tcase_add_test(t, cuobjdump_other_arch);
	tcase_add_test(t, nvdisasm);
	tcase_add_test(t, objdump);
	tcase_add_test(t, classes);
	tcase_add_test(t, own_code);
	tcase_add_test(t, tool_that_is_not_there);
	tcase_add_test(t, what_may_differ);
	tcase_add_test(t, other_instructions);
	tcase_add_test(t, facts_of_the_artifact);
	tcase_add_test(t, not_asked);
	tcase_add_test(t, withdrawn_experiment);
	tcase_add_test(t, interval_unknown);
	tcase_add_test(t, planted_census);
	tcase_add_test(t, files);
	suite_add_tcase(s, t);
	return unit_run(s);
}
