/* text_block: a cell that failed, as a block: what, where, how sure, which rule, and the command that shows it again; or as one line. */
#define _GNU_SOURCE /* asprintf */
#include <stdlib.h>

#include "stats.h"
#include "text_parts.h"

/* "out[t=2,h=17]", as the record has it, or from coordinates alone. */
static const char *at_text(const json_t *at, const char *tensor, char *buf, size_t cap)
{
	const char *key, *comma = "";
	json_t *value;
	if (json_is_string(at))
		return json_string_value(at);
	size_t i, n = (size_t)snprintf(buf, cap, "%s[", tensor);
	json_t *j = (json_t *)(uintptr_t)at;
	json_object_foreach(j, key, value)
	{
		if (n < cap)
			n += (size_t)snprintf(buf + n, cap - n, "%s%s=%.0f", comma, key, json_number_value(value));
		comma = ",";
	}
	json_array_foreach(at, i, value)
	{
		if (n < cap)
			n += (size_t)snprintf(buf + n, cap - n, "%s%.0f", comma, json_number_value(value));
		comma = ",";
	}
	if (n < cap)
		snprintf(buf + n, cap - n, "]");
	return buf;
}

/* A value as the record has it: number, or text where no number says it ("nan"). */
static const char *value_text(const json_t *v, char buf[32])
{
	if (json_is_string(v))
		return json_string_value(v);
	if (!json_is_number(v))
		return strcpy(buf, "non-finite");
	snprintf(buf, 32, "%.9g", json_number_value(v));
	return buf;
}

static void differ_block(FILE *f, int width, const json_t *x)
{
	const json_t *first = json_object_get(x, "first");
	char where[160], got[32], want[32], n[32], of[32];
	if (json_is_object(first)) {
		char ulp[48] = "";
		if (json_is_number(json_object_get(x, "ulp_max")))
			snprintf(ulp, sizeof ulp, "   %s ULP at most", text_count(n, text_integer(x, "ulp_max")));
		text_field(f, width, "first", "%s  %s %s  for  %s %s%s",
			   at_text(json_object_get(first, "at"), text_get(x, "tensor"), where, sizeof where),
			   text_get(first, "got_bits"), value_text(json_object_get(first, "got"), got),
			   text_get(first, "want_bits"), value_text(json_object_get(first, "want"), want), ulp);
	}
	if (text_integer(x, "of") > 0) {
		char launches[128] = "";
		if (text_integer(x, "launches") > 1)
			snprintf(launches, sizeof launches, "; %lld of %lld launches%s",
				 (long long)text_integer(x, "launches_differ"), (long long)text_integer(x, "launches"),
				 json_is_true(json_object_get(x, "same_elements")) ? ", the same elements: not a race"
				 : json_is_false(json_object_get(x, "same_elements"))
					 ? ", not the same elements: a race"
					 : "");
		text_field(f, width, "how many", "%s of %s%s", text_count(n, text_integer(x, "differ")),
			   text_count(of, text_integer(x, "of")), launches);
	}
}

static void worst_block(FILE *f, int width, const json_t *x)
{
	const json_t *w = json_object_get(x, "worst");
	char where[160], got[32], want[32], n[32], of[32];
	if (json_is_object(w))
		text_field(f, width, "worst", "%s  %s for %s, error %.3g, allowed %.3g",
			   at_text(json_object_get(w, "at"), text_get(x, "tensor"), where, sizeof where),
			   value_text(json_object_get(w, "got"), got), value_text(json_object_get(w, "want"), want),
			   text_number(w, "error"), text_number(w, "allowed"));
	if (text_integer(x, "of") > 0)
		text_field(f, width, "how many", "%s of %s outside", text_count(n, text_integer(x, "differ")),
			   text_count(of, text_integer(x, "of")));
}

/* A finding whose sentence says no more than its fields. */
static bool has_fields(const json_t *x)
{
	return json_is_object(json_object_get(x, "first")) || json_is_object(json_object_get(x, "worst"));
}

