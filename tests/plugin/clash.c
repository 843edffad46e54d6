/* A kernel under the symbol of a built-in one: the dynamic linker binds the list to the program's own descriptor, so that this
 * plugin's code would never run. To be refused. */
#include "assay/adapter.h"

extern const struct assay_kernel assay_kernel_mla_absorb_q;
const struct assay_kernel assay_kernel_mla_absorb_q = {.abi = ASSAY_ABI, .name = "demo.clash"};

const struct assay_kernel *const assay_kernels[] = {&assay_kernel_mla_absorb_q, 0};
