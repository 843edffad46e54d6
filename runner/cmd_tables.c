/* assay table: a serving table out of a run, held against a run, as a C header. */
#define _GNU_SOURCE /* asprintf */
#include "cmd.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"
#include "suggest.h"
#include "suggest_fresh.h"
#include "table_tool.h"

extern const struct cmd cmd_tables;

enum { OPT_KEY = 256, OPT_REMEASURE, OPT_FORMAT, OPT_NAME, OPT_FORCE };

static const struct option long_options[] = {
	{"key", required_argument, NULL, OPT_KEY},
	{"remeasure", no_argument, NULL, OPT_REMEASURE},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"name", required_argument, NULL, OPT_NAME},
	{"output", required_argument, NULL, 'o'},
	{"force", no_argument, NULL, OPT_FORCE},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

struct options {
	const char *out, *format, *name;
	const char *key[SUGGEST_MAX_KEYS];
	int n_keys;
	bool has_key, remeasure, force;
};

static int refuse(const char *what, const char *hint)
{
	fprintf(stderr, "assay table: %s\nhint: %s\n", what, hint);
	return EXIT_USAGE;
}

static int say(const struct err *err)
{
	fprintf(stderr, "assay table: %s\n", err->text);
	return EXIT_USAGE;
}

/* The file to write, stdout for none or -. NULL: a message is printed. */
static FILE *open_out(const struct options *o)
{
	if (!o->out || strcmp(o->out, "-") == 0)
		return stdout;
	if (!o->force && cmd_would_replace(o->out)) {
		fprintf(stderr, "assay table: %s exists\nhint: --force replaces it, -o names another file\n", o->out);
		return NULL;
	}
	FILE *f = fopen(o->out, "we");
	if (!f)
		fprintf(stderr, "assay table: cannot write %s: %s\n", o->out, strerror(errno));
	return f;
}

/* False, with a message, where it could not be written to its end. Half a table is none and is taken away; a device is no file of ours. */
static bool close_out(FILE *f, const struct options *o)
{
	struct stat st;
	errno = 0;
	bool written = fflush(f) == 0 && !ferror(f);
	if (f == stdout)
		return written;
	int why = errno;
	if (fclose(f) != 0 && written) {
		written = false;
		why = errno;
	}
	if (written)
		return true;
	fprintf(stderr, "assay table: cannot write %s%s%s\n", o->out, why ? ": " : "", why ? strerror(why) : "");
	if (lstat(o->out, &st) == 0 && S_ISREG(st.st_mode))
		unlink(o->out);
	return false;
}

/* ---- suggest -------------------------------------------------------------------------------------------------------- */

/* 1: measured anew, 0: not, -1: nothing to measure; -2: failed, with a message. */
static int measure_anew(struct suggest *s, const struct options *o)
{
	struct verdict_file fresh;
	struct err err;
	char *path = NULL;
	if (suggest_changes(s) == 0)
		return -1;
	if (!o->remeasure)
		return 0;
	const char *folder = getenv("TMPDIR");
	if (asprintf(&path, "%s/assay-anew-%ld.jsonl", folder && *folder ? folder : "/tmp", (long)getpid()) < 0)
		abort();
	int result = -2;
	if (suggest_fresh_run(s, path, &fresh, &err)) {
		suggest_confirm(s, &fresh);
		verdict_unload(&fresh);
		result = 1;
	} else {
		fprintf(stderr, "assay table: --remeasure: %s\n", err.text);
	}
	unlink(path);
	free(path);
	return result;
}

