/* diff_text: a comparison on a terminal: 100 columns, readable without colour. */
#include <math.h>
#include <string.h>

#include "cmd.h"
#include "diff_fold.h"
#include "diff_show.h"
#include "record_parts.h"
#include "text_parts.h"

enum { COLUMNS = 100, LABEL = 32, ARM = 10, MAX_LINES = 20 };

/* ---- words that md shares -------------------------------------------------------------------------------------------- */

void diff_side_text(const struct diff *d, enum diff_side side, const char *path, char *out, size_t cap)
{
	const json_t *h = diff_header(d, side), *device = json_object_get(h, "device"),
		     *git = json_object_get(h, "git");
	const char *commit = record_text(git, "commit"), *started = record_text(h, "started");
	const char *name = record_text(device, "name"), *uuid = record_text(device, "uuid"),
		   *runtime = record_text(device, "runtime");
	struct diff_summary s;
	diff_summary(d, &s);
	snprintf(out, cap, "%.7s%s  %.30s", commit ? commit : "no git", record_true(git, "dirty") ? "+" : "",
		 name ? name : "unknown device");
	if (uuid)
		snprintf(out + strlen(out), cap - strlen(out), " %.12s", uuid);
	if (runtime)
		snprintf(out + strlen(out), cap - strlen(out), "  CUDA %.10s", runtime);
	char of[24] = "";
	if (s.processes[side] < s.all_processes[side])
		snprintf(of, sizeof of, " of %d", s.all_processes[side]);
	snprintf(out + strlen(out), cap - strlen(out), "  %d%s process%s  %.10s  %.60s", s.processes[side], of,
		 s.all_processes[side] > 1 ? "es" : "", started ? started : "", path);
}

void diff_drift_text(const struct diff_summary *s, char *out, size_t cap)
{
	if (s->controls == 0) {
		snprintf(out, cap,
			 "drift unknown: no sentinels and no shipped arm of unchanged code in both; none removed");
		return;
	}
	const char *from = !s->clocks_differ ? "removed"
			   : s->judged > 0
				   ? "clocks differ: absolute times are not compared, ratios to shipped are"
				   : "clocks differ: absolute times are not compared, and no ratio to shipped is there";
	snprintf(out, cap, "drift %+.1f %% (+-%.1f, %lld control%s: sentinels and shipped arms of unchanged code), %s",
		 100 * expm1(s->drift), 100 * 1.96 * s->drift_se, (long long)s->controls, s->controls == 1 ? "" : "s",
		 from);
}

void diff_tau_text(const struct diff_summary *s, char *out, size_t cap)
{
	const char *from = s->tau_from_controls ? "what unchanged kernels of these two runs differ by"
			   : s->tau_assumed
				   ? "assumed: no file knows what processes differ by (assay run --processes 3)"
				   : "on file";
	snprintf(out, cap, "tau   %.2g %% (%s)", 100 * s->tau, from);
	if (isfinite(s->resolution))
		snprintf(out + strlen(out), cap - strlen(out), "; a change of %.1f %% would be seen",
			 100 * s->resolution);
}

void diff_counts_text(const struct diff_summary *s, char *out, size_t cap)
{
	static const char *const words[DIFF_N] = {"new failure",
						  "slower",
						  "undecided",
						  "not comparable",
						  "changed bits",
						  "only in base",
						  "only in head",
						  "faster",
						  "fixed",
						  "waived",
						  NULL};
	out[0] = 0;
	for (int k = 0; k < DIFF_N; k++) {
		size_t n = strlen(out);
		if (!words[k] || s->cells[k] == 0)
			continue;
		snprintf(out + n, cap - n, "%s%lld %s%s", n ? ", " : "", (long long)s->cells[k], words[k],
			 k == DIFF_FAILS && s->cells[k] > 1 ? "s" : "");
		n = strlen(out);
		if (k == DIFF_INCOMPARABLE && s->clocks_differ)
			snprintf(out + n, cap - n, "%s",
				 s->times_compared > 0 ? " (clocks; ratios to shipped are)" : " (clocks)");
	}
	if (!out[0])
		snprintf(out, cap, "%s",
			 !diff_nothing(s)   ? "nothing changed"
			 : s->compared == 0 ? "nothing was compared"
					    : "no time was compared");
}

