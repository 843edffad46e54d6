/* The rows of a suite file. `timing` and `checks` are in grammar_settings.c. */
#include "grammar.h"

#include <string.h>

const char *const grammar_dtypes[] = {"f64", "f32", "f16", "bf16", "e4m3", "e5m2", "s64", "s32",
				      "s16", "s8",  "u64", "u32",  "u16",  "u8",   NULL};
const char *const grammar_fills[] =
	{"default", "uniform",        "normal",           "bytes",           "constant",
	 "zipf",    "k_hot",          "permutation",      "indices",         "pattern",
	 "npy",     "seed_lcg64_f32", "seed_lcg64_index", "seed_lcg32_wide", "seed_lcg32_mid",
	 NULL};
const char *const grammar_statuses[] = {"error",    "timeout",    "invalid",      "wrong",
					"mismatch", "regression", "inconclusive", NULL};

static const char *const signs[] = {"any", "positive", "negative", "both", NULL};
static const char *const none_word[] = {"none", NULL};
static const char *const gates[] = {"diagnostic", "gate", NULL};

static const struct slot word_item = {.scalar = SC_WORD};
static const struct slot name_item = {.scalar = SC_NAME};
static const struct slot real_item = {.scalar = SC_REAL};
static const struct slot number_item = {.scalar = SC_NUMBER};
static const struct slot any_item = {.scalar = SC_ANY};
static const struct slot int_item = {.scalar = SC_INT};
static const struct slot dtype_item = {.words = grammar_dtypes};
static const struct slot none_value = {.words = none_word};

/* A selector: `kernel=mla.*,t_q=1..4`, or as a map. */
static const struct slot pattern_value = {.scalar = SC_ANY, .item = &any_item};
#define SELECTOR .scalar = SC_WORD, .any = &pattern_value, .any_name = "key"
static const struct slot selector_item = {SELECTOR};

/* ---- geometries ---- */
static const struct slot geometry_rows[] =
	{{"extends", .scalar = SC_NAME, .doc = "another geometry, whose values count where this one says nothing"},
	 {"weight", .scalar = SC_REAL, .min = 0, .max = 1e15,
	  .doc = "how often it occurs, for weighted totals (reserved word, no parameter)"},
	 {0}};
static const struct slot number_value = {.scalar = SC_NUMBER, .doc = "value of the kernel's parameter of that name"};
static const struct slot geometry_value = {.sub = geometry_rows, .any = &number_value, .any_name = "parameter"};

/* ---- arms ---- */
static const char *const roles[] = {"shipped", "candidate", "headroom", NULL};
static const struct slot env_value = {.scalar = SC_ANY, .doc = "its value around plan and run; empty: unset"};
static const struct slot arm_rows[] =
	{{"arm", .scalar = SC_WORD, .required = true, .doc = "the kernel's arm, with its argument: `split=4`"},
	 {"name", .scalar = SC_NAME, .doc = "the name in records; the arm's own where left out"},
	 {"role", .words = roles, .doc = "`candidate` (may be selected) or `headroom` (timed, never selectable)"},
	 {"env", .any = &env_value, .any_name = "variable", .doc = "environment variables set around the call"},
	 {"graph", .scalar = SC_BOOL, .doc = "captured once as a CUDA graph and replayed"},
	 {0}};
static const struct slot arm_argument = {.scalar = SC_INT,
					 .doc = "argument of the arm family of that name: `{split: 4}` is `split=4`"};
static const struct slot arm_item = {.key = "the arm",
				     .scalar = SC_WORD,
				     .sub = arm_rows,
				     .any = &arm_argument,
				     .any_name = "family",
				     .long_form = "arm"};
static const struct slot role_rows[] =
	{{"shipped", .scalar = SC_WORD, .sub = arm_rows, .any = &arm_argument, .any_name = "family", .long_form = "arm",
	  .doc = "the yardstick; left out: the first arm of the kernel"},
	 {"sets", .item = &name_item, .doc = "split sets, whose arms are candidates"},
	 {"arms", .item = &arm_item, .may_be_empty = true, .doc = "candidates: arms, or names of split sets"},
	 {"headroom", .item = &arm_item, .may_be_empty = true, .doc = "timed, never selectable"},
	 {0}};
