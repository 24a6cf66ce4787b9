/* Published models (weft/published.h) as the model of a configuration. Must not know: files of weights. Read
 * next: published.c. */
#ifndef WEFT_SRC_TRAIN_MODEL_PUBLISHED_H
#define WEFT_SRC_TRAIN_MODEL_PUBLISHED_H

#include "train/model/model.h"

/* The folder of a run that holds config.json of the published model from which it was trained. */
#define WEFT__PUBLISHED_FOLDER "published"

/* Makes `path`, a folder or a GGUF file, the description of the model: sets config->published, and all keys
 * of the model that follow from it. A key that was given must have the value that follows. */
weft_status weft__model_describe_published(weft__config *config, const char *path);

/* Lets the published model that model.init names describe the model, and its tokenizer the text. */
weft_status weft__model_take_published(weft__config *config);

/* Makes the configuration for using a published model itself, without a run. */
weft_status weft__model_use_published(weft__config *config, const char *path);

#endif
