/* Expected values come from gen_fill.py, which makes them from the definitions in words. */
#include "test_fill.h"
#include "unit.h"

START_TEST(keys_as_defined)
{
	json_t *all = expected(), *list = json_object_get(all, "keys");
	ck_assert_uint_eq(json_array_size(list), 2);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *k = json_array_get(list, i);
		ck_assert_uint_eq(fill_key((uint64_t)json_integer_value(json_array_get(k, 1)),
					   json_string_value(json_array_get(k, 2)),
					   json_string_value(json_array_get(k, 3)),
					   json_string_value(json_array_get(k, 4)),
					   (int)json_integer_value(json_array_get(k, 5))),
				  hex(json_array_get(k, 0)));
	}
	json_decref(all);
}
END_TEST

START_TEST(values_as_defined)
{
	json_t *all = expected(), *list = json_object_get(all, "cases");
	ck_assert_uint_gt(json_array_size(list), 20);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *c = json_array_get(list, i), *dims = json_object_get(c, "dims"), *at = json_object_get(c, "at");
		const char *name = json_string_value(json_object_get(c, "name"));
		struct fill_job j = {.spec = spec_of(json_object_get(c, "spec")),
				     .key = hex(json_object_get(c, "key"))};
		j.dtype = (enum assay_dtype)registry_dtype(json_string_value(json_object_get(c, "dtype")));
		j.shape.rank = (int)json_array_size(dims);
		for (size_t d = 0; d < json_array_size(dims); d++)
			j.shape.dim[d] = json_integer_value(json_array_get(dims, d));
		j.shape.index_bound = json_integer_value(json_object_get(c, "bound"));
		if (json_object_get(c, "lcg"))
			j.lcg_seed = hex(json_object_get(c, "lcg"));
		int size = (int)assay_dtype_bytes(j.dtype);
		unsigned char *p = malloc((size_t)assay_shape_count(&j.shape) * (size_t)size);
		struct fill_gen g;
		must_fill(p, &j);
		ck_assert(fill_gen_make(&j, &g, NULL));
		for (size_t k = 0; k < json_array_size(at); k++) {
			int64_t n = json_integer_value(json_array_get(at, k)), offset;
			uint64_t want = hex(json_array_get(json_object_get(c, "want"), k)), got = bits_at(p, size, n);
			ck_assert_msg(got == want, "%s, element %lld: %llx, want %llx", name, (long long)n,
				      (unsigned long long)got, (unsigned long long)want);
			/* the form for a thread an element */
			uint64_t one = fill_element_at(&g, n, &offset);
			one &= size == 8 ? ~0ull : (1ull << 8 * size) - 1;
			ck_assert_int_eq(offset, n * size);
			ck_assert_msg(one == want, "%s, element %lld alone", name, (long long)n);
		}
		free(p);
	}
	json_decref(all);
}
END_TEST

START_TEST(formats_round_to_nearest_even)
{
	json_t *all = expected(), *codes = json_object_get(all, "codes"), *list;
	const char *name;
	ck_assert_uint_eq(json_object_size(codes), 4);
	json_object_foreach(codes, name, list)
	{
		struct fill_format f = fill_format_of((enum assay_dtype)registry_dtype(name));
		for (size_t i = 0; i < json_array_size(list); i++) {
			double x = fill_double_of(hex(json_array_get(json_array_get(list, i), 0)));
			uint64_t want = hex(json_array_get(json_array_get(list, i), 1));
			ck_assert_msg(fill_encode(x, f) == want, "%s of %.17g: %x, want %llx", name, x,
				      fill_encode(x, f), (unsigned long long)want);
		}
		/* every code that is a number comes back as itself */
		for (uint32_t u = 0; u < 1u << (1 + f.exponent_bits + f.mantissa_bits); u++) {
			double v = fill_decode(u, f);
			if (isfinite(v))
				ck_assert_uint_eq(fill_encode(v, f), u);
		}
	}
	/* f32 against the hardware's conversion */
	struct fill_format f = fill_format_of(ASSAY_F32);
	for (uint64_t i = 0; i < 200000; i++) {
		uint64_t r = fill_mix(i);
		/* exponents around f32's, denormals and overflow among them */
		double x = fill_double_of((r & 0x800FFFFFFFFFFFFFull) |
					  (uint64_t)(1023 - 160 + (int)(r >> 52 & 255) * 320 / 255) << 52);
		if (i % 3 == 0)
			x = fill_double_of(fill_bits_of(x) & ~0x0FFFFFFFull); /* ties */
		ck_assert_uint_eq(fill_encode(x, f), fill_bits_of_float((float)x));
	}
	json_decref(all);
}
END_TEST

