/* The rows of `timing` and `checks`: how a cell is timed and what must hold of it. */
#include <string.h>

#include "grammar.h"
#include "settings.h"
#include "stats.h"
#include "yaml_scalar.h"

#define TIMING(field) .offset = offsetof(struct timing, field)
#define CHECKS(field) .offset = offsetof(struct checks, field)

static const struct slot word_item = {.scalar = SC_WORD};
static const struct slot count_item = {.scalar = SC_INT, .min = 1, .max = 1 << 30};

/* A checked list, or a lone value as a list of one. */
static int items(const struct yaml_node *v)
{
	return v->kind == YAML_TREE_SEQ ? v->n : 1;
}

static const struct yaml_node *item(const struct yaml_node *v, int i)
{
	return v->kind == YAML_TREE_SEQ ? v->item[i] : v;
}

static void scrub_set(struct arena *a, void *base, const struct yaml_node *v)
{
	struct timing *t = base;
	t->scrub_bytes = 0;
	t->rotate_copies = 0;
	if (v->kind == YAML_TREE_MAP) {
		int64_t n = 0;
		const struct yaml_node *copies = yaml_get(v, "rotate", NULL);
		if (copies)
			scalar_int(copies->text, &n, NULL);
		t->scrub = SCRUB_ROTATE;
		t->rotate_copies = (int)n;
	} else if (!strcmp(v->text, "auto")) {
		t->scrub = SCRUB_AUTO;
	} else if (!strcmp(v->text, "none")) {
		t->scrub = SCRUB_NONE;
	} else if (!strcmp(v->text, "rotate")) {
		t->scrub = SCRUB_ROTATE;
	} else {
		scalar_size(v->text, &t->scrub_bytes, NULL);
		t->scrub = t->scrub_bytes ? SCRUB_BYTES : SCRUB_NONE;
	}
}

static json_t *scrub_get(const void *base)
{
	const struct timing *t = base;
	switch (t->scrub) {
	case SCRUB_AUTO: return json_string("auto");
	case SCRUB_NONE: return json_string("none");
	case SCRUB_BYTES: return grammar_size(t->scrub_bytes);
	case SCRUB_ROTATE: break;
	}
	return t->rotate_copies ? json_pack("{s:i}", "rotate", t->rotate_copies) : json_string("rotate");
}

static void order_set(struct arena *a, void *base, const struct yaml_node *v)
{
	struct timing *t = base;
	memset(t->order_list, 0, sizeof t->order_list);
	if (v->kind == YAML_TREE_SCALAR && !strcmp(v->text, "random")) {
		t->order = ORDER_RANDOM;
	} else if (v->kind == YAML_TREE_SCALAR && !strcmp(v->text, "fixed")) {
		t->order = ORDER_FIXED;
	} else {
		t->order = ORDER_LIST;
		for (int i = 0; i < items(v) && i < MAX_LIST - 1; i++)
			t->order_list[i] = arena_strdup(a, item(v, i)->text);
	}
}

static json_t *words_json(const char *const *list)
{
	json_t *j = json_array();
	for (int i = 0; i < MAX_LIST && list[i]; i++)
		json_array_append_new(j, json_string(list[i]));
	return j;
}

static json_t *order_get(const void *base)
{
	const struct timing *t = base;
	return t->order == ORDER_LIST ? words_json(t->order_list)
				      : json_string(t->order == ORDER_FIXED ? "fixed" : "random");
}

static void leading_set(struct arena *a, void *base, const struct yaml_node *v)
{
	struct check_invariant *c = &((struct checks *)base)->invariant;
	c->n_leading = 0;
	for (int i = 0; i < items(v) && i < MAX_LIST; i++)
		scalar_int(item(v, i)->text, &c->leading[c->n_leading++], NULL);
}

static json_t *leading_get(const void *base)
{
	const struct check_invariant *c = &((const struct checks *)base)->invariant;
	json_t *j = json_array();
	for (int i = 0; i < c->n_leading; i++)
		json_array_append_new(j, json_integer(c->leading[i]));
	return j;
}

static void tolerance_set(struct arena *a, void *base, const struct yaml_node *v)
{
	struct check_reference *c = &((struct checks *)base)->reference;
	c->adapter = v->kind == YAML_TREE_SCALAR;
	c->abs = c->rel = 0;
	const struct yaml_node *abs = yaml_get(v, "abs", NULL), *rel = yaml_get(v, "rel", NULL);
	if (abs)
		scalar_real(abs->text, &c->abs, NULL);
	if (rel)
		scalar_real(rel->text, &c->rel, NULL);
}

static json_t *tolerance_get(const void *base)
{
	const struct check_reference *c = &((const struct checks *)base)->reference;
	return c->adapter ? json_string("adapter") : json_pack("{s:f,s:f}", "abs", c->abs, "rel", c->rel);
}

