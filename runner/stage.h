/* stage: a cell set up on the device: its inputs, its output buffers, its arms planned and ready to launch. The checks and the
 * rounds play on it. */
#ifndef ASSAY_STAGE_H
#define ASSAY_STAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "err.h"
#include "exec.h"
#include "inputs.h"
#include "plan.h"
#include "tensors.h"

enum { STAGE_LAUNCHES = 16, STAGE_DAMAGES = ASSAY_MAX_TENSORS + 1, STAGE_SUBJECTS = MAX_ARMS + 1, READY_FLIPS = 16 };

/* Points, shapes and addresses that launches get. The main scene is the cell's; the invariant and repeat checks make others. */
struct scene {
	struct assay_point point;
	struct assay_shape shape[ASSAY_MAX_TENSORS];
	struct buffer own[ASSAY_MAX_TENSORS]; /* what this scene allocated */
	struct buffer *buf[ASSAY_MAX_TENSORS]; /* own, or an input's live buffer; NULL for derived tensors */
	uint8_t *mask[ASSAY_MAX_TENSORS]; /* defined elements of outputs; NULL: all of them */
};

/* An arm of the cell, or the null arm. */
struct subject {
	const struct cell_arm *arm;
	const char *name;
	enum cell_arm_role role;
	const struct assay_arm_ops *ops;
	const char *unsupported; /* NULL, or why it cannot run here */
	bool failed; /* a launch or its plan failed: a finding says so, and nothing more is run of it */
	bool spoils; /* was seen to write to what is not its own, or may be the one that did */
	bool left_fp; /* left other floating-point control bits behind; they were put back (fp_control.h) */
	int fp_looks; /* launches after which the whole team was looked at for that */
	char fp_words[96];
	int looks; /* checked launches that were followed by a whole look at the process (conduct.h) */
	unsigned strayed; /* what of the process it was told to have changed, a bit each */
	int64_t escaped_ns; /* the longest that work was seen to run on after its queue was done, not yet settled (escape.h) */
	int escapes; /* launches that it was seen in, as long as it is not settled */
	struct ready *ready; /* in the main scene; NULL until stage_prepare */
	struct assay_launch launch[STAGE_LAUNCHES]; /* what its inspected launch noted */
	int n_launches;
	json_t *artifact; /* facts of those, once they were asked for; NULL: not yet */
};

/* An arm planned in a scene. */
struct ready {
	struct scene *scene;
	struct subject *subject;
	void *ptr[ASSAY_MAX_TENSORS];
	struct buffer derived[ASSAY_MAX_TENSORS];
	struct buffer workspace;
	uint64_t derived_digest[ASSAY_MAX_TENSORS];
	struct assay_call call;
	char error[ASSAY_ERROR_MAX];
	void *state;
	bool planned;
	void *graph;
	int graph_kernels; /* nodes of the graph; -1: no graph */
};

/* Time in launches and in waiting for the device, and in scrubs: what is not the harness. */
struct stage_cost {
	int64_t launch_ns, scrub_ns;
};

/* Whose code ran since the last look at the process: one subject's, or several's, `one` the last of them. */
struct acts {
	struct subject *one;
	bool several;
};

struct surroundings;
struct stage {
	struct backend *be;
	const struct backend_ops *ops;
	const struct cell *cell;
	struct inputs *inputs;
	const struct exec_sink *sink;
	json_t *findings, *notes; /* arrays; borrowed */
	struct input *in[ASSAY_MAX_TENSORS]; /* ASSAY_IN and ASSAY_INOUT, else NULL */
	struct scene main;
	struct subject
		subject[STAGE_SUBJECTS]; /* in the order of the cell's arms; the null arm last, where asked for */
	int n_subjects;
	int set; /* the input set that is loaded */
	bool proven[ASSAY_MAX_TENSORS]; /* an input that was seen to be right in this cell (check_load) */
	bool unseen; /* there were launches whose guards nobody has looked at since: timed ones, watched ones */
	const struct subject *
		spoiler; /* may have written to what is not its own, and nobody has looked at that since (check_heal) */
	int nan_only; /* >= 0: TAIL_NAN stands behind this tensor only, TAIL_HUGE behind the others */
	struct surroundings *around; /* the process as it was before any arm ran */
	struct acts acts[2]; /* since the last look of any kind, and since the last whole one */
	unsigned strayed; /* as a subject's, of nobody in particular */
	bool lost; /* the device is gone for this process */
	bool null_arm;
	struct stage_cost cost;
	size_t image_bytes; /* of device memory that holds copies of outputs (image_block.h) */
};

