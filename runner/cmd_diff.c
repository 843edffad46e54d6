/* assay diff: two verdict files, read as streams and compared. */
#include "cmd.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "baseline.h"
#include "diag.h"
#include "diff.h"
#include "diff_show.h"
#include "select.h"
#include "verdict.h"

extern const struct cmd cmd_diff;

enum {
	OPT_FILTER = 256,
	OPT_ALL,
	OPT_FORMAT,
	OPT_FAIL_ON,
	OPT_ALLOW,
	OPT_ADVISORY,
	OPT_LEAST,
	OPT_PROCESSES,
	OPT_BASELINE,
	OPT_DIR,
	OPT_FORCE
};

static const struct option long_options[] = {
	{"output", required_argument, NULL, 'o'},
	{"filter", required_argument, NULL, OPT_FILTER},
	{"all", no_argument, NULL, OPT_ALL},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"fail-on", required_argument, NULL, OPT_FAIL_ON},
	{"allow-device-change", no_argument, NULL, OPT_ALLOW},
	{"advisory", no_argument, NULL, OPT_ADVISORY},
	{"least", required_argument, NULL, OPT_LEAST},
	{"processes", required_argument, NULL, OPT_PROCESSES},
	{"baseline", no_argument, NULL, OPT_BASELINE},
	{"dir", required_argument, NULL, OPT_DIR},
	{"force", no_argument, NULL, OPT_FORCE},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

typedef void show_fn(const struct diff *d, const struct diff_show *s);

static const struct {
	const char *name;
	show_fn *show;
} formats[] = {
	{"text", diff_show_text}, {"md", diff_show_md},       {"csv", diff_show_csv},
	{"json", diff_show_json}, {"junit", diff_show_junit},
};

struct options {
	struct diff_options diff;
	show_fn *show;
	unsigned fail_on;
	bool all, advisory, baseline, force;
	const char *out, *dir, *filter;
};

static int refuse(const char *what, const char *hint)
{
	fprintf(stderr, "assay diff: %s\nhint: %s\n", what, hint);
	return EXIT_USAGE;
}

static bool parse_fail_on(const char *text, unsigned *out)
{
	const char *names[DIFF_N];
	for (int k = 0; k < DIFF_N; k++)
		names[k] = diff_state_name((enum diff_state)k);
	while (*text) {
		char word[40], what[120], hint[120];
		size_t n = strcspn(text, ",");
		snprintf(word, sizeof word, "%.*s", (int)(n < 39 ? n : 39), text);
		int k = 0;
		while (k < DIFF_SAME && strcmp(names[k], word) != 0)
			k++;
		if (k == DIFF_SAME) {
			const char *near = diag_nearest(word, names, DIFF_SAME);
			snprintf(what, sizeof what, "--fail-on: unknown state '%s'", word);
			snprintf(hint, sizeof hint,
				 near ? "did you mean %s?"
				      : "undecided, incomparable, bits, missing, added, faster, fixed, waived%s",
				 near ? near : "");
			refuse(what, hint);
			return false;
		}
		*out |= 1u << k;
		text += n + (text[n] == ',');
	}
	return true;
}

static bool parse_least(const char *text, double *out)
{
	char *end;
	errno = 0;
	*out = strtod(text, &end) / 100;
	if (end != text && strcmp(end, "%") == 0 && !errno && *out >= 0 && *out <= 1 &&
	    strspn(text, ".0123456789") == strlen(text) - 1)
		return true;
	char what[120];
	snprintf(what, sizeof what, "--least %.40s: a percentage is wanted", text);
	refuse(what, "--least 3% calls a change below 3 % none");
	return false;
}

static bool parse_processes(const char *text, int *out)
{
	char what[120];
	if (cmd_whole_number(text, 1, 64, out))
		return true;
	snprintf(what, sizeof what, "--processes %.40s: a whole number from 1 to 64 is wanted", text);
	refuse(what, "--processes 3 holds three processes of each side against each other");
	return false;
}

static bool parse_format(const char *text, show_fn **out)
{
	const char *names[8];
	int n = 0;
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		if (strcmp(formats[i].name, text) == 0) {
			*out = formats[i].show;
			return true;
		}
		names[n++] = formats[i].name;
	}
	char what[120], hint[80];
	const char *near = diag_nearest(text, names, n);
	snprintf(what, sizeof what, "--format %.40s: no such format", text);
	snprintf(hint, sizeof hint, near ? "did you mean %s?" : "text, md, csv, json or junit%s", near ? near : "");
	refuse(what, hint);
	return false;
}

