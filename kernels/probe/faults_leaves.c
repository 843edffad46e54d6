/* The faults of probe.faults that are in no output: arms that are right, and leave the process otherwise than they found it, so that whatever
 * runs after them runs under other conditions, or is blamed for them. */
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <unistd.h>

#include "faults.h"

/* Whoever runs two seconds later is killed by SIGALRM. */
static int run_leaves_timer(const struct assay_call *call, void *state)
{
	static const struct itimerval soon = {.it_value = {.tv_sec = 2}};
	probe_faults_right(call);
	return setitimer(ITIMER_REAL, &soon, NULL);
}

/* Whoever opens a region without saying how many threads he wants has another number of them. */
static int run_leaves_omp(const struct assay_call *call, void *state)
{
	probe_faults_right(call);
	omp_set_num_threads(omp_get_max_threads() + 1);
	return 0;
}

static void *burn(void *arg)
{
	static atomic_bool stop;
	while (!atomic_load(&stop))
		;
	return NULL;
}

/* One for all launches, as a pool that waits actively and never stops. */
static int run_leaves_thread(const struct assay_call *call, void *state)
{
	static atomic_bool started;
	pthread_t thread;
	probe_faults_right(call);
	if (!atomic_exchange(&started, true) && pthread_create(&thread, NULL, burn, NULL) != 0)
		return -1;
	return 0;
}

static int run_leaves_signals(const struct assay_call *call, void *state)
{
	probe_faults_right(call);
	return signal(SIGSEGV, SIG_IGN) == SIG_ERR ? -1 : 0;
}

/* A tidy program closes what it has not opened. */
static int run_closes_files(const struct assay_call *call, void *state)
{
	probe_faults_right(call);
	for (int fd = 3; fd < 4096; fd++)
		close(fd);
	return 0;
}

const struct assay_arm_ops probe_faults_leaves_timer = {.run = run_leaves_timer};
const struct assay_arm_ops probe_faults_leaves_omp = {.run = run_leaves_omp};
const struct assay_arm_ops probe_faults_leaves_thread = {.run = run_leaves_thread};
const struct assay_arm_ops probe_faults_leaves_signals = {.run = run_leaves_signals};
const struct assay_arm_ops probe_faults_closes_files = {.run = run_closes_files};
