/* The status of a cell: findings first, then timing, then the waiver. And the words for it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record_parts.h"

/* A new string; NULL out of memory. */
__attribute__((format(printf, 1, 2))) static char *text_of(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *text = n < 0 ? NULL : malloc((size_t)n + 1);
	if (!text)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(text, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return text;
}

/* ---- findings ------------------------------------------------------------------------------------------------------- */

static enum cell_status finding_status(const json_t *f)
{
	const char *check = record_text(f, "check"), *status = record_text(f, "status");
	enum cell_status s = status_of(status);
	if (s == ST_INVALID && check && strcmp(check, "data") == 0)
		return ST_INVALID_DATA;
	/* An arm that was not checked says nothing about the cell; only the plan skips one. */
	if (s == ST_SKIP && !(check && strcmp(check, "plan") == 0))
		return ST_PASS;
	/* A word that this version does not know is no pass. */
	return s == ST_N ? ST_ERROR : s;
}

static bool same_text(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/* Whether the waiver (NULL: none) is for this very finding. One that names no arm is of the cell: no waiver of an arm is for it. */
static bool waives(const json_t *waiver, const json_t *f)
{
	const char *arm = record_text(waiver, "arm");
	return same_text(record_text(waiver, "expect"), status_name(finding_status(f))) &&
	       (!arm || same_text(arm, record_text(f, "arm")));
}

/* Waived, or a weaker finding that follows from a waived one: an arm that writes nothing also differs from shipped, and of data that break their
 * promise nothing in the cell can be right. */
static bool covered(const json_t *waiver, const json_t *cell, const json_t *f)
{
	size_t i;
	json_t *g;
	if (!waiver)
		return false;
	if (waives(waiver, f))
		return true;
	json_array_foreach(json_object_get(cell, "checks"), i, g)
	{
		const char *arm = record_text(g, "arm");
		if (waives(waiver, g) && finding_status(g) < finding_status(f) &&
		    (!arm || same_text(arm, record_text(f, "arm"))))
			return true;
	}
	return false;
}

/* The first finding of the worst status, or NULL where all pass: of those that the waiver is for (mine), or of those that it leaves. */
static const json_t *worst_finding(const json_t *cell, const json_t *waiver, bool mine, enum cell_status *worst)
{
	const json_t *found = NULL;
	size_t i;
	json_t *f;
	*worst = ST_PASS;
	json_array_foreach(json_object_get(cell, "checks"), i, f)
	{
		enum cell_status s = finding_status(f);
		if (s == ST_PASS || s == ST_XFAIL || s == ST_XPASS)
			continue;
		/* The census belongs to the ratio check, which names it confounded. */
		if (same_text(record_text(f, "check"), "census"))
			continue;
		if (mine ? !waives(waiver, f) : covered(waiver, cell, f))
			continue;
		if (s < *worst || !found) {
			*worst = s;
			found = f;
		}
	}
	return found;
}

static char *finding_text(const json_t *f)
{
	const char *check = record_text(f, "check"), *arm = record_text(f, "arm"), *text = record_text(f, "text");
	if (check && strcmp(check, "plan") == 0 && text)
		return text_of("%s", text);
	return text_of("%s%s%s%s%s", check ? check : "", arm ? " " : "", arm ? arm : "", text ? ": " : "",
		       text ? text : "");
}

/* ---- timing --------------------------------------------------------------------------------------------------------- */

static const char *const reason_words[TR_N] = {
	[TR_ROUNDS] = "the interval still holds the margin",
	[TR_BUDGET] = "the time budget cut it",
	[TR_RESOLUTION] = "the clock's tick is too coarse for this kernel",
	[TR_UNCONFIRMED] = "slower here, but no second process has looked",
	[TR_NOT_CONFIRMED] = "slower here, but the second process does not agree",
	[TR_BIASED] = "the yardstick differs from itself in this cell",
	[TR_NOISY] = "the yardstick differs from itself in too many cells of this run",
	[TR_TOO_FEW] = "too few rounds",
	[TR_THROTTLED] = "the device throttled",
	[TR_SHARED] = "another process used the device",
	[TR_IMPLAUSIBLE] = "faster than the device's measured peak allows",
	[TR_CONFOUNDED] = "the arms differ in more than they claim",
	[TR_SCRUB] = "the scrub is not proven to evict the cache",
	[TR_CLOCK] = "two clocks disagree",
};

/* What the yardstick is called in this cell: "shipped", "s32", "base/split=4". */
static const char *yardstick(const json_t *cell)
{
	size_t i;
	json_t *a;
	json_array_foreach(json_object_get(cell, "arms"), i, a)
	{
		const char *role = record_text(a, "role"), *name = record_text(a, "name");
		if (role && name && strcmp(role, "shipped") == 0)
			return name;
	}
	return "shipped";
}

/* "split=4 is 1.063 [1.051, 1.074] of shipped, margin 1.05, n=64" */
static char *numbers_text(const json_t *cell, const json_t *t)
{
	const char *arm = record_text(cell, "selected");
	double ratio = record_number(t, "ratio", NAN), lo = record_number(t, "lo", NAN),
	       hi = record_number(t, "hi", NAN);
	double m = exp(record_number(t, "ln_margin", NAN));
	int n = (int)record_number(t, "n", 0);
	if (!arm || !isfinite(ratio))
		return NULL;
	if (isfinite(lo) && isfinite(hi))
		return text_of("%s is %.3f [%.3f, %.3f] of %s, margin %.4g, n=%d", arm, ratio, exp(lo), exp(hi),
			       yardstick(cell), m, n);
	return text_of("%s is %.3f of %s, no interval yet, margin %.4g, n=%d", arm, ratio, yardstick(cell), m, n);
}

/* "confounded: what else moved; f32 / s32 is 1.381": the number is shown all the same. */
static char *confounded_text(const json_t *cell)
{
	const json_t *check = json_object_get(cell, "ratio_check"), *timing = json_object_get(cell, "timing");
	const char *of = record_text(check, "of"), *over = record_text(check, "over");
	double ratio = record_number(json_object_get(timing, "of_over"), "ratio", NAN);
	char *text = text_of("%s:", judge_reason_name(TR_CONFOUNDED)), *more;
	const char *sep = " ";
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(cell, "checks"), i, f)
	{
		const char *name = record_text(f, "check"), *status = record_text(f, "status"),
			   *said = record_text(f, "text");
		if (!text || !name || strcmp(name, "census") != 0 || !status || strcmp(status, "invalid") != 0)
			continue;
		more = text_of("%s%s%s", text, sep, said ? said : reason_words[TR_CONFOUNDED]);
		free(text);
		text = more;
		sep = "; ";
	}
	if (text && isfinite(ratio)) {
		more = text_of("%s%s%s / %s is %.3f", text, sep, of ? of : "?", over ? over : "?", ratio);
		free(text);
		text = more;
	}
	return text;
}

char *record_timing_text(const json_t *cell, struct timing_outcome t)
{
	const json_t *timing = json_object_get(cell, "timing");
	if (t.reason == TR_NOT_TIMED) {
		const char *row = record_text(cell, "selected_row"), *arm = record_text(cell, "selected");
		return text_of("the table serves %s, which is not timed here%s%s%s", arm ? arm : "an unnamed arm",
			       row ? " (" : "", row ? row : "", row ? ")" : "");
	}
	if (t.reason == TR_CONFOUNDED)
		return confounded_text(cell);
	char *numbers = numbers_text(cell, timing), *text = NULL;
	double more = record_number(timing, "rounds_more", -1);
	switch (t.verdict) {
	case TV_INCONCLUSIVE:
	case TV_INVALID:
		text = text_of("%s: %s%s%s", judge_reason_name(t.reason),
			       reason_words[t.reason] ? reason_words[t.reason] : "undecided", numbers ? "; " : "",
			       numbers ? numbers : "");
		if (text && more > 0) {
			char *priced =
				text_of("%s; %.0f %s would probably settle it", text, more,
					t.reason == TR_UNCONFIRMED ? "rounds in a fresh process" : "more rounds");
			if (priced) {
				free(text);
				text = priced;
			}
		}
		break;
	case TV_REGRESSION:
		text = text_of("%s%s", numbers ? numbers : "slower than the margin allows",
			       json_is_true(json_object_get(json_object_get(cell, "confirm"), "confirmed"))
				       ? ", second process agrees"
				       : "");
		break;
	case TV_SUSPECT: text = text_of("suspect: %s", numbers ? numbers : ""); break;
	case TV_PASS:
		if (record_true(timing, "warned"))
			text = text_of("above the warn level: %s", numbers ? numbers : "");
		break;
	default: break;
	}
	free(numbers);
	return text;
}

static enum cell_status timing_status(struct timing_outcome t)
{
	switch (t.verdict) {
	case TV_REGRESSION: return ST_REGRESSION;
	case TV_SUSPECT:
	case TV_INCONCLUSIVE: return ST_INCONCLUSIVE;
	case TV_INVALID: return ST_INVALID;
	default: return ST_PASS;
	}
}

/* ---- all together --------------------------------------------------------------------------------------------------- */

static bool waiver_expired(const json_t *waiver, const struct record_env *env)
{
	const char *until = record_text(waiver, "until");
	/* ISO dates compare as text; the last day counts. */
	return until && until[0] && env->today && env->today[0] && strcmp(env->today, until) > 0;
}

/* Puts prefix and text into one string; frees text. */
static char *with_prefix(char *prefix, char *text)
{
	if (!prefix || !text)
		return prefix ? prefix : text;
	char *both = text_of("%s: %s", prefix, text);
	free(prefix);
	free(text);
	return both;
}

/* What a waiver that has not expired says of a cell. */
struct waived {
	const json_t *waiver; /* NULL: none speaks */
	const json_t *finding; /* the worst that it is for; NULL: none */
	bool timing, silence; /* it is for the timing verdict, for a cell that never answered */
	bool all_timing; /* no timing verdict is left to be judged */
};

/* timed: the timing status where timing is a gate, else ST_PASS. */
static struct waived waived_of(const json_t *cell, const struct record_env *env, enum cell_status timed, bool silent)
{
	struct waived w = {.waiver = json_object_get(cell, "waiver")};
	const char *expect = record_text(w.waiver, "expect"), *arm = record_text(w.waiver, "arm");
	enum cell_status worst;
	if (!record_text(w.waiver, "id") || !expect || waiver_expired(w.waiver, env))
		return (struct waived){0};
	w.finding = worst_finding(cell, w.waiver, true, &worst);
	w.timing = timed != ST_PASS && same_text(expect, status_name(timed)) &&
		   (!arm || same_text(arm, record_text(cell, "selected")));
	w.silence = silent && !arm && same_text(expect, "error");
	/* A cell that failed as a whole has no time that says anything. An arm that failed has. */
	w.all_timing = w.timing || (w.finding && !record_text(w.finding, "arm"));
	return w;
}

/* What the arms of a cell say of a waiver that found nothing: whether its arm, or any but shipped, could run at all. */
static bool nobody_ran(const json_t *cell, const json_t *waiver)
{
	const char *named = record_text(waiver, "arm");
	size_t i, others = 0, others_run = 0, named_run = 0;
	json_t *a;
	json_array_foreach(json_object_get(cell, "arms"), i, a)
	{
		const char *role = record_text(a, "role");
		const bool runs = !record_text(a, "unsupported"),
			   other = role && strcmp(role, "shipped") != 0 && strcmp(role, "null") != 0;
		others += other;
		others_run += other && runs;
		named_run += runs && same_text(named, record_text(a, "name"));
	}
	return named ? named_run == 0 : others > 0 && others_run == 0;
}

/* The waiver's word on the status of what it leaves. */
static void apply_waiver(const json_t *cell, const struct record_env *env, const struct waived *w, char *waived_text,
			 bool nothing_said, enum cell_status *s, char **reason)
{
	const json_t *stored = json_object_get(cell, "waiver");
	const char *id = record_text(stored, "id"), *expect = record_text(stored, "expect");
	const bool used = w->finding || w->timing || w->silence;
	if (used && (*s == ST_PASS || *s == ST_SKIP)) {
		free(*reason);
		*reason = with_prefix(text_of("waived by %s", id), waived_text);
		*s = ST_XFAIL;
		return;
	}
	free(waived_text);
	if (!id || !expect || *s == ST_SKIP)
		return;
	if (waiver_expired(stored, env)) {
		if (*s != ST_PASS || *reason == NULL) {
			char *p = text_of("waiver %s expired on %s", id, record_text(stored, "until"));
			*reason = with_prefix(p, *reason);
		}
	} else if (!used && *s == ST_PASS && !nothing_said) {
		free(*reason);
		*reason = text_of("waiver %s expects %s and the cell passes: remove the waiver", id, expect);
		*s = ST_XPASS;
	}
}

static char *silence_text(void)
{
	return text_of("nothing came back from this cell: no check ran and nothing was timed");
}

enum cell_status record_judge_status(json_t *cell, const struct record_env *env, struct timing_outcome t)
{
	enum cell_status found, timed = timing_status(t), s = ST_PASS;
	/* Off the rig timing is a diagnostic: it is told and names nothing. A table that serves an arm nobody times is wrong on any
	 * machine. */
	const bool gate = record_true(cell, "gating") || t.reason == TR_NOT_TIMED;
	size_t i;
	json_t *a;
	const char *unsupported = NULL;
	json_array_foreach(json_object_get(cell, "arms"), i, a)
	{
		if (same_text(record_text(a, "role"), "shipped") && !unsupported)
			unsupported = record_text(a, "unsupported");
	}

	/* Every check leaves a finding and every timing a measure: a record with neither is of a cell that never answered. */
	const bool silent = !unsupported && json_array_size(json_object_get(cell, "checks")) == 0 &&
			    !json_is_object(json_object_get(cell, "measure"));

	/* What is waived is taken out first; all else is judged as if it had not been there. */
	const struct waived w = waived_of(cell, env, gate ? timed : ST_PASS, silent);
	const json_t *finding = worst_finding(cell, w.waiver, false, &found);
	char *waived_text = w.finding   ? finding_text(w.finding)
			    : w.timing  ? record_timing_text(cell, t)
			    : w.silence ? silence_text()
					: NULL;
	if (w.all_timing)
		timed = ST_PASS;

	char *reason = NULL;
	if (silent && !w.silence) {
		s = ST_ERROR;
		reason = silence_text();
	} else if (finding && (found <= timed || found == ST_SKIP || !gate)) {
		s = found;
		reason = finding_text(finding);
	} else if (unsupported) {
		s = ST_SKIP;
		reason = text_of("%s cannot run here: %s", yardstick(cell), unsupported);
	} else if (timed != ST_PASS && gate) {
		s = timed;
		reason = record_timing_text(cell, t);
	} else if (timed != ST_PASS) {
		char *text = record_timing_text(cell, t);
		reason = with_prefix(text_of("timing is a diagnostic on this rig, %s", judge_verdict_name(t.verdict)),
				     text);
	} else {
		reason = record_timing_text(cell, t);
	}

	/* A waiver of a timing status says nothing where timing is no gate, or was not asked for; nor does one of arms that cannot run here. */
	const json_t *stored = json_object_get(cell, "waiver");
	const char *expect = record_text(stored, "expect");
	const bool about_timing = same_text(expect, "regression") || same_text(expect, "inconclusive");
	apply_waiver(cell, env, &w, waived_text,
		     nobody_ran(cell, stored) || (about_timing && (!gate || t.verdict == TV_NONE)), &s, &reason);

	json_object_set_new(cell, "status", json_string(status_name(s)));
	json_t *text = reason && reason[0] ? json_string(reason) : NULL;
	json_object_set_new(cell, "reason", text ? text : json_null());
	free(reason);
	return s;
}
