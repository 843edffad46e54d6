/* What a fill says of itself: the audit, promises, and the jobs of a kernel. */
#include "test_fill.h"
#include "unit.h"

START_TEST(audit_counts)
{
	float v[] = {1, -2, NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-40f, -1e-40f, 3.5f};
	struct fill_job j = {.spec = {.kind = FILL_UNIFORM, .range = {-1, 1}},
			     .dtype = ASSAY_F32,
			     .shape = {.rank = 1, .dim = {10}}};
	struct fill_audit a;
	ck_assert(fill_audit_host(v, &j, 1u << ASSAY_F32, &a, NULL));
	ck_assert_int_eq(a.n_readings, 1);
	const struct fill_reading *r = &a.reading[0];
	ck_assert_int_eq(r->n, 10);
	ck_assert_int_eq(r->nan, 1);
	ck_assert_int_eq(r->inf, 2);
	ck_assert_int_eq(r->denormal, 2);
	ck_assert_int_eq(r->zero, 2);
	ck_assert_int_eq(r->negative, 3);
	ck_assert_int_eq(r->positive, 4);
	ck_assert_double_eq(r->min, -2);
	ck_assert_double_eq(r->max, 3.5);
	ck_assert_int_eq(a.distinct, -1);

	/* the same numbers, wider and through the general loop */
	double w[10];
	for (int i = 0; i < 10; i++)
		w[i] = (double)v[i];
	w[7] = 1e-310;
	w[8] = -1e-310;
	struct fill_reading was = *r;
	j.dtype = ASSAY_F64;
	ck_assert(fill_audit_host(w, &j, 0, &a, NULL));
	was.as = ASSAY_F64;
	ck_assert_int_eq(a.reading[0].nan, was.nan);
	ck_assert_int_eq(a.reading[0].denormal, was.denormal);
	ck_assert_int_eq(a.reading[0].negative, was.negative);
	ck_assert_int_eq(a.reading[0].positive, was.positive);
	ck_assert_double_eq(a.reading[0].max, was.max);

	/* bytes in two readings: 0xFF is -1, and a NaN; 0x80 is -128, and minus zero; 0x01 is 1, and denormal */
	unsigned char b[] = {0xFF, 0x80, 0x01, 0x7E, 0x30};
	j.dtype = ASSAY_I8;
	j.shape.dim[0] = 5;
	ck_assert(fill_audit_host(b, &j, 1u << ASSAY_E4M3, &a, NULL));
	ck_assert_int_eq(a.n_readings, 2);
	ck_assert_int_eq(a.reading[0].negative, 2);
	ck_assert_double_eq(a.reading[0].min, -128);
	ck_assert_double_eq(a.reading[0].max, 126);
	ck_assert_int_eq(a.reading[1].as, ASSAY_E4M3);
	ck_assert_int_eq(a.reading[1].nan, 1);
	ck_assert_int_eq(a.reading[1].zero, 1);
	ck_assert_int_eq(a.reading[1].denormal, 1);
	ck_assert_double_eq(a.reading[1].max, 448);

	/* a float is not read as bytes, unless it was made of bytes; nor a byte as a float */
	j.dtype = ASSAY_F32;
	j.shape.dim[0] = 10;
	ck_assert(fill_audit_host(v, &j, 1u << ASSAY_E4M3 | 1u << ASSAY_F64, &a, NULL));
	ck_assert_int_eq(a.n_readings, 1);
	j.spec = (struct fill_spec){.kind = FILL_BYTES, .magnitude = {0, 126}};
	ck_assert(fill_audit_host(v, &j, 1u << ASSAY_E4M3, &a, NULL));
	ck_assert_int_eq(a.n_readings, 2);
	ck_assert_int_eq(a.reading[1].n, 40);
	/* and a promise that speaks of other types is held against the tensor's own */
	struct promise other = {.finite_as = 1u << ASSAY_F64};
	char buf[256];
	ck_assert(fill_audit_host(v, &j, other.finite_as, &a, NULL));
	ck_assert_str_eq(fill_broken_promise(&other, &a, "x", buf, sizeof buf),
			 "NaN: 1 of 10 elements of x read as f32");
	j.dtype = ASSAY_I8;

	/* parts of a large tensor are merged */
	static unsigned char large[1 << 20];
	memset(large, 0x7F, sizeof large);
	j.shape.dim[0] = sizeof large;
	ck_assert(fill_audit_host(large, &j, 1u << ASSAY_E4M3, &a, NULL));
	ck_assert_int_eq(a.reading[1].nan, sizeof large);
	ck_assert(isnan(a.reading[1].min));
}
END_TEST

