/* Makes a module and an optimizer from a configuration. Must not know: checkpoints (trained.h), loops,
 * terminals. Read next: model.c. */
#ifndef WEFT_SRC_TRAIN_MODEL_MODEL_H
#define WEFT_SRC_TRAIN_MODEL_MODEL_H

#include <weft/fit.h>
#include <weft/io.h>

#include "train/dataset/dataset.h"

/* The choices of lora.weights. */
enum { WEFT__LORA_F32, WEFT__LORA_BF16, WEFT__LORA_PACKED };

/* All that a run computes with. */
typedef struct weft__model {
    weft_context *ctx;
    weft_module *module;
    weft_optimizer *optimizer; /* NULL if the model is only used */
    weft_loss_kind loss;
    int64_t rows;   /* rows of the token table of a language model: the vocabulary of the data, or more */
    int64_t tokens; /* how many of the rows stand for tokens */
    bool packed;    /* the weights of a published model stay packed, if its file holds them so */
    bool new_head;  /* the last layer of a published classifier is not read */
    bool rounded;   /* the weights are used in a shorter dtype than they were trained in */
    double ridge;   /* ridge * W is added to the gradient of each matrix W */
    double lasso;   /* lasso * the sum of |W| is added to the loss, for each matrix W */
    double beta;    /* of WEFT_LOSS_DPO */
} weft__model;

/* Returns the dtype in which the layers compute. */
weft_dtype weft__model_compute(const weft__config *config);

/* Returns the name of that dtype for weft__model_build, if using a trained model may round its weights once.
 * That gives the same bits as rounding them at each use. Returns NULL otherwise. */
const char *weft__model_rounded(const weft__config *config);

/* Sets the keys that follow from model.init: for a file of weights model.vocab and, if nothing else gives it,
 * model.tokens; for a published model all that describe it. Call this before the data are read. */
weft_status weft__model_vocab(weft__config *config);
/* Loads the weights of model.init. Without model.init, the random initial weights stay. */
weft_status weft__model_init(weft__model *model, const weft__config *config);

/* Makes the module of the configuration for the sizes of the data. precision NULL: as in training. Otherwise
 * the dtype for use, "bf16" or "f16", for a model whose weights are f32 and can be rounded. Loading then
 * rounds the weights. */
weft_status weft__model_build(weft_context *ctx, const weft__config *config, const weft__dataset *dataset,
                              const char *precision, weft__model *model);
/* Returns the steps of warm-up for a run of `steps` steps: one in twenty if schedule.warmup is not set. */
int64_t weft__model_warmup(const weft__config *config, uint64_t steps);
/* Makes the optimizer with its schedule, for a run of `steps` steps. */
weft_status weft__model_optimizer(weft__model *model, const weft__config *config, uint64_t steps);

/* Returns the label smoothing of the loss. */
double weft__model_smoothing(const weft__config *config);

/* Computes the loss of a batch as training does, with label smoothing and train.class_weights. For
 * callers that run or plan a step without weft_fit. */
weft_status weft__model_loss(const weft__model *model, const weft__config *config,
                             const weft__dataset *dataset, const weft_batch *batch, weft_tensor **loss);

/* Returns the name of the model, such as "gpt-L4-H4-E128" or "mlp-784-512-512-10", written to `out`. */
const char *weft__model_name(const weft__config *config, const weft__dataset *dataset, char out[64]);

#endif
