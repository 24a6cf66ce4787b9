/* Opens a trained model from its run folder, for use. Must not know: what it is used for. Read next:
 * opened_model.c. */
#ifndef WEFT_SRC_TRAIN_RUN_OPENED_MODEL_H
#define WEFT_SRC_TRAIN_RUN_OPENED_MODEL_H

#include "train/analysis/auto.h"

typedef struct weft__opened_model {
    weft__config config;
    weft__auto choice; /* the choice of device */
    weft__dataset dataset;
    weft__model model;
    uint64_t step; /* step of the checkpoint */
} weft__opened_model;

#define WEFT__AS_COMPUTED ""
typedef struct weft__opened_model_options {
    const char *device; /* NULL: WEFT_DEVICE, or the device of the run */
    int threads;        /* of the device cpu; 0: the default */
    /* dtype of the weights; NULL: as stored; WEFT__AS_COMPUTED: rounded to the dtype of the layers */
    const char *precision;
    const char *checkpoint; /* best, last, or a step; NULL: the best if kept, else the last undamaged one */
    int part, parts;        /* the model has only this part of its layers; 0, 0: all of them */
    bool with_data;         /* also read the data, not only their description */
    bool adapters;          /* adapters stay beside the weights */
    bool trains;            /* also make the optimizer, with its state in the checkpoint */
    bool packed;            /* weights of a GGUF file stay packed, if it holds them so */
    const char *data, *labels; /* with_data: read this file instead, as validation data; see
                                  weft__config_new_data. NULL: the data of the run */
    const char *tokenizer;     /* NULL: that of the model */
} weft__opened_model_options;

/* Whether a device keeps packed weights packed. */
bool weft__opened_model_packs(const weft_context *ctx);

/* Opens a checkpoint of a run. The caller frees *opened with weft__opened_model_close, also after a failure.
 */
weft_status weft__opened_model_open(const char *run, const weft__opened_model_options *options,
                                    weft__opened_model *opened);
void weft__opened_model_close(weft__opened_model *opened);

/* --trust: the paths that run folders name are followed, see train/config/config_paths.c. */
extern bool weft__opened_model_trusts;

/* Reads the configuration of a run folder. The device becomes `device`, or WEFT_DEVICE if `device` is NULL.
 */
weft_status weft__opened_model_config(const char *run, const char *device, weft__config *config);

#endif
