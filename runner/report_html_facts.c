/* report_html_facts: what the numbers rest on: the data's audit, the device before and after, the machine code of the arms. */
#include <stdlib.h>

#include "report_html.h"

enum { MAX_AUDIT = 512, MAX_ARTIFACTS = 400 };

/* ---- data ----------------------------------------------------------------------------------------------------------- */

struct audit {
	const char *kernel, *data, *tensor, *as;
	size_t cells;
	double n, nan, inf, denormal, zero, negative, positive, min, max;
};

static struct audit *audit_of(struct audit *a, size_t *n, const json_t *cell, const char *tensor, const char *as)
{
	const char *kernel = text_get(cell, "kernel"), *data = text_get(cell, "data");
	for (size_t i = 0; i < *n; i++)
		if (strcmp(a[i].kernel, kernel) == 0 && strcmp(a[i].data, data) == 0 &&
		    strcmp(a[i].tensor, tensor) == 0 && strcmp(a[i].as, as) == 0)
			return &a[i];
	if (*n == MAX_AUDIT)
		return NULL;
	a[*n] = (struct audit){.kernel = kernel,
			       .data = data,
			       .tensor = tensor,
			       .as = as,
			       .min = INFINITY,
			       .max = -INFINITY};
	return &a[(*n)++];
}

static void audit_cell(struct audit *a, size_t *n, const json_t *cell)
{
	const char *tensor;
	json_t *t;
	json_object_foreach(json_object_get(cell, "data_audit"), tensor, t)
	{
		const json_t *x;
		size_t i;
		json_array_foreach(json_object_get(t, "readings"), i, x)
		{
			struct audit *y = audit_of(a, n, cell, tensor, text_get(x, "as"));
			if (!y)
				continue;
			y->cells++;
			y->n += (double)text_integer(x, "n");
			y->nan += (double)text_integer(x, "nan");
			y->inf += (double)text_integer(x, "inf");
			y->denormal += (double)text_integer(x, "denormal");
			y->zero += (double)text_integer(x, "zero");
			y->negative += (double)text_integer(x, "negative");
			y->positive += (double)text_integer(x, "positive");
			y->min = fmin(y->min, text_number(x, "min"));
			y->max = fmax(y->max, text_number(x, "max"));
		}
	}
}

void html_audit(FILE *f, const struct report *r)
{
	struct audit *a = calloc(MAX_AUDIT, sizeof *a);
	size_t n = 0;
	if (!a)
		abort();
	/* The same seed gives the same bytes: one file speaks for all. */
	for (size_t i = 0; i < r->n_lines; i++)
		audit_cell(a, &n, r->line[i].any);
	if (n > 0) {
		static const char *const heads[] = {"kernel", "data", "tensor", "as"};
		static const char *const counts[] = {"cells", "elements", "nan",      "inf", "denormal",
						     "zero",  "negative", "positive", "min", "max"};
		fputs("<section><h2>Data, as counted in the bytes</h2><div class=\"scroll tall\"><table "
		      "class=\"data\"><thead><tr>",
		      f);
		for (size_t i = 0; i < 4; i++)
			html_th(f, heads[i], false);
		for (size_t i = 0; i < 10; i++)
			html_th(f, counts[i], true);
		fputs("</tr></thead><tbody>\n", f);
	}
	for (size_t i = 0; i < n; i++) {
		const char *const words[] = {a[i].kernel, a[i].data, a[i].tensor, a[i].as};
		const double c[] = {(double)a[i].cells, a[i].n,    a[i].nan,      a[i].inf,
				    a[i].denormal,      a[i].zero, a[i].negative, a[i].positive};
		char buf[32];
		fputs("<tr>", f);
		for (size_t k = 0; k < 4; k++) {
			fputs("<td>", f);
			markup_xml(f, words[k]);
			fputs("</td>", f);
		}
		for (size_t k = 0; k < 8; k++)
			html_td_number(f, c[k], text_count(buf, (int64_t)fmax(-9e18, fmin(9e18, c[k]))));
		const double ends[] = {a[i].min, a[i].max};
		for (size_t k = 0; k < 2; k++) {
			/* An index is shown whole, a fraction in short. */
			const bool whole = ends[k] == floor(ends[k]) && fabs(ends[k]) < 1e15;
			snprintf(buf, sizeof buf, whole ? "%.0f" : "%.5g", ends[k]);
			html_td_number(f, ends[k], isfinite(ends[k]) ? buf : "-");
		}
		fputs("</tr>\n", f);
	}
	if (n > 0)
		fputs("</tbody></table></div></section>\n", f);
	free(a);
}

