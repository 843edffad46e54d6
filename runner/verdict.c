/* verdict: records to lines. Debian's jansson prints seventeen digits of every double, so the line is written here. */
#include "verdict.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verdict_schema.h" /* made by the build from schemas/verdict.schema.json */

/* ---- one line ------------------------------------------------------------------------------------------------------ */

struct line {
	char *text;
	size_t n, cap;
	bool failed;
};

static void put(struct line *l, const char *s, size_t n)
{
	if (l->failed)
		return;
	if (l->cap - l->n <= n) {
		size_t cap = l->cap ? l->cap : 4096;
		while (cap - l->n <= n)
			cap *= 2;
		char *p = realloc(l->text, cap);
		if (!p) {
			l->failed = true;
			return;
		}
		l->text = p;
		l->cap = cap;
	}
	memcpy(l->text + l->n, s, n);
	l->n += n;
	l->text[l->n] = 0;
}

static void put_text(struct line *l, const char *s)
{
	put(l, s, strlen(s));
}

/* Length of the valid UTF-8 sequence at s (n bytes left), 0 if there is none: no overlong form, no surrogate, at most U+10FFFF. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	if (s[0] < 0x80)
		return 1;
	size_t len = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
	if (s[0] < 0xC2 || s[0] > 0xF4 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF0 && s[1] < 0x90) ||
	    (s[0] == 0xF4 && s[1] > 0x8F))
		return 0;
	return len;
}

static void put_string(struct line *l, const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	put(l, "\"", 1);
	for (size_t i = 0; i < n;) {
		size_t len = utf8_length(s + i, n - i);
		if (len == 0) { /* jansson lets none in unless told to; a line stays valid all the same */
			put_text(l, "\\ufffd");
			i++;
			continue;
		}
		if (s[i] == '"' || s[i] == '\\') {
			put(l, "\\", 1);
			put(l, text + i, 1);
		} else if (s[i] == '\n') {
			put_text(l, "\\n");
		} else if (s[i] == '\t') {
			put_text(l, "\\t");
		} else if (s[i] < 0x20 || s[i] == 0x7F) {
			char buf[8];
			snprintf(buf, sizeof buf, "\\u%04x", s[i]);
			put_text(l, buf);
		} else {
			put(l, text + i, len);
		}
		i += len;
	}
	put(l, "\"", 1);
}

static void put_real(struct line *l, double x)
{
	assert(isfinite(x));
	char buf[40];
	/* Denormals carry fewer digits than fifteen. */
	for (int digits = x != 0 && fabs(x) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
		snprintf(buf, sizeof buf, "%.*g", digits, x);
		if (strtod(buf, NULL) == x)
			break;
	}
	/* A double stays one when it is read back. */
	if (!strpbrk(buf, ".en"))
		strcat(buf, ".0");
	put_text(l, buf);
}

static void put_json(struct line *l, const json_t *j)
{
	switch (json_typeof(j)) {
	case JSON_OBJECT: {
		const char *key, *comma = "";
		json_t *value;
		json_t *object = json_incref((json_t *)(uintptr_t)j);
		put(l, "{", 1);
		json_object_foreach(object, key, value)
		{
			put_text(l, comma);
			put_string(l, key, strlen(key));
			put(l, ":", 1);
			put_json(l, value);
			comma = ",";
		}
		put(l, "}", 1);
		json_decref(object);
		break;
	}
	case JSON_ARRAY:
		put(l, "[", 1);
		for (size_t i = 0; i < json_array_size(j); i++) {
			if (i)
				put(l, ",", 1);
			put_json(l, json_array_get(j, i));
		}
		put(l, "]", 1);
		break;
	case JSON_STRING: put_string(l, json_string_value(j), json_string_length(j)); break;
	case JSON_INTEGER: {
		char buf[32];
		snprintf(buf, sizeof buf, "%" JSON_INTEGER_FORMAT, json_integer_value(j));
		put_text(l, buf);
		break;
	}
	case JSON_REAL: put_real(l, json_real_value(j)); break;
	case JSON_TRUE: put_text(l, "true"); break;
	case JSON_FALSE: put_text(l, "false"); break;
	case JSON_NULL: put_text(l, "null"); break;
	}
}

