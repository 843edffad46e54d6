#include "report.h"

#include <stdlib.h>
#include <string.h>

/* ---- files ---------------------------------------------------------------------------------------------------------- */

static const char *short_name(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash && slash[1] ? slash + 1 : path;
	size_t n = strlen(name);
	return arena_strndup(a, name, n > 6 && strcmp(name + n - 6, ".jsonl") == 0 ? n - 6 : n);
}

/* Labels that are alike become paths; paths that are alike get a number. */
static void name_files(struct report *r)
{
	for (size_t i = 0; i < r->n_files; i++)
		r->file[i].label = short_name(r->arena, r->file[i].path);
	for (size_t i = 0; i < r->n_files; i++) {
		bool alike = false, same = false;
		for (size_t k = 0; k < r->n_files; k++) {
			alike |= k != i && strcmp(short_name(r->arena, r->file[k].path),
						  short_name(r->arena, r->file[i].path)) == 0;
			same |= k != i && strcmp(r->file[k].path, r->file[i].path) == 0;
		}
		if (same)
			r->file[i].label = arena_printf(r->arena, "%s #%zu", r->file[i].path, i + 1);
		else if (alike)
			r->file[i].label = r->file[i].path;
	}
}

static void take_rows(struct report_file *f)
{
	const struct text_options quiet = {.out = stderr, .quiet = true};
	f->text = text_create(&quiet);
	text_record(f->text, f->v.header);
	for (size_t i = 0; i < f->v.n_cells; i++)
		text_record(f->text, f->v.cell[i]);
	for (size_t i = 0; i < f->v.n_other; i++)
		text_record(f->text, f->v.other[i]);
	if (f->v.footer)
		text_record(f->text, f->v.footer);
}

/* ---- lines ---------------------------------------------------------------------------------------------------------- */

static void make_lines(struct report *r)
{
	json_t *place = json_object(); /* id -> index */
	size_t cap = 0;
	for (size_t i = 0; i < r->n_files; i++) {
		struct report_file *f = &r->file[i];
		for (size_t k = 0; k < f->v.n_cells; k++) {
			const json_t *cell = f->v.cell[k];
			const char *id = text_get(cell, "id");
			const json_t *at = json_object_get(place, id);
			size_t n = at ? (size_t)json_integer_value(at) : r->n_lines;
			if (!at) {
				r->line = arena_grow(r->arena, r->line, n, &cap, sizeof *r->line);
				r->line[n] = (struct report_line){.id = id, .name = text_short_id(cell), .any = cell};
				r->line[n].cell = arena_array(r->arena, r->n_files, sizeof(struct report_cell));
				json_object_set_new_nocheck(place, id, json_integer((json_int_t)n));
				r->n_lines++;
			}
			r->line[n].cell[i] = (struct report_cell){cell, &f->text->row[k]};
		}
	}
	json_decref(place);
}

struct report *report_create(char *const *path, size_t n, struct err *err)
{
	if (n > REPORT_MAX_FILES) {
		err_set(err, "%zu files; at most %d stand side by side", n, REPORT_MAX_FILES);
		return NULL;
	}
	struct report *r = calloc(1, sizeof *r);
	if (!r)
		abort();
	r->arena = arena_create();
	r->file = arena_array(r->arena, n, sizeof *r->file);
	for (size_t i = 0; i < n; i++) {
		r->file[i].path = path[i];
		if (!verdict_load(path[i], &r->file[i].v, err)) {
			report_destroy(r);
			return NULL;
		}
		r->n_files++;
		take_rows(&r->file[i]);
	}
	name_files(r);
	make_lines(r);
	return r;
}

void report_destroy(struct report *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_files; i++) {
		text_destroy(r->file[i].text);
		verdict_unload(&r->file[i].v);
	}
	arena_destroy(r->arena);
	free(r);
}

const struct report_file *report_cut_short(const struct report *r)
{
	for (size_t i = 0; i < r->n_files; i++)
		if (!r->file[i].v.footer)
			return &r->file[i];
	return NULL;
}

/* ---- shared by the formats ------------------------------------------------------------------------------------------ */

const char *report_word(const struct report_file *f)
{
	if (!f->v.footer)
		return "CUT SHORT";
	switch (text_integer(f->v.footer, "exit")) {
	case 0: return "PASS";
	case 1: return "FAIL";
	case 129:
	case 130:
	case 143: return "INTERRUPTED";
	case 4: return "NOTHING RUN";
	default: return "INCOMPLETE";
	}
}

const char *report_reason(const json_t *cell)
{
	if (*text_get(cell, "reason"))
		return text_get(cell, "reason");
	const json_t *f;
	size_t i;
	json_array_foreach(json_object_get(cell, "checks"), i, f) if (text_finding_is_bad(f)) return text_get(f,
													      "text");
	return "";
}

void report_point(FILE *f, const json_t *cell)
{
	const char *key, *comma = "";
	json_t *value;
	char buf[32];
	json_object_foreach(json_object_get(cell, "point"), key, value)
	{
		fprintf(f, "%s%s=%s", comma, key, text_number_text(buf, json_number_value(value)));
		comma = ",";
	}
}

void report_aggregate_name(FILE *f, const json_t *a)
{
	if (!*text_get(a, "of")) {
		fputs(text_get(a, "name"), f);
		return;
	}
	fprintf(f, "%s/%s/%s/", text_get(a, "case"), text_get(a, "kernel"), text_get(a, "data"));
	report_point(f, a);
	fprintf(f, ": %s over %s", text_get(a, "of"), text_get(a, "over"));
}

void report_interval(char buf[64], double lo, double hi)
{
	char a[24], b[24];
	if (!isfinite(lo) && !isfinite(hi))
		strcpy(buf, "-");
	else
		snprintf(buf, 64, "%s .. %s", isfinite(lo) ? text_ratio(a, lo) : "0",
			 isfinite(hi) ? text_ratio(b, hi) : "inf");
}
