/* unit: what every program of unit tests has: a minute for a test, for slow machines, where it does not say otherwise; and folders that are
 * gone when the program ends, whatever became of the tests. */
#ifndef ASSAY_TESTS_UNIT_H
#define ASSAY_TESTS_UNIT_H

#include <check.h>

/* Makes a new, empty folder, below that of the build, and changes into it: as a checked fixture, or at the head of a test. */
void unit_enter(void);
/* Runs all of a suite, as CK_VERBOSITY says, and frees it: what main returns. */
int unit_run(Suite *s);

#endif
