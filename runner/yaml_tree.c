#include "yaml_tree.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "yaml_text.h"

struct anchor {
	const char *name;
	struct yaml_node *node; /* NULL while its content is being read */
	struct mark mark;
	long size; /* nodes, aliases expanded */
};

struct reader {
	yaml_parser_t parser;
	struct arena *arena;
	struct diags *diags;
	const char *file, *text;
	size_t bytes;
	struct anchor *anchor;
	size_t n_anchors, anchor_cap;
	long nodes;
};

static struct mark mark_at(const struct reader *r, const yaml_mark_t *m, int len)
{
	return (struct mark){r->file, (int)m->line + 1, (int)m->column + 1, len};
}

/* Where a line begins, in bytes; NULL past the end. */
static const char *line_start(const struct reader *r, size_t line)
{
	const char *s = r->text, *end = s + r->bytes;
	while (line && s < end) {
		if (*s == '\n' || (*s == '\r' && (s + 1 == end || s[1] != '\n')))
			line--;
		s++;
	}
	return line ? NULL : s;
}

/* Column of a tab in the indentation of a line, or -1. */
static int tab_column(const struct reader *r, size_t line)
{
	const char *s = line_start(r, line), *end = r->text + r->bytes;
	for (int col = 0; s && s < end && (*s == ' ' || *s == '\t'); s++, col++)
		if (*s == '\t')
			return col;
	return -1;
}

/* libyaml's words, and ours where they help more. */
static const struct {
	const char *theirs, *ours, *note;
} problems[] = {
	{"mapping values are not allowed in this context", "a ':' that no key can stand before",
	 "a key of its own begins on a line of its own; a text that holds ': ' is written in quotes"},
	{"could not find expected ':'", "a line that is no 'key: value'", NULL},
	{"did not find expected key", "not in line with the keys above it", "keys of one map begin in one column"},
	{"did not find expected '-' indicator", "not in line with the list above it",
	 "items of one list begin in one column"},
	{"did not find expected ',' or ']'", "',' or ']' is missing", NULL},
	{"did not find expected ',' or '}'", "',' or '}' is missing", NULL},
	{"did not find expected node content", "a value is missing", NULL},
	{"did not find expected <document start>", "text after the end of the document", NULL},
	{"found unexpected end of stream", "a quote that is never closed", NULL},
	{"found character that cannot start any token", "a character that no value begins with",
	 "write such a text in quotes"},
	{"found unknown escape character", "an unknown escape in a text in quotes",
	 "in '…' a backslash is an ordinary character"},
	{"block sequence entries are not allowed in this context", "a list item that no list can begin here", NULL},
};

static const struct {
	const char *theirs, *ours;
} contexts[] = {
	{"while parsing a flow sequence", "the list begins here"},
	{"while parsing a flow mapping", "the map begins here"},
	{"while parsing a block mapping", "the map begins here"},
	{"while parsing a block collection", "the list begins here"},
	{"while scanning a quoted scalar", "the text begins here"},
	{"while scanning a simple key", "the line begins here"},
};

static bool say_problem(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;
	struct mark at = mark_at(r, &p->problem_mark, 1);
	if (p->error == YAML_MEMORY_ERROR)
		return diag_add(r->diags, DIAG_ERROR, (struct mark){r->file, 0, 0, 0}, "out of memory");
	int tab = tab_column(r, p->problem_mark.line);
	if (p->error == YAML_SCANNER_ERROR && tab >= 0) {
		at.col = tab + 1;
		diag_add(r->diags, DIAG_ERROR, at, "tabs are not allowed as indentation");
		diag_note(r->diags, (struct mark){0}, "use spaces");
		return false;
	}
	const char *ours = p->problem ? p->problem : "not YAML", *note = NULL;
	for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
		if (p->problem && !strcmp(p->problem, problems[i].theirs)) {
			ours = problems[i].ours;
			note = problems[i].note;
		}
	diag_add(r->diags, DIAG_ERROR, at, "%s", ours);
	if (note)
		diag_note(r->diags, (struct mark){0}, "%s", note);
	for (size_t i = 0; p->context && i < sizeof contexts / sizeof *contexts; i++)
		if (!strcmp(p->context, contexts[i].theirs))
			diag_note(r->diags, mark_at(r, &p->context_mark, 1), "%s", contexts[i].ours);
	return false;
}

