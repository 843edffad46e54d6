#define _GNU_SOURCE /* vasprintf */
#include <stdarg.h>
#include <stdlib.h>

#include "text_parts.h"

static uint64_t hash_text(const char *s)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h ^ h >> 31;
}

static void put_word(const char **table, size_t cap, const char *s)
{
	size_t i = hash_text(s) & (cap - 1);
	while (table[i])
		i = (i + 1) & (cap - 1);
	table[i] = s;
}

const char *text_intern(struct text *t, const char *s)
{
	if (!s)
		return NULL;
	if (t->n_words * 2 >= t->cap_words) {
		size_t cap = t->cap_words ? t->cap_words * 2 : 256;
		const char **fresh = calloc(cap, sizeof *fresh);
		if (!fresh)
			abort();
		for (size_t i = 0; i < t->cap_words; i++)
			if (t->word[i])
				put_word(fresh, cap, t->word[i]);
		free((void *)t->word);
		t->word = fresh;
		t->cap_words = cap;
	}
	for (size_t i = hash_text(s) & (t->cap_words - 1); t->word[i]; i = (i + 1) & (t->cap_words - 1))
		if (strcmp(t->word[i], s) == 0)
			return t->word[i];
	const char *copy = arena_strdup(t->arena, s);
	put_word(t->word, t->cap_words, copy);
	t->n_words++;
	return copy;
}

const struct axis_names *text_axes(struct text *t, const json_t *point, double at[TEXT_MAX_AXES])
{
	struct axis_names names = {.n = 0};
	const char *key;
	json_t *value;
	json_t *object = (json_t *)(uintptr_t)point;
	json_object_foreach(object, key, value)
	{
		if (names.n == TEXT_MAX_AXES)
			break;
		at[names.n] = json_number_value(value);
		names.name[names.n++] = text_intern(t, key);
	}
	for (size_t i = 0; i < t->n_axes; i++)
		if (t->axes[i]->n == names.n &&
		    memcmp(t->axes[i]->name, names.name, sizeof *names.name * (size_t)names.n) == 0)
			return t->axes[i];
	t->axes = arena_grow(t->arena, t->axes, t->n_axes, &t->cap_axes, sizeof *t->axes);
	struct axis_names *copy = arena_alloc(t->arena, sizeof *copy);
	*copy = names;
	t->axes[t->n_axes++] = copy;
	return copy;
}

const char *text_string(const json_t *j)
{
	const char *s = json_string_value(j);
	return s ? s : "";
}

const char *text_get(const json_t *j, const char *key)
{
	return text_string(json_object_get(j, key));
}

double text_number(const json_t *j, const char *key)
{
	const json_t *x = json_object_get(j, key);
	return json_is_number(x) ? json_number_value(x) : NAN;
}

int64_t text_integer(const json_t *j, const char *key)
{
	const json_t *x = json_object_get(j, key);
	if (json_is_integer(x))
		return json_integer_value(x);
	/* A file may hold any number. */
	return json_is_real(x) && fabs(json_real_value(x)) < 9e18 ? (int64_t)json_real_value(x) : 0;
}

int text_columns(const char *s)
{
	int n = 0;
	for (; *s; s++)
		n += ((unsigned char)*s & 0xC0) != 0x80;
	return n;
}

void text_wrap(FILE *f, int indent, int width, const char *s)
{
	text_wrap_at(f, indent, indent, width, s);
}

void text_wrap_at(FILE *f, int col, int indent, int width, const char *s)
{
	bool first = true;
	while (*s) {
		size_t gap = strspn(s, " "), len = strcspn(s + gap, " \n");
		if (strncmp(s + gap + len, " %", 2) == 0) /* a number stays with its sign */
			len += 1 + strcspn(s + gap + len + 1, " \n");
		char *word = strndup(s + gap, len);
		if (!word)
			return;
		int columns = text_columns(word);
		/* A word that is longer than a line is not cut: it is a path or a command to be copied. */
		if (!first && (s[gap] == 0 || col + (int)gap + columns > width)) {
			if (s[gap])
				fprintf(f, "\n%*s", indent, "");
			col = indent;
			gap = 0;
			if (!*word && !s[strspn(s, " ")]) {
				free(word);
				return;
			}
		}
		fprintf(f, "%*s%s", (int)gap, "", word);
		col += (int)gap + columns;
		s += strspn(s, " ") + len;
		free(word);
		first = false;
		if (*s == '\n') {
			fprintf(f, "\n%*s", indent, "");
			col = indent;
			first = true;
			s++;
		}
	}
}

