/* The inputs of cells: kept, evicted and made again, in one set where they are large; and what differs between
 * the bytes of two outputs. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "image.h"
#include "inputs.h"
#include "test_zoo_bed.h"
#include "unit.h"

static struct input *get(struct inputs *in, const struct cell *c, int t)
{
	struct assay_shape shape = {0};
	struct err err = {{0}};
	ck_assert_int_eq(c->kernel->shape(&c->point, t, &shape), 0);
	struct input *one = inputs_get(in, c, t, &shape, &err);
	ck_assert_msg(one, "%s", err.text);
	return one;
}

/* The gaps of a strided input are not written by the fill: they hold NaN, and the guards begin behind the last element. */
START_TEST(gaps)
{
	struct backend *be = fake_create(NULL);
	struct inputs *in = inputs_create(be, 1 << 20);
	struct err err = {{0}};
	struct cell c;
	ZOO_CELL(&c, &zoo, "shipped");
	struct input *x = get(in, &c, ZOO_X);
	ck_assert(input_load(in, x, 0, false, &err));
	ck_assert_uint_eq(x->live.bytes, (7 * ZOO_X_PITCH + ZOO_N) * sizeof(float));
	const uint32_t *word = x->live.data;
	int between = 0;
	for (int i = 0; i < 7 * ZOO_X_PITCH + ZOO_N; i++) {
		float v;
		memcpy(&v, &word[i], sizeof v);
		if (i % ZOO_X_PITCH < ZOO_N) {
			ck_assert(v >= -1 && v < 1);
			continue;
		}
		ck_assert_uint_eq(word[i], 0x7FF57FF5u);
		between++;
	}
	ck_assert_int_eq(between, 7 * (ZOO_X_PITCH - ZOO_N));
	inputs_destroy(in);
	ck_assert_int_eq(fake_memory_in_use(be), 0);
	backend_ops_of(be)->close(be);
}
END_TEST

/* Least recently used goes first; what is made again has the same bytes; what a cell holds stays. */
START_TEST(evicted)
{
	struct backend *be = fake_create(NULL);
	struct inputs *in = inputs_create(be, 3 * 304 + 10); /* x of one cell: live and two masters */
	struct err err = {{0}};
	struct cell a, b;
	ZOO_CELL(&a, &zoo, "shipped");
	ZOO_CELL(&b, &zoo, "shipped");
	b.seed = a.seed + 1;
	struct input *x = get(in, &a, ZOO_X);
	uint64_t digest[INPUT_SETS] = {x->digest[0], x->digest[1]};
	const int64_t one = fake_memory_in_use(be);
	ck_assert_uint_ne(digest[0], digest[1]);
	struct input *held = get(in, &b, ZOO_X); /* over the budget, but a is in use */
	ck_assert_int_eq(fake_memory_in_use(be), 2 * one);
	ck_assert_uint_ne(held->digest[0], digest[0]);
	ck_assert_ptr_eq(get(in, &a, ZOO_X), x);
	inputs_unpin(in);
	b.seed++;
	held = get(in, &b, ZOO_X);
	ck_assert_int_eq(fake_memory_in_use(be), one);
	inputs_unpin(in);
	x = get(in, &a, ZOO_X);
	ck_assert_int_eq(fake_memory_in_use(be), one);
	for (int set = 0; set < INPUT_SETS; set++) {
		bool intact;
		ck_assert_uint_eq(x->digest[set], digest[set]);
		ck_assert(input_load(in, x, set, false, &err));
		ck_assert(input_intact(in, x, &intact, &err));
		ck_assert(intact);
	}
	((float *)x->live.data)[3] += 1;
	bool intact;
	ck_assert(input_intact(in, x, &intact, &err));
	ck_assert(!intact);
	inputs_destroy(in);
	ck_assert_int_eq(fake_memory_in_use(be), 0);
	backend_ops_of(be)->close(be);
}
END_TEST

