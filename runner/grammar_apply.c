/* Checked values into the structs that the rows point into, and back to JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grammar.h"
#include "settings.h"
#include "yaml_scalar.h"

struct walk {
	struct arena *arena;
	grammar_seen *seen;
	void *ctx;
};

static void *field(void *base, size_t offset)
{
	return (char *)base + offset;
}

static const void *const_field(const void *base, size_t offset)
{
	return (const char *)base + offset;
}

static int word_index(const struct slot *s, const char *text)
{
	for (int i = 0; s->words && s->words[i]; i++)
		if (!strcmp(s->words[i], text))
			return i;
	return -1;
}

/* A checked scalar as a number of the row's type. */
static void numbers(const struct slot *s, const char *text, int64_t *i, double *x)
{
	bool flag = false;
	int word = word_index(s, text);
	*i = 0;
	*x = 0;
	if (word >= 0) {
		*i = word + s->word_base;
		*x = (double)*i;
		return;
	}
	switch (s->scalar) {
	case SC_INT:
	case SC_SEED: scalar_int(text, i, NULL); break;
	case SC_SIZE: scalar_size(text, i, NULL); break;
	case SC_TIME: scalar_time(text, i, NULL); break;
	case SC_REAL: scalar_real(text, x, NULL); break;
	case SC_PERCENT: scalar_percent(text, x, NULL); break;
	case SC_BOOL:
		scalar_bool(text, &flag, NULL);
		*i = flag;
		break;
	default: break;
	}
	*x += s->plus;
}

static void strings_put(struct arena *a, const char **list, const struct yaml_node *v)
{
	memset(list, 0, MAX_LIST * sizeof *list);
	if (v->kind == YAML_TREE_SCALAR)
		list[0] = arena_strdup(a, v->text);
	for (int i = 0; v->kind == YAML_TREE_SEQ && i < v->n && i < MAX_LIST - 1; i++)
		list[i] = arena_strdup(a, v->item[i]->text);
}

static void put(struct walk *w, const struct slot *s, void *base, const struct yaml_node *v)
{
	int64_t i = 0;
	double x = 0;
	if (s->set) {
		s->set(w->arena, base, v);
		return;
	}
	if (v->kind == YAML_TREE_SCALAR)
		numbers(s, v->text, &i, &x);
	switch (s->store) {
	case ST_NONE: break;
	case ST_INT: *(int *)field(base, s->offset) = (int)i; break;
	case ST_I64: *(int64_t *)field(base, s->offset) = i; break;
	case ST_DOUBLE: *(double *)field(base, s->offset) = x; break;
	case ST_BOOL: *(bool *)field(base, s->offset) = i != 0; break;
	case ST_STR: *(const char **)field(base, s->offset) = arena_strdup(w->arena, v->text); break;
	case ST_STRS: strings_put(w->arena, field(base, s->offset), v); break;
	}
	if (s->has)
		*(bool *)field(base, s->has - 1) = true;
}

static void see(struct walk *w, const char *prefix, const char *key, const struct yaml_node *v, char *path, size_t cap)
{
	snprintf(path, cap, "%s%s%s", prefix, *prefix ? "." : "", key);
	if (w->seen)
		w->seen(w->ctx, path, v);
}

enum { PATH_MAX_BYTES = 128 };

static void defaults(struct walk *w, const struct slot *sub, void *base, const char *prefix)
{
	for (const struct slot *s = sub; s->key; s++) {
		char path[PATH_MAX_BYTES];
		snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", s->key);
		if (s->dflt) {
			const struct yaml_node v = {.kind = YAML_TREE_SCALAR, .text = s->dflt};
			put(w, s, base, &v);
			see(w, prefix, s->key, NULL, path, sizeof path);
		} else if (s->store == ST_DOUBLE && s->scalar == SC_PERCENT && s->has) {
			*(double *)field(base, s->offset) = 0;
		}
		if (s->sub && !s->set)
			defaults(w, s->sub, base, path);
	}
}

void grammar_defaults(const struct slot *sub, struct arena *a, void *base, grammar_seen *seen, void *ctx)
{
	struct walk w = {a, seen, ctx};
	defaults(&w, sub, base, "");
}

