/* head_product: one small matrix product a head, out[t,h,i] = sum over k of x[t,h,k] * w[h,i,k], all f32 and row-major.
 *
 * absorb_q and decompress_v are this product with other names: a few tokens against a matrix that is read once, so memory
 * bandwidth is what there is to win. One output element is one vec_fma chain over k (16 partial sums, element k in lane
 * k mod 16) and one fixed tree: whoever computes it, in whatever tile, gets the same bits. */
#ifndef ASSAY_KERNELS_HEAD_PRODUCT_H
#define ASSAY_KERNELS_HEAD_PRODUCT_H

#include <stdint.h>

#include "assay/adapter.h"
#include "mla.h"

/* A worker a head. Uses call->threads OpenMP threads, as all of these. Return 0. */
int head_product_shipped(const struct assay_call *call, struct mla_head_shape s);
/* call->arm_arg workers a head, each with its own part of the outputs. */
int head_product_split(const struct assay_call *call, struct mla_head_shape s);

/* In double, one plain loop; row r is (t, h) = (r / n_head, r % n_head). */
int head_product_reference(const struct assay_call *call, struct mla_head_shape s, const struct assay_rows *rows,
			   double *ref, double *bound);

void head_product_work(struct mla_head_shape s, struct assay_work *out);
/* Shape of tensor t of the MLA_HEAD_ order. Returns 0. */
int head_product_shape(struct mla_head_shape s, int t, struct assay_shape *out);

#endif
