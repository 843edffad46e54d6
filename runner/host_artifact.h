/* host_artifact: facts of a host function that was launched: whose machine code, how many bytes, its sha-256. */
#ifndef ASSAY_HOST_ARTIFACT_H
#define ASSAY_HOST_ARTIFACT_H

#include <jansson.h>

#include "assay/adapter.h"

/* One launch: {symbol, function, module, hash, code_bytes, grid, block, …}; a fact that cannot be had is null with a "…_reason". The
 * hash covers the function's own code and the parts that the compiler split off it under names that begin with its own
 * (`f._omp_fn.0`, `f.part.0`, `f.cold`), not the functions it calls. Several launches (or none): {hash over all, code_bytes,
 * launches: […]}. New reference; NULL only out of memory. */
json_t *host_artifact_json(const struct assay_launch *launches, int n);

#endif
