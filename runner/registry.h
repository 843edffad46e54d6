/* registry: the kernels that can be named. A table generated from the build's one list (kernels/meson.build), and plugins. */
#ifndef ASSAY_REGISTRY_H
#define ASSAY_REGISTRY_H

#include "assay/adapter.h"
#include "err.h"

struct registry;

/* The built-in kernels. Never NULL. */
struct registry *registry_create(void);
void registry_destroy(struct registry *r); /* NULL is fine; closes plugins */

/* Loads a shared object, checks ABI number and shape of every kernel in it (a message per lack), and adds them. prefix: NULL, or
 * put before every kernel name ("base:"), so that two builds of the same kernels can be loaded side by side. */
bool registry_load_plugin(struct registry *r, const char *path, const char *prefix, struct err *err);

/* A path "ab:BASE:HEAD" loads two builds of the same kernels side by side. Every kernel that both have is there three times: as "base:NAME", as
 * "head:NAME", and as NAME (in the place of a built-in one) with the arms of both: registry_arm knows them as "base/split=4" and "head/split=4".
 * Of everything but arms NAME has the base's word; the two must agree on parameters and tensors. */
#define REGISTRY_PAIR "ab:"

int registry_count(const struct registry *r);
const struct assay_kernel *registry_at(const struct registry *r, int i); /* sorted by name */
const struct assay_kernel *registry_find(const struct registry *r, const char *name); /* NULL: unknown */
/* Path of the plugin a kernel came from, or NULL for a built-in one. */
const char *registry_origin(const struct registry *r, const struct assay_kernel *k);

/* Splits "split=4" into the kernel's arm and its argument; NULL with *err for an unknown arm or an argument out of range. Of a pair of builds
 * "base/split=4" is the first arm of that name and "head/split=4" the second. */
const struct assay_arm *registry_arm(const struct assay_kernel *k, const char *name, int64_t *arg, struct err *err);
/* Whether an arm is held to the bits of another where a check of identity lists no arms: it claims them, or is the same once more. */
bool registry_has_bits(const struct assay_arm *a, int64_t arg, const struct assay_arm *of, int64_t of_arg);
int registry_param(const struct assay_kernel *k, const char *name); /* index or -1 */
int registry_tensor(const struct assay_kernel *k, const char *name); /* index or -1 */
/* Names of dtypes as written in suites and records: "f32", "e4m3". -1: unknown. */
const char *registry_dtype_name(enum assay_dtype t);
int registry_dtype(const char *name);
/* The shape of a kernel's descriptor: everything that must hold for it to be used. False with the first lack. */
bool registry_check_kernel(const struct assay_kernel *k, struct err *err);

#endif
