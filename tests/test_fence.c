/* Memory between fences: how it lies, who is stopped by them, and what is told of that. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "fence.h"
#include "tensors.h"
#include "unit.h"

static const size_t sizes[] = {0, 1, 255, 256, 257, 4096, 4097, 73728, 1 << 20, (8 << 20) + 12};

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

/* Aligned, writable to its last byte, and the fence begins less than 256 bytes behind that. */
START_TEST(lies_at_its_fence)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct fence_hit hit;
	for (int again = 0; again < 3; again++) {
		unsigned char *p[COUNT(sizes)];
		for (int i = 0; i < COUNT(sizes); i++) {
			p[i] = fence_alloc(sizes[i]);
			ck_assert_ptr_nonnull(p[i]);
			ck_assert_uint_eq((uintptr_t)p[i] % FENCE_ALIGN, 0);
			memset(p[i], i, sizes[i]);
			const uintptr_t end = (uintptr_t)p[i] + sizes[i], fence = (end + 255) / 256 * 256;
			ck_assert_uint_eq((sizes[i] ? fence : fence + 256) % page, 0);
			ck_assert(!fence_hit(p[i], &hit));
		}
		for (int i = 0; i < COUNT(sizes); i++) {
			/* All of it still holds what was written: equal to itself one byte on, and to the first. */
			ck_assert(sizes[i] < 1 || p[i][0] == i);
			ck_assert(sizes[i] < 2 || memcmp(p[i], p[i] + 1, sizes[i] - 1) == 0);
			fence_free(p[i]);
		}
	}
	fence_free(NULL);
}
END_TEST

/* Where 16 MiB before and behind lead to, and farther where the memory is larger. */
START_TEST(knows_whose_fence)
{
	const int64_t mib = 1 << 20;
	struct fence_hit hit;
	char *p = fence_alloc(8192), *large = fence_alloc((size_t)(40 * mib)), *bare = fence_alloc(4096);
	fence_name(p, "y", 4096, 100);
	fence_name(large, "x", 4096, (size_t)(30 * mib));
	const struct {
		const char *at, *name;
		int64_t offset, bytes;
	} want[] = {
		{p + 8192, "y", 4096, 100},
		{p + 8191 + 16 * mib, "y", 4095 + 16 * mib, 100},
		{p - 1 - sysconf(_SC_PAGESIZE), "y", -4097 - sysconf(_SC_PAGESIZE), 100},
		{p - 15 * mib, "y", -15 * mib - 4096, 100},
		{large + 79 * mib, "x", 79 * mib - 4096, 30 * mib},
		{bare + 4096, NULL, 4096, 0},
	};
	for (int i = 0; i < COUNT(want); i++) {
		ck_assert_msg(fence_hit(want[i].at, &hit), "%d", i);
		ck_assert_pstr_eq(hit.name, want[i].name);
		ck_assert_int_eq(hit.offset, want[i].offset);
		ck_assert_int_eq(hit.bytes, want[i].bytes);
	}
	ck_assert(!fence_hit(&hit, &hit)); /* of the stack */
	fence_free(p);
	ck_assert(!fence_hit(want[0].at, &hit)); /* nobody's now */
	char *reused = fence_alloc(8192);
	ck_assert_ptr_eq(reused, p);
	ck_assert(fence_hit(want[0].at, &hit));
	ck_assert_ptr_null(hit.name); /* of the one that was there before */
	fence_free(reused);
	fence_free(large);
	fence_free(bare);
	fence_name(&hit, "of another allocator", 0, 1);
}
END_TEST

/* Memory that was larger is used again: what is too much of it is fence. */
START_TEST(reuse_is_fenced_too)
{
	struct fence_hit hit;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = fence_alloc(20 * page);
	memset(p, 1, 20 * page);
	fence_free(p);
	char *less = fence_alloc(12 * page);
	ck_assert_ptr_eq(less, p + 8 * page);
	ck_assert(fence_hit(less - 1, &hit));
	ck_assert_int_eq(hit.offset, -1);
	memset(less, 2, 12 * page);
	fence_free(less);
	char *more = fence_alloc(20 * page);
	ck_assert_ptr_eq(more, p);
	memset(more, 3, 20 * page);
	fence_free(more);
}
END_TEST