static bool next(struct reader *r, yaml_event_t *ev)
{
	return yaml_parser_parse(&r->parser, ev) ? true : say_problem(r);
}

static int characters(const char *s)
{
	int n = 0;
	for (; *s && *s != '\n'; s++)
		n += ((unsigned char)*s & 0xC0) != 0x80;
	return n;
}

static struct mark event_mark(const struct reader *r, const yaml_event_t *ev)
{
	int len = 1;
	if (ev->type == YAML_SCALAR_EVENT || ev->type == YAML_ALIAS_EVENT) {
		if (ev->start_mark.line == ev->end_mark.line)
			len = (int)(ev->end_mark.column - ev->start_mark.column);
		else if (ev->type == YAML_SCALAR_EVENT && ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
			len = characters((const char *)ev->data.scalar.value);
	}
	return mark_at(r, &ev->start_mark, len > 0 ? len : 1);
}

static bool count(struct reader *r, struct mark at, long n)
{
	r->nodes += n;
	if (r->nodes <= YAML_MAX_NODES)
		return true;
	return diag_add(r->diags, DIAG_ERROR, at, "more than %d values, aliases expanded", YAML_MAX_NODES);
}

/* An anchor of this name, or -1. */
static int anchor_find(const struct reader *r, const char *name)
{
	for (size_t i = 0; i < r->n_anchors; i++)
		if (!strcmp(r->anchor[i].name, name))
			return (int)i;
	return -1;
}

static bool anchor_open(struct reader *r, const char *name, struct mark at, int *index)
{
	*index = -1;
	if (!name)
		return true;
	int old = anchor_find(r, name);
	if (old >= 0) {
		diag_add(r->diags, DIAG_ERROR, at, "anchor '&%s' stands twice", name);
		diag_note(r->diags, r->anchor[old].mark, "first here");
		return false;
	}
	r->anchor = arena_grow(r->arena, r->anchor, r->n_anchors, &r->anchor_cap, sizeof *r->anchor);
	*index = (int)r->n_anchors++;
	r->anchor[*index] = (struct anchor){.name = arena_strdup(r->arena, name), .mark = at};
	return true;
}

static struct yaml_node *alias(struct reader *r, const yaml_event_t *ev)
{
	const char *name = (const char *)ev->data.alias.anchor;
	struct mark at = event_mark(r, ev);
	int i = anchor_find(r, name);
	if (i < 0) {
		diag_add(r->diags, DIAG_ERROR, at, "alias '*%s' has no anchor '&%s' before it", name, name);
		return NULL;
	}
	if (!r->anchor[i].node) {
		diag_add(r->diags, DIAG_ERROR, at, "alias '*%s' stands inside its own anchor", name);
		diag_note(r->diags, r->anchor[i].mark, "the anchor is here");
		return NULL;
	}
	return count(r, at, r->anchor[i].size) ? r->anchor[i].node : NULL;
}

/* A set of keys seen, open addressing, so that a map of many keys does not cost their square. */
struct seen {
	int *slot; /* index + 1 of a key */
	size_t cap;
};

static size_t hash(const char *s)
{
	uint64_t h = 1469598103934665603u;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211u;
	return (size_t)(h ^ h >> 29);
}

static int seen_add(struct arena *a, struct seen *s, struct yaml_node *const *key, int n)
{
	if ((size_t)n * 2 >= s->cap) {
		s->cap = s->cap ? s->cap * 4 : 16;
		s->slot = arena_array(a, s->cap, sizeof *s->slot);
		for (int k = 0; k < n; k++) {
			size_t h = hash(key[k]->text) % s->cap;
			while (s->slot[h])
				h = (h + 1) % s->cap;
			s->slot[h] = k + 1;
		}
	}
	size_t h = hash(key[n]->text) % s->cap;
	for (; s->slot[h]; h = (h + 1) % s->cap)
		if (!strcmp(key[s->slot[h] - 1]->text, key[n]->text))
			return s->slot[h] - 1;
	s->slot[h] = n + 1;
	return -1;
}

static struct yaml_node *node(struct reader *r, const yaml_event_t *ev, int depth);

/* Reads items up to the end event. A map's keys and values come in turn. */
static bool children(struct reader *r, struct yaml_node *parent, int depth)
{
	bool map = parent->kind == YAML_TREE_MAP;
	yaml_event_type_t end = map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
	size_t cap = 0, key_cap = 0;
	struct seen seen = {0};
	for (;;) {
		yaml_event_t ev;
		if (!next(r, &ev))
			return false;
		if (ev.type == end) {
			yaml_event_delete(&ev);
			return true;
		}
		struct yaml_node *key = NULL;
		bool keep = true;
		if (map) {
			if (ev.type != YAML_SCALAR_EVENT) {
				diag_add(r->diags, DIAG_ERROR, event_mark(r, &ev), "a key is a plain word");
				yaml_event_delete(&ev);
				return false;
			}
			key = node(r, &ev, depth);
			yaml_event_delete(&ev);
			if (!key)
				return false;
			parent->key =
				arena_grow(r->arena, parent->key, (size_t)parent->n, &key_cap, sizeof *parent->key);
			parent->key[parent->n] = key;
			int first = -1;
			if (!key->quoted && !strcmp(key->text, "<<")) {
				keep = diag_add(r->diags, DIAG_ERROR, key->mark, "merge keys ('<<') are not used");
				diag_note(r->diags, (struct mark){0}, "write 'extends: NAME'");
			} else if ((first = seen_add(r->arena, &seen, parent->key, parent->n)) >= 0) {
				keep = diag_add(r->diags, DIAG_ERROR, key->mark, "key '%s' stands twice", key->text);
				diag_note(r->diags, parent->key[first]->mark, "first here");
			}
			if (!next(r, &ev))
				return false;
		}
		struct yaml_node *value = node(r, &ev, depth);
		yaml_event_delete(&ev);
		if (!value)
			return false;
		if (!keep)
			continue;
		parent->item = arena_grow(r->arena, parent->item, (size_t)parent->n, &cap, sizeof *parent->item);
		parent->item[parent->n++] = value;
	}
}

/* The node that begins with ev; NULL where an error was added that ends the reading. */
static struct yaml_node *node(struct reader *r, const yaml_event_t *ev, int depth)
{
	if (ev->type == YAML_ALIAS_EVENT)
		return alias(r, ev);
	struct mark at = event_mark(r, ev);
	const yaml_char_t *anchor = NULL, *tag = NULL;
	struct yaml_node *v = arena_alloc(r->arena, sizeof *v);
	v->mark = at;
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		v->kind = YAML_TREE_SCALAR;
		v->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
		v->text = arena_strndup(r->arena, (const char *)ev->data.scalar.value, ev->data.scalar.length);
		anchor = ev->data.scalar.anchor;
		tag = ev->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		v->kind = YAML_TREE_SEQ;
		anchor = ev->data.sequence_start.anchor;
		tag = ev->data.sequence_start.tag;
		break;
	default:
		v->kind = YAML_TREE_MAP;
		anchor = ev->data.mapping_start.anchor;
		tag = ev->data.mapping_start.tag;
		break;
	}
	if (tag) {
		static const char core[] = "tag:yaml.org,2002:";
		bool is_core = !strncmp((const char *)tag, core, sizeof core - 1);
		diag_add(r->diags, DIAG_ERROR, at, "tags ('%s%s') are not used", is_core ? "!!" : "",
			 (const char *)tag + (is_core ? sizeof core - 1 : 0));
		return NULL;
	}
	if (v->kind == YAML_TREE_SCALAR && strlen(v->text) != ev->data.scalar.length) {
		diag_add(r->diags, DIAG_ERROR, at, "a text that holds a NUL character");
		return NULL;
	}
	long before = r->nodes;
	int index;
	if (!count(r, at, 1) || !anchor_open(r, (const char *)anchor, at, &index))
		return NULL;
	if (v->kind != YAML_TREE_SCALAR) {
		if (depth >= YAML_MAX_DEPTH) {
			diag_add(r->diags, DIAG_ERROR, at, "nesting deeper than %d", YAML_MAX_DEPTH);
			return NULL;
		}
		if (!children(r, v, depth + 1))
			return NULL;
	}
	if (index >= 0) {
		r->anchor[index].node = v;
		r->anchor[index].size = r->nodes - before;
	}
	return v;
}

