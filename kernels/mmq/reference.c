/* The reference of both mmq kernels, and how far an arm may be from it.
 *
 * Every product of two quants is exact in double, and so is a block's sum: s8 products are integers below 2^14, e4m3 products have 8
 * significant bits between 2^-18 and 2^18. What is left are the roundings of the arms:
 *
 * The fold, all arms. An arm takes a block's sum S_b as a number (exact in s32; |S_b| <= 2^19 is exact in f32 too), makes
 * t = fl(dw * S_b) and y = fl(y + dx * t), in any order of dw and dx, fused or not: of the term of block b every factor (1 + d) with
 * |d| <= u = 2^-24 is one of its two products or one of at most B additions. So with g = gamma(B + 2)
 *
 *     |y - ref| <= g * sum over b of |dw dx S_b|                                                                  (fold)
 *
 * f32, the block's sum. On the host the 32 products are exact and are added in f32 in some order: at most 31 roundings on any of them,
 * E_b = gamma(31) * sum |p|. On a device the tensor core adds. What is known of it (by public measurement, the vendor says nothing): the
 * products of a group are shifted to the greatest exponent among them and the accumulator, cut there after 13 fractional bits, added, and
 * cut again when they join the next group. A cut loses less than 2^-13 of the greatest power of two in sight, which is at most
 * the greatest product, or the greatest partial sum <= sum |p|. With 32 products and at most four groups (an f16 pair of
 * instructions has two, and cuts later):
 *
 *     E_b = 2^-13 * (32 max |p| + 4 sum |p|)
 *     |y - ref| <= (1 + g) * sum over b of |dw dx| E_b  +  g * sum over b of |dw dx S_b|                           (f32)
 *
 * A worst case; errors of 32 random cuts are far below it. The smallest normal f32 is added once a block: what a
 * scale of denormal size may lose. */
#include <math.h>
#include <string.h>

#include "../mla/host.h"
#include "mmq.h"

/* A token's quants and scales in reading order, w's row by row. */
struct sums {
	double y, fold, block; /* sum of terms; of |dw dx S_b|; of |dw dx| E_b */
};

static void row_s32(const struct mmq_shape *s, const struct mmq_w *w, const struct mmq_x *x, int64_t token,
		    struct sums *out)
{
	for (int64_t b = 0; b < s->blocks; b++) {
		const struct mmq_x *record = &x[(b / 4) * s->m + token];
		const int8_t *p = w[b].qs, *q = record->qs + b % 4 * MMQ_BLOCK;
		int32_t sum = 0;
		for (int k = 0; k < MMQ_BLOCK; k++)
			sum += (int32_t)p[k] * (int32_t)q[k];
		const double d = (double)mmq_f16(w[b].d) * (double)record->d[b % 4];
		out->y += d * sum;
		out->fold += fabs(d * sum);
	}
}

static void row_f32(const struct mmq_shape *s, const double *value, const struct mmq_w *w, const struct mmq_x *x,
		    int64_t token, bool device, struct sums *out)
{
	const double cut = 1.0 / 8192;
	for (int64_t b = 0; b < s->blocks; b++) {
		const struct mmq_x *record = &x[(b / 4) * s->m + token];
		const int8_t *p = w[b].qs, *q = record->qs + b % 4 * MMQ_BLOCK;
		double sum = 0, size = 0, most = 0;
		for (int k = 0; k < MMQ_BLOCK; k++) {
			const double v = value[(uint8_t)p[k]] * value[(uint8_t)q[k]], a = fabs(v);
			sum += v;
			size += a;
			most = a > most ? a : most;
		}
		const double d = (double)mmq_f16(w[b].d) * (double)record->d[b % 4];
		out->y += d * sum;
		out->fold += fabs(d * sum);
		out->block += fabs(d) * (device ? cut * (32 * most + 4 * size) : host_gamma(31) * size);
	}
}

int mmq_reference(const struct assay_call *call, int t, const struct assay_rows *rows, double *ref, double *bound)
{
	const struct mmq_shape s = mmq_of(call->point);
	const struct mmq_w *w = call->tensor[MMQ_W];
	const struct mmq_x *x = call->tensor[MMQ_X];
	const bool s32 = call->arm == NULL || strcmp(call->arm->name, "s32") == 0;
	const double gamma = host_gamma(s.blocks + 2), least = 1.17549435e-38;
	double value[256];

	for (int i = 0; i < 256; i++)
		value[i] = (double)mmq_e4m3((uint8_t)i);
	for (int64_t r = 0; r < rows->n; r++) {
		const int64_t token = rows->row != NULL ? rows->row[r] : r;
		for (int64_t i = 0; i < s.out_f; i++) {
			struct sums u = {0};
			if (s32)
				row_s32(&s, w + i * s.blocks, x, token, &u);
			else
				row_f32(&s, value, w + i * s.blocks, x, token, call->backend != ASSAY_HOST, &u);
			ref[r * s.out_f + i] = u.y;
			bound[r * s.out_f + i] = (1 + gamma) * u.block + gamma * u.fold + (double)s.blocks * least;
		}
	}
	return 0;
}
