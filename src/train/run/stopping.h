/* The best evaluation of a run, and when to stop waiting for a better one. Read next: stopping.c. */
#ifndef WEFT_SRC_TRAIN_RUN_STOPPING_H
#define WEFT_SRC_TRAIN_RUN_STOPPING_H

#include "train/config/config.h"

/* The step whose evaluation a stop cut short, and what there is to be logged of it beside. */
typedef struct weft__due {
    uint64_t step; /* 0: none */
    double epoch, loss, lr, grad_norm, loss_scale;
} weft__due;

typedef struct weft__stopping {
    uint64_t best_step; /* 0: nothing was evaluated yet */
    double best_loss;   /* the lowest */
    double reference;   /* what a loss must be below by train.min_delta to count as better */
    int64_t waited;     /* evaluations that were not, since */
    weft__due due;      /* the evaluation that is yet to be made */
} weft__stopping;

/* Takes the loss of an evaluation; true where it is the lowest so far. */
bool weft__stopping_look(weft__stopping *s, const weft__config *config, uint64_t step, double loss);

/* Has training waited for train.patience evaluations? */
bool weft__stopping_over(const weft__stopping *s, const weft__config *config);

/* As the text of a JSON object, which a checkpoint keeps, and back. The empty object is none. */
enum { WEFT__STOPPING_TEXT = 400 };
void weft__stopping_text(const weft__stopping *s, char out[WEFT__STOPPING_TEXT]);
/* WEFT_ERR_OOM; a text of another kind is none. */
weft_status weft__stopping_read(weft_context *ctx, const char *text, weft__stopping *s);

#endif
