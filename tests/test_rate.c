/* The rate probe on the host: what it computes, what it refuses. No assertion on how fast anything is. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "rate.h"
#include "registry.h"
#include "unit.h"

START_TEST(forms)
{
	struct err err = {{0}};
	struct backend *be = backend_open("host", &(struct backend_config){.threads = 1}, &err);
	ck_assert_msg(be != NULL, "%s", err.text);
	struct rates *r = rates_create(be);
	char reason[256];
	static const char *const host[] = {"dot_s8", "fma_e4m3"};
	for (size_t i = 0; i < 2; i++) {
		json_t *x = rates_measure(r, host[i], reason), *again = rates_measure(r, host[i], reason);
		ck_assert_msg(json_is_object(x), "%s", reason);
		ck_assert_str_eq(reason, "");
		ck_assert_str_eq(json_string_value(json_object_get(x, "form")), host[i]);
		const double interval = json_number_value(json_object_get(x, "interval"));
		ck_assert(interval > 0 && isfinite(interval));
		ck_assert(json_equal(x, again)); /* measured once */
		json_decref(x);
		json_decref(again);
	}
	json_t *x = rates_measure(r, "mma_s8", reason);
	ck_assert(json_is_null(x));
	ck_assert_str_eq(reason, "mma_s8: probe.rate does not have it on this backend");
	x = rates_measure(r, "mma_s9", reason);
	ck_assert(json_is_null(x));
	ck_assert_str_eq(reason, "mma_s9: probe.rate has no arm of that name");
	rates_destroy(r);
	backend_ops_of(be)->close(be);
}
END_TEST

/* Every form that a kernel names is one that the probe has. */
START_TEST(named_forms_exist)
{
	struct registry *reg = registry_create();
	struct err err = {{0}};
	const struct assay_kernel *probe = registry_find(reg, "probe.rate");
	ck_assert_ptr_nonnull(probe);
	static const int ccs[] = {0, 80, 86, 89, 90, 100, 120};
	int named = 0;
	static const char *const names[] = {"mmq.q8_0", "mmq.q8_0_wgmma"};
	for (size_t n = 0; n < 2; n++) {
		const struct assay_kernel *k = registry_find(reg, names[n]);
		ck_assert_ptr_nonnull(k);
		ck_assert(k->issue_form != NULL);
		for (int a = 0; a < k->n_arms; a++)
			for (size_t c = 0; c < sizeof ccs / sizeof *ccs; c++) {
				const char *form = k->issue_form(&k->arms[a], ccs[c] ? ASSAY_CUDA : ASSAY_HOST, ccs[c]);
				int64_t arg;
				if (!form)
					continue;
				named++;
				ck_assert_msg(registry_arm(probe, form, &arg, &err) != NULL, "%s %s names %s", names[n],
					      k->arms[a].name, form);
			}
	}
	ck_assert_int_gt(named, 10);
	registry_destroy(reg);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rate");
	TCase *t = tcase_create("rate");
	tcase_add_test(t, forms);
	tcase_add_test(t, named_forms_exist);
	suite_add_tcase(s, t);
	return unit_run(s);
}
