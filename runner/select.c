#include "select.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_text[] = {
	[SELECT_EQ] = "=",  [SELECT_NE] = "!=", [SELECT_LT] = "<",
	[SELECT_LE] = "<=", [SELECT_GT] = ">",  [SELECT_GE] = ">=",
};

struct span {
	const char *s;
	size_t n;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct span trim(struct span x)
{
	while (x.n && is_blank(x.s[0])) {
		x.s++;
		x.n--;
	}
	while (x.n && is_blank(x.s[x.n - 1]))
		x.n--;
	return x;
}

/* A whole decimal or hexadecimal number: -?D[.D][eD] or 0xH. Anything else is text to be matched as a glob. */
static bool parse_number(const char *s, size_t n, double *out)
{
	char buf[64];
	if (n == 0 || n >= sizeof buf)
		return false;
	memcpy(buf, s, n);
	buf[n] = 0;
	const char *p = buf;
	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
		if (!p[2] || p[2 + strspn(p + 2, "0123456789abcdefABCDEF")] || n > 18)
			return false;
		*out = (double)strtoull(p, NULL, 16);
		return true;
	}
	if (*p == '-' || *p == '+')
		p++;
	size_t whole = strspn(p, "0123456789");
	if (!whole)
		return false;
	p += whole;
	if (*p == '.') {
		size_t frac = strspn(++p, "0123456789");
		if (!frac)
			return false;
		p += frac;
	}
	if (*p == 'e' || *p == 'E') {
		p++;
		if (*p == '-' || *p == '+')
			p++;
		size_t digits = strspn(p, "0123456789");
		if (!digits || digits > 3)
			return false;
		p += digits;
	}
	if (*p)
		return false;
	*out = strtod(buf, NULL);
	return true;
}

static bool key_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Recognises an operator at s; 0: none. */
static size_t parse_op(const char *s, enum select_op *op)
{
	switch (s[0]) {
	case '=': *op = SELECT_EQ; return 1;
	case '!': *op = SELECT_NE; return s[1] == '=' ? 2 : 0;
	case '<': *op = s[1] == '=' ? SELECT_LE : SELECT_LT; return s[1] == '=' ? 2 : 1;
	case '>': *op = s[1] == '=' ? SELECT_GE : SELECT_GT; return s[1] == '=' ? 2 : 1;
	}
	return 0;
}

static bool parse_alternative(struct arena *a, struct span x, struct select_alternative *alt, struct err *err)
{
	x = trim(x);
	if (x.n >= 2 && x.s[0] == '"' && x.s[x.n - 1] == '"') {
		x.s++;
		x.n -= 2;
	}
	if (!x.n)
		return err_set(err, "an empty pattern; write a glob, a number or a range A..B");
	if (memchr(x.s, '"', x.n))
		return err_set(err, "a quote within the pattern '%.*s'; quotes stand around the whole of it", (int)x.n,
			       x.s);
	alt->glob = arena_strndup(a, x.s, x.n);
	if (parse_number(x.s, x.n, &alt->lo)) {
		alt->is_number = true;
		alt->hi = alt->lo;
		return true;
	}
	const char *dots = strstr(alt->glob, "..");
	if (!dots)
		return true;
	size_t left = (size_t)(dots - alt->glob);
	const char *right = dots + 2;
	bool has_lo = parse_number(alt->glob, left, &alt->lo);
	bool has_hi = parse_number(right, strlen(right), &alt->hi);
	if ((has_lo && !*right) || (has_hi && !left))
		return err_set(err, "the range '%s' lacks an end; write A..B, or %s", alt->glob,
			       has_lo ? "KEY>=A for no upper end" : "KEY<=B for no lower end");
	if (has_lo != has_hi)
		return err_set(err, "the range '%s' wants a number on both sides of ..", alt->glob);
	if (!has_lo)
		return true;
	if (alt->lo > alt->hi)
		return err_set(err, "the range '%s' is empty; write the smaller number first: %s..%.*s", alt->glob,
			       right, (int)left, alt->glob);
	alt->is_range = true;
	return true;
}

