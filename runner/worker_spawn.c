#define _GNU_SOURCE /* memfd_create, SOCK_CLOEXEC */
#include "worker_spawn.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host_cpu.h"

extern char **environ;

enum { MAX_ENV = 6 };

static char *dup_or_null(const char *s)
{
	return s ? strdup(s) : NULL;
}

void worker_config_free(struct worker_config *c)
{
	union {
		const char *c;
		char *m;
	} u;
	union {
		const char *const *c;
		void *m;
	} list = {.c = c->plugins};

	u.c = c->self, free(u.m);
	u.c = c->backend, free(u.m);
	u.c = c->device, free(u.m);
	for (int i = 0; c->plugins && c->plugins[i]; i++)
		u.c = c->plugins[i], free(u.m);
	free(list.m);
}

bool worker_config_copy(const struct worker_config *from, struct worker_config *to)
{
	size_t n = 0;
	const char **list;

	while (from->plugins && from->plugins[n])
		n++;
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return false;
	for (size_t i = 0; i < n; i++)
		list[i] = strdup(from->plugins[i]);
	*to = *from;
	to->self = dup_or_null(from->self);
	to->backend = dup_or_null(from->backend);
	to->device = dup_or_null(from->device);
	to->plugins = list;
	return true;
}

/* The environment of a worker: ours, the mark by which its children are known, and where the user has not placed threads himself, the team of the host backend one thread a
 * CPU. The OpenMP runtime reads this once, before main. */
static char **environment(const struct worker_config *cfg, const char *mark, char store[MAX_ENV][4096])
{
	size_t n = 0, own = 0;
	char **env;

	snprintf(store[own++], sizeof(*store), "%s", mark);

	if (!strcmp(cfg->backend, "host") && !getenv("OMP_PROC_BIND") && !getenv("OMP_PLACES")) {
		struct host_cpu cpu;
		struct err ignored;
		char places[4000];
		if (host_cpu_read(&cpu, cfg->threads, &ignored) && host_cpu_places(&cpu, places, sizeof(places))) {
			snprintf(store[own++], sizeof(*store), "OMP_PLACES=%s", places);
			snprintf(store[own++], sizeof(*store), "OMP_PROC_BIND=true");
			snprintf(store[own++], sizeof(*store), "OMP_DYNAMIC=false");
			snprintf(store[own++], sizeof(*store), "OMP_NUM_THREADS=%d", cpu.threads);
		}
	}
	while (environ[n])
		n++;
	env = calloc(n + own + 1, sizeof(*env));
	if (!env)
		return NULL;
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		bool mine = false;
		for (size_t o = 0; o < own && !mine; o++)
			mine = !strncmp(environ[i], store[o], strcspn(store[o], "=") + 1);
		if (!mine)
			env[k++] = environ[i];
	}
	for (size_t o = 0; o < own; o++)
		env[k++] = store[o];
	return env;
}

bool worker_spawn(const struct worker_config *cfg, const char *mark, pid_t *pid, int *fd, struct exec_beat **shared,
		  struct err *err)
{
	char store[MAX_ENV][4096], fd_text[16], beat_text[16];
	char name[] = "assay", verb[] = "__worker";
	char *argv[] = {name, verb, fd_text, beat_text, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int pair[2] = {-1, -1}, beat = -1, rc;
	char **env = NULL;
	bool ok = false;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, "socketpair: %s", strerror(errno));
	*fd = pair[0];
	beat = memfd_create("assay-beat", MFD_CLOEXEC);
	if (beat < 0 || ftruncate(beat, sizeof(**shared)) < 0) {
		err_set(err, "memfd: %s", strerror(errno));
		goto done;
	}
	*shared = mmap(NULL, sizeof(**shared), PROT_READ | PROT_WRITE, MAP_SHARED, beat, 0);
	if (*shared == MAP_FAILED) {
		*shared = NULL;
		err_set(err, "mmap: %s", strerror(errno));
		goto done;
	}
	env = environment(cfg, mark, store);
	if (!env) {
		err_set(err, "out of memory");
		goto done;
	}
	snprintf(fd_text, sizeof(fd_text), "%d", pair[1]);
	snprintf(beat_text, sizeof(beat_text), "%d", beat);
	posix_spawn_file_actions_init(&actions);
	/* A descriptor put onto itself loses its close-on-exec flag, in the child only. */
	posix_spawn_file_actions_adddup2(&actions, pair[1], pair[1]);
	posix_spawn_file_actions_adddup2(&actions, beat, beat);
	/* Signals that the supervisor blocks for itself are not blocked there. */
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	/* A group of its own, so that what it started ends with it. */
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	rc = posix_spawn(pid, cfg->self, &actions, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	if (rc) {
		*pid = 0;
		err_set(err, "cannot start a worker from %s: %s", cfg->self, strerror(rc));
		goto done;
	}
	ok = true;
done:
	free(env);
	close(pair[1]);
	if (beat >= 0)
		close(beat);
	return ok;
}
