/* The device arms of mla.absorb_q. The story is absorb_q.c's, the kernel and the arms are head_product.cuh's. */
#include "head_product.cuh"

HEAD_PRODUCT_ARMS(absorb_q)
