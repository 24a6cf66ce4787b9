/* What attention.c tells attention_*.cl.
 * Must not know: how the work is divided. Read next: attention.c, attention_common.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_ATTENTION_ATTENTION_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_ATTENTION_ATTENTION_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

/* Strides; channels are contiguous. */
typedef struct w_strides {
    w_i64 batch, head, time;
} w_strides;

/* The same for all kernels. Each of them reads what it needs. */
typedef struct w_attention {
    w_strides q, k, v, out, dout, dq, dk, dv;
    w_i64 mask_b, mask_h, mask_t, mask_j; /* strides of the mask; t is that of queries, j that of keys */
    w_i64 heads, pairs;                   /* pairs of a batch and a head */
    w_i32 query_group;                    /* query heads per KV head */
    w_i32 t_q, t_k, d;
    w_i32 parts, length; /* parts of the keys, each for one work-group; keys of a part */
    w_i32 causal, cached, sink, unused;
} w_attention;

/* The last numbers of each kernel, after the operands' offsets. S is the type of sums. */
#define ATTENTION_NUMBERS                                                                                    \
    w_attention attention;                                                                                   \
    S scale, dropout, factor;                                                                                \
    int command;

#endif
