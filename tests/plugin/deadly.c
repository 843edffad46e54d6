/* demo.deadly: a kernel of a plugin that ends the process it is loaded or planned in. ASSAY_TEST_DEADLY says how and where:
 * exit, abort, crash: its constructor does, wherever it is loaded; exit_in_assay: only where stdout is not /dev/null, as it is in a trial;
 * shape_exit, shape_crash, refuse_abort: that hook does, at n = 20, which no check of a descriptor asks for. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "vector.h"

static int is(const char *what)
{
	const char *s = getenv("ASSAY_TEST_DEADLY");
	return s && strcmp(s, what) == 0;
}

__attribute__((constructor)) static void begin(void)
{
	struct stat st;
	if (is("exit"))
		exit(0);
	if (is("abort"))
		abort();
	if (is("crash"))
		raise(SIGSEGV);
	if (is("exit_in_assay") && fstat(1, &st) == 0 && !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
		exit(0);
}

static int shape(const struct assay_point *pt, int t, struct assay_shape *out)
{
	if (pt->v[0].i == 20 && is("shape_exit"))
		exit(0);
	if (pt->v[0].i == 20 && is("shape_crash"))
		raise(SIGSEGV);
	return vector_shape(pt, t, out);
}

static const char *refuse(const struct assay_point *pt)
{
	if (pt->v[0].i == 20 && is("refuse_abort"))
		abort();
	return 0;
}

static int run(const struct assay_call *call, void *state)
{
	memcpy(call->tensor[1], call->tensor[0], (size_t)call->shape[0].dim[0] * sizeof(float));
	return 0;
}

static const struct assay_arm_ops ops = {.run = run};
static const struct assay_arm arms[] = {
	{.name = "shipped", .ops = {[ASSAY_HOST] = &ops}, .doc = "copies"},
	{.name = "other", .flags = ASSAY_ARM_BITWISE, .ops = {[ASSAY_HOST] = &ops}, .doc = "copies"},
};

__attribute__((visibility("default"))) const struct assay_kernel assay_kernel = {
	VECTOR,
	.name = "demo.deadly",
	.doc = "copies, or ends the process",
	.arms = arms,
	.n_arms = sizeof arms / sizeof arms[0],
	.shape = shape,
	.refuse = refuse,
};
