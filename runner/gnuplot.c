#define _GNU_SOURCE /* pipe2 */
#include "gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct gnuplot {
	FILE *script;
	char *text;
	size_t n_text, n;
	char **svg;
};

struct buffer {
	char *p;
	size_t n, cap;
};

struct gnuplot *gnuplot_create(void)
{
	struct gnuplot *g = calloc(1, sizeof *g);
	if (!g || !(g->script = open_memstream(&g->text, &g->n_text)))
		abort();
	return g;
}

void gnuplot_destroy(struct gnuplot *g)
{
	if (!g)
		return;
	if (g->script)
		fclose(g->script);
	for (size_t i = 0; g->svg && i < g->n; i++)
		free(g->svg[i]);
	free((void *)g->svg);
	free(g->text);
	free(g);
}

FILE *gnuplot_add(struct gnuplot *g, int width, int height)
{
	/* Setting the terminal again ends the picture before. */
	fprintf(g->script,
		"reset\nset terminal svg size %d,%d dynamic noenhanced font 'sans-serif,11' name 'p%zu'\n"
		"set output\n",
		width, height, g->n++);
	return g->script;
}

size_t gnuplot_count(const struct gnuplot *g)
{
	return g->n;
}

void gnuplot_text(FILE *f, const char *s)
{
	fputc('"', f);
	for (; s && *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		/* Backquotes are run by a shell, and what is no character breaks the SVG. */
		fputc(*s == '`' ? '\'' : (unsigned char)*s < 0x20 || *s == 0x7F ? '?' : *s, f);
	}
	fputc('"', f);
}

/* ---- the program ---------------------------------------------------------------------------------------------------- */

static bool put(struct buffer *b, const char *s, size_t n)
{
	if (b->n + n + 1 > b->cap) {
		size_t cap = b->cap ? b->cap : 1 << 16;
		while (cap < b->n + n + 1)
			cap *= 2;
		char *p = realloc(b->p, cap);
		if (!p)
			return false;
		b->p = p;
		b->cap = cap;
	}
	memcpy(b->p + b->n, s, n);
	b->n += n;
	b->p[b->n] = 0;
	return true;
}

static void child(const int in[2], const int out[2], const int err[2], int told)
{
	signal(SIGPIPE, SIG_DFL);
	if (dup2(in[0], 0) >= 0 && dup2(out[1], 1) >= 0 && dup2(err[1], 2) >= 0) {
		/* Its own start-up files could change every picture. */
		execlp("gnuplot", "gnuplot", "-d", "-", (char *)NULL);
	}
	int e = errno;
	if (write(told, &e, sizeof e) < 0)
		_exit(126);
	_exit(127);
}

/* Feeds the script and takes what comes, all at once, so that no pipe fills up. */
static bool talk(int in, int out, int err_fd, const char *script, size_t n, struct buffer *got, struct buffer *words)
{
	struct pollfd p[3] = {{in, POLLOUT, 0}, {out, POLLIN, 0}, {err_fd, POLLIN, 0}};
	char buf[1 << 14];
	size_t sent = 0;
	while (p[1].fd >= 0 || p[2].fd >= 0) {
		if (poll(p, 3, -1) < 0 && errno != EINTR)
			return false;
		if (p[0].fd >= 0 && p[0].revents) {
			ssize_t k = write(in, script + sent, n - sent);
			sent += k > 0 ? (size_t)k : 0;
			if ((k < 0 && errno != EAGAIN && errno != EINTR) || sent == n) {
				close(in);
				p[0].fd = -1;
			}
		}
		for (int i = 1; i < 3; i++) {
			if (p[i].fd < 0 || !p[i].revents)
				continue;
			ssize_t k = read(p[i].fd, buf, sizeof buf);
			if (k > 0 && !put(i == 1 ? got : words, buf, (size_t)k))
				return false;
			if (k == 0 || (k < 0 && errno != EINTR && errno != EAGAIN))
				p[i].fd = -1;
		}
	}
	if (p[0].fd >= 0)
		close(in);
	return true;
}

static void close_pair(int p[2])
{
	for (int i = 0; i < 2; i++)
		if (p[i] >= 0)
			close(p[i]);
}

/* Runs gnuplot over the script; its stdout into got. */
static bool run(const char *script, size_t n, struct buffer *got, bool *found_none, struct err *err)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, said[2] = {-1, -1}, told[2] = {-1, -1}, status = 0, why = 0;
	struct buffer words = {0};
	bool ok = false;
	pid_t pid = -1;
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(said, O_CLOEXEC) < 0 ||
	    pipe2(told, O_CLOEXEC) < 0) {
		err_set(err, "gnuplot: no pipe: %s", strerror(errno));
		goto done;
	}
	fcntl(in[1], F_SETFL, O_NONBLOCK);
	pid = fork();
	if (pid < 0) {
		err_set(err, "gnuplot: cannot start a process: %s", strerror(errno));
		goto done;
	}
	if (pid == 0)
		child(in, out, said, told[1]);
	close(told[1]);
	close(in[0]);
	close(out[1]);
	close(said[1]);
	told[1] = in[0] = out[1] = said[1] = -1;
	if (read(told[0], &why, sizeof why) == (ssize_t)sizeof why) {
		waitpid(pid, &status, 0);
		*found_none = why == ENOENT;
		err_set(err, "gnuplot: %s", strerror(why));
		goto done;
	}
	bool talked = talk(in[1], out[0], said[0], script, n, got, &words);
	in[1] = -1; /* talk closed it */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!talked)
		err_set(err, "gnuplot: %s", strerror(errno));
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		err_set(err, "gnuplot failed: %.600s", words.p ? words.p : "it said nothing");
	else
		ok = true;
