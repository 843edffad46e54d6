/* A real worker process: this binary executed anew with __worker. Crashes, hangs and noise cost one cell and are named. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fp_control.h"
#include "offspring.h"
#include "registry.h"
#include "test_cell.h"
#include "unit.h"
#include "worker.h"

static struct registry *registry;

static const struct worker_config config = {.self = "/proc/self/exe", .backend = "host", .threads = 1};

static void cell_of(struct cell *c, const char *arm)
{
	test_cell(c, registry, "probe.faults", "shipped", arm, NULL);
	c->checks.on = 1u << CHECK_IDENTITY;
	c->checks.identity.against = "shipped";
	c->timing.timeout_ns = 10000000000;
}

static struct worker *start(void)
{
	struct err err = {{0}};
	struct worker *w = worker_start(&config, NULL, &err);
	ck_assert_msg(w, "%s", err.text);
	return w;
}

static int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static bool no_child(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

static bool has(const json_t *facts, const char *check, const char *arm, const char *status)
{
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(facts, "checks"), i, f)
	{
		const char *a = json_string_value(json_object_get(f, "arm"));
		if (!strcmp(json_string_value(json_object_get(f, "check")), check) && a && !strcmp(a, arm) &&
		    !strcmp(json_string_value(json_object_get(f, "status")), status))
			return true;
	}
	return false;
}

/* Several cells in one worker, a second one for the other processes of `repeat`, nothing left behind. */
START_TEST(cells)
{
	int fds = open_fds();
	struct worker *w = start();
	const json_t *opened = worker_opened(w);
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(opened, "device"), "threads")), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(opened, "process")), worker_pid(w));
	for (int i = 0; i < 2; i++) {
		struct worker_answer a;
		struct cell c;
		cell_of(&c, i ? "split=4" : "ulp");
		c.checks.on |= 1u << CHECK_REPEAT;
		c.checks.repeat = (struct check_repeat){.launches = 3, .processes = 2};
		worker_cell(w, &c, 1, NULL, NULL, NULL, &a);
		ck_assert_msg(a.outcome == WORKER_OK, "%s", a.reason);
		ck_assert(has(a.facts, "identity", i ? "split=4" : "ulp", i ? "pass" : "mismatch"));
		bool processes = false;
		size_t k;
		json_t *f;
		json_array_foreach(json_object_get(a.facts, "checks"), k, f)
		{
			const char *kind = json_string_value(json_object_get(f, "kind"));
			if (!kind || strcmp(kind, "processes"))
				continue;
			processes = true;
			ck_assert_str_eq(json_string_value(json_object_get(f, "status")), "pass");
			ck_assert_int_eq(json_integer_value(json_object_get(f, "launches")), 1);
		}
		ck_assert(processes);
		json_decref(a.facts);
	}
	worker_stop(w);
	ck_assert(no_child());
	ck_assert_int_eq(open_fds(), fds);
}
END_TEST

struct end {
	const char *arm;
	enum worker_outcome outcome;
	const char *text;
};
static const struct end ends[] = {
	{"crash", WORKER_CRASHED, "killed by SIGSEGV in arm crash, phase memory"},
	{"stack", WORKER_CRASHED, "killed by SIGSEGV in arm stack, phase memory"},
	{"exits", WORKER_CRASHED, "the worker exited with status 0 in arm exits, phase memory"},
	{"hang", WORKER_TIMEOUT, "no sign of life for 2 s in arm hang, phase memory"},
};

/* The worker dies in an arm: the reason names it, what was known before survives, the next worker goes on. */
START_TEST(dies)
{
	const struct end *e = &ends[_i];
	int fds = open_fds();
	struct worker *w = start();
	struct worker_answer a;
	struct cell c;
	cell_of(&c, e->arm);
	if (e->outcome == WORKER_TIMEOUT)
		c.timing.timeout_ns = 2000000000; /* what comes before the arm takes less, on a loaded machine too */
	worker_cell(w, &c, 1, NULL, NULL, NULL, &a);
	ck_assert_int_eq(a.outcome, e->outcome);
	ck_assert_str_eq(a.reason, e->text);
	/* The part that was sent before the first launch. */
	ck_assert(json_is_object(json_object_get(a.facts, "data_audit")));
	json_decref(a.facts);
	/* Dead is dead. */
	worker_cell(w, &c, 1, NULL, NULL, NULL, &a);
	ck_assert_int_eq(a.outcome, WORKER_CRASHED);
	json_decref(a.facts);
	worker_stop(w);
	ck_assert(no_child());
	w = start();
	cell_of(&c, "split=2");
	worker_cell(w, &c, 2, NULL, NULL, NULL, &a);
	ck_assert_int_eq(a.outcome, WORKER_OK);
	ck_assert_int_eq(json_integer_value(json_object_get(a.facts, "attempt")), 2);
	json_decref(a.facts);
	worker_stop(w);
	ck_assert_int_eq(open_fds(), fds);
}
END_TEST

