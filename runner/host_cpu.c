#define _GNU_SOURCE /* sched_getaffinity, cpu_set_t */
#include "host_cpu.h"

#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sha256.h"

#define CPU_DIR "/sys/devices/system/cpu"

/* First line of a file without its newline; false where it cannot be read. */
static bool read_line(const char *path, char *out, size_t cap)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool ok = fgets(out, (int)cap, f) != NULL;
	fclose(f);
	if (ok)
		out[strcspn(out, "\n")] = '\0';
	return ok;
}

static bool read_number(const char *path, uint64_t *out)
{
	char line[64];
	if (!read_line(path, line, sizeof line))
		return false;
	char *end;
	*out = strtoull(line, &end, 10);
	return end != line;
}

static bool read_cpu_number(int cpu, const char *what, uint64_t *out)
{
	char path[128];
	snprintf(path, sizeof path, CPU_DIR "/cpu%d/%s", cpu, what);
	return read_number(path, out);
}

/* The value of "key<tab>: value" in a line of /proc/cpuinfo, or NULL. */
static const char *cpuinfo_value(const char *line, const char *key)
{
	size_t n = strlen(key);
	if (strncmp(line, key, n) != 0)
		return NULL;
	const char *p = line + n;
	p += strspn(p, " \t");
	if (*p != ':')
		return NULL;
	return p + 1 + strspn(p + 1, " \t");
}

void host_cpu_model(char *out, size_t cap)
{
	snprintf(out, cap, "unknown CPU");
	FILE *f = fopen("/proc/cpuinfo", "re");
	if (!f)
		return;
	char line[512];
	while (fgets(line, sizeof line, f)) {
		const char *v = cpuinfo_value(line, "model name");
		if (!v)
			v = cpuinfo_value(line, "cpu model");
		if (v && *v && *v != '\n') {
			snprintf(out, cap, "%.*s", (int)strcspn(v, "\n"), v);
			break;
		}
	}
	fclose(f);
}

static void read_uuid(struct host_cpu *c)
{
	char id[256];
	if (!read_line("/etc/machine-id", id, sizeof id) || !id[0])
		if (gethostname(id, sizeof id) != 0)
			id[0] = '\0';
	id[sizeof id - 1] = '\0';
	struct sha256 s;
	char hex[65];
	sha256_init(&s);
	sha256_update(&s, "assay host\n", 11); /* a machine id must not leave its machine as it is */
	sha256_update(&s, id, strlen(id) + 1);
	sha256_update(&s, c->model, strlen(c->model));
	sha256_hex_final(&s, hex);
	snprintf(c->uuid, sizeof c->uuid, "CPU-%.32s", hex);
}

/* The largest unified or data cache of this CPU by sysfs, and the first CPU that shares it; the C library's answer where sysfs is silent. (On
 * AMD the latter multiplies by threads, so it comes second.) */
static struct host_cache read_llc(int cpu)
{
	struct host_cache best = {0, -1};
	for (int i = 0; i < 8; i++) {
		char path[128], type[32], size[32];
		snprintf(path, sizeof path, CPU_DIR "/cpu%d/cache/index%d/type", cpu, i);
		if (!read_line(path, type, sizeof type) || strcmp(type, "Instruction") == 0)
			continue;
		snprintf(path, sizeof path, CPU_DIR "/cpu%d/cache/index%d/size", cpu, i);
		if (!read_line(path, size, sizeof size))
			continue;
		char *unit;
		int64_t n = strtoll(size, &unit, 10);
		if (*unit == 'K')
			n *= 1024;
		else if (*unit == 'M')
			n *= 1024 * 1024;
		if (n <= best.bytes)
			continue;
		uint64_t first;
		snprintf(path, sizeof path, CPU_DIR "/cpu%d/cache/index%d/shared_cpu_list", cpu, i);
		best = (struct host_cache){n, read_number(path, &first) ? (int)first : -1};
	}
#ifdef _SC_LEVEL3_CACHE_SIZE
	if (!best.bytes)
		best.bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
	if (best.bytes <= 0)
		best.bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
	return best.bytes > 0 ? best : (struct host_cache){0, -1};
}