static int suggest(const char *path, const struct options *o)
{
	struct verdict_file run;
	struct err err;
	if (!verdict_load(path, &run, &err))
		return say(&err);
	if (!run.footer)
		fprintf(stderr, "assay table: %s was cut short: what is missing is not proposed\n", path);
	int status = EXIT_USAGE, n_keys = o->n_keys;
	const char *key[SUGGEST_MAX_KEYS];
	memcpy((void *)key, (const void *)o->key, sizeof key);
	struct suggest *s = NULL;
	if (o->has_key || suggest_default_keys(run.header, key, &n_keys, &err))
		s = suggest_create(&run, key, n_keys, &err);
	if (!s) {
		say(&err);
		goto done;
	}
	int anew = measure_anew(s, o);
	if (anew == -2) {
		status = EXIT_INCOMPLETE;
		goto done;
	}
	FILE *f = open_out(o);
	if (!f)
		goto done;
	suggest_propose(s);
	suggest_write_table(s, path, anew, f);
	status = close_out(f, o) ? EXIT_PASS : EXIT_INCOMPLETE;
	suggest_write_text(s, anew, f == stdout ? stderr : stdout);
done:
	suggest_destroy(s);
	verdict_unload(&run);
	return status;
}

/* ---- check and export ----------------------------------------------------------------------------------------------- */

static const struct table *load(struct arena *a, const char *path)
{
	struct diags *d = diags_create();
	const struct table *t = table_load(a, path, (struct mark){0}, d);
	if (!t)
		diags_print(d, stderr, cmd_colour(stderr));
	diags_destroy(d);
	return t;
}

static int check(const char *table, const char *path)
{
	struct arena *a = arena_create();
	struct verdict_file run;
	struct err err;
	int status = EXIT_USAGE;
	const struct table *t = load(a, table);
	if (!t)
		goto done;
	if (!verdict_load(path, &run, &err)) {
		say(&err);
		goto done;
	}
	if (!table_check_keys(t, &run, &err)) {
		fprintf(stderr, "%s:1: error: %s\n", table, err.text);
		goto unload;
	}
	int checked, bad = table_check(t, &run, stdout, &checked);
	const bool part = checked == 0 || !run.footer; /* what was not measured neither holds nor fails */
	if (!run.footer)
		fprintf(stderr, "assay table: %s was cut short: what is missing is not checked\n", path);
	printf("%s  %d of %d row%s met by %s, %d do%s not hold\n",
	       bad    ? "FAIL"
	       : part ? "INCOMPLETE"
		      : "PASS",
	       checked, t->n_rows, t->n_rows == 1 ? "" : "s", path, bad, bad == 1 ? "es" : "");
	status = bad ? EXIT_FAIL : part ? EXIT_INCOMPLETE : EXIT_PASS;
unload:
	verdict_unload(&run);
done:
	arena_destroy(a);
	return status;
}

static int export_header(const char *path, const struct options *o)
{
	if (!o->format || strcmp(o->format, "c-header") != 0)
		return refuse("--format: there is c-header", "assay table export --format c-header TABLE -o serving.h");
	struct arena *a = arena_create();
	struct err err;
	int status = EXIT_USAGE;
	char *text = NULL;
	size_t n = 0;
	if (cmd_same_file(o->out, path)) {
		status = refuse("-o names the table itself", "name another file for the header");
		goto done;
	}
	const struct table *t = load(a, path);
	FILE *m = t ? open_memstream(&text, &n) : NULL;
	if (!m)
		goto done;
	bool ok = table_export_c(t, o->name ? o->name : table_identifier(a, path), m, &err);
	fclose(m);
	if (!ok) {
		say(&err);
		goto done;
	}
	FILE *f = open_out(o);
	if (!f)
		goto done;
	fwrite(text, 1, n, f);
	status = close_out(f, o) ? EXIT_PASS : EXIT_INCOMPLETE;
done:
	free(text);
	arena_destroy(a);
	return status;
}

/* ---- the verb ------------------------------------------------------------------------------------------------------- */

static bool take_keys(struct options *o, char *text)
{
	o->has_key = true;
	if (strcmp(text, "none") == 0)
		return true;
	for (char *word = strtok(text, ", "); word; word = strtok(NULL, ", ")) {
		if (o->n_keys == SUGGEST_MAX_KEYS)
			return false;
		o->key[o->n_keys++] = word;
	}
	return o->n_keys > 0;
}

