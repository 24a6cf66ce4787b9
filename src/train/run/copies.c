/* A trained model on several devices, see copies.h. Must not know: what the model is used for. Read next:
 * opened_model.c, base/each.c. */
#include <string.h>

#include "base/threads.h"
#include "nn/module.h"
#include "train/run/copies.h"

/* ---- the list of devices ---- */

enum { NAMES = 4096 };

/* Names of devices. */
typedef struct device_names {
    char text[NAMES]; /* the names, each ended by a NUL */
    const char *of[WEFT__EACH_MOST];
    size_t count;
} device_names;

/* Returns the length of the kind, such as 4 ("cuda") for "cuda:1". */
static size_t copies_kind(const char *device) { return strcspn(device, ":"); }

static bool is_kind(const char *device, const char *kind) {
    return copies_kind(device) == copies_kind(kind) && strncmp(device, kind, copies_kind(kind)) == 0;
}

static weft_status split_names(const char *list, device_names *names) {
    const size_t bytes = strlen(list);
    names->count = 0;
    if (bytes >= sizeof names->text)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "--devices: the list is too long");
    memcpy(names->text, list, bytes + 1);
    for (char *at = names->text, *next; at; at = next) {
        next = strchr(at, ',');
        if (next) *next++ = '\0';
        if (!*at)
            return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                              "--devices %s: a name is missing: give names with commas between them, such as "
                              "cuda:0,cuda:1",
                              list);
        if (names->count == WEFT__EACH_MOST)
            return weft__fail(NULL, WEFT_ERR_ARGUMENT, "--devices: more than %d devices: give fewer",
                              WEFT__EACH_MOST);
        names->of[names->count++] = at;
    }
    return WEFT_OK;
}

static weft_status check_names(const device_names *names) {
    for (size_t i = 0; i < names->count && names->count > 1; i++) {
        if (is_kind(names->of[i], "auto"))
            return weft__fail(
                NULL, WEFT_ERR_ARGUMENT,
                "--devices: auto is one device: name each of several; 'weft devices' lists them");
        if (!is_kind(names->of[i], names->of[0]))
            return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                              "--devices: %s and %s are of different kinds, which round differently: give "
                              "devices of one kind",
                              names->of[0], names->of[i]);
    }
    return WEFT_OK;
}

/* ---- opening ---- */

/* Returns how many threads device i gets: its share, so that several devices cpu do not want the same
 * processors. */
static int share_of_threads(size_t i, size_t count) {
    const int all = weft__default_threads(), n = (int)count, more = (int)i < all % n;
    return all / n + more > 0 ? all / n + more : 1;
}

static weft_status open_copy(const char *run, const device_names *names, bool layers,
                             const weft__opened_model_options *options, weft__copies *copies) {
    const size_t i = copies->count++;
    weft__opened_model_options how = *options;
    copies->models[i] = &copies->opened[i].model;
    if (names->count > 0) how.device = names->of[i];
    if (names->count > 1 && !layers) how.threads = share_of_threads(i, names->count);
    if (layers) how.part = (int)i, how.parts = (int)names->count;
    if (i > 0) how.with_data = false;
    const weft_status status = weft__opened_model_open(run, &how, &copies->opened[i]);
    if (status == WEFT_OK || i == 0) return status;
    return weft__fail(NULL, status, "device %zu of %zu (%s): %s", i + 1, names->count, names->of[i],
                      weft_last_error(NULL));
}

static weft_status open_all(const char *run, const char *devices, bool layers,
                            const weft__opened_model_options *options, weft__copies *copies) {
    device_names names = {.count = 0};
    *copies = (weft__copies){.layers = layers};
    if (devices && options->device)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "--device and --devices: give only one of them");
    if (devices) WEFT_TRY(split_names(devices, &names));
    WEFT_TRY(check_names(&names));
    const size_t count = names.count > 0 ? names.count : 1;
    copies->opened = weft__array(NULL, count, sizeof *copies->opened);
    if (!copies->opened) return weft__fail_oom(NULL, count * sizeof *copies->opened, "a model");
    while (copies->count < count) WEFT_TRY(open_copy(run, &names, layers, options, copies));
    return WEFT_OK;
}