/* Brought to the host once, whatever happens to the input meanwhile; made anew where somebody wrote to it; gone with the input. */
START_TEST(kept_on_the_host)
{
	struct backend *be = fake_create(NULL);
	struct inputs *in = inputs_create(be, 1 << 20);
	struct err err = {{0}};
	struct cell c;
	void *own;
	ZOO_CELL(&c, &zoo, "shipped");
	struct input *x = get(in, &c, ZOO_X);
	ck_assert(input_load(in, x, 1, false, &err)); /* live holds the other set */
	const void *p = input_host(in, x, &own, &err);
	ck_assert_msg(p, "%s", err.text);
	ck_assert_ptr_null(own);
	ck_assert_int_eq(memcmp(p, x->master[0], x->live.bytes), 0);
	((float *)x->live.data)[3] += 1;
	ck_assert_ptr_eq(input_host(in, x, &own, &err), p);
	inputs_unpin(in);
	ck_assert_ptr_eq(get(in, &c, ZOO_X), x);
	ck_assert_ptr_eq(input_host(in, x, &own, &err), p);
	union {
		const void *c;
		float *m;
	} wrote = {.c = p};
	wrote.m[5] += 1;
	p = input_host(in, x, &own, &err);
	ck_assert_int_eq(memcmp(p, x->master[0], x->live.bytes), 0);
	struct input *e = get(in, &c, ZOO_E); /* empty */
	ck_assert_ptr_nonnull(input_host(in, e, &own, &err));
	ck_assert_ptr_null(own);
	/* A master that is not what was digested: the device is wrong. */
	inputs_destroy(in);
	in = inputs_create(be, 1 << 20);
	x = get(in, &c, ZOO_X);
	((float *)x->master[0])[3] += 1;
	ck_assert_ptr_null(input_host(in, x, &own, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "digests other bytes"));
	inputs_destroy(in);
	/* What no cell holds makes room: the first is read from the device again, the second is not. */
	for (int room = 0; room < 2; room++) {
		struct cell d;
		in = inputs_create(be, 1 << 20);
		inputs_set_host_limit(in, room ? 1 << 20 : 400);
		x = get(in, &c, ZOO_X);
		ck_assert_ptr_nonnull(input_host(in, x, &own, &err));
		inputs_unpin(in);
		ZOO_CELL(&d, &zoo, "shipped");
		d.seed++;
		struct input *y = get(in, &d, ZOO_X);
		ck_assert_ptr_nonnull(input_host(in, y, &own, &err));
		((float *)x->master[0])[3] += 1;
		((float *)y->master[0])[3] += 1;
		ck_assert_ptr_nonnull(input_host(in, y, &own, &err));
		ck_assert_int_eq(input_host(in, x, &own, &err) != NULL, room);
		inputs_destroy(in);
	}
	/* Of one set live is the only place: changed by an arm, it is given as it is and not kept. */
	in = inputs_create(be, 1 << 20);
	inputs_set_limit(in, 1);
	x = get(in, &c, ZOO_X);
	ck_assert(x->one_set);
	((float *)x->live.data)[3] += 1;
	p = input_host(in, x, &own, &err);
	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_eq(own, p);
	ck_assert_int_eq(memcmp(p, x->live.data, x->live.bytes), 0);
	free(own);
	((float *)x->live.data)[3] -= 1;
	ck_assert(input_load(in, x, 0, true, &err));
	p = input_host(in, x, &own, &err);
	ck_assert_ptr_null(own);
	ck_assert_int_eq(memcmp(p, x->live.data, x->live.bytes), 0);
	inputs_destroy(in);
	ck_assert_int_eq(fake_memory_in_use(be), 0);
	backend_ops_of(be)->close(be);
}
END_TEST

