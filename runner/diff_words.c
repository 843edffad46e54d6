/* diff_words: texts kept once, hashes, and lists that grow. */
#include <stdlib.h>
#include <string.h>

#include "diff_parts.h"

uint64_t diff_hash(const void *data, size_t n)
{
	const unsigned char *s = data;
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
	for (size_t i = 0; i < n; i++)
		h = (h ^ s[i]) * 0x100000001b3u;
	h ^= h >> 32;
	h *= 0x9E3779B97F4A7C15u;
	return h ^ h >> 29;
}

static bool grow_slots(struct diff_words *w)
{
	uint32_t n = w->n_slots ? w->n_slots * 2 : 64;
	uint32_t *slot = calloc(n, sizeof *slot);
	if (!slot)
		return false;
	for (uint32_t k = 0; k < w->n; k++) {
		uint32_t i = (uint32_t)diff_hash(w->word[k], strlen(w->word[k])) & (n - 1);
		while (slot[i])
			i = (i + 1) & (n - 1);
		slot[i] = k + 1;
	}
	free(w->slot);
	w->slot = slot;
	w->n_slots = n;
	return true;
}

uint32_t diff_word(struct diff_words *w, const char *text)
{
	if (w->n * 2 >= w->n_slots && !grow_slots(w))
		return UINT32_MAX;
	uint32_t i = (uint32_t)diff_hash(text, strlen(text)) & (w->n_slots - 1);
	for (; w->slot[i]; i = (i + 1) & (w->n_slots - 1))
		if (strcmp(w->word[w->slot[i] - 1], text) == 0)
			return w->slot[i] - 1;
	if (w->n == w->cap) {
		uint32_t cap = w->cap ? w->cap * 2 : 64;
		char **p = realloc(w->word, cap * sizeof *p);
		if (!p)
			return UINT32_MAX;
		w->word = p;
		w->cap = cap;
	}
	if (!(w->word[w->n] = strdup(text)))
		return UINT32_MAX;
	w->slot[i] = ++w->n;
	return w->n - 1;
}

void diff_words_free(struct diff_words *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		free(w->word[i]);
	free(w->word);
	free(w->slot);
}

bool diff_grow(void *list_at, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return true;
	void *list;
	memcpy(&list, list_at, sizeof list);
	size_t more = *cap ? *cap + *cap / 2 : 64;
	void *p = realloc(list, more * size);
	if (!p)
		return false;
	memcpy(list_at, &p, sizeof p);
	*cap = more;
	return true;
}

bool diff_control_add(struct diff_controls *c, double change, double v)
{
	if (!diff_grow(&c->c, c->n, &c->cap, sizeof *c->c))
		return false;
	c->c[c->n++] = (struct diff_control){(float)change, (float)v};
	return true;
}
