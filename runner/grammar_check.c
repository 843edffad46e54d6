/* A tree against the rows of the grammar: unknown and missing keys, kinds, ranges. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "grammar.h"
#include "yaml_scalar.h"

enum { KNOWN_MAX = 64, WORDS_SHOWN = 12 };

const struct slot *grammar_find(const struct slot *sub, const char *key)
{
	for (; sub && sub->key; sub++)
		if (!strcmp(sub->key, key))
			return sub;
	return NULL;
}

static int count_words(const char *const *words)
{
	int n = 0;
	while (words && words[n])
		n++;
	return n;
}

/* "a, b or c" into buf. */
static const char *listed(const char *const *words, int n, char *buf, size_t cap)
{
	size_t k = 0;
	buf[0] = '\0';
	for (int i = 0; i < n && k < cap; i++) {
		const char *sep = i == 0 ? "" : i == n - 1 ? " or " : ", ";
		int w = snprintf(buf + k, cap - k, "%s%s", sep,
				 i == WORDS_SHOWN && n > WORDS_SHOWN + 1 ? "…" : words[i]);
		k += w > 0 ? (size_t)w : 0;
		if (i == WORDS_SHOWN && n > WORDS_SHOWN + 1)
			break;
	}
	return buf;
}

void grammar_unknown(struct diags *d, struct mark at, const char *what, const char *word, const char *const *known,
		     int n)
{
	char buf[512];
	diag_add(d, DIAG_ERROR, at, "unknown %s '%s'", what, word);
	const char *near = diag_nearest(word, known, n);
	if (near)
		diag_note(d, (struct mark){0}, "did you mean '%s'?", near);
	else if (n)
		diag_note(d, (struct mark){0}, n > 1 ? "known: %s" : "the only one is %s",
			  listed(known, n, buf, sizeof buf));
	else
		diag_note(d, (struct mark){0}, "none is declared");
}

/* Keys of one row table, for the nearest word. */
static int keys_of(const struct slot *sub, const char *known[KNOWN_MAX])
{
	int n = 0;
	for (; sub && sub->key && n < KNOWN_MAX; sub++)
		known[n++] = sub->key;
	return n;
}

/* The name of a section, one below the top, that has this key: "timing". NULL: none. */
static const char *section_of(const char *key)
{
	static const char *const names[] = {"timing", "checks", "cases", "defaults"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct slot *s = grammar_find(grammar_suite, names[i]);
		if (grammar_find(s->item ? s->item->sub : s->sub, key))
			return names[i];
	}
	return NULL;
}

/* Words of the command line that people look for in the file. */
static const struct {
	const char *key, *option;
} command_line[] = {{"output", "-o FILE"},
		    {"out", "-o FILE"},
		    {"device", "--device"},
		    {"backend", "--backend"},
		    {"filter", "--filter"},
		    {"force", "--force"},
		    {"resume", "--resume"},
		    {"processes", "--processes"},
		    {"shard", "--shard"},
		    {"plugin", "--plugin"},
		    {"plugins", "--plugin"},
		    {"strict", "--strict"},
		    {"advisory", "--advisory"},
		    {"no_fork", "--no-fork"},
		    {"set", "--set"},
		    {"verbose", "-v"},
		    {"require_run", "--require-run"},
		    {"rerun_failed", "--rerun-failed"}};

static void unknown_key(struct diags *d, const struct slot *sub, const struct yaml_node *key)
{
	const char *known[KNOWN_MAX];
	int n = keys_of(sub, known);
	if (sub == grammar_suite || sub == grammar_include)
		for (size_t i = 0; i < sizeof command_line / sizeof *command_line; i++)
			if (!strcmp(key->text, command_line[i].key)) {
				diag_add(d, DIAG_ERROR, key->mark,
					 "'%s' is an option of the command line, not of the suite", key->text);
				diag_note(d, (struct mark){0}, "assay run SUITE %s", command_line[i].option);
				return;
			}
	const char *section = NULL;
	if (!diag_nearest(key->text, known, n) && (section = section_of(key->text))) {
		diag_add(d, DIAG_ERROR, key->mark, "unknown key '%s'", key->text);
		diag_note(d, (struct mark){0}, "'%s' is a key of '%s'", key->text, section);
		return;
	}
	grammar_unknown(d, key->mark, "key", key->text, known, n);
}

