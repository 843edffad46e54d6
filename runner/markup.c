#include "markup.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

/* Bytes of the character of UTF-8 at s that XML 1.0 can carry; 0: it cannot, or these bytes are no UTF-8. */
static size_t xml_character(const unsigned char *s)
{
	if (s[0] < 0x80)
		return s[0] >= 0x20 || s[0] == '\t' || s[0] == '\n' ? 1 : 0;
	size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
	if (s[0] < 0xC2 || s[0] > 0xF4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF0 && s[1] < 0x90) ||
	    (s[0] == 0xF4 && s[1] > 0x8F))
		return 0;
	return n == 3 && s[0] == 0xEF && s[1] == 0xBF && s[2] >= 0xBE ? 0 : n;
}

void markup_xml(FILE *f, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	while (s && *s) {
		size_t n = xml_character(s);
		if (n == 0) {
			fprintf(f, "\\x%02x", *s++);
			continue;
		}
		switch (*s) {
		case '&': fputs("&amp;", f); break;
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '"': fputs("&quot;", f); break;
		case '\'': fputs("&#39;", f); break;
		default: fwrite(s, 1, n, f);
		}
		s += n;
	}
}

void markup_md(FILE *f, const char *text)
{
	for (const unsigned char *s = (const unsigned char *)text; s && *s; s++) {
		if (*s == '\n' || *s == '\r' || *s == '\t')
			fputc(' ', f);
		else if (*s < 0x20 || *s == 0x7F)
			fprintf(f, "\\\\x%02x", *s);
		else if (*s == '<')
			fputs("&lt;", f);
		else if (*s == '&')
			fputs("&amp;", f);
		else if (*s == '@') /* would call a person of that name */
			fputs("&#64;", f);
		else if (strchr("\\`*_[]|~", *s))
			fprintf(f, "\\%c", *s);
		else
			fputc(*s, f);
	}
}

void markup_md_code(FILE *f, const char *s)
{
	size_t run = 0, longest = 0;
	for (const char *p = s; *p; p++) {
		run = *p == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	for (size_t i = 0; i <= longest; i++)
		fputc('`', f);
	if (longest)
		fputc(' ', f);
	for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
		/* A bar would end the column, even in code. */
		if (*p == '|')
			fputs("\\|", f);
		else
			fputc(*p < 0x20 || *p == 0x7F ? ' ' : *p, f);
	}
	if (longest)
		fputc(' ', f);
	for (size_t i = 0; i <= longest; i++)
		fputc('`', f);
}

void markup_csv(FILE *f, const char *s)
{
	if (!s)
		return;
	if (!s[strcspn(s, ",\"\r\n")]) {
		fputs(s, f);
		return;
	}
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"')
			fputc('"', f);
		fputc(*s, f);
	}
	fputc('"', f);
}

void markup_json(FILE *f, const json_t *j)
{
	char *s = verdict_line(j);
	for (const char *p = s; p && *p; p++) {
		if (*p == '<' || *p == '>' || *p == '&')
			fprintf(f, "\\u%04x", (unsigned)*p);
		else
			fputc(*p, f);
	}
	free(s);
}