START_TEST(normal_is_the_quantile)
{
	json_t *all = expected(), *o = json_object_get(all, "normal"), *want = json_object_get(o, "want");
	struct fill_job j = plain_job(FILL_NORMAL, ASSAY_F64, 0, 0);
	double v[200];
	j.key = hex(json_object_get(o, "key"));
	j.shape = (struct assay_shape){.rank = 1, .dim = {200}};
	must_fill(v, &j);
	for (size_t i = 0; i < 200; i++) {
		double w = json_number_value(json_array_get(want, i));
		ck_assert_msg(fabs(v[i] - w) <= 4e-15 * fabs(w), "%zu: %.17g, want %.17g", i, v[i], w);
	}
	json_decref(all);
	/* the ends of the tails are finite, and lie apart */
	ck_assert_double_lt(fill_normal(0), -8.2);
	ck_assert_double_gt(fill_normal(0), -8.3);
	ck_assert(fill_normal(~0ull) == -fill_normal(0));
	ck_assert(fill_normal(1ull << 63) == -fill_normal((1ull << 63) - 1));
}
END_TEST

START_TEST(log_and_exp_are_near_the_library)
{
	for (uint64_t i = 1; i < 100000; i++) {
		double x = fill_double_of((fill_mix(i) & 0xFFFFFFFFFFFFFull) | (uint64_t)(1023 - 60 + i % 120) << 52);
		ck_assert_double_le(fabs(fill_log(x) - log(x)), 4e-16 * fabs(log(x)) + 1e-17);
		double y = fill_unit(fill_mix(i)) * 1200 - 600;
		ck_assert_double_le(fabs(fill_exp(y) / exp(y) - 1), 3e-13);
	}
}
END_TEST

START_TEST(digest_as_defined)
{
	json_t *all = expected(), *list = json_object_get(all, "digests");
	size_t n = 200003;
	unsigned char *p = malloc(n);
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(i * 131 + i / 251);
	ck_assert_uint_gt(json_array_size(list), 8);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *d = json_array_get(list, i);
		ck_assert_uint_eq(fill_digest(p, (size_t)json_integer_value(json_array_get(d, 0))),
				  hex(json_array_get(d, 1)));
	}
	json_decref(all);
	/* one bit anywhere, and two blocks exchanged */
	uint64_t was = fill_digest(p, n);
	for (size_t i = 0; i < n; i += 9973) {
		p[i] ^= 16;
		ck_assert_uint_ne(fill_digest(p, n), was);
		p[i] ^= 16;
	}
	unsigned char *q = malloc(n);
	memcpy(q, p + 65536, 65536);
	memcpy(q + 65536, p, 65536);
	memcpy(q + 131072, p + 131072, n - 131072);
	ck_assert_uint_ne(fill_digest(q, n), was);
	free(p);
	free(q);
}
END_TEST

START_TEST(threads_do_not_matter)
{
	int before = omp_get_max_threads();
	size_t bytes = 300 * 300 * 8;
	unsigned char *p = malloc(bytes);
	for (int i = 0; i < N_RUNNABLE; i++) {
		struct fill_job j = runnable_job(i, 300, 300);
		uint64_t first = 0;
		for (int threads = 1; threads <= 5; threads += 2) {
			omp_set_num_threads(threads);
			memset(p, threads, bytes);
			must_fill(p, &j);
			uint64_t d = fill_digest(p, 300 * 300 * assay_dtype_bytes(j.dtype));
			if (threads == 1)
				first = d;
			ck_assert_msg(d == first, "%s with %d threads", fill_kind_name(j.spec.kind), threads);
		}
	}
	omp_set_num_threads(before);
	free(p);
}
END_TEST

START_TEST(shape_does_not_matter)
{
	/* A wider t shares the rows; the seed documents' generators do not have that property, and k_hot and permutations depend on
	 * the last dimension only. */
	for (int i = 0; i < N_RUNNABLE; i++) {
		if (fill_is_lcg(runnable[i].kind))
			continue;
		struct fill_job a = runnable_job(i, 2, 40), b = runnable_job(i, 9, 40);
		unsigned char p[2 * 40 * 8], q[9 * 40 * 8];
		must_fill(p, &a);
		must_fill(q, &b);
		ck_assert_mem_eq(p, q, 2 * 40 * assay_dtype_bytes(a.dtype));
		/* and rows differ, where the fill is random */
		if (a.spec.kind != FILL_CONSTANT && a.spec.kind != FILL_PATTERN)
			ck_assert_mem_ne(p, p + 40 * assay_dtype_bytes(a.dtype), 40 * assay_dtype_bytes(a.dtype));
	}
	/* a longer last dimension keeps its beginning */
	struct fill_job a = plain_job(FILL_UNIFORM, ASSAY_F32, 3, 10), b = plain_job(FILL_UNIFORM, ASSAY_F32, 3, 11);
	float p[3][10], q[3][11];
	must_fill(p, &a);
	must_fill(q, &b);
	for (int r = 0; r < 3; r++)
		ck_assert_mem_eq(p[r], q[r], sizeof p[r]);
}
END_TEST

