/* assay schema: the JSON Schemas it was built with: of a suite, of a verdict file's records, of an explained cell. */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "explain_schema.h"
#include "suite.h"
#include "verdict_schema.h"

static int run(int argc, char **argv)
{
	enum { OPT_REFERENCE = 256 };
	static const struct option options[] = {{"reference", no_argument, NULL, OPT_REFERENCE}, {NULL, 0, NULL, 0}};
	bool reference = false;
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
		if (c != OPT_REFERENCE)
			return cmd_refuse("schema", c, argv, options);
		reference = true;
	}
	const char *which = optind + 1 == argc ? argv[optind] : "";
	if (!strcmp(which, "suite") && reference) {
		suite_reference(stdout);
		return EXIT_PASS;
	}
	if (!strcmp(which, "suite")) {
		json_t *j = suite_schema();
		json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15)); /* what cannot be written main finds */
		putchar('\n');
		json_decref(j);
		return EXIT_PASS;
	}
	if (!strcmp(which, "explain") && !reference) {
		fwrite(explain_schema_text, 1, sizeof explain_schema_text, stdout);
		return EXIT_PASS;
	}
	if (!strcmp(which, "verdict") && !reference) {
		fwrite(verdict_schema_text, 1, sizeof verdict_schema_text, stdout);
		return EXIT_PASS;
	}
	fputs(reference ? "assay schema: --reference is of 'suite'\nhint: assay schema suite --reference\n"
			: "assay schema: 'suite', 'verdict' or 'explain' is wanted\nhint: assay schema suite\n",
	      stderr);
	return EXIT_USAGE;
}

const struct cmd cmd_schema = {
	.name = "schema",
	.usage = "schema suite|verdict|explain [--reference]",
	.summary = "the JSON Schema it was built with",
	.help = "  suite              of a suite file\n"
		"  verdict            of one line of a verdict file\n"
		"  explain            of what `assay explain --json` prints\n"
		"  --reference        of 'suite': the reference page (docs/suite.md) in its place\n",
	.run = run,
};
