#include "cuda_nvml.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The few declarations that are needed; the library's interface is versioned by its symbols, so they do not move. */
typedef struct nvmlDevice *device_handle;
enum { LISTED_MOST = 64 };
enum { OK = 0, CLOCK_SM = 1, CLOCK_MEM = 2, TEMPERATURE_GPU = 0, TOO_SMALL = 7 };
struct process_info { /* of the _v3 functions */
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};

struct reason {
	unsigned long long bit;
	const char *text;
};

/* Reasons that mean a window is not worth its samples. */
static const struct reason throttles[] = {
	{0x40, "hardware thermal slowdown"},
	{0x20, "software thermal slowdown"},
	{0x80, "power brake"},
	{0x08, "hardware slowdown"},
	{0, NULL},
};

/* What holds the clock of a card that works as it is meant to: many are at their power cap whenever they are busy. It moves over milliseconds, for all
 * arms of a round alike. */
static const struct reason limits[] = {
	{0x04, "power cap"},
	{0x10, "synchronised boost with another GPU"},
	{0, NULL},
};

struct cuda_nvml {
	void *library;
	device_handle device;
	int (*shutdown)(void);
	int (*clock)(device_handle, int, unsigned *);
	int (*clock_max)(device_handle, int, unsigned *);
	int (*temperature)(device_handle, int, unsigned *);
	int (*power)(device_handle, unsigned *);
	int (*power_limit)(device_handle, unsigned *);
	int (*throttle)(device_handle, unsigned long long *);
	int (*processes)(device_handle, unsigned *, struct process_info *);
	int (*graphics_processes)(device_handle, unsigned *, struct process_info *);
	int (*ecc)(device_handle, unsigned *, unsigned *);
	int (*mig)(device_handle, unsigned *, unsigned *);
	int (*persistence)(device_handle, unsigned *);
	int (*driver)(char *, unsigned);
	pid_t before[LISTED_MOST]; /* who was on the device before this process had a context there */
	int n_before; /* -1: not known */
	/* Who came with our context, where nobody did by our own number: one of them is us, by the number that the host has for us (a container). None:
	 * we stand in the list by our own number. */
	pid_t maybe[LISTED_MOST];
	int n_maybe;
};

/* ISO C has no cast from a data pointer to a function's. */
static void find(void *library, const char *name, void *slot)
{
	void *p = dlsym(library, name);
	memcpy(slot, &p, sizeof p);
}

/* The processes of a list. -1: not known; LISTED_MOST: perhaps more. */
static int listed(const struct cuda_nvml *n, int (*list)(device_handle, unsigned *, struct process_info *),
		  pid_t out[LISTED_MOST])
{
	struct process_info p[LISTED_MOST];
	unsigned count = LISTED_MOST;

	if (!list)
		return -1;
	memset(p, 0, sizeof p);
	int rc = list(n->device, &count, p);
	if (rc == TOO_SMALL || count > LISTED_MOST) { /* so many that none is told: nobody's */
		count = LISTED_MOST;
		for (unsigned i = 0; i < count; i++)
			p[i].pid = UINT_MAX;
	}
	if (rc != OK && rc != TOO_SMALL)
		return -1;
	for (unsigned i = 0; i < count; i++)
		out[i] = (pid_t)p[i].pid;
	return (int)count;
}

struct cuda_nvml *cuda_nvml_open(const char *uuid, const char **why)
{
	int (*init)(void);
	int (*by_uuid)(const char *, device_handle *);
	struct cuda_nvml *n = calloc(1, sizeof *n);

	*why = "out of memory";
	if (!n)
		return NULL;
	*why = "libnvidia-ml.so.1 is not installed";
	n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!n->library)
		goto fail;
	find(n->library, "nvmlInit_v2", &init);
	find(n->library, "nvmlShutdown", &n->shutdown);
	find(n->library, "nvmlDeviceGetHandleByUUID", &by_uuid);
	find(n->library, "nvmlDeviceGetClockInfo", &n->clock);
	find(n->library, "nvmlDeviceGetMaxClockInfo", &n->clock_max);
	find(n->library, "nvmlDeviceGetTemperature", &n->temperature);
	find(n->library, "nvmlDeviceGetPowerUsage", &n->power);
	find(n->library, "nvmlDeviceGetEnforcedPowerLimit", &n->power_limit);
	find(n->library, "nvmlDeviceGetCurrentClocksThrottleReasons", &n->throttle);
	find(n->library, "nvmlDeviceGetComputeRunningProcesses_v3", &n->processes);
	find(n->library, "nvmlDeviceGetGraphicsRunningProcesses_v3", &n->graphics_processes);
	find(n->library, "nvmlDeviceGetEccMode", &n->ecc);
	find(n->library, "nvmlDeviceGetMigMode", &n->mig);
	find(n->library, "nvmlDeviceGetPersistenceMode", &n->persistence);
	find(n->library, "nvmlSystemGetDriverVersion", &n->driver);
	*why = "libnvidia-ml.so.1 lacks the functions that are asked of it";
	if (!init || !n->shutdown || !by_uuid)
		goto fail_close;
	*why = "nvmlInit failed";
	if (init() != OK)
		goto fail_close;
	*why = "NVML does not know the device";
	if (by_uuid(uuid, &n->device) != OK) {
		n->shutdown();
		goto fail_close;
	}
	n->n_before = listed(n, n->processes, n->before);
	*why = NULL;
	return n;

