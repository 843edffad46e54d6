/* explain_cell: every value of a cell, the layer and the line that set it, as text on stdout. A part of cmd_explain.c. */
#ifndef ASSAY_EXPLAIN_CELL_H
#define ASSAY_EXPLAIN_CELL_H

#include "plan.h"
#include "registry.h"
#include "target.h"

void explain_cell(const struct plan *p, const struct registry *r, const struct target *t, const struct cell *c);

#endif
