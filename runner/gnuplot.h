/* gnuplot: one process for many pictures. A script is added for each; all are drawn at once, as SVG to be put into a page. */
#ifndef ASSAY_GNUPLOT_H
#define ASSAY_GNUPLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "err.h"

struct gnuplot;

struct gnuplot *gnuplot_create(void); /* never NULL: small allocations, as arena */
void gnuplot_destroy(struct gnuplot *g); /* NULL is fine */
/* Begins picture number gnuplot_count, of that size in pixels: write plain gnuplot to the returned stream, which stays g's. */
FILE *gnuplot_add(struct gnuplot *g, int width, int height);
size_t gnuplot_count(const struct gnuplot *g);
/* Draws all. False with *err: no gnuplot program (found_none is set), or it failed, with its own words. */
bool gnuplot_draw(struct gnuplot *g, bool *found_none, struct err *err);
/* <svg …>…</svg> of picture i, with colours that follow the page; NULL before gnuplot_draw. The shapes of its points are in
 * gnuplot_defs, which a page needs once. */
const char *gnuplot_svg(const struct gnuplot *g, size_t i);
const char *gnuplot_defs(void);
/* Text in double quotes of gnuplot, nothing in it enhanced or evaluated. */
void gnuplot_text(FILE *f, const char *s);

#endif
