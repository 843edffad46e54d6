/* err: one sentence about what went wrong, carried up by value. Functions that can fail return false (or NULL) and fill a
 * `struct err *`, which may be NULL where the caller does not care. Nobody but main prints or exits. */
#ifndef ASSAY_ERR_H
#define ASSAY_ERR_H

#include <stdbool.h>

struct err {
	char text[768];
};

/* Formats into *e (NULL is fine) and returns false, so that `return err_set(e, …);` reads as one step. */
bool err_set(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " before what *e says. Returns false. */
bool err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
