/* report_plot: the pictures of a report: all samples of a cell, ratios of a run, its roofline. Drawn by gnuplot in one go. */
#ifndef ASSAY_REPORT_PLOT_H
#define ASSAY_REPORT_PLOT_H

#include "gnuplot.h"
#include "report.h"

enum { REPORT_MAX_STRIPS = 600, REPORT_MAX_RATIOS = 72 };

struct report_plots;

/* NULL with *err where gnuplot failed; *found_none where there is none. */
struct report_plots *report_plots_draw(const struct report *r, bool *found_none, struct err *err);
void report_plots_destroy(struct report_plots *p); /* NULL is fine */

/* SVG, or NULL: not drawn (nothing was timed, or past the limit of strips). */
const char *report_plot_strip(const struct report_plots *p, size_t line, size_t file);
const char *report_plot_ratios(const struct report_plots *p, size_t file);
const char *report_plot_roofline(const struct report_plots *p, size_t file);
/* Cells whose samples are not drawn because there are more than REPORT_MAX_STRIPS. */
size_t report_plot_left_out(const struct report_plots *p);
/* How many of the file's ratios are not in its picture. */
size_t report_plot_ratios_left_out(const struct report_plots *p, size_t file);

#endif
