#include "merge.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "record.h"
#include "record_parts.h"

bool merge_check(const struct merge_shard *shard, size_t n, struct err *err)
{
	static const struct {
		const char *key, *words;
	} same[] = {
		{"plan_hash", "another plan (its cells differ)"}, {"suite_sha256", "another text of the suite"},
		{"settings", "other settings (--set)"},           {"backend", "another backend"},
		{"processes", "another number of processes"},
	};
	for (size_t i = 1; i < n; i++)
		for (size_t k = 0; k < sizeof same / sizeof *same; k++)
			if (!json_equal(json_object_get(shard[0].file.header, same[k].key),
					json_object_get(shard[i].file.header, same[k].key)))
				return err_set(err, "%s and %s are no shards of one run: %s", shard[0].path,
					       shard[i].path, same[k].words);
	return true;
}

static void problem(json_t *list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void problem(json_t *list, const char *fmt, ...)
{
	char text[1200];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	json_array_append_new(list, json_string(text));
}

static int shard_number(const struct merge_shard *s, const char *key)
{
	return (int)json_integer_value(json_object_get(json_object_get(s->file.header, "shard"), key));
}

/* Shards that are missing, double, or of another division. */
static void look_at_shards(const struct merge_shard *shard, size_t n, json_t *list)
{
	int of = shard_number(&shard[0], "n");
	for (size_t i = 0; i < n; i++)
		if (shard_number(&shard[i], "n") != of) {
			problem(list, "%s is shard %d of %d, %s is shard %d of %d: two divisions of the plan",
				shard[0].path, shard_number(&shard[0], "i"), of, shard[i].path,
				shard_number(&shard[i], "i"), shard_number(&shard[i], "n"));
			return;
		}
	for (int want = 1; want <= of; want++) {
		const char *first = NULL;
		for (size_t i = 0; i < n; i++) {
			if (shard_number(&shard[i], "i") != want)
				continue;
			if (first)
				problem(list, "shard %d of %d is double: %s and %s", want, of, first, shard[i].path);
			else
				first = shard[i].path;
		}
		if (!first)
			problem(list, "shard %d of %d is missing", want, of);
	}
	if (of == 0 && n > 1)
		problem(list, "%s and %s are whole runs, not shards", shard[0].path, shard[1].path);
}

json_t *merge_problems(const struct merge_shard *shard, size_t n)
{
	json_t *list = json_array(), *seen = json_object();
	look_at_shards(shard, n, list);
	for (size_t i = 0; i < n; i++) {
		const struct verdict_file *f = &shard[i].file;
		double planned = record_number(f->header, "cells", NAN);
		if (f->torn)
			problem(list, "%s is cut short in the middle of a line", shard[i].path);
		if (!f->footer)
			problem(list,
				"%s is cut short: no footer, %zu of %.0f cells; `assay run --resume` goes on with it",
				shard[i].path, f->n_cells, planned);
		else if (isfinite(planned) && planned != (double)f->n_cells)
			problem(list, "%s has %zu of its %.0f cells", shard[i].path, f->n_cells, planned);
		for (size_t c = 0; c < f->n_cells; c++) {
			const char *id = record_text(f->cell[c], "id");
			const json_t *in = json_object_get(seen, id);
			/* Shards that are double are named above; their cells are not listed one by one. */
			if (!in)
				json_object_set_new(seen, id, json_integer((json_int_t)i));
			else if (shard_number(&shard[json_integer_value(in)], "i") != shard_number(&shard[i], "i"))
				problem(list, "cell %s is in %s and in %s", id, shard[json_integer_value(in)].path,
					shard[i].path);
		}
	}
	json_decref(seen);
	return list;
}

static int by_plan_index(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	json_int_t i = json_integer_value(json_object_get(x, "plan_index")),
		   k = json_integer_value(json_object_get(y, "plan_index"));
	return (i > k) - (i < k);
}

/* All cells, each id once, by plan_index. Borrowed. */
static json_t **gather(struct merge_shard *shard, size_t n, size_t *n_cells)
{
	size_t total = 0;
	for (size_t i = 0; i < n; i++)
		total += shard[i].file.n_cells;
	json_t **cell = calloc(total + 1, sizeof *cell);
	json_t *seen = json_object();
	*n_cells = 0;
	for (size_t i = 0; cell && i < n; i++)
		for (size_t c = 0; c < shard[i].file.n_cells; c++) {
			const char *id = record_text(shard[i].file.cell[c], "id");
			if (json_object_get(seen, id))
				continue;
			json_object_set_new(seen, id, json_true());
			cell[(*n_cells)++] = shard[i].file.cell[c];
		}
	json_decref(seen);
	if (cell && *n_cells)
		qsort(cell, *n_cells, sizeof *cell, by_plan_index);
	return cell;
}

/* ---- the header ---------------------------------------------------------------------------------------------------- */

/* Whether two entries of a list speak of the same thing: a case, a kernel, a rule, a row. */
static bool same_entry(const json_t *a, const json_t *b)
{
	static const char *const names[] = {"id", "kernel", "rule", "row"};
	if (!json_is_object(a) || !json_is_object(b))
		return json_is_number(a) && json_is_number(b) ? json_number_value(a) == json_number_value(b)
							      : json_equal(a, b);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const json_t *x = json_object_get(a, names[i]), *y = json_object_get(b, names[i]);
		if (x || y)
			return x && y && json_equal(x, y) &&
			       (i != 3 || json_equal(json_object_get(a, "arm"), json_object_get(b, "arm")));
	}
	return json_equal(a, b);
}

