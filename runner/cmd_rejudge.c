/* assay rejudge: the verdicts again, from the stored samples alone. With nothing set the file that comes out is the file that went in,
 * byte for byte, which is the proof that a verdict is a function of its record. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "record.h"
#include "rejudge_set.h"
#include "verdict.h"

struct lines {
	json_t **line; /* every record, in the order of the file; owned */
	size_t n, cap;
	json_t **cell; /* the cells that count (the later line of an id); borrowed */
	size_t n_cells;
	bool torn;
};

static const char *kind_of(const json_t *line)
{
	const char *k = json_string_value(json_object_get(line, "kind"));
	return k ? k : "";
}

static void lines_drop(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		json_decref(l->line[i]);
	free(l->line);
	free(l->cell);
}

/* Which lines of cells count: with a resume record between them the later line of an id, else a doubled id is an error. */
static bool pick_cells(struct lines *l, const char *path, struct err *err)
{
	json_t *seen = json_object();
	size_t resumed_at = 0;
	bool ok = true;
	l->cell = calloc(l->n + 1, sizeof *l->cell);
	if (!l->cell || !seen) {
		json_decref(seen);
		return err_set(err, "out of memory for %zu records", l->n);
	}
	for (size_t i = 0; ok && i < l->n; i++) {
		if (strcmp(kind_of(l->line[i]), "resume") == 0)
			resumed_at = i;
		if (strcmp(kind_of(l->line[i]), "cell") != 0)
			continue;
		const char *id = json_string_value(json_object_get(l->line[i], "id"));
		const json_t *before = id ? json_object_get(seen, id) : NULL;
		if (!id)
			ok = err_set(err, "%s:%zu: a cell without an id", path, i + 1);
		else if (before && (size_t)json_integer_value(before) >= resumed_at)
			ok = err_set(err, "%s:%zu: the id %s stands in line %lld already", path, i + 1, id,
				     (long long)json_integer_value(before) + 1);
		else
			json_object_set_new(seen, id, json_integer((json_int_t)i));
	}
	for (size_t i = 0; ok && i < l->n; i++) {
		const char *id = json_string_value(json_object_get(l->line[i], "id"));
		if (strcmp(kind_of(l->line[i]), "cell") == 0 &&
		    (size_t)json_integer_value(json_object_get(seen, id)) == i)
			l->cell[l->n_cells++] = l->line[i];
	}
	json_decref(seen);
	return ok;
}

static bool lines_read(const char *path, struct lines *l, struct err *err)
{
	struct verdict_reader *r = verdict_open(path, err);
	if (!r)
		return false;
	bool ok = true;
	for (bool more = true; more;) {
		json_t *j = NULL;
		switch (verdict_next(r, &j, err)) {
		case VERDICT_RECORD:
			if (l->n == l->cap) {
				size_t cap = l->cap ? 2 * l->cap : 64;
				json_t **grown = realloc(l->line, cap * sizeof *grown);
				if (!grown) {
					json_decref(j);
					ok = err_set(err, "out of memory after %zu records", l->n);
					more = false;
					break;
				}
				l->line = grown;
				l->cap = cap;
			}
			l->line[l->n++] = j;
			break;
		case VERDICT_TORN:
			l->torn = true;
			more = false;
			break;
		case VERDICT_END: more = false; break;
		case VERDICT_BAD: ok = more = false; break;
		}
	}
	verdict_finish(r);
	if (ok && (l->n == 0 || strcmp(kind_of(l->line[0]), "header") != 0))
		return err_set(err, "%s: no header in the first line: this is not a verdict file", path);
	return ok && pick_cells(l, path, err);
}

/* ---- the records that follow from the cells ------------------------------------------------------------------------- */

/* New aggregates of ratio checks in the places of the old ones (by name). One without an old one stays out. */
static void put_aggregates(struct lines *l, json_t *fresh)
{
	for (size_t i = 0; i < l->n; i++) {
		const char *check = json_string_value(json_object_get(l->line[i], "check"));
		if (strcmp(kind_of(l->line[i]), "aggregate") != 0 || !check || strcmp(check, "ratio") != 0)
			continue;
		size_t k;
		json_t *a;
		json_array_foreach(fresh, k, a)
		{
			if (!json_equal(json_object_get(a, "name"), json_object_get(l->line[i], "name")))
				continue;
			json_decref(l->line[i]);
			l->line[i] = json_incref(a);
			break;
		}
	}
}