/* One side, record by record. */
static bool read_side(struct diff *d, enum diff_side side, const char *path)
{
	struct err err = {{0}};
	struct verdict_reader *r = verdict_open(path, &err);
	bool ok = r != NULL, more = ok, header = false;
	while (more) {
		json_t *record = NULL;
		switch (verdict_next(r, &record, &err)) {
		case VERDICT_RECORD:
			header = true;
			ok = more = diff_take(d, side, record, verdict_line_number(r), &err);
			if (!ok)
				err_prefix(&err, "%s", path);
			break;
		case VERDICT_TORN:
			fprintf(stderr, "assay diff: %s:%lld: the last line is cut short and left out\n", path,
				(long long)verdict_line_number(r));
			more = false;
			break;
		case VERDICT_END: more = false; break;
		case VERDICT_BAD: ok = more = false; break;
		}
		json_decref(record);
	}
	verdict_finish(r);
	if (ok && !header)
		ok = err_set(&err, "%s: cut short before its header was whole; nothing is in it", path);
	if (!ok)
		fprintf(stderr, "assay diff: %s\n", err.text);
	return ok;
}

/* Compares two files and shows it. Returns the exit status. */
static int compare(const struct options *o, const char *base, const char *head, const char *title, FILE *out)
{
	struct err err = {{0}};
	struct diff *d = diff_create(&o->diff);
	int status = EXIT_USAGE;
	if (!d) {
		fprintf(stderr, "assay diff: out of memory\n");
		return status;
	}
	if (!read_side(d, DIFF_BASE, base) || !read_side(d, DIFF_HEAD, head))
		goto done;
	if (!diff_judge(d, &err)) {
		fprintf(stderr, "assay diff: %s\n", err.text);
		goto done;
	}
	struct diff_summary sum;
	diff_summary(d, &sum);
	if (o->filter && sum.all_cells == 0) {
		char what[300];
		snprintf(what, sizeof what, "--filter '%.200s' matches no cell of either file", o->filter);
		refuse(what,
		       "keys are kernel, case, geometry, data, arm, status and the axes, as in kernel=mla.*,t_q=1..4");
		goto done;
	}
	status = diff_exit(d, o->fail_on);
	const struct diff_show s = {
		.out = out,
		.base = base,
		.head = head,
		.title = title,
		.all = o->all,
		.colour = !o->out && cmd_colour(stdout),
		.fail_on = o->fail_on,
		.exit = status,
		.advisory = o->advisory,
	};
	o->show(d, &s);
	if (status == EXIT_INCOMPLETE) {
		char why[300];
		diff_incomplete_text(d, why, sizeof why);
		fprintf(stderr, "assay diff: %s\n", why);
	}
done:
	diff_destroy(d);
	return status;
}

/* Precedence of exit statuses: 2, 1, 3, 0. */
static int worse(int a, int b)
{
	static const int order[] = {EXIT_USAGE, EXIT_FAIL, EXIT_INCOMPLETE, EXIT_PASS};
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (a == order[i] || b == order[i])
			return order[i];
	return a;
}

/* Against the last baseline and against the epoch: small steps that each pass add up in the second. */
static int compare_baselines(const struct options *o, const struct baseline_paths *p, const char *head, FILE *out)
{
	int status = compare(o, p->last, head, "against the last baseline", out);
	if (status == EXIT_USAGE)
		return status;
	fputc('\n', out);
	return worse(status, compare(o, p->epoch, head, "against the epoch: what small steps have added up to", out));
}

/* The file to write, stdout for none or -. NULL: a message is printed. */
static FILE *open_out(const struct options *o, char *const *file, int n)
{
	if (!o->out || strcmp(o->out, "-") == 0)
		return stdout;
	if (!o->force && cmd_would_replace(o->out)) {
		char what[300];
		snprintf(what, sizeof what, "%.200s exists", o->out);
		refuse(what, "--force replaces it, -o names another file");
		return NULL;
	}
	if (cmd_output_is_input("diff", o->out, file, n))
		return NULL;
	FILE *out = fopen(o->out, "we");
	if (!out)
		fprintf(stderr, "assay diff: %s: cannot open for writing: %s\n", o->out, strerror(errno));
	return out;
}

