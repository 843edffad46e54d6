/* plain: text that somebody else wrote (a file, a plugin, a device) made safe to show: a terminal must not act on it. Control characters, C1 ones
 * too, and bytes that are no UTF-8 become \x1b. */
#ifndef ASSAY_PLAIN_H
#define ASSAY_PLAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct arena;

/* Bytes of the character at s, at least 1 and at most `left`; *control: it must not be shown as it is. */
size_t plain_char(const char *s, size_t left, bool *control);
/* Columns of a terminal that the character of n bytes at s takes: 2 where it is wide (East Asian, emoji), 0 where it joins the one before. */
int plain_columns(const char *s, size_t n);
/* s made plain; s itself where it is so. A line's end and a tab are control characters here. NULL stays NULL. From a. */
const char *plain_text(struct arena *a, const char *s);
/* The same in place, cut at `cap` bytes; a line's end and a tab stay. */
void plain_buffer(char *s, size_t cap);
/* A line of JSON, every text and key in it plain; a line's end and a tab stay. No key may stand twice. New reference; NULL with *why (may be
 * NULL), as json_loadb. */
json_t *plain_record(const char *line, size_t n, json_error_t *why);

#endif
