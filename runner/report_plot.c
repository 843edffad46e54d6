#include "report_plot.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1, ROW_HEIGHT = 44, RATIO_HEIGHT = 17 };

struct report_plots {
	struct gnuplot *g;
	size_t n_files, left_out;
	long *strip; /* line * n_files + file */
	long *ratios, *roofline; /* per file */
	size_t *ratios_left_out;
};

#define INK "rgb '#000000'"
#define SERVED "rgb '#010101'"
#define OTHER "rgb '#010104'"
#define FAINT "rgb '#010106'"
#define GRID "rgb '#010107'"
#define VOID "rgb '#010105'" /* as --void of the page */
#define BAD "rgb '#010108'"

static void frame(FILE *s)
{
	fputs("set encoding utf8\nset border 1 lw 0.7 lc " GRID "\nset tics nomirror scale 0.4 textcolor " INK
	      "\nset key off\n"
	      "set grid xtics lt 1 lw 0.5 lc " GRID "\nset tmargin 0.6\nset rmargin 2\nset bmargin 3.2\n",
	      s);
}

/* Columns for the longest label, in characters of the terminal's font. */
static double margin_for(int columns)
{
	return 2 + 0.92 * columns;
}

/* ---- all samples of a cell ------------------------------------------------------------------------------------------ */

struct band {
	const char *name;
	const json_t *arm; /* NULL: samples of a second process */
	const json_t *samples;
	const char *colour;
	bool again;
};

static bool is_judged(const struct row *row, const char *arm)
{
	const char *judged = report_judged_arm(row);
	return judged && strcmp(judged, arm) == 0;
}

static size_t bands_of(const json_t *cell, const struct row *row, struct band *b, size_t cap)
{
	const json_t *arm;
	size_t i, n = 0;
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		const char *role = text_get(arm, "role"), *name = text_get(arm, "name");
		if (n == cap || !json_is_object(json_object_get(arm, "summary")))
			continue;
		b[n++] = (struct band){name, arm, json_object_get(arm, "samples_ns"),
				       strcmp(role, "shipped") == 0 ? INK
				       : is_judged(row, name)       ? SERVED
				       : strcmp(role, "null") == 0  ? FAINT
								    : OTHER,
				       false};
	}
	json_array_foreach(json_object_get(json_object_get(cell, "confirm"), "arms"), i, arm)
	{
		if (n < cap)
			b[n++] = (struct band){text_get(arm, "name"), NULL, json_object_get(arm, "samples_ns"), OTHER,
					       true};
	}
	return n;
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The range of most samples: a single slow launch must not squeeze all others into one line. */
static bool range_of(const struct band *b, size_t n, double *lo, double *hi)
{
	size_t total = 0, k = 0, i;
	const json_t *x;
	for (size_t a = 0; a < n; a++)
		total += json_array_size(b[a].samples);
	double *all = malloc((total + 1) * sizeof *all);
	if (!all)
		abort();
	for (size_t a = 0; a < n; a++)
		json_array_foreach(b[a].samples, i, x) if (json_is_number(x)) all[k++] = json_number_value(x) / 1e3;
	qsort(all, k, sizeof *all, compare_doubles);
	if (k > 0) {
		double q1 = all[k / 4], q3 = all[3 * k / 4], top = all[k - 1];
		*lo = all[0];
		*hi = fmin(top, q3 + fmax(4 * (q3 - q1), 0.25 * q3));
	}
	free(all);
	return k > 0;
}

