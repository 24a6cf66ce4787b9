/* Sets the keys of a configuration that follow from a published model. Must not know: how a model is made.
 * Read next: model_gpt.c. */
#include <string.h>

#include "base/option.h"
#include "base/text.h"
#include "published/published.h"
#include "train/model/published.h"

static const weft__tuning of_text = {.context = 256, .batch = 8, .lr = 5e-5, .lr_of_adapters = 2e-4},
                          of_use = {.context = 2048, .batch = 1, .lr = 5e-5, .lr_of_adapters = 2e-4};

typedef struct found {
    weft__config *config;
    const char *path;
    weft_status status;
} found;

/* Fails if a given value is not the one that follows. */
static void settle(found *f, weft__config_key key, bool same) {
    char value[64];
    if (f->status != WEFT_OK) return;
    if (!same && weft__config_given(f->config, key))
        f->status = weft__fail(
            NULL, WEFT_ERR_ARGUMENT,
            "%s: the value %s does not fit the model that model.init names, %s: leave the key out",
            weft__config_key_name(key), weft__config_value(f->config, key, value, sizeof value), f->path);
    if (!weft__config_given(f->config, key)) f->config->origin[key] = WEFT__ORIGIN_FOUND;
}

#define SET(field, value)                                                                                    \
    do {                                                                                                     \
        settle(&f, WEFT__KEY_##field, config->field == (value));                                             \
        config->field = (value);                                                                             \
    } while (0)

/* Sets a key that the user may choose, unless it was given. */
#define PROPOSE(field, value)                                                                                \
    do {                                                                                                     \
        if (!weft__config_given(config, WEFT__KEY_##field)) {                                                \
            config->field = (value);                                                                         \
            config->origin[WEFT__KEY_##field] = WEFT__ORIGIN_FOUND;                                          \
        }                                                                                                    \
    } while (0)

/* Sets a path, unless it was given. */
static weft_status propose_path(weft__config *config, weft__config_key key, char **path, const char *value) {
    if (weft__config_given(config, key)) return WEFT_OK;
    char *copy = weft__strdup(NULL, value);
    if (!copy) return weft__fail_oom(NULL, strlen(value), "a path");
    weft__free(NULL, *path);
    *path = copy;
    config->origin[key] = WEFT__ORIGIN_FOUND;
    return WEFT_OK;
}

/* Sets the context of an encoder. Its other keys have the defaults of models.def. */
static weft_status describe_encoder(weft__config *config, const char *path, const weft__published *p) {
    const char *type = p->architecture->type;
    if (!weft__config_is(config, WEFT__TRAIT_TEXTS))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "%s: a model of type %s makes no text: use weft embed or weft classify, or weft "
                          "train encoder",
                          path, type);
    if (!p->encodes)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "%s: a model of type %s is no encoder: use weft train gpt, or a bert, roberta or "
                          "distilbert",
                          path, type);
    config->model_layers = p->encoder.layers; /* for the name of the model */
    config->model_heads = p->encoder.heads;
    config->model_width = p->encoder.width;
    PROPOSE(model_context, weft__smaller(p->context, of_text.context));
    if (config->model_context <= p->context) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                      "model.context: %lld tokens are more than the %lld positions of %s",
                      (long long)config->model_context, (long long)p->context, path);
}

/* Sets the keys that describe the model, and proposes others. */
static weft_status describe(weft__config *config, const char *path, const weft__tuning *of) {
    weft__published p;
    found f = {config, path, WEFT_OK};
    char *copy = weft__strdup(NULL, path);
    if (!copy) return weft__fail_oom(NULL, strlen(path), "a path");
    weft__free(NULL, config->published);
    config->published = copy;
    WEFT_TRY(weft__published_read(NULL, path, &p));
    if (p.encodes || weft__config_is(config, WEFT__TRAIT_TEXTS)) return describe_encoder(config, path, &p);
    SET(model_layers, p.gpt.layers);
    SET(model_heads, p.gpt.heads);
    SET(model_kv_heads, p.gpt.kv_heads);
    SET(model_width, p.gpt.width);
    SET(model_mlp_width, p.gpt.hidden);
    SET(model_vocab, p.gpt.vocab);
    SET(model_untied_head, p.gpt.untied_head);
    SET(model_bias, !p.gpt.no_bias);
    SET(model_norm, (int)p.gpt.norm);
    SET(model_norm_eps, weft__value_or(p.gpt.eps, 1e-5));
    SET(model_positions, (int)p.gpt.positions);
    SET(model_rotary_base, p.gpt.rotation.base > 0 ? p.gpt.rotation.base : config->model_rotary_base);
    SET(model_mlp, p.gpt.gated);
    config->positions = p.gpt.positions == WEFT_POSITION_LEARNED ? p.context : 0;
    PROPOSE(model_context, weft__smaller(p.context, of->context));
    PROPOSE(optimizer_lr, config->lora_rank > 0 ? of->lr_of_adapters : of->lr);
    PROPOSE(schedule_min_lr, config->optimizer_lr / 10);
    PROPOSE(train_batch, of->batch);
    if (f.status == WEFT_OK && config->positions && config->model_context > p.context)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "model.context: %lld tokens are more than the %lld positions of %s",
                          (long long)config->model_context, (long long)p.context, path);
    return f.status;
}

weft_status weft__model_describe_published(weft__config *config, const char *path) {
    const weft__tuning *own = weft__source_of(config)->tuning, *of = own ? own : &of_text;
    if (of->epochs && !weft__config_given(config, WEFT__KEY_train_steps)) {
        PROPOSE(train_steps, 0);
        PROPOSE(train_epochs, of->epochs);
    }
    return describe(config, path, of);
}

weft_status weft__model_take_published(weft__config *config) {
    if (!config->published) WEFT_TRY(weft__model_describe_published(config, config->model_init));
    if (weft__config_is(config, WEFT__TRAIT_TEXTS)) return WEFT_OK; /* the dataset takes the tokenizer */
    if (weft__source_of(config)->tokens_of != WEFT__TOKENS_OF_TEXT) return WEFT_OK;
    return propose_path(config, WEFT__KEY_data_tokenizer_path, &config->data_tokenizer_path,
                        config->model_init);
}

weft_status weft__model_use_published(weft__config *config, const char *path) {
    WEFT_TRY(weft__config_take_preset(config, weft__config_preset("gpt")));
    WEFT_TRY(propose_path(config, WEFT__KEY_model_init, &config->model_init, path));
    WEFT_TRY(propose_path(config, WEFT__KEY_data_tokenizer_path, &config->data_tokenizer_path, path));
    return describe(config, path, &of_use);
}
