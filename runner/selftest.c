#include "selftest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "record_parts.h"
#include "selftest_timing.h"

struct selftest {
	bool quick;
	struct timed timed;
	char backend[16];
	int count[CLAIM_SKIPPED + 1];
	int astray; /* cells that failed and that no claim speaks of */
};

struct selftest *selftest_create(bool quick)
{
	struct selftest *s = calloc(1, sizeof *s);
	if (s)
		s->quick = quick;
	return s;
}

void selftest_destroy(struct selftest *s)
{
	if (!s)
		return;
	timed_free(&s->timed);
	free(s);
}

/* ---- one cell, one claim --------------------------------------------------------------------------------------------- */

static bool failing(const json_t *finding)
{
	const char *status = record_text(finding, "status");
	return !status || (strcmp(status, "pass") != 0 && strcmp(status, "skip") != 0);
}

/* The arm beside shipped; NULL: none. */
static const json_t *subject_of(const json_t *cell)
{
	size_t i;
	json_t *a;
	json_array_foreach(json_object_get(cell, "arms"), i, a)
	{
		const char *role = record_text(a, "role");
		if (role && (strcmp(role, "candidate") == 0 || strcmp(role, "headroom") == 0))
			return a;
	}
	return NULL;
}

/* Whether a finding is of the kind that is expected. A wrong result is a wrong result, whichever check sees it first (a race on a device may show in the
 * poison before it shows in the repeats); but an arm that could not be launched has shown nothing of its fault. */
static bool answers(const json_t *finding, const char *expect, const char *arm)
{
	const char *blamed = record_text(finding, "arm"), *status = record_text(finding, "status");
	if (!status || !expect)
		return false;
	if (strcmp(expect, "error") == 0 || strcmp(expect, "timeout") == 0)
		return strcmp(status, expect) == 0 && (!blamed || (arm && strcmp(blamed, arm) == 0));
	return blamed && arm && strcmp(blamed, arm) == 0 &&
	       (strcmp(status, "wrong") == 0 || strcmp(status, "mismatch") == 0 || strcmp(status, "invalid") == 0);
}

/* Caught: a finding of the right kind that blames this arm, and none that blames another. */
static void claim_must_fail(const struct selftest *s, const json_t *cell, struct claim *c)
{
	const char *expect = record_text(json_object_get(cell, "waiver"), "expect"),
		   *status = record_text(cell, "status"), *reason = record_text(cell, "reason"),
		   *of_case = record_text(cell, "case");
	const json_t *arm = subject_of(cell), *first = NULL, *exact = NULL;
	const char *name = record_text(arm, "name"), *unsupported = record_text(arm, "unsupported");
	bool blames_other = false;
	size_t i;
	json_t *f;
	snprintf(c->name, sizeof c->name, "must-fail %.60s", name ? name : of_case ? of_case : "?");
	if (unsupported) {
		c->state = CLAIM_SKIPPED;
		snprintf(c->text, sizeof c->text, "not on %s: %.300s", s->backend, unsupported);
		return;
	}
	json_array_foreach(json_object_get(cell, "checks"), i, f)
	{
		const char *blamed = record_text(f, "arm"), *as = record_text(f, "status");
		if (!failing(f))
			continue;
		blames_other |= blamed && name && strcmp(blamed, name) != 0;
		if (!answers(f, expect, name))
			continue;
		first = first ? first : f;
		exact = exact ? exact : strcmp(as, expect) == 0 ? f : NULL;
	}
	first = exact ? exact : first;
	c->state = first && !blames_other ? CLAIM_HOLDS : CLAIM_BROKEN;
	if (c->state == CLAIM_HOLDS) {
		const char *check = record_text(first, "check"), *text = record_text(first, "text");
		snprintf(c->text, sizeof c->text, "%.20s by %.20s: %.320s", record_text(first, "status"),
			 check ? check : "?", text ? text : "");
	} else if (blames_other) {
		snprintf(c->text, sizeof c->text, "another arm is blamed for it: %.300s", reason ? reason : "");
	} else {
		snprintf(c->text, sizeof c->text, "expected %.20s, the cell is %.20s%s%.300s",
			 expect ? expect : "a failure", status ? status : "nothing", reason ? ": " : "",
			 reason ? reason : "");
	}
}

static void claim_must_pass(const json_t *cell, struct claim *c)
{
	const char *status = record_text(cell, "status"), *reason = record_text(cell, "reason");
	const json_t *bad = NULL;
	size_t i, n = json_array_size(json_object_get(cell, "checks"));
	json_t *f;
	json_array_foreach(json_object_get(cell, "checks"), i, f) if (!bad && failing(f)) bad = f;
	const char *name = record_text(cell, "case");
	snprintf(c->name, sizeof c->name, "must-pass %.60s", name ? name : "?");
	c->state = n > 0 && !bad && status && strcmp(status, "pass") == 0 ? CLAIM_HOLDS : CLAIM_BROKEN;
	if (c->state == CLAIM_HOLDS)
		snprintf(c->text, sizeof c->text, "%zu findings, all of them pass", n);
	else
		snprintf(c->text, sizeof c->text, "%.20s: %.300s", status ? status : "", reason ? reason : "");
}

static bool take_cell(struct selftest *s, const json_t *cell, struct claim *out)
{
	const char *waiver = record_text(json_object_get(cell, "waiver"), "id"), *status = record_text(cell, "status");
	if (timed_take(&s->timed, cell))
		return false;
	if (waiver && strncmp(waiver, "must-fail-", 10) == 0)
		claim_must_fail(s, cell, out);
	else if (json_array_size(json_object_get(cell, "checks")) > 0 && status && strcmp(status, "skip") != 0)
		claim_must_pass(cell, out);
	else
		return s->astray++, false;
	return true;
}

