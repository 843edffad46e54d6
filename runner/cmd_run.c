#define _GNU_SOURCE /* asprintf */
/* assay run: options, the suites and their plans, then run_plan for each. Everything is loaded and checked before anything runs. */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd_run_options.h"
#include "run.h"
#include "text.h"
#include "text_progress.h"
#include "trial.h"

extern const struct cmd cmd_run;

/* A suite with its plan, ready to run. */
struct item {
	struct suite *suite;
	struct plan *plan; /* NULL: nothing to rerun */
	const struct suite_use *use;
	char *out;
	const char *const *filter; /* of the command line and of the use, NULL-terminated */
	const char **only_ids;
	struct verdict_file failed; /* of --rerun-failed */
};

/* ---- suites and plans ---------------------------------------------------------------------------------------------- */

/* cuda where this build has it and a device is there; else host. What was chosen stands in the first line of the output. */
static const char *default_backend(const char *device)
{
	struct device_peek peek;
	for (const char *const *name = backend_names(); *name; name++)
		if (strcmp(*name, "cuda") == 0 &&
		    backend_peek("cuda", &(struct backend_config){.device = device}, &peek, NULL))
			return "cuda";
	return "host";
}

static bool is_known(const char *backend)
{
	const char *list[16];
	int n = 0;
	for (const char *const *name = backend_names(); *name && n < 16; name++)
		list[n++] = *name;
	for (int i = 0; i < n; i++)
		if (strcmp(list[i], backend) == 0)
			return true;
	char what[160], hint[200] = "this build has ";
	snprintf(what, sizeof what, "--backend %.60s: this build has no such backend", backend);
	for (int i = 0; i < n; i++)
		snprintf(hint + strlen(hint), sizeof hint - strlen(hint), "%s%s", i ? ", " : "", list[i]);
	return run_usage_error(what, hint);
}

/* Ids of the cells of this suite that failed or were undecided in FILE. */
static bool failed_ids(const struct run_options *o, struct item *it)
{
	struct err err;
	if (!verdict_load(o->rerun_failed, &it->failed, &err)) {
		fprintf(stderr, "assay run: --rerun-failed: %s\n", err.text);
		return false;
	}
	it->only_ids = calloc(it->failed.n_cells + 1, sizeof *it->only_ids);
	if (!it->only_ids)
		abort();
	size_t n = 0;
	for (size_t i = 0; i < it->failed.n_cells; i++) {
		const json_t *c = it->failed.cell[i];
		enum cell_status st = status_of(json_string_value(json_object_get(c, "status")));
		const char *suite = json_string_value(json_object_get(c, "suite"));
		if (st != ST_PASS && st != ST_SKIP && st != ST_XFAIL && suite && strcmp(suite, it->suite->name) == 0)
			it->only_ids[n++] = json_string_value(json_object_get(c, "id"));
	}
	return true;
}

/* Those of the command line, and those of the file that names the suite. */
static bool parse_filters(const struct run_options *o, struct arena *a, struct item *it, struct plan_filter *f)
{
	const char *const *text;
	struct err err;
	int n = suite_use_filters(a, it->use, o->filter, o->n_filters, &text);
	struct selector *s = arena_array(a, (size_t)n, sizeof *s);
	for (int i = 0; i < n; i++)
		if (!selector_parse(a, text[i], &s[i], &err)) {
			fprintf(stderr, "assay run: --filter '%s': %s\n", text[i], err.text);
			return false;
		}
	f->filter = s;
	f->n_filters = n;
	it->filter = text;
	return true;
}

/* Loads a suite and makes its plan. False: messages are printed. */
static bool prepare(const struct run_options *o, const struct registry *reg, const struct plan_target *target,
		    const struct plan_filter *filter, struct arena *a, struct item *it)
{
	const char *path = it->use->path;
	struct diags *d = diags_create();
	struct err err = {{0}};
	const struct suite_options so = {.registry = reg,
					 .set = o->set,
					 .n_set = o->n_set,
					 .plugin = o->plugin,
					 .n_plugins = o->n_plugins,
					 .backend = o->backend,
					 .device = o->device};
	const bool colour = cmd_colour(stderr);
	bool ok = false;
	it->suite = suite_load(path, &so, d);
	if (!it->suite)
		goto out;
	struct plan_filter f = *filter;
	if (!parse_filters(o, a, it, &f))
		goto out;
	f.say_unused = o->n_set == 0;
	if (o->rerun_failed) {
		if (!failed_ids(o, it))
			goto out;
		if (!it->only_ids[0]) {
			fprintf(stderr, "assay run: nothing to rerun: no cell of %s failed or was undecided in %s\n",
				it->suite->name, o->rerun_failed);
			ok = true;
			goto out;
		}
		f.only_ids = it->only_ids;
	}
	it->plan = plan_build(it->suite, reg, target, &f, d, &err);
	ok = it->plan != NULL;
	if (!ok && diags_errors(d) == 0)
		fprintf(stderr, "assay run: %s: %s\n", path, err.text);
out:
	if (diags_errors(d) + diags_warnings(d) > 0)
		diags_print(d, stderr, colour);
	diags_destroy(d);
	return ok;
}

