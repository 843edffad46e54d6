/* assay list: the kernels there are; with a suite, the cells that would be run. Opens no device. */
#include "cmd.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "list_kernels.h"
#include "plan.h"
#include "registry.h"
#include "suite.h"
#include "suite_list.h"
#include "target.h"
#include "trial.h"
#include "verdict.h"

extern const struct cmd cmd_list;

enum { MAX_ITEMS = 64 };

struct options {
	const char *suite, *backend, *device;
	const char *filter[MAX_ITEMS];
	struct suite_override set[MAX_ITEMS];
	const char *plugin[MAX_ITEMS];
	int n_filters, n_set, n_plugins;
	bool json, count;
};

/* ---- cells --------------------------------------------------------------------------------------------------------- */

static const char *kind_text(const struct cell *c, struct arena *a)
{
	if (c->skip)
		return arena_printf(a, "skipped: %s", c->skip);
	if (c->selection == SELECT_NONE)
		return "no regression check";
	return arena_printf(a, "serves %s%s", c->selected,
			    c->selection == SELECT_NOT_TIMED ? ", which is not timed" : "");
}

static json_t *cell_json(const struct cell *c)
{
	json_t *point = json_object(), *arms = json_array();
	for (int i = 0; i < c->n_axes; i++)
		json_object_set_new(point, c->axis[i].name,
				    c->axis[i].value.is_int ? json_integer(c->axis[i].value.i)
							    : json_real(c->axis[i].value.d));
	for (int i = 0; i < c->n_arms; i++)
		json_array_append_new(arms, json_pack("{s:s, s:s?}", "name", c->arm[i].name, "unsupported",
						      c->arm[i].unsupported));
	json_t *row =
		c->selected_row.file ? json_sprintf("%s:%d", c->selected_row.file, c->selected_row.line) : json_null();
	return json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:o, s:o, s:s?, s:o, s:b, s:s?, s:s?}", "kind", "planned",
			 "id", c->id, "plan_index", (json_int_t)c->plan_index, "case", c->case_id, "kernel",
			 c->kernel_name, "geometry", c->geometry, "data", c->data, "point", point, "arms", arms,
			 "selected", c->selection == SELECT_NONE ? NULL : c->selected, "selected_row", row, "gating",
			 c->gate, "waiver", c->waiver, "skip", c->skip);
}

static void print_line(json_t *j)
{
	char *line = verdict_line(j);
	if (line)
		puts(line);
	free(line);
	json_decref(j);
}

/* "shipped split=2,4,8": arms of one family together. */
static void print_arms(const struct cell *c)
{
	putchar(' ');
	const struct assay_arm *last = NULL;
	for (int i = 0; i < c->n_arms; i++) {
		const struct cell_arm *a = &c->arm[i];
		const char *eq = strchr(a->name, '=');
		if (a->desc == last && eq)
			printf(",%s", eq + 1);
		else
			printf(" %s", a->name);
		last = eq ? a->desc : NULL;
		if (a->unsupported)
			printf("(!)");
	}
}

/* Names that a kernel ignores, a line each: axes first, then what only its geometries have. */
struct ignored {
	const struct suite *suite;
	const char *kernel; /* of the line under way, or NULL */
};

static bool is_axis(const struct suite *s, const char *name)
{
	for (int c = 0; c < s->n_cases; c++)
		for (int x = 0; x < s->cases[c].n_axes; x++)
			if (strcmp(s->cases[c].axis[x].name, name) == 0)
				return true;
	return false;
}

static void print_ignored(void *ctx, const char *kernel, const char *name)
{
	struct ignored *g = ctx;
	if (!g->kernel || strcmp(g->kernel, kernel) != 0)
		printf("%s%s ignores", g->kernel ? "\n" : "", kernel);
	g->kernel = kernel;
	printf(" %s%s", name, is_axis(g->suite, name) ? " (swept all the same)" : "");
}

