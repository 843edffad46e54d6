/* The faults of probe.faults that are not in the numbers: arms that return too early or never, that end badly, or that fail. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <fenv.h>
#endif

#include "faults.h"

/* The thread writes 20 ms after run() returned; the next launch, and the end, wait for it. */
struct late {
	pthread_t thread;
	bool running;
	struct assay_call call;
	struct assay_point point;
	void *tensor[PROBE_FAULTS_TENSORS];
};

static void late_join(struct late *l)
{
	if (l->running)
		pthread_join(l->thread, NULL);
	l->running = false;
}

static void *late_main(void *arg)
{
	const struct late *l = arg;
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	probe_faults_right(&l->call);
	return NULL;
}

static int plan_late(const struct assay_call *call, void **state)
{
	*state = calloc(1, sizeof(struct late));
	return *state != NULL ? 0 : -1;
}

static int run_late(const struct assay_call *call, void *state)
{
	struct late *l = state;
	late_join(l);
	l->call = *call;
	l->point = *call->point;
	memcpy(l->tensor, call->tensor, sizeof l->tensor);
	l->call.point = &l->point;
	l->call.tensor = l->tensor;
	l->running = pthread_create(&l->thread, NULL, late_main, l) == 0;
	return 0;
}

static void finish_late(void *state)
{
	if (state != NULL)
		late_join(state);
	free(state);
}

static int run_hang(const struct assay_call *call, void *state)
{
	static atomic_bool stop;
	while (!atomic_load(&stop))
		;
	return 0;
}

static int run_crash(const struct assay_call *call, void *state)
{
	volatile int *volatile nowhere = NULL;
	probe_faults_right(call);
	*nowhere = 1;
	return 0;
}

/* Each frame is handed to the next, so that no compiler makes a loop of it. */
static __attribute__((noinline)) int deeper(int depth, const volatile char *above)
{
	volatile char frame[4096];
	frame[0] = (char)(above[0] + depth);
	return depth > 0 ? deeper(depth - 1, frame) + frame[0] : frame[0];
}

static int run_stack(const struct assay_call *call, void *state)
{
	probe_faults_right(call);
	volatile int depth = 65536; /* 256 MiB of frames: beyond any usual limit, and not endless */
	return deeper(depth, "") == -1 ? 1 : 0;
}

static int run_exits(const struct assay_call *call, void *state)
{
	probe_faults_right(call);
	_exit(0);
}

static int run_fails(const struct assay_call *call, void *state)
{
	snprintf(call->error, ASSAY_ERROR_MAX, "probe.faults: this arm fails, as it says");
	return -1;
}

static int run_fails_sometimes(const struct assay_call *call, void *state)
{
	static atomic_long launches;
	if (atomic_fetch_add(&launches, 1) % 7 == 6) {
		snprintf(call->error, ASSAY_ERROR_MAX, "probe.faults: every seventh launch of this arm fails");
		return -1;
	}
	probe_faults_right(call);
	return 0;
}

static int run_stdout_noise(const struct assay_call *call, void *state)
{
	probe_faults_right(call);
	fputs("{\"kind\":\"cell\",\"status\":\"pass\"}\n",
	      stdout); /* looks like a record, to mislead a careless pipe */
	fflush(stdout);
	return 0;
}

/* Denormals are zeros to whatever this thread runs next. */
static int run_leaves_ftz(const struct assay_call *call, void *state)
{
	probe_faults_right(call);
#if defined(__x86_64__)
	_mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(__aarch64__)
	uint64_t fpcr;
	__asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
	__asm__ volatile("msr fpcr, %0" : : "r"(fpcr | (uint64_t)1 << 24));
#else
	fesetround(FE_TOWARDZERO);
#endif
	return 0;
}

const struct assay_arm_ops probe_faults_late = {.plan = plan_late, .run = run_late, .finish = finish_late};
const struct assay_arm_ops probe_faults_hang = {.run = run_hang};
const struct assay_arm_ops probe_faults_crash = {.run = run_crash};
const struct assay_arm_ops probe_faults_stack = {.run = run_stack};
const struct assay_arm_ops probe_faults_leaves_ftz = {.run = run_leaves_ftz};
const struct assay_arm_ops probe_faults_exits = {.run = run_exits};
const struct assay_arm_ops probe_faults_fails = {.run = run_fails};
const struct assay_arm_ops probe_faults_fails_sometimes = {.run = run_fails_sometimes};
const struct assay_arm_ops probe_faults_stdout_noise = {.run = run_stdout_noise};
