/* text_parts: what text_*.c share. */
#ifndef ASSAY_TEXT_PARTS_H
#define ASSAY_TEXT_PARTS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "arena.h"
#include "record.h"
#include "text.h"

enum {
	TEXT_MAX_AXES = 8,
	TEXT_MAX_BLOCKS = 12,
	TEXT_MAX_LINES = 20,
	TEXT_MAX_ROWS = 16,
	TEXT_MAX_ARM_NAMES = 48,
	TEXT_ALIKE_MAX = 600
};
enum { TEXT_MAX_DISBELIEFS = 8, TEXT_MAX_PLACES = 8 };

/* Names of the axes of a cell, one object per distinct list. */
struct axis_names {
	const char *name[TEXT_MAX_AXES];
	int n;
};

/* A cell, in short. Strings are interned: equal ones are one pointer. Times NAN where not measured. */
struct row {
	const char *case_id, *kernel, *geometry, *data;
	const struct axis_names *axes;
	double at[TEXT_MAX_AXES];
	int64_t plan_index;
	enum cell_status status;
	bool gating, timed, trivial, warned, tail, diagnostic_slower, is_ratio, judged, within, undecided, invalid;
	const char *selected, *best; /* best: the fastest arm by its estimate */
	double shipped_ns, selected_ns, ratio, lo, hi, best_ratio, best_ns, peak, margin, floor_ns;
	/* Of a ratio check: its arms, the parameters that are no axis ("5120x12288") and their names, what is wrong with the cell (NULL: nothing). */
	const char *of, *over, *shape, *shape_names, *trouble;
	double of_tflops, over_tflops;
	int n;
};

/* What one check said over the run. */
struct tally {
	int64_t cells, failed_cells, findings;
	int64_t waived_cells; /* of the failed */
	int64_t launches, launches_differ;
	double bound; /* upper limit of the rate of a difference, where nothing differed */
	double worst; /* of allowed, reference */
	int64_t rows, rows_of;
	int64_t controls; /* positive controls that differed */
	const char *arm[TEXT_MAX_ARM_NAMES]; /* arms that passed wherever they were checked */
	bool arm_failed[TEXT_MAX_ARM_NAMES];
	int64_t arm_findings[TEXT_MAX_ARM_NAMES]; /* identity and reference: a finding a cell, so cells */
	int n_arms;
	const char *kind[4];
	int n_kinds;
	const char *against;
	bool against_differs;
};

enum text_check {
	TC_DATA,
	TC_MEMORY,
	TC_IDENTITY,
	TC_REPEAT,
	TC_INVARIANT,
	TC_REFERENCE,
	TC_RUN,
	TC_GRAPH,
	TC_PLAN,
	TC_CENSUS,
	TC_N
};

/* Advice: an arm that is faster than the served one, folded over cells. */
struct advice {
	const char *kernel, *arm, *selected;
	int64_t cells;
	double ln_sum;
};

struct block {
	char *text; /* whole lines */
	int64_t plan_index;
	enum cell_status status;
	/* Of a line: what those that say the same but for numbers share (NULL: it stands by itself), and how many more there are. */
	const char *alike, *kernel;
	int64_t more;
};

/* Cells of ratio checks that one control spoils alike. Strings are interned. */
struct disbelief_place {
	const char *case_id, *kernel;
	int64_t cells;
};
struct disbelief {
	const char *cause; /* "confounded: what moved" */
	const char *first, *rerun; /* of its first cell */
	enum cell_status status;
	int64_t cells;
	struct disbelief_place place[TEXT_MAX_PLACES];
	int n_places;
};

