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

#endif
