/* test_zoo: a kernel of everything that built-in kernels have little of: strided input and output, a packed container, records, an empty
 * input, two outputs, a workspace; and arms that break each of its rules. y[t,i] = 2 x[t,i], z[t] = the sum of a record's bytes. */
#ifndef ASSAY_TEST_ZOO_H
#define ASSAY_TEST_ZOO_H

#include <stdbool.h>

#include "assay/adapter.h"

enum { ZOO_X, ZOO_W, ZOO_Y, ZOO_Z, ZOO_E, ZOO_R, ZOO_TENSORS };
enum { ZOO_N = 6, ZOO_X_PITCH = 10, ZOO_Y_PITCH = 9 };

extern const struct assay_kernel zoo; /* all of y is defined */
extern const struct assay_kernel zoo_masked; /* the last two columns of y are not */

/* What the arm `env` saw of ASSAY_ZOO_A, _B and _C when it was planned, derived and last run: "A=1 B=- C=2" ("-": unset). */
struct zoo_seen {
	char plan[64], derive[64], run[64];
	int runs;
};
extern struct zoo_seen zoo_seen;
void zoo_environment(char out[64]);
extern const struct assay_arm_ops *const zoo_two; /* of the arm `two`, to find its launches by */
/* The arms `far`, `far_wrong` and `far_dirty` write to where this leads from its x, if anywhere, and with zoo_far_guard behind z as well: an overrun that hits what is kept
 * of an input. */
extern float *(*zoo_far)(const void *x);
extern bool zoo_far_guard;
extern void (*zoo_stray)(void); /* what the arm `strays` does besides */
extern float *zoo_packed; /* the w that was packed last */
/* Launches of all arms so far: the late ones break their rule from their 12th on. */
extern int zoo_launches;

#endif
