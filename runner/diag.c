#include "diag.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plain.h"

struct note {
	struct note *next;
	struct mark at;
	const char *text;
};

struct message {
	enum severity sev;
	struct mark at;
	const char *text;
	const char *joint, **whose; /* NULL: of nobody in particular */
	size_t n_whose, cap_whose;
	struct note *first, *last;
	int file, order; /* keys of the sort */
};

struct source {
	const char *file, *text;
	size_t n;
};

struct diags {
	struct arena *arena;
	struct message *message;
	size_t n, cap;
	struct source *source;
	size_t n_sources, source_cap;
	int errors, warnings;
	bool dropped; /* the last message was counted only: its notes go too */
};

/* Beyond KEPT messages are counted only, so that a file of nothing but mistakes costs what it is long. */
enum { SHOWN_ERRORS = 20, KEPT = 2000, SHOWN_COLUMNS = 90, SHOWN_WHOSE = 6, TEXT_MAX = 1024 };

struct diags *diags_create(void)
{
	struct arena *a = arena_create();
	struct diags *d = arena_alloc(a, sizeof *d);
	d->arena = a;
	return d;
}

void diags_destroy(struct diags *d)
{
	if (d)
		arena_destroy(d->arena);
}

__attribute__((format(printf, 2, 0))) static const char *format(struct diags *d, const char *fmt, va_list ap)
{
	char buf[TEXT_MAX];
	int n = vsnprintf(buf, sizeof buf, fmt, ap);
	if (n < 0)
		abort();
	if ((size_t)n >= sizeof buf) { /* cut at a character */
		size_t end = sizeof buf - 4;
		while (end && ((unsigned char)buf[end] & 0xC0) == 0x80)
			end--;
		memcpy(buf + end, "...", 4);
	}
	const char *plain = plain_text(d->arena, buf);
	return plain == buf ? arena_strdup(d->arena, buf) : plain;
}

static int file_index(const struct diags *d, const char *file)
{
	for (size_t i = 0; file && i < d->n_sources; i++)
		if (!strcmp(d->source[i].file, file))
			return (int)i;
	return file ? (int)d->n_sources : -1;
}

static bool same_place(const struct mark *a, const struct mark *b)
{
	return a->line == b->line && a->col == b->col &&
	       (a->file == b->file || (a->file && b->file && !strcmp(a->file, b->file)));
}

static bool same_message(const struct message *m, enum severity sev, const struct mark *at, const char *text,
			 const char *joint)
{
	return m->sev == sev && same_place(&m->at, at) && !strcmp(m->text, text) && !m->joint == !joint &&
	       (!joint || !strcmp(m->joint, joint));
}

static void whose_add(struct diags *d, struct message *m, const char *whose)
{
	for (size_t i = 0; i < m->n_whose; i++)
		if (!strcmp(m->whose[i], whose))
			return;
	m->whose = arena_grow(d->arena, m->whose, m->n_whose, &m->cap_whose, sizeof *m->whose);
	m->whose[m->n_whose++] = plain_text(d->arena, arena_strdup(d->arena, whose));
}

/* joint NULL: of nobody in particular. */
__attribute__((format(printf, 6, 0))) static bool add(struct diags *d, enum severity sev, struct mark at,
						      const char *joint, const char *whose, const char *fmt, va_list ap)
{
	d->dropped = d->n >= KEPT;
	if (d->dropped) {
		*(sev == DIAG_ERROR ? &d->errors : &d->warnings) += 1;
		return false;
	}
	const char *text = format(d, fmt, ap);
	for (size_t i = 0; i < d->n; i++) {
		struct message *m = &d->message[i];
		if (same_message(m, sev, &at, text, joint)) {
			/* It becomes the last one, so that a note that follows lands here and, being the same, counts once. */
			struct message moved = *m;
			memmove(m, m + 1, (d->n - i - 1) * sizeof *m);
			d->message[d->n - 1] = moved;
			if (joint)
				whose_add(d, &d->message[d->n - 1], whose);
			return false;
		}
	}
	d->message = arena_grow(d->arena, d->message, d->n, &d->cap, sizeof *d->message);
	struct message *m = &d->message[d->n++];
	*m = (struct message){.sev = sev, .at = at, .text = text, .order = d->errors + d->warnings};
	m->at.file = arena_strdup(d->arena, at.file);
	if (joint) {
		m->joint = arena_strdup(d->arena, joint);
		whose_add(d, m, whose);
	}
	*(sev == DIAG_ERROR ? &d->errors : &d->warnings) += 1;
	return false;
}

