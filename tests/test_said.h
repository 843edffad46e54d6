/* test_said: what diagnostics would print. */
#ifndef ASSAY_TEST_SAID_H
#define ASSAY_TEST_SAID_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"

/* Good until the next call. */
static inline const char *said_by(struct diags *d)
{
	static char text[1 << 16];
	char *buf = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&buf, &n);
	diags_print(d, f, false);
	fclose(f);
	ck_assert_uint_lt(n, sizeof text);
	memcpy(text, buf, n + 1);
	free(buf);
	return text;
}

#endif
