/* text_end: what was proven, what was not, and the one line that is enough for a message. */
#include <stdlib.h>

#include "cmd.h"
#include "text_parts.h"

enum { PREEMPTED_PER_S = 20 };

static void field_open(FILE **f, char **text, size_t *n)
{
	*text = NULL;
	*f = open_memstream(text, n);
	if (!*f)
		abort();
}

static void field_close(struct text *t, FILE *f, char **at, const char *label)
{
	fclose(f); /* now the text is where the stream says */
	char *text = *at;
	if (*text) {
		fprintf(t->o.out, "%-9s", label);
		text_wrap(t->o.out, 9, t->o.width, text);
		fputc('\n', t->o.out);
	}
	free(text);
}

static int by_arm(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	size_t n = strcspn(x, "="), m = strcspn(y, "=");
	if (n == m && strncmp(x, y, n) == 0 && x[n] && y[m]) {
		double p = strtod(x + n + 1, NULL), q = strtod(y + m + 1, NULL);
		return (p > q) - (p < q);
	}
	return strcmp(x, y);
}

/* Arms that passed (failed false) or failed somewhere, in order. Returns how many. */
static int arms_of(const struct tally *y, bool failed, const char **out)
{
	int n = 0;
	for (int i = 0; i < y->n_arms; i++)
		if (y->arm_failed[i] == failed)
			out[n++] = y->arm[i];
	qsort(out, (size_t)n, sizeof *out, by_arm);
	return n;
}

/* "split=2,4 WORDS in 16 cells, split_kv=2 in 8": an arm that only some kernels have is not credited with the cells of the others. */
static void held_text(FILE *f, const struct tally *y, const char *const *arm, int n, const char *words)
{
	bool told[TEXT_MAX_ARM_NAMES] = {false};
	for (bool first = true;; first = false) {
		int64_t most = 0, cells[TEXT_MAX_ARM_NAMES];
		for (int i = 0; i < n; i++) {
			cells[i] = 0;
			for (int k = 0; k < y->n_arms; k++)
				if (y->arm[k] == arm[i])
					cells[i] = y->arm_findings[k];
			if (!told[i] && cells[i] > most)
				most = cells[i];
		}
		if (!most)
			return;
		const char *same[TEXT_MAX_ARM_NAMES];
		int n_same = 0;
		for (int i = 0; i < n; i++)
			if (!told[i] && cells[i] == most) {
				same[n_same++] = arm[i];
				told[i] = true;
			}
		char a[32];
		fputs(first ? "" : ", ", f);
		text_arm_list(f, same, n_same);
		fprintf(f, "%s in %s%s", first ? words : "", text_count(a, most),
			!first      ? ""
			: most == 1 ? " cell"
				    : " cells");
	}
}

/* " (waived)" where every failure is, " (2 waived)" where some are. */
static const char *waived_text(char buf[48], const struct tally *y)
{
	char n[32];
	if (y->waived_cells == 0)
		return "";
	if (y->waived_cells == y->failed_cells)
		return " (waived)";
	snprintf(buf, 48, " (%s waived)", text_count(n, y->waived_cells));
	return buf;
}

static void identity_text(const struct text *t, FILE *f, const struct tally *y)
{
	const char *arm[TEXT_MAX_ARM_NAMES];
	int n = arms_of(y, false, arm);
	char a[32], b[32], c[48], words[96];
	if (n) {
		snprintf(words, sizeof words, " BIT-IDENTICAL to %.60s",
			 y->against && !y->against_differs ? y->against : text_yardstick(t));
		held_text(f, y, arm, n, words);
	}
	int bad = arms_of(y, true, arm);
	if (bad) {
		fputs(n ? "; " : "", f);
		text_arm_list(f, arm, bad);
		fprintf(f, " MISMATCH in %s of %s cells%s", text_count(a, y->failed_cells), text_count(b, y->cells),
			waived_text(c, y));
	}
}

static void repeat_text(const struct text *t, FILE *f, const struct tally *y)
{
	(void)t;
	char a[32], b[32];
	fprintf(f, "repeat %s of %s launches differ", text_count(a, y->launches_differ), text_count(b, y->launches));
	if (y->launches_differ == 0 && y->launches > 0) /* one-sided 95 % of the pooled launches */
		fprintf(f, " (< %.2g %% at 95 %%)", 100 * (1 - pow(0.05, 1 / (double)y->launches)));
}

