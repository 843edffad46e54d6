/* verdict_read: lines to records. One line in memory at a time; a file is never trusted. */
#include "verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "git.h"
#include "infile.h"
#include "plain.h"
#include "record.h"
#include "verdict_samples.h"

/* A cell of 24 arms and 1024 rounds is below 1 MiB. */
enum { LINE_MAX_BYTES = 64 << 20, CHUNK = 1 << 16 };

struct verdict_reader {
	char *path;
	int fd;
	struct git_show *git; /* NULL: not from git */
	char *buf;
	size_t start, end, cap; /* what is read and not yet given */
	bool eof, done, seen_header, seen_footer;
	int64_t line, offset;
};

struct verdict_reader *verdict_open(const char *path, struct err *err)
{
	struct verdict_reader *r = calloc(1, sizeof *r);
	if (!r || !(r->path = strdup(strcmp(path, "-") == 0 ? "standard input" : path))) {
		free(r);
		err_set(err, "%s: out of memory", path);
		return NULL;
	}
	struct stat st;
	const char *colon = strchr(path, ':');
	r->fd = -1;
	if (strcmp(path, "-") == 0) {
		r->fd = STDIN_FILENO;
	} else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		err_set(err, "%s is a folder; name a verdict file", path);
	} else if (colon && colon > path && stat(path, &st) != 0) {
		/* A file of that very name comes first; then REV:path, as git has it. */
		r->git = git_show_open(path, err);
		r->fd = r->git ? git_show_fd(r->git) : -1;
	} else {
		r->fd = infile_open(path, INFILE_STREAM, err);
		if (r->fd < 0)
			err_prefix(err, "%s: cannot open", path);
	}
	if (r->fd < 0) {
		free(r->path);
		free(r);
		return NULL;
	}
	return r;
}

/* Reads more. False: an error of reading. */
static bool more(struct verdict_reader *r, struct err *err)
{
	if (r->start > 0) {
		memmove(r->buf, r->buf + r->start, r->end - r->start);
		r->end -= r->start;
		r->start = 0;
	}
	if (r->cap - r->end < CHUNK) {
		size_t cap = r->cap ? r->cap * 2 : 2 * CHUNK;
		char *p = realloc(r->buf, cap);
		if (!p)
			return err_set(err, "%s: out of memory", r->path);
		r->buf = p;
		r->cap = cap;
	}
	ssize_t got;
	do
		got = read(r->fd, r->buf + r->end, r->cap - r->end);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_set(err, "%s: cannot read: %s", r->path, strerror(errno));
	if (got == 0) {
		r->eof = true;
		struct git_show *git = r->git;
		r->git = NULL;
		if (git) {
			r->fd = -1;
			if (!git_show_close(git, err))
				return err_prefix(err, "%s", r->path);
		}
	}
	r->end += (size_t)got;
	return true;
}

/* The next line's bytes, without its newline; *whole: it had one. False at the end (err untouched) or on an error. */
static bool next_line(struct verdict_reader *r, const char **text, size_t *n, bool *whole, bool *failed,
		      struct err *err)
{
	size_t looked = 0;
	*failed = false;
	for (;;) {
		const char *newline = r->end > r->start + looked
					      ? memchr(r->buf + r->start + looked, '\n', r->end - r->start - looked)
					      : NULL;
		looked = r->end - r->start;
		if (newline || (r->eof && looked > 0)) {
			*text = r->buf + r->start;
			*n = newline ? (size_t)(newline - *text) : looked;
			*whole = newline != NULL;
			r->start += *n + *whole;
			r->line++;
			return true;
		}
		if (r->eof)
			return false;
		if (looked > LINE_MAX_BYTES) {
			*failed = true;
			err_set(err, "%s:%lld: a line longer than %d MiB; this is no verdict file", r->path,
				(long long)r->line + 1, LINE_MAX_BYTES >> 20);
			return false;
		}
		if (!more(r, err)) {
			*failed = true;
			return false;
		}
	}
}

static bool known_status(const json_t *status)
{
	return json_is_string(status) && status_of(json_string_value(status)) != ST_N;
}

static bool check_header(struct verdict_reader *r, const json_t *record, struct err *err)
{
	const json_t *format = json_object_get(record, "format");
	if (r->seen_header)
		return err_set(err, "%s:%lld: a second header: these are two files in one; `assay merge` joins shards",
			       r->path, (long long)r->line);
	if (!json_is_integer(format) || json_integer_value(format) < 1)
		return err_set(err, "%s:%lld: the header has no format version", r->path, (long long)r->line);
	if (json_integer_value(format) > RECORD_FORMAT)
		return err_set(err,
			       "%s:%lld: format %lld is newer than this assay knows (%d); use the assay that wrote it, "
			       "or a newer one",
			       r->path, (long long)r->line, (long long)json_integer_value(format), RECORD_FORMAT);
	r->seen_header = true;
	return true;
}