bool diag_add(struct diags *d, enum severity sev, struct mark at, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	add(d, sev, at, NULL, NULL, fmt, ap);
	va_end(ap);
	return false;
}

bool diag_add_of(struct diags *d, enum severity sev, struct mark at, const char *joint, const char *whose,
		 const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	add(d, sev, at, joint, whose, fmt, ap);
	va_end(ap);
	return false;
}

void diag_note(struct diags *d, struct mark at, const char *fmt, ...)
{
	if (!d->n || d->dropped)
		return;
	va_list ap;
	va_start(ap, fmt);
	const char *text = format(d, fmt, ap);
	va_end(ap);
	struct message *m = &d->message[d->n - 1];
	for (const struct note *k = m->first; k; k = k->next)
		if (same_place(&k->at, &at) && !strcmp(k->text, text))
			return;
	struct note *note = arena_alloc(d->arena, sizeof *note);
	*note = (struct note){.at = at, .text = text};
	note->at.file = arena_strdup(d->arena, at.file);
	if (m->last)
		m->last->next = note;
	else
		m->first = note;
	m->last = note;
}

void diag_source(struct diags *d, const char *file, const char *text, size_t n)
{
	for (size_t i = 0; i < d->n_sources; i++)
		if (!strcmp(d->source[i].file, file))
			return;
	d->source = arena_grow(d->arena, d->source, d->n_sources, &d->source_cap, sizeof *d->source);
	d->source[d->n_sources++] = (struct source){arena_strdup(d->arena, file), arena_strndup(d->arena, text, n), n};
}

int diags_errors(const struct diags *d)
{
	return d->errors;
}

int diags_warnings(const struct diags *d)
{
	return d->warnings;
}

/* Bytes of a line break at s, 0 for none. The breaks of YAML 1.1, as libyaml counts lines. */
static size_t break_bytes(const char *s, size_t left)
{
	const unsigned char *c = (const unsigned char *)s;
	if (!left)
		return 0;
	if (c[0] == '\n')
		return 1;
	if (c[0] == '\r')
		return left > 1 && c[1] == '\n' ? 2 : 1;
	if (left > 1 && c[0] == 0xC2 && c[1] == 0x85)
		return 2;
	if (left > 2 && c[0] == 0xE2 && c[1] == 0x80 && (c[2] == 0xA8 || c[2] == 0xA9))
		return 3;
	return 0;
}

/* The text of a line, without its break. NULL: no such line, or its file is not known. */
static const char *source_line(const struct diags *d, const struct mark *at, size_t *len)
{
	int f = file_index(d, at->file);
	if (f < 0 || f >= (int)d->n_sources || at->line < 1)
		return NULL;
	const char *s = d->source[f].text, *end = s + d->source[f].n;
	if (end - s >= 3 && !memcmp(s, "\xEF\xBB\xBF", 3))
		s += 3;
	for (int line = 1; line < at->line;) {
		if (s >= end)
			return NULL;
		size_t b = break_bytes(s, (size_t)(end - s));
		line += b > 0;
		s += b ? b : 1;
	}
	const char *stop = s;
	while (stop < end && !break_bytes(stop, (size_t)(end - stop)))
		stop++;
	*len = (size_t)(stop - s);
	return s;
}

static void print_source(const struct diags *d, const struct mark *at, FILE *out, bool colour)
{
	size_t n;
	const char *s = source_line(d, at, &n);
	if (!s || at->col < 1)
		return;
	/* A window of the line, in characters, that holds the place. */
	int first = at->col > SHOWN_COLUMNS - 24 ? at->col - SHOWN_COLUMNS / 2 : 1, col = 1;
	fputs(first > 1 ? "    ..." : "    ", out);
	size_t i = 0;
	/* Columns of the terminal before the place and under it: a character may take two, or none. */
	int before = 0, under = 0;
	for (; i < n && col < first + SHOWN_COLUMNS; col++) {
		bool control;
		size_t w = plain_char(s + i, n - i, &control);
		if (col >= first) {
			const int wide = control ? 1 : plain_columns(s + i, w);
			before += col < at->col ? wide : 0;
			under += col >= at->col && col < at->col + at->len ? wide : 0;
			if (s[i] == '\t')
				fputc(' ', out);
			else if (control)
				fputc('?', out);
			else
				fwrite(s + i, 1, w, out);
		}
		i += w;
	}
	before += at->col > col ? at->col - col : 0; /* past the end of the line */
	fputs(i < n ? "...\n" : "\n", out);
	fprintf(out, "%*s%s^", before + (first > 1 ? 7 : 4), "", colour ? "\033[32m" : "");
	for (int k = 1; k < under; k++)
		fputc('~', out);
	fputs(colour ? "\033[0m\n" : "\n", out);
}

