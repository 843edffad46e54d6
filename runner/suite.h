/* suite: a YAML file as understood, with marks.
 *
 * The grammar stands once, as rows, in grammar.c and grammar_settings.c; it gives the parser, the JSON Schema (`assay schema suite`), the defaults and
 * the reference page (docs/suite.md). Everything here lives in the suite's arena and is const after loading. */
#ifndef ASSAY_SUITE_H
#define ASSAY_SUITE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "arena.h"
#include "diag.h"
#include "err.h"
#include "fill_spec.h"
#include "registry.h"
#include "select.h"
#include "settings.h"

/* A parameter value as written: whole numbers keep full precision in i. */
struct number {
	bool is_int;
	int64_t i;
	double d; /* always set */
};

struct named_number {
	const char *name;
	struct number value;
	struct mark mark;
};

struct geometry {
	const char *name;
	const struct named_number *param; /* extends resolved; each mark says which line spoke */
	int n_params;
	bool has_weight;
	double weight;
	struct mark mark;
};

/* An arm as the suite names it. */
struct arm_use {
	const char *name; /* as shown: "split=4", or the name: given in the suite */
	const char *arm; /* the kernel's arm with its argument: "split=4" */
	int role; /* enum cell_arm_role of plan.h */
	const struct env_flip *env; /* environment variables set around plan and run */
	int n_env;
	bool graph; /* captured once, replayed (cuda) */
	struct mark mark;
};

struct env_flip {
	const char *name, *value;
}; /* value NULL: unset */

struct axis {
	const char *name;
	const struct number *value;
	int n;
	int zip_group; /* axes of one group (>= 0) advance together; -1: on its own */
	struct mark mark;
};

/* One row of a serving table: an arm for one point of its keys. */
struct table_row {
	const char *kernel; /* glob, or NULL: every kernel */
	struct number key[8]; /* per table->key */
	bool is_default;
	const char *arm;
	struct mark mark;
};

enum lookup { LOOKUP_EXACT, LOOKUP_FLOOR, LOOKUP_CEIL, LOOKUP_NEAREST };
enum { N_LOOKUPS = LOOKUP_NEAREST + 1 };
extern const char *const table_lookup_names[N_LOOKUPS]; /* as tables write them (table_lookup.c) */

struct table {
	const char *path;
	const char *key[8]; /* axis names, NULL-terminated */
	int n_keys;
	enum lookup lookup;
	const struct table_row *row;
	int n_rows;
};

/* Chosen by device: the first entry whose selector matches (most specific wins, a tie is an error). */
struct table_choice {
	struct selector match;
	const struct table *table;
	struct mark mark;
};
struct table_set {
	const char *name;
	const struct table_choice *choice;
	int n;
	struct mark mark;
};

struct margin {
	struct selector match;
	double fail; /* 0.05 for 5 % */
	bool has_warn;
	double warn;
	int64_t floor_ns; /* absolute floor, 0: none */
	struct mark mark;
};

struct waiver {
	const char *id, *reason;
	struct selector match;
	const char *expect; /* status that is waived: "mismatch", … */
	const char *arm; /* whose failure is waived; NULL: that of any arm, and of the cell */
	char until[11]; /* YYYY-MM-DD, inclusive; "" : no date */
	struct mark mark;
};

struct rig {
	struct selector match;
	bool gate;
	struct mark mark;
};

struct suite_case {
	const char *id;
	const char *const *kernel; /* names, n_kernels of them; globs already expanded */
	int n_kernels;
	const struct geometry *const *geometry;
	int n_geometries;
	const struct arm_use *arm; /* shipped first */
	int n_arms;
	const char *shipped; /* arm name that is the yardstick */
	const struct distribution *const *data;
	int n_data;
	const struct axis *axis;
	int n_axes;
	const struct selector *exclude;
	const struct mark *exclude_mark;
	int n_excludes;
	uint64_t seed;
	struct timing timing;
	struct checks checks;
	struct mark select_mark; /* of regression.select */
	const char *const *tag;
	int n_tags;
	struct mark mark;
};

struct suite_file {
	const char *path;
	char sha256[65];
};

/* Which layer set a value: for `assay explain`. path is dotted: "timing.max_rounds". */
struct provenance {
	const char *path;
	const char *layer;
	struct mark mark;
};

/* One `--set PATH=VALUE` of the command line. */
struct suite_override {
	const char *text;
};

struct suite {
	struct arena *arena;
	const char *path, *name, *about;
	const char *rerun_as; /* what goes before the suite in the rerun command; NULL: "run" */
	const char *set_words; /* options that rerun needs, quoted: "" or " --backend 'cuda' --set 't_q=1'" */
	char sha256[65]; /* over the suite and its includes and tables */
	const struct suite_file *file;
	int n_files;
	const struct suite_case *cases;
	int n_cases;
	const struct table_set *table_set;
	int n_table_sets;
	const struct margin *margin;
	int n_margins;
	const struct waiver *waiver;
	int n_waivers;
	const struct rig *rig;
	int n_rigs;
	int64_t max_cells; /* cap on the expansion */
};

struct suite_options {
	const struct registry *registry;
	const struct suite_override *set;
	int n_set;
	/* Only for the rerun command of a record; each may be NULL. */
	const char *const *plugin;
	int n_plugins;
	const char *backend, *device;
	const char *rerun_as; /* see struct suite: "ab base.so head.so --suite" */
};

/* Loads, resolves includes and layers, and validates against the registry. NULL where *diags holds an error; *diags is
 * then sorted by position. The caller owns the suite (suite_destroy) and the diags. */
struct suite *suite_load(const char *path, const struct suite_options *opt, struct diags *diags);
void suite_destroy(struct suite *s); /* NULL is fine */
/* Another suite of the same arena, as s is, for the caller to set things in. What is known of where its cases' values come from is not kept. */
struct suite *suite_derive(struct suite *s);

/* The suite as understood, as `assay check --json` prints it (valid under the schema; feeding it back gives the same suite). */
json_t *suite_to_json(const struct suite *s);
/* Who set `path` for this case (and arm, may be NULL): fills *out. False: no such path. */
bool suite_provenance(const struct suite *s, const struct suite_case *c, const char *path, struct provenance *out);
/* The JSON Schema of a suite, and the reference page (Markdown), from the grammar's descriptor. */
json_t *suite_schema(void);
void suite_reference(FILE *f);

#endif
