#define _GNU_SOURCE /* gethostname */
#include "target.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *default_backend(const struct backend_config *cfg)
{
	struct device_peek peek;
	for (const char *const *name = backend_names(); *name; name++)
		if (strcmp(*name, "cuda") == 0 && backend_peek("cuda", cfg, &peek, NULL))
			return "cuda";
	return "host";
}

/* What is left once t->peek is known. */
static void settle(struct target *t, const char *backend)
{
	if (gethostname(t->host, sizeof t->host - 1) != 0)
		snprintf(t->host, sizeof t->host, "unknown");
	snprintf(t->backend, sizeof t->backend, "%s", backend);
	t->plan = (struct plan_target){
		.backend = strcmp(backend, "cuda") == 0 ? ASSAY_CUDA : ASSAY_HOST,
		.device = t->peek.name,
		.host = t->host,
		.cc = t->peek.cc,
	};
}

bool target_init(struct target *t, const char *backend, const char *device, struct err *err)
{
	const struct backend_config cfg = {.device = device};
	memset(t, 0, sizeof *t);
	if (!backend)
		backend = default_backend(&cfg);
	if (!backend_peek(backend, &cfg, &t->peek, err))
		return false;
	settle(t, backend);
	return true;
}

static bool in_this_build(const char *backend)
{
	for (const char *const *name = backend_names(); *name; name++)
		if (strcmp(*name, backend) == 0)
			return true;
	return false;
}

bool target_plan(struct target *t, const char *backend, const char *device, struct err *err)
{
	struct device_peek any;
	if (target_init(t, backend, device, err))
		return true;
	/* Where there are devices, a name that none of them has is a wrong name. */
	if (!backend || strcmp(backend, "cuda") != 0 || !in_this_build(backend) ||
	    backend_peek(backend, &(struct backend_config){0}, &any, NULL))
		return false;
	if (!device || !device[strspn(device, "0123456789")]) {
		char why[sizeof err->text];
		snprintf(why, sizeof why, "%s", err->text);
		return err_set(err,
			       "%.600s; to look at the plan of a device elsewhere, name it: --device 'NVIDIA H200'",
			       why);
	}
	memset(t, 0, sizeof *t);
	snprintf(t->peek.name, sizeof t->peek.name, "%s", device);
	t->elsewhere = true;
	settle(t, backend);
	return true;
}