static void aggregates_set(struct arena *a, void *base, const struct yaml_node *v)
{
	struct check_ratio *c = &((struct checks *)base)->ratio;
	c->geomean = c->weighted = false;
	for (int i = 0; i < items(v); i++)
		*(strcmp(item(v, i)->text, "geomean") ? &c->weighted : &c->geomean) = true;
}

static json_t *aggregates_get(const void *base)
{
	const struct check_ratio *c = &((const struct checks *)base)->ratio;
	json_t *j = json_array();
	if (c->geomean)
		json_array_append_new(j, json_string("geomean"));
	if (c->weighted)
		json_array_append_new(j, json_string("weighted"));
	return j;
}

static const char *const clocks[] = {"device", "launch_to_completion", NULL};
static const char *const estimators[] = {"paired", "mean", "median", NULL};
static const char *const adaptive_word[] = {"adaptive", NULL};
static const char *const auto_word[] = {"auto", NULL};
static const char *const none_word[] = {"none", NULL};
static const char *const all_word[] = {"all", NULL};
static const char *const store_word[] = {"store", NULL};
static const char *const adapter_word[] = {"adapter", NULL};
static const char *const scrub_words[] = {"auto", "none", "rotate", NULL};
static const char *const order_words[] = {"random", "fixed", NULL};
static const char *const confirm_words[] = {"fresh", "none", NULL};
static const char *const aggregate_words[] = {"geomean", "weighted", NULL};
/* Groups of the instruction census (census.h), then classes that are narrower than their group. */
static const char *const differ_words[] = {"matrix_instruction",
					   "conversions",
					   "registers",
					   "spills",
					   "shared_memory",
					   "memory_instructions",
					   "instructions",
					   "matrix_count",
					   "occupancy",
					   "launch",
					   "nothing",
					   "i2f",
					   "f2i",
					   "f2f",
					   "f2fp",
					   NULL};
static const double alphas[] = {0.05, 0.025, 0.01, 0.005, 0.001, 0};

static const struct slot warmup_rows[] = {{"launches", .scalar = SC_INT, .min = 0, .max = 10000, .dflt = "2",
					   .store = ST_INT, TIMING(warmup_launches),
					   .doc = "discarded launches of each arm before the first round"},
					  {"time", .scalar = SC_TIME, .dflt = "0", .store = ST_I64, TIMING(warmup_ns),
					   .doc = "and at least so long, once a process and after an idle gap"},
					  {0}};

static const struct slot budget_rows[] = {{"cell", .words = none_word, .scalar = SC_TIME, .min = 1, .max = 9e18,
					   .dflt = "none", .store = ST_I64, TIMING(cell_budget_ns),
					   .doc = "timing of one cell stops there: `inconclusive(budget)`"},
					  {"suite", .words = none_word, .scalar = SC_TIME, .min = 1, .max = 9e18,
					   .dflt = "none", .store = ST_I64, TIMING(suite_budget_ns),
					   .doc = "cells after it are checked and not timed further"},
					  {0}};

static const struct slot rotate_rows[] = {{"rotate", .scalar = SC_INT, .min = 2, .max = 1024, .required = true,
					   .doc = "copies of the inputs, used in turn"},
					  {0}};

