#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "select.h"
#include "unit.h"

/* A cell as selectors see it: keys with one value or several. */
struct pair {
	const char *key, *value;
};

static const struct pair cell[] = {
	{"kernel", "mla.absorb_q"},
	{"t_q", "4"},
	{"kv", "32768"},
	{"arm", "shipped"},
	{"arm", "split=4"},
	{"arm", "split=8"},
	{"scale", "0.0625"},
	{"gap", "-3"},
	{"seed", "45568"},
	{"device", "NVIDIA H200"},
	{"id", "s/mla/mla.absorb_q/g/unit/kv=32768,t_q=4"},
	{NULL, NULL},
};

static const char *get(const void *subject, const char *key, int i, char *buf, size_t cap)
{
	for (const struct pair *p = subject; p->key; p++)
		if (strcmp(p->key, key) == 0 && i-- == 0)
			return p->value;
	return NULL;
}

static struct arena *arena;

static void setup(void)
{
	arena = arena_create();
}

static void teardown(void)
{
	arena_destroy(arena);
}

static const struct {
	const char *text;
	bool matches;
} match_rows[] = {
	{"kernel=mla.absorb_q", true},
	{"kernel=mla.*", true},
	{"kernel=*absorb?q", true},
	{"kernel=mla.absorb", false},
	{"kernel=MLA.*", false},
	{"kernel=*", true},
	{"kernel=**q*", true},
	{"t_q=4", true},
	{"t_q=4.0", true},
	{"t_q=0x4", true},
	{"t_q=4e0", true},
	{"kv=3.2768e4", true},
	{"kv=32769", false},
	{"kv=32*", true},
	{"t_q=1..4", true},
	{"t_q=5..9", false},
	{"t_q=4..4", true},
	{"gap=-5..-1", true},
	{"gap=-2..5", false},
	{"gap<0", true},
	{"kv>=32768", true},
	{"kv>32768", false},
	{"kv<=32768", true},
	{"kv<32768", false},
	{"kv!=32768", false},
	{"kv!=2048", true},
	{"t_q=1|2|4", true},
	{"t_q=[1, 2,4]", true},
	{"t_q=[1,2]", false},
	{"t_q!=1|2", true},
	{"t_q!=1|4", false},
	{"arm=split=4", true},
	{"arm=split=2", false},
	{"arm=split=*", true},
	{"arm!=split=2", true},
	{"arm!=split=8", false},
	{"kernel=mla.*,t_q=1..4,kv>=32768,arm=split=4", true},
	{"kernel=mla.*,t_q=1..3,kv>=32768,arm=split=4", false},
	{"  kernel=mla.absorb_q   kv=32768\tt_q=4 ", true},
	{"kernel=mla.absorb_q, kv=32768", true},
	{"depth=3", false}, /* a key that the subject lacks */
	{"depth!=3", false}, /* the same, also under != */
	{"kernel>3", false}, /* no number on the other side */
	{"kernel=1..3", false},
	{"scale=0.0625", true},
	{"scale=6.25e-2", true},
	{"seed=0xB200", true},
	{"device=\"NVIDIA H200\"", true},
	{"device=*H200*|*B200*", true},
	{"device=[\"NVIDIA B200\", \"NVIDIA H200\"]", true},
	{"id=s/mla/*,t_q=4", true},
};

START_TEST(matches)
{
	struct selector s;
	struct err err = {""};
	ck_assert_msg(selector_parse(arena, match_rows[_i].text, &s, &err), "%s: %s", match_rows[_i].text, err.text);
	ck_assert_msg(selector_match(&s, cell, get) == match_rows[_i].matches, "%s", match_rows[_i].text);
	/* The canonical text is understood again and means the same. */
	const char *text = selector_text(arena, &s);
	struct selector again;
	ck_assert_msg(selector_parse(arena, text, &again, &err), "%s: %s", text, err.text);
	ck_assert_str_eq(selector_text(arena, &again), text);
	ck_assert_int_eq(selector_match(&again, cell, get), match_rows[_i].matches);
}
END_TEST

