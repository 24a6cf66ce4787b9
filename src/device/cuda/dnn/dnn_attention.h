/* Attention as graphs of cuDNN.
 * Must not know: commands, where plans are stored. Read next: dnn_attention.c. */
#ifndef WEFT_DEVICE_CUDA_DNN_DNN_ATTENTION_H
#define WEFT_DEVICE_CUDA_DNN_DNN_ATTENTION_H

#include "device/cuda/dnn/dnn.h"
#include "device/device.h"

/* Ids of the tensors that an execution reads and writes. */
enum {
    WEFT_DNN_Q = 1,
    WEFT_DNN_K,
    WEFT_DNN_V,
    WEFT_DNN_OUT,
    WEFT_DNN_LSE,
    WEFT_DNN_SCALE,  /* three f32 numbers on the host: the factor of the scores, */
    WEFT_DNN_HIDDEN, /* the score of a hidden key, which is -inf, */
    WEFT_DNN_ONE,    /* and 1 */
    WEFT_DNN_DOUT,
    WEFT_DNN_DQ,
    WEFT_DNN_DK,
    WEFT_DNN_DV,
    WEFT_DNN_DOTS, /* scratch memory, f32: dot products of the rows of out and dout, (batch, heads, t_q) */
    WEFT_DNN_GATHERED, /* scratch memory, f32, for the fast variant: dq before rounding, (batch, heads, t_q,
                          d) */
    WEFT_DNN_IDS
};

typedef struct weft_dnn_attention {
    weft_heavy_attention at; /* the part of the attention that one execution computes */
    bool fast; /* the backward pass adds to dq in any order. Otherwise memory for the gradient of all scores,
                  2 bytes each, fixes the order */
    int64_t batches, heads; /* number of parts; there are so many executions */
    int64_t dots, gathered; /* bytes of scratch memory */
} weft_dnn_attention;

/* Decides how cuDNN computes an attention on a card of a compute capability (90 for 9.0), with at most
 * `memory` bytes of scratch memory. Returns false and a message if it cannot. */
bool weft__dnn_attention_part(const weft_heavy_attention *whole, int capability, int version, bool fast,
                              int64_t memory, weft_dnn_attention *part, char message[WEFT_DNN_MESSAGE]);
/* Hashes all that a plan depends on, except card and version. */
void weft__dnn_attention_hash(const weft_dnn_attention *part, weft_hash *hash);
void weft__dnn_attention_graph(weft_dnn_graph *graph, const weft_dnn_attention *part);

#endif
