/* table_lookup: which row of a serving table speaks for a kernel at a point. */
#include <stdio.h>
#include <string.h>

#include "table_build.h"

const char *const table_lookup_names[N_LOOKUPS] = {"exact", "floor", "ceil", "nearest"};

bool table_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* How far key value k is from v under the rule; negative: not allowed. */
static double distance(enum lookup how, double k, double v)
{
	switch (how) {
	case LOOKUP_EXACT: return k == v ? 0 : -1;
	case LOOKUP_FLOOR: return k <= v ? v - k : -1;
	case LOOKUP_CEIL: return k >= v ? k - v : -1;
	case LOOKUP_NEAREST: return k < v ? v - k : k - v;
	}
	return -1;
}

/* Whether a is a better key than b: nearer in the first key that tells them apart; of two as near the smaller. */
static bool is_nearer(const struct table *t, const struct table_row *a, const struct table_row *b, const double *v)
{
	for (int i = 0; i < t->n_keys; i++) {
		double x = distance(t->lookup, a->key[i].d, v[i]), y = distance(t->lookup, b->key[i].d, v[i]);
		if (x != y)
			return x < y;
		if (a->key[i].d != b->key[i].d)
			return a->key[i].d < b->key[i].d;
	}
	return false;
}

/* The best keyed row, else the default row, of the rows whose kernel is written so. */
static const struct table_row *find_in_block(const struct table *t, const char *kernel, const double *v)
{
	const struct table_row *best = NULL, *dflt = NULL;
	for (int i = 0; i < t->n_rows; i++) {
		const struct table_row *r = &t->row[i];
		if (!table_same_text(r->kernel, kernel))
			continue;
		if (r->is_default) {
			dflt = r;
			continue;
		}
		bool fits = true;
		for (int k = 0; k < t->n_keys; k++)
			fits &= distance(t->lookup, r->key[k].d, v[k]) >= 0;
		if (fits && (!best || is_nearer(t, r, best, v)))
			best = r;
	}
	return best ? best : dflt;
}

static void say_missing(const struct table *t, const char *kernel, const double *v, struct err *err)
{
	char at[160] = "", has[240] = "";
	for (int i = 0; i < t->n_keys; i++) {
		size_t n = strlen(at);
		snprintf(at + n, sizeof at - n, "%s%s=%.10g", i ? "," : "", t->key[i], v[i]);
	}
	for (int i = 0; i < t->n_rows; i++) {
		const struct table_row *r = &t->row[i];
		if (r->is_default || (r->kernel && !select_glob(r->kernel, kernel)))
			continue;
		size_t n = strlen(has);
		if (n + 60 > sizeof has) {
			snprintf(has + n, sizeof has - n, " ...");
			break;
		}
		if (n)
			has[n++] = ' ';
		for (int k = 0; k < t->n_keys && n < sizeof has; k++)
			n += (size_t)snprintf(has + n, sizeof has - n, "%s%s=%.10g", k ? "," : "", t->key[k],
					      r->key[k].d);
	}
	err_set(err, "table %s has no row for %s at %s (lookup: %s); %s%s; add the row, or a default", t->path, kernel,
		*at ? at : "any point", table_lookup_names[t->lookup], *has ? "it has " : "it has none for this kernel",
		has);
}

const struct table_row *table_lookup(const struct table *t, const char *kernel, const struct named_number *axis,
				     int n_axes, struct err *err)
{
	double v[TABLE_MAX_KEYS] = {0};
	for (int k = 0; k < t->n_keys; k++) {
		int i = 0;
		while (i < n_axes && strcmp(axis[i].name, t->key[k]) != 0)
			i++;
		if (i == n_axes) {
			err_set(err, "table %s is keyed on '%s', which is neither an axis nor a parameter of %s",
				t->path, t->key[k], kernel);
			return NULL;
		}
		v[k] = axis[i].value.d;
	}
	const struct table_row *row = find_in_block(t, kernel, v);
	for (int i = 0; i < t->n_rows && !row; i++)
		if (t->row[i].kernel && select_glob(t->row[i].kernel, kernel))
			row = find_in_block(t, t->row[i].kernel, v);
	if (!row)
		row = find_in_block(t, NULL, v);
	if (!row)
		say_missing(t, kernel, v, err);
	return row;
}
