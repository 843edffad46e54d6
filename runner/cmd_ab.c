/* assay ab: two builds of the same kernels, arm against arm in the same rounds. */
#define _GNU_SOURCE /* asprintf */
#include "cmd.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ab.h"
#include "run.h"
#include "shell_words.h"
#include "target.h"
#include "text.h"
#include "text_progress.h"
#include "trial.h"

extern const struct cmd cmd_ab;

enum {
	OPT_SUITE = 256,
	OPT_FORCE,
	OPT_BACKEND,
	OPT_DEVICE,
	OPT_FILTER,
	OPT_SET,
	OPT_MARGIN,
	OPT_BITS,
	OPT_FORMAT,
	OPT_PROCESSES,
	OPT_ADVISORY
};
enum { MAX_ITEMS = 64 };

static const struct option long_options[] = {
	{"suite", required_argument, NULL, OPT_SUITE},
	{"output", required_argument, NULL, 'o'},
	{"force", no_argument, NULL, OPT_FORCE},
	{"backend", required_argument, NULL, OPT_BACKEND},
	{"device", required_argument, NULL, OPT_DEVICE},
	{"filter", required_argument, NULL, OPT_FILTER},
	{"set", required_argument, NULL, OPT_SET},
	{"margin", required_argument, NULL, OPT_MARGIN},
	{"bits-may-differ", no_argument, NULL, OPT_BITS},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"processes", required_argument, NULL, OPT_PROCESSES},
	{"advisory", no_argument, NULL, OPT_ADVISORY},
	{"verbose", no_argument, NULL, 'v'},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

struct options {
	const char *suite, *out, *backend, *device, *margin, *filter[MAX_ITEMS];
	struct suite_override set[MAX_ITEMS];
	int n_filters, n_set, processes;
	bool force, markdown, advisory, verbose, quiet;
	struct ab_options ab;
	char *command;
};

static int refuse(const char *what, const char *hint)
{
	fprintf(stderr, "assay ab: %s\nhint: %s\n", what, hint);
	return EXIT_USAGE;
}

static bool parse_margin(const char *text, double *out)
{
	char *end;
	errno = 0;
	*out = strtod(text, &end) / 100;
	return end != text && strcmp(end, "%") == 0 && !errno && *out >= 0 && *out <= 10 &&
	       strspn(text, ".0123456789") == strlen(text) - 1;
}

/* "ab:BASE:HEAD" with whole paths, so that workers find them wherever they start. NULL: a message is printed. */
static char *pair_of(const char *base, const char *head)
{
	char *pair = NULL, *a = realpath(base, NULL), *b = realpath(head, NULL);
	if (!a || !b)
		fprintf(stderr, "assay ab: %s: %s\n", a ? head : base, strerror(errno));
	else if (strchr(a, ':') || strchr(b, ':'))
		fprintf(stderr, "assay ab: %s: a path with a colon cannot be told from two; rename it\n",
			strchr(a, ':') ? a : b);
	else if (asprintf(&pair, REGISTRY_PAIR "%s:%s", a, b) < 0)
		pair = NULL;
	free(a);
	free(b);
	return pair;
}

static int show_markdown(const char *path, int status)
{
	struct verdict_file f;
	struct err err;
	if (!verdict_load(path, &f, &err)) {
		fprintf(stderr, "assay ab: %s\n", err.text);
		return EXIT_INCOMPLETE;
	}
	ab_markdown(stdout, f.header, f.cell, f.n_cells, status);
	verdict_unload(&f);
	return status;
}

/* Runs it and shows it; without job.out into SUITE-TIME.jsonl here. */
static int run_both(const struct options *o, struct run_job job)
{
	char path[300], now[32];
	struct err err = {{0}};
	struct tm tm;
	int status = EXIT_USAGE;
	const time_t t = time(NULL);
	strftime(now, sizeof now, "%Y%m%dT%H%M%S", localtime_r(&t, &tm));
	snprintf(path, sizeof path, "%s-%s.jsonl", job.suite->name, now);
	if (!job.out && !cmd_can_make("ab", path))
		return EXIT_USAGE;
	if (!job.out)
		job.out = path;
	const bool records_on_stdout = strcmp(job.out, "-") == 0;
	FILE *text = records_on_stdout || o->markdown ? stderr : stdout;
	const struct text_options to = {
		.out = text,
		.colour = cmd_colour(text),
		.verbose = o->verbose,
		.quiet = o->quiet || o->markdown,
		.advisory = o->advisory,
		.file = records_on_stdout ? NULL : job.out,
	};
	struct run_screen *screen = run_screen_create(&to, to.quiet);
	job.events = run_screen_events(screen);
	bool ok = run_plan(&job, &status, &err);
	run_screen_finish(screen);
	if (!ok)
		fprintf(stderr, "assay ab: %s\n", err.text);
	else if (o->markdown)
		status = show_markdown(job.out, status);
	return status;
}

