/* host_panel: how the host arms of mmq walk: panels of 32 rows of w, unpacked once, past which the tokens are streamed four at a time.
 * Each output is the same chain of operations wherever its panel and its group of tokens lie, and however many threads there are. */
#ifndef ASSAY_KERNELS_MMQ_HOST_PANEL_H
#define ASSAY_KERNELS_MMQ_HOST_PANEL_H

#include <stdlib.h>
#include <string.h>

#include "../mla/host.h"
#include "../mla/vec.h"
#include "mmq.h"

enum { PANEL = 2 * VEC, GROUP = 4 }; /* rows, tokens */

/* What one thread unpacks into; element_bytes is that of an unpacked quant. */
struct panel {
	void *w; /* quants of the rows; order is the arm's */
	void *x; /* [GROUP][in_f] */
	float *wd; /* [block][PANEL] */
	float *xd; /* [block][GROUP] */
};

struct panels {
	int n;
	size_t quant_bytes;
	int64_t in_f;
	char *memory;
};

static inline size_t panel_bytes(int64_t in_f, size_t quant_bytes)
{
	const size_t n = (size_t)in_f;
	const size_t bytes = (PANEL + GROUP) * n * quant_bytes + n / MMQ_BLOCK * (PANEL + GROUP) * sizeof(float);
	return (bytes + 63) / 64 * 64;
}

static inline struct panel panel_of(const struct panels *p, int thread)
{
	const size_t n = (size_t)p->in_f;
	char *at = p->memory + (size_t)thread * panel_bytes(p->in_f, p->quant_bytes);
	struct panel q = {.w = at};
	q.x = at += PANEL * n * p->quant_bytes;
	at += GROUP * n * p->quant_bytes;
	q.wd = (float *)(void *)at;
	q.xd = q.wd + n / MMQ_BLOCK * PANEL;
	return q;
}

/* plan() and finish() of a host arm. */
static inline int panels_plan(const struct assay_call *call, size_t quant_bytes, void **state)
{
	const struct mmq_shape s = mmq_of(call->point);
	struct panels *p = malloc(sizeof *p);
	if (p != NULL) {
		*p = (struct panels){.n = host_threads(call), .quant_bytes = quant_bytes, .in_f = s.in_f};
		p->memory = aligned_alloc(64, (size_t)p->n * panel_bytes(s.in_f, quant_bytes));
	}
	if (p == NULL || p->memory == NULL) {
		snprintf(call->error, ASSAY_ERROR_MAX,
			 "no memory to unpack %d rows of %lld weights in each of %d threads", PANEL, (long long)s.in_f,
			 host_threads(call));
		free(p);
		return -1;
	}
	*state = p;
	return 0;
}

static inline void panels_finish(void *state)
{
	struct panels *p = state;
	free(p->memory);
	free(p);
}

/* Scales of rows i0 .. i0+PANEL-1 (zero beyond out_f), and of tokens j0 .. j0+GROUP-1 (zero beyond m). */
static inline void panel_scales_w(const struct panel *p, const struct mmq_shape *s, const struct mmq_w *w, int64_t i0)
{
	for (int64_t r = 0; r < PANEL; r++)
		for (int64_t b = 0; b < s->blocks; b++)
			p->wd[b * PANEL + r] = i0 + r < s->out_f ? mmq_f16(w[(i0 + r) * s->blocks + b].d) : 0;
}

static inline void panel_scales_x(const struct panel *p, const struct mmq_shape *s, const struct mmq_x *x, int64_t j0)
{
	for (int64_t g = 0; g < GROUP; g++)
		for (int64_t b = 0; b < s->blocks; b++)
			p->xd[b * GROUP + g] = j0 + g < s->m ? x[(b / 4) * s->m + j0 + g].d[b % 4] : 0;
}

/* Rows of y from sums held as vectors; what is outside of y is dropped. */
VEC_INLINE void panel_store(float *y, const struct mmq_shape *s, int64_t i0, int64_t j0, vec sum[GROUP][2])
{
	for (int64_t g = 0; g < GROUP && j0 + g < s->m; g++)
		for (int64_t h = 0; h < 2; h++) {
			const int64_t i = i0 + h * VEC, left = s->out_f - i;
			if (left >= VEC)
				vec_store(y + (j0 + g) * s->out_f + i, sum[g][h]);
			else if (left > 0)
				vec_store_part(y + (j0 + g) * s->out_f + i, sum[g][h], left);
		}
}

#endif