/* False, with a message, where it could not be written to its end. Half a comparison is none and is taken away; a device is no file of ours. */
static bool close_out(FILE *out, const char *path, bool half)
{
	struct stat st;
	errno = 0;
	bool written = fflush(out) == 0 && !ferror(out);
	int why = errno;
	if (fclose(out) != 0 && written) {
		written = false;
		why = errno;
	}
	if (!written)
		fprintf(stderr, "assay diff: %s: cannot write%s%s\n", path, why ? ": " : "", why ? strerror(why) : "");
	if ((half || !written) && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
		unlink(path);
	return written;
}

static int run(int argc, char **argv)
{
	struct options o = {.diff = {.least = 0.01},
			    .show = diff_show_text,
			    .fail_on = DIFF_FAIL_ON,
			    .dir = "results/baseline"};
	struct arena *a = NULL;
	struct selector filter;
	struct err err = {{0}};
	int got, status = EXIT_USAGE;
	opterr = 0;
	while ((got = getopt_long(argc, argv, ":o:h", long_options, NULL)) != -1) {
		switch (got) {
		case 'o': o.out = optarg; break;
		case OPT_FILTER: o.filter = optarg; break;
		case OPT_ALL: o.all = true; break;
		case OPT_FORMAT:
			if (!parse_format(optarg, &o.show))
				return EXIT_USAGE;
			break;
		case OPT_FAIL_ON:
			if (!parse_fail_on(optarg, &o.fail_on))
				return EXIT_USAGE;
			break;
		case OPT_ALLOW: o.diff.allow_device_change = true; break;
		case OPT_ADVISORY: o.advisory = true; break;
		case OPT_LEAST:
			if (!parse_least(optarg, &o.diff.least))
				return EXIT_USAGE;
			break;
		case OPT_PROCESSES:
			if (!parse_processes(optarg, &o.diff.processes))
				return EXIT_USAGE;
			break;
		case OPT_BASELINE: o.baseline = true; break;
		case OPT_DIR: o.dir = optarg; break;
		case OPT_FORCE: o.force = true; break;
		case 'h': printf("usage: assay %s\n\n%s", cmd_diff.usage, cmd_diff.help); return EXIT_PASS;
		default: return cmd_refuse("diff", got, argv, long_options);
		}
	}
	int wanted = o.baseline ? 1 : 2;
	if (argc - optind != wanted)
		return o.baseline ? refuse("with --baseline one RUN is wanted", "assay diff --baseline tonight.jsonl")
				  : refuse("two files are wanted: BASE HEAD",
					   "assay diff main.jsonl pr.jsonl, or assay diff --baseline RUN");
	if (o.baseline && (o.show == diff_show_json || o.show == diff_show_junit))
		return refuse("--baseline makes two comparisons, which is no one json or junit document",
			      "compare with a file of results/baseline by name, once for last and once for epoch");
	if (o.filter) {
		a = arena_create();
		if (!selector_parse(a, o.filter, &filter, &err)) {
			fprintf(stderr, "assay diff: --filter '%s': %s\n", o.filter, err.text);
			arena_destroy(a);
			return EXIT_USAGE;
		}
		o.diff.filter = &filter;
	}
	char **file = argv + optind;
	struct baseline_paths p;
	if (o.baseline && !baseline_find(o.dir, file[0], &p, &err)) {
		fprintf(stderr, "assay diff: %s\n", err.text);
		goto done;
	}
	char *const baselines[] = {file[0], p.last, p.epoch};
	FILE *out = o.baseline ? open_out(&o, baselines, 3) : open_out(&o, file, 2);
	if (!out)
		goto done;
	status = o.baseline ? compare_baselines(&o, &p, file[0], out) : compare(&o, file[0], file[1], NULL, out);
	if (o.advisory && (status == EXIT_FAIL || status == EXIT_INCOMPLETE)) {
		fprintf(stderr, "assay diff: --advisory: exit 0; it would have been %d\n", status);
		status = EXIT_PASS;
	}
	/* What fails on standard output main sees; it also knows a reader that has seen enough. */
	if (out != stdout && !close_out(out, o.out, status == EXIT_USAGE))
		status = worse(status, EXIT_INCOMPLETE);
done:
	arena_destroy(a);
	return status;
}

const struct cmd cmd_diff = {
	.name = "diff",
	.usage = "diff BASE HEAD [options]\n       assay diff --baseline RUN [options]",
	.summary = "what changed between two verdict files",
	.help = "BASE and HEAD are verdict files, - for stdin, or REV:path of the git repository here.\n"
		"A letter a row:  ! newly fails  + slower  ? not enough evidence  x not comparable  b bits changed\n"
		"                 < only in base  > only in head  - faster  * fixed  w waived  ~ no change\n"
		"\n"
		"      --filter SEL      only cells that match, as in 'kernel=mla.*,t_q=1..4'\n"
		"      --all             every row, a line each\n"
		"      --format F        text, md, csv, json or junit (text)\n"
		"  -o, --output FILE     into FILE, not to stdout\n"
		"      --force           FILE may exist\n"
		"      --least P         a change below this is none (1%)\n"
		"      --processes K     hold K processes of each side against each other; times of a cell with fewer\n"
		"                        are not compared (without it: as many as each file has)\n"
		"      --fail-on LIST    exit 1 for these states too: undecided, incomparable, bits, missing, added,\n"
		"                        ...; a new failure (fails) and slower always do\n"
		"      --allow-device-change  show the times of another device, without judging them (exit 3, or 1)\n"
		"      --baseline        compare RUN with the last baseline and with the epoch\n"
		"      --dir DIR         where baselines are kept (results/baseline)\n"
		"      --advisory        exit 0, and say what it would have been\n"
		"\n"
		"Exit status: 0 no regression; 1 slower, or a new failure; 2 a file cannot be read; 3 nothing\n"
		"comparable: no cell, or none of the times that the files have; or FILE could not be written.\n",
	.run = run,
};
