/* mla.decompress_v: out[t,h,v] = sum over r of o_lat[t,h,r] * wv_b[h,v,r].
 *
 * The other end of latent attention: what attention summed up in the space of the latent becomes each head's value, through
 * the head's own [d_v][kv_rank] matrix. As absorb_q it reads the matrices once for one to eight tokens: bandwidth.
 *
 * The host arms, the reference and its bound are head_product.c; the device arms are decompress_v.cu. */
#define HEAD_KERNEL decompress_v
#define HEAD_DOC "value projection of the attended latent: o_lat x wv_b, a head at a time"
#define HEAD_WIDTH MLA_D_V
#define HEAD_IN "o_lat", "t_q n_head kv_rank", "attention output in the space of the latent"
#define HEAD_WEIGHTS "wv_b", "n_head d_v kv_rank", "value projection, a matrix a head"
#define HEAD_OUT "out", "t_q n_head d_v", "values, a head at a time"
#include "head_product_kernel.h"
