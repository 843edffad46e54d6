#define _GNU_SOURCE /* asprintf */
/* assay selftest: runs suites/selftest.yaml, which the binary carries, as `assay run` would, and says what that proves. */
#include "cmd.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "monotonic.h"
#include "run.h"
#include "selftest.h"
#include "selftest_suite.h"
#include "suite_load.h"
#include "target.h"
#include "text_progress.h"

extern const struct cmd cmd_selftest;

/* Where the suite lies in a checkout, so that the rerun commands of its records work there. */
static const char suite_path[] = "suites/selftest.yaml";
/* Timed cells of a whole selftest are measured by so many processes: what these differ by is tau. */
enum { PROCESSES = 2, CLAIMS_MAX = 64 };

struct options {
	const char *out, *backend, *device, *tau_store;
	bool quick, force, no_wait;
	char *command;
};

struct session {
	const struct options *o;
	struct selftest *claims;
	struct run_screen *screen;
	struct run_events progress; /* of the screen */
	FILE *out;
	json_t *records; /* of the claims */
};

/* ---- what is printed ------------------------------------------------------------------------------------------------- */

enum { WIDTH = 100, NAME_AT = 9, TEXT_AT = 34 };

/* "caught   must-fail ulp            mismatch by identity: 1 of 64 …": a line each for what was caught, cut to the width (the record has the
 * rest); other texts are folded. */
static void print_claim(FILE *f, const struct claim *c)
{
	const char *text = c->text;
	if (c->state == CLAIM_HOLDS && strncmp(c->name, "must-", 5) == 0) {
		const int room = WIDTH - NAME_AT - 1 - (int)(strlen(c->name) < 25 ? 25 : strlen(c->name));
		const bool cut = (int)strlen(text) > room;
		fprintf(f, "%-*s%-25s %.*s%s\n", NAME_AT, selftest_word(c), c->name, cut ? room - 2 : room, text,
			cut ? ".." : "");
		fflush(f);
		return;
	}
	fprintf(f, "%-*s%-*s", NAME_AT, selftest_word(c), TEXT_AT - NAME_AT, c->name);
	if (strlen(c->name) >= (size_t)(TEXT_AT - NAME_AT))
		fprintf(f, "\n%*s", TEXT_AT, "");
	while (*text) {
		size_t n = strlen(text), room = WIDTH - TEXT_AT;
		if (n > room) {
			for (n = room; n > 0 && text[n] != ' '; n--)
				;
			n = n ? n : room;
		}
		fprintf(f, "%.*s\n", (int)n, text);
		text += n + (text[n] == ' ');
		if (*text)
			fprintf(f, "%*s", TEXT_AT, "");
	}
	fflush(f);
}

static void on_record(void *ctx, const json_t *record)
{
	struct session *s = ctx;
	struct claim c[SELFTEST_TAKE_MAX];
	const char *kind = json_string_value(json_object_get(record, "kind"));
	if (kind && strcmp(kind, "header") == 0) {
		const json_t *device = json_object_get(record, "device");
		const char *name = json_string_value(json_object_get(device, "name")),
			   *uuid = json_string_value(json_object_get(device, "uuid")),
			   *backend = json_string_value(json_object_get(record, "backend"));
		fprintf(s->out, "selftest  %s:%s %s  %lld cells%s\n", backend ? backend : "?", name ? name : "?",
			uuid ? uuid : "", (long long)json_integer_value(json_object_get(record, "cells")),
			s->o->quick ? "  quick: nothing is asserted of a timing" : "");
	}
	int n = selftest_take(s->claims, record, c);
	for (int i = 0; i < n; i++) {
		run_screen_wipe(s->screen);
		print_claim(s->out, &c[i]);
		json_array_append_new(s->records, selftest_record(&c[i]));
	}
}

static void on_say(void *ctx, const char *sentence)
{
	struct session *s = ctx;
	run_screen_wipe(s->screen);
	fprintf(stderr, "assay selftest: %s\n", sentence);
}

static void on_progress(void *ctx, const struct run_progress *p)
{
	struct session *s = ctx;
	s->progress.progress(s->progress.ctx, p);
}

