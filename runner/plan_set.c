/* plan_set: a set of cells as bits with ranks, so that the k-th of a filtered million is found without a list of them. */
#include <inttypes.h>
#include <stdlib.h>

#include "plan_space.h"

enum { BLOCK_BITS = 512, BLOCK_WORDS = BLOCK_BITS / 64 };

bool cell_set_create(struct cell_set *s, int64_t n, struct err *err)
{
	size_t blocks = (size_t)(n / BLOCK_BITS) + 1;
	*s = (struct cell_set){.n = n};
	s->word = calloc(blocks * BLOCK_WORDS, sizeof *s->word);
	s->rank = calloc(blocks + 1, sizeof *s->rank);
	if (s->word && s->rank)
		return true;
	cell_set_free(s);
	return err_set(err, "out of memory for the bits of %" PRId64 " cells; lower max_cells", n);
}

void cell_set_free(struct cell_set *s)
{
	free(s->word);
	free(s->rank);
	*s = (struct cell_set){0};
}

void cell_set_add(struct cell_set *s, int64_t i)
{
	s->word[i / 64] |= (uint64_t)1 << (i % 64);
}

bool cell_set_has(const struct cell_set *s, int64_t i)
{
	return !s->word || s->word[i / 64] >> (i % 64) & 1;
}

void cell_set_seal(struct cell_set *s)
{
	int64_t blocks = s->n / BLOCK_BITS + 1;
	s->count = 0;
	for (int64_t b = 0; b < blocks; b++) {
		s->rank[b] = s->count;
		for (int w = 0; w < BLOCK_WORDS; w++)
			s->count += __builtin_popcountll(s->word[b * BLOCK_WORDS + w]);
	}
	s->rank[blocks] = s->count;
}

int64_t cell_set_rank(const struct cell_set *s, int64_t i)
{
	if (!s->word)
		return i;
	int64_t n = s->rank[i / BLOCK_BITS];
	for (int64_t w = i / BLOCK_BITS * BLOCK_WORDS; w < i / 64; w++)
		n += __builtin_popcountll(s->word[w]);
	uint64_t below = ((uint64_t)1 << (i % 64)) - 1;
	return n + __builtin_popcountll(s->word[i / 64] & below);
}

int64_t cell_set_nth(const struct cell_set *s, int64_t k)
{
	if (!s->word)
		return k;
	int64_t lo = 0, hi = s->n / BLOCK_BITS;
	while (lo < hi) {
		int64_t mid = lo + (hi - lo + 1) / 2;
		if (s->rank[mid] <= k)
			lo = mid;
		else
			hi = mid - 1;
	}
	k -= s->rank[lo];
	int64_t w = lo * BLOCK_WORDS;
	for (int n; k >= (n = __builtin_popcountll(s->word[w])); w++)
		k -= n;
	uint64_t bits = s->word[w];
	while (k--)
		bits &= bits - 1;
	return w * 64 + __builtin_ctzll(bits);
}
