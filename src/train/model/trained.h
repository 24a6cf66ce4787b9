/* Opens trained models: the configuration of a run folder, and the weights of its checkpoints. Must not know:
 * devices, what a model is used for. Read next: trained.c, include/weft/run.h. */
#ifndef WEFT_SRC_TRAIN_MODEL_TRAINED_H
#define WEFT_SRC_TRAIN_MODEL_TRAINED_H

#include "train/model/model.h"

/* Reads the configuration of a run folder, for using its model: `devices` is cleared. trusted: its paths are
 * followed, now and later. The caller frees *config with weft__config_free, also after a failure. */
weft_status weft__trained_config(const char *run, bool trusted, weft__config *config);

/* Refuses a checkpoint that was made with another configuration or other data. Training on would not be the
 * same run. dataset NULL: the data are not compared. */
weft_status weft__model_matches(const weft__model *model, const weft__config *config,
                                const weft__dataset *dataset, const char *run,
                                const weft_checkpoint_state *state);

/* Loads the weights of a checkpoint of the run; with adapters first those of their base. */
weft_status weft__model_weights(weft__model *model, const weft__config *config, const char *run,
                                weft_checkpoint *checkpoint);

/* Lets the model, before its weights are loaded, compute only part `part` of `parts` of its layers. They are
 * divided evenly. WEFT_ERR_ARGUMENT: it is no gpt, or has fewer layers than parts. */
weft_status weft__model_keep(weft__model *model, int part, int parts);

/* Adds adapters to weights in f32, where they change nothing but the time and memory of use. Adapters of
 * shorter weights stay. */
weft_status weft__model_merge(weft__model *model, const weft__config *config);

/* Loads the state of the optimizer, and sets the step of the random numbers. */
weft_status weft__model_load_optimizer(weft__model *model, weft_checkpoint *checkpoint);

/* Loads the weights, for use, and sets *step. With `trains`, also the state of the optimizer. `which` is
 * "best", "last" or the number of a step. NULL: the best if one is kept, otherwise the last undamaged one.
 * Refuses a checkpoint of another configuration. */
weft_status weft__model_use(weft__model *model, const weft__config *config, const char *run,
                            const char *which, bool trains, uint64_t *step);

#endif
