/* assay merge: shards to one file. */
#include "cmd.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "merge.h"

extern const struct cmd cmd_merge;

enum { OPT_FORCE = 256, OPT_PARTIAL };

static const struct option long_options[] = {
	{"output", required_argument, NULL, 'o'},
	{"force", no_argument, NULL, OPT_FORCE},
	{"partial", no_argument, NULL, OPT_PARTIAL},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* *opened: it could be begun, and what failed is the writing. */
static bool write_records(const char *out, bool force, json_t *records, bool *opened, struct err *err)
{
	struct verdict_writer *w = verdict_create(out, force ? VERDICT_FORCE : VERDICT_NEW, err);
	bool ok = *opened = w != NULL;
	for (size_t i = 0; ok && i < json_array_size(records); i++)
		ok = verdict_write(w, json_array_get(records, i), err);
	return w ? verdict_close(w, ok ? err : NULL) && ok : false;
}

static int merge(char **path, size_t n, const char *out, bool force, bool partial, json_t *command)
{
	struct merge_shard *shard = calloc(n, sizeof *shard);
	json_t *problems = NULL, *records = NULL;
	struct err err = {{0}};
	int status = EXIT_USAGE, run_status = 0;
	size_t loaded = 0;
	if (!shard)
		return status;
	size_t headless = 0;
	for (size_t i = 0; i < n; i++) {
		shard[loaded].path = path[i];
		if (verdict_load(path[i], &shard[loaded].file, &err)) {
			loaded++;
			continue;
		}
		/* Cut short so early that it does not even say which shard it is: no mistake of usage. */
		if (!strstr(err.text, "cut short before its header"))
			goto failed;
		fprintf(stderr, "assay merge: %s\n", err.text);
		headless++;
	}
	n = loaded;
	if (n == 0) {
		status = EXIT_INCOMPLETE;
		goto done;
	}
	if (!merge_check(shard, n, &err))
		goto failed;
	problems = merge_problems(shard, n);
	bool whole = json_array_size(problems) == 0 && headless == 0;
	for (size_t i = 0; i < json_array_size(problems); i++)
		fprintf(stderr, "assay merge: %s\n", json_string_value(json_array_get(problems, i)));
	if (!whole && !partial) {
		fprintf(stderr, "assay merge: nothing is written; --partial writes what there is, without a footer\n");
		status = EXIT_INCOMPLETE;
		goto done;
	}
	records = merge_records(shard, n, command, whole, &run_status);
	if (!records) {
		err_set(&err, "out of memory");
		goto failed;
	}
	bool opened;
	if (!write_records(out, force, records, &opened, &err)) {
		if (opened)
			status = EXIT_INCOMPLETE;
		goto failed;
	}
	const long long cells = json_integer_value(json_object_get(json_array_get(records, 0), "cells"));
	fprintf(strcmp(out, "-") == 0 ? stderr : stdout, "merged  %zu shard%s  %lld cell%s%s  -> %s\n", n,
		n == 1 ? "" : "s", cells, cells == 1 ? "" : "s", whole ? "" : "  (not whole)", out);
	status = whole ? EXIT_PASS : EXIT_INCOMPLETE;
	goto done;
failed:
	fprintf(stderr, "assay merge: %s\n", err.text);
done:
	json_decref(problems);
	json_decref(records);
	for (size_t i = 0; i < loaded; i++)
		verdict_unload(&shard[i].file);
	free(shard);
	return status;
}

static int run(int argc, char **argv)
{
	const char *out = NULL;
	bool force = false, partial = false;
	int got;
	opterr = 0;
	json_t *command = json_string("assay");
	for (int i = 0; i < argc; i++) {
		json_t *more = json_sprintf("%s %s", json_string_value(command), argv[i]);
		json_decref(command);
		command = more ? more : json_string("assay merge");
	}
	int status = EXIT_USAGE;
	while ((got = getopt_long(argc, argv, ":o:h", long_options, NULL)) != -1) {
		switch (got) {
		case 'o': out = optarg; break;
		case OPT_FORCE: force = true; break;
		case OPT_PARTIAL: partial = true; break;
		case 'h':
			printf("usage: assay %s\n\n%s", cmd_merge.usage, cmd_merge.help);
			status = EXIT_PASS;
			goto done;
		default: status = cmd_refuse("merge", got, argv, long_options); goto done;
		}
	}
	if (argc - optind < 1 || !out)
		fprintf(stderr, "assay merge: shards and -o FILE are wanted\nhint: assay merge s1.jsonl s2.jsonl -o "
				"run.jsonl\n");
	else if (!cmd_output_is_input("merge", out, argv + optind, argc - optind))
		status = merge(argv + optind, (size_t)(argc - optind), out, force, partial, command);
done:
	json_decref(command);
	return status;
}

const struct cmd cmd_merge = {
	.name = "merge",
	.usage = "merge SHARD... -o FILE",
	.summary = "one file out of the shards of a plan",
	.help = "Cells are sorted by their place in the plan and judged as one run: the confirmation of suspects is\n"
		"corrected over all of them.\n"
		"\n"
		"  -o, --output FILE|-   where to\n"
		"      --force           FILE may exist\n"
		"      --partial         write what there is where a shard is missing, double or cut short; there is\n"
		"                        no footer then\n"
		"\n"
		"Exit status: 0 complete; 2 a file cannot be read, or they are no shards of one plan; 3 a shard is\n"
		"missing, double or cut short, or FILE could not be written to its end.\n",
	.run = run,
};
