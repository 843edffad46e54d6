/* list_kernels: a kernel's descriptor as text and as JSON, for `assay list`. */
#ifndef ASSAY_LIST_KERNELS_H
#define ASSAY_LIST_KERNELS_H

#include <jansson.h>
#include <stdio.h>

#include "registry.h"
#include "select.h"

/* At most 100 columns. gap: an empty line first. */
void list_kernel_print(FILE *f, const struct registry *r, const struct assay_kernel *k, bool gap);
json_t *list_kernel_json(const struct registry *r, const struct assay_kernel *k); /* new reference */
/* A select_get over a struct assay_kernel: kernel, arm, param, tensor. */
select_get list_kernel_get;

#endif