static void print_head(const struct plan *p, const struct target *t)
{
	const struct suite *s = plan_suite(p);
	int64_t points = 0, excluded = 0, n = plan_count(p);
	for (int i = 0; i < s->n_cases; i++) {
		points += plan_case_points(p, i);
		excluded += plan_case_excluded(p, i);
	}
	printf("%s  %" PRId64 " cell%s", s->name, n, n == 1 ? "" : "s");
	if (excluded)
		printf(", %" PRId64 " excluded", excluded);
	if (n != points - excluded)
		printf(", %" PRId64 " filtered out", points - excluded - n);
	printf("   %s %s%s\n", t->backend, t->peek.name, t->elsewhere ? ", which is not here" : "");
	for (int i = 0; i < s->n_cases; i++) {
		const struct suite_case *c = &s->cases[i];
		printf("case %s  %d kernel%s x %d geometr%s x %d data", c->id, c->n_kernels,
		       c->n_kernels == 1 ? "" : "s", c->n_geometries, c->n_geometries == 1 ? "y" : "ies", c->n_data);
		for (int x = 0; x < c->n_axes; x++)
			printf(" %c %s %d",
			       x && c->axis[x].zip_group >= 0 && c->axis[x].zip_group == c->axis[x - 1].zip_group ? '|'
														  : 'x',
			       c->axis[x].name, c->axis[x].n);
		printf(" = %" PRId64, plan_case_points(p, i));
		if (plan_case_excluded(p, i))
			printf(", %" PRId64 " excluded", plan_case_excluded(p, i));
		putchar('\n');
	}
	struct ignored g = {.suite = s};
	plan_ignored(p, print_ignored, &g);
	puts(g.kernel ? "\n" : "");
}

/* Names that every cell of the plan shares are left out of the lines: the id after "suite/". */
static bool print_cells(const struct plan *p, const struct target *t, bool json, struct err *err)
{
	enum { LOOKED_AT = 4096 }; /* ids that decide the width */
	const struct suite *s = plan_suite(p);
	if (!json)
		print_head(p, t);
	bool limited = false;
	int64_t n = plan_count(p);
	int width = 0;
	for (int64_t i = 0; !json && i < n && i < LOOKED_AT; i++) {
		struct arena *a = arena_create();
		struct cell c;
		int len = plan_cell(p, i, a, &c, err) ? (int)(strlen(c.id) - strlen(s->name) - 1) : 0;
		width = len > width ? len : width;
		arena_destroy(a);
	}
	/* A closed pipe ends the list: nobody reads on. */
	for (int64_t i = 0; i < n && !ferror(stdout); i++) {
		struct arena *a = arena_create();
		struct cell c;
		if (!plan_cell(p, i, a, &c, err)) {
			arena_destroy(a);
			return false;
		}
		if (json) {
			print_line(cell_json(&c));
		} else {
			printf("%-*s ", width, c.id + strlen(s->name) + 1);
			print_arms(&c);
			printf("; %s%s%s\n", kind_text(&c, a), c.gate ? "" : ", diagnostic",
			       c.waiver ? ", waived" : "");
			for (int k = 0; k < c.n_arms; k++)
				limited |= c.arm[k].unsupported != NULL;
		}
		arena_destroy(a);
	}
	if (limited)
		puts("\n(!) cannot run there: `assay explain` says why");
	return true;
}

/* The cells of one suite. *count gets how many; they are printed where only the count is not asked for. */
static int list_suite(const struct options *o, const struct registry *r, int64_t *count)
{
	struct diags *d = diags_create();
	struct arena *a = arena_create();
	struct err err = {""};
	struct target target;
	struct selector filter[MAX_ITEMS];
	struct plan_filter f = {.filter = filter, .n_filters = o->n_filters};
	struct suite_options so = {.registry = r, .set = o->set, .n_set = o->n_set};
	struct suite *s = NULL;
	struct plan *p = NULL;
	bool ok = false;
	for (int i = 0; i < o->n_filters; i++)
		if (!selector_parse(a, o->filter[i], &filter[i], &err)) {
			err_prefix(&err, "--filter '%s'", o->filter[i]);
			goto out;
		}
	if (!target_plan(&target, o->backend, o->device, &err))
		goto out;
	s = suite_load(o->suite, &so, d);
	p = s ? plan_build(s, r, &target.plan, &f, d, &err) : NULL;
	if (!p)
		goto out;
	*count += plan_count(p);
	ok = o->count || print_cells(p, &target, o->json, &err);
out:
	diags_print(d, stderr, cmd_colour(stderr));
	if (!ok && !diags_errors(d))
		fprintf(stderr, "assay list: %s\n", err.text);
	if (!s && access(o->suite, F_OK) != 0 && registry_find(r, o->suite))
		fprintf(stderr, "hint: the kernel of that name: assay list --filter kernel=%s\n", o->suite);
	plan_destroy(p);
	suite_destroy(s);
	diags_destroy(d);
	arena_destroy(a);
	return ok ? EXIT_PASS : EXIT_USAGE;
}

