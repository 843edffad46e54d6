/* host_cpu: what the host backend must know of this machine: which CPUs it may use, which of them make the team, how large the
 * last-level cache is, and what happens to the clocks meanwhile. Linux only; what cannot be read is "unknown", never guessed. */
#ifndef ASSAY_HOST_CPU_H
#define ASSAY_HOST_CPU_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "err.h"

enum { HOST_MAX_CPUS = 1024 };

struct host_cpu {
	char model[128]; /* "AMD EPYC"; "unknown CPU" */
	char uuid[80]; /* "CPU-" and 32 hex digits: of the machine id (or host name) and the model */
	int n_allowed; /* CPUs of the affinity mask */
	int n_cores; /* physical cores among them */
	bool placed; /* the OpenMP runtime places the threads: the CPUs counted are its places, not all that are allowed */
	double quota_cpus; /* CPU time limit of the control group in CPUs; 0: none */
	int threads; /* of the team */
	int team[HOST_MAX_CPUS]; /* CPU number of each thread of the team */
	int64_t llc_bytes; /* all last-level caches that the team sits on; 0: unknown */
	int64_t scrub_bytes; /* what the team has to read, in equal parts, to put twice the size through each of them; 0: unknown */
	int64_t memory_bytes; /* 0: unknown */
};

/* The last-level cache that a CPU has, told apart by the first CPU that shares it. */
struct host_cache {
	int64_t bytes;
	int first_cpu; /* -1: unknown, taken for one and the same */
};
/* Of the caches of a team's threads, llc_bytes and scrub_bytes as above. */
void host_cpu_caches(const struct host_cache *of, int threads, int64_t *llc_bytes, int64_t *scrub_bytes);

/* threads 0: cores - 1, at least 1 (the core that is left is for the supervisor and the system). One CPU a core is used first,
 * hyper-threads after them. Where the OpenMP runtime places the threads, its places count, and OMP_NUM_THREADS for 0. False with *err: more threads than CPUs allowed. */
bool host_cpu_read(struct host_cpu *c, int threads, struct err *err);
/* Model name, or "unknown CPU". */
void host_cpu_model(char *out, size_t cap);
/* The team as OMP_PLACES takes it: "{3},{4}". False where cap is too small. A worker that is started with it and with
 * OMP_PROC_BIND=true has its threads pinned by the OpenMP runtime itself, also those that are made again later. */
bool host_cpu_places(const struct host_cpu *c, char *out, size_t cap);

/* Counters of what slows a CPU down; the difference of two readings is what happened in between. */
struct host_throttle {
	uint64_t thermal; /* core and package events of the team's CPUs */
	uint64_t quota; /* periods in which the control group was stopped */
};
enum { HOST_THROTTLE_THERMAL = 1, HOST_THROTTLE_QUOTA = 2 };
void host_cpu_throttle(const struct host_cpu *c, struct host_throttle *out);
/* Mean clock of the team in MHz; -1: unknown. */
int host_cpu_mhz(const struct host_cpu *c);
/* cpus, cores, governor, clock source, quota … for the record. New reference. */
json_t *host_cpu_json(const struct host_cpu *c);

#endif
