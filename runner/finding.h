/* finding: what a check says of an arm, as it stands in a record (docs/verdict.md, A finding). */
#ifndef ASSAY_FINDING_H
#define ASSAY_FINDING_H

#include <jansson.h>

/* Appends {"check", "arm", "status", "text"} to an array and returns it, borrowed, so that more fields can be set. arm may be
 * NULL. fmt NULL: no text. */
json_t *finding_add(json_t *findings, const char *check, const char *arm, const char *status, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* Takes the findings of a check (and an arm, NULL: all) out again. */
void finding_drop(json_t *findings, const char *check, const char *arm);
/* Whether a check has a finding of this arm that is not a pass. */
int finding_failed(const json_t *findings, const char *check, const char *arm);

#endif
