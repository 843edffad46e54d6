/* assay schema: the JSON Schema it was built with, of a suite or of a verdict file's records. */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "suite.h"
#include "verdict_schema.h"

static int run(int argc, char **argv)
{
	enum { OPT_REFERENCE = 256 };
	static const struct option options[] = {{"reference", no_argument, NULL, OPT_REFERENCE}, {0}};
	bool reference = false;
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c != OPT_REFERENCE) {
			fputs("try 'assay schema --help'\n", stderr);
			return EXIT_USAGE;
		}
		reference = true;
	}
	const char *which = optind + 1 == argc ? argv[optind] : "";
	if (!strcmp(which, "suite") && reference) {
		suite_reference(stdout);
		return EXIT_PASS;
	}
	if (!strcmp(which, "suite")) {
		json_t *j = suite_schema();
		int failed = json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
		putchar('\n');
		json_decref(j);
		return failed ? EXIT_USAGE : EXIT_PASS;
	}
	if (!strcmp(which, "verdict") && !reference) {
		fwrite(verdict_schema_text, 1, sizeof verdict_schema_text, stdout);
		return EXIT_PASS;
	}
	fputs(reference ? "assay schema: --reference is of 'suite'\n"
			: "assay schema: 'suite' or 'verdict'? try 'assay schema --help'\n",
	      stderr);
	return EXIT_USAGE;
}

const struct cmd cmd_schema = {
	.name = "schema",
	.usage = "schema suite|verdict [--reference]",
	.summary = "the JSON Schema it was built with",
	.help = "  suite              of a suite file\n"
		"  verdict            of one line of a verdict file\n"
		"  --reference        of 'suite': the reference page (docs/suite.md) in its place\n",
	.run = run,
};
