/* census_tool: a disassembler as a child process. */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "census.h"
#include "monotonic.h"

enum { TOOL_MAX_BYTES = 256 << 20, TOOL_MAX_S = 120, REASON = 256 };

static int64_t now_ms(void)
{
	return monotonic_ns() / 1000000;
}

/* Reads to the end. NULL, or why not. */
static const char *read_all(int fd, char **text, size_t *bytes)
{
	size_t cap = 0;
	const int64_t until = now_ms() + TOOL_MAX_S * 1000;
	*text = NULL;
	*bytes = 0;
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		const int64_t left = until - now_ms();
		if (*bytes == cap) {
			cap = cap ? cap * 2 : 1 << 16;
			char *grown = cap > TOOL_MAX_BYTES ? NULL : realloc(*text, cap);
			if (!grown)
				return "its output is longer than 256 MiB";
			*text = grown;
		}
		const int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return "it took longer than 120 s";
		const ssize_t n = read(fd, *text + *bytes, cap - *bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return "its output cannot be read";
		if (n == 0)
			return NULL;
		*bytes += (size_t)n;
	}
}

bool census_run_tool(const char *const *argv, char **text, size_t *bytes, char reason[static 256])
{
	char *const *args = (char *const *)(uintptr_t)argv; /* posix_spawn writes none of them */
	char path[4096], locale[] = "LC_ALL=C";
	int fd[2], status = 0;
	pid_t pid;
	posix_spawn_file_actions_t actions;
	char *env[3] = {locale, NULL, NULL};
	*text = NULL;
	*bytes = 0;
	if (getenv("PATH")) {
		snprintf(path, sizeof path, "PATH=%s", getenv("PATH"));
		env[1] = path;
	}
	if (pipe2(fd, O_CLOEXEC) != 0) {
		snprintf(reason, REASON, "%s: no pipe: %s", argv[0], strerror(errno));
		return false;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fd[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	const int failed = posix_spawnp(&pid, argv[0], &actions, NULL, args, env);
	posix_spawn_file_actions_destroy(&actions);
	close(fd[1]);
	if (failed) {
		snprintf(reason, REASON, failed == ENOENT ? "no %s on the PATH" : "%s cannot be started", argv[0]);
		close(fd[0]);
		return false;
	}
	const char *why = read_all(fd[0], text, bytes);
	close(fd[0]);
	if (why)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (why)
		snprintf(reason, REASON, "%s: %s", argv[0], why);
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		snprintf(reason, REASON, "%s failed (%s %d)", argv[0], WIFEXITED(status) ? "exit" : "signal",
			 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	else
		return true;
	free(*text);
	*text = NULL;
	return false;
}
