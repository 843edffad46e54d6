/* controls: what stands beside a ratio so that it can be believed: the machine code of its two arms, counted, and how often their
 * matrix instructions issue. Facts only; census_check judges them. */
#ifndef ASSAY_CONTROLS_H
#define ASSAY_CONTROLS_H

#include <jansson.h>

#include "stage.h"

struct controls;
struct controls *controls_create(struct backend *be); /* be is borrowed; NULL out of memory */
void controls_destroy(struct controls *c); /* NULL is fine */

/* For the two arms of the cell's ratio check, sets in facts.arms[].artifact: census (or null with census_reason), and where an equal issue
 * interval is asked for instruction and issue (or null with issue_reason). Outside the clock; each machine code and each form once a
 * process. */
void controls_facts(struct controls *c, struct stage *st, json_t *facts);

#endif
