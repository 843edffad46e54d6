/* The device arms of probe.faults: the dot product a row, and the ways in which a kernel on a device can be wrong. What each does is in
 * faults.c's descriptor. `late` is a device's own fault: its kernel runs on a stream of its own, so that the queue that is timed and
 * waited for is empty. `hang` ends by itself after ten minutes, should nobody kill it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../mla/launch.cuh"
#include "probe.h"

namespace {

enum { ROWS, D };
enum { A, B, OUT };
enum fault {
	RIGHT, NOTHING, ULP, FLIP_BIT, UNWRITTEN_TAIL, ZERO_ROWS, IS_NAN, IS_INF, OVERRUN, UNDERRUN, OVER_READ, OVER_READ_MAX,
	CHANGES_INPUT, CACHES, DRIFTS, RACY, BATCH, POSITION, NEIGHBOURS, SLOW, LATE, HANG, CRASH, ASSERTS
};
constexpr int THREADS = 128, KEPT = 4096;
constexpr unsigned long long LATE_NS = 20000000ull, HANG_NS = 600000000000ull;

__device__ unsigned long long now_ns()
{
	unsigned long long t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

__device__ void wait_ns(unsigned long long ns)
{
	for (const unsigned long long from = now_ns(); now_ns() - from < ns;)
		;
}

__device__ float dot(const float *a, const float *b, long long n)
{
	float sum = 0;
	for (long long k = 0; k < n; k++)
		sum = fmaf(a[k], b[k], sum);
	return sum;
}

/* The same sum from two halves: right, but rounded otherwise. */
__device__ float dot_halves(const float *a, const float *b, long long n)
{
	return dot(a, b, n / 2) + dot(a + n / 2, b + n / 2, n - n / 2);
}

__device__ float flip(float x, int mask)
{
	return __int_as_float(__float_as_int(x) ^ mask);
}

/* The sum of a row, in the order that the fault gives it. */
__device__ float row_of(int fault, const float *a, const float *b, long long r, long long rows, long long d)
{
	const float *mine = a + r * d;
	const bool halves = (fault == BATCH && rows > 1) || (fault == POSITION && r % 2 != 0) ||
			    (fault == NEIGHBOURS && a[(r + 1) % rows * d] > mine[0]);
	return halves ? dot_halves(mine, b, d) : dot(mine, b, d);
}

/* What `caches` remembers. */
__device__ float kept[KEPT];

/* A row a thread; most faults are of one thread. draw: a number of this launch: of `racy` a random one, of `drifts` its count, of `caches`
 * whether it has seen the address of a. */
__global__ void __launch_bounds__(THREADS) faulty_rows(int fault, float *a, const float *b, float *out, long long rows, long long d,
						       unsigned long long draw)
{
	const long long r = blockIdx.x * (long long)THREADS + threadIdx.x;
	if (fault == NOTHING)
		return;
	if (r == 0 && fault == LATE)
		wait_ns(LATE_NS);
	if (r == 0 && fault == HANG)
		wait_ns(HANG_NS);
	if (r == 0 && fault == CRASH)
		*(volatile int *)16 = 1;
	if (fault == ASSERTS)
		assert(r < rows / 2 && "probe.faults: this arm asserts, as it says");
	if (r >= rows || (fault == UNWRITTEN_TAIL && r == rows - 1))
		return;
	float v = row_of(fault, a, b, r, rows, d);
	if (fault == SLOW)
		for (int pass = 0; pass < 2; pass++)
			v = fminf(v, fmaxf(v, dot(a + (r + pass + 1) % rows * d, b, d)));
	if (fault == ULP && r == rows / 2)
		v = nextafterf(v, INFINITY);
	if (fault == FLIP_BIT && r == rows / 3)
		v = flip(v, 1 << 20);
	if (fault == ZERO_ROWS && r % 6 == 0)
		v = 0;
	if (fault == IS_NAN && r == rows - 1)
		v = NAN;
	if (fault == IS_INF && r == 0)
		v = INFINITY;
	if (fault == OVER_READ && r == rows - 1)
		for (long long k = 0; k < d; k++)
			v += 0.0f * a[rows * d + k];
	if (fault == OVER_READ_MAX && r == rows - 1)
		v = fmaxf(v, a[rows * d]); /* passes a NaN over */
	if (fault == CACHES && r < KEPT) {
		if (draw != 0)
			v = kept[r];
		else
			kept[r] = v;
	}
	if (fault == DRIFTS && draw >= 10 && r == 0)
		v = flip(v, 1);
	if (fault == RACY && draw % 50 == 0 && r == (long long)(draw / 50 % (unsigned long long)rows))
		v = flip(v, 1);
	out[r] = v;
	if (r != 0)
		return;
	if (fault == OVERRUN)
		out[rows] = 1;
	if (fault == UNDERRUN)
		out[-1] = 1;
	if (fault == CHANGES_INPUT)
		a[rows * d / 2] = flip(a[rows * d / 2], 1);
}

