/* Makes copies of a run's model on further devices. Each copy is made as the run's own model is made. The
 * host initialises the weights from the same seed, so all copies are equal. Must not know: the loop. Read
 * next: include/weft/fit.h. */
#include <string.h>

#include "base/base.h"
#include "train/run/replicas.h"
#include "train/run/training.h"

static weft_status open_one(weft__replicas *r, const weft__config *config, const weft__dataset *dataset,
                            uint64_t steps, const char *device, weft_log_fn log, void *user) {
    weft__model *model = &r->models[r->count];
    weft_replica *replica = &r->list[r->count];
    weft_context *ctx = NULL;
    WEFT_TRY(weft__model_open_context(config, device, log, user, &ctx));
    model->ctx = ctx;
    r->count++;
    WEFT_TRY(weft__model_build(ctx, config, dataset, NULL, model));
    WEFT_TRY(weft__dataset_loader(ctx, dataset, config, WEFT__TRAIN, 0, &replica->loader));
    WEFT_TRY(weft__model_optimizer(model, config, steps));
    replica->module = model->module;
    replica->optimizer = model->optimizer;
    return WEFT_OK;
}

/* Returns the length of the kind, such as 4 ("cuda") for "cuda:1". */
static size_t kind_of(const char *device) { return strcspn(device, ":"); }

weft_status weft__replicas_open(weft__replicas *r, const weft__config *config, const weft__dataset *dataset,
                                uint64_t steps, weft_log_fn log, void *user) {
    const weft__texts *devices = &config->devices;
    *r = (weft__replicas){0};
    if (devices->count < 2) return WEFT_OK;
    r->models = weft__array(NULL, devices->count, sizeof *r->models);
    r->list = weft__array(NULL, devices->count, sizeof *r->list);
    if (!r->models || !r->list)
        return weft__fail_oom(NULL, devices->count * sizeof *r->models, "the list of devices");
    for (size_t i = 1; i < devices->count; i++) {
        const char *device = devices->values[i];
        const size_t kind = kind_of(devices->values[0]);
        if (kind_of(device) != kind || strncmp(device, devices->values[0], kind) != 0)
            return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                              "devices: %s and %s are of different kinds, which round differently, so the "
                              "copies of the model would drift apart: give devices of one kind",
                              devices->values[0], device);
        WEFT_TRY(open_one(r, config, dataset, steps, device, log, user));
    }
    return WEFT_OK;
}

weft_status weft__replicas_init(const weft__replicas *r, const weft__config *config) {
    for (size_t i = 0; i < r->count; i++) WEFT_TRY(weft__model_init(&r->models[i], config));
    return WEFT_OK;
}

weft_status weft__replicas_load(weft__replicas *r, const weft__config *config, const weft__dataset *dataset,
                                const char *run, bool strict) {
    uint64_t step;
    for (size_t i = 0; i < r->count; i++)
        WEFT_TRY(weft__model_load(&r->models[i], config, dataset, NULL, run, strict, NULL, &step, NULL));
    return WEFT_OK;
}

void weft__replicas_close(weft__replicas *r) {
    for (size_t i = 0; i < r->count; i++) {
        weft_loader_free(r->list[i].loader);
        weft_close(r->models[i].ctx);
    }
    weft__free(NULL, r->models);
    weft__free(NULL, r->list);
    *r = (weft__replicas){0};
}