#define ARMS .scalar = SC_WORD, .item = &arm_item, .sub = role_rows
static const struct slot split_set_value = {.item = &arm_item};

/* ---- distributions ---- */
#define FILL_ROWS                                                                                                      \
	{"fill", .words = grammar_fills, .doc = "how the bytes are made"},                                             \
		{"range", .item = &real_item, .item_max = 2, .doc = "`uniform`: low <= x < high"},                     \
		{"mean", .scalar = SC_REAL, .doc = "`normal`: 0 where left out"},                                      \
		{"sd", .scalar = SC_REAL, .min = 0, .max = 1e300,                                                      \
		 .doc = "`normal`: standard deviation, 1 where left out"},                                             \
		{"magnitude", .item = &int_item, .item_max = 2,                                                        \
		 .doc = "`bytes`: least and greatest magnitude, 0..127"},                                              \
		{"value", .scalar = SC_REAL, .doc = "`constant` and `k_hot`: 1 where left out in `k_hot`"},            \
		{"exponent", .scalar = SC_REAL, .min = 0, .max = 100,                                                  \
		 .doc = "`zipf`: P(k) ~ 1/(k+1)^exponent, 1 where left out"},                                          \
		{"k", .scalar = SC_INT, .min = 0, .max = 1e15, .doc = "`k_hot`: how many along the last dimension"},   \
		{"repeats", .scalar = SC_BOOL,                                                                         \
		 .doc = "`indices`: may one occur twice along the last dimension; true where left out"},               \
		{"base", .scalar = SC_REAL, .doc = "`pattern`: base + step * ((sum of coordinates) mod modulus)"},     \
		{"step", .scalar = SC_REAL, .doc = "`pattern`"},                                                       \
		{"modulus", .scalar = SC_INT, .min = 1, .max = 1e15, .doc = "`pattern`"},                              \
		{"path", .scalar = SC_WORD, .doc = "`npy`: a file, relative to this one"},                             \
		{"seed", .scalar = SC_SEED, .doc = "of the `seed_…` generators"},                                      \
	{                                                                                                              \
		"seed_xor", .item = &name_item, .item_max = 4,                                                         \
			    .doc = "parameters whose values are XORed into that seed"                                  \
	}

static const struct slot fill_rows[] = {FILL_ROWS, {0}};
static const struct slot tensor_value = {.sub = fill_rows};
static const struct slot promise_rows[] =
	{{"finite_as", .item = &dtype_item, .doc = "no NaN and no infinity, read as each of these types"},
	 {"sign", .words = signs, .doc = "`positive`: none below 0; `negative`: none above 0; `both`: each occurs"},
	 {"denormals", .words = none_word, .any = &none_value, .any_name = "type",
	  .doc = "`none`: no denormals in any reading of `finite_as`; or by type: `{e4m3: none}`"},
	 {"range", .item = &real_item, .item_max = 2,
	  .doc = "least and greatest value, both included, of the tensor's own type"},
	 {0}};
static const struct slot distribution_rows[] =
	{FILL_ROWS,
	 {"tensors", .any = &tensor_value, .any_name = "tensor",
	  .doc = "fills of single tensors (`idx`), or of single fields of record tensors (`w.qs`)"},
	 {"promise", .sub = promise_rows,
	  .doc = "what holds of the bytes; it is counted, and a broken promise makes the cell `invalid`"},
	 {0}};
static const struct slot distribution_value = {.sub = distribution_rows};

/* ---- tables ---- */
static const struct slot table_rows[] =
	{{"match", SELECTOR, .required = true, .doc = "on which device; keys: device, backend, cc, host"},
	 {"file", .scalar = SC_WORD, .doc = "a table file (.yaml, .csv, .json), relative to this one"},
	 {"table", .raw = true, .doc = "or the table itself, in the form of a YAML table file"},
	 {0}};
static const struct slot table_item = {.key = "the table", .sub = table_rows};
static const struct slot table_value = {.item = &table_item};

