/* cmd_run_options: the options of `assay run`, each checked as it comes, then together. */
#include "cmd_run_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "diag.h"
#include "run.h"
#include "shell_words.h"

enum {
	OPT_FORCE = 256,
	OPT_RESUME,
	OPT_BACKEND,
	OPT_DEVICE,
	OPT_FILTER,
	OPT_CHECKS,
	OPT_SET,
	OPT_PROCESSES,
	OPT_SHARD,
	OPT_PLUGIN,
	OPT_RERUN_FAILED,
	OPT_NO_FORK,
	OPT_ARM,
	OPT_LAUNCHES,
	OPT_STRICT,
	OPT_ADVISORY,
	OPT_REQUIRE_RUN,
	OPT_CENSUS,
	OPT_RATES,
	OPT_NO_WAIT,
	OPT_TAU_STORE
};

static const struct option long_options[] = {
	{"output", required_argument, NULL, 'o'},
	{"force", no_argument, NULL, OPT_FORCE},
	{"resume", no_argument, NULL, OPT_RESUME},
	{"backend", required_argument, NULL, OPT_BACKEND},
	{"device", required_argument, NULL, OPT_DEVICE},
	{"filter", required_argument, NULL, OPT_FILTER},
	{"checks", required_argument, NULL, OPT_CHECKS},
	{"set", required_argument, NULL, OPT_SET},
	{"processes", required_argument, NULL, OPT_PROCESSES},
	{"shard", required_argument, NULL, OPT_SHARD},
	{"plugin", required_argument, NULL, OPT_PLUGIN},
	{"rerun-failed", required_argument, NULL, OPT_RERUN_FAILED},
	{"no-fork", no_argument, NULL, OPT_NO_FORK},
	{"arm", required_argument, NULL, OPT_ARM},
	{"launches", required_argument, NULL, OPT_LAUNCHES},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"advisory", no_argument, NULL, OPT_ADVISORY},
	{"require-run", no_argument, NULL, OPT_REQUIRE_RUN},
	{"no-wait", no_argument, NULL, OPT_NO_WAIT},
	{"census", required_argument, NULL, OPT_CENSUS},
	{"rates", required_argument, NULL, OPT_RATES},
	{"tau-store", required_argument, NULL, OPT_TAU_STORE},
	{"verbose", no_argument, NULL, 'v'},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

bool run_usage_error(const char *what, const char *hint)
{
	fprintf(stderr, "assay run: %s\nhint: %s\n", what, hint);
	return false;
}

static bool whole_number(const char *option, const char *text, int lo, int hi, int *out)
{
	char what[160];
	if (cmd_whole_number(text, lo, hi, out))
		return true;
	snprintf(what, sizeof what, "%s: \"%.40s\" is not a whole number from %d to %d", option, text, lo, hi);
	return run_usage_error(what, "write digits alone");
}

static bool parse_checks(const char *text, uint32_t *out)
{
	static const char *const names[N_CHECKS] = {"identity",  "repeat",     "invariant",
						    "reference", "regression", "ratio"};
	while (*text) {
		size_t n = strcspn(text, ",");
		int k = 0;
		while (k < N_CHECKS && (strlen(names[k]) != n || strncmp(names[k], text, n) != 0))
			k++;
		if (k == N_CHECKS) {
			char what[120], word[40], hint[160];
			snprintf(word, sizeof word, "%.*s", (int)(n < 39 ? n : 39), text);
			snprintf(what, sizeof what, "--checks: unknown check '%s'", word);
			const char *near = diag_nearest(word, names, N_CHECKS);
			if (near)
				snprintf(hint, sizeof hint, "did you mean %s?", near);
			else
				snprintf(hint, sizeof hint,
					 "the checks are identity, repeat, invariant, reference, regression, ratio");
			return run_usage_error(what, hint);
		}
		*out |= 1u << k;
		text += n + (text[n] == ',');
	}
	return *out != 0 ||
	       run_usage_error("--checks: no check is named", "name some, as in --checks identity,reference");
}

static bool append(const char **list, int *n, const char *option, const char *value)
{
	char what[80];
	if (*n < RUN_MAX_ITEMS - 1) {
		list[(*n)++] = value;
		list[*n] = NULL;
		return true;
	}
	snprintf(what, sizeof what, "%s is given more than %d times", option, RUN_MAX_ITEMS - 1);
	return run_usage_error(what, "put it into the suite");
}

