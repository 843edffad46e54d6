/* yaml_text: the bytes of a YAML file, before they are parsed. Inside of yaml_tree. */
#ifndef ASSAY_YAML_TEXT_H
#define ASSAY_YAML_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "diag.h"

/* UTF-8 of allowed characters only; else an error at the character, and false. */
bool yaml_text_check(const char *file, const char *text, size_t n, struct diags *d);

#endif
