/* run_shard: which part of the plan is ours. `auto` reads what launchers set, and only when asked to: inherited variables have
 * made jobs drop work. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A whole non-negative number. False: *err names the variable. */
static bool number(const char *name, long long *out, struct err *err)
{
	const char *text = getenv(name);
	char *end;
	errno = 0;
	*out = text ? strtoll(text, &end, 10) : -1;
	if (!text || end == text || *end || errno || *out < 0 || strchr(" +\t", *text))
		return err_set(err, "--shard auto: %s is %s%s%s, not a number", name, text ? "\"" : "",
			       text ? text : "not set", text ? "\"" : "");
	return true;
}

/* i (0-based) of n, as i/n of the command line. */
static bool settle(long long i0, long long n, const char *from, int *i, int *n_out, struct err *err)
{
	if (n < 1 || n > 1000000)
		return err_set(err, "--shard: %lld shards (from %s): at least 1, at most 1000000", n, from);
	if (i0 < 0 || i0 >= n)
		return err_set(err, "--shard: %lld/%lld (from %s): shards count from 1 to the number of them", i0 + 1,
			       n, from);
	*i = (int)i0 + 1;
	*n_out = (int)n;
	return true;
}

static bool parse_pair(const char *text, const char *from, int *i, int *n, struct err *err)
{
	char *end;
	errno = 0;
	if (*text < '0' || *text > '9')
		return err_set(err, "%s: \"%s\" is not i/n (3/8) or auto", from, text);
	long long a = strtoll(text, &end, 10);
	if (*end != '/' || end[1] < '0' || end[1] > '9')
		return err_set(err, "%s: \"%s\" is not i/n (3/8) or auto", from, text);
	long long b = strtoll(end + 1, &end, 10);
	if (*end || errno)
		return err_set(err, "%s: \"%s\" is not i/n (3/8) or auto", from, text);
	return settle(a - 1, b, from, i, n, err);
}

/* A pair of variables: rank from 0 and size. */
struct pair {
	const char *rank, *size;
	bool alone;
};

static bool read_pair(const struct pair *p, int *i, int *n, char *words, size_t cap, struct err *err)
{
	long long rank, size;
	char from[80];
	snprintf(from, sizeof from, "%s, %s", p->rank, p->size);
	if (!number(p->rank, &rank, err) || !number(p->size, &size, err) || !settle(rank, size, from, i, n, err))
		return false;
	snprintf(words, cap, "shard %d/%d from %s", *i, *n, from);
	return true;
}

/* A Slurm array task, a job step, or both: then every task of every array job is a shard of its own. */
static bool read_slurm(bool array, bool step, int *i, int *n, char *words, size_t cap, struct err *err)
{
	long long i0 = 0, count = 1;
	if (array) {
		long long id, lo, hi, by = 1;
		if (!number("SLURM_ARRAY_TASK_ID", &id, err) || !number("SLURM_ARRAY_TASK_MIN", &lo, err) ||
		    !number("SLURM_ARRAY_TASK_MAX", &hi, err))
			return false;
		if (getenv("SLURM_ARRAY_TASK_STEP") && !number("SLURM_ARRAY_TASK_STEP", &by, err))
			return false;
		if (by < 1 || id < lo || id > hi || (id - lo) % by != 0)
			return err_set(err, "--shard auto: array task %lld is none of %lld-%lld:%lld", id, lo, hi, by);
		i0 = (id - lo) / by;
		count = (hi - lo) / by + 1;
		long long told;
		/* An array given as a list ("1,5,7") has holes that MIN, MAX and STEP do not show. */
		if (getenv("SLURM_ARRAY_TASK_COUNT") &&
		    (!number("SLURM_ARRAY_TASK_COUNT", &told, err) || told != count))
			return err_set(err,
				       "--shard auto: SLURM_ARRAY_TASK_COUNT says %s, the range says %lld; give "
				       "--shard i/n",
				       getenv("SLURM_ARRAY_TASK_COUNT"), count);
	}
	if (step) {
		long long rank, size;
		if (!number("SLURM_PROCID", &rank, err) || !number("SLURM_STEP_NUM_TASKS", &size, err))
			return false;
		if (size < 1 || rank >= size)
			return err_set(err, "--shard auto: SLURM_PROCID is %lld of SLURM_STEP_NUM_TASKS %lld", rank,
				       size);
		i0 = i0 * size + rank;
		count *= size;
	}
	const char *from = array && step ? "SLURM_ARRAY_TASK_ID and SLURM_PROCID of the step"
			   : array       ? "SLURM_ARRAY_TASK_ID"
					 : "SLURM_PROCID of the step";
	if (!settle(i0, count, from, i, n, err))
		return false;
	snprintf(words, cap, "shard %d/%d from %s", *i, *n, from);
	return true;
}

