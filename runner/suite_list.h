/* suite_list: files that name suites instead of cases (`suites:`), to be run together, each as itself: its own blocks, defaults, rules and ids, its own
 * verdict file, and so its own baseline and resume. */
#ifndef ASSAY_SUITE_LIST_H
#define ASSAY_SUITE_LIST_H

#include <jansson.h>
#include <stdbool.h>

#include "arena.h"
#include "diag.h"

struct suite_use {
	const char *path;
	const char *const *filter; /* texts of selectors, any may match */
	int n_filters; /* 0: every cell */
	int processes; /* 0: nothing said */
	const char *backend; /* NULL: any; else only where this one is used */
};

struct suite_uses {
	struct suite_use *use;
	int n;
	size_t cap;
	/* Of the last file that names suites; NULL: none did. */
	const char *name, *about;
};

/* Adds what `path` names: its suites, or, where it is a suite (or cannot be read, which suite_load then says), itself. False with errors in d. */
bool suite_uses_add(struct arena *a, const char *path, struct diags *d, struct suite_uses *out);
/* The filters of a use and those of the command line together: a cell must match one of each. *out is NULL-terminated; returns how many. */
int suite_use_filters(struct arena *a, const struct suite_use *use, const char *const *filter, int n,
		      const char *const **out);
/* The file as understood, in the form that is read back from this folder. */
json_t *suite_uses_json(const struct suite_uses *u);

#endif
