#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct block {
	struct block *next;
	size_t used, size;
	alignas(max_align_t) unsigned char data[];
};

struct arena {
	struct block *head;
};

enum { FIRST_BLOCK = 16 * 1024 };

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

struct arena *arena_create(void)
{
	return must(calloc(1, sizeof(struct arena)));
}

void arena_destroy(struct arena *a)
{
	if (!a)
		return;
	for (struct block *b = a->head; b;) {
		struct block *next = b->next;
		free(b);
		b = next;
	}
	free(a);
}

void *arena_alloc(struct arena *a, size_t bytes)
{
	const size_t align = alignof(max_align_t);
	if (bytes > SIZE_MAX / 2)
		abort();
	bytes = (bytes + align) / align * align; /* at least one unit, so that every pointer is unique */
	struct block *b = a->head;
	if (!b || b->size - b->used < bytes) {
		size_t size = b ? b->size * 2 : FIRST_BLOCK;
		if (size < bytes)
			size = bytes;
		b = must(calloc(1, sizeof *b + size));
		b->size = size;
		b->next = a->head;
		a->head = b;
	}
	void *p = b->data + b->used;
	b->used += bytes;
	return p;
}

void *arena_array(struct arena *a, size_t n, size_t bytes)
{
	if (bytes && n > SIZE_MAX / bytes)
		abort();
	return arena_alloc(a, n * bytes);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *p = arena_alloc(a, n + 1);
	memcpy(p, s, n);
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return s ? arena_strndup(a, s, strlen(s)) : NULL;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char short_one[256];
	va_start(ap, fmt);
	int n = vsnprintf(short_one, sizeof short_one, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	if ((size_t)n < sizeof short_one)
		return arena_strndup(a, short_one, (size_t)n);
	char *p = arena_alloc(a, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

void *arena_grow(struct arena *a, void *base, size_t n, size_t *cap, size_t bytes)
{
	if (n < *cap)
		return base;
	size_t want = *cap ? *cap * 2 : 8;
	while (want <= n)
		want *= 2;
	void *p = arena_array(a, want, bytes);
	if (n)
		memcpy(p, base, n * bytes);
	*cap = want;
	return p;
}