enum run_result { RUN_OK, RUN_FAILED, RUN_LOST };

/* findings and notes are borrowed and appended to. On failure NULL with *err (allocation, a fill that does not fit). */
struct stage *stage_create(struct backend *be, struct inputs *inputs, const struct cell *c, bool null_arm,
			   const struct exec_sink *sink, json_t *findings, json_t *notes, struct err *err);
void stage_destroy(struct stage *st); /* NULL is fine */

/* Says where the work is. phase NULL: as before. arm may be NULL. */
void stage_beat(struct stage *st, const char *phase, const char *arm, int round);
struct subject *stage_find(struct stage *st, const char *name); /* NULL: no such arm */
/* Whether it can be launched: supported, not failed. */
bool subject_runs(const struct subject *s);
/* Whether name stands in a list of a check; an empty list names every arm. */
bool stage_listed(const char *const arms[MAX_LIST], const char *name);
void stage_note(struct stage *st, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Loads an input set into the live buffers, anew where force. Derived tensors are made again by ready_derive. */
bool stage_load(struct stage *st, int set, bool force, struct err *err);

/* A scene at another point or at other addresses. fresh: a bit a tensor; those and all outputs get buffers of their own (not
 * filled), the others are the live ones of the stage. False with *err: an input that is not fresh would change its shape. */
bool scene_create(struct stage *st, const struct assay_point *pt, uint32_t fresh, struct scene *sc, struct err *err);
void scene_destroy(struct stage *st, struct scene *sc);

/* Plans an arm in a scene and derives its tensors. NULL with *err: the arm's own words; st->lost may be set. */
struct ready *ready_create(struct stage *st, struct scene *sc, struct subject *s, struct err *err);
void ready_destroy(struct stage *st, struct ready *r); /* NULL is fine */
/* Makes the derived tensors from what the inputs hold now, in containers that hold the poison. */
bool ready_derive(struct stage *st, struct ready *r, uint32_t poison, struct err *err);

/* Puts one launch on the queue, environment set around it. False with *err. */
bool ready_enqueue(struct stage *st, struct ready *r, struct err *err);
/* Restores inout tensors from their pristine copy. Queued. */
bool ready_restore(struct stage *st, struct ready *r, struct err *err);
/* Waits; sets st->lost. What still ran outside of the queue afterwards is *escaped_ns (0 where the backend cannot tell). */
bool stage_sync(struct stage *st, int64_t *escaped_ns, struct err *err);

struct guard_damage {
	int tensor; /* index; -1: the workspace */
	struct damage damage;
};
struct checked {
	struct guard_damage damage[STAGE_DAMAGES];
	int n_damages;
	int64_t escaped_ns;
};
/* A checked launch: guards written, inout restored, outputs and workspace poisoned; run; waited for; guards scanned. RUN_FAILED: *err
 * has the arm's words. inspect: the arm notes what it launches (into subject->launch). */
enum run_result ready_check(struct stage *st, struct ready *r, uint32_t poison, enum tail tail, bool inspect,
			    struct checked *out, struct err *err);

/* Plans every supported arm in the main scene. A failure is a finding of that arm, false only when the device is lost. */
bool stage_prepare(struct stage *st, struct err *err);
/* Marks a subject as failed, with a finding {"check": "run"}. */
void stage_fail(struct stage *st, struct subject *s, const char *phase, const char *text);

#endif
