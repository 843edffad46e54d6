/* fill_math: arithmetic of the generators: integers, and + - * / sqrt on doubles and floats, each rounded once to nearest even; inline
 * for C11 and for CUDA, the same bits on both. Host code is compiled with -ffp-contract=off; device code spells the rounded
 * intrinsics out. Nothing here calls the C library. fill_gen.h makes tensors of it. */
#ifndef ASSAY_FILL_MATH_H
#define ASSAY_FILL_MATH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "assay/adapter.h"

#ifdef __CUDACC__
#define ASSAY_HD static __host__ __device__ __forceinline__
#else
#define ASSAY_HD static inline
#endif

#ifdef __CUDA_ARCH__
#define FILL_ADD(a, b) __dadd_rn((a), (b))
#define FILL_MUL(a, b) __dmul_rn((a), (b))
#define FILL_DIV(a, b) __ddiv_rn((a), (b))
#define FILL_SQRT(a) __dsqrt_rn(a)
#define FILL_ADDF(a, b) __fadd_rn((a), (b))
#define FILL_MULF(a, b) __fmul_rn((a), (b))
#else
#define FILL_ADD(a, b) ((a) + (b))
#define FILL_MUL(a, b) ((a) * (b))
#define FILL_DIV(a, b) ((a) / (b))
#define FILL_SQRT(a) fill_sqrt(a)
#define FILL_ADDF(a, b) ((a) + (b))
#define FILL_MULF(a, b) ((a) * (b))
ASSAY_HD double fill_sqrt(double a)
{
	return __builtin_sqrt(a);
}
#endif

#define FILL_GOLDEN 0x9E3779B97F4A7C15ull

/* ---- integers ------------------------------------------------------------------------------------------------------- */

ASSAY_HD uint64_t fill_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

ASSAY_HD uint64_t fill_mulhi(uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH__
	return __umul64hi(a, b);
#else
	__extension__ typedef unsigned __int128 fill_u128;
	return (uint64_t)((fill_u128)a * b >> 64);
#endif
}

/* Unbiased integer in 0..bound-1 from a draw: multiply and shift, and a new draw for the few that would favour a value. 64 new
 * draws would have to fail, each with less than one in two, before the bias of one in 2^64 were left in. */
ASSAY_HD uint64_t fill_below(uint64_t draw, uint64_t bound)
{
	uint64_t low = draw * bound;
	if (low < bound) {
		uint64_t least = (0 - bound) % bound;
		for (int i = 0; low < least && i < 64; i++) {
			draw = fill_mix(draw + FILL_GOLDEN);
			low = draw * bound;
		}
	}
	return fill_mulhi(draw, bound);
}

/* A keyed permutation of 0..n-1, O(1) an element: an alternating Feistel network over the next power of two, walked until it falls
 * below n (less than two turns on average). */
struct fill_perm {
	uint64_t n;
	int left_bits, right_bits;
};

ASSAY_HD struct fill_perm fill_perm_make(uint64_t n)
{
	struct fill_perm p;
	int bits = 0;
	while (bits < 62 && (1ull << bits) < n)
		bits++;
	p.n = n;
	p.left_bits = bits / 2;
	p.right_bits = bits - bits / 2;
	return p;
}

ASSAY_HD uint64_t fill_permute(const struct fill_perm *p, uint64_t key, uint64_t x)
{
	const uint64_t left_mask = (1ull << p->left_bits) - 1, right_mask = (1ull << p->right_bits) - 1;
	if (p->n < 2)
		return 0;
	do {
		uint64_t l = x >> p->right_bits, r = x & right_mask;
		for (uint64_t round = 0; round < 4; round++) {
			l ^= fill_mix(key + (4 * round + 1) * FILL_GOLDEN + r) >> 17 & left_mask;
			r ^= fill_mix(key + (4 * round + 3) * FILL_GOLDEN + l) >> 17 & right_mask;
		}
		x = l << p->right_bits | r;
	} while (x >= p->n);
	return x;
}

/* State of a linear congruential generator after n steps of s = s*a + c, in O(log n). */
ASSAY_HD uint64_t fill_lcg_jump(uint64_t s, uint64_t a, uint64_t c, uint64_t n)
{
	uint64_t total_a = 1, total_c = 0;
	for (; n; n >>= 1) {
		if (n & 1) {
			total_a *= a;
			total_c = total_c * a + c;
		}
		c *= a + 1;
		a *= a;
	}
	return s * total_a + total_c;
}
#define FILL_LCG64_A 6364136223846793005ull
#define FILL_LCG64_C 1442695040888963407ull
#define FILL_LCG32_A 1664525u /* mod 2^32: the low half of the 64-bit state is the 32-bit generator */
#define FILL_LCG32_C 1013904223u

