/* plan: what is asked of it from outside; plan_space.h says how it is made. */
#include "plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plain.h"
#include "plan_space.h"
#include "sha256.h"

static const uint32_t all_checks = (1u << N_CHECKS) - 1;

static const struct cell_set *chosen(const struct plan *p)
{
	return p->chosen.word ? &p->chosen : &p->whole;
}

static bool keeps_some_check(const struct plan *p, struct err *err)
{
	uint32_t any = 0;
	for (int i = 0; i < p->n_spaces; i++)
		any |= p->space[i].c->checks.on;
	if (!any || any & p->checks)
		return true;
	return err_set(err, "none of the checks asked for stands in the suite '%s'; no cell would be checked",
		       p->suite->name);
}

/* Errors with a place are in d: *err counts them. */
static bool placed_errors(const struct suite *s, const struct diags *d, int before, struct err *err)
{
	int n = diags_errors(d) - before;
	return n ? err_set(err, "%s: %d error%s in the plan; nothing was run", s->path, n, n == 1 ? "" : "s") : true;
}

struct plan *plan_build(const struct suite *s, const struct registry *r, const struct plan_target *t,
			const struct plan_filter *f, struct diags *diags, struct err *err)
{
	struct arena *a = arena_create();
	struct plan *p = arena_alloc(a, sizeof *p);
	int before = diags_errors(diags);
	p->arena = a;
	p->suite = s;
	p->registry = r;
	p->target = *t;
	p->target.device = arena_strdup(a, t->device);
	p->target.host = arena_strdup(a, t->host);
	p->checks = f && f->checks ? f->checks : all_checks;
	p->shard_i = f ? f->shard_i : 0;
	p->shard_n = f ? f->shard_n : 0;
	p->waiver_hits = arena_array(a, (size_t)s->n_waivers, sizeof *p->waiver_hits);
	p->waiver_lacks = arena_array(a, (size_t)s->n_waivers, sizeof *p->waiver_lacks);
	p->space = arena_array(a, (size_t)s->n_cases, sizeof *p->space);
	if (p->shard_n < 0 || (p->shard_n ? p->shard_i < 1 || p->shard_i > p->shard_n : p->shard_i != 0)) {
		err_set(err, "shard %d/%d: write i/n with 1 <= i <= n", p->shard_i, p->shard_n);
		goto fail;
	}
	for (int i = 0; i < s->n_cases; i++) {
		bool made = space_init(p, &p->space[p->n_spaces], &s->cases[i], i, diags, err);
		p->n_spaces++;
		if (!made)
			break; /* later cases have no numbers */
	}
	if (!placed_errors(s, diags, before, err) || !keeps_some_check(p, err) || !plan_scan(p, f, diags, err) ||
	    !placed_errors(s, diags, before, err))
		goto fail;
	return p;
fail:
	plan_destroy(p);
	return NULL;
}

void plan_destroy(struct plan *p)
{
	if (!p)
		return;
	cell_set_free(&p->whole);
	cell_set_free(&p->chosen);
	arena_destroy(p->arena);
}

int64_t plan_count(const struct plan *p)
{
	int64_t n = chosen(p)->count;
	if (!p->shard_n)
		return n;
	return n < p->shard_i ? 0 : (n - p->shard_i) / p->shard_n + 1;
}

static void set_point(struct cell *c, const struct group *g)
{
	group_point(g, &c->point);
	c->n_axes = g->space->n_axes;
	for (int i = 0; i < c->n_axes; i++) {
		const struct axis *x = &g->space->c->axis[i];
		c->axis[i] = (struct named_number){.name = x->name, .value = x->value[g->at[i]], .mark = x->mark};
	}
}

/* NULL, or why the arm cannot run at the point. */
static const char *unsupported(const struct cell_arm *arm, const struct assay_point *pt, const struct plan_target *t)
{
	const enum assay_backend backend = t->backend;
	if (!arm->desc->ops[backend])
		return backend == ASSAY_CUDA ? "has no code for cuda" : "has no code for the host";
	if (arm->graph && backend != ASSAY_CUDA)
		return "a captured graph needs cuda";
	/* Of a device elsewhere the architecture is not known: what it cannot run is told there. */
	const bool known = backend != ASSAY_CUDA || t->cc > 0;
	const char *why = known && arm->desc->unsupported_on ? arm->desc->unsupported_on(backend, t->cc) : NULL;
	if (why)
		return why;
	return arm->desc->unsupported ? arm->desc->unsupported(pt, arm->arg, backend) : NULL;
}

static void set_arms(struct arena *a, struct cell *c, const struct group *g)
{
	const struct kernel_arms *arms = &g->space->arms[g->kernel];
	c->n_arms = arms->n;
	for (int i = 0; i < arms->n; i++) {
		c->arm[i] = arms->arm[i];
		c->arm[i].unsupported = plain_text(a, unsupported(&c->arm[i], &c->point, &g->plan->target));
	}
}

/* The served arm cannot run here: as if it were not timed. Where shipped cannot run, nothing can be said at all. */
static void settle(struct cell *c, struct arena *a)
{
	if (c->arm[0].unsupported)
		c->skip = arena_printf(a, "%s: %s", c->arm[0].name, c->arm[0].unsupported);
	else if (!c->checks.on)
		c->skip = "none of the checks asked for is in this case";
	for (int i = 0; c->selection == SELECT_ARM && i < c->n_arms; i++)
		if (strcmp(c->arm[i].name, c->selected) == 0 && c->arm[i].unsupported && i > 0)
			c->selection = SELECT_NOT_TIMED;
	if (!(c->checks.on & 1u << CHECK_REGRESSION)) {
		c->selection = SELECT_NONE;
		c->selected = NULL;
		c->selected_row = (struct mark){0};
	}
}

