/* The device of a run whose configuration says "auto". Read next: auto.c. */
#ifndef WEFT_SRC_TRAIN_ANALYSIS_AUTO_H
#define WEFT_SRC_TRAIN_ANALYSIS_AUTO_H

#include "train/model/model.h"

/* What it is for. */
typedef enum weft__purpose { WEFT__TO_TRAIN, WEFT__TO_APPLY, WEFT__TO_DECODE } weft__purpose;

typedef struct weft__auto {
    char device[64]; /* "": what the configuration says */
    char why[400];   /* "a step is priced at cpu 0.02 ms, opencl:0 0.13 ms" */
} weft__auto;

/* Whether there is anything to choose from: "auto" is asked for, and there is a graphics card. */
bool weft__auto_chooses(const weft__config *config);

/* Plans one step (of training, of applying the model to a batch, of decoding a token) without computing it,
 * and takes the device on which it costs least. */
weft_status weft__auto_choose(const weft__config *config, const weft__dataset *dataset, weft__purpose purpose,
                              weft__auto *choice);

#endif
