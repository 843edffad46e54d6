/* text_banner: what is about to run, before anything runs: where, what, how it is timed, what serving picks. */
#include <stdlib.h>

#include "text_parts.h"

/* "2048,32768" of a list of numbers; long lists are cut in the middle. */
static void values_text(FILE *f, const json_t *values)
{
	size_t n = json_array_size(values);
	char buf[32];
	for (size_t i = 0; i < n; i++) {
		if (n > 12 && i == 6) {
			fprintf(f, ",..");
			i = n - 3;
		}
		fprintf(f, "%s%s", i ? "," : "", text_number_text(buf, json_number_value(json_array_get(values, i))));
	}
}

static void names_text(FILE *f, const json_t *names)
{
	const char *list[TEXT_MAX_ARM_NAMES];
	int n = 0;
	for (size_t i = 0; i < json_array_size(names) && n < TEXT_MAX_ARM_NAMES; i++)
		list[n++] = text_string(json_array_get(names, i));
	text_arm_list(f, list, n);
}

/* Runs fill on a memory stream and prints the text as a field. */
static void field(const struct text *t, const char *label, void (*fill)(const struct text *, FILE *, const json_t *),
		  const json_t *of)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		return;
	fill(t, f, of);
	fclose(f);
	if (n > 0) {
		const int over = text_columns(label) - 8; /* a case may have a long name */
		fprintf(t->o.out, "%-8s ", label);
		text_wrap_at(t->o.out, over > 0 ? 9 + over : 9, 9, t->o.width, text);
		fputc('\n', t->o.out);
	}
	free(text);
}

static void device_text(const struct text *t, FILE *f, const json_t *h)
{
	const json_t *device = json_object_get(h, "device");
	const char *backend = text_get(h, "backend"), *uuid = text_get(device, "uuid");
	fprintf(f, "%s: %s", backend, text_get(device, "name"));
	if (text_integer(device, "threads") > 0)
		fprintf(f, ", %lld thread%s", (long long)text_integer(device, "threads"),
			text_integer(device, "threads") == 1 ? "" : "s");
	else if (strncmp(uuid, "GPU-", 4) == 0)
		fprintf(f, " %.12s", uuid);
	const json_t *shard = json_object_get(h, "shard");
	if (json_is_object(shard))
		fprintf(f, "   shard %lld/%lld", (long long)text_integer(shard, "i"),
			(long long)text_integer(shard, "n"));
	if (text_integer(h, "processes") > 1)
		fprintf(f, "   %lld processes", (long long)text_integer(h, "processes"));
}

static bool is_timed(const json_t *c)
{
	const json_t *check;
	size_t i;
	json_array_foreach(json_object_get(c, "checks"), i,
			   check) if (strcmp(text_string(check), "regression") == 0 ||
				      strcmp(text_string(check), "ratio") == 0) return true;
	return false;
}

static void rigs_text(const struct text *t, FILE *f, const json_t *h)
{
	const json_t *rigs = json_object_get(h, "rigs"), *rig;
	size_t i;
	bool asked = false;
	const json_t *c;
	json_array_foreach(json_object_get(h, "cases"), i, c) asked |= is_timed(c);
	if (!asked)
		return;
	fputs("   timing: ", f);
	json_array_foreach(rigs, i, rig)
		fprintf(f, "%s%s (%s)", i ? ", " : "",
			json_is_true(json_object_get(rig, "gating")) ? "gate" : "diagnostic", text_get(rig, "rule"));
}

static void geometry_text(const struct text *t, FILE *f, const json_t *c)
{
	const char *name, *param, *semi = "";
	json_t *params, *value;
	char buf[32];
	json_object_foreach(json_object_get(c, "geometries"), name, params)
	{
		fprintf(f, "%s%s%s", semi, name, json_object_size(params) ? ":" : "");
		json_object_foreach(params, param, value)
			fprintf(f, " %s=%s", param, text_number_text(buf, json_number_value(value)));
		semi = "; ";
	}
}

