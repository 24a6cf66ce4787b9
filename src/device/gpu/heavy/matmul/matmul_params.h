/* What matmul.c tells matmul_*.cl.
 * Must not know: how tiles are chosen. Read next: matmul.c, matmul.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_MATMUL_MATMUL_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_MATMUL_MATMUL_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

/* Each element of c is a sum of sums over at most CHUNK products. */
#define CHUNK 128

/* c (m, n) = a (m, k) b (k, n), for each matmul of the batch. Strides count elements; c_m is that from row to
 * row of c, whose columns are contiguous. */
typedef struct w_matmul {
    w_i64 a_m, a_k, b_k, b_n, c_m, a_batch[4], b_batch[4], c_batch[4];
    w_i32 m, n, k;
    w_i32 splits, part;     /* k is divided into `splits` parts of length `part` */
    w_i32 extent[3];        /* of the second to fourth dimension of the batch */
    w_i32 block_m, block_n; /* block of c that one work-group computes */
    w_i32 wide, high;       /* blocks of c along n, along m */
} w_matmul;

#endif