/* What is sealed can be read, is told apart from a fence, and is memory like any other for whoever gets it next. */
START_TEST(sealed)
{
	struct fence_hit hit;
	char *p = fence_alloc(5000);
	memset(p, 7, 5000);
	ck_assert(!fence_hit(p + 10, &hit));
	ck_assert(fence_seal(p));
	ck_assert_int_eq(p[4999], 7);
	ck_assert(fence_hit(p + 10, &hit));
	ck_assert(hit.sealed);
	ck_assert(fence_hit(p + (1 << 20), &hit));
	ck_assert(!hit.sealed);
	fence_free(p);
	char *next = fence_alloc(5000);
	ck_assert_ptr_eq(next, p);
	memset(next, 8, 5000);
	ck_assert(!fence_hit(next + 10, &hit));
	fence_free(next);
	ck_assert(!fence_seal(&hit));
}
END_TEST

START_TEST(too_much_is_refused)
{
	ck_assert_ptr_null(fence_alloc(SIZE_MAX));
	ck_assert_ptr_null(fence_alloc(SIZE_MAX / 8));
	ck_assert_ptr_null(fence_alloc((size_t)1 << 46)); /* more than any machine has */
	char *p = fence_alloc(1);
	ck_assert_ptr_nonnull(p);
	fence_free(p);
}
END_TEST

