/* cmd: the verbs. Each is one cmd_<verb>.c with a descriptor; main.c picks it by name, prints its help and exits with what it
 * returns. Only these files, text.c and main.c print. */
#ifndef ASSAY_CMD_H
#define ASSAY_CMD_H

#include <stdbool.h>
#include <stdio.h>

/* Exit statuses: constants, never a count (docs/assay.1, EXIT STATUS). */
enum {
	EXIT_PASS = 0,
	EXIT_FAIL = 1,
	EXIT_USAGE = 2,
	EXIT_INCOMPLETE = 3,
	EXIT_NOTHING_RUN = 4,
	EXIT_SIGHUP = 129,
	EXIT_SIGINT = 130,
	EXIT_SIGTERM = 143
};

struct cmd {
	const char *name; /* "run" */
	const char *usage; /* "run SUITE... [options]" */
	const char *summary; /* one line, for `assay --help` */
	const char *help; /* the options, for `assay run --help` */
	int (*run)(int argc, char **argv); /* argv[0] is the verb; getopt_long is reset before */
};

/* What getopt_long gave back as '?' or ':' (opterr = 0, short options begin with ':'): one error line and one hint with the nearest
 * option on stderr. Returns EXIT_USAGE. */
struct option;
int cmd_refuse(const char *verb, int got, char **argv, const struct option *options);

/* Whether what goes to f may be coloured: f is a terminal that can (TERM is not `dumb`), and NO_COLOR is not set to anything. */
bool cmd_colour(FILE *f);

/* A whole number from lo to hi in digits alone; false, and *out as it was, for anything else. */
bool cmd_whole_number(const char *text, int lo, int hi, int *out);

/* Whether writing there would replace a file: a device, a pipe or /dev/null loses nothing. */
bool cmd_would_replace(const char *path);

/* Whether a file of that name, which nobody asked for, can be made here; false with a message that says how to name another place. */
bool cmd_can_make(const char *verb, const char *path);

/* Whether both paths lead to one file: --force replaces a result, never what it is made of. */
bool cmd_same_file(const char *a, const char *b);
/* True, with a message, where out is one of the n files that are read. out may be NULL. */
bool cmd_output_is_input(const char *verb, const char *out, char *const *input, int n);

/* Has SIGINT, SIGTERM and SIGHUP (unless it is ignored, as under nohup) end a run in order: what comes back holds the signal's number once
 * one came. A second signal ends the process at once. */
const volatile int *cmd_catch_signals(void);
/* Whether an exit status says that a signal ended the run. */
bool cmd_exit_is_signal(int status);

extern const struct cmd *const cmd_table[]; /* in the order of `assay --help`; NULL-terminated (cmd_table.c) */

#endif
