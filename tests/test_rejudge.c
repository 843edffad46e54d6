/* rejudge: with nothing set the file comes back byte for byte; with something set the verdicts follow. */
#include <check.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "record.h"
#include "unit.h"
#include "verdict.h"

extern const struct cmd cmd_rejudge;

static char in[] = "in.jsonl", out[] = "out.jsonl";

static json_t *series(int n, double ratio, unsigned *seed)
{
	json_t *a = json_array();
	for (int r = 0; r < n; r++) {
		*seed = *seed * 1103515245u + 12345u;
		json_array_append_new(a, r == 3 ? json_null()
						: json_real(20000 * ratio *
							    (1 + 0.01 * ((*seed >> 16) % 1000 / 1000.0 - 0.5))));
	}
	return a;
}

static json_t *cell_record(int index, double ratio, double confirm_ratio)
{
	char id[64];
	snprintf(id, sizeof id, "s/c/k.a/g/d/x=%d", index);
	struct cell c = {
		.plan_index = index,
		.id = id,
		.suite = "s",
		.case_id = "c",
		.kernel_name = "k.a",
		.geometry = "g",
		.data = "d",
		.suite_path = "s.yaml",
		.arm = {{.name = "shipped", .role = ROLE_SHIPPED}, {.name = "split=4", .role = ROLE_CANDIDATE}},
		.n_arms = 2,
		.weight = 1,
		.timing = {.min_rounds = 8, .max_rounds = 64, .alpha = 0.025, .tau = -1},
		.selection = SELECT_ARM,
		.selected = "split=4",
		.margin_fail = 0.05,
		.margin_warn = -1,
		.gate = true,
	};
	unsigned seed = (unsigned)index + 7;
	json_t *cell = record_cell_begin(&c);
	json_t *facts = json_pack("{s:[{s:s, s:n, s:s, s:s}], s:[{s:s, s:o}, {s:s, s:o}], s:{s:s, s:i, s:i, s:s, s:i, "
				  "s:i, s:i, s:n, s:f, s:i, s:i, s:n}}",
				  "checks", "check", "data", "arm", "status", "pass", "text", "as promised", "arms",
				  "name", "shipped", "samples_ns", series(40, 1, &seed), "name", "split=4",
				  "samples_ns", series(40, ratio, &seed), "measure", "clock", "device", "scrub_bytes",
				  1, "batch", 1, "order", "random", "order_seed", 7, "rounds", 40, "dropped", 1, "cut",
				  "floor_ns", 0.1, "tick_ns", 32, "wall_ns", 1000, "threads");
	record_merge_facts(cell, facts);
	json_decref(facts);
	if (confirm_ratio > 0) {
		facts = json_pack("{s:i, s:i, s:[{s:s, s:o}, {s:s, s:o}]}", "process", 2, "order_seed", 9, "arms",
				  "name", "shipped", "samples_ns", series(33, 1, &seed), "name", "split=4",
				  "samples_ns", series(33, confirm_ratio, &seed));
		record_set_confirm(cell, facts);
		json_decref(facts);
	}
	return cell;
}

enum { N = 5 };

/* A file as a run writes it: a header, cells, a screen between them, the footer. */
static void write_file(void)
{
	static const double ratio[N] = {1.0, 1.10, 1.10, 1.04, 1.052}, again[N] = {0, 1.10, 1.0, 0, 0};
	json_t *cells[N];
	for (int i = 0; i < N; i++)
		cells[i] = cell_record(i, ratio[i], again[i]);
	struct record_env env = {.tau = 0.003, .today = "2026-11-30"};
	record_judge_run(cells, N, &env);
	struct run_counts c = {0};
	for (int i = 0; i < N; i++)
		record_count(cells[i], &c);
	ck_assert(c.by_status[ST_REGRESSION] == 1 && c.by_status[ST_INCONCLUSIVE] >= 1 && c.by_status[ST_PASS] >= 2);
	json_t *counts = json_object();
	for (int s = 0; s < ST_N; s++)
		json_object_set_new(counts, status_name((enum cell_status)s), json_integer(c.by_status[s]));
	struct err err;
	struct verdict_writer *w = verdict_create(in, VERDICT_FORCE, &err);
	ck_assert_msg(w != NULL, "%s", err.text);
	json_t *header = json_pack("{s:s, s:i, s:s, s:f, s:s}", "kind", "header", "format", RECORD_FORMAT, "started",
				   "2026-11-30T10:00:00Z", "tau", 0.003, "command", "assay run s.yaml");
	json_t *screen =
		json_pack("{s:s, s:O, s:O}", "kind", "screen", "id", json_object_get(cells[1], "id"), "cell", cells[1]);
	json_t *footer = json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:b, s:i}", "kind", "footer", "counts", counts,
				   "gated", (json_int_t)c.gated, "gated_undecided", (json_int_t)c.gated_undecided,
				   "warned", (json_int_t)c.warned, "biased", (json_int_t)c.biased, "noisy", 0, "exit",
				   record_exit(&c, false, false));
	ck_assert(verdict_write(w, header, &err) && verdict_write(w, cells[0], &err) && verdict_write(w, screen, &err));
	for (int i = 1; i < N; i++)
		ck_assert(verdict_write(w, cells[i], &err));
	ck_assert(verdict_write(w, footer, &err) && verdict_close(w, &err));
	json_decref(footer);
	json_decref(screen);
	json_decref(header);
	for (int i = 0; i < N; i++)
		json_decref(cells[i]);
}

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	char *text = calloc(1, 1 << 20);
	size_t n = fread(text, 1, (1 << 20) - 1, f);
	ck_assert(n > 0 && n < (1 << 20) - 1);
	fclose(f);
	return text;
}

