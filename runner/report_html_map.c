/* report_html_map: ratios over two axes, a table a kernel, in the colours of slower and faster. Geometry and data are axes too, where they
 * differ. Each cell opens. */
#include <stdlib.h>

#include "report_html.h"

enum { MAX_VALUES = 128, MAX_DIMS = TEXT_MAX_AXES + 2 };

/* Something that cells of a kernel differ in. */
struct dim {
	const char *name;
	const char *value[MAX_VALUES]; /* distinct, as text; numbers rising */
	int n;
	bool number;
};

struct map {
	const char *suite, *case_id, *kernel;
	struct dim dim[MAX_DIMS];
	int n_dims;
	int x, y; /* dims of the columns and the rows; y -1: one row */
	size_t *line; /* of the report, n_lines of them */
	const char **value; /* of line i in dim d: value[i * n_dims + d] */
	size_t n_lines;
};

static const char *value_of(struct arena *a, const json_t *cell, const struct dim *d)
{
	if (!d->number)
		return text_get(cell, d->name);
	double x = text_number(json_object_get(cell, "point"), d->name);
	char buf[32];
	return isfinite(x) ? arena_strdup(a, text_number_text(buf, x)) : "";
}

static bool of_map(const struct map *m, const json_t *cell)
{
	return strcmp(text_get(cell, "case"), m->case_id) == 0 && strcmp(text_get(cell, "kernel"), m->kernel) == 0 &&
	       strcmp(text_get(cell, "suite"), m->suite) == 0;
}

static void add_value(struct dim *d, const char *v)
{
	int at = 0;
	while (at < d->n && (d->number ? atof(d->value[at]) < atof(v) : strcmp(d->value[at], v) != 0))
		at++;
	if (at < d->n && strcmp(d->value[at], v) == 0)
		return;
	if (d->n == MAX_VALUES)
		return;
	memmove(&d->value[at + 1], &d->value[at], sizeof *d->value * (size_t)(d->n - at));
	d->value[at] = v;
	d->n++;
}

static void map_begin(const struct report *r, struct map *m, const json_t *first)
{
	*m = (struct map){.suite = text_get(first, "suite"),
			  .case_id = text_get(first, "case"),
			  .kernel = text_get(first, "kernel"),
			  .x = -1,
			  .y = -1};
	const char *axis;
	json_t *ignored;
	json_object_foreach(json_object_get(first, "point"), axis, ignored)
	{
		if (m->n_dims < TEXT_MAX_AXES)
			m->dim[m->n_dims++] = (struct dim){.name = axis, .number = true};
	}
	m->dim[m->n_dims++] = (struct dim){.name = "geometry"};
	m->dim[m->n_dims++] = (struct dim){.name = "data"};
	for (size_t i = 0; i < r->n_lines; i++)
		m->n_lines += of_map(m, r->line[i].any);
	m->line = arena_array(r->arena, m->n_lines, sizeof *m->line);
	m->value = arena_array(r->arena, m->n_lines * (size_t)m->n_dims, sizeof *m->value);
	for (size_t i = 0, n = 0; i < r->n_lines; i++) {
		if (!of_map(m, r->line[i].any))
			continue;
		m->line[n] = i;
		for (int d = 0; d < m->n_dims; d++) {
			const char *v = value_of(r->arena, r->line[i].any, &m->dim[d]);
			m->value[n * (size_t)m->n_dims + (size_t)d] = v;
			add_value(&m->dim[d], v);
		}
		n++;
	}
	/* The two with the most values; of as many, numbers first. */
	for (int d = 0; d < m->n_dims; d++)
		if (m->x < 0 || m->dim[d].n > m->dim[m->x].n)
			m->x = d;
	for (int d = 0; d < m->n_dims; d++)
		if (d != m->x && m->dim[d].n > 1 && (m->y < 0 || m->dim[d].n > m->dim[m->y].n))
			m->y = d;
	/* Words are easier to read as rows. */
	if (m->y >= 0 && !m->dim[m->x].number && m->dim[m->y].number) {
		int swap = m->x;
		m->x = m->y;
		m->y = swap;
	}
}

static char mark_of(const struct row *r)
{
	return report_failed(r)               ? '!'
	       : report_invalid(r)            ? 'i'
	       : r->status == ST_INCONCLUSIVE ? '?'
	       : r->status == ST_XFAIL        ? 'w'
					      : 0;
}

static void map_cell(FILE *f, const struct report *r, size_t line, size_t file)
{
	const struct report_cell *c = line < r->n_lines ? &r->line[line].cell[file] : NULL;
	if (!c || !c->json) {
		fputs("<td class=\"gap\"></td>", f);
		return;
	}
	const struct row *row = c->row;
	char buf[24];
	double ratio = row->trivial ? 1 : row->ratio;
	fprintf(f, "<td><button type=\"button\" class=\"heat%s\" data-open=\"%zu\" data-file=\"%zu\"",
		report_failed(row)    ? " fail"
		: report_invalid(row) ? " void"
				      : "",
		line, file);
	if (ratio > 0)
		fprintf(f, " data-r=\"%.6g\"", ratio);
	fputs(" title=\"", f);
	markup_xml(f, r->line[line].name);
	fputs("\">", f);
	if (ratio > 0)
		fputs(text_ratio(buf, ratio), f);
	else
		fputs(report_status_word(row->status), f);
	if (mark_of(row))
		fprintf(f, "<sup>%c</sup>", mark_of(row));
	fputs("</button></td>", f);
}

