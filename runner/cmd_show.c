/* assay show: the text of a run again, from its verdict file. */
#include "cmd.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"
#include "verdict.h"

extern const struct cmd cmd_show;

static const struct option long_options[] = {
	{"verbose", no_argument, NULL, 'v'},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int show(const char *path, bool verbose, bool quiet)
{
	struct verdict_file f;
	struct err err;
	if (!verdict_load(path, &f, &err)) {
		fprintf(stderr, "assay show: %s\n", err.text);
		return EXIT_USAGE;
	}
	if (f.torn)
		fprintf(stderr, "assay show: %s: the last line is cut short and left out\n", path);
	const struct text_options o = {
		.out = stdout, .colour = cmd_colour(stdout), .verbose = verbose, .quiet = quiet,
		/* No name of the file: under git it is another temporary one each time, and a diff of two texts would show that. */
	};
	struct text *t = text_create(&o);
	text_record(t, f.header);
	for (size_t i = 0; i < f.n_cells; i++)
		text_record(t, f.cell[i]);
	for (size_t i = 0; i < f.n_other; i++)
		text_record(t, f.other[i]);
	if (f.footer)
		text_record(t, f.footer);
	text_finish(t);
	text_destroy(t);
	int status = f.footer ? EXIT_PASS : EXIT_INCOMPLETE;
	verdict_unload(&f);
	return status;
}

static int run(int argc, char **argv)
{
	bool verbose = false, quiet = false;
	int got;
	opterr = 0;
	while ((got = getopt_long(argc, argv, ":vqh", long_options, NULL)) != -1) {
		switch (got) {
		case 'v': verbose = true; break;
		case 'q': quiet = true; break;
		case 'h': printf("usage: assay %s\n\n%s", cmd_show.usage, cmd_show.help); return EXIT_PASS;
		default: return cmd_refuse("show", got, argv, long_options);
		}
	}
	if (argc - optind != 1) {
		fprintf(stderr, "assay show: one FILE is wanted\nhint: assay show run.jsonl\n");
		return EXIT_USAGE;
	}
	return show(argv[optind], verbose, quiet);
}

const struct cmd cmd_show = {
	.name = "show",
	.usage = "show FILE [-v|-q]",
	.summary = "the text of a run again, from its verdict file",
	.help = "FILE is a verdict file, - for stdin, or REV:path of the git repository here.\n"
		"  -v, --verbose         every cell\n"
		"  -q, --quiet           failures and the last line only\n"
		"Exit status: 0; 2 where the file cannot be read; 3 where it was cut short.\n",
	.run = run,
};
