/* bench_mmq: the device arms of one mmq kernel without the runner: against their references on a few rows, then timed in turns between device
 * events. For work on the kernels, for compute-sanitizer and for ncu; what a verdict stands on is `assay run suites/accprobe.yaml`.
 *
 *   cc -O3 -Irunner/include -c kernels/mmq/reference.c kernels/mmq/operands.c
 *   nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -DASSAY_WITH_CUDA -DBENCH_WGMMA -Irunner/include -Xcompiler -fopenmp \
 *        tools/bench_mmq.cu kernels/mmq/q8_0_wgmma.cu reference.o operands.o -lgomp -o bench_mmq        (or -DBENCH_MMA, q8_0.cu and q8_0_ring.cu)
 *   ./bench_mmq M IN_F OUT_F [REPS [MID [ROWS [ARM]]]]      MID 1: the bytes of `mid`; ROWS: rows held against the reference; REPS 0: not timed
 */
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
#include "../kernels/mmq/mmq.h"
}

#define CHECK(x)                                                                                                       \
	do {                                                                                                           \
		const cudaError_t e_ = (x);                                                                            \
		if (e_ != cudaSuccess) {                                                                               \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));                      \
			exit(3);                                                                                       \
		}                                                                                                      \
	} while (0)

static const struct {
	const char *name;
	const assay_arm_ops *ops;
} arms[] = {
#ifdef BENCH_WGMMA
	{"s32", &mmq_q8_0_wgmma_cuda_s32},
	{"f32", &mmq_q8_0_wgmma_cuda_f32},
#else
	{"s32", &mmq_q8_0_cuda_s32},
	{"f32", &mmq_q8_0_cuda_f32},
#endif
};
enum { N_ARMS = sizeof arms / sizeof *arms };

static uint64_t state_ = 88172645463325252u;

static uint64_t draw(void)
{
	state_ ^= state_ << 13;
	state_ ^= state_ >> 7;
	return state_ ^= state_ << 17;
}

static float scale(float low, float span)
{
	return low + span * (float)(draw() >> 40) / 16777216.0f;
}

static uint8_t quant(bool mid)
{
	const uint64_t r = draw();
	return (uint8_t)((mid ? 0x30 + (r >> 20) % 0x20 : (r >> 20) % 127) | (r >> 60 & 1) << 7);
}

/* Scales and quants of both inputs. */
static void fill(const mmq_shape &s, bool mid, std::vector<mmq_w> &w, std::vector<mmq_x> &x)
{
	w.resize((size_t)(s.out_f * s.blocks));
	x.resize((size_t)(s.records * s.m));
	for (mmq_w &v : w) {
		const float d = scale(0.01f, 0.018f);
		uint32_t bits;
		memcpy(&bits, &d, 4);
		v.d = (uint16_t)((bits >> 23) - 127 + 15) << 10 | (uint16_t)(bits >> 13 & 1023); /* cut, of a normal number */
		for (int8_t &q : v.qs)
			q = (int8_t)quant(mid);
	}
	for (mmq_x &v : x) {
		for (float &d : v.d)
			d = scale(0.0125f, 0.0148f);
		for (int8_t &q : v.qs)
			q = (int8_t)quant(mid);
	}
}

/* y, as the device left it, against the reference of the arm on a few rows. */
static void hold(const assay_call &call, const mmq_shape &s, std::vector<mmq_w> &w, std::vector<mmq_x> &x, int rows)
{
	std::vector<float> y((size_t)(s.m * s.out_f));
	CHECK(cudaMemcpy(y.data(), call.tensor[MMQ_Y], y.size() * 4, cudaMemcpyDeviceToHost));
	long not_finite = 0, beyond = 0;
	double worst = 0, error2 = 0, ref2 = 0;
	for (float v : y)
		not_finite += !std::isfinite(v);
	void *host[MMQ_TENSORS] = {w.data(), x.data()};
	std::vector<int64_t> row((size_t)rows);
	for (int r = 0; r < rows; r++)
		row[(size_t)r] = r == 0 ? s.m - 1 : (int64_t)(draw() % (uint64_t)s.m);
#pragma omp parallel for schedule(dynamic, 1)
	for (int r = 0; r < rows; r++) {
		std::vector<double> ref((size_t)s.out_f), bound((size_t)s.out_f);
		assay_call c = call;
		c.tensor = host;
		const assay_rows one = {&row[(size_t)r], 1};
		mmq_reference(&c, MMQ_Y, &one, ref.data(), bound.data());
#pragma omp critical
		for (int64_t i = 0; i < s.out_f; i++) {
			const double e = std::fabs((double)y[(size_t)(row[(size_t)r] * s.out_f + i)] - ref[(size_t)i]);
			beyond += !(e <= bound[(size_t)i]);
			worst = std::max(worst, e / bound[(size_t)i]);
			error2 += e * e;
			ref2 += ref[(size_t)i] * ref[(size_t)i];
		}
	}
	printf("%s  not finite %ld  beyond %ld of %ld  worst_over_allowed %.4f  rms error %.3g of rms\n", call.arm->name, not_finite,
	       beyond, (long)(rows * s.out_f), worst, ref2 > 0 ? std::sqrt(error2 / ref2) : 0.0);
}

