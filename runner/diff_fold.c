#include "diff_fold.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy_of(const char *s)
{
	if (!s)
		return NULL;
	char *p = strdup(s);
	if (!p)
		abort();
	return p;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* The case's part of an id. */
static char *case_of(const char *id)
{
	const char *slash = strchr(id, '/');
	const char *s = slash ? slash + 1 : id;
	char *p = strndup(s, strcspn(s, "/"));
	if (!p)
		abort();
	return p;
}

/* Keeps the terms of `point` that `other` has too. */
static void common_terms(char *point, const char *other)
{
	char kept[4200] = "";
	for (char *s = point; *s;) {
		size_t n = strcspn(s, ",");
		for (const char *o = other; *o;) {
			size_t m = strcspn(o, ",");
			if (m == n && strncmp(s, o, n) == 0) {
				size_t at = strlen(kept);
				snprintf(kept + at, sizeof kept - at, "%s%.*s", at ? "," : "", (int)n, s);
				break;
			}
			o += m + (o[m] == ',');
		}
		s += n + (s[n] == ',');
	}
	strcpy(point, kept); /* never longer */
}

static void forget_unless(char **at, const char *other)
{
	if (*at && strcmp(*at, other) != 0) {
		free(*at);
		*at = NULL;
	}
}

static void numbers(struct diff_fold *f, const struct diff_row *row)
{
	f->base_ns = row->base_ns;
	f->head_ns = row->head_ns;
	f->ratio = row->ratio;
	f->lo = row->lo;
	f->hi = row->hi;
	f->of_ratio = row->of_ratio;
}

static void add(void *ctx, const struct diff_row *row)
{
	struct diff_folds *l = ctx;
	struct diff_fold *f = NULL;
	/* Neighbours are alike: the newest line first. */
	for (size_t i = l->n; i-- > 0 && !f && !l->unfolded;) {
		struct diff_fold *x = &l->fold[i];
		if (same(x->kernel, row->kernel) && same(x->arm, row->arm) && same(x->why, row->why))
			f = x;
	}
	if (f) {
		char *c = case_of(row->id);
		forget_unless(&f->case_id, c);
		free(c);
		forget_unless(&f->geometry, row->geometry);
		forget_unless(&f->data, row->data);
		common_terms(f->point, row->point);
		f->rows++;
		if (isnan(f->ratio) || fabs(log(row->ratio)) > fabs(log(f->ratio)))
			numbers(f, row);
		return;
	}
	if (l->n == DIFF_MAX_FOLDS && !l->unfolded) {
		l->rows_left_out++;
		return;
	}
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 32;
		l->fold = realloc(l->fold, l->cap * sizeof *l->fold);
		if (!l->fold)
			abort();
	}
	f = &l->fold[l->n++];
	*f = (struct diff_fold){
		.state = row->state,
		.kernel = copy_of(row->kernel),
		.arm = copy_of(row->arm),
		.why = copy_of(row->why),
		.case_id = case_of(row->id),
		.geometry = copy_of(row->geometry),
		.data = copy_of(row->data),
		.point = copy_of(row->point),
		.rows = 1,
	};
	numbers(f, row);
}

void diff_folds_collect(const struct diff *d, enum diff_state state, struct diff_folds *out)
{
	*out = (struct diff_folds){.unfolded = out->unfolded};
	diff_rows(d, state, add, out);
}

void diff_folds_free(struct diff_folds *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct diff_fold *f = &l->fold[i];
		free(f->kernel);
		free(f->arm);
		free(f->why);
		free(f->case_id);
		free(f->geometry);
		free(f->data);
		free(f->point);
	}
	free(l->fold);
	*l = (struct diff_folds){.unfolded = l->unfolded};
}

void diff_fold_label(const struct diff_fold *f, const struct diff_summary *s, char *out, size_t cap)
{
	const char *part[] = {
		s->many_cases && f->case_id ? f->case_id : "",
		f->kernel,
		f->point,
		s->many_geometries && f->geometry ? f->geometry : "",
		s->many_data && f->data ? f->data : "",
	};
	out[0] = 0;
	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		size_t n = strlen(out);
		if (part[i][0])
			snprintf(out + n, cap - n, "%s%s", n ? " " : "", part[i]);
	}
}

void diff_fold_selector(const struct diff_fold *f, const struct diff_summary *s, char *out, size_t cap)
{
	snprintf(out, cap, "kernel=%s", f->kernel);
	if (f->case_id && s->many_cases)
		snprintf(out + strlen(out), cap - strlen(out), ",case=%s", f->case_id);
	if (f->geometry && s->many_geometries)
		snprintf(out + strlen(out), cap - strlen(out), ",geometry=%s", f->geometry);
	if (f->data && s->many_data)
		snprintf(out + strlen(out), cap - strlen(out), ",data=%s", f->data);
	if (f->point[0])
		snprintf(out + strlen(out), cap - strlen(out), ",%s", f->point);
}
