/* The functions that the command needs for each type of network. Each line of models.def has one
 * weft__model_kind, in a file model_NAME.c. Must not know: the loop. Read next: model_gpt.c. */
#ifndef WEFT_SRC_TRAIN_MODEL_MODEL_KIND_H
#define WEFT_SRC_TRAIN_MODEL_MODEL_KIND_H

#include "base/text.h"
#include "train/model/model.h"

typedef struct weft__model_kind {
    bool rounds; /* if trained in f32, the weights may be rounded to bf16 or f16 for use */
    /* Sets model->module and model->loss, for a language model also model->rows and model->tokens. `dtype` is
     * that of the weights. */
    weft_status (*build)(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                         weft__model *model);
    /* Appends the sizes to the name of the type, such as "L4-H4-E128" to "gpt-". */
    void (*describe)(const weft__config *config, const weft__dataset *dataset, weft_text *name);
} weft__model_kind;

/* Describes a transformer by its layers, heads and width. */
void weft__describe_blocks(const weft__config *config, const weft__dataset *dataset, weft_text *name);

#define MODEL(id, name, kind, traits) extern const weft__model_kind weft__model_##name;
#include "train/model/models.def"

/* Sets model->rows and model->tokens of a language model, from the data, model.vocab and model.tokens. */
weft_status weft__model_take_tokens(const weft__config *config, const weft__dataset *dataset,
                                    weft__model *model);

/* Sets *activation to model.activation. Refuses the identity. */
weft_status weft__model_activation(const weft__config *config, weft_context *ctx,
                                   weft_activation_kind *activation);

#endif