/* Under a limit of address space the fences are narrower, and the memory is still there. */
START_TEST(narrow_where_space_is_limited)
{
#if defined(__SANITIZE_ADDRESS__)
	return; /* it needs terabytes of address space itself */
#endif
	const pid_t pid = fork();
	if (pid == 0) {
		long pages = 0;
		FILE *f = fopen("/proc/self/statm", "r");
		if (!f || fscanf(f, "%ld", &pages) != 1)
			_exit(1);
		fclose(f);
		const size_t have = (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
		const struct rlimit limit = {have + (64 << 20), have + (64 << 20)};
		if (setrlimit(RLIMIT_AS, &limit) != 0)
			_exit(2);
		struct fence_hit hit;
		for (int i = 0; i < 16; i++) {
			char *p = fence_alloc(65536);
			if (!p)
				_exit(10 + i);
			memset(p, 1, 65536);
			fence_name(p, "p", 0, 65536);
			if (!fence_hit(p + 65536, &hit) || !fence_hit(p - 1, &hit))
				_exit(40 + i);
		}
		_exit(0);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* What the CPU tells of an access, and how it is said. */
static const struct {
	int64_t offset;
	bool write;
	const char *where, *text;
} reaches[] = {
	{0, true, NULL, "s where the harness keeps what it has seen"},
	{1004096, true, "guard_after", "s far behind y: at byte 1004096 of 100"},
	{-16000, true, "guard_before", "s far before y: 16000 bytes ahead of it"},
	{5000, false, "over_read", "s far behind y: at byte 5000 of 100"},
};

START_TEST(the_last_words)
{
	struct fault_note *f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(f, 0, sizeof(*f));
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		char *p = fence_alloc(8192);
		fence_name(p, "y", 4096, 100);
		if (!reaches[_i].where)
			fence_seal(p);
		fault_watch(f);
		volatile char *at = p + 4096 + reaches[_i].offset;
		if (reaches[_i].write)
			*at = 1;
		else
			_exit(*at);
		_exit(0);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSEGV); /* it ends as it would have ended */
	char text[256];
	json_t *findings = json_array();
	ck_assert(fault_words(f, text, sizeof(text)));
	ck_assert_msg(strstr(text, reaches[_i].text), "%s", text);
#if defined(__x86_64__)
	ck_assert_int_eq(strncmp(text, "writes", 6) == 0, reaches[_i].write);
	ck_assert_int_eq(fault_finding(f, "arm", findings), reaches[_i].where != NULL);
	if (!reaches[_i].where) {
		ck_assert_int_eq(json_array_size(findings), 0);
		json_decref(findings);
		munmap(f, sizeof(*f));
		return;
	}
	const json_t *one = json_array_get(findings, 0);
	ck_assert_str_eq(json_string_value(json_object_get(one, "where")), reaches[_i].where);
	ck_assert_str_eq(json_string_value(json_object_get(one, "tensor")), "y");
	ck_assert_str_eq(json_string_value(json_object_get(one, "arm")), "arm");
	ck_assert_str_eq(json_string_value(json_object_get(one, "status")), "wrong");
	ck_assert_int_eq(json_integer_value(json_object_get(one, "offset_bytes")), reaches[_i].offset);
#endif
	json_decref(findings);
	/* A process that lost its way may have written anything there. */
	memset(f, 0x7F, sizeof(*f));
	ck_assert(fault_words(f, text, sizeof(text)));
	munmap(f, sizeof(*f));
}
END_TEST

/* A fault that has nothing to do with a fence, and a signal that somebody sent, tell nothing and end the process all the same. */
START_TEST(other_faults_tell_nothing)
{
	struct fault_note *f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char text[256];
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		char *p = fence_alloc(8192);
		fence_name(p, "y", 4096, 100);
		fault_watch(f);
		volatile int *volatile nowhere = NULL;
		if (_i == 0)
			*nowhere = 1;
		else
			raise(SIGSEGV);
		_exit(0);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSEGV);
	ck_assert(!fault_words(f, text, sizeof(text)));
	munmap(f, sizeof(*f));
}
END_TEST

/* Every tensor of the host lies between fences, its guards end where they begin, and they know its name. */
START_TEST(tensors_are_fenced)
{
	static const struct assay_tensor desc = {.name = "out", .role = ASSAY_OUT, .dtype = ASSAY_F32, .dims = "n"};
	struct err e = {{0}};
	struct backend *be = backend_open("host", &(struct backend_config){.threads = 1}, &e);
	struct fence_hit hit;
	struct buffer b, w;
	for (int64_t n = 0; n < 3000; n += 977) {
		const struct assay_shape shape = {.rank = 1, .dim = {n}};
		ck_assert_msg(buffer_create(be, &desc, &shape, 0, &b, &e), "%s", e.text);
		ck_assert_msg(buffer_create(be, NULL, NULL, 1000, &w, &e), "%s", e.text);
		const char *data = b.data, *end = data + (b.bytes + 3) / 4 * 4 + b.after;
		ck_assert_uint_eq(b.after % 4, 0);
		ck_assert_uint_ge(b.after, 65536);
		ck_assert(!fence_hit(end - 1, &hit));
		ck_assert(fence_hit(end, &hit));
		ck_assert_str_eq(hit.name, "out");
		ck_assert_int_eq(hit.offset, end - data);
		ck_assert_int_eq(hit.bytes, 4 * n);
		ck_assert(fence_hit((const char *)w.data + (1 << 20), &hit));
		ck_assert_str_eq(hit.name, "workspace");
		buffer_destroy(be, &b);
		buffer_destroy(be, &w);
	}
	backend_ops_of(be)->close(be);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fence");
	TCase *c = tcase_create("fence");
	tcase_add_test(c, lies_at_its_fence);
	tcase_add_test(c, knows_whose_fence);
	tcase_add_test(c, reuse_is_fenced_too);
	tcase_add_test(c, sealed);
	tcase_add_test(c, too_much_is_refused);
	tcase_add_test(c, narrow_where_space_is_limited);
	tcase_add_loop_test(c, the_last_words, 0, COUNT(reaches));
	tcase_add_loop_test(c, other_faults_tell_nothing, 0, 2);
	tcase_add_test(c, tensors_are_fenced);
	suite_add_tcase(s, c);

	return unit_run(s);
}
