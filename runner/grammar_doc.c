/* The JSON Schema and the reference page, from the rows of the grammar. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "grammar.h"

/* ---- JSON Schema (2020-12) ---- */

static json_t *schema_of(const struct slot *s);

static json_t *limit(double v)
{
	return v == floor(v) && fabs(v) < 9e15 ? json_integer((json_int_t)v) : json_real(v);
}

static void put_limits(json_t *j, const struct slot *s)
{
	if (s->min == 0 && s->max == 0)
		return;
	json_object_set_new(j, "minimum", limit(s->min));
	if (s->max < 1e15)
		json_object_set_new(j, "maximum", limit(s->max));
}

static json_t *pattern(const char *text)
{
	return json_pack("{s:s,s:s}", "type", "string", "pattern", text);
}

static const char name_pattern[] = "^[A-Za-z0-9_][A-Za-z0-9_.+=-]*$";

static void scalar_schemas(json_t *any, const struct slot *s)
{
	json_t *j = NULL;
	switch (s->scalar) {
	case SC_NONE: return;
	case SC_INT:
		j = json_pack("{s:s}", "type", "integer");
		put_limits(j, s);
		break;
	case SC_SEED: j = json_pack("{s:s,s:i}", "type", "integer", "minimum", 0); break;
	case SC_REAL:
		j = json_pack("{s:s}", "type", "number");
		put_limits(j, s);
		if (s->one_of) {
			json_t *list = json_array();
			for (int i = 0; s->one_of[i] != 0; i++)
				json_array_append_new(list, json_real(s->one_of[i]));
			json_object_set_new(j, "enum", list);
		}
		break;
	case SC_NUMBER: j = json_pack("{s:s}", "type", "number"); break;
	case SC_BOOL: j = json_pack("{s:s}", "type", "boolean"); break;
	case SC_SIZE:
	case SC_TIME:
		if (s->min <= 0)
			json_array_append_new(any, json_pack("{s:i}", "const", 0));
		j = pattern(s->scalar == SC_SIZE ? "^[0-9]+(\\.[0-9]+)?(B|KiB|MiB|GiB|kB|MB|GB)$"
			    : s->min > 0         ? "^(?=.*[1-9])[0-9]+(\\.[0-9]+)?(ns|us|ms|s|min|h)$"
						 : "^[0-9]+(\\.[0-9]+)?(ns|us|ms|s|min|h)$");
		break;
	case SC_PERCENT: j = pattern("^[+-]?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+)?(%|pp)$"); break;
	case SC_WORD: j = json_pack("{s:s,s:i}", "type", "string", "minLength", 1); break;
	case SC_NAME: j = pattern(name_pattern); break;
	case SC_DATE: j = pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"); break;
	case SC_ANY: j = json_pack("{s:[s,s,s]}", "type", "string", "number", "boolean"); break;
	}
	json_array_append_new(any, j);
}

static json_t *map_schema(const struct slot *sub, const struct slot *any)
{
	json_t *j = json_pack("{s:s}", "type", "object"), *props = json_object(), *required = json_array();
	json_t *either = NULL;
	for (; sub && sub->key; sub++) {
		json_object_set_new(props, sub->key, schema_of(sub));
		if (sub->required && sub->instead)
			either = json_pack("[{s:[s]},{s:[s]}]", "required", sub->key, "required", sub->instead);
		else if (sub->required)
			json_array_append_new(required, json_string(sub->key));
	}
	if (json_object_size(props))
		json_object_set(j, "properties", props);
	if (json_array_size(required))
		json_object_set(j, "required", required);
	json_decref(props);
	json_decref(required);
	if (either)
		json_object_set_new(j, "oneOf", either);
	json_object_set_new(j, "additionalProperties", any ? schema_of(any) : json_false());
	return j;
}

