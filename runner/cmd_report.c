/* assay report: verdict files as a page, as Markdown, CSV or JUnit. */
#define _GNU_SOURCE /* asprintf */
#include "cmd.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"
#include "report.h"
#include "report_plot.h"

extern const struct cmd cmd_report;

enum { OPT_INCONCLUSIVE = 256, OPT_NO_PLOTS, OPT_FORCE, MAX_PAGE_CELLS = 20000 };

static const struct option long_options[] = {
	{"output", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, 'f'},
	{"inconclusive", required_argument, NULL, OPT_INCONCLUSIVE},
	{"no-plots", no_argument, NULL, OPT_NO_PLOTS},
	{"force", no_argument, NULL, OPT_FORCE},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char *const formats[] = {"html", "md", "csv", "junit"};
static const char *const undecided_words[] = {"skip", "pass", "fail"}; /* enum report_inconclusive */

struct options {
	const char *out, *format;
	enum report_inconclusive undecided;
	bool no_plots, force;
};

static int index_of(const char *const *words, int n, const char *word)
{
	for (int i = 0; i < n; i++)
		if (strcmp(words[i], word) == 0)
			return i;
	return -1;
}

static int usage(const char *what, const char *hint)
{
	fprintf(stderr, "assay report: %s\nhint: %s\n", what, hint);
	return EXIT_USAGE;
}

/* By the name of the file where nothing is said; NULL: it tells nothing. */
static const char *format_of(const char *out)
{
	static const char *const endings[][2] = {{".html", "html"},
						 {".htm", "html"},
						 {".md", "md"},
						 {".csv", "csv"},
						 {".xml", "junit"}};
	size_t n = strlen(out);
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		size_t m = strlen(endings[i][0]);
		if (n > m && strcmp(out + n - m, endings[i][0]) == 0)
			return endings[i][1];
	}
	return NULL;
}

static void write_html(const struct report *r, FILE *f, const struct options *o)
{
	struct err err;
	bool none = false;
	struct report_plots *p = o->no_plots ? NULL : report_plots_draw(r, &none, &err);
	const char *why =
		p             ? NULL
		: o->no_plots ? "Pictures were not asked for (--no-plots)."
		: none ? "There are no pictures: gnuplot was not found where this page was made (Debian: gnuplot-nox)."
		       : "There are no pictures: gnuplot failed where this page was made.";
	if (!p && !o->no_plots)
		fprintf(stderr, "assay report: %s: tables only\nhint: %s\n", none ? "gnuplot was not found" : err.text,
			none ? "install gnuplot-nox, or say --no-plots" : "--no-plots leaves the pictures out");
	report_html(r, f, p, why);
	report_plots_destroy(p);
}

static void write_report(const struct report *r, FILE *f, const struct options *o)
{
	switch (index_of(formats, 4, o->format)) {
	case 0: write_html(r, f, o); break;
	case 1: report_md(r, f); break;
	case 2: report_csv(r, f); break;
	default: report_junit(r, f, o->undecided); break;
	}
}

/* Into a file beside it first, so that a half-written report is never found under the name; but a device, a pipe or a link is written to, not
 * replaced. */
static int write_file(const struct report *r, const struct options *o)
{
	char *part = NULL;
	int status = EXIT_INCOMPLETE;
	struct stat st;
	const bool direct = lstat(o->out, &st) == 0 && !S_ISREG(st.st_mode);
	if (!o->force && cmd_would_replace(o->out)) {
		fprintf(stderr, "assay report: %s exists\nhint: --force replaces it\n", o->out);
		return EXIT_USAGE;
	}
	if (asprintf(&part, direct ? "%s" : "%s.part", o->out) < 0)
		abort();
	FILE *f = fopen(part, "w");
	if (!f) {
		fprintf(stderr, "assay report: cannot write %s: %s\n", o->out, strerror(errno));
		free(part);
		return EXIT_USAGE;
	}
	write_report(r, f, o);
	errno = 0;
	bool bad = fflush(f) != 0 || ferror(f);
	int why = errno;
	if (fclose(f) != 0 && !bad) {
		bad = true;
		why = errno;
	}
	if (!bad && !direct && rename(part, o->out) != 0) {
		bad = true;
		why = errno;
	}
	if (bad) {
		fprintf(stderr, "assay report: cannot write %s%s%s\n", o->out, why ? ": " : "",
			why ? strerror(why) : "");
		if (!direct)
			unlink(part);
	} else {
		status = EXIT_PASS;
	}
	free(part);
	return status;
}