static struct yaml_node *document(struct reader *r)
{
	struct yaml_node *root = NULL;
	for (;;) {
		yaml_event_t ev;
		if (!next(r, &ev))
			return NULL;
		yaml_event_type_t type = ev.type;
		struct mark at = mark_at(r, &ev.start_mark, 3);
		bool good = true;
		switch (type) {
		case YAML_DOCUMENT_START_EVENT:
			if (root) {
				good = diag_add(r->diags, DIAG_ERROR, at, "a second document");
				diag_note(r->diags, (struct mark){0},
					  "a file holds one document; put the other into a file of its own");
			}
			break;
		case YAML_SCALAR_EVENT:
		case YAML_ALIAS_EVENT:
		case YAML_SEQUENCE_START_EVENT:
		case YAML_MAPPING_START_EVENT:
			root = node(r, &ev, 0);
			good = root != NULL;
			break;
		default: break;
		}
		yaml_event_delete(&ev);
		if (!good)
			return NULL;
		if (type == YAML_STREAM_END_EVENT)
			break;
	}
	if (!root || (root->kind == YAML_TREE_SCALAR && !root->quoted && !*root->text)) {
		diag_add(r->diags, DIAG_ERROR, (struct mark){r->file, 0, 0, 0}, "the file is empty");
		return NULL;
	}
	return root;
}