START_TEST(audit_of_row_numbers)
{
	int32_t v[] = {0, 5, 5, 9, -1, 10, 3};
	struct fill_job j = {.spec = {.kind = FILL_INDICES},
			     .dtype = ASSAY_I32,
			     .shape = {.rank = 1, .dim = {7}, .index_bound = 10}};
	struct fill_audit a;
	char buf[256];
	ck_assert(fill_audit_host(v, &j, 0, &a, NULL));
	ck_assert_int_eq(a.distinct, 4);
	ck_assert_int_eq(a.out_of_bound, 2);
	ck_assert_str_eq(fill_broken_promise(NULL, &a, "idx", buf, sizeof buf),
			 "row numbers: 2 of 7 elements of idx are outside their bound (-1 to 10)");
	v[4] = v[5] = 0;
	ck_assert(fill_audit_host(v, &j, 0, &a, NULL));
	ck_assert_int_eq(a.distinct, 4);
	ck_assert_ptr_null(fill_broken_promise(NULL, &a, "idx", buf, sizeof buf));
}
END_TEST

/* The three things in the seeds that are not what they say, and the forms that are. */
START_TEST(promises_catch_the_seeds)
{
	enum { N = 100000 };
	static unsigned char v[4 * N];
	char buf[256];
	struct fill_audit a;
	struct promise both = {.finite_as = 1u << ASSAY_I8 | 1u << ASSAY_E4M3};
	struct fill_job j = plain_job(FILL_SEED_LCG32_WIDE, ASSAY_I8, 1, N);
	j.shape.index_bound = 0;
	j.lcg_seed = 0x12345678;
	must_fill(v, &j);
	ck_assert(fill_audit_host(v, &j, both.finite_as, &a, NULL));
	const char *broken = fill_broken_promise(&both, &a, "w.qs", buf, sizeof buf);
	ck_assert_ptr_nonnull(broken);
	ck_assert_msg(strncmp(broken, "NaN: ", 5) == 0 && strstr(broken, "w.qs read as e4m3"), "%s", broken);

	j = plain_job(FILL_BYTES, ASSAY_I8, 1, N);
	j.shape.index_bound = 0;
	must_fill(v, &j);
	ck_assert(fill_audit_host(v, &j, both.finite_as, &a, NULL));
	ck_assert_ptr_null(fill_broken_promise(&both, &a, "w.qs", buf, sizeof buf));
	ck_assert_int_gt(a.reading[1].denormal, 0);
	both.no_denormals_as = 1u << ASSAY_E4M3;
	ck_assert_ptr_nonnull(fill_broken_promise(&both, &a, "w.qs", buf, sizeof buf));

	struct promise sign = {.sign = PROMISE_BOTH, .has_range = true, .range = {-1, 1}};
	j = plain_job(FILL_SEED_LCG64_F32, ASSAY_F32, 1, N);
	must_fill(v, &j);
	ck_assert(fill_audit_host(v, &j, 0, &a, NULL));
	ck_assert_int_eq(a.reading[0].positive, 0);
	broken = fill_broken_promise(&sign, &a, "q", buf, sizeof buf);
	ck_assert_msg(broken && strncmp(broken, "sign: both promised", 19) == 0, "%s", broken ? broken : "kept");
	j.spec.kind = FILL_UNIFORM;
	must_fill(v, &j);
	ck_assert(fill_audit_host(v, &j, 0, &a, NULL));
	ck_assert_ptr_null(fill_broken_promise(&sign, &a, "q", buf, sizeof buf));
	sign.range[1] = 0.5;
	ck_assert_ptr_nonnull(fill_broken_promise(&sign, &a, "q", buf, sizeof buf));
	sign = (struct promise){.sign = PROMISE_POSITIVE};
	ck_assert_ptr_nonnull(fill_broken_promise(&sign, &a, "q", buf, sizeof buf));
	/* NaN is in no range */
	float nan[2] = {0, NAN};
	struct promise range = {.has_range = true, .range = {-1, 1}};
	j.shape = (struct assay_shape){.rank = 1, .dim = {2}};
	ck_assert(fill_audit_host(nan, &j, 0, &a, NULL));
	ck_assert_ptr_nonnull(fill_broken_promise(&range, &a, "q", buf, sizeof buf));
	json_t *o = fill_audit_to_json(&a);
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(json_object_get(o, "readings"), 0), "nan")),
			 1);
	ck_assert(json_is_null(json_object_get(o, "distinct")));
	json_decref(o);
}
END_TEST