static int report(char **path, int n, const struct options *o)
{
	struct err err;
	struct report *r = report_create(path, (size_t)n, &err);
	int status = EXIT_USAGE;
	if (!r) {
		fprintf(stderr, "assay report: %s\n", err.text);
		return EXIT_USAGE;
	}
	if (r->n_lines > MAX_PAGE_CELLS && strcmp(o->format, "html") == 0) {
		fprintf(stderr,
			"assay report: a page of %zu cells would not open; at most %d\nhint: --format csv takes any "
			"number\n",
			r->n_lines, MAX_PAGE_CELLS);
		goto done;
	}
	if (strcmp(o->out, "-") == 0) {
		write_report(r, stdout, o);
		status = EXIT_PASS;
	} else {
		status = write_file(r, o);
	}
	const struct report_file *cut = report_cut_short(r);
	if (cut && status == EXIT_PASS) {
		fprintf(stderr, "assay report: %s was cut short: the report says so\n", cut->path);
		status = EXIT_INCOMPLETE;
	}
done:
	report_destroy(r);
	return status;
}

static int run(int argc, char **argv)
{
	struct options o = {.undecided = REPORT_SKIP};
	int got, k;
	opterr = 0;
	while ((got = getopt_long(argc, argv, ":o:f:h", long_options, NULL)) != -1) {
		switch (got) {
		case 'o': o.out = optarg; break;
		case 'f':
			k = index_of(formats, 4, optarg);
			if (k < 0)
				return usage("--format: there is html, md, csv and junit", "as in --format html");
			o.format = formats[k];
			break;
		case OPT_INCONCLUSIVE:
			k = index_of(undecided_words, 3, optarg);
			if (k < 0)
				return usage("--inconclusive: there is pass, skip and fail",
					     "as in --inconclusive fail");
			o.undecided = (enum report_inconclusive)k;
			break;
		case OPT_NO_PLOTS: o.no_plots = true; break;
		case OPT_FORCE: o.force = true; break;
		case 'h': printf("usage: assay %s\n\n%s", cmd_report.usage, cmd_report.help); return EXIT_PASS;
		default: return cmd_refuse("report", got, argv, long_options);
		}
	}
	if (argc - optind < 1 || !o.out)
		return usage("one or more FILEs and -o OUT are wanted", "assay report run.jsonl -o run.html");
	if (!o.format)
		o.format = format_of(o.out);
	if (!o.format)
		return usage("the name of OUT does not tell the format",
			     "end it in .html, .md, .csv or .xml, or say --format");
	if (cmd_output_is_input("report", o.out, argv + optind, argc - optind))
		return EXIT_USAGE;
	return report(argv + optind, argc - optind, &o);
}

const struct cmd cmd_report = {
	.name = "report",
	.usage = "report FILE... -o OUT [--format html|md|csv|junit]",
	.summary = "verdict files as a page, as Markdown, CSV or JUnit",
	.help = "FILE is a verdict file, - for stdin, or REV:path of the git repository here. Several stand side by\n"
		"side.\n"
		"  -o, --output OUT           where to; - for stdout\n"
		"  -f, --format FORMAT        html   one file that works offline: summary, maps, every sample,\n"
		"                                    data, device\n"
		"                             md     for a pull request\n"
		"                             csv    a line an arm, for other tools\n"
		"                             junit  for dashboards: a test a cell; waived ones are skipped, an\n"
		"                                    xpass fails\n"
		"                             without it the ending of OUT tells: .html .md .csv .xml\n"
		"      --inconclusive WHAT    junit: undecided cells pass, skip (the default) or fail\n"
		"      --no-plots             html: tables only. Pictures need gnuplot\n"
		"      --force                OUT may exist\n"
		"Nothing is judged again. Exit status: 0; 2 where a file cannot be read or written; 3 where one was\n"
		"cut short (the report is written and says so).\n",
	.run = run,
};