const char *diff_verdict_word(const struct diff_show *s, const struct diff_summary *sum)
{
	if (s->exit == EXIT_FAIL)
		return sum->rows[DIFF_FAILS] + sum->rows[DIFF_SLOWER] > 0 ? "REGRESSION" : "FAIL";
	if (s->exit == EXIT_INCOMPLETE)
		return diff_nothing(sum) ? "NOT COMPARABLE" : "INCOMPLETE";
	return sum->rows[DIFF_UNDECIDED] > 0 ? "NO REGRESSION FOUND" : "NO REGRESSION";
}

void diff_scope_text(const struct diff_show *s, const struct diff_summary *sum, char *out, size_t cap)
{
	/* Compared in full: status and bits, and times where there are any. A cell that is in one file only is not. */
	int64_t full = sum->compared - (sum->timed - sum->times_compared);
	out[0] = 0;
	if (s->exit == EXIT_PASS && full < sum->all_cells)
		snprintf(out, cap, " in %lld of %lld cells", (long long)full, (long long)sum->all_cells);
}

void diff_nothing_text(const struct diff *d, char *out, size_t cap)
{
	struct diff_summary s;
	diff_summary(d, &s);
	const char *refused = diff_refusal(d, 0);
	if (s.compared == 0 && s.all_cells > 0 && s.skipped == s.all_cells)
		snprintf(out, cap, "every cell was skipped in both files");
	else if (s.compared == 0 && s.all_cells == 0)
		snprintf(out, cap, "no cell is in either file");
	else if (s.compared == 0)
		snprintf(out, cap, "no cell could be compared%s%s", refused ? ": " : "", refused ? refused : "");
	else
		snprintf(out, cap, "no time could be compared%s%s; status and bits of %lld cell%s could",
			 refused           ? ": "
			 : s.clocks_differ ? ": clocks differ"
					   : "",
			 refused ? refused : "", (long long)s.compared, s.compared == 1 ? "" : "s");
}

void diff_totals_text(const struct diff_summary *s, char *out, size_t cap)
{
	snprintf(out, cap, "%lld of %lld cells compared", (long long)s->compared, (long long)s->all_cells);
	if (s->times_compared < s->timed)
		snprintf(out + strlen(out), cap - strlen(out), ", times in %lld of them", (long long)s->times_compared);
	else if (s->timed == 0 && s->compared > 0)
		snprintf(out + strlen(out), cap - strlen(out), ", none of them with times");
	if (s->skipped > 0)
		snprintf(out + strlen(out), cap - strlen(out), "; %lld skipped in both", (long long)s->skipped);
	if (s->judged > 0)
		snprintf(out + strlen(out), cap - strlen(out), "; %.2f false alarms expected in %lld comparisons",
			 s->expected_false, (long long)s->judged);
	if (isfinite(s->geomean)) {
		snprintf(out + strlen(out), cap - strlen(out), "; geomean %.3fx over %lld of %lld", s->geomean,
			 (long long)s->geomean_cells, (long long)s->all_cells);
		int64_t bad = s->cells[DIFF_FAILS] + s->cells[DIFF_SLOWER];
		if (bad > 0)
			snprintf(out + strlen(out), cap - strlen(out), ", %lld slower or failing", (long long)bad);
	}
	if (s->still_failing > 0)
		snprintf(out + strlen(out), cap - strlen(out), "; %lld fail%s in both as before",
			 (long long)s->still_failing, s->still_failing == 1 ? "s" : "");
}

void diff_incomplete_text(const struct diff *d, char *out, size_t cap)
{
	struct diff_summary s;
	diff_summary(d, &s);
	if (diff_nothing(&s))
		diff_nothing_text(d, out, cap);
	else
		snprintf(out, cap, "%s did not come to the end of %s run: what is not in it was not compared",
			 !s.unfinished[DIFF_BASE]  ? "head"
			 : s.unfinished[DIFF_HEAD] ? "base and head"
						   : "base",
			 s.unfinished[DIFF_BASE] && s.unfinished[DIFF_HEAD] ? "their" : "its");
}