static double median(std::vector<double> v)
{
	std::sort(v.begin(), v.end());
	return v[v.size() / 2];
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: %s M IN_F OUT_F [REPS [MID [ROWS [ARM]]]]\n", argv[0]);
		return 2;
	}
	assay_point point = {};
	for (int i = 0; i < MMQ_PARAMS; i++)
		point.v[i].i = atoll(argv[1 + i]);
	const int reps = argc > 4 ? atoi(argv[4]) : 9, rows = argc > 6 ? atoi(argv[6]) : 4;
	const char *only = argc > 7 ? argv[7] : NULL;
	const mmq_shape s = mmq_of(&point);
	std::vector<mmq_w> w;
	std::vector<mmq_x> x;
	fill(s, argc > 5 && atoi(argv[5]) != 0, w, x);

	void *tensor[MMQ_TENSORS];
	const size_t bytes[MMQ_TENSORS] = {w.size() * sizeof(mmq_w), x.size() * sizeof(mmq_x), (size_t)(s.m * s.out_f) * 4,
	                                   (size_t)(s.out_f * s.in_f), (size_t)(s.blocks * s.out_pad * 2) * 4};
	for (int t = 0; t < MMQ_TENSORS; t++) {
		CHECK(cudaMalloc(&tensor[t], bytes[t]));
		CHECK(cudaMemset(tensor[t], 0xFF, bytes[t]));
	}
	CHECK(cudaMemcpy(tensor[MMQ_W], w.data(), bytes[MMQ_W], cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(tensor[MMQ_X], x.data(), bytes[MMQ_X], cudaMemcpyHostToDevice));

	cudaStream_t stream;
	cudaEvent_t start, stop;
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaEventCreate(&start));
	CHECK(cudaEventCreate(&stop));
	char error[ASSAY_ERROR_MAX] = "";
	assay_arm arm[N_ARMS] = {};
	assay_call call[N_ARMS] = {};
	void *state[N_ARMS] = {};
	std::vector<double> ms[N_ARMS];
	for (int a = 0; a < N_ARMS; a++) {
		if (only != NULL && strcmp(only, arms[a].name) != 0)
			continue;
		arm[a].name = arms[a].name;
		call[a].point = &point;
		call[a].tensor = tensor;
		call[a].stream = stream;
		call[a].error = error;
		call[a].arm = &arm[a];
		call[a].backend = ASSAY_CUDA;
		CHECK(cudaMemset(tensor[MMQ_Y], 0xFF, bytes[MMQ_Y]));
		if (arms[a].ops->plan(&call[a], &state[a]) != 0 || arms[a].ops->derive(&call[a]) != 0 ||
		    arms[a].ops->run(&call[a], state[a]) != 0) {
			fprintf(stderr, "%s: %s\n", arms[a].name, error);
			return 3;
		}
		CHECK(cudaStreamSynchronize(stream));
		if (rows > 0)
			hold(call[a], s, w, x, rows);
	}
	for (int r = 0; r <= reps && reps > 0; r++)
		for (int a = N_ARMS - 1; a >= 0; a--) {
			if (call[a].point == NULL)
				continue;
			CHECK(cudaEventRecord(start, stream));
			if (arms[a].ops->run(&call[a], state[a]) != 0) {
				fprintf(stderr, "%s: %s\n", arms[a].name, error);
				return 3;
			}
			CHECK(cudaEventRecord(stop, stream));
			CHECK(cudaStreamSynchronize(stream));
			float t;
			CHECK(cudaEventElapsedTime(&t, start, stop));
			if (r > 0)
				ms[a].push_back((double)t);
		}
	for (int a = 0; a < N_ARMS; a++)
		if (!ms[a].empty()) {
			const double t = median(ms[a]);
			printf("m=%-5ld %5ld->%-5ld  %s  %8.4f ms  %8.1f T/s\n", (long)s.m, (long)s.in_f, (long)s.out_f, arms[a].name, t,
			       2e-9 * (double)s.m * (double)s.in_f * (double)s.out_f / t);
		}
	for (int a = 0; a < N_ARMS; a++)
		if (state[a] != NULL && arms[a].ops->finish != NULL)
			arms[a].ops->finish(state[a]);
	return 0;
}
