/* What the loop measures: evaluations during training, and the final scores. Must not know: steps, and
 * checkpoints other than the best. Read next: loop_scores.c. */
#ifndef WEFT_SRC_TRAIN_RUN_LOOP_SCORES_H
#define WEFT_SRC_TRAIN_RUN_LOOP_SCORES_H

#include "train/run/loop_setup.h"

/* Measures the model on the validation data, if there are any, fills in *m and gives hints. m->step and
 * m->epoch are set by the caller. Returns WEFT_ERR_STOPPED if a stop was requested meanwhile. */
weft_status weft__loop_evaluate(weft__loop *loop, weft__metrics *m);

/* Measures the final scores, with test data, and writes scores.json. If the best checkpoint is kept, it is
 * measured, and the model then has its weights. */
weft_status weft__loop_score(weft__loop *loop);

/* Prints the results. */
void weft__loop_say_scores(weft__loop *loop);

#endif
