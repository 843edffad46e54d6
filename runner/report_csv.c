/* report_csv: one line an arm of a cell, as RFC 4180 has it. */
#include "markup.h"
#include "report.h"

/* Every axis of any file, in the order met. */
static json_t *axes_of(const struct report *r)
{
	json_t *axes = json_object();
	for (size_t i = 0; i < r->n_lines; i++) {
		const char *key;
		json_t *value;
		json_object_foreach(json_object_get(r->line[i].any, "point"), key, value)
			json_object_set_new(axes, key, json_true());
	}
	return axes;
}

static void text_column(FILE *f, const char *s)
{
	markup_csv(f, s);
	fputc(',', f);
}

static void number_column(FILE *f, double x)
{
	if (isfinite(x))
		fprintf(f, "%.10g", x);
	fputc(',', f);
}

static void cell_lines(FILE *f, const struct report_file *file, size_t at, json_t *axes)
{
	static const char *const numbers[] = {"n",        "median_ns",   "mean_ns",      "min_ns", "q1_ns",
					      "q3_ns",    "ratio",       "lo",           "hi",     "se",
					      "gb_per_s", "tflop_per_s", "peak_fraction"};
	const json_t *cell = file->v.cell[at], *arms = json_object_get(cell, "arms");
	const struct row *row = &file->text->row[at];
	size_t n = json_array_size(arms);
	/* A cell that never came to its arms has a line too. */
	for (size_t i = 0; i < (n ? n : 1); i++) {
		const json_t *arm = json_array_get(arms, i), *s = json_object_get(arm, "summary");
		static const char *const words[] = {"id", "suite", "case", "kernel", "geometry", "data"};
		text_column(f, file->label);
		for (size_t k = 0; k < sizeof words / sizeof *words; k++)
			text_column(f, text_get(cell, words[k]));
		const char *axis;
		json_t *ignored;
		json_object_foreach(axes, axis, ignored)
			number_column(f, text_number(json_object_get(cell, "point"), axis));
		text_column(f, text_get(cell, "status"));
		text_column(f, report_reason(cell));
		text_column(f, text_get(arm, "name"));
		text_column(f, text_get(arm, "role"));
		const struct report_ratio shown = report_arm_ratio(row, arm);
		bool selected = arm && *text_get(cell, "selected") &&
				strcmp(text_get(cell, "selected"), text_get(arm, "name")) == 0;
		fprintf(f, "%d,", selected);
		number_column(f, text_number(cell, "margin"));
		for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
			/* As every other format has them: the judged arm's are those of the verdict; ends are ratios, as beside them. */
			number_column(f, !json_is_object(s)                 ? NAN
					 : strcmp(numbers[k], "ratio") == 0 ? shown.ratio
					 : strcmp(numbers[k], "lo") == 0    ? shown.lo
					 : strcmp(numbers[k], "hi") == 0    ? shown.hi
									    : text_number(s, numbers[k]));
		}
		markup_csv(f, text_get(arm, "out_sha256"));
		fputs("\r\n", f);
	}
}

void report_csv(const struct report *r, FILE *f)
{
	json_t *axes = axes_of(r), *ignored;
	const char *axis;
	fputs("file,id,suite,case,kernel,geometry,data,", f);
	json_object_foreach(axes, axis, ignored) text_column(f, axis);
	fputs("status,reason,arm,role,selected,margin,n,median_ns,mean_ns,min_ns,q1_ns,q3_ns,ratio,ratio_lo,ratio_hi,"
	      "se_ln,gb_per_s,tflop_per_s,peak_fraction,out_sha256\r\n",
	      f);
	for (size_t i = 0; i < r->n_files; i++)
		for (size_t k = 0; k < r->file[i].v.n_cells; k++)
			cell_lines(f, &r->file[i], k, axes);
	json_decref(axes);
}
