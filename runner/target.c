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

bool target_init(struct target *t, const char *backend, const char *device, struct err *err)
{
	const struct backend_config cfg = {.device = device};
	memset(t, 0, sizeof *t);
	if (!backend)
		backend = default_backend(&cfg);
	if (!backend_peek(backend, &cfg, &t->peek, err))
		return false;
	if (gethostname(t->host, sizeof t->host - 1) != 0)
		snprintf(t->host, sizeof t->host, "unknown");
	snprintf(t->backend, sizeof t->backend, "%s", backend);
	t->plan = (struct plan_target){
		.backend = strcmp(backend, "cuda") == 0 ? ASSAY_CUDA : ASSAY_HOST,
		.device = t->peek.name,
		.host = t->host,
		.cc = t->peek.cc,
	};
	return true;
}
