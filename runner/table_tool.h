/* table_tool: a serving table held against a run, and as a C header. Pure. */
#ifndef ASSAY_TABLE_TOOL_H
#define ASSAY_TABLE_TOOL_H

#include <stdbool.h>
#include <stdio.h>

#include "table_file.h"
#include "verdict.h"

/* Prints a line for each row that does not hold: slower than shipped beyond the noise, wrong in a check, naming an arm that a cell does not have
 * or did not time, measured by no cell. The number of such lines; *checked: rows that a cell looked up; *missing: cells without a row. */
int table_check(const struct table *t, const struct verdict_file *run, FILE *f, int *checked);
/* Whether each key of the table is an axis or a parameter of some cell of the run. False with *err, which does not name the table. */
bool table_check_keys(const struct table *t, const struct verdict_file *run, struct err *err);

/* A header with the rows and a lookup function, C11 and C++, without dependencies. name: a C identifier, the prefix of all it declares.
 * False with *err where a key is no identifier. */
bool table_export_c(const struct table *t, const char *name, FILE *f, struct err *err);
/* A C identifier of a path: "suites/tables/mla-h200.yaml" is mla_h200. */
const char *table_identifier(struct arena *a, const char *path);

#endif
