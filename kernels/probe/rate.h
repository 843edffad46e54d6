/* rate: what rate.c, rate.cu and the harness that reads the interval share. */
#ifndef ASSAY_KERNELS_RATE_H
#define ASSAY_KERNELS_RATE_H

#include <stdint.h>

#include "probe.h"

/* What an arm of probe.rate leaves in its workspace. */
struct rate_result {
	double elapsed; /* cycles on a device, nanoseconds on the host */
	double issued; /* matrix instructions in that time: of one sub-partition, or of one thread */
};

enum { RATE_ITERS, RATE_PARAMS };
enum { RATE_OUT, RATE_TENSORS };
enum { RATE_LANES = 32, RATE_BATCH = 8 }; /* iters is a multiple of the batch */
/* After so many passes a chain starts from zero again. The e4m3 instructions of some chips drop what of a product lies more than some 13 bits under
 * the accumulator: all that is added here stays within. */
enum { RATE_WRAP = 128 };

/* What every accumulator holds in the end. */
static inline double rate_expected(int64_t iters)
{
	return 32.0 * (double)((iters - 1) % RATE_WRAP + 1);
}

#endif
