/* table_csv: a serving table with a head line: kernel (may be left out), the keys, arm. */
#include <stdio.h>
#include <string.h>

#include "table_build.h"

enum { MAX_COLUMNS = 10 };

struct cell_text {
	const char *text; /* blanks around it taken off, quotes undone */
	struct mark at;
};

struct columns {
	int n, kernel, arm; /* -1: none */
	int key[MAX_COLUMNS]; /* column -> index of the key, -1 */
	const char *name[MAX_COLUMNS];
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* One field at *p, which moves behind it and its comma (or to the end). False: a quote without its end, or text after it. */
static bool read_field(struct arena *a, const char *file, int line, const char *start, const char **p, const char *end,
		       struct cell_text *out)
{
	const char *s = *p;
	while (s < end && is_blank(*s))
		s++;
	const char *from = s;
	char *text = arena_strndup(a, s, (size_t)(end - s));
	size_t n = 0;
	bool ok = true;
	if (s < end && *s == '"') {
		for (s++; s < end && (*s != '"' || (s + 1 < end && s[1] == '"')); s++) {
			if (*s == '"')
				s++;
			text[n++] = *s;
		}
		ok = s < end;
		s += ok;
		while (s < end && is_blank(*s))
			s++;
		ok &= s == end || *s == ',';
		while (s < end && *s != ',')
			s++;
	} else {
		while (s < end && *s != ',')
			text[n++] = *s++;
		while (n && is_blank(text[n - 1]))
			n--;
	}
	text[n] = 0;
	int width = (int)(s - from);
	*out = (struct cell_text){text,
				  {.file = file,
				   .line = line,
				   .col = (int)(from - start) + 1,
				   .len = width ? width : 1}};
	*p = s < end ? s + 1 : end + 1; /* end + 1: no comma follows */
	return ok;
}

/* Fields of a line; -1 where an error was added. */
static int read_line(struct table_builder *b, int line, const char *start, const char *end, struct cell_text *field)
{
	int n = 0;
	for (const char *p = start; p <= end;) {
		struct cell_text f;
		if (!read_field(b->a, b->t->path, line, start, &p, end, &f)) {
			diag_add(b->d, DIAG_ERROR, f.at,
				 "a quote that does not end at a comma; write \"…\" around the whole value");
			return -1;
		}
		if (n == MAX_COLUMNS) {
			diag_add(b->d, DIAG_ERROR, f.at, "more than %d columns", MAX_COLUMNS);
			return -1;
		}
		field[n++] = f;
	}
	return n;
}

static bool read_names(struct table_builder *b, const struct cell_text *field, int n, struct columns *c)
{
	*c = (struct columns){.n = n, .kernel = -1, .arm = -1};
	for (int i = 0; i < n; i++) {
		const char *name = field[i].text;
		c->name[i] = name;
		c->key[i] = -1;
		int *special = strcmp(name, "kernel") == 0 ? &c->kernel : strcmp(name, "arm") == 0 ? &c->arm : NULL;
		if (!*name)
			return diag_add(b->d, DIAG_ERROR, field[i].at, "a column without a name");
		if (special && *special >= 0)
			return diag_add(b->d, DIAG_ERROR, field[i].at, "column '%s' stands twice", name);
		if (special) {
			*special = i;
			continue;
		}
		c->key[i] = b->t->n_keys;
		if (!table_add_key(b, name, field[i].at))
			return false;
	}
	return c->arm >= 0 ||
	       diag_add(b->d, DIAG_ERROR, field[0].at, "the head line lacks the column 'arm'; write kernel,t_q,arm");
}

static void read_row(struct table_builder *b, const struct columns *c, const struct cell_text *field, int n)
{
	struct table_row row = {.mark = field[0].at};
	int defaults = 0;
	if (n != c->n) {
		diag_add(b->d, DIAG_ERROR, field[n < c->n ? n - 1 : c->n].at, "%d values in a table of %d columns", n,
			 c->n);
		return;
	}
	row.mark.len = field[n - 1].at.col + field[n - 1].at.len - field[0].at.col;
	row.arm = field[c->arm].text;
	row.kernel = c->kernel >= 0 && *field[c->kernel].text ? field[c->kernel].text : NULL;
	if (!*row.arm) {
		diag_add(b->d, DIAG_ERROR, field[c->arm].at, "the row lacks its arm");
		return;
	}
	for (int i = 0; i < n; i++) {
		const char *text = field[i].text;
		struct err why;
		if (c->key[i] < 0)
			continue;
		if (!*text || strcmp(text, "*") == 0 || strcmp(text, "default") == 0) {
			defaults++;
		} else if (!table_number(text, &row.key[c->key[i]], &why)) {
			diag_add(b->d, DIAG_ERROR, field[i].at, "%s", why.text);
			return;
		}
	}
	row.is_default = defaults == b->t->n_keys;
	if (defaults && !row.is_default) {
		diag_add(b->d, DIAG_ERROR, row.mark,
			 "the row lacks some of its keys; give every key, or none for the default row");
		return;
	}
	table_add_row(b, row);
}

/* "# lookup: floor" says how points between keys are looked up; other comments are skipped. */
static void read_comment(struct table_builder *b, int line, const char *start, const char *end)
{
	const char *s = start + 1;
	while (s < end && is_blank(*s))
		s++;
	static const char word[] = "lookup:";
	if ((size_t)(end - s) < sizeof word - 1 || memcmp(s, word, sizeof word - 1) != 0)
		return;
	s += sizeof word - 1;
	while (s < end && is_blank(*s))
		s++;
	while (end > s && is_blank(end[-1]))
		end--;
	struct mark at = {.file = b->t->path, .line = line, .col = (int)(s - start) + 1, .len = (int)(end - s)};
	table_set_lookup(b, arena_strndup(b->a, s, (size_t)(end - s)), at);
}

const struct table *table_from_csv(struct arena *a, const char *path, const char *text, size_t n, struct diags *d)
{
	struct table_builder b = {.a = a, .d = d, .t = arena_alloc(a, sizeof *b.t)};
	struct columns columns = {.n = 0};
	int before = diags_errors(d);
	b.t->path = arena_strdup(a, path);
	b.place = (struct mark){.file = b.t->path, .line = 1, .col = 1, .len = 1};
	diag_source(d, b.t->path, text, n);
	const char *end = text + n;
	int line = 0;
	for (const char *s = text, *next; s < end; s = next) {
		const char *eol = memchr(s, '\n', (size_t)(end - s));
		next = eol ? eol + 1 : end;
		eol = eol ? eol : end;
		if (eol > s && eol[-1] == '\r')
			eol--;
		line++;
		const char *first = s;
		while (first < eol && is_blank(*first))
			first++;
		if (first == eol)
			continue;
		if (*first == '#') {
			read_comment(&b, line, s, eol);
			continue;
		}
		struct cell_text field[MAX_COLUMNS] = {{0}};
		int fields = read_line(&b, line, s, eol, field);
		if (fields < 0)
			continue;
		if (columns.n)
			read_row(&b, &columns, field, fields);
		else if (!read_names(&b, field, fields, &columns))
			return NULL;
	}
	return table_finish(&b, before);
}
