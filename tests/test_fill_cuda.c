/* The device's fill, audit, digest, scan and comparison against the host's, byte for byte. Without a device only its absence
 * is tested, and the program says that it was skipped. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "fill.h"
#include "test_compare.h"

enum { SKIPPED = 77 }; /* Meson's word for it */

static struct backend *device; /* NULL: none here */

static const struct {
	const char *name;
	struct fill_spec spec;
	bool integers; /* only for integer dtypes */
	bool bytes, reals;
} fills[] = {
	{"uniform", {.kind = FILL_UNIFORM, .range = {-1, 3}}, false, true, true},
	{"normal", {.kind = FILL_NORMAL, .mean = 0.5, .sd = 2}, false, false, true},
	{"bytes", {.kind = FILL_BYTES, .magnitude = {0, 126}}, false, true, true},
	{"constant", {.kind = FILL_CONSTANT, .value = 3}, false, true, true},
	{"zipf", {.kind = FILL_ZIPF, .exponent = 1.1}, true, false, false},
	{"k_hot", {.kind = FILL_K_HOT, .k = 5, .value = 1}, false, true, true},
	{"permutation", {.kind = FILL_PERMUTATION}, true, false, false},
	{"indices", {.kind = FILL_INDICES, .repeats = true}, true, false, false},
	{"indices without repeats", {.kind = FILL_INDICES, .repeats = false}, true, false, false},
	{"pattern", {.kind = FILL_PATTERN, .base = 1, .step = 2, .modulus = 7}, false, true, true},
	{"seed_lcg64_f32", {.kind = FILL_SEED_LCG64_F32, .has_seed = true, .seed = 7}, false, false, true},
	{"seed_lcg64_index", {.kind = FILL_SEED_LCG64_INDEX, .has_seed = true, .seed = 7}, true, false, false},
	{"seed_lcg32_wide", {.kind = FILL_SEED_LCG32_WIDE, .has_seed = true, .seed = 7}, false, true, false},
	{"seed_lcg32_mid", {.kind = FILL_SEED_LCG32_MID, .has_seed = true, .seed = 7}, false, true, false},
};

static bool integer(enum assay_dtype t)
{
	return t >= ASSAY_I64 && t <= ASSAY_U8;
}

/* Tries a fill of a dtype, dense or strided; returns whether it fits at all (the host says so). */
static bool same(int f, enum assay_dtype t, bool strided)
{
	const struct backend_ops *ops = backend_ops_of(device);
	struct fill_job job = {.spec = fills[f].spec,
			       .key = fill_key(0xB200, "test", fills[f].name, NULL, 0),
			       .dtype = t,
			       .lcg_seed = 7};
	job.shape = (struct assay_shape){.rank = 3, .dim = {3, 41, 100}, .index_bound = 120};
	if (strided)
		memcpy(job.shape.stride, (int64_t[]){50 * 104, 104, 1}, 3 * sizeof(int64_t));
	const size_t bytes = (strided ? 3 * 50 * 104 : 3 * 41 * 100) * (size_t)assay_dtype_bytes(t);
	struct err err = {""};
	unsigned char *want = malloc(bytes), *got = malloc(bytes);
	memset(want, 0x5a, bytes);
	const bool fits = fill_host(want, &job, &err);
	void *at = ops->alloc(device, bytes, &err);
	ck_assert_ptr_nonnull(at);
	ck_assert(ops->pattern(device, at, 0x5a5a5a5a, bytes / 4 * 4, &err));
	ck_assert_msg(ops->fill(device, at, &job, &err) == fits, "%s %d: the device says otherwise: %s", fills[f].name,
		      (int)t, err.text);
	if (fits) {
		uint64_t digest = 0;
		struct fill_audit a, b;
		const uint32_t readings = assay_dtype_bytes(t) == 1 ? 1u << ASSAY_E4M3 | 1u << ASSAY_I8 : 0;
		ck_assert(ops->download(device, got, at, bytes, &err));
		for (size_t i = 0; i < bytes / 4 * 4; i++)
			ck_assert_msg(want[i] == got[i], "%s dtype %d: byte %zu is %02x, host has %02x", fills[f].name,
				      (int)t, i, got[i], want[i]);
		ck_assert(ops->digest(device, at, bytes - 3, &digest, &err));
		ck_assert_uint_eq(digest, fill_digest(got, bytes - 3));
		ck_assert(fill_audit_host(want, &job, readings, &a, &err));
		ck_assert_msg(ops->audit(device, at, &job, readings, &b, &err), "%s", err.text);
		ck_assert_int_eq(a.n_readings, b.n_readings);
		ck_assert_int_eq(a.distinct, b.distinct);
		ck_assert_int_eq(a.out_of_bound, b.out_of_bound);
		for (int k = 0; k < a.n_readings; k++) {
			const struct fill_reading *x = &a.reading[k], *y = &b.reading[k];
			ck_assert_msg(x->as == y->as && x->n == y->n && x->nan == y->nan && x->inf == y->inf &&
					      x->denormal == y->denormal && x->zero == y->zero &&
					      x->negative == y->negative && x->positive == y->positive,
				      "%s dtype %d: the audits count differently", fills[f].name, (int)t);
			ck_assert((isnan(x->min) && isnan(y->min)) || (x->min == y->min && x->max == y->max));
		}
	}
	ops->free(device, at);
	free(want);
	free(got);
	return fits;
}