/* ---- the device ----------------------------------------------------------------------------------------------------- */

struct span {
	double lo, hi;
	size_t n;
};

static void widen(struct span *s, double x)
{
	if (!isfinite(x))
		return;
	s->lo = s->n ? fmin(s->lo, x) : x;
	s->hi = s->n ? fmax(s->hi, x) : x;
	s->n++;
}

static void fact(FILE *f, const char *name, const char *value)
{
	if (!*value)
		return;
	fprintf(f, "<dt>%s</dt><dd>", name);
	markup_xml(f, value);
	fputs("</dd>", f);
}

static void fact_span(FILE *f, const char *name, const struct span *s, const char *unit)
{
	char buf[96];
	if (s->n == 0)
		return;
	if (s->lo == s->hi)
		snprintf(buf, sizeof buf, "%.0f %s", s->lo, unit);
	else
		snprintf(buf, sizeof buf, "%.0f .. %.0f %s", s->lo, s->hi, unit);
	fact(f, name, buf);
}

/* Reasons of throttling, as the record has them: text, a list, or a number of bits. */
static void take_throttle(json_t *seen, const json_t *x)
{
	size_t i;
	json_t *item;
	if (json_is_string(x) && *json_string_value(x))
		json_object_set_new(seen, json_string_value(x), json_true());
	json_array_foreach(x, i, item) if (json_is_string(item))
		json_object_set_new(seen, json_string_value(item), json_true());
}

/* The keys of seen, in a list. */
static void fact_names(FILE *f, const char *name, json_t *seen)
{
	json_t *ignored;
	const char *key;
	char buf[400] = "";
	json_object_foreach(seen, key, ignored)
	{
		size_t n = strlen(buf);
		snprintf(buf + n, sizeof buf - n, "%s%s", n ? ", " : "", key);
	}
	fact(f, name, buf);
}

static void cells_state(FILE *f, const struct report_file *file)
{
	struct span sm = {0}, mem = {0}, temperature = {0}, power = {0};
	int64_t retries = 0, shared = 0;
	json_t *throttle = json_object(), *limit = json_object();
	char buf[400];
	for (size_t i = 0; i < file->v.n_cells; i++) {
		const json_t *state = json_object_get(file->v.cell[i], "device_state");
		static const char *const when[] = {"before", "after"};
		for (int k = 0; k < 2; k++) {
			const json_t *s = json_object_get(state, when[k]);
			widen(&sm, text_number(s, "sm_mhz"));
			widen(&mem, text_number(s, "mem_mhz"));
			widen(&temperature, text_number(s, "temperature_c"));
			widen(&power, text_number(s, "power_w"));
			take_throttle(throttle, json_object_get(s, "throttle"));
			take_throttle(limit, json_object_get(s, "limit"));
			shared += text_integer(s, "other_processes") > 0;
		}
		retries += text_integer(state, "retries");
	}
	fact_span(f, "SM clock", &sm, "MHz");
	fact_span(f, "memory clock", &mem, "MHz");
	fact_span(f, "temperature", &temperature, "C");
	fact_span(f, "power", &power, "W");
	fact_names(f, "throttled by", throttle);
	fact_names(f, "clock held by", limit);
	json_decref(throttle);
	json_decref(limit);
	if (retries) {
		snprintf(buf, sizeof buf, "%lld", (long long)retries);
		fact(f, "retries", buf);
	}
	if (shared)
		fact(f, "shared", "another process was on the device");
}