const struct slot grammar_timing[] =
	{{"clock", .words = clocks, .dflt = "device", .store = ST_INT, TIMING(clock),
	  .doc = "`device`: events, with the launch hidden (on the host the same as the other); "
		 "`launch_to_completion`: the host's "
		 "clock around launch and synchronise"},
	 {"estimator", .words = estimators, .dflt = "paired", .store = ST_INT, TIMING(estimator),
	  .doc = "`paired`: Hodges-Lehmann over the rounds' log ratios, with error control; `mean` and `median`: the "
		 "seeds' rules, "
		 "without"},
	 {"rounds", .words = adaptive_word, .scalar = SC_INT, .min = 1, .max = STATS_MAX_ROUNDS, .dflt = "adaptive",
	  .store = ST_INT, TIMING(rounds),
	  .doc = "exactly so many rounds; `adaptive`: looks at 8, 10, 12, 16 … up to `max_rounds`"},
	 {"min_rounds", .scalar = SC_INT, .min = 1, .max = 64, .dflt = "8", .store = ST_INT, TIMING(min_rounds),
	  .doc = "the first look of the adaptive rule"},
	 {"max_rounds", .scalar = SC_INT, .min = 1, .max = 64, .dflt = "64", .store = ST_INT, TIMING(max_rounds),
	  .doc = "the last look of the adaptive rule"},
	 {"alpha", .scalar = SC_REAL, .one_of = alphas, .dflt = "0.025", .store = ST_DOUBLE, TIMING(alpha),
	  .doc = "one-sided error rate of a cell, over all looks"},
	 {"warmup", .sub = warmup_rows, .doc = "what comes before the first round"},
	 {"scrub", .words = scrub_words, .scalar = SC_SIZE, .sub = rotate_rows, .dflt = "auto", .set = scrub_set,
	  .get = scrub_get,
	  .doc = "what makes a launch cold: `auto`, bytes read (on a GPU as many written), `rotate` (copies of the "
		 "inputs in turn), "
		 "`none` (warm)"},
	 {"order", .words = order_words, .item = &word_item, .item_max = MAX_LIST - 1, .dflt = "random",
	  .set = order_set, .get = order_get,
	  .doc = "order of the arms in a round: `random`, `fixed` (as declared), or a list of arms"},
	 {"null_arm", .scalar = SC_BOOL, .dflt = "true", .store = ST_BOOL, TIMING(null_arm),
	  .doc = "the shipped arm once more in every round: the noise floor of this cell"},
	 {"confirm", .words = confirm_words, .dflt = "fresh", .store = ST_INT, TIMING(confirm),
	  .doc = "a suspect is measured again in a fresh process before it is a regression"},
	 {"batch", .words = auto_word, .scalar = SC_INT, .min = 1, .max = 32, .dflt = "auto", .store = ST_INT,
	  TIMING(batch), .doc = "launches a sample; `auto`: from the clock's tick"},
	 {"budget", .sub = budget_rows, .doc = "limits of time"},
	 {"timeout", .words = none_word, .scalar = SC_TIME, .min = 1, .max = 9e18, .dflt = "60s", .store = ST_I64,
	  TIMING(timeout_ns), .doc = "no sign of life for so long: the worker is ended and the cell is `timeout`"},
	 {"retries", .scalar = SC_INT, .min = 0, .max = 10, .dflt = "2", .store = ST_INT, TIMING(retries),
	  .doc = "of a throttled or shared window"},
	 {"threads", .words = auto_word, .scalar = SC_INT, .min = 1, .max = 4096, .dflt = "auto", .store = ST_INT,
	  TIMING(threads), .doc = "of the host backend; `auto`: cores - 1, at least 1"},
	 {"tau", .words = store_word, .word_base = -1, .scalar = SC_PERCENT, .min = 0, .max = 1, .dflt = "store",
	  .store = ST_DOUBLE, TIMING(tau),
	  .doc = "what processes differ by beyond their standard error; `store`: as measured on this device, else "
		 "0.25%"},
	 {0}};

#define ARMS(check, text)                                                                                              \
	{                                                                                                              \
		"arms", .item = &word_item, .item_max = MAX_LIST - 1, .store = ST_STRS, CHECKS(check.arms),            \
			.doc = text                                                                                    \
	}
#define ARMS_TEXT "arms it is for: names, families (`split`) or patterns; left out: every arm it applies to"

static const struct slot identity_rows[] = {{"against", .scalar = SC_WORD, .dflt = "shipped", .store = ST_STR,
					     CHECKS(identity.against), .doc = "the arm whose bits count"},
					    ARMS(identity, ARMS_TEXT),
					    {0}};

static const struct slot repeat_rows[] = {{"launches", .scalar = SC_INT, .min = 2, .max = 1000000, .dflt = "100",
					   .store = ST_INT, CHECKS(repeat.launches),
					   .doc = "of the same arm on the same inputs"},
					  {"processes", .scalar = SC_INT, .min = 1, .max = 64, .dflt = "1",
					   .store = ST_INT, CHECKS(repeat.processes), .doc = "in so many processes"},
					  {"addresses", .scalar = SC_BOOL, .dflt = "false", .store = ST_BOOL,
					   CHECKS(repeat.addresses), .doc = "also with the tensors at other addresses"},
					  ARMS(repeat, ARMS_TEXT),
					  {0}};

static const struct slot invariant_rows[] =
	{{"rows", .scalar = SC_WORD, .store = ST_STR, CHECKS(invariant.rows),
	  .doc = "the parameter whose rows are taken away and rearranged; required where the check is on"},
	 {"leading", .item = &count_item, .item_max = MAX_LIST, .dflt = "1", .set = leading_set, .get = leading_get,
	  .doc = "relaunched with so many leading rows, they must be bitwise the same"},
	 {"permute", .scalar = SC_BOOL, .dflt = "true", .store = ST_BOOL, CHECKS(invariant.permute),
	  .doc = "rows permuted must come out permuted"},
	 {"neighbours", .scalar = SC_BOOL, .dflt = "true", .store = ST_BOOL, CHECKS(invariant.neighbours),
	  .doc = "what the other rows hold must not matter"},
	 ARMS(invariant, ARMS_TEXT),
	 {0}};