static bool name_good(const char *s)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	if (!*s || !strchr(first, *s))
		return false;
	for (; *s; s++)
		if (!strchr(first, *s) && !strchr(".+=-", *s))
			return false;
	return true;
}

static bool name_check(struct diags *d, const struct yaml_node *v)
{
	if (!*v->text)
		return diag_add(d, DIAG_ERROR, v->mark, "a name is missing");
	if (name_good(v->text))
		return true;
	diag_add(d, DIAG_ERROR, v->mark, "'%s' cannot be a name: it would stand in cell ids", v->text);
	diag_note(d, (struct mark){0}, "letters, digits and _ . + = - after the first; no blanks, commas or slashes");
	return false;
}

static bool digits(const char *s, int n)
{
	for (int i = 0; i < n; i++)
		if (s[i] < '0' || s[i] > '9')
			return false;
	return true;
}

static bool date_check(struct diags *d, const struct yaml_node *v)
{
	static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	const char *s = v->text;
	if (strlen(s) == 10 && s[4] == '-' && s[7] == '-' && digits(s, 4) && digits(s + 5, 2) && digits(s + 8, 2)) {
		int y = (s[0] - '0') * 1000 + (s[1] - '0') * 100 + (s[2] - '0') * 10 + s[3] - '0';
		int m = (s[5] - '0') * 10 + s[6] - '0', day = (s[8] - '0') * 10 + s[9] - '0';
		bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
		if (m >= 1 && m <= 12 && day >= 1 && day <= length[m - 1] + (m == 2 && leap))
			return true;
		return diag_add(d, DIAG_ERROR, v->mark, "'%s' is not a day of the calendar", s);
	}
	return diag_add(d, DIAG_ERROR, v->mark, "'%s' is not a date; write it as 2027-01-31", s);
}

/* Of a time whose least value is above nothing: 0 is no limit in many tools, so it is refused rather than read in one of two ways. */
static bool time_check(const struct slot *s, const struct yaml_node *v, int64_t ns, struct diags *d)
{
	if (ns > 0 || s->min <= 0)
		return true;
	diag_add(d, DIAG_ERROR, v->mark, "%s is out of range: a time above 0", v->text);
	for (int i = 0; i < count_words(s->words); i++)
		if (!strcmp(s->words[i], "none"))
			diag_note(d, (struct mark){0}, "for no limit write none");
	return false;
}

static bool range_check(const struct slot *s, const struct yaml_node *v, double x, bool percent, struct diags *d)
{
	if (s->min == 0 && s->max == 0)
		return true;
	double scale = percent ? 100 : 1;
	const char *unit = percent ? "%" : "";
	if (x >= s->min && x <= s->max)
		return true;
	if (s->min == s->max)
		return diag_add(d, DIAG_ERROR, v->mark, "%s is not known; this assay reads %.17g", v->text, s->min);
	if (s->max >= 1e15 && s->scalar != SC_PERCENT)
		return diag_add(d, DIAG_ERROR, v->mark, "%s is out of range: at least %.17g", v->text, s->min);
	diag_add(d, DIAG_ERROR, v->mark, "%s is out of range %.17g%s..%.17g%s", v->text, s->min * scale, unit,
		 s->max * scale, unit);
	char buf[512];
	if (s->words)
		diag_note(d, (struct mark){0}, "or %s", listed(s->words, count_words(s->words), buf, sizeof buf));
	return false;
}

/* A text that is no value of the scalar's type: with the words it may be as well. */
static bool word_error(const struct slot *s, const struct yaml_node *v, const char *why, struct diags *d)
{
	char buf[512];
	int n = count_words(s->words);
	const char *near = diag_nearest(v->text, s->words, n);
	diag_add(d, DIAG_ERROR, v->mark, "%s", why);
	if (near)
		diag_note(d, (struct mark){0}, "did you mean '%s'?", near);
	else if (n && (v->text[0] < '0' || v->text[0] > '9')) /* a number that is nearly right has its advice already */
		diag_note(d, (struct mark){0}, "or %s", listed(s->words, n, buf, sizeof buf));
	return false;
}

