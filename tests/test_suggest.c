/* A proposal and its second look: what is taken, what stays, what a fresh run withdraws. */
#include "test_suggest_bed.h"

START_TEST(test_faster_is_taken)
{
	struct made m;
	two_depths(&m, 0.9, 0.95, "aa");
	struct suggest *s = propose(&m);
	ck_assert_int_eq(s->row[0].outcome, SUGGEST_CHANGED);
	ck_assert_str_eq(s->row[0].arm, "split=4");
	ck_assert_int_eq(s->row[0].evidence.faster, 2);
	/* The pooled ratio is the geometric mean of the cells'. */
	ck_assert_double_eq_tol(exp(s->row[0].evidence.estimate), sqrt(0.9 * 0.95), 2e-3);
	ck_assert_double_eq_tol(s->row[0].evidence.floor, 2 * sqrt(2) * 0.002, 1e-9);
	suggest_destroy(s);
	end(&m);
}
END_TEST

START_TEST(test_noise_is_not_taken)
{
	struct made m;
	two_depths(&m, 0.997, 0.997, "aa"); /* within 2 sqrt(2) tau = 0.57 % */
	expect(&m, SUGGEST_KEPT, "shipped", NULL);
	/* The same gain in a cell where shipped differs from itself by 6 %. */
	two_depths(&m, 0.95, 0.95, "aa");
	for (int i = 0; i < 2; i++)
		json_object_set_new(json_object_get(json_object_get(m.cell[i], "timing"), "null"), "estimate",
				    json_real(-0.06));
	expect(&m, SUGGEST_KEPT, "shipped", NULL);
}
END_TEST

START_TEST(test_slower_somewhere_is_not_taken)
{
	struct made m;
	two_depths(&m, 0.8, 1.05, "aa");
	expect(&m, SUGGEST_KEPT, "shipped", "faster in 1 and slower in 1 of 2");
}
END_TEST

START_TEST(test_other_bits_are_not_taken)
{
	struct made m;
	two_depths(&m, 0.8, 0.8, "bb");
	expect(&m, SUGGEST_KEPT, "shipped", "bits would change");
	/* Without digests the identity check speaks. */
	two_depths(&m, 0.8, 0.8, "");
	expect(&m, SUGGEST_CHANGED, "split=4", NULL);
	two_depths(&m, 0.8, 0.8, "");
	json_object_set_new(json_array_get(json_object_get(m.cell[1], "checks"), 1), "check", json_string("memory"));
	expect(&m, SUGGEST_KEPT, "shipped", "bits would change");
}
END_TEST

START_TEST(test_wrong_is_not_taken)
{
	struct made m;
	two_depths(&m, 0.8, 0.8, "aa");
	json_object_set_new(json_array_get(json_object_get(m.cell[1], "checks"), 1), "status", json_string("wrong"));
	expect(&m, SUGGEST_KEPT, "shipped", "split=4 is wrong");
}
END_TEST

START_TEST(test_headroom_is_not_taken)
{
	struct made m;
	two_depths(&m, 0.8, 0.8, "aa");
	json_object_set_new(json_array_get(json_object_get(m.cell[0], "arms"), 1), "role", json_string("headroom"));
	expect(&m, SUGGEST_KEPT, "shipped", NULL);
}
END_TEST

START_TEST(test_wrong_incumbent_is_replaced)
{
	struct made m;
	two_depths(&m, 0.8, 0.8, "aa");
	for (int i = 0; i < 2; i++)
		json_object_set_new(m.cell[i], "selected", json_string("split=4"));
	json_object_set_new(json_array_get(json_object_get(m.cell[1], "checks"), 1), "status", json_string("mismatch"));
	expect(&m, SUGGEST_FIXED, "shipped", "split=4 is mismatch");
}
END_TEST

START_TEST(test_incumbent_gives_way_to_shipped)
{
	struct made m;
	two_depths(&m, 1.2, 1.2, "aa");
	for (int i = 0; i < 2; i++)
		json_object_set_new(m.cell[i], "selected", json_string("split=4"));
	expect(&m, SUGGEST_CHANGED, "shipped", NULL);
}
END_TEST

static void confirm(double fresh_2048, double fresh_32768, const char *bits, int wrong, int drop,
		    enum suggest_outcome want, const char *note)
{
	struct made m, fresh;
	two_depths(&m, 0.9, 0.9, "aa");
	two_depths(&fresh, fresh_2048, fresh_32768, bits);
	if (wrong)
		json_object_set_new(json_array_get(json_object_get(fresh.cell[0], "checks"), 1), "status",
				    json_string("wrong"));
	struct suggest *s = propose(&m);
	ck_assert_uint_eq(suggest_changes(s), 1);
	fresh.v.n_cells -= (size_t)drop;
	suggest_confirm(s, &fresh.v);
	fresh.v.n_cells += (size_t)drop;
	ck_assert_int_eq(s->row[0].outcome, want);
	ck_assert_str_eq(s->row[0].arm, want == SUGGEST_CHANGED ? "split=4" : "shipped");
	ck_assert_uint_eq(suggest_changes(s), want == SUGGEST_CHANGED);
	if (note)
		ck_assert_msg(s->row[0].note && strstr(s->row[0].note, note), "%s",
			      s->row[0].note ? s->row[0].note : "no note");
	suggest_destroy(s);
	end(&m);
	end(&fresh);
}

