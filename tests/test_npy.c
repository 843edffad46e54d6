#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fill.h"
#include "npy.h"
#include "unit.h"

/* A file of format version v with this dictionary and these data, as NumPy lays it out. */
static size_t make(unsigned char *out, int v, const char *dict, const void *data, size_t bytes)
{
	size_t n = strlen(dict), head = v == 1 ? 10 : 12, pad = (64 - (head + n + 1) % 64) % 64, len = n + pad + 1;
	memcpy(out, "\x93NUMPY", 6);
	out[6] = (unsigned char)v;
	out[7] = 0;
	out[8] = (unsigned char)len;
	out[9] = (unsigned char)(len >> 8);
	if (v > 1)
		out[10] = out[11] = 0;
	memcpy(out + head, dict, n);
	memset(out + head + n, ' ', pad);
	out[head + n + pad] = '\n';
	if (bytes)
		memcpy(out + head + len, data, bytes);
	return head + len + bytes;
}

static const char path[] = "a.npy";

static void write_file(const void *p, size_t bytes)
{
	FILE *f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(p, 1, bytes, f), bytes);
	ck_assert_int_eq(fclose(f), 0);
}

static const float numbers[6] = {1, 2, 3, 4.5f, -5, 6};

START_TEST(reads_all_versions)
{
	unsigned char file[512];
	for (int v = 1; v <= 3; v++) {
		size_t n = make(file, v, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", numbers,
				sizeof numbers);
		struct npy_header h;
		struct err e = {0};
		ck_assert_msg(npy_parse(file, n, &h, &e), "%s", e.text);
		ck_assert_int_eq(h.rank, 2);
		ck_assert_int_eq(h.dim[1], 3);
		ck_assert_uint_eq(h.data_offset % 64, 0);
		float got[6];
		struct assay_shape s = {.rank = 2, .dim = {2, 3}};
		write_file(file, n);
		ck_assert_msg(npy_read(path, ASSAY_F32, &s, got, sizeof got, &e), "%s", e.text);
		ck_assert_mem_eq(got, numbers, sizeof got);
	}
}
END_TEST

