/* assay new-kernel: a plugin that builds, runs and passes, and a suite for it, to be changed into one's own. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "new_kernel_c.h"
#include "new_kernel_yaml.h"

extern const struct cmd cmd_new_kernel;

enum { NAME_MAX_CHARS = 48 };

/* family.name, as in records and file names: small letters, digits and _, a letter first. */
static bool name_good(const char *name)
{
	const char *dot = strchr(name, '.');
	if (!dot || strlen(name) > NAME_MAX_CHARS)
		return false;
	for (const char *s = name; *s; s++) {
		const bool letter = *s >= 'a' && *s <= 'z', first = s == name || s == dot + 1;
		if (s != dot && !letter && (first || ((*s < '0' || *s > '9') && *s != '_')))
			return false;
	}
	return dot > name && dot[1] != 0;
}

/* The template with @NAME@ and @SHORT@ put in. */
static void fill_in(FILE *f, const unsigned char *text, size_t n, const char *name, const char *brief)
{
	static const char long_mark[] = "@NAME@", short_mark[] = "@SHORT@";
	for (size_t i = 0; i < n;) {
		if (n - i >= sizeof long_mark - 1 && memcmp(text + i, long_mark, sizeof long_mark - 1) == 0) {
			fputs(name, f);
			i += sizeof long_mark - 1;
		} else if (n - i >= sizeof short_mark - 1 && memcmp(text + i, short_mark, sizeof short_mark - 1) == 0) {
			fputs(brief, f);
			i += sizeof short_mark - 1;
		} else {
			fputc(text[i++], f);
		}
	}
}

/* A new file and nothing else: one that is there is somebody's work. */
static bool put_file(const char *path, const unsigned char *text, size_t n, const char *name, const char *brief)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!f) {
		fprintf(stderr, "assay new-kernel: cannot make %s: %s\n", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	errno = 0;
	fill_in(f, text, n, name, brief);
	bool ok = fflush(f) == 0 && !ferror(f);
	const int why = errno;
	ok = fclose(f) == 0 && ok;
	if (!ok) {
		fprintf(stderr, "assay new-kernel: cannot write %s: %s\n", path, strerror(why ? why : EIO));
		unlink(path);
	}
	return ok;
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {{NULL, 0, NULL, 0}};
	opterr = 0;
	const int got = getopt_long(argc, argv, ":", options, NULL);
	if (got != -1)
		return cmd_refuse("new-kernel", got, argv, options);
	if (argc - optind != 1 || !name_good(argv[optind])) {
		fprintf(stderr,
			"assay new-kernel: one NAME is wanted, a family and a name of small letters, digits and _\n"
			"hint: assay new-kernel mine.scale\n");
		return EXIT_USAGE;
	}
	const char *name = argv[optind], *brief = strchr(name, '.') + 1;
	char source[NAME_MAX_CHARS + 8], suite[NAME_MAX_CHARS + 8];
	snprintf(source, sizeof source, "%s.c", brief);
	snprintf(suite, sizeof suite, "%s.yaml", brief);
	if (!put_file(source, new_kernel_c_text, sizeof new_kernel_c_text, name, brief))
		return EXIT_USAGE;
	if (!put_file(suite, new_kernel_yaml_text, sizeof new_kernel_yaml_text, name, brief)) {
		unlink(source);
		return EXIT_USAGE;
	}
	printf("%s and %s are made. They build and pass as they are:\n\n"
	       "  cc -std=c11 -O3 -fPIC -shared -o %s.so %s\n"
	       "  assay run %s --plugin ./%s.so\n\n"
	       "(-I FOLDER where assay/adapter.h is not installed)\n",
	       source, suite, brief, source, suite, brief);
	return EXIT_PASS;
}

const struct cmd cmd_new_kernel = {
	.name = "new-kernel",
	.usage = "new-kernel FAMILY.NAME",
	.summary = "a plugin that builds and passes, and its suite, to be made one's own",
	.help = "Writes NAME.c and NAME.yaml here; a file that is there is left alone, and nothing is written.\n"
		"The source is a whole kernel out of tree: parameters, tensors, two arms, reference and work.\n",
	.run = run,
};