/* Whether a text would do without its quotes. */
static bool unquoted_good(const struct slot *s, const char *text)
{
	double x;
	int64_t n;
	bool flag;
	return s->scalar == SC_BOOL ? scalar_bool(text, &flag, NULL)
				    : scalar_int(text, &n, NULL) || scalar_real(text, &x, NULL);
}

static bool scalar_check(const struct slot *s, const struct yaml_node *v, struct diags *d)
{
	for (int i = 0; i < count_words(s->words); i++)
		if (!strcmp(v->text, s->words[i]))
			return true;
	struct err why;
	int64_t i64 = 0;
	double x = 0;
	bool flag, good = true;
	switch (s->scalar) {
	case SC_NONE:
		if (!*v->text)
			diag_add(d, DIAG_ERROR, v->mark, "a value is missing");
		else
			grammar_unknown(d, v->mark, "value", v->text, s->words, count_words(s->words));
		return false;
	case SC_WORD: return *v->text ? true : diag_add(d, DIAG_ERROR, v->mark, "a value is missing");
	case SC_ANY: return true;
	case SC_NAME: return name_check(d, v);
	case SC_DATE: return date_check(d, v);
	default: break;
	}
	bool text_form = s->scalar == SC_SIZE || s->scalar == SC_TIME || s->scalar == SC_PERCENT;
	if (v->quoted && !text_form)
		return diag_add(d, DIAG_ERROR, v->mark, "%s is wanted here, not text in quotes; write %s",
				s->scalar == SC_BOOL ? "true or false" : "a number",
				unquoted_good(s, v->text) ? v->text
				: s->scalar == SC_BOOL    ? "one of them"
							  : "one");
	switch (s->scalar) {
	case SC_INT:
	case SC_SEED: good = scalar_int(v->text, &i64, &why); break;
	case SC_REAL: good = scalar_real(v->text, &x, &why); break;
	case SC_NUMBER: /* what its parameter takes is looked at where the parameter is known */
		good = strpbrk(v->text, ".") ? scalar_real(v->text, &x, &why) : scalar_int(v->text, &i64, &why);
		if (!good && strpbrk(v->text, "eE"))
			good = scalar_real(v->text, &x, &why);
		break;
	case SC_BOOL: good = scalar_bool(v->text, &flag, &why); break;
	case SC_SIZE: good = scalar_size(v->text, &i64, &why); break;
	case SC_TIME: good = scalar_time(v->text, &i64, &why); break;
	case SC_PERCENT: good = scalar_percent(v->text, &x, &why); break;
	default: break;
	}
	if (!good)
		return word_error(s, v, why.text, d);
	if (s->scalar == SC_SEED && i64 < 0)
		return diag_add(d, DIAG_ERROR, v->mark, "%s is out of range: a seed is at least 0", v->text);
	if (s->one_of) {
		for (int i = 0; s->one_of[i] != 0; i++)
			if (x == s->one_of[i])
				return true;
		diag_add(d, DIAG_ERROR, v->mark, "%s is not one of the values there are", v->text);
		diag_note(d, (struct mark){0}, "0.05, 0.025, 0.01, 0.005 or 0.001");
		return false;
	}
	if (s->scalar == SC_TIME)
		return time_check(s, v, i64, d);
	return range_check(s, v, s->scalar == SC_INT ? (double)i64 : x, s->scalar == SC_PERCENT, d);
}

/* What the row takes, in words: "a number or a list". */
static const char *wanted(const struct slot *s, char *buf, size_t cap)
{
	static const char *const names[] =
		{[SC_INT] = "a whole number", [SC_SEED] = "a whole number",  [SC_REAL] = "a number",
		 [SC_NUMBER] = "a number",    [SC_BOOL] = "true or false",   [SC_SIZE] = "a size",
		 [SC_TIME] = "a time",        [SC_PERCENT] = "a percentage", [SC_WORD] = "a word",
		 [SC_NAME] = "a name",        [SC_DATE] = "a date",          [SC_ANY] = "a value"};
	const char *part[4];
	int n = 0;
	if (s->scalar != SC_NONE)
		part[n++] = names[s->scalar];
	else if (s->words)
		part[n++] = "a word";
	if (s->item && s->item->sub && n == 0 && !s->item->any)
		part[n++] = "a list of maps";
	else if (s->item)
		part[n++] = "a list";
	if (s->sub || s->any)
		part[n++] = "a map";
	return listed(part, n, buf, cap);
}

