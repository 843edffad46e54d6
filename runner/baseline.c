#include "baseline.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record_parts.h"

/* "NVIDIA H200" as "nvidia-h200". */
static void slug(const char *s, char *out, size_t cap)
{
	size_t n = 0;
	for (; *s && n + 1 < cap; s++) {
		if (isalnum((unsigned char)*s))
			out[n++] = (char)tolower((unsigned char)*s);
		else if (n && out[n - 1] != '-')
			out[n++] = '-';
	}
	while (n && out[n - 1] == '-')
		n--;
	out[n] = 0;
}

bool baseline_paths(const char *dir, const json_t *header, struct baseline_paths *out, struct err *err)
{
	const char *suite = record_text(header, "suite"),
		   *device = record_text(json_object_get(header, "device"), "name");
	char name[64], model[64];
	if (!suite || !device)
		return err_set(err, "the header names no suite or no device");
	slug(suite, name, sizeof name);
	slug(device, model, sizeof model);
	int a = snprintf(out->last, sizeof out->last, "%s/%s.%s.last.jsonl", dir, name, model);
	int b = snprintf(out->epoch, sizeof out->epoch, "%s/%s.%s.epoch.jsonl", dir, name, model);
	if (a >= (int)sizeof out->last || b >= (int)sizeof out->epoch)
		return err_set(err, "%.100s...: the path is too long", dir);
	return true;
}

bool baseline_find(const char *dir, const char *run_path, struct baseline_paths *out, struct err *err)
{
	if (strcmp(run_path, "-") == 0)
		return err_set(err, "a run from stdin can be read only once; name a file");
	struct verdict_reader *r = verdict_open(run_path, err);
	json_t *header = NULL;
	bool ok = r != NULL;
	if (ok) {
		enum verdict_got got = verdict_next(r, &header, err);
		ok = got == VERDICT_RECORD ||
		     (got == VERDICT_BAD ? false : err_set(err, "%s: no whole line is in it", run_path));
		ok = ok && baseline_paths(dir, header, out, err);
	}
	json_decref(header);
	verdict_finish(r);
	if (!ok)
		return false;
	const char *missing = access(out->last, R_OK) != 0    ? out->last
			      : access(out->epoch, R_OK) != 0 ? out->epoch
							      : NULL;
	return !missing ||
	       err_set(err,
		       "%s: no such baseline; `assay baseline promote RUN --dir %s` makes it of a clean, quiet run",
		       missing, dir);
}

bool baseline_lack(const struct verdict_file *run, int i, char *out, size_t cap)
{
	const json_t *git = json_object_get(run->header, "git");
	int k = 0;
	if (!json_is_object(git) && k++ == i)
		return snprintf(out, cap, "not known which commit it is of: the suite lies in no git repository") > 0;
	if (record_true(git, "dirty") && k++ == i)
		return snprintf(out, cap, "not clean: files of the suite's folder were not committed when it ran") > 0;
	if (json_is_object(json_object_get(run->header, "shard")) && k++ == i)
		return snprintf(out, cap, "not whole: it is one shard; `assay merge` joins them") > 0;
	if ((!run->footer || run->torn) && k++ == i)
		return snprintf(out, cap,
				"not complete: no footer, it was cut short; `assay run --resume` goes on with it") > 0;
	double not_run = record_number(run->footer, "not_run", 0);
	if (not_run > 0 && k++ == i)
		return snprintf(out, cap, "not complete: %.0f planned cells were not run", not_run) > 0;
	double planned = record_number(run->header, "cells", 0);
	if (run->footer && not_run == 0 && planned > 0 && planned != (double)run->n_cells && k++ == i)
		return snprintf(out, cap, "not complete: %zu of %.0f cells are in it", run->n_cells, planned) > 0;
	if (record_true(run->footer, "noisy") && k++ == i)
		return snprintf(out, cap,
				"not quiet: it was a noisy run (its null arm differs from shipped in too many cells)") >
		       0;
	size_t bad = 0, first = 0;
	for (size_t c = 0; c < run->n_cells; c++) {
		enum cell_status st = status_of(record_text(run->cell[c], "status"));
		if (st == ST_PASS || st == ST_SKIP || st == ST_XFAIL)
			continue;
		if (bad++ == 0)
			first = c;
	}
	if (bad > 0 && k++ == i)
		return snprintf(out, cap, "not passed: %zu cell%s, the first is %.200s (%s)", bad, bad > 1 ? "s" : "",
				record_text(run->cell[first], "id"), record_text(run->cell[first], "status")) > 0;
	if (run->n_cells == 0 && k++ == i)
		return snprintf(out, cap, "empty: no cell is in it") > 0;
	return false;
}
