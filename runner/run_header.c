#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "git.h"
#include "record_parts.h"
#include "run_tau.h"
#include "sha256.h"
#include "version.h"

const char *run_tool_version(void)
{
	return ASSAY_VERSION;
}

const char *run_tool_commit(void)
{
	return ASSAY_COMMIT;
}

void run_time_text(char out[21])
{
	time_t now = time(NULL);
	struct tm tm;
	strftime(out, 21, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
}

void run_today(char out[11])
{
	time_t now = time(NULL);
	struct tm tm;
	strftime(out, 11, "%Y-%m-%d", gmtime_r(&now, &tm));
}

static json_t *number_json(const struct number *n)
{
	return n->is_int ? json_integer(n->i) : json_real(n->d);
}

/* ---- what is planned, for people: the banner is printed from it ---------------------------------------------------- */

static json_t *names_json(const char *const *name, int n)
{
	json_t *list = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_string(name[i]));
	return list;
}

/* Of them those that this run takes part in. */
static json_t *seen_json(const char *const *name, int n, const bool *seen)
{
	json_t *list = json_array();
	for (int i = 0; i < n; i++)
		if (seen[i])
			json_array_append_new(list, json_string(name[i]));
	return list;
}

static json_t *filter_json(const char *const *filter)
{
	int n = 0;
	while (filter && filter[n])
		n++;
	return names_json(filter, n);
}

static const char *scrub_name(enum scrub_kind k)
{
	static const char *const names[] = {"auto", "bytes", "none", "rotate"};
	return names[k];
}

static json_t *timing_json(const struct timing *t)
{
	static const char *const clocks[] = {"device", "launch_to_completion"};
	static const char *const estimators[] = {"paired", "mean", "median"};
	static const char *const orders[] = {"random", "fixed", "list"};
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:f, s:i, s:s, s:I, s:s, s:b, s:s, s:i, s:I, s:I}", "clock",
			 clocks[t->clock], "estimator", estimators[t->estimator], "rounds", t->rounds, "min_rounds",
			 t->min_rounds, "max_rounds", t->max_rounds, "alpha", t->alpha, "warmup_launches",
			 t->warmup_launches, "scrub", scrub_name(t->scrub), "scrub_bytes", (json_int_t)t->scrub_bytes,
			 "order", orders[t->order], "null_arm", t->null_arm, "confirm",
			 t->confirm == CONFIRM_FRESH ? "fresh" : "none", "batch", t->batch, "cell_budget_ns",
			 (json_int_t)t->cell_budget_ns, "suite_budget_ns", (json_int_t)t->suite_budget_ns);
}

/* What this run does of case i; NULL: nothing. `settings` of the header has all that the suite says. */
static json_t *case_json(const struct plan *p, int i)
{
	static const char *const checks[N_CHECKS] = {"identity",  "repeat",     "invariant",
						     "reference", "regression", "ratio"};
	const struct suite_case *c = &plan_suite(p)->cases[i];
	struct arena *a = arena_create();
	struct plan_seen seen;
	plan_case_seen(p, i, a, &seen);
	if (!seen.cells) {
		arena_destroy(a);
		return NULL;
	}
	json_t *geometries = json_object(), *data = json_array(), *axes = json_object(), *on = json_array();
	for (int g = 0; g < c->n_geometries; g++) {
		if (!seen.geometry[g])
			continue;
		json_t *params = json_object();
		for (int k = 0; k < c->geometry[g]->n_params; k++)
			json_object_set_new(params, c->geometry[g]->param[k].name,
					    number_json(&c->geometry[g]->param[k].value));
		json_object_set_new(geometries, c->geometry[g]->name, params);
	}
	for (int d = 0; d < c->n_data; d++)
		if (seen.data[d])
			json_array_append_new(data, json_string(c->data[d]->name));
	for (int x = 0; x < c->n_axes; x++) {
		json_t *values = json_array();
		for (int k = 0; k < c->axis[x].n; k++)
			if (seen.value[x][k])
				json_array_append_new(values, number_json(&c->axis[x].value[k]));
		json_object_set_new(axes, c->axis[x].name, values);
	}
	for (int k = 0; k < N_CHECKS; k++)
		if (seen.checks & 1u << k)
			json_array_append_new(on, json_string(checks[k]));
	int n_arms;
	const char *const *arm = plan_case_arms(p, i, &seen, a, &n_arms);
	json_t *arms = names_json(arm, n_arms), *kernels = seen_json(c->kernel, c->n_kernels, seen.kernel);
	arena_destroy(a);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "id", c->id, "kernels", kernels, "geometries",
			 geometries, "data", data, "arms", arms, "axes", axes, "seed", (json_int_t)c->seed, "checks",
			 on, "timing", timing_json(&c->timing));
}