static json_t *schema_of(const struct slot *s)
{
	json_t *any = json_array(), *j;
	if (s->raw)
		json_array_append_new(any, json_pack("{s:s}", "type", "object"));
	if (s->words) {
		json_t *list = json_array();
		for (int i = 0; s->words[i]; i++)
			json_array_append_new(list, json_string(s->words[i]));
		json_array_append_new(any, json_pack("{s:o}", "enum", list));
	}
	scalar_schemas(any, s);
	if (s->item) {
		json_t *list = json_pack("{s:s,s:o}", "type", "array", "items", schema_of(s->item));
		if (!s->may_be_empty)
			json_object_set_new(list, "minItems", json_integer(1));
		if (s->item_max)
			json_object_set_new(list, "maxItems", json_integer(s->item_max));
		json_array_append_new(any, list);
		if (s->scalar == SC_NONE && !s->words && !s->sub && !s->any) /* a lone value is a list of one */
			json_array_append_new(any, schema_of(s->item));
	}
	if (s->long_form) {
		json_array_append_new(any, map_schema(s->sub, NULL));
		json_t *pair = map_schema(NULL, s->any);
		json_object_set_new(pair, "minProperties", json_integer(1));
		json_object_set_new(pair, "maxProperties", json_integer(1));
		json_array_append_new(any, pair);
	} else if (s->sub || s->any) {
		json_array_append_new(any, map_schema(s->sub, s->any));
	}
	if (json_array_size(any) == 1) {
		j = json_incref(json_array_get(any, 0));
		json_decref(any);
	} else {
		j = json_pack("{s:o}", "anyOf", any);
	}
	if (s->doc)
		json_object_set_new(j, "description", json_string(s->doc));
	if (s->dflt && !s->set)
		json_object_set_new(j, "$comment", json_sprintf("default: %s", s->dflt));
	return j;
}

json_t *grammar_schema(const struct slot *sub, const char *id, const char *title)
{
	json_t *j = json_pack("{s:s,s:s,s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema", "$id", id,
			      "title", title);
	json_t *map = map_schema(sub, NULL);
	json_object_update(j, map);
	json_decref(map);
	return j;
}

/* ---- reference page ---- */

static void say_scalar(const struct slot *s, FILE *f)
{
	static const char *const names[] = {[SC_INT] = "integer",
					    [SC_SEED] = "integer, at least 0",
					    [SC_REAL] = "number",
					    [SC_NUMBER] = "number",
					    [SC_BOOL] = "`true` or `false`",
					    [SC_SIZE] = "size (`512MiB`)",
					    [SC_TIME] = "time (`2us`)",
					    [SC_PERCENT] = "percentage (`5%`, `+10pp`)",
					    [SC_WORD] = "text",
					    [SC_NAME] = "name",
					    [SC_DATE] = "date (`2027-01-31`)",
					    [SC_ANY] = "any value"};
	if (s->one_of) {
		for (int i = 0; s->one_of[i] != 0; i++)
			fprintf(f, "%s`%g`", i ? ", " : "", s->one_of[i]);
		return;
	}
	fputs(names[s->scalar], f);
	double scale = s->scalar == SC_PERCENT ? 100 : 1;
	if (s->scalar == SC_TIME)
		fputs(s->min > 0 ? ", above 0" : "", f);
	else if (s->max >= 1e15)
		fprintf(f, ", at least %.17g", s->min * scale);
	else if (s->min != 0 || s->max != 0)
		fprintf(f, " %.17g..%.17g", s->min * scale, s->max * scale);
}

static void say_kinds(const struct slot *s, FILE *f)
{
	const char *sep = "";
	for (int i = 0; s->words && s->words[i]; i++) {
		fprintf(f, "%s`%s`", sep, s->words[i]);
		sep = ", ";
	}
	if (s->scalar != SC_NONE) {
		fputs(sep, f);
		say_scalar(s, f);
		sep = ", or ";
	}
	if (s->item) {
		fprintf(f, "%slist of: ", sep);
		if (s->item->sub || s->item->any)
			fputs(s->item->scalar != SC_NONE ? "texts and maps" : "maps", f);
		else
			say_kinds(s->item, f);
		sep = ", or ";
	}
	if (s->sub || s->any)
		fprintf(f, "%smap", sep);
	if (s->raw)
		fputs("map", f);
}

enum { PATH_MAX_BYTES = 512 };

enum { SHOWN_MAX = 64 };

/* Maps that were described: the second time they are pointed at. */
struct shown {
	const struct slot *sub[SHOWN_MAX];
	char path[SHOWN_MAX][PATH_MAX_BYTES];
	int n;
};

static void say_rows(const char *path, const struct slot *s, FILE *f, struct shown *shown, bool top);

/* A sentence in a cell of a table, where a bar would end the cell. */
static void say_cell(const char *text, FILE *f)
{
	for (; text && *text; text++)
		fprintf(f, *text == '|' ? "\\%c" : "%c", *text);
}

static void say_row(const struct slot *s, FILE *f)
{
	fprintf(f, "| `%s` | ", s->key);
	say_kinds(s, f);
	fprintf(f, " | %s%s%s", s->dflt ? "`" : "",
		s->dflt       ? s->dflt
		: s->required ? "required"
			      : "",
		s->dflt ? "`" : "");
	if (s->instead)
		fprintf(f, ", or `%s`", s->instead);
	fputs(" | ", f);
	say_cell(s->doc, f);
	fputs(" |\n", f);
}

