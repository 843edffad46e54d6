/* arena and err: what they promise at their edges. */
#include <check.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "err.h"
#include "unit.h"

static bool holds(const unsigned char *p, size_t byte, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (p[k] != byte)
			return false;
	return true;
}

/* Zeroed, aligned and apart, whatever the sizes; nothing is a pointer of its own. */
START_TEST(allocations)
{
	struct arena *a = arena_create();
	unsigned char *p[2000];
	for (size_t i = 0; i < 2000; i++) {
		size_t n = i * i % 9001;
		p[i] = arena_alloc(a, n);
		ck_assert_uint_eq((uintptr_t)p[i] % _Alignof(max_align_t), 0);
		ck_assert(holds(p[i], 0, n));
		memset(p[i], (int)(i & 0xFF), n);
	}
	for (size_t i = 0; i < 2000; i++)
		ck_assert(holds(p[i], i & 0xFF, i * i % 9001));
	ck_assert_ptr_ne(arena_alloc(a, 0), arena_alloc(a, 0));
	arena_destroy(a);
	arena_destroy(NULL);
}
END_TEST

START_TEST(texts)
{
	struct arena *a = arena_create();
	char want[2048];
	ck_assert_ptr_null(arena_strdup(a, NULL));
	ck_assert_str_eq(arena_strndup(a, "abcdef", 3), "abc");
	ck_assert_str_eq(arena_printf(a, "%s", ""), "");
	/* About the place where a short text becomes a long one. */
	for (int n = 250; n < 262; n++) {
		snprintf(want, sizeof want, "%*d|", n, n);
		ck_assert_str_eq(arena_printf(a, "%*d|", n, n), want);
	}
	snprintf(want, sizeof want, "%2000d", 7);
	ck_assert_str_eq(arena_printf(a, "%2000d", 7), want);
	arena_destroy(a);
}
END_TEST

START_TEST(growing)
{
	struct arena *a = arena_create();
	size_t cap = 0;
	int *list = NULL;
	for (size_t n = 0; n < 5000; n++) {
		list = arena_grow(a, list, n, &cap, sizeof *list);
		ck_assert_uint_gt(cap, n);
		list[n] = (int)n;
	}
	for (int n = 0; n < 5000; n++)
		ck_assert_int_eq(list[n], n);
	arena_destroy(a);
}
END_TEST

/* A product that overflows ends the process. */
START_TEST(overflow)
{
	struct arena *a = arena_create();
	arena_array(a, SIZE_MAX / 2, 4);
}
END_TEST

/* Too long is cut, never overrun; a prefix keeps what it can of the rest; NULL is nobody who cares. */
START_TEST(errors)
{
	struct err e = {{0}};
	char big[2000];
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	ck_assert(!err_set(NULL, "%s", big));
	ck_assert(!err_prefix(NULL, "%s", big));
	ck_assert(!err_set(&e, "%d of %s", 3, "four"));
	ck_assert_str_eq(e.text, "3 of four");
	ck_assert(!err_prefix(&e, "file %d", 9));
	ck_assert_str_eq(e.text, "file 9: 3 of four");
	ck_assert(!err_set(&e, "%s", big));
	ck_assert_uint_eq(strlen(e.text), sizeof e.text - 1);
	ck_assert(!err_prefix(&e, "place"));
	ck_assert_uint_eq(strlen(e.text), sizeof e.text - 1);
	ck_assert_int_eq(strncmp(e.text, "place: xxx", 10), 0);
	/* What it says may be part of what it is to say. */
	err_set(&e, "inner");
	err_set(&e, "outer(%s)", "inner");
	ck_assert_str_eq(e.text, "outer(inner)");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("arena");
	TCase *t = tcase_create("arena");
	tcase_add_test(t, allocations);
	tcase_add_test(t, texts);
	tcase_add_test(t, growing);
	tcase_add_test_raise_signal(t, overflow, SIGABRT);
	tcase_add_test(t, errors);
	suite_add_tcase(s, t);
	return unit_run(s);
}
