/* assay explain: every value of one cell, who set it and where, and the command that runs it alone. */
#include "cmd.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explain_cell.h"
#include "plan.h"
#include "record.h"
#include "registry.h"
#include "suite.h"
#include "target.h"
#include "trial.h"
#include "verdict.h"

extern const struct cmd cmd_explain;

enum { MAX_ITEMS = 64 };

struct options {
	const char *suite, *cell, *backend, *device;
	struct suite_override set[MAX_ITEMS];
	const char *plugin[MAX_ITEMS];
	int n_set, n_plugins;
	bool json;
};

/* ---- the command again -------------------------------------------------------------------------------------------- */

/* As a run would put it into the cell's record. Owned by the caller. */
static char *rerun_text(const struct cell *c)
{
	json_t *record = record_cell_begin(c);
	const char *rerun = json_string_value(json_object_get(record, "rerun"));
	char *text = strdup(rerun ? rerun : "-");
	if (!text)
		abort();
	json_decref(record);
	return text;
}

/* ---- which cell ---------------------------------------------------------------------------------------------------- */

/* More than one matched: the first few are named. */
static bool say_several(const struct plan *p, const char *text, struct arena *a, struct err *err)
{
	char list[500] = "";
	int64_t n = plan_count(p);
	for (int64_t i = 0; i < n && i < 4; i++) {
		struct cell c;
		size_t used = strlen(list);
		if (!plan_cell(p, i, a, &c, err))
			return false;
		snprintf(list + used, sizeof list - used, "\n  %s", c.id);
	}
	return err_set(err, "'%s' matches %" PRId64 " cells, one is wanted; add keys, or give an id:%s%s", text, n,
		       list, n > 4 ? "\n  ..." : "");
}

static struct plan *plan_of_one(const struct options *o, const struct suite *s, const struct registry *r,
				const struct target *t, struct arena *a, struct diags *d, struct err *err)
{
	struct selector sel;
	struct plan_filter f = {.filter = &sel, .n_filters = 0};
	struct plan *p = plan_build(s, r, &t->plan, &f, d, err);
	if (!p)
		return NULL;
	/* An id, with or without the suite's name. */
	const char *full = arena_printf(a, "%s/%s", s->name, o->cell);
	const char *ids[2] = {plan_find(p, o->cell) >= 0 ? o->cell : plan_find(p, full) >= 0 ? full : NULL, NULL};
	plan_destroy(p);
	if (ids[0]) {
		f.only_ids = ids;
		return plan_build(s, r, &t->plan, &f, d, err);
	}
	if (!selector_parse(a, o->cell, &sel, err)) {
		if (strchr(o->cell, '/'))
			err_set(err, "no cell '%s' in this plan; `assay list %s` names them all", o->cell, o->suite);
		else
			err_prefix(err, "'%s' is no cell's id, and as a selector", o->cell);
		return NULL;
	}
	f.n_filters = 1;
	p = plan_build(s, r, &t->plan, &f, d, err);
	if (p && plan_count(p) != 1) {
		say_several(p, o->cell, a, err);
		plan_destroy(p);
		return NULL;
	}
	return p;
}

static int explain(const struct options *o, const struct registry *r)
{
	struct diags *d = diags_create();
	struct arena *a = arena_create();
	struct suite_options so = {.registry = r,
				   .set = o->set,
				   .n_set = o->n_set,
				   .plugin = o->plugin,
				   .n_plugins = o->n_plugins,
				   .backend = o->backend,
				   .device = o->device};
	struct err err = {""};
	struct target target;
	struct cell c;
	struct suite *s = NULL;
	struct plan *p = NULL;
	bool ok = target_plan(&target, o->backend, o->device, &err);
	if (ok) {
		s = suite_load(o->suite, &so, d);
		p = s ? plan_of_one(o, s, r, &target, a, d, &err) : NULL;
		ok = p && plan_cell(p, 0, a, &c, &err);
	}
	diags_print(d, stderr, cmd_colour(stderr));
	if (ok) {
		char *rerun = rerun_text(&c), *line = NULL;
		if (o->json) {
			json_t *j = explain_json(p, r, &target, &c, rerun);
			line = verdict_line(j);
			puts(line ? line : "null");
			json_decref(j);
		} else {
			explain_cell(p, r, &target, &c);
			printf("\nrerun  %s\n", rerun);
		}
		free(line);
		free(rerun);
	} else if (!diags_errors(d)) {
		fprintf(stderr, "assay explain: %s\n", err.text);
	}
	plan_destroy(p);
	suite_destroy(s);
	arena_destroy(a);
	diags_destroy(d);
	return ok ? EXIT_PASS : EXIT_USAGE;
}

