/* Arms that start a process, which neither ends by itself nor is waited for; one of them dies after that. And, as what is linked with
 * -ffast-math, it flushes denormals from the moment it is loaded. */
#define _GNU_SOURCE /* POSIX_SPAWN_SETSID, environ */
#include "vector.h"

#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

static int run(const struct assay_call *call, void *state)
{
	const float *x = call->tensor[0];
	float *y = call->tensor[1];

	for (int64_t i = 0; i < call->point->v[0].i; i++)
		y[i] = 2 * x[i];
	return 0;
}

static int run_forks(const struct assay_call *call, void *state)
{
	static int launches;
	static char name[] = "sleep", seconds[] = "100";
	char *argv[] = {name, seconds, NULL}, *envp[] = {NULL};
	pid_t pid;

	/* Not fork(): LLVM 14's libomp has a handler for it that now and then kills the child. */
	if (launches++ == 0 && posix_spawn(&pid, "/bin/sleep", NULL, NULL, argv, envp) != 0)
		return -1;
	return run(call, state);
}

/* As a daemon does: in a session of its own, which the worker's group does not reach. */
static int start_daemon(char **envp)
{
	static char name[] = "sleep", seconds[] = "100";
	char *argv[] = {name, seconds, NULL};
	posix_spawnattr_t attr;
	pid_t pid;

	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
	if (posix_spawn(&pid, "/bin/sleep", NULL, &attr, argv, envp) != 0)
		return -1;
	abort();
}

static int run_daemon(const struct assay_call *call, void *state)
{
	return start_daemon(environ);
}

/* And with nothing of the worker's about it. */
static int run_hidden(const struct assay_call *call, void *state)
{
	char *envp[] = {NULL};
	return start_daemon(envp);
}

static int run_dies(const struct assay_call *call, void *state)
{
	run_forks(call, state);
	abort();
}

#if defined(__x86_64__)
__attribute__((constructor)) static void flush(void)
{
	__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
}
#endif

static const struct assay_arm_ops shipped = {.run = run}, forks = {.run = run_forks}, dies = {.run = run_dies},
				  daemon_ops = {.run = run_daemon}, hidden = {.run = run_hidden};
static const struct assay_arm arms[] = {
	{.name = "shipped", .doc = "a loop", .ops = {[ASSAY_HOST] = &shipped}},
	{.name = "forks", .doc = "leaves a process", .ops = {[ASSAY_HOST] = &forks}},
	{.name = "dies", .doc = "leaves a process and dies", .ops = {[ASSAY_HOST] = &dies}},
	{.name = "daemon",
	 .doc = "leaves a process in a session of its own and dies",
	 .ops = {[ASSAY_HOST] = &daemon_ops}},
	{.name = "hidden", .doc = "leaves one that has no environment and dies", .ops = {[ASSAY_HOST] = &hidden}},
};

const struct assay_kernel assay_kernel = {
	VECTOR,       .name = "demo.forks", .doc = "twice the input, and a process that nobody waits for",
	.arms = arms, .n_arms = 5,          .shape = vector_shape,
};
