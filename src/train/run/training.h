/* What training adds to a model: a context that signals interrupt, and checkpoints of weights, optimizer and
 * early stopping. Must not know: networks, the loop. Read next: training.c. */
#ifndef WEFT_SRC_TRAIN_RUN_TRAINING_H
#define WEFT_SRC_TRAIN_RUN_TRAINING_H

#include "train/model/model.h"
#include "train/run/stopping.h"

/* Opens a context on `device`, or on the configuration's device if it is "". Log messages go to `log`. */
weft_status weft__model_open_context(const weft__config *config, const char *device, weft_log_fn log,
                                     void *user, weft_context **ctx);
/* The same with that many threads for the device cpu; 0: the default. */
weft_status weft__model_open_threads(const weft__config *config, const char *device, int threads,
                                     weft_log_fn log, void *user, weft_context **ctx);

/* Writes a checkpoint of the optimizer's current step. If processes have divided the optimizer, all of them
 * write: the leader calls this function, and the others the next one, which does nothing otherwise. All
 * return the same status then. */
weft_status weft__model_save(const weft__model *model, const weft__config *config,
                             const weft__dataset *dataset, const char *run, const weft__stopping *stopping);
weft_status weft__model_save_part(const weft__model *model, const weft__config *config);

/* Are the weights of a checkpoint loaded after the parameters were divided, so that no process has all? */
bool weft__model_loads_late(const weft__config *config);

/* Removes old checkpoints. Keeps the best one and the newest train.keep ones, counted back from `step`,
 * which was just written or read. A failure is only a warning: the checkpoint takes space, but the run can
 * go on. */
void weft__model_prune(const weft__model *model, const weft__config *config, const char *run, uint64_t step);

/* Loads the newest checkpoint that is not damaged, and sets *step. All processes of `group` call this
 * together, and each verifies a part of the checkpoint; NULL: this process verifies all of it. With `strict`
 * the newest checkpoint must be good. Configuration and data must be those of the checkpoint; dataset NULL:
 * the data are not compared. The optimizer continues from there, and so does early stopping (`stopping` may
 * be NULL).
 *
 * open: NULL, or receives the open checkpoint. The state of the optimizer, and weights that are loaded late,
 * are then left in it, to be read once they are divided. The caller closes the checkpoint. */
weft_status weft__model_load(weft__model *model, const weft__config *config, const weft__dataset *dataset,
                             weft_process_group *group, const char *run, bool strict,
                             weft__stopping *stopping, uint64_t *step, weft_checkpoint **open);

#endif
