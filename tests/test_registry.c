#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "registry.h"
#include "unit.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define PLUGIN(name) ASSAY_TEST_BUILD "/plugin/" name ".so"

static struct registry *reg;
static int n_builtin;

static void setup(void)
{
	reg = registry_create();
	n_builtin = registry_count(reg);
}

static void teardown(void)
{
	registry_destroy(reg);
}

START_TEST(builtin)
{
	struct err err = {""};
	ck_assert_int_gt(n_builtin, 0);
	for (int i = 0; i < n_builtin; i++) {
		const struct assay_kernel *k = registry_at(reg, i);
		ck_assert_msg(registry_check_kernel(k, &err), "%s", err.text);
		ck_assert_ptr_eq(registry_find(reg, k->name), k);
		ck_assert_ptr_null(registry_origin(reg, k));
		if (i)
			ck_assert_int_lt(strcmp(registry_at(reg, i - 1)->name, k->name), 0);
	}
	ck_assert_ptr_nonnull(registry_find(reg, "mla.absorb_q"));
	ck_assert_ptr_null(registry_find(reg, "mla.absorb"));
	ck_assert_ptr_null(registry_find(reg, ""));
	ck_assert_ptr_null(registry_find(reg, "zzz"));
}
END_TEST

START_TEST(plugin)
{
	struct err err = {""};
	ck_assert_msg(registry_load_plugin(reg, PLUGIN("twice"), NULL, &err), "%s", err.text);
	ck_assert_int_eq(registry_count(reg), n_builtin + 1);
	const struct assay_kernel *k = registry_find(reg, "demo.twice");
	ck_assert_ptr_nonnull(k);
	ck_assert_str_eq(registry_origin(reg, k), PLUGIN("twice"));
	ck_assert_int_eq(registry_param(k, "n"), 1);
	ck_assert_int_eq(registry_param(k, "m"), -1);
	ck_assert_int_eq(registry_tensor(k, "y"), 1);
	ck_assert_int_eq(registry_tensor(k, "z"), -1);
	/* The same name again is refused, and says from where the first one is. */
	ck_assert(!registry_load_plugin(reg, PLUGIN("thrice"), NULL, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "kernel 'demo.twice' is already there"));
	ck_assert_ptr_nonnull(strstr(err.text, PLUGIN("twice")));
	ck_assert_int_eq(registry_count(reg), n_builtin + 1);
	/* A list of two. */
	ck_assert_msg(registry_load_plugin(reg, PLUGIN("pair"), NULL, &err), "%s", err.text);
	ck_assert_ptr_nonnull(registry_find(reg, "demo.sevens"));
	ck_assert_ptr_nonnull(registry_find(reg, "demo.device"));
	for (int i = 1; i < registry_count(reg); i++)
		ck_assert_int_lt(strcmp(registry_at(reg, i - 1)->name, registry_at(reg, i)->name), 0);
}
END_TEST

/* Two builds of one kernel side by side: each runs its own code. */
START_TEST(two_builds)
{
	struct err err = {""};
	ck_assert_msg(registry_load_plugin(reg, PLUGIN("twice"), "base:", &err), "%s", err.text);
	ck_assert_msg(registry_load_plugin(reg, PLUGIN("thrice"), "head:", &err), "%s", err.text);
	static const struct {
		const char *name;
		float factor;
	} build[] = {{"base:demo.twice", 2}, {"head:demo.twice", 3}};
	for (int i = 0; i < 2; i++) {
		const struct assay_kernel *k = registry_find(reg, build[i].name);
		ck_assert_ptr_nonnull(k);
		float x[4] = {1, 2, 3, 4}, y[4] = {0};
		void *tensor[2] = {x, y};
		struct assay_point pt = {.v = {{.i = 1}, {.i = 4}}};
		struct assay_shape shape[2] = {{0}};
		for (int t = 0; t < 2; t++)
			ck_assert_int_eq(k->shape(&pt, t, &shape[t]), 0);
		char error[ASSAY_ERROR_MAX] = "";
		struct assay_call call = {.point = &pt, .tensor = tensor, .shape = shape, .threads = 1, .error = error};
		ck_assert_int_eq(k->arms[0].ops[ASSAY_HOST]->run(&call, NULL), 0);
		for (int j = 0; j < 4; j++)
			ck_assert_float_eq(y[j], build[i].factor * x[j]);
	}
}
END_TEST

