/* adapter.h stands alone, and is included twice without harm. */
#include "assay/adapter.h"

int main(void)
{
	struct assay_shape s = {.rank = 2, .dim = {3, 5}};
	struct assay_shape none = {.rank = 2, .dim = {3, 0}};
	return assay_shape_count(&s) == 15 && assay_shape_count(&none) == 0 && assay_dtype_bytes(ASSAY_BF16) == 2 &&
			       assay_dtype_bytes(ASSAY_RECORD) == 0 && assay_dtype_bytes(ASSAY_E4M3) == 1
		       ? 0
		       : 1;
}
