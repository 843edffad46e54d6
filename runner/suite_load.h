/* suite_load: inside of the loader (suite*.c only). A suite is loaded in passes: files to trees (suite_include.c), blocks to structs
 * (geometry, data, arms, rules), cases last (suite_case.c), then what only the kernels can tell (suite_check.c, suite_points.c). */
#ifndef ASSAY_SUITE_LOAD_H
#define ASSAY_SUITE_LOAD_H

#include "grammar.h"
#include "suite.h"
#include "yaml_tree.h"

/* Where a suite is read from: a path, or a text given as if it lay there. */
struct suite *suite_load_text(const char *path, const char *text, size_t n, const struct suite_options *opt,
			      struct diags *d);

/* A named block of some file: `glm5-next: {…}` under geometries. */
struct block {
	const char *name;
	struct yaml_node *key, *value;
	const char *dir; /* folder of its file, "" for the current one */
	const void *made; /* the struct, once made */
	enum { BLOCK_NEW, BLOCK_OPEN, BLOCK_MADE, BLOCK_BAD } state;
};

struct blocks {
	const char *what; /* "geometry" */
	struct block *at;
	int n;
	size_t cap;
};

/* Items of `margins`, `waivers`, `rigs`, over all files. */
struct rule_nodes {
	struct yaml_node **at;
	int n;
	size_t cap;
};

/* Who set a value of a case. */
struct origin {
	int case_index;
	const char *path, *layer;
	const struct yaml_node *node; /* NULL: built in */
};

/* A suite with what only the loader and `explain` need. `s` comes first: a struct suite * is one of these. */
struct suite_full {
	struct suite s;
	const struct origin *origin;
	int n_origins;
	const struct geometry *const *geometry; /* all that are declared, for suite_to_json */
	int n_geometries;
	const struct distribution *const *distribution;
	int n_distributions;
};

struct loader {
	struct arena *arena;
	struct diags *diags;
	const struct suite_options *opt;
	struct suite_full *full;
	struct blocks geometries, split_sets, distributions, tables;
	struct rule_nodes margins, waivers, rigs;
	struct yaml_node *root; /* of the suite's own file */
	struct yaml_node *defaults; /* or NULL */
	struct yaml_node **override;
	int n_overrides;
	struct suite_file *file;
	size_t file_cap;
	struct origin *origin;
	size_t origin_cap;
	struct suite_case *cases;
	int at_case; /* index of the case being made */
	const char *layer;
};

/* One case being made: what the passes hand to each other. */
struct case_load {
	struct suite_case *c;
	struct yaml_node *node;
	const struct assay_kernel **kernel; /* the known ones, c->n_kernels */
	bool bad_params; /* a parameter was refused: do not say that one lacks */
	bool bad_arms;
	bool unknown_key; /* some key of the case is unknown */
};

/* ---- suite_include.c */
bool load_files(struct loader *l, const char *path, const char *text, size_t n); /* text NULL: read path */
const char *path_join(struct arena *a, const char *dir, const char *file);
struct block *block_find(const struct blocks *b, const char *name);
/* The block of that name; where there is none, an error with the nearest name and NULL. */
struct block *block_want(struct loader *l, const struct blocks *b, const struct yaml_node *name);
void note_file(struct loader *l, const char *path, const char *text, size_t n);

/* ---- suite_set.c: --set to trees */
void load_overrides(struct loader *l);

/* ---- suite_blocks.c: geometries and distributions */
const struct geometry *geometry_make(struct loader *l, struct block *b); /* NULL: bad, said so */
const struct distribution *distribution_make(struct loader *l, struct block *b);
const struct geometry *geometry_plain(struct loader *l); /* of a case that names none */
const struct distribution *distribution_plain(struct loader *l);
/* The keys that a fill reads, NULL-terminated. */
const char *const *fill_keys(enum fill_kind k);
bool number_read(const struct yaml_node *v, struct number *out);

/* ---- suite_arms.c */
void arms_make(struct loader *l, struct case_load *k, const struct yaml_node *v); /* v NULL: the shipped one only */
void split_sets_check(struct loader *l);

/* ---- suite_axes.c */
void axes_make(struct loader *l, struct case_load *k, const struct yaml_node *v); /* v NULL: none */

/* ---- suite_rules.c */
bool selector_make(struct loader *l, const struct yaml_node *v, bool (*known)(const void *ctx, const char *key),
		   const void *ctx, struct selector *out);
void rules_make(struct loader *l);
void tables_make(struct loader *l);
bool cell_key_known(const void *loader, const char *key);

/* ---- suite_case.c */
void cases_make(struct loader *l);
const struct origin *origin_find(const struct loader *l, const char *path);
struct mark origin_mark(const struct loader *l, const char *path, struct mark otherwise);

/* ---- suite_check.c: checks and timing against arms and kernels */
void case_check(struct loader *l, struct case_load *k);
/* Words that are nearly right among names of arms. */
int arm_words(const struct case_load *k, struct arena *a, const char *const **out);

/* ---- suite_points.c: parameters of every point against the kernels */
void points_check(struct loader *l, struct case_load *k);
/* A value against a parameter of a kernel; the error goes to `at`. */
bool param_check(const struct assay_kernel *k, int p, const struct number *v, struct mark at, struct diags *d);

#endif
