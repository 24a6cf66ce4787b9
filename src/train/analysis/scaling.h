/* Predicts the step of a training that many processes share, from the step of one process and a model of the
 * network. Nothing here is measured. Must not know: devices, terminals. Read next: scaling.c. */
#ifndef WEFT_SRC_TRAIN_ANALYSIS_SCALING_H
#define WEFT_SRC_TRAIN_ANALYSIS_SCALING_H

#include <weft/optim.h>

/* What connects the processes. Rates are in bytes per second. */
typedef struct weft__network {
    double rate;     /* that one process sends, and receives at the same time */
    double message;  /* seconds that a message takes besides its bytes */
    double down, up; /* from the memory of the device to that of the host, and back; 0: they are one memory */
} weft__network;

/* One process of a training. */
typedef struct weft__scaled_rank {
    int ranks;
    weft_shard shard;
    uint64_t parameters; /* that are trained; a gradient has 4 bytes, and so has a parameter */
    int batches;         /* that the process has in a step */
    double step;         /* seconds of a step without an exchange */
    double backward;     /* seconds of the backward pass of a batch, which can hide an exchange */
} weft__scaled_rank;

/* Seconds. */
typedef struct weft__scaled {
    double exchange; /* of gradients and of updated parameters */
    double after;    /* a step that exchanges gradients after its backward pass */
    double during;   /* a step that exchanges gradients during its backward pass */
} weft__scaled;

weft__scaled weft__scaling_predict(const weft__network *network, const weft__scaled_rank *rank);

#endif
