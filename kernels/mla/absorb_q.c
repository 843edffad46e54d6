/* mla.absorb_q: out[t,h,r] = sum over d of q_nope[t,h,d] * wk_b[h,r,d].
 *
 * MLA caches one latent row a position for all heads. Instead of expanding every cached row to keys, decode folds the key
 * projection into the query: each head's query goes through its own [kv_rank][d_nope] matrix. With one to eight tokens the
 * matrices are all there is to read (33.5 MB at 64 x 512 x 256), so this is a test of bandwidth.
 *
 * The host arms, the reference and its bound are head_product.c; the device arms are absorb_q.cu. */
#define HEAD_KERNEL absorb_q
#define HEAD_DOC "key projection folded into the query: q_nope x wk_b, a head at a time"
#define HEAD_WIDTH MLA_D_NOPE
#define HEAD_IN "q_nope", "t_q n_head d_nope", "queries without position"
#define HEAD_WEIGHTS "wk_b", "n_head kv_rank d_nope", "key projection, a matrix a head"
#define HEAD_OUT "out", "t_q n_head kv_rank", "queries in the space of the latent"
#include "head_product_kernel.h"