/* Floor, peaks, scrub proof and sentinels of the run's calibration. */
static void calibration(FILE *f, const struct report_file *file)
{
	const json_t *c = json_object_get(file->v.header, "calibration"), *scrub = json_object_get(c, "scrub");
	char buf[200];
	if (!json_is_object(c))
		return;
	if (text_number(c, "tick_ns") >= 0 && text_number(c, "null_launch_ns") >= 0) {
		snprintf(buf, sizeof buf, "tick %.3g ns, null launch %.3g us", text_number(c, "tick_ns"),
			 text_number(c, "null_launch_ns") / 1000);
		fact(f, "clock", buf);
	}
	if (text_number(c, "peak_bytes_per_s") > 0) {
		snprintf(buf, sizeof buf, "%.4g GB/s, %.4g TFLOP/s", text_number(c, "peak_bytes_per_s") / 1e9,
			 text_number(c, "peak_flop_per_s") / 1e12);
		fact(f, "measured peaks", buf);
	}
	if (json_is_object(scrub) && text_number(scrub, "ratio") > 0) {
		snprintf(buf, sizeof buf, "x%.3g", text_number(scrub, "ratio"));
		fact(f, "scrub proven", buf);
	}
	for (size_t i = 0; i < file->v.n_other; i++) {
		const char *name;
		json_t *x;
		if (strcmp(text_get(file->v.other[i], "name"), "sentinels") != 0)
			continue;
		json_object_foreach(json_object_get(file->v.other[i], "drift"), name, x)
		{
			snprintf(buf, sizeof buf, "%+.2f %% from start to end", 100 * (exp(json_number_value(x)) - 1));
			fputs("<dt>sentinel ", f);
			markup_xml(f, name);
			fprintf(f, "</dt><dd>%s</dd>", json_is_number(x) ? buf : "-");
		}
	}
}

void html_device(FILE *f, const struct report *r)
{
	fputs("<section><h2>Device</h2><div class=\"side\">", f);
	for (size_t k = 0; k < r->n_files; k++) {
		const struct report_file *file = &r->file[k];
		const json_t *d = json_object_get(file->v.header, "device");
		char buf[64];
		fputs("<div>", f);
		html_file_label(f, r, k);
		fputs("<dl class=\"facts\">", f);
		fact(f, "name", text_get(d, "name"));
		fact(f, "uuid", text_get(d, "uuid"));
		fact(f, "host", text_get(file->v.header, "host"));
		fact(f, "driver", text_get(d, "driver"));
		fact(f, "runtime", text_get(d, "runtime"));
		if (text_number(d, "llc_bytes") > 0) {
			snprintf(buf, sizeof buf, "%.0f MiB", text_number(d, "llc_bytes") / 1048576);
			fact(f, "last-level cache", buf);
		}
		if (text_number(d, "memory_bytes") > 0) {
			snprintf(buf, sizeof buf, "%.0f GiB", text_number(d, "memory_bytes") / 1073741824);
			fact(f, "memory", buf);
		}
		calibration(f, file);
		cells_state(f, file);
		snprintf(buf, sizeof buf, "%.3g %%, from %.40s", 100 * text_number(file->v.header, "tau"),
			 text_get(file->v.header, "tau_source"));
		fact(f, "processes differ by", isfinite(text_number(file->v.header, "tau")) ? buf : "");
		fputs("</dl></div>\n", f);
	}
	fputs("</div></section>\n", f);
}

/* ---- machine code --------------------------------------------------------------------------------------------------- */

static const json_t *counts_of(const json_t *arm)
{
	return json_object_get(json_object_get(json_object_get(arm, "artifact"), "census"), "counts");
}

/* Classes of instructions that shipped's census and this arm's differ in, as "matrix 64 > 128"; or why there is no census. */
static void census_differences(FILE *f, const json_t *shipped, const json_t *arm)
{
	const json_t *a = counts_of(shipped), *b = counts_of(arm);
	const char *key, *comma = "";
	json_t *x;
	if (shipped == arm)
		return;
	if (!json_is_object(a) || !json_is_object(b)) {
		markup_xml(f, text_get(json_object_get(arm, "artifact"), "census_reason"));
		return;
	}
	json_object_foreach((json_t *)(uintptr_t)b, key, x)
	{
		double was = text_number(a, key), is = json_number_value(x);
		if (!json_is_number(x) || was == is || (is == 0 && !isfinite(was)))
			continue;
		fputs(comma, f);
		markup_xml(f, key);
		fprintf(f, " %.0f > %.0f", isfinite(was) ? was : 0, is);
		comma = ", ";
	}
	json_object_foreach((json_t *)(uintptr_t)a, key, x)
	{
		if (json_object_get(b, key) || !(json_number_value(x) > 0))
			continue;
		fputs(comma, f);
		markup_xml(f, key);
		fprintf(f, " %.0f > 0", json_number_value(x));
		comma = ", ";
	}
	if (!*comma)
		fputs("none", f);
}