done:
	close_pair(in);
	close_pair(out);
	close_pair(said);
	close_pair(told);
	free(words.p);
	return ok;
}

/* ---- its SVG, made to fit a page ------------------------------------------------------------------------------------ */

static const struct {
	const char *from, *to;
} swaps[] = {
	/* Black is the page's own ink. */
	{"'black'", "'currentColor'"},
	{"\"black\"", "\"currentColor\""},
	{"rgb(  0,   0,   0)", "currentColor"},
	{"rgb(0,0,0)", "currentColor"},
	/* Colours 1, 1, n stand for the page's palette. */
	{"rgb(  1,   1,   1)", "var(--p1)"},
	{"rgb(  1,   1,   2)", "var(--p2)"},
	{"rgb(  1,   1,   3)", "var(--p3)"},
	{"rgb(  1,   1,   4)", "var(--p4)"},
	{"rgb(  1,   1,   5)", "var(--p5)"},
	{"rgb(  1,   1,   6)", "var(--p6)"},
	{"rgb(  1,   1,   7)", "var(--grid)"},
	{"rgb(  1,   1,   8)", "var(--bad)"},
	/* Said once, by the page. */
	{" id=\"gnuplot_canvas\"", ""},
	{" font-family=\"sans-serif\"", ""},
	{" stroke-linecap=\"butt\" stroke-linejoin=\"miter\"", ""},
	{"<g fill=\"none\" color=\"white\" stroke=\"currentColor\" stroke-width=\"1.00\">\n</g>\n", ""},
	{"<g fill=\"none\" color=\"currentColor\" stroke=\"currentColor\" stroke-width=\"1.00\">\n</g>\n", ""},
	{"xlink:href", "href"},
};

/* Replaces every `from` in place where `to` is not longer; else in a new string. Takes s. */
static char *swap_all(char *s, const char *from, const char *to)
{
	struct buffer b = {0};
	size_t n = strlen(from), m = strlen(to);
	const char *p = s, *hit;
	if (!strstr(s, from))
		return s;
	bool ok = true;
	for (; (hit = strstr(p, from)); p = hit + n)
		ok &= put(&b, p, (size_t)(hit - p)) && put(&b, to, m);
	ok &= put(&b, p, strlen(p));
	free(s);
	if (!ok)
		abort();
	return b.p;
}

/* Cuts whatever stands from a `from` to the end of the `to` after it. */
static void cut(char *s, const char *from, const char *to)
{
	char *a, *b;
	for (; (a = strstr(s, from)) && (b = strstr(a, to)); s = a)
		memmove(a, b + strlen(to), strlen(b + strlen(to)) + 1);
}

static char *tidy(const char *text, size_t n)
{
	char *s = strndup(text, n), *end;
	if (!s)
		abort();
	cut(s, "<?xml", "?>");
	cut(s, "<title>", "</title>");
	cut(s, "<desc>", "</desc>");
	cut(s, "<defs>", "</defs>");
	for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++)
		s = swap_all(s, swaps[i].from, swaps[i].to);
	char *svg = strstr(s, "<svg");
	if (!svg)
		svg = s + strlen(s);
	memmove(s, svg, strlen(svg) + 1);
	end = strstr(s, "</svg>");
	if (end)
		end[6] = 0;
	return s;
}

bool gnuplot_draw(struct gnuplot *g, bool *found_none, struct err *err)
{
	struct buffer got = {0};
	*found_none = false;
	fputs("unset output\n", g->script);
	fflush(g->script);
	if (!run(g->text, g->n_text, &got, found_none, err)) {
		free(got.p);
		return false;
	}
	g->svg = calloc(g->n + 1, sizeof *g->svg);
	if (!g->svg)
		abort();
	const char *p = got.p ? strstr(got.p, "<?xml") : NULL;
	size_t i = 0;
	for (; p && i < g->n; i++) {
		const char *next = strstr(p + 5, "<?xml");
		g->svg[i] = tidy(p, next ? (size_t)(next - p) : strlen(p));
		p = next;
	}
	free(got.p);
	if (i < g->n)
		return err_set(err, "gnuplot drew %zu of %zu pictures", i, g->n);
	return true;
}

const char *gnuplot_svg(const struct gnuplot *g, size_t i)
{
	return g->svg && i < g->n ? g->svg[i] : NULL;
}

const char *gnuplot_defs(void)
{
	/* The point types in use: disc, ring, triangle. Their numbers are gnuplot's. */
	return "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>"
	       "<circle id=\"gpPt6\" r=\"1\" fill=\"currentColor\"/>"
	       "<circle id=\"gpPt5\" r=\"1\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"0.35\"/>"
	       "<path id=\"gpPt8\" d=\"M0,-1.33 L-1.33,0.67 L1.33,0.67 z\" fill=\"currentColor\"/>"
	       "<path id=\"gpPt4\" d=\"M-1,-1 h2 v2 h-2 z\" fill=\"currentColor\"/>"
	       "</defs></svg>";
}
