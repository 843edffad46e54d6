#define _GNU_SOURCE /* pipe2 */
#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "monotonic.h"

static const int64_t load_limit_ns = 20000000000, hooks_limit_ns = 120000000000;

/* What the child sends when it comes back. */
struct answer {
	bool ok;
	struct err err;
};

static _Noreturn void child(trial_fn *fn, void *ctx, int out)
{
	struct answer a = {.ok = false};
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO); /* what comes there comes once, and is the parent's */
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	/* A death that is expected leaves no core file. */
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	a.ok = fn(ctx, &a.err);
	const ssize_t n = write(out, &a, sizeof a);
	_exit(n == (ssize_t)sizeof a ? 0 : 1);
}

/* True where the whole answer came; *late: the limit passed before. */
static bool receive(int fd, int64_t limit_ns, struct answer *a, bool *late)
{
	const int64_t end = monotonic_ns() + limit_ns;
	size_t have = 0;
	*late = false;
	while (have < sizeof *a) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		const int64_t left = end - monotonic_ns();
		if (left <= 0) {
			*late = true;
			return false;
		}
		const int64_t ms = left / 1000000 + 1;
		const int rc = poll(&p, 1, ms < 60000 ? (int)ms : 60000);
		if (rc < 0 && errno != EINTR)
			return false;
		if (rc <= 0)
			continue;
		const ssize_t n = read(fd, (char *)a + have, sizeof *a - have);
		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		have += n > 0 ? (size_t)n : 0;
	}
	return true;
}

bool trial_run(trial_fn *fn, void *ctx, int64_t limit_ns, struct err *err)
{
	struct answer a;
	int fd[2], status = 0;
	bool late;
	if (pipe2(fd, O_CLOEXEC) < 0)
		return err_set(err, "pipe: %s", strerror(errno));
	fflush(NULL); /* or the child might write it once more */
	const pid_t pid = fork();
	if (pid == 0)
		child(fn, ctx, fd[1]);
	close(fd[1]);
	if (pid < 0) {
		close(fd[0]);
		return err_set(err, "fork: %s", strerror(errno));
	}
	const bool came_back = receive(fd[0], limit_ns, &a, &late);
	close(fd[0]);
	if (came_back || late)
		kill(pid, SIGKILL); /* also what the plugin may do after its answer */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (came_back) {
		if (!a.ok && err)
			*err = a.err;
		return a.ok;
	}
	if (late)
		return err_set(err, "did not come back within %.3g s", (double)limit_ns / 1e9);
	if (WIFSIGNALED(status))
		return err_set(err, "died of signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	return err_set(err, "ended the process with status %d", WEXITSTATUS(status));
}

struct load {
	struct registry *r;
	const char *path;
};

/* True always: a load that fails in order fails in the parent too, with the same words. */
static bool load(void *ctx, struct err *err)
{
	struct load *l = ctx;
	registry_load_plugin(l->r, l->path, NULL, err);
	return true;
}

bool trial_plugin(struct registry *r, const char *path, struct err *err)
{
	struct load l = {.r = r, .path = path};
	struct err why = {{0}};
	if (!trial_run(load, &l, load_limit_ns, &why))
		return err_set(err, "plugin %s: loaded and checked in a process of its own, it %.200s", path, why.text);
	return registry_load_plugin(r, path, NULL, err);
}

bool trial_hooks(trial_fn *fn, void *ctx, const char *const *plugin, int n_plugins, struct err *err)
{
	if (n_plugins == 0)
		return true;
	struct err why = {{0}};
	if (trial_run(fn, ctx, hooks_limit_ns, &why))
		return true;
	char names[400] = "";
	for (int i = 0; i < n_plugins && strlen(names) + 2 < sizeof names; i++)
		snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", plugin[i]);
	return err_set(err, "plugin %s: planned in a process of its own, it %.200s", names, why.text);
}