static const struct {
	const char *text, *message;
} error_rows[] = {
	{"", "at 1: an empty selector; write KEY=PATTERN"},
	{"   ", "at 1: an empty selector; write KEY=PATTERN"},
	{"kernel", "at 1: 'kernel' has no operator; write KEY=PATTERN without blanks, or one of != < <= > >="},
	{"t_q=1 kernel = mla",
	 "at 7: 'kernel' has no operator; write KEY=PATTERN without blanks, or one of != < <= > >="},
	{"kernel:mla.*", "at 7: ':' is no operator; write kernel=mla.*"},
	{"=4", "at 1: no key before '='; write KEY=PATTERN, without blanks"},
	{"kv-x=3", "at 3: 'kv-x' is no key; keys are made of letters, digits, _ and ."},
	{"t_q=", "at 5: an empty pattern; write a glob, a number or a range A..B"},
	{"t_q=1||2", "at 5: an empty pattern; write a glob, a number or a range A..B"},
	{"t_q=[]", "at 5: an empty pattern; write a glob, a number or a range A..B"},
	{"t_q==4", "at 4: '==' is no operator; write '='"},
	{"t_q=<4", "at 4: '=<' is no operator; write '<='"},
	{"t_q=>4", "at 4: '=>' is no operator; write '>='"},
	{"t_q<>4", "at 4: '<>' is no operator; write '>='"},
	{"t_q=1,,kv=2", "at 7: a term is missing before ','; write KEY=PATTERN"},
	{",t_q=1", "at 1: a term is missing before ','; write KEY=PATTERN"},
	{"t_q=1,", "at 7: a term is missing after the last ','"},
	{"t_q=4..1", "at 5: the range '4..1' is empty; write the smaller number first: 1..4"},
	{"t_q=4..", "at 5: the range '4..' lacks an end; write A..B, or KEY>=A for no upper end"},
	{"t_q=..4", "at 5: the range '..4' lacks an end; write A..B, or KEY<=B for no lower end"},
	{"t_q=1..x", "at 5: the range '1..x' wants a number on both sides of .."},
	{"kv>=many", "at 5: '>=' compares numbers, 'many' is none"},
	{"kv<1|2", "at 4: '<' compares with one number, here are 2 alternatives"},
	{"kv<1..2", "at 4: '<' compares numbers, '1..2' is none"},
	{"device=\"NVIDIA H200", "at 8: \" is not closed"},
	{"t_q=[1,2", "at 5: [ is not closed"},
	{"t_q=[1]2", "at 5: text after the list '[1]2'; end it at ]"},
};

START_TEST(errors)
{
	struct selector s;
	struct err err = {""};
	ck_assert(!selector_parse(arena, error_rows[_i].text, &s, &err));
	ck_assert_str_eq(err.text, error_rows[_i].message);
}
END_TEST

START_TEST(map_form)
{
	struct selector s = {0};
	struct err err;
	ck_assert(selector_match(&s, cell, get)); /* {} matches everything */
	ck_assert(selector_add(arena, &s, "kernel", "mla.*", &err));
	ck_assert(selector_add(arena, &s, "kv", ">= 32768", &err));
	ck_assert(selector_add(arena, &s, "t_q", "[1, 4]", &err));
	ck_assert(selector_add(arena, &s, "device", "NVIDIA H200", &err));
	ck_assert(selector_match(&s, cell, get));
	ck_assert_str_eq(selector_text(arena, &s), "kernel=mla.*,kv>=32768,t_q=1|4,device=\"NVIDIA H200\"");
	ck_assert(selector_add(arena, &s, "kv", "!=32768", &err));
	ck_assert(!selector_match(&s, cell, get));
	ck_assert_int_eq(selector_specificity(&s), 4); /* kv stands twice and counts once */
	ck_assert(!selector_add(arena, &s, "kv", "", &err));
	ck_assert(!selector_add(arena, &s, "", "x", &err));
	ck_assert(!selector_add(arena, &s, "kv", "==3", &err));
	ck_assert_int_eq(s.n_terms, 5);
}
END_TEST

static bool known(const void *ctx, const char *key)
{
	return strcmp(key, ctx) == 0;
}

START_TEST(unknown_key)
{
	struct selector s;
	ck_assert(selector_parse(arena, "kernel=a,kvv=3", &s, NULL));
	ck_assert_str_eq(selector_unknown_key(&s, known, "kernel"), "kvv");
	ck_assert_str_eq(selector_unknown_key(&s, known, "kvv"), "kernel");
	ck_assert(selector_parse(arena, "kernel=a", &s, NULL));
	ck_assert_ptr_null(selector_unknown_key(&s, known, "kernel"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("select");
	TCase *tc = tcase_create("select");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, matches, 0, (int)(sizeof match_rows / sizeof match_rows[0]));
	tcase_add_loop_test(tc, errors, 0, (int)(sizeof error_rows / sizeof error_rows[0]));
	tcase_add_test(tc, map_form);
	tcase_add_test(tc, unknown_key);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