/* A reason that is the sentence of one of the findings shown below it. */
static bool reason_is_shown(const json_t *cell)
{
	const char *reason = text_get(cell, "reason");
	const json_t *x;
	size_t i;
	int shown = 0;
	json_array_foreach(json_object_get(cell, "checks"), i, x)
	{
		if (!text_finding_is_bad(x) || shown++ == 4)
			continue;
		const char *text = text_get(x, "text"), *at = *text ? strstr(reason, text) : NULL;
		if (at && has_fields(x) && strncmp(reason, text_get(x, "check"), strlen(text_get(x, "check"))) == 0)
			return true;
	}
	return false;
}

/* The findings that name the status, at most four; the rest counted. */
static void findings_block(FILE *f, int width, const json_t *cell, const char *status)
{
	const json_t *x;
	size_t i;
	int shown = 0, more = 0;
	json_array_foreach(json_object_get(cell, "checks"), i, x)
	{
		if (!text_finding_is_bad(x))
			continue;
		if (shown == 4) {
			more++;
			continue;
		}
		shown++;
		const char *arm = text_get(x, "arm"), *check = text_get(x, "check"), *against = text_get(x, "against");
		/* What is printed from the fields, or stands in the reason, is not said again. */
		const char *said = strstr(text_get(cell, "reason"), text_get(x, "text")) || has_fields(x)
					   ? ""
					   : text_get(x, "text");
		/* Where the machine code differs is no matter of one arm. */
		if (*said || (*arm && strcmp(check, "census") != 0))
			text_field(f, width, check, "%s%s%s%s%s", arm, *arm && *against ? " against " : "",
				   *arm ? against : "", *arm && *said ? ": " : "", said);
		if (strcmp(check, "reference") == 0)
			worst_block(f, width, x);
		else
			differ_block(f, width, x);
	}
	if (more)
		text_field(f, width, "", "and %d more finding%s of this cell in the record", more,
			   more == 1 ? "" : "s");
}

static void timing_block(FILE *f, int width, const struct row *r, const json_t *cell)
{
	char arm[24], shipped[24], lo[24], hi[24], by[24];
	const json_t *timing = json_object_get(cell, "timing"), *confirm = json_object_get(cell, "confirm");
	if (strcmp(text_get(cell, "selection"), "not_timed") == 0) {
		text_field(f, width, "table", "%s is named by the table and not timed here; time it or fix the table",
			   text_get(cell, "selected"));
	} else if (isfinite(r->ratio)) {
		text_field(f, width, "size", "%s us for %s us  %s [%s, %s], margin %.3g %%   n=%d",
			   text_us(arm, r->selected_ns), text_us(shipped, r->shipped_ns),
			   text_percent(by, r->ratio - 1), text_percent(lo, r->lo - 1), text_percent(hi, r->hi - 1),
			   100 * (exp(text_number(timing, "ln_margin")) - 1), r->n);
	}
	if (json_is_object(confirm)) {
		double p = text_number(confirm, "p"), e = text_number(confirm, "estimate");
		text_field(f, width, "again", "second process: %s, n=%lld, p=%.2g: %s", text_percent(by, exp(e) - 1),
			   (long long)text_integer(confirm, "n"), p,
			   json_is_true(json_object_get(confirm, "confirmed")) ? "agrees" : "does not agree");
	}
}

/* Registers and spills, where the backend knows them: evidence, never a verdict. */
static void artifact_block(const struct text *t, FILE *f, const struct row *r, const json_t *cell)
{
	const json_t *arm;
	size_t i;
	const json_t *of[2] = {NULL, NULL};
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		if (strcmp(text_get(arm, "role"), "shipped") == 0)
			of[0] = json_object_get(arm, "artifact");
		else if (r->selected && strcmp(text_get(arm, "name"), r->selected) == 0)
			of[1] = json_object_get(arm, "artifact");
	}
	if (!(text_number(of[0], "registers") >= 0) || !(text_number(of[1], "registers") >= 0))
		return;
	text_field(f, t->o.width, "artifact", "%s regs %.0f, spills %.0f B; %s regs %.0f, spills %.0f B", r->selected,
		   text_number(of[1], "registers"), text_number(of[1], "spills_bytes"), text_yardstick(t),
		   text_number(of[0], "registers"), text_number(of[0], "spills_bytes"));
}

