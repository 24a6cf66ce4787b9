/* Makes the model and the optimizer that a configuration asks for. Uses only the public headers for layers
 * and optimizers. Must not know: networks (model_kind.h), checkpoints (trained.c), the loop. Read next:
 * model_gpt.c, trained.c. */
#include <stdio.h>
#include <string.h>

#include <weft/published.h>

#include "base/option.h"
#include "learn/loss.h"
#include "nn/module.h"
#include "published/published.h"
#include "train/dataset/class_weights.h"
#include "train/model/model.h"
#include "train/model/model_kind.h"
#include "train/model/published.h"

static const weft__model_kind *kind_of(const weft__config *config) {
    static const weft__model_kind *const kinds[] = {
#define MODEL(id, name, kind, traits) &weft__model_##name,
#include "train/model/models.def"
    };
    return kinds[config->model_type];
}

const char *weft__model_name(const weft__config *config, const weft__dataset *dataset, char out[64]) {
    char type[32];
    weft_text name = weft__text(out, 64);
    weft__put(&name, "%s-", weft__config_choice(WEFT__KEY_model_type, config->model_type, type));
    kind_of(config)->describe(config, dataset, &name);
    return out;
}

weft_dtype weft__model_compute(const weft__config *config) {
    static const weft_dtype dtypes[] = {
#define PRECISION(id, word, dtype) dtype,
#include "train/config/choices.def"
    };
    return dtypes[config->train_precision];
}

const char *weft__model_rounded(const weft__config *config) {
    return kind_of(config)->rounds ? weft_dtype_name(weft__model_compute(config)) : NULL;
}

/* Chooses the dtype of the weights: for training, or for using a model that was trained in `trained`. */
static weft_status narrow(const weft__config *config, weft_context *ctx, weft_dtype trained,
                          const char *precision, weft_dtype *dtype) {
    const bool rounds = trained == WEFT_F32 && kind_of(config)->rounds;
    const bool half = config->lora_rank > 0 && config->lora_weights == WEFT__LORA_BF16;
    *dtype = !precision && half && trained == WEFT_F32 ? WEFT_BF16 : trained;
    if (!precision || strcmp(precision, weft_dtype_name(trained)) == 0) return WEFT_OK;
    if (rounds && weft_dtype_parse(precision, dtype) && (*dtype == WEFT_BF16 || *dtype == WEFT_F16))
        return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_ARGUMENT, "--precision %s: a model trained in %s can be used in %s%s",
                      precision, weft_dtype_name(trained), weft_dtype_name(trained),
                      rounds ? ", bf16 or f16" : "");
}

weft_status weft__model_take_tokens(const weft__config *config, const weft__dataset *dataset,
                                    weft__model *model) {
    if (dataset->tokens.vocabulary < 1)
        return weft__fail(model->ctx, WEFT_ERR_STATE,
                          "data.path: the data has no tokens, which a language model needs");
    if (config->model_vocab && config->model_vocab < dataset->tokens.vocabulary)
        return weft__fail(model->ctx, WEFT_ERR_ARGUMENT,
                          "model.vocab: the value is %lld, but the data has %lld tokens: leave it out, or "
                          "give at least as many",
                          (long long)config->model_vocab, (long long)dataset->tokens.vocabulary);
    model->rows = config->model_vocab ? config->model_vocab : dataset->tokens.vocabulary;
    model->tokens = config->model_tokens ? config->model_tokens : dataset->tokens.vocabulary;
    const bool known = weft__dataset_tokenizer(dataset) != NULL;
    if (model->tokens < dataset->tokens.vocabulary || model->tokens > model->rows ||
        (known && model->tokens > dataset->tokens.vocabulary))
        return weft__fail(model->ctx, WEFT_ERR_ARGUMENT,
                          "model.tokens: the value is %lld; give at least the %lld tokens of the data, and "
                          "at most the %lld rows of the embedding table",
                          (long long)model->tokens, (long long)dataset->tokens.vocabulary,
                          (long long)model->rows);
    return WEFT_OK;
}

