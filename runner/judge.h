/* judge: samples -> verdicts, as spec'd in docs/method.md. Pure: no device, no file, no clock. The executor asks it at each look
 * whether to go on; the supervisor and `rejudge` replay the same looks from the stored samples and get the same answer. */
#ifndef ASSAY_JUDGE_H
#define ASSAY_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "settings.h"
#include "stats.h"

/* What timing says of one cell. */
enum timing_verdict {
	TV_NONE, /* no timing was asked for */
	TV_PASS,
	TV_SUSPECT, /* lo > ln m: to be confirmed */
	TV_REGRESSION, /* confirmed, or confirm: none, or estimator mean/median over the margin, or arm not timed */
	TV_INCONCLUSIVE,
	TV_INVALID,
	TV_N
};
enum timing_reason {
	TR_NONE,
	TR_ROUNDS, /* max_rounds reached */
	TR_BUDGET, /* the time budget cut it */
	TR_RESOLUTION, /* B above 32 */
	TR_UNCONFIRMED, /* a suspect that no second process has looked at */
	TR_NOT_CONFIRMED, /* the second process did not agree */
	TR_BIASED, /* the null arm excludes 1 */
	TR_NOISY, /* the run is noisy */
	TR_NOT_TIMED, /* the table names an arm that is not timed */
	TR_TRIVIAL, /* the served arm is the shipped one */
	TR_TOO_FEW, /* rounds were dropped below the first look */
	TR_THROTTLED,
	TR_SHARED,
	TR_IMPLAUSIBLE,
	TR_CONFOUNDED,
	TR_SCRUB,
	TR_CLOCK,
	TR_N
};
const char *judge_verdict_name(enum timing_verdict v); /* "pass" */
const char *judge_reason_name(enum timing_reason r); /* "unconfirmed" */
enum timing_verdict judge_verdict_of(const char *name); /* TV_N: unknown */

struct judge_rule {
	enum estimator estimator;
	double fail, warn; /* 0.05; warn < 0: none */
	int64_t floor_ns;
	double alpha;
	int rounds; /* > 0: fixed n */
	int min_rounds, max_rounds;
	enum confirm_kind confirm;
	double tau; /* ln */
};

/* Rounds of two arms, nanoseconds as doubles (a sample may be the mean of B launches). NAN in either: the round is dropped. */
struct judge_pair {
	const double *arm, *shipped;
	int n;
};

struct judge_result {
	enum timing_verdict verdict;
	enum timing_reason reason;
	struct interval iv; /* of ln ratio, at the deciding look */
	double ratio_estimator; /* the ratio the estimator names: exp(iv.estimate), mean over mean, or median over median */
	double ln_margin; /* ln m */
	bool warned; /* passes, but above the warn level */
	int rounds_more; /* undecided: rounds that would probably settle it, by the half width's 1/sqrt(n); -1: none would */
};

/* In the null arm's test and in B, ln m counts as at least this. */
#define JUDGE_LEAST_LN_MARGIN 0.005

/* m = max(1 + f, 1 + floor/t_shipped), in ln. t_shipped_ns: median of the shipped arm. */
double judge_ln_margin(double fail, int64_t floor_ns, double t_shipped_ns);

/* Replays the looks up to p->n rounds (the first STATS_MAX_ROUNDS that were not dropped). done may be NULL; true: no further round is
 * wanted. rule->rounds > 0 is one look at the fixed-n cut. A sample of no length is inconclusive(resolution). The margin's
 * absolute floor is taken of the shipped arm's median at that look, so that a replay sees what the look saw. */
void judge_paired(const struct judge_pair *p, const struct judge_rule *rule, struct judge_result *out, bool *done);
/* mean and median: the seeds' rule over the first `rounds` (0: all up to max_rounds), with the paired interval beside it. Fewer rounds
 * than asked for are inconclusive(too_few). */
void judge_seed(const struct judge_pair *p, const struct judge_rule *rule, struct judge_result *out, bool *done);

struct judge_null {
	struct interval iv;
	bool biased;
	double noise; /* 1.4826 MAD(z) / sqrt 2 */
};
void judge_null_arm(const struct judge_pair *null_pair, double ln_margin, double tau, struct judge_null *out);

/* The tail flag: rounds in which one of the two exceeds its own median by 5 %. */
struct judge_tail {
	int arm_only, shipped_only;
	double p;
	bool flagged;
};
void judge_tail(const struct judge_pair *p, struct judge_tail *out);

/* Rounds of the first look, or all of them where their number is fixed. */
int judge_first_look(const struct judge_rule *rule);

/* Launches a sample: ceil(4 q / (t ln m)); > 32: inconclusive(resolution). */
int judge_batch(double tick_ns, double t_ns, double ln_margin);

/* What a launch has to do, and the highest rates of this process: nothing is done in less time. Unknown or irrelevant: 0 or NAN. */
struct judge_work {
	double cold_bytes, bytes_per_s; /* what has to come from memory between start and stop */
	double flop, flop_per_s;
};
/* Whether it cannot have been done in that time. Of a time that is not known (NAN), or work of which nothing is, nothing is implausible. */
bool judge_implausible(const struct judge_work *w, double seconds);

/* Confirmation of suspects over a run. */
int judge_confirm_rounds(int n_screen); /* clamp(2 n, 32, 64) */
struct judge_suspect {
	const double *d; /* ln ratios of the fresh process, n of them */
	int n;
	double ln_margin;
	double tau;
	double p; /* out */
	double estimate; /* out */
	bool confirmed; /* out */
};
double judge_tau_guard(double tau); /* how far beyond ln m a confirmed estimate must be: 1.645 sqrt(2) tau */
void judge_confirm(struct judge_suspect *s, int n); /* Holm over them at 0.05, and the tau guard */

/* Noisy run: n_biased of n_cells reaches the binomial point (rate 1.2 %, one run in a hundred by chance): 4 of 48. */
bool judge_noisy(int n_biased, int n_cells);

/* The ratio check's interval over cells, at +-1.96 standard errors: NAN where a cell's error is unknown. Cells without an estimate
 * (weighted: without weight or times) are left out; n says how many were in. */
struct judge_ratio_cell {
	double estimate, se, weight;
	double of_ns, over_ns;
}; /* ln; weight NAN: none */
struct judge_aggregate {
	int n;
	double ratio, lo, hi;
};
void judge_geomean(const struct judge_ratio_cell *c, int n, struct judge_aggregate *out);
void judge_weighted(const struct judge_ratio_cell *c, int n, struct judge_aggregate *out);

#endif