static void rule_block(FILE *f, int width, const json_t *cell, bool timing)
{
	if (timing && *text_get(cell, "selected_row"))
		text_field(f, width, "rule", "margin %s;  table row %s", text_get(cell, "rule"),
			   text_get(cell, "selected_row"));
	else if (timing)
		text_field(f, width, "rule", "margin %s", text_get(cell, "rule"));
	const json_t *w = json_object_get(cell, "waiver");
	if (json_is_object(w))
		text_field(f, width, "waiver", "%s expects %s%s%s until %s: %s", text_get(w, "id"),
			   text_get(w, "expect"), *text_get(w, "arm") ? " of " : "", text_get(w, "arm"),
			   *text_get(w, "until") ? text_get(w, "until") : "further notice", text_get(w, "reason"));
	/* Never wrapped: it is to be copied. */
	fprintf(f, "   %-9s %s\n", "rerun", text_get(cell, "rerun"));
}

/* Forty cells of one kernel that fail for one reason are told of three and counted. Undecided ones have a price each: "", not folded. */
static void alike_key(const struct text *t, const struct row *r, const json_t *cell, char key[TEXT_ALIKE_MAX])
{
	*key = 0;
	if (!t->o.verbose && r->status != ST_INCONCLUSIVE)
		text_alike_key(r, text_get(cell, "reason"), key);
}

/* Counts the cell on the last of three that say the same. */
static bool fold(struct block *of, int n, const char *key)
{
	int same = 0, last = -1;
	for (int i = 0; *key && i < n; i++)
		if (of[i].alike && strcmp(of[i].alike, key) == 0) {
			same++;
			last = i;
		}
	if (same < 3)
		return false;
	of[last].more++;
	return true;
}

void text_add_block(struct text *t, const struct row *r, const json_t *cell)
{
	char *text = NULL, word[24], key[TEXT_ALIKE_MAX] = "";
	size_t n = 0;
	const bool timing = r->status == ST_REGRESSION;
	if (!timing)
		alike_key(t, r, cell, key);
	if (fold(t->block, t->n_blocks, key))
		return;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		return;
	const char *status = text_get(cell, "status");
	text_upper(status, word);
	text_paint(t, f, TEXT_RED, "%-11s", word);
	fprintf(f, " %s", text_short_id(cell));
	if (timing)
		fprintf(f, "   %s%s", t->pair ? "" : "served ", text_get(cell, "selected"));
	fputc('\n', f);
	if (timing) {
		char ratio[24];
		timing_block(f, t->o.width, r, cell);
		artifact_block(t, f, r, cell);
		if (!t->pair && r->best && r->best != r->selected && r->best_ratio < 1)
			text_field(f, t->o.width, "better", "%s is %s of shipped here", r->best,
				   text_ratio(ratio, r->best_ratio));
	} else {
		if (*text_get(cell, "reason") && !reason_is_shown(cell))
			text_field(f, t->o.width, "reason", "%s", text_get(cell, "reason"));
		findings_block(f, t->o.width, cell, status);
	}
	rule_block(f, t->o.width, cell, timing);
	fclose(f);
	t->block[t->n_blocks++] = (struct block){.text = text,
						 .plan_index = r->plan_index,
						 .status = r->status,
						 .alike = *key ? arena_strdup(t->arena, key) : NULL,
						 .kernel = r->kernel};
}

/* What would settle an undecided cell, its price, and the setting that allows so many rounds where the suite's own does not. */
static void price_text(const json_t *cell, char *out, size_t cap)
{
	const json_t *timing = json_object_get(cell, "timing"), *measure = json_object_get(cell, "measure"),
		     *judge = json_object_get(cell, "judge");
	const double more = text_number(timing, "rounds_more"), total = text_number(timing, "n") + more,
		     per_round = text_number(measure, "wall_ns") / fmax(1, text_number(measure, "rounds"));
	const bool by_rounds = strcmp(text_get(timing, "reason"), "rounds") == 0,
		   fixed = text_number(judge, "rounds") > 0;
	const double allowed = text_number(judge, fixed ? "rounds" : "max_rounds");
	char seconds[24], price[48] = "", how[48] = "";
	out[0] = 0;
	if (!(more > 0)) {
		if (by_rounds)
			snprintf(out, cap, "   even %d rounds would probably not settle it at this margin",
				 STATS_MAX_ROUNDS);
		return;
	}
	if (isfinite(per_round))
		snprintf(price, sizeof price, ", %s", text_seconds(seconds, more * per_round));
	if ((by_rounds || strcmp(text_get(timing, "reason"), "too_few") == 0) && total > allowed)
		snprintf(how, sizeof how, ": --set timing.%s=%.0f",
			 !fixed && total <= STATS_LAST_LOOK ? "max_rounds" : "rounds", total);
	snprintf(out, cap, "   %.0f more rounds%s settle it%s", more, price, how);
}