static void invariant_text(const struct text *t, FILE *f, const struct tally *y)
{
	(void)t;
	char a[32];
	if (y->failed_cells) {
		fprintf(f, "rows NOT invariant in %s cell%s", text_count(a, y->failed_cells),
			y->failed_cells == 1 ? "" : "s");
		return;
	}
	fputs("rows invariant (", f);
	for (int i = 0; i < y->n_kinds; i++)
		fprintf(f, "%s%s", i ? ", " : "", y->kind[i]);
	fprintf(f, "%s%s)", y->n_kinds ? "; " : "", y->controls > 0 ? "controls differ" : "no control");
}

static void reference_text(const struct text *t, FILE *f, const struct tally *y)
{
	(void)t;
	char a[32], b[32], c[48];
	const char *arm[TEXT_MAX_ARM_NAMES];
	if (y->failed_cells) {
		fprintf(f, "reference: WRONG in %s of %s cells%s", text_count(a, y->failed_cells),
			text_count(b, y->cells), waived_text(c, y));
	} else {
		int n = arms_of(y, false, arm);
		held_text(f, y, arm, n, " within the bound of the reference");
		fprintf(f, ", worst %.2g of it", y->worst);
	}
	if (y->rows_of > y->rows && y->rows > 0)
		fprintf(f, " (%s of %s rows)", text_count(a, y->rows), text_count(b, y->rows_of));
}

static void right_line(struct text *t)
{
	static void (*const words[TC_N])(const struct text *, FILE *,
					 const struct tally *) = {[TC_IDENTITY] = identity_text,
								  [TC_REPEAT] = repeat_text,
								  [TC_INVARIANT] = invariant_text,
								  [TC_REFERENCE] = reference_text};
	static const int order[] = {TC_IDENTITY, TC_REFERENCE, TC_REPEAT, TC_INVARIANT};
	char *text, a[32], b[32], c[48];
	size_t n;
	FILE *f;
	int64_t asked = (int64_t)t->n_rows - t->by_status[ST_SKIP];
	field_open(&f, &text, &n);
	fprintf(f, "%s/%s", text_count(a, t->kept_right), text_count(b, asked));
	const char *sep = "  ";
	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		const struct tally *y = &t->tally[order[i]];
		if (!y->cells)
			continue;
		fputs(sep, f);
		words[order[i]](t, f, y);
		sep = "; ";
	}
	const struct tally *memory = &t->tally[TC_MEMORY], *data = &t->tally[TC_DATA];
	if (memory->cells && !memory->failed_cells)
		fprintf(f, "%sguards, tails and inputs untouched, every output written", sep);
	else if (memory->cells)
		fprintf(f, "%smemory WRONG in %s cell%s%s", sep, text_count(a, memory->failed_cells),
			memory->failed_cells == 1 ? "" : "s", waived_text(c, memory));
	sep = memory->cells ? "; " : sep;
	if (data->cells && !data->failed_cells)
		fprintf(f, "%sdata as promised", sep);
	else if (data->cells)
		fprintf(f, "%sdata NOT as promised in %s cell%s%s", sep, text_count(a, data->failed_cells),
			data->failed_cells == 1 ? "" : "s", waived_text(c, data));
	field_close(t, f, &text, "right");
}

static void row_place(FILE *f, const struct row *r)
{
	char buf[32];
	fprintf(f, "%s", r->kernel);
	for (int i = 0; i < r->axes->n; i++)
		fprintf(f, "%s%s=%s", i ? "," : " ", r->axes->name[i], text_number_text(buf, r->at[i]));
}

/* Timed, or passed or undecided without: a cell that failed before its first round says nothing of time, though what it serves be the
 * shipped arm. */
static bool speaks_of_time(const struct row *r)
{
	return r->judged && (r->timed || r->status == ST_INCONCLUSIVE || r->status == ST_PASS);
}