char *verdict_line(const json_t *j)
{
	struct line l = {0};
	put_json(&l, j);
	if (l.failed) {
		free(l.text);
		return NULL;
	}
	return l.text;
}

/* ---- the file ------------------------------------------------------------------------------------------------------ */

struct verdict_writer {
	int fd;
	bool regular, can_resume, made; /* made: there was no such file */
	off_t good; /* length of what is whole; a torn write is taken back to here */
	char *path;
	struct err failed; /* the first failure; empty: none */
};

/* Makes the folders above path. */
static bool make_parents(const char *path, struct err *err)
{
	char *copy = strdup(path);
	if (!copy)
		return err_set(err, "%s: out of memory", path);
	bool ok = true;
	for (char *slash = strchr(copy + 1, '/'); ok && slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(copy, 0777) != 0 && errno != EEXIST)
			ok = err_set(err, "%s: cannot make the folder: %s", copy, strerror(errno));
		*slash = '/';
	}
	free(copy);
	return ok;
}

/* A new name must survive a power cut too. Not every file system can sync a folder; that is no failure. */
static void sync_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		(void)fsync(fd);
		close(fd);
	}
	free(dir);
}

/* Where a resumed run goes on: after the last whole line that is not of the end of a run (aggregates, footer), which the new end
 * says again. Sets *add_newline where that line lacks one. */
static bool resume_offset(int fd, const char *path, off_t *good, bool *add_newline, struct err *err)
{
	struct verdict_reader *r = verdict_open(path, err);
	if (!r)
		return false;
	bool ok = true;
	*good = 0;
	*add_newline = false;
	for (bool more = true; more && ok;) {
		json_t *record = NULL;
		switch (verdict_next(r, &record, err)) {
		case VERDICT_RECORD: {
			const char *kind = json_string_value(json_object_get(record, "kind"));
			if (strcmp(kind, "footer") != 0 && strcmp(kind, "aggregate") != 0)
				*good = (off_t)verdict_offset(r);
			break;
		}
		case VERDICT_BAD: ok = false; break;
		case VERDICT_TORN:
		case VERDICT_END: more = false; break;
		}
		json_decref(record);
	}
	verdict_finish(r);
	char last = '\n';
	if (ok && *good > 0 && pread(fd, &last, 1, *good - 1) != 1)
		ok = err_set(err, "%s: %s", path, strerror(errno));
	*add_newline = last != '\n';
	return ok;
}

static bool open_resumed(struct verdict_writer *w, struct err *err)
{
	bool add_newline;
	if (!resume_offset(w->fd, w->path, &w->good, &add_newline, err))
		return false;
	if (ftruncate(w->fd, w->good) != 0 || lseek(w->fd, 0, SEEK_END) < 0)
		return err_set(err, "%s: cannot drop the footer: %s", w->path, strerror(errno));
	if (add_newline) {
		if (write(w->fd, "\n", 1) != 1)
			return err_set(err, "%s: %s", w->path, strerror(errno));
		w->good++;
	}
	return true;
}

