/* diff_arm: the arms of a cell's record, in short: where their times lie, how sure that is, and what they are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff_parts.h"
#include "record_parts.h"
#include "stats.h"

/* Fewer rounds say nothing of a location's error. */
enum { LEAST_ROUNDS = 4 };
/* What a byte holds; `assay run` makes 64 at most. */
enum { MAX_PROCESSES = 255 };

/* Hodges-Lehmann location of x and its standard error. False: too few. */
static bool locate(const double *x, int n, double *y, double *se)
{
	if (n < LEAST_ROUNDS)
		return false;
	struct interval iv;
	stats_walsh(x, n, stats_fixed_cut(n), &iv);
	*y = iv.estimate;
	*se = stats_walsh_se(x, n);
	if (isnan(*se)) { /* below 8 rounds: by the spread */
		struct summary s;
		stats_summary(x, n, &s);
		*se = 1.2533 * 1.4826 * s.mad / sqrt(n);
	}
	return isfinite(*y) && isfinite(*se);
}

static int logs(const json_t *samples, double *x)
{
	int n = 0;
	for (size_t r = 0; r < json_array_size(samples) && n < STATS_MAX_ROUNDS; r++) {
		double t = json_number_value(json_array_get(samples, r));
		if (t > 0)
			x[n++] = log(t);
	}
	return n;
}

static int log_ratios(const json_t *a, const json_t *b, double *x)
{
	int n = 0;
	size_t rounds = json_array_size(a) < json_array_size(b) ? json_array_size(a) : json_array_size(b);
	for (size_t r = 0; r < rounds && n < STATS_MAX_ROUNDS; r++) {
		double s = json_number_value(json_array_get(a, r)), t = json_number_value(json_array_get(b, r));
		if (s > 0 && t > 0)
			x[n++] = log(s) - log(t);
	}
	return n;
}

/* One process's samples of the arm, added to the sums. */
static void add_process(const json_t *arms, const char *name, const char *shipped, struct diff_reading *out,
			int *ratios)
{
	double x[STATS_MAX_ROUNDS], y, se;
	const json_t *s = record_samples(arms, name);
	if (!s || !locate(x, logs(s, x), &y, &se))
		return;
	out->y += y;
	out->v += se * se;
	out->processes++;
	if (!shipped || strcmp(name, shipped) == 0 ||
	    !locate(x, log_ratios(s, record_samples(arms, shipped), x), &y, &se))
		return;
	out->r += y;
	out->rv += se * se;
	++*ratios;
}

/* A file without samples has the summary: its median, and an error from its quartiles. */
static void from_summary(const json_t *arm, struct diff_reading *out)
{
	const json_t *s = json_object_get(arm, "summary");
	double n = record_number(s, "n", 0), median = record_number(s, "median_ns", NAN);
	double q1 = record_number(s, "q1_ns", NAN), q3 = record_number(s, "q3_ns", NAN);
	if (n < LEAST_ROUNDS || !(median > 0) || !(q1 > 0) || !(q3 >= q1))
		return;
	double se = 1.2533 * (log(q3) - log(q1)) / 1.349 / sqrt(n);
	out->y = log(median);
	out->v = se * se;
	out->processes = 1;
	double r = record_number(s, "estimate", NAN), rse = record_number(s, "se", NAN);
	if (isfinite(r) && isfinite(rse)) {
		out->r = r;
		out->rv = rse * rse;
	} else {
		out->r = out->rv = NAN;
	}
}

static void read_times(const json_t *record, const json_t *arm, const char *shipped, int most, struct diff_reading *out)
{
	int ratios = 0;
	size_t i;
	json_t *repeat;
	out->y = out->v = out->r = out->rv = 0;
	add_process(json_object_get(record, "arms"), out->name, shipped, out, &ratios);
	json_array_foreach(json_object_get(record, "repeats"), i, repeat)
	{
		if (out->processes == most)
			break;
		add_process(json_object_get(repeat, "arms"), out->name, shipped, out, &ratios);
	}
	if (out->processes == 0) {
		out->y = out->v = out->r = out->rv = NAN;
		from_summary(arm, out);
		return;
	}
	/* The mean over processes; v the squared error of one of them. */
	out->y /= out->processes;
	out->v /= out->processes;
	out->r = ratios ? out->r / ratios : NAN;
	out->rv = ratios ? out->rv / ratios : NAN;
}

static uint64_t hex64(const char *hex)
{
	char buf[17] = "";
	if (!hex || strlen(hex) < 16)
		return 0;
	memcpy(buf, hex, 16);
	return strtoull(buf, NULL, 16);
}

static enum cell_arm_role role_of(const char *role)
{
	static const char *const names[] = {"shipped", "candidate", "headroom", "null"};
	for (int i = 0; role && i < 4; i++)
		if (strcmp(role, names[i]) == 0)
			return (enum cell_arm_role)i;
	return ROLE_CANDIDATE;
}

static bool arm_is_bad(const json_t *record, const char *name)
{
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(record, "checks"), i, f)
	{
		const char *arm = record_text(f, "arm"), *status = record_text(f, "status");
		if (arm && status && strcmp(arm, name) == 0 && strcmp(status, "pass") != 0 &&
		    strcmp(status, "skip") != 0)
			return true;
	}
	return false;
}

int diff_read_arms(const json_t *record, int most, struct diff_reading out[DIFF_MAX_ARMS])
{
	if (most <= 0 || most > MAX_PROCESSES)
		most = MAX_PROCESSES;
	const json_t *arms = json_object_get(record, "arms");
	const char *shipped = NULL;
	size_t i;
	json_t *a;
	json_array_foreach(arms, i, a)
	{
		if (!shipped && role_of(record_text(a, "role")) == ROLE_SHIPPED)
			shipped = record_text(a, "name");
	}
	int n = 0;
	json_array_foreach(arms, i, a)
	{
		const char *name = record_text(a, "name");
		if (!name || n == DIFF_MAX_ARMS)
			continue;
		const json_t *artifact = json_object_get(a, "artifact");
		double regs = record_number(artifact, "registers", 0),
		       spills = record_number(artifact, "spills_bytes", 0);
		struct diff_reading *r = &out[n++];
		*r = (struct diff_reading){
			.name = name,
			.role = role_of(record_text(a, "role")),
			.out = hex64(record_text(a, "out_sha256")),
			.code = (uint32_t)(hex64(record_text(artifact, "hash")) >> 32),
			.regs = regs > 0 && regs < 255 ? (unsigned)regs
				: regs >= 255          ? 255
						       : 0,
			.spills = spills > 0 && spills < 65535 ? (unsigned)spills
				  : spills >= 65535            ? 65535
							       : 0,
			.bad = arm_is_bad(record, name),
		};
		read_times(record, a, shipped, most, r);
	}
	return n;
}
