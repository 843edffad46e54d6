/* The faults of probe.faults that a checked launch does not show: arms that do otherwise where the output looks as if nobody looked, and one that
 * answers from what it kept. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "faults.h"

enum { A, B, OUT, KEY = 16, KEPT = 8, ROWS_MAX = 4096 };

static int64_t rows_of(const struct assay_call *call)
{
	return call->shape[OUT].dim[0];
}

/* As left by an earlier launch: neither poison of a checked one. */
static bool looks_used(float v)
{
	return isfinite(v) && fabsf(v) < 1e6f;
}

static float dot(const struct assay_call *call, int64_t row)
{
	const float *a = call->tensor[A], *b = call->tensor[B];
	const int64_t d = call->shape[B].dim[0];
	float sum = 0;

	for (int64_t k = 0; k < d; k++)
		sum += a[row * d + k] * b[k];
	return sum;
}

static int run_flips_timed(const struct assay_call *call, void *state)
{
	float *out = call->tensor[OUT];
	const int64_t n = rows_of(call);
	const bool used = n > 0 && looks_used(out[n - 1]);

	(void)state;
	probe_faults_right(call);
	if (used) {
		uint32_t bits;
		memcpy(&bits, &out[n / 2], sizeof bits);
		bits ^= 1;
		memcpy(&out[n / 2], &bits, sizeof bits);
	}
	return 0;
}

static int run_keeps_last(const struct assay_call *call, void *state)
{
	float *out = call->tensor[OUT];
	const int64_t n = rows_of(call);
	const float last = n > 0 ? out[n - 1] : 0;

	(void)state;
	probe_faults_right(call);
	if (n > 0 && looks_used(last))
		out[n - 1] = last;
	return 0;
}

static int run_leaves_out(const struct assay_call *call, void *state)
{
	const float *out = call->tensor[OUT];
	const int64_t n = rows_of(call);

	(void)state;
	if (n > 1 && fabsf(out[n - 1] - dot(call, n - 1)) < 1e-4f && fabsf(out[0] - dot(call, 0)) < 1e-4f)
		return 0;
	probe_faults_right(call);
	return 0;
}

/* One thread calls it. */
static int run_caches_part(const struct assay_call *call, void *state)
{
	static struct {
		int64_t rows;
		unsigned char key[KEY * sizeof(float)];
		float out[ROWS_MAX];
	} kept[KEPT];
	static int n_kept;
	const unsigned char *a = call->tensor[A];
	const int64_t n = rows_of(call);
	float *out = call->tensor[OUT];

	(void)state;
	if (n < 1 || n > ROWS_MAX || call->shape[B].dim[0] < KEY) {
		probe_faults_right(call);
		return 0;
	}
	for (int i = 0; i < n_kept; i++)
		if (kept[i].rows == n && !memcmp(kept[i].key, a, sizeof kept[i].key)) {
			memcpy(out, kept[i].out, (size_t)n * sizeof *out);
			return 0;
		}
	probe_faults_right(call);
	if (n_kept < KEPT) {
		kept[n_kept].rows = n;
		memcpy(kept[n_kept].key, a, sizeof kept[n_kept].key);
		memcpy(kept[n_kept++].out, out, (size_t)n * sizeof *out);
	}
	return 0;
}

const struct assay_arm_ops probe_faults_flips_timed = {.run = run_flips_timed};
const struct assay_arm_ops probe_faults_keeps_last = {.run = run_keeps_last};
const struct assay_arm_ops probe_faults_leaves_out = {.run = run_leaves_out};
const struct assay_arm_ops probe_faults_caches_part = {.run = run_caches_part};
