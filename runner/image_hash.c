/* sha-256 of images, over the threads. The hash of one image is a chain, so images are hashed side by side, and while the threads hash one
 * piece of each, the calling thread, which alone talks to the device, brings the next. Whatever comes from the device is digested on the way:
 * it must be what the device digested. */
#include "image.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "fill_gen.h"
#include "image_block.h"
#include "sha256.h"

enum { PIECE_BYTES = 4 << 20, LANES = 8 };
_Static_assert(PIECE_BYTES % FILL_BLOCK_BYTES == 0, "a piece is whole blocks of the digest");

struct piece {
	const struct image_block *block; /* NULL: the image is over */
	const unsigned char *bytes;
	size_t at, n; /* place in the block */
};

/* One image on its way: what is hashed now, and what comes next, change places. */
struct lane {
	const struct image *im;
	int k; /* block and place that come next */
	size_t at;
	struct piece piece[2];
	unsigned char *room[2]; /* for pieces that come from the device */
	struct sha256 sha;
	uint64_t sum; /* of the digest of the block so far */
	const struct image_block *wrong; /* its digest is another than the device's */
};

/* Makes the next piece of a lane ready. */
static bool prepare(struct stage *st, struct lane *l, int slot, struct err *err)
{
	struct piece *p = &l->piece[slot];

	memset(p, 0, sizeof(*p));
	while (l->k < l->im->n && l->at >= l->im->block[l->k]->n) {
		l->k++;
		l->at = 0;
	}
	if (l->k >= l->im->n)
		return true;
	const struct image_block *b = l->im->block[l->k];
	const size_t left = b->n - l->at;
	*p = (struct piece){.block = b, .at = l->at, .n = left < PIECE_BYTES ? left : PIECE_BYTES};
	l->at += p->n;
	if (b->data) {
		p->bytes = b->data + p->at;
		return true;
	}
	if (!l->room[slot])
		l->room[slot] = malloc(PIECE_BYTES);
	if (!l->room[slot])
		return err_set(err, "%s: no %d bytes of host memory to hash it in", b->name, (int)PIECE_BYTES);
	p->bytes = l->room[slot];
	return st->ops->download(st->be, l->room[slot], (const unsigned char *)b->device + p->at, p->n, err);
}

static void digest(struct lane *l, const struct piece *p)
{
	if (!p->block || p->block->data)
		return;
	if (p->at == 0)
		l->sum = 0;
	l->sum += fill_digest_part(p->bytes, p->n, p->at / FILL_BLOCK_BYTES);
	if (p->at + p->n == p->block->n && fill_digest_whole(l->sum, p->block->n) != p->block->digest)
		l->wrong = p->block;
}

/* One step of all lanes: two jobs a lane, taken from a counter, and the next pieces. */
static bool step(struct stage *st, struct lane *lane, int n, int slot, int team, struct err *err)
{
	bool ok = true;
	int next = 0;

#pragma omp parallel num_threads(team) if (team > 1)
	{
		if (omp_get_thread_num() == 0)
			for (int i = 0; ok && i < n; i++)
				ok = prepare(st, &lane[i], !slot, err);
		for (;;) {
			int job;
#pragma omp atomic capture
			job = next++;
			if (job >= 2 * n)
				break;
			struct lane *l = &lane[job % n];
			const struct piece *p = &l->piece[slot];
			if (job >= n)
				digest(l, p);
			else if (p->block)
				sha256_update(&l->sha, p->bytes, p->n);
		}
	}
	return ok;
}

static bool hash_lanes(struct stage *st, struct lane *lane, int n, int team, struct err *err)
{
	int slot = 0;
	bool more = true;

	for (int i = 0; i < n; i++)
		if (!prepare(st, &lane[i], slot, err))
			return false;
	while (more) {
		if (!step(st, lane, n, slot, team, err))
			return false;
		slot = !slot;
		more = false;
		if (st->sink)
			st->sink->beat->count++; /* many gigabytes take longer than the watchdog's patience */
		for (int i = 0; i < n; i++)
			more = more || lane[i].piece[slot].block;
	}
	for (int i = 0; i < n; i++)
		if (lane[i].wrong)
			return err_set(err, "%s: the device digests other bytes than it gives to the host",
				       lane[i].wrong->name);
	return true;
}

bool image_sha256(struct stage *st, const struct image *const im[], int n, char out[][65], struct err *err)
{
	const int threads = st->ops->info(st->be)->threads;
	bool ok = true;

	for (int from = 0; ok && from < n; from += LANES) {
		const int lanes = n - from < LANES ? n - from : LANES;
		struct lane lane[LANES];
		size_t most = 0, on_device = 0;
		memset(lane, 0, sizeof(lane));
		for (int i = 0; i < lanes; i++) {
			lane[i].im = im[from + i];
			sha256_init(&lane[i].sha);
			for (int k = 0; k < im[from + i]->n; k++) {
				most = im[from + i]->block[k]->n > most ? im[from + i]->block[k]->n : most;
				on_device += !im[from + i]->block[k]->data;
			}
		}
		/* Threads are not woken for what is done before they come, nor for one chain. */
		const bool alone = most < FILL_BLOCK_BYTES || (lanes == 1 && !on_device);
		const int team = alone ? 1 : threads > 0 ? threads : omp_get_max_threads();
		ok = hash_lanes(st, lane, lanes, team, err);
		for (int i = 0; i < lanes; i++) {
			if (ok)
				sha256_hex_final(&lane[i].sha, out[from + i]);
			free(lane[i].room[0]);
			free(lane[i].room[1]);
		}
	}
	return ok;
}