/* ---- rules ---- */
static const struct slot margin_rows[] = {{"match", SELECTOR, .required = true,
					   .doc = "the cells it is for; the rule with more keys counts"},
					  {"fail", .scalar = SC_PERCENT, .min = 0, .max = 100, .required = true,
					   .doc = "slower than shipped by more: a regression; `0%` is a real limit"},
					  {"warn", .scalar = SC_PERCENT, .min = 0, .max = 100,
					   .doc = "slower by more: a pass with a note"},
					  {"floor", .scalar = SC_TIME, .doc = "differences below it never fail"},
					  {0}};
static const struct slot waiver_rows[] =
	{{"id", .scalar = SC_NAME, .required = true, .doc = "its name in records"},
	 {"match", SELECTOR, .required = true, .doc = "the cells it is for"},
	 {"expect", .words = grammar_statuses, .required = true, .doc = "the status that is waived"},
	 {"arm", .scalar = SC_WORD, .doc = "the arm that is known to fail; none: any of the cell"},
	 {"reason", .scalar = SC_WORD, .required = true, .doc = "why, for the reader of a report"},
	 {"until", .scalar = SC_DATE, .doc = "the last day, YYYY-MM-DD"},
	 {0}};
static const struct slot rig_rows[] = {{"match", SELECTOR, .required = true,
					.doc = "which machines; keys: device, backend, cc, host"},
				       {"timing", .words = gates, .required = true,
					.doc = "`gate`: timing verdicts count; `diagnostic`: they are shown"},
				       {0}};
static const struct slot margin_item = {.key = "the margin", .sub = margin_rows},
			 waiver_item = {.key = "the waiver", .sub = waiver_rows},
			 rig_item = {.key = "the rig", .sub = rig_rows};

/* ---- cases ---- */
static const struct slot axis_rows[] =
	{{"range", .item = &number_item, .item_max = 2,
	  .doc = "first and last value, both included where `step` meets them"},
	 {"from", .scalar = SC_NUMBER, .doc = "the same as `range`, with `to`"},
	 {"to", .scalar = SC_NUMBER, .doc = "last value, included where `step` meets it"},
	 {"step", .scalar = SC_NUMBER, .doc = "distance of the values; 1 where left out"},
	 {"pow2", .item = &int_item, .item_max = 2, .doc = "powers of two: first and last exponent"},
	 {0}};
static const struct slot axis_value = {.scalar = SC_NUMBER,
				       .item = &number_item,
				       .sub = axis_rows,
				       .doc = "values: a list, or a range"};
static const struct slot zip_item = {.any = &axis_value, .any_name = "parameter"};
static const struct slot zip_rows[] = {{"zip", .any = &axis_value, .any_name = "parameter", .item = &zip_item,
					.doc = "axes that advance together, of one length"},
				       {0}};
#define AXES .sub = zip_rows, .any = &axis_value, .any_name = "parameter"

static const struct slot case_rows[] = {{"id", .scalar = SC_NAME, .required = true, .doc = "its name in cell ids"},
					{"about", .scalar = SC_WORD, .doc = "a sentence"},
					{"kernels", .item = &word_item, .required = true,
					 .doc = "names, or patterns: `mla.*`"},
					{"geometry", .item = &name_item, .doc = "names of geometries"},
					{"arms", ARMS, .doc = "a split set, an arm, a list of both, or arms by role"},
					{"data", .item = &name_item, .doc = "names of distributions"},
					{"axes", AXES, .doc = "parameters that are swept; the cells are their product"},
					{"exclude", .item = &selector_item, .scalar = SC_WORD, .any = &pattern_value,
					 .any_name = "key", .doc = "selectors of points that are left out"},
					{"seed", .scalar = SC_SEED, .doc = "of the inputs"},
					{"timing", .sub = grammar_timing, .doc = "over the suite's"},
					{"checks", .sub = grammar_checks, .doc = "over the suite's"},
					{"tags", .item = &name_item, .doc = "words for selectors (`tag=nightly`)"},
					{0}};
static const struct slot case_item = {.key = "the case", .sub = case_rows};

