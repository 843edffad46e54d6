#define _GNU_SOURCE
#include "unit.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static pid_t
	program; /* not the children that Check runs the tests in: those end when they fail, and would clean up nothing */
static char all[1024];

static int drop(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	remove(path);
	return 0;
}

static void drop_all(void)
{
	if (getpid() == program)
		nftw(all, drop, 16, FTW_DEPTH | FTW_PHYS);
}

__attribute__((constructor)) static void begin(void)
{
	setenv("CK_DEFAULT_TIMEOUT", "60", 0);
	program = getpid();
	snprintf(all, sizeof all, "%s/unit-%ld", ASSAY_TEST_BUILD, (long)program);
	atexit(drop_all);
}

void unit_enter(void)
{
	char one[sizeof all + 8];
	mkdir(all, 0777);
	snprintf(one, sizeof one, "%s/XXXXXX", all);
	ck_assert_msg(mkdtemp(one) != NULL, "%s", one);
	ck_assert_int_eq(chdir(one), 0);
}

int unit_run(Suite *s)
{
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	const int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed > 0;
}
