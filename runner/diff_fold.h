/* diff_fold: rows that say the same of one kernel and arm, as one line. */
#ifndef ASSAY_DIFF_FOLD_H
#define ASSAY_DIFF_FOLD_H

#include "diff.h"

struct diff_fold {
	enum diff_state state;
	char *kernel, *arm, *why; /* arm and why may be NULL */
	char *case_id, *geometry, *data; /* NULL: they differ within the line */
	char *point; /* the terms that all its cells have */
	int64_t rows;
	double base_ns, head_ns, ratio, lo, hi; /* of the row that moved most */
	bool of_ratio;
};

struct diff_folds {
	struct diff_fold *fold;
	size_t n, cap;
	int64_t rows_left_out; /* beyond DIFF_MAX_FOLDS lines */
	bool unfolded; /* in: a line a row */
};
enum { DIFF_MAX_FOLDS = 1000 };

/* Rows of one state. Aborts out of memory, as text does. */
void diff_folds_collect(const struct diff *d, enum diff_state state, struct diff_folds *out);
void diff_folds_free(struct diff_folds *f);
/* "mla.absorb_q kv=2048,t_q=4", with the case, geometry and data where the files have several. */
void diff_fold_label(const struct diff_fold *f, const struct diff_summary *s, char *out, size_t cap);
/* A selector of these cells: "kernel=mla.absorb_q,kv=2048,t_q=4". */
void diff_fold_selector(const struct diff_fold *f, const struct diff_summary *s, char *out, size_t cap);

#endif
