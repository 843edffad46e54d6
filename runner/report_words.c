/* report_words: what a cell, an arm and a bar are called and which numbers stand for them: one place for every format, and for every part of a
 * page, so that no two of them can say otherwise. */
#include <stdio.h>
#include <string.h>

#include "report.h"

/* ---- kinds of cells -------------------------------------------------------------------------------------------------- */

enum report_kind report_kind(const struct row *row)
{
	switch (row->status) {
	case ST_PASS: return REPORT_PASSED;
	case ST_SKIP: return REPORT_SKIPPED;
	case ST_XFAIL: return REPORT_WAIVED;
	case ST_INCONCLUSIVE: return REPORT_UNDECIDED;
	case ST_INVALID:
	case ST_INVALID_DATA: return REPORT_INVALID;
	default: return REPORT_FAILED; /* ST_N too: a status that is not known is no good one */
	}
}

const char *report_tone(enum report_kind k)
{
	static const char *const tones[REPORT_KINDS] = {"bad", "void", "unsure", "none", "none", "good"};
	return tones[k];
}

bool report_failed(const struct row *row)
{
	return row && report_kind(row) == REPORT_FAILED;
}

bool report_invalid(const struct row *row)
{
	return row && report_kind(row) == REPORT_INVALID;
}

const char *report_status_word(enum cell_status s)
{
	return s == ST_INCONCLUSIVE ? "undecided" : s == ST_XFAIL ? "waived" : s < ST_N ? status_name(s) : "unknown";
}

/* ---- arms ------------------------------------------------------------------------------------------------------------ */

static bool all_pairs(const struct report *r)
{
	for (size_t i = 0; i < r->n_files; i++)
		if (!r->file[i].text->pair)
			return false;
	return true;
}

/* What timed ratio checks are over: NULL where there are none, "yardstick" where it is not one arm or other cells have a yardstick too. */
static const char *over_of(const struct report *r)
{
	const char *over = NULL;
	bool any = false, one = true;
	for (size_t k = 0; k < r->n_files; k++)
		for (size_t i = 0; i < r->file[k].text->n_rows; i++) {
			const struct row *row = &r->file[k].text->row[i];
			if (row->is_ratio) {
				any = true;
				one &= !over || strcmp(over, row->over) == 0;
				over = row->over;
			} else if (row->timed)
				one = false;
		}
	return !any ? NULL : one ? over : "yardstick";
}

const char *report_yardstick(const struct report *r)
{
	const char *over = over_of(r);
	return over ? over : all_pairs(r) ? "base" : "shipped";
}

const char *report_judged(const struct report *r)
{
	return over_of(r) ? "compared" : all_pairs(r) ? "head" : "served";
}

const char *report_judged_arm(const struct row *row)
{
	return row->is_ratio ? row->of : row->selected;
}

const json_t *report_arm(const json_t *cell, const char *name)
{
	const json_t *arm;
	size_t i;
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		if (name && strcmp(text_get(arm, "name"), name) == 0)
			return arm;
	}
	return NULL;
}

struct report_ratio report_arm_ratio(const struct row *row, const json_t *arm)
{
	const json_t *s = json_object_get(arm, "summary");
	const char *judged = report_judged_arm(row);
	if (judged && row->ratio > 0 && strcmp(judged, text_get(arm, "name")) == 0)
		return (struct report_ratio){row->ratio, row->lo, row->hi};
	if (json_is_object(s) && strcmp(text_get(arm, "role"), "shipped") == 0)
		return (struct report_ratio){1, NAN, NAN};
	return (struct report_ratio){text_number(s, "ratio"), exp(text_number(s, "lo")), exp(text_number(s, "hi"))};
}

/* ---- bars ------------------------------------------------------------------------------------------------------------ */

void report_bar(char buf[64], const json_t *a)
{
	const double least = text_number(json_object_get(a, "bar"), "at_least");
	buf[0] = 0;
	if (isfinite(least))
		snprintf(buf, 64, "at least %+.3g pp", 100 * (least - 1));
}

static double end_of(const json_t *a)
{
	return text_number(json_object_get(a, text_get(json_object_get(a, "bar"), "by")), "lo");
}

void report_bar_end(char buf[64], const json_t *a)
{
	buf[0] = 0;
	if (!json_is_object(json_object_get(a, "bar")))
		return;
	if (isfinite(end_of(a)))
		snprintf(buf, 64, "%+.1f pp", 100 * (end_of(a) - 1));
	else
		strcpy(buf, "unknown");
}

void report_bar_why(char buf[600], const json_t *a)
{
	const char *reason = text_get(a, "reason");
	char bar[64], end[64];
	report_bar(bar, a);
	report_bar_end(end, a);
	if (*reason)
		snprintf(buf, 600, "%s", reason);
	else if (*bar)
		snprintf(buf, 600, "the %.40s's lower end is %s: the bar is %s",
			 text_get(json_object_get(a, "bar"), "by"), end, bar);
	else
		buf[0] = 0;
}