static void timing_line(struct text *t)
{
	const struct row *worst = NULL;
	int64_t timed = 0, within = 0, gated = 0, undecided = 0, invalid = 0, untimed = 0;
	double margin_lo = INFINITY, margin_hi = 0, floor_ns = 0;
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct row *r = &t->row[i];
		if (!speaks_of_time(r))
			continue;
		timed++;
		untimed += r->trivial && !r->timed;
		gated += r->gating;
		undecided += r->undecided;
		invalid += r->invalid;
		within += r->within;
		margin_lo = fmin(margin_lo, r->margin);
		margin_hi = fmax(margin_hi, r->margin);
		floor_ns = fmax(floor_ns, r->floor_ns);
		if (!r->trivial && r->ratio > 0 && (!worst || r->ratio > worst->ratio))
			worst = r;
	}
	if (timed == 0)
		return;
	char *text, a[32], b[32];
	size_t n;
	FILE *f;
	field_open(&f, &text, &n);
	fprintf(f, "%s/%s  ", text_count(a, within), text_count(b, timed));
	const char *judged = t->pair ? "head" : "served", *against = text_yardstick(t);
	if (within == timed)
		fprintf(f, "no %s arm is slower than %s by ", judged, against);
	else
		fprintf(f, "%s arms shown to be not slower than %s by ", judged, against);
	if (margin_lo == margin_hi)
		fprintf(f, "%.3g %%", 100 * (margin_hi - 1));
	else
		fprintf(f, "%.3g to %.3g %%", 100 * (margin_lo - 1), 100 * (margin_hi - 1));
	if (floor_ns > 0)
		fprintf(f, " or %s us", text_us(a, floor_ns));
	if (worst) {
		fprintf(f, "; worst %s ", text_ratio(a, worst->ratio));
		row_place(f, worst);
	} else {
		fputs(within == timed ? "; every served arm is the shipped one" : "; each of these is the shipped one",
		      f);
	}
	if (untimed)
		fprintf(f, "; %s of them not timed", text_count(a, untimed));
	if (undecided)
		fprintf(f, "; %s undecided", text_count(a, undecided));
	if (invalid)
		fprintf(f, "; %s invalid", text_count(a, invalid));
	if (gated < timed)
		fprintf(f, gated ? "; a gate in %s, elsewhere a diagnostic" : "; a diagnostic on this rig, no gate",
			text_count(a, gated));
	if (t->warned)
		fprintf(f, "; %s above the warn level", text_count(a, t->warned));
	if (t->tails)
		fprintf(f, "; %s with a heavier tail than %s", text_count(a, t->tails), against);
	field_close(t, f, &text, "timing");
}

static void noise_line(struct text *t)
{
	if (t->null_cells == 0 && !t->limit)
		return;
	char *text, a[32], b[32], c[32];
	size_t n;
	FILE *f;
	field_open(&f, &text, &n);
	if (t->null_cells && isfinite(t->noise_lo) && t->noise_lo <= t->noise_hi) {
		char lo[32], hi[32];
		snprintf(lo, sizeof lo, "%.1f", 100 * t->noise_lo);
		snprintf(hi, sizeof hi, "%.1f", 100 * t->noise_hi);
		fprintf(f, "null arm %s%s%s %% a launch, ", lo, strcmp(lo, hi) ? " .. " : "", strcmp(lo, hi) ? hi : "");
	}
	if (t->null_cells)
		fprintf(f, "%s of %s biased (%.1f by chance); %s rounds", text_count(a, t->null_biased),
			text_count(b, t->null_cells), 0.012 * (double)t->null_cells, text_count(c, t->rounds));
	if (json_is_true(json_object_get(t->footer, "noisy")))
		fputs("; the run is NOISY: it cannot fail a timing gate", f);
	if (t->limit)
		fprintf(f, "%sthe %s held the clock in %s cell%s: ratios stand, times are of the clock that was had",
			t->null_cells ? "\n" : "", t->limit, text_count(a, t->n_limited), t->n_limited == 1 ? "" : "s");
	/* A busy neighbour takes the CPU at the end of every time slice, a few milliseconds apart; an idle system a few times a second. */
	if (t->null_cells && t->preemptions > 10 && t->preemptions > PREEMPTED_PER_S * t->preempted_s)
		fprintf(f,
			"\nthe system took the kernel's CPU away %.0f times in %.1f s of rounds: another process wants "
			"it too; end it, or run "
			"assay on other CPUs (taskset -c LIST assay run ...)",
			t->preemptions, t->preempted_s);
	field_close(t, f, &text, "noise");
}

