/* assay history: each cell over many runs, in the order of their start. Facts, no verdicts: `assay diff` judges two of them. */
#include "cmd.h"

#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff_parts.h"
#include "record_parts.h"
#include "select.h"
#include "text_parts.h"
#include "verdict.h"

extern const struct cmd cmd_history;

enum { OPT_FILTER = 256, OPT_FORMAT, OPT_LAST };

static const struct option long_options[] = {
	{"filter", required_argument, NULL, OPT_FILTER},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"last", required_argument, NULL, OPT_LAST},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

struct run_file {
	const char *path;
	struct verdict_file file;
};

/* An arm of a cell in one run. */
struct seen {
	const char *id, *arm, *status; /* live in the run's records */
	int run;
	double us, ratio; /* NAN: not timed; ratio to shipped */
	uint64_t out;
};

struct list {
	struct seen *s;
	size_t n, cap;
};

static int by_start(const void *a, const void *b)
{
	const struct run_file *x = a, *y = b;
	const char *s = record_text(x->file.header, "started"), *t = record_text(y->file.header, "started");
	return strcmp(s ? s : "", t ? t : "");
}

static int by_cell_and_run(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	int c = strcmp(x->id, y->id);
	if (!c)
		c = strcmp(x->arm, y->arm);
	return c ? c : (x->run > y->run) - (x->run < y->run);
}

static const char *cell_key(const void *subject, const char *key, int i, char *buf, size_t cap)
{
	const json_t *cell = subject;
	if (strcmp(key, "arm") == 0)
		return record_text(json_array_get(json_object_get(cell, "arms"), (size_t)i), "name");
	if (i > 0)
		return NULL;
	const json_t *v = json_object_get(json_object_get(cell, "point"), key);
	if (!v)
		v = json_object_get(cell, key);
	if (json_is_string(v))
		return json_string_value(v);
	if (!json_is_number(v))
		return NULL;
	snprintf(buf, cap, "%.17g", json_number_value(v));
	return buf;
}

static bool take_cell(struct list *l, const json_t *cell, int run)
{
	struct diff_reading r[DIFF_MAX_ARMS];
	int n = diff_read_arms(cell, 0, r);
	for (int i = 0; i < n; i++) {
		if (r[i].role == ROLE_NULL)
			continue;
		if (!diff_grow(&l->s, l->n, &l->cap, sizeof *l->s))
			return false;
		l->s[l->n++] = (struct seen){
			.id = record_text(cell, "id"),
			.arm = r[i].name,
			.status = record_text(cell, "status"),
			.run = run,
			.us = exp(r[i].y) / 1000,
			.ratio = r[i].role == ROLE_SHIPPED ? NAN : exp(r[i].r),
			.out = r[i].out,
		};
	}
	return true;
}

static void csv(const struct list *l, const struct run_file *run)
{
	printf("id,arm,run,started,commit,status,us,ratio_to_shipped,out\r\n");
	for (size_t i = 0; i < l->n; i++) {
		const struct seen *s = &l->s[i];
		const json_t *h = run[s->run].file.header;
		const char *commit = record_text(json_object_get(h, "git"), "commit"),
			   *started = record_text(h, "started");
		printf("\"%s\",%s,%s,%s,%.12s,%s,", s->id, s->arm, run[s->run].path, started ? started : "",
		       commit ? commit : "", s->status);
		isfinite(s->us) ? printf("%.4f,", s->us) : printf(",");
		isfinite(s->ratio) ? printf("%.5f,", s->ratio) : printf(",");
		s->out ? printf("%016llx\r\n", (unsigned long long)s->out) : printf("\r\n");
	}
}

/* One cell and arm: a column a run. */
static void line(const struct seen *s, size_t n, int runs, const char *last_id)
{
	const char *slash = strchr(s->id, '/');
	if (!last_id || strcmp(last_id, s->id) != 0)
		printf("%s\n", slash ? slash + 1 : s->id);
	printf("   %-12s", s->arm);
	size_t k = 0;
	uint64_t out = 0;
	double first = NAN, last = NAN;
	for (int r = 0; r < runs; r++) {
		if (k == n || s[k].run != r) {
			printf(" %9s", "-");
			continue;
		}
		char us[24], mark = ' ';
		if (strcmp(s[k].status, "pass") != 0)
			mark = strcmp(s[k].status, "inconclusive") == 0 ? '?'
			       : strcmp(s[k].status, "skip") == 0       ? 's'
									: '!';
		else if (out && s[k].out && s[k].out != out)
			mark = 'b';
		out = s[k].out ? s[k].out : out;
		if (isfinite(s[k].us)) {
			first = isnan(first) ? s[k].us : first;
			last = s[k].us;
		}
		printf(" %8s%c", text_us(us, s[k].us * 1000), mark);
		k++;
	}
	if (first > 0 && n > 1)
		printf("  %+.1f %%", 100 * (last / first - 1));
	printf("\n");
}