/* What every record must have, and its place among the others. */
static bool check_record(struct verdict_reader *r, const json_t *record, struct err *err)
{
	const char *kind = json_string_value(json_object_get(record, "kind"));
	if (!kind)
		return err_set(err, "%s:%lld: no \"kind\": not a record of a verdict file", r->path,
			       (long long)r->line);
	if (r->seen_footer)
		return err_set(err, "%s:%lld: a record after the footer", r->path, (long long)r->line);
	if (strcmp(kind, "header") == 0)
		return check_header(r, record, err);
	if (!r->seen_header)
		return err_set(err, "%s:%lld: begins with \"%s\", not with a header", r->path, (long long)r->line,
			       kind);
	if (strcmp(kind, "cell") == 0 || strcmp(kind, "screen") == 0) {
		if (!json_is_string(json_object_get(record, "id")))
			return err_set(err, "%s:%lld: a %s without an id", r->path, (long long)r->line, kind);
	}
	if (strcmp(kind, "cell") == 0 && !known_status(json_object_get(record, "status")))
		return err_set(err, "%s:%lld: a cell without a known status", r->path, (long long)r->line);
	const json_t *cell = strcmp(kind, "cell") == 0 ? record : json_object_get(record, "cell"); /* of a screen */
	if (!verdict_samples_good(cell, err))
		return err_prefix(err, "%s:%lld: %.200s", r->path, (long long)r->line,
				  json_string_value(json_object_get(record, "id")));
	r->seen_footer = strcmp(kind, "footer") == 0;
	return true;
}

/* What a line that is no JSON may be, of the things that happen to files: NULL where it is nothing known. */
static const char *looks_like(const char *text, size_t n)
{
	static const struct {
		const char *begins;
		size_t n;
		const char *words;
	} known[] = {
		{"\x1f\x8b", 2, "compressed by gzip; zcat FILE | assay ... - reads it"},
		{"\x28\xb5\x2f\xfd", 4, "compressed by zstd; zstdcat FILE | assay ... - reads it"},
		{"\xfd"
		 "7zXZ",
		 5, "compressed by xz; xzcat FILE | assay ... - reads it"},
		{"\xef\xbb\xbf", 3, "begins with a byte order mark; a verdict file is UTF-8 without one"},
		{"\xff\xfe", 2, "UTF-16; a verdict file is UTF-8"},
		{"\xfe\xff", 2, "UTF-16; a verdict file is UTF-8"},
		{"<<<<<<< ", 8, "a merge conflict of git; take one side of it whole, or run again"},
		{"version https://git-lfs", 23, "a pointer of git LFS; git lfs pull fetches the file"},
	};
	size_t blank = 0;
	while (blank < n && (text[blank] == ' ' || text[blank] == '\t' || text[blank] == '\r'))
		blank++;
	if (blank == n)
		return "an empty line; a verdict file has a record in each";
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (n >= known[i].n && memcmp(text, known[i].begins, known[i].n) == 0)
			return known[i].words;
	return NULL;
}

enum verdict_got verdict_next(struct verdict_reader *r, json_t **out, struct err *err)
{
	*out = NULL;
	if (r->done)
		return VERDICT_END;
	const char *text;
	size_t n;
	bool whole, failed;
	if (!next_line(r, &text, &n, &whole, &failed, err)) {
		r->done = true;
		if (failed)
			return VERDICT_BAD;
		if (r->line == 0) {
			err_set(err,
				r->fd == STDIN_FILENO ? "%s: nothing came; - can stand for one file only"
						      : "%s: the file is empty",
				r->path);
			return VERDICT_BAD;
		}
		return VERDICT_END;
	}
	json_error_t e;
	json_t *record = plain_record(text, n, &e);
	const char *known = record ? NULL : looks_like(text, n);
	if (!record && !whole && !known) {
		r->done = true;
		return VERDICT_TORN;
	}
	if (known)
		err_set(err, "%s:%lld: %s", r->path, (long long)r->line, known);
	else if (!record)
		err_set(err, "%s:%lld: not a line of JSON: %s at column %d", r->path, (long long)r->line, e.text,
			e.column);
	else if (!check_record(r, record, err)) {
		json_decref(record);
		record = NULL;
	}
	if (!record) {
		r->done = true;
		return VERDICT_BAD;
	}
	r->offset += (int64_t)n + whole;
	*out = record;
	return VERDICT_RECORD;
}

int64_t verdict_line_number(const struct verdict_reader *r)
{
	return r->line;
}

int64_t verdict_offset(const struct verdict_reader *r)
{
	return r->offset;
}

void verdict_finish(struct verdict_reader *r)
{
	if (!r)
		return;
	/* Left early: git dies of the closed pipe, which is no news. */
	if (r->git)
		git_show_close(r->git, NULL);
	else if (r->fd > STDIN_FILENO)
		close(r->fd);
	free(r->buf);
	free(r->path);
	free(r);
}