/* What goes before the suite when a cell is run again: the builds, and what they were held to. From a. */
static const char *rerun_as(const struct options *o, const char *base, const char *head, struct arena *a)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		abort();
	fputs("ab ", f);
	shell_put(f, base);
	fputc(' ', f);
	shell_put(f, head);
	if (o->margin)
		fprintf(f, " --margin %s", o->margin);
	if (o->ab.bits_may_differ)
		fputs(" --bits-may-differ", f);
	fputs(" --suite", f);
	if (fclose(f) != 0)
		abort();
	const char *words = arena_strdup(a, text);
	free(text);
	return words;
}

static int ab(const struct options *o, const char *base, const char *head)
{
	struct registry *reg = registry_create();
	struct diags *d = diags_create();
	struct arena *a = arena_create();
	struct selector filters[MAX_ITEMS];
	struct target target;
	struct suite *suite = NULL;
	struct plan *plan = NULL;
	struct err err = {{0}};
	char *pair = pair_of(base, head);
	int status = EXIT_USAGE, left_out = 0;
	if (!pair)
		goto done;
	if (!trial_plugin(reg, pair, &err) || !target_init(&target, o->backend, o->device, &err)) {
		fprintf(stderr, "assay ab: %s\n", err.text);
		goto done;
	}
	for (int i = 0; i < o->n_filters; i++)
		if (!selector_parse(a, o->filter[i], &filters[i], &err)) {
			fprintf(stderr, "assay ab: --filter '%s': %s\n", o->filter[i], err.text);
			goto done;
		}
	const struct suite_options so = {.registry = reg,
					 .set = o->set,
					 .n_set = o->n_set,
					 .backend = o->backend,
					 .device = o->device,
					 .rerun_as = rerun_as(o, base, head, a)};
	suite = suite_load(o->suite, &so, d);
	const struct suite *both = suite ? ab_suite(suite, reg, &o->ab, &left_out, &err) : NULL;
	const struct plan_filter filter = {.filter = filters, .n_filters = o->n_filters};
	if (both)
		plan = plan_build(both, reg, &target.plan, &filter, d, &err);
	if (suite && !plan && diags_errors(d) == 0)
		fprintf(stderr, "assay ab: %s\n", err.text);
	if (diags_errors(d) + diags_warnings(d) > 0)
		diags_print(d, stderr, cmd_colour(stderr));
	if (!plan)
		goto done;
	if (left_out)
		fprintf(stderr, "assay ab: %d kernel%s of arms that are not in both builds left out\n", left_out,
			left_out > 1 ? "s" : "");
	const char *plugins[] = {pair, NULL};
	const struct run_job job = {
		.suite = both,
		.registry = reg,
		.plan = plan,
		.backend = target.backend,
		.device = o->device,
		.peek = &target.peek,
		.plugins = plugins,
		.out = o->out,
		.how = o->force ? VERDICT_FORCE : VERDICT_NEW,
		.processes = o->processes ? o->processes : 1,
		.command = o->command,
		.interrupted = cmd_catch_signals(),
	};
	status = run_both(o, job);
done:
	plan_destroy(plan);
	suite_destroy(suite);
	arena_destroy(a);
	diags_destroy(d);
	registry_destroy(reg);
	free(pair);
	return status;
}