struct text {
	struct text_options o;
	struct arena *arena;
	json_t *header, *footer;
	json_t *aggregate; /* list */
	bool pair; /* two builds (assay ab): base/X and head/X, and nothing is served */
	struct row *row;
	size_t n_rows, cap_rows;
	const char **word; /* interned strings: open addressing */
	size_t n_words, cap_words;
	struct axis_names **axes;
	size_t n_axes, cap_axes;
	struct tally tally[TC_N];
	struct block block[TEXT_MAX_BLOCKS];
	int n_blocks;
	struct block line[3 * TEXT_MAX_LINES]; /* one-line findings: failures past the blocks, undecided, skipped */
	int n_lines;
	int64_t lines_left_out;
	struct disbelief disbelief[TEXT_MAX_DISBELIEFS];
	int n_disbelief;
	struct advice advice[TEXT_MAX_LINES];
	int n_advice;
	int64_t by_status[ST_N], rounds, null_cells, null_biased, kept_right;
	double noise_lo, noise_hi;
	const char *limit; /* what held the clock of n_limited cells; NULL: nothing */
	int64_t n_limited;
	double preemptions,
		preempted_s; /* of cells on the host: how often a CPU was taken away, and in what time of rounds */
	const char *warned_id;
	int64_t warned, tails, gated, timed_cells;
};

/* text_util.c */
const char *text_intern(struct text *t, const char *s); /* NULL stays NULL */
const struct axis_names *text_axes(struct text *t, const json_t *point, double at[TEXT_MAX_AXES]);
const char *text_string(const json_t *j); /* "" where it is no string */
const char *text_get(const json_t *j, const char *key); /* "" where missing */
double text_number(const json_t *j, const char *key); /* NAN where missing or null */
int64_t text_integer(const json_t *j, const char *key); /* 0 where missing */
int text_columns(const char *s); /* characters of UTF-8 */
/* Writes words with a hanging indent: lines of at most width columns. The first line begins at column `indent` already. */
void text_wrap(FILE *f, int indent, int width, const char *s);
/* The same where the first line begins at column col. */
void text_wrap_at(FILE *f, int col, int indent, int width, const char *s);
/* "   label    " and wrapped text, a newline at the end. */
void text_field(FILE *f, int width, const char *label, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
enum text_colour { TEXT_PLAIN, TEXT_RED, TEXT_YELLOW, TEXT_GREEN, TEXT_BOLD };
void text_paint(const struct text *t, FILE *f, enum text_colour c, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
char *text_us(char buf[24], double ns); /* "17.8", "-" where unknown */
char *text_ratio(char buf[24], double ratio); /* "1.012" */
char *text_percent(char buf[24], double fraction); /* "+5.8 %" */
char *text_count(char buf[32], int64_t n); /* 1234567 as 1,234,567 */
char *text_seconds(char buf[24], double ns); /* "12.4 s", "3 min 5 s" */
/* Arm names in short: split=2, split=4 and tiled as "split=2,4, tiled". */
void text_arm_list(FILE *f, const char *const *name, int n);
char *text_number_text(char buf[32], double x); /* an axis value */

/* text_cell.c */
void text_take_cell(struct text *t, const json_t *cell);
const char *text_yardstick(const struct text *t); /* "shipped"; "base" of two builds */
const char *text_short_id(const json_t *cell); /* without the suite's name, which every line would repeat */
void text_upper(const char *s, char out[24]);
/* What cells that say the same share: status, case, kernel and the reason but for its numbers, which are each cell's own. */
void text_alike_key(const struct row *r, const char *reason, char key[TEXT_ALIKE_MAX]);
bool text_finding_is_bad(const json_t *finding);
/* text_block.c */
void text_add_block(struct text *t, const struct row *r, const json_t *cell);
void text_add_line(struct text *t, const struct row *r, const json_t *cell, const char *word);
/* For a regression: where else the kernel is slower, and where it is not. Prints a field of the block. */
void text_same_in(struct text *t, const struct block *b);
/* text_disbelief.c */
bool text_disbelieve(struct text *t, const struct row *r, const json_t *cell); /* whether it took the cell */
void text_disbeliefs(struct text *t);
/* text_verbose.c */
void text_verbose_cell(struct text *t, const struct row *r, const json_t *cell);
/* text_banner.c */
void text_banner(struct text *t);
/* text_rows.c */
void text_serving_table(struct text *t);
const char *text_interval_title(const struct text *t); /* "97.5 % interval" */
int text_row_by_plan(const void *a, const void *b); /* for qsort of rows */
/* text_ratio.c */
void text_ratio_tables(struct text *t);
/* text_end.c */
void text_summary(struct text *t);
void text_last_line(struct text *t);

#endif
