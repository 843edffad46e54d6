/* yaml_tree: YAML text to a tree with marks. The only user of libyaml, and of its event interface only.
 *
 * JSON is read by the same function (it is a subset). Every limit has a message of its own: 1 MiB a file, nesting 64 deep,
 * 1e5 nodes after aliases are expanded, one document, no empty file, no tabs for indentation, UTF-8, no NUL, no key twice, no
 * alias cycle, no merge key. Typed readers of scalars: yaml_scalar.h. */
#ifndef ASSAY_YAML_TREE_H
#define ASSAY_YAML_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "diag.h"

enum yaml_kind { YAML_TREE_SCALAR, YAML_TREE_SEQ, YAML_TREE_MAP };

enum { YAML_MAX_DEPTH = 64, YAML_MAX_BYTES = 1 << 20, YAML_MAX_NODES = 100000 };

struct yaml_node {
	enum yaml_kind kind;
	bool quoted; /* scalar: written in quotes, or as a block: never a number or a boolean */
	bool bad; /* for the user of the tree: a message about it was given, say nothing more */
	const char *text; /* scalar: UTF-8 without NUL; else NULL */
	struct mark mark; /* where it begins; len: characters of a scalar on its first line, 1 for a seq or map */
	int n; /* seq: items; map: pairs */
	struct yaml_node **item; /* seq: items; map: values in the order written */
	struct yaml_node **key; /* map: keys, scalars all (quoted and mark as of a scalar), none twice; else NULL */
};

/* Parses text (n bytes, need not end in NUL) of a file by that name (copied into the arena). Gives the text to diag_source. Returns
 * NULL where the text cannot be read. Keys that stand twice and merge keys are added to d and left out of the tree, which is then
 * returned all the same, so that the caller finds the other mistakes too: ask diags_errors(d) as well. */
struct yaml_node *yaml_parse(struct arena *a, const char *file, const char *text, size_t n, struct diags *d);

/* Reads a whole file into the arena; *n gets its length (a NUL follows). NULL with an error in d: cannot be opened, a folder, more
 * than YAML_MAX_BYTES. The error is placed at `from` where from.file != NULL (the line that names the file), else on the file. */
char *yaml_read_file(struct arena *a, const char *path, struct mark from, size_t *n, struct diags *d);

/* Value of a key in a map, or NULL. *key_mark (may be NULL) gets the key's place. */
struct yaml_node *yaml_get(const struct yaml_node *map, const char *key, struct mark *key_mark);

/* "a list", "a map", "text in quotes", "a plain value": for messages. */
const char *yaml_kind_text(const struct yaml_node *v);

#endif