static int run(int argc, char **argv)
{
	struct options o = {.ab = {.margin = -1, .least_rounds = 20}};
	char *command = shell_command(argc, argv);
	int got, status = EXIT_USAGE;
	o.command = command;
	opterr = 0;
	while ((got = getopt_long(argc, argv, ":o:vqh", long_options, NULL)) != -1) {
		switch (got) {
		case 'o': o.out = optarg; break;
		case 'v': o.verbose = true; break;
		case 'q': o.quiet = true; break;
		case OPT_SUITE: o.suite = optarg; break;
		case OPT_FORCE: o.force = true; break;
		case OPT_BACKEND: o.backend = optarg; break;
		case OPT_DEVICE: o.device = optarg; break;
		case OPT_BITS: o.ab.bits_may_differ = true; break;
		case OPT_ADVISORY: o.advisory = true; break;
		case OPT_FILTER:
		case OPT_SET:
			if (o.n_filters == MAX_ITEMS || o.n_set == MAX_ITEMS) {
				status = refuse("more than 64 of --filter or --set", "put it into the suite");
				goto done;
			}
			if (got == OPT_FILTER)
				o.filter[o.n_filters++] = optarg;
			else
				o.set[o.n_set++].text = optarg;
			break;
		case OPT_MARGIN:
			if (!parse_margin(optarg, &o.ab.margin)) {
				status = refuse("--margin: a percentage is wanted", "--margin 2%");
				goto done;
			}
			o.margin = optarg;
			break;
		case OPT_PROCESSES:
			if (!cmd_whole_number(optarg, 1, 64, &o.processes)) {
				status = refuse("--processes: a whole number from 1 to 64 is wanted", "--processes 2");
				goto done;
			}
			break;
		case OPT_FORMAT:
			o.markdown = strcmp(optarg, "md") == 0;
			if (!o.markdown && strcmp(optarg, "text") != 0) {
				status = refuse("--format: text or md",
						"assay diff and assay report have the other formats");
				goto done;
			}
			break;
		case 'h':
			printf("usage: assay %s\n\n%s", cmd_ab.usage, cmd_ab.help);
			status = EXIT_PASS;
			goto done;
		default: status = cmd_refuse("ab", got, argv, long_options); goto done;
		}
	}
	if (argc - optind != 2 || !o.suite)
		status = refuse("two builds and a suite are wanted",
				"assay ab base.so head.so --suite suites/mla-decode.yaml");
	else if (o.markdown && o.out && strcmp(o.out, "-") == 0)
		status = refuse("--format md and -o - both want stdout", "name a file with -o");
	else
		status = cmd_output_is_input("ab", o.out, argv + optind, 2) ? EXIT_USAGE
			 : cmd_same_file(o.out, o.suite) ? refuse("-o names the suite itself", "name another file")
							 : ab(&o, argv[optind], argv[optind + 1]);
	if (o.advisory && (status == EXIT_FAIL || status == EXIT_INCOMPLETE)) {
		fprintf(stderr, "assay ab: --advisory: exit 0; it would have been %d\n", status);
		status = EXIT_PASS;
	}
done:
	free(command);
	return status;
}

const struct cmd cmd_ab = {
	.name = "ab",
	.usage = "ab BASE HEAD --suite SUITE [options]",
	.summary = "two builds of the same kernels as arms of the same rounds",
	.help = "BASE and HEAD are plugins (shared objects) with the same kernels. Every arm X of SUITE that both\n"
		"have becomes a case of two arms, base/X and head/X, timed in the same rounds: head must give the\n"
		"bits of base and not be slower. A kernel of theirs takes the place of a built-in one of its name.\n"
		"\n"
		"      --suite SUITE     geometries, axes, data and timing to compare at\n"
		"  -o, --output FILE|-   records into FILE; else into SUITE-ab-TIME.jsonl here\n"
		"      --force           FILE may exist\n"
		"      --margin P        how much slower head may be (the suite's margins)\n"
		"      --bits-may-differ hold outputs against the reference, not against the bits of base\n"
		"      --format F        text, or md to paste\n"
		"      --filter SEL      only cells that match; may be repeated\n"
		"      --set PATH=VALUE  change the suite; may be repeated\n"
		"      --processes K     time every cell in K fresh processes\n"
		"      --backend NAME    host or cuda\n"
		"      --device D        index, UUID or name\n"
		"      --advisory        exit 0, and say what it would have been\n"
		"  -v, --verbose         every cell\n"
		"  -q, --quiet           failures and the last line only\n"
		"\n"
		"The exit status is that of a run.\n",
	.run = run,
};