/* The alternatives of a pattern: [A, B], or A|B. */
static bool parse_pattern(struct arena *a, struct span x, struct select_term *t, struct err *err)
{
	char divider = '|';
	x = trim(x);
	if (x.n && x.s[0] == '[') {
		if (x.s[x.n - 1] != ']')
			return err_set(err, "text after the list '%.*s'; end it at ]", (int)x.n, x.s);
		divider = ',';
		x.s++;
		x.n -= 2;
	} else if (x.n >= 2 && x.s[0] == '"' && x.s[x.n - 1] == '"' && !memchr(x.s + 1, '"', x.n - 2)) {
		x.s++;
		x.n -= 2;
	}
	struct select_alternative *alt = NULL;
	size_t cap = 0;
	int n = 0;
	for (size_t from = 0;; n++) {
		size_t to = from;
		bool quoted = false;
		for (; to < x.n && (quoted || x.s[to] != divider); to++)
			if (x.s[to] == '"')
				quoted = !quoted;
		alt = arena_grow(a, alt, (size_t)n, &cap, sizeof *alt);
		memset(&alt[n], 0, sizeof alt[n]);
		if (!parse_alternative(a, (struct span){x.s + from, to - from}, &alt[n], err))
			return false;
		if (to == x.n)
			break;
		from = to + 1;
	}
	t->alt = alt;
	t->n_alt = n + 1;
	if (t->op == SELECT_EQ || t->op == SELECT_NE)
		return true;
	if (t->n_alt > 1)
		return err_set(err, "'%s' compares with one number, here are %d alternatives", op_text[t->op],
			       t->n_alt);
	if (!alt[0].is_number)
		return err_set(err, "'%s' compares numbers, '%s' is none", op_text[t->op], alt[0].glob);
	return true;
}

static void append(struct arena *a, struct selector *s, struct select_term t)
{
	/* Selectors are short; an array anew for each term keeps the struct without a capacity. */
	struct select_term *term = arena_array(a, (size_t)s->n_terms + 1, sizeof *term);
	if (s->n_terms)
		memcpy(term, s->term, (size_t)s->n_terms * sizeof *term);
	term[s->n_terms++] = t;
	s->term = term;
}

static bool check_key(const char *key, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (!key_char(key[i]))
			return err_set(err, "'%.*s' is no key; keys are made of letters, digits, _ and .", (int)n, key);
	return true;
}

/* What follows an operator must not look like the rest of one: ==, =<, <>. */
static bool check_op(enum select_op op, struct span after, struct err *err)
{
	if (!after.n || !strchr("=<>", after.s[0]))
		return true;
	const char *right = after.s[0] == '=' ? op_text[op] : after.s[0] == '<' ? "<=" : ">=";
	return err_set(err, "'%s%c' is no operator; write '%s'", op_text[op], after.s[0], right);
}

bool selector_add(struct arena *a, struct selector *s, const char *key, const char *pattern, struct err *err)
{
	struct select_term t = {.op = SELECT_EQ};
	if (!*key)
		return err_set(err, "an empty key");
	if (!check_key(key, strlen(key), err))
		return false;
	struct span x = trim((struct span){pattern, strlen(pattern)});
	enum select_op op;
	size_t len = x.n ? parse_op(x.s, &op) : 0;
	if (len) {
		t.op = op;
		x.s += len;
		x.n -= len;
		if (!check_op(op, x, err))
			return false;
	}
	t.key = arena_strdup(a, key);
	if (!parse_pattern(a, x, &t, err))
		return false;
	append(a, s, t);
	return true;
}

/* The end of a term in text: the next blank or comma outside quotes and brackets. *open: what is not closed, or 0. */
static size_t term_end(const char *s, char *open)
{
	size_t i = 0;
	int depth = 0;
	bool quoted = false;
	for (; s[i]; i++) {
		if (s[i] == '"')
			quoted = !quoted;
		else if (!quoted && s[i] == '[')
			depth++;
		else if (!quoted && s[i] == ']' && depth)
			depth--;
		else if (!quoted && !depth && (is_blank(s[i]) || s[i] == ','))
			break;
	}
	*open = quoted ? '"' : depth ? '[' : 0;
	return i;
}

static bool at(struct err *err, const char *text, const char *place)
{
	return err_prefix(err, "at %d", (int)(place - text) + 1);
}

static bool parse_term(struct arena *a, const char *text, struct span x, struct selector *out, struct err *err)
{
	struct select_term t = {0};
	size_t k = 0, len;
	while (k < x.n && key_char(x.s[k]))
		k++;
	if (k == x.n || !(len = parse_op(x.s + k, &t.op))) {
		if (k < x.n && strchr(":~", x.s[k]) && k)
			err_set(err, "'%c' is no operator; write %.*s=%.*s", x.s[k], (int)k, x.s, (int)(x.n - k - 1),
				x.s + k + 1);
		else if (k < x.n && check_key(x.s, strcspn(x.s, "=<>! ,"), err))
			err_set(err, "'%.*s' has no operator; write KEY=PATTERN, or one of != < <= > >=", (int)x.n,
				x.s);
		else if (k == x.n)
			err_set(err, "'%.*s' has no operator; write KEY=PATTERN without blanks, or one of != < <= > >=",
				(int)x.n, x.s);
		return at(err, text, k < x.n ? x.s + k : x.s);
	}
	const char *after = x.s + k + len;
	size_t n = x.n - k - len;
	if (!k) {
		err_set(err, "no key before '%s'; write KEY%sPATTERN, without blanks", op_text[t.op], op_text[t.op]);
		return at(err, text, x.s);
	}
	if (!check_op(t.op, (struct span){after, n}, err))
		return at(err, text, x.s + k);
	t.key = arena_strndup(a, x.s, k);
	if (!parse_pattern(a, (struct span){after, n}, &t, err))
		return at(err, text, after);
	append(a, out, t);
	return true;
}