void diff_next_text(const struct diff *d, const struct diff_show *s, char *out, size_t cap)
{
	const char *base = record_text(json_object_get(diff_header(d, DIFF_BASE), "git"), "commit");
	const char *head = record_text(json_object_get(diff_header(d, DIFF_HEAD), "git"), "commit");
	struct diff_summary sum;
	diff_summary(d, &sum);
	out[0] = 0;
	if (s->exit == EXIT_INCOMPLETE) {
		const char *refused = diff_refusal(d, 0);
		if (refused && sum.compared == 0 && strncmp(refused, "backend", 7) != 0)
			snprintf(out, cap,
				 "--allow-device-change shows the times of another device without judging them");
		else if (!refused && sum.clocks_differ && diff_nothing(&sum))
			snprintf(out, cap,
				 "assay ab has both builds at one clock; or lock the clocks and run both sides again");
		return;
	}
	if (s->exit == EXIT_FAIL && base && head && strcmp(base, head) != 0) {
		struct diff_folds l = {0};
		diff_folds_collect(d, sum.rows[DIFF_FAILS] ? DIFF_FAILS : DIFF_SLOWER, &l);
		if (l.n) {
			char sel[400];
			diff_fold_selector(&l.fold[0], &sum, sel, sizeof sel);
			snprintf(out, cap, "assay bisect %.7s %.7s --suite SUITE --cell '%.300s' -- BUILD...", base,
				 head, sel);
		}
		diff_folds_free(&l);
	} else if (sum.rows[DIFF_UNDECIDED] > 0) {
		snprintf(out, cap, "assay run --processes K on both sides, or assay ab, settles what is undecided");
	}
}

/* ---- lines ----------------------------------------------------------------------------------------------------------- */

static void wrap_line(const struct diff_show *s, int indent, const char *text)
{
	text_wrap(s->out, indent, COLUMNS, text);
	fputc('\n', s->out);
}

static void paint_letter(const struct diff_show *s, enum diff_state state)
{
	const char *colour = state == DIFF_FAILS || state == DIFF_SLOWER                                   ? "\033[31m"
			     : state == DIFF_UNDECIDED || state == DIFF_BITS || state == DIFF_INCOMPARABLE ? "\033[33m"
			     : state == DIFF_FASTER || state == DIFF_FIXED                                 ? "\033[32m"
													   : "";
	if (s->colour && colour[0])
		fprintf(s->out, "%s%c\033[0m", colour, diff_letter(state));
	else
		fputc(diff_letter(state), s->out);
}

static void line(const struct diff_show *s, const struct diff_summary *sum, const struct diff_fold *f)
{
	char label[600], base[24] = "", head[24] = "", ratio[24] = "", interval[48] = "";
	diff_fold_label(f, sum, label, sizeof label);
	if (f->rows > 1)
		snprintf(label + strlen(label), sizeof label - strlen(label), "  (%lld)", (long long)f->rows);
	paint_letter(s, f->state);
	const char *arm = f->arm ? f->arm : "all";
	const bool numbers = isfinite(f->ratio);
	fprintf(s->out, "  %-*s", LABEL, label);
	int at = 3 + (text_columns(label) > LABEL ? text_columns(label) : LABEL);
	/* A long name has its numbers under it. */
	if (at > 3 + LABEL) {
		fprintf(s->out, "\n%*s", 3 + LABEL, "");
		at = 3 + LABEL;
	}
	at += fprintf(s->out, " %-*s", numbers || f->why ? ARM : 0, arm);
	if (numbers) {
		text_us(base, f->base_ns);
		text_us(head, f->head_ns);
		snprintf(ratio, sizeof ratio, "%.3fx%s", f->ratio, f->of_ratio ? "r" : "");
		snprintf(interval, sizeof interval, "%.3f .. %.3f", f->lo, f->hi);
		if (at > 3 + LABEL + 1 + ARM) {
			fprintf(s->out, "\n%*s", 3 + LABEL + 1 + ARM, "");
			at = 3 + LABEL + 1 + ARM;
		}
		at += fprintf(s->out, " %8s %8s %7s  %-14s", base, head, ratio, interval);
	}
	if (f->why) {
		int room = COLUMNS - at - 2, columns = text_columns(f->why);
		if (columns <= room) {
			fprintf(s->out, " %s", f->why);
		} else if (!numbers) {
			fprintf(s->out, " ");
			wrap_line(s, at + 1, f->why);
			return;
		} else {
			fprintf(s->out, "\n      ");
			wrap_line(s, 6, f->why);
			return;
		}
	}
	fputc('\n', s->out);
}

struct largest {
	double ratio;
	char where[300];
};

