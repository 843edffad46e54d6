#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "unit.h"

#define PLUGIN(name) ASSAY_TEST_BUILD "/plugin/" name ".so"

static struct arena *arena;
static struct registry *reg;
static uint64_t state;

static void setup(void)
{
	struct err err = {""};
	arena = arena_create();
	reg = registry_create();
	ck_assert_msg(registry_load_plugin(reg, PLUGIN("twice"), NULL, &err), "%s", err.text);
	state = 12345;
}

static void teardown(void)
{
	registry_destroy(reg);
	arena_destroy(arena);
}

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static int some_int(void)
{
	return (int)(uint32_t)draw();
}

/* Doubles of every size, that only 17 digits bring back. */
static double some_double(void)
{
	double d;
	do {
		uint64_t bits = draw();
		memcpy(&d, &bits, sizeof d);
	} while (!isfinite(d));
	return d;
}

static const char *some_text(void)
{
	static const char *const odd[] = {"plain", "", "with \"quotes\"", "tab\tnewline\n", "Grüße ✓", "split=4", NULL};
	return odd[draw() % 7];
}

static const char *some_word(void)
{
	return arena_printf(arena, "w%u", (unsigned)(draw() % 1000));
}

static void some_list(const char **list, int max)
{
	int n = (int)(draw() % (uint64_t)(max + 1)); /* may be full, then without a NULL */
	for (int i = 0; i < n; i++)
		list[i] = some_word();
}

/* Members are set one by one: the bytes between them stay zero and can be compared. */
static void fill_mark(struct mark *m)
{
	if (draw() % 3 == 0)
		return;
	m->file = some_word();
	m->line = some_int();
	m->col = some_int();
	m->len = some_int();
}

static void fill_timing(struct timing *t)
{
	t->clock = (enum clock_kind)(draw() % 2);
	t->estimator = (enum estimator)(draw() % 3);
	t->rounds = some_int();
	t->min_rounds = some_int();
	t->max_rounds = some_int();
	t->alpha = some_double();
	t->warmup_launches = some_int();
	t->warmup_ns = (int64_t)draw();
	t->scrub = (enum scrub_kind)(draw() % 4);
	t->scrub_bytes = (int64_t)draw();
	t->rotate_copies = some_int();
	t->order = (enum order_kind)(draw() % 3);
	some_list(t->order_list, MAX_LIST);
	t->null_arm = draw() & 1;
	t->confirm = (enum confirm_kind)(draw() % 2);
	t->batch = some_int();
	t->cell_budget_ns = (int64_t)draw();
	t->suite_budget_ns = (int64_t)draw();
	t->timeout_ns = (int64_t)draw();
	t->retries = some_int();
	t->threads = some_int();
	t->tau = some_double();
}

static void fill_checks(struct checks *c)
{
	c->on = (uint32_t)draw();
	c->identity.against = some_text();
	some_list(c->identity.arms, MAX_LIST);
	c->repeat.launches = some_int();
	c->repeat.processes = some_int();
	c->repeat.addresses = draw() & 1;
	some_list(c->repeat.arms, MAX_LIST);
	c->invariant.rows = some_text();
	for (int i = 0; i < MAX_LIST; i++)
		c->invariant.leading[i] = (int64_t)draw();
	c->invariant.n_leading = some_int();
	c->invariant.permute = draw() & 1;
	c->invariant.neighbours = draw() & 1;
	some_list(c->invariant.arms, MAX_LIST);
	some_list(c->reference.arms, MAX_LIST);
	c->reference.adapter = draw() & 1;
	c->reference.abs = some_double();
	c->reference.rel = some_double();
	c->reference.sample_rows = (int64_t)draw();
	c->regression.select = some_text();
	c->regression.against = some_text();
	c->ratio.of = some_text();
	c->ratio.over = some_text();
	c->ratio.geomean = draw() & 1;
	c->ratio.weighted = draw() & 1;
	c->ratio.agree_over_data = draw() & 1;
	c->ratio.agree_tolerance = some_double();
	some_list(c->ratio.may_differ, MAX_LIST);
	c->ratio.equal_issue_interval = some_double();
	c->ratio.has_bar = draw() & 1;
	c->ratio.bar_at_least = some_double();
}

static void fill_rule(struct fill_rule *r)
{
	r->tensor = some_text();
	r->field = some_text();
	r->spec.kind = (enum fill_kind)(draw() % 15);
	r->spec.range[0] = some_double();
	r->spec.range[1] = some_double();
	r->spec.mean = some_double();
	r->spec.sd = some_double();
	r->spec.magnitude[0] = (int64_t)draw();
	r->spec.magnitude[1] = (int64_t)draw();
	r->spec.value = some_double();
	r->spec.exponent = some_double();
	r->spec.k = (int64_t)draw();
	r->spec.repeats = draw() & 1;
	r->spec.base = some_double();
	r->spec.step = some_double();
	r->spec.modulus = (int64_t)draw();
	r->spec.path = some_text();
	r->spec.has_seed = draw() & 1;
	r->spec.seed = draw();
	some_list(r->spec.seed_xor, 4);
}