static const struct {
	const char *arm, *what;
	int64_t offset;
} far[] = {
	{"overrun_far", "writes far behind out: at byte ", 0},
	{"underrun_far", "writes far before out: 16000 bytes ahead of it", -16000},
};

/* An arm that reaches beyond all guards is stopped there: the finding says which arm it is, where it reached, and how far. */
START_TEST(reaches_far)
{
	struct worker *w = start();
	struct worker_answer a;
	struct cell c;
	cell_of(&c, far[_i].arm);
	worker_cell(w, &c, 1, NULL, NULL, NULL, &a);
	ck_assert_int_eq(a.outcome, WORKER_CRASHED);
	ck_assert(a.found);
	ck_assert_msg(strstr(a.reason, far[_i].what + 6), "%s", a.reason);
	ck_assert(has(a.facts, "memory", far[_i].arm, "wrong"));
	ck_assert(!has(a.facts, "memory", "shipped", "wrong"));
	const json_t *checks = json_object_get(a.facts, "checks"),
		     *f = json_array_get(checks, json_array_size(checks) - 1);
	ck_assert_str_eq(json_string_value(json_object_get(f, "tensor")), "out");
	ck_assert_str_eq(json_string_value(json_object_get(f, "where")), _i ? "guard_before" : "guard_after");
	const int64_t offset = json_integer_value(json_object_get(f, "offset_bytes"));
	if (far[_i].offset)
		ck_assert_int_eq(offset, far[_i].offset);
	else
		ck_assert_int_ge(offset, 2 << 20);
	json_decref(a.facts);
	worker_stop(w);
	ck_assert(no_child());
}
END_TEST

/* Stops this process once the arm hangs, for 2.5 s: another one wakes it, which waits until it is stopped indeed. */
static void stop_once(void *ctx, const char *phase, const char *arm, int round)
{
	pid_t *hand = ctx;
	(void)phase;
	(void)round;
	if (*hand || strcmp(arm, "hang"))
		return;
	const pid_t self = getpid();
	*hand = fork();
	ck_assert_int_ge(*hand, 0);
	if (*hand == 0) {
		char path[64], stat[256], state = 0;
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)self);
		while (state != 'T' && getppid() == self) {
			FILE *f = fopen(path, "r");
			const size_t n = f ? fread(stat, 1, sizeof(stat) - 1, f) : 0;
			stat[n] = 0;
			if (f)
				fclose(f);
			const char *end = strrchr(stat, ')'); /* of the name; the state is the next word */
			state = end && end[1] ? end[2] : 0;
			usleep(1000);
		}
		usleep(2500000);
		if (getppid() == self)
			kill(self, SIGCONT);
		_exit(0);
	}
	raise(SIGSTOP);
}

/* A shell stops the supervisor for a while: that while says nothing of the worker, which still has the rest of its time. Only lower
 * bounds are asserted: a slow machine cannot break them. */
