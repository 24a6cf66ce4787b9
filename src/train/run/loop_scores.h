/* What the loop measures: evaluations on the way, and the end's. Read next: loop_scores.c. */
#ifndef WEFT_SRC_TRAIN_RUN_LOOP_SCORES_H
#define WEFT_SRC_TRAIN_RUN_LOOP_SCORES_H

#include "train/run/loop_setup.h"

/* Measures the model on the validation data, where there are any, for a line of metrics, and says what is
 * odd. m: the step and epoch are there. WEFT_ERR_STOPPED where a stop was asked for on the way. */
weft_status weft__loop_evaluate(weft__loop *loop, weft__metrics *m);

/* When training is done: test data, of the best checkpoint where it is kept, whose weights the model then
 * has; scores.json. */
weft_status weft__loop_score(weft__loop *loop);

/* Says what came out. */
void weft__loop_say_scores(weft__loop *loop);

#endif