/* A suite, or a file that names suites: those that are for this backend, one after the other. */
static int list_file(const struct options *o, const struct registry *r)
{
	struct arena *a = arena_create();
	struct diags *d = diags_create();
	struct suite_uses u = {0};
	struct target target;
	struct err err;
	int64_t count = 0;
	int status = suite_uses_add(a, o->suite, d, &u) ? EXIT_PASS : EXIT_USAGE;
	diags_print(d, stderr, cmd_colour(stderr));
	if (status == EXIT_PASS && u.name && !target_plan(&target, o->backend, o->device, &err)) {
		fprintf(stderr, "assay list: %s\n", err.text);
		status = EXIT_USAGE;
	}
	for (int i = 0; i < u.n && status == EXIT_PASS; i++) {
		const char *const *filter;
		struct options one = *o;
		one.suite = u.use[i].path;
		if (u.use[i].backend && strcmp(u.use[i].backend, target.backend) != 0) {
			fprintf(stderr, "assay list: %s is for %s alone: passed over\n", one.suite, u.use[i].backend);
			continue;
		}
		one.n_filters = suite_use_filters(a, &u.use[i], o->filter, o->n_filters, &filter);
		if (one.n_filters > MAX_ITEMS) {
			fprintf(stderr, "assay list: %s: more than %d filters\n", one.suite, MAX_ITEMS);
			status = EXIT_USAGE;
			break;
		}
		memcpy(one.filter, filter, (size_t)one.n_filters * sizeof *filter);
		status = list_suite(&one, r, &count);
	}
	if (o->count && status == EXIT_PASS)
		printf("%" PRId64 "\n", count);
	diags_destroy(d);
	arena_destroy(a);
	return status;
}

/* ---- kernels ------------------------------------------------------------------------------------------------------- */

static int list_kernels(const struct options *o, const struct registry *r)
{
	struct arena *a = arena_create();
	struct selector filter[MAX_ITEMS];
	struct err err;
	int shown = 0, status = EXIT_USAGE;
	for (int i = 0; i < o->n_filters; i++)
		if (!selector_parse(a, o->filter[i], &filter[i], &err)) {
			fprintf(stderr, "assay list: --filter '%s': %s\n", o->filter[i], err.text);
			goto out;
		}
	for (int i = 0; i < registry_count(r); i++) {
		const struct assay_kernel *k = registry_at(r, i);
		bool keep = !o->n_filters;
		for (int j = 0; j < o->n_filters; j++)
			keep |= selector_match(&filter[j], k, list_kernel_get);
		if (!keep)
			continue;
		if (o->json)
			print_line(list_kernel_json(r, k));
		else if (!o->count)
			list_kernel_print(stdout, r, k, shown > 0);
		shown++;
	}
	if (o->count)
		printf("%d\n", shown);
	status = EXIT_PASS;
	if (o->n_filters && !shown) {
		fprintf(stderr,
			"assay list: the filter matches no kernel\nhint: keys are kernel, arm, param and tensor, as in "
			"'kernel=mla.*'\n");
		status = EXIT_USAGE;
	}
out:
	arena_destroy(a);
	return status;
}

struct task {
	const struct options *o;
	const struct registry *r;
	int status;
};

