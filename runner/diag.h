/* diag: messages about a file, with their place. Collected, sorted by position, printed once:
 *
 *   FILE:LINE:COL: error: unknown key 'kvv'
 *       kvv: [2048]
 *       ^~~
 *   FILE:LINE:COL: note: did you mean 'kv'?
 */
#ifndef ASSAY_DIAG_H
#define ASSAY_DIAG_H

#include <stdbool.h>
#include <stdio.h>

#include "arena.h"

/* A place in a file; line and column count from 1, columns in characters. file NULL: no place (built in). */
struct mark {
	const char *file;
	int line, col;
	int len; /* characters to underline, at least 1 where known, else 0 */
};

enum severity { DIAG_ERROR, DIAG_WARNING };

struct diags;

struct diags *diags_create(void);
void diags_destroy(struct diags *d); /* NULL is fine */

/* Adds a message. Two messages at one place with one text count once. Returns false, for `return diag_add(…)`. */
bool diag_add(struct diags *d, enum severity sev, struct mark at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same of one of several that may share the place, such as a kernel or a case whose axis is an anchor: the message is `text joint whose`, and one that
 * differs in `whose` alone is the same mistake, told once with all their names: "t_q = 0 is out of range 1..64 of" + "mla.a, mla.b and mla.c". */
bool diag_add_of(struct diags *d, enum severity sev, struct mark at, const char *joint, const char *whose,
		 const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* Adds a note to the last message: with a place (at.file != NULL) or without. */
void diag_note(struct diags *d, struct mark at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Gives the text of a file, so that its lines can be shown. Copied. */
void diag_source(struct diags *d, const char *file, const char *text, size_t n);

int diags_errors(const struct diags *d);
int diags_warnings(const struct diags *d);
/* Sorted by file (in order of first diag_source), line, column. After 20 errors a line counts the rest. */
void diags_print(struct diags *d, FILE *out, bool colour);

/* The nearest of n words within Damerau distance max(1, len/3), or NULL. */
const char *diag_nearest(const char *word, const char *const *words, int n);

#endif
