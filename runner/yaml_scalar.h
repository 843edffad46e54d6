/* yaml_scalar: what a plain scalar may mean. The core schema of the suite file, shared by suites, serving tables and --set.
 *
 *   integers     -?(0|[1-9][0-9]*) or 0x…; 1e3 is 1000 where exact           8k 010 0o10 1_000 "8" are refused, the right form named
 *   numbers      the same, and decimals: 0.5, 2e-5                           .5 5. nan inf are refused
 *   booleans     true false                                                  yes no on off True are refused
 *   sizes        512MiB 4KiB 1GiB 64B 100MB 0                                 512M 512 mib are refused
 *   times        2us 150s 0.5us 1ms 30ns 2min 0                               2 , 2sec are refused
 *   percentages  5% 0.5% (a ratio difference: 0.05), +10pp (0.10)            5, 0.05 are refused
 */
#ifndef ASSAY_YAML_SCALAR_H
#define ASSAY_YAML_SCALAR_H

#include <stdbool.h>
#include <stdint.h>

#include "diag.h"
#include "err.h"
#include "yaml_tree.h"

/* Texts: the whole token or an error that names the right form ("write 8192"). Locale-independent. */
bool scalar_int(const char *text, int64_t *out, struct err *why);
bool scalar_uint(const char *text, uint64_t *out, struct err *why); /* 0 .. 2^64-1, for seeds */
bool scalar_real(const char *text, double *out, struct err *why); /* finite */
bool scalar_bool(const char *text, bool *out, struct err *why);
bool scalar_size(const char *text, int64_t *bytes, struct err *why);
bool scalar_time(const char *text, int64_t *ns, struct err *why);
bool scalar_percent(const char *text, double *out, struct err *why); /* 5% and +5pp both give 0.05; may be negative */

/* Nodes: the same, with the error added to d at the node (also where it is quoted, a list or a map). True: *out is set. */
bool yaml_int(const struct yaml_node *v, int64_t min, int64_t max, int64_t *out, struct diags *d);
bool yaml_uint(const struct yaml_node *v, uint64_t *out, struct diags *d);
bool yaml_real(const struct yaml_node *v, double *out, struct diags *d);
bool yaml_bool(const struct yaml_node *v, bool *out, struct diags *d);
bool yaml_size(const struct yaml_node *v, int64_t *bytes, struct diags *d);
bool yaml_time(const struct yaml_node *v, int64_t *ns, struct diags *d);
bool yaml_percent(const struct yaml_node *v, double *out, struct diags *d);
/* Any scalar, plain or quoted; not empty. */
bool yaml_string(const struct yaml_node *v, const char **out, struct diags *d);

#endif
