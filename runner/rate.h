/* rate: how often a matrix instruction issues on this device, by the built-in kernel probe.rate. Measured once a process and form. */
#ifndef ASSAY_RATE_H
#define ASSAY_RATE_H

#include <jansson.h>

#include "backend.h"

struct rates;
struct rates *rates_create(struct backend *be); /* be is borrowed; NULL out of memory */
void rates_destroy(struct rates *r); /* NULL is fine */

/* {"form", "interval", "unit", "launches", "occupancy", "source"}: the least interval of several launches; or a JSON null with reason, a
 * sentence. form: an arm of probe.rate. New reference. */
json_t *rates_measure(struct rates *r, const char *form, char reason[static 256]);

#endif