/* One option. False: a message is printed. */
static bool take_option(struct run_options *o, int got)
{
	struct err err;
	switch (got) {
	case 'o': o->out = optarg; return true;
	case OPT_FORCE: return o->force = true;
	case OPT_RESUME: return o->resume = true;
	case OPT_BACKEND: o->backend = optarg; return true;
	case OPT_DEVICE: o->device = optarg; return true;
	case OPT_FILTER: return append(o->filter, &o->n_filters, "--filter", optarg);
	case OPT_CHECKS: return parse_checks(optarg, &o->checks);
	case OPT_SET:
		if (o->n_set == RUN_MAX_ITEMS)
			return run_usage_error("--set is given more than 256 times", "put it into the suite");
		o->set[o->n_set++].text = optarg;
		return true;
	case OPT_PROCESSES: return whole_number("--processes", optarg, 1, 64, &o->processes);
	case OPT_SHARD:
		o->shard = optarg;
		if (run_shard_parse(optarg, &o->shard_i, &o->shard_n, o->shard_words, sizeof o->shard_words, &err))
			return true;
		return run_usage_error(err.text, "shards count from 1: --shard 1/4 .. --shard 4/4");
	case OPT_PLUGIN: return append(o->plugin, &o->n_plugins, "--plugin", optarg);
	case OPT_RERUN_FAILED: o->rerun_failed = optarg; return true;
	case OPT_NO_FORK: return o->no_fork = true;
	case OPT_ARM: o->arm = optarg; return true;
	case OPT_LAUNCHES: return whole_number("--launches", optarg, 1, 1000000, &o->launches);
	case OPT_STRICT: return o->strict = true;
	case OPT_ADVISORY: return o->advisory = true;
	case OPT_REQUIRE_RUN: return o->require_run = true;
	case OPT_NO_WAIT: return o->no_wait = true;
	case OPT_CENSUS: o->census = optarg; return true;
	case OPT_RATES: o->rates = optarg; return true;
	case OPT_TAU_STORE: o->tau_store = optarg; return true;
	case 'v': return o->verbose = true;
	case 'q': return o->quiet = true;
	}
	return false;
}

static bool check_options(const struct run_options *o)
{
	if (o->n_files == 0)
		return run_usage_error("no suite is named", "assay run suites/smoke.yaml");
	if (o->out && !*o->out)
		return run_usage_error("-o has an empty name", "-o FILE, -o FOLDER/, or - for standard output");
	if (o->force && o->resume)
		return run_usage_error("--force and --resume exclude each other",
				       "--force replaces the file, --resume goes on with it");
	if (o->resume && (!o->out || strcmp(o->out, "-") == 0))
		return run_usage_error("--resume needs to know the file", "name it with -o FILE");
	if (o->arm && !o->no_fork)
		return run_usage_error("--arm needs --no-fork",
				       "--no-fork --arm NAME --launches N runs nothing but that arm");
	if (o->launches && !o->arm)
		return run_usage_error("--launches needs --arm",
				       "--no-fork --arm NAME --launches N runs nothing but that arm");
	if (o->no_fork && o->resume)
		return run_usage_error("--no-fork and --resume exclude each other",
				       "run the cell into a file of its own");
	if (o->no_fork && o->processes > 1)
		return run_usage_error("--no-fork and --processes exclude each other",
				       "one cell in this process, or several processes");
	return true;
}

bool run_options_suites(struct run_options *o, struct arena *a)
{
	struct diags *d = diags_create();
	bool ok = true;
	for (int i = 0; i < o->n_files; i++)
		ok = suite_uses_add(a, o->file[i], d, &o->suites) && ok;
	diags_print(d, stderr, cmd_colour(stderr));
	diags_destroy(d);
	if (!ok)
		return false;
	if (o->suites.n > 1 && o->no_fork)
		return run_usage_error("--no-fork runs one cell of one suite",
				       "name one suite, and the cell with --filter");
	for (int i = 0; i < o->n_files; i++)
		if (cmd_same_file(o->out, o->file[i]))
			return run_usage_error("-o names the suite itself", "name another file for the records");
	if (o->suites.n > 1 && o->out) {
		size_t n = strlen(o->out);
		struct stat st;
		if ((n == 0 || o->out[n - 1] != '/') && !(stat(o->out, &st) == 0 && S_ISDIR(st.st_mode)))
			return run_usage_error("several suites do not fit one verdict file",
					       "-o FOLDER/ takes a file of each; or run them one by one");
	}
	return true;
}

/* Settings that other tools have options for. True: said so. */
static bool is_setting(const char *word)
{
	static const struct {
		const char *option, *path;
	} settings[] = {{"--rounds", "timing.rounds=9"},
			{"--max-rounds", "timing.max_rounds=32"},
			{"--min-rounds", "timing.min_rounds=16"},
			{"--warmup", "timing.warmup.launches=3"},
			{"--seed", "seed=7"},
			{"--threads", "timing.threads=4"},
			{"--timeout", "timing.timeout=30s"},
			{"--scrub", "timing.scrub=none"},
			{"--estimator", "timing.estimator=mean"}};
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		const size_t n = strlen(settings[i].option);
		if (strncmp(word, settings[i].option, n) != 0 || (word[n] && word[n] != '='))
			continue;
		fprintf(stderr, "assay run: unknown option %s\nhint: it is a setting of the suite: --set %s\n",
			settings[i].option, settings[i].path);
		return true;
	}
	return false;
}

bool run_options_parse(int argc, char **argv, struct run_options *o, bool *help)
{
	int got;
	o->command = shell_command(argc, argv);
	opterr = 0;
	while ((got = getopt_long(argc, argv, ":o:vqh", long_options, NULL)) != -1) {
		if (got == 'h') {
			*help = true;
			return false;
		}
		if (got == '?' || got == ':') {
			if (got == ':' || !is_setting(argv[optind - 1]))
				cmd_refuse("run", got, argv, long_options);
			return false;
		}
		if (!take_option(o, got))
			return false;
	}
	o->file = argv + optind;
	o->n_files = argc - optind;
	return check_options(o);
}
