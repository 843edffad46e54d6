/* select: the one selector language, for --filter, exclude, margins, waivers, rigs and tables.
 *
 *   kernel=mla.*,t_q=1..4,kv>=32768,arm=split=4         (text; terms divided by commas or blanks)
 *   {kernel: mla.*, t_q: [1, 2], kv: ">=32768"}         (YAML map)
 *
 * A term is KEY OP PATTERN with OP one of = != < <= > >=. A pattern is a glob (* ?), a number, a range A..B (inclusive), or
 * alternatives divided by | (in YAML also a list). Numbers are compared as numbers, `1e3` equals 1000. All terms must hold. A key
 * that the subject does not have does not match. More keys are more specific. In text, double quotes keep blanks and commas
 * together (device="NVIDIA H200") and [1, 2] is a list of alternatives; the pattern may itself hold '=' (arm=split=4). */
#ifndef ASSAY_SELECT_H
#define ASSAY_SELECT_H

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "err.h"

enum select_op { SELECT_EQ, SELECT_NE, SELECT_LT, SELECT_LE, SELECT_GT, SELECT_GE };

struct select_alternative {
	const char *glob; /* as written */
	bool is_number, is_range;
	double lo, hi; /* equal for a number */
};

struct select_term {
	const char *key;
	enum select_op op;
	const struct select_alternative *alt;
	int n_alt;
};

struct selector {
	const struct select_term *term;
	int n_terms; /* 0 matches everything */
};

/* What is selected: asks for the value of a key. Returns NULL where the subject has no such key; else text, which may live
 * in buf (of cap bytes). Several values of one key (the arms of a cell) are asked for with i = 0, 1, … until NULL. */
typedef const char *select_get(const void *subject, const char *key, int i, char *buf, size_t cap);

/* Parses text into *out (memory from a). On failure *err names the byte: "at 7: …". */
bool selector_parse(struct arena *a, const char *text, struct selector *out, struct err *err);
/* Appends one term, as the YAML map form has it: key, and a pattern text that may begin with an operator. */
bool selector_add(struct arena *a, struct selector *s, const char *key, const char *pattern, struct err *err);

/* How specific it is: the number of different keys it names. The greater wins; equal ones that fit the same cell are an error. */
int selector_specificity(const struct selector *s);

bool selector_match(const struct selector *s, const void *subject, select_get *get);
/* Canonical text, for records and messages. */
const char *selector_text(struct arena *a, const struct selector *s);
/* A key of the selector that `known` rejects, or NULL: lets the caller name the nearest right word. */
const char *selector_unknown_key(const struct selector *s, bool (*known)(const void *ctx, const char *key),
				 const void *ctx);

/* The glob of patterns: * any text, ? one byte, all else itself. */
bool select_glob(const char *glob, const char *text);

#endif
