/* verdict: the JSON Lines file, writer and reader side by side. */
#ifndef ASSAY_VERDICT_H
#define ASSAY_VERDICT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"

/* One line of JSON, no newline: keys in their order, finite numbers in the shortest form that reads back to the same double,
 * a non-finite number is a bug (asserted). Malloc'd, NULL out of memory. */
char *verdict_line(const json_t *j);

struct verdict_writer;
enum verdict_open { VERDICT_NEW, VERDICT_FORCE, VERDICT_RESUME };
/* path "-": stdout. VERDICT_NEW refuses an existing file, with the remedies. VERDICT_RESUME drops the aggregates and the
 * footer at the end, and a torn tail. */
struct verdict_writer *verdict_create(const char *path, enum verdict_open how, struct err *err);
/* The verb that writes can go on with the file by --resume: said where the disk is full. */
void verdict_can_resume(struct verdict_writer *w);
/* Whether a record has been written, by this writer or by the one whose file it goes on with. */
bool verdict_begun(const struct verdict_writer *w);
/* Writes, flushes and syncs one line. */
bool verdict_write(struct verdict_writer *w, const json_t *record, struct err *err);
bool verdict_close(struct verdict_writer *w, struct err *err); /* NULL is fine */

struct verdict_reader;
/* path: a file, "-", or REV:path of a git repository (read by git show). */
struct verdict_reader *verdict_open(const char *path, struct err *err);
enum verdict_got { VERDICT_RECORD, VERDICT_END, VERDICT_TORN, VERDICT_BAD };
/* The next record (new reference). VERDICT_TORN: the last line is cut short, nothing follows. VERDICT_BAD: *err has path:line. */
enum verdict_got verdict_next(struct verdict_reader *r, json_t **out, struct err *err);
int64_t verdict_line_number(const struct verdict_reader *r);
/* Bytes from the start of the file to the end of the last record (and its newline) that verdict_next gave. */
int64_t verdict_offset(const struct verdict_reader *r);
void verdict_finish(struct verdict_reader *r); /* NULL is fine */

/* A whole file in memory: header, cells in file order (the later line of an id counts where a resume record stands between),
 * screens, aggregates, footer (NULL: cut short). Refuses doubled ids (both lines named), a newer format, an empty file. */
struct verdict_file {
	json_t *header, *footer;
	json_t **cell;
	size_t n_cells;
	json_t **other; /* screens, aggregates, resumes in order */
	size_t n_other;
	bool torn;
};
bool verdict_load(const char *path, struct verdict_file *out, struct err *err);
void verdict_unload(struct verdict_file *f);

/* The JSON Schema it was built with. New reference. */
json_t *verdict_schema(void);

#endif