/* Launchers beside Slurm; `alone`: a size of 1 means that no launcher of ours set it. */
static const struct pair pairs[] = {
	{"TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS", false},       {"GTEST_SHARD_INDEX", "GTEST_TOTAL_SHARDS", false},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true}, {"PMI_RANK", "PMI_SIZE", true},
	{"JOB_COMPLETION_INDEX", "ASSAY_SHARD_TOTAL", false},
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs };

/* One finding of a launcher's variables. n 0: not set. False: they are set and make no sense. */
static bool read_launcher(int k, int *i, int *n, char *words, size_t cap, struct err *err)
{
	*i = *n = 0;
	if (k == N_PAIRS) {
		/* A plain batch script has SLURM_PROCID too, and runs once: only a step's tasks are ranks. */
		const bool array = getenv("SLURM_ARRAY_TASK_ID") != NULL;
		const bool step = getenv("SLURM_STEP_ID") != NULL && getenv("SLURM_STEP_NUM_TASKS") != NULL;
		return !(array || step) || read_slurm(array, step, i, n, words, cap, err);
	}
	const struct pair *p = &pairs[k];
	if (k == N_PAIRS - 1 && getenv(p->rank) && !getenv(p->size))
		return err_set(err, "--shard auto: JOB_COMPLETION_INDEX tells which, not of how many; set "
				    "ASSAY_SHARD_TOTAL");
	if (!getenv(p->size) && !(p->alone && getenv(p->rank)))
		return true;
	if (!read_pair(p, i, n, words, cap, err))
		return false;
	if (p->alone && *n == 1)
		*i = *n = 0;
	return true;
}

static bool read_auto(int *i, int *n, char *words, size_t cap, struct err *err)
{
	*i = *n = 0;
	if (getenv("ASSAY_SHARD")) {
		if (!parse_pair(getenv("ASSAY_SHARD"), "ASSAY_SHARD", i, n, err))
			return false;
		snprintf(words, cap, "shard %d/%d from ASSAY_SHARD", *i, *n);
		return true;
	}
	/* Bazel wants to see that the test knows of shards. */
	const char *touch = getenv("TEST_SHARD_STATUS_FILE");
	FILE *f = touch ? fopen(touch, "w") : NULL;
	if (f)
		fclose(f);
	for (int k = 0; k <= N_PAIRS; k++) {
		int i2, n2;
		char words2[160];
		if (!read_launcher(k, &i2, &n2, words2, sizeof words2, err))
			return false;
		if (n2 == 0)
			continue;
		if (*n && (*i != i2 || *n != n2))
			return err_set(err,
				       "--shard auto: two launchers disagree: %s, but %s; give --shard i/n or "
				       "ASSAY_SHARD",
				       words, words2);
		*i = i2;
		*n = n2;
		snprintf(words, cap, "%s", words2);
	}
	if (*n == 0)
		snprintf(words, cap, "no shard: no launcher's variables are set; this is the whole plan");
	return true;
}

bool run_shard_parse(const char *text, int *i, int *n, char *words, size_t cap, struct err *err)
{
	*words = 0;
	if (strcmp(text, "auto") == 0)
		return read_auto(i, n, words, cap, err);
	return parse_pair(text, "--shard", i, n, err);
}
