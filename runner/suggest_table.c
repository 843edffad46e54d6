/* suggest_table: the proposal as a table file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "suggest.h"
#include "table_build.h"

enum { WIDTH = 100 };

/* A plain scalar where it is one without a doubt; else in double quotes. */
static void yaml_text(FILE *f, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.=+/-";
	bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');
	static const char *const words[] = {"true", "false", "null", "yes", "no", "on", "off", "default"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		letter &= strcmp(s, words[i]) != 0;
	if (letter && !s[strspn(s, plain)]) {
		fputs(s, f);
		return;
	}
	fputc('"', f);
	for (; *s; s++) {
		if ((unsigned char)*s < 0x20)
			fprintf(f, "\\x%02x", *s);
		else
			fprintf(f, "%s%c", *s == '"' || *s == '\\' ? "\\" : "", *s);
	}
	fputc('"', f);
}

/* Text as comment lines of the table's width. */
static void comment_lines(FILE *f, const char *indent, const char *text)
{
	char *wrapped = NULL;
	size_t n = 0;
	FILE *m = open_memstream(&wrapped, &n);
	if (!m)
		abort();
	text_wrap(m, 0, WIDTH - (int)strlen(indent) - 2, text);
	fclose(m);
	for (const char *line = wrapped; *line;) {
		const size_t len = strcspn(line, "\n");
		fprintf(f, "%s# %.*s\n", indent, (int)len, line);
		line += len + (line[len] == '\n');
	}
	free(wrapped);
}

/* What stands above a row. */
static void evidence(FILE *f, const struct suggest *s, const struct suggest_row *r)
{
	char *text = NULL;
	size_t n = 0;
	FILE *m = open_memstream(&text, &n);
	if (!m)
		abort();
	suggest_write_keys(m, s, r);
	fputs(s->n_keys ? ": " : "", m);
	suggest_write_why(m, r);
	fclose(m);
	comment_lines(f, "    ", text);
	free(text);
}

/* The head: where it comes from, what it keeps and what it loses. */
static void write_head(const struct suggest *s, const char *run_path, int anew, FILE *f)
{
	const json_t *device = json_object_get(s->header, "device");
	fputs("# From ", f);
	suggest_write_plain(f, run_path);
	fprintf(f, ", %s of ", text_get(s->header, "suite"));
	suggest_write_plain(f, text_get(s->header, "started"));
	fputs(" on ", f);
	suggest_write_plain(f, text_get(device, "name"));
	fputs(".\n", f);
	if (anew >= 0 || suggest_losses(s) == 0)
		fprintf(f, "# %s.\n", suggest_anew_text(anew));
	if (s->carries)
		comment_lines(f, "",
			      arena_printf(s->arena,
					   "The lookup, the defaults and the rows that this run did not measure are "
					   "those "
					   "of %s.",
					   s->served_path));
	for (size_t i = 0; i < s->n_lost; i++)
		comment_lines(f, "", arena_printf(s->arena, "LOST: %s", s->lost[i]));
	fputs("about: ", f);
	char about[200];
	snprintf(about, sizeof about, "%.60s, proposed from a run of %.10s", text_get(device, "name"),
		 text_get(s->header, "started"));
	/* In quotes: it holds blanks and commas. */
	fputc('"', f);
	for (const char *p = about; *p; p++)
		fprintf(f, "%s%c", *p == '"' || *p == '\\' ? "\\" : "", (unsigned char)*p < 0x20 ? ' ' : *p);
	fputs("\"\nkey: [", f);
	for (int k = 0; k < s->n_keys; k++)
		fprintf(f, "%s%s", k ? ", " : "", s->key[k]);
	fprintf(f, "]\nlookup: %s%s\nrows:\n", table_lookup_names[s->table->lookup],
		s->carries ? "" : "          # a point that was not measured gets the default");
}

static void write_row(FILE *f, const struct table *t, const struct table_row *row)
{
	fputs("    - {", f);
	for (int k = 0; k < t->n_keys && !row->is_default; k++)
		fprintf(f, "%s: %.17g, ", t->key[k], row->key[k].d);
	fputs("arm: ", f);
	yaml_text(f, row->arm);
	fputs("}\n", f);
}

/* Whether the kernel whose first entry is i has a row. */
static bool has_row(const struct suggest *s, size_t i)
{
	for (size_t k = i; k < s->n_entries && table_same_text(s->entry[k].row.kernel, s->entry[i].row.kernel); k++)
		if (!s->entry[k].told_only)
			return true;
	return false;
}

void suggest_write_table(const struct suggest *s, const char *run_path, int anew, FILE *f)
{
	const struct table *t = s->table;
	const struct table_row *last = NULL;
	write_head(s, run_path, anew, f);
	/* The default of every kernel is a key of its own, at the end. */
	for (size_t i = 0; i < s->n_entries; i++) {
		const struct suggest_entry *e = &s->entry[i];
		if (!e->row.kernel && e->row.is_default) {
			last = &e->row;
			continue;
		}
		if (i == 0 || !table_same_text(s->entry[i - 1].row.kernel, e->row.kernel)) {
			/* A kernel that has no row of its own is told of all the same. */
			fputs(has_row(s, i) ? "  " : "  # ", f);
			yaml_text(f, e->row.kernel ? e->row.kernel : "*");
			fputs(has_row(s, i) ? ":\n" : ": no row of its own is needed\n", f);
		}
		if (e->of)
			evidence(f, s, e->of);
		if (!e->told_only)
			write_row(f, t, &e->row);
	}
	if (last) {
		fputs("default: ", f);
		yaml_text(f, last->arm);
		fputc('\n', f);
	}
}
