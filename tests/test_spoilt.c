/* Arms that write to what others are given: nobody who comes after them is blamed for it. */
#include "test_zoo_bed.h"
#include "unit.h"

/* What was copied to where last. */
static struct {
	const void *dst;
	const void *src;
} copied[16];
static int n_copied;
static bool (*real_copy)(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err);

static bool copy_seen(struct backend *b, void *dst, const void *src, size_t bytes, struct err *err)
{
	int i = 0;
	while (i < n_copied && copied[i].dst != dst)
		i++;
	if (i < 16) {
		copied[i].dst = dst;
		copied[i].src = src;
		n_copied = i == n_copied ? i + 1 : n_copied;
	}
	return real_copy(b, dst, src, bytes, err);
}

/* The bed, with its copies seen. */
static void open_seeing(struct bed *b)
{
	static struct backend_ops mine;
	bed_open(b, NULL);
	mine = *backend_ops_of(b->be);
	real_copy = mine.copy;
	mine.copy = copy_seen;
	*(const struct backend_ops **)(void *)b->be = &mine;
	n_copied = 0;
}

static float *master_of(const void *x)
{
	union {
		const void *seen;
		float *at;
	} u = {NULL};
	for (int i = 0; i < n_copied; i++)
		if (copied[i].dst == x)
			u.seen = copied[i].src;
	return u.at;
}

/* An arm that writes so far outside that it hits what an input is loaded from: nobody else is blamed for what he was given then, the cell is
 * wrong, and the next one has its inputs as they should be. With a guard hit too (1), or without (0). */
START_TEST(far_overrun)
{
	struct bed b;
	struct cell c;
	open_seeing(&b);
	zoo_far = master_of;
	zoo_far_guard = _i;
	ZOO_CELL(&c, &zoo, "shipped", "far", "packed");
	c.checks.on = 1u << CHECK_IDENTITY | 1u << CHECK_REPEAT | 1u << CHECK_INVARIANT | 1u << CHECK_REFERENCE |
		      1u << CHECK_REGRESSION;
	c.checks.repeat = (struct check_repeat){.launches = 3, .addresses = true};
	c.checks.reference.adapter = true;
	c.checks.invariant = (struct check_invariant){.rows = "rows", .permute = true};
	for (int cell = 0; cell < 2; cell++) {
		json_t *facts = run_cell(&b, &c, EXEC_OK);
		bool told = false;
		size_t i;
		json_t *f;
		json_array_foreach(json_object_get(facts, "checks"), i, f)
		{
			const char *arm = text_of(f, "arm");
			if (!strcmp(text_of(f, "status"), "pass"))
				continue;
			if (!*arm && strstr(text_of(f, "text"), "the kept bytes of the input x changed"))
				told = true;
			else if (*arm || strcmp(text_of(f, "where"), "guard_after"))
				ck_assert_msg(cell == 0 && _i && !strcmp(arm, "far") &&
						      !strcmp(text_of(f, "where"), "guard_after"),
					      "cell %d: %s %s: %s", cell, text_of(f, "check"), arm, text_of(f, "text"));
		}
		ck_assert_int_eq(told, cell == 0);
		json_decref(facts);
		zoo_far = NULL;
	}
	bed_close(&b);
}
END_TEST

static const void *seen_x;

static float *see(const void *x)
{
	seen_x = x;
	return NULL;
}

/* What an input is loaded from is kept for the cells that follow. Written to between two of them, it is filled again, which the second says; the
 * third has nothing to say. */
START_TEST(spoilt_between_cells)
{
	static const char note[] = "x was written to in an earlier cell of this process: filled again";
	struct bed b;
	struct cell c;
	open_seeing(&b);
	zoo_far = see;
	ZOO_CELL(&c, &zoo, "shipped", "far", "packed");
	checks_of(&c);
	for (int cell = 0; cell < 3; cell++) {
		json_t *facts = run_cell(&b, &c, EXEC_OK);
		all_pass(facts);
		ck_assert_int_eq(noted(facts, "filled again"), cell == 1);
		ck_assert_int_eq(noted(facts, note), cell == 1);
		json_decref(facts);
		ck_assert_ptr_nonnull(master_of(seen_x));
		if (cell == 0)
			master_of(seen_x)[2] += 1;
	}
	zoo_far = NULL;
	bed_close(&b);
}
END_TEST

static float *itself(const void *x)
{
	union {
		const void *seen;
		float *at;
	} u = {x};
	return u.at;
}