struct yaml_node *yaml_parse(struct arena *a, const char *file, const char *text, size_t n, struct diags *d)
{
	struct reader r = {.arena = a, .diags = d, .file = arena_strdup(a, file), .text = text, .bytes = n};
	diag_source(d, file, text, n);
	if (n > YAML_MAX_BYTES) {
		diag_add(d, DIAG_ERROR, (struct mark){r.file, 0, 0, 0}, "the file is larger than 1 MiB");
		return NULL;
	}
	/* libyaml says where a bad byte is in bytes only, and stops at the first read block: so this is looked at before it. */
	if (!yaml_text_check(r.file, text, n, d))
		return NULL;
	if (!yaml_parser_initialize(&r.parser)) {
		diag_add(d, DIAG_ERROR, (struct mark){r.file, 0, 0, 0}, "out of memory");
		return NULL;
	}
	/* The encoding is left to be found: setting it loses keys where a byte order mark stands. */
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
	struct yaml_node *root = document(&r);
	yaml_parser_delete(&r.parser);
	return root;
}

struct yaml_node *yaml_get(const struct yaml_node *map, const char *key, struct mark *key_mark)
{
	for (int i = 0; map && map->kind == YAML_TREE_MAP && i < map->n; i++)
		if (!strcmp(map->key[i]->text, key)) {
			if (key_mark)
				*key_mark = map->key[i]->mark;
			return map->item[i];
		}
	return NULL;
}

const char *yaml_kind_text(const struct yaml_node *v)
{
	switch (v->kind) {
	case YAML_TREE_SEQ: return "a list";
	case YAML_TREE_MAP: return "a map";
	case YAML_TREE_SCALAR: break;
	}
	return v->quoted ? "text in quotes" : *v->text ? "a plain value" : "nothing";
}
