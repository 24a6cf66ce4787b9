/* Predicts the step of a training that many processes share, from the step of one process and a model of the
 * network. Nothing here is measured. Must not know: devices, terminals. Read next: scaling.c. */
#ifndef WEFT_SRC_TRAIN_ANALYSIS_SCALING_H
#define WEFT_SRC_TRAIN_ANALYSIS_SCALING_H

#include <weft/optim.h>

/* What connects the processes. */
typedef struct weft__network {
    double rate;    /* bytes per second that one process sends, and receives at the same time */
    double message; /* seconds that a message takes besides its bytes */
} weft__network;

/* One process of a training. */
typedef struct weft__scaled_rank {
    int ranks;
    weft_shard shard;
    bool overlaps;       /* it exchanges gradients during the backward pass, not after it */
    uint64_t parameters; /* that are trained; a gradient has 4 bytes, and so has an updated parameter */
    double gathered;     /* bytes of a divided parameter that is gathered */
    int batches;         /* that the process has in a step */
    double step;         /* seconds of a step without an exchange */
    double backward;     /* seconds of the backward pass of a batch, which can hide an exchange */
} weft__scaled_rank;

/* Seconds. */
typedef struct weft__scaled {
    double exchange; /* of gradients and of parameters */
    double step;     /* of a step with its exchange */
} weft__scaled;

weft__scaled weft__scaling_predict(const weft__network *network, const weft__scaled_rank *rank);

#endif