/* Where a number goes into a rising list; the end for all else. */
static size_t place_of(const json_t *list, const json_t *x)
{
	size_t n = json_array_size(list), at = n;
	for (size_t i = 0; i + 1 < n; i++)
		if (!(json_number_value(json_array_get(list, i)) < json_number_value(json_array_get(list, i + 1))))
			return n;
	while (at > 0 && json_is_number(x) && json_is_number(json_array_get(list, at - 1)) &&
	       json_number_value(json_array_get(list, at - 1)) > json_number_value(x))
		at--;
	return at;
}

/* How many cells an entry speaks of: a rule, a row. A geometry's parameter may have that name too, and is no count. */
static void add_cells(json_t *entry, const json_t *other)
{
	json_t *n = json_object_get(entry, "cells");
	if (json_is_integer(n))
		json_integer_set(n, json_integer_value(n) + json_integer_value(json_object_get(other, "cells")));
}

/* Puts into `to` what `from` has beside it: a shard's header tells what that shard did. */
static void unite(json_t *to, const json_t *from)
{
	const char *key;
	json_t *x, *mine;
	size_t i, k;
	if (json_is_object(to) && json_is_object(from)) {
		json_object_foreach((json_t *)(uintptr_t)from, key, x)
		{
			mine = json_object_get(to, key);
			if (!mine)
				json_object_set_new(to, key, json_deep_copy(x));
			else
				unite(mine, x);
		}
	} else if (json_is_array(to) && json_is_array(from)) {
		json_array_foreach(from, i, x)
		{
			bool had = false;
			json_array_foreach(to, k, mine)
			{
				had = same_entry(mine, x);
				if (had) {
					unite(mine, x);
					add_cells(mine, x);
					break;
				}
			}
			if (!had)
				json_array_insert_new(to, place_of(to, x), json_deep_copy(x));
		}
	}
}

static json_t *merged_header(const struct merge_shard *shard, size_t n, json_t *command, size_t n_cells)
{
	static const char *const united[] = {"cases", "serving", "rigs"};
	json_t *h = json_deep_copy(shard[0].file.header), *paths = json_array();
	for (size_t i = 1; i < n; i++)
		for (size_t k = 0; k < sizeof united / sizeof *united; k++)
			unite(json_object_get(h, united[k]), json_object_get(shard[i].file.header, united[k]));
	json_object_set_new(h, "cells", json_integer((json_int_t)n_cells));
	json_object_set_new(h, "shard", json_null());
	json_object_set(h, "command", command);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(paths, json_pack("{s:s, s:O, s:O, s:O}", "file", shard[i].path, "host",
						       json_object_get(shard[i].file.header, "host"), "started",
						       json_object_get(shard[i].file.header, "started"), "shard",
						       json_object_get(shard[i].file.header, "shard")));
	json_object_set_new(h, "merged", paths);
	return h;
}

