/* cuda_device: which GPU is meant, and what it is. */
#ifndef ASSAY_CUDA_DEVICE_H
#define ASSAY_CUDA_DEVICE_H

#include <stdbool.h>

#include "backend.h"
#include "err.h"

struct cuda_device {
	int index; /* among the visible ones */
	char name[128];
	char uuid[64]; /* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" */
	int cc; /* 90 */
	int multiprocessors;
	int64_t memory_bytes, llc_bytes;
	bool persisting_l2;
	char driver[32], runtime[32]; /* CUDA versions: "13.0" */
	int sm_mhz, mem_mhz; /* as the runtime tells them; 0: unknown */
};

/* wanted: an index, a UUID or the start of one ("GPU-5f3e"), a name or a part of one that only one device has; NULL: the first.
 * What CUDA_VISIBLE_DEVICES says (indices or UUIDs) the driver applies before: indices count what is visible.
 * False with *err, which tells no driver, an old driver, no device and no such device apart, and lists what there is. */
bool cuda_device_pick(const char *wanted, struct cuda_device *out, struct err *err);

#endif
