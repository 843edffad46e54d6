/* diff_headers: what the headers of two files say of the machines: what forbids a comparison, and what is worth a word. */
#include <stdio.h>
#include <string.h>

#include "diff_parts.h"
#include "record_parts.h"

/* A fact of the device, wherever in `more` it stands. */
static const json_t *fact(const json_t *device, const char *key)
{
	const json_t *j = json_object_get(device, key), *more = json_object_get(device, "more");
	if (j)
		return j;
	if ((j = json_object_get(more, key)))
		return j;
	const char *name;
	json_t *part;
	json_object_foreach(json_object_get(device, "more"), name, part)
	{
		if (json_is_object(part) && (j = json_object_get(part, key)))
			return j;
	}
	return NULL;
}

static const char *fact_text(const json_t *j, char *buf, size_t cap)
{
	if (json_is_string(j))
		return json_string_value(j);
	if (json_is_integer(j))
		snprintf(buf, cap, "%lld", (long long)json_integer_value(j));
	else if (json_is_real(j))
		snprintf(buf, cap, "%g", json_real_value(j));
	else if (json_is_boolean(j))
		snprintf(buf, cap, "%s", json_is_true(j) ? "on" : "off");
	else
		return NULL;
	return buf;
}

/* Both known and different: "WORDS differs: A, B". */
static bool differs(const json_t *a, const json_t *b, const char *words, char *out, size_t cap)
{
	char x[64], y[64];
	const char *s = fact_text(a, x, sizeof x), *t = fact_text(b, y, sizeof y);
	if (!s || !t || strcmp(s, t) == 0)
		return false;
	snprintf(out, cap, "%s differ%s: %.50s, %.50s", words, strcmp(words, "threads") == 0 ? "" : "s", s, t);
	return true;
}

static void refuse(struct diff *d, const char *text)
{
	if (d->n_refusals < (int)(sizeof d->refusal / sizeof *d->refusal))
		snprintf(d->refusal[d->n_refusals++], sizeof *d->refusal, "%s", text);
}

static void warn(struct diff *d, const char *text)
{
	if (d->n_warnings < (int)(sizeof d->warning / sizeof *d->warning))
		snprintf(d->warning[d->n_warnings++], sizeof *d->warning, "%s", text);
}

void diff_compare_headers(struct diff *d)
{
	static const struct {
		const char *key, *words;
	} refused[] = {{"name", "device"}, {"mig", "MIG mode"}, {"ecc", "ECC mode"}, {"threads", "threads"}},
	  warned[] = {{"driver", "driver"},
		      {"runtime", "toolkit"},
		      {"uuid", "device's UUID"},
		      {"power_limit_w", "power limit"}};
	const json_t *a = d->header[0], *b = d->header[1];
	const json_t *da = json_object_get(a, "device"), *db = json_object_get(b, "device");
	char text[160];
	bool backend =
		differs(json_object_get(a, "backend"), json_object_get(b, "backend"), "backend", text, sizeof text);
	if (backend)
		refuse(d, text);
	int before = d->n_refusals;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (differs(fact(da, refused[i].key), fact(db, refused[i].key), refused[i].words, text, sizeof text))
			refuse(d, text);
	/* The flag is for another device; host and cuda are never held against each other. */
	d->other_device = d->n_refusals > before && !backend && d->o.allow_device_change;
	for (size_t i = 0; i < sizeof warned / sizeof *warned; i++)
		if (differs(fact(da, warned[i].key), fact(db, warned[i].key), warned[i].words, text, sizeof text))
			warn(d, text);
	static const char *const side[] = {"base", "head"};
	for (int k = 0; k < 2; k++) {
		if (d->noisy[k]) {
			snprintf(text, sizeof text, "%s was a noisy run", side[k]);
			warn(d, text);
		}
		if (d->throttled[k]) {
			snprintf(text, sizeof text, "%s was throttled in %lld cell%s", side[k],
				 (long long)d->throttled[k], d->throttled[k] == 1 ? "" : "s");
			warn(d, text);
		}
		/* Where both were, their times are of one kind. */
		if (d->limited[k] && !d->limited[!k]) {
			snprintf(text, sizeof text, "%s had its clock held, as at a power cap, in %lld cell%s", side[k],
				 (long long)d->limited[k], d->limited[k] == 1 ? "" : "s");
			warn(d, text);
		}
		if (record_true(json_object_get(d->header[k], "git"), "dirty")) {
			snprintf(text, sizeof text, "%s was run from files that are not committed", side[k]);
			warn(d, text);
		}
		if (!d->footer[k]) {
			snprintf(text, sizeof text, "%s was cut short: no footer", side[k]);
			warn(d, text);
		} else if (d->not_run[k] > 0) {
			snprintf(text, sizeof text, "%s was ended before its end: %.0f cell%s not run", side[k],
				 d->not_run[k], d->not_run[k] == 1 ? "" : "s");
			warn(d, text);
		}
	}
}
