/* Says another ABI number: to be refused with both numbers named. */
#include "assay/adapter.h"

const struct assay_kernel assay_kernel = {.abi = ASSAY_ABI + 1, .name = "demo.later"};
