/* Attention as graphs of cuDNN. Must not know: commands, where plans are kept. Read next: dnn_attention.c. */
#ifndef WEFT_DEVICE_CUDA_DNN_DNN_ATTENTION_H
#define WEFT_DEVICE_CUDA_DNN_DNN_ATTENTION_H

#include "device/cuda/dnn/dnn.h"
#include "device/device.h"

/* By which an execution names what it reads and writes. */
enum {
    WEFT_DNN_Q = 1,
    WEFT_DNN_K,
    WEFT_DNN_V,
    WEFT_DNN_OUT,
    WEFT_DNN_LSE,
    WEFT_DNN_SCALE,  /* numbers, f32 on the host: of the scores, */
    WEFT_DNN_HIDDEN, /* what stands for one that is not seen, -inf, */
    WEFT_DNN_ONE,    /* and 1 */
    WEFT_DNN_DOUT,
    WEFT_DNN_DQ,
    WEFT_DNN_DK,
    WEFT_DNN_DV,
    WEFT_DNN_DOTS,     /* scratch, f32: the products of the rows of out and dout, (batch, heads, t_q) */
    WEFT_DNN_GATHERED, /* scratch, f32: dq before it is rounded, (batch, heads, t_q, d); of the fast form */
    WEFT_DNN_IDS
};

typedef struct weft_dnn_attention {
    weft_heavy_attention at; /* the part of one that an execution computes */
    bool fast;               /* the backward pass adds to dq in any order; else memory for the gradient of all
                              * scores, 2 bytes each, lets the order be fixed */
    int64_t batches, heads;  /* parts of the whole: so many executions */
    int64_t dots, gathered;  /* bytes of scratch */
} weft_dnn_attention;

/* How cuDNN is to do it, on a card of a compute capability (90 for 9.0), with `memory` bytes of scratch at
 * most; false: not at all, in words. */
bool weft__dnn_attention_part(const weft_heavy_attention *whole, int capability, int version, bool fast,
                              int64_t memory, weft_dnn_attention *part, char words[WEFT_DNN_WORDS]);
/* All that a plan depends on besides card and version. */
void weft__dnn_attention_hash(const weft_dnn_attention *part, weft_hash *hash);
void weft__dnn_attention_graph(weft_dnn_graph *graph, const weft_dnn_attention *part);

#endif
