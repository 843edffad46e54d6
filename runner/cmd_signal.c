/* cmd_signal: the signals that end a run in order. */
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "cmd.h"

/* A handler can reach nothing else. */
static volatile int seen;

/* The first asks the run to end in order. The second ends it here: what is written is whole lines. */
static void on_signal(int sig)
{
	if (seen)
		_exit(128 + sig);
	seen = sig;
}

const volatile int *cmd_catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal}, was;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	/* Under nohup a terminal that goes is no reason to end. */
	if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of a write, with a message */
	return &seen;
}

bool cmd_exit_is_signal(int status)
{
	return status == EXIT_SIGHUP || status == EXIT_SIGINT || status == EXIT_SIGTERM;
}