weft_status weft__model_activation(const weft__config *config, weft_context *ctx,
                                   weft_activation_kind *activation) {
    *activation = (weft_activation_kind)(WEFT_IDENTITY + config->model_activation);
    if (*activation != WEFT_IDENTITY) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                      "model.activation: %s: layers without a nonlinearity between them act as one layer",
                      weft_activation_name(*activation));
}

weft_status weft__model_build(weft_context *ctx, const weft__config *config, const weft__dataset *dataset,
                              const char *precision, weft__model *model) {
    const weft_dtype compute = weft__model_compute(config);
    const weft_dtype trained = compute == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    weft_dtype dtype;
    *model = (weft__model){.ctx = ctx};
    WEFT_TRY(narrow(config, ctx, trained, precision, &dtype));
    model->rounded = dtype != trained;
    model->packed =
        config->packed || (config->lora_rank > 0 && config->lora_weights == WEFT__LORA_PACKED && !precision);
    WEFT_TRY(kind_of(config)->build(config, dataset, dtype, model));
    if (compute != trained && !precision) WEFT_TRY(weft_module_compute(model->module, compute));
    if (config->model_sync_batchnorm) WEFT_TRY(weft_module_sync_batch_norm(model->module, true));
    return weft_module_recompute(model->module, (weft_recompute)config->train_recompute);
}

weft_status weft__model_vocab(weft__config *config) {
    int64_t tokens = 0;
    if (!weft__config_for(WEFT__KEY_model_init, (weft__model_type)config->model_type)) return WEFT_OK;
    if (config->published || (config->model_init && weft_published_is(config->model_init)))
        return weft__model_take_published(config);
    if (weft__config_is(config, WEFT__TRAIT_TEXTS))
        return config->model_init
                   ? weft__fail(NULL, WEFT_ERR_ARGUMENT,
                                "model.init: %s is no published model: name a folder with config.json and "
                                "model.safetensors",
                                config->model_init)
                   : weft__fail(NULL, WEFT_ERR_ARGUMENT,
                                "model.init: an encoder is fine-tuned: name the folder of a published one, "
                                "such as a BERT");
    if (!config->model_init || (config->model_vocab && config->model_tokens)) return WEFT_OK;
    WEFT_TRY(weft_gpt_file_vocab(NULL, config->model_init, &tokens));
    if (!config->model_vocab) {
        config->model_vocab = tokens;
        config->origin[WEFT__KEY_model_vocab] = WEFT__ORIGIN_FOUND;
    }
    if (config->model_tokens || weft__source_has_tokenizer(config) || tokens > config->model_vocab)
        return WEFT_OK;
    config->model_tokens = tokens; /* tokens that the data do not contain are still tokens */
    config->origin[WEFT__KEY_model_tokens] = WEFT__ORIGIN_FOUND;
    return WEFT_OK;
}

weft_status weft__model_init(weft__model *model, const weft__config *config) {
    if (!config->model_init || !weft__config_for(WEFT__KEY_model_init, (weft__model_type)config->model_type))
        return WEFT_OK;
    WEFT_TRY(weft__config_check_path(config, WEFT__KEY_model_init));
    if (model->new_head) return weft__published_load_body(model->module, config->model_init);
    return (config->published ? weft_published_load : weft_gpt_load)(model->module, config->model_init);
}

int64_t weft__model_warmup(const weft__config *config, uint64_t steps) {
    const weft__origin_kind origin = config->origin[WEFT__KEY_schedule_warmup];
    const bool follows = origin == WEFT__ORIGIN_DEFAULT && weft__config_is(config, WEFT__TRAIT_TEXTS);
    if (origin != WEFT__ORIGIN_UNSET && !follows) return config->schedule_warmup;
    return (int64_t)(steps / 20);
}