START_TEST(strides_leave_gaps)
{
	struct fill_job j = plain_job(FILL_NORMAL, ASSAY_F32, 3, 4), dense = j;
	float p[40], d[12];
	j.shape.stride[0] = 11;
	j.shape.stride[1] = 2;
	for (int i = 0; i < 40; i++)
		p[i] = 99;
	must_fill(p, &j);
	must_fill(d, &dense);
	for (int i = 0; i < 40; i++) {
		int r = i / 11, c = i % 11;
		bool element = r < 3 && c % 2 == 0 && c < 8;
		ck_assert_msg(p[i] == (element ? d[r * 4 + c / 2] : 99), "element %d", i);
	}
}
END_TEST

/* A Q8_0 weight block as the seed document packs it: an f16 scale and 32 bytes. */
START_TEST(records_as_the_seed_packs_them)
{
	enum { ROWS = 5, BLOCKS = 3 };
	unsigned char buf[ROWS * BLOCKS * 34], flat[ROWS * BLOCKS * 32];
	struct fill_job d = {.spec = {.kind = FILL_PATTERN, .base = 0.01, .step = 0.003, .modulus = 7},
			     .dtype = ASSAY_F16,
			     .shape = {.rank = 2, .dim = {ROWS, BLOCKS}},
			     .record_bytes = 34,
			     .field_count = 1};
	struct fill_job q = {.spec = {.kind = FILL_SEED_LCG32_WIDE},
			     .dtype = ASSAY_I8,
			     .shape = d.shape,
			     .record_bytes = 34,
			     .field_offset = 2,
			     .field_count = 32,
			     .lcg_seed = 0x12345678};
	struct fill_job f = {.spec = q.spec,
			     .dtype = ASSAY_I8,
			     .shape = {.rank = 1, .dim = {sizeof flat}},
			     .lcg_seed = 0x12345678};
	memset(buf, 0xEE, sizeof buf);
	must_fill(buf, &q);
	for (int i = 0; i < ROWS * BLOCKS; i++)
		ck_assert(buf[34 * i] == 0xEE && buf[34 * i + 1] == 0xEE);
	must_fill(buf, &d);
	must_fill(flat, &f);
	for (int r = 0; r < ROWS; r++)
		for (int b = 0; b < BLOCKS; b++) {
			const unsigned char *block = buf + 34 * (r * BLOCKS + b);
			uint16_t scale;
			memcpy(&scale, block, 2);
			/* 0x211f is 0.01 in binary16, 0x2766 0.0289 … : within half a step of the formula */
			double want = 0.01 + (r + b) % 7 * 0.003;
			ck_assert_double_le(fabs(fill_element(&scale, ASSAY_F16, 0) / want - 1), 1.0 / 2048);
			ck_assert_mem_eq(block + 2, flat + 32 * (r * BLOCKS + b), 32);
		}
}
END_TEST

START_TEST(uniform_never_reaches_its_end)
{
	static const enum assay_dtype t[] = {ASSAY_F32, ASSAY_F16, ASSAY_BF16, ASSAY_E4M3, ASSAY_E5M2};
	static unsigned char p[4 * 100000];
	for (size_t i = 0; i < 5; i++) {
		struct fill_job j = plain_job(FILL_UNIFORM, t[i], 10, 10000);
		j.spec.range[0] = 0.3;
		j.spec.range[1] = 1;
		must_fill(p, &j);
		double greatest = 0;
		for (int64_t k = 0; k < 100000; k++) {
			double v = fill_element(p, t[i], k);
			ck_assert(v >= 0.3 && v < 1);
			greatest = v > greatest ? v : greatest;
		}
		ck_assert_double_gt(greatest, 0.8);
	}
	/* 1 is the only float there, and half of the draws round up to the next one, by the run and one by one */
	for (int stride = 1; stride <= 2; stride++) {
		struct fill_job j = plain_job(FILL_UNIFORM, ASSAY_F32, 1, 1000);
		j.spec.range[0] = 1;
		j.spec.range[1] = 1.0000001;
		j.shape.stride[0] = 2000;
		j.shape.stride[1] = stride;
		must_fill(p, &j);
		for (int64_t k = 0; k < 1000; k++)
			ck_assert_double_eq(fill_element(p, ASSAY_F32, k * stride), 1);
	}
}
END_TEST