static void take_largest(void *ctx, const struct diff_row *row)
{
	struct largest *l = ctx;
	if (isfinite(row->ratio) && (isnan(l->ratio) || fabs(log(row->ratio)) > fabs(log(l->ratio)))) {
		l->ratio = row->ratio;
		snprintf(l->where, sizeof l->where, "%.80s %.120s %.60s", row->kernel, row->point,
			 row->arm ? row->arm : "");
	}
}

static void same_line(const struct diff *d, const struct diff_show *s, const struct diff_summary *sum)
{
	if (sum->cells[DIFF_SAME] == 0)
		return;
	struct largest l = {.ratio = NAN};
	diff_largest_same(d, take_largest, &l);
	char n[32];
	text_count(n, sum->cells[DIFF_SAME]);
	paint_letter(s, DIFF_SAME);
	if (isfinite(l.ratio))
		fprintf(s->out, "  %s cell%s without a change that counts, largest %+.1f %% %s\n", n,
			sum->cells[DIFF_SAME] == 1 ? "" : "s", 100 * (l.ratio - 1), l.where);
	else
		fprintf(s->out, "  %s cell%s with the same status%s\n", n, sum->cells[DIFF_SAME] == 1 ? "" : "s",
			sum->compared > 0 ? " and bits" : "");
}

static void rows(const struct diff *d, const struct diff_show *s, const struct diff_summary *sum)
{
	bool any = false;
	for (int k = 0; k < DIFF_N; k++)
		any = any || (sum->rows[k] > 0 && (k != DIFF_SAME || s->all));
	if (any)
		fprintf(s->out, "   %-*s %-*s %8s %8s %7s  %-14s %s\n", LABEL, "cell", ARM, "arm", "base us", "head us",
			"ratio", "97.5 %", "why");
	for (int k = 0; k < DIFF_N; k++) {
		if (sum->rows[k] == 0 || (k == DIFF_SAME && !s->all))
			continue;
		struct diff_folds l = {.unfolded = s->all};
		diff_folds_collect(d, (enum diff_state)k, &l);
		int64_t left = l.rows_left_out;
		for (size_t i = 0; i < l.n; i++) {
			if (s->all || i < MAX_LINES)
				line(s, sum, &l.fold[i]);
			else
				left += l.fold[i].rows;
		}
		if (left > 0)
			fprintf(s->out, "%c  ... %lld more (--all)\n", diff_letter((enum diff_state)k),
				(long long)left);
		diff_folds_free(&l);
	}
	if (!s->all)
		same_line(d, s, sum);
}

static void wrapped(const struct diff_show *s, const char *text)
{
	wrap_line(s, 0, text);
}

void diff_show_text(const struct diff *d, const struct diff_show *s)
{
	struct diff_summary sum;
	char text[900];
	diff_summary(d, &sum);
	if (s->title)
		fprintf(s->out, "%s\n", s->title);
	for (int k = 0; k < 2; k++) {
		diff_side_text(d, (enum diff_side)k, k ? s->head : s->base, text, sizeof text);
		fprintf(s->out, "%s  ", k ? "head" : "base");
		wrap_line(s, 6, text);
	}
	const char *one;
	for (int i = 0; (one = diff_refusal(d, i)); i++) {
		fputs("refused: ", s->out);
		wrap_line(s, 9, one);
	}
	for (int i = 0; (one = diff_warning(d, i)); i++) {
		fputs("warned: ", s->out);
		wrap_line(s, 8, one);
	}
	if (sum.compared > 0 && (sum.judged > 0 || sum.clocks_differ)) {
		diff_drift_text(&sum, text, sizeof text);
		wrapped(s, text);
	}
	if (sum.compared > 0 && sum.judged > 0) {
		diff_tau_text(&sum, text, sizeof text);
		wrapped(s, text);
	}
	fputc('\n', s->out);
	rows(d, s, &sum);
	fputc('\n', s->out);
	diff_totals_text(&sum, text, sizeof text);
	wrapped(s, text);
	char counts[300], scope[80];
	diff_counts_text(&sum, counts, sizeof counts);
	diff_scope_text(s, &sum, scope, sizeof scope);
	snprintf(text, sizeof text, "%s%s  %s  exit %d%s", diff_verdict_word(s, &sum), scope, counts, s->exit,
		 s->advisory && s->exit ? " (advisory: 0)" : "");
	wrapped(s, text);
	diff_next_text(d, s, text, sizeof text);
	if (text[0])
		fprintf(s->out, "next  %s\n", text);
}
