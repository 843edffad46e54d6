/* The functions of the management library that assay asks for, answered from one struct. */
#include "fake_nvml.h"

struct fake_nvml fake_nvml;

struct process {
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};

int nvmlInit_v2(void)
{
	fake_nvml.inits += fake_nvml.init_rc == 0;
	return fake_nvml.init_rc;
}

int nvmlShutdown(void)
{
	fake_nvml.shutdowns++;
	return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle)
{
	*handle = &fake_nvml;
	return uuid[0] == 'G' ? fake_nvml.handle_rc : 6;
}

int nvmlDeviceGetClockInfo(void *d, int which, unsigned *mhz)
{
	(void)d;
	*mhz = which == 1 ? 1980 : 3201;
	return 0;
}

int nvmlDeviceGetTemperature(void *d, int which, unsigned *c)
{
	(void)d;
	*c = which == 0 ? 38 : 0;
	return 0;
}

int nvmlDeviceGetPowerUsage(void *d, unsigned *mw)
{
	(void)d;
	*mw = 165500;
	return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *bits)
{
	(void)d;
	*bits = fake_nvml.throttle;
	return 0;
}

/* As the library: too small a room is an error that says how many there are. */
static int list(const unsigned *pid, unsigned n, unsigned *count, struct process *out)
{
	const unsigned room = *count;
	*count = n;
	if (fake_nvml.list_rc)
		return fake_nvml.list_rc;
	if (n > room)
		return 7;
	for (unsigned i = 0; i < n; i++)
		out[i] = (struct process){.pid = pid[i]};
	return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *count, struct process *out)
{
	(void)d;
	return list(fake_nvml.compute, fake_nvml.n_compute, count, out);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *d, unsigned *count, struct process *out)
{
	(void)d;
	return list(fake_nvml.graphics, fake_nvml.n_graphics, count, out);
}