int run_rows(const assay_call *call, int fault, cudaStream_t stream, long long first, long long rows, unsigned long long draw)
{
	long long d = call->point->v[D].i;
	float *a = (float *)call->tensor[A] + first * d, *b = (float *)call->tensor[B], *out = (float *)call->tensor[OUT] + first;
	void *args[] = {&fault, &a, &b, &out, &rows, &d, &draw};
	const dim3 grid((unsigned)((rows + THREADS - 1) / THREADS)), block(THREADS);
	launch_note(call, "faulty_rows", (const void *)faulty_rows, grid, block, 0);
	return launch_check(call, cudaLaunchKernel((const void *)faulty_rows, grid, block, args, 0, stream), "faulty_rows");
}

int run_whole(const assay_call *call, int fault, unsigned long long draw)
{
	return run_rows(call, fault, (cudaStream_t)call->stream, 0, call->point->v[ROWS].i, draw);
}

template <int FAULT> int run_fault(const assay_call *call, void *state)
{
	return run_whole(call, FAULT, 0);
}

int run_split(const assay_call *call, void *state)
{
	const long long rows = call->point->v[ROWS].i;
	for (long long p = 0; p < call->arm_arg; p++) {
		const long long r0 = rows * p / call->arm_arg, r1 = rows * (p + 1) / call->arm_arg;
		if (r0 < r1 && run_rows(call, RIGHT, (cudaStream_t)call->stream, r0, r1 - r0, 0) != 0)
			return -1;
	}
	return 0;
}

/* splitmix64 of the launch's number: launches that differ are spread without a period. */
int run_racy(const assay_call *call, void *state)
{
	static unsigned long long launches;
	unsigned long long x = ++launches * 0x9E3779B97F4A7C15ull;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
	return run_whole(call, RACY, x ^ (x >> 31));
}

int run_caches(const assay_call *call, void *state)
{
	static const void *key;
	const bool seen = key == call->tensor[A];
	key = call->tensor[A];
	return run_whole(call, CACHES, seen);
}

int run_drifts(const assay_call *call, void *state)
{
	static unsigned long long launches;
	return run_whole(call, DRIFTS, launches++);
}

int plan_late(const assay_call *call, void **state)
{
	cudaStream_t own = NULL;
	const int rc = launch_check(call, cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), "probe.faults late");
	*state = own;
	return rc;
}

int run_late(const assay_call *call, void *state)
{
	return run_rows(call, LATE, (cudaStream_t)state, 0, call->point->v[ROWS].i, 0);
}

void finish_late(void *state)
{
	if (state == NULL)
		return;
	cudaStreamSynchronize((cudaStream_t)state);
	cudaStreamDestroy((cudaStream_t)state);
}

int run_fails(const assay_call *call, void *state)
{
	snprintf(call->error, ASSAY_ERROR_MAX, "probe.faults: this arm fails, as it says");
	return -1;
}

int run_fails_sometimes(const assay_call *call, void *state)
{
	static unsigned launches;
	if (launches++ % 7 != 6)
		return run_whole(call, RIGHT, 0);
	snprintf(call->error, ASSAY_ERROR_MAX, "probe.faults: every seventh launch of this arm fails");
	return -1;
}

int run_exits(const assay_call *call, void *state)
{
	run_whole(call, RIGHT, 0);
	_exit(0);
}

int run_stdout_noise(const assay_call *call, void *state)
{
	fputs("{\"kind\":\"cell\",\"status\":\"pass\"}\n", stdout);
	fflush(stdout);
	return run_whole(call, RIGHT, 0);
}

} // namespace

extern "C" {
#define FAULT(name, run) extern const assay_arm_ops probe_faults_cuda_##name = {NULL, run, NULL, NULL, NULL};
FAULT(shipped, run_fault<RIGHT>)
FAULT(split, run_split)
FAULT(nothing, run_fault<NOTHING>)
FAULT(ulp, run_fault<ULP>)
FAULT(unwritten_tail, run_fault<UNWRITTEN_TAIL>)
FAULT(nan, run_fault<IS_NAN>)
FAULT(overrun, run_fault<OVERRUN>)
FAULT(underrun, run_fault<UNDERRUN>)
FAULT(over_read, run_fault<OVER_READ>)
FAULT(changes_input, run_fault<CHANGES_INPUT>)
FAULT(racy, run_racy)
FAULT(slow, run_fault<SLOW>)
FAULT(hang, run_fault<HANG>)
FAULT(crash, run_fault<CRASH>)
FAULT(asserts, run_fault<ASSERTS>)
FAULT(fails, run_fails)
FAULT(flip_bit, run_fault<FLIP_BIT>)
FAULT(zero_rows, run_fault<ZERO_ROWS>)
FAULT(inf, run_fault<IS_INF>)
FAULT(over_read_max, run_fault<OVER_READ_MAX>)
FAULT(caches, run_caches)
FAULT(drifts, run_drifts)
FAULT(batch, run_fault<BATCH>)
FAULT(position, run_fault<POSITION>)
FAULT(neighbours, run_fault<NEIGHBOURS>)
FAULT(exits, run_exits)
FAULT(fails_sometimes, run_fails_sometimes)
FAULT(stdout_noise, run_stdout_noise)
#undef FAULT
extern const assay_arm_ops probe_faults_cuda_late = {plan_late, run_late, finish_late, NULL, NULL};
}
