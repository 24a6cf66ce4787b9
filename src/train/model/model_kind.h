/* What the command knows of a network beyond its keys: one of these for each line of models.def, in a file
 * model_NAME.c. Must not know: the loop. Read next: model_gpt.c. */
#ifndef WEFT_SRC_TRAIN_MODEL_MODEL_KIND_H
#define WEFT_SRC_TRAIN_MODEL_MODEL_KIND_H

#include "train/model/model.h"

typedef struct weft__model_kind {
    bool rounds; /* trained in f32 it may be used with weights rounded to bf16 or f16 */
    /* Sets model->module and model->loss, and of a language model rows and tokens; the dtype is the weights'.
     */
    weft_status (*build)(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                         weft__model *model);
    /* Its short name, "gpt-L4-H4-E128". */
    void (*describe)(const weft__config *config, const weft__dataset *dataset, char out[64]);
} weft__model_kind;

#define MODEL(id, name, kind) extern const weft__model_kind weft__model_##name;
#include "train/model/models.def"

/* Of a language model, from the data and model.vocab, model.tokens: model->rows and model->tokens. */
weft_status weft__model_take_tokens(const weft__config *config, const weft__dataset *dataset,
                                    weft__model *model);

#endif