/* The row of a table that a mark points at, for the names and values of its key. */
static const struct table_row *row_at(const struct suite *s, const struct mark *at, const char *arm,
				      const struct table **table, int *set, int *choice)
{
	for (int i = 0; i < s->n_table_sets; i++) {
		for (int k = 0; k < s->table_set[i].n; k++) {
			const struct table *t = s->table_set[i].choice[k].table;
			for (int r = 0; r < t->n_rows; r++) {
				const struct mark *m = &t->row[r].mark;
				/* The word `shipped` stands for an arm that may have a name of its own. */
				const bool same =
					strcmp(t->row[r].arm, arm) == 0 || strcmp(t->row[r].arm, "shipped") == 0;
				if (m->file && at->file && m->line == at->line && m->col == at->col &&
				    strcmp(m->file, at->file) == 0 && same) {
					*table = t;
					*set = i;
					*choice = k;
					return &t->row[r];
				}
			}
		}
	}
	return NULL;
}

static void place_text(const struct mark *m, char *out, size_t cap)
{
	if (m->file)
		snprintf(out, cap, "%s:%d", m->file, m->line);
	else
		snprintf(out, cap, "built-in");
}

/* Where the kernel's rows are collected; made where there is none. */
static json_t *serving_of(json_t *serving, const char *kernel, const struct table *t, const char *set, int choice)
{
	json_t *entry;
	size_t i;
	json_array_foreach(serving, i, entry)
	{
		if (strcmp(json_string_value(json_object_get(entry, "kernel")), kernel) == 0)
			return json_object_get(entry, "rows");
	}
	json_t *rows = json_array(), *one;
	one = json_pack("{s:s, s:o, s:o, s:o}", "kernel", kernel, "table", record_text_or_null(t ? t->path : NULL),
			"keys", t ? names_json(t->key, t->n_keys) : json_array(), "rows", rows);
	/* Where the table stands in the settings. */
	if (t) {
		json_object_set_new(one, "set", json_string(set));
		json_object_set_new(one, "choice", json_integer(choice));
	}
	json_array_append_new(serving, one);
	return rows;
}

static void add_serving(json_t *serving, const struct suite *s, const struct cell *c)
{
	if (c->selection == SELECT_NONE || !c->selected)
		return;
	char place[512];
	place_text(&c->selected_row, place, sizeof place);
	const struct table *t = NULL;
	int set = 0, choice = 0;
	const struct table_row *row = row_at(s, &c->selected_row, c->selected, &t, &set, &choice);
	json_t *rows = serving_of(serving, c->kernel_name, t, t ? s->table_set[set].name : NULL, choice), *old;
	size_t i;
	json_array_foreach(rows, i, old)
	{
		if (strcmp(json_string_value(json_object_get(old, "row")), place) == 0 &&
		    strcmp(json_string_value(json_object_get(old, "arm")), c->selected) == 0)
			return;
	}
	json_t *at = json_object();
	for (int k = 0; row && !row->is_default && k < t->n_keys; k++)
		json_object_set_new(at, t->key[k], number_json(&row->key[k]));
	json_array_append_new(rows, json_pack("{s:o, s:s, s:s}", "at", at, "arm", c->selected, "row", place));
}

static void add_rig(json_t *rigs, const struct cell *c)
{
	char place[512];
	place_text(&c->rig_mark, place, sizeof place);
	json_t *rig;
	size_t i;
	json_array_foreach(rigs, i, rig)
	{
		if (strcmp(json_string_value(json_object_get(rig, "rule")), place) == 0) {
			json_object_set_new(rig, "cells",
					    json_integer(json_integer_value(json_object_get(rig, "cells")) + 1));
			return;
		}
	}
	json_array_append_new(rigs, json_pack("{s:b, s:s, s:i}", "gating", c->gate, "rule", place, "cells", 1));
}

/* A plan of a million cells is not walked twice for a banner: rows and rigs repeat long before. */
enum { SCAN_MAX = 20000 };

static void scan_plan(const struct run_job *job, json_t *serving, json_t *rigs)
{
	struct arena *a = arena_create();
	for (int64_t i = 0, n = plan_count(job->plan); i < n && i < SCAN_MAX; i++) {
		struct cell c;
		if (!plan_cell(job->plan, i, a, &c, NULL))
			break;
		add_serving(serving, job->suite, &c);
		add_rig(rigs, &c);
		if (i % 64 == 63) {
			arena_destroy(a);
			a = arena_create();
		}
	}
	arena_destroy(a);
}

