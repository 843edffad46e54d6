/* text_progress: a run on the terminal: records to text, messages and progress to stderr. */
#ifndef ASSAY_TEXT_PROGRESS_H
#define ASSAY_TEXT_PROGRESS_H

#include <stdbool.h>

#include "run.h"
#include "text.h"

struct run_screen;
struct run_screen *run_screen_create(const struct text_options *o, bool quiet); /* never NULL */
struct run_events run_screen_events(struct run_screen *s);
/* Takes the progress line away, before something else is printed. */
void run_screen_wipe(struct run_screen *s);
/* Prints the tables and the last line, where a header was seen, and destroys. */
void run_screen_finish(struct run_screen *s);

#endif