static const struct slot tolerance_rows[] = {{"abs", .scalar = SC_REAL, .min = 0, .max = 1e300,
					      .doc = "absolute part of the tolerance, in the output's unit"},
					     {"rel", .scalar = SC_REAL, .min = 0, .max = 1e300,
					      .doc = "part relative to the reference's magnitude"},
					     {0}};

static const struct slot reference_rows[] =
	{ARMS(reference, ARMS_TEXT),
	 {"tolerance", .words = adapter_word, .sub = tolerance_rows, .dflt = "adapter", .set = tolerance_set,
	  .get = tolerance_get,
	  .doc = "`adapter`: the kernel's derived bound; else |arm - reference| <= abs + rel * |reference|"},
	 {"sample_rows", .words = all_word, .scalar = SC_INT, .min = 1, .max = 1e15, .dflt = "all", .store = ST_I64,
	  CHECKS(reference.sample_rows), .doc = "rows of the output that are computed, spread evenly; `all`"},
	 {0}};

static const struct slot regression_rows[] =
	{{"select", .scalar = SC_WORD, .store = ST_STR, CHECKS(regression.select),
	  .doc = "the named table that picks the served arm, or an arm; required where the check is on"},
	 {"against", .scalar = SC_WORD, .dflt = "shipped", .store = ST_STR, CHECKS(regression.against),
	  .doc = "the yardstick"},
	 {0}};

static const struct slot agree_rows[] = {{"data", .scalar = SC_PERCENT, .min = 0, .max = 10, .store = ST_DOUBLE,
					  .required = true, CHECKS(ratio.agree_tolerance),
					  .has = offsetof(struct checks, ratio.agree_over_data) + 1,
					  .doc = "ratios over the distributions may differ by so much"},
					 {0}};
static const struct slot bar_rows[] =
	{{"at_least", .scalar = SC_PERCENT, .min = -1, .max = 100, .store = ST_DOUBLE, .plus = 1, .required = true,
	  CHECKS(ratio.bar_at_least), .has = offsetof(struct checks, ratio.has_bar) + 1,
	  .doc = "the lower end of the aggregate's interval must reach it: `+10pp` is a ratio of 1.10"},
	 {0}};
static const struct slot aggregate_item = {.words = aggregate_words};
static const struct slot differ_item = {.words = differ_words};

static const struct slot ratio_rows[] =
	{{"of", .scalar = SC_WORD, .store = ST_STR, CHECKS(ratio.of),
	  .doc = "the probe arm; required where the check is on"},
	 {"over", .scalar = SC_WORD, .store = ST_STR, CHECKS(ratio.over),
	  .doc = "the reference arm; required where the check is on"},
	 {"aggregates", .item = &aggregate_item, .dflt = "geomean", .set = aggregates_set, .get = aggregates_get,
	  .doc = "over the cells: the geometric mean, the total weighted by the geometries' `weight`"},
	 {"agree_over", .sub = agree_rows, .doc = "what the ratio must not depend on"},
	 {"may_differ", .item = &differ_item, .item_max = MAX_LIST - 1, .store = ST_STRS, CHECKS(ratio.may_differ),
	  .doc = "what the arms claim to differ in; all else that the instruction census counts must be equal; "
		 "`nothing`; left out: nothing is "
		 "compared (docs/ratio.md)"},
	 {"equal_issue_interval", .words = none_word, .word_base = -1, .scalar = SC_PERCENT, .min = 0, .max = 1,
	  .dflt = "none", .store = ST_DOUBLE, CHECKS(ratio.equal_issue_interval),
	  .doc = "the matrix instructions of both arms issue at the same interval, within so much"},
	 {"bar", .sub = bar_rows, .doc = "what the ratio must reach"},
	 {0}};

#define CHECK(name, NAME, text)                                                                                        \
	{                                                                                                              \
#name, .scalar = SC_BOOL, .sub = name##_rows, .bit = CHECK_##NAME + 1, CHECKS(on), .doc = text         \
	}

const struct slot grammar_checks[] =
	{CHECK(identity, IDENTITY, "the bits of an arm's outputs equal those of another arm"),
	 CHECK(repeat, REPEAT, "the same arm gives the same bits again"),
	 CHECK(invariant, INVARIANT, "a row of the output depends on its own inputs only, bit for bit"),
	 CHECK(reference, REFERENCE, "outputs are within tolerance of a plain reference in double"),
	 CHECK(regression, REGRESSION, "the served arm is not slower than shipped, within the margin"),
	 CHECK(ratio, RATIO,
	       "the ratio of two arms over the cells of the case, with the controls that say whether to believe it"),
	 {0}};
