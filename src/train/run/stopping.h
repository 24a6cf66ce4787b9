/* The best evaluation of a run, and when to stop waiting for a better one. Must not know: how losses are
 * computed, checkpoints. Read next: stopping.c. */
#ifndef WEFT_SRC_TRAIN_RUN_STOPPING_H
#define WEFT_SRC_TRAIN_RUN_STOPPING_H

#include "train/config/config.h"
#include "train/run/metrics.h"

typedef struct weft__stopping {
    uint64_t best_step; /* 0: nothing was evaluated yet */
    double best_loss;   /* the lowest loss */
    double reference;   /* a loss must be below this by train.min_delta to count as better */
    int64_t waited;     /* evaluations since then that were not better */
    /* The step whose evaluation a stop interrupted, with its other numbers for the log. Step 0: none. Text
     * has the metrics that are marked as due. */
    weft__metrics due;
} weft__stopping;

/* Takes the loss of an evaluation. Returns true if it is the lowest so far. */
bool weft__stopping_look(weft__stopping *s, const weft__config *config, uint64_t step, double loss);

/* Tells whether train.patience evaluations in a row were not better. */
bool weft__stopping_over(const weft__stopping *s, const weft__config *config);

/* Writes the state as a JSON object, which checkpoints keep. Without a state the object is empty. */
enum { WEFT__STOPPING_TEXT = 256 + WEFT__METRICS * 48 };
void weft__stopping_text(const weft__stopping *s, char out[WEFT__STOPPING_TEXT]);
/* Reads the state back. Text of another kind counts as no state. Returns WEFT_OK or WEFT_ERR_OOM. */
weft_status weft__stopping_read(weft_context *ctx, const char *text, weft__stopping *s);

#endif