static void fill_cell(struct cell *c)
{
	const struct assay_kernel *k = registry_find(reg, "demo.twice");
	memset(c, 0, sizeof *c);
	c->plan_index = (int64_t)(draw() >> 1);
	c->id = some_word();
	c->suite = some_word();
	c->suite_path = some_text();
	c->case_id = some_word();
	c->kernel_name = k->name;
	c->kernel = k;
	c->geometry = some_word();
	c->data = some_word();
	for (int i = 0; i < k->n_params; i++) {
		if (k->params[i].type == ASSAY_INT)
			c->point.v[i].i = (int64_t)draw();
		else
			c->point.v[i].d = some_double();
	}
	c->n_axes = (int)(draw() % (ASSAY_MAX_PARAMS + 1));
	for (int i = 0; i < c->n_axes; i++) {
		c->axis[i].name = some_word();
		c->axis[i].value.is_int = draw() & 1;
		c->axis[i].value.i = (int64_t)draw();
		c->axis[i].value.d = some_double();
	}
	c->n_arms = 1 + (int)(draw() % MAX_ARMS);
	for (int i = 0; i < c->n_arms; i++) {
		struct env_flip *env = arena_array(arena, 2, sizeof *env);
		env[0] = (struct env_flip){some_word(), some_text()};
		env[1] = (struct env_flip){some_word(), NULL};
		struct cell_arm *arm = &c->arm[i];
		arm->name = some_word();
		arm->role = (enum cell_arm_role)(draw() % 4);
		arm->desc = &k->arms[draw() % (uint64_t)k->n_arms];
		arm->arg = (int64_t)draw();
		arm->env = env;
		arm->n_env = (int)(draw() % 3);
		arm->graph = draw() & 1;
		arm->unsupported = some_text();
	}
	int n_rules = (int)(draw() % 4);
	struct fill_rule *rule = arena_array(arena, (size_t)n_rules, sizeof *rule);
	for (int i = 0; i < n_rules; i++)
		fill_rule(&rule[i]);
	c->dist.name = some_text();
	c->dist.rules = rule;
	c->dist.n_rules = n_rules;
	c->dist.promise.finite_as = (uint32_t)draw();
	c->dist.promise.no_denormals_as = (uint32_t)draw();
	c->dist.promise.sign = some_int();
	c->dist.promise.has_range = draw() & 1;
	c->dist.promise.range[0] = some_double();
	c->dist.promise.range[1] = some_double();
	c->seed = draw();
	c->weight = draw() % 3 ? some_double() : NAN;
	fill_timing(&c->timing);
	fill_checks(&c->checks);
	c->selection = (enum selection)(draw() % 3);
	c->selected = some_text();
	fill_mark(&c->selected_row);
	c->margin_fail = some_double();
	c->margin_warn = some_double();
	c->margin_floor_ns = (int64_t)draw();
	fill_mark(&c->margin_mark);
	c->gate = draw() & 1;
	fill_mark(&c->rig_mark);
	c->waiver = some_text();
	c->waiver_expect = some_text();
	c->waiver_reason = some_text();
	c->waiver_until = some_text();
	c->waiver_arm = some_text();
	some_list(c->tag, MAX_LIST);
	c->skip = some_text();
}

/* Texts are compared and then made the same pointer, so that the rest can be compared as bytes. */
static void same(const char **a, const char **b)
{
	if (*a || *b)
		ck_assert_str_eq(*a, *b);
	*b = *a;
}

static void same_list(const char **a, const char **b, int n)
{
	for (int i = 0; i < n; i++)
		same(&a[i], &b[i]);
}

#define SAME(member) same(&a->member, &b->member)
#define SAME_LIST(member) same_list(a->member, b->member, (int)(sizeof a->member / sizeof a->member[0]))