static bool kind_error(const struct slot *s, const struct yaml_node *v, struct diags *d)
{
	char buf[128];
	if (v->kind == YAML_TREE_SCALAR && !v->quoted && !*v->text)
		return diag_add(d, DIAG_ERROR, v->mark, "a value is missing: %s", wanted(s, buf, sizeof buf));
	return diag_add(d, DIAG_ERROR, v->mark, "%s is wanted here, not %s", wanted(s, buf, sizeof buf),
			yaml_kind_text(v));
}

static bool list_check(const struct slot *s, struct yaml_node *v, struct diags *d)
{
	bool good = true;
	if (!v->n && !s->may_be_empty)
		return diag_add(d, DIAG_ERROR, v->mark, "an empty list");
	if (s->item_max && v->n > s->item_max)
		return diag_add(d, DIAG_ERROR, v->item[s->item_max]->mark, "more than %d items", s->item_max);
	for (int i = 0; i < v->n; i++)
		good = grammar_check_value(s->item, v->item[i], d) && good;
	return good;
}

static bool map_check(const struct slot *sub, const struct slot *any, const char *long_form, struct yaml_node *v,
		      const char *what, struct diags *d)
{
	bool good = true, unknown = false;
	if (long_form) {
		bool is_long = yaml_get(v, long_form, NULL) != NULL;
		/* One pair is the short form; else a key of the long form tells that it was meant. */
		for (int i = 0; !is_long && i < v->n; i++)
			is_long = grammar_find(sub, v->key[i]->text) != NULL;
		any = is_long ? NULL : any;
		sub = is_long ? sub : NULL;
		if (!is_long && v->n != 1)
			return diag_add(d, DIAG_ERROR, v->mark, "one pair is wanted here, as in {split: 4}");
	}
	for (int i = 0; i < v->n; i++) {
		struct yaml_node *key = v->key[i];
		const struct slot *s = grammar_find(sub, key->text);
		if (!s && !any) {
			unknown_key(d, sub, key);
			key->bad = v->item[i]->bad = true;
			unknown = true;
			continue;
		}
		if (!s && !name_check(d, key)) {
			key->bad = v->item[i]->bad = true;
			good = false;
			continue;
		}
		good = grammar_check_value(s ? s : any, v->item[i], d) && good;
	}
	for (const struct slot *s = sub; s && s->key; s++)
		/* After an unknown key the one that lacks may be the one misspelt: one message a mistake. */
		if (s->required && !unknown && !yaml_get(v, s->key, NULL) &&
		    !(s->instead && yaml_get(v, s->instead, NULL)))
			good = diag_add(d, DIAG_ERROR, v->mark, "%s lacks the key '%s'", what, s->key);
	return good && !unknown;
}

bool grammar_check_value(const struct slot *s, struct yaml_node *v, struct diags *d)
{
	bool good;
	if (s->raw)
		return true;
	switch (v->kind) {
	case YAML_TREE_SCALAR:
		if (s->scalar == SC_NONE && !s->words) {
			/* A lone value is a list of one. */
			good = s->item && (s->item->scalar != SC_NONE || s->item->words) && (v->quoted || *v->text)
				       ? grammar_check_value(s->item, v, d)
				       : kind_error(s, v, d);
			break;
		}
		good = (!v->quoted && !*v->text && s->scalar != SC_ANY) ? kind_error(s, v, d) : scalar_check(s, v, d);
		break;
	case YAML_TREE_SEQ: good = s->item ? list_check(s, v, d) : kind_error(s, v, d); break;
	default:
		if (s->sub || s->any)
			good = map_check(s->sub, s->any, s->long_form, v, s->key ? s->key : "this map", d);
		else if (s->item && (s->item->sub || s->item->any) && s->scalar == SC_NONE)
			good = grammar_check_value(s->item, v, d);
		else
			good = kind_error(s, v, d);
	}
	if (!good)
		v->bad = true;
	return good;
}

bool grammar_check(const struct slot *sub, struct yaml_node *map, const char *what, struct diags *d)
{
	if (map->kind != YAML_TREE_MAP)
		return diag_add(d, DIAG_ERROR, map->mark, "%s is a map of keys, not %s", what, yaml_kind_text(map));
	return map_check(sub, NULL, NULL, map, what, d);
}
