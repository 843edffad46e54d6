/* plan: suite x registry -> cells with stable ids, lazily. Nothing is expanded until it is asked for: a plan of 10^6 cells costs
 * what its axes cost. Pure: no device, no file. */
#ifndef ASSAY_PLAN_H
#define ASSAY_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "registry.h"
#include "select.h"
#include "suite.h"

enum cell_arm_role { ROLE_SHIPPED, ROLE_CANDIDATE, ROLE_HEADROOM, ROLE_NULL };

struct cell_arm {
	const char *name; /* "split=4"; unique in the cell */
	enum cell_arm_role role;
	const struct assay_arm *desc;
	int64_t arg;
	const struct env_flip *env;
	int n_env;
	bool graph;
	const char *unsupported; /* NULL, or why it cannot run here: no op on this backend, or the adapter's word */
};

enum { MAX_ARMS = 24 };

/* How the regression check of this cell is to be judged. */
enum selection { SELECT_NONE, SELECT_ARM, SELECT_NOT_TIMED };

/* Everything one cell needs, resolved; self-contained, so that it can be sent to a worker (cell_to_json / cell_from_json).
 * Strings and arrays live in the arena given to plan_cell. */
struct cell {
	int64_t plan_index;
	const char *id; /* suite/case/kernel/geometry/data/axis=value,… */
	const char *suite, *case_id, *kernel_name, *geometry, *data;
	const char *suite_path; /* as the user gave it: for the rerun command */
	const char *rerun_as, *set_words; /* likewise, of struct suite */
	const struct assay_kernel *kernel;
	struct assay_point point;
	struct named_number axis[ASSAY_MAX_PARAMS]; /* what `point` of the record shows: axes in the order declared */
	int n_axes;
	struct cell_arm arm[MAX_ARMS]; /* shipped first; the null arm is the executor's own */
	int n_arms;
	struct distribution dist;
	uint64_t seed;
	double weight; /* NAN: none */
	struct timing timing;
	struct checks checks;
	enum selection selection;
	const char *selected; /* arm name where selection != SELECT_NONE */
	struct mark selected_row; /* table row */
	double margin_fail, margin_warn; /* 0.05; warn < 0: none */
	int64_t margin_floor_ns;
	struct mark margin_mark; /* file NULL: built-in default */
	bool gate; /* by the rigs: timing is a gate here, else a diagnostic */
	struct mark rig_mark;
	const char *waiver, *waiver_expect, *waiver_reason; /* id or NULL */
	const char *waiver_until, *waiver_arm; /* each may be NULL */
	const char *tag[MAX_LIST]; /* NULL-terminated within the array or full */
	const char *skip; /* NULL, or why the whole cell is skipped */
};

/* What a plan needs to know of where it will run: rigs and tables are chosen by it. Keys for selectors: device, backend, cc, host. */
struct plan_target {
	enum assay_backend backend;
	const char *device; /* "NVIDIA H200", or the CPU's model name */
	const char *host;
	int cc; /* 90; 0 on the host */
};

struct plan_filter {
	const struct selector *filter; /* n_filters, any may match; 0: all */
	int n_filters;
	uint32_t checks; /* bits of check_kind to keep; 0: all */
	const char *const *only_ids; /* --rerun-failed: NULL-terminated, or NULL */
	int shard_i, shard_n; /* 1-based; 0/0: no sharding. Round-robin over the filtered, ordered list */
	bool every_table; /* tables that other devices choose are looked at too, at every cell that they may speak for */
	bool elsewhere; /* the run may be on another device: that no table is for this one is a warning */
	bool say_unused; /* warns of margins, waivers, rigs, tables and exclusions that fit no cell on any device */
};

struct plan;

/* Errors that have a place are added to diags, and *err then says how many; an error without one is in *err alone.
 * NULL with a message where the expansion is over the cap, a filter matches nothing (with the nearest words), two margins fit
 * equally, or a table lacks a row. The suite and registry must outlive the plan. */
struct plan *plan_build(const struct suite *s, const struct registry *r, const struct plan_target *t,
			const struct plan_filter *f, struct diags *diags, struct err *err);
void plan_destroy(struct plan *p); /* NULL is fine */

int64_t plan_count(const struct plan *p);
/* Cell i (0-based in the filtered list; cell->plan_index is its index in the whole plan) into *out, memory from a. */
bool plan_cell(const struct plan *p, int64_t i, struct arena *a, struct cell *out, struct err *err);
/* Index in the filtered list of the cell with this id, or -1. */
int64_t plan_find(const struct plan *p, const char *id);
/* sha-256 over the ordered ids of the whole plan, 64 hex digits and a NUL. */
void plan_hash(const struct plan *p, char out[65]);
const struct suite *plan_suite(const struct plan *p);
const struct plan_target *plan_target_of(const struct plan *p);
/* Of case c of the suite, before filters: points of the product, and how many of them `exclude` takes out. */
int64_t plan_case_points(const struct plan *p, int c);
int64_t plan_case_excluded(const struct plan *p, int c);
/* Cells before filters and shards; and cell i of them, as plan_cell. */
int64_t plan_whole_count(const struct plan *p);
bool plan_whole_cell(const struct plan *p, int64_t i, struct arena *a, struct cell *out, struct err *err);
/* What of case c the cells of this plan take part in, after exclusions, filters and the shard; flags by index, memory from a. */
struct plan_seen {
	int64_t cells;
	bool *kernel, *geometry, *data; /* of the case; one flag where it names none */
	bool *value[ASSAY_MAX_PARAMS]; /* of axis i, by the index of the value */
	uint32_t checks; /* bits of check_kind */
};
void plan_case_seen(const struct plan *p, int c, struct arena *a, struct plan_seen *out);
/* Names of the arms that some kernel seen has, in the order of the case, *n of them; memory from a. */
const char *const *plan_case_arms(const struct plan *p, int c, const struct plan_seen *seen, struct arena *a, int *n);
/* Whether a selector's key asks for the device, not for the cell. */
bool plan_key_is_of_target(const char *key);
/* A number as ids and selectors have it: whole numbers in decimal, others in the shortest form that reads back. Returns buf. */
enum { PLAN_NUMBER_MAX = 40 };
const char *plan_number_text(const struct number *n, char buf[PLAN_NUMBER_MAX]);
/* Axes and parameters that a kernel of the suite ignores, for `list`: calls back once each. */
void plan_ignored(const struct plan *p, void (*say)(void *ctx, const char *kernel, const char *name), void *ctx);
/* Parameter values as text, waivers that matched no cell: counts per waiver index. n_waivers of them, owned by the plan. */
const int64_t *plan_waiver_hits(const struct plan *p);
/* Per waiver: what a cell that its selector matches lacks of what it is for (such a cell is no hit), or NULL. Owned by the plan. */
const char *const *plan_waiver_lacks(const struct plan *p);

/* A cell as sent to a worker; round trip exact. The registry resolves kernel and arms. */
json_t *cell_to_json(const struct cell *c);
bool cell_from_json(const json_t *j, const struct registry *r, struct arena *a, struct cell *out, struct err *err);
/* A select_get over a `struct cell`: kernel, case, geometry, data, suite, id, tag, arm (several), every parameter. */
select_get cell_get;

#endif
