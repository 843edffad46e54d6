#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "fence.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define FENCE_LEAST ((size_t)64 << 10) /* less is none */
enum { FENCE_PART = 256 }; /* of an address space that is limited: the first ones must leave room for the others */
#define FENCE_USUAL ((size_t)16 << 20)
#define FENCE_MOST ((size_t)1 << 30)
/* Freed memory that is kept, all together and in one piece. */
#define SPARE_ALL ((size_t)128 << 20)
#define SPARE_EACH ((size_t)32 << 20)
enum { SPARE_PIECES = 64, SPARE_SLACK_PAGES = 16 };

struct piece {
	char *map; /* the whole mapping, fences and all */
	size_t map_bytes;
	char *end; /* where the fence behind begins */
	size_t most, open; /* bytes before `end` that were memory at first, and that are now; whole pages */
	void *data; /* NULL: a spare one */
	bool sealed;
	uint64_t freed; /* when: spares go in this order */
	const char *name;
	size_t before, bytes; /* of what is called so */
};

static struct {
	struct piece *piece;
	int n, cap, spares;
	size_t spare_bytes;
	uint64_t clock;
} all;

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void drop(int i)
{
	munmap(all.piece[i].map, all.piece[i].map_bytes);
	all.piece[i] = all.piece[--all.n];
}

static void drop_oldest_spare(void)
{
	int oldest = -1;

	for (int i = 0; i < all.n; i++)
		if (!all.piece[i].data && (oldest < 0 || all.piece[i].freed < all.piece[oldest].freed))
			oldest = i;
	all.spares--;
	all.spare_bytes -= all.piece[oldest].most;
	drop(oldest);
}

/* Makes the last n bytes before the end memory, and the rest a part of the fence. */
static bool open_up(struct piece *p, size_t n)
{
	if (p->sealed) {
		if (mprotect(p->end - p->open, p->open, PROT_READ | PROT_WRITE) != 0)
			return false;
		p->sealed = false;
	}
	const bool ok = n == p->open || (n > p->open ? mprotect(p->end - n, n - p->open, PROT_READ | PROT_WRITE) == 0
						     : mprotect(p->end - p->open, p->open - n, PROT_NONE) == 0);

	if (ok)
		p->open = n;
	return ok;
}

/* The spare that wastes least, of about this size; -1: none. */
static int spare_of(size_t n)
{
	int best = -1;

	for (int i = 0; all.spares && i < all.n; i++) {
		const struct piece *p = &all.piece[i];
		if (p->data || p->most < n || p->most > 2 * n + SPARE_SLACK_PAGES * page_bytes())
			continue;
		if (best < 0 || p->most < all.piece[best].most)
			best = i;
	}
	return best;
}

/* How wide the fences of n bytes are to be. */
static size_t fence_bytes(size_t n)
{
	size_t fence = n < FENCE_USUAL ? FENCE_USUAL : n > FENCE_MOST ? FENCE_MOST : n;
	struct rlimit space;

	if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur / FENCE_PART < fence)
		fence = space.rlim_cur / FENCE_PART;
	return fence > FENCE_LEAST ? fence : FENCE_LEAST;
}

/* A mapping with n bytes of memory in it; -1: there is none. */
static int map_anew(size_t n)
{
	struct piece p = {.most = n};
	size_t fence = fence_bytes(n);

	if (all.n == all.cap) {
		const int cap = all.cap ? 2 * all.cap : 256;
		struct piece *grown = realloc(all.piece, (size_t)cap * sizeof(*grown));
		if (!grown)
			return -1;
		all.piece = grown;
		all.cap = cap;
	}
	for (p.map = MAP_FAILED; p.map == MAP_FAILED; fence /= 2) {
		if (fence < FENCE_LEAST)
			return -1;
		fence = round_up(fence, page_bytes());
		p.map_bytes = n + 2 * fence;
		p.end = NULL;
		p.map = mmap(NULL, p.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p.map != MAP_FAILED)
			p.end = p.map + fence + n;
	}
	if (!open_up(&p, n)) {
		munmap(p.map, p.map_bytes);
		return -1;
	}
	all.piece[all.n] = p;
	return all.n++;
}

void *fence_alloc(size_t bytes)
{
	const size_t size = bytes ? round_up(bytes, FENCE_ALIGN) : FENCE_ALIGN;

	if (size < bytes || size > SIZE_MAX / 4)
		return NULL;
	const size_t n = round_up(size, page_bytes());
	int i = spare_of(n);
	if (i >= 0) {
		all.spares--;
		all.spare_bytes -= all.piece[i].most;
		if (!open_up(&all.piece[i], n)) {
			drop(i);
			i = -1;
		}
	}
	while (i < 0 && (i = map_anew(n)) < 0 && all.spares)
		drop_oldest_spare();
	if (i < 0)
		return NULL;
	all.piece[i].name = NULL;
	all.piece[i].data = all.piece[i].end - size;
	return all.piece[i].data;
}

static int index_of(const void *p)
{
	for (int i = all.n - 1; i >= 0; i--)
		if (p && all.piece[i].data == p)
			return i;
	return -1;
}

void fence_free(void *p)
{
	const int i = index_of(p);

	if (i < 0)
		return;
	struct piece *one = &all.piece[i];
	if (one->most > SPARE_EACH) {
		drop(i);
		return;
	}
	one->data = NULL;
	one->freed = ++all.clock;
	all.spares++;
	all.spare_bytes += one->most;
	while (all.spares > SPARE_PIECES || all.spare_bytes > SPARE_ALL)
		drop_oldest_spare();
}

void fence_name(const void *p, const char *name, size_t before, size_t bytes)
{
	const int i = index_of(p);

	if (i < 0)
		return;
	all.piece[i].name = name;
	all.piece[i].before = before;
	all.piece[i].bytes = bytes;
}

bool fence_seal(void *p)
{
	const int i = index_of(p);

	if (i < 0 || mprotect(all.piece[i].end - all.piece[i].open, all.piece[i].open, PROT_READ) != 0)
		return false;
	return all.piece[i].sealed = true;
}

bool fence_hit(const void *address, struct fence_hit *hit)
{
	const uintptr_t at = (uintptr_t)address;

	for (int i = 0; i < all.n; i++) {
		const struct piece *p = &all.piece[i];
		if (at - (uintptr_t)p->map >= p->map_bytes)
			continue;
		const bool inside = at >= (uintptr_t)p->end - p->open && at < (uintptr_t)p->end;
		/* In the memory itself, or near one that is nobody's now: no hit of a fence. */
		if (!p->data || (inside && !p->sealed))
			return false;
		*hit = (struct fence_hit){
			.sealed = inside,
			.name = p->name,
			.offset = (int64_t)(at - (uintptr_t)p->data - (p->name ? p->before : 0)),
			.bytes = p->name ? (int64_t)p->bytes : 0,
		};
		return true;
	}
	return false;
}
