/* Computes one training step of a configuration in two ways and compares it node by node. Must not know: how
 * the result is shown. Read next: verify.c. */
#ifndef WEFT_SRC_TRAIN_ANALYSIS_VERIFY_H
#define WEFT_SRC_TRAIN_ANALYSIS_VERIFY_H

#include "train/model/model.h"

/* One of the two ways to compute the step. */
typedef struct weft__verify_side {
    char device[64];
    bool no_fusion;
    /* set by weft__verify */
    weft__dataset dataset;
    weft__model model;
    weft_loader *loader;
    weft_dtype compute; /* dtype of its layers */
} weft__verify_side;

typedef struct weft__verification {
    weft__verify_side side[2];
    uint64_t steps; /* steps whose losses are compared; at least 1 */
    /* the results */
    size_t nodes; /* nodes of a step, forward and backward; each one is compared */
    double worst; /* largest difference of a node, in units of its tolerance */
    char worst_node[256];
    bool differs;
    char difference[1024]; /* the first node outside its tolerance, or the step whose losses differ */
    char cancels[256];     /* the layer of a gradient that is 0 but for rounding; "": there is none */
    bool with_sgd;         /* so the steps are those of SGD */
    double loss[2];        /* losses of the last step */
    double worst_loss;     /* largest relative difference of two losses */
} weft__verification;

/* Returns the tolerance of a node of this dtype, relative to the largest magnitude in the node. */
double weft__verify_tolerance(weft_dtype dtype);

/* Computes and compares. A difference is a result, not a failure. The caller frees *v with
 * weft__verification_free, also after a failure. */
weft_status weft__verify(weft__verification *v, weft__config *config);
void weft__verification_free(weft__verification *v);

#endif
