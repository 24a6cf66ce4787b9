/* From a configuration to a module, an optimizer and a context; checkpoints of both.
 * Must not know: loops, terminals. Read next: model.c. */
#ifndef WEFT_SRC_TRAIN_MODEL_MODEL_H
#define WEFT_SRC_TRAIN_MODEL_MODEL_H

#include <weft/fit.h>
#include <weft/io.h>

#include "train/dataset/dataset.h"
#include "train/run/stopping.h"

/* Everything a run computes with. */
typedef struct weft__model {
    weft_context *ctx;
    weft_module *module;
    weft_optimizer *optimizer; /* NULL where only used */
    weft_loss_kind loss;
    int64_t rows;   /* of a gpt's token table: the vocabulary of the data, or more */
    int64_t tokens; /* of those rows, the ones that stand for tokens */
    bool rounded;   /* used in less than it was trained in */
    double ridge;   /* times a matrix, added to its gradient */
} weft__model;

/* Opens a context on the device, where it is "" on the configuration's. The log goes to `log`. */
weft_status weft__model_open_context(const weft__config *config, const char *device, weft_log_fn log,
                                     void *user, weft_context **ctx);

/* What the configuration's layers compute in. */
weft_dtype weft__model_compute(const weft__config *config);

/* The same as a name for weft__model_build where a trained model is used and its weights can be rounded to
 * that once, which gives the same bits as rounding them at each use; otherwise NULL. */
const char *weft__model_rounded(const weft__config *config);

/* A model that begins with a file's weights (model.init) has its vocabulary and, where nothing else tells,
 * its tokens, which go into the configuration: before the module is made. */
weft_status weft__model_vocab(weft__config *config);
/* Those weights; drawn ones stay where there is no file. */
weft_status weft__model_init(weft__model *model, const weft__config *config);

/* Makes the module of the configuration for the sizes of the data. precision: NULL, as it is trained; or what
 * it is used in, "bf16" or "f16" for a gpt with weights of f32, which weft__model_load then rounds. */
weft_status weft__model_build(weft_context *ctx, const weft__config *config, const weft__dataset *dataset,
                              const char *precision, weft__model *model);
/* Steps of warm-up of a run of `steps`: a tenth where the default is too long for so short a run. */
int64_t weft__model_warmup(const weft__config *config, uint64_t steps);
/* Its optimizer, with schedule, for a run of `steps`. */
weft_status weft__model_optimizer(weft__model *model, const weft__config *config, uint64_t steps);

/* The loss of a batch as training has it, with train.label_smoothing and train.class_weights, for whoever
 * runs or plans a step without weft_fit. */
weft_status weft__model_loss(const weft__model *model, const weft__config *config,
                             const weft__dataset *dataset, const weft_batch *batch, weft_tensor **loss);

/* "gpt-L4-H4-E128", "mlp-784-512-512-10". Returns out. */
const char *weft__model_name(const weft__config *config, const weft__dataset *dataset, char out[64]);

/* Writes the checkpoint of the optimizer's step. */
weft_status weft__model_save(const weft__model *model, const weft__config *config,
                             const weft__dataset *dataset, const char *run, const weft__stopping *stopping);

/* Removes all but the best and the newest train.keep checkpoints, counted from `step`, which was just written
 * or read. What cannot be removed is a warning: it takes room, which is no reason to end a run. */
void weft__model_prune(const weft__model *model, const weft__config *config, const char *run, uint64_t step);

/* Loads the newest checkpoint that verifies (strict: the newest, or fails) and gives its step. Configuration
 * and data must be those that it was made with; dataset NULL: data are not compared. The optimizer, if there
 * is one, goes on from there, and so does early stopping (may be NULL). */
weft_status weft__model_load(weft__model *model, const weft__config *config, const weft__dataset *dataset,
                             const char *run, bool strict, weft__stopping *stopping, uint64_t *step);

/* Loads the weights alone, to be used, and gives their step. which: "best", "last", a step's number; NULL:
 * the best where one is kept, else the last that verifies. Refuses those of another configuration. */
weft_status weft__model_use(weft__model *model, const weft__config *config, const char *run,
                            const char *which, uint64_t *step);

#endif