static float *neighbours(const void *x)
{
	return zoo_packed;
}

static float *itself_late(const void *x)
{
	return zoo_launches > 12 ? itself(x) : NULL;
}

/* An arm that changes its input, or the packed one of another, in launches after which nobody looks at them: those that only tell more of what
 * is wrong with it (0: of an arm that is wrong, 1: with a guard hit too, 2: of one whose output follows its workspace), and those after the
 * timed rounds, of an arm that did not do so before (3). Who comes after it has his as they should be. */
START_TEST(spoilt_in_passing)
{
	struct bed b;
	struct cell c;
	size_t i;
	json_t *f;
	int told = 0;
	static const struct {
		const char *arm;
		float *(*far)(const void *x);
		bool guard;
	} of[] = {{"far_wrong", itself, false},
		  {"far_wrong", itself, true},
		  {"far_dirty", neighbours, true},
		  {"far", itself_late, false}};
	const char *const name = of[_i].arm;
	bed_open(&b, NULL);
	zoo_far = of[_i].far;
	zoo_far_guard = of[_i].guard;
	zoo_launches = -20; /* late is past the checks */
	ZOO_CELL(&c, &zoo, "shipped", name, "packed", "scratch");
	c.checks.on = 1u << CHECK_IDENTITY | 1u << CHECK_REPEAT | 1u << CHECK_INVARIANT | 1u << CHECK_REFERENCE;
	c.checks.repeat = (struct check_repeat){.launches = 3, .addresses = true};
	c.checks.reference.adapter = true;
	c.checks.invariant = (struct check_invariant){.rows = "rows", .permute = true};
	if (_i == 3)
		c.checks.on = 1u << CHECK_REGRESSION;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	json_array_foreach(json_object_get(facts, "checks"), i, f)
	{
		const bool nobody =
			_i == 3 && strstr(text_of(f, "text"), "an arm changed the input x during the timed rounds");
		if (!strcmp(text_of(f, "status"), "pass"))
			continue;
		ck_assert_msg(nobody || !strcmp(text_of(f, "arm"), name), "%s %s: %s", text_of(f, "check"),
			      text_of(f, "arm"), text_of(f, "text"));
		told++;
	}
	ck_assert_int_gt(told, 0);
	json_decref(facts);
	zoo_far = NULL;
	bed_close(&b);
}
END_TEST

static float *neighbours_late(const void *x)
{
	return zoo_launches > 12 ? zoo_packed : NULL;
}

/* Whose packed input another's overrun has changed is not accused of it: where that was the last launch of the memory check (0), in the timed
 * rounds (1), and in those alone (2). */
START_TEST(packed_is_innocent)
{
	struct bed b;
	struct cell c;
	size_t i;
	json_t *f;
	bool told = false;
	int findings = 0;
	bed_open(&b, NULL);
	zoo_far = _i == 2 ? neighbours_late : neighbours;
	zoo_far_guard = true;
	zoo_launches = -20; /* late is past the checks */
	ZOO_CELL(&c, &zoo, "shipped", "packed", "far");
	c.checks.on = 1u << (_i == 0 ? CHECK_IDENTITY : CHECK_REGRESSION);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	json_array_foreach(json_object_get(facts, "checks"), i, f)
	{
		if (!strcmp(text_of(f, "status"), "pass"))
			continue;
		ck_assert_msg(strcmp(text_of(f, "arm"), "packed") != 0, "%s: %s", text_of(f, "check"),
			      text_of(f, "text"));
		told = told || !strcmp(text_of(f, "where"), "guard_after");
		findings++;
	}
	ck_assert(told);
	if (_i == 0) {
		/* All three were launched four times, and four times more with a look after each: the overrun is all that is left to tell. */
		ck_assert_int_eq(findings, 1);
		ck_assert_int_eq(fake_launches(b.be), 3 * 4 * 2);
		ck_assert_str_eq(text_of(find(facts, "identity", "packed"), "status"), "pass");
	}
	json_decref(facts);
	zoo_far = NULL;
	bed_close(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("spoilt");
	TCase *t = tcase_create("spoilt");
	tcase_add_loop_test(t, far_overrun, 0, 2);
	tcase_add_test(t, spoilt_between_cells);
	tcase_add_loop_test(t, spoilt_in_passing, 0, 4);
	tcase_add_loop_test(t, packed_is_innocent, 0, 3);
	suite_add_tcase(s, t);
	return unit_run(s);
}
