/* Workers that are broken: they never open, babble, send garbage, or die while nobody looks. Each costs what it must, is named, and leaves
 * no process behind. The worker is this binary executed anew; the environment says how it misbehaves. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "registry.h"
#include "test_cell.h"
#include "unit.h"
#include "worker.h"

static struct registry *registry;

static bool no_child(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

/* ---- the worker's side ----------------------------------------------------------------------------------------------------- */

static void put(int fd, const char *text)
{
	for (size_t n = strlen(text), at = 0; at < n;) {
		ssize_t k = send(fd, text + at, n - at, MSG_NOSIGNAL);
		if (k <= 0)
			_exit(3);
		at += (size_t)k;
	}
}

static void await_request(int fd)
{
	for (char c = 0; c != '\n';)
		if (recv(fd, &c, 1, 0) != 1)
			_exit(0);
}

static int misbehave(int fd)
{
	const char *how = getenv("ASSAY_TEST_WORKER");
	char big[65536];

	await_request(fd);
	if (!strcmp(how, "mute"))
		for (;;)
			pause();
	if (!strcmp(how, "garbage at once"))
		put(fd, "\001\002 not JSON\n");
	if (!strcmp(how, "array at once"))
		put(fd, "[{}]\n");
	if (!strcmp(how, "other words"))
		put(fd, "{\"ev\": \"hello\"}\n");
	put(fd, "{\"ev\": \"opened\", \"device\": {}, \"calibration\": null}\n");
	if (!strcmp(how, "dies idle"))
		return 7;
	await_request(fd);
	if (!strcmp(how, "no line ends")) {
		memset(big, 'x', sizeof big - 1);
		big[sizeof big - 1] = '\0';
		for (;;)
			put(fd, big);
	}
	if (!strcmp(how, "babbles"))
		for (;;)
			put(fd, "{\"ev\": \"part\", \"facts\": {\"checks\": []}}\n");
	if (!strcmp(how, "garbage"))
		put(fd, "{\"ev\": \"part\", \"facts\": {\"checks\": [7]}}\n{\"ev\": \"done\"\n");
	if (!strcmp(how, "array"))
		put(fd, "[1, 2, 3]\n");
	if (!strcmp(how, "facts of another type"))
		put(fd, "{\"ev\": \"done\", \"outcome\": 3, \"facts\": [1]}\n");
	if (!strcmp(how, "unknown event"))
		put(fd, "{\"ev\": \"progress\", \"facts\": {}}\n");
	if (!strcmp(how, "unknown outcome"))
		put(fd, "{\"ev\": \"done\", \"outcome\": 3, \"facts\": {}}\n");
	if (!strcmp(how, "deep")) {
		memset(big, '[', sizeof big - 1);
		big[sizeof big - 2] = '\n';
		big[sizeof big - 1] = '\0';
		put(fd, big);
	}
	if (!strcmp(how, "closes")) {
		close(fd); /* and lives on */
		for (;;)
			pause();
	}
	for (;;)
		pause();
}

/* ---- the supervisor's side --------------------------------------------------------------------------------------------------- */

static volatile int interrupted;

static struct worker *start(const char *how, struct err *err)
{
	const struct worker_config config = {.self = "/proc/self/exe",
					     .backend = "host",
					     .threads = 1,
					     /* Of one that opens, a loaded machine may make it late. */
					     .open_timeout_ns = strcmp(how, "mute") ? 60000000000 : 400000000,
					     .line_max_bytes = 1 << 20,
					     .answer_max_bytes = 4 << 20,
					     .interrupted = &interrupted};
	setenv("ASSAY_TEST_WORKER", how, 1);
	return worker_start(&config, NULL, err);
}

struct bad {
	const char *how, *text;
	enum worker_outcome outcome;
};

static const struct bad openings[] = {
	{"mute", "the worker did not open its device within 0.4 s", WORKER_LOST},
	{"garbage at once", "while it opened the device: the worker sent what is no answer", WORKER_LOST},
	{"array at once", "while it opened the device: the worker sent what is no answer", WORKER_LOST},
	{"other words", "while it opened the device: the worker sent what is no answer", WORKER_LOST},
};

