/* plan_space: inside of the plan (plan*.c only). The cells of a case are the product of kernels, geometries, distributions and axes,
 * numbered with the last axis fastest; nothing of it is stored. A *group* is what is left when the axes are taken out: one kernel,
 * one geometry, one distribution. Selectors are compiled per group, so that a scan over a million cells asks bits, not strings. */
#ifndef ASSAY_PLAN_SPACE_H
#define ASSAY_PLAN_SPACE_H

#include "plan.h"

enum { MAX_AXES = ASSAY_MAX_PARAMS };

/* A set of cells by number, with ranks; word NULL: all of them. */
struct cell_set {
	uint64_t *word;
	int64_t *rank; /* members before each 512 */
	int64_t n, count;
};
bool cell_set_create(struct cell_set *s, int64_t n, struct err *err); /* empty set of n */
void cell_set_free(struct cell_set *s);
void cell_set_add(struct cell_set *s, int64_t i);
bool cell_set_has(const struct cell_set *s, int64_t i);
void cell_set_seal(struct cell_set *s); /* after the last add: counts */
int64_t cell_set_rank(const struct cell_set *s, int64_t i); /* members below i */
int64_t cell_set_nth(const struct cell_set *s, int64_t k); /* the k-th member, 0 <= k < count */

/* Arms of one kernel in one case: what does not depend on the point. */
struct kernel_arms {
	struct cell_arm arm[MAX_ARMS];
	int n;
};

struct case_space {
	const struct suite_case *c;
	int index; /* in the suite */
	int64_t first, count; /* numbers of its points in the product */
	int64_t excluded;
	int n_kernels, n_geometries, n_data, n_axes; /* each of the first three at least 1 */
	const struct assay_kernel **kernel;
	struct kernel_arms *arms; /* per kernel */
	int n_digits, digit_size[MAX_AXES], digit_of[MAX_AXES]; /* zipped axes share a digit */
	int64_t group_points;
	const char **text[MAX_AXES]; /* value texts of each axis */
};

struct plan {
	struct arena *arena;
	const struct suite *suite;
	const struct registry *registry;
	struct plan_target target;
	struct case_space *space;
	int n_spaces;
	int64_t n_points;
	struct cell_set whole; /* points that are not excluded */
	struct cell_set chosen; /* of those, what the filter keeps; word NULL: as whole */
	int shard_i, shard_n;
	uint32_t checks; /* bits kept */
	int64_t *waiver_hits;
	const char **waiver_lacks;
};

/* One group, and a point in it. */
struct group {
	const struct plan *plan;
	const struct case_space *space;
	int kernel, geometry, data;
	const struct assay_kernel *desc;
	int64_t first; /* number of its first point */
	int axis_param[MAX_AXES]; /* per axis: index of the parameter, -1: ignored by the kernel */
	int param_axis[ASSAY_MAX_PARAMS]; /* per parameter: index of the axis, -1: constant in the group */
	struct mark param_mark[ASSAY_MAX_PARAMS]; /* of constants: the geometry's line; file NULL: the default */
	struct assay_point base; /* constants; values of axes are put in by group_point */
	struct number constant[ASSAY_MAX_PARAMS];
	char constant_text[ASSAY_MAX_PARAMS][PLAN_NUMBER_MAX];
	int at[MAX_AXES]; /* the point: index of the value of each axis */
};

/* ---- plan_axes.c */
bool space_init(struct plan *p, struct case_space *s, const struct suite_case *c, int index, struct diags *d,
		struct err *err);
/* False with an error in d where a required parameter is missing or out of range. d may be NULL: checked before. */
bool group_init(struct group *g, const struct plan *p, const struct case_space *s, int kernel, int geometry, int data,
		struct diags *d);
void group_seek(struct group *g, int64_t offset); /* sets `at` to the offset-th point of the group */
bool group_next(struct group *g); /* to the next point; false after the last */
void group_point(const struct group *g, struct assay_point *pt);
/* The space and group of a number; sets `at`. */
void plan_locate(const struct plan *p, int64_t number, struct group *g);
const char *group_geometry_name(const struct group *g);
const char *group_data_name(const struct group *g);

