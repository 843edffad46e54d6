#define _GNU_SOURCE /* prctl's constants */
#include "offspring.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>

/* A child that forks faster than it is killed is left to the end of the worker. */
enum { TURNS = 100 };

void offspring_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Whether the process was started with this entry in its environment. */
static bool has_mark(long pid, const char *mark)
{
	char path[64], *entry = NULL;
	size_t cap = 0;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%ld/environ", pid);
	FILE *f = fopen(path, "r");
	if (!f)
		return false;
	while (!found && getdelim(&entry, &cap, '\0', f) > 0)
		found = strcmp(entry, mark) == 0;
	free(entry);
	fclose(f);
	return found;
}

/* Kills and waits for whatever this thread of ours started or was given; mark: only who bears it, NULL: all. */
static int end_of_thread(const char *tid, const char *mark)
{
	char path[64];
	int n = 0;
	long pid;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", tid);
	FILE *f = fopen(path, "r");
	if (!f)
		return 0;
	while (fscanf(f, "%ld", &pid) == 1) {
		if (pid <= 1 || (mark && !has_mark(pid, mark)) || kill((pid_t)pid, SIGKILL) < 0)
			continue;
		while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
			;
		n++;
	}
	fclose(f);
	return n;
}

/* Of all threads, once. */
static int end_once(const char *mark)
{
	DIR *tasks = opendir("/proc/self/task");
	int n = 0;

	for (struct dirent *d; tasks && (d = readdir(tasks));)
		if (d->d_name[0] != '.')
			n += end_of_thread(d->d_name, mark);
	if (tasks)
		closedir(tasks);
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
		const int killed = end_once(NULL);
		n += killed;
		if (!killed)
			return n + 1; /* there is one, and this kernel does not say which */
	}
	return n;
}

int offspring_end_marked(const char *mark)
{
	int n = 0;

	/* Again, because the children of one that is killed come to us. */
	for (int turn = 0; turn < TURNS; turn++) {
		const int killed = end_once(mark);
		n += killed;
		if (!killed)
			break;
	}
	return n;
}
