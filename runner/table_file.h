/* table_file: serving tables: which arm serving picks at which axis values. Files of their own (YAML, CSV or JSON, by the ending
 * .yaml .yml .csv .json) or inline in a suite. docs/tables.md describes the forms. */
#ifndef ASSAY_TABLE_FILE_H
#define ASSAY_TABLE_FILE_H

#include <stdbool.h>

#include "arena.h"
#include "diag.h"
#include "suite.h"
#include "yaml_tree.h"

/* Reads a table. `from` is the line of the suite that names the file (errors in opening it are put there; file NULL: none). NULL
 * with errors in d. path is shown in marks as given. Arms are checked when a plan is built, not here. */
const struct table *table_load(struct arena *a, const char *path, struct mark from, struct diags *d);
/* The same from a map in a suite, in the form of a YAML table. path: the suite's, for messages. */
const struct table *table_from_node(struct arena *a, const char *path, const struct yaml_node *node, struct diags *d);

/* The row for a kernel at a point: rows that name the kernel before rows for every kernel; an exact name before a glob; the keys
 * looked up by the table's rule (floor: the greatest key that is not above, in each key alike); then the default row.
 * NULL with *err, that names the kernel, the keys and what is there: no row, or a key of the table that the point lacks. */
const struct table_row *table_lookup(const struct table *t, const char *kernel, const struct named_number *axis,
				     int n_axes, struct err *err);

#endif
