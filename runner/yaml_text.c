/* The bytes of a YAML file, before they are parsed. */
#include "yaml_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "infile.h"
#include "yaml_tree.h"

static size_t sequence_bytes(unsigned char c)
{
	return c < 0x80 ? 1 : c >= 0xC2 && c <= 0xDF ? 2 : c >= 0xE0 && c <= 0xEF ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
}

/* The character at s, or -1 where the bytes are no UTF-8. */
static long decode(const unsigned char *s, size_t left, size_t *width)
{
	size_t w = sequence_bytes(s[0]);
	*width = w ? w : 1;
	if (!w || w > left)
		return -1;
	long c = w == 1 ? s[0] : s[0] & (0x7F >> w);
	for (size_t i = 1; i < w; i++) {
		if ((s[i] & 0xC0) != 0x80)
			return -1;
		c = c << 6 | (s[i] & 0x3F);
	}
	static const long least[] = {0, 0, 0x80, 0x800, 0x10000};
	return c < least[w] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF) ? -1 : c;
}

static bool allowed(long c)
{
	return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c <= 0x7E) || c == 0x85 ||
	       (c >= 0xA0 && c != 0xFEFF && c != 0xFFFE && c != 0xFFFF);
}

bool yaml_text_check(const char *file, const char *text, size_t n, struct diags *d)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i = n >= 3 && !memcmp(s, "\xEF\xBB\xBF", 3) ? 3 : 0;
	struct mark at = {file, 1, 1, 1};
	while (i < n) {
		size_t w;
		long c = decode(s + i, n - i, &w);
		if (c < 0)
			return diag_add(d, DIAG_ERROR, at, "byte 0x%02X is not UTF-8", (unsigned)s[i]);
		if (!allowed(c))
			return diag_add(d, DIAG_ERROR, at, c ? "control character U+%04lX" : "NUL character U+%04lX",
					(unsigned long)c);
		bool crlf = c == '\r' && i + 1 < n && s[i + 1] == '\n';
		i += w + crlf;
		if (c == '\n' || c == '\r' || c == 0x85 || c == 0x2028 || c == 0x2029) {
			at.line++;
			at.col = 1;
		} else {
			at.col++;
		}
	}
	return true;
}

char *yaml_read_file(struct arena *a, const char *path, struct mark from, size_t *n, struct diags *d)
{
	struct mark at = from.file ? from : (struct mark){arena_strdup(a, path), 0, 0, 0};
	const char *prefix = from.file ? path : "", *colon = from.file ? ": " : "";
	char *text = NULL;
	struct err why;
	/* What a suite names is read again, for its hash. */
	FILE *f = infile_stream(path, from.file ? INFILE_PLAIN : INFILE_STREAM, &why);
	if (!f) {
		diag_add(d, DIAG_ERROR, at, "%s%s%s", prefix, colon, why.text);
		goto out;
	}
	text = arena_alloc(a, YAML_MAX_BYTES + 2);
	*n = fread(text, 1, YAML_MAX_BYTES + 1, f);
	if (ferror(f)) {
		diag_add(d, DIAG_ERROR, at, "%s%scannot be read: %s", prefix, colon, strerror(errno));
		text = NULL;
	} else if (*n > YAML_MAX_BYTES) {
		diag_add(d, DIAG_ERROR, at, "%s%sthe file is larger than 1 MiB", prefix, colon);
		text = NULL;
	}
out:
	if (f)
		fclose(f);
	return text;
}
