/* What an arm makes of the process: told of that arm whatever the order, and put back; threads that rest and one that does not. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <locale.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "surroundings.h"
#include "test_zoo_bed.h"
#include "unit.h"

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

static void one_cpu(void)
{
	cpu_set_t all, one;
	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void lower_priority(void)
{
	setpriority(PRIO_PROCESS, 0, 7);
}

static void batch_policy(void)
{
	sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){.sched_priority = 0});
}

static void ignore_signals(void)
{
	signal(SIGUSR2, SIG_IGN);
	signal(SIGSEGV, SIG_IGN);
}

static void block_signal(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void set_timer(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_sec = 1000}}, NULL);
}

static void set_profiler(void)
{
	setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_sec = 1000}}, NULL);
}

static void change_folder(void)
{
	ck_assert_int_eq(chdir("/"), 0);
}

static void change_mask(void)
{
	umask(0123);
}

static void change_locale(void)
{
	setlocale(LC_ALL, "C.UTF-8");
}

static void lower_limit(void)
{
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = 100;
	setrlimit(RLIMIT_NOFILE, &files);
}

static void fewer_threads(void)
{
	omp_set_num_threads(23);
}

static void other_schedule(void)
{
	omp_set_schedule(omp_sched_dynamic, 3);
}

static void close_input(void)
{
	close(STDIN_FILENO);
}

static void replace_input(void)
{
	int ends[2];
	ck_assert_int_eq(pipe(ends), 0);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	close(ends[1]);
}

static const struct {
	void (*stray)(void);
	const char *text;
	bool stays; /* it cannot be put back */
} strays[] = {
	{one_cpu, "the calling thread may run on 1 CPU, others than before", false},
	{lower_priority, "nice is 7, was ", false},
	{batch_policy, "the scheduling policy is 3, was 0", false},
	{ignore_signals, "what is done about 2 signals is otherwise, first SIG", false},
	{block_signal, "what is done about 1 signal is otherwise, first SIGUSR1", false},
	{set_timer, "a timer runs that will send SIGALRM", false},
	{set_profiler, "a timer runs that will send SIGPROF", false},
	{change_folder, "the working folder is another one", false},
	{change_mask, "the umask is 123, was ", false},
	{change_locale, "the locale is C.UTF-8, was C", false},
	{lower_limit, "the limit of open files is another one", false},
	{fewer_threads, "OpenMP was told to use 23 threads, and ", false},
	{other_schedule, "OpenMP was told other things than before", false},
	{close_input, "descriptor 0 is closed or another file", true},
	{replace_input, "descriptor 0 is closed or another file", true},
};

/* Whether this machine lets it be done (1), and undone (2), at all: one CPU, a user who may not raise a priority again, a locale that is not
 * there. In a child, as it may not be undone. */
static int tried(int i)
{
	struct surroundings_change change[SURROUNDINGS_WATCHED];
	struct surroundings *s = surroundings_create(0, -1);
	strays[i].stray();
	const int n = surroundings_look(s, false, change);
	const int can = n == 0 ? 0 : change[0].restored ? 2 : 1;
	/* Once more: what was put back is as it was, and what was not is not told again. */
	const int again = surroundings_look(s, false, change);
	surroundings_destroy(s);
	return n > 1 || again ? 3 : can;
}

static int possible(int i)
{
	int status;
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0)
		_exit(tried(i));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) <= 2);
	return WEXITSTATUS(status);
}

