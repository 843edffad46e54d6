/* report_html: parts of the page. Each writes its section, or nothing where there is nothing to say. */
#ifndef ASSAY_REPORT_HTML_H
#define ASSAY_REPORT_HTML_H

#include "markup.h"
#include "report.h"
#include "report_plot.h"

/* A cell's chip: the status as a word with a class of its own. */
void html_status(FILE *f, const struct row *row);
/* <th> of a section's table: text, and where it sorts by number. */
void html_th(FILE *f, const char *text, bool number);
/* "2.6 us" as a sortable <td>. */
void html_td_number(FILE *f, double value, const char *shown);
/* The name of a cell, with places where a narrow window may break it. */
void html_name(FILE *f, const char *name);
/* <svg> in a figure with a caption; nothing where svg is NULL. */
void html_figure(FILE *f, const char *svg, const char *caption);
/* The name of a file, where there are several. */
void html_file_label(FILE *f, const struct report *r, size_t file);

void html_summary(FILE *f, const struct report *r);
void html_attention(FILE *f, const struct report *r);
void html_aggregates(FILE *f, const struct report *r);
void html_controls(FILE *f, const struct report *r); /* report_controls.c */
/* What each file of the first one's suite changed against it. */
void html_changes(FILE *f, const struct report *r);
void html_maps(FILE *f, const struct report *r);
void html_winners(FILE *f, const struct report *r);
void html_cells(FILE *f, const struct report *r);
void html_audit(FILE *f, const struct report *r);
void html_device(FILE *f, const struct report *r);
void html_artifacts(FILE *f, const struct report *r);
/* A <template> a cell, opened by the page's script. */
void html_details(FILE *f, const struct report *r, const struct report_plots *plots);
/* What the script needs besides the tables. */
void html_data(FILE *f, const struct report *r);

#endif