static void item_free(struct item *it)
{
	plan_destroy(it->plan);
	suite_destroy(it->suite);
	verdict_unload(&it->failed);
	free(it->out);
	free((void *)it->only_ids);
}

/* SUITE-TIME.jsonl here, or a file of the suite's name in the folder that was named. */
static char *output_path(const struct run_options *o, const struct suite *s)
{
	char *path = NULL, now[32];
	struct stat st;
	time_t t = time(NULL);
	struct tm tm;
	size_t n = o->out ? strlen(o->out) : 0;
	int rc;
	strftime(now, sizeof now, "%Y%m%dT%H%M%S", localtime_r(&t, &tm));
	if (!o->out)
		rc = asprintf(&path, "%s-%s.jsonl", s->name, now);
	else if (n > 0 && (o->out[n - 1] == '/' || (stat(o->out, &st) == 0 && S_ISDIR(st.st_mode))))
		rc = asprintf(&path, "%s%s%s.jsonl", o->out, o->out[n - 1] == '/' ? "" : "/", s->name);
	else
		rc = asprintf(&path, "%s", o->out);
	if (rc < 0)
		abort();
	return path;
}

/* Whether the records would replace what the run is made of. */
static bool is_input(const struct run_options *o, const struct item *it)
{
	const char *const named[] = {o->rerun_failed, o->census, o->rates, o->tau_store};
	for (size_t i = 0; i < sizeof named / sizeof *named; i++)
		if (cmd_same_file(it->out, named[i]))
			return true;
	for (int i = 0; i < it->suite->n_files; i++) /* itself, includes and tables */
		if (cmd_same_file(it->out, it->suite->file[i].path))
			return true;
	return false;
}

/* Two suites of one name would write one file, and a file that is there would stop the run in its middle: said before anything is run. */
static bool outputs_fit(const struct run_options *o, struct item *item)
{
	for (int i = 0; i < o->suites.n; i++)
		item[i].out = item[i].plan && (o->out || !o->no_fork) ? output_path(o, item[i].suite) : NULL;
	for (int i = 0; i < o->suites.n; i++)
		for (int k = 0; k < i; k++)
			if (item[k].out && item[i].out && strcmp(item[k].out, item[i].out) == 0) {
				fprintf(stderr,
					"assay run: %s and %s are both called %s; their records would be one "
					"file\nhint: run "
					"them one by one\n",
					item[k].use->path, item[i].use->path, item[i].suite->name);
				return false;
			}
	for (int i = 0; i < o->suites.n; i++)
		if (item[i].out && is_input(o, &item[i])) {
			fprintf(stderr,
				"assay run: -o names %s, which this run reads\nhint: name another file for the "
				"records\n",
				item[i].out);
			return false;
		}
	for (int i = 0; i < o->suites.n; i++) {
		if (item[i].out && !o->force && !o->resume && cmd_would_replace(item[i].out)) {
			fprintf(stderr, "assay run: %s exists\nhint: --force replaces it, %s-o names another file\n",
				item[i].out, o->no_fork ? "" : "--resume goes on with it, ");
			return false;
		}
		if (item[i].out && !o->out && !cmd_can_make("run", item[i].out))
			return false;
	}
	return true;
}

/* ---- running ------------------------------------------------------------------------------------------------------- */

struct text_options run_text_options(const struct run_options *o, const char *file)
{
	FILE *out = o->out && strcmp(o->out, "-") == 0 ? stderr : stdout;
	return (struct text_options){
		.out = out,
		.colour = cmd_colour(out),
		.verbose = o->verbose,
		.quiet = o->quiet,
		.advisory = o->advisory,
		.file = file,
	};
}

/* Precedence of exit statuses: 2, a signal, 1, 3, 4, 0. */
static int worse(int a, int b)
{
	static const int order[] = {EXIT_USAGE, EXIT_SIGINT,     EXIT_SIGTERM,     EXIT_SIGHUP,
				    EXIT_FAIL,  EXIT_INCOMPLETE, EXIT_NOTHING_RUN, EXIT_PASS};
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (a == order[i] || b == order[i])
			return order[i];
	return a;
}

