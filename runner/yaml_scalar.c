#include "yaml_scalar.h"

#include <ctype.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A decimal as written: (-) digits [. digits] [e exponent]. */
struct decimal {
	bool negative, plain; /* plain: neither fraction nor exponent */
	bool too_long; /* more digits than fit */
	uint64_t digits;
	int exponent; /* value = digits * 10^exponent */
};

enum { EXPONENT_MAX = 400 };

/* Reads the longest decimal at the start of s by the strict form (no leading zero, digits on both sides of the point). Returns the
 * bytes read, 0 for none. */
static size_t decimal_read(const char *s, struct decimal *d)
{
	*d = (struct decimal){.plain = true};
	size_t i = s[0] == '-';
	d->negative = i > 0;
	if (!isdigit((unsigned char)s[i]) || (s[i] == '0' && isdigit((unsigned char)s[i + 1])))
		return 0;
	for (bool fraction = false;; i++) {
		if (s[i] == '.' && !fraction && isdigit((unsigned char)s[i + 1])) {
			fraction = true;
			d->plain = false;
			continue;
		}
		if (!isdigit((unsigned char)s[i]))
			break;
		uint64_t digit = (uint64_t)(s[i] - '0');
		if (d->digits > (UINT64_MAX - digit) / 10)
			d->too_long = true;
		else
			d->digits = d->digits * 10 + digit;
		d->exponent -= fraction;
	}
	if (s[i] == 'e' || s[i] == 'E') {
		size_t k = i + 1;
		bool minus = s[k] == '-';
		k += s[k] == '-' || s[k] == '+';
		if (isdigit((unsigned char)s[k])) {
			int e = 0;
			for (; isdigit((unsigned char)s[k]); k++)
				e = e < EXPONENT_MAX ? e * 10 + (s[k] - '0') : e;
			d->exponent += minus ? -e : e;
			d->plain = false;
			i = k;
		}
	}
	return i;
}

enum exact { EXACT, NOT_WHOLE, TOO_LARGE };

/* digits * unit * 10^exponent as a whole number. */
static enum exact decimal_times(const struct decimal *d, uint64_t unit, uint64_t *out)
{
	uint64_t v;
	int e = d->exponent;
	if (d->too_long)
		return TOO_LARGE;
	uint64_t digits = d->digits;
	for (; e < 0 && digits % 10 == 0 && digits; e++)
		digits /= 10;
	if (!digits) {
		*out = 0;
		return EXACT;
	}
	if (__builtin_mul_overflow(digits, unit, &v))
		return TOO_LARGE;
	for (; e < 0; e++) {
		if (v % 10)
			return NOT_WHOLE;
		v /= 10;
	}
	for (; e > 0; e--)
		if (__builtin_mul_overflow(v, (uint64_t)10, &v))
			return TOO_LARGE;
	*out = v;
	return EXACT;
}

static bool only(const char *s, const char *set)
{
	return *s && s[strspn(s, set)] == '\0';
}

