/* selftest: what a run of suites/selftest.yaml proves. It drives nothing: it reads the records of an ordinary run as they come, and makes claims
 * of them. Pure. */
#ifndef ASSAY_SELFTEST_H
#define ASSAY_SELFTEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum claim_state {
	CLAIM_HOLDS,
	CLAIM_BROKEN,
	CLAIM_OPEN, /* this machine is too noisy to show it either way */
	CLAIM_TOLD, /* a figure that nothing is asserted of */
	CLAIM_SKIPPED /* not on this backend */
};

struct claim {
	char name[80]; /* "must-fail ulp" */
	enum claim_state state;
	char text[400];
};

struct selftest;
/* quick: nothing is asserted of a timing. NULL out of memory. */
struct selftest *selftest_create(bool quick);
void selftest_destroy(struct selftest *s); /* NULL is fine */
/* The next record of the run. Returns how many claims it is by itself, in out. */
enum { SELFTEST_TAKE_MAX = 2 };
int selftest_take(struct selftest *s, const json_t *record, struct claim out[SELFTEST_TAKE_MAX]);
/* The claims over many cells, after the last record. Returns how many, at most cap. */
int selftest_close(struct selftest *s, struct claim *out, int cap);
/* Of all claims so far: 0 all hold, 1 one is broken, 3 one is open or a cell failed that no claim speaks of. */
int selftest_status(const struct selftest *s);
int selftest_count(const struct selftest *s, enum claim_state state);
/* "caught", "ESCAPED", "holds", "BROKEN", "open", "told", "skipped". */
const char *selftest_word(const struct claim *c);
/* The claim as an aggregate record. New reference. */
json_t *selftest_record(const struct claim *c);

#endif