/* Above the limit both sets are one, without masters: checks go on, and a changed input is made anew from its seed. */
START_TEST(one_set)
{
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	exec_set_input_limit(b.exec, _i ? 1 : 100);
	ZOO_CELL(&c, &zoo, "shipped", "packed");
	c.checks.on = 1u << CHECK_IDENTITY | 1u << CHECK_REPEAT | 1u << CHECK_INVARIANT | 1u << CHECK_REFERENCE |
		      1u << CHECK_REGRESSION;
	c.checks.repeat = (struct check_repeat){.launches = 3, .addresses = true};
	c.checks.reference.adapter = true;
	c.checks.invariant = (struct check_invariant){.rows = "rows",
						      .leading = {3},
						      .n_leading = 1,
						      .permute = true,
						      .neighbours = true};
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(facts, "checks"), i, f)
		ck_assert_msg(!strcmp(text_of(f, "status"), "pass"), "%s %s: %s", text_of(f, "check"),
			      text_of(f, "arm"), text_of(f, "text"));
	ck_assert(noted(facts, "x is larger than"));
	ck_assert_int_eq(noted(facts, "r is larger than"), _i);
	ck_assert_int_eq(noted(facts, "no other data for the neighbours"), _i);
	json_decref(facts);
	ZOO_CELL(&c, &zoo, "input_gap", "packed");
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_str_eq(text_of(find(facts, "memory", "input_gap"), "where"), "input_changed");
	ck_assert_str_eq(text_of(find(facts, "memory", "packed"), "status"), "pass");
	json_decref(facts);
	bed_close(&b);
}
END_TEST

static bool counts_strays(struct backend *b, const void *src, const struct fill_job *job, uint32_t readings,
			  struct fill_audit *out, struct err *err)
{
	if (!fill_audit_host(src, job, readings, out, err))
		return false;
	if (job->shape.index_bound)
		out->out_of_bound = 3;
	return true;
}

static int index_shape(const struct assay_point *pt, int t, struct assay_shape *out)
{
	*out = (struct assay_shape){.rank = 1, .dim = {16}, .index_bound = t == 0 ? 10 : 0};
	return 0;
}

static int index_run(const struct assay_call *call, void *state)
{
	memcpy(call->tensor[1], call->tensor[0], 64);
	return 0;
}

/* A row number outside of its bound is invalid data whatever the suite promises. */
START_TEST(index_outside)
{
	static const struct assay_tensor tensors[] = {
		{.name = "i", .role = ASSAY_IN, .dtype = ASSAY_I32, .use = ASSAY_INDEX, .dims = "n"},
		{.name = "y", .role = ASSAY_OUT, .dtype = ASSAY_I32, .dims = "n"},
	};
	static const struct assay_arm_ops ops = {.run = index_run};
	static const struct assay_arm arms[] = {{.name = "shipped", .ops = {[ASSAY_HOST] = &ops}}};
	static const struct assay_kernel kernel = {.abi = ASSAY_ABI,
						   .name = "test.index",
						   .tensors = tensors,
						   .n_tensors = 2,
						   .arms = arms,
						   .n_arms = 1,
						   .shape = index_shape};
	struct bed b;
	struct cell c;
	bed_open(&b, NULL);
	struct backend_ops mine = *backend_ops_of(b.be);
	test_cell_own(&c, &kernel, "shipped", NULL);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_str_eq(text_of(find(facts, "data", NULL), "status"), "pass");
	json_decref(facts);
	mine.audit = counts_strays;
	*(const struct backend_ops **)(void *)b.be = &mine;
	c.seed++;
	facts = run_cell(&b, &c, EXEC_OK);
	const json_t *f = find(facts, "data", NULL);
	ck_assert_str_eq(text_of(f, "status"), "invalid");
	ck_assert_str_eq(text_of(f, "tensor"), "i");
	json_decref(facts);
	bed_close(&b);
}
END_TEST

struct pair {
	enum assay_dtype dtype;
	uint64_t got, want, ulp;
	bool known;
};

