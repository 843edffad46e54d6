/* assay bisect: the commit between a good and a bad one from which on a cell is slower or fails, by `git bisect run` with the right statuses:
 * 0 good, 1 bad, 125 for what cannot be decided. The good commit is built and measured first, and every other is held against it. */
#define _GNU_SOURCE /* asprintf */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diff.h"
#include "verdict.h"

extern const struct cmd cmd_bisect;

enum {
	OPT_CELL = 256,
	OPT_SUITE,
	OPT_PLUGIN,
	OPT_ASSAY,
	OPT_PROCESSES,
	OPT_BACKEND,
	OPT_DEVICE,
	OPT_LEAST,
	OPT_STEP,
	OPT_LOOK
};
enum { GOOD = 0, BAD = 1, SKIP = 125, ABORT = 128 };

static const struct option long_options[] = {
	{"cell", required_argument, NULL, OPT_CELL},
	{"suite", required_argument, NULL, OPT_SUITE},
	{"plugin", required_argument, NULL, OPT_PLUGIN},
	{"assay", required_argument, NULL, OPT_ASSAY},
	{"processes", required_argument, NULL, OPT_PROCESSES},
	{"backend", required_argument, NULL, OPT_BACKEND},
	{"device", required_argument, NULL, OPT_DEVICE},
	{"least", required_argument, NULL, OPT_LEAST},
	{"step", required_argument, NULL, OPT_STEP},
	{"look", required_argument, NULL, OPT_LOOK},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

struct options {
	const char *cell, *suite, *plugin, *assay, *processes, *backend, *device, *least;
	const char *step; /* the folder of the good measurement: this is one step of git bisect run */
	const char *
		look; /* "fails": only a failure makes a commit bad, and times are not asked for; else slower does too */
	char **build; /* NULL-terminated */
	const char **raw; /* the options as they were given, for the steps */
	int n_raw;
};

static int refuse(const char *what, const char *hint)
{
	fprintf(stderr, "assay bisect: %s\nhint: %s\n", what, hint);
	return EXIT_USAGE;
}

enum silence { LOUD, NO_STDOUT, SILENT };

/* Runs a program to its end; its output goes where ours goes, or nowhere. Its exit status, 128 + signal, or 127. */
static int call(const char *const *argv, enum silence quiet)
{
	posix_spawn_file_actions_t fa;
	pid_t pid;
	int status;
	fflush(NULL);
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (quiet != LOUD)
		posix_spawn_file_actions_addopen(&fa, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (quiet == SILENT)
		posix_spawn_file_actions_addopen(&fa, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	/* execve takes pointers to non-const for history's sake and writes to none of them. */
	int rc = posix_spawnp(&pid, argv[0], &fa, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	if (rc != 0) {
		fprintf(stderr, "assay bisect: %s: %s\n", argv[0], strerror(rc));
		return 127;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Builds what is checked out and measures the cells into path. GOOD: there is a measurement; SKIP: there is none; ABORT: interrupted. */
static int measure(const struct options *o, const char *path)
{
	int rc = call((const char *const *)o->build, NO_STDOUT);
	if (cmd_exit_is_signal(rc))
		return ABORT;
	if (rc != 0) {
		fprintf(stderr, "assay bisect: the build failed (exit %d): skipped\n", rc);
		return SKIP;
	}
	const char *argv[32];
	int n = 0;
	argv[n++] = o->assay ? o->assay : "/proc/self/exe";
	argv[n++] = "run";
	argv[n++] = o->suite;
	argv[n++] = "--filter";
	argv[n++] = o->cell;
	argv[n++] = "-o";
	argv[n++] = path;
	argv[n++] = "--force";
	argv[n++] = "-q";
	const char *const more[][2] = {{"--plugin", o->plugin},
				       {"--processes", o->processes},
				       {"--backend", o->backend},
				       {"--device", o->device}};
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (more[i][1]) {
			argv[n++] = more[i][0];
			argv[n++] = more[i][1];
		}
	argv[n] = NULL;
	/* The child would be its own /proc/self. */
	char self[64];
	if (!o->assay) {
		snprintf(self, sizeof self, "/proc/%ld/exe", (long)getpid());
		argv[0] = self;
	}
	rc = call(argv, NO_STDOUT);
	if (cmd_exit_is_signal(rc))
		return ABORT;
	if (rc == EXIT_USAGE || rc > 4) {
		fprintf(stderr, "assay bisect: the run failed (exit %d): skipped\n", rc);
		return SKIP;
	}
	return GOOD;
}

static bool take_file(struct diff *d, enum diff_side side, const char *path, struct err *err)
{
	struct verdict_reader *r = verdict_open(path, err);
	bool ok = r != NULL, more = ok;
	while (more) {
		json_t *record = NULL;
		enum verdict_got got = verdict_next(r, &record, err);
		if (got == VERDICT_RECORD)
			ok = more = diff_take(d, side, record, verdict_line_number(r), err);
		else {
			ok = got != VERDICT_BAD;
			more = false;
		}
		json_decref(record);
	}
	verdict_finish(r);
	return ok;
}

static void tell_row(void *ctx, const struct diff_row *row)
{
	FILE *f = ctx;
	fprintf(f, "  %c %s %s", diff_letter(row->state), row->id, row->arm ? row->arm : "");
	if (row->ratio > 0)
		fprintf(f, " %.3fx [%.3f, %.3f]", row->ratio, row->lo, row->hi);
	fprintf(f, "%s%s\n", row->why ? " " : "", row->why ? row->why : "");
}

/* A measurement against the good one. */
static int judge(const struct options *o, const char *good, const char *now, const char **look)
{
	struct err err = {{0}};
	const struct diff_options d_o = {.least = o->least ? strtod(o->least, NULL) / 100 : 0.01};
	struct diff *d = diff_create(&d_o);
	struct diff_summary s;
	int status = SKIP;
	if (!d || !take_file(d, DIFF_BASE, good, &err) || !take_file(d, DIFF_HEAD, now, &err) || !diff_judge(d, &err)) {
		fprintf(stderr, "assay bisect: %s: skipped\n", err.text);
		diff_destroy(d);
		return status;
	}
	diff_summary(d, &s);
	const bool fails_only = o->look && strcmp(o->look, "fails") == 0;
	/* Where bad fails, an open time is no matter as long as every cell was compared, or skipped as in the good one. */
	const bool unsure = s.rows[DIFF_UNDECIDED] > 0 || s.rows[DIFF_INCOMPARABLE] > 0 || s.rows[DIFF_MISSING] > 0;
	const bool untold = s.times_compared < s.timed; /* as where the timing is invalid in both */
	const bool all = s.compared + s.skipped == s.all_cells;
	const bool open = s.compared == 0 || (unsure && !(fails_only && all)) || (untold && !fails_only);
	if (s.rows[DIFF_FAILS] > 0 || (!fails_only && s.rows[DIFF_SLOWER] > 0)) {
		status = BAD;
		diff_rows(d, DIFF_FAILS, tell_row, stdout);
		diff_rows(d, DIFF_SLOWER, tell_row, stdout);
		if (look)
			*look = s.rows[DIFF_FAILS] > 0 ? "fails" : "slower";
	} else if (open) {
		diff_rows(d, DIFF_UNDECIDED, tell_row, stdout);
		diff_rows(d, DIFF_INCOMPARABLE, tell_row, stdout);
		diff_rows(d, DIFF_MISSING, tell_row, stdout);
	} else {
		status = GOOD;
	}
	printf("assay bisect: %s\n", status == BAD    ? "bad"
				     : status == GOOD ? "good"
						      : "cannot be decided here: skipped");
	fflush(stdout);
	diff_destroy(d);
	return status;
}

static int step(const struct options *o)
{
	char *good = NULL, *now = NULL;
	int status = ABORT;
	if (asprintf(&good, "%s/good.jsonl", o->step) >= 0 && asprintf(&now, "%s/now.jsonl", o->step) >= 0) {
		status = measure(o, now);
		if (status == GOOD)
			status = judge(o, good, now, NULL);
	}
	free(good);
	free(now);
	return status;
}

static bool checkout(const char *rev)
{
	return call((const char *const[]){"git", "checkout", "-q", "--detach", rev, NULL}, SILENT) == 0;
}

/* Measures the commit into DIR/NAME. */
static int measure_commit(const struct options *o, const char *rev, const char *dir, const char *name, char **path)
{
	if (asprintf(path, "%s/%s", dir, name) < 0)
		return ABORT;
	if (!checkout(rev)) {
		fprintf(stderr, "assay bisect: %s cannot be checked out\n", rev);
		return SKIP;
	}
	printf("assay bisect: measuring %s\n", rev);
	return measure(o, *path);
}

/* The branch, or the commit of a detached head, to go back to. False: no repository. */
static bool where_we_are(char *out, size_t cap)
{
	FILE *f = popen("git symbolic-ref -q --short HEAD || git rev-parse HEAD", "re");
	out[0] = 0;
	bool ok = f && fgets(out, (int)cap, f);
	if (f)
		pclose(f);
	out[strcspn(out, "\n")] = 0;
	return ok && out[0];
}

static int bisect(const struct options *o, const char *good, const char *bad)
{
	char dir[] = "/tmp/assay-bisect-XXXXXX", back[256];
	char *good_file = NULL, *bad_file = NULL;
	int status = EXIT_INCOMPLETE;
	if (!where_we_are(back, sizeof back))
		return refuse("here is no git repository", "run it in the work tree that BUILD builds");
	if (call((const char *const[]){"git", "diff", "--quiet", "HEAD", "--", NULL}, SILENT) != 0)
		return refuse("files here differ from the commit",
			      "commit or stash them: bisecting checks out other commits");
	if (!mkdtemp(dir)) {
		fprintf(stderr, "assay bisect: %s: %s\n", dir, strerror(errno));
		return EXIT_USAGE;
	}
	if (measure_commit(o, good, dir, "good.jsonl", &good_file) != GOOD) {
		fprintf(stderr, "assay bisect: %s cannot be measured\n", good);
		goto done;
	}
	if (measure_commit(o, bad, dir, "bad.jsonl", &bad_file) != GOOD) {
		fprintf(stderr, "assay bisect: %s cannot be measured\n", bad);
		goto done;
	}
	const char *look = "slower";
	if (judge(o, good_file, bad_file, &look) != BAD) {
		fprintf(stderr,
			"assay bisect: %s is not worse than %s here: there is nothing to look for (--processes 3 sees "
			"smaller changes)\n",
			bad, good);
		goto done;
	}
	if (call((const char *const[]){"git", "bisect", "start", bad, good, NULL}, SILENT) != 0) {
		fprintf(stderr, "assay bisect: git bisect start %s %s failed\n", bad, good);
		goto done;
	}
	char self[64];
	snprintf(self, sizeof self, "/proc/%ld/exe", (long)getpid());
	const char *argv[64] = {"git", "bisect", "run", self, "bisect", "--step", dir, "--look", look};
	int n = 9;
	for (int i = 0; i < o->n_raw && n < 50; i++)
		argv[n++] = o->raw[i];
	argv[n++] = "--";
	for (int i = 0; o->build[i] && n < 63; i++)
		argv[n++] = o->build[i];
	argv[n] = NULL;
	int rc = call(argv, LOUD);
	call((const char *const[]){"git", "bisect", "reset", NULL}, SILENT);
	status = rc == 0 ? EXIT_PASS : rc >= 128 ? EXIT_SIGINT : EXIT_INCOMPLETE;
	if (rc != 0)
		fprintf(stderr, "assay bisect: git bisect run ended with %d: the commit was not found\n", rc);
done:
	call((const char *const[]){"git", "checkout", "-q", back, NULL}, SILENT);
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = {"good.jsonl", "bad.jsonl", "now.jsonl"};
		char path[64];
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
	free(good_file);
	free(bad_file);
	return status;
}

static int run(int argc, char **argv)
{
	struct options o = {0};
	const char *raw[40]; /* the options again, for the steps */
	int got, dashes = 1;
	while (dashes < argc && strcmp(argv[dashes], "--") != 0)
		dashes++;
	o.build = argv + (dashes < argc ? dashes + 1 : argc);
	o.raw = raw;
	opterr = 0;
	/* What is before "--" is ours, what is after it is BUILD's. */
	while ((got = getopt_long(dashes, argv, ":h", long_options, NULL)) != -1) {
		switch (got) {
		case OPT_CELL: o.cell = optarg; break;
		case OPT_SUITE: o.suite = optarg; break;
		case OPT_PLUGIN: o.plugin = optarg; break;
		case OPT_ASSAY: o.assay = optarg; break;
		case OPT_PROCESSES: o.processes = optarg; break;
		case OPT_BACKEND: o.backend = optarg; break;
		case OPT_DEVICE: o.device = optarg; break;
		case OPT_LEAST: o.least = optarg; break;
		case OPT_STEP: o.step = optarg; break;
		case OPT_LOOK: o.look = optarg; break;
		case 'h': printf("usage: assay %s\n\n%s", cmd_bisect.usage, cmd_bisect.help); return EXIT_PASS;
		default: return cmd_refuse("bisect", got, argv, long_options);
		}
		static const char *const names[] = {"--cell",      "--suite",   "--plugin", "--assay",
						    "--processes", "--backend", "--device", "--least"};
		if (got < OPT_STEP && o.n_raw < 38) {
			raw[o.n_raw++] = names[got - OPT_CELL];
			raw[o.n_raw++] = optarg;
		}
	}
	if (!o.build[0])
		return refuse("after -- the command that builds is wanted",
			      "assay bisect v1 main --suite S --cell SEL -- ninja -C build");
	if (!o.suite || !o.cell)
		return refuse("--suite and --cell are wanted", "assay diff prints them in its last line");
	if (o.step)
		return step(&o);
	if (dashes - optind != 2)
		return refuse("two commits are wanted: GOOD BAD",
			      "assay bisect v1 main --suite S --cell SEL -- ninja -C build");
	return bisect(&o, argv[optind], argv[optind + 1]);
}

const struct cmd cmd_bisect = {
	.name = "bisect",
	.usage = "bisect GOOD BAD --suite SUITE --cell SEL [options] -- BUILD...",
	.summary = "the commit from which on a cell is slower or fails",
	.help = "GOOD is checked out, built by BUILD and measured; so is BAD, which must be worse. Then `git bisect\n"
		"run` goes through the commits between: good (0), bad (1), or skipped (125) where it does not build,\n"
		"cannot be compared, or is not decided.\n"
		"\n"
		"      --suite SUITE     the suite to run\n"
		"      --cell SEL        the cells that matter, as for --filter\n"
		"      --assay PATH      the assay that BUILD makes, for built-in kernels (this one)\n"
		"      --plugin PATH     the plugin that BUILD makes\n"
		"      --processes K     time every cell in K fresh processes: sees smaller changes\n"
		"      --least P         a change below this is none (1)\n"
		"      --backend NAME    host or cuda\n"
		"      --device D        index, UUID or name\n"
		"\n"
		"The work tree must have no uncommitted changes; it comes back as it was. Exit status: 0 found; 2\n"
		"usage; 3 not found.\n",
	.run = run,
};