struct task {
	const struct options *o;
	const struct registry *r;
	int status;
};

static bool explain_task(void *ctx, struct err *err)
{
	struct task *t = ctx;
	(void)err;
	t->status = explain(t->o, t->r);
	return true;
}

static int run(int argc, char **argv)
{
	enum { OPT_BACKEND = 256, OPT_DEVICE, OPT_PLUGIN, OPT_SET, OPT_JSON };
	static const struct option long_options[] = {
		{"backend", required_argument, NULL, OPT_BACKEND},
		{"device", required_argument, NULL, OPT_DEVICE},
		{"plugin", required_argument, NULL, OPT_PLUGIN},
		{"set", required_argument, NULL, OPT_SET},
		{"json", no_argument, NULL, OPT_JSON},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct options o = {.suite = NULL};
	struct registry *r = registry_create();
	struct err err = {"too many plugins"};
	int got, status = EXIT_USAGE;
	opterr = 0;
	while ((got = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (got) {
		case OPT_BACKEND: o.backend = optarg; continue;
		case OPT_DEVICE: o.device = optarg; continue;
		case OPT_JSON: o.json = true; continue;
		case OPT_SET:
			if (o.n_set < MAX_ITEMS) {
				o.set[o.n_set++].text = optarg;
				continue;
			}
			fprintf(stderr,
				"assay explain: --set is given more than %d times\nhint: put it into the suite\n",
				MAX_ITEMS);
			goto out;
		case OPT_PLUGIN:
			if (o.n_plugins < MAX_ITEMS && trial_plugin(r, optarg, &err)) {
				o.plugin[o.n_plugins++] = optarg;
				continue;
			}
			fprintf(stderr, "assay explain: %s\n", err.text);
			goto out;
		case 'h':
			printf("usage: assay %s\n\n%s", cmd_explain.usage, cmd_explain.help);
			status = EXIT_PASS;
			goto out;
		default: cmd_refuse("explain", got, argv, long_options); goto out;
		}
	}
	if (argc - optind != 2) {
		fprintf(stderr, "assay explain: a SUITE and a CELL are wanted\nhint: assay explain suites/smoke.yaml "
				"'kernel=mla.absorb_q "
				"t_q=1 kv=2048'\n");
		goto out;
	}
	o.suite = argv[optind];
	o.cell = argv[optind + 1];
	struct task task = {&o, r, EXIT_USAGE};
	if (!trial_hooks(explain_task, &task, o.plugin, o.n_plugins, &err)) {
		fprintf(stderr, "assay explain: %s\n", err.text);
		goto out;
	}
	explain_task(&task, &err);
	status = task.status;
out:
	registry_destroy(r);
	return status;
}

const struct cmd cmd_explain = {
	.name = "explain",
	.usage = "explain SUITE CELL [options]",
	.summary = "every value of one cell, the line that set it, and the command that runs it alone",
	.help = "CELL is an id, or a selector that matches one cell: 'kernel=mla.absorb_q t_q=1 kv=2048'.\n"
		"      --json            one object, as `assay schema explain` describes it\n"
		"      --backend NAME    host or cuda: rigs and tables are chosen by the device; none is opened\n"
		"      --device D        index, UUID or name; where no GPU is, the name of one elsewhere\n"
		"      --set PATH=VALUE  change the suite, as for run\n"
		"      --plugin PATH     kernels of a shared object, too\n",
	.run = run,
};