static void strip(FILE *s, const json_t *cell, const struct row *row, const struct band *b, size_t n)
{
	double lo, hi;
	int columns = 6;
	if (!range_of(b, n, &lo, &hi))
		lo = hi = 1;
	const double shipped = row->shipped_ns / 1e3, margin = row->is_ratio ? NAN : row->margin * shipped;
	/* The margin belongs into the picture where it is near. */
	if (margin > hi && margin < hi * 1.25)
		hi = margin;
	double pad = fmax(0.03 * (hi - lo), 0.002 * hi);
	lo = fmax(0, lo - pad);
	hi += pad;
	frame(s);
	fputs("$d << EOD\n", s);
	size_t beyond = 0;
	for (size_t a = 0; a < n; a++) {
		const json_t *x;
		size_t i, rounds = json_array_size(b[a].samples);
		json_array_foreach(b[a].samples, i, x)
		{
			if (!json_is_number(x))
				continue;
			double us = json_number_value(x) / 1e3;
			double y = (double)a - 0.3 + 0.6 * (rounds > 1 ? (double)i / (double)(rounds - 1) : 0.5);
			beyond += us > hi;
			fprintf(s, "%.6g %.4g %zu\n", us > hi ? hi : us, y, us > hi ? a + 1000 : a);
		}
	}
	fputs("EOD\n$m << EOD\n", s);
	for (size_t a = 0; a < n; a++) {
		double us = text_number(json_object_get(b[a].arm, "summary"), "median_ns") / 1e3;
		if (us > 0)
			fprintf(s, "%.6g %zu\n", fmin(us, hi), a);
	}
	fputs("-1 -1\nEOD\n$i << EOD\n", s);
	for (size_t a = 0; a < n; a++) {
		/* Of a ratio check the judged arm alone is held against what the picture's dotted line is. */
		if (!b[a].arm || (row->is_ratio && !is_judged(row, b[a].name)))
			continue;
		const struct report_ratio x = report_arm_ratio(row, b[a].arm);
		if (isfinite(x.ratio) && isfinite(x.lo) && isfinite(x.hi) && shipped > 0)
			fprintf(s, "%.6g %g %.6g %.6g\n", shipped * x.ratio, (double)a + 0.42, shipped * x.lo,
				fmin(shipped * x.hi, hi));
	}
	fprintf(s, "-1 -1 -1 -1\nEOD\nset yrange [%zu.55:-0.55]\nset xrange [%.6g:%.6g]\nset ytics scale 0 (", n - 1,
		lo, hi);
	for (size_t a = 0; a < n; a++) {
		char label[64];
		snprintf(label, sizeof label, "%.40s%s", b[a].name, b[a].again ? ", again" : "");
		int w = text_columns(label);
		columns = w > columns ? w : columns;
		fputs(a ? ", " : "", s);
		gnuplot_text(s, label);
		fprintf(s, " %zu", a);
	}
	fprintf(s, ")\nset lmargin %.1f\nset xlabel 'us a launch; rounds run downwards%s' offset 0,0.4\n",
		margin_for(columns), beyond ? "; slower ones at the right edge' . '" : "");
	if (shipped > 0)
		fprintf(s, "set arrow from %.6g, graph 0 to %.6g, graph 1 nohead lw 0.8 dt 3 lc " INK "\n", shipped,
			shipped);
	if (margin > 0 && margin <= hi)
		fprintf(s, "set arrow from %.6g, graph 0 to %.6g, graph 1 nohead lw 1.2 lc " BAD "\n", margin, margin);
	fputs("plot ", s);
	for (size_t a = 0; a < n; a++)
		fprintf(s,
			"$d using 1:($3==%zu?$2:NaN) with points pt 6 ps 0.42 lc %s, "
			"$d using 1:($3==%zu?$2:NaN) with points pt 8 ps 0.6 lc " BAD ", ",
			a, b[a].colour, a + 1000);
	fputs("$m using 1:($2-0.36):(0):(0.72) with vectors nohead lw 2.2 lc " INK ", "
	      "$i using 1:2:3:4 with xerrorbars pt 4 ps 0.35 lw 1.6 lc " SERVED "\n",
	      s);
	(void)cell;
}

/* ---- ratios of a run ------------------------------------------------------------------------------------------------ */

struct entry {
	size_t cell;
	double ratio;
};

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return x->ratio != y->ratio ? (x->ratio < y->ratio) - (x->ratio > y->ratio)
				    : (x->cell > y->cell) - (x->cell < y->cell);
}