static const char *artifact_key(const struct report *r, size_t file, const json_t *cell, const json_t *arm)
{
	const char *hash = text_get(json_object_get(arm, "artifact"), "hash");
	return *hash ? arena_printf(r->arena, "%zu %s %s %s", file, text_get(cell, "kernel"), text_get(arm, "name"),
				    hash)
		     : "";
}

/* How many cells launch each of them. */
static json_t *count_artifacts(const struct report *r)
{
	json_t *count = json_object();
	for (size_t k = 0; k < r->n_files; k++)
		for (size_t i = 0; i < r->file[k].v.n_cells; i++) {
			const json_t *cell = r->file[k].v.cell[i], *arm;
			size_t a;
			json_array_foreach(json_object_get(cell, "arms"), a, arm)
			{
				const char *key = artifact_key(r, k, cell, arm);
				if (*key)
					json_object_set_new_nocheck(count, key,
								    json_integer(text_integer(count, key) + 1));
			}
		}
	return count;
}

static void artifact_row(FILE *f, const struct report *r, size_t file, const json_t *cell, int64_t cells,
			 const json_t *shipped, const json_t *arm)
{
	const json_t *art = json_object_get(arm, "artifact");
	static const char *const numbers[] = {"code_bytes", "registers", "spills_bytes", "shared_bytes", "occupancy"};
	char buf[32];
	fputs("<tr>", f);
	if (r->n_files > 1) {
		fputs("<td>", f);
		markup_xml(f, r->file[file].label);
		fputs("</td>", f);
	}
	fputs("<td>", f);
	markup_xml(f, text_get(cell, "kernel"));
	fputs("</td><td>", f);
	markup_xml(f, text_get(arm, "name"));
	fputs("</td>", f);
	fprintf(f, "<td><code>%.12s</code></td><td class=\"wrap\">", text_get(art, "hash"));
	char *point = NULL;
	size_t n = 0;
	FILE *m = open_memstream(&point, &n);
	if (m) {
		report_point(m, cell);
		fclose(m);
		html_name(f, point);
		free(point);
	}
	if (cells > 1)
		fprintf(f, " <small>and %lld more</small>", (long long)cells - 1);
	fputs("</td>", f);
	for (size_t k = 0; k < 5; k++) {
		double x = text_number(art, numbers[k]);
		snprintf(buf, sizeof buf, x == floor(x) ? "%.0f" : "%.4g", x);
		html_td_number(f, x, isfinite(x) ? buf : "-");
	}
	fputs("<td class=\"long\">", f);
	census_differences(f, shipped, arm);
	fputs("</td></tr>\n", f);
}

void html_artifacts(FILE *f, const struct report *r)
{
	json_t *seen = json_object(), *count = count_artifacts(r);
	size_t shown = 0;
	for (size_t k = 0; k < r->n_files; k++)
		for (size_t i = 0; i < r->file[k].v.n_cells; i++) {
			const json_t *cell = r->file[k].v.cell[i], *arm, *shipped = NULL;
			size_t a;
			json_array_foreach(json_object_get(cell, "arms"), a,
					   arm) if (strcmp(text_get(arm, "role"), "shipped") == 0) shipped = arm;
			json_array_foreach(json_object_get(cell, "arms"), a, arm)
			{
				const char *key = artifact_key(r, k, cell, arm);
				if (!*key || json_object_get(seen, key) || shown == MAX_ARTIFACTS)
					continue;
				json_object_set_new_nocheck(seen, key, json_true());
				if (shown++ == 0) {
					fputs("<section><h2>Machine code</h2><div class=\"scroll tall\"><table "
					      "class=\"data\"><thead><tr>",
					      f);
					if (r->n_files > 1)
						html_th(f, "file", false);
					static const char *const heads[] = {"kernel", "arm", "code", "in"};
					for (size_t h = 0; h < 4; h++)
						html_th(f, heads[h], false);
					static const char *const counts[] = {"bytes", "registers", "spills B",
									     "shared B", "occupancy"};
					for (size_t h = 0; h < 5; h++)
						html_th(f, counts[h], true);
					char differ[64];
					snprintf(differ, sizeof differ, "instructions that differ from %s",
						 report_yardstick(r));
					html_th(f, differ, false);
					fputs("</tr></thead><tbody>\n", f);
				}
				artifact_row(f, r, k, cell, text_integer(count, key), shipped, arm);
			}
		}
	json_decref(seen);
	json_decref(count);
	if (shown)
		fputs("</tbody></table></div></section>\n", f);
}