static void same_cell(struct cell *a, struct cell *b)
{
	SAME(id);
	SAME(suite);
	SAME(suite_path);
	SAME(case_id);
	SAME(kernel_name);
	SAME(geometry);
	SAME(data);
	SAME(selected);
	SAME(selected_row.file);
	SAME(margin_mark.file);
	SAME(rig_mark.file);
	SAME(waiver);
	SAME(waiver_expect);
	SAME(waiver_reason);
	SAME(waiver_until);
	SAME(waiver_arm);
	SAME(skip);
	SAME_LIST(tag);
	SAME_LIST(timing.order_list);
	SAME(checks.identity.against);
	SAME_LIST(checks.identity.arms);
	SAME_LIST(checks.repeat.arms);
	SAME(checks.invariant.rows);
	SAME_LIST(checks.invariant.arms);
	SAME_LIST(checks.reference.arms);
	SAME(checks.regression.select);
	SAME(checks.regression.against);
	SAME(checks.ratio.of);
	SAME(checks.ratio.over);
	SAME_LIST(checks.ratio.may_differ);
	SAME(dist.name);
	for (int i = 0; i < a->n_axes; i++)
		SAME(axis[i].name);
	ck_assert_int_eq(a->dist.n_rules, b->dist.n_rules);
	for (int i = 0; i < a->dist.n_rules; i++) {
		struct fill_rule x = a->dist.rules[i], y = b->dist.rules[i];
		same(&x.tensor, &y.tensor);
		same(&x.field, &y.field);
		same(&x.spec.path, &y.spec.path);
		same_list(x.spec.seed_xor, y.spec.seed_xor, 4);
		ck_assert_mem_eq(&x, &y, sizeof x);
	}
	b->dist.rules = a->dist.rules;
	ck_assert_int_eq(a->n_arms, b->n_arms);
	for (int i = 0; i < a->n_arms; i++) {
		SAME(arm[i].name);
		SAME(arm[i].unsupported);
		ck_assert_int_eq(a->arm[i].n_env, b->arm[i].n_env);
		for (int e = 0; e < a->arm[i].n_env; e++) {
			struct env_flip x = a->arm[i].env[e], y = b->arm[i].env[e];
			same(&x.name, &y.name);
			same(&x.value, &y.value);
		}
		b->arm[i].env = a->arm[i].env;
	}
	if (isnan(a->weight)) {
		ck_assert(isnan(b->weight));
		b->weight = a->weight;
	}
	ck_assert_mem_eq(a, b, sizeof *a);
}

START_TEST(round_trip)
{
	for (int i = 0; i < 300; i++) {
		struct cell a, b;
		struct err err = {""};
		fill_cell(&a);
		json_t *j = cell_to_json(&a);
		char *line = json_dumps(j, JSON_COMPACT); /* as on the socket */
		ck_assert_ptr_nonnull(line);
		json_t *back = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		ck_assert_ptr_nonnull(back);
		ck_assert_msg(cell_from_json(back, reg, arena, &b, &err), "%s", err.text);
		json_t *again = cell_to_json(&b);
		ck_assert(json_equal(back, again));
		same_cell(&a, &b);
		json_decref(again);
		json_decref(back);
		json_decref(j);
		free(line);
	}
}
END_TEST

/* Each field is needed, and of its type. */
START_TEST(damaged)
{
	struct cell a, b;
	struct err err;
	fill_cell(&a);
	json_t *whole = cell_to_json(&a);
	const char *key;
	json_t *value;
	int n = 0;
	json_object_foreach(whole, key, value)
	{
		json_t *less = json_copy(whole);
		json_object_del(less, key);
		ck_assert_msg(!cell_from_json(less, reg, arena, &b, &err), "accepted without %s", key);
		json_object_set_new(less, key, json_real(0.5));
		bool takes_reals = json_is_real(value) || (json_is_null(value) && strcmp(key, "weight") == 0);
		ck_assert_msg(cell_from_json(less, reg, arena, &b, &err) == takes_reals, "%s", key);
		json_decref(less);
		n++;
	}
	ck_assert_int_gt(n, 25);
	static const char *const inner[] = {"timing", "checks", "dist"};
	for (int i = 0; i < 3; i++)
		json_object_foreach(json_object_get(whole, inner[i]), key, value)
		{
			json_t *less = json_deep_copy(whole);
			json_object_del(json_object_get(less, inner[i]), key);
			/* A distribution may have no name. */
			bool optional = i == 2 && strcmp(key, "name") == 0;
			ck_assert_msg(cell_from_json(less, reg, arena, &b, &err) == optional, "%s.%s", inner[i], key);
			json_decref(less);
		}
	json_object_set_new(whole, "kernel_name", json_string("demo.gone"));
	ck_assert(!cell_from_json(whole, reg, arena, &b, &err));
	ck_assert_str_eq(err.text, "no kernel 'demo.gone' in this process; was its plugin given?");
	json_decref(whole);
	json_t *list = json_array();
	ck_assert(!cell_from_json(list, reg, arena, &b, &err));
	json_decref(list);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cell_json");
	TCase *tc = tcase_create("cell_json");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, round_trip);
	tcase_add_test(tc, damaged);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