static json_t *footer_of(const struct lines *l)
{
	return l->n && strcmp(kind_of(l->line[l->n - 1]), "footer") == 0 ? l->line[l->n - 1] : NULL;
}

/* The status of the run, as it would be today: what ended it early, or made it incomplete by --strict, is in the file alone. */
static int exit_status(const struct lines *l, int judged, bool anew)
{
	const json_t *footer = footer_of(l);
	const int was = (int)json_integer_value(json_object_get(footer, "exit"));
	if (cmd_exit_is_signal(was))
		return was;
	if (judged != EXIT_PASS)
		return judged;
	return !footer || (!anew && was == EXIT_INCOMPLETE) ? EXIT_INCOMPLETE : judged;
}

/* The footer of what is judged anew: by other rules (anew), or, as by another version of the judge, otherwise than it says. Returns whether it was. */
static bool put_footer(struct lines *l, const json_t *aggregates, bool noisy, bool anew)
{
	json_t *footer = footer_of(l);
	struct run_counts c = {0};
	size_t i;
	json_t *a;
	for (size_t k = 0; k < l->n_cells; k++)
		record_count(l->cell[k], &c);
	json_array_foreach(aggregates, i, a) record_count_aggregate(a, &c);
	json_t *counts = json_object_get(footer, "counts"), *value;
	const char *name;
	json_object_foreach(counts, name, value)
	{
		enum cell_status s = status_of(name);
		anew |= s != ST_N && json_integer_value(value) != c.by_status[s];
	}
	if (!footer || !anew)
		return anew;
	json_object_foreach(counts, name, value)
	{
		enum cell_status s = status_of(name);
		if (s != ST_N)
			json_integer_set(value, c.by_status[s]);
	}
	json_object_set_new(footer, "gated", json_integer(c.gated));
	json_object_set_new(footer, "gated_undecided", json_integer(c.gated_undecided));
	json_object_set_new(footer, "warned", json_integer(c.warned));
	json_object_set_new(footer, "biased", json_integer(c.biased));
	json_object_set_new(footer, "noisy", json_boolean(noisy));
	/* A signal that ended the run ended it: its status stays. */
	if (!cmd_exit_is_signal((int)json_integer_value(json_object_get(footer, "exit"))))
		json_object_set_new(footer, "exit", json_integer(record_exit(&c, false, false)));
	return true;
}

static int say(const struct err *err)
{
	fprintf(stderr, "assay rejudge: %s\n", err->text);
	return EXIT_USAGE;
}

/* False: what is wrong was said. */
static bool set_all(const struct lines *l, const char *const *set, int n_set)
{
	struct diags *d = diags_create();
	const bool ok = rejudge_set(set, n_set, l->cell, l->n_cells, d);
	diags_print(d, stderr, cmd_colour(stderr));
	diags_destroy(d);
	return ok;
}

static json_t *command_line(int argc, char **argv)
{
	json_t *j = json_string("assay");
	for (int i = 0; j && i < argc; i++) {
		json_t *more = json_sprintf("%s %s", json_string_value(j), argv[i]);
		json_decref(j);
		j = more;
	}
	return j ? j : json_string("assay rejudge");
}

enum { MAX_SET = 32 };