static const struct {
	const char *path, *message;
} bad_plugins[] = {
	{PLUGIN("absent"), "cannot be loaded"},
	{PLUGIN("other_abi"), "and this program wants " TEXT(ASSAY_ABI) "; build it against this adapter.h"},
	{PLUGIN("no_symbol"), "exports neither 'assay_kernel' nor 'assay_kernels'"},
	{PLUGIN("clash"), "its descriptor of 'mla.absorb_q' is bound to the one built into this program"},
};

START_TEST(refused_plugins)
{
	struct err err = {""};
	ck_assert(!registry_load_plugin(reg, bad_plugins[_i].path, NULL, &err));
	ck_assert_msg(strstr(err.text, bad_plugins[_i].message) && strstr(err.text, bad_plugins[_i].path), "%s",
		      err.text);
	ck_assert_int_eq(registry_count(reg), n_builtin);
}
END_TEST

START_TEST(arms)
{
	struct err err = {""};
	int64_t arg = -1;
	ck_assert(registry_load_plugin(reg, PLUGIN("twice"), NULL, &err));
	const struct assay_kernel *k = registry_find(reg, "demo.twice");
	ck_assert_ptr_eq(registry_arm(k, "shipped", &arg, &err), &k->arms[0]);
	ck_assert_int_eq(arg, 0);
	ck_assert_ptr_eq(registry_arm(k, "split=64", &arg, &err), &k->arms[1]);
	ck_assert_int_eq(arg, 64);
	static const struct {
		const char *name, *message;
	} bad[] = {
		{"split", "arm 'split' of 'demo.twice' wants its workers: write 'split=N', N in 2..64, a power of two"},
		{"split=", "arm 'split=' of 'demo.twice': workers must be a whole number in 2..64, a power of two"},
		{"split=3", "arm 'split=3' of 'demo.twice': workers must be a whole number in 2..64, a power of two"},
		{"split=128",
		 "arm 'split=128' of 'demo.twice': workers must be a whole number in 2..64, a power of two"},
		{"split=04", "arm 'split=04' of 'demo.twice': workers must be a whole number in 2..64, a power of two"},
		{"split=4x", "arm 'split=4x' of 'demo.twice': workers must be a whole number in 2..64, a power of two"},
		{"split=99999999999999999999", "arm 'split=99999999999999999999' of 'demo.twice': workers must be a "
					       "whole number in 2..64, a power of two"},
		{"shipped=1", "arm 'shipped' of 'demo.twice' takes no argument; write 'shipped'"},
		{"spilt=4", "kernel 'demo.twice' has no arm 'spilt=4'; it has shipped, split=N, wide, trial"},
		{"", "kernel 'demo.twice' has no arm ''; it has shipped, split=N, wide, trial"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		ck_assert_ptr_null(registry_arm(k, bad[i].name, &arg, &err));
		ck_assert_str_eq(err.text, bad[i].message);
	}
}
END_TEST

START_TEST(dtypes)
{
	static const struct {
		const char *name;
		enum assay_dtype t;
	} row[] = {{"f32", ASSAY_F32},
		   {"bf16", ASSAY_BF16},
		   {"e4m3", ASSAY_E4M3},
		   {"s8", ASSAY_I8},
		   {"u64", ASSAY_U64}};
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		ck_assert_int_eq(registry_dtype(row[i].name), (int)row[i].t);
		ck_assert_str_eq(registry_dtype_name(row[i].t), row[i].name);
	}
	ck_assert_int_eq(registry_dtype("i8x"), -1);
}
END_TEST

/* One lack at a time in an otherwise good descriptor. */
struct lacking {
	struct assay_kernel k;
	struct assay_param param[8];
	struct assay_tensor tensor[4];
	struct assay_arm arm[8];
	struct assay_arm_ops ops;
};

static const char *const no_such_axis[] = {"t", "depth", "kv", NULL};
static int rank3(const struct assay_point *pt, int t, struct assay_shape *out)
{
	out->rank = 3;
	return 0;
}
static int fails(const struct assay_point *pt, int t, struct assay_shape *out)
{
	return -1;
}
static int negative(const struct assay_point *pt, int t, struct assay_shape *out)
{
	out->rank = 2;
	out->dim[0] = -1;
	return 0;
}

static const struct assay_field overlapping[] = {
	{.name = "d", .dtype = ASSAY_F16, .offset = 0, .count = 1},
	{.name = "qs", .dtype = ASSAY_I8, .offset = 1, .count = 4},
};