weft_status weft__copies_open(const char *run, const char *devices, const weft__opened_model_options *options,
                              weft__copies *copies) {
    return open_all(run, devices, false, options, copies);
}

weft_status weft__copies_open_layers(const char *run, const char *devices,
                                     const weft__opened_model_options *options, weft__copies *copies) {
    return open_all(run, devices, true, options, copies);
}

void weft__copies_close(weft__copies *copies) {
    for (size_t i = copies->count; i-- > 0;) {
        weft_decode_state_free(copies->caches[i]);
        weft__opened_model_close(&copies->opened[i]);
    }
    weft__free(NULL, copies->opened);
    *copies = (weft__copies){0};
}

/* ---- use ---- */

weft_status weft__copies_run(const weft__copies *copies, weft_status (*task)(void *user, size_t index),
                             void *user, weft__each *each) {
    each->count = copies->count;
    each->task = task;
    each->user = user;
    for (size_t i = 0; i < copies->count; i++) each->names[i] = weft_device_of(copies->models[i]->ctx);
    return weft__each_run(each);
}

weft_decode_state *weft__copies_cache(weft__copies *copies) {
    for (size_t i = 0; i < copies->count; i++) {
        copies->caches[i] = weft_decode_state_new(copies->models[i]->module);
        if (!copies->caches[i]) return NULL;
        if (i > 0) weft__gpt_cache_link(copies->caches[i - 1], copies->caches[i]);
    }
    return copies->caches[0];
}

/* Makes the loaders of a model whose layers are divided. One gives the inputs to the first layers, the other
 * one gives the targets to the last layers. */
static weft_status score_layers(const weft__copies *copies, const weft__dataset *dataset, weft__split split,
                                weft_module **before, weft__evaluated *one) {
    const weft__config *config = &copies->opened[0].config;
    const size_t last = copies->count - 1;
    if (dataset->chats.pairs)
        return weft__fail(NULL, WEFT_ERR_UNSUPPORTED,
                          "eval: --layers is for texts, and these data are preferences: leave it out");
    for (size_t i = 0; i < last; i++) before[i] = copies->models[i]->module;
    *one = (weft__evaluated){.module = copies->models[last]->module, .before = before, .n_before = last};
    WEFT_TRY(weft__dataset_loader(copies->models[last]->ctx, dataset, config, split, 0, &one->loader));
    return weft__dataset_loader(copies->models[0]->ctx, dataset, config, split, 0, &one->first);
}

static weft_status score_copies(const weft__copies *copies, const weft__dataset *dataset, weft__split split,
                                weft__evaluated *list) {
    for (size_t i = 0; i < copies->count; i++) {
        list[i].module = copies->models[i]->module;
        WEFT_TRY(weft__dataset_loader(copies->models[i]->ctx, dataset, &copies->opened[0].config, split, 0,
                                      &list[i].loader));
    }
    return WEFT_OK;
}

weft_status weft__copies_score(const weft__copies *copies, const weft__dataset *dataset, weft__split split,
                               bool auc, weft__scores *scores) {
    weft_module *before[WEFT__EACH_MOST];
    weft__evaluated list[WEFT__EACH_MOST] = {{.module = NULL}};
    const bool layers = copies->layers && copies->count > 1;
    *scores = (weft__scores){0};
    weft_status status = layers ? score_layers(copies, dataset, split, before, list)
                                : score_copies(copies, dataset, split, list);
    if (status == WEFT_OK)
        status =
            weft__scores_gather(&copies->opened[0].model, dataset,
                                &(weft__evaluators){list, layers ? 1 : copies->count, NULL}, auc, scores);
    for (size_t i = 0; i < copies->count; i++) {
        weft_loader_free(list[i].loader);
        weft_loader_free(list[i].first);
    }
    return status;
}