static json_t *on_conclude(void *ctx, int *status)
{
	struct session *s = ctx;
	struct claim c[CLAIMS_MAX];
	int n = selftest_close(s->claims, c, CLAIMS_MAX);
	run_screen_wipe(s->screen);
	for (int i = 0; i < n; i++) {
		print_claim(s->out, &c[i]);
		json_array_append_new(s->records, selftest_record(&c[i]));
	}
	*status = selftest_status(s->claims);
	return json_incref(s->records);
}

/* The last line alone says how it ended. */
static void print_end(const struct session *s, int status, const char *device, const char *file, int64_t wall_ns)
{
	static const struct {
		enum claim_state state;
		const char *word;
	} words[] = {{CLAIM_BROKEN, "broken"},
		     {CLAIM_OPEN, "open"},
		     {CLAIM_HOLDS, "hold"},
		     {CLAIM_SKIPPED, "skipped"},
		     {CLAIM_TOLD, "told"}};
	fputs(status == EXIT_PASS   ? "PASS  selftest"
	      : status == EXIT_FAIL ? "FAIL  selftest"
				    : "INCOMPLETE  selftest",
	      s->out);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (selftest_count(s->claims, words[i].state) > 0)
			fprintf(s->out, "  %d %s", selftest_count(s->claims, words[i].state), words[i].word);
	fprintf(s->out, "  %.1f s  %s  exit %d%s%s\n", (double)wall_ns / 1e9, device, status, file ? "  -> " : "",
		file ? file : "");
}

/* ---- running --------------------------------------------------------------------------------------------------------- */

static int run_suite(const struct options *o, struct target *t, const struct registry *reg, const struct suite *suite,
		     const struct plan *plan, const char *path)
{
	static const char *const no_plugins[] = {NULL};
	struct session s = {.o = o, .claims = selftest_create(o->quick), .records = json_array()};
	struct err err = {{0}};
	int status = EXIT_USAGE;
	const bool to_stdout = strcmp(path, "-") == 0;
	if (!s.claims || !s.records)
		abort();
	s.out = to_stdout ? stderr : stdout;
	s.screen = run_screen_create(&(struct text_options){.out = s.out}, false);
	s.progress = run_screen_events(s.screen);
	const struct run_job job = {
		.suite = suite,
		.registry = reg,
		.plan = plan,
		.backend = t->backend,
		.device = o->device,
		.peek = &t->peek,
		.plugins = no_plugins,
		.out = path,
		.how = o->force ? VERDICT_FORCE : VERDICT_NEW,
		.processes = o->quick ? 1 : PROCESSES,
		.no_wait = o->no_wait,
		.tau_store = o->tau_store,
		.command = o->command,
		.events = {.record = on_record,
			   .say = on_say,
			   .progress = on_progress,
			   .conclude = on_conclude,
			   .ctx = &s},
		.interrupted = cmd_catch_signals(),
	};
	const int64_t begin = monotonic_ns();
	bool ok = run_plan(&job, &status, &err);
	run_screen_finish(s.screen);
	if (!ok)
		fprintf(stderr, "assay selftest: %s\n", err.text);
	else
		print_end(&s, status, t->peek.name, to_stdout ? NULL : path, monotonic_ns() - begin);
	json_decref(s.records);
	selftest_destroy(s.claims);
	return status;
}

static char *default_path(void)
{
	char now[32], *path;
	struct tm tm;
	time_t t = time(NULL);
	strftime(now, sizeof now, "%Y%m%dT%H%M%S", localtime_r(&t, &tm));
	if (asprintf(&path, "selftest-%s.jsonl", now) < 0)
		abort();
	return path;
}

