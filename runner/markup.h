/* markup: text made safe for what it is put into. A name may hold any character; none of them may leave its place. */
#ifndef ASSAY_MARKUP_H
#define ASSAY_MARKUP_H

#include <jansson.h>
#include <stdio.h>

/* Text or attribute of HTML and XML. What XML cannot carry (control characters, U+FFFE, U+FFFF, bytes that are no UTF-8) is
 * written as \x1b. NULL writes nothing. */
void markup_xml(FILE *f, const char *s);
/* Inline text of GitHub-flavoured Markdown, also inside a table: one line, nothing in it is markup. */
void markup_md(FILE *f, const char *s);
/* The same as code: `s`, fenced by as many backticks as it takes. */
void markup_md_code(FILE *f, const char *s);
/* A field of RFC 4180: quoted where it must be. */
void markup_csv(FILE *f, const char *s);
/* JSON for a <script type="application/json">: nothing in it can end the script. */
void markup_json(FILE *f, const json_t *j);

#endif
