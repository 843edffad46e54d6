#include "err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plain.h"

bool err_set(struct err *e, const char *fmt, ...)
{
	if (e) {
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof e->text, fmt, ap);
		va_end(ap);
		plain_buffer(e->text, sizeof e->text);
	}
	return false;
}

bool err_prefix(struct err *e, const char *fmt, ...)
{
	if (e) {
		char was[sizeof e->text];
		memcpy(was, e->text, sizeof was);
		va_list ap;
		va_start(ap, fmt);
		int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
		va_end(ap);
		if (n >= 0 && (size_t)n < sizeof e->text)
			snprintf(e->text + n, sizeof e->text - (size_t)n, ": %.*s", (int)sizeof e->text - n, was);
		plain_buffer(e->text, sizeof e->text);
	}
	return false;
}
