/* cuda_artifact: facts of device functions that were launched: whose machine code, its sha-256, registers, memory, occupancy. */
#ifndef ASSAY_CUDA_ARTIFACT_H
#define ASSAY_CUDA_ARTIFACT_H

#include <jansson.h>

#include "assay/adapter.h"

/* One launch: {symbol, hash, code_bytes, sm, registers, local_bytes, spills_bytes, shared_bytes, dynamic_shared_bytes, grid, block,
 * occupancy}; a fact that cannot be had is null with a "…_reason". Several: {hash over all, registers (the most), spills_bytes (all),
 * shared_bytes (the most), launches: […]}. cc: of the device. known: an object that keeps what was read of a function's code, for as long as
 * functions stay where they are. New reference; NULL only out of memory. */
json_t *cuda_artifact_json(const struct assay_launch *launches, int n, int cc, json_t *known);

/* The census of the same (census.h): the names are asked of the runtime, the code is read by cuobjdump. A JSON null with reason[256]. */
json_t *cuda_artifact_census(const struct assay_launch *launches, int n, int cc, char *reason);

#endif