START_TEST(stopped)
{
	struct worker *w = start();
	struct worker_answer a;
	struct cell c;
	struct timespec from, to;
	pid_t hand = 0;
	cell_of(&c, "hang");
	c.timing.timeout_ns = 1500000000;
	clock_gettime(CLOCK_MONOTONIC, &from);
	worker_cell(w, &c, 1, NULL, stop_once, &hand, &a);
	clock_gettime(CLOCK_MONOTONIC, &to);
	ck_assert_int_eq(waitpid(hand, NULL, 0), hand);
	ck_assert_int_eq(a.outcome, WORKER_TIMEOUT);
	/* 2.5 s stopped and 1.5 s of silence, less what one look may count of the stop. */
	ck_assert_int_ge((int64_t)(to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000, 3500);
	json_decref(a.facts);
	worker_stop(w);
}
END_TEST

static volatile int interrupted;

static void tick(void *ctx, const char *phase, const char *arm, int round)
{
	(void)ctx;
	(void)round;
	(void)phase;
	if (!strcmp(arm, "hang"))
		interrupted = 1;
}

/* An interrupt ends the cell at once. */
START_TEST(interrupt)
{
	struct worker *w = start();
	struct worker_answer a;
	struct cell c;
	cell_of(&c, "hang");
	worker_cell(w, &c, 1, &interrupted, tick, NULL, &a);
	ck_assert_int_eq(a.outcome, WORKER_INTERRUPTED);
	json_decref(a.facts);
	worker_stop(w);
	ck_assert(no_child());
}
END_TEST

/* What a kernel prints looks like a record and harms nothing: it goes to stderr. */
START_TEST(noise)
{
	struct worker *w = start();
	struct worker_answer a;
	struct cell c;
	cell_of(&c, "stdout_noise");
	worker_cell(w, &c, 1, NULL, NULL, NULL, &a);
	ck_assert_int_eq(a.outcome, WORKER_OK);
	ck_assert(has(a.facts, "identity", "stdout_noise", "pass"));
	json_decref(a.facts);
	worker_stop(w);
}
END_TEST

/* A confirmation in a fresh process. */
START_TEST(confirm)
{
	struct worker *w = start();
	struct worker_answer a;
	struct cell c;
	cell_of(&c, "slow");
	c.timing.scrub = SCRUB_NONE;
	worker_confirm(w, &c, "slow", 12, 99, NULL, &a);
	ck_assert_msg(a.outcome == WORKER_OK, "%s", a.reason);
	ck_assert_int_eq(json_integer_value(json_object_get(a.facts, "process")), worker_pid(w));
	const json_t *arms = json_object_get(a.facts, "arms");
	ck_assert_int_eq(json_array_size(arms), 2);
	ck_assert_int_eq(json_array_size(json_object_get(json_array_get(arms, 1), "samples_ns")), 12);
	json_decref(a.facts);
	worker_confirm(w, &c, "none such", 12, 99, NULL, &a);
	ck_assert_int_eq(a.outcome, WORKER_FAILED);
	ck_assert(strstr(a.reason, "none such"));
	json_decref(a.facts);
	worker_stop(w);
}
END_TEST

/* What cannot be opened says why. */
START_TEST(refused)
{
	struct worker_config c = config;
	struct err err = {{0}};
	c.backend = "abacus";
	ck_assert(!worker_start(&c, NULL, &err));
	ck_assert_msg(strstr(err.text, "abacus"), "%s", err.text);
	c = config;
	c.self = "/nonexistent/assay";
	ck_assert(!worker_start(&c, NULL, &err));
	ck_assert_msg(strstr(err.text, "/nonexistent/assay"), "%s", err.text);
	c.self = "/bin/true";
	ck_assert(!worker_start(&c, NULL, &err));
	ck_assert_msg(strstr(err.text, "exited with status 0"), "%s", err.text);
	ck_assert(no_child());
}
END_TEST

/* Tells the test, by a pipe, that the arm hangs. */
static void tell(void *ctx, const char *phase, const char *arm, int round)
{
	int *fd = ctx;
	(void)phase;
	(void)round;
	if (*fd >= 0 && !strcmp(arm, "hang")) {
		close(*fd);
		*fd = -1;
	}
}

/* The supervisor dies without a word: its worker dies too, whatever it was doing. */
START_TEST(orphan)
{
	int pipe_fd[2], pid_of_worker = 0;
	ck_assert_int_eq(pipe2(pipe_fd, O_CLOEXEC), 0);
	pid_t supervisor = fork();
	if (supervisor == 0) {
		struct worker *w = start();
		int pid = worker_pid(w);
		struct worker_answer a;
		struct cell c;
		if (write(pipe_fd[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		cell_of(&c, "hang");
		c.timing.timeout_ns = 0;
		worker_cell(w, &c, 1, NULL, tell, &pipe_fd[1], &a);
		_exit(0);
	}
	close(pipe_fd[1]);
	ck_assert_int_eq(read(pipe_fd[0], &pid_of_worker, sizeof(pid_of_worker)), sizeof(pid_of_worker));
	char none;
	ck_assert_int_eq(read(pipe_fd[0], &none, 1), 0); /* until it is closed */
	kill(supervisor, SIGKILL);
	waitpid(supervisor, NULL, 0);
	bool gone = false;
	for (int i = 0; i < 3000 && !gone; i++) {
		/* A zombie that init has not fetched yet is dead enough. */
		char path[64], line[512] = "";
		snprintf(path, sizeof(path), "/proc/%d/stat", pid_of_worker);
		FILE *f = fopen(path, "r");
		gone = !f || (fgets(line, sizeof(line), f) && strstr(line, ") Z "));
		if (f)
			fclose(f);
		usleep(10000);
	}
	ck_assert(gone);
	close(pipe_fd[0]);
}
END_TEST

static const char *const forking[] = {"forks", "dies", "daemon", "hidden"};

/* A process that an arm leaves behind ends with the cell, which says so, or with the worker that died: it holds the pipe as long as it lives. */
START_TEST(left_behind)
{
	static const char *const plugins[] = {ASSAY_TEST_BUILD "/plugin/forks.so", NULL};
	struct worker_config mine = config;
	struct worker_answer a;
	struct err err = {{0}};
	struct cell c;
	size_t i;
	json_t *f;
	int held[2];
	bool told = false;
	ck_assert_int_eq(pipe(held), 0);
	mine.plugins = plugins;
	const uint64_t fp = fp_control_get();
	ck_assert_msg(registry_load_plugin(registry, plugins[0], NULL, &err), "%s", err.text);
	ck_assert_uint_eq(fp_control_get(), fp); /* whatever it did when it was loaded */
	struct worker *w = worker_start(&mine, NULL, &err);
	ck_assert_msg(w, "%s", err.text);
	test_cell(&c, registry, "demo.forks", "shipped", forking[_i], NULL);
	c.checks.on = 1u << CHECK_IDENTITY;
	c.checks.identity.against = "shipped";
	c.timing.timeout_ns = 10000000000;
	worker_cell(w, &c, 1, NULL, NULL, NULL, &a);
	ck_assert_msg(a.outcome == (_i ? WORKER_CRASHED : WORKER_OK), "%s", a.reason);
	json_array_foreach(json_object_get(a.facts, "checks"), i, f) told =
		told || (!strcmp(json_string_value(json_object_get(f, "check")), "run") &&
			 !strcmp(json_string_value(json_object_get(f, "status")), "invalid"));
	ck_assert_int_eq(told, !_i);
	json_decref(a.facts);
	worker_stop(w);
	close(held[1]);
	/* What has nothing of the worker's about it lives on: it must not make a time-out of a crash. */
	if (!strcmp(forking[_i], "hidden"))
		offspring_end();
	struct pollfd p = {.fd = held[0], .events = POLLIN};
	ck_assert_msg(poll(&p, 1, 20000) == 1, "the process lives");
	close(held[0]);
}
END_TEST

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "__worker"))
		return worker_main(argc - 1, argv + 1);
	/* Under a sanitizer the workers must die of their signals, as they do without. */
	const char *asan = getenv("ASAN_OPTIONS");
	char options[512];
	snprintf(options, sizeof(options), "%s%shandle_segv=0", asan ? asan : "", asan ? ":" : "");
	setenv("ASAN_OPTIONS", options, 1);
	registry = registry_create();
	Suite *s = suite_create("worker");
	TCase *t = tcase_create("worker");
	tcase_add_test(t, cells);
	tcase_add_loop_test(t, dies, 0, sizeof(ends) / sizeof(*ends));
	tcase_add_loop_test(t, reaches_far, 0, sizeof(far) / sizeof(*far));
	tcase_add_test(t, stopped);
	tcase_add_test(t, interrupt);
	tcase_add_test(t, noise);
	tcase_add_test(t, confirm);
	tcase_add_test(t, refused);
	tcase_add_test(t, orphan);
	tcase_add_loop_test(t, left_behind, 0, sizeof(forking) / sizeof(*forking));
	suite_add_tcase(s, t);
	const int status = unit_run(s);
	registry_destroy(registry);
	return status;
}