/* ---- bits of floating-point formats --------------------------------------------------------------------------------- */

ASSAY_HD uint64_t fill_bits_of(double d)
{
	uint64_t u;
	memcpy(&u, &d, sizeof u);
	return u;
}

ASSAY_HD double fill_double_of(uint64_t u)
{
	double d;
	memcpy(&d, &u, sizeof d);
	return d;
}

ASSAY_HD uint32_t fill_bits_of_float(float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return u;
}

ASSAY_HD float fill_float_of(uint32_t u)
{
	float f;
	memcpy(&f, &u, sizeof f);
	return f;
}

struct fill_format {
	int exponent_bits, mantissa_bits;
	bool has_inf; /* e4m3 has none: its all-ones code is NaN and 448 the greatest number */
};

ASSAY_HD struct fill_format fill_format_of(enum assay_dtype t)
{
	struct fill_format f = {11, 52, true};
	if (t == ASSAY_F32) {
		f.exponent_bits = 8;
		f.mantissa_bits = 23;
	} else if (t == ASSAY_F16) {
		f.exponent_bits = 5;
		f.mantissa_bits = 10;
	} else if (t == ASSAY_BF16) {
		f.exponent_bits = 8;
		f.mantissa_bits = 7;
	} else if (t == ASSAY_E5M2) {
		f.exponent_bits = 5;
		f.mantissa_bits = 2;
	} else if (t == ASSAY_E4M3) {
		f.exponent_bits = 4;
		f.mantissa_bits = 3;
		f.has_inf = false;
	}
	return f;
}

/* Bits of a finite double in a narrower format, rounded once to nearest even. Too large: infinity; in e4m3 the greatest number.
 * NaN stays NaN. */
ASSAY_HD uint32_t fill_encode(double d, struct fill_format f)
{
	const uint64_t u = fill_bits_of(d);
	const uint32_t sign = (uint32_t)(u >> 63) << (f.exponent_bits + f.mantissa_bits);
	const int bias = (1 << (f.exponent_bits - 1)) - 1;
	const uint32_t ones = (1u << f.exponent_bits) - 1;
	const uint32_t inf = ones << f.mantissa_bits;
	const uint32_t top = f.has_inf ? inf : (inf | ((1u << f.mantissa_bits) - 1)) - 1;
	const int e = (int)(u >> 52 & 0x7FF);
	uint64_t m = u & 0xFFFFFFFFFFFFFull;
	int shift, exponent;
	uint64_t kept, rest, half;
	uint32_t out;
	if (e == 0x7FF) {
		if (m)
			return sign | inf | ((1u << f.mantissa_bits) - 1);
		return sign | top;
	}
	if (e == 0) /* zero, or a double denormal: far below half of any narrower format's least number */
		return sign;
	m |= 1ull << 52;
	exponent = e - 1023 + bias;
	shift = 52 - f.mantissa_bits;
	if (exponent < 1) {
		shift += 1 - exponent;
		exponent = 1; /* a denormal: the hidden bit is not there, and the sum below takes the 1 back */
	}
	if (shift > 54)
		return sign;
	kept = m >> shift;
	rest = m & ((1ull << shift) - 1);
	half = 1ull << (shift - 1);
	kept += rest > half || (rest == half && (kept & 1));
	if (exponent > (int)ones)
		return sign | top;
	/* The mantissa's hidden bit adds itself to the exponent, and so does a carry out of the rounding. */
	out = (uint32_t)(exponent - 1) << f.mantissa_bits;
	out += (uint32_t)kept;
	return sign | (out > top ? top : out);
}

/* The value of bits of a format that is not wider than f32; inf and NaN too. */
ASSAY_HD double fill_decode(uint32_t u, struct fill_format f)
{
	const int bias = (1 << (f.exponent_bits - 1)) - 1;
	const uint32_t ones = (1u << f.exponent_bits) - 1;
	const uint64_t sign = (uint64_t)(u >> (f.exponent_bits + f.mantissa_bits) & 1) << 63;
	const uint32_t e = u >> f.mantissa_bits & ones;
	uint64_t m = u & ((1u << f.mantissa_bits) - 1);
	if (f.has_inf ? e == ones : (e == ones && m == (1u << f.mantissa_bits) - 1))
		return fill_double_of(sign | 0x7FFull << 52 | (f.has_inf ? m << (52 - f.mantissa_bits) : 1ull << 51));
	if (e)
		return fill_double_of(sign | (uint64_t)(e - (uint32_t)bias + 1023) << 52 | m << (52 - f.mantissa_bits));
	/* m * 2^(1 - bias - mantissa_bits): exact, as every such number is normal in double. */
	{
		const double d =
			FILL_MUL((double)m, fill_double_of((uint64_t)(1 - bias - f.mantissa_bits + 1023) << 52));
		return sign ? -d : d;
	}
}

