#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"

int cmd_refuse(const char *verb, int got, char **argv, const struct option *options)
{
	const char *word = argv[optind - 1];
	const char *names[64];
	int n = 0;
	for (; options[n].name && n < 64; n++)
		names[n] = options[n].name;
	if (got == ':') {
		fprintf(stderr, "assay %s: %s wants a value\n", verb, word);
		fprintf(stderr, "hint: `assay %s --help` lists the options\n", verb);
		return EXIT_USAGE;
	}
	if (strncmp(word, "--", 2) != 0 && optopt > 0 && optopt < 128) {
		fprintf(stderr, "assay %s: unknown option -%c\n", verb, optopt);
		fprintf(stderr, "hint: `assay %s --help` lists the options\n", verb);
		return EXIT_USAGE;
	}
	char name[64];
	size_t len = strcspn(word + 2, "=");
	snprintf(name, sizeof name, "%.*s", (int)(len < 63 ? len : 63), word + 2);
	int exact = -1, begins = 0;
	for (int i = 0; i < n; i++) {
		if (strcmp(names[i], name) == 0)
			exact = i;
		begins += strncmp(names[i], name, len) == 0;
	}
	if (exact >= 0) {
		fprintf(stderr, "assay %s: --%s takes no value\n", verb, name);
		fprintf(stderr, "hint: `assay %s --help` lists the options\n", verb);
		return EXIT_USAGE;
	}
	fprintf(stderr, "assay %s: %s option --%s\n", verb, begins > 1 ? "ambiguous" : "unknown", name);
	const char *nearest = diag_nearest(name, names, n);
	for (int i = 0; i < n && !nearest && len > 0; i++)
		if (strncmp(names[i], name, len) == 0)
			nearest = names[i];
	if (nearest)
		fprintf(stderr, "hint: did you mean --%s?\n", nearest);
	else
		fprintf(stderr, "hint: `assay %s --help` lists the options\n", verb);
	return EXIT_USAGE;
}

bool cmd_whole_number(const char *text, int lo, int hi, int *out)
{
	char *end;
	errno = 0;
	const long n = strtol(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || n < lo || n > hi)
		return false;
	*out = (int)n;
	return true;
}

bool cmd_colour(FILE *f)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(fileno(f)) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

bool cmd_would_replace(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool cmd_can_make(const char *verb, const char *path)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	if (fd >= 0 || errno == EEXIST)
		return true;
	fprintf(stderr, "assay %s: cannot make %s here: %s\nhint: -o FILE names another place\n", verb, path,
		strerror(errno));
	return false;
}

bool cmd_same_file(const char *a, const char *b)
{
	struct stat x, y;
	return a && b && stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool cmd_output_is_input(const char *verb, const char *out, char *const *input, int n)
{
	for (int i = 0; i < n; i++) {
		if (!cmd_same_file(out, input[i]))
			continue;
		fprintf(stderr, "assay %s: -o names %s, which it reads\nhint: name another file\n", verb, input[i]);
		return true;
	}
	return false;
}
