#include "backend.h"

#include <string.h>

static const char *const names[] = {
	"host",
#ifdef ASSAY_WITH_CUDA
	"cuda",
#endif
	NULL,
};

const char *const *backend_names(void)
{
	return names;
}

static bool known(const char *name, struct err *err)
{
	char list[64] = "";
	for (int i = 0; names[i]; i++) {
		if (strcmp(names[i], name) == 0)
			return true;
		if (i)
			strcat(list, ", ");
		strcat(list, names[i]);
	}
	if (strcmp(name, "cuda") == 0)
		return err_set(err,
			       "no backend 'cuda' in this build: it was built without nvcc (meson option -Dcuda); "
			       "backends: %s",
			       list);
	return err_set(err, "no backend '%s' in this build; backends: %s", name, list);
}

struct backend *backend_open(const char *name, const struct backend_config *cfg, struct err *err)
{
	if (!known(name, err))
		return NULL;
#ifdef ASSAY_WITH_CUDA
	if (strcmp(name, "cuda") == 0)
		return backend_cuda_open(cfg, err);
#endif
	return backend_host_open(cfg, err);
}

bool backend_peek(const char *name, const struct backend_config *cfg, struct device_peek *out, struct err *err)
{
	memset(out, 0, sizeof *out);
	if (!known(name, err))
		return false;
#ifdef ASSAY_WITH_CUDA
	if (strcmp(name, "cuda") == 0)
		return backend_cuda_peek(cfg, out, err);
#endif
	return backend_host_peek(cfg, out, err);
}