#define LACK(name, change)                                                                                             \
	static void name(struct lacking *x)                                                                            \
	{                                                                                                              \
		change;                                                                                                \
	}
LACK(l_none, (void)x)
LACK(l_abi, x->k.abi = 7)
LACK(l_name, x->k.name = "twice")
LACK(l_name_case, x->k.name = "Demo.twice")
LACK(l_name_raw, x->k.name = "demo.\n\x1b[31m\xff")
LACK(l_name_long, x->k.name = "X234567890123456789012345678901234567890123456789")
LACK(l_doc, x->k.doc = NULL)
LACK(l_doc_raw, x->k.doc = "twice\x1b[2J")
LACK(l_doc_lines, x->param[2].doc = "one\ntwo")
LACK(l_doc_bytes, x->arm[1].doc = "\xff")
LACK(l_doc_utf8, x->arm[1].doc = "\xc2\xb5s, \xe2\x89\xa4 2")
LACK(l_shape, x->k.shape = NULL)
LACK(l_work, x->k.work = NULL)
LACK(l_many, x->k.n_params = ASSAY_MAX_PARAMS + 1)
LACK(l_no_tensor, x->k.n_tensors = 0)
LACK(l_no_arm, x->k.n_arms = 0)
LACK(l_param_name, x->param[0].name = "T")
LACK(l_param_twice, x->param[1].name = "t")
LACK(l_param_weight, x->param[2].name = "weight")
LACK(l_param_range, x->param[0].min = 99)
LACK(l_param_whole, x->param[0].max = 2.5)
LACK(l_param_dflt, x->param[0].dflt = 65)
LACK(l_param_dflt_half, x->param[0].dflt = 1.5)
LACK(l_param_multiple, (x->param[0].multiple_of = 2, x->param[0].dflt = 3))
LACK(l_param_real_multiple, x->param[3].multiple_of = 2)
LACK(l_param_doc, x->param[2].doc = "")
LACK(l_tensor_name, x->tensor[1].name = "x")
LACK(l_tensor_dims, x->tensor[1].dims = NULL)
LACK(l_tensor_index, x->tensor[0].use = ASSAY_INDEX)
LACK(l_tensor_record, x->tensor[0].dtype = ASSAY_RECORD)
LACK(l_tensor_overlap, (x->tensor[0].dtype = ASSAY_RECORD, x->tensor[0].fields = overlapping, x->tensor[0].n_fields = 2,
			x->tensor[0].record_bytes = 8))
LACK(l_tensor_record_end, (x->tensor[0].dtype = ASSAY_RECORD, x->tensor[0].fields = overlapping,
			   x->tensor[0].n_fields = 1, x->tensor[0].record_bytes = 1))
LACK(l_output, x->tensor[1].role = ASSAY_WORKSPACE)
LACK(l_rank, x->k.shape = rank3)
LACK(l_shape_fails, x->k.shape = fails)
LACK(l_negative, x->k.shape = negative)
LACK(l_arm_twice, x->arm[2].name = "split")
LACK(l_arm_null, x->arm[2].name = "null")
LACK(l_arm_shipped, (x->arm[0].name = "other", x->arm[2].name = "shipped"))
LACK(l_arm_first, x->arm[0].arg_name = "n")
LACK(l_arm_fault, x->arm[0].flags = ASSAY_ARM_FAULT)
LACK(l_arm_flags, x->arm[1].flags = 64)
LACK(l_arm_range, x->arm[1].arg_min = 100)
LACK(l_arm_pow2, x->arm[1].arg_min = 0)
LACK(l_arm_doc, x->arm[1].doc = NULL)
LACK(l_arm_run, x->ops.run = NULL)
LACK(l_arm_nowhere, (x->k.n_arms = 1, x->arm[0].ops[ASSAY_HOST] = NULL))
LACK(l_axes, x->k.data_axes = no_such_axis)
LACK(l_row_rank, x->k.row_rank = 0)
LACK(l_row_rank_high, x->k.row_rank = 3)

