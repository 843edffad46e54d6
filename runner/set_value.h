/* set_value: the value of a `--set NAME=VALUE`, read as a suite would read it. */
#ifndef ASSAY_SET_VALUE_H
#define ASSAY_SET_VALUE_H

#include "yaml_tree.h"

/* The tree of what follows the first '=' of text, which must have one. Its marks are columns of the whole text, under the name `file`
 * (give the text to diag_source first); values divided by commas are a list. NULL: no YAML, and d says why. */
struct yaml_node *set_value(struct arena *a, const char *file, const char *text, struct diags *d);

#endif