/* The right form of a number that was nearly written, into why. False where none is near. */
static bool number_advice(const char *text, const char *what, struct err *why)
{
	char plain[64];
	size_t n = 0;
	const char *s = text + (*text == '+');
	struct decimal d;
	uint64_t v = 0;
	if (!*text)
		return err_set(why, "%s is missing", what), true;
	if ((s[0] == '0' && (s[1] == 'o' || s[1] == 'O') && only(s + 2, "01234567")) ||
	    (s[0] == '0' && (s[1] == 'b' || s[1] == 'B') && only(s + 2, "01"))) {
		int base = s[1] == 'o' || s[1] == 'O' ? 8 : 2;
		v = strtoull(s + 2, NULL, base);
		return err_set(why, "'%s': %s numbers are not used; write %" PRIu64 " or 0x%" PRIX64, text,
			       base == 8 ? "octal" : "binary", v, v),
		       true;
	}
	if (s[0] == '0' && only(s, "0123456789")) {
		while (s[0] == '0' && s[1])
			s++;
		v = only(text, "01234567") ? strtoull(text, NULL, 8) : 0;
		if (v)
			return err_set(why, "'%s' has a leading zero; write %s, or 0x%" PRIX64 " if octal was meant",
				       text, s, v),
			       true;
		return err_set(why, "'%s' has a leading zero; write %s", text, s), true;
	}
	if (isdigit((unsigned char)s[0]) && strpbrk(s, "_,'") && only(s, "0123456789_,'")) {
		for (const char *c = s; *c && n < sizeof plain - 1; c++)
			if (isdigit((unsigned char)*c))
				plain[n++] = *c;
		plain[n] = '\0';
		return err_set(why, "'%s': digits are not grouped; write %s", text, plain), true;
	}
	n = decimal_read(s, &d);
	static const char letters[] = "kmg";
	const char *letter = n && s[n] ? strchr(letters, tolower((unsigned char)s[n])) : NULL;
	if (letter && *letter && (!s[n + 1] || !strcasecmp(s + n + 1, "i"))) {
		uint64_t two = 1, ten = 1, a, b;
		for (const char *c = letters; c <= letter; c++) {
			two *= 1024;
			ten *= 1000;
		}
		if (decimal_times(&d, two, &a) == EXACT && decimal_times(&d, ten, &b) == EXACT)
			return err_set(why, "'%s': suffixes are not used; write %" PRIu64 " or %" PRIu64, text, a, b),
			       true;
	}
	if (s != text && n && !s[n])
		return err_set(why, "'%s': no plus sign; write %s", text, s), true;
	if (s[0] == '.' && only(s + 1, "0123456789"))
		return err_set(why, "'%s' lacks a digit before the point; write 0%s", text, s), true;
	if (n && s[n] == '.' && !s[n + 1])
		return err_set(why, "'%s' lacks a digit after the point; write %s0", text, text), true;
	return false;
}

/* 0x…: whole token. */
static bool hex_read(const char *text, uint64_t *v, bool *too_large)
{
	if (text[0] != '0' || text[1] != 'x' || !only(text + 2, "0123456789abcdefABCDEF"))
		return false;
	const char *s = text + 2;
	while (*s == '0')
		s++;
	*too_large = strlen(s) > 16;
	*v = *too_large ? 0 : strtoull(text + 2, NULL, 16);
	return true;
}

static bool whole(const char *text, bool *negative, uint64_t *v, struct err *why)
{
	struct decimal d;
	bool too_large = false;
	*negative = false;
	if (!hex_read(text, v, &too_large)) {
		size_t n = decimal_read(text, &d);
		if (!n || text[n])
			return number_advice(text, "a whole number", why)
				       ? false
				       : err_set(why, "'%s' is not a whole number", text);
		enum exact e = decimal_times(&d, 1, v);
		if (e == NOT_WHOLE)
			return err_set(why, "'%s' is not a whole number", text);
		if (e == EXACT && !d.plain && !strpbrk(text, "eE"))
			return err_set(why, "'%s' where a whole number is wanted; write %s%" PRIu64, text,
				       d.negative ? "-" : "", *v);
		*negative = d.negative && *v;
		too_large = e == TOO_LARGE;
	}
	return too_large ? err_set(why, "'%s' is out of range: more than 64 bits", text) : true;
}

bool scalar_int(const char *text, int64_t *out, struct err *why)
{
	bool negative = false;
	uint64_t v = 0; /* gcc 12 does not see that whole() sets both */
	if (!whole(text, &negative, &v, why))
		return false;
	if (v > (uint64_t)INT64_MAX + negative)
		return err_set(why, "'%s' is out of range: the limit is %s", text,
			       negative ? "-9223372036854775808" : "9223372036854775807");
	*out = negative ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

bool scalar_uint(const char *text, uint64_t *out, struct err *why)
{
	bool negative;
	if (!whole(text, &negative, out, why))
		return false;
	return negative ? err_set(why, "'%s' is out of range: the least is 0", text) : true;
}

/* The C locale's strtod: a library may have set another one. */
static double to_double(const char *text)
{
	locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), old = c ? uselocale(c) : (locale_t)0;
	double v = strtod(text, NULL);
	if (c) {
		uselocale(old);
		freelocale(c);
	}
	return v;
}

