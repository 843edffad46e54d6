/* The probe kernels: what each fault does, and that it does nothing else. */
#include "test_rig.h"
#include "unit.h"

/* ---- probes -------------------------------------------------------------------------------------------------------- */

START_TEST(probe_work_more_has_the_same_output)
{
	struct rig r = rig_create(&assay_kernel_probe_work, (struct assay_point){{{.i = 1234}}}, 1);
	rig_run(&r, "shipped", 0);
	ck_assert_int_eq(against_reference(&r).beyond, 0);
	void *want = copy_out(&r);
	rig_run(&r, "more", 50);
	ck_assert_int_eq(differ(&r, want), 0);
	r.point.v[0].i++;
	rig_run(&r, "shipped", 0);
	ck_assert_int_eq(differ(&r, want), 16);
	free(want);
	rig_finish(&r);
}
END_TEST

/* The workspace of more=P holds the recurrence P per mille further on: the extra work is done, and is exactly that much. */
START_TEST(probe_work_more_does_more)
{
	struct rig r = rig_create(&assay_kernel_probe_work, (struct assay_point){{{.i = 2000}}}, 1);
	struct assay_call call = call_of(&r, 30);
	uint32_t further[16];
	call.workspace = further;
	ck_assert_uint_eq(arm_of(r.k, "more")->ops[ASSAY_HOST]->workspace_bytes(&r.point, 30), sizeof further);
	ck_assert_int_eq(arm_of(r.k, "more")->ops[ASSAY_HOST]->run(&call, NULL), 0);
	r.point.v[0].i = 2060;
	rig_run(&r, "shipped", 0);
	ck_assert_mem_eq(r.tensor[r.out], further, sizeof further);
	rig_finish(&r);
}
END_TEST

START_TEST(probe_inout_wants_to_be_restored)
{
	struct rig r = rig_create(&assay_kernel_probe_inout, (struct assay_point){{{.i = 100}}}, 2);
	void *filled = copy_out(&r);
	rig_run(&r, "shipped", 0);
	void *want = copy_out(&r);
	memcpy(r.tensor[r.out], filled, r.bytes[r.out]);
	rig_run(&r, "split", 7);
	ck_assert_int_eq(differ(&r, want), 0);
	for (int launch = 0; launch < 3; launch++) {
		memcpy(r.tensor[r.out], filled, r.bytes[r.out]);
		rig_run(&r, "accumulates", 0);
		if (launch > 0)
			ck_assert_int_ge(differ(&r, want), 90);
		else
			ck_assert_int_eq(differ(&r, want), 0);
	}
	free(want);
	free(filled);
	rig_finish(&r);
}
END_TEST

/* A rig whose output and first input have 256 floats of margin on both sides, poisoned with NaN. */
struct margins {
	struct rig r;
	float *memory[2], *want;
};

static struct margins margins_create(void)
{
	struct margins m = {
		.r = rig_create(&assay_kernel_probe_faults, (struct assay_point){{{.i = 66}, {.i = 33}}}, 2)};
	const int which[2] = {0, m.r.out};
	for (int i = 0; i < 2; i++) {
		const size_t bytes = m.r.bytes[which[i]];
		m.memory[i] = malloc(bytes + 2048);
		memset(m.memory[i], 0xFF, bytes + 2048);
		memcpy(m.memory[i] + 256, m.r.tensor[which[i]], bytes);
		free(m.r.tensor[which[i]]);
		m.r.tensor[which[i]] = m.memory[i] + 256;
	}
	rig_run(&m.r, "shipped", 0);
	ck_assert_int_eq(against_reference(&m.r).beyond, 0);
	m.want = copy_out(&m.r);
	return m;
}

static void margins_finish(struct margins *m)
{
	free(m->memory[0]);
	free(m->memory[1]);
	free(m->want);
	free(m->r.tensor[1]);
}