/* ---- suites together ---- */
static const char *const backends[] = {"host", "cuda", NULL};
static const struct slot together_rows[] =
	{{"suite", .scalar = SC_WORD, .required = true, .doc = "its file, relative to this one"},
	 {"filter", .item = &word_item,
	  .doc = "only its cells that match one of these, as with `--filter`: `tag=nightly`"},
	 {"processes", .scalar = SC_INT, .min = 1, .max = 64,
	  .doc = "time every cell in so many fresh processes, as with `--processes`, which wins"},
	 {"backend", .words = backends,
	  .doc = "only where this backend is used; elsewhere the suite is passed over, and that is said"},
	 {0}};
static const struct slot together_item = {.key = "the suite", .scalar = SC_WORD, .sub = together_rows};

static const struct slot default_rows[] =
	{{"geometry", .item = &name_item, .doc = "of cases that name none"},
	 {"arms", ARMS, .doc = "of cases that name none"},
	 {"data", .item = &name_item, .doc = "of cases that name none"},
	 {"seed", .scalar = SC_SEED, .dflt = "1", .doc = "of cases that name none"},
	 {"timing", .sub = grammar_timing, .doc = "of every case, key by key"},
	 {"checks", .sub = grammar_checks,
	  .doc = "of every case, key by key; a case takes one away with `identity: false`"},
	 {"tags", .item = &name_item, .doc = "of cases that name none"},
	 {0}};

#define BLOCK_ROWS                                                                                                     \
	{"include", .item = &word_item, .doc = "files of named blocks, relative to this one, at most 16 deep"},        \
		{"geometries", .any = &geometry_value, .any_name = "geometry",                                         \
		 .doc = "fixed shape parameters, by name"},                                                            \
		{"split_sets", .any = &split_set_value, .any_name = "set", .doc = "lists of arms, by name"},           \
		{"distributions", .any = &distribution_value, .any_name = "distribution",                              \
		 .doc = "how inputs are filled, by name"},                                                             \
		{"tables", .any = &table_value, .any_name = "table",                                                   \
		 .doc = "serving tables: which arm serving picks, by device"},                                         \
		{"margins", .item = &margin_item, .may_be_empty = true,                                                \
		 .doc = "how much slower than shipped the selected arm may be"},                                       \
		{"waivers", .item = &waiver_item, .may_be_empty = true, .doc = "failures that are known"},             \
	{                                                                                                              \
		"rigs", .item = &rig_item, .may_be_empty = true,                                                       \
			.doc = "where timing is a gate and where it is a diagnostic"                                   \
	}

const struct slot grammar_suite[] =
	{{"assay", .scalar = SC_INT, .min = 1, .max = 1, .required = true, .doc = "version of the grammar: 1"},
	 {"suite", .scalar = SC_NAME, .required = true, .doc = "its name, the first part of cell ids"},
	 {"about", .scalar = SC_WORD, .doc = "a sentence, shown by `list`"},
	 BLOCK_ROWS,
	 {"timing", .sub = grammar_timing, .doc = "how cells are timed"},
	 {"checks", .sub = grammar_checks, .doc = "what must hold in every case"},
	 {"defaults", .sub = default_rows, .doc = "a layer below the cases"},
	 {"cases", .item = &case_item, .required = true, .instead = "suites", .doc = "what is run"},
	 {"suites", .item = &together_item,
	  .doc = "instead of cases: suites that are run one after the other, each as itself (its own defaults, rules, "
		 "ids and verdict "
		 "file); beside it only `assay`, `suite` and `about`"},
	 {"max_cells", .scalar = SC_INT, .min = 1, .max = 1e9, .dflt = "100000", .doc = "cap on the planned cells"},
	 {0}};

const struct slot grammar_include[] = {{"assay", .scalar = SC_INT, .min = 1, .max = 1,
					.doc = "version of the grammar: 1"},
				       BLOCK_ROWS,
				       {0}};

const struct slot grammar_override[] = {{"timing", .sub = grammar_timing},
					{"checks", .sub = grammar_checks},
					{"seed", .scalar = SC_SEED},
					{"data", .item = &name_item},
					{"geometry", .item = &name_item},
					{"axes", AXES},
					{"max_cells", .scalar = SC_INT, .min = 1, .max = 1e9},
					{0}};
