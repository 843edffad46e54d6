/* fake: a backend that lies by script. It fills the vtable of backend.h over host memory: kernels really run (their host form), so every
 * check sees true bytes, but time is what the script says. Its clock is virtual: it moves with launches, scrubs and pauses and never
 * with the machine, so thousands of rounds are fast and the same script gives the same nanoseconds.
 *
 * A script that is all zero is honest: each launch takes 10 us, each scrub 1 us, nothing fails, the tick is 1 ns. Everything that is
 * counted is counted from 1, so that 0 means never. */
#ifndef ASSAY_TESTS_FAKE_H
#define ASSAY_TESTS_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"

struct fake_event;

/* How long an arm takes. The first entry that fits is taken. */
struct fake_arm {
	const struct assay_arm_ops *ops; /* NULL: any */
	bool has_arg; /* else arg is not looked at */
	int64_t arg;
	double ns; /* 0: the script's */
	double hiccup_p, hiccup_factor; /* this arm alone is so much slower in this share of its launches */
};

struct fake_script {
	uint64_t seed;
	/* If set, it alone says how long a launch takes (before the tick); k counts launches from 1. */
	double (*time_ns)(void *ctx, const struct launch *l, int64_t k);
	void *ctx;

	double launch_ns; /* 0: 10000 */
	struct fake_arm arm[8];
	int n_arms;
	double sigma; /* of ln(time), lognormal */
	double rho; /* lag-1 correlation of ln(time) */
	double ramp, ramp_launches; /* time * (1 + ramp * exp(-k / ramp_launches)): clocks that rise at the start */
	double mode_p,
		mode_factor; /* two clocks: changes over with probability mode_p a launch, then time * mode_factor */
	double hiccup_p, hiccup_factor;
	double drift; /* time * (1 + drift * k) */
	/* Launches first_from, first_from + first_every, … are slower by first_factor: an effect of the place in a round. */
	int64_t first_from, first_every;
	double first_factor;
	double overhead_ns; /* added to each launch whatever it does: the floor of a null launch */
	double cold_factor; /* of the first launch after a scrub; 0: 1, as if nothing were cached */

	int64_t tick_ns; /* now() and elapsed() are multiples of it; 0: 1 */
	double scrub_ns; /* 0: 1000 */
	int64_t scrub_fail_call; /* this scrub fails with "scripted failure of the scrub" */
	bool queued; /* as on a device: what is queued takes its time when it is waited for, not when it is queued */
	bool scrub_ineffective; /* the scrub takes its time and evicts nothing */
	int64_t scrub_masked; /* so many scrubs from the first evict nothing: a neighbour keeps what they should have put out */
	bool elapsed_zero; /* every two marks are 0 ns apart */
	double marks_factor; /* elapsed() tells so many times the truth; 0: 1 */
	int64_t now_jump_call, now_jump_ns; /* at this call of now() the host clock jumps, for good; may be negative */

	int64_t fail_launch; /* this launch fails with "scripted failure" */
	int64_t wait_fails_launch; /* the wait for this launch fails with "scripted failure of the wait": a fault that a device tells late, and once */
	int64_t fail_every; /* and so does every multiple of this */
	int64_t lost_launch; /* from this launch on the device is lost: sync fails with *lost, everything after it fails */
	int64_t flip_launch; /* after this launch a bit of the first byte of this tensor is other than it should be */
	int flip_tensor;
	int64_t silent_launch; /* from this launch on kernels are not run, and nothing says so */
	int64_t fail_arm, fail_arm_from; /* launches of arms with this argument fail from this launch of all on */
	int64_t memory_bytes; /* all that can be had together; 0: no limit */
	int64_t alloc_limit_bytes; /* more at a time cannot be had; 0: no limit */

	int64_t throttle_call, throttle_calls; /* state() tells of throttling at this call and so many from it */
	int64_t shared_call, shared_calls; /* state() tells of another process at this call and so many from it */
	int sm_mhz; /* 0: 1000 */

	/* If set, the device has other queues: at the k-th wait for all of them, counted from 1, it works on for so long after its own was
	 * done. last: the launch before. */
	int64_t (*gap_ns)(void *ctx, int64_t k, const struct fake_event *last);
	void *gap_ctx;

	double peak_bytes_per_s, peak_flop_per_s; /* 0: not measured */
	int64_t quiet_sentinels; /* from this run of the sentinels on the peak of bytes is quiet_bytes_per_s: a neighbour has gone */
	double quiet_bytes_per_s;
	double flop_reach; /* 0: 1; below 0: unknown */
	bool sentinels_fail;

	/* compare() as on a device; at creation only. Then digests and comparisons may lie, which is counted as above. */
	bool compares;
	int64_t equal_lie; /* from this comparison on everything is equal */
	int64_t differ_lie; /* from this comparison on everything differs, at byte 0 */
	int64_t digest_lie; /* from this digest on all digests are one */
	int threads; /* that it says it has; at creation only; 0: 1 */
	bool small_memory; /* 1 MiB by its own words; at creation only */
	int64_t stale_digest_bytes; /* of buffers of so many bytes each digest is the first one's */

	bool graphs; /* graphs can be captured; at creation only */
	int graph_kernels; /* nodes that a captured graph is said to have; 0: 1 */
	void (*captured)(void *ctx, const struct launch *l); /* called at each capture, in place of the arm */
	bool graph_empty; /* a replay runs nothing */
};

/* One launch as it was made: to hold orders and counts against what the runner says. */
struct fake_event {
	const struct assay_arm_ops *ops;
	int64_t arg;
	double ns;
	bool scrubbed; /* a scrub came since the launch before */
	bool graph; /* a replay */
	const void *first; /* tensor[0] of the call */
};

/* s is copied; NULL: honest. Closed by its own close(). NULL only out of memory. */
struct backend *fake_create(const struct fake_script *s);
/* The script, to be changed while the backend lives. */
struct fake_script *fake_script_of(struct backend *b);
int64_t fake_launches(const struct backend *b);
/* Graphs captured so far, and how many of them were freed (NULL is fine). */
int64_t fake_graphs(const struct backend *b, int64_t *freed);
/* Launch k from 1; NULL past the last one. */
const struct fake_event *fake_event_at(const struct backend *b, int64_t k);
/* Memory handed out and not yet freed, in bytes: 0 before close, or there is a leak. */
int64_t fake_memory_in_use(const struct backend *b);
/* How often facts of launches were asked for. */
int64_t fake_artifacts(const struct backend *b);
/* Waits for all queues so far (drain): one for each launch that is watched. */
int64_t fake_drains(const struct backend *b);
/* Scrubs so far, and their bytes as asked (-1 for auto) in the last one. */
int64_t fake_scrubs(const struct backend *b, int64_t *last_bytes);

#endif