static const struct {
	void (*change)(struct lacking *);
	const char *message; /* NULL: nothing lacks */
} lacks[] = {
	{l_none, NULL},
	{l_abi, "ABI number 7"},
	{l_name, "must be family.name"},
	{l_name_case, "must be family.name"},
	{l_name_raw, "it is 'demo.\\x0a\\x1b[31m\\xff'"},
	{l_name_long, "it is 'X234567890123456789012345678901234567890...'"},
	{l_doc, "lacks its line of doc"},
	{l_doc_raw, "its doc must be one line of UTF-8 text"},
	{l_doc_lines, "the doc of parameter 'depth' must be one line"},
	{l_doc_bytes, "the doc of arm 'split' must be one line"},
	{l_doc_utf8, NULL},
	{l_shape, "lacks its shape hook"},
	{l_work, "lacks its work hook"},
	{l_many, "n_params must be 0 to 16"},
	{l_no_tensor, "n_tensors must be 1 to 16"},
	{l_no_arm, "has no arm"},
	{l_param_name, "params[0].name must be"},
	{l_param_twice, "parameter 't' stands twice"},
	{l_param_weight, "'weight' is reserved"},
	{l_param_range, "min must be at most max"},
	{l_param_whole, "whole and within"},
	{l_param_dflt, "the default 65 is outside 1..64"},
	{l_param_dflt_half, "is not whole"},
	{l_param_multiple, "is not a multiple of 2"},
	{l_param_real_multiple, "multiple_of must be 0"},
	{l_param_doc, "parameter 'depth' lacks its line of doc"},
	{l_tensor_name, "tensor 'x' stands twice"},
	{l_tensor_dims, "dims must name"},
	{l_tensor_index, "must have an integer dtype"},
	{l_tensor_record, "needs 1 to 8 fields"},
	{l_tensor_overlap, "overlap"},
	{l_tensor_record_end, "ends at byte 2 of a record of 1"},
	{l_output, "has no output"},
	{l_rank, "names 2 dimensions (\"t n\") and shape() gives rank 3"},
	{l_shape_fails, "shape() fails"},
	{l_negative, "negative dimension"},
	{l_arm_twice, "arm 'split' stands twice"},
	{l_arm_null, "cannot be named 'null'"},
	{l_arm_shipped, "'shipped' must be the first arm, it is arms[2]"},
	{l_arm_first, "takes no argument"},
	{l_arm_fault, "no must-fail subject"},
	{l_arm_flags, "unknown flags 0x40"},
	{l_arm_range, "arg_min must be at most arg_max"},
	{l_arm_pow2, "at least 1 with arg_pow2"},
	{l_arm_doc, "arm 'split' lacks its line of doc"},
	{l_arm_run, "ops without run"},
	{l_arm_nowhere, "no arm with ops on any backend"},
	{l_axes, "data_axes names 'kv'"},
	{l_row_rank, "row_rank 0"},
	{l_row_rank_high, "row_rank 3 is more than the rank 2"},
};

START_TEST(descriptor_lacks)
{
	struct err err = {""};
	ck_assert(registry_load_plugin(reg, PLUGIN("twice"), NULL, &err));
	const struct assay_kernel *good = registry_find(reg, "demo.twice");
	struct lacking x = {.k = *good, .ops = *good->arms[0].ops[ASSAY_HOST]};
	memcpy(x.param, good->params, (size_t)good->n_params * sizeof x.param[0]);
	memcpy(x.tensor, good->tensors, (size_t)good->n_tensors * sizeof x.tensor[0]);
	memcpy(x.arm, good->arms, (size_t)good->n_arms * sizeof x.arm[0]);
	x.k.params = x.param;
	x.k.tensors = x.tensor;
	x.k.arms = x.arm;
	x.arm[0].ops[ASSAY_HOST] = &x.ops;
	lacks[_i].change(&x);
	bool ok = registry_check_kernel(&x.k, &err);
	if (!lacks[_i].message) {
		ck_assert_msg(ok, "%s", err.text);
		return;
	}
	ck_assert(!ok);
	ck_assert_msg(strstr(err.text, lacks[_i].message), "wanted '%s', got '%s'", lacks[_i].message, err.text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("registry");
	TCase *tc = tcase_create("registry");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, builtin);
	tcase_add_test(tc, plugin);
	tcase_add_test(tc, two_builds);
	tcase_add_loop_test(tc, refused_plugins, 0, (int)(sizeof bad_plugins / sizeof bad_plugins[0]));
	tcase_add_test(tc, arms);
	tcase_add_test(tc, dtypes);
	tcase_add_loop_test(tc, descriptor_lacks, 0, (int)(sizeof lacks / sizeof lacks[0]));
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