static const struct {
	const char *arm;
	int64_t differ; /* elements that differ from shipped in the first launch */
} first_launch[] = {
	{"split", 0},           {"nothing", 66},      {"ulp", 1},    {"flip_bit", 1},      {"unwritten_tail", 1},
	{"zero_rows", 11},      {"nan", 1},           {"inf", 1},    {"overrun", 0},       {"underrun", 0},
	{"over_read", 1},       {"over_read_max", 0}, {"caches", 0}, {"changes_input", 0}, {"drifts", 0},
	{"fails_sometimes", 0}, {"late", 0},          {"slow", 0},
};

START_TEST(faults_differ_as_they_say)
{
	struct margins m = margins_create();
	ck_assert_int_eq(rig_run(&m.r, first_launch[_i].arm, 3), 0);
	ck_assert_msg(differ(&m.r, m.want) == first_launch[_i].differ, "%s: %d elements differ", first_launch[_i].arm,
		      (int)differ(&m.r, m.want));
	margins_finish(&m);
}
END_TEST

START_TEST(faults_leave_their_buffers)
{
	struct margins m = margins_create();
	const uint32_t poison = 0xFFFFFFFF;
	float *out = m.r.tensor[m.r.out], *a = m.r.tensor[0];
	rig_run(&m.r, "overrun", 0);
	ck_assert_mem_ne(out + 66, &poison, 4);
	ck_assert_mem_eq(out - 1, &poison, 4);
	rig_run(&m.r, "underrun", 0);
	ck_assert_mem_ne(out - 1, &poison, 4);
	for (int k = 0; k < 33; k++)
		a[66 * 33 + k] = 1e30f; /* a huge tail: now the maximum shows, and 0 times it does not */
	rig_run(&m.r, "over_read_max", 0);
	ck_assert_int_eq(differ(&m.r, m.want), 1);
	rig_run(&m.r, "over_read", 0);
	ck_assert_int_eq(differ(&m.r, m.want), 0);
	float *before = malloc(m.r.bytes[0]);
	memcpy(before, a, m.r.bytes[0]);
	rig_run(&m.r, "split", 2);
	ck_assert_mem_eq(before, a, m.r.bytes[0]);
	rig_run(&m.r, "changes_input", 0);
	ck_assert_mem_ne(before, a, m.r.bytes[0]);
	free(before);
	margins_finish(&m);
}
END_TEST

START_TEST(faults_remember)
{
	struct margins m = margins_create();
	for (int launch = 0; launch < 20; launch++) {
		rig_run(&m.r, "drifts", 0);
		ck_assert_int_eq(differ(&m.r, m.want), launch >= 10);
	}
	int wrong = 0, failed = 0;
	for (int launch = 0; launch < 2000; launch++) {
		rig_run(&m.r, "racy", 0);
		wrong += differ(&m.r, m.want) != 0;
	}
	ck_assert_int_ge(wrong, 20);
	ck_assert_int_le(wrong, 65);
	for (int launch = 0; launch < 70; launch++)
		failed += rig_run(&m.r, "fails_sometimes", 0) != 0;
	ck_assert_int_eq(failed, 10);
	/* Other data at the same address: the cached result is returned. */
	rig_run(&m.r, "caches", 0);
	((float *)m.r.tensor[1])[0] += 1;
	rig_run(&m.r, "caches", 0);
	ck_assert_int_eq(differ(&m.r, m.want), 0);
	rig_run(&m.r, "shipped", 0);
	ck_assert_int_ge(differ(&m.r, m.want), 60);
	margins_finish(&m);
}
END_TEST

static const char *const rounded[] = {"batch", "position", "neighbours"};

