/* Chooses the device of a run whose configuration says "auto". Must not know: how prices are computed. Read
 * next: auto.c. */
#ifndef WEFT_SRC_TRAIN_ANALYSIS_AUTO_H
#define WEFT_SRC_TRAIN_ANALYSIS_AUTO_H

#include "train/model/model.h"

/* What the device will do. */
typedef enum weft__purpose { WEFT__TO_TRAIN, WEFT__TO_APPLY, WEFT__TO_DECODE } weft__purpose;

typedef struct weft__auto {
    char device[64]; /* "": the device of the configuration */
    char why[400];   /* such as "a step is priced at cpu 0.02 ms, opencl:0 0.13 ms" */
} weft__auto;

/* Tells whether there is a choice: the configuration says "auto", and there is a graphics card. */
bool weft__auto_chooses(const weft__config *config);

/* Plans one step without computing it, and chooses the device on which it costs least. `purpose` decides the
 * step: training, applying the model to a batch, or decoding a token. */
weft_status weft__auto_choose(const weft__config *config, const weft__dataset *dataset, weft__purpose purpose,
                              weft__auto *choice);

#endif