static bool list_task(void *ctx, struct err *err)
{
	struct task *t = ctx;
	(void)err;
	t->status = t->o->suite ? list_file(t->o, t->r) : list_kernels(t->o, t->r);
	return true;
}

/* ---- options ------------------------------------------------------------------------------------------------------- */

static bool too_many(const char *option)
{
	fprintf(stderr, "assay list: %s is given more than %d times\nhint: put it into the suite\n", option, MAX_ITEMS);
	return false;
}

static int run(int argc, char **argv)
{
	enum { OPT_COUNT = 256, OPT_JSON, OPT_FILTER, OPT_BACKEND, OPT_DEVICE, OPT_PLUGIN, OPT_SET };
	static const struct option long_options[] = {
		{"count", no_argument, NULL, OPT_COUNT},
		{"json", no_argument, NULL, OPT_JSON},
		{"filter", required_argument, NULL, OPT_FILTER},
		{"backend", required_argument, NULL, OPT_BACKEND},
		{"device", required_argument, NULL, OPT_DEVICE},
		{"plugin", required_argument, NULL, OPT_PLUGIN},
		{"set", required_argument, NULL, OPT_SET},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct options o = {.suite = NULL};
	struct registry *r = registry_create();
	struct err err;
	int got, status = EXIT_USAGE;
	bool ok = true;
	opterr = 0;
	while (ok && (got = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (got) {
		case OPT_COUNT: o.count = true; break;
		case OPT_JSON: o.json = true; break;
		case OPT_BACKEND: o.backend = optarg; break;
		case OPT_DEVICE: o.device = optarg; break;
		case OPT_FILTER:
			if ((ok = o.n_filters < MAX_ITEMS || too_many("--filter")))
				o.filter[o.n_filters++] = optarg;
			break;
		case OPT_SET:
			if ((ok = o.n_set < MAX_ITEMS || too_many("--set")))
				o.set[o.n_set++].text = optarg;
			break;
		case OPT_PLUGIN:
			if (!(ok = o.n_plugins < MAX_ITEMS || too_many("--plugin")))
				break;
			ok = trial_plugin(r, optarg, &err);
			if (!ok)
				fprintf(stderr, "assay list: %s\n", err.text);
			else
				o.plugin[o.n_plugins++] = optarg;
			break;
		case 'h':
			printf("usage: assay %s\n\n%s", cmd_list.usage, cmd_list.help);
			status = EXIT_PASS;
			ok = false;
			break;
		default: cmd_refuse("list", got, argv, long_options); ok = false;
		}
	}
	if (ok && argc - optind > 1) {
		fprintf(stderr, "assay list: one suite at a time\nhint: assay list %s\n", argv[optind]);
		ok = false;
	}
	if (ok && optind < argc)
		o.suite = argv[optind];
	if (ok && !o.suite && (o.n_set || o.backend || o.device)) {
		fprintf(stderr,
			"assay list: --set, --backend and --device need a suite\nhint: assay list suites/smoke.yaml\n");
		ok = false;
	}
	struct task task = {&o, r, status};
	if (ok && !trial_hooks(list_task, &task, o.plugin, o.n_plugins, &err)) {
		fprintf(stderr, "assay list: %s\n", err.text);
		ok = false;
	}
	if (ok) {
		list_task(&task, &err);
		status = task.status;
	}
	registry_destroy(r);
	return status;
}

const struct cmd cmd_list = {
	.name = "list",
	.usage = "list [SUITE] [options]",
	.summary = "kernels with their parameters and arms; with a suite, the planned cells",
	.help = "      --count           only the number of cells (or kernels)\n"
		"      --json            one JSON object a line\n"
		"      --filter SEL      only what matches, as in 'kernel=mla.*,t_q=1..4'; may be repeated\n"
		"      --backend NAME    host or cuda: rigs and tables are chosen by the device; none is opened\n"
		"      --device D        index, UUID or name; where no GPU is, the name of one elsewhere\n"
		"      --set PATH=VALUE  change the suite, as for run\n"
		"      --plugin PATH     kernels of a shared object, too\n",
	.run = run,
};
