/* diff_show: a comparison for people and for machines. Each writes the whole of it into `out`. */
#ifndef ASSAY_DIFF_SHOW_H
#define ASSAY_DIFF_SHOW_H

#include <stdio.h>

#include "diff.h"

struct diff_show {
	FILE *out;
	const char *base, *head; /* as named on the command line */
	const char *title; /* NULL; or a line before all: which baseline this is */
	bool all; /* every row, `~` too, a line each */
	bool colour;
	unsigned fail_on;
	int exit; /* what the comparison's status is */
	bool advisory; /* the process exits 0 all the same */
};

void diff_show_text(const struct diff *d, const struct diff_show *s);
void diff_show_md(const struct diff *d, const struct diff_show *s);
void diff_show_csv(const struct diff *d, const struct diff_show *s);
void diff_show_json(const struct diff *d, const struct diff_show *s);
void diff_show_junit(const struct diff *d, const struct diff_show *s);

/* Parts of the text that md has too. */
void diff_side_text(const struct diff *d, enum diff_side side, const char *path, char *out, size_t cap);
void diff_drift_text(const struct diff_summary *s, char *out, size_t cap);
void diff_tau_text(const struct diff_summary *s, char *out, size_t cap);
void diff_counts_text(const struct diff_summary *s, char *out, size_t cap); /* "1 new failure, 4 slower" */
const char *diff_verdict_word(const struct diff_show *s, const struct diff_summary *sum);
/* What no regression was found in, where that is not every cell: " in 4 of 9 cells"; else "". */
void diff_scope_text(const struct diff_show *s, const struct diff_summary *sum, char *out, size_t cap);
/* Why nothing could be compared, where diff_nothing says so. */
void diff_nothing_text(const struct diff *d, char *out, size_t cap);
/* Why it is incomplete, where diff_incomplete says so. */
void diff_incomplete_text(const struct diff *d, char *out, size_t cap);
/* "141 of 151 cells compared; …". */
void diff_totals_text(const struct diff_summary *s, char *out, size_t cap);
/* The command that goes on from here; empty: none. */
void diff_next_text(const struct diff *d, const struct diff_show *s, char *out, size_t cap);

#endif