void host_cpu_caches(const struct host_cache *of, int threads, int64_t *llc_bytes, int64_t *scrub_bytes)
{
	int64_t most = 0;
	*llc_bytes = 0;
	for (int i = 0; i < threads; i++) {
		int sharing = 0;
		bool seen = false;
		for (int k = 0; k < threads; k++) {
			const bool same = of[k].first_cpu == of[i].first_cpu;
			sharing += same;
			seen |= same && k < i;
		}
		if (!seen)
			*llc_bytes += of[i].bytes;
		/* Each thread reads an equal part: those of one cache are to read twice its size between them. */
		const int64_t part = (2 * of[i].bytes + sharing - 1) / sharing;
		most = part > most ? part : most;
	}
	*scrub_bytes = most * threads;
}

/* CPUs' worth of time that the control group may use: 0 where there is no limit. */
static double read_quota(void)
{
	char line[64];
	if (read_line("/sys/fs/cgroup/cpu.max", line, sizeof line)) {
		double quota, period;
		if (sscanf(line, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0)
			return quota / period;
		return 0;
	}
	uint64_t quota, period;
	if (read_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &period) && period > 0 &&
	    read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line) && line[0] != '-') {
		quota = strtoull(line, NULL, 10);
		return (double)quota / (double)period;
	}
	return 0;
}

/* True where no CPU before this one in the mask is on the same core. */
static bool first_of_core(int cpu, const cpu_set_t *mask)
{
	char path[128], list[256];
	snprintf(path, sizeof path, CPU_DIR "/cpu%d/topology/thread_siblings_list", cpu);
	if (!read_line(path, list, sizeof list))
		return true;
	for (char *p = list; *p;) {
		char *end;
		long a = strtol(p, &end, 10), b = a;
		if (end == p)
			break;
		if (*end == '-')
			b = strtol(end + 1, &end, 10);
		for (long i = a; i <= b && i < cpu; i++)
			if (i >= 0 && CPU_ISSET((size_t)i, mask))
				return false;
		p = *end == ',' ? end + 1 : end;
		if (*end != ',')
			break;
	}
	return true;
}

/* Where the OpenMP runtime pins its threads, this one sits on its own place and its mask tells nothing: the places do. */
static int read_places(struct host_cpu *c, cpu_set_t *mask)
{
	int n = omp_get_proc_bind() == omp_proc_bind_false ? 0 : omp_get_num_places();
	for (int i = 0; i < n; i++) {
		int ids[HOST_MAX_CPUS], count = omp_get_place_num_procs(i);
		if (count < 1 || count > HOST_MAX_CPUS)
			continue;
		omp_get_place_proc_ids(i, ids);
		for (int k = 0; k < count; k++)
			if (ids[k] >= 0 && ids[k] < HOST_MAX_CPUS)
				CPU_SET((size_t)ids[k], mask);
		if (i < HOST_MAX_CPUS)
			c->team[i] = ids[0];
	}
	return n;
}

bool host_cpu_read(struct host_cpu *c, int threads, struct err *err)
{
	memset(c, 0, sizeof *c);
	host_cpu_model(c->model, sizeof c->model);
	read_uuid(c);

	cpu_set_t mask;
	CPU_ZERO(&mask);
	const int n_places = read_places(c, &mask);
	const bool by_places = c->placed = n_places > 0;
	if (!by_places && sched_getaffinity(0, sizeof mask, &mask) != 0)
		for (long i = 0, n = sysconf(_SC_NPROCESSORS_ONLN); i < n && i < HOST_MAX_CPUS; i++)
			CPU_SET((size_t)i, &mask);
	int order[HOST_MAX_CPUS], n = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < HOST_MAX_CPUS; i++)
			if (CPU_ISSET((size_t)i, &mask) && first_of_core(i, &mask) == (pass == 0))
				order[n++] = i;
		if (pass == 0)
			c->n_cores = n;
	}
	c->n_allowed = n;
	if (n < 1)
		return err_set(err, "host: this process may use no CPU at all; see taskset(1)");
	c->quota_cpus = read_quota();

	if (threads < 0)
		return err_set(err, "host: threads is %d; give 1 to %d, or leave it out for cores - 1", threads, n);
	if (threads > n)
		return err_set(err,
			       "host: threads is %d, but this process may use %d CPU%s; give 1 to %d, or leave it "
			       "out for cores - 1",
			       threads, n, n == 1 ? "" : "s", n);
	int usable = c->n_cores;
	if (c->quota_cpus > 0 && c->quota_cpus < usable)
		usable = (int)c->quota_cpus;
	/* Who placed the threads has left a core free already, or did not want to; OMP_NUM_THREADS says how many they are. */
	const char *placed_threads = by_places ? getenv("OMP_NUM_THREADS") : NULL;
	if (!threads && placed_threads)
		threads = (int)strtol(placed_threads, NULL, 10);
	if (threads < 1 || threads > n)
		threads = usable > 1 ? usable - 1 : 1;
	c->threads = threads;

	/* The core that stays free is the first one: it is where interrupts and the system's own work tend to be. */
	int skip = c->threads < c->n_cores ? 1 : 0;
	for (int i = n_places; i < c->threads; i++)
		c->team[i] = order[by_places ? i : i + skip];
	struct host_cache cache[HOST_MAX_CPUS];
	for (int i = 0; i < c->threads; i++)
		cache[i] = read_llc(c->team[i]);
	host_cpu_caches(cache, c->threads, &c->llc_bytes, &c->scrub_bytes);
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	c->memory_bytes = pages > 0 && page > 0 ? (int64_t)pages * page : 0;
	return true;
}

