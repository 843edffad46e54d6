#define _GNU_SOURCE /* prctl's constants */
#include "offspring.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>

/* A child that forks faster than it is killed is left to the end of the worker. */
enum { TURNS = 100 };

void offspring_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Kills and waits for whatever this thread of ours started or was given. */
static int end_of_thread(const char *tid)
{
	char path[64];
	int n = 0;
	long pid;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", tid);
	FILE *f = fopen(path, "r");
	if (!f)
		return 0;
	while (fscanf(f, "%ld", &pid) == 1) {
		if (pid <= 1 || kill((pid_t)pid, SIGKILL) < 0)
			continue;
		while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
			;
		n++;
	}
	fclose(f);
	return n;
}

int offspring_end(void)
{
	int n = 0;

	for (int turn = 0; turn < TURNS; turn++) {
		pid_t ended;
		while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (ended < 0)
			break; /* there is none */
		DIR *tasks = opendir("/proc/self/task");
		int killed = 0;
		for (struct dirent *d; tasks && (d = readdir(tasks));)
			if (d->d_name[0] != '.')
				killed += end_of_thread(d->d_name);
		if (tasks)
			closedir(tasks);
		n += killed;
		if (!killed)
			return n + 1; /* there is one, and this kernel does not say which */
	}
	return n;
}
