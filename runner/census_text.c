/* census_text: what disassemblers write, line by line. Anything may stand there: a line that is no instruction counts for nothing. */
#include <ctype.h>
#include <string.h>

#include "census.h"

struct line {
	const char *at, *end;
};

static bool next_line(const char **at, const char *end, struct line *l)
{
	if (*at >= end)
		return false;
	const char *nl = memchr(*at, '\n', (size_t)(end - *at));
	l->at = *at;
	l->end = nl ? nl : end;
	*at = nl ? nl + 1 : end;
	return true;
}

static void skip_blanks(struct line *l)
{
	while (l->at < l->end && (*l->at == ' ' || *l->at == '\t'))
		l->at++;
}

static bool skip_text(struct line *l, const char *text)
{
	const size_t n = strlen(text);
	if ((size_t)(l->end - l->at) < n || memcmp(l->at, text, n) != 0)
		return false;
	l->at += n;
	return true;
}

static size_t word_length(const struct line *l)
{
	size_t n = 0;
	while (l->at + n < l->end && !isspace((unsigned char)l->at[n]) && l->at[n] != ';')
		n++;
	return n;
}

static bool word_is(const struct line *l, size_t n, const char *word)
{
	return strlen(word) == n && memcmp(l->at, word, n) == 0;
}

static void count(struct census *c, int class)
{
	c->total++;
	if (class >= 0)
		c->count[class]++;
}

/* ---- SASS ---------------------------------------------------------------------------------------------------------- */

/* A slash, a star, hexadecimal digits, a star, a slash. */
static bool skip_address(struct line *l)
{
	struct line x = *l;
	if (!skip_text(&x, "/*"))
		return false;
	const char *digits = x.at;
	while (x.at < x.end && isxdigit((unsigned char)*x.at))
		x.at++;
	if (x.at == digits || !skip_text(&x, "*/"))
		return false;
	*l = x;
	return true;
}

/* An instruction's mnemonic: after the address, a brace of dual issue, a predicate. */
static bool sass_instruction(struct line l, struct census *out)
{
	if (!skip_address(&l))
		return false;
	skip_blanks(&l);
	if (skip_text(&l, "{"))
		skip_blanks(&l);
	if (l.at < l.end && *l.at == '@') {
		l.at += word_length(&l);
		skip_blanks(&l);
	}
	const size_t n = word_length(&l);
	if (n == 0 || !isupper((unsigned char)l.at[0]))
		return false; /* the second line of an instruction holds its other half alone */
	count(out, census_class_sass(l.at, n));
	return true;
}

/* Where the text says of what function the lines are. */
struct where {
	bool in_arch, in_function;
	bool taken; /* the function was there and is over */
};

/* "Function : NAME" of cuobjdump; ".text.NAME:" of nvdisasm; "arch = sm_90a" and "code for sm_90a" of the former, ".target sm_90a" of both. */
static void heading(struct line l, const char *function, const char *arch, struct where *w)
{
	bool named = skip_text(&l, "Function : "), nv = !named && skip_text(&l, ".text.");
	if (named || nv) {
		size_t n = word_length(&l);
		if (nv && (n == 0 || l.at[n - 1] != ':'))
			return; /* mentioned, not begun */
		n -= nv;
		w->taken |= w->in_function;
		w->in_function = !w->taken && (!function || word_is(&l, n, function));
		return;
	}
	if (skip_text(&l, "arch = ") || skip_text(&l, "code for ") || skip_text(&l, ".target\t") ||
	    skip_text(&l, ".target ")) {
		skip_blanks(&l);
		w->in_arch = !arch || word_is(&l, word_length(&l), arch);
	}
}

int64_t census_parse_sass(const char *text, size_t bytes, const char *function, const char *arch, struct census *out)
{
	const char *at = text, *end = text + bytes;
	struct where w = {.in_arch = arch == NULL, .in_function = function == NULL};
	const int64_t before = out->total;
	for (struct line l; next_line(&at, end, &l);) {
		skip_blanks(&l);
		if (w.in_arch && w.in_function && sass_instruction(l, out))
			continue;
		if (l.at < l.end && *l.at != '/')
			heading(l, function, arch, &w);
		if (!function)
			w.in_function = true, w.taken = false;
	}
	return out->total - before;
}

/* ---- objdump ------------------------------------------------------------------------------------------------------- */

static bool is_prefix(const struct line *l, size_t n)
{
	static const char *const prefixes[] = {"lock", "rep", "repz", "repnz", "bnd", "notrack", "data16",
					       "cs",   "ds",  "es",   "fs",    "gs",  "ss"};
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (word_is(l, n, prefixes[i]))
			return true;
	return false;
}

int64_t census_parse_objdump(const char *text, size_t bytes, struct census *out)
{
	const char *at = text, *end = text + bytes;
	const int64_t before = out->total;
	for (struct line l; next_line(&at, end, &l);) {
		char operands[160];
		skip_blanks(&l);
		const char *digits = l.at;
		while (l.at < l.end && isxdigit((unsigned char)*l.at))
			l.at++;
		if (l.at == digits || !skip_text(&l, ":\t"))
			continue;
		skip_blanks(&l);
		size_t n = word_length(&l);
		while (n > 0 && is_prefix(&l, n)) {
			l.at += n;
			skip_blanks(&l);
			n = word_length(&l);
		}
		if (n == 0 || !islower((unsigned char)l.at[0]))
			continue; /* "(bad)", or bytes alone */
		struct line rest = {l.at + n, l.end};
		size_t k = (size_t)(rest.end - rest.at);
		k = k < sizeof operands ? k : sizeof operands - 1;
		memcpy(operands, rest.at, k);
		operands[k] = 0;
		count(out, census_class_host(l.at, n, operands));
	}
	return out->total - before;
}

json_t *census_json(const struct census *c, const char *tool)
{
	json_t *o = json_object(), *counts = json_object();
	for (int i = 0; i < census_classes(); i++)
		if (c->count[i] > 0)
			json_object_set_new(counts, census_class_name(i), json_integer(c->count[i]));
	json_object_set_new(o, "tool", json_string(tool));
	json_object_set_new(o, "instructions", json_integer(c->total));
	json_object_set_new(o, "counts", counts);
	return o;
}
