/* The base of a run with adapters (lora.rank): the published model whose weights the run does not hold
 * itself. base.json of the run folder names it by its checksum. Must not know: adapters. Read next: base.c.
 */
#ifndef WEFT_SRC_TRAIN_MODEL_BASE_H
#define WEFT_SRC_TRAIN_MODEL_BASE_H

#include "train/model/model.h"

/* Writes RUN/base.json, if the configuration has adapters. */
weft_status weft__base_save(const weft__config *config, const char *run);

/* Loads the weights of the base into the model. WEFT_ERR_FORMAT: the files at model.init are not those that
 * the run began with. */
weft_status weft__base_load(weft__model *model, const weft__config *config, const char *run);

#endif
