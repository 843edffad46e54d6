/* test_suite_bed: a registry, its messages and a short suite, for the tests of suites. Each file that includes it has its own. */
#ifndef ASSAY_TEST_SUITE_BED_H
#define ASSAY_TEST_SUITE_BED_H

#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fill.h"
#include "grammar.h"
#include "plan.h"
#include "registry.h"
#include "suite.h"
#include "suite_list.h"
#include "suite_load.h"
#include "test_said.h"
#include "unit.h"

static struct registry *registry;
static struct diags *diags;

static inline void setup(void)
{
	registry = registry_create();
	diags = diags_create();
}

static inline void teardown(void)
{
	diags_destroy(diags);
	registry_destroy(registry);
}

static inline const char *messages(void)
{
	return said_by(diags);
}

static inline struct suite *load_set(const char *yaml, const struct suite_override *set, int n_set)
{
	struct suite_options opt = {.registry = registry, .set = set, .n_set = n_set};
	return suite_load_text("t.yaml", yaml, strlen(yaml), &opt, diags);
}

static inline struct suite *load(const char *yaml)
{
	struct suite *s = load_set(yaml, NULL, 0);
	ck_assert_msg(s != NULL, "%s", messages());
	return s;
}

#define HEAD                                                                                                           \
	"assay: 1\nsuite: t\n"                                                                                         \
	"geometries:\n  g: {n_head: 4, kv_rank: 16, d_nope: 8}\n"                                                      \
	"distributions:\n  unit: {fill: uniform, range: [-1, 1]}\n"
#define CASE                                                                                                           \
	"cases:\n  - id: c\n    kernels: [mla.absorb_q]\n    geometry: g\n    data: unit\n    arms: [split=2]\n    "   \
	"axes: {t_q: [1, 2]}\n"
#define CHECKS "    checks: {identity: true}\n"

#endif