/* Expected by hand from the formats: steps along the number line, both zeros at one place. */
static const struct pair pairs[] = {
	{ASSAY_F32, 0x3F800000, 0x3F800001, 1, true},
	{ASSAY_F32, 0x00000000, 0x80000000, 0, true}, /* differ all the same */
	{ASSAY_F32, 0x00000001, 0x80000001, 2, true},
	{ASSAY_F32, 0x7F800000, 0x7F7FFFFF, 1, true}, /* infinity is a step above the largest */
	{ASSAY_F32, 0x7FC00000, 0x7FC00001, 0, false}, /* payloads */
	{ASSAY_F32, 0x7FC00000, 0xFFC00000, 0, false}, /* the sign of a NaN */
	{ASSAY_F64, 0x3FF0000000000000, 0x3FEFFFFFFFFFFFFF, 1, true},
	{ASSAY_F64, 0x7FF0000000000000, 0xFFF0000000000000, 0xFFE0000000000000, true},
	{ASSAY_F64, 0x7FF0000000000001, 0x3FF0000000000000, 0, false},
	{ASSAY_F16, 0x3C00, 0x3BFF, 1, true},
	{ASSAY_F16, 0x0000, 0x8000, 0, true},
	{ASSAY_F16, 0x7C00, 0x7BFF, 1, true},
	{ASSAY_F16, 0x7C01, 0x7C02, 0, false},
	{ASSAY_BF16, 0x3F80, 0x3F7F, 1, true},
	{ASSAY_BF16, 0x8001, 0x0002, 3, true},
	{ASSAY_BF16, 0x7F81, 0x7F80, 0, false},
	{ASSAY_E4M3, 0x7E, 0x7D, 1, true},
	{ASSAY_E4M3, 0x7F, 0x7E, 0, false},
	{ASSAY_E5M2, 0x7C, 0x7B, 1, true},
	{ASSAY_E5M2, 0x7D, 0x7B, 0, false},
	{ASSAY_I8, 0x80, 0x7F, 255, true},
	{ASSAY_I8, 0xFF, 0x01, 2, true},
	{ASSAY_U8, 0x00, 0xFF, 255, true},
	{ASSAY_I16, 0x8000, 0x7FFF, 65535, true},
	{ASSAY_I32, 0x80000000, 0x7FFFFFFF, 4294967295, true},
	{ASSAY_I32, 0xFFFFFFFF, 0x00000000, 1, true},
	{ASSAY_I64, 0x8000000000000000, 0x7FFFFFFFFFFFFFFF, UINT64_MAX, true},
	{ASSAY_U64, 0, 5, 5, true},
};

START_TEST(bytes_decide)
{
	const struct pair *p = &pairs[_i];
	const struct assay_tensor t = {.name = "y", .dtype = p->dtype, .dims = "n"};
	const struct assay_shape s = {.rank = 1, .dim = {5}};
	const uint32_t eb = assay_dtype_bytes(p->dtype);
	unsigned char got[40] = {0}, want[40] = {0};
	struct diff d;
	char text[512];
	memcpy(got + 3 * eb, &p->got, eb);
	memcpy(want + 3 * eb, &p->want, eb);
	image_diff_bytes(&t, &s, got, want, NULL, &d);
	ck_assert_int_eq(d.differ, 1);
	ck_assert_int_eq(d.of, 5);
	ck_assert_int_eq(d.first, 3);
	ck_assert_int_eq(d.ulp_known, p->known);
	if (p->known)
		ck_assert_uint_eq(d.ulp_max, p->ulp);
	diff_text(&t, &s, got, want, &d, text, sizeof text);
	ck_assert_msg(strstr(text, "1 of 5 elements of y differ; first y[n=3]"), "%s", text);
	ck_assert_msg(!p->known == !!strstr(text, "NaN among them"), "%s", text);
	json_t *f = json_object();
	diff_fields(f, &t, &s, got, want, &d);
	ck_assert_int_eq(json_is_null(json_object_get(f, "ulp_max")), !p->known);
	char bits[24];
	snprintf(bits, sizeof bits, "%0*llx", (int)(2 * eb), (unsigned long long)p->got);
	ck_assert_str_eq(text_of(json_object_get(f, "first"), "got_bits"), bits);
	json_decref(f);
	/* Nothing differs where nobody looks, nor where the bytes are the same NaN. */
	const uint8_t keep[5] = {1, 1, 1, 0, 1};
	image_diff_bytes(&t, &s, got, want, keep, &d);
	ck_assert_int_eq(d.differ, 0);
	image_diff_bytes(&t, &s, got, got, NULL, &d);
	ck_assert_int_eq(d.differ, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("inputs");
	TCase *t = tcase_create("inputs");
	tcase_add_test(t, gaps);
	tcase_add_test(t, evicted);
	tcase_add_test(t, kept_on_the_host);
	tcase_add_loop_test(t, one_set, 0, 2);
	tcase_add_test(t, index_outside);
	tcase_add_loop_test(t, bytes_decide, 0, sizeof(pairs) / sizeof(*pairs));
	suite_add_tcase(s, t);
	return unit_run(s);
}
