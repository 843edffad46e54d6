/* target: where a plan would run: the device that rigs and tables are chosen by. Asks for the name only, no device is opened. */
#ifndef ASSAY_TARGET_H
#define ASSAY_TARGET_H

#include "backend.h"
#include "plan.h"

struct target {
	struct plan_target plan; /* points into the rest: do not copy */
	struct device_peek peek;
	char host[256];
	char backend[16];
	bool elsewhere; /* of target_plan */
};

/* backend NULL: cuda where this build has it and a device is there, else host. device: NULL, index, UUID or name. */
bool target_init(struct target *t, const char *backend, const char *device, struct err *err);
/* The same for who only looks at a plan. Where this build has cuda and no device of it is here, `device` is the name of one that is elsewhere:
 * rigs and tables are chosen by that name, and its architecture is not known (cc 0). */
bool target_plan(struct target *t, const char *backend, const char *device, struct err *err);

#endif