static void text(const struct list *l, const struct run_file *run, int runs)
{
	for (int r = 0; r < runs; r++) {
		const json_t *h = run[r].file.header;
		const char *commit = record_text(json_object_get(h, "git"), "commit"),
			   *started = record_text(h, "started");
		const char *device = record_text(json_object_get(h, "device"), "name");
		printf("run %-2d  %.16s  %.7s  %.30s  %s\n", r + 1, started ? started : "", commit ? commit : "no git",
		       device ? device : "?", run[r].path);
	}
	printf("\nmicroseconds, a column a run; the last against the first\n"
	       "! failed  ? undecided  s skipped  b bits other than in the run before\n");
	const char *last_id = NULL;
	for (size_t i = 0; i < l->n;) {
		size_t k = i + 1;
		while (k < l->n && strcmp(l->s[k].id, l->s[i].id) == 0 && strcmp(l->s[k].arm, l->s[i].arm) == 0)
			k++;
		line(&l->s[i], k - i, runs, last_id);
		last_id = l->s[i].id;
		i = k;
	}
}

static int history(char **path, int n, const struct selector *filter, int last, bool as_csv)
{
	struct run_file *run = calloc((size_t)n, sizeof *run);
	struct list l = {0};
	struct err err = {{0}};
	int status = EXIT_USAGE, loaded = 0;
	for (; run && loaded < n; loaded++) {
		run[loaded].path = path[loaded];
		if (!verdict_load(path[loaded], &run[loaded].file, &err)) {
			fprintf(stderr, "assay history: %s\n", err.text);
			goto done;
		}
	}
	if (!run)
		return status;
	qsort(run, (size_t)n, sizeof *run, by_start);
	int from = last > 0 && last < n ? n - last : 0;
	for (int r = from; r < n; r++)
		for (size_t c = 0; c < run[r].file.n_cells; c++) {
			if (filter && !selector_match(filter, run[r].file.cell[c], cell_key))
				continue;
			if (!take_cell(&l, run[r].file.cell[c], r - from)) {
				fprintf(stderr, "assay history: out of memory\n");
				goto done;
			}
		}
	if (l.n == 0) {
		fprintf(stderr, "assay history: no cell of these files%s\n", filter ? " matches the filter" : "");
		goto done;
	}
	qsort(l.s, l.n, sizeof *l.s, by_cell_and_run);
	if (as_csv)
		csv(&l, run + from);
	else
		text(&l, run + from, n - from);
	status = EXIT_PASS;
done:
	for (int i = 0; i < loaded; i++)
		verdict_unload(&run[i].file);
	free(run);
	free(l.s);
	return status;
}

static int run(int argc, char **argv)
{
	const char *filter = NULL;
	bool as_csv = false;
	int got, last = 0;
	opterr = 0;
	while ((got = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		switch (got) {
		case OPT_FILTER: filter = optarg; break;
		case OPT_LAST:
			if (!cmd_whole_number(optarg, 1, INT_MAX, &last)) {
				fprintf(stderr,
					"assay history: --last: a whole number from 1 is wanted\nhint: --last 10\n");
				return EXIT_USAGE;
			}
			break;
		case OPT_FORMAT:
			as_csv = strcmp(optarg, "csv") == 0;
			if (!as_csv && strcmp(optarg, "text") != 0) {
				fprintf(stderr, "assay history: --format %s: no such format\nhint: text or csv\n",
					optarg);
				return EXIT_USAGE;
			}
			break;
		case 'h': printf("usage: assay %s\n\n%s", cmd_history.usage, cmd_history.help); return EXIT_PASS;
		default: return cmd_refuse("history", got, argv, long_options);
		}
	}
	if (optind == argc) {
		fprintf(stderr, "assay history: verdict files are wanted\nhint: assay history results/h200/*.jsonl\n");
		return EXIT_USAGE;
	}
	struct arena *a = arena_create();
	struct selector s;
	struct err err;
	int status = EXIT_USAGE;
	if (filter && !selector_parse(a, filter, &s, &err))
		fprintf(stderr, "assay history: --filter '%s': %s\n", filter, err.text);
	else
		status = history(argv + optind, argc - optind, filter ? &s : NULL, last, as_csv);
	arena_destroy(a);
	return status;
}

const struct cmd cmd_history = {
	.name = "history",
	.usage = "history FILE... [--filter SEL] [--last N] [--format text|csv]",
	.summary = "each cell over many runs",
	.help = "Runs are put in the order of their start; the first lines say which column is which. Times are as\n"
		"measured: no drift is removed and nothing is judged, which `assay diff` does for two of them.\n"
		"\n"
		"      --filter SEL      only cells that match\n"
		"      --last N          only the N newest of these files\n"
		"      --format F        text, or csv (with the ratio to shipped)\n"
		"\n"
		"Exit status: 0; 2 where a file cannot be read or no cell matches.\n",
	.run = run,
};