/* In a cell of three arms, whichever comes first, and in the one after it. */
START_TEST(told_of_the_arm)
{
	const int can = strays[_i / 2].stays ? 2 : possible(_i / 2);
	struct bed b;
	struct cell c;
	size_t i;
	json_t *f;
	if (!can)
		return;
	bed_open(&b, NULL);
	zoo_stray = strays[_i / 2].stray;
	if (_i % 2)
		ZOO_CELL(&c, &zoo, "shipped", "strays", "packed");
	else
		ZOO_CELL(&c, &zoo, "shipped", "packed", "strays");
	checks_of(&c);
	int told = 0;
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	json_array_foreach(json_object_get(facts, "checks"), i, f)
	{
		if (!strcmp(text_of(f, "status"), "pass"))
			continue;
		ck_assert_str_eq(text_of(f, "check"), "run");
		ck_assert_str_eq(text_of(f, "arm"), "strays");
		ck_assert_str_eq(text_of(f, "status"), "invalid");
		ck_assert_msg(strstr(text_of(f, "text"), strays[_i / 2].text), "%s", text_of(f, "text"));
		ck_assert_msg(strstr(text_of(f, "text"),
				     strays[_i / 2].stays || can == 1 ? "cannot be put back" : "; put back"),
			      "%s", text_of(f, "text"));
		told++;
	}
	ck_assert_int_eq(told, 1);
	ck_assert_int_eq(b.beat.spent, strays[_i / 2].stays || can == 1);
	json_decref(facts);
	zoo_stray = NULL;
	facts = run_cell(&b, &c, EXEC_OK);
	all_pass(facts);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

static const char *phase;

static void mask_when_timed(void)
{
	if (!strcmp(phase, "timing"))
		umask(0123);
}

/* Only in launches that are timed: it is told, of nobody, and put back. */
START_TEST(in_timed_launches)
{
	struct bed b;
	struct cell c;
	size_t i;
	json_t *f;
	int told = 0;
	bed_open(&b, NULL);
	phase = b.beat.phase;
	zoo_stray = mask_when_timed;
	ZOO_CELL(&c, &zoo, "shipped", "strays", "packed");
	checks_of(&c);
	const mode_t was = umask(022);
	umask(was);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	json_array_foreach(json_object_get(facts, "checks"), i, f)
	{
		if (!strcmp(text_of(f, "status"), "pass"))
			continue;
		ck_assert_str_eq(text_of(f, "check"), "run");
		ck_assert(json_is_null(json_object_get(f, "arm")));
		ck_assert_str_eq(text_of(f, "status"), "invalid");
		ck_assert(strstr(text_of(f, "text"), "in a launch that was not looked into: the umask is 123"));
		told++;
	}
	ck_assert_int_eq(told, 1);
	const mode_t is = umask(was);
	ck_assert_uint_eq(is, was);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

static int link_fd;

static void close_link(void)
{
	close(link_fd);
}

static void replace_link(void)
{
	const int null = open("/dev/null", O_RDONLY);
	dup2(null, link_fd);
	close(null);
}

/* The process cannot answer any more: nothing else is run in it, and its last words name the arm. */
START_TEST(cut_off)
{
	struct bed b;
	struct cell c;
	struct err err = {{0}};
	json_t *facts = NULL;
	int ends[2];
	bed_open(&b, NULL);
	ck_assert_int_eq(pipe(ends), 0);
	link_fd = ends[1];
	const struct exec_sink sink = {.beat = &b.beat, .part = part, .ctx = &b, .link = link_fd};
	zoo_stray = _i ? replace_link : close_link;
	ZOO_CELL(&c, &zoo, "shipped", "strays", "packed");
	checks_of(&c);
	ck_assert_int_eq(exec_cell(b.exec, &c, &sink, &facts, &err), EXEC_LOST);
	ck_assert_str_eq(b.beat.said, "closes the descriptor by which the worker answers");
	ck_assert_str_eq(b.beat.arm, "strays");
	json_decref(facts);
	bed_close(&b);
}
END_TEST

static atomic_bool stop;
static pthread_t started[8];
static int n_started;

static void *burn(void *arg)
{
	while (!atomic_load(&stop))
		;
	return NULL;
}

static void *rest(void *arg)
{
	while (!atomic_load(&stop))
		usleep(100000);
	return NULL;
}

static void start_burning(void)
{
	if (!n_started && pthread_create(&started[n_started], NULL, burn, NULL) == 0)
		n_started++;
}

static void start_pool(void)
{
	while (n_started < 8 && pthread_create(&started[n_started], NULL, rest, NULL) == 0)
		n_started++;
}

static void larger_team(void)
{
#pragma omp parallel num_threads(5)
	omp_get_thread_num();
}

static const struct {
	void (*stray)(void);
	bool wrong;
} pools[] = {{start_burning, true}, {start_pool, false}, {larger_team, false}};

/* A pool that sleeps is an arm's own affair; so is a team of OpenMP that it has made larger, whose threads wait actively for a while. */
START_TEST(threads_that_rest)
{
	const struct fake_script script = {.threads = 2};
	struct bed b;
	struct cell c;
	size_t i;
	json_t *f;
	int told = 0;
	bed_open(&b, &script);
	zoo_stray = pools[_i].stray;
	ZOO_CELL(&c, &zoo, "shipped", "packed", "strays", "scratch");
	checks_of(&c);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	json_array_foreach(json_object_get(facts, "checks"), i, f)
	{
		if (!strcmp(text_of(f, "status"), "pass"))
			continue;
		ck_assert_str_eq(text_of(f, "check"), "run");
		ck_assert_str_eq(text_of(f, "arm"), "strays");
		ck_assert_str_eq(text_of(f, "status"), "invalid");
		ck_assert_msg(strstr(text_of(f, "text"), "leaves 1 thread that never rests: "), "%s",
			      text_of(f, "text"));
		told++;
	}
	ck_assert_int_eq(told, pools[_i].wrong);
	ck_assert_int_eq(b.beat.spent, pools[_i].wrong);
	atomic_store(&stop, true);
	for (int k = 0; k < n_started; k++)
		pthread_join(started[k], NULL);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* In a process whose OpenMP runtime holds its threads to CPUs. The number of what is not as it should be. */
static int team_main(void)
{
	struct surroundings_change change[SURROUNDINGS_WATCHED];
	struct surroundings *s = surroundings_create(2, -1);
	cpu_set_t first, is, was;
	int left = 0;
	if (!s || omp_get_proc_bind() == omp_proc_bind_false)
		return 1;
	/* A team that grows and shrinks is made anew in part, on the same CPUs. */
	larger_team();
#pragma omp parallel num_threads(1)
	left += omp_get_num_threads() != 1;
	if (surroundings_look(s, false, change) != 0)
		return 2;
	sched_getaffinity(0, sizeof(first), &first);
#pragma omp parallel num_threads(2)
	if (omp_get_thread_num() == 1) {
		sched_getaffinity(0, sizeof(was), &was);
		sched_setaffinity(0, sizeof(first), &first);
	}
	if (CPU_EQUAL(&first, &was))
		return 3;
	if (surroundings_look(s, false, change) != 1 || !change[0].restored ||
	    strcmp(change[0].text, "1 thread of the team may run on other CPUs than before") != 0)
		return 4;
#pragma omp parallel num_threads(2)
	if (omp_get_thread_num() == 1)
		sched_getaffinity(0, sizeof(is), &is);
	left += !CPU_EQUAL(&is, &was) || surroundings_look(s, false, change) != 0;
	surroundings_destroy(s);
	return left ? 5 : 0;
}

/* Of a thread that is not the one that launches. */
START_TEST(cpus_of_the_team)
{
	cpu_set_t all;
	sched_getaffinity(0, sizeof(all), &all);
	if (CPU_COUNT(&all) < 2)
		return;
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0) {
		setenv("OMP_PROC_BIND", "true", 1);
		setenv("OMP_PLACES", "threads", 1);
		setenv("ASSAY_TEST_TEAM", "1", 1);
		execl("/proc/self/exe", "test_conduct", (char *)NULL);
		_exit(99);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

static void pool_and_mask(void)
{
	start_pool();
	change_mask();
}

/* Threads that rest are left to the next cell where all is right, and not where something is wrong. */
START_TEST(threads_that_stay)
{
	const struct fake_script script = {.threads = 1};
	struct bed b;
	struct cell c;
	bed_open(&b, &script);
	zoo_stray = _i ? pool_and_mask : start_pool;
	ZOO_CELL(&c, &zoo, "shipped", "strays");
	checks_of(&c);
	json_t *facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(b.beat.spent, _i);
	json_decref(facts);
	/* In the cell after it they are nobody's. */
	b.beat.spent = 0;
	zoo_stray = change_mask;
	facts = run_cell(&b, &c, EXEC_OK);
	ck_assert_int_eq(b.beat.spent, 0);
	json_decref(facts);
	atomic_store(&stop, true);
	for (int k = 0; k < n_started; k++)
		pthread_join(started[k], NULL);
	bed_close(&b);
}
END_TEST

int main(void)
{
	if (getenv("ASSAY_TEST_TEAM"))
		return team_main();
	Suite *s = suite_create("conduct");
	TCase *c = tcase_create("conduct");
	tcase_add_loop_test(c, told_of_the_arm, 0, 2 * COUNT(strays));
	tcase_add_test(c, in_timed_launches);
	tcase_add_loop_test(c, cut_off, 0, 2);
	tcase_add_loop_test(c, threads_that_rest, 0, COUNT(pools));
	tcase_add_test(c, cpus_of_the_team);
	tcase_add_loop_test(c, threads_that_stay, 0, 2);
	suite_add_tcase(s, c);

	return unit_run(s);
}