bool host_cpu_places(const struct host_cpu *c, char *out, size_t cap)
{
	size_t at = 0;
	for (int i = 0; i < c->threads; i++) {
		int n = snprintf(out + at, cap - at, "%s{%d}", i ? "," : "", c->team[i]);
		if (n < 0 || (size_t)n >= cap - at)
			return false;
		at += (size_t)n;
	}
	return true;
}

void host_cpu_throttle(const struct host_cpu *c, struct host_throttle *out)
{
	uint64_t v;
	out->thermal = 0;
	out->quota = 0;
	for (int i = 0; i < c->threads; i++) {
		if (read_cpu_number(c->team[i], "thermal_throttle/core_throttle_count", &v))
			out->thermal += v;
		if (read_cpu_number(c->team[i], "thermal_throttle/package_throttle_count", &v))
			out->thermal += v;
	}
	if (c->quota_cpus <= 0)
		return;
	FILE *f = fopen("/sys/fs/cgroup/cpu.stat", "re");
	if (!f)
		f = fopen("/sys/fs/cgroup/cpu/cpu.stat", "re");
	if (!f)
		return;
	char line[128];
	while (fgets(line, sizeof line, f))
		if (strncmp(line, "nr_throttled ", 13) == 0)
			out->quota = strtoull(line + 13, NULL, 10);
	fclose(f);
}

int host_cpu_mhz(const struct host_cpu *c)
{
	double sum = 0;
	int n = 0;
	for (int i = 0; i < c->threads; i++) {
		uint64_t khz;
		if (read_cpu_number(c->team[i], "cpufreq/scaling_cur_freq", &khz)) {
			sum += (double)khz / 1000;
			n++;
		}
	}
	if (!n) {
		FILE *f = fopen("/proc/cpuinfo", "re");
		if (!f)
			return -1;
		char line[512];
		bool ours = false;
		while (fgets(line, sizeof line, f)) {
			const char *v = cpuinfo_value(line, "processor");
			if (v) {
				long cpu = strtol(v, NULL, 10);
				ours = false;
				for (int i = 0; i < c->threads; i++)
					ours |= c->team[i] == cpu;
			}
			v = cpuinfo_value(line, "cpu MHz");
			if (v && ours) {
				sum += strtod(v, NULL);
				n++;
			}
		}
		fclose(f);
	}
	return n ? (int)(sum / n + 0.5) : -1;
}

json_t *host_cpu_json(const struct host_cpu *c)
{
	json_t *cpus = json_array();
	for (int i = 0; i < c->threads; i++)
		json_array_append_new(cpus, json_integer(c->team[i]));
	json_t *o = json_pack("{s:o}", "cpus", cpus);
	if (!o)
		return NULL;
	json_object_set_new(o, "cpus_allowed", c->placed ? json_null() : json_integer(c->n_allowed));
	json_object_set_new(o, "cores", c->placed ? json_null() : json_integer(c->n_cores));
	char line[128], path[128];
	snprintf(path, sizeof path, CPU_DIR "/cpu%d/cpufreq/scaling_governor", c->team[0]);
	json_object_set_new(o, "governor", read_line(path, line, sizeof line) ? json_string(line) : json_null());
	json_object_set_new(o, "clock_source",
			    read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", line,
				      sizeof line)
				    ? json_string(line)
				    : json_null());
	json_object_set_new(o, "quota_cpus", c->quota_cpus > 0 ? json_real(c->quota_cpus) : json_null());
	return o;
}
