#define _GNU_SOURCE /* pipe2 */
#include "git.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct git_show {
	pid_t pid;
	int out, complaints; /* read ends; complaints: git's stderr */
};

/* Starts git with its stdout, and its stderr where wanted, on pipes. Returns its process id, or -1. */
static pid_t start(const char *const *argv, int *out, int *complaints)
{
	int o[2], e[2] = {-1, -1};
	if (pipe2(o, O_CLOEXEC) != 0)
		return -1;
	if (complaints && pipe2(e, O_CLOEXEC) != 0) {
		close(o[0]);
		close(o[1]);
		return -1;
	}
	posix_spawn_file_actions_t fa;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, o[1], STDOUT_FILENO);
	if (complaints)
		posix_spawn_file_actions_adddup2(&fa, e[1], STDERR_FILENO);
	else
		posix_spawn_file_actions_addopen(&fa, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	pid_t pid = -1;
	/* execve takes pointers to non-const for history's sake and writes to none of them. */
	int rc = posix_spawnp(&pid, "git", &fa, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	close(o[1]);
	if (complaints)
		close(e[1]);
	if (rc != 0) {
		close(o[0]);
		if (complaints)
			close(e[0]);
		errno = rc;
		return -1;
	}
	*out = o[0];
	if (complaints)
		*complaints = e[0];
	return pid;
}

/* Reads up to cap-1 bytes and drops the rest, so that git never waits for us. */
static size_t drain(int fd, char *buf, size_t cap)
{
	size_t n = 0;
	for (;;) {
		char rest[4096];
		ssize_t got = n + 1 < cap ? read(fd, buf + n, cap - 1 - n) : read(fd, rest, sizeof rest);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		if (n + 1 < cap)
			n += (size_t)got;
	}
	buf[n] = 0;
	return n;
}

static bool succeeded(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Output of a git command, at most cap-1 bytes. */
static bool capture(const char *const *argv, char *buf, size_t cap)
{
	int fd;
	pid_t pid = start(argv, &fd, NULL);
	if (pid < 0)
		return false;
	drain(fd, buf, cap);
	close(fd);
	return succeeded(pid);
}

void git_facts_of(const char *folder, struct git_facts *out)
{
	char buf[128];
	*out = (struct git_facts){0};
	const char *const head[] = {"git", "-C", folder, "rev-parse", "--verify", "-q", "HEAD", NULL};
	if (!capture(head, buf, sizeof buf))
		return;
	buf[strcspn(buf, "\n")] = 0;
	if (strlen(buf) >= sizeof out->commit)
		return;
	/* No optional locks: a run in a work tree must not disturb a commit in the making. */
	const char *const status[] = {"git",    "--no-optional-locks",
				      "-C",     folder,
				      "status", "--porcelain",
				      "-uno",   "--",
				      ".",      NULL};
	char changes[8];
	if (!capture(status, changes, sizeof changes))
		return;
	strcpy(out->commit, buf);
	out->dirty = changes[0] != 0;
}

struct git_show *git_show_open(const char *rev_path, struct err *err)
{
	struct git_show *s = calloc(1, sizeof *s);
	if (!s) {
		err_set(err, "%s: out of memory", rev_path);
		return NULL;
	}
	const char *const argv[] = {"git", "show", "--end-of-options", rev_path, NULL};
	s->pid = start(argv, &s->out, &s->complaints);
	if (s->pid < 0) {
		err_set(err, "%s: no such file, and git cannot be run: %s", rev_path, strerror(errno));
		free(s);
		return NULL;
	}
	return s;
}

int git_show_fd(const struct git_show *s)
{
	return s->out;
}

bool git_show_close(struct git_show *s, struct err *err)
{
	if (!s)
		return true;
	close(s->out);
	char words[400];
	drain(s->complaints, words, sizeof words);
	close(s->complaints);
	bool ok = succeeded(s->pid);
	words[strcspn(words, "\n")] = 0;
	free(s);
	return ok || err_set(err, "git show: %s", words[0] ? words : "failed");
}
