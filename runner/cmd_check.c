/* assay check: every error of a suite, none of it run. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "plan.h"
#include "registry.h"
#include "suite.h"
#include "suite_list.h"
#include "target.h"
#include "trial.h"
#include "verdict.h"

/* How the suite is planned. */
struct how {
	const char *backend, *device; /* of --backend and --device; NULL: the run may be anywhere */
	bool set; /* --set is given: what fits no cell then may fit one without it */
	const struct selector *filter; /* of the file that names the suite, n_filters */
	int n_filters;
};

/* Cells, and the errors that only the plan can see, as `assay run` here would: and beside it every table that another device
 * would choose. -1: errors. */
static int64_t count_cells(const struct suite *s, const struct registry *r, const struct how *how, struct diags *d,
			   struct err *err)
{
	const struct plan_filter all = {.filter = how->filter,
					.n_filters = how->n_filters,
					.every_table = true,
					.elsewhere = !how->backend && !how->device,
					.say_unused = !how->set};
	struct target target;
	int64_t n = -1;
	if (!target_plan(&target, how->backend, how->device, err))
		return -1;
	struct plan *p = plan_build(s, r, &target.plan, &all, d, err);
	if (p)
		n = plan_count(p);
	plan_destroy(p);
	return n;
}

static int count_kernels(const struct suite *s)
{
	int n = 0;
	for (int c = 0; c < s->n_cases; c++)
		for (int k = 0; k < s->cases[c].n_kernels; k++) {
			bool seen = false;
			for (int b = 0; b < c && !seen; b++)
				for (int j = 0; j < s->cases[b].n_kernels; j++)
					seen |= !strcmp(s->cases[b].kernel[j], s->cases[c].kernel[k]);
			n += !seen;
		}
	return n;
}

/* The outer levels on lines of their own, the rest compact. */
static void print_json(json_t *j, int depth, FILE *f)
{
	bool list = json_is_array(j), open = (list || json_is_object(j)) && depth < 4;
	if (!open || !(list ? json_array_size(j) : json_object_size(j))) {
		char *line = verdict_line(j);
		fputs(line ? line : "null", f);
		free(line);
		return;
	}
	const char *sep = "\n", *key = NULL;
	json_t *v;
	size_t i;
	fputs(list ? "[" : "{", f);
	if (list)
		json_array_foreach(j, i, v)
		{
			fprintf(f, "%s%*s", sep, 2 * depth + 2, "");
			print_json(v, depth + 1, f);
			sep = ",\n";
		}
	else
		json_object_foreach(j, key, v)
		{
			fprintf(f, "%s%*s\"%s\": ", sep, 2 * depth + 2, "", key);
			print_json(v, depth + 1, f);
			sep = ",\n";
		}
	fprintf(f, "\n%*s%s", 2 * depth, "", list ? "]" : "}");
}

enum check_show { CHECK_TEXT, CHECK_JSON, CHECK_QUIET };

/* True where the suite has no error. */
static bool check_one(const char *path, const struct suite_options *opt, const struct how *how, enum check_show show)
{
	struct diags *d = diags_create();
	struct err err = {""};
	struct suite *s = suite_load(path, opt, d);
	int64_t cells = s ? count_cells(s, opt->registry, how, d, &err) : -1;
	bool good = s && cells >= 0 && !diags_errors(d);
	diags_print(d, stderr, cmd_colour(stderr));
	if (s && cells < 0 && !diags_errors(d))
		fprintf(stderr, "%s: error: %s\n", path, err.text);
	if (good && show == CHECK_JSON) {
		json_t *j = suite_to_json(s);
		print_json(j, 0, stdout);
		putchar('\n');
		json_decref(j);
	} else if (good && show == CHECK_TEXT) {
		int kernels = count_kernels(s);
		printf("%s: ok, %d case%s, %d kernel%s, %" PRId64 " cell%s\n", path, s->n_cases,
		       s->n_cases == 1 ? "" : "s", kernels, kernels == 1 ? "" : "s", cells, cells == 1 ? "" : "s");
	}
	suite_destroy(s);
	diags_destroy(d);
	return good;
}

