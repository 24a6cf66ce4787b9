/* What the loop measures: evaluations during training, and the final scores. Must not know: steps, and
 * checkpoints other than the best. Read next: loop_scores.c. */
#ifndef WEFT_SRC_TRAIN_RUN_LOOP_SCORES_H
#define WEFT_SRC_TRAIN_RUN_LOOP_SCORES_H

#include "train/run/loop_setup.h"

/* The loaders that scores are taken from. */
typedef enum weft__loaders { WEFT__LOADER_VALIDATION, WEFT__LOADER_WHOLE, WEFT__LOADER_TEST } weft__loaders;

/* Takes the scores of the model as it is. Several processes share the work: the leader orders it, and all
 * call this function. The caller frees *scores with weft__scores_free, also after a failure. */
weft_status weft__loop_take(weft__loop *loop, weft__loaders which, bool auc, weft__scores *scores);

/* Measures the model on the validation data, if there are any, fills in *m and gives hints. m->step and
 * m->epoch are set by the caller. Returns WEFT_ERR_STOPPED if a stop was requested meanwhile. */
weft_status weft__loop_evaluate(weft__loop *loop, weft__metrics *m);

/* Measures the final scores, with test data, and writes scores.json. If the best checkpoint is kept, it is
 * measured, and the model then has its weights. */
weft_status weft__loop_score(weft__loop *loop);

/* Lets the model write into loop->sample. A model that learns conversations answers one of them. Followers
 * call it, too, if parameters are divided. */
weft_status weft__loop_sample(weft__loop *loop, uint64_t step);

/* Loads the weights of the best checkpoint together with all processes, which have divided the parameters.
 * dir: the run folder; NULL in followers, which learn it. */
weft_status weft__loop_best(weft__loop *loop, const char *dir, uint64_t *step);

/* Prints the results. */
void weft__loop_say_scores(weft__loop *loop);

#endif