/* ---- resolve -------------------------------------------------------------------------------------------------------- */

static const struct assay_field block_fields[] = {
	{"d", ASSAY_F16, 0, 1, ASSAY_SCALE, {0.01, 0.03}},
	{"qs", ASSAY_I8, 2, 32, ASSAY_DATA, {0, 0}},
};
static const struct assay_tensor tensors[] = {
	{.name = "q", .role = ASSAY_IN, .dtype = ASSAY_F32, .dims = "t r"},
	{.name = "idx", .role = ASSAY_IN, .dtype = ASSAY_I32, .use = ASSAY_INDEX, .dims = "t k"},
	{.name = "w",
	 .role = ASSAY_IN,
	 .dtype = ASSAY_RECORD,
	 .dims = "t b",
	 .fields = block_fields,
	 .n_fields = 2,
	 .record_bytes = 34},
	{.name = "out", .role = ASSAY_OUT, .dtype = ASSAY_F32, .dims = "t r"},
};
static const struct assay_param params[] = {{.name = "t", .type = ASSAY_INT}, {.name = "kv", .type = ASSAY_INT}};

static int kernel_shape(const struct assay_point *pt, int t, struct assay_shape *s)
{
	*s = (struct assay_shape){.rank = 2, .dim = {pt->v[0].i, 16}, .index_bound = t == 1 ? pt->v[1].i : 0};
	return 0;
}

static const struct assay_kernel kernel = {
	.abi = ASSAY_ABI,
	.name = "test.kernel",
	.params = params,
	.n_params = 2,
	.tensors = tensors,
	.n_tensors = 4,
	.shape = kernel_shape,
};

START_TEST(resolve_by_use_and_rule)
{
	struct assay_point pt = {.v = {{.i = 4}, {.i = 2048}}};
	struct fill_job j[ASSAY_MAX_FIELDS], again[ASSAY_MAX_FIELDS];
	struct fill_rule rules[] = {
		{.spec = {.kind = FILL_NORMAL, .sd = 1}},
		{.tensor = "w", .field = "qs", .spec = {.kind = FILL_BYTES, .magnitude = {0, 126}}},
		{.tensor = "idx", .spec = {.kind = FILL_ZIPF, .exponent = 1.1}},
	};
	struct distribution d = {.name = "x", .rules = rules, .n_rules = 2};
	struct err e = {0};
	ck_assert_msg(fill_resolve(&kernel, 0, &pt, &d, 1, 0, j, &e) == 1, "%s", e.text);
	ck_assert_int_eq(j[0].spec.kind, FILL_NORMAL);
	ck_assert_uint_eq(j[0].key, fill_key(1, "test.kernel", "q", NULL, 0));
	ck_assert_int_eq(fill_resolve(&kernel, 0, &pt, &d, 1, 1, again, &e), 1);
	ck_assert_uint_ne(j[0].key, again[0].key);
	ck_assert_int_eq(fill_resolve(&kernel, 1, &pt, &d, 1, 0, j, &e), 1);
	ck_assert_int_eq(j[0].spec.kind, FILL_INDICES);
	ck_assert(j[0].spec.repeats);
	ck_assert_int_eq(j[0].shape.index_bound, 2048);
	ck_assert_msg(fill_resolve(&kernel, 2, &pt, &d, 1, 0, j, &e) == 2, "%s", e.text);
	ck_assert_int_eq(j[0].spec.kind, FILL_UNIFORM);
	ck_assert_double_eq(j[0].spec.range[1], 0.03);
	ck_assert_int_eq(j[1].spec.kind, FILL_BYTES);
	ck_assert_int_eq(j[1].field_offset, 2);
	ck_assert_int_eq(fill_resolve(&kernel, 3, &pt, &d, 1, 0, j, &e), 0);
	d.n_rules = 3;
	ck_assert_int_eq(fill_resolve(&kernel, 1, &pt, &d, 1, 0, j, &e), 1);
	ck_assert_int_eq(j[0].spec.kind, FILL_ZIPF);
	/* the rule for all data does not fit bytes */
	d.n_rules = 1;
	ck_assert_int_eq(fill_resolve(&kernel, 2, &pt, &d, 1, 0, j, &e), -1);
	ck_assert_str_eq(e.text, "test.kernel.w.qs: fill 'normal' wants a floating-point type, this is s8");
	rules[0].spec = (struct fill_spec){.kind = FILL_UNIFORM, .range = {-1, 1}};
	ck_assert_int_eq(fill_resolve(&kernel, 2, &pt, &d, 1, 0, j, &e), -1);
	ck_assert_msg(strstr(e.text, "leaves 2 values of s8") != NULL, "%s", e.text);
	rules[0].spec.range[1] = 100;
	ck_assert_int_eq(fill_resolve(&kernel, 2, &pt, &d, 1, 0, j, &e), 2);
}
END_TEST