/* ---- log, exp, inverse normal: own, so that host and device agree in the last bit ------------------------------------ */

/* log(1 + f) for 1/sqrt(2) <= 1 + f <= sqrt(2): 2 atanh(f / (2 + f)) by its series; |s| <= 0.1716, so 11 terms reach 2^-53. */
ASSAY_HD double fill_log1p_near(double f)
{
	const double s = FILL_DIV(f, FILL_ADD(2.0, f)), z = FILL_MUL(s, s);
	double sum = 0;
	for (int k = 23; k >= 1; k -= 2)
		sum = FILL_ADD(FILL_MUL(sum, z), FILL_DIV(2.0, (double)k));
	return FILL_MUL(sum, s);
}

/* Natural logarithm of a positive, normal double; within about 1 ulp. */
ASSAY_HD double fill_log(double x)
{
	uint64_t u = fill_bits_of(x);
	int e = (int)(u >> 52) - 1023;
	double m = fill_double_of((u & 0xFFFFFFFFFFFFFull) | 1023ull << 52);
	if (m > 1.4142135623730951) {
		m = FILL_MUL(m, 0.5);
		e++;
	}
	/* ln 2 in two parts, the first with zeros at its end, so that e * part is exact */
	return FILL_ADD(FILL_MUL((double)e, 0.693147180369123816490),
			FILL_ADD(FILL_MUL((double)e, 1.90821492927058770002e-10), fill_log1p_near(FILL_ADD(m, -1.0))));
}

/* exp(x) - 1 for |x| <= 0.35 by its series. */
ASSAY_HD double fill_expm1_near(double x)
{
	double sum = 0;
	for (int k = 15; k >= 1; k--)
		sum = FILL_DIV(FILL_MUL(x, FILL_ADD(1.0, sum)), (double)k);
	return sum;
}

ASSAY_HD double fill_exp(double x)
{
	int k;
	double r;
	if (x < -700.0)
		return 0.0;
	if (x > 700.0)
		x = 700.0;
	k = (int)FILL_ADD(FILL_MUL(x, 1.4426950408889634), x < 0 ? -0.5 : 0.5);
	r = FILL_ADD(FILL_ADD(x, FILL_MUL((double)-k, 0.693147180369123816490)),
		     FILL_MUL((double)-k, 1.90821492927058770002e-10));
	return FILL_MUL(FILL_ADD(1.0, fill_expm1_near(r)), fill_double_of((uint64_t)(k + 1023) << 52));
}

/* Uniform double in [0, 1): a multiple of 2^-53. */
ASSAY_HD double fill_unit(uint64_t draw)
{
	return FILL_MUL((double)(int64_t)(draw >> 11), 1.1102230246251565e-16);
}

/* Horner over n coefficients, the highest power first. */
ASSAY_HD double fill_poly(const double *c, int n, double x)
{
	double v = c[0];
	for (int i = 1; i < n; i++)
		v = FILL_ADD(FILL_MUL(v, x), c[i]);
	return v;
}

/* The standard normal quantile of (u + 0.5) / 2^53, u the draw's upper 53 bits; Wichura's rational approximations (AS 241),
 * about 1e-16 relative. |z| stays below 8.3. */
ASSAY_HD double fill_normal(uint64_t draw)
{
	const double a[8] = {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
			     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608};
	const double b[8] = {5226.495278852545925,  28729.085735721942674, 39307.89580009271061,  21213.794301586595867,
			     5394.1960214247511077, 687.1870074920579083,  42.313330701600911252, 1.0};
	const double c[8] = {7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
			     1.27045825245236838258,   3.64784832476320460504,   5.7694972214606914055,
			     4.6303378461565452959,    1.42343711074968357734};
	const double d[8] = {1.05075007164441684324e-9, 5.475938084995344946e-4,
			     0.0151986665636164571966,  0.14810397642748007459,
			     0.68976733498510000455,    1.6763848301838038494,
			     2.05319162663775882187,    1.0};
	const double e[8] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
			     0.026532189526576123093,   0.29656057182850489123,    1.7848265399172913358,
			     5.4637849111641143699,     6.6579046435011037772};
	const double f[8] = {2.04426310338993978564e-15, 1.4215117583164458887e-7,
			     1.8463183175100546818e-5,   7.868691311456132591e-4,
			     0.0148753612908506148525,   0.13692988092273580531,
			     0.59983220655588793769,     1.0};
	/* p and 1 - p both exactly as multiples of 2^-54 */
	const int64_t u = (int64_t)(draw >> 11);
	const double q = FILL_MUL((double)(2 * u + 1 - (1ll << 53)), 5.5511151231257827e-17);
	double r, z;
	if (q <= 0.425 && q >= -0.425) {
		r = FILL_ADD(0.180625, -FILL_MUL(q, q));
		return FILL_MUL(q, FILL_DIV(fill_poly(a, 8, r), fill_poly(b, 8, r)));
	}
	r = FILL_MUL((double)(q < 0 ? 2 * u + 1 : (1ll << 54) - 2 * u - 1), 5.5511151231257827e-17);
	r = FILL_SQRT(-fill_log(r));
	if (r <= 5.0) {
		r = FILL_ADD(r, -1.6);
		z = FILL_DIV(fill_poly(c, 8, r), fill_poly(d, 8, r));
	} else {
		r = FILL_ADD(r, -5.0);
		z = FILL_DIV(fill_poly(e, 8, r), fill_poly(f, 8, r));
	}
	return q < 0 ? -z : z;
}