START_TEST(test_second_look)
{
	confirm(0.91, 0.92, "aa", 0, 0, SUGGEST_CHANGED, NULL);
	confirm(1.0, 1.0, "aa", 0, 0, SUGGEST_WITHDRAWN, "not borne out");
	confirm(0.9, 1.04, "aa", 0, 0, SUGGEST_WITHDRAWN, "not borne out");
	confirm(0.9, 0.9, "cc", 0, 0, SUGGEST_WITHDRAWN, NULL);
	confirm(0.9, 0.9, "aa", 1, 0, SUGGEST_WITHDRAWN, "measured anew: split=4 is wrong");
	confirm(0.9, 0.9, "aa", 0, 1, SUGGEST_WITHDRAWN, NULL);
	confirm(0.9, 0.9, "aa", 0, 2, SUGGEST_WITHDRAWN, "did not time");
}
END_TEST

/* A row that stays is not looked at again. One that was put right stays so, faster or not, unless what is served instead is wrong too. */
START_TEST(test_second_look_at_what_is_not_faster)
{
	static const struct {
		bool fixed;
		const char *fresh; /* what a fresh run says of shipped */
		enum suggest_outcome want;
	} of[] = {{false, "wrong", SUGGEST_KEPT}, {true, "pass", SUGGEST_FIXED}, {true, "wrong", SUGGEST_WITHDRAWN}};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct made m, fresh;
		two_depths(&m, 1.0, 1.0, "aa");
		two_depths(&fresh, 0.8, 0.8, "aa");
		json_object_set_new(json_array_get(json_object_get(fresh.cell[0], "checks"), 0), "status",
				    json_string(of[i].fresh));
		for (int c = 0; c < 2 && of[i].fixed; c++) {
			json_object_set_new(m.cell[c], "selected", json_string("split=4"));
			json_object_set_new(json_array_get(json_object_get(m.cell[c], "checks"), 1), "status",
					    json_string("mismatch"));
		}
		struct suggest *s = propose(&m);
		ck_assert_int_eq(s->row[0].outcome, of[i].fixed ? SUGGEST_FIXED : SUGGEST_KEPT);
		suggest_confirm(s, &fresh.v);
		ck_assert_int_eq(s->row[0].outcome, of[i].want);
		ck_assert_int_eq(s->row[0].measured_anew, of[i].fixed);
		ck_assert_str_eq(s->row[0].arm, of[i].want == SUGGEST_WITHDRAWN ? "split=4" : "shipped");
		suggest_destroy(s);
		end(&m);
		end(&fresh);
	}
}
END_TEST

/* A further key is warranted by where an arm is fastest and where it is slowest. */
START_TEST(test_further_key)
{
	static const double ratio[] = {0.8, 0.9, 1.2, 1.1};
	struct made m;
	begin(&m);
	for (int i = 0; i < 4; i++) {
		json_t *c = add_cell(&m, "k", 1, 1 << i, "shipped");
		add_arm(c, "shipped", "shipped", 10000, "aa", 0);
		add_arm(c, "split=4", "candidate", 10000 * ratio[i], "aa", 0);
		add_arm(c, "null", "null", 10000, "aa", 9);
	}
	struct suggest *s = propose(&m);
	ck_assert_str_eq(s->row[0].arm, "shipped");
	ck_assert_uint_eq(s->n_advice, 1);
	ck_assert_str_eq(s->advice[0], "k t_q=1: against shipped, split=4 is 0.800 at kv=1 and 1.200 at kv=4: a key on "
				       "kv is warranted");
	suggest_destroy(s);
	end(&m);
}
END_TEST

START_TEST(test_rows_are_sorted_and_keys_checked)
{
	struct made m;
	static const char *const t_q[] = {"t_q"}, *const depth[] = {"depth"};
	static const int order[] = {4, 1, 2};
	static const double sorted[] = {1, 2, 4};
	struct err err;
	begin(&m);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 2; k++) {
			json_t *c = add_cell(&m, k ? "b" : "a", order[i], 64, "shipped");
			add_arm(c, "shipped", "shipped", 10000, "aa", 0);
		}
	struct suggest *s = suggest_create(&m.v, t_q, 1, &err);
	ck_assert_ptr_nonnull(s);
	ck_assert_uint_eq(s->n_rows, 6);
	for (size_t i = 0; i < 6; i++) {
		ck_assert_str_eq(s->row[i].kernel, i < 3 ? "a" : "b");
		ck_assert_double_eq(s->row[i].key[0], sorted[i % 3]);
	}
	suggest_destroy(s);
	ck_assert_ptr_null(suggest_create(&m.v, depth, 1, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "depth"));
	end(&m);
	begin(&m);
	ck_assert_ptr_null(suggest_create(&m.v, t_q, 1, &err));
	end(&m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("suggest");
	TCase *c = tcase_create("rows");
	tcase_add_test(c, test_faster_is_taken);
	tcase_add_test(c, test_noise_is_not_taken);
	tcase_add_test(c, test_slower_somewhere_is_not_taken);
	tcase_add_test(c, test_other_bits_are_not_taken);
	tcase_add_test(c, test_wrong_is_not_taken);
	tcase_add_test(c, test_headroom_is_not_taken);
	tcase_add_test(c, test_wrong_incumbent_is_replaced);
	tcase_add_test(c, test_incumbent_gives_way_to_shipped);
	tcase_add_test(c, test_second_look);
	tcase_add_test(c, test_second_look_at_what_is_not_faster);
	tcase_add_test(c, test_further_key);
	tcase_add_test(c, test_rows_are_sorted_and_keys_checked);
	suite_add_tcase(s, c);
	return unit_run(s);
}
