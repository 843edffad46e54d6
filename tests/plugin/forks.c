/* Arms that start a process, which neither ends by itself nor is waited for; one of them dies after that. And, as what is linked with
 * -ffast-math, it flushes denormals from the moment it is loaded. */
#include "vector.h"

#include <spawn.h>
#include <stdlib.h>

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

static const struct assay_arm_ops shipped = {.run = run}, forks = {.run = run_forks}, dies = {.run = run_dies};
static const struct assay_arm arms[] = {
	{.name = "shipped", .doc = "a loop", .ops = {[ASSAY_HOST] = &shipped}},
	{.name = "forks", .doc = "leaves a process", .ops = {[ASSAY_HOST] = &forks}},
	{.name = "dies", .doc = "leaves a process and dies", .ops = {[ASSAY_HOST] = &dies}},
};

const struct assay_kernel assay_kernel = {
	VECTOR,       .name = "demo.forks", .doc = "twice the input, and a process that nobody waits for",
	.arms = arms, .n_arms = 3,          .shape = vector_shape,
};
