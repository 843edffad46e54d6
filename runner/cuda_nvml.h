/* cuda_nvml: the state of a GPU by the management library, loaded at run time: a machine without it loses the figures, not the
 * run. */
#ifndef ASSAY_CUDA_NVML_H
#define ASSAY_CUDA_NVML_H

#include <jansson.h>
#include <stdbool.h>

#include "backend.h"

struct cuda_nvml;

/* For the device with this UUID ("GPU-…"), before this process has a context there. NULL: no library, or it does not know the device; *why is
 * then a static sentence. */
struct cuda_nvml *cuda_nvml_open(const char *uuid, const char **why);
/* Right after this process has got its context: where nobody is new on the device by our own number, who is new there is this process by
 * the number that the host has for it (a container). Without this its own cells would all look shared. n may be NULL. */
void cuda_nvml_present(struct cuda_nvml *n);
void cuda_nvml_close(struct cuda_nvml *n); /* NULL is fine */

/* Unknown numbers are -1. n may be NULL: all unknown. */
void cuda_nvml_state(struct cuda_nvml *n, struct device_state *out);
/* Adds driver version, power limit, ECC, MIG, persistence, clock limits and the number of processes that draw to o. n may be NULL. */
void cuda_nvml_describe(struct cuda_nvml *n, json_t *o);

#endif