static int compare_places(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return (x->cell > y->cell) - (x->cell < y->cell);
}

/* Kernel, what differs from others, and the point: what tells a row from the next. */
static void ratio_label(const struct report_file *f, size_t i, char *buf, size_t cap)
{
	const struct row *r = &f->text->row[i], *first = &f->text->row[0];
	bool geometry = false, data = false;
	for (size_t k = 0; k < f->text->n_rows; k++) {
		geometry |= f->text->row[k].geometry != first->geometry;
		data |= f->text->row[k].data != first->data;
	}
	size_t n = (size_t)snprintf(buf, cap, "%.24s", r->kernel);
	if (geometry && n < cap)
		n += (size_t)snprintf(buf + n, cap - n, " %.16s", r->geometry);
	if (data && n < cap)
		n += (size_t)snprintf(buf + n, cap - n, " %.12s", r->data);
	char number[32];
	for (int a = 0; a < r->axes->n && n < cap; a++)
		n += (size_t)snprintf(buf + n, cap - n, "%s%s=%s", a ? "," : " ", r->axes->name[a],
				      text_number_text(number, r->at[a]));
}

static long ratios_plot(struct report_plots *p, const struct report_file *f, const char *yardstick, size_t *left_out)
{
	size_t n = 0;
	struct entry *e = calloc(f->v.n_cells + 1, sizeof *e);
	if (!e)
		abort();
	for (size_t i = 0; i < f->v.n_cells; i++)
		if (f->text->row[i].ratio > 0 && !f->text->row[i].trivial)
			e[n++] = (struct entry){i, f->text->row[i].ratio};
	*left_out = n > REPORT_MAX_RATIOS ? n - REPORT_MAX_RATIOS : 0;
	if (*left_out) { /* the slowest are what is looked for */
		qsort(e, n, sizeof *e, compare_entries);
		n = REPORT_MAX_RATIOS;
	}
	qsort(e, n, sizeof *e, compare_places);
	if (n == 0) {
		free(e);
		return NONE;
	}
	FILE *s = gnuplot_add(p->g, 900, 70 + RATIO_HEIGHT * (int)n);
	frame(s);
	double lo = 1, hi = 1;
	int columns = 0;
	for (size_t k = 0; k < n; k++) {
		const struct row *r = &f->text->row[e[k].cell];
		lo = fmin(lo, fmax(r->lo, r->ratio * 0.9));
		hi = fmax(hi, fmin(r->hi, r->ratio * 1.1));
	}
	double pad = fmax(0.02, 0.04 * (hi - lo));
	lo -= pad;
	hi += pad;
	fputs("$r << EOD\n", s);
	for (size_t k = 0; k < n; k++) {
		const struct row *r = &f->text->row[e[k].cell];
		fprintf(s, "%.6g %zu %.6g %.6g %d\n", r->ratio, k, isfinite(r->lo) ? fmax(r->lo, lo) : lo,
			isfinite(r->hi) ? fmin(r->hi, hi) : hi,
			report_failed(r)    ? 1
			: report_invalid(r) ? 2
					    : 0);
	}
	fputs("EOD\n$g << EOD\n", s);
	for (size_t k = 0; k < n; k++) {
		const struct row *r = &f->text->row[e[k].cell];
		if (!r->is_ratio && r->margin > 0 && r->margin < hi)
			fprintf(s, "%.6g %zu\n", r->margin, k);
	}
	fprintf(s, "-1 -9\nEOD\nset yrange [%zu.7:-0.7]\nset xrange [%.6g:%.6g]\nset ytics scale 0 (", n - 1, lo, hi);
	for (size_t k = 0; k < n; k++) {
		char label[120];
		ratio_label(f, e[k].cell, label, sizeof label);
		int w = text_columns(label);
		columns = w > columns ? w : columns;
		fputs(k ? ", " : "", s);
		gnuplot_text(s, label);
		fprintf(s, " %zu", k);
	}
	fprintf(s,
		")\nset lmargin %.1f\nset xlabel 'ratio to %s, with its interval' offset 0,0.4\n"
		"set arrow from 1, graph 0 to 1, graph 1 nohead lw 1 lc " INK "\n"
		"plot $g using 1:($2-0.45):(0):(0.9) with vectors nohead lw 1.6 lc " BAD ", "
		"$r using 1:($5==0?$2:NaN):3:4 with xerrorbars pt 6 ps 0.5 lw 1.4 lc " SERVED ", "
		"$r using 1:($5==1?$2:NaN):3:4 with xerrorbars pt 8 ps 0.7 lw 1.4 lc " BAD ", "
		"$r using 1:($5==2?$2:NaN):3:4 with xerrorbars pt 4 ps 0.5 lw 1.4 lc " VOID "\n",
		margin_for(columns), yardstick);
	long id = (long)gnuplot_count(p->g) - 1;
	free(e);
	return id;
}

