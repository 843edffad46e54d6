#define _GNU_SOURCE /* gettid */
#include "threads.h"

#include <dirent.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "monotonic.h"

enum { FOREIGN_MAX = 256, WINDOWS = 30 };
#define WINDOW_NS 10000000

struct foreign {
	pid_t tid;
	int owner;
	bool rests, runs, told; /* neither rests nor runs: not known yet */
	double share; /* of a CPU, in its last window */
	int64_t cpu_ns;
};

struct threads {
	pid_t *known; /* nobody's, sorted */
	int n_known, cap;
	int team;
	struct foreign foreign[FOREIGN_MAX];
	int n;
};

static int by_number(const void *a, const void *b)
{
	const pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* The threads of this process, sorted; *n of them. The caller frees. NULL: not to be had. */
static pid_t *list_all(int *n)
{
	DIR *d = opendir("/proc/self/task");
	pid_t *list = NULL;
	int cap = 0;

	*n = 0;
	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		if (*n == cap) {
			cap = cap ? 2 * cap : 64;
			pid_t *grown = realloc(list, (size_t)cap * sizeof(*list));
			if (!grown)
				break;
			list = grown;
		}
		list[(*n)++] = (pid_t)strtol(e->d_name, NULL, 10);
	}
	if (d)
		closedir(d);
	if (list)
		qsort(list, (size_t)*n, sizeof(*list), by_number);
	return list;
}

static bool known(const struct threads *t, pid_t tid)
{
	return t->n_known && bsearch(&tid, t->known, (size_t)t->n_known, sizeof(tid), by_number);
}

/* What a thread has used of a CPU, in nanoseconds; -1: it is gone. */
static int64_t cpu_ns(pid_t tid)
{
	/* As pthread_getcpuclockid makes it, of a thread that is known by its number alone. */
	const clockid_t clock = (clockid_t)(~(unsigned)tid << 3 | 6);
	struct timespec at;

	return clock_gettime(clock, &at) == 0 ? (int64_t)at.tv_sec * 1000000000 + at.tv_nsec : -1;
}

static bool sleeps(pid_t tid)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	FILE *f = fopen(path, "r");
	const size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = '\0';
	if (f)
		fclose(f);
	const char *end = strrchr(text, ')'); /* of its name; the state is the next word */
	return !end || !end[1] || end[2] != 'R';
}

struct threads *threads_create(int team)
{
	struct threads *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->team = team;
	t->known = list_all(&t->n_known);
	return t;
}

void threads_destroy(struct threads *t)
{
	if (!t)
		return;
	free(t->known);
	free(t);
}

/* The threads of the team as it is now, which are nobody's however new. */
static void team_is_known(struct threads *t)
{
	pid_t *grown = realloc(t->known, (size_t)(t->n_known + t->team) * sizeof(*grown)), *mine;
	const int had = t->n_known, team = t->team;

	if (!grown)
		return;
	t->known = grown;
	mine = grown + had;
	memset(mine, 0, (size_t)team * sizeof(*mine));
#pragma omp parallel num_threads(team)
	if (omp_get_thread_num() < team)
		mine[omp_get_thread_num()] = gettid();
	int n = had;
	for (int i = 0; i < team; i++)
		if (mine[i] && !(had && bsearch(&mine[i], grown, (size_t)had, sizeof(*mine), by_number)))
			grown[n++] = mine[i];
	t->n_known = n;
	qsort(grown, (size_t)n, sizeof(*grown), by_number);
}

static struct foreign *foreign_of(struct threads *t, pid_t tid)
{
	for (int i = 0; i < t->n; i++)
		if (t->foreign[i].tid == tid)
			return &t->foreign[i];
	return NULL;
}

void threads_look(struct threads *t, int owner)
{
	int n;
	pid_t *now = list_all(&n);
	bool new = false, asked = false;

	for (int i = 0; now && i < n && !new; i++)
		new = !known(t, now[i]) && !foreign_of(t, now[i]);
	/* Those of a team that was made anew are found out only where there is anybody new at all. */
	if (new) {
		team_is_known(t);
		asked = true;
	}
	for (int i = 0; asked && i < n; i++)
		if (!known(t, now[i]) && !foreign_of(t, now[i]) && t->n < FOREIGN_MAX)
			t->foreign[t->n++] = (struct foreign){.tid = now[i], .owner = owner};
	free(now);
}

int threads_left(const struct threads *t)
{
	int n = 0;

	for (int i = 0; i < t->n; i++)
		n += cpu_ns(t->foreign[i].tid) >= 0;
	return n;
}

/* One window: who rested in it, and who is gone. */
static void window(struct threads *t)
{
	struct timespec nap = {.tv_nsec = WINDOW_NS};
	const int64_t from = monotonic_ns();

	for (int i = 0; i < t->n; i++)
		t->foreign[i].cpu_ns = cpu_ns(t->foreign[i].tid);
	nanosleep(&nap, NULL);
	const double ns = (double)(monotonic_ns() - from);
	for (int i = t->n - 1; i >= 0; i--) {
		struct foreign *f = &t->foreign[i];
		const int64_t now = cpu_ns(f->tid);
		if (now < 0 || f->cpu_ns < 0) {
			*f = t->foreign[--t->n];
			continue;
		}
		f->share = (double)(now - f->cpu_ns) / ns;
		/* One that got no CPU because others have it all is no thread that rests. */
		f->rests = f->rests || (f->share < THREADS_REST_SHARE && sleeps(f->tid));
	}
}

static int unknown(const struct threads *t)
{
	int n = 0;

	for (int i = 0; i < t->n; i++)
		n += !t->foreign[i].rests && !t->foreign[i].runs;
	return n;
}

bool threads_runner(struct threads *t, int *owner, double *share)
{
	for (int w = 0; w < WINDOWS && unknown(t); w++)
		window(t);
	for (int i = 0; i < t->n; i++) {
		struct foreign *f = &t->foreign[i];
		f->runs = !f->rests;
		if (f->rests || f->told)
			continue;
		f->told = true;
		*owner = f->owner;
		*share = f->share;
		return true;
	}
	return false;
}

double threads_restless(const struct threads *t, int *owner)
{
	double most = 0;

	for (int i = 0; i < t->n; i++)
		if (t->foreign[i].rests && t->foreign[i].share > most) {
			most = t->foreign[i].share;
			*owner = t->foreign[i].owner;
		}
	return most;
}
