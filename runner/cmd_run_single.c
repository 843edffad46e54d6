/* cmd_run_single: `assay run --no-fork`: the one cell in this process, or nothing but one of its arms. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "cmd_run_options.h"
#include "diag.h"
#include "run.h"
#include "text_progress.h"

/* Whether the one cell of the plan has the arm; a message is printed where not. */
static bool has_arm(const struct plan *p, const char *arm)
{
	struct arena *a = arena_create();
	const char *name[MAX_ARMS];
	struct cell c;
	struct err err = {{0}};
	bool found = false;
	int n = 0;
	if (plan_cell(p, 0, a, &c, &err)) {
		for (; n < c.n_arms; n++)
			name[n] = c.arm[n].name;
		for (int i = 0; i < n && !found; i++)
			found = strcmp(name[i], arm) == 0;
		if (!found)
			err_set(&err, "--arm %s: %s has no such arm", arm, c.id);
	}
	if (!found) {
		const char *near = diag_nearest(arm, name, n);
		fprintf(stderr, "assay run: %s\n", err.text);
		if (near)
			fprintf(stderr, "hint: did you mean %s?\n", near);
		else if (n)
			fputs("hint: its arms:", stderr);
		for (int i = 0; !near && i < n; i++)
			fprintf(stderr, " %s%s", name[i], i + 1 < n ? "," : "\n");
	}
	arena_destroy(a);
	return found;
}

/* --no-fork: the one cell here, or nothing but one of its arms. */
int run_in_this_process(const struct run_options *o, const struct run_job *job)
{
	struct err err = {{0}};
	int status;
	if (plan_count(job->plan) != 1) {
		fprintf(stderr,
			"assay run: --no-fork runs one cell, the filter leaves %lld\nhint: `assay list %s` shows the "
			"cells\n",
			(long long)plan_count(job->plan), job->suite->path);
		return EXIT_USAGE;
	}
	if (o->arm && !has_arm(job->plan, o->arm))
		return EXIT_USAGE;
	if (o->arm) {
		const int launches = o->launches ? o->launches : 1;
		if (!run_launches(job, o->arm, launches, &err)) {
			fprintf(stderr, "assay run: %s\n", err.text);
			return *job->interrupted ? 128 + *job->interrupted : EXIT_INCOMPLETE;
		}
		fprintf(stderr, "%s launched %d time%s\n", o->arm, launches, launches > 1 ? "s" : "");
		return EXIT_PASS;
	}
	struct run_job mine = *job;
	struct text_options to = run_text_options(o, !job->out || strcmp(job->out, "-") == 0 ? NULL : job->out);
	to.verbose = true;
	struct run_screen *screen = run_screen_create(&to, o->quiet);
	mine.events = run_screen_events(screen);
	const bool ok = run_single(&mine, &status, &err);
	run_screen_finish(screen);
	if (!ok)
		fprintf(stderr, "assay run: %s\n", err.text);
	return status;
}
