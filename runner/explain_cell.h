/* explain_cell: every value of a cell, the layer and the line that set it: as text on stdout, or as JSON. Parts of cmd_explain.c. */
#ifndef ASSAY_EXPLAIN_CELL_H
#define ASSAY_EXPLAIN_CELL_H

#include <jansson.h>

#include "plan.h"
#include "registry.h"
#include "suite.h"
#include "target.h"

void explain_cell(const struct plan *p, const struct registry *r, const struct target *t, const struct cell *c);
/* The same as one object (schemas/explain.schema.json): a value is {value, set_by, at}. rerun: the command. New reference. */
json_t *explain_json(const struct plan *p, const struct registry *r, const struct target *t, const struct cell *c,
		     const char *rerun);

/* ---- shared ---------------------------------------------------------------------------------------------------------- */

const struct suite_case *explain_case_of(const struct suite *s, const struct cell *c);
const struct geometry *explain_geometry_of(const struct suite_case *sc, const struct cell *c); /* NULL: none */
/* The layer of a dotted path, or of the nearest one above it that was set as a whole. */
struct provenance explain_layer_of(const struct suite *s, const struct suite_case *sc, const char *path);
/* Where an axis or a constant parameter of the cell comes from. */
struct provenance explain_axis_of(const struct suite *s, const struct suite_case *sc, const struct named_number *axis);
struct provenance explain_param_of(const struct suite_case *sc, const struct cell *c, const char *name);
struct mark explain_arm_mark(const struct suite_case *sc, const struct cell_arm *a); /* file NULL: built in */
struct mark explain_waiver_mark(const struct suite *s, const char *id);

#endif