/* ---- zipf: rejection-inversion (Hoermann, Derflinger 1996); P(k) ~ (k+1)^-s over 0..n-1 ------------------------------- */

struct fill_zipf {
	double s, n;
	double area_1, area_n; /* H(1.5) - 1, H(n + 0.5) */
	double sure; /* k this close above x needs no test */
};

/* (exp(x) - 1) / x */
ASSAY_HD double fill_zipf_expm1_over(double x)
{
	if (x < 0.35 && x > -0.35) { /* the series of (exp(x) - 1) / x, also at 0 */
		double sum = 0;
		for (int k = 16; k >= 2; k--)
			sum = FILL_DIV(FILL_MUL(x, FILL_ADD(1.0, sum)), (double)k);
		return FILL_ADD(1.0, sum);
	}
	return FILL_DIV(FILL_ADD(fill_exp(x), -1.0), x);
}

/* log(1 + x) / x for x > -1 */
ASSAY_HD double fill_zipf_log1p_over(double x)
{
	if (x < 0.4 && x > -0.29) {
		if (x == 0)
			return 1.0;
		return FILL_DIV(fill_log1p_near(x), x);
	}
	return FILL_DIV(fill_log(FILL_ADD(1.0, x)), x);
}

/* Integral of x^-s. */
ASSAY_HD double fill_zipf_area(double s, double x)
{
	const double l = fill_log(x);
	return FILL_MUL(fill_zipf_expm1_over(FILL_MUL(FILL_ADD(1.0, -s), l)), l);
}

ASSAY_HD double fill_zipf_area_inverse(double s, double area)
{
	double t = FILL_MUL(area, FILL_ADD(1.0, -s));
	if (t < -0.9999999999999999)
		t = -0.9999999999999999;
	return fill_exp(FILL_MUL(fill_zipf_log1p_over(t), area));
}

ASSAY_HD double fill_zipf_height(double s, double x)
{
	return fill_exp(FILL_MUL(-s, fill_log(x)));
}

ASSAY_HD struct fill_zipf fill_zipf_make(double s, int64_t n)
{
	struct fill_zipf z;
	z.s = s;
	z.n = (double)n;
	z.area_1 = FILL_ADD(fill_zipf_area(s, 1.5), -1.0);
	z.area_n = fill_zipf_area(s, FILL_ADD((double)n, 0.5));
	z.sure = FILL_ADD(2.0, -fill_zipf_area_inverse(s, FILL_ADD(fill_zipf_area(s, 2.5), -fill_zipf_height(s, 2.0))));
	return z;
}

/* Rank from 0. More than four of five tries succeed; after 64 failures (never seen, below 2^-128) the first rank stands. */
ASSAY_HD int64_t fill_zipf_rank(const struct fill_zipf *z, uint64_t draw)
{
	for (int i = 0; i < 64; i++) {
		const double u = FILL_ADD(z->area_n, FILL_MUL(fill_unit(draw), FILL_ADD(z->area_1, -z->area_n)));
		const double x = fill_zipf_area_inverse(z->s, u);
		double k = (double)(int64_t)FILL_ADD(x, 0.5);
		if (k < 1)
			k = 1;
		else if (k > z->n)
			k = z->n;
		if (FILL_ADD(k, -x) <= z->sure ||
		    u >= FILL_ADD(fill_zipf_area(z->s, FILL_ADD(k, 0.5)), -fill_zipf_height(z->s, k)))
			return (int64_t)k - 1;
		draw = fill_mix(draw + FILL_GOLDEN);
	}
	return 0;
}

#endif
