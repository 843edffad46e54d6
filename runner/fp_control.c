#include "fp_control.h"

#include <fenv.h>
#include <stdio.h>

#if defined(__x86_64__)

/* MXCSR without its six exception flags, and above it the control word of the x87, which `long double` goes by. */
enum { MXCSR_FLAGS = 0x3F, MXCSR_FLUSH = 0x8040, MXCSR_ROUND = 0x6000, MXCSR_BITS = 0xFFFF };
#define FLUSH ((uint64_t)MXCSR_FLUSH)
#define ROUND ((uint64_t)MXCSR_ROUND | (uint64_t)0x0C00 << 32)

uint64_t fp_control_get(void)
{
	uint32_t mxcsr = 0;
	uint16_t x87 = 0;

	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(x87));
	return (uint64_t)x87 << 32 | (mxcsr & MXCSR_BITS & ~(uint32_t)MXCSR_FLAGS);
}

void fp_control_set(uint64_t control)
{
	uint32_t mxcsr = (uint32_t)control & MXCSR_BITS;
	uint16_t x87 = (uint16_t)(control >> 32);

	__asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
	__asm__ volatile("fldcw %0" : : "m"(x87));
}

#elif defined(__aarch64__)

#define FLUSH ((uint64_t)1 << 24)
#define ROUND ((uint64_t)3 << 22)

uint64_t fp_control_get(void)
{
	uint64_t fpcr;

	__asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
	return fpcr;
}

void fp_control_set(uint64_t control)
{
	__asm__ volatile("msr fpcr, %0" : : "r"(control));
}

#else /* what C knows: the rounding */

#define FLUSH ((uint64_t)0)
#define ROUND (~(uint64_t)0)

uint64_t fp_control_get(void)
{
	return (uint64_t)fegetround();
}

void fp_control_set(uint64_t control)
{
	fesetround((int)control);
}

#endif

bool fp_control_team(uint64_t control, int threads)
{
	int others = 0;

#pragma omp parallel num_threads(threads) reduction(+ : others)
	if (fp_control_get() != control) {
		others++;
		fp_control_set(control);
	}
	return others > 0;
}

const char *fp_control_words(uint64_t was, uint64_t is, char text[96])
{
	const bool flush = (was ^ is) & FLUSH, rounding = (was ^ is) & ROUND;

	snprintf(text, 96, "%s%s%s",
		 !flush       ? ""
		 : is & FLUSH ? "denormals are flushed to zero"
			      : "denormals are not flushed any more",
		 flush && rounding ? ", and " : "",
		 rounding ? "it rounds another way"
		 : flush  ? ""
			  : "other exceptions");
	return text;
}
