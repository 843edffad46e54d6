#include "cuda_device.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void version(int v, char *out, size_t cap)
{
	snprintf(out, cap, "%d.%d", v / 1000, v % 1000 / 10);
}

static void describe(int index, const struct cudaDeviceProp *p, struct cuda_device *d)
{
	int v = 0;

	memset(d, 0, sizeof *d);
	d->index = index;
	snprintf(d->name, sizeof d->name, "%.127s", p->name);
	const unsigned char *u = (const unsigned char *)p->uuid.bytes;
	int n = snprintf(d->uuid, sizeof d->uuid, "GPU-");
	for (int i = 0; i < 16; i++)
		n += snprintf(d->uuid + n, sizeof d->uuid - (size_t)n,
			      i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", u[i]);
	d->cc = 10 * p->major + p->minor;
	d->multiprocessors = p->multiProcessorCount;
	d->memory_bytes = (int64_t)p->totalGlobalMem;
	d->llc_bytes = p->l2CacheSize;
	d->persisting_l2 = p->persistingL2CacheMaxSize > 0;
	if (cudaDriverGetVersion(&v) == cudaSuccess)
		version(v, d->driver, sizeof d->driver);
	if (cudaRuntimeGetVersion(&v) == cudaSuccess)
		version(v, d->runtime, sizeof d->runtime);
	if (cudaDeviceGetAttribute(&v, cudaDevAttrClockRate, index) == cudaSuccess)
		d->sm_mhz = v / 1000;
	if (cudaDeviceGetAttribute(&v, cudaDevAttrMemoryClockRate, index) == cudaSuccess)
		d->mem_mhz = v / 1000;
}

/* How many devices there are, or why none can be used. */
static bool count(int *n, struct err *err)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int driver = 0;
	cudaError_t e = cudaGetDeviceCount(n);

	if (e == cudaSuccess && *n > 0)
		return true;
	(void)cudaGetLastError();
	(void)cudaDriverGetVersion(&driver);
	if (driver == 0)
		return err_set(err, "cuda: no NVIDIA driver on this machine (libcuda.so.1 was not found or does not "
				    "start); install "
				    "one, or run with --backend host");
	if (e == cudaErrorInsufficientDriver) {
		char have[32], want[32];
		int runtime = 0;
		(void)cudaRuntimeGetVersion(&runtime);
		version(driver, have, sizeof have);
		version(runtime, want, sizeof want);
		return err_set(err, "cuda: the driver supports CUDA %s and this build needs %s; update the driver",
			       have, want);
	}
	if (visible)
		return err_set(err, "cuda: no device is visible: CUDA_VISIBLE_DEVICES is '%s'%s%s", visible,
			       e == cudaSuccess ? "" : "; ", e == cudaSuccess ? "" : cudaGetErrorString(e));
	if (e == cudaSuccess || e == cudaErrorNoDevice)
		return err_set(err, "cuda: the driver is there, but no device is");
	return err_set(err, "cuda: the devices cannot be counted: %s (%s)", cudaGetErrorString(e), cudaGetErrorName(e));
}

/* 0: not meant; 1: a part of its name or UUID; 2: exactly it. */
static int meant(const char *wanted, const struct cuda_device *d)
{
	char *end;
	long index = strtol(wanted, &end, 10);

	if (*wanted && !*end)
		return index == d->index ? 2 : 0;
	if (strcasecmp(wanted, d->uuid) == 0 || strcasecmp(wanted, d->name) == 0)
		return 2;
	if (strncasecmp(wanted, "GPU-", 4) == 0)
		return strncasecmp(wanted, d->uuid, strlen(wanted)) == 0;
	for (const char *at = d->name; *wanted && *at; at++)
		if (strncasecmp(at, wanted, strlen(wanted)) == 0)
			return 1;
	return 0;
}

bool cuda_device_pick(const char *wanted, struct cuda_device *out, struct err *err)
{
	char list[400] = "";
	int n, best = 0, same = 0;

	if (!count(&n, err))
		return false;
	for (int i = 0; i < n; i++) {
		struct cudaDeviceProp p;
		struct cuda_device d;
		cudaError_t e = cudaGetDeviceProperties(&p, i);
		if (e != cudaSuccess)
			return err_set(err, "cuda: device %d cannot be asked what it is: %s", i, cudaGetErrorString(e));
		describe(i, &p, &d);
		size_t used = strlen(list);
		snprintf(list + used, sizeof list - used, "%s%d %s %.12s", i ? ", " : "", i, d.name, d.uuid);
		int how = wanted ? meant(wanted, &d) : i == 0 ? 2 : 0;
		if (how > best) {
			best = how;
			same = 0;
			*out = d;
		} else if (how && how == best) {
			same++;
		}
	}
	if (!best)
		return err_set(err, "cuda: no device '%s'; there %s %d: %s", wanted, n == 1 ? "is" : "are", n, list);
	if (same && wanted)
		return err_set(err, "cuda: '%s' may be any of %d devices; name an index or a UUID of: %s", wanted,
			       same + 1, list);
	return true;
}