static int rejudge(const char *path, const char *out, enum verdict_open how, const char *const *set, int n_set,
		   json_t *command)
{
	struct lines l = {0};
	struct err err = {{0}};
	struct verdict_writer *w = NULL;
	json_t *aggregates = NULL;
	int status = EXIT_USAGE;
	if (!lines_read(path, &l, &err)) {
		say(&err);
		goto done;
	}
	if (!set_all(&l, set, n_set))
		goto done;

	json_t *header = l.line[0];
	const char *started = json_string_value(json_object_get(header, "started"));
	char today[11] = "";
	if (started)
		snprintf(today, sizeof today, "%.10s", started);
	const json_t *tau = json_object_get(header, "tau");
	struct record_env env = {.tau = json_is_number(tau) ? json_number_value(tau) : 0.0025, .today = today};
	record_judge_run(l.cell, l.n_cells, &env);
	aggregates = record_aggregates(l.cell, l.n_cells, header);
	put_aggregates(&l, aggregates);
	const bool anew = put_footer(&l, aggregates, env.noisy, n_set > 0);
	if (n_set > 0)
		json_object_set(header, "command", command);

	if (how == VERDICT_NEW && strcmp(out, "-") != 0 && cmd_would_replace(out)) {
		err_set(&err, "%s exists: --force replaces it, -o names another file", out);
		say(&err);
		goto done;
	}
	w = verdict_create(out, how, &err);
	if (!w) {
		say(&err);
		goto done;
	}
	struct run_counts c = {0};
	for (size_t i = 0; i < l.n; i++)
		if (!verdict_write(w, l.line[i], &err)) {
			say(&err);
			status = EXIT_INCOMPLETE;
			verdict_close(w, NULL); /* the same again */
			w = NULL;
			goto done;
		}
	for (size_t i = 0; i < l.n_cells; i++)
		record_count(l.cell[i], &c);
	size_t k;
	json_t *a;
	json_array_foreach(aggregates, k, a) record_count_aggregate(a, &c);
	status = exit_status(&l, record_exit(&c, false, false), anew);
	if (!footer_of(&l))
		fprintf(stderr, "assay rejudge: %s was cut short: it has no footer\n", path);
	FILE *text = strcmp(out, "-") == 0 ? stderr : stdout;
	if (l.torn)
		fprintf(stderr, "assay rejudge: %s: the last line is cut short; it is left out\n", path);
	fprintf(text, "rejudged  %zu cell%s", l.n_cells, l.n_cells == 1 ? "" : "s");
	for (int s = 0; s < ST_N; s++)
		if (c.by_status[s] > 0)
			fprintf(text, "  %lld %s", (long long)c.by_status[s], status_name((enum cell_status)s));
	fprintf(text, "%s  -> %s\n", env.noisy ? "  (noisy run)" : "", out);

done:
	if (!verdict_close(w, &err) && status != EXIT_USAGE) {
		say(&err);
		status = EXIT_INCOMPLETE;
	}
	json_decref(aggregates);
	lines_drop(&l);
	return status;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {{"set", required_argument, NULL, 's'},
						{"output", required_argument, NULL, 'o'},
						{"force", no_argument, NULL, 'f'},
						{NULL, 0, NULL, 0}};
	const char *set[MAX_SET];
	int n_set = 0, o;
	const char *out = NULL;
	enum verdict_open how = VERDICT_NEW;
	json_t *command = command_line(argc, argv);
	int status = EXIT_USAGE;
	opterr = 0;
	while ((o = getopt_long(argc, argv, ":o:", options, NULL)) != -1)
		switch (o) {
		case 's':
			if (n_set == MAX_SET) {
				fprintf(stderr, "assay rejudge: more than %d --set\nhint: judge the file twice\n",
					MAX_SET);
				goto done;
			}
			set[n_set++] = optarg;
			break;
		case 'o': out = optarg; break;
		case 'f': how = VERDICT_FORCE; break;
		default: cmd_refuse("rejudge", o, argv, options); goto done;
		}
	if (argc - optind != 1 || !out) {
		fprintf(stderr, "assay rejudge: one FILE and -o OUT are wanted\n"
				"hint: assay rejudge run.jsonl --set margin=3%% -o again.jsonl\n");
		goto done;
	}
	if (!cmd_output_is_input("rejudge", out, argv + optind, 1))
		status = rejudge(argv[optind], out, how, set, n_set, command);
done:
	json_decref(command);
	return status;
}

const struct cmd cmd_rejudge = {
	.name = "rejudge",
	.usage = "rejudge FILE [--set NAME=VALUE]... -o OUT",
	.summary = "the verdicts again, from the stored samples, under other margins or estimators",
	.help = "  -o, --output OUT    records into OUT; - for stdout (the summary then goes to stderr)\n"
		"  --set NAME=VALUE    for every cell of the file:\n"
		"                        margin=3%        how much slower the served arm may be\n"
		"                        warn=2%          the level of a note (none: no level)\n"
		"                        floor=0.5us      the margin's absolute floor\n"
		"                        estimator=mean   paired, mean or median\n"
		"                        alpha=0.01       0.05, 0.025, 0.01, 0.005 or 0.001\n"
		"                        rounds=9         so many; adaptive: the looks\n"
		"                        min_rounds=16 max_rounds=40\n"
		"                        confirm=none     a suspect is a regression without a second process\n"
		"                        tau=0.2%         what processes differ by; store: as the file's run had it\n"
		"  --force             OUT may exist\n"
		"\n"
		"Nothing is run. With nothing set, OUT equals FILE byte for byte. A suspect that the run did not\n"
		"suspect is inconclusive(unconfirmed): no second process has looked at it. The exit status is that of\n"
		"a run.\n",
	.run = run,
};