START_TEST(never_opens)
{
	struct err err = {{0}};
	ck_assert(!start(openings[_i].how, &err));
	ck_assert_str_eq(err.text, openings[_i].text);
	ck_assert(no_child());
}
END_TEST

/* Nobody waits for the whole time after a signal. */
START_TEST(interrupted_while_it_opens)
{
	struct err err = {{0}};
	interrupted = SIGINT;
	ck_assert(!start("mute", &err));
	ck_assert_str_eq(err.text, "interrupted");
	ck_assert(no_child());
}
END_TEST

static const struct bad answers[] = {
	{"no line ends", "the worker sent what is no answer, and was killed", WORKER_CRASHED},
	{"babbles", "the worker sent what is no answer, and was killed", WORKER_CRASHED},
	{"garbage", "the worker sent what is no answer, and was killed", WORKER_CRASHED},
	{"array", "the worker sent what is no answer, and was killed", WORKER_CRASHED},
	{"facts of another type", "the worker sent what is no answer, and was killed", WORKER_CRASHED},
	{"unknown event", "the worker sent what is no answer, and was killed", WORKER_CRASHED},
	{"deep", "the worker sent what is no answer, and was killed", WORKER_CRASHED},
	{"unknown outcome", "the worker sent what is no answer, and was killed", WORKER_CRASHED},
	{"closes", "the worker closed its socket but did not end, and was killed", WORKER_CRASHED},
};

START_TEST(answers_badly)
{
	const struct bad *b = &answers[_i];
	struct err err = {{0}};
	struct worker *w = start(b->how, &err);
	struct worker_answer a;
	struct cell c;
	ck_assert_msg(w, "%s", err.text);
	test_cell(&c, registry, "probe.faults", "shipped", "split=4", NULL);
	worker_cell(w, &c, 1, NULL, NULL, NULL, &a);
	ck_assert_msg(a.outcome == b->outcome, "%d: %s", a.outcome, a.reason);
	ck_assert_str_eq(a.reason, b->text);
	ck_assert(json_is_object(a.facts));
	json_decref(a.facts);
	ck_assert(!worker_alive(w));
	worker_stop(w);
	ck_assert(no_child());
}
END_TEST

static int asked;

static void tick(void *ctx, const char *phase, const char *arm, int round)
{
	asked++;
}

/* A worker that never stops talking does not keep a signal out. */
START_TEST(interrupted_while_it_babbles)
{
	struct err err = {{0}};
	struct worker *w = start("babbles", &err);
	struct worker_answer a;
	struct cell c;
	volatile int now = SIGINT;
	ck_assert_msg(w, "%s", err.text);
	test_cell(&c, registry, "probe.faults", "shipped", NULL);
	worker_cell(w, &c, 1, &now, tick, NULL, &a);
	ck_assert_int_eq(a.outcome, WORKER_INTERRUPTED);
	json_decref(a.facts);
	worker_stop(w);
	ck_assert(no_child());
}
END_TEST

/* It died between two cells: that is seen before the next one is given to it. */
START_TEST(dies_idle)
{
	struct err err = {{0}};
	struct worker *w = start("dies idle", &err);
	ck_assert_msg(w, "%s", err.text);
	for (int i = 0; i < 3000 && worker_alive(w); i++)
		usleep(10000);
	ck_assert(!worker_alive(w));
	ck_assert_int_eq(worker_pid(w), 0);
	worker_stop(w);
	w = start("quiet", &err);
	ck_assert(worker_alive(w));
	worker_stop(w);
	ck_assert(no_child());
}
END_TEST

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "__worker"))
		return misbehave(atoi(argv[argc - 2]));
	registry = registry_create();
	Suite *s = suite_create("worker_bad");
	TCase *t = tcase_create("worker_bad");
	tcase_add_loop_test(t, never_opens, 0, sizeof(openings) / sizeof(*openings));
	tcase_add_test(t, interrupted_while_it_opens);
	tcase_add_loop_test(t, answers_badly, 0, sizeof(answers) / sizeof(*answers));
	tcase_add_test(t, interrupted_while_it_babbles);
	tcase_add_test(t, dies_idle);
	suite_add_tcase(s, t);
	const int status = unit_run(s);
	registry_destroy(registry);
	return status;
}