static void apply(struct walk *w, const struct slot *sub, const struct yaml_node *map, void *base, const char *prefix)
{
	for (int i = 0; map->kind == YAML_TREE_MAP && i < map->n; i++) {
		const struct yaml_node *v = map->item[i];
		const struct slot *s = grammar_find(sub, map->key[i]->text);
		char path[PATH_MAX_BYTES];
		if (!s)
			continue;
		/* A map with one bad key is bad itself; its good keys still count, so that no cascade follows. */
		bool whole = !v->bad;
		if (whole || s->sub)
			see(w, prefix, s->key, v, path, sizeof path);
		if (s->bit) {
			uint32_t *on = field(base, s->offset), bit = 1u << (s->bit - 1);
			bool off = v->kind == YAML_TREE_SCALAR && !strcmp(v->text, "false");
			*on = off ? *on & ~bit : *on | bit;
		} else if (whole && !(s->sub && !s->set)) {
			put(w, s, base, v);
		}
		if (s->sub && !s->set && v->kind == YAML_TREE_MAP)
			apply(w, s->sub, v, base, path);
	}
}

void grammar_apply(const struct slot *sub, struct arena *a, const struct yaml_node *map, void *base, grammar_seen *seen,
		   void *ctx)
{
	struct walk w = {a, seen, ctx};
	apply(&w, sub, map, base, "");
}

/* The shortest percentage that, plus `plus`, reads back as v. */
static json_t *percent_json(double v, double plus)
{
	char text[40];
	for (int digits = 1; digits <= 17; digits++) {
		double back;
		snprintf(text, sizeof text, "%.*g%%", digits, (v - plus) * 100);
		if (!strchr(text, 'e') && scalar_percent(text, &back, NULL) && back + plus == v)
			break;
	}
	return json_string(text);
}

json_t *grammar_percent(double v)
{
	return percent_json(v, 0);
}

json_t *grammar_time(int64_t ns)
{
	static const struct {
		const char *name;
		int64_t ns;
	} unit[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};
	char text[40];
	for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
		if (ns % unit[i].ns == 0) {
			snprintf(text, sizeof text, "%" PRId64 "%s", ns / unit[i].ns, unit[i].name);
			break;
		}
	return ns ? json_string(text) : json_integer(0);
}

json_t *grammar_size(int64_t bytes)
{
	static const struct {
		const char *name;
		int64_t bytes;
	} unit[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}};
	char text[40];
	for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
		if (bytes % unit[i].bytes == 0) {
			snprintf(text, sizeof text, "%" PRId64 "%s", bytes / unit[i].bytes, unit[i].name);
			break;
		}
	return bytes ? json_string(text) : json_integer(0);
}

static json_t *number_json(const struct slot *s, int64_t i, double x)
{
	int words = 0;
	while (s->words && s->words[words])
		words++;
	bool real = s->store == ST_DOUBLE;
	double at = real ? x : (double)i;
	if (words && at >= s->word_base && at < s->word_base + words && at == floor(at))
		return json_string(s->words[(int)at - s->word_base]);
	switch (s->scalar) {
	case SC_TIME: return grammar_time(i);
	case SC_SIZE: return grammar_size(i);
	case SC_PERCENT: return percent_json(x, s->plus);
	case SC_REAL: return json_real(x);
	default: return json_integer(i);
	}
}

static json_t *get(const struct slot *s, const void *base)
{
	if (s->get)
		return s->get(base);
	if (s->has && !*(const bool *)const_field(base, s->has - 1))
		return NULL;
	const void *p = const_field(base, s->offset);
	switch (s->store) {
	case ST_NONE: break;
	case ST_INT: return number_json(s, *(const int *)p, 0);
	case ST_I64: return number_json(s, *(const int64_t *)p, 0);
	case ST_DOUBLE: return number_json(s, 0, *(const double *)p);
	case ST_BOOL: return json_boolean(*(const bool *)p);
	case ST_STR: {
		const char *text = *(const char *const *)p;
		return text ? json_string(text) : NULL;
	}
	case ST_STRS: {
		const char *const *list = p;
		json_t *j = list[0] ? json_array() : NULL;
		for (int i = 0; i < MAX_LIST && list[i]; i++)
			json_array_append_new(j, json_string(list[i]));
		return j;
	}
	}
	return NULL;
}

json_t *grammar_to_json(const struct slot *sub, const void *base)
{
	json_t *map = json_object();
	for (const struct slot *s = sub; s->key; s++) {
		json_t *v;
		if (s->bit && !(*(const uint32_t *)const_field(base, s->offset) >> (s->bit - 1) & 1))
			continue;
		if (s->sub && !s->get) {
			v = grammar_to_json(s->sub, base);
			if (!json_object_size(v) && !s->bit) {
				json_decref(v);
				continue;
			}
		} else if (!(v = get(s, base))) {
			continue;
		}
		json_object_set_new(map, s->key, v);
	}
	return map;
}
