/* Records of cells made by hand, with samples of a scripted ratio. */
#ifndef ASSAY_TEST_RECORD_H
#define ASSAY_TEST_RECORD_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "record.h"

static const struct record_env plain = {.noisy = false, .tau = 0.0025, .today = "2026-11-30"};

/* ---- a cell --------------------------------------------------------------------------------------------------------- */

static inline struct cell cell_of(const char *selected)
{
	struct cell c = {
		.plan_index = 3,
		.id = "s/gate/mla.absorb_q/glm5/normal/kv=2048,t_q=1",
		.suite = "s",
		.case_id = "gate",
		.kernel_name = "mla.absorb_q",
		.geometry = "glm5",
		.data = "normal",
		.suite_path = "suites/my suite.yaml",
		.axis = {{.name = "kv", .value = {true, 2048, 2048}}, {.name = "x", .value = {false, 0, 0.1}}},
		.n_axes = 2,
		.arm = {{.name = "shipped", .role = ROLE_SHIPPED},
			{.name = "split=2", .role = ROLE_CANDIDATE},
			{.name = "split=4", .role = ROLE_CANDIDATE},
			{.name = "other", .role = ROLE_HEADROOM}},
		.n_arms = 4,
		.seed = UINT64_MAX,
		.weight = NAN,
		.timing = {.estimator = EST_PAIRED,
			   .min_rounds = 8,
			   .max_rounds = 64,
			   .alpha = 0.025,
			   .confirm = CONFIRM_FRESH,
			   .tau = -1},
		.selection = selected ? SELECT_ARM : SELECT_NONE,
		.selected = selected,
		.selected_row = {"tables/h.yaml", 12, 1, 1},
		.margin_fail = 0.05,
		.margin_warn = 0.03,
		.margin_floor_ns = 500,
		.margin_mark = {"suites/my suite.yaml", 44, 1, 1},
		.gate = true,
	};
	return c;
}

static uint64_t state;
static inline double noise(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	double sum = 0;
	for (int i = 0; i < 4; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		sum += (double)(state >> 33) / 2147483648.0 - 0.5;
	}
	return 0.02 * sum;
}

static inline json_t *samples(int n, double t, double ratio)
{
	json_t *a = json_array();
	for (int r = 0; r < n; r++)
		json_array_append_new(a, json_integer((json_int_t)llround(t * ratio * exp(noise()))));
	return a;
}

static inline json_t *facts_of(int n, double s2, double s4, double null)
{
	state = 5;
	return json_pack("{s:[{s:s, s:s, s:s, s:s}], s:{s:f, s:f, s:f}, s:[{s:s, s:o}, {s:s, s:o}, {s:s, s:o}, {s:s, "
			 "s:o}, {s:s, s:s, s:o}], "
			 "s:{s:s, s:i, s:i, s:s, s:i, s:i, s:i, s:n, s:i, s:i, s:i, s:n}}",
			 "checks", "check", "identity", "arm", "split=2", "status", "pass", "text", "bits equal",
			 "work", "bytes", 33.5e6, "least_bytes", 33.5e6, "flop", 1e7, "arms", "name", "shipped",
			 "samples_ns", samples(n, 20000, 1), "name", "split=2", "samples_ns", samples(n, 20000, s2),
			 "name", "split=4", "samples_ns", samples(n, 20000, s4), "name", "other", "samples_ns",
			 samples(n, 20000, 0.5), "name", "null", "role", "null", "samples_ns", samples(n, 20000, null),
			 "measure", "clock", "device", "scrub_bytes", 1000000, "batch", 1, "order", "random",
			 "order_seed", 7, "rounds", n, "dropped", 0, "cut", "floor_ns", 2700, "tick_ns", 32, "wall_ns",
			 1000, "threads");
}

static inline json_t *record_of(const char *selected, int n, double s2, double s4)
{
	struct cell c = cell_of(selected);
	json_t *cell = record_cell_begin(&c), *facts = facts_of(n, s2, s4, 1);
	record_merge_facts(cell, facts);
	json_decref(facts);
	return cell;
}

static inline const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}

static inline const json_t *timing(const json_t *cell)
{
	return json_object_get(cell, "timing");
}

/* Judges to the end and checks status, timing verdict and reason; twice, and the second time says the same. */
static inline void expect(json_t *cell, const struct record_env *env, enum cell_status st, const char *verdict,
			  const char *reason)
{
	enum cell_status got = record_judge(cell, env, false);
	char *once = json_dumps(cell, JSON_COMPACT);
	ck_assert_msg(got == st, "%s for %s: %s", status_name(got), status_name(st), text(cell, "reason"));
	ck_assert_str_eq(text(cell, "status"), status_name(st));
	ck_assert_str_eq(text(timing(cell), "verdict"), verdict);
	ck_assert_str_eq(text(timing(cell), "reason"), reason);
	record_judge(cell, env, false);
	char *twice = json_dumps(cell, JSON_COMPACT);
	ck_assert_str_eq(once, twice);
	free(twice);
	free(once);
}

static inline void same_keys(const json_t *o, const char *const *keys)
{
	const char *k;
	json_t *v;
	size_t i = 0;
	json_object_foreach((json_t *)(uintptr_t)o, k, v)
	{
		ck_assert_msg(keys[i] != NULL, "%s is one too many", k);
		ck_assert_str_eq(k, keys[i]);
		i++;
	}
	ck_assert_msg(keys[i] == NULL, "%s is missing", keys[i]);
}

#endif
