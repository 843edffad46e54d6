/* libFuzzer target: headers of .npy files. Build with -Dfuzzers=true under clang. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct npy_header h;
	struct err e = {0};
	/* a copy of exactly the size, so that a read past its end is seen */
	uint8_t *p = malloc(size ? size : 1);
	if (!p)
		return 0;
	if (size)
		memcpy(p, data, size);
	if (npy_parse(p, size, &h, &e)) {
		if (h.rank < 0 || h.rank > ASSAY_MAX_RANK || h.data_offset > size || !h.type[0])
			abort();
		for (int i = 0; i < h.rank; i++)
			if (h.dim[i] < 0)
				abort();
	} else if (!e.text[0]) {
		abort(); /* a refusal without a reason */
	}
	free(p);
	return 0;
}