START_TEST(resolve_seeds_of_the_documents)
{
	struct assay_point pt = {.v = {{.i = 4}, {.i = 2048}}};
	struct fill_job j[ASSAY_MAX_FIELDS];
	struct fill_rule rules[] = {
		{.spec = {.kind = FILL_SEED_LCG64_F32, .has_seed = true, .seed = 0xB2000006, .seed_xor = {"t", "kv"}}},
	};
	struct distribution d = {.name = "x", .rules = rules, .n_rules = 1};
	struct err e = {0};
	ck_assert_int_eq(fill_resolve(&kernel, 0, &pt, &d, 1, 0, j, &e), 1);
	ck_assert_uint_eq(j[0].lcg_seed, (0xB2000006ull ^ 4 ^ 2048) | 1);
	ck_assert_int_eq(fill_resolve(&kernel, 0, &pt, &d, 1, 1, j, &e), 1);
	ck_assert_uint_ne(j[0].lcg_seed, (0xB2000006ull ^ 4 ^ 2048) | 1);
	rules[0].spec.seed_xor[1] = "kw";
	ck_assert_int_eq(fill_resolve(&kernel, 0, &pt, &d, 1, 0, j, &e), -1);
	ck_assert_str_eq(e.text, "test.kernel.q: seed_xor names 'kw', which is no parameter of test.kernel");
}
END_TEST