static void print_place(const struct mark *at, FILE *out)
{
	if (!at->file)
		return;
	if (at->line > 0)
		fprintf(out, "%s:%d:%d: ", at->file, at->line, at->col);
	else
		fprintf(out, "%s: ", at->file);
}

/* " of case 'a', 'b' and 'c'", and the end of the line. */
static void print_whose(const struct message *m, FILE *out)
{
	/* One more is as long as its name. */
	const size_t shown = m->n_whose <= SHOWN_WHOSE + 1 ? m->n_whose : SHOWN_WHOSE;
	for (size_t i = 0; i < shown; i++)
		fprintf(out, "%s %s", i == 0 ? m->joint : i + 1 == m->n_whose ? " and" : ",", m->whose[i]);
	if (shown < m->n_whose)
		fprintf(out, " and %zu more", m->n_whose - shown);
	fputc('\n', out);
}

static void print_one(const struct diags *d, const struct message *m, FILE *out, bool colour)
{
	static const char *const word[] = {"error", "warning"}, *const paint[] = {"\033[1;31m", "\033[1;35m"};
	print_place(&m->at, out);
	fprintf(out, "%s%s:%s %s", colour ? paint[m->sev] : "", word[m->sev], colour ? "\033[0m" : "", m->text);
	print_whose(m, out);
	print_source(d, &m->at, out, colour);
	for (const struct note *k = m->first; k; k = k->next) {
		bool elsewhere = k->at.file && !same_place(&k->at, &m->at);
		print_place(elsewhere ? &k->at : &m->at, out);
		fprintf(out, "%snote:%s %s\n", colour ? "\033[1;36m" : "", colour ? "\033[0m" : "", k->text);
		if (elsewhere)
			print_source(d, &k->at, out, colour);
	}
}

static int by_place(const void *pa, const void *pb)
{
	const struct message *a = pa, *b = pb;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->at.line != b->at.line)
		return a->at.line < b->at.line ? -1 : 1;
	if (a->at.col != b->at.col)
		return a->at.col < b->at.col ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

void diags_print(struct diags *d, FILE *out, bool colour)
{
	for (size_t i = 0; i < d->n; i++)
		d->message[i].file = file_index(d, d->message[i].at.file);
	if (d->n)
		qsort(d->message, d->n, sizeof *d->message, by_place);
	int shown = 0;
	for (size_t i = 0; i < d->n; i++)
		if (d->message[i].sev != DIAG_ERROR || ++shown <= SHOWN_ERRORS)
			print_one(d, &d->message[i], out, colour);
	if (d->errors > SHOWN_ERRORS)
		fprintf(out, "and %d more error%s\n", d->errors - SHOWN_ERRORS,
			d->errors == SHOWN_ERRORS + 1 ? "" : "s");
}

/* Optimal string alignment: insert, delete, replace, swap neighbours. Letters of both cases are equal. */
static int distance(const char *a, int n, const char *b, int m)
{
	enum { W = 65 };
	int row[3][W];
	for (int j = 0; j <= m; j++)
		row[0][j] = j;
	for (int i = 1; i <= n; i++) {
		int *now = row[i % 3], *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];
		now[0] = i;
		for (int j = 1; j <= m; j++) {
			int ca = tolower((unsigned char)a[i - 1]), cb = tolower((unsigned char)b[j - 1]);
			int best = last[j - 1] + (ca != cb);
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
			    tolower((unsigned char)a[i - 2]) == cb && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return row[n % 3][m];
}

const char *diag_nearest(const char *word, const char *const *words, int n)
{
	enum { LONGEST = 64 };
	int len = (int)strlen(word);
	if (len > LONGEST)
		return NULL;
	int limit = len / 3 > 1 ? len / 3 : 1, best = limit + 1;
	const char *nearest = NULL;
	for (int i = 0; i < n; i++) {
		int m = (int)strlen(words[i]);
		if (m > LONGEST || abs(m - len) > limit)
			continue;
		int k = distance(word, len, words[i], m);
		/* Something of the word must be left, or every one-letter name would be near every other. */
		if (k < best && k < len) {
			best = k;
			nearest = words[i];
		}
	}
	return nearest;
}
