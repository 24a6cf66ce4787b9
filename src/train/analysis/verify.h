/* One training step of a configuration computed in two ways and compared node by node. Read next: verify.c.
 */
#ifndef WEFT_SRC_TRAIN_ANALYSIS_VERIFY_H
#define WEFT_SRC_TRAIN_ANALYSIS_VERIFY_H

#include "train/model/model.h"

/* One of the two ways. */
typedef struct weft__verify_side {
    char device[64];
    bool no_fusion;
    /* made by the run */
    weft__dataset dataset;
    weft__model model;
    weft_loader *loader;
    weft_dtype compute; /* of its layers */
} weft__verify_side;

typedef struct weft__verification {
    weft__verify_side side[2];
    uint64_t steps; /* whose losses are compared; at least 1 */
    /* what came out */
    size_t nodes; /* of a step, forward and backward; compared one by one */
    double worst; /* largest difference of a node, in its tolerance */
    char worst_node[256];
    bool differs;
    char difference[1024]; /* the first node beyond its tolerance, or the step whose losses differ */
    double loss[2];        /* of the last step */
    double worst_loss;     /* largest relative difference of two losses */
} weft__verification;

/* What a node of a dtype may differ by, as a part of the largest magnitude in it. */
double weft__verify_tolerance(weft_dtype dtype);

/* Computes and compares. What differs is no failure. Freed by weft__verification_free, after a failure too.
 */
weft_status weft__verify(weft__verification *v, weft__config *config);
void weft__verification_free(weft__verification *v);

#endif