/* What the shards' footers say together. */
static json_t *merged_footer(const struct merge_shard *shard, size_t n, const struct run_counts *c, bool noisy,
			     int status)
{
	json_t *f = NULL;
	json_int_t wall = 0, not_run = 0;
	const char *finished = "";
	for (size_t i = 0; i < n; i++) {
		const json_t *one = shard[i].file.footer;
		if (!one)
			continue;
		if (!f)
			f = json_deep_copy(one);
		wall += json_integer_value(json_object_get(one, "wall_ns"));
		not_run += json_integer_value(json_object_get(one, "not_run"));
		const char *at = record_text(one, "finished");
		if (at && strcmp(at, finished) > 0)
			finished = at;
		/* Waivers: what their cells did adds up; every shard counts the cells of the whole plan. */
		size_t k;
		json_t *w;
		json_array_foreach(json_object_get(f, "waivers"), k, w)
		{
			size_t m;
			json_t *x;
			json_array_foreach(json_object_get(one, "waivers"), m, x)
			{
				if (i == 0 || one == shard[0].file.footer ||
				    !json_equal(json_object_get(w, "id"), json_object_get(x, "id")))
					continue;
				static const char *const sums[] = {"used", "passed"};
				for (int s = 0; s < 2; s++)
					json_object_set_new(w, sums[s],
							    json_integer(
								    json_integer_value(json_object_get(w, sums[s])) +
								    json_integer_value(json_object_get(x, sums[s]))));
			}
		}
	}
	if (!f)
		return NULL;
	json_t *counts = json_object_get(f, "counts"), *value;
	const char *name;
	json_object_foreach(counts, name, value)
	{
		enum cell_status s = status_of(name);
		if (s != ST_N)
			json_integer_set(value, c->by_status[s]);
	}
	json_object_set_new(f, "gated", json_integer(c->gated));
	json_object_set_new(f, "gated_undecided", json_integer(c->gated_undecided));
	json_object_set_new(f, "warned", json_integer(c->warned));
	json_object_set_new(f, "biased", json_integer(c->biased));
	json_object_set_new(f, "noisy", json_boolean(noisy));
	json_object_set_new(f, "not_run", json_integer(not_run));
	json_object_set_new(f, "wall_ns", json_integer(wall));
	json_object_set_new(f, "exit", json_integer(status));
	json_object_set_new(f, "finished", json_string(finished));
	return f;
}

json_t *merge_records(struct merge_shard *shard, size_t n, json_t *command, bool whole, int *exit_status)
{
	size_t n_cells;
	json_t **cell = gather(shard, n, &n_cells);
	if (!cell)
		return NULL;
	const json_t *header = shard[0].file.header;
	char today[11] = "";
	const char *started = record_text(header, "started");
	if (started)
		snprintf(today, sizeof today, "%.10s", started);
	struct record_env env = {.tau = record_number(header, "tau", 0.0025), .today = today};
	record_judge_run(cell, n_cells, &env);
	struct run_counts c = {0};
	for (size_t i = 0; i < n_cells; i++)
		record_count(cell[i], &c);
	json_t *aggregates = record_aggregates(cell, n_cells, header), *a, *out = json_array();
	size_t i;
	json_array_foreach(aggregates, i, a) record_count_aggregate(a, &c);
	int status = record_exit(&c, false, false);
	if (!whole && status != EXIT_FAIL)
		status = EXIT_INCOMPLETE;
	*exit_status = status;
	json_array_append_new(out, merged_header(shard, n, command, n_cells));
	for (i = 0; i < n_cells; i++)
		json_array_append(out, cell[i]);
	json_array_extend(out, aggregates);
	json_decref(aggregates);
	/* The sentinels of each shard's own machine and hour stay beside each other. */
	for (size_t s = 0; s < n; s++)
		for (size_t k = 0; k < shard[s].file.n_other; k++) {
			json_t *o = shard[s].file.other[k];
			const char *kind = record_text(o, "kind"), *check = record_text(o, "check");
			if (kind && strcmp(kind, "aggregate") == 0 && !check)
				json_array_append(out, o);
		}
	json_t *footer = whole ? merged_footer(shard, n, &c, env.noisy, status) : NULL;
	if (footer)
		json_array_append_new(out, footer);
	free(cell);
	return out;
}