/* The same of a file that names suites: of each of them, and of their filters. */
static bool check_list(const char *path, const struct suite_uses *u, const struct suite_options *opt,
		       const struct how *how, bool json)
{
	bool good = true;
	struct arena *a = arena_create();
	for (int i = 0; i < u->n; i++) {
		if (how->backend && u->use[i].backend && strcmp(how->backend, u->use[i].backend) != 0) {
			fprintf(stderr, "assay check: %s is for %s alone: passed over\n", u->use[i].path,
				u->use[i].backend);
			continue;
		}
		struct how mine = *how;
		struct selector *filter = arena_array(a, (size_t)u->use[i].n_filters, sizeof *filter);
		mine.filter = filter;
		for (int k = 0; k < u->use[i].n_filters; k++) {
			struct err err;
			if (selector_parse(a, u->use[i].filter[k], &filter[mine.n_filters], &err)) {
				mine.n_filters++;
				continue;
			}
			fprintf(stderr, "%s: error: filter '%s' of %s: %s\n", path, u->use[i].filter[k], u->use[i].path,
				err.text);
			good = false;
		}
		good = check_one(u->use[i].path, opt, &mine, CHECK_QUIET) && good;
	}
	if (good && json) {
		json_t *j = suite_uses_json(u);
		print_json(j, 0, stdout);
		putchar('\n');
		json_decref(j);
	} else if (good) {
		printf("%s: ok, %d suite%s\n", path, u->n, u->n == 1 ? "" : "s");
	}
	arena_destroy(a);
	return good;
}

static bool check_file(const char *path, const struct suite_options *opt, const struct how *how, bool json)
{
	struct diags *d = diags_create();
	struct arena *a = arena_create();
	struct suite_uses u = {0};
	bool good = suite_uses_add(a, path, d, &u);
	diags_print(d, stderr, cmd_colour(stderr));
	if (good)
		good = u.name ? check_list(path, &u, opt, how, json)
			      : check_one(path, opt, how, json ? CHECK_JSON : CHECK_TEXT);
	arena_destroy(a);
	diags_destroy(d);
	return good;
}

struct files {
	char **path;
	int n;
	const struct suite_options *opt;
	const struct how *how;
	bool json, good;
};

static bool check_files(void *ctx, struct err *err)
{
	struct files *f = ctx;
	(void)err;
	for (int i = 0; i < f->n; i++)
		f->good = check_file(f->path[i], f->opt, f->how, f->json) && f->good;
	return true;
}

static int run(int argc, char **argv)
{
	enum { OPT_JSON = 256, OPT_SET, OPT_PLUGIN, OPT_BACKEND, OPT_DEVICE };
	static const struct option options[] = {{"json", no_argument, NULL, OPT_JSON},
						{"set", required_argument, NULL, OPT_SET},
						{"plugin", required_argument, NULL, OPT_PLUGIN},
						{"backend", required_argument, NULL, OPT_BACKEND},
						{"device", required_argument, NULL, OPT_DEVICE},
						{NULL, 0, NULL, 0}};
	struct registry *registry = registry_create();
	struct suite_override *set = calloc((size_t)argc, sizeof *set);
	const char **plugin = calloc((size_t)argc, sizeof *plugin);
	int n_plugins = 0;
	struct suite_options opt = {.registry = registry, .set = set};
	struct err err;
	struct how how = {0};
	bool json = false;
	int status = EXIT_USAGE;
	opterr = 0;
	for (int c; set && plugin && (c = getopt_long(argc, argv, ":", options, NULL)) != -1;)
		switch (c) {
		case OPT_JSON: json = true; break;
		case OPT_SET:
			set[opt.n_set++].text = optarg;
			how.set = true;
			break;
		case OPT_BACKEND: how.backend = optarg; break;
		case OPT_DEVICE: how.device = optarg; break;
		case OPT_PLUGIN:
			if (!trial_plugin(registry, optarg, &err)) {
				fprintf(stderr, "assay check: %s\n", err.text);
				goto out;
			}
			plugin[n_plugins++] = optarg;
			break;
		default: cmd_refuse("check", c, argv, options); goto out;
		}
	if (optind == argc) {
		fputs("assay check: a SUITE is wanted\nhint: assay check suites/smoke.yaml\n", stderr);
		goto out;
	}
	struct files files = {argv + optind, argc - optind, &opt, &how, json, true};
	if (!trial_hooks(check_files, &files, plugin, n_plugins, &err)) {
		fprintf(stderr, "assay check: %s\n", err.text);
		goto out;
	}
	check_files(&files, &err);
	status = files.good ? EXIT_PASS : EXIT_USAGE;
out:
	free(plugin);
	free(set);
	registry_destroy(registry);
	return status;
}

const struct cmd cmd_check = {
	.name = "check",
	.usage = "check SUITE... [options]",
	.summary = "every error of a suite, none of it run",
	.help = "  --json             print the suite as understood: one file, all names and layers resolved\n"
		"  --set PATH=VALUE   as for run: timing.rounds=9, or a bare axis: t_q=1,8\n"
		"  --plugin PATH      kernels of a shared object, too\n"
		"  --backend NAME     plan for this backend here, as `assay run` with it would\n"
		"  --device D         likewise: index, UUID or name; where no GPU is, the name of one elsewhere\n"
		"\n"
		"Errors go to stderr, all of a suite at once, each with its place and a caret. Exit status 2 on any\n"
		"error.\n",
	.run = run,
};
