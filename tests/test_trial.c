#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trial.h"
#include "unit.h"

#define PLUGIN(name) ASSAY_TEST_BUILD "/plugin/" name ".so"

static const int64_t second_ns = 1000000000;

enum how { COMES_BACK, SAYS_NO, ENDS, ENDS_7, KILLED, HANGS };

static bool subject(void *ctx, struct err *err)
{
	switch (*(enum how *)ctx) {
	case COMES_BACK: return true;
	case SAYS_NO: return err_set(err, "no, %d times", 3);
	case ENDS: _exit(0);
	case ENDS_7: _exit(7);
	case KILLED: raise(SIGKILL); break;
	case HANGS:
		for (;;)
			pause();
	}
	return true;
}

static const struct {
	enum how how;
	const char *text; /* NULL: true is wanted */
} ends[] = {
	{COMES_BACK, NULL},
	{SAYS_NO, "no, 3 times"},
	{ENDS, "ended the process with status 0"},
	{ENDS_7, "ended the process with status 7"},
	{KILLED, "died of signal 9 (Killed)"},
	{HANGS, "did not come back within 0.2 s"},
};

START_TEST(each_end_is_told)
{
	struct err err = {""};
	enum how how = ends[_i].how;
	const int64_t limit_ns = how == HANGS ? second_ns / 5 : 60 * second_ns;
	ck_assert_int_eq(trial_run(subject, &how, limit_ns, &err), ends[_i].text == NULL);
	ck_assert_str_eq(err.text, ends[_i].text ? ends[_i].text : "");
}
END_TEST

static bool add_one(void *ctx, struct err *err)
{
	(void)err;
	++*(int *)ctx;
	return true;
}

/* What the child does stays there. */
START_TEST(nothing_is_changed_here)
{
	struct err err;
	int n = 1;
	ck_assert(trial_run(add_one, &n, 60 * second_ns, &err));
	ck_assert_int_eq(n, 1);
}
END_TEST

START_TEST(plugins)
{
	struct registry *r = registry_create();
	struct err err = {""};
	const int n = registry_count(r);
	setenv("ASSAY_TEST_DEADLY", "exit", 1);
	ck_assert(!trial_plugin(r, PLUGIN("deadly"), &err));
	ck_assert_ptr_nonnull(strstr(err.text, "plugin " PLUGIN("deadly") ": "));
	ck_assert_ptr_nonnull(strstr(err.text, "ended the process with status "));
	ck_assert_int_eq(registry_count(r), n);
	unsetenv("ASSAY_TEST_DEADLY");
	ck_assert_msg(trial_plugin(r, PLUGIN("deadly"), &err), "%s", err.text);
	ck_assert_ptr_nonnull(registry_find(r, "demo.deadly"));
	/* An error in order keeps its own words. */
	ck_assert(!trial_plugin(r, PLUGIN("no_symbol"), &err));
	ck_assert_ptr_nonnull(strstr(err.text, "exports neither 'assay_kernel' nor 'assay_kernels'"));
	registry_destroy(r);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("trial");
	TCase *tc = tcase_create("trial");
	tcase_add_loop_test(tc, each_end_is_told, 0, (int)(sizeof ends / sizeof ends[0]));
	tcase_add_test(tc, nothing_is_changed_here);
	tcase_add_test(tc, plugins);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