/* The cell at this point of the product. */
static bool make_cell(const struct plan *p, int64_t number, struct arena *a, struct cell *out, struct err *err)
{
	struct group g;
	plan_locate(p, number, &g);
	const struct suite_case *c = g.space->c;
	const struct geometry *geo = c->n_geometries ? c->geometry[g.geometry] : NULL;
	char *id = NULL;
	size_t cap = 0;
	size_t len = group_id(&g, &id, &cap);
	*out = (struct cell){
		.plan_index = cell_set_rank(&p->whole, number),
		.id = arena_strndup(a, id, len),
		.suite = p->suite->name,
		.suite_path = p->suite->path,
		.rerun_as = p->suite->rerun_as,
		.set_words = p->suite->set_words,
		.case_id = c->id,
		.kernel_name = g.desc->name,
		.geometry = group_geometry_name(&g),
		.data = group_data_name(&g),
		.kernel = g.desc,
		.seed = c->seed,
		.weight = geo && geo->has_weight ? geo->weight : NAN,
		.timing = c->timing,
		.checks = c->checks,
	};
	free(id);
	out->checks.on &= p->checks;
	for (int k = 0; k < c->n_tags && k < MAX_LIST; k++)
		out->tag[k] = c->tag[k];
	if (c->n_data)
		out->dist = *c->data[g.data];
	else
		out->dist.name = out->data;
	set_point(out, &g);
	set_arms(a, out, &g);
	if (!rules_apply(&g, a, out, err))
		return false;
	settle(out, a);
	return true;
}

bool plan_cell(const struct plan *p, int64_t i, struct arena *a, struct cell *out, struct err *err)
{
	if (i < 0 || i >= plan_count(p))
		return err_set(err, "no cell %" PRId64 " in a plan of %" PRId64, i, plan_count(p));
	return make_cell(p, cell_set_nth(chosen(p), p->shard_n ? i * p->shard_n + p->shard_i - 1 : i), a, out, err);
}

bool plan_whole_cell(const struct plan *p, int64_t i, struct arena *a, struct cell *out, struct err *err)
{
	if (i < 0 || i >= p->whole.count)
		return err_set(err, "no cell %" PRId64 " in a whole plan of %" PRId64, i, p->whole.count);
	return make_cell(p, cell_set_nth(&p->whole, i), a, out, err);
}

int64_t plan_find(const struct plan *p, const char *id)
{
	int64_t number = plan_number_of(p, id);
	const struct cell_set *list = chosen(p);
	if (number < 0 || !cell_set_has(list, number))
		return -1;
	int64_t k = cell_set_rank(list, number);
	if (!p->shard_n)
		return k;
	return k % p->shard_n == p->shard_i - 1 ? k / p->shard_n : -1;
}

void plan_hash(const struct plan *p, char out[65])
{
	struct sha256 h;
	char *id = NULL;
	size_t cap = 0;
	sha256_init(&h);
	for (int c = 0; c < p->n_spaces; c++) {
		const struct case_space *s = &p->space[c];
		for (int64_t first = s->first; first < s->first + s->count; first += s->group_points) {
			struct group g;
			int64_t number = first;
			plan_locate(p, first, &g);
			do {
				if (!cell_set_has(&p->whole, number++))
					continue;
				size_t n = group_id(&g, &id, &cap); /* may move id */
				sha256_update(&h, id, n);
				sha256_update(&h, "\n", 1);
			} while (group_next(&g));
		}
	}
	free(id);
	sha256_hex_final(&h, out);
}

const struct suite *plan_suite(const struct plan *p)
{
	return p->suite;
}

const struct plan_target *plan_target_of(const struct plan *p)
{
	return &p->target;
}

int64_t plan_case_points(const struct plan *p, int c)
{
	return p->space[c].count;
}

int64_t plan_case_excluded(const struct plan *p, int c)
{
	return p->space[c].excluded;
}

const int64_t *plan_waiver_hits(const struct plan *p)
{
	return p->waiver_hits;
}

const char *const *plan_waiver_lacks(const struct plan *p)
{
	return p->waiver_lacks;
}

struct ignored {
	const char *kernel, *name;
};

struct ignored_list {
	struct ignored *pair;
	size_t n, cap;
	struct arena *arena;
};

static void add_ignored(struct ignored_list *l, const struct assay_kernel *k, const char *name)
{
	if (registry_param(k, name) >= 0)
		return;
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->pair[i].kernel, k->name) == 0 && strcmp(l->pair[i].name, name) == 0)
			return;
	l->pair = arena_grow(l->arena, l->pair, l->n, &l->cap, sizeof *l->pair);
	l->pair[l->n++] = (struct ignored){k->name, name};
}

void plan_ignored(const struct plan *p, void (*say)(void *ctx, const char *kernel, const char *name), void *ctx)
{
	struct ignored_list l = {.arena = arena_create()};
	for (int c = 0; c < p->n_spaces; c++) {
		const struct case_space *s = &p->space[c];
		for (int k = 0; k < s->n_kernels; k++) {
			for (int x = 0; x < s->n_axes; x++)
				add_ignored(&l, s->kernel[k], s->c->axis[x].name);
			for (int g = 0; g < s->c->n_geometries; g++)
				for (int i = 0; i < s->c->geometry[g]->n_params; i++)
					add_ignored(&l, s->kernel[k], s->c->geometry[g]->param[i].name);
		}
	}
	for (size_t i = 0; i < l.n; i++)
		say(ctx, l.pair[i].kernel, l.pair[i].name);
	arena_destroy(l.arena);
}
