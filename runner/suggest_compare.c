/* suggest_compare: one arm against another: paired rounds, noise, bits, checks. */
#include <math.h>
#include <string.h>

#include "record_parts.h"
#include "report.h"
#include "stats.h"
#include "suggest.h"

enum { MAX_ROUNDS = STATS_MAX_ROUNDS };

static double sample(const json_t *arm, size_t r)
{
	const json_t *x = json_array_get(json_object_get(arm, "samples_ns"), r);
	return json_is_number(x) ? json_number_value(x) : NAN;
}

bool suggest_compare(const json_t *cell, const char *arm, const char *base, double tau, double *estimate, double *lo,
		     double *hi, double *floor, double *se)
{
	const json_t *a = report_arm(cell, arm), *b = report_arm(cell, base);
	double d[MAX_ROUNDS];
	size_t rounds = json_array_size(json_object_get(a, "samples_ns"));
	int n = 0;
	for (size_t r = 0; r < rounds && n < MAX_ROUNDS; r++) {
		double x = sample(a, r), y = sample(b, r);
		if (x > 0 && y > 0)
			d[n++] = log(x) - log(y);
	}
	const json_t *null = json_object_get(json_object_get(cell, "timing"), "null");
	double bias = text_number(null, "estimate");
	/* What a second process would differ by, two-sided at about 5 %; and what shipped differs from itself here. */
	*floor = fmax(2 * sqrt(2) * tau, isfinite(bias) ? fabs(bias) : 0);
	struct interval iv;
	int cut;
	*se = stats_walsh_se(d, n);
	n = record_cut(cell, n, &cut);
	if (n == 0 || cut < 0)
		return false;
	stats_walsh(d, n, cut, &iv);
	*estimate = iv.estimate;
	*lo = iv.lo;
	*hi = iv.hi;
	if (!isfinite(*se)) /* fewer than 8 rounds */
		*se = (iv.hi - iv.lo) / (2 * 1.96);
	return isfinite(iv.lo) && isfinite(iv.hi);
}

struct suggest_evidence suggest_pool(const json_t *const *cell, size_t n, const char *arm, const char *base, double tau)
{
	struct suggest_evidence e = {.estimate = NAN, .lo = NAN, .hi = NAN};
	double sum = 0, variance = 0, one_lo = NAN, one_hi = NAN;
	for (size_t i = 0; i < n; i++) {
		double estimate, lo, hi, floor, se;
		if (!suggest_compare(cell[i], arm, base, tau, &estimate, &lo, &hi, &floor, &se))
			continue;
		e.cells++;
		e.faster += hi < -floor;
		e.slower += lo > floor;
		e.floor = fmax(e.floor, floor);
		sum += estimate;
		variance += se * se;
		one_lo = lo;
		one_hi = hi;
	}
	if (e.cells == 0)
		return e;
	e.estimate = sum / e.cells;
	const double half = 1.96 * sqrt(variance) / e.cells;
	e.lo = e.cells == 1 ? one_lo : e.estimate - half;
	e.hi = e.cells == 1 ? one_hi : e.estimate + half;
	return e;
}

bool suggest_is_faster(const struct suggest_evidence *e)
{
	return e->cells > 0 && e->slower == 0 && e->hi < -e->floor;
}

const char *suggest_wrong(struct arena *a, const json_t *const *cell, size_t n, const char *arm)
{
	for (size_t c = 0; c < n; c++) {
		const json_t *x;
		size_t i;
		json_array_foreach(json_object_get(cell[c], "checks"), i, x)
		{
			/* A finding without an arm (data, a crash) is about the whole cell. */
			if (!text_finding_is_bad(x) || strcmp(text_get(x, "check"), "census") == 0 ||
			    (*text_get(x, "arm") && strcmp(text_get(x, "arm"), arm) != 0))
				continue;
			return arena_printf(a, "%s is %s in %s (%s)", arm, text_get(x, "status"),
					    text_short_id(cell[c]), text_get(x, "check"));
		}
	}
	return NULL;
}

/* The finding of the identity check against shipped passes. */
static bool identity_passes(const json_t *cell, const char *arm)
{
	const json_t *x;
	size_t i;
	bool passes = strcmp(text_get(report_arm(cell, arm), "role"), "shipped") == 0;
	json_array_foreach(json_object_get(cell, "checks"), i, x)
	{
		if (strcmp(text_get(x, "check"), "identity") == 0 && strcmp(text_get(x, "arm"), arm) == 0)
			passes = strcmp(text_get(x, "status"), "pass") == 0;
	}
	return passes;
}

bool suggest_same_bits(const json_t *const *cell, size_t n, const char *arm, const char *base)
{
	for (size_t i = 0; i < n; i++) {
		const char *a = text_get(report_arm(cell[i], arm), "out_sha256");
		const char *b = text_get(report_arm(cell[i], base), "out_sha256");
		if (*a && *b ? strcmp(a, b) != 0 : !identity_passes(cell[i], arm) || !identity_passes(cell[i], base))
			return false;
	}
	return true;
}

bool suggest_selectable(const json_t *const *cell, size_t n, const char *arm)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *a = report_arm(cell[i], arm);
		const char *role = text_get(a, "role");
		if (!a || json_is_string(json_object_get(a, "unsupported")) ||
		    !json_is_object(json_object_get(a, "summary")) ||
		    (strcmp(role, "candidate") != 0 && strcmp(role, "shipped") != 0))
			return false;
	}
	return n > 0;
}
