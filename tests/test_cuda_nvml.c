/* The state of a GPU, by a management library that answers from a script: who counts as another process, what counts as throttling, and what is
 * unknown rather than wrong. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../runner/cuda_nvml.h"
#include "fake_nvml.h"
#include "unit.h"

/* No process of this namespace has these: the kernel's greatest is 2^22. */
enum { HOST_PID = 1 << 23, OTHER_HOST_PID };

static void *library;
static struct fake_nvml *fake;
static pid_t stranger; /* alive, and of another process group */

static void setup(void)
{
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(library, "%s", dlerror());
	fake = dlsym(library, "fake_nvml");
	ck_assert(fake);
	memset(fake, 0, sizeof *fake);
	stranger = fork();
	ck_assert_int_ge(stranger, 0);
	if (stranger == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
		setpgid(0, 0);
		pause();
		_exit(0);
	}
	setpgid(stranger, stranger);
}

static void teardown(void)
{
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
	dlclose(library);
}

static struct cuda_nvml *opened(void)
{
	const char *why;
	struct cuda_nvml *n = cuda_nvml_open("GPU-1", &why);
	ck_assert_msg(n, "%s", why);
	return n;
}

static int others(struct cuda_nvml *n)
{
	struct device_state s;
	cuda_nvml_state(n, &s);
	return s.other_processes;
}

static void on_device(unsigned pid)
{
	fake->compute[fake->n_compute++] = pid;
}

START_TEST(figures)
{
	struct cuda_nvml *n = opened();
	struct device_state s;
	cuda_nvml_state(n, &s);
	ck_assert_int_eq(s.sm_mhz, 1980);
	ck_assert_int_eq(s.mem_mhz, 3201);
	ck_assert_int_eq(s.temperature_c, 38);
	ck_assert_int_eq(s.power_w, 166);
	ck_assert(s.throttle == 0 && !s.throttle_text);
	ck_assert_int_eq(s.other_processes, 0);
	cuda_nvml_close(n);
	ck_assert_int_eq(fake->shutdowns, fake->inits);
	/* Nothing is known without the library. */
	cuda_nvml_state(NULL, &s);
	ck_assert_int_eq(s.sm_mhz, -1);
	ck_assert_int_eq(s.other_processes, -1);
	cuda_nvml_present(NULL);
}
END_TEST

/* An idle GPU and clocks that somebody has set are no throttling; nor is a card at its power cap, as many are whenever they work: it is told. */
START_TEST(throttling)
{
	static const struct {
		unsigned long long bits;
		const char *text, *limit;
	} of[] = {{0x1, NULL, NULL},
		  {0x2, NULL, NULL},
		  {0x100, NULL, NULL},
		  {0x4, NULL, "power cap"},
		  {0x10, NULL, "synchronised boost with another GPU"},
		  {0x8 | 0x1, "hardware slowdown", NULL},
		  {0x80 | 0x4, "power brake", "power cap"},
		  {0x20, "software thermal slowdown", NULL},
		  {0x40 | 0x4, "hardware thermal slowdown", "power cap"}};
	struct cuda_nvml *n = opened();
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct device_state s;
		fake->throttle = of[i].bits;
		cuda_nvml_state(n, &s);
		ck_assert_int_eq(s.throttle != 0, of[i].text != NULL);
		ck_assert_pstr_eq(s.throttle_text, of[i].text);
		ck_assert_pstr_eq(s.limit_text, of[i].limit);
	}
	cuda_nvml_close(n);
}
END_TEST

/* We, our parent and our group are not another process; a stranger is, wherever it is from. */
START_TEST(processes)
{
	struct cuda_nvml *n = opened();
	on_device((unsigned)getpid());
	cuda_nvml_present(n);
	on_device((unsigned)getppid());
	ck_assert_int_eq(others(n), 0);
	on_device((unsigned)stranger);
	ck_assert_int_eq(others(n), 1);
	on_device(HOST_PID);
	ck_assert_int_eq(others(n), 2);
	/* What draws the screen is no disturbance. */
	fake->graphics[fake->n_graphics++] = OTHER_HOST_PID;
	ck_assert_int_eq(others(n), 2);
	json_t *o = json_object();
	cuda_nvml_describe(n, o);
	ck_assert_int_eq(json_integer_value(json_object_get(o, "graphics_processes")), 1);
	json_decref(o);
	/* More than there is room for are many, and a list that cannot be had is none. */
	while (fake->n_compute < 70)
		on_device(HOST_PID + fake->n_compute);
	ck_assert_int_gt(others(n), 1);
	fake->list_rc = 3;
	ck_assert_int_eq(others(n), -1);
	cuda_nvml_close(n);
}
END_TEST

