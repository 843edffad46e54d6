/* diff: two verdict files, compared cell by cell. Pure: records of the base are taken first, then those of the head, one at a time; a cell is
 * kept as some fifty bytes and as many for each arm, so that files of a million cells fit. Rows are made when they are asked for.
 * docs/diff.md says how they are judged. */
#ifndef ASSAY_DIFF_H
#define ASSAY_DIFF_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "select.h"

/* In the order in which people are told. */
enum diff_state {
	DIFF_FAILS, /* ! newly fails */
	DIFF_SLOWER, /* + */
	DIFF_UNDECIDED, /* ? */
	DIFF_INCOMPARABLE, /* x */
	DIFF_BITS, /* b */
	DIFF_MISSING, /* < only in base */
	DIFF_ADDED, /* > only in head */
	DIFF_FASTER, /* - */
	DIFF_FIXED, /* * */
	DIFF_WAIVED, /* w */
	DIFF_SAME, /* ~ */
	DIFF_N
};
char diff_letter(enum diff_state s);
const char *diff_state_name(enum diff_state s); /* "slower" */

struct diff_options {
	double least; /* a change below this is none: 0.01 */
	bool allow_device_change; /* times of another device are shown and not judged */
	int processes; /* so many of each side's processes are held against each other, no fewer and no more; 0: what the files have */
	const struct selector *filter; /* NULL: every cell */
};

enum diff_side { DIFF_BASE, DIFF_HEAD };

struct diff;
struct diff *diff_create(const struct diff_options *o); /* o->filter must outlive it; NULL out of memory */
void diff_destroy(struct diff *d); /* NULL is fine */

/* Takes the next record of a side: all of the base, then all of the head. line: where it stands. False with *err where an id is double
 * (both lines named) or memory ran out. */
bool diff_take(struct diff *d, enum diff_side side, const json_t *record, int64_t line, struct err *err);
/* After the last record. False out of memory. */
bool diff_judge(struct diff *d, struct err *err);

/* One row. Texts live until the next row. Times and ratios are NAN where there are none. */
struct diff_row {
	enum diff_state state;
	const char *id; /* of the cell */
	const char *kernel, *geometry, *data, *point; /* its parts; point: "kv=2048,t_q=4" */
	const char *arm; /* NULL: the whole cell */
	double base_ns, head_ns; /* locations; not corrected for drift */
	double ratio, lo, hi; /* head over base with drift removed, and its 97.5 % ends */
	double p; /* two-sided, before Holm */
	bool of_ratio; /* the clocks are not comparable: what changed is the ratio to shipped, and `ratio` is its change */
	int more_processes; /* `?`: so many more on each side would settle it; -1: none would; else 0 */
	const char *why; /* NULL: nothing to say */
};
typedef void diff_row_fn(void *ctx, const struct diff_row *row);
/* Every row of this state (DIFF_N: of all states), cells in the order of the head, those only in base after them. */
void diff_rows(const struct diff *d, enum diff_state state, diff_row_fn *f, void *ctx);

/* The rows of the cell whose `~` moved most; none where no times were compared. */
void diff_largest_same(const struct diff *d, diff_row_fn *f, void *ctx);

struct diff_summary {
	int64_t cells[DIFF_N]; /* cells with such a row; DIFF_SAME: cells with no other */
	int64_t rows[DIFF_N];
	int64_t base_cells, head_cells, all_cells; /* all: in either */
	int64_t compared; /* in both, and status and bits were held against each other */
	int64_t timed, times_compared; /* of these: with times in either file; with a time or a ratio that was judged */
	int64_t skipped; /* in both files: nothing was measured, so nothing is compared */
	int64_t still_failing; /* fail alike in both: no row but `~` */
	int64_t judged; /* comparisons of times: Holm is over these */
	double geomean; /* over them; NAN where there is none */
	int64_t geomean_cells; /* cells that are in it */
	double drift, drift_se; /* ln; NAN: unknown */
	int64_t controls;
	double spread; /* ln: what the controls differ by among themselves */
	bool clocks_differ; /* absolute times are not comparable; ratios to shipped were compared */
	double tau; /* ln, as used */
	bool tau_assumed, tau_from_controls;
	double resolution; /* half of the comparisons would have shown a change of this size (ratio - 1); NAN */
	double expected_false; /* rows */
	int processes[2], all_processes[2]; /* as used; as in the file */
	bool many_cases, many_geometries, many_data; /* a label has to name them */
	int64_t filtered_out;
	bool unfinished[2]; /* the run did not come to its end: no footer, or one that says so */
};
void diff_summary(const struct diff *d, struct diff_summary *out);
const json_t *diff_header(const struct diff *d, enum diff_side side); /* NULL: none came */
/* What forbids any comparison of times (another device, other threads, …), and what is worth a warning: one sentence each, i = 0, 1, … until
 * NULL. */
const char *diff_refusal(const struct diff *d, int i);
const char *diff_warning(const struct diff *d, int i);

/* Whether nothing could be compared: no cell at all, or cells have times and not one of these was judged. What was compared is then no pass. */
bool diff_nothing(const struct diff_summary *s);
/* Whether what was found is no pass: nothing was compared, or a run did not come to its end. */
bool diff_incomplete(const struct diff_summary *s);
/* The exit status: 1 where a state of the set (bits 1 << state) has a row, 3 where it is incomplete, else 0. */
enum { DIFF_FAIL_ON = 1 << DIFF_FAILS | 1 << DIFF_SLOWER };
int diff_exit(const struct diff *d, unsigned fail_on);

#endif