static void sweep_text(const struct text *t, FILE *f, const json_t *c)
{
	const char *name, *sep = "";
	json_t *values;
	names_text(f, json_object_get(c, "kernels"));
	fputs(json_object_size(json_object_get(c, "axes")) ? " over " : " at each geometry", f);
	json_object_foreach(json_object_get(c, "axes"), name, values)
	{
		fprintf(f, "%s%s=", sep, name);
		values_text(f, values);
		sep = " x ";
	}
	fputs("; data ", f);
	names_text(f, json_object_get(c, "data"));
	fputs("; arms ", f);
	names_text(f, json_object_get(c, "arms"));
	if (is_timed(c) && json_is_true(json_object_get(json_object_get(c, "timing"), "null_arm")))
		fputs(" + null", f);
	if (json_array_size(json_object_get(c, "checks")) == 0) {
		fputs("; skipped: none of the checks asked for is in this case", f);
		return;
	}
	fputs("; checks ", f);
	names_text(f, json_object_get(c, "checks"));
}

static void timing_text(const struct text *t, FILE *f, const json_t *c)
{
	const json_t *m = json_object_get(c, "timing");
	char buf[24];
	fprintf(f, "%s", text_get(m, "estimator"));
	if (text_integer(m, "rounds") > 0)
		fprintf(f, ", %lld rounds", (long long)text_integer(m, "rounds"));
	else
		fprintf(f, " at %g %%, %lld to %lld rounds", 100 * text_number(m, "alpha"),
			(long long)text_integer(m, "min_rounds"), (long long)text_integer(m, "max_rounds"));
	if (strcmp(text_get(m, "estimator"), "paired") != 0)
		fputs(" (no error control)", f);
	fprintf(f, ", order %s, %lld warm-up%s, clock %s, scrub %s", text_get(m, "order"),
		(long long)text_integer(m, "warmup_launches"), text_integer(m, "warmup_launches") == 1 ? "" : "s",
		text_get(m, "clock"), text_get(m, "scrub"));
	if (strcmp(text_get(m, "scrub"), "bytes") == 0)
		fprintf(f, " %lld MiB", (long long)(text_integer(m, "scrub_bytes") >> 20));
	if (text_integer(m, "cell_budget_ns") > 0)
		fprintf(f, ", at most %s a cell", text_seconds(buf, (double)text_integer(m, "cell_budget_ns")));
	if (text_integer(m, "suite_budget_ns") > 0)
		fprintf(f, ", budget %s", text_seconds(buf, (double)text_integer(m, "suite_budget_ns")));
}

static void ready_text(const struct text *t, FILE *f, const json_t *h)
{
	const json_t *c = json_object_get(h, "calibration"), *scrub = json_object_get(c, "scrub");
	char buf[24];
	if (!json_is_object(c)) {
		const bool opened = json_is_object(json_object_get(json_object_get(h, "device"), "more"));
		fputs(text_integer(h, "cells") == 0 ? "nothing to do: no cell is in this part of the plan"
		      : opened ? "not calibrated: a cell in assay's own process (--no-fork) is alone there"
			       : "no calibration: no worker came up",
		      f);
		return;
	}
	const char *bar = "";
	if (json_is_object(scrub) && text_integer(scrub, "bytes") > 0) {
		double ratio = text_number(scrub, "ratio");
		fprintf(f, "scrub %lld MiB", (long long)(text_integer(scrub, "bytes") >> 20));
		if (isfinite(ratio))
			fprintf(f, " %s x%.1f", ratio > 1.2 ? "proven" : "not proven:", ratio);
		bar = " | ";
	}
	if (isfinite(text_number(c, "null_launch_ns"))) {
		fprintf(f, "%snull launch %s us", bar, text_us(buf, text_number(c, "null_launch_ns")));
		bar = " | ";
	}
	if (isfinite(text_number(c, "tick_ns"))) {
		fprintf(f, "%stick %.0f ns", bar, text_number(c, "tick_ns"));
		bar = " | ";
	}
	const json_t *device = json_object_get(h, "device");
	if (text_integer(device, "llc_bytes") > 0)
		fprintf(f, "%slast-level cache %lld MiB", bar, (long long)(text_integer(device, "llc_bytes") >> 20));
}

