#include "host_sentinel.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

enum { LINE_BYTES = 64, CHASE_BYTES = 64 << 20, CHASE_STEPS = 50000, ARITHMETIC_STEPS = 1 << 18 };

static uint64_t read_line(const uint64_t *q)
{
	return (q[0] ^ q[1]) + (q[2] ^ q[3]) + (q[4] ^ q[5]) + (q[6] ^ q[7]);
}

/* Four streams at once: one alone leaves a tenth of what a core can read from memory, and this is to be the most that it can. */
static uint64_t read_part(const uint64_t *w, int64_t lines)
{
	const int64_t n = lines / 4, words = LINE_BYTES / 8;
	uint64_t a = 0, b = 0, c = 0, d = 0;
	for (int64_t i = 0; i < n; i++) {
		a += read_line(w + i * words);
		b += read_line(w + (i + n) * words);
		c += read_line(w + (i + 2 * n) * words);
		d += read_line(w + (i + 3 * n) * words);
	}
	for (int64_t i = 4 * n; i < lines; i++)
		a += read_line(w + i * words);
	return a + b + c + d;
}

uint64_t host_read_lines(const unsigned char *p, size_t bytes, int threads)
{
	const uint64_t *w = (const uint64_t *)(const void *)p;
	const int64_t lines = (int64_t)(bytes / LINE_BYTES);
	uint64_t sum = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
	for (int k = 0; k < threads; k++) {
		const int64_t a = lines * k / threads, b = lines * (k + 1) / threads;
		sum += read_part(w + a * (LINE_BYTES / 8), b - a);
	}
	return sum;
}

/* ---- multiply-add on registers: eight independent chains of the widest vectors -------------------------------------- */

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static float flops_avx512(int64_t steps, float seed)
{
	__m512 a[8], m = _mm512_set1_ps(0.999f), c = _mm512_set1_ps(1e-3f);
	for (int k = 0; k < 8; k++)
		a[k] = _mm512_set1_ps(seed + (float)k);
	for (int64_t i = 0; i < steps; i++) {
#pragma GCC unroll 8
		for (int k = 0; k < 8; k++)
			a[k] = _mm512_fmadd_ps(a[k], m, c);
	}
	__m512 s = a[0];
	for (int k = 1; k < 8; k++)
		s = _mm512_add_ps(s, a[k]);
	float out[16];
	_mm512_storeu_ps(out, s);
	return out[0] + out[15];
}

__attribute__((target("avx2,fma"))) static float flops_avx2(int64_t steps, float seed)
{
	__m256 a[8], m = _mm256_set1_ps(0.999f), c = _mm256_set1_ps(1e-3f);
	for (int k = 0; k < 8; k++)
		a[k] = _mm256_set1_ps(seed + (float)k);
	for (int64_t i = 0; i < steps; i++) {
#pragma GCC unroll 8
		for (int k = 0; k < 8; k++)
			a[k] = _mm256_fmadd_ps(a[k], m, c);
	}
	__m256 s = a[0];
	for (int k = 1; k < 8; k++)
		s = _mm256_add_ps(s, a[k]);
	float out[8];
	_mm256_storeu_ps(out, s);
	return out[0] + out[7];
}
#endif

/* Where no wider form is known: what the compiler makes of sixty-four independent chains. */
static float flops_plain(int64_t steps, float seed)
{
	float a[64], s = 0;
	for (int k = 0; k < 64; k++)
		a[k] = seed + (float)k;
	for (int64_t i = 0; i < steps; i++)
		for (int k = 0; k < 64; k++)
			a[k] = a[k] * 0.999f + 1e-3f;
	for (int k = 0; k < 64; k++)
		s += a[k];
	return s;
}

struct arithmetic {
	const char *form;
	float (*run)(int64_t steps, float seed);
	int flop_per_step;
};

static struct arithmetic pick_arithmetic(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f"))
		return (struct arithmetic){"avx512f", flops_avx512, 8 * 16 * 2};
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return (struct arithmetic){"avx2+fma", flops_avx2, 8 * 8 * 2};
#endif
	return (struct arithmetic){"scalar", flops_plain, 64 * 2};
}

/* Operations a cycle against 64 of two 512-bit multiply-adds: 2048 of a tile of int8, 256 of two dot products of int8, 128 of what
 * every CPU has for bytes. */
double host_sentinel_reach(void)
{
	if (pick_arithmetic().run == flops_plain)
		return 0; /* whatever the compiler made of it */
#if defined(__x86_64__)
	enum { VNNI_512 = 1 << 11, TILE_BF16 = 1 << 22, TILE_INT8 = 1 << 25, VNNI_256 = 1 << 4, VNNI_INT8 = 1 << 4 };
	unsigned a = 0, b = 0, c = 0, d = 0, most = 0;
	if (!__get_cpuid_count(7, 0, &most, &b, &c, &d))
		return 2;
	if (d & (TILE_BF16 | TILE_INT8))
		return 32;
	const bool vnni_512 = c & VNNI_512;
	if (most >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & VNNI_256 || d & VNNI_INT8))
		return 4;
	return vnni_512 ? 4 : 2;
