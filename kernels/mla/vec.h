/* vec: 16 floats at a time, with the same bits on every machine.
 *
 * A vector is a GCC/clang vector of 16 floats whatever the machine has: one register with AVX-512, two with AVX2, four with
 * SSE or NEON. Every operation is exactly rounded and its order is written out, so no result depends on which clone ran.
 * The multiply-add is an explicit fma: it is exactly defined everywhere, and on machines whose adders are their fma units
 * a separate multiply and add would cost half the speed. Contraction by the compiler stays off (-ffp-contract=off).
 *
 * Everything that passes a vec is inlined, so the ABI that -Wpsabi warns about does not arise (kernels/meson.build turns it off).
 *
 * VEC_CLONES compiles a body three times and picks by what the CPU has. It is used in place of target_clones, which needs
 * ifunc, and whose resolvers run before a sanitizer is up. */
#ifndef ASSAY_KERNELS_VEC_H
#define ASSAY_KERNELS_VEC_H

#include <stdint.h>
#include <string.h>

/* Sanitized builds check addresses, not speed: one clone, nothing forced inline or unrolled, or compiling takes minutes. The
 * bits are the same. */
#if defined(__SANITIZE_ADDRESS__)
#define VEC_PLAIN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VEC_PLAIN 1
#endif
#endif

#ifdef VEC_PLAIN
#define VEC_UNROLL
#define VEC_INLINE static inline
#else
#define VEC_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define VEC_UNROLL _Pragma("clang loop unroll(full)")
#else
#define VEC_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

enum { VEC = 16 };
typedef float vec __attribute__((vector_size(64)));
typedef int32_t veci __attribute__((vector_size(64)));
typedef uint32_t vecu __attribute__((vector_size(64)));

VEC_INLINE vec vec_load(const float *p)
{
	vec v;
	memcpy(&v, p, sizeof v);
	return v;
}

/* The first n < VEC floats, then zeros: nothing beyond p + n is read. */
VEC_INLINE vec vec_load_part(const float *p, int64_t n)
{
	float t[VEC] = {0};
	for (int64_t i = 0; i < n; i++)
		t[i] = p[i];
	return vec_load(t);
}

VEC_INLINE void vec_store(float *p, vec v)
{
	memcpy(p, &v, sizeof v);
}

VEC_INLINE void vec_store_part(float *p, vec v, int64_t n)
{
	float t[VEC];
	vec_store(t, v);
	for (int64_t i = 0; i < n; i++)
		p[i] = t[i];
}

VEC_INLINE vec vec_all(float x)
{
	return (vec){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
	vec r;
	for (int l = 0; l < VEC; l++)
		r[l] = __builtin_fmaf(a[l], b[l], c[l]);
	return r;
}

typedef float vecq __attribute__((vector_size(16)));

/* Lanes l + (l + 8), then l + (l + 4): a quarter of a vector. */
VEC_INLINE vecq vec_fold(vec v)
{
	typedef float half __attribute__((vector_size(32)));
	half h[2];
	memcpy(h, &v, sizeof v);
	h[0] += h[1];
	vecq q[2];
	memcpy(q, h, sizeof q);
	return q[0] + q[1];
}

/* The sum of the lanes by a fixed tree: the fold, then (0 + 2) + (1 + 3). */
VEC_INLINE float vec_sum(vec v)
{
	const vecq q = vec_fold(v);
	return (q[0] + q[2]) + (q[1] + q[3]);
}

/* The same sums of four vectors at once, by a transpose of their folds. */
VEC_INLINE vecq vec_sum4(vec a, vec b, vec c, vec d)
{
	const vecq fa = vec_fold(a), fb = vec_fold(b), fc = vec_fold(c), fd = vec_fold(d);
	const vecq ab_low = __builtin_shufflevector(fa, fb, 0, 4, 1, 5),
		   ab_high = __builtin_shufflevector(fa, fb, 2, 6, 3, 7);
	const vecq cd_low = __builtin_shufflevector(fc, fd, 0, 4, 1, 5),
		   cd_high = __builtin_shufflevector(fc, fd, 2, 6, 3, 7);
	const vecq ab = ab_low + ab_high, cd = cd_low + cd_high; /* a02 b02 a13 b13 */
	return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

VEC_INLINE float vec_max(vec v)
{
	float m = v[0];
	for (int l = 1; l < VEC; l++)
		m = v[l] > m ? v[l] : m;
	return m;
}

/* exp(x) of x <= 0, 0 below -87: x = n ln 2 + r with |r| <= 0.35, Taylor to r^7 (remainder 5e-9), times 2^n. The relative
 * error is below 2^-22 (tests/test_kernels.c walks the range). */
VEC_INLINE vec vec_exp(vec x)
{
	const vec round = vec_all(12582912.0f); /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
	const veci keep = x >= vec_all(-87.0f);
	vec n = vec_fma(x, vec_all(1.44269504f), round);
	vecu bits;
	memcpy(&bits, &n, sizeof bits);
	n -= round;
	vec r = vec_fma(n, vec_all(-0.693359375f), x); /* exact: the constant has 9 bits */
	r = vec_fma(n, vec_all(2.12194440e-4f), r);
	vec e = vec_all(1.0f / 5040);
	e = vec_fma(e, r, vec_all(1.0f / 720));
	e = vec_fma(e, r, vec_all(1.0f / 120));
	e = vec_fma(e, r, vec_all(1.0f / 24));
	e = vec_fma(e, r, vec_all(1.0f / 6));
	e = vec_fma(e, r, vec_all(0.5f));
	e = vec_fma(e, r, vec_all(1.0f));
	e = vec_fma(e, r, vec_all(1.0f));
	vecu ebits;
	memcpy(&ebits, &e, sizeof ebits);
	/* The low 9 bits of `bits` are n: shifted to the exponent they add n to it, what is above falls out. */
	ebits = (ebits + (bits << 23)) & (vecu)keep;
	memcpy(&e, &ebits, sizeof e);
	return e;
}

#if defined(__x86_64__) && !defined(VEC_PLAIN)
#define VEC_CLONES(name, params, args)                                                                                 \
	__attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma"))) static void name##_avx512 params                 \
	{                                                                                                              \
		name##_body args;                                                                                      \
	}                                                                                                              \
	__attribute__((target("avx2,fma"))) static void name##_avx2 params                                             \
	{                                                                                                              \
		name##_body args;                                                                                      \
	}                                                                                                              \
	static void name##_base params                                                                                 \
	{                                                                                                              \
		name##_body args;                                                                                      \
	}                                                                                                              \
	static void name params                                                                                        \
	{                                                                                                              \
		if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))                          \
			name##_avx512 args;                                                                            \
		else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))                              \
			name##_avx2 args;                                                                              \
		else                                                                                                   \
			name##_base args;                                                                              \
	}
#else
#define VEC_CLONES(name, params, args)                                                                                 \
	static void name params                                                                                        \
	{                                                                                                              \
		name##_body args;                                                                                      \
	}
#endif

#endif
