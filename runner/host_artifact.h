/* host_artifact: facts of a host function that was launched: whose machine code, how many bytes, its sha-256. */
#ifndef ASSAY_HOST_ARTIFACT_H
#define ASSAY_HOST_ARTIFACT_H

#include <jansson.h>
#include <stdint.h>

#include "assay/adapter.h"

/* One launch: {symbol, function, module, hash, code_bytes, grid, block, …}; a fact that cannot be had is null with a "…_reason". The
 * hash covers the function's own code and the parts that the compiler split off it under names that begin with its own
 * (`f._omp_fn.0`, `f.part.0`, `f.cold`), and the clones it picks from by what the CPU has (`f_avx512`, `f_avx2`, `f_base`), not the functions it
 * calls. Several launches (or none): {hash over all, code_bytes,
 * launches: […]}. New reference; NULL only out of memory. */
json_t *host_artifact_json(const struct assay_launch *launches, int n);

/* Where the code of a function and of its parts lies in its module's file, by virtual address; of clones only the one that this CPU runs. The
 * first is the function itself. */
struct host_range {
	uint64_t from, to;
};
/* Fills at most cap ranges and the path of the module (cap_path bytes); returns their number, 0 with *why, a static sentence. */
int host_artifact_ranges(const void *function, struct host_range *out, int cap, char *path, size_t cap_path,
			 const char **why);

#endif