void text_add_line(struct text *t, const struct row *r, const json_t *cell, const char *word)
{
	char *text = NULL, ratio[24], lo[24], hi[24], price[160] = "", number[96] = "";
	const json_t *timing = json_object_get(cell, "timing");
	char key[TEXT_ALIKE_MAX];
	alike_key(t, r, cell, key);
	if (fold(t->line, t->n_lines, key))
		return;
	if (t->n_lines == 3 * TEXT_MAX_LINES) {
		t->lines_left_out++;
		return;
	}
	if (r->status == ST_INCONCLUSIVE && isfinite(r->ratio)) {
		price_text(cell, price, sizeof price);
		snprintf(number, sizeof number, "   %s [%s, %s]", text_ratio(ratio, r->ratio), text_ratio(lo, r->lo),
			 text_ratio(hi, r->hi));
	}
	const char *reason = text_get(cell, "reason");
	if (r->status == ST_INCONCLUSIVE && *number) /* the code is short; the sentence repeats the number */
		reason = strcmp(text_get(timing, "reason"), "rounds") == 0 ? "" : text_get(timing, "reason");
	if (asprintf(&text, "%-11s %s%s%s%s%s%s", word, text_short_id(cell), number, *reason ? "   (" : "", reason,
		     *reason ? ")" : "", price) < 0)
		return;
	t->line[t->n_lines++] = (struct block){.text = text,
					       .plan_index = r->plan_index,
					       .status = r->status,
					       .alike = *key ? arena_strdup(t->arena, key) : NULL,
					       .kernel = r->kernel};
}

/* The axes in which b differs from a, as "kv=2048": "" where they differ in what is no axis. */
static void difference(const struct row *a, const struct row *b, char *out, size_t cap)
{
	size_t n = 0;
	char buf[32];
	out[0] = 0;
	if (a->case_id != b->case_id || a->kernel != b->kernel || a->geometry != b->geometry || a->data != b->data ||
	    a->axes != b->axes)
		return;
	for (int i = 0; i < a->axes->n && n < cap; i++)
		if (a->at[i] != b->at[i])
			n += (size_t)snprintf(out + n, cap - n, "%s%s=%s", n ? "," : "", a->axes->name[i],
					      text_number_text(buf, b->at[i]));
}

void text_same_in(struct text *t, const struct block *b)
{
	const struct row *me = NULL;
	char same[400] = "", other[400] = "", where[120], by[24];
	int n_same = 0, n_other = 0;
	size_t same_n = 0, other_n = 0;
	for (size_t i = 0; i < t->n_rows && !me; i++)
		if (t->row[i].plan_index == b->plan_index)
			me = &t->row[i];
	if (!me || b->status != ST_REGRESSION)
		return;
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct row *r = &t->row[i];
		difference(me, r, where, sizeof where);
		/* One axis apart is news; a diagonal one is not. */
		if (!*where || strchr(where, ',') || !r->timed || r->selected != me->selected)
			continue;
		if (r->status == ST_REGRESSION && ++n_same <= 4 && same_n < sizeof same)
			same_n += (size_t)snprintf(same + same_n, sizeof same - same_n, "%s%s (%s)", same_n ? ", " : "",
						   where, text_percent(by, r->ratio - 1));
		if (r->within && ++n_other <= 4 && other_n < sizeof other)
			other_n += (size_t)snprintf(other + other_n, sizeof other - other_n, "%s%s",
						    other_n ? ", " : "", where);
	}
	if (n_same || n_other)
		text_field(t->o.out, t->o.width, "same in", "%s%s%s%s%s", n_same ? same : "no other point",
			   n_same > 4 ? ", .." : "", n_other ? ";  not in " : "", other, n_other > 4 ? ", .." : "");
}