static int run_item(const struct run_options *o, const struct run_job *base, const struct item *it)
{
	struct run_job job = *base;
	struct err err = {{0}};
	int status = EXIT_USAGE;
	job.suite = it->suite;
	job.plan = it->plan;
	job.filter = it->filter;
	job.out = it->out;
	if (o->no_fork)
		return run_in_this_process(o, &job);
	if (!o->processes && it->use->processes)
		job.processes = it->use->processes;
	const struct text_options to = run_text_options(o, strcmp(it->out, "-") == 0 ? NULL : it->out);
	struct run_screen *screen = run_screen_create(&to, o->quiet);
	job.events = run_screen_events(screen);
	bool ok = run_plan(&job, &status, &err);
	run_screen_finish(screen);
	if (!ok)
		fprintf(stderr, "assay run: %s\n", err.text);
	return status;
}

/* Plugins, filters and the files of counts: what is wrong with the command line itself. */
static bool load_named(const struct run_options *o, struct registry *reg, struct arena *a, json_t **census,
		       json_t **rates)
{
	struct err err = {{0}};
	for (int i = 0; i < o->n_plugins; i++)
		if (!trial_plugin(reg, o->plugin[i], &err)) {
			fprintf(stderr, "assay run: %s\n", err.text);
			return false;
		}
	for (int i = 0; i < o->n_filters; i++) {
		struct selector unused;
		if (!selector_parse(a, o->filter[i], &unused, &err)) {
			fprintf(stderr, "assay run: --filter '%s': %s\n", o->filter[i], err.text);
			return false;
		}
	}
	if ((o->census && !(*census = census_file_load(o->census, &err))) ||
	    (o->rates && !(*rates = rates_file_load(o->rates, &err)))) {
		fprintf(stderr, "assay run: %s\n", err.text);
		return false;
	}
	return true;
}

/* All suites of a command line with their plans. */
struct planning {
	const struct run_options *o;
	const struct registry *reg;
	const char *backend;
	const struct device_peek *peek;
	struct arena *a;
	struct item *item;
	bool ok;
};

static bool prepare_all(void *ctx, struct err *err)
{
	struct planning *p = ctx;
	const struct run_options *o = p->o;
	char host[256] = "";
	(void)err;
	(void)!gethostname(host, sizeof host - 1);
	const struct plan_target target = {
		.backend = strcmp(p->backend, "cuda") == 0 ? ASSAY_CUDA : ASSAY_HOST,
		.device = p->peek->name,
		.host = host,
		.cc = p->peek->cc,
	};
	const struct plan_filter filter = {.checks = o->checks, .shard_i = o->shard_i, .shard_n = o->shard_n};
	for (int i = 0; i < o->suites.n; i++) {
		const struct suite_use *use = p->item[i].use = &o->suites.use[i];
		if (use->backend && strcmp(use->backend, p->backend) != 0)
			fprintf(stderr, "assay run: %s is for %s alone: passed over\n", use->path, use->backend);
		else
			p->ok = prepare(o, p->reg, &target, &filter, p->a, &p->item[i]) && p->ok;
	}
	return true;
}

