/* suggest_fresh: the cells of the changed rows once more, by `assay run` in a process of its own, as the run itself was called. */
#ifndef ASSAY_SUGGEST_FRESH_H
#define ASSAY_SUGGEST_FRESH_H

#include "suggest.h"

/* The words of a command line as a header has it (words in single quotes where they need it). NULL-terminated, from a. */
char **suggest_split(struct arena *a, const char *command, int *n);

/* The command that measures the changed rows anew into out: the suite, backend, plugins and settings of the run, a filter for the kernels and keys
 * of the changes. NULL-terminated, from s's arena; NULL with *err where the header does not tell how it was run. */
char **suggest_fresh_command(const struct suggest *s, const char *self, const char *out, struct err *err);

/* Runs it and loads what it wrote into *fresh (verdict_unload is the caller's). Its text goes to stderr. */
bool suggest_fresh_run(const struct suggest *s, const char *out, struct verdict_file *fresh, struct err *err);

#endif
