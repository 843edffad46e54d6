/* diff_parts: what diff*.c share: the memory of a comparison. */
#ifndef ASSAY_DIFF_PARTS_H
#define ASSAY_DIFF_PARTS_H

#include "diff.h"
#include "record.h"

enum diff_class { DC_OK, DC_FAILING, DC_TIME_INVALID, DC_SKIP, DC_WAIVED };

enum diff_arm_flag {
	DA_IN_HEAD = 1 << 0,
	DA_BITS = 1 << 1, /* digests known on both sides, and different */
	DA_SAME_CODE = 1 << 2, /* artifact hashes known on both sides, and equal */
	DA_OTHER_CODE = 1 << 3, /* known, and different */
	DA_BAD_BASE = 1 << 4, /* a check of this arm failed there */
	DA_BAD_HEAD = 1 << 5
};

/* An arm of a cell: location y of ln t, v its squared standard error (mean over processes), r and rv the same of ln(t / t_shipped). NAN: none. */
struct diff_arm {
	uint64_t out; /* the base's output digest, 0: none */
	uint32_t code; /* the base's artifact, 0: unknown */
	float y[2], v[2], r[2], rv[2];
	uint16_t name; /* in arm_name */
	uint16_t spills[2];
	uint8_t regs[2]; /* 255: that or more; 0: unknown */
	uint8_t processes[2];
	uint8_t role; /* enum cell_arm_role */
	uint8_t flags;
};

struct diff_cell {
	uint32_t prefix; /* word: suite/case/kernel/geometry/data */
	uint32_t tail; /* offset in text: the rest of the id */
	uint32_t arm; /* the first of its arms */
	uint32_t line[2]; /* 0: not there */
	uint32_t params, data, dtypes; /* hashes of the base's; 0: none */
	uint32_t conditions; /* word: how the base was timed */
	uint32_t why; /* word: of its state */
	uint32_t times; /* word: why no times are compared; 0: they are */
	float floor_ns; /* the head's */
	float null_r, null_rv; /* the base's null arm */
	uint8_t n_arms;
	uint8_t status[2], class[2];
	uint8_t state; /* enum diff_state; DIFF_SAME: nothing to say of the cell as a whole */
	uint8_t why_arm; /* arm + 1 that `why` is about; 0: the cell */
};

/* Texts, each once. */
struct diff_words {
	char **word;
	uint32_t n, cap;
	uint32_t *slot; /* index + 1 */
	uint32_t n_slots;
};

/* An arm that the base does not have. */
struct diff_extra {
	uint32_t cell;
	uint16_t name;
};

/* How far apart two outputs are, where the records tell. */
struct diff_ulp {
	uint32_t cell;
	uint8_t arm;
	double ulp;
};

/* A and B of the same code in both files: what they differ by is drift and noise. */
struct diff_control {
	float change, v; /* v: squared standard errors of both */
};

struct diff_controls {
	struct diff_control *c;
	size_t n, cap;
};

struct diff {
	struct diff_options o;
	json_t *header[2];
	struct diff_words words; /* 0 is "" */
	char *text; /* tails of ids */
	size_t n_text, cap_text;
	struct diff_cell *cell;
	size_t n_cells, cap_cells;
	uint32_t *place; /* by id: cell + 1 */
	size_t n_places;
	struct diff_arm *arm;
	size_t n_arms, cap_arms;
	struct diff_extra *extra;
	size_t n_extra, cap_extra;
	struct diff_ulp *ulp;
	size_t n_ulp, cap_ulp;
	uint32_t *order; /* cells in the order of the head */
	size_t n_order, cap_order;
	struct diff_controls shipped, null, sentinel;
	json_t *sentinels_end[2], *processes[2];
	int64_t resumed[2], n_side[2], filtered_out, throttled[2], limited[2];
	bool noisy[2], footer[2];
	double not_run[2]; /* cells that the footer says were not come to */
	char refusal[8][160], warning[16][200];
	int n_refusals, n_warnings;
	bool other_device;
	struct diff_summary sum;
	double z_reject; /* Holm: a comparison with |z| at least this is rejected; INFINITY: none is */
	uint32_t largest_same; /* cell + 1; 0: none */
	double z_first; /* what the first of them needs */
	double var_drift, tau2, tau2_ratio;
};

/* Index of a word, made where it is new. UINT32_MAX out of memory. */
uint32_t diff_word(struct diff_words *w, const char *text);
void diff_words_free(struct diff_words *w);
uint64_t diff_hash(const void *data, size_t n);
/* Grows a list so that one more fits. */
bool diff_grow(void *list_at, size_t n, size_t *cap, size_t size);
bool diff_control_add(struct diff_controls *c, double change, double v);

/* diff_cell.c: one cell record of a side. */
bool diff_take_cell(struct diff *d, enum diff_side side, const json_t *record, int64_t line, struct err *err);
/* diff_conditions.c. Hashes are 0 where the record has nothing of the kind. */
uint32_t diff_params_hash(const json_t *record);
void diff_data_hashes(const json_t *record, uint32_t *data, uint32_t *dtypes);
/* "seed|clock|scrub|…": what a cell was timed with. */
void diff_conditions_text(const json_t *record, char *out, size_t cap);
/* The first field in which they differ, from field `first` (0: the seed), as a sentence. A field that one side lacks does not differ. */
bool diff_conditions_differ(const char *base, const char *head, int first, char *why, size_t cap);
/* diff_arm.c: the arms of a record, in short. */
struct diff_reading {
	const char *name;
	enum cell_arm_role role;
	uint64_t out;
	uint32_t code;
	double y, v, r, rv;
	unsigned regs, spills;
	int processes;
	bool bad;
};
enum { DIFF_MAX_ARMS = 64 };
/* Returns how many; at most DIFF_MAX_ARMS. Names live in the record. most: of so many processes, the first; 0: of all. */
int diff_read_arms(const json_t *record, int most, struct diff_reading out[DIFF_MAX_ARMS]);

/* diff_headers.c: refusals and warnings of two headers. */
void diff_compare_headers(struct diff *d);

/* diff_judge.c: drift, tau and the cut of Holm, into d. False out of memory. */
bool diff_weigh(struct diff *d);

/* What a comparison of an arm's times says. False: there is none. */
struct diff_compared {
	double change, se, p; /* ln */
	enum diff_state state;
	int more_processes;
};
bool diff_compare_arm(const struct diff *d, const struct diff_cell *c, const struct diff_arm *a,
		      struct diff_compared *out);
/* Whether the times of a cell are there to be compared, as drift or as a change. */
bool diff_has_times(const struct diff_cell *c);
/* Whether this arm's times can be held against each other at all. */
bool diff_arm_timed(const struct diff *d, const struct diff_cell *c, const struct diff_arm *a);

/* diff_rows.c: the rows of a cell before they have texts. arm: index in the cell; -1: the whole cell; -2 - k: extra[k]. */
struct diff_brief {
	enum diff_state state;
	int arm;
	bool timed;
	struct diff_compared compared;
	uint32_t why; /* word, or 0 */
	const char *text; /* or a static reason, or NULL */
};
enum { DIFF_MAX_BRIEFS = 3 * DIFF_MAX_ARMS + 4 };
int diff_briefs(const struct diff *d, uint32_t cell, struct diff_brief out[DIFF_MAX_BRIEFS]);
void diff_sort_side_lists(struct diff *d);

#endif
