/* Fits a run to a time: measures training steps, then sets their number, and for a text also the size of the
 * model. Must not know: how the result is shown. Read next: pace.c. */
#ifndef WEFT_SRC_TRAIN_ANALYSIS_PACE_H
#define WEFT_SRC_TRAIN_ANALYSIS_PACE_H

#include "train/run/loop_setup.h"

typedef struct weft__pace {
    double step;        /* seconds of a training step */
    double share;       /* share of the time that evaluations take */
    uint64_t steps;     /* how many steps fit */
    int64_t tokens;     /* tokens or samples of a step */
    int64_t samples;    /* samples, or tokens, of the training data */
    int64_t parameters; /* of the model */
} weft__pace;

/* Trains a few steps without a run folder, and sets train.steps of *config so that the run takes about
 * `seconds`, evaluations included. A run always has at least 10 steps. */
weft_status weft__pace_steps(weft__config *config, double seconds, weft__pace *pace);

/* Sets the size of a gpt for a text, then train.steps as weft__pace_steps does. Keys that the user set stay.
 *
 * A model is larger than the default only if the time lasts for 20 tokens for each of its parameters, and if
 * the text is not read more than 10 times. The ratio is that of Hoffmann et al., "Training Compute-Optimal
 * Large Language Models" (2022). The learning rate falls with the width, as in Yang et al., "Tensor Programs
 * V" (2022). */
weft_status weft__pace_text(weft__config *config, double seconds, weft__pace *pace);

#endif