START_TEST(permutations_are_permutations)
{
	for (uint64_t n = 1; n < 300; n++) {
		bool seen[300] = {false};
		struct fill_perm p = fill_perm_make(n);
		for (uint64_t i = 0; i < n; i++) {
			uint64_t v = fill_permute(&p, fill_mix(n), i);
			ck_assert(v < n && !seen[v]);
			seen[v] = true;
		}
	}
	/* over many keys each element lands everywhere alike: 7 degrees of freedom a place, chi2 below 40 */
	struct fill_perm p = fill_perm_make(8);
	for (uint64_t i = 0; i < 8; i++) {
		int count[8] = {0};
		double chi2 = 0;
		for (uint64_t k = 0; k < 80000; k++)
			count[fill_permute(&p, fill_mix(k), i)]++;
		for (int v = 0; v < 8; v++)
			chi2 += (count[v] - 10000.0) * (count[v] - 10000.0) / 10000.0;
		ck_assert_double_lt(chi2, 40);
	}
}
END_TEST

START_TEST(indices_without_repeats_do_not_repeat)
{
	struct fill_job j = plain_job(FILL_INDICES, ASSAY_I32, 5, 700);
	static int32_t v[5][700];
	j.spec.repeats = false;
	must_fill(v, &j);
	for (int r = 0; r < 5; r++) {
		bool seen[1000] = {false};
		for (int i = 0; i < 700; i++) {
			ck_assert(v[r][i] >= 0 && v[r][i] < 1000 && !seen[v[r][i]]);
			seen[v[r][i]] = true;
		}
	}
	/* with repeats some must occur: 700 of 1000 without one has probability below 1e-100 */
	struct fill_audit a;
	j.spec.repeats = true;
	j.shape.dim[0] = 1;
	must_fill(v, &j);
	ck_assert(fill_audit_host(v, &j, 0, &a, NULL));
	ck_assert_int_lt(a.distinct, 600);
	ck_assert_int_gt(a.distinct, 400);
}
END_TEST

START_TEST(k_hot_has_k)
{
	struct fill_job j = plain_job(FILL_K_HOT, ASSAY_F32, 50, 37);
	static float v[50][37];
	j.spec.k = 6;
	j.spec.value = 0.5;
	must_fill(v, &j);
	for (int r = 0; r < 50; r++) {
		int hot = 0;
		for (int i = 0; i < 37; i++) {
			ck_assert(v[r][i] == 0 || v[r][i] == 0.5f);
			hot += v[r][i] != 0;
		}
		ck_assert_int_eq(hot, 6);
	}
}
END_TEST

START_TEST(zipf_has_its_law)
{
	static const double exponents[] = {0, 0.5, 1.0, 1.2, 2.5, 100};
	enum { N = 200000, BOUND = 50 };
	static int32_t v[N];
	for (size_t e = 0; e < sizeof exponents / sizeof exponents[0]; e++) {
		struct fill_job j = plain_job(FILL_ZIPF, ASSAY_I32, 20, N / 20);
		struct fill_gen g;
		int count[BOUND] = {0};
		double total = 0, chi2 = 0;
		j.spec.exponent = exponents[e];
		j.shape.index_bound = BOUND;
		must_fill(v, &j);
		ck_assert(fill_gen_make(&j, &g, NULL));
		for (int i = 0; i < N; i++) {
			ck_assert(v[i] >= 0 && v[i] < BOUND);
			count[v[i]]++;
		}
		for (int k = 0; k < BOUND; k++)
			total += pow(k + 1, -exponents[e]);
		for (int k = 0; k < BOUND; k++) {
			double want = N * pow(k + 1, -exponents[e]) / total;
			int got = count[fill_permute(&g.perm, g.scatter_key, (uint64_t)k)];
			chi2 += want > 5 ? (got - want) * (got - want) / want : got > 40 ? 1000 : 0;
		}
		/* 49 degrees of freedom: above 110 once in a million */
		ck_assert_msg(chi2 < 110, "exponent %g: chi2 %g", exponents[e], chi2);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fill");
	TCase *c = tcase_create("fill");
	tcase_add_test(c, keys_as_defined);
	tcase_add_test(c, values_as_defined);
	tcase_add_test(c, formats_round_to_nearest_even);
	tcase_add_test(c, normal_is_the_quantile);
	tcase_add_test(c, log_and_exp_are_near_the_library);
	tcase_add_test(c, digest_as_defined);
	tcase_add_test(c, threads_do_not_matter);
	tcase_add_test(c, shape_does_not_matter);
	tcase_add_test(c, strides_leave_gaps);
	tcase_add_test(c, records_as_the_seed_packs_them);
	tcase_add_test(c, uniform_never_reaches_its_end);
	tcase_add_test(c, permutations_are_permutations);
	tcase_add_test(c, indices_without_repeats_do_not_repeat);
	tcase_add_test(c, k_hot_has_k);
	tcase_add_test(c, zipf_has_its_law);
	suite_add_tcase(s, c);
	return unit_run(s);
}