bool selector_parse(struct arena *a, const char *text, struct selector *out, struct err *err)
{
	*out = (struct selector){0};
	const char *p = text;
	bool comma = true; /* a term may not begin with one */
	for (;;) {
		while (is_blank(*p) || (*p == ',' && !comma)) {
			comma |= *p == ',';
			p++;
		}
		if (*p == ',') {
			err_set(err, "a term is missing before ','; write KEY=PATTERN");
			return at(err, text, p);
		}
		if (!*p)
			break;
		char open;
		size_t n = term_end(p, &open);
		if (open) {
			err_set(err, "%c is not closed", open);
			const char *place = strchr(p, open);
			return at(err, text, place ? place : p);
		}
		if (!parse_term(a, text, (struct span){p, n}, out, err))
			return false;
		p += n;
		comma = false;
	}
	if (!out->n_terms)
		return err_set(err, "at 1: an empty selector; write KEY=PATTERN");
	if (comma) {
		err_set(err, "a term is missing after the last ','");
		return at(err, text, p);
	}
	return true;
}

int selector_specificity(const struct selector *s)
{
	int n = 0;
	for (int i = 0; i < s->n_terms; i++) {
		int j = 0;
		while (j < i && strcmp(s->term[j].key, s->term[i].key) != 0)
			j++;
		n += j == i;
	}
	return n;
}

bool select_glob(const char *g, const char *s)
{
	const char *star = NULL, *resume = NULL;
	while (*s) {
		if (*g == '*') {
			star = g++;
			resume = s;
		} else if (*g == '?' || *g == *s) {
			g++;
			s++;
		} else if (star) {
			g = star + 1;
			s = ++resume;
		} else {
			return false;
		}
	}
	while (*g == '*')
		g++;
	return !*g;
}

static bool alternative_match(const struct select_alternative *alt, const char *value)
{
	double v;
	if ((alt->is_number || alt->is_range) && parse_number(value, strlen(value), &v))
		return alt->lo <= v && v <= alt->hi;
	return !alt->is_range && select_glob(alt->glob, value);
}

static bool value_match(const struct select_term *t, const char *value)
{
	double v;
	if (t->op == SELECT_EQ || t->op == SELECT_NE) {
		for (int i = 0; i < t->n_alt; i++)
			if (alternative_match(&t->alt[i], value))
				return true;
		return false;
	}
	if (!parse_number(value, strlen(value), &v))
		return false;
	switch (t->op) {
	case SELECT_LT: return v < t->alt[0].lo;
	case SELECT_LE: return v <= t->alt[0].lo;
	case SELECT_GT: return v > t->alt[0].lo;
	default: return v >= t->alt[0].lo;
	}
}

static bool term_match(const struct select_term *t, const void *subject, select_get *get)
{
	char buf[512];
	bool has = false, any = false;
	for (int i = 0; !any; i++) {
		const char *value = get(subject, t->key, i, buf, sizeof buf);
		if (!value)
			break;
		has = true;
		any = value_match(t, value);
	}
	return has && (t->op == SELECT_NE ? !any : any);
}

bool selector_match(const struct selector *s, const void *subject, select_get *get)
{
	for (int i = 0; i < s->n_terms; i++)
		if (!term_match(&s->term[i], subject, get))
			return false;
	return true;
}

const char *selector_text(struct arena *a, const struct selector *s)
{
	const char *text = "";
	for (int i = 0; i < s->n_terms; i++) {
		const struct select_term *t = &s->term[i];
		const char *pattern = "";
		for (int k = 0; k < t->n_alt; k++)
			pattern = arena_printf(a, "%s%s%s", pattern, k ? "|" : "", t->alt[k].glob);
		const char *quote = strpbrk(pattern, " \t,[]") ? "\"" : "";
		text = arena_printf(a, "%s%s%s%s%s%s%s", text, i ? "," : "", t->key, op_text[t->op], quote, pattern,
				    quote);
	}
	return text;
}

const char *selector_unknown_key(const struct selector *s, bool (*known)(const void *ctx, const char *key),
				 const void *ctx)
{
	for (int i = 0; i < s->n_terms; i++)
		if (!known(ctx, s->term[i].key))
			return s->term[i].key;
	return NULL;
}