START_TEST(fills_are_the_hosts)
{
	int tried = 0;
	for (enum assay_dtype t = ASSAY_F64; t < ASSAY_RECORD; t++)
		for (int strided = 0; strided < 2; strided++) {
			const bool byte = assay_dtype_bytes(t) == 1;
			if ((fills[_i].integers && !integer(t)) || (integer(t) && !byte && !fills[_i].integers) ||
			    (byte && !fills[_i].bytes) ||
			    (!integer(t) && !byte && !fills[_i].integers && !fills[_i].reals))
				continue;
			tried += same(_i, t, strided != 0);
		}
	ck_assert_msg(tried > 0, "%s fitted no dtype", fills[_i].name);
}
END_TEST

START_TEST(scan_counts_and_finds)
{
	const struct backend_ops *ops = backend_ops_of(device);
	struct err err;
	int64_t differ = 0, first = 0;
	const size_t bytes = 4 * 100003;
	const uint32_t other = 7;
	char *at = ops->alloc(device, bytes, &err);
	ck_assert(ops->pattern(device, at, 0xA5C3E187u, bytes, &err));
	ck_assert(ops->scan(device, at, 0xA5C3E187u, bytes, &differ, &first, &err));
	ck_assert_int_eq(differ, 0);
	ck_assert_int_eq(first, -1);
	ck_assert(ops->upload(device, at + 4 * 77777, &other, 4, &err) &&
		  ops->upload(device, at + 4 * 99999, &other, 4, &err));
	ck_assert(ops->scan(device, at, 0xA5C3E187u, bytes, &differ, &first, &err));
	ck_assert_int_eq(differ, 2);
	ck_assert_int_eq(first, 4 * 77777);
	ops->free(device, at);
}
END_TEST

START_TEST(outputs_are_compared)
{
	compare_of(device, compare_sizes[_i]);
}
END_TEST

START_TEST(guards_are_looked_at_all_at_once)
{
	scan_all_of(device);
}
END_TEST

START_TEST(device_is_found_or_said_missing)
{
	struct err err = {""};
	struct device_peek peek;
	struct backend_config none = {.device = "no such device"};
	ck_assert(!backend_peek("cuda", &none, &peek, &err));
	ck_assert_ptr_nonnull(strstr(err.text, device ? "no such device" : "cuda"));
	if (!device)
		return;
	const struct device_info *info = backend_ops_of(device)->info(device);
	struct backend_config by_uuid = {.device = info->uuid}, by_name = {.device = info->name};
	ck_assert(backend_peek("cuda", &by_uuid, &peek, &err));
	ck_assert_str_eq(peek.uuid, info->uuid);
	ck_assert_msg(backend_peek("cuda", &by_name, &peek, &err) || strstr(err.text, "any of") != NULL, "%s",
		      err.text);
}
END_TEST

int main(void)
{
	struct err err = {""};
	device = backend_open("cuda", &(struct backend_config){0}, &err);
	if (!device)
		printf("fill_cuda: without a device only its absence is tested: %s\n", err.text);
	Suite *s = suite_create("fill_cuda");
	TCase *c = tcase_create("device");
	tcase_set_timeout(c, 60);
	if (device) {
		tcase_add_loop_test(c, fills_are_the_hosts, 0, (int)(sizeof fills / sizeof *fills));
		tcase_add_test(c, scan_counts_and_finds);
		tcase_add_loop_test(c, outputs_are_compared, 0, COMPARE_SIZES);
		tcase_add_test(c, guards_are_looked_at_all_at_once);
	}
	tcase_add_test(c, device_is_found_or_said_missing);
	suite_add_tcase(s, c);
	SRunner *r = srunner_create(s);
	srunner_set_fork_status(r, CK_NOFORK); /* a device context does not survive a fork */
	srunner_run_all(r, CK_ENV);
	const int failed = srunner_ntests_failed(r);
	srunner_free(r);
	if (device)
		backend_ops_of(device)->close(device);
	return failed ? 1 : device ? 0 : SKIPPED;
}
