#include "finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plain.h"

json_t *finding_add(json_t *findings, const char *check, const char *arm, const char *status, const char *fmt, ...)
{
	json_t *f = json_object();
	char text[1024];
	va_list ap;

	json_object_set_new(f, "check", json_string(check));
	json_object_set_new(f, "arm", arm ? json_string(arm) : json_null());
	json_object_set_new(f, "status", json_string(status));
	if (fmt) {
		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		plain_buffer(text, sizeof text); /* a kernel's or a device's may hold any bytes; JSON holds UTF-8 */
	}
	json_object_set_new(f, "text", fmt ? json_string(text) : json_null());
	json_array_append_new(findings, f);
	return f;
}

static int about(const json_t *f, const char *check, const char *arm)
{
	const char *c = json_string_value(json_object_get(f, "check"));
	const char *a = json_string_value(json_object_get(f, "arm"));

	return c && !strcmp(c, check) && (!arm || (a && !strcmp(a, arm)));
}

void finding_drop(json_t *findings, const char *check, const char *arm)
{
	for (size_t i = json_array_size(findings); i-- > 0;)
		if (about(json_array_get(findings, i), check, arm))
			json_array_remove(findings, i);
}

int finding_failed(const json_t *findings, const char *check, const char *arm)
{
	for (size_t i = 0; i < json_array_size(findings); i++) {
		const json_t *f = json_array_get(findings, i);
		const char *status = json_string_value(json_object_get(f, "status"));
		if (about(f, check, arm) && status && strcmp(status, "pass"))
			return 1;
	}
	return 0;
}