/* ---- the harness itself ---------------------------------------------------------------------------------------------- */

static void claim_scrub(const struct selftest *s, const json_t *calibration, struct claim *c)
{
	const json_t *scrub = json_object_get(calibration, "scrub");
	const double ratio = record_number(scrub, "ratio", NAN), bytes = record_number(scrub, "bytes", NAN);
	const bool proven = record_true(scrub, "proven");
	snprintf(c->name, sizeof c->name, "scrub");
	if (!json_is_object(scrub))
		snprintf(c->text, sizeof c->text, "no proof: this backend has no probe");
	else
		snprintf(c->text, sizeof c->text,
			 "%s: a probe of %.0f KiB takes %.1f us warm and %.1f us after %.0f MiB of scrub, x%.1f",
			 proven ? "proven" : "NOT proven", record_number(scrub, "probe_bytes", NAN) / 1024,
			 record_number(scrub, "warm_ns", NAN) / 1e3, record_number(scrub, "scrubbed_ns", NAN) / 1e3,
			 bytes / 1048576, ratio);
	c->state = s->quick ? CLAIM_TOLD : proven ? CLAIM_HOLDS : CLAIM_BROKEN;
}

static int take_header(struct selftest *s, const json_t *header, struct claim *out)
{
	const json_t *calibration = json_object_get(header, "calibration");
	const char *backend = record_text(header, "backend");
	snprintf(s->backend, sizeof s->backend, "%s", backend ? backend : "");
	if (!json_is_object(calibration)) {
		snprintf(out->name, sizeof out->name, "clock");
		snprintf(out->text, sizeof out->text, "no worker came up: nothing is known of this device");
		out->state = CLAIM_BROKEN;
		return 1;
	}
	snprintf(out->name, sizeof out->name, "clock");
	snprintf(out->text, sizeof out->text, "%s: tick %.0f ns, an empty bracket takes %.0f ns",
		 record_text(calibration, "clock"), record_number(calibration, "tick_ns", NAN),
		 record_number(calibration, "null_launch_ns", NAN));
	out->state = CLAIM_TOLD;
	/* The first case of the suite is a cold one, so that the first worker proves its scrub. */
	claim_scrub(s, calibration, &out[1]);
	return 2;
}

static bool take_aggregate(const json_t *aggregate, struct claim *out)
{
	const char *name = record_text(aggregate, "name"), *reason = record_text(aggregate, "reason");
	if (name && strcmp(name, "sentinels") == 0) {
		snprintf(out->name, sizeof out->name, "sentinels");
		snprintf(out->text, sizeof out->text, "%.300s",
			 reason ? reason : "the same at the end as at the start, within 5 %");
	} else if (name && strcmp(name, "processes") == 0) {
		snprintf(out->name, sizeof out->name, "processes");
		snprintf(out->text, sizeof out->text,
			 "tau %.3f %%: what processes differ by beyond their own error, from %.0f pairs",
			 100 * record_number(aggregate, "tau", NAN), record_number(aggregate, "n", 0));
	} else {
		return false;
	}
	out->state = CLAIM_TOLD;
	return true;
}

/* ---- all together ---------------------------------------------------------------------------------------------------- */

int selftest_take(struct selftest *s, const json_t *record, struct claim out[SELFTEST_TAKE_MAX])
{
	const char *kind = record_text(record, "kind");
	int n = 0;
	memset(out, 0, SELFTEST_TAKE_MAX * sizeof *out);
	if (kind && strcmp(kind, "header") == 0)
		n = take_header(s, record, out);
	else if (kind && strcmp(kind, "cell") == 0)
		n = take_cell(s, record, out);
	else if (kind && strcmp(kind, "aggregate") == 0)
		n = take_aggregate(record, out);
	for (int i = 0; i < n; i++)
		s->count[out[i].state]++;
	return n;
}

int selftest_close(struct selftest *s, struct claim *out, int cap)
{
	int n = timed_close(&s->timed, s->quick, out, cap);
	for (int i = 0; i < n; i++)
		s->count[out[i].state]++;
	return n;
}

int selftest_status(const struct selftest *s)
{
	if (s->count[CLAIM_BROKEN] > 0)
		return EXIT_FAIL;
	return s->count[CLAIM_OPEN] > 0 || s->astray > 0 ? EXIT_INCOMPLETE : EXIT_PASS;
}

int selftest_count(const struct selftest *s, enum claim_state state)
{
	return s->count[state];
}

const char *selftest_word(const struct claim *c)
{
	const bool subject = strncmp(c->name, "must-fail ", 10) == 0;
	switch (c->state) {
	case CLAIM_HOLDS: return subject ? "caught" : "holds";
	case CLAIM_BROKEN: return subject ? "ESCAPED" : "BROKEN";
	case CLAIM_OPEN: return "open";
	case CLAIM_TOLD: return "told";
	case CLAIM_SKIPPED: break;
	}
	return "skipped";
}

json_t *selftest_record(const struct claim *c)
{
	json_t *o = json_object(), *text = json_string(c->text);
	json_object_set_new(o, "kind", json_string("aggregate"));
	json_object_set_new(o, "name", json_string("selftest"));
	json_object_set_new(o, "claim", json_string(c->name));
	json_object_set_new(o, "holds",
			    c->state == CLAIM_HOLDS    ? json_true()
			    : c->state == CLAIM_BROKEN ? json_false()
						       : json_null());
	/* A text that was cut inside a character is no text. */
	json_object_set_new(o, "text", text ? text : json_string(""));
	return o;
}
