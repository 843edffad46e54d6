/* The device arms of mla.decompress_v. The story is decompress_v.c's, the kernel and the arms are head_product.cuh's. */
#include "head_product.cuh"

HEAD_PRODUCT_ARMS(decompress_v)