/* ---- roofline ------------------------------------------------------------------------------------------------------- */

enum { MAX_KERNELS = 6 };

static long roofline_plot(struct report_plots *p, const struct report_file *f)
{
	const char *kernel[MAX_KERNELS];
	int n_kernels = 0;
	double bytes_per_s = 0, flop_per_s = 0, x_lo = INFINITY, x_hi = 0, y_lo = INFINITY;
	size_t points = 0;
	char *data = NULL;
	size_t n = 0;
	FILE *m = open_memstream(&data, &n);
	if (!m)
		abort();
	for (size_t i = 0; i < f->v.n_cells; i++) {
		const json_t *cell = f->v.cell[i], *work = json_object_get(cell, "work");
		const struct row *r = &f->text->row[i];
		const json_t *measure = json_object_get(cell, "measure");
		double bytes = text_number(work, "bytes"), flop = text_number(work, "flop");
		double ns = r->selected_ns > 0 ? r->selected_ns : r->shipped_ns;
		double peak_b = text_number(measure, "peak_bytes_per_s"),
		       peak_f = text_number(measure, "peak_flop_per_s");
		if (!(bytes > 0) || !(flop > 0) || !(ns > 0) || !(peak_b > 0) || !(peak_f > 0))
			continue;
		bytes_per_s = fmax(bytes_per_s, peak_b);
		flop_per_s = fmax(flop_per_s, peak_f);
		int k = 0;
		while (k < n_kernels && kernel[k] != r->kernel)
			k++;
		if (k == n_kernels && k < MAX_KERNELS)
			kernel[n_kernels++] = r->kernel;
		double x = flop / bytes, y = flop / ns / 1e3;
		x_lo = fmin(x_lo, x);
		x_hi = fmax(x_hi, x);
		y_lo = fmin(y_lo, y);
		fprintf(m, "%.6g %.6g %d\n", x, y, k < MAX_KERNELS ? k : MAX_KERNELS - 1);
		points++;
	}
	fclose(m);
	if (points == 0) {
		free(data);
		return NONE;
	}
	FILE *s = gnuplot_add(p->g, 620, 340);
	frame(s);
	fprintf(s,
		"$r << EOD\n%sEOD\nset logscale xy\nset xrange [%.4g:%.4g]\nset yrange [%.4g:%.4g]\nset lmargin 9\n"
		"set grid xtics ytics lt 1 lw 0.5 lc " GRID "\nset border 3\nset format '%%g'\n"
		"set xlabel 'operations a byte' offset 0,0.4\nset ylabel 'TFLOP/s' offset 1\n"
		"set key bottom right samplen 1\nb = %.6g\nf = %.6g\n"
		"plot (b*x<f?b*x:f) with lines lw 1.6 lc " INK " title 'measured peak'",
		data, x_lo / 3, x_hi * 3, y_lo / 3, flop_per_s / 1e12 * 2, bytes_per_s / 1e12, flop_per_s / 1e12);
	for (int k = 0; k < n_kernels; k++) {
		fprintf(s, ", $r using 1:($3==%d?$2:NaN) with points pt 6 ps 0.6 lc rgb '#01010%d' title ", k, k + 1);
		gnuplot_text(s, kernel[k]);
	}
	fputc('\n', s);
	free(data);
	return (long)gnuplot_count(p->g) - 1;
}