/* The same arms at the same keys of the same table; the lines of the file may differ. */
static bool same_rows(const json_t *a, const json_t *b)
{
	const json_t *x = json_object_get(a, "rows"), *y = json_object_get(b, "rows");
	if (json_array_size(x) != json_array_size(y) || strcmp(text_get(a, "table"), text_get(b, "table")) != 0)
		return false;
	for (size_t i = 0; i < json_array_size(x); i++) {
		const json_t *p = json_array_get(x, i), *q = json_array_get(y, i);
		if (!json_equal(json_object_get(p, "at"), json_object_get(q, "at")) ||
		    strcmp(text_get(p, "arm"), text_get(q, "arm")) != 0)
			return false;
	}
	return true;
}

/* Kernels with the same rows of the same table share a line; s is the first of them. */
static void serving_text(const struct text *t, FILE *f, const json_t *s)
{
	const json_t *all = json_object_get(t->header, "serving"), *other;
	const char *key, *name[TEXT_MAX_ARM_NAMES];
	json_t *row, *value;
	size_t i;
	int n = 0;
	char buf[32];
	json_array_foreach(all, i, other)
	{
		if (!same_rows(other, s))
			continue;
		if (n == 0 && other != s)
			return;
		if (n < TEXT_MAX_ARM_NAMES)
			name[n++] = text_get(other, "kernel");
	}
	text_arm_list(f, name, n);
	fputs("   ", f);
	json_array_foreach(json_object_get(s, "rows"), i, row)
	{
		const char *comma = "";
		fputs(i ? "   " : "", f);
		json_t *at = json_object_get(row, "at");
		json_object_foreach(at, key, value)
		{
			fprintf(f, "%s%s=%s", comma, key, text_number_text(buf, json_number_value(value)));
			comma = ",";
		}
		if (json_object_size(at) == 0)
			fputs("any", f);
		fprintf(f, ": %s", text_get(row, "arm"));
	}
	if (*text_get(s, "table"))
		fprintf(f, "   (%s)", text_get(s, "table"));
}

void text_banner(struct text *t)
{
	const json_t *h = t->header, *c, *s;
	FILE *out = t->o.out;
	size_t i;
	char buf[32], *line = NULL;
	size_t n = 0;
	text_paint(t, out, TEXT_BOLD, "%s", text_get(h, "suite"));
	FILE *f = open_memstream(&line, &n);
	if (f) {
		int64_t cells = text_integer(h, "cells"), all = text_integer(h, "plan_cells");
		char whole[32];
		if (all > cells)
			fprintf(f, "  %s of %s cells   ", text_count(buf, cells), text_count(whole, all));
		else
			fprintf(f, "  %s cell%s   ", text_count(buf, cells), cells == 1 ? "" : "s");
		device_text(t, f, h);
		rigs_text(t, f, h);
		fclose(f);
		/* One line where it fits, else the timing on one of its own. */
		int indent = text_columns(text_get(h, "suite"));
		char *timing = indent + text_columns(line) > t->o.width ? strstr(line, "   timing: ") : NULL;
		if (timing) {
			fprintf(out, "%.*s\n", (int)(timing - line), line);
			fprintf(out, "%-9s%s\n", "gate", timing + strlen("   timing: "));
		} else {
			fprintf(out, "%s\n", line);
		}
		free(line);
	}
	json_array_foreach(json_object_get(h, "cases"), i, c)
	{
		bool named = json_array_size(json_object_get(h, "cases")) > 1;
		field(t, named ? text_get(c, "id") : "sweep", sweep_text, c);
		/* What is as in the case before is not said again. */
		const json_t *before = i ? json_array_get(json_object_get(h, "cases"), i - 1) : NULL;
		if (!json_equal(json_object_get(before, "geometries"), json_object_get(c, "geometries")))
			field(t, "geometry", geometry_text, c);
		if (is_timed(c) &&
		    !(is_timed(before) && json_equal(json_object_get(before, "timing"), json_object_get(c, "timing"))))
			field(t, "timing", timing_text, c);
	}
	if (!t->pair)
		json_array_foreach(json_object_get(h, "serving"), i, s) field(t, "serving", serving_text, s);
	field(t, "ready", ready_text, h);
	fputc('\n', out);
}
