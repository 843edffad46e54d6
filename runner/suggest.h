/* suggest: a serving table out of a run: for each kernel and key the arm that is faster than what is served, beyond the noise, right in every
 * check and with the same bits; else what is served stays. Pure. */
#ifndef ASSAY_SUGGEST_H
#define ASSAY_SUGGEST_H

#include <stdbool.h>
#include <stdio.h>

#include "arena.h"
#include "err.h"
#include "suite.h"
#include "verdict.h"

enum { SUGGEST_MAX_KEYS = 8, SUGGEST_MAX_ARMS = 32 };

/* An arm against another over the cells of a row: pooled, in ln. */
struct suggest_evidence {
	double estimate, lo, hi, floor; /* NAN where nothing pairs */
	int cells, faster, slower; /* by each cell's own interval, beyond its floor */
};

enum suggest_outcome {
	SUGGEST_KEPT, /* nothing else is faster beyond the noise */
	SUGGEST_CHANGED,
	SUGGEST_FIXED, /* what is served is wrong: shipped, or the fastest right arm */
	SUGGEST_WITHDRAWN, /* the fresh measurement did not agree: what is served stays */
	SUGGEST_UNMEASURED, /* nothing was timed here: what is served stays */
};

/* A row of the proposed table. */
struct suggest_row {
	const char *kernel;
	double key[SUGGEST_MAX_KEYS];
	const json_t **cell; /* of the run, n_cells */
	size_t n_cells, cell_cap;
	const char *incumbent, *shipped; /* arms; incumbent: what is served, else shipped */
	bool several; /* its cells are served several arms: incumbent is shipped, and `lost` says what else there was */
	const char *lost; /* what is served in some of its cells and not by the proposal, in words; NULL: nothing */
	const char *arm; /* the proposal */
	enum suggest_outcome outcome;
	struct suggest_evidence evidence; /* arm against incumbent; against shipped where it stays */
	bool measured_anew;
	struct suggest_evidence fresh;
	const char *
		note; /* why a faster arm was not taken: bits, a failed check, slower elsewhere; NULL: nothing to say */
};

/* A line of the proposed table. */
struct suggest_entry {
	struct table_row row;
	const struct suggest_row *of; /* its evidence; NULL: a row that was not measured, or a default */
	bool told_only; /* no row: the served table says so without one */
};

struct suggest {
	struct arena *arena;
	const json_t *header;
	const char *key[SUGGEST_MAX_KEYS];
	int n_keys;
	struct suggest_row *row; /* by kernel in the order of the run, keys rising */
	size_t n_rows;
	const char **advice; /* where a further key is warranted */
	size_t n_advice, advice_cap;
	/* The table that the run was served by, where it was one and the header tells. */
	const struct table *served;
	const char *served_path;
	bool carries; /* keyed as it: its lookup, its defaults and the rows that were not measured are kept */
	const struct table *table; /* the proposal, once suggest_propose made it */
	struct suggest_entry *entry; /* what is written of it, in order */
	size_t n_entries;
	const char **lost; /* what was served at points that were not measured, and is not by the proposal */
	size_t n_lost, lost_cap;
};

/* The keys of the tables that the run was served by: what a proposal is keyed on where nothing else is said. Borrowed from the header. False
 * with *err: several tables with other keys. */
bool suggest_default_keys(const json_t *header, const char *key[SUGGEST_MAX_KEYS], int *n_keys, struct err *err);

/* False with *err: a key that no cell has, or a cell that lacks one. run is borrowed and must outlive s. */
struct suggest *suggest_create(const struct verdict_file *run, const char *const *key, int n_keys, struct err *err);
void suggest_destroy(struct suggest *s); /* NULL is fine */
/* Holds every changed row against a fresh run; one that it does not bear out is withdrawn. */
void suggest_confirm(struct suggest *s, const struct verdict_file *fresh);
/* How many rows differ from what is served. */
size_t suggest_changes(const struct suggest *s);
/* Makes the table of the rows as they stand, and finds what it would lose. Before anything is written. */
void suggest_propose(struct suggest *s);
/* Rows and points at which something that is served is lost. */
size_t suggest_losses(const struct suggest *s);

/* The table, as YAML with its evidence as comments. anew: 1 measured anew, 0 not, -1 not needed. */
void suggest_write_table(const struct suggest *s, const char *run_path, int anew, FILE *f);
/* The same in words, and the crossovers along each key. */
void suggest_write_text(const struct suggest *s, int anew, FILE *f);

/* ---- parts (suggest_served.c, suggest_propose.c, suggest_table.c) ---------------------------------------------------------------------- */

/* The row of a kernel at exactly these values of the keys; NULL: none. */
struct suggest_row *suggest_row_at(const struct suggest *s, const char *kernel, const double *key);
/* Fills served, served_path and carries; only what the header tells. */
void suggest_find_served(struct suggest *s);
/* What a serving table calls an arm of the cell: the kernel's name for it; NULL where no table can name it (a captured graph, an environment). */
const char *suggest_table_name(const json_t *header, const json_t *cell, const char *arm);
/* What stands for the evidence of a row, and how it was looked at. */
void suggest_write_why(FILE *f, const struct suggest_row *r);
const char *suggest_anew_text(int anew);
/* Text without control characters, which would end a comment; and the keys of a row: "t_q=4,kv=2048". */
void suggest_write_plain(FILE *f, const char *s);
void suggest_write_keys(FILE *f, const struct suggest *s, const struct suggest_row *r);

/* ---- parts (suggest_compare.c) -------------------------------------------------------------------------------------- */

/* arm against base in one cell, in paired rounds: false where they do not pair. *floor: the cell's noise, from the null arm and what
 * processes differ by (tau). *se: of the estimate. */
bool suggest_compare(const json_t *cell, const char *arm, const char *base, double tau, double *estimate, double *lo,
		     double *hi, double *floor, double *se);
struct suggest_evidence suggest_pool(const json_t *const *cell, size_t n, const char *arm, const char *base,
				     double tau);
/* A check that the arm failed in one of the cells, as a sentence (from a); NULL: right everywhere. */
const char *suggest_wrong(struct arena *a, const json_t *const *cell, size_t n, const char *arm);
/* Whether both arms gave the same bits in every cell. */
bool suggest_same_bits(const json_t *const *cell, size_t n, const char *arm, const char *base);
/* Whether serving may pick the arm in every cell: it is there, timed, and neither headroom nor null. */
bool suggest_selectable(const json_t *const *cell, size_t n, const char *arm);
/* Faster in the pool beyond the noise, and slower in no cell. */
bool suggest_is_faster(const struct suggest_evidence *e);

#endif
