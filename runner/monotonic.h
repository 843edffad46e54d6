/* monotonic: how long the host took, by a clock that is never set back. What kernels take is measured by the backend's clock. */
#ifndef ASSAY_MONOTONIC_H
#define ASSAY_MONOTONIC_H

#include <stdint.h>
#include <time.h>

static inline int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
