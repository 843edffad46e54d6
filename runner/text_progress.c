/* text_progress: a run on the terminal. One line that is overwritten where stderr is a terminal; a plain line now and then where it is
 * not, so that a log of an hour has some hundred lines. */
#define _GNU_SOURCE /* asprintf */
#include "text_progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "monotonic.h"
#include "text_parts.h"

enum { TERMINAL_NS = 100000000 };
static const int64_t PLAIN_NS = 10000000000;

struct run_screen {
	struct text *text;
	bool terminal, quiet, seen;
	int shown; /* columns of the line that stands */
	int64_t next_ns; /* no line before */
	int64_t failed;
};

static void wipe(struct run_screen *s)
{
	if (s->shown > 0)
		fprintf(stderr, "\r%*s\r", s->shown, "");
	s->shown = 0;
}

void run_screen_wipe(struct run_screen *s)
{
	wipe(s);
}

static void on_record(void *ctx, const json_t *record)
{
	struct run_screen *s = ctx;
	wipe(s);
	s->seen = true;
	enum cell_status st = status_of(json_string_value(json_object_get(record, "status")));
	s->failed += strcmp(text_get(record, "kind"), "cell") == 0 && st <= ST_REGRESSION;
	text_record(s->text, record);
}

static void on_say(void *ctx, const char *sentence)
{
	struct run_screen *s = ctx;
	wipe(s);
	fprintf(stderr, "assay run: %s\n", sentence);
}

static int terminal_width(void)
{
	struct winsize w;
	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 80;
}

static void on_progress(void *ctx, const struct run_progress *p)
{
	struct run_screen *s = ctx;
	const int64_t now = monotonic_ns();
	if (s->quiet || now < s->next_ns)
		return;
	/* The first plain line comes after a while too: a short run has none. */
	bool first = s->next_ns == 0;
	s->next_ns = now + (s->terminal ? TERMINAL_NS : PLAIN_NS);
	if (first && !s->terminal)
		return;
	char *line, left[24] = "", failed[48] = "", round[32] = "";
	const char *id = p->cell ? p->cell : "", *slash = strchr(id, '/');
	if (p->left_ns >= 0)
		text_seconds(left, (double)p->left_ns);
	if (s->failed)
		snprintf(failed, sizeof failed, "%lld failed  ", (long long)s->failed);
	if (p->round > 0)
		snprintf(round, sizeof round, " %d", p->round);
	if (asprintf(&line, "%lld/%lld  %s%s%s%s  %s %s%s%s", (long long)p->done, (long long)p->total, failed, left,
		     *left ? " left  " : "", slash ? slash + 1 : id, p->phase ? p->phase : "", p->arm ? p->arm : "",
		     round, "") < 0)
		return;
	if (!s->terminal) {
		fprintf(stderr, "%s\n", line);
	} else {
		int width = terminal_width() - 1, n = (int)strlen(line);
		n = n < width ? n : width;
		fprintf(stderr, "\r%.*s%*s", n, line, s->shown > n ? s->shown - n : 0, "");
		s->shown = n;
		fflush(stderr);
	}
	free(line);
}

struct run_screen *run_screen_create(const struct text_options *o, bool quiet)
{
	struct run_screen *s = calloc(1, sizeof *s);
	if (!s)
		abort();
	s->text = text_create(o);
	s->quiet = quiet;
	s->terminal = isatty(STDERR_FILENO) && !(getenv("TERM") && strcmp(getenv("TERM"), "dumb") == 0);
	return s;
}

struct run_events run_screen_events(struct run_screen *s)
{
	return (struct run_events){.record = on_record, .say = on_say, .progress = on_progress, .ctx = s};
}

void run_screen_finish(struct run_screen *s)
{
	wipe(s);
	if (s->seen)
		text_finish(s->text);
	text_destroy(s->text);
	free(s);
}