/* ---- the header ---------------------------------------------------------------------------------------------------- */

/* sha-256 of this binary: a dirty build has the same commit as the next one. */
static json_t *binary_sha256(void)
{
	char hex[65];
	return sha256_file("/proc/self/exe", hex) ? json_string(hex) : json_null();
}

static json_t *git_json(const char *suite_path)
{
	const char *slash = strrchr(suite_path, '/');
	char *folder =
		slash ? strndup(suite_path, slash == suite_path ? 1 : (size_t)(slash - suite_path)) : strdup(".");
	struct git_facts g = {0};
	if (folder)
		git_facts_of(folder, &g);
	free(folder);
	return g.commit[0] ? json_pack("{s:s, s:b}", "commit", g.commit, "dirty", g.dirty) : json_null();
}

/* The worker's own words, or what could be seen from outside where no worker came up. */
static json_t *device_json(const struct run_job *job, const json_t *opened)
{
	json_t *device = json_object_get(opened, "device");
	if (json_is_object(device))
		return json_incref(device);
	return json_pack("{s:s, s:s, s:i, s:i, s:n, s:n, s:i, s:i, s:n}", "name", job->peek->name, "uuid",
			 job->peek->uuid, "cc", job->peek->cc, "threads", 0, "driver", "runtime", "memory_bytes", 0,
			 "llc_bytes", 0, "more");
}

json_t *run_header(const struct run_job *job, const json_t *opened, const char *lock_path)
{
	char hash[65], host[256] = "", now[21];
	plan_hash(job->plan, hash);
	(void)!gethostname(host, sizeof host - 1);
	run_time_text(now);
	json_t *cases = json_array(), *serving = json_array(), *rigs = json_array();
	for (int i = 0; i < job->suite->n_cases; i++) {
		json_t *one = case_json(job->plan, i);
		if (one)
			json_array_append_new(cases, one);
	}
	scan_plan(job, serving, rigs);
	struct run_tau tau;
	run_tau_choose(job, &tau);
	json_t *calibration = json_object_get(opened, "calibration");
	json_t *h = json_object();
	json_object_set_new(h, "kind", json_string("header"));
	json_object_set_new(h, "format", json_integer(RECORD_FORMAT));
	json_object_set_new(h, "tool_version", json_string(run_tool_version()));
	json_object_set_new(h, "tool_commit", json_string(run_tool_commit()));
	json_object_set_new(h, "binary_sha256", binary_sha256());
	json_object_set_new(h, "suite", json_string(job->suite->name));
	json_object_set_new(h, "suite_path", json_string(job->suite->path));
	json_object_set_new(h, "suite_sha256", json_string(job->suite->sha256));
	json_object_set_new(h, "plan_hash", json_string(hash));
	json_object_set_new(h, "cells", json_integer(plan_count(job->plan)));
	json_object_set_new(h, "plan_cells", json_integer(plan_whole_count(job->plan)));
	json_object_set_new(h, "ratio_groups", record_ratio_groups(job->plan));
	json_object_set_new(h, "filter", filter_json(job->filter));
	json_object_set_new(h, "cases", cases);
	json_object_set_new(h, "serving", serving);
	json_object_set_new(h, "rigs", rigs);
	json_object_set_new(h, "settings", suite_to_json(job->suite));
	json_object_set_new(h, "backend", json_string(job->backend));
	json_object_set_new(h, "device", device_json(job, opened));
	json_object_set_new(h, "host", json_string(host));
	json_object_set_new(h, "git", git_json(job->suite->path));
	json_object_set_new(h, "shard",
			    job->shard_n ? json_pack("{s:i, s:i}", "i", job->shard_i, "n", job->shard_n) : json_null());
	json_object_set_new(h, "processes", json_integer(job->processes));
	json_object_set_new(h, "command", json_string(job->command));
	json_object_set_new(h, "process", json_integer(getpid()));
	json_object_set_new(h, "started", json_string(now));
	json_object_set_new(h, "calibration", calibration ? json_incref(calibration) : json_null());
	json_object_set_new(h, "lock", record_text_or_null(lock_path));
	json_object_set_new(h, "tau", json_real(tau.tau));
	json_object_set_new(h, "tau_source", json_string(tau.source));
	json_object_set_new(h, "tau_n", json_integer(tau.n));
	return h;
}