/* Right by the reference, and yet their rows follow what they should not. */
START_TEST(faults_break_invariance)
{
	struct margins m = margins_create();
	const int64_t rows = 66, d = 33;
	rig_run(&m.r, rounded[_i], 0);
	ck_assert_int_eq(against_reference(&m.r).beyond, 0);
	ck_assert_int_ge(differ(&m.r, m.want), 10);
	float *out = m.r.tensor[m.r.out], *a = m.r.tensor[0];
	float *whole = copy_out(&m.r);
	int64_t changed = 0;
	if (_i == 0) { /* fewer rows: relaunched one by one */
		m.r.point.v[0].i = 1;
		for (int64_t r = 0; r < rows; r++) {
			m.r.tensor[0] = a + r * d;
			rig_run(&m.r, rounded[_i], 0);
			changed += memcmp(out, whole + r, sizeof *out) != 0;
		}
		m.r.tensor[0] = a;
	} else if (_i == 1) { /* rows moved up by one */
		m.r.point.v[0].i = rows - 1;
		m.r.tensor[0] = a + d;
		rig_run(&m.r, rounded[_i], 0);
		for (int64_t r = 0; r < rows - 1; r++)
			changed += memcmp(out + r, whole + r + 1, sizeof *out) != 0;
		m.r.tensor[0] = a;
	} else { /* every other row's sign turned */
		for (int64_t r = 1; r < rows; r += 2)
			for (int64_t k = 0; k < d; k++)
				a[r * d + k] *= -1;
		rig_run(&m.r, rounded[_i], 0);
		for (int64_t r = 0; r < rows; r += 2)
			changed += memcmp(out + r, whole + r, sizeof *out) != 0;
	}
	ck_assert_msg(changed >= 5, "%s: %d rows changed", rounded[_i], (int)changed);
	free(whole);
	margins_finish(&m);
}
END_TEST

START_TEST(faults_fail_in_words)
{
	struct margins m = margins_create();
	ck_assert_int_eq(rig_run(&m.r, "fails", 0), -1);
	ck_assert_str_eq(m.r.error, "probe.faults: this arm fails, as it says");
	ck_assert(arm_of(m.r.k, "unsupported")->unsupported(&m.r.point, 0, ASSAY_HOST) != NULL);
	margins_finish(&m);
}
END_TEST

static const struct {
	const char *arm;
	int signal; /* that ends the process, or 0: exit status 0 */
} fatal[] = {{"crash", SIGSEGV}, {"stack", SIGSEGV}, {"exits", 0}, {"hang", SIGALRM}, {"stdout_noise", -1}};

/* In a child of their own: how the process ends is what they are for. */
START_TEST(faults_end_their_process)
{
	const bool needs_signal = fatal[_i].signal == SIGSEGV;
	if (ASAN && needs_signal)
		return; /* the sanitizer takes the signal */
	struct margins m = margins_create();
	int ends[2];
	ck_assert_int_eq(pipe(ends), 0);
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGALRM, SIG_DFL);
		dup2(ends[1], STDOUT_FILENO);
		alarm(fatal[_i].signal == SIGALRM ? 1 : 60);
		m.r.threads = 1;
		rig_run(&m.r, fatal[_i].arm, 0);
		_exit(77);
	}
	close(ends[1]);
	char text[256] = "";
	const ssize_t got = read(ends[0], text, sizeof text - 1);
	close(ends[0]);
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (fatal[_i].signal > 0) {
		ck_assert(WIFSIGNALED(status));
		ck_assert_int_eq(WTERMSIG(status), fatal[_i].signal);
	} else {
		ck_assert(WIFEXITED(status));
		ck_assert_int_eq(WEXITSTATUS(status), fatal[_i].signal < 0 ? 77 : 0);
		ck_assert_int_eq(got > 0, fatal[_i].signal < 0);
	}
	margins_finish(&m);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
	Suite *s = suite_create("probes");
	TCase *c = tcase_create("probes");
	tcase_add_test(c, probe_work_more_has_the_same_output);
	tcase_add_test(c, probe_work_more_does_more);
	tcase_add_test(c, probe_inout_wants_to_be_restored);
	tcase_add_loop_test(c, faults_differ_as_they_say, 0, COUNT(first_launch));
	tcase_add_test(c, faults_leave_their_buffers);
	tcase_add_test(c, faults_remember);
	tcase_add_loop_test(c, faults_break_invariance, 0, COUNT(rounded));
	tcase_add_test(c, faults_fail_in_words);
	tcase_add_loop_test(c, faults_end_their_process, 0, COUNT(fatal));
	suite_add_tcase(s, c);

	return unit_run(s);
}
