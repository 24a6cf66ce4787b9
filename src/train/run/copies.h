/* A trained model on several devices, for use. Each device has a copy of the model in a context of its own,
 * and the devices divide the work; or each has a part of the layers. Must not know: what the model is used
 * for. Read next: copies.c, base/each.h. */
#ifndef WEFT_SRC_TRAIN_RUN_COPIES_H
#define WEFT_SRC_TRAIN_RUN_COPIES_H

#include "base/each.h"
#include "train/report/scores.h"
#include "train/run/opened_model.h"

typedef struct weft__copies {
    size_t count;
    bool layers; /* the layers are divided */
    /* The first one is that of a single device. The others have only the description of the data, with a
     * tokenizer of their own, since one thread at a time may use a tokenizer. */
    weft__opened_model *opened;                 /* [count] */
    const weft__model *models[WEFT__EACH_MOST]; /* [count] of uses */
    weft_decode_state *caches[WEFT__EACH_MOST]; /* [count] of weft__copies_cache, or NULL */
} weft__copies;

/* Opens a checkpoint of a run on each of `devices`, names with commas between them, which are of one kind.
 * NULL: on one device, options->device. The caller frees *copies with weft__copies_close, also after a
 * failure. */
weft_status weft__copies_open(const char *run, const char *devices, const weft__opened_model_options *options,
                              weft__copies *copies);
/* The same for a gpt whose layers are divided: each device has those that follow the layers of the device
 * before it. Only weft__copies_cache and weft__copies_score can use it. */
weft_status weft__copies_open_layers(const char *run, const char *devices,
                                     const weft__opened_model_options *options, weft__copies *copies);
void weft__copies_close(weft__copies *copies);

/* Runs task(user, i) for each copy at the same time. each: as weft__each_run leaves it; the tasks may look at
 * each->failed. */
weft_status weft__copies_run(const weft__copies *copies, weft_status (*task)(void *user, size_t index),
                             void *user, weft__each *each);

/* Makes a cache of a language model for weft_generate, whose layers may be divided. It belongs to the copies.
 * NULL after a failure. */
weft_decode_state *weft__copies_cache(weft__copies *copies);

/* Measures the model on a split of these data. The caller frees *scores with weft__scores_free, also after a
 * failure. */
weft_status weft__copies_score(const weft__copies *copies, const weft__dataset *dataset, weft__split split,
                               bool auc, weft__scores *scores);

#endif
