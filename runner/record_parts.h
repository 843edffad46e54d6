/* record_parts: what record_*.c share. A view is a record opened for judging: its arms with their samples as doubles. */
#ifndef ASSAY_RECORD_PARTS_H
#define ASSAY_RECORD_PARTS_H

#include "record.h"

struct arm_view {
	const char *name, *role;
	json_t *arm; /* the arm's object in the record; borrowed */
	bool unsupported;
	double *t; /* n_rounds samples, NAN where dropped; NULL where the arm has none at all */
};

struct cell_view {
	json_t *cell; /* borrowed */
	struct arm_view *arm;
	int n_arms, n_rounds;
	const struct arm_view *shipped, *selected, *null; /* NULL: not in the record */
	double *pool;
};

/* Opens a record. False out of memory only; close it in any case. */
bool record_view_open(struct cell_view *v, json_t *cell);
void record_view_close(struct cell_view *v);
const struct arm_view *record_view_arm(const struct cell_view *v, const char *name); /* NULL: none; name may be NULL */
/* The rounds that both arms have, as ln(a / b), into d; the number of them. */
int record_view_pair(const struct cell_view *v, const struct arm_view *a, const struct arm_view *b,
		     double d[STATS_MAX_ROUNDS]);

/* x, or null where x is not finite. New reference. */
json_t *record_real(double x);
/* The text, or null where there is none or it is no UTF-8. New reference. */
json_t *record_text_or_null(const char *s);
/* Members that may be missing or null. Text is borrowed. */
const char *record_text(const json_t *object, const char *key);
double record_number(const json_t *object, const char *key, double otherwise);
bool record_true(const json_t *object, const char *key);
/* The samples of the arm of that name in a list of arms ({name, samples_ns}); NULL: none. Borrowed. */
json_t *record_samples(const json_t *arms, const char *name);

/* What judging reads of a case's timing, as the record's "judge" has it. New reference. */
json_t *record_judge_settings(const struct timing *t);
/* The judge's rule as the record states it; tau from the environment where the record leaves it open. */
void record_rule(const json_t *cell, const struct record_env *env, struct judge_rule *out);

/* How many of n rounds an interval may use, and its cut, where the cell's own judging decided when to stop: the last look's rounds and the looks'
 * cut, which is wider than one look's. A fixed number of rounds is one look. */
int record_cut(const json_t *cell, int n, int *cut);

/* Writes "timing" and every arm's summary. Returns the timing verdict and its reason. */
struct timing_outcome {
	enum timing_verdict verdict;
	enum timing_reason reason;
};
struct timing_outcome record_judge_timing(json_t *cell, const struct record_env *env, bool more_to_come);
/* Writes "status" and "reason" from the findings, the timing outcome and the waiver. */
enum cell_status record_judge_status(json_t *cell, const struct record_env *env, struct timing_outcome t);
/* A sentence about the timing verdict, for `reason`. New string (free it), NULL where there is nothing to say. */
char *record_timing_text(const json_t *cell, struct timing_outcome t);
/* Writes each arm's summary against shipped. */
void record_summaries(const struct cell_view *v);

#endif
