/* assay: argv to verb. The only file that exits. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "cmd.h"
#include "diag.h"
#include "run.h"
#include "worker.h"

static void print_help(FILE *out)
{
	fputs("usage: assay VERB ...\n\nA gate and bench runner for compute kernels: from a YAML file to verdicts.\n\n",
	      out);
	for (int i = 0; cmd_table[i]; i++)
		fprintf(out, "  %-10s %s\n", cmd_table[i]->name, cmd_table[i]->summary);
	fputs("\n`assay VERB --help` tells more; so does `man assay`.\n"
	      "Exit status: 0 no gate failed, 1 a gate failed, 2 usage or file error, 3 incomplete, 4 nothing run.\n",
	      out);
}

static void print_version(void)
{
	printf("assay %s (%s)\nbackends:", run_tool_version(), run_tool_commit());
	for (const char *const *b = backend_names(); *b; b++)
		printf(" %s", *b);
	fputc('\n', stdout);
}

static const struct cmd *find(const char *name)
{
	for (int i = 0; cmd_table[i]; i++)
		if (strcmp(cmd_table[i]->name, name) == 0)
			return cmd_table[i];
	return NULL;
}

static int refuse(const char *word)
{
	const char *names[64];
	int n = 0;
	for (; cmd_table[n] && n < 64; n++)
		names[n] = cmd_table[n]->name;
	if (word[0] == '-') {
		static const char *const options[] = {"help", "version"};
		const char *near = diag_nearest(word + strspn(word, "-"), options, 2);
		if (!near)
			near = diag_nearest(word + strspn(word, "-"), names, n);
		fprintf(stderr, "assay: unknown option %s\n", word);
		if (near)
			fprintf(stderr, "hint: did you mean %s%s?\n",
				near == options[0] || near == options[1] ? "--" : "", near);
		else
			fprintf(stderr, "hint: `assay --help` lists the verbs\n");
		return EXIT_USAGE;
	}
	const char *near = diag_nearest(word, names, n);
	fprintf(stderr, "assay: unknown verb %s\n", word);
	if (near)
		fprintf(stderr, "hint: did you mean %s?\n", near);
	else
		fprintf(stderr, "hint: `assay --help` lists the verbs\n");
	return EXIT_USAGE;
}

/* What was printed and could not be written is a failure too: a full disk must not look like success. */
static int flush_all(int status)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	/* A reader that has seen enough, as in `assay list ... | head`, is no failure, and is told nothing. */
	struct pollfd reader = {.fd = STDOUT_FILENO, .events = POLLOUT};
	if (errno == EPIPE || (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR)))
		return status;
	fprintf(stderr, "assay: cannot write standard output\n");
	return status == EXIT_PASS ? EXIT_INCOMPLETE : status;
}

/* A closed standard descriptor would be given to the next file that is opened, and what is printed would go into it. What stands there
 * instead cannot be read or written, so that it is an error with a message and not lost. */
static void hold_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			exit(EXIT_USAGE);
}

/* Who is meant to end this process, and when. */
struct end {
	pid_t pid;
	bool meant; /* main has its status */
};

/* Code of a plugin that calls exit() must not decide what the status of a gate is, nor cut its output short in silence. */
static void guard_exit(int status, void *arg)
{
	const struct end *end = arg;
	if (end->meant || end->pid != getpid())
		return;
	fflush(stdout);
	fprintf(stderr, "assay: a plugin's code called exit(%d) in assay itself; what was asked for is not done\n",
		status);
	_exit(EXIT_INCOMPLETE);
}

int main(int argc, char **argv)
{
	hold_standard_files();
	if (argc < 2) {
		print_help(stderr);
		exit(EXIT_USAGE);
	}
	/* A file size limit is an error of a write, with a message, as a full disk is; in a worker too. */
	signal(SIGXFSZ, SIG_IGN);
	const char *verb = argv[1];
	if (strcmp(verb, "__worker") == 0)
		exit(worker_main(argc - 1, argv + 1));
	signal(SIGPIPE, SIG_IGN);
	struct end end = {.pid = getpid(), .meant = true};
	on_exit(guard_exit, &end);
	if (strcmp(verb, "--version") == 0 || strcmp(verb, "-V") == 0) {
		print_version();
		exit(flush_all(EXIT_PASS));
	}
	if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || (strcmp(verb, "help") == 0 && argc == 2)) {
		print_help(stdout);
		exit(flush_all(EXIT_PASS));
	}
	const bool help = strcmp(verb, "help") == 0;
	const struct cmd *c = find(help ? argv[2] : verb);
	if (!c)
		exit(refuse(help ? argv[2] : verb));
	if (help || (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0))) {
		printf("usage: assay %s\n\n%s.\n\n%s", c->usage, c->summary, c->help);
		exit(flush_all(EXIT_PASS));
	}
	optind = 0;
	end.meant = false;
	const int status = flush_all(c->run(argc - 1, argv + 1));
	end.meant = true;
	exit(status);
}