/* Everything between the options and the exit status. */
static int run_suites(struct run_options *o)
{
	struct registry *reg = registry_create();
	struct err err = {{0}};
	struct device_peek peek;
	struct arena *a = arena_create();
	struct item *item = NULL;
	int status = EXIT_USAGE;
	struct census_files controls = {.census_path = o->census, .rates_path = o->rates};
	json_t *census = NULL, *rates = NULL;
	if (!run_options_suites(o, a) || !load_named(o, reg, a, &census, &rates))
		goto out;
	item = calloc((size_t)o->suites.n, sizeof *item);
	if (!item)
		abort();
	controls.census = census;
	controls.rates = rates;
	const char *backend = o->backend ? o->backend : default_backend(o->device);
	if (!is_known(backend))
		goto out;
	struct planning planning = {o, reg, backend, &peek, a, item, true};
	if (!backend_peek(backend, &(struct backend_config){.device = o->device}, &peek, &err) ||
	    !trial_hooks(prepare_all, &planning, o->plugin, o->n_plugins, &err)) {
		fprintf(stderr, "assay run: %s\n", err.text);
		goto out;
	}
	prepare_all(&planning, &err);
	if (!planning.ok || !outputs_fit(o, item))
		goto out;
	if (o->shard && strcmp(o->shard, "auto") == 0)
		fprintf(stderr, "assay run: %s\n", o->shard_words);
	const struct run_job base = {
		.registry = reg,
		.backend = backend,
		.device = o->device,
		.peek = &peek,
		.plugins = o->plugin,
		.how = o->force    ? VERDICT_FORCE
		       : o->resume ? VERDICT_RESUME
				   : VERDICT_NEW,
		.can_resume = true,
		.processes = o->processes ? o->processes : 1,
		.shard_i = o->shard_i,
		.shard_n = o->shard_n,
		.no_wait = o->no_wait,
		.strict = o->strict,
		.require_run = o->require_run,
		.tau_store = o->tau_store,
		.command = o->command,
		.controls = &controls,
		.interrupted = cmd_catch_signals(),
	};
	status = EXIT_PASS;
	for (int i = 0; i < o->suites.n && !*base.interrupted; i++) {
		int one = o->require_run ? EXIT_NOTHING_RUN : EXIT_PASS;
		if (item[i].plan)
			one = run_item(o, &base, &item[i]);
		status = worse(status, one);
	}
out:
	for (int i = 0; item && i < o->suites.n; i++)
		item_free(&item[i]);
	free(item);
	json_decref(census);
	json_decref(rates);
	arena_destroy(a);
	registry_destroy(reg);
	return status;
}

static int run(int argc, char **argv)
{
	struct run_options o = {.processes = 0};
	bool help = false;
	int status = EXIT_USAGE;
	if (run_options_parse(argc, argv, &o, &help)) {
		status = run_suites(&o);
		/* Advice is no gate; a mistake of usage and an interruption are still what they are. */
		if (o.advisory && (status == EXIT_FAIL || status == EXIT_INCOMPLETE || status == EXIT_NOTHING_RUN)) {
			fprintf(stderr, "assay run: --advisory: exit 0; it would have been %d\n", status);
			status = EXIT_PASS;
		}
	} else if (help) {
		printf("usage: assay %s\n\n%s", cmd_run.usage, cmd_run.help);
		status = EXIT_PASS;
	}
	free(o.command);
	return status;
}

const struct cmd cmd_run = {
	.name = "run",
	.usage = "run SUITE... [options]",
	.summary = "run suites and write a verdict for every cell",
	.help = "SUITE is a suite, or a file that names suites (suites/nightly.yaml): each is run as itself, into a\n"
		"file of its name.\n"
		"\n"
		"  -o, --output FILE|-|FOLDER/  records into FILE; - for stdout (the text then goes to stderr);\n"
		"                        else into SUITE-TIME.jsonl here\n"
		"      --force           replace FILE where it exists\n"
		"      --resume          go on with FILE: cells in error, time-out or undecided are done again\n"
		"      --backend NAME    host or cuda; cuda where the build has it and a device is there, else host\n"
		"      --device D        index, UUID or name\n"
		"      --filter SEL      only cells that match, as in 'kernel=mla.*,t_q=1..4'; may be repeated\n"
		"      --checks LIST     only these of identity,repeat,invariant,reference,regression,ratio\n"
		"      --set PATH=VALUE  change the suite: timing.rounds=9, or an axis: t_q=1,8; may be repeated\n"
		"      --processes K     time every cell in K fresh processes, for `assay diff`\n"
		"      --shard I/N|auto  this part of the plan, counted from 1; auto reads the launcher's variables\n"
		"      --census FILE     counts of machine code in place of a disassembler's, for ratio checks\n"
		"      --rates FILE      issue intervals of matrix instructions in place of measured ones\n"
		"      --plugin PATH     load kernels from a shared object; may be repeated\n"
		"      --rerun-failed FILE  only the cells that failed or were undecided in FILE\n"
		"      --no-fork         run one cell in this process, for debuggers, profilers and sanitizers\n"
		"      --arm NAME        with --no-fork: nothing but this arm\n"
		"      --launches N      of that arm (1)\n"
		"      --strict          any undecided gated cell makes the exit status 3, not only more than 10 %\n"
		"      --advisory        exit 0 where a gate failed or a run is incomplete, and say what it would\n"
		"                        have been\n"
		"      --require-run     exit 4 where every cell was skipped\n"
		"      --no-wait         fail where another run has the device, instead of waiting for it\n"
		"      --tau-store FILE  what processes differ by on each device; else $ASSAY_TAU_STORE, else\n"
		"                        assay/tau.json in the state folder\n"
		"  -v, --verbose         every cell\n"
		"  -q, --quiet           failures and the last line only\n",
	.run = run,
};
