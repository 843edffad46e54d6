/* report: one or several verdict files as a page, as Markdown for a pull request, as CSV, as JUnit. Pure functions of the records:
 * nothing is judged again. Whole files are kept in memory. */
#ifndef ASSAY_REPORT_H
#define ASSAY_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "arena.h"
#include "err.h"
#include "text_parts.h"
#include "verdict.h"

enum { REPORT_MAX_FILES = 16 };

/* A cell in one of the files. */
struct report_cell {
	const json_t *json; /* NULL: this file has no such cell */
	const struct row *row; /* of the file's text; NULL where json is */
};

/* A cell by its id, in every file. */
struct report_line {
	const char *id, *name; /* name: without the suite, which every line would repeat */
	struct report_cell *cell; /* n_files of them */
	const json_t *any; /* of the first file that has it */
};

struct report_file {
	const char *path, *label; /* label: short and unlike the others' */
	struct verdict_file v;
	struct text *text; /* rows and tallies, as `assay show` has them */
};

struct report {
	struct arena *arena;
	struct report_file *file;
	size_t n_files;
	struct report_line *line; /* in the order of the first file; then what only later ones have */
	size_t n_lines;
};

enum report_inconclusive { REPORT_SKIP, REPORT_PASS, REPORT_FAIL };

/* NULL with *err: a file cannot be read, too many of them. */
struct report *report_create(char *const *path, size_t n, struct err *err);
void report_destroy(struct report *r); /* NULL is fine */
/* The first file that was cut short (no footer), or NULL. */
const struct report_file *report_cut_short(const struct report *r);

struct report_plots; /* report_plot.h */
/* plots NULL: tables only, and `why` says so on the page (NULL: nothing is said). */
void report_html(const struct report *r, FILE *f, const struct report_plots *plots, const char *why);
void report_md(const struct report *r, FILE *f);
void report_csv(const struct report *r, FILE *f);
void report_junit(const struct report *r, FILE *f, enum report_inconclusive undecided);

/* ---- shared by the formats ------------------------------------------------------------------------------------------ */

/* "FAIL", "PASS", "INCOMPLETE", "CUT SHORT", by the footer. */
const char *report_word(const struct report_file *f);
/* Cells of a file that a person must look at (failed, undecided, slower where timing is no gate; waived too, if asked for), those of one kernel that
 * say the same but for its numbers together. Up to REPORT_APART of them are worth a line each. In the arena; returns how many. */
struct report_look {
	size_t *line; /* indices of lines */
	size_t n, cap;
};
enum { REPORT_APART = 3 };
size_t report_looks(const struct report *r, size_t file, bool waived, struct report_look **out);
/* The kinds of what a cell can be, each with a word and a colour of its own in every format. */
enum report_kind {
	REPORT_FAILED, /* the kernel does what it must not (an xpass too) */
	REPORT_INVALID, /* what was measured cannot be believed: nothing is said of the kernel */
	REPORT_UNDECIDED,
	REPORT_WAIVED,
	REPORT_SKIPPED,
	REPORT_PASSED,
	REPORT_KINDS
};
enum report_kind report_kind(const struct row *row);
const char *report_tone(enum report_kind k); /* the class of its colour */
bool report_failed(const struct row *row); /* row NULL: false */
bool report_invalid(const struct row *row);
/* A status as people read it, here and in the terminal: "undecided" for inconclusive, "waived" for xfail. The record's own words are for machines. */
const char *report_status_word(enum cell_status s);
/* Text of the cell's reason, or of its first bad finding; "" where there is none. */
const char *report_reason(const json_t *cell);
/* "t_q=4,kv=2048" */
void report_point(FILE *f, const json_t *cell);
/* Of a ratio check over cells: "accumulator/mmq.q8_0/wide/m=16: f32 over s32". */
void report_aggregate_name(FILE *f, const json_t *aggregate);
/* "shipped" and "served"; "base" and "head" where every file is of two builds (assay ab). Where ratio checks were timed, which serve nothing:
 * the arm that the ratios are over ("yardstick" where they are over several), and "compared". */
const char *report_yardstick(const struct report *r);
const char *report_judged(const struct report *r);
/* The arm that a cell's ratio is of: what is served, or what a ratio check compares. NULL: none. */
const char *report_judged_arm(const struct row *row);
/* Ratio and interval of an arm as every part of a report shows them: those of the verdict for the judged arm, else those of its summary. */
struct report_ratio {
	double ratio, lo, hi; /* NAN where there is none */
};
struct report_ratio report_arm_ratio(const struct row *row, const json_t *arm);
/* The bar of a ratio check: "at least +10 pp", "" where it has none. */
void report_bar(char buf[64], const json_t *aggregate);
/* What the bar is held against, "-23.4 pp", the lower end of its mean; "" without a bar. */
void report_bar_end(char buf[64], const json_t *aggregate);
/* Why a ratio check is judged as it is, a sentence; never empty where it has a bar or is invalid. */
void report_bar_why(char buf[600], const json_t *aggregate);
/* An interval of ratios as "0.742 .. 0.755", "-" where there is none. */
void report_interval(char buf[64], double lo, double hi);
/* report_controls.c: what the ratios of a file rest on, as a table. */
void report_controls_md(FILE *f, const struct report_file *file);
/* The arm of that name in a cell, or NULL. */
const json_t *report_arm(const json_t *cell, const char *name);

#endif
