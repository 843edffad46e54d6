/* table_build: inside of table_file: rows are added one by one, by the readers of YAML, JSON and CSV. */
#ifndef ASSAY_TABLE_BUILD_H
#define ASSAY_TABLE_BUILD_H

#include "table_file.h"

enum { TABLE_MAX_KEYS = sizeof((struct table *)0)->key / sizeof(char *) };

struct table_builder {
	struct arena *a;
	struct diags *d;
	struct table *t;
	struct table_row *row;
	size_t n, cap;
	struct mark place; /* of the table as a whole */
};

bool table_same_text(const char *a, const char *b); /* either may be NULL */
/* Each false with an error in d. */
bool table_add_key(struct table_builder *b, const char *name, struct mark at);
bool table_set_lookup(struct table_builder *b, const char *name, struct mark at);
bool table_add_row(struct table_builder *b, struct table_row row);
bool table_number(const char *text, struct number *out, struct err *why);
/* The table, or NULL where an error was added since errors_before. */
const struct table *table_finish(struct table_builder *b, int errors_before);

const struct table *table_from_csv(struct arena *a, const char *path, const char *text, size_t n, struct diags *d);

#endif
