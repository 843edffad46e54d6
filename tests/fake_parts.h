/* fake_parts: what the files of the fake share: its state, and its time. */
#ifndef ASSAY_TESTS_FAKE_PARTS_H
#define ASSAY_TESTS_FAKE_PARTS_H

#include "fake.h"

struct fake {
	const struct backend_ops *ops;
	struct backend_ops table; /* as scripted */
	struct device_info info;
	struct fake_script s;
	double clock_ns, queued_ns; /* virtual; what is queued and not waited for */
	double mark_ns[BACKEND_MARKS];
	uint64_t random;
	double error; /* of ln(time), lag 1 */
	bool slow_mode, scrubbed, lost;
	int64_t launches, scrubs, last_scrub, now_calls, state_calls, sentinel_calls, drain_calls, artifact_calls,
		in_use, graphs, graphs_freed;
	int64_t digests, comparisons;
	uint64_t stale; /* the digest that stays */
	struct fake_event *event;
	int64_t event_room;
};

/* How long launch k (from 1) of l takes by the script, in nanoseconds before the tick. */
double fake_duration(struct fake *f, const struct launch *l, int64_t k);
/* What the clock shows of ns: whole ticks. */
int64_t fake_ticks(const struct fake *f, double ns);
/* What a launch or a scrub takes, now or when it is waited for. */
void fake_pass_time(struct fake *f, double ns);

#endif