START_TEST(fills_from_a_file)
{
	unsigned char file[512];
	float got[2][5];
	size_t n =
		make(file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", numbers, sizeof numbers);
	write_file(file, n);
	struct fill_job j = {.spec = {.kind = FILL_NPY, .path = path},
			     .dtype = ASSAY_F32,
			     .shape = {.rank = 2, .dim = {2, 3}, .stride = {5, 1}}};
	struct err e = {0};
	memset(got, 0, sizeof got);
	ck_assert_msg(fill_host(got, &j, &e), "%s", e.text);
	remove(path);
	for (int r = 0; r < 2; r++) {
		ck_assert_mem_eq(got[r], numbers + 3 * r, 12);
		ck_assert(got[r][3] == 0 && got[r][4] == 0);
	}
	ck_assert(!fill_host(got, &j, &e));
	ck_assert_msg(strstr(e.text, path) && strstr(e.text, "cannot be opened"), "%s", e.text);
}
END_TEST

START_TEST(row_numbers_of_a_file_are_looked_at)
{
	unsigned char file[512];
	int32_t rows[4] = {0, 9, 10, 3}, got[4];
	size_t n = make(file, 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }", rows, sizeof rows);
	write_file(file, n);
	struct fill_job j = {.spec = {.kind = FILL_NPY, .path = path},
			     .dtype = ASSAY_I32,
			     .shape = {.rank = 1, .dim = {4}, .index_bound = 11}};
	struct err e = {0};
	bool inside = fill_host(got, &j, &e);
	j.shape.index_bound = 10;
	bool outside = fill_host(got, &j, &e);
	ck_assert(inside && !outside);
	ck_assert_msg(strstr(e.text, "element 2 is 10, but there are rows 0 to 9") != NULL, "%s", e.text);
}
END_TEST

START_TEST(other_shapes_of_text)
{
	unsigned char file[512];
	struct npy_header h;
	struct err e = {0};
	size_t n = make(file, 1, "{\"shape\":(),\"fortran_order\":False,\"descr\":\"|i1\"}", "x", 1);
	ck_assert_msg(npy_parse(file, n, &h, &e), "%s", e.text);
	ck_assert_int_eq(h.rank, 0);
	ck_assert_uint_eq(h.data_bytes, 1);
	n = make(file, 1, "{'descr': '|V2', 'fortran_order': False, 'shape': (0,), }", NULL, 0);
	ck_assert_msg(npy_parse(file, n, &h, &e), "%s", e.text);
	ck_assert_int_eq(h.rank, 1);
	ck_assert_uint_eq(h.data_bytes, 0);
}
END_TEST

START_TEST(refuses)
{
	static const struct {
		const char *dict, *says;
	} bad[] = {
		{"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", "big-endian"},
		{"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", "Fortran"},
		{"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3), }", "neither"},
		{"{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3), }", "plain number"},
		{"{'descr': '<f16', 'fortran_order': False, 'shape': (2, 3), }", "1 to 8"},
		{"{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }", "plain number"},
		{"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }", "record"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }", "whole numbers"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", "whole numbers"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': 6, }", "no tuple"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1), }", "dimensions"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "too large"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "too large"},
		{"{'descr': '<f4', 'fortran_order': False}", "lacks 'shape'"},
		{"{'descr': '<f4', 'shape': (1,)}", "lacks 'fortran_order'"},
		{"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "second"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", "unknown key 'x'"},
		{"'descr'", "no dictionary"},
		{"{'descr", "no dictionary"},
	};
	unsigned char file[512];
	struct npy_header h;
	struct err e;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		size_t n = make(file, 1, bad[i].dict, numbers, sizeof numbers);
		ck_assert_msg(!npy_parse(file, n, &h, &e), "accepted: %s", bad[i].dict);
		ck_assert_msg(strstr(e.text, bad[i].says) != NULL, "%s: says '%s', not '%s'", bad[i].dict, e.text,
			      bad[i].says);
	}
	size_t n =
		make(file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", numbers, sizeof numbers);
	ck_assert(!npy_parse(file, 60, &h, &e));
	ck_assert_msg(strstr(e.text, "cut short") != NULL, "%s", e.text);
	ck_assert(!npy_parse(file, 9, &h, &e));
	file[6] = 4;
	ck_assert(!npy_parse(file, n, &h, &e));
	ck_assert_msg(strstr(e.text, "format 4.0") != NULL, "%s", e.text);
}
END_TEST

START_TEST(refuses_what_does_not_fit)
{
	static const struct {
		enum assay_dtype t;
		struct assay_shape s;
		int extra;
		const char *says;
	} bad[] = {
		{ASSAY_F16, {.rank = 2, .dim = {2, 3}}, 0, "its elements are 'f4', the tensor's are f16"},
		{ASSAY_I32, {.rank = 2, .dim = {2, 3}}, 0, "its elements are 'f4', the tensor's are s32"},
		{ASSAY_F32, {.rank = 2, .dim = {3, 2}}, 0, "its shape is [2, 3], the tensor's is [3, 2]"},
		{ASSAY_F32, {.rank = 1, .dim = {6}}, 0, "its shape is [2, 3], the tensor's is [6]"},
		{ASSAY_F32, {.rank = 2, .dim = {2, 3}}, -1, "cut short"},
		{ASSAY_F32, {.rank = 2, .dim = {2, 3}}, 1, "goes on"},
	};
	unsigned char file[512];
	float got[6];
	size_t n =
		make(file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", numbers, sizeof numbers);
	file[n] = 0;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct err e = {0};
		write_file(file, (size_t)((int)n + bad[i].extra));
		bool ok = npy_read(path, bad[i].t, &bad[i].s, got, 6 * assay_dtype_bytes(bad[i].t), &e);
		/* A wrong length is seen without the tensor, and in the same words. */
		struct err early = {0};
		ck_assert_int_eq(npy_check(path, &early), bad[i].extra == 0);
		ck_assert_str_eq(early.text, bad[i].extra ? e.text : "");
		ck_assert(!ok);
		ck_assert_msg(strncmp(e.text, path, strlen(path)) == 0 && strstr(e.text, bad[i].says), "%s", e.text);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("npy");
	TCase *c = tcase_create("npy");
	tcase_add_checked_fixture(c, unit_enter, NULL);
	tcase_add_test(c, reads_all_versions);
	tcase_add_test(c, fills_from_a_file);
	tcase_add_test(c, row_numbers_of_a_file_are_looked_at);
	tcase_add_test(c, other_shapes_of_text);
	tcase_add_test(c, refuses);
	tcase_add_test(c, refuses_what_does_not_fit);
	suite_add_tcase(s, c);
	return unit_run(s);
}