__attribute__((format(printf, 1, 0))) static char *format(const char *fmt, va_list ap)
{
	char *s = NULL;
	if (vasprintf(&s, fmt, ap) < 0)
		abort();
	return s;
}

void text_field(FILE *f, int width, const char *label, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *s = format(fmt, ap);
	va_end(ap);
	fprintf(f, "   %-9s ", label);
	text_wrap(f, 13, width, s);
	fputc('\n', f);
	free(s);
}

void text_paint(const struct text *t, FILE *f, enum text_colour c, const char *fmt, ...)
{
	static const char *const codes[] = {"", "\033[31;1m", "\033[33;1m", "\033[32;1m", "\033[1m"};
	va_list ap;
	va_start(ap, fmt);
	if (t->o.colour && c != TEXT_PLAIN)
		fputs(codes[c], f);
	vfprintf(f, fmt, ap);
	if (t->o.colour && c != TEXT_PLAIN)
		fputs("\033[0m", f);
	va_end(ap);
}

char *text_us(char buf[24], double ns)
{
	double us = ns / 1000;
	if (!(fabs(us) < 1e15))
		return strcpy(buf, "-");
	snprintf(buf, 24, us < 10 ? "%.2f" : us < 10000 ? "%.1f" : "%.0f", us);
	return buf;
}

char *text_ratio(char buf[24], double ratio)
{
	if (!(fabs(ratio) < 1e15))
		return strcpy(buf, "-");
	snprintf(buf, 24, ratio < 100 ? "%.3f" : "%.1f", ratio);
	return buf;
}

char *text_percent(char buf[24], double fraction)
{
	if (!(fabs(fraction) < 1e12))
		return strcpy(buf, "-");
	snprintf(buf, 24, "%+.1f %%", 100 * fraction);
	return buf;
}

char *text_count(char buf[32], int64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0 && digits[i - 1] != '-')
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = 0;
	return buf;
}

char *text_seconds(char buf[24], double ns)
{
	double s = ns / 1e9;
	if (!(s >= 0 && s < 1e12))
		return strcpy(buf, "?");
	/* What is not nothing is not shown as nothing. */
	if (s > 0 && s < 0.05)
		snprintf(buf, 24, s < 9.95e-4 ? "%.3g us" : "%.3g ms", s * (s < 9.95e-4 ? 1e6 : 1e3));
	else if (s < 100)
		snprintf(buf, 24, "%.1f s", s);
	else if (s < 3600)
		snprintf(buf, 24, "%d min %d s", (int)s / 60, (int)s % 60);
	else
		snprintf(buf, 24, "%.0f h %d min", floor(s / 3600), (int)(fmod(s, 3600) / 60));
	return buf;
}

void text_arm_list(FILE *f, const char *const *name, int n)
{
	size_t prefix = 0; /* of the name before: up to and with its '=' */
	for (int i = 0; i < n; i++) {
		const char *eq = strchr(name[i], '=');
		size_t len = eq ? (size_t)(eq - name[i]) + 1 : 0;
		if (i > 0 && len > 0 && len == prefix && strncmp(name[i], name[i - 1], len) == 0)
			fprintf(f, ",%s", name[i] + len);
		else
			fprintf(f, "%s%s", i > 0 ? ", " : "", name[i]);
		prefix = len;
	}
}

char *text_number_text(char buf[32], double x)
{
	snprintf(buf, 32, "%.10g", x);
	return buf;
}