START_TEST(misfits_are_refused)
{
	struct {
		struct fill_job j;
		const char *says;
	} bad[] = {
		{plain_job(FILL_ZIPF, ASSAY_F32, 2, 8), "wants integers, this is f32"},
		{plain_job(FILL_NORMAL, ASSAY_I32, 2, 8), "wants a floating-point type"},
		{plain_job(FILL_SEED_LCG32_WIDE, ASSAY_F16, 2, 8), "one-byte elements"},
		{plain_job(FILL_INDICES, ASSAY_U8, 2, 8), "u8 holds 0 to 255"},
		{plain_job(FILL_INDICES, ASSAY_I32, 2, 1001), "cannot differ"},
		{plain_job(FILL_K_HOT, ASSAY_F32, 2, 8), "k is 9"},
		{plain_job(FILL_UNIFORM, ASSAY_E4M3, 2, 8), "e4m3 holds"},
		{plain_job(FILL_UNIFORM, ASSAY_F32, 2, 8), "LOW below HIGH"},
		{plain_job(FILL_UNIFORM, ASSAY_BF16, 2, 8), "no number"},
		{plain_job(FILL_BYTES, ASSAY_I8, 2, 8), "0 to 127"},
		{plain_job(FILL_CONSTANT, ASSAY_I8, 2, 8), "not a whole number"},
		{plain_job(FILL_PATTERN, ASSAY_F32, 2, 8), "modulus"},
		{plain_job(FILL_NPY, ASSAY_F32, 2, 8), "file: PATH"},
		{plain_job(FILL_PERMUTATION, ASSAY_I8, 2, 200), "s8 holds"},
		{plain_job(FILL_CONSTANT, ASSAY_I32, 2, 8), "row numbers 1000 to 1000, but there are rows 0 to 999"},
		{plain_job(FILL_UNIFORM, ASSAY_I32, 2, 8), "row numbers -1 to 0"},
		{plain_job(FILL_PERMUTATION, ASSAY_I32, 2, 8), "row numbers 0 to 7"},
		{plain_job(FILL_BYTES, ASSAY_I32, 2, 8), "does not make row numbers"},
		{plain_job(FILL_ZIPF, ASSAY_I32, 2, 8), "for tensors of row numbers"},
	};
	bad[0].j.spec.exponent = 1;
	bad[14].j.spec.value = 1000;
	bad[15].j.spec.range[0] = -1;
	bad[16].j.shape.index_bound = 7;
	bad[18].j.shape.index_bound = 0;
	bad[4].j.spec.repeats = false;
	bad[5].j.spec.k = 9;
	bad[6].j.spec.range[1] = 500;
	bad[7].j.spec.range[1] = -1;
	bad[8].j.spec.range[0] = 1.0001;
	bad[8].j.spec.range[1] = 1.0002;
	bad[9].j.spec.magnitude[1] = 128;
	bad[10].j.spec.value = 0.5;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct err e = {0};
		unsigned char p[8192];
		ck_assert_msg(!fill_host(p, &bad[i].j, &e), "%zu was accepted", i);
		ck_assert_msg(strstr(e.text, bad[i].says) != NULL, "%zu says '%s', not '%s'", i, e.text, bad[i].says);
	}
}
END_TEST

START_TEST(empty_tensors_are_fine)
{
	for (int i = 0; i < N_RUNNABLE; i++) {
		struct fill_job j = runnable_job(i, 3, 0);
		struct fill_audit a;
		j.shape.index_bound = 0;
		must_fill(NULL, &j);
		ck_assert(fill_audit_host(NULL, &j, 0, &a, NULL));
		ck_assert_int_eq(a.reading[0].n, 0);
	}
	struct fill_job scalar = plain_job(FILL_CONSTANT, ASSAY_F64, 0, 0);
	double v = 0;
	scalar.shape = (struct assay_shape){.rank = 0};
	scalar.spec.value = 2.25;
	must_fill(&v, &scalar);
	ck_assert_double_eq(v, 2.25);
}
END_TEST

START_TEST(kinds_have_names)
{
	for (int k = FILL_DEFAULT; k <= FILL_SEED_LCG32_MID; k++)
		ck_assert_int_eq(fill_kind_of(fill_kind_name((enum fill_kind)k)), k);
	ck_assert_int_eq(fill_kind_of("unifrom"), -1);
	/* the grammar has them in the same order */
	for (int k = 0; grammar_fills[k]; k++)
		ck_assert_str_eq(grammar_fills[k], fill_kind_name((enum fill_kind)k));
	for (int t = 0; grammar_dtypes[t]; t++)
		ck_assert_int_eq(registry_dtype(grammar_dtypes[t]), t);
}
END_TEST

START_TEST(draws_below_a_bound_are_fair)
{
	/* a bound just above 2^63 would favour the lower half two to one without the second draw */
	uint64_t bound = (1ull << 63) + (1ull << 62);
	int low = 0;
	for (uint64_t i = 0; i < 30000; i++) {
		uint64_t v = fill_below(fill_mix(i), bound);
		ck_assert(v < bound);
		low += v < bound / 3;
	}
	ck_assert_int_lt(abs(low - 10000), 400);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fill_audit");
	TCase *c = tcase_create("fill");
	tcase_add_test(c, audit_counts);
	tcase_add_test(c, audit_of_row_numbers);
	tcase_add_test(c, promises_catch_the_seeds);
	tcase_add_test(c, resolve_by_use_and_rule);
	tcase_add_test(c, resolve_seeds_of_the_documents);
	tcase_add_test(c, misfits_are_refused);
	tcase_add_test(c, empty_tensors_are_fine);
	tcase_add_test(c, kinds_have_names);
	tcase_add_test(c, draws_below_a_bound_are_fair);
	suite_add_tcase(s, c);
	return unit_run(s);
}