/* In a container the library may know us by the host's number. It came with our context, so it is ours; the one before was not. */
START_TEST(container)
{
	on_device(OTHER_HOST_PID);
	struct cuda_nvml *n = opened();
	on_device(HOST_PID);
	cuda_nvml_present(n);
	ck_assert_int_eq(others(n), 1);
	fake->compute[0] = HOST_PID;
	fake->n_compute = 1;
	ck_assert_int_eq(others(n), 0);
	on_device(HOST_PID + 7);
	ck_assert_int_eq(others(n), 1);
	cuda_nvml_close(n);
}
END_TEST

/* The host's number for us may be anybody's here: that of a stranger, of our parent, or our own for somebody else. */
START_TEST(numbers_of_two_namespaces)
{
	const pid_t taken[] = {stranger, getppid(), 1};
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
		fake->n_compute = 0;
		struct cuda_nvml *n = opened();
		on_device((unsigned)taken[i]);
		cuda_nvml_present(n);
		ck_assert_int_eq(others(n), 0);
		on_device(HOST_PID);
		ck_assert_int_eq(others(n), 1);
		/* Nor is anybody ours by his number then. */
		fake->compute[1] = (unsigned)getpid();
		ck_assert_int_eq(others(n), 1);
		fake->compute[1] = (unsigned)getppid();
		ck_assert_int_eq(others(n), taken[i] == getppid() ? 0 : 1);
		cuda_nvml_close(n);
	}
	/* Who has our number before we have a context is somebody else. */
	fake->n_compute = 0;
	on_device((unsigned)getpid());
	struct cuda_nvml *n = opened();
	on_device(HOST_PID);
	cuda_nvml_present(n);
	ck_assert_int_eq(others(n), 1);
	fake->compute[0] = HOST_PID;
	fake->n_compute = 1;
	ck_assert_int_eq(others(n), 0);
	cuda_nvml_close(n);
	/* One whose context is older than its library is there by its own number all the same. */
	fake->compute[0] = (unsigned)getpid();
	n = opened();
	cuda_nvml_present(n);
	ck_assert_int_eq(others(n), 0);
	cuda_nvml_close(n);
}
END_TEST

/* Newcomers, and none by our own number: one of them is us, and which shows as the others go. */
START_TEST(container_in_doubt)
{
	struct cuda_nvml *n = opened();
	on_device(HOST_PID);
	on_device(OTHER_HOST_PID);
	cuda_nvml_present(n);
	ck_assert_int_eq(others(n), 1);
	on_device(HOST_PID + 7);
	ck_assert_int_eq(others(n), 2);
	fake->compute[0] = OTHER_HOST_PID;
	fake->n_compute = 1;
	ck_assert_int_eq(others(n), 0);
	on_device(HOST_PID); /* who comes back is not us */
	fake->compute[0] = HOST_PID + 7;
	ck_assert_int_eq(others(n), 2);
	cuda_nvml_close(n);
	/* By our own number we are known. */
	fake->n_compute = 0;
	n = opened();
	on_device(HOST_PID);
	on_device((unsigned)getpid());
	cuda_nvml_present(n);
	ck_assert_int_eq(others(n), 1);
	cuda_nvml_close(n);
	/* A process may be listed more than once. */
	fake->n_compute = 0;
	n = opened();
	on_device(HOST_PID);
	on_device(HOST_PID);
	cuda_nvml_present(n);
	ck_assert_int_eq(others(n), 0);
	cuda_nvml_close(n);
}
END_TEST

START_TEST(refused)
{
	const char *why;
	ck_assert(!cuda_nvml_open("no-such", &why));
	ck_assert_str_eq(why, "NVML does not know the device");
	fake->init_rc = 9;
	ck_assert(!cuda_nvml_open("GPU-1", &why));
	ck_assert_str_eq(why, "nvmlInit failed");
	ck_assert_int_eq(fake->shutdowns, fake->inits);
}
END_TEST

int main(int argc, char **argv)
{
	/* The library is found by its name alone: where the loader looks is fixed when a program starts. */
	if (!getenv("ASSAY_FAKE_NVML")) {
		(void)argc;
		setenv("ASSAY_FAKE_NVML", "1", 1);
		setenv("LD_LIBRARY_PATH", ASSAY_TEST_BUILD, 1);
		execv("/proc/self/exe", argv);
		return 1;
	}
	Suite *s = suite_create("cuda_nvml");
	TCase *t = tcase_create("cuda_nvml");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, figures);
	tcase_add_test(t, throttling);
	tcase_add_test(t, processes);
	tcase_add_test(t, container);
	tcase_add_test(t, numbers_of_two_namespaces);
	tcase_add_test(t, container_in_doubt);
	tcase_add_test(t, refused);
	suite_add_tcase(s, t);
	return unit_run(s);
}
