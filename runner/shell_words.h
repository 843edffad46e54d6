/* shell_words: words of a command line, written so that a shell reads them back as they were. */
#ifndef ASSAY_SHELL_WORDS_H
#define ASSAY_SHELL_WORDS_H

#include <stdio.h>

/* In single quotes, whatever it is. NULL is the empty word. */
void shell_put_quoted(FILE *f, const char *word);
/* In single quotes only where it must be. */
void shell_put(FILE *f, const char *word);
/* A verb and what follows it as one line: "assay run s.yaml --set 't_q=1 '". The caller frees it; never NULL. */
char *shell_command(int argc, char *const *argv);

#endif