/* ---- plan_id.c */
/* The number of the point with this id (also where excluded or filtered out), or -1. */
int64_t plan_number_of(const struct plan *p, const char *id);
/* The text of an id into buf (grown by realloc, *cap its size); returns its length. */
size_t group_id(const struct group *g, char **buf, size_t *cap);
/* A select_get over a struct group at its point. */
select_get group_get;

/* ---- plan_match.c: selectors compiled for a group */
struct match_term {
	int axis; /* >= 0: ok[] by the index of the axis' value; -1: ask the selector */
	const uint8_t *ok;
	struct selector one; /* axis < 0: the one term */
};
struct matcher {
	bool never;
	int n, specificity;
	const struct match_term *term;
};
void matcher_compile(struct matcher *m, const struct selector *s, struct group *g, struct arena *a);
bool matcher_match(const struct matcher *m, const struct group *g);
/* Index of the most specific of n that match at g's point, -1: none. *tie: another one that fits equally, or -1. */
int matcher_best(const struct matcher *m, int n, const struct group *g, int *tie);

/* ---- plan_rules.c: the rules of a suite, all kinds behind one face */
enum rule_kind { MARGIN, WAIVER, RIG, CHOICE, N_RULE_KINDS };
struct rule_list {
	const char *what; /* "margins" */
	const struct selector **match;
	const struct mark *mark;
	int n;
};
struct rules {
	struct rule_list list[N_RULE_KINDS];
	const struct table_set *set; /* of the case's regression check, or NULL */
};
void rules_collect(struct rules *r, const struct suite *s, const struct suite_case *c, struct arena *a);
struct matcher *rules_compile(const struct rule_list *l, struct group *g, struct arena *a);

/* What serving picks at g's point. choice: index of the table in rules->set, -1: none fits. False with *err and the place of it. */
struct pick {
	enum selection selection;
	const char *arm;
	struct mark row;
};
bool rules_pick(const struct group *g, const struct rules *r, int choice, struct pick *out, struct mark *at,
		struct err *err);
/* Every row that names this kernel names an arm of it, also a row that no cell looks up. Errors go to d. */
void rules_check_rows(const struct group *g, const struct table *t, struct diags *d);
/* NULL, or what g's cells lack of what the waiver is for, owned by a: "an arm 'x'; did you mean 'y'?", "a regression check". */
const char *rules_waiver_lacks(const struct group *g, const struct waiver *w, struct arena *a);
/* Margin, waiver, rig, table row and selection of the cell at g's point. False with *err where a rule does not hold. */
bool rules_apply(struct group *g, struct arena *a, struct cell *c, struct err *err);

/* ---- plan_elsewhere.c: the device is not known */
/* The selector without its keys of the device (device, backend, cc, host). */
struct selector selector_anywhere(const struct selector *s, struct arena *a);
struct matcher *rules_open(const struct rule_list *l, struct group *g, struct arena *a); /* of such selectors */
/* Whether rule i may be the one that speaks at g's point, on some device. */
bool rules_may_speak(const struct rule_list *l, const struct matcher *open, int i, const struct group *g);
/* What fits no cell on any device; flags are set as it fits one. */
struct unused {
	bool *rule[N_RULE_KINDS]; /* of the suite; CHOICE: see choice */
	const char **idle; /* per waiver: what a cell that it matches lacks; NULL: it matches none */
	bool **choice, *asked; /* per table set: its choices; whether a case asks for the set */
	bool **exclude; /* per case */
};
void unused_init(struct unused *u, const struct plan *p);
/* lacks: rules_waiver_lacks of each waiver. */
void unused_point(struct unused *u, const struct rules *r, struct matcher *const open[N_RULE_KINDS],
		  const char *const *lacks, const struct group *g);
void unused_say(const struct unused *u, const struct plan *p, struct diags *d); /* as warnings */

/* ---- plan_scan.c */
/* Scans every point once: fills whole and chosen, counts waivers, adds the errors of margins, waivers, rigs and tables to d. */
bool plan_scan(struct plan *p, const struct plan_filter *f, struct diags *d, struct err *err);

/* ---- plan_filter.c */
/* Why a selector matches nothing, with the nearest right words: "'t_q=3' matches no cell: none has t_q=3; …". Returns false. */
bool selector_explain(const struct plan *p, const struct selector *s, struct err *err);
/* Every key of a filter is one that some cell has. */
bool filter_check_keys(const struct plan *p, const struct selector *s, struct err *err);

#endif