bool scalar_real(const char *text, double *out, struct err *why)
{
	struct decimal d;
	uint64_t v;
	bool too_large;
	if (hex_read(text, &v, &too_large)) {
		if (too_large)
			return err_set(why, "'%s' is out of range: more than 64 bits", text);
		*out = (double)v;
		return true;
	}
	size_t n = decimal_read(text, &d);
	if (!n || text[n])
		return number_advice(text, "a number", why) ? false : err_set(why, "'%s' is not a number", text);
	*out = to_double(text);
	return isfinite(*out) ? true : err_set(why, "'%s' is out of range of a double", text);
}

bool scalar_bool(const char *text, bool *out, struct err *why)
{
	static const char *const yes[] = {"yes", "on", "y", "1", "true"}, *const no[] = {"no", "off", "n", "0",
											 "false"};
	if (!strcmp(text, "true") || !strcmp(text, "false")) {
		*out = text[0] == 't';
		return true;
	}
	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
		if (!strcasecmp(text, yes[i]))
			return err_set(why, "'%s' is not a boolean; write true", text);
		if (!strcasecmp(text, no[i]))
			return err_set(why, "'%s' is not a boolean; write false", text);
	}
	return *text ? err_set(why, "'%s' is not a boolean; write true or false", text)
		     : err_set(why, "true or false is missing");
}

struct unit {
	const char *name;
	uint64_t times;
};

/* Units that people write and that are not used here, with what is meant. */
struct alias {
	const char *wrong, *right;
};

static const struct unit size_units[] = {{"B", 1},     {"KiB", 1u << 10}, {"MiB", 1u << 20},  {"GiB", 1u << 30},
					 {"kB", 1000}, {"MB", 1000000},   {"GB", 1000000000}, {0}};
static const struct alias size_aliases[] =
	{{"k", "KiB"},  {"K", "KiB"},  {"KB", "KiB or kB"}, {"m", "MiB"}, {"M", "MiB"}, {"Mi", "MiB"},
	 {"Ki", "KiB"}, {"Gi", "GiB"}, {"g", "GiB"},        {"G", "GiB"}, {0}};
static const struct unit time_units[] = {{"ns", 1},
					 {"us", 1000},
					 {"ms", 1000000},
					 {"s", 1000000000},
					 {"min", 60 * 1000000000ull},
					 {"h", 3600 * 1000000000ull},
					 {0}};
static const struct alias time_aliases[] = {{"\xC2\xB5s", "us"}, {"\xCE\xBCs", "us"},
					    {"sec", "s"},        {"secs", "s"},
					    {"m", "min or ms"},  {"msec", "ms"},
					    {"usec", "us"},      {"nsec", "ns"},
					    {"hr", "h"},         {0}};

static bool scaled(const char *text, const char *what, const char *example, const struct unit *unit,
		   const struct alias *alias, int64_t *out, struct err *why)
{
	struct decimal d;
	uint64_t v;
	size_t n = decimal_read(text, &d);
	if (!*text)
		return err_set(why, "%s is missing; write it as %s", what, example);
	if (!n)
		return err_set(why, "'%s' is not %s; write it as %s", text, what, example);
	const char *rest = text + n;
	if (!*rest && !d.digits) {
		*out = 0;
		return true;
	}
	if (!*rest)
		return err_set(why, "'%s' lacks a unit; write it as %s", text, example);
	if (d.negative)
		return err_set(why, "'%s' is negative", text);
	for (const struct unit *u = unit; u->name; u++) {
		if (strcmp(rest, u->name))
			continue;
		enum exact e = decimal_times(&d, u->times, &v);
		if (e == NOT_WHOLE)
			return err_set(why, "'%s' is not a whole number of %s", text,
				       unit->name[0] == 'B' ? "bytes" : "nanoseconds");
		if (e == TOO_LARGE || v > INT64_MAX)
			return err_set(why, "'%s' is out of range", text);
		*out = (int64_t)v;
		return true;
	}
	while (*rest == ' ')
		rest++;
	for (const struct unit *u = unit; u->name; u++)
		if (!strcasecmp(rest, u->name))
			return err_set(why, "'%s' is not %s; write %.*s%s", text, what, (int)n, text, u->name);
	for (; alias->wrong; alias++)
		if (!strcmp(rest, alias->wrong))
			return err_set(why, "'%s' has no known unit; write %.*s%s", text, (int)n, text, alias->right);
	return err_set(why, "'%s' has no known unit; write it as %s", text, example);
}