/* Sets the schedule of the learning rate and, in f16, the scale of the loss. */
static weft_status schedule(const weft__model *model, const weft__config *config, uint64_t steps) {
    const uint64_t warmup = (uint64_t)weft__model_warmup(config, steps);
    if (warmup >= steps)
        return weft__fail(model->ctx, WEFT_ERR_ARGUMENT,
                          "schedule.warmup: %llu steps of warm-up leave none of the %llu steps: try --set "
                          "schedule.warmup=%llu",
                          (unsigned long long)warmup, (unsigned long long)steps,
                          (unsigned long long)steps / 10);
    const weft_schedule course = {.kind = (weft_schedule_kind)config->schedule_type,
                                  .lr = config->optimizer_lr,
                                  .warmup = warmup,
                                  .steps = steps,
                                  .min_lr = config->schedule_min_lr,
                                  .every = config->schedule_every > 0 ? (uint64_t)config->schedule_every
                                                                      : (steps + 2) / 3,
                                  .factor = weft__given(config->schedule_factor)};
    WEFT_TRY(weft_optimizer_schedule(model->optimizer, &course));
    if (config->train_precision != WEFT__PRECISION_F16) return WEFT_OK;
    return weft_optimizer_scale_loss(model->optimizer,
                                     &(weft_loss_scale_options){.init = config->train_loss_scale,
                                                                .interval = config->train_loss_scale_every});
}

/* Freezes what train.freeze names. Later patterns win. */
static weft_status freeze(const weft__model *model, const weft__config *config) {
    const weft__texts *patterns = &config->train_freeze;
    for (size_t i = 0; i < patterns->count; i++) {
        const char *pattern = patterns->values[i];
        const bool thaws = pattern[0] == '!';
        WEFT_TRY(weft__module_freeze_matching(model->module, "train.freeze", pattern + thaws, !thaws));
    }
    return WEFT_OK;
}

/* The options that all optimizers have. */
#define COMMON                                                                                               \
    .lr = config->optimizer_lr, .weight_decay = config->optimizer_weight_decay + model->ridge,               \
    .decay_matrices_only = true, .clip = config->optimizer_clip, .track_norm = true,                         \
    .exact_sum = config->train_exact_sum, .l1 = config->optimizer_l1 + model->lasso

weft_status weft__model_optimizer(weft__model *model, const weft__config *config, uint64_t steps) {
    const weft_adam_options adam = {COMMON, .beta1 = weft__given(config->optimizer_betas.values[0]),
                                    .beta2 = weft__given(config->optimizer_betas.values[1]),
                                    .eps = weft__given(config->optimizer_eps)};
    if (model->ridge > 0 && config->optimizer_type == WEFT__OPTIMIZER_ADAMW)
        return weft__fail(model->ctx, WEFT_ERR_ARGUMENT,
                          "model.ridge: this penalty is part of the loss, but adamw decays weights outside "
                          "the loss: choose adam, rmsprop or sgd, or set optimizer.weight_decay instead");
    WEFT_TRY(freeze(model, config));
    switch ((weft__optimizer_type)config->optimizer_type) {
    case WEFT__OPTIMIZER_SGD:
        model->optimizer =
            weft_sgd(model->module, &(weft_sgd_options){COMMON, .momentum = config->optimizer_momentum,
                                                        .nesterov = config->optimizer_nesterov});
        break;
    case WEFT__OPTIMIZER_RMSPROP:
        model->optimizer = weft_rmsprop(
            model->module, &(weft_rmsprop_options){COMMON, .alpha = weft__given(config->optimizer_alpha),
                                                   .eps = weft__given(config->optimizer_eps),
                                                   .momentum = config->optimizer_momentum});
        break;
    case WEFT__OPTIMIZER_ADAM: model->optimizer = weft_adam(model->module, &adam); break;
    case WEFT__OPTIMIZER_ADAMW: model->optimizer = weft_adamw(model->module, &adam); break;
    }
    return schedule(model, config, steps);
}

double weft__model_smoothing(const weft__config *config) {
    return weft__source_of(config)->pairs ? config->dpo_label_smoothing : config->train_label_smoothing;
}

weft_status weft__model_loss(const weft__model *model, const weft__config *config,
                             const weft__dataset *dataset, const weft_batch *batch, weft_tensor **loss) {
    weft__loss how = {.kind = model->loss, .smoothing = weft__model_smoothing(config), .beta = model->beta};
    float *weights = NULL;
    WEFT_TRY(weft__class_weights(config, dataset, &weights));
    if (weights) how.weights = weft_from(model->ctx, WEFT_F32, 1, &dataset->outputs, weights);
    weft__free(NULL, weights);
    *loss = weft__loss_mean(&how, weft_forward(model->module, batch->x), batch);
    return weft_tensor_status(*loss);
}
