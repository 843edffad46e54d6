/* grammar: the suite file as data. One row a key: what it may be, its range, its default, what it is for, where it lands. From these
 * rows come the check of a tree (unknown keys with the nearest word), the defaults, the reading of settings into their structs, the
 * way back to JSON, the JSON Schema and the reference page. A new setting is one row and its field in settings.h. */
#ifndef ASSAY_GRAMMAR_H
#define ASSAY_GRAMMAR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "arena.h"
#include "diag.h"
#include "yaml_tree.h"

enum scalar_type {
	SC_NONE, /* no scalar, or one of .words only */
	SC_INT,
	SC_SEED,
	SC_REAL,
	SC_NUMBER,
	SC_BOOL,
	SC_SIZE,
	SC_TIME,
	SC_PERCENT,
	SC_WORD, /* any text */
	SC_NAME, /* what may stand in a cell id: letters, digits and . _ + = - */
	SC_DATE, /* YYYY-MM-DD */
	SC_ANY /* any scalar, read by who uses it */
};

enum store { ST_NONE, ST_INT, ST_I64, ST_DOUBLE, ST_BOOL, ST_STR, ST_STRS };

struct slot {
	const char *key; /* of a list's item: what it is, for messages */
	const char *doc; /* a sentence; the reference page and the schema's description */
	const char *dflt; /* the default as written in a suite (a scalar), or NULL */
	bool required;
	const char *instead; /* required, or this other key of the same map */
	bool hidden; /* in the grammar, not on the reference page (a form that another one names) */

	/* What it may be: a word, a scalar, a list of `item`, a map of the keys of `sub` and of NAME -> `any`. */
	const char *const *words; /* NULL-terminated; word k stores k + word_base */
	enum scalar_type scalar;
	double min, max; /* both 0: no limit */
	const double *one_of; /* SC_REAL: the only values, 0 at the end */
	const struct slot *item;
	int item_max; /* 0: no limit. A list has at least one item unless may_be_empty; a lone value counts as a list of one */
	bool may_be_empty;
	bool raw; /* read and checked by who uses it */
	const struct slot *sub; /* ends with key NULL */
	const struct slot *any;
	const char *any_name; /* what NAME is, for the reference page: "geometry" */
	const char *long_form; /* a map with this key has the keys of `sub` only, without it those of `any` only */

	/* Where it lands in the section's struct (of `sub` the same struct). */
	enum store store;
	size_t offset;
	size_t has; /* offset + 1 of a bool that becomes true; 0: none */
	int word_base;
	double plus; /* ST_DOUBLE: added */
	int bit; /* k + 1: naming it sets bit k of the uint32_t at offset; `false` clears it */
	/* What one field cannot hold. set: v is checked. get: NULL leaves the key out. */
	void (*set)(struct arena *a, void *base, const struct yaml_node *v);
	json_t *(*get)(const void *base);
};

/* The tables (grammar.c, grammar_settings.c). */
extern const struct slot grammar_suite[]; /* the top level of a suite */
extern const struct slot grammar_include[]; /* of an included file */
extern const struct slot grammar_override[]; /* what --set reaches: timing, checks, seed, data … */
extern const struct slot grammar_timing[]; /* struct timing */
extern const struct slot grammar_checks[]; /* struct checks */
extern const char *const grammar_dtypes[]; /* in the order of enum assay_dtype */
extern const char *const grammar_fills[]; /* in the order of enum fill_kind */
extern const char *const grammar_statuses[]; /* of a cell, as a waiver expects them */

/* Checks a map against the rows; adds every error, sets `bad` in each node that had one, returns whether there was none. what: "the
 * suite", "timing", for "… lacks key 'x'". */
bool grammar_check(const struct slot *sub, struct yaml_node *map, const char *what, struct diags *d);
/* The same for one value against one row. */
bool grammar_check_value(const struct slot *s, struct yaml_node *v, struct diags *d);
/* The row of a key, or NULL. */
const struct slot *grammar_find(const struct slot *sub, const char *key);
/* Says that a key or word is unknown, with the nearest one of n. */
void grammar_unknown(struct diags *d, struct mark at, const char *what, const char *word, const char *const *known,
		     int n);

/* Called for each value that is set: path is dotted ("warmup.launches"); v NULL for a default. */
typedef void grammar_seen(void *ctx, const char *path, const struct yaml_node *v);

/* Sets the defaults of the rows. seen gets NULL. */
void grammar_defaults(const struct slot *sub, struct arena *a, void *base, grammar_seen *seen, void *ctx);
/* Reads a checked map over what is set; bad nodes are passed over. */
void grammar_apply(const struct slot *sub, struct arena *a, const struct yaml_node *map, void *base, grammar_seen *seen,
		   void *ctx);
/* The struct as a map that grammar_apply reads back. */
json_t *grammar_to_json(const struct slot *sub, const void *base);
/* Values in the forms of the suite. */
json_t *grammar_percent(double v);
json_t *grammar_time(int64_t ns);
json_t *grammar_size(int64_t bytes);

json_t *grammar_schema(const struct slot *sub, const char *id, const char *title);
void grammar_reference(const struct slot *sub, FILE *f);

#endif