fail_close:
	dlclose(n->library);
fail:
	free(n);
	return NULL;
}

void cuda_nvml_close(struct cuda_nvml *n)
{
	if (!n)
		return;
	n->shutdown();
	dlclose(n->library);
	free(n);
}

static bool has(const pid_t *list, int n, pid_t pid)
{
	for (int i = 0; i < n; i++)
		if (list[i] == pid)
			return true;
	return false;
}

void cuda_nvml_present(struct cuda_nvml *n)
{
	pid_t now[LISTED_MOST];

	if (!n || n->n_before < 0 || n->n_before == LISTED_MOST)
		return;
	const int count = listed(n, n->processes, now);
	/* What lives under such a number here says nothing: a number of the host's may be anybody's. When it came does. */
	if (count < 0 || count == LISTED_MOST || (has(now, count, getpid()) && !has(n->before, n->n_before, getpid())))
		return;
	for (int i = 0; i < count; i++)
		if (!has(n->before, n->n_before, now[i]) && !has(n->maybe, n->n_maybe, now[i]))
			n->maybe[n->n_maybe++] = now[i];
}

/* Compute processes that are not us nor our parent or its other workers: those of our process group. -1: not known. */
static int others(struct cuda_nvml *n)
{
	pid_t p[LISTED_MOST];
	int count = 0, left = 0;
	const int all = listed(n, n->processes, p);

	/* Who has gone was not us. Where all have, the list is not to be had or we have left the device: nothing is learnt. */
	for (int i = 0; i < n->n_maybe; i++)
		left += has(p, all, n->maybe[i]);
	for (int i = 0, k = 0; left > 0 && i < n->n_maybe; i++)
		if (has(p, all, n->maybe[i]))
			n->maybe[k++] = n->maybe[i];
	n->n_maybe = left > 0 ? left : n->n_maybe;
	for (int i = 0; i < all; i++)
		if (n->n_maybe)
			count += !has(n->maybe, n->n_maybe, p[i]);
		else
			/* Of a process of another pid namespace nothing is known; it is not ours then. */
			count += p[i] != getpid() && p[i] != getppid() && getpgid(p[i]) != getpgrp();
	return all < 0 ? -1 : count + (left > 1 ? left - 1 : 0);
}

/* The first of the reasons whose bit is set, or NULL; *bits: all of them. */
static const char *reason_of(const struct reason *r, unsigned long long set, uint64_t *bits)
{
	const char *text = NULL;

	*bits = 0;
	for (; r->text; r++) {
		*bits |= set & r->bit;
		if (set & r->bit && !text)
			text = r->text;
	}
	return text;
}

void cuda_nvml_state(struct cuda_nvml *n, struct device_state *out)
{
	unsigned v;
	unsigned long long bits;

	*out = (struct device_state){-1, -1, -1, -1, 0, NULL, -1, -1, NULL};
	if (!n)
		return;
	if (n->clock && n->clock(n->device, CLOCK_SM, &v) == OK)
		out->sm_mhz = (int)v;
	if (n->clock && n->clock(n->device, CLOCK_MEM, &v) == OK)
		out->mem_mhz = (int)v;
	if (n->temperature && n->temperature(n->device, TEMPERATURE_GPU, &v) == OK)
		out->temperature_c = (int)v;
	if (n->power && n->power(n->device, &v) == OK)
		out->power_w = (int)((v + 500) / 1000);
	if (n->throttle && n->throttle(n->device, &bits) == OK) {
		uint64_t held;
		out->throttle_text = reason_of(throttles, bits, &out->throttle);
		out->limit_text = reason_of(limits, bits, &held);
	}
	/* A display that the device draws is always there, and what it costs is in the noise of the null arm. */
	out->other_processes = others(n);
}

static void set_unsigned(json_t *o, const char *key, bool known, unsigned v)
{
	json_object_set_new(o, key, known ? json_integer(v) : json_null());
}

void cuda_nvml_describe(struct cuda_nvml *n, json_t *o)
{
	unsigned v = 0, pending;
	char text[96] = "";

	if (!n)
		return;
	bool known = n->driver && n->driver(text, sizeof text) == OK;
	json_object_set_new(o, "driver_version", known ? json_string(text) : json_null());
	known = n->power_limit && n->power_limit(n->device, &v) == OK;
	set_unsigned(o, "power_limit_w", known, v / 1000);
	known = n->clock_max && n->clock_max(n->device, CLOCK_SM, &v) == OK;
	set_unsigned(o, "sm_max_mhz", known, v);
	known = n->clock_max && n->clock_max(n->device, CLOCK_MEM, &v) == OK;
	set_unsigned(o, "mem_max_mhz", known, v);
	known = n->ecc && n->ecc(n->device, &v, &pending) == OK;
	json_object_set_new(o, "ecc", known ? json_boolean(v) : json_null());
	known = n->mig && n->mig(n->device, &v, &pending) == OK;
	json_object_set_new(o, "mig", known ? json_boolean(v) : json_null());
	known = n->persistence && n->persistence(n->device, &v) == OK;
	json_object_set_new(o, "persistence", known ? json_boolean(v) : json_null());
	pid_t drawing[LISTED_MOST];
	const int graphics = listed(n, n->graphics_processes, drawing);
	json_object_set_new(o, "graphics_processes", graphics >= 0 ? json_integer(graphics) : json_null());
}