/* ---- all of them ---------------------------------------------------------------------------------------------------- */

static void add_strips(struct report_plots *p, const struct report *r)
{
	/* Failures first: what is left out is what is least asked for. */
	size_t drawn = 0;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < r->n_lines; i++)
			for (size_t k = 0; k < r->n_files; k++) {
				const struct report_cell *c = &r->line[i].cell[k];
				struct band b[TEXT_MAX_ARM_NAMES];
				if (!c->json)
					continue;
				bool first = report_failed(c->row) || report_invalid(c->row) ||
					     c->row->status == ST_INCONCLUSIVE;
				size_t n = first == (pass == 0) ? bands_of(c->json, c->row, b, TEXT_MAX_ARM_NAMES) : 0;
				if (n == 0)
					continue;
				if (drawn == REPORT_MAX_STRIPS) {
					p->left_out++;
					continue;
				}
				drawn++;
				p->strip[i * r->n_files + k] = (long)gnuplot_count(p->g);
				strip(gnuplot_add(p->g, 760, 62 + ROW_HEIGHT * (int)n), c->json, c->row, b, n);
			}
}

struct report_plots *report_plots_draw(const struct report *r, bool *found_none, struct err *err)
{
	struct report_plots *p = calloc(1, sizeof *p);
	if (!p)
		abort();
	p->g = gnuplot_create();
	p->n_files = r->n_files;
	p->strip = malloc((r->n_lines * r->n_files + 1) * sizeof *p->strip);
	p->ratios = calloc(r->n_files, sizeof *p->ratios);
	p->roofline = calloc(r->n_files, sizeof *p->roofline);
	p->ratios_left_out = calloc(r->n_files, sizeof *p->ratios_left_out);
	if (!p->strip || !p->ratios || !p->roofline || !p->ratios_left_out)
		abort();
	for (size_t i = 0; i < r->n_lines * r->n_files; i++)
		p->strip[i] = NONE;
	for (size_t k = 0; k < r->n_files; k++) {
		p->ratios[k] = ratios_plot(p, &r->file[k], report_yardstick(r), &p->ratios_left_out[k]);
		p->roofline[k] = roofline_plot(p, &r->file[k]);
	}
	add_strips(p, r);
	if (!gnuplot_draw(p->g, found_none, err)) {
		report_plots_destroy(p);
		return NULL;
	}
	return p;
}

void report_plots_destroy(struct report_plots *p)
{
	if (!p)
		return;
	gnuplot_destroy(p->g);
	free(p->strip);
	free(p->ratios);
	free(p->roofline);
	free(p->ratios_left_out);
	free(p);
}

static const char *picture(const struct report_plots *p, const long *list, size_t i)
{
	return p && list[i] != NONE ? gnuplot_svg(p->g, (size_t)list[i]) : NULL;
}

const char *report_plot_strip(const struct report_plots *p, size_t line, size_t file)
{
	return p ? picture(p, p->strip, line * p->n_files + file) : NULL;
}

const char *report_plot_ratios(const struct report_plots *p, size_t file)
{
	return p ? picture(p, p->ratios, file) : NULL;
}

const char *report_plot_roofline(const struct report_plots *p, size_t file)
{
	return p ? picture(p, p->roofline, file) : NULL;
}

size_t report_plot_left_out(const struct report_plots *p)
{
	return p ? p->left_out : 0;
}

size_t report_plot_ratios_left_out(const struct report_plots *p, size_t file)
{
	return p ? p->ratios_left_out[file] : 0;
}
