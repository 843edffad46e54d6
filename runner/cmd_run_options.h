/* cmd_run_options: what `assay run` was asked for. */
#ifndef ASSAY_CMD_RUN_OPTIONS_H
#define ASSAY_CMD_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "run.h"
#include "suite.h"
#include "suite_list.h"
#include "text.h"

enum { RUN_MAX_ITEMS = 256 };

struct run_options {
	const char *out, *backend, *device, *shard, *rerun_failed, *arm, *census, *rates, *tau_store;
	const char *filter[RUN_MAX_ITEMS];
	struct suite_override set[RUN_MAX_ITEMS];
	const char *plugin[RUN_MAX_ITEMS];
	int n_filters, n_set, n_plugins;
	uint32_t checks;
	int processes, launches, shard_i, shard_n;
	bool force, resume, no_fork, strict, advisory, require_run, no_wait, verbose, quiet;
	char shard_words[200];
	char **file; /* as named: suites, or files that name suites */
	int n_files;
	struct suite_uses suites; /* what they come to, in the arena that run_options_suites was given */
	char *command; /* the command line, quoted */
};

/* Reads argv (argv[0] is the verb) into a zeroed *o, whose strings live in argv; command is malloc'd. False: a message is printed, or
 * the help was asked for (*help). */
bool run_options_parse(int argc, char **argv, struct run_options *o, bool *help);
/* The suites of these files, and what can only be asked of them together. False: messages are printed. */
bool run_options_suites(struct run_options *o, struct arena *a);
/* How the text of the run is printed. file: NULL where the records go to stdout. */
struct text_options run_text_options(const struct run_options *o, const char *file);
/* --no-fork: the one cell of the job's plan in this process, or nothing but one of its arms. The exit status. */
int run_in_this_process(const struct run_options *o, const struct run_job *job);
/* One error line and one hint on stderr. Returns false. */
bool run_usage_error(const char *what, const char *hint);

#endif
