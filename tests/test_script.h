/* A cell on the scripted fake backend, played through the whole of it: checks, warm-up, rounds, looks, record, judge. The fake's clock is virtual: no
 * verdict here depends on the machine that runs the test, and the same seed gives the same nanoseconds. */
#ifndef ASSAY_TEST_SCRIPT_H
#define ASSAY_TEST_SCRIPT_H

#include <math.h>
#include <stdlib.h>

#include "record.h"
#include "test_bed.h"

static const struct record_env env = {.tau = 0.0025, .today = "2026-11-30"};

/* probe.work, so short that thousands of launches are nothing: `more=50` is served, and the script says what it takes. Margin 2 %. */
static inline void work_cell(struct cell *c, const struct registry *r, const char *id)
{
	test_cell(c, r, "probe.work", "shipped", "more=50", NULL);
	c->id = id;
	c->point.v[0].i = 1;
	c->checks.on = 1u << CHECK_REGRESSION;
	c->selection = SELECT_ARM;
	c->selected = "more=50";
	c->margin_fail = 0.02;
	c->gate = true;
	c->timing.confirm = CONFIRM_NONE; /* a suspect is told at once */
	c->timing.retries = 2;
	c->timing.scrub = SCRUB_BYTES;
	c->timing.scrub_bytes = 2 << 20; /* twice the cache of the scripted device */
}

/* The script in which the served arm is slower by `effect`. */
static inline struct fake_script script_of(double effect)
{
	return (struct fake_script){
		.seed = 1,
		.launch_ns = 2000,
		.arm = {{.has_arg = true, .arg = 50, .ns = 2000 * (1 + effect)}},
		.n_arms = 1,
		.cold_factor = 10, /* each launch is scrubbed: 20 us */
	};
}

/* Runs and judges it. New reference. */
static inline json_t *play(struct bed *b, const struct cell *c, bool more_to_come)
{
	json_t *record = record_cell_begin(c), *facts = run_cell(b, c, EXEC_OK);
	record_merge_facts(record, facts);
	json_decref(facts);
	record_judge(record, &env, more_to_come);
	return record;
}

#endif
