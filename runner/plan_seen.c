/* plan_seen: what of a case the cells of this plan take part in, after exclusions, filters and the shard: for what is told of a run. */
#include <stdlib.h>
#include <string.h>

#include "plan_space.h"

static void everything(const struct case_space *s, struct plan_seen *out)
{
	memset(out->kernel, true, (size_t)s->n_kernels);
	memset(out->geometry, true, (size_t)s->n_geometries);
	memset(out->data, true, (size_t)s->n_data);
	for (int i = 0; i < s->n_axes; i++)
		memset(out->value[i], true, (size_t)s->c->axis[i].n);
}

static void point(const struct case_space *s, int64_t offset, struct plan_seen *out)
{
	int digit[MAX_AXES] = {0};
	int64_t group = offset / s->group_points, rest = offset % s->group_points;
	out->data[group % s->n_data] = true;
	out->geometry[group / s->n_data % s->n_geometries] = true;
	out->kernel[group / s->n_data / s->n_geometries] = true;
	for (int i = s->n_digits; i-- > 0;) {
		digit[i] = (int)(rest % s->digit_size[i]);
		rest /= s->digit_size[i];
	}
	for (int i = 0; i < s->n_axes; i++)
		out->value[i][digit[s->digit_of[i]]] = true;
}

void plan_case_seen(const struct plan *p, int c, struct arena *a, struct plan_seen *out)
{
	const struct case_space *s = &p->space[c];
	const struct cell_set *set = p->chosen.word ? &p->chosen : &p->whole;
	*out = (struct plan_seen){
		.kernel = arena_array(a, (size_t)s->n_kernels, sizeof(bool)),
		.geometry = arena_array(a, (size_t)s->n_geometries, sizeof(bool)),
		.data = arena_array(a, (size_t)s->n_data, sizeof(bool)),
		.checks = s->c->checks.on & p->checks,
	};
	for (int i = 0; i < s->n_axes; i++)
		out->value[i] = arena_array(a, (size_t)s->c->axis[i].n, sizeof(bool));
	if (!set->word && !p->shard_n) {
		out->cells = s->count;
		everything(s, out);
		return;
	}
	int64_t rank = cell_set_rank(set, s->first);
	for (int64_t number = s->first; number < s->first + s->count; number++) {
		if (!cell_set_has(set, number))
			continue;
		if (p->shard_n && rank++ % p->shard_n != p->shard_i - 1)
			continue;
		point(s, number - s->first, out);
		out->cells++;
	}
}

const char *const *plan_case_arms(const struct plan *p, int c, const struct plan_seen *seen, struct arena *a, int *n)
{
	const struct case_space *s = &p->space[c];
	const char **name = arena_array(a, (size_t)s->c->n_arms, sizeof *name);
	*n = 0;
	/* In the order of the case: an arm stands there once, whichever kernels have it. */
	for (int i = 0; i < s->c->n_arms; i++) {
		bool has = false;
		for (int k = 0; k < s->n_kernels && !has; k++)
			for (int x = 0; seen->kernel[k] && x < s->arms[k].n && !has; x++)
				has = strcmp(s->arms[k].arm[x].name, s->c->arm[i].name) == 0;
		if (has)
			name[(*n)++] = s->c->arm[i].name;
	}
	return name;
}

int64_t plan_whole_count(const struct plan *p)
{
	return p->whole.count;
}
