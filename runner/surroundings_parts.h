/* surroundings_parts: the table of what is watched. For surroundings*.c only. */
#ifndef ASSAY_SURROUNDINGS_PARTS_H
#define ASSAY_SURROUNDINGS_PARTS_H

#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>

#include "surroundings.h"

enum { SIGNALS = 32, TIMERS = 3, FILES = 4, LIMITS = 6, PATH_CAP = 4096, LOCALE_CAP = 512 };

struct file { /* a descriptor, and what it stood for */
	int fd;
	bool open;
	dev_t dev;
	ino_t ino;
};

struct told_omp {
	int threads, dynamic, levels, chunk;
	omp_sched_t schedule;
};

struct surroundings {
	cpu_set_t cpus;
	int nice, policy;
	struct sigaction action[SIGNALS];
	sigset_t blocked;
	struct itimerval timer[TIMERS];
	char folder[PATH_CAP], locale[LOCALE_CAP];
	mode_t mask;
	struct rlimit limit[LIMITS];
	struct file file[FILES];
	struct told_omp omp;
	int team;
	cpu_set_t *team_cpus; /* NULL: not watched */
	struct threads *threads; /* NULL: not watched */
	unsigned gone; /* watched things that could not be put back: a bit each */
};

/* One thing: how it is taken as it is now, whether it is otherwise (then in words), and how it is put back. All are called by the thread
 * that launches. */
struct watched {
	void (*take)(struct surroundings *s);
	bool (*told)(const struct surroundings *s, char text[SURROUNDINGS_TEXT]);
	bool (*restore)(const struct surroundings *s);
	bool quick; /* it costs little to look at */
};
enum { SURROUNDINGS_THINGS = 11 };
extern const struct watched surroundings_watched[SURROUNDINGS_THINGS];

/* Whether the link is not what it was. */
bool surroundings_cut_off(const struct surroundings *s);

#endif
