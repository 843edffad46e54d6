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
};

/* backend NULL: cuda where this build has it and a device is there, else host. device: NULL, index, UUID or name. */
bool target_init(struct target *t, const char *backend, const char *device, struct err *err);

#endif
