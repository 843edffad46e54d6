#include "plain.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

enum { ESCAPED_BYTES = 4 }; /* \x1b */

size_t plain_char(const char *s, size_t left, bool *control)
{
	const unsigned char *c = (const unsigned char *)s;
	size_t n = c[0] < 0x80 ? 1 : c[0] >= 0xF0 ? 4 : c[0] >= 0xE0 ? 3 : c[0] >= 0xC2 ? 2 : 1;
	for (size_t i = 1; i < n; i++)
		if (i >= left || (c[i] & 0xC0) != 0x80)
			n = 1;
	*control = c[0] < 0x20 || c[0] == 0x7F || (c[0] >= 0x80 && n == 1) || (c[0] == 0xC2 && c[1] < 0xA0);
	return n;
}

int plain_columns(const char *s, size_t n)
{
	/* Blocks, not single characters: what a terminal does with the rest differs from one to the next. */
	static const struct {
		uint32_t from, to;
		int columns;
	} block[] = {{0x300, 0x36F, 0},     {0x1100, 0x115F, 2},   {0x200B, 0x200F, 0},   {0x20D0, 0x20FF, 0},
		     {0x2E80, 0xA4CF, 2},   {0xAC00, 0xD7A3, 2},   {0xF900, 0xFAFF, 2},   {0xFE00, 0xFE0F, 0},
		     {0xFE20, 0xFE2F, 0},   {0xFE30, 0xFE6F, 2},   {0xFF01, 0xFF60, 2},   {0xFFE0, 0xFFE6, 2},
		     {0x1F300, 0x1F64F, 2}, {0x1F680, 0x1F6FF, 2}, {0x1F900, 0x1F9FF, 2}, {0x20000, 0x3FFFD, 2}};
	const unsigned char *c = (const unsigned char *)s;
	uint32_t x = n < 2 ? c[0] : c[0] & (0x7Fu >> n);
	for (size_t i = 1; i < n; i++)
		x = x << 6 | (c[i] & 0x3F);
	for (size_t i = 0; i < sizeof block / sizeof *block; i++)
		if (x >= block[i].from && x <= block[i].to)
			return block[i].columns;
	return 1;
}

static bool stays(const char *s, size_t left, bool lines, size_t *n)
{
	bool control;
	*n = plain_char(s, left, &control);
	return !control || (lines && (*s == '\n' || *s == '\t'));
}

static bool is_plain(const char *s, bool lines)
{
	for (size_t i = 0, len = strlen(s), n; i < len; i += n)
		if (!stays(s + i, len - i, lines, &n))
			return false;
	return true;
}

/* Into out, as many whole characters as fit. */
static void copy(char *out, size_t cap, const char *s, bool lines)
{
	size_t k = 0, n, wide;
	for (size_t i = 0, len = strlen(s); i < len; i += n) {
		const bool as_is = stays(s + i, len - i, lines, &n);
		wide = as_is ? n : n * ESCAPED_BYTES;
		if (k + wide >= cap)
			break;
		if (as_is)
			memcpy(out + k, s + i, n);
		for (size_t j = 0; j < n && !as_is; j++)
			snprintf(out + k + j * ESCAPED_BYTES, ESCAPED_BYTES + 1, "\\x%02x",
				 (unsigned)(unsigned char)s[i + j]);
		k += wide;
	}
	out[k] = 0;
}

const char *plain_text(struct arena *a, const char *s)
{
	if (!s || is_plain(s, false))
		return s;
	const size_t cap = strlen(s) * ESCAPED_BYTES + 1;
	char *out = arena_alloc(a, cap);
	copy(out, cap, s, false);
	return out;
}

/* With line ends and tabs as they are; malloc'd. NULL: s is plain. */
static char *escaped(const char *s)
{
	if (is_plain(s, true))
		return NULL;
	const size_t cap = strlen(s) * ESCAPED_BYTES + 1;
	char *out = malloc(cap);
	if (!out)
		abort();
	copy(out, cap, s, true);
	return out;
}

void plain_buffer(char *s, size_t cap)
{
	char *was = is_plain(s, true) ? NULL : strdup(s);
	if (was)
		copy(s, cap, was, true);
	free(was);
}

/* Keys that are not plain: rare enough that each of them may move to the end. */
static void plain_keys(json_t *j)
{
	const char *key;
	json_t *value;
	void *next;
	json_object_foreach_safe(j, next, key, value)
	{
		char *out = escaped(key);
		if (!out)
			continue;
		json_object_set(j, out, value);
		json_object_del(j, key);
		free(out);
	}
}

static void plain_json(json_t *j)
{
	size_t i;
	const char *key;
	json_t *value;
	if (json_is_string(j)) {
		char *out = escaped(json_string_value(j));
		if (out)
			json_string_set(j, out);
		free(out);
	} else if (json_is_array(j)) {
		json_array_foreach(j, i, value) plain_json(value);
	} else if (json_is_object(j)) {
		plain_keys(j);
		json_object_foreach(j, key, value) plain_json(value);
	}
}

json_t *plain_record(const char *line, size_t n, json_error_t *why)
{
	json_t *j = json_loadb(line, n, JSON_REJECT_DUPLICATES, why);
	/* A control character stands in a line of JSON behind a backslash, but for DEL and those of two bytes. */
	if (j && (memchr(line, '\\', n) || memchr(line, 0x7F, n) || memchr(line, 0xC2, n)))
		plain_json(j);
	return j;
}