enum { ALL_FILES = -1 };

/* The line with these values that the file has, r->n_lines where there is none. A value NULL fits any. */
static size_t line_at(const struct report *r, const struct map *m, const char *const want[MAX_DIMS], int file)
{
	for (size_t i = 0; i < m->n_lines; i++) {
		bool fits = file == ALL_FILES || r->line[m->line[i]].cell[file].json;
		for (int d = 0; d < m->n_dims && fits; d++)
			fits = !want[d] || strcmp(m->value[i * (size_t)m->n_dims + (size_t)d], want[d]) == 0;
		if (fits)
			return m->line[i];
	}
	return r->n_lines;
}

static void one_table(FILE *f, const struct report *r, const struct map *m, const char *want[MAX_DIMS], size_t file)
{
	const struct dim *x = &m->dim[m->x], *y = m->y >= 0 ? &m->dim[m->y] : NULL;
	bool shown[MAX_VALUES];
	fputs("<div class=\"scroll\"><table class=\"map\">", f);
	if (r->n_files > 1) {
		fputs("<caption>", f);
		markup_xml(f, r->file[file].label);
		fputs("</caption>", f);
	}
	fputs("<thead><tr><th>", f);
	if (y) {
		markup_xml(f, y->name);
		fputs(" \\ ", f);
	}
	markup_xml(f, x->name);
	fputs("</th>", f);
	for (int i = 0; i < x->n; i++) {
		want[m->x] = x->value[i];
		/* The same columns for every file, so that the tables can be compared. */
		shown[i] = line_at(r, m, want, ALL_FILES) < r->n_lines;
		if (!shown[i])
			continue;
		fputs("<th scope=\"col\">", f);
		markup_xml(f, x->value[i]);
		fputs("</th>", f);
	}
	want[m->x] = NULL;
	fputs("</tr></thead><tbody>", f);
	for (int k = 0; k < (y ? y->n : 1); k++) {
		if (y)
			want[m->y] = y->value[k];
		if (line_at(r, m, want, ALL_FILES) == r->n_lines)
			continue;
		fputs("<tr><th scope=\"row\">", f);
		markup_xml(f, y ? y->value[k] : NULL);
		fputs("</th>", f);
		for (int i = 0; i < x->n; i++) {
			want[m->x] = x->value[i];
			if (shown[i])
				map_cell(f, r, line_at(r, m, want, ALL_FILES), file);
		}
		want[m->x] = NULL;
		fputs("</tr>", f);
	}
	if (y)
		want[m->y] = NULL;
	fputs("</tbody></table></div>", f);
}

/* A table for each combination of what is neither column nor row. */
static void tables(FILE *f, const struct report *r, const struct map *m, const char *want[MAX_DIMS], int d)
{
	if (d < m->n_dims && (d == m->x || d == m->y)) {
		tables(f, r, m, want, d + 1);
		return;
	}
	if (d < m->n_dims) {
		for (int i = 0; i < m->dim[d].n; i++) {
			want[d] = m->dim[d].value[i];
			tables(f, r, m, want, d + 1);
		}
		want[d] = NULL;
		return;
	}
	if (line_at(r, m, want, ALL_FILES) == r->n_lines)
		return;
	fputs("<div class=\"maps\"><h4>", f);
	const char *comma = "";
	for (int i = 0; i < m->n_dims; i++)
		if (i != m->x && i != m->y && m->dim[i].n > 1) {
			fprintf(f, "%s%s=", comma, m->dim[i].name);
			markup_xml(f, want[i]);
			comma = ", ";
		}
	fputs("</h4><div class=\"side\">", f);
	for (size_t k = 0; k < r->n_files; k++)
		if (line_at(r, m, want, (int)k) < r->n_lines)
			one_table(f, r, m, want, k);
	fputs("</div></div>\n", f);
}

void html_maps(FILE *f, const struct report *r)
{
	fprintf(f, "<section id=\"maps\"><h2>Ratio to %s</h2>\n", report_yardstick(r));
	fprintf(f, "<p class=\"tools\"><label>arm <select id=\"map-arm\"><option value=\"\">%s</option>",
		report_judged(r));
	fputs("<option value=\"*\">fastest</option></select></label>"
	      "<span class=\"scale\"><i></i> faster <i class=\"mid\"></i> 1.000 <i class=\"slow\"></i> slower</span> "
	      "<small>! failed, i invalid, ? undecided, w waived; a cell opens with all its samples</small></p>\n"
	      "<div class=\"kernels\">\n",
	      f);
	json_t *seen = json_object(); /* "case kernel" */
	for (size_t i = 0; i < r->n_lines; i++) {
		struct map m;
		const char *key = arena_printf(r->arena, "%s %s %s", text_get(r->line[i].any, "suite"),
					       text_get(r->line[i].any, "case"), text_get(r->line[i].any, "kernel"));
		if (json_object_get(seen, key))
			continue;
		json_object_set_new(seen, key, json_true());
		map_begin(r, &m, r->line[i].any);
		fputs("<div class=\"kernel\"><h3>", f);
		markup_xml(f, m.kernel);
		fputs(" <small>", f);
		markup_xml(f, m.case_id);
		fputs("</small></h3>\n", f);
		const char *want[MAX_DIMS] = {NULL};
		tables(f, r, &m, want, 0);
		fputs("</div>\n", f);
	}
	json_decref(seen);
	fputs("</div></section>\n", f);
}
