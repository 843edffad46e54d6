/* assay baseline promote: a clean, complete, quiet run becomes what later runs are held against. */
#include "cmd.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "baseline.h"
#include "record_parts.h"

extern const struct cmd cmd_baseline;

enum { OPT_DIR = 256, OPT_EPOCH };

static const struct option long_options[] = {
	{"dir", required_argument, NULL, OPT_DIR},
	{"epoch", no_argument, NULL, OPT_EPOCH},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* Every record of the run into path, in one step: the old file is there until the new one is whole. *opened: the new one could be begun. */
static bool copy_run(const char *from, const char *path, bool *opened, struct err *err)
{
	char part[1100];
	snprintf(part, sizeof part, "%s.part", path);
	struct verdict_reader *r = verdict_open(from, err);
	struct verdict_writer *w = r ? verdict_create(part, VERDICT_FORCE, err) : NULL;
	bool ok = w != NULL, more = ok;
	*opened = ok;
	while (more) {
		json_t *record = NULL;
		enum verdict_got got = verdict_next(r, &record, err);
		if (got == VERDICT_RECORD)
			ok = more = verdict_write(w, record, err);
		else {
			ok = got != VERDICT_BAD;
			more = false;
		}
		json_decref(record);
	}
	verdict_finish(r);
	if (w)
		ok = verdict_close(w, ok ? err : NULL) && ok;
	if (ok && rename(part, path) != 0)
		ok = err_set(err, "%s: %s", path, strerror(errno));
	if (!ok)
		unlink(part);
	return ok;
}

static int promote(const char *run_path, const char *dir, bool epoch)
{
	struct verdict_file run;
	struct err err = {{0}};
	struct baseline_paths p;
	char why[400];
	int status = EXIT_USAGE;
	if (strcmp(run_path, "-") == 0) {
		fprintf(stderr, "assay baseline: a run from stdin can be read only once; name a file\n");
		return status;
	}
	if (!verdict_load(run_path, &run, &err)) {
		fprintf(stderr, "assay baseline: %s\n", err.text);
		return status;
	}
	if (!baseline_paths(dir, run.header, &p, &err)) {
		fprintf(stderr, "assay baseline: %s: %s\n", run_path, err.text);
		goto done;
	}
	int lacks = 0;
	while (baseline_lack(&run, lacks, why, sizeof why))
		fprintf(stderr, "assay baseline: %s: %s\n", run_path, why), lacks++;
	if (lacks) {
		fprintf(stderr, "assay baseline: not promoted; %s stays as it is\n", p.last);
		status = EXIT_FAIL;
		goto done;
	}
	const bool first = access(p.epoch, F_OK) != 0;
	bool opened;
	if (!copy_run(run_path, p.last, &opened, &err) ||
	    ((epoch || first) && !copy_run(run_path, p.epoch, &opened, &err))) {
		if (opened)
			status = EXIT_INCOMPLETE;
		fprintf(stderr, "assay baseline: %s\n", err.text);
		goto done;
	}
	const char *commit = record_text(json_object_get(run.header, "git"), "commit");
	printf("last   %s  %zu cells of %.7s\n", p.last, run.n_cells, commit ? commit : "?");
	printf("epoch  %s  %s\n", p.epoch,
	       epoch   ? "moved to the same run"
	       : first ? "begins with the same run"
		       : "stays; --epoch moves it");
	status = EXIT_PASS;
done:
	verdict_unload(&run);
	return status;
}

static int run(int argc, char **argv)
{
	const char *dir = "results/baseline";
	bool epoch = false;
	int got;
	opterr = 0;
	while ((got = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (got) {
		case OPT_DIR: dir = optarg; break;
		case OPT_EPOCH: epoch = true; break;
		case 'h': printf("usage: assay %s\n\n%s", cmd_baseline.usage, cmd_baseline.help); return EXIT_PASS;
		default: return cmd_refuse("baseline", got, argv, long_options);
		}
	}
	if (argc - optind != 2 || strcmp(argv[optind], "promote") != 0) {
		fprintf(stderr,
			"assay baseline: promote and one RUN are wanted\nhint: assay baseline promote night.jsonl\n");
		return EXIT_USAGE;
	}
	return promote(argv[optind + 1], dir, epoch);
}

const struct cmd cmd_baseline = {
	.name = "baseline",
	.usage = "baseline promote RUN [--dir DIR] [--epoch]",
	.summary = "a clean, complete, quiet run becomes the baseline",
	.help = "RUN becomes DIR/SUITE.DEVICE.last.jsonl. The first one is the epoch too (SUITE.DEVICE.epoch.jsonl),\n"
		"which then stays where it is, so that small steps add up; `assay diff --baseline RUN` compares with\n"
		"both.\n"
		"\n"
		"      --dir DIR         where baselines are kept (results/baseline)\n"
		"      --epoch           the epoch moves to this run as well: the steps so far are accepted\n"
		"\n"
		"Promoted is only a run of committed files that is complete and not noisy, and in which every cell\n"
		"passed, was skipped or is waived. Exit status: 0; 1 where RUN is not fit, with every reason; 2 where\n"
		"it cannot be read.\n",
	.run = run,
};
