/* report_junit: a suite a file, a test case a cell, for the dashboards of CI. A waived cell is skipped, an xpass is a failure. */
#include "markup.h"
#include "report.h"

#include <stdlib.h>

enum outcome { PASSED, FAILED, BROKEN, SKIPPED, N_OUTCOMES };

static enum outcome outcome_of(const struct row *row, enum report_inconclusive undecided)
{
	switch (row->status) {
	case ST_PASS: return PASSED;
	case ST_WRONG:
	case ST_MISMATCH:
	case ST_REGRESSION:
	case ST_XPASS: return FAILED;
	case ST_SKIP:
	case ST_XFAIL: return SKIPPED;
	case ST_INCONCLUSIVE: return undecided == REPORT_PASS ? PASSED : undecided == REPORT_FAIL ? FAILED : SKIPPED;
	default: return BROKEN;
	}
}

static void attribute(FILE *f, const char *name, const char *value)
{
	fprintf(f, " %s=\"", name);
	markup_xml(f, value);
	fputc('"', f);
}

static double seconds_of(const json_t *cell)
{
	double wall = text_number(json_object_get(cell, "cost"), "wall_ns");
	if (!isfinite(wall))
		wall = text_number(json_object_get(cell, "measure"), "wall_ns");
	return isfinite(wall) ? wall / 1e9 : 0;
}

/* What a person wants to read first where a test is red. */
static void body(FILE *f, const json_t *cell)
{
	const json_t *x;
	size_t i;
	json_array_foreach(json_object_get(cell, "checks"), i, x)
	{
		if (!text_finding_is_bad(x))
			continue;
		markup_xml(f, text_get(x, "check"));
		fputc(' ', f);
		markup_xml(f, text_get(x, "arm"));
		fputs(": ", f);
		markup_xml(f, text_get(x, "text"));
		fputc('\n', f);
	}
	static const char *const rules[][2] = {{"rule: margin ", "rule"},
					       {"row: ", "selected_row"},
					       {"rerun: ", "rerun"}};
	for (size_t k = 0; k < 3; k++) {
		if (!*text_get(cell, rules[k][1]))
			continue;
		fputs(rules[k][0], f);
		markup_xml(f, text_get(cell, rules[k][1]));
		fputc('\n', f);
	}
}

static void test_case(FILE *f, const json_t *cell, const struct row *row, enum outcome o)
{
	char *name = NULL;
	size_t n = 0;
	FILE *m = open_memstream(&name, &n);
	if (!m)
		return;
	fprintf(m, "%s/%s/", text_get(cell, "geometry"), text_get(cell, "data"));
	report_point(m, cell);
	fclose(m);
	char *class_name = NULL;
	m = open_memstream(&class_name, &n);
	if (!m) {
		free(name);
		return;
	}
	fprintf(m, "%s.%s.%s", text_get(cell, "suite"), text_get(cell, "case"), text_get(cell, "kernel"));
	fclose(m);
	fputs("    <testcase", f);
	attribute(f, "name", name);
	attribute(f, "classname", class_name);
	fprintf(f, " time=\"%.3f\"", seconds_of(cell));
	free(name);
	free(class_name);
	if (o == PASSED) {
		fputs("/>\n", f);
		return;
	}
	const char *const element = o == FAILED ? "failure" : o == BROKEN ? "error" : "skipped";
	fprintf(f, ">\n      <%s", element);
	const char *reason = report_reason(cell);
	attribute(f, "message", *reason ? reason : report_status_word(row->status));
	if (o == SKIPPED) {
		fputs("/>\n    </testcase>\n", f);
		return;
	}
	attribute(f, "type", text_get(cell, "status"));
	fputc('>', f);
	body(f, cell);
	fprintf(f, "</%s>\n    </testcase>\n", element);
}

/* Verdicts over cells (a bar of a ratio check) are tests too. */
static bool is_gate(const json_t *aggregate)
{
	const char *v = text_get(aggregate, "verdict");
	return strcmp(text_get(aggregate, "kind"), "aggregate") == 0 &&
	       (strcmp(v, "met") == 0 || strcmp(v, "missed") == 0 || strcmp(v, "invalid") == 0);
}

static enum outcome outcome_of_aggregate(const json_t *a)
{
	const char *v = text_get(a, "verdict");
	return strcmp(v, "met") == 0 ? PASSED : strcmp(v, "missed") == 0 ? FAILED : BROKEN;
}

