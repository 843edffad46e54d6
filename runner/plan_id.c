/* plan_id: a cell by name: its id, the way back, and what selectors ask of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_space.h"

static void put(char **buf, size_t *cap, size_t *n, const char *s, char then)
{
	size_t len = strlen(s);
	if (*n + len + 2 > *cap) {
		*cap = 2 * (*n + len + 2) + 128;
		*buf = realloc(*buf, *cap);
		if (!*buf)
			abort();
	}
	memcpy(*buf + *n, s, len);
	*n += len;
	if (then)
		(*buf)[(*n)++] = then;
	(*buf)[*n] = 0;
}

size_t group_id(const struct group *g, char **buf, size_t *cap)
{
	const struct case_space *s = g->space;
	size_t n = 0;
	put(buf, cap, &n, g->plan->suite->name, '/');
	put(buf, cap, &n, s->c->id, '/');
	put(buf, cap, &n, g->desc->name, '/');
	put(buf, cap, &n, group_geometry_name(g), '/');
	put(buf, cap, &n, group_data_name(g), s->n_axes ? '/' : 0);
	for (int i = 0; i < s->n_axes; i++) {
		put(buf, cap, &n, s->c->axis[i].name, '=');
		put(buf, cap, &n, s->text[i][g->at[i]], i + 1 < s->n_axes ? ',' : 0);
	}
	return n;
}

/* The rest of id after "name" and the divider, or NULL. */
static const char *skip_word(const char *id, const char *name, char divider)
{
	size_t n = strlen(name);
	if (strncmp(id, name, n) != 0 || id[n] != divider)
		return NULL;
	return divider ? id + n + 1 : id + n;
}

/* Digits of "kv=2048,t_q=1" -> offset in a group, or -1. */
static int64_t parse_point(const struct case_space *s, const char *id)
{
	int digit[MAX_AXES];
	for (int i = 0; i < s->n_digits; i++)
		digit[i] = -1;
	for (int x = 0; x < s->n_axes; x++) {
		id = skip_word(id, s->c->axis[x].name, '=');
		const char *rest = NULL;
		int v = 0;
		for (; id && v < s->c->axis[x].n && !rest; v++)
			rest = skip_word(id, s->text[x][v], x + 1 < s->n_axes ? ',' : 0);
		int *d = &digit[s->digit_of[x]];
		if (!rest || (*d >= 0 && *d != v - 1))
			return -1;
		*d = v - 1;
		id = rest;
	}
	int64_t offset = 0;
	for (int i = 0; i < s->n_digits; i++)
		offset = offset * s->digit_size[i] + digit[i];
	return offset;
}

int64_t plan_number_of(const struct plan *p, const char *id)
{
	id = skip_word(id, p->suite->name, '/');
	for (int i = 0; id && i < p->n_spaces; i++) {
		const struct case_space *s = &p->space[i];
		const char *in_case = skip_word(id, s->c->id, '/');
		int64_t groups = in_case ? s->count / s->group_points : 0;
		for (int64_t n = 0; n < groups; n++) {
			struct group g;
			plan_locate(p, s->first + n * s->group_points, &g);
			const char *rest = skip_word(in_case, g.desc->name, '/');
			rest = rest ? skip_word(rest, group_geometry_name(&g), '/') : NULL;
			rest = rest ? skip_word(rest, group_data_name(&g), s->n_axes ? '/' : 0) : NULL;
			int64_t offset = rest ? parse_point(s, rest) : -1;
			if (offset >= 0)
				return g.first + offset;
		}
	}
	return -1;
}

/* ---- as selectors see it ------------------------------------------------------------------------------------------- */

static const char *copy(char *buf, size_t cap, const char *s)
{
	snprintf(buf, cap, "%s", s);
	return buf;
}

const char *group_get(const void *subject, const char *key, int i, char *buf, size_t cap)
{
	const struct group *g = subject;
	const struct case_space *s = g->space;
	const struct plan_target *t = &g->plan->target;
	if (strcmp(key, "arm") == 0)
		return i < s->arms[g->kernel].n ? s->arms[g->kernel].arm[i].name : NULL;
	if (strcmp(key, "tag") == 0)
		return i < s->c->n_tags ? s->c->tag[i] : NULL;
	if (i > 0)
		return NULL;
	if (strcmp(key, "kernel") == 0)
		return g->desc->name;
	if (strcmp(key, "case") == 0)
		return s->c->id;
	if (strcmp(key, "geometry") == 0)
		return group_geometry_name(g);
	if (strcmp(key, "data") == 0)
		return group_data_name(g);
	if (strcmp(key, "suite") == 0)
		return g->plan->suite->name;
	if (strcmp(key, "backend") == 0)
		return t->backend == ASSAY_CUDA ? "cuda" : "host";
	if (strcmp(key, "device") == 0)
		return t->device;
	if (strcmp(key, "host") == 0)
		return t->host;
	if (strcmp(key, "cc") == 0) {
		snprintf(buf, cap, "%d", t->cc);
		return buf;
	}
	if (strcmp(key, "id") == 0) {
		char *id = NULL;
		size_t id_cap = 0;
		group_id(g, &id, &id_cap);
		copy(buf, cap, id);
		free(id);
		return buf;
	}
	for (int x = 0; x < s->n_axes; x++)
		if (strcmp(key, s->c->axis[x].name) == 0)
			return s->text[x][g->at[x]];
	int k = registry_param(g->desc, key);
	return k >= 0 ? g->constant_text[k] : NULL;
}

const char *cell_get(const void *subject, const char *key, int i, char *buf, size_t cap)
{
	const struct cell *c = subject;
	if (strcmp(key, "arm") == 0)
		return i < c->n_arms ? c->arm[i].name : NULL;
	if (strcmp(key, "tag") == 0)
		return i < MAX_LIST ? c->tag[i] : NULL;
	if (i > 0)
		return NULL;
	const struct {
		const char *key, *value;
	} fixed[] = {{"kernel", c->kernel_name}, {"case", c->case_id}, {"geometry", c->geometry},
		     {"data", c->data},          {"suite", c->suite},  {"id", c->id}};
	for (size_t k = 0; k < sizeof fixed / sizeof fixed[0]; k++)
		if (strcmp(key, fixed[k].key) == 0)
			return fixed[k].value;
	char text[PLAN_NUMBER_MAX];
	for (int x = 0; x < c->n_axes; x++)
		if (strcmp(key, c->axis[x].name) == 0)
			return copy(buf, cap, plan_number_text(&c->axis[x].value, text));
	int k = registry_param(c->kernel, key);
	if (k < 0)
		return NULL;
	bool whole = c->kernel->params[k].type == ASSAY_INT;
	struct number n = {.is_int = whole,
			   .i = whole ? c->point.v[k].i : 0,
			   .d = whole ? (double)c->point.v[k].i : c->point.v[k].d};
	return copy(buf, cap, plan_number_text(&n, text));
}