/* Loads and plans the suite of this binary, and runs it. */
static int selftest(const struct options *o)
{
	/* A quick one has the same cases with two cells each. */
	static const struct suite_override few[] = {{"steps=20000,20100"}, {"t_q=1,8"}};
	struct registry *reg = registry_create();
	struct diags *d = diags_create();
	struct err err = {{0}};
	struct target t;
	struct suite *suite = NULL;
	struct plan *plan = NULL;
	int status = EXIT_USAGE;
	if (!target_init(&t, o->backend, o->device, &err)) {
		fprintf(stderr, "assay selftest: %s\n", err.text);
		goto out;
	}
	const struct suite_options so = {.registry = reg, .set = few, .n_set = o->quick ? 2 : 0};
	suite = suite_load_text(suite_path, (const char *)selftest_suite_text, sizeof selftest_suite_text, &so, d);
	if (suite)
		plan = plan_build(suite, reg, &t.plan, &(struct plan_filter){0}, d, &err);
	if (!plan) {
		fprintf(stderr, "assay selftest: the suite of this binary does not load: %s\n", err.text);
		diags_print(d, stderr, false);
		goto out;
	}
	char *path = o->out ? strdup(o->out) : default_path();
	if (!path)
		abort();
	if (o->out || cmd_can_make("selftest", path))
		status = run_suite(o, &t, reg, suite, plan, path);
	free(path);
out:
	plan_destroy(plan);
	suite_destroy(suite);
	diags_destroy(d);
	registry_destroy(reg);
	return status;
}

static int run(int argc, char **argv)
{
	enum { OPT_BACKEND = 256, OPT_DEVICE, OPT_QUICK, OPT_FORCE, OPT_NO_WAIT, OPT_TAU_STORE };
	static const struct option long_options[] = {
		{"output", required_argument, NULL, 'o'},
		{"backend", required_argument, NULL, OPT_BACKEND},
		{"device", required_argument, NULL, OPT_DEVICE},
		{"quick", no_argument, NULL, OPT_QUICK},
		{"force", no_argument, NULL, OPT_FORCE},
		{"no-wait", no_argument, NULL, OPT_NO_WAIT},
		{"tau-store", required_argument, NULL, OPT_TAU_STORE},
		{NULL, 0, NULL, 0},
	};
	struct options o = {.out = NULL};
	char command[1024] = "assay";
	opterr = 0;
	for (int i = 0; i < argc; i++)
		snprintf(command + strlen(command), sizeof command - strlen(command), " %s", argv[i]);
	o.command = command;
	for (int got; (got = getopt_long(argc, argv, ":o:", long_options, NULL)) != -1;) {
		switch (got) {
		case 'o': o.out = optarg; break;
		case OPT_BACKEND: o.backend = optarg; break;
		case OPT_DEVICE: o.device = optarg; break;
		case OPT_QUICK: o.quick = true; break;
		case OPT_FORCE: o.force = true; break;
		case OPT_NO_WAIT: o.no_wait = true; break;
		case OPT_TAU_STORE: o.tau_store = optarg; break;
		default: return cmd_refuse("selftest", got, argv, long_options);
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"assay selftest: '%s' is one word too many\nhint: it takes no suite; it carries its own\n",
			argv[optind]);
		return EXIT_USAGE;
	}
	return selftest(&o);
}

const struct cmd cmd_selftest = {
	.name = "selftest",
	.usage = "selftest [options]",
	.summary = "the harness proves itself here: A against A, planted slowdowns, arms that must fail",
	.help = "  -o, --output FILE|-   records into FILE; - for stdout; else into selftest-TIME.jsonl here\n"
		"      --force           replace FILE where it exists\n"
		"      --backend NAME    host or cuda; cuda where the build has it and a device is there, else host\n"
		"      --device D        index, UUID or name\n"
		"      --quick           few timed cells, and nothing asserted of a timing: for CI\n"
		"      --no-wait         fail where another run has the device, instead of waiting for it\n"
		"      --tau-store FILE  where what processes differ by is kept; else $ASSAY_TAU_STORE, else\n"
		"                        assay/tau.json in the state folder\n"
		"\n"
		"A claim a line: caught and holds are as they must be, BROKEN and ESCAPED are not; open could not be\n"
		"shown on this machine; told is a figure of which nothing is claimed; skipped does not exist on this\n"
		"backend. The record has the whole text of a line that ends in two points.\n"
		"\n"
		"Exit status: 0 every claim holds, 1 one is broken or something escaped, 3 this machine is too noisy\n"
		"to show one.\n",
	.run = run,
};