bool scalar_size(const char *text, int64_t *bytes, struct err *why)
{
	return scaled(text, "a size", "512MiB", size_units, size_aliases, bytes, why);
}

bool scalar_time(const char *text, int64_t *ns, struct err *why)
{
	return scaled(text, "a time", "2us, 5ms or 30s", time_units, time_aliases, ns, why);
}

bool scalar_percent(const char *text, double *out, struct err *why)
{
	struct decimal d;
	const char *s = text + (*text == '+');
	size_t n = decimal_read(s, &d);
	char number[64];
	if (!*text)
		return err_set(why, "a percentage is missing; write it as 5%%");
	if (!n || n >= sizeof number)
		return err_set(why, "'%s' is not a percentage; write it as 5%%", text);
	memcpy(number, s, n);
	number[n] = '\0';
	double v = to_double(number);
	if (!s[n])
		return v > -1 && v < 1 && v != 0
			       ? err_set(why, "'%s' lacks its percent sign; write %.6g%%, if %.6g%% is not meant", text,
					 v * 100, v)
			       : err_set(why, "'%s' lacks its percent sign; write %s%%", text, text);
	if (strcmp(s + n, "%") && strcmp(s + n, "pp"))
		return err_set(why, "'%s' is not a percentage; write %s%%", text, number);
	*out = v / 100;
	return isfinite(*out) ? true : err_set(why, "'%s' is out of range", text);
}

/* A plain scalar's text, or NULL with the error. example: the plain form to write. */
static const char *plain(const struct yaml_node *v, const char *what, struct diags *d)
{
	if (v->kind != YAML_TREE_SCALAR) {
		diag_add(d, DIAG_ERROR, v->mark, "%s is wanted here, not %s", what, yaml_kind_text(v));
		return NULL;
	}
	if (v->quoted) {
		diag_add(d, DIAG_ERROR, v->mark, "%s is wanted here, not text in quotes; write %s", what, v->text);
		return NULL;
	}
	return v->text;
}

/* Sizes, times and percentages are texts in JSON, so quotes are as good as none. */
static const char *unquoted(const struct yaml_node *v, const char *what, struct diags *d)
{
	return v->kind == YAML_TREE_SCALAR ? v->text : plain(v, what, d);
}

#define READER(type, word, what, text_of)                                                                              \
	bool yaml_##word(const struct yaml_node *v, type *out, struct diags *d)                                        \
	{                                                                                                              \
		struct err why;                                                                                        \
		const char *text = text_of(v, what, d);                                                                \
		return text && (scalar_##word(text, out, &why) || diag_add(d, DIAG_ERROR, v->mark, "%s", why.text));   \
	}
READER(uint64_t, uint, "a whole number", plain)
READER(double, real, "a number", plain)
READER(bool, bool, "true or false", plain)
READER(int64_t, size, "a size", unquoted)
READER(int64_t, time, "a time", unquoted)
READER(double, percent, "a percentage", unquoted)

bool yaml_int(const struct yaml_node *v, int64_t min, int64_t max, int64_t *out, struct diags *d)
{
	struct err why;
	int64_t x;
	const char *text = plain(v, "a whole number", d);
	if (!text)
		return false;
	if (!scalar_int(text, &x, &why))
		return diag_add(d, DIAG_ERROR, v->mark, "%s", why.text);
	if (x < min || x > max) {
		if (max == INT64_MAX)
			return diag_add(d, DIAG_ERROR, v->mark, "%s is out of range: at least %" PRId64, text, min);
		return diag_add(d, DIAG_ERROR, v->mark, "%s is out of range %" PRId64 "..%" PRId64, text, min, max);
	}
	*out = x;
	return true;
}

bool yaml_string(const struct yaml_node *v, const char **out, struct diags *d)
{
	if (v->kind != YAML_TREE_SCALAR)
		return diag_add(d, DIAG_ERROR, v->mark, "a word is wanted here, not %s", yaml_kind_text(v));
	if (!*v->text)
		return diag_add(d, DIAG_ERROR, v->mark, "a word is missing");
	*out = v->text;
	return true;
}
