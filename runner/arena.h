/* arena: memory with one owner and one end. Suites, plans and cells are trees of small objects that die together, so they are
 * taken from an arena and never freed one by one. Small allocations only: tensors come from the backend, where running out
 * is an error with a name; here it ends the process by abort(), as every caller would have to. */
#ifndef ASSAY_ARENA_H
#define ASSAY_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

struct arena *arena_create(void);
void arena_destroy(struct arena *a); /* NULL is fine */

/* Zeroed, aligned for any type, valid until arena_destroy. n may be 0 (a unique non-NULL pointer). */
void *arena_alloc(struct arena *a, size_t bytes);
/* n elements of size bytes, zeroed; aborts where the product overflows. */
void *arena_array(struct arena *a, size_t n, size_t bytes);
char *arena_strdup(struct arena *a, const char *s); /* s may be NULL: returns NULL */
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A growing array: returns a base with room for element n (each of size bytes), which may have moved; *cap starts at 0. */
void *arena_grow(struct arena *a, void *base, size_t n, size_t *cap, size_t bytes);

#endif