static void aggregate_case(FILE *f, const struct report_file *file, const json_t *a)
{
	const enum outcome o = outcome_of_aggregate(a);
	char *name = NULL;
	size_t n = 0;
	FILE *m = open_memstream(&name, &n);
	if (!m)
		return;
	report_aggregate_name(m, a);
	fclose(m);
	fputs("    <testcase", f);
	attribute(f, "name", name);
	free(name);
	attribute(f, "classname", text_get(file->v.header, "suite"));
	fputs(" time=\"0.000\"", f);
	if (o == PASSED) {
		fputs("/>\n", f);
		return;
	}
	fprintf(f, ">\n      <%s", o == FAILED ? "failure" : "error");
	char why[600];
	report_bar_why(why, a);
	attribute(f, "message", why);
	attribute(f, "type", o == FAILED ? "bar" : "invalid");
	fprintf(f, "/>\n    </testcase>\n");
}

static void properties(FILE *f, const struct report_file *file)
{
	const json_t *h = file->v.header, *device = json_object_get(h, "device"), *git = json_object_get(h, "git");
	const struct {
		const char *name, *value;
	} p[] = {
		{"backend", text_get(h, "backend")}, {"device", text_get(device, "name")},
		{"uuid", text_get(device, "uuid")},  {"assay", text_get(h, "tool_commit")},
		{"git", text_get(git, "commit")},    {"suite_sha256", text_get(h, "suite_sha256")},
		{"command", text_get(h, "command")},
	};
	fputs("    <properties>\n", f);
	for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
		if (!*p[i].value)
			continue;
		fputs("      <property", f);
		attribute(f, "name", p[i].name);
		attribute(f, "value", p[i].value);
		fputs("/>\n", f);
	}
	fputs("    </properties>\n", f);
}

void report_junit(const struct report *r, FILE *f, enum report_inconclusive undecided)
{
	int64_t all[N_OUTCOMES] = {0}, total = 0;
	int64_t(*per_file)[N_OUTCOMES] = arena_array(r->arena, r->n_files, sizeof *per_file);
	for (size_t i = 0; i < r->n_files; i++) {
		const struct report_file *file = &r->file[i];
		for (size_t k = 0; k < file->v.n_cells; k++)
			per_file[i][outcome_of(&file->text->row[k], undecided)]++;
		for (size_t k = 0; k < file->v.n_other; k++)
			if (is_gate(file->v.other[k]))
				per_file[i][outcome_of_aggregate(file->v.other[k])]++;
		per_file[i][BROKEN] += !file->v.footer;
		for (int o = 0; o < N_OUTCOMES; o++) {
			all[o] += per_file[i][o];
			total += per_file[i][o];
		}
	}
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", f);
	fprintf(f, "<testsuites name=\"assay\" tests=\"%lld\" failures=\"%lld\" errors=\"%lld\" skipped=\"%lld\">\n",
		(long long)total, (long long)all[FAILED], (long long)all[BROKEN], (long long)all[SKIPPED]);
	for (size_t i = 0; i < r->n_files; i++) {
		const struct report_file *file = &r->file[i];
		const int64_t *c = per_file[i];
		double wall = text_number(file->v.footer, "wall_ns");
		const char *started = text_get(file->v.header, "started");
		fputs("  <testsuite", f);
		attribute(f, "name", r->n_files > 1 ? file->label : text_get(file->v.header, "suite"));
		fprintf(f, " tests=\"%lld\" failures=\"%lld\" errors=\"%lld\" skipped=\"%lld\" time=\"%.3f\"",
			(long long)(c[PASSED] + c[FAILED] + c[BROKEN] + c[SKIPPED]), (long long)c[FAILED],
			(long long)c[BROKEN], (long long)c[SKIPPED], isfinite(wall) ? wall / 1e9 : 0);
		char stamp[20]; /* ISO 8601 without a zone, as the schema of JUnit wants */
		snprintf(stamp, sizeof stamp, "%.19s", started);
		attribute(f, "timestamp", stamp);
		attribute(f, "hostname", text_get(file->v.header, "host"));
		fputs(">\n", f);
		properties(f, file);
		for (size_t k = 0; k < file->v.n_cells; k++)
			test_case(f, file->v.cell[k], &file->text->row[k], outcome_of(&file->text->row[k], undecided));
		for (size_t k = 0; k < file->v.n_other; k++)
			if (is_gate(file->v.other[k]))
				aggregate_case(f, file, file->v.other[k]);
		if (!file->v.footer) {
			fputs("    <testcase name=\"whole run\"", f);
			attribute(f, "classname", text_get(file->v.header, "suite"));
			fputs(" time=\"0.000\">\n      <error message=\"the verdict file was cut short: the run did "
			      "not "
			      "end\" type=\"incomplete\"/>\n    </testcase>\n",
			      f);
		}
		fputs("  </testsuite>\n", f);
	}
	fputs("</testsuites>\n", f);
}