static void advice_lines(struct text *t)
{
	char *text, a[32];
	size_t n;
	FILE *f;
	field_open(&f, &text, &n);
	for (int i = 0; i < t->n_advice; i++) {
		const struct advice *v = &t->advice[i];
		fprintf(f, "%s%s: %s is %.1f %% faster than served %s in %s cell%s", i ? "\n" : "", v->kernel, v->arm,
			100 * (1 - exp(v->ln_sum / (double)v->cells)), v->selected, text_count(a, v->cells),
			v->cells == 1 ? "" : "s");
	}
	if (t->n_advice)
		fputs("\nmeasured in this run, not confirmed: edit a table only by a run on its rig", f);
	field_close(t, f, &text, "advice");
}

static void waiver_lines(struct text *t)
{
	const json_t *w;
	size_t i;
	json_array_foreach(json_object_get(t->footer, "waivers"), i, w)
	{
		const char *say = NULL, *lacks = text_get(w, "lacks");
		if (json_is_true(json_object_get(w, "expired")))
			say = "has expired: fix the cell or renew it with a reason";
		else if (text_integer(w, "cells") == 0 && !json_is_true(json_object_get(w, "elsewhere")))
			say = *lacks ? "fits no cell: none that it matches has " : "matches no cell: remove it";
		/* Only what all of its cells have shown: some may not have run, or run and been no test of it. */
		else if (text_integer(w, "cells") > 0 && text_integer(w, "passed") == text_integer(w, "cells"))
			say = "was not needed in this run";
		if (say)
			fprintf(t->o.out, "%-9s%s %s%s\n", "waiver", text_get(w, "id"), say,
				say[strlen(say) - 1] == ' ' ? lacks : "");
	}
}

/* One-line findings: failures first. */
static void finding_lines(struct text *t)
{
	int shown = 0, hidden = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < t->n_lines; i++) {
			const struct block *b = &t->line[i];
			bool failure = b->status <= ST_REGRESSION || b->status == ST_XPASS;
			if (failure != (pass == 0) || (t->o.quiet && !failure))
				continue;
			if (!t->o.verbose && shown >= TEXT_MAX_LINES) {
				hidden++;
				continue;
			}
			if (shown++ == 0)
				fputc('\n', t->o.out);
			text_wrap(t->o.out, 12, t->o.width, b->text);
			fputc('\n', t->o.out);
			if (b->more)
				fprintf(t->o.out, "            and %lld more cell%s of %s for the same reason\n",
					(long long)b->more, b->more == 1 ? "" : "s", b->kernel);
		}
	}
	if (hidden || t->lines_left_out)
		fprintf(t->o.out, "... and %lld more such cells; the file has them all\n",
			(long long)(hidden + t->lines_left_out));
}

void text_summary(struct text *t)
{
	finding_lines(t);
	if (t->o.quiet)
		return;
	if (t->n_blocks || t->n_lines || t->n_disbelief)
		fputc('\n', t->o.out);
	if (t->n_rows > (size_t)t->by_status[ST_SKIP])
		right_line(t);
	timing_line(t);
	noise_line(t);
	advice_lines(t);
	waiver_lines(t);
}

/* "47 pass" for each status that occurred, failures first. */
static void counts_text(const struct text *t, FILE *f)
{
	static const enum cell_status order[] = {ST_ERROR,    ST_TIMEOUT,    ST_INVALID, ST_WRONG,
						 ST_MISMATCH, ST_REGRESSION, ST_XPASS,   ST_INCONCLUSIVE,
						 ST_XFAIL,    ST_SKIP,       ST_PASS};
	const char *sep = "";
	char a[32];
	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		enum cell_status s = order[i];
		int64_t n = t->by_status[s] + (s == ST_INVALID ? t->by_status[ST_INVALID_DATA] : 0);
		if (n == 0)
			continue;
		fprintf(f, "%s%s %s", sep, text_count(a, n),
			s == ST_INCONCLUSIVE ? "undecided"
			: s == ST_XFAIL      ? "waived"
					     : status_name(s));
		sep = "  ";
	}
	if (!*sep)
		fputs("no cell", f);
}