#else
	return 0;
#endif
}

/* ---- latency -------------------------------------------------------------------------------------------------------- */

/* Sattolo's shuffle: one cycle through all lines, so that no chase falls into a short loop. */
static void make_cycle(uint32_t *next, uint32_t n)
{
	uint64_t s = 0x243F6A8885A308D3u;
	for (uint32_t i = 0; i < n; i++)
		next[(size_t)i * (LINE_BYTES / 4)] = i;
	for (uint32_t i = n - 1; i > 0; i--) {
		s = s * 6364136223846793005u + 1442695040888963407u;
		uint32_t j = (uint32_t)((s >> 32) * i >> 32);
		uint32_t *a = &next[(size_t)i * (LINE_BYTES / 4)], *b = &next[(size_t)j * (LINE_BYTES / 4)];
		uint32_t t = *a;
		*a = *b;
		*b = t;
	}
}

static uint32_t chase(const uint32_t *next, uint32_t at, int steps)
{
	for (int i = 0; i < steps; i++)
		at = next[(size_t)at * (LINE_BYTES / 4)];
	return at;
}

/* ---- all of them ---------------------------------------------------------------------------------------------------- */

static int64_t least(const int64_t *v)
{
	int64_t m = v[0];
	for (int i = 1; i < SENTINEL_SAMPLES; i++)
		m = v[i] < m ? v[i] : m;
	return m > 0 ? m : 1;
}

bool host_sentinel_run(unsigned char *area, size_t bytes, int threads, int64_t (*now)(void),
		       struct sentinel_result *out, struct err *err)
{
	uint32_t *next = aligned_alloc(LINE_BYTES, CHASE_BYTES);
	if (!next)
		return err_set(err, "host: out of memory for the latency sentinel (%d MiB)", CHASE_BYTES >> 20);
	volatile uint64_t keep = 0; /* what the work computed goes here, so that it has to be done */
	size_t half = bytes / 2 / LINE_BYTES * LINE_BYTES;
	struct arithmetic ar = pick_arithmetic();
	make_cycle(next, CHASE_BYTES / LINE_BYTES);
	uint32_t at = 0;

	for (int r = -1; r < SENTINEL_SAMPLES; r++) { /* round -1 warms up and is not kept */
		int64_t t[5];
		t[0] = now();
#pragma omp parallel for num_threads(threads) schedule(static)
		for (int k = 0; k < threads; k++) {
			size_t a = half / (size_t)threads * (size_t)k;
			size_t b = k == threads - 1 ? half : half / (size_t)threads * (size_t)(k + 1);
			memcpy(area + half + a, area + a, b - a);
		}
		t[1] = now();
		keep += host_read_lines(area, 2 * half, threads);
		t[2] = now();
		float sum = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
		for (int k = 0; k < threads; k++)
			sum += ar.run(ARITHMETIC_STEPS, (float)(k + r));
		t[3] = now();
		keep += sum > 0;
		at = chase(next, at, CHASE_STEPS);
		t[4] = now();
		keep += at;
		if (r < 0)
			continue;
		out->copy_ns[r] = t[1] - t[0];
		out->read_ns[r] = t[2] - t[1];
		out->arithmetic_ns[r] = t[3] - t[2];
		out->latency_ns[r] = t[4] - t[3];
	}
	(void)keep;
	free(next);
	double copy = 2.0 * (double)half * 1e9 / (double)least(out->copy_ns);
	double read = 2.0 * (double)half * 1e9 / (double)least(out->read_ns);
	out->bytes_per_s = copy > read ? copy : read;
	out->flop_per_s =
		(double)ARITHMETIC_STEPS * ar.flop_per_step * threads * 1e9 / (double)least(out->arithmetic_ns);
	out->arithmetic_form = ar.form;
	return true;
}

static void put(json_t *o, const char *name, const int64_t *v)
{
	json_t *a = json_array();
	for (int i = 0; i < SENTINEL_SAMPLES; i++)
		json_array_append_new(a, json_integer(v[i]));
	json_object_set_new(o, name, a);
}

json_t *host_sentinel_json(const struct sentinel_result *r)
{
	json_t *o = json_object();
	if (!o)
		return NULL;
	put(o, "copy", r->copy_ns);
	put(o, "read", r->read_ns);
	put(o, "arithmetic", r->arithmetic_ns);
	put(o, "latency", r->latency_ns);
	return o;
}
