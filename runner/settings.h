/* settings: how a cell is timed and checked, after all layers have spoken. Plain data. Defaults stand in the grammar's
 * descriptor (grammar.c), nowhere else. */
#ifndef ASSAY_SETTINGS_H
#define ASSAY_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum clock_kind { CLOCK_DEVICE, CLOCK_LAUNCH_TO_COMPLETION };
enum estimator { EST_PAIRED, EST_MEAN, EST_MEDIAN };
enum scrub_kind { SCRUB_AUTO, SCRUB_BYTES, SCRUB_NONE, SCRUB_ROTATE };
enum order_kind { ORDER_RANDOM, ORDER_FIXED, ORDER_LIST };
enum confirm_kind { CONFIRM_FRESH, CONFIRM_NONE };

enum { MAX_LIST = 16 };

struct timing {
	enum clock_kind clock;
	enum estimator estimator;
	int rounds; /* > 0: exactly so many; 0: the adaptive looks up to max_rounds */
	int min_rounds, max_rounds; /* adaptive (paired): first and last look allowed */
	double alpha; /* one-sided, over all looks: 0.05 0.025 0.01 0.005 0.001 */
	int warmup_launches; /* of each arm */
	int64_t warmup_ns; /* and at least so long, once a process and after an idle gap */
	enum scrub_kind scrub;
	int64_t scrub_bytes; /* SCRUB_BYTES: bytes read (and on cuda as many written) */
	int rotate_copies; /* SCRUB_ROTATE: copies of the inputs, 0: as many as fill four last-level caches */
	enum order_kind order;
	const char *order_list[MAX_LIST]; /* ORDER_LIST: arm names, NULL-terminated */
	bool null_arm;
	enum confirm_kind confirm;
	int batch; /* launches per sample, 0: from the tick (judge.md, Resolution) */
	int64_t cell_budget_ns; /* 0: none. Timing of a cell stops there: inconclusive(budget) */
	int64_t suite_budget_ns; /* 0: none. Cells after it are checked but not timed further */
	int64_t timeout_ns; /* no sign of life for so long: the worker is killed, `timeout` */
	int retries; /* of a throttled or shared window */
	int threads; /* host; 0: cores - 1, at least 1 */
	double tau; /* ln; < 0: from the store, else 0.0025 */
};

enum check_kind {
	CHECK_IDENTITY,
	CHECK_REPEAT,
	CHECK_INVARIANT,
	CHECK_REFERENCE,
	CHECK_REGRESSION,
	CHECK_RATIO,
	N_CHECKS
};

struct check_identity {
	const char *against;
	const char *arms[MAX_LIST];
};
struct check_repeat {
	int launches;
	int processes;
	bool addresses;
	const char *arms[MAX_LIST];
};
struct check_invariant {
	const char *rows; /* the parameter whose rows are rearranged */
	int64_t leading[MAX_LIST]; /* relaunch with so many leading rows; n_leading of them */
	int n_leading;
	bool permute, neighbours;
	const char *arms[MAX_LIST];
};
struct check_reference {
	const char *arms[MAX_LIST];
	bool adapter; /* the adapter's derived bound */
	double abs, rel; /* else |arm - ref| <= abs + rel * |ref| */
	int64_t sample_rows; /* 0: all */
};
struct check_regression {
	const char *select;
	const char *against;
}; /* select: a table set, or an arm's name */
struct check_ratio {
	const char *of, *over;
	bool geomean, weighted;
	bool agree_over_data;
	double agree_tolerance; /* ratio difference */
	const char *may_differ[MAX_LIST];
	double equal_issue_interval; /* relative; < 0: not asked */
	bool has_bar;
	double bar_at_least; /* ratio: +10pp is 1.10 */
};

/* Bit k of `on` says that check k is asked for. An arm list that is empty (first entry NULL) means: every arm it applies to. */
struct checks {
	uint32_t on;
	struct check_identity identity;
	struct check_repeat repeat;
	struct check_invariant invariant;
	struct check_reference reference;
	struct check_regression regression;
	struct check_ratio ratio;
};

#endif