static void path_add(char *out, const char *path, const char *a, const char *b, const char *c)
{
	if (snprintf(out, PATH_MAX_BYTES, "%s%s%s%s", path, a, b, c) >= PATH_MAX_BYTES)
		out[0] = '\0'; /* the grammar is not so deep */
}

static void say_table(const char *path, const struct slot *sub, const struct slot *any, const char *any_name, FILE *f,
		      struct shown *shown)
{
	fputs("\n| key | value | default | |\n|---|---|---|---|\n", f);
	for (const struct slot *s = sub; s && s->key; s++)
		say_row(s, f);
	if (any) {
		fprintf(f, "| *%s* | ", any_name ? any_name : "name");
		say_kinds(any, f);
		fprintf(f, " | | %s |\n", any->doc ? any->doc : "");
	}
	for (const struct slot *s = sub; s && s->key; s++)
		if (s->sub != grammar_timing && s->sub != grammar_checks) {
			char below[PATH_MAX_BYTES];
			path_add(below, path, ".", s->key, "");
			say_rows(below, s, f, shown, false);
		}
	if (any) {
		char below[PATH_MAX_BYTES];
		path_add(below, path, ".*", any_name ? any_name : "name", "*");
		say_rows(below, any, f, shown, false);
	}
}

/* Headings and tables of the maps below a row. */
static void say_rows(const char *path, const struct slot *s, FILE *f, struct shown *shown, bool top)
{
	const struct slot *holder = s;
	char below[PATH_MAX_BYTES];
	path_add(below, path, "", "", "");
	if (!holder->sub && holder->item && (holder->item->sub || holder->item->any)) {
		holder = holder->item;
		path_add(below, path, "[]", "", "");
	}
	if (!holder->sub && !(holder->any && (holder->any->sub || holder->any->item || top)))
		return;
	if (!holder->sub && holder->any && !holder->any->sub && !top && holder->any->scalar == SC_ANY)
		return; /* a selector: described once */
	fprintf(f, "\n%s `%s`\n", top ? "##" : "###", below);
	if (top && s->doc)
		fprintf(f, "\n%c%s.\n", s->doc[0] >= 'a' && s->doc[0] <= 'z' ? s->doc[0] - 32 : s->doc[0], s->doc + 1);
	for (int i = 0; i < shown->n && holder->sub; i++)
		if (shown->sub[i] == holder->sub) {
			fprintf(f, "\nThe same keys as `%s`.\n", shown->path[i]);
			return;
		}
	if (holder->sub && shown->n < SHOWN_MAX) {
		shown->sub[shown->n] = holder->sub;
		path_add(shown->path[shown->n++], below, "", "", "");
	}
	say_table(below, holder->sub, holder->any, holder->any_name, f, shown);
}

void grammar_reference(const struct slot *sub, FILE *f)
{
	struct shown shown = {.n = 0};
	fputs("# The suite file: reference\n\n"
	      "This page is printed by `assay schema suite --reference`, from the rows that the parser reads. `assay "
	      "schema suite` prints the JSON\n"
	      "Schema from the same rows.\n\n"
	      "Layers, least first: the defaults below, the suite's `timing` and `checks`, `defaults`, the case, the "
	      "command line (`--set`).\n"
	      "`assay explain` shows which one spoke.\n\n"
	      "Scalars: integers are `12`, `-3`, `0x1F` or `1e3` (exact); `8k`, `010`, `0o10`, `1_000` and numbers in "
	      "quotes are refused. Booleans\n"
	      "are `true` and `false`. Sizes (`512MiB`), times (`2us`) and percentages (`5%`, `+10pp`) carry their "
	      "unit. A lone value\n"
	      "stands for a list of one.\n\n"
	      "Selectors are a text, `kernel=mla.*,t_q=1..4,kv>=32768`, or a map, `{kernel: mla.*, t_q: [1, 2], kv: "
	      "\">=32768\"}`. Keys: `kernel`,\n"
	      "`case`, `geometry`, `data`, `suite`, `id`, `tag`, `arm`, `device`, `backend`, `cc`, `host`, and every "
	      "parameter. `{}` fits everything.\n"
	      "Of several rules that fit, the one with more keys counts; two that fit equally are an error.\n\n"
	      "## Top level\n",
	      f);
	fputs("\n| key | value | default | |\n|---|---|---|---|\n", f);
	for (const struct slot *s = sub; s->key; s++)
		say_row(s, f);
	for (const struct slot *s = sub; s->key; s++)
		say_rows(s->key, s, f, &shown, true);
}