/* In how many cells each check held. */
static void proven_text(const struct text *t, FILE *f)
{
	static const struct {
		enum text_check check;
		const char *words;
	} proofs[] = {{TC_IDENTITY, "identity"},
		      {TC_REFERENCE, "reference"},
		      {TC_REPEAT, "repeat"},
		      {TC_INVARIANT, "invariant"}};
	const char *sep = "";
	char a[32], b[32];
	int64_t within = 0, timed = 0, gated = 0;
	/* After a failure the count must not read as if it were of what failed. */
	fputs(t->footer && text_integer(t->footer, "exit") == EXIT_PASS ? ": " : "; held: ", f);
	for (size_t i = 0; i < sizeof proofs / sizeof *proofs; i++) {
		const struct tally *y = &t->tally[proofs[i].check];
		if (y->cells - y->failed_cells <= 0)
			continue;
		fprintf(f, "%s%s %s", sep, proofs[i].words, text_count(a, y->cells - y->failed_cells));
		sep = ", ";
	}
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct row *r = &t->row[i];
		timed += r->judged && r->status != ST_SKIP;
		within += speaks_of_time(r) && r->within;
		gated += r->judged && r->gating;
	}
	if (within || (timed && t->footer && text_integer(t->footer, "exit") == EXIT_PASS)) {
		fprintf(f, "%stiming %s%s", sep, text_count(a, within), gated == 0 ? " (diagnostic)" : "");
		sep = ", ";
	}
	int64_t asked = 0, believed = 0, n = (int64_t)json_array_size(t->aggregate);
	for (int64_t i = 0; i < n; i++) {
		const char *verdict = text_get(json_array_get(t->aggregate, (size_t)i), "verdict");
		asked += *verdict != 0;
		believed += strcmp(verdict, "met") == 0 || strcmp(verdict, "none") == 0;
	}
	if (asked) {
		fprintf(f, "%sratio %s of %s", sep, text_count(a, believed), text_count(b, asked));
		sep = ", ";
	}
	if (!*sep)
		fputs("nothing", f);
}

static const char *short_device(const struct text *t)
{
	const char *name = text_get(json_object_get(t->header, "device"), "name");
	return strncmp(name, "NVIDIA ", 7) == 0 ? name + 7 : name;
}

void text_last_line(struct text *t)
{
	char *text, seconds[24];
	size_t n;
	FILE *f;
	const bool whole = t->footer != NULL;
	const int64_t status = whole ? text_integer(t->footer, "exit") : -1;
	const char *word = !whole                       ? "CUT SHORT"
			   : status == EXIT_PASS        ? t->n_rows ? "PASS" : "NOTHING RUN"
			   : status == EXIT_FAIL        ? "FAIL"
			   : status == EXIT_NOTHING_RUN ? "NOTHING RUN"
			   : status >= 128              ? "INTERRUPTED"
							: "INCOMPLETE";
	field_open(&f, &text, &n);
	fprintf(f, "%s  ", text_get(t->header, "suite"));
	counts_text(t, f);
	proven_text(t, f);
	if (whole && text_integer(t->footer, "not_run") > 0)
		fprintf(f, "  %lld not run", (long long)text_integer(t->footer, "not_run"));
	if (whole)
		fprintf(f, "  %s", text_seconds(seconds, (double)text_integer(t->footer, "wall_ns")));
	if (*short_device(t))
		fprintf(f, "  %s", short_device(t));
	if (whole)
		fprintf(f, t->o.advisory && status != 0 ? "  exit 0 (advisory; else %lld)" : "  exit %lld",
			(long long)status);
	if (t->o.file)
		fprintf(f, "  -> %s", t->o.file);
	fclose(f);
	text_paint(t, t->o.out,
		   !whole || status >= EXIT_INCOMPLETE ? TEXT_YELLOW
		   : status == EXIT_PASS               ? TEXT_GREEN
						       : TEXT_RED,
		   "%s", word);
	/* One line, whatever its length: it is what gets pasted. */
	fprintf(t->o.out, "  %s\n", text);
	free(text);
}
