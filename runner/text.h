/* text: what people see of a run or of a verdict file: a pure function of the records. Keeps a summary of a hundred bytes a cell,
 * never the cells. 100 columns, readable without colour. */
#ifndef ASSAY_TEXT_H
#define ASSAY_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct text;

struct text_options {
	FILE *out;
	int width; /* columns; 0: 100 */
	bool colour;
	bool verbose; /* every cell, as it comes and in the tables */
	bool quiet; /* failures and the last line only */
	bool advisory; /* the process exits 0 whatever the last line says */
	const char *file; /* the verdict file's name for the last line; NULL: none */
};

struct text *text_create(const struct text_options *o); /* never NULL: small allocations, as arena */
/* The next record, in file order; a doubled cell is the caller's to drop. The header prints the banner; with verbose a cell prints
 * what was seen of it. The rest waits for text_finish. */
void text_record(struct text *t, const json_t *record);
/* Tables, failures, what was proven, and the last line. */
void text_finish(struct text *t);
void text_destroy(struct text *t); /* NULL is fine */

#endif