static bool open_path(struct verdict_writer *w, enum verdict_open how, struct err *err)
{
	const char *path = w->path;
	struct stat st;
	bool exists = stat(path, &st) == 0;
	if (exists && S_ISDIR(st.st_mode))
		return err_set(err, "%s is a folder; name a file", path);
	bool special = exists && !S_ISREG(st.st_mode);
	if (!exists && !make_parents(path, err))
		return false;
	/* Resuming reads the file through its own descriptor; a pipe or device has nothing to keep. */
	int flags = O_CLOEXEC | O_APPEND | (special ? O_WRONLY : O_RDWR);
	if (!special)
		flags |= how == VERDICT_NEW ? O_CREAT | O_EXCL : O_CREAT;
	w->fd = open(path, flags, 0666);
	if (w->fd < 0 && errno == EEXIST)
		return err_set(err, "%s exists: --force replaces it, -o names another file", path);
	if (w->fd < 0)
		return err_set(err, "%s: cannot open for writing: %s", path, strerror(errno));
	if (special)
		return true;
	w->regular = true;
	w->made = !exists;
	if (flock(w->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		return err_set(err, "%s is being written by another run", path);
	if (how == VERDICT_RESUME && exists && st.st_size > 0)
		return open_resumed(w, err);
	/* Truncated only now: a file that another run holds is not lost. */
	if (ftruncate(w->fd, 0) != 0)
		return err_set(err, "%s: %s", path, strerror(errno));
	sync_folder(path);
	return true;
}

struct verdict_writer *verdict_create(const char *path, enum verdict_open how, struct err *err)
{
	struct verdict_writer *w = calloc(1, sizeof *w);
	if (!w || !(w->path = strdup(strcmp(path, "-") == 0 ? "standard output" : path))) {
		free(w);
		err_set(err, "%s: out of memory", path);
		return NULL;
	}
	w->fd = -1;
	bool ok;
	if (strcmp(path, "-") == 0) {
		/* Records own the descriptor; whatever else in this process or its workers prints to stdout goes to stderr. */
		fflush(stdout);
		w->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		ok = w->fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
		if (!ok)
			err_set(err, "standard output: %s", strerror(errno));
	} else {
		ok = open_path(w, how, err);
	}
	if (!ok) {
		if (w->fd >= 0)
			close(w->fd);
		free(w->path);
		free(w);
		return NULL;
	}
	return w;
}

void verdict_can_resume(struct verdict_writer *w)
{
	w->can_resume = true;
}

bool verdict_begun(const struct verdict_writer *w)
{
	return w->good > 0;
}

/* What can be done about it, and only what this verb can do. */
static const char *remedy(const struct verdict_writer *w, int code)
{
	const bool goes_on = w->can_resume && verdict_begun(w);
	if (code == EPIPE)
		return "; the reader of the pipe has gone";
	if (!w->regular)
		return "";
	if (code == ENOSPC || code == EDQUOT)
		return goes_on ? "; what is written is whole: make room and go on with --resume"
			       : "; make room and do it again";
	if (code == EFBIG)
		return goes_on ? "; what is written is whole: raise the limit (ulimit -f) and go on with --resume"
			       : "; raise the limit (ulimit -f) and do it again";
	return goes_on ? "; what is written is whole: --resume goes on with it" : "";
}

static bool write_failed(struct verdict_writer *w, int code, struct err *err)
{
	err_set(&w->failed, "%s: cannot write: %s%s", w->path, strerror(code), remedy(w, code));
	if (w->regular)
		(void)!ftruncate(w->fd, w->good);
	return err_set(err, "%s", w->failed.text);
}

bool verdict_write(struct verdict_writer *w, const json_t *record, struct err *err)
{
	if (w->failed.text[0])
		return err_set(err, "%s", w->failed.text);
	char *text = verdict_line(record);
	if (!text)
		return err_set(err, "%s: out of memory", w->path);
	size_t n = strlen(text);
	text[n++] = '\n'; /* in place of the NUL: one write a line, so that a kill leaves whole lines */
	for (size_t done = 0; done < n;) {
		ssize_t got = write(w->fd, text + done, n - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int code = errno;
			free(text);
			return write_failed(w, code, err);
		}
		done += (size_t)got;
	}
	free(text);
	int rc;
	do
		rc = fsync(w->fd);
	while (rc != 0 && errno == EINTR);
	/* Pipes and terminals cannot be synced. */
	if (rc != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
		return write_failed(w, errno, err);
	w->good += (off_t)n;
	return true;
}

bool verdict_close(struct verdict_writer *w, struct err *err)
{
	if (!w)
		return true;
	bool ok = w->failed.text[0] == 0 || err_set(err, "%s", w->failed.text);
	if (close(w->fd) != 0 && ok)
		ok = err_set(err, "%s: cannot close: %s", w->path, strerror(errno));
	/* An empty file would be in the way of the next try. */
	if (!ok && w->made && !verdict_begun(w))
		unlink(w->path);
	free(w->path);
	free(w);
	return ok;
}

json_t *verdict_schema(void)
{
	json_error_t e;
	json_t *j = json_loadb((const char *)verdict_schema_text, sizeof verdict_schema_text, 0, &e);
	assert(j);
	return j;
}