static int run(int argc, char **argv)
{
	struct options o = {0};
	int got;
	opterr = 0;
	while ((got = getopt_long(argc, argv, ":o:h", long_options, NULL)) != -1) {
		switch (got) {
		case 'o': o.out = optarg; break;
		case OPT_KEY:
			if (!take_keys(&o, optarg))
				return refuse("--key wants one to eight names", "as in --key t_q,kv; or --key none");
			break;
		case OPT_REMEASURE: o.remeasure = true; break;
		case OPT_FORMAT: o.format = optarg; break;
		case OPT_NAME: o.name = optarg; break;
		case OPT_FORCE: o.force = true; break;
		case 'h': printf("usage: assay %s\n\n%s", cmd_tables.usage, cmd_tables.help); return EXIT_PASS;
		default: return cmd_refuse("table", got, argv, long_options);
		}
	}
	static const char *const verbs[] = {"suggest", "check", "export"};
	char **word = argv + optind;
	const int n = argc - optind;
	if (n < 1)
		return refuse("suggest, check or export is wanted", "assay table suggest run.jsonl --key t_q");
	if (strcmp(word[0], "suggest") == 0)
		return n == 2 ? cmd_output_is_input("table", o.out, word + 1, 1) ? EXIT_USAGE : suggest(word[1], &o)
			      : refuse("suggest: one RUN is wanted", "assay table suggest run.jsonl --key t_q");
	if (strcmp(word[0], "check") == 0)
		return n == 3 ? check(word[1], word[2])
			      : refuse("check: a TABLE and a RUN are wanted", "assay table check table.yaml run.jsonl");
	if (strcmp(word[0], "export") == 0)
		return n == 2 ? export_header(word[1], &o)
			      : refuse("export: one TABLE is wanted",
				       "assay table export --format c-header table.yaml");
	const char *near = diag_nearest(word[0], verbs, 3);
	char what[120], hint[120];
	snprintf(what, sizeof what, "there is no '%.60s'", word[0]);
	snprintf(hint, sizeof hint, near ? "did you mean %s?" : "%s",
		 near ? near : "there are suggest, check and export");
	return refuse(what, hint);
}

const struct cmd cmd_tables = {
	.name = "table",
	.usage = "table suggest RUN [--key t_q[,kv]] | check TABLE RUN | export TABLE --format c-header",
	.summary = "propose a serving table from a run; hold one against a run; print it as a C header",
	.help = "suggest RUN             a table as YAML, with the evidence of each row. An arm replaces what is\n"
		"                        served only where it is faster beyond the noise (its interval against what\n"
		"                        is served, and the noise floor of the cells), right in every check,\n"
		"                        selectable, with the same bits, and slower in no cell of the row. It also\n"
		"                        says where the choice changes along a key, and where another key is\n"
		"                        warranted\n"
		"  --key NAME[,NAME...]  the table's keys, axes or parameters; `none`: one row a kernel. Else\n"
		"                        the keys of the table that the run was served by, which then also keeps its\n"
		"                        lookup, its defaults and the rows that were not measured. Whatever is served\n"
		"                        and not kept is told (loses)\n"
		"  --remeasure           run the cells of each change again in a fresh process, as the run was\n"
		"                        called; what it does not bear out is withdrawn. Without it the table says\n"
		"                        that nothing was measured anew\n"
		"check TABLE RUN         rows slower than shipped, wrong, naming an arm that is not there, measured\n"
		"                        by no cell\n"
		"export TABLE            the header that serving compiles: static rows and a lookup, no dependencies\n"
		"  --format c-header\n"
		"  --name PREFIX         of what the header declares; the table's file name where left out\n"
		"  -o, --output FILE     where to; stdout where left out (suggest's words then go to stderr)\n"
		"  --force               FILE may exist\n"
		"Exit status: 0; 1 where check finds something; 2 usage or file error; 3 where the fresh measurement\n"
		"failed.\n",
	.run = run,
};