static int rejudge(const char *set)
{
	char verb[] = "rejudge", o[] = "-o", s[] = "--set", force[] = "--force", value[64];
	snprintf(value, sizeof value, "%s", set ? set : "");
	char *argv[] = {verb, in, o, out, force, s, value, NULL};
	optind = 0;
	return cmd_rejudge.run(set ? 7 : 5, argv);
}

static const char *status_at(int i, json_t **line)
{
	char *text = slurp(out), *at = text;
	for (int k = 0; k < (i == 0 ? 1 : i + 2); k++)
		at = strchr(at, '\n') + 1;
	*strchr(at, '\n') = 0;
	*line = json_loads(at, 0, NULL);
	free(text);
	ck_assert_ptr_nonnull(*line);
	return json_string_value(json_object_get(*line, "status"));
}

START_TEST(nothing_set_nothing_changed)
{
	write_file();
	ck_assert_int_eq(rejudge(NULL), EXIT_FAIL);
	char *a = slurp(in), *b = slurp(out);
	ck_assert_str_eq(a, b);
	free(a);
	free(b);
}
END_TEST

START_TEST(other_settings_other_verdicts)
{
	write_file();
	json_t *line;
	ck_assert_int_eq(rejudge("margin=20%"), EXIT_PASS);
	for (int i = 0; i < N; i++) {
		ck_assert_str_eq(status_at(i, &line), "pass");
		json_decref(line);
	}
	char *text = slurp(out);
	ck_assert_ptr_nonnull(strstr(text, "--set margin=20%"));
	ck_assert_ptr_nonnull(strstr(text, "\"pass\":5"));
	ck_assert_ptr_nonnull(strstr(text, "\"exit\":0"));
	free(text);
	/* A new suspect has no second process: undecided; unless none is asked for. */
	ck_assert_int_eq(rejudge("margin=1%"), EXIT_FAIL);
	ck_assert_str_eq(status_at(3, &line), "inconclusive");
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(line, "timing"), "reason")), "unconfirmed");
	json_decref(line);
	ck_assert_int_eq(rejudge("confirm=none"), EXIT_FAIL);
	ck_assert_str_eq(status_at(2, &line), "regression");
	json_decref(line);
	ck_assert_int_eq(rejudge("estimator=mean"), EXIT_FAIL);
	ck_assert_str_eq(status_at(2, &line), "regression");
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(line, "timing"), "estimator")), "mean");
	json_decref(line);
	ck_assert_int_eq(rejudge("tau=10%"),
			 EXIT_INCOMPLETE); /* beyond what such processes differ by is nothing here */
	ck_assert_str_eq(status_at(1, &line), "inconclusive");
	json_decref(line);
}
END_TEST

START_TEST(refusals)
{
	static const char *const bad[] = {"margin", "margin=", "margin=x", "margin=3 %", "margin=3", "margin=0x3%",
					  "margin=-1%", "margin=nan", "alpha=0.02", "estimator=best", "confirm=yes",
					  "rounds=1.5", "rounds=-1", "rounds=9999", "min_rounds=0", "floor=5",
					  "floor=5parsec", "colour=red", "=3", "tau=-1",
					  /* As a suite has it: */
					  "margin=20000%", "warn=20000%", "rounds=0", "rounds=1025", "min_rounds=65",
					  "max_rounds=0", "tau=0.1", "tau=200%", "alpha=0.010000001", "rounds=0x",
					  "rounds=08", "floor=-1us", "margin=3%,4%", "order=fixed", "timing.margin=3%",
					  "estimator=",
					  /* Against what the cell has: */
					  "max_rounds=4", "warn=30%"};
	write_file();
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		unlink(out);
		ck_assert_msg(rejudge(bad[i]) == EXIT_USAGE, "%s", bad[i]);
		ck_assert_msg(access(out, F_OK) != 0, "%s left a file", bad[i]);
	}
	char verb[] = "rejudge", o[] = "-o", nowhere[] = "/nonexistent/file.jsonl";
	char *missing[] = {verb, nowhere, o, out, NULL}, *no_out[] = {verb, in, NULL};
	optind = 0;
	ck_assert_int_eq(cmd_rejudge.run(4, missing), EXIT_USAGE);
	optind = 0;
	ck_assert_int_eq(cmd_rejudge.run(2, no_out), EXIT_USAGE);
	/* An existing file is not written over. */
	char *exists[] = {verb, in, o, in, NULL};
	char *before = slurp(in);
	optind = 0;
	ck_assert_int_eq(cmd_rejudge.run(4, exists), EXIT_USAGE);
	char *after = slurp(in);
	ck_assert_str_eq(before, after);
	free(after);
	free(before);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rejudge");
	TCase *t = tcase_create("rejudge");
	tcase_add_checked_fixture(t, unit_enter, NULL);
	tcase_add_test(t, nothing_set_nothing_changed);
	tcase_add_test(t, other_settings_other_verdicts);
	tcase_add_test(t, refusals);
	suite_add_tcase(s, t);
	return unit_run(s);
}
