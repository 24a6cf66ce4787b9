/* Chooses the device of a run. One step is planned on the device `null`, and the plan is priced for each real
 * device. Must not know: how prices are computed. Read next: compiler/profile/price.c. */
#include <stdio.h>
#include <string.h>

#include <weft/profile.h>

#include "device/device.h"
#include "train/analysis/auto.h"
#include "train/run/progress.h"

#define MANY_STEPS (UINT64_C(1) << 40) /* steps of the schedule; more than any warm-up */

bool weft__auto_chooses(const weft__config *config) {
    weft_device_description d;
    if (!config->device || strcmp(config->device, "auto") != 0 || !weft__device_cards()) return false;
    for (int i = 0; weft_device_info(i, &d); i++)
        if (d.present && d.card) return true;
    return false;
}

/* ---- one step ---- */

typedef struct plan {
    const weft__config *config;
    const weft__dataset *dataset;
    weft__model model;
    weft_loader *loader;      /* for training */
    weft_decode_state *cache; /* for decoding */
    void *zeros;              /* for applying: a batch of zeros */
} plan;

static weft_status train_step(const plan *p, uint64_t position) {
    weft_batch batch;
    WEFT_TRY(weft_loader_get(p->loader, position, &batch));
    weft_tensor *loss;
    WEFT_TRY(weft__model_loss(&p->model, p->config, p->dataset, &batch, &loss));
    return weft_optimizer_step(p->model.optimizer, loss);
}

static weft_status decode_step(const plan *p) {
    const int32_t token = 0;
    return weft_gpt_feed(p->cache, &token, 1, p->zeros);
}

static weft_status apply_step(const plan *p) {
    const weft__config *c = p->config;
    const bool text = c->task == WEFT__TASK_LANGUAGE_MODEL || p->dataset->texts.rows;
    const int64_t shape[2] = {c->train_batch, text ? c->model_context : p->dataset->features};
    weft_tensor *x = weft_from(p->model.ctx, text ? WEFT_I32 : WEFT_F32, 2, shape, p->zeros);
    weft_tensor *y = weft_argmax(weft_forward(p->model.module, x), -1, false);
    return weft_eval(&y, 1);
}

static weft_status step(const plan *p, weft__purpose purpose, uint64_t position) {
    weft_scope *scope = weft_scope_open(p->model.ctx);
    if (!scope) return weft__fail_oom(p->model.ctx, 0, "a scope");
    const weft_status status = purpose == WEFT__TO_TRAIN   ? train_step(p, position)
                               : purpose == WEFT__TO_APPLY ? apply_step(p)
                                                           : decode_step(p);
    weft_scope_close(scope);
    return status;
}

static weft_status prepare(plan *p, weft__purpose purpose) {
    const weft__config *c = p->config;
    weft_context *ctx = p->model.ctx;
    const int64_t width = c->task == WEFT__TASK_LANGUAGE_MODEL ? c->model_context : p->dataset->features;
    int64_t numbers = 0;
    const char *precision = purpose == WEFT__TO_TRAIN ? NULL : weft__model_rounded(c);
    WEFT_TRY(weft__model_build(ctx, c, p->dataset, precision, &p->model));
    if (purpose == WEFT__TO_TRAIN) {
        WEFT_TRY(weft__dataset_loader(ctx, p->dataset, c, WEFT__TRAIN, 0, &p->loader));
        return weft__model_optimizer(&p->model, c, MANY_STEPS);
    }
    weft_module_set_training(p->model.module, false);
    if (!weft__mul(c->train_batch, width, &numbers)) numbers = INT64_MAX;
    if (purpose == WEFT__TO_DECODE) {
        p->cache = weft_decode_state_new(p->model.module);
        if (!p->cache) return weft_last_status(ctx);
        numbers = p->model.rows;
    }
    p->zeros = weft__array(NULL, (size_t)numbers, sizeof(float));
    return p->zeros ? WEFT_OK : weft__fail_oom(NULL, (size_t)numbers, "a batch");
}

static weft_status price(plan *p, weft__purpose purpose, weft_device_choice *choice) {
    weft_profile *profile = NULL;
    WEFT_TRY(prepare(p, purpose));
    /* the first step initialises parameters and uploads data, so it is not priced */
    WEFT_TRY(step(p, purpose, 0));
    WEFT_TRY(weft_profile_start(p->model.ctx, NULL, &profile));
    weft_status status = step(p, purpose, 1);
    weft_profile_stop(profile);
    if (status == WEFT_OK) status = weft_profile_choose(profile, "auto", choice);
    weft_profile_free(profile);
    return status;
}

/* Shows only warnings: the reasons why a graphics card is not considered. Other messages are about the device
 * `null`, which the user did not choose. */
static void on_log(void *user, weft_log_level level, const char *message) {
    if (level >= WEFT_LOG_WARNING) weft__show_log(user, level, message);
}

weft_status weft__auto_choose(const weft__config *config, const weft__dataset *dataset, weft__purpose purpose,
                              weft__auto *choice) {
    weft__config known = *config; /* borrows all strings of *config */
    plan p = {.config = &known, .dataset = dataset};
    weft_context *ctx = NULL;
    weft_device_choice best;
    /* auto: the batch depends on the device, which is not known yet */
    if (!known.train_batch) known.train_batch = 8;
    if (purpose != WEFT__TO_TRAIN && known.train_batch == WEFT__BATCH_FULL) known.train_batch = 256;
    WEFT_TRY(weft_open(
        &(weft_open_options){.device = "null", .seed = (uint64_t)config->train_seed, .log = on_log}, &ctx));
    p.model.ctx = ctx;
    const weft_status status = price(&p, purpose, &best);
    if (status == WEFT_OK) {
        snprintf(choice->device, sizeof choice->device, "%s", best.device);
        snprintf(choice->why, sizeof choice->why, "a step is estimated at %s", best.prices);
    }
    weft__free(NULL, p.zeros);
    weft_decode_state_free(p.cache);
    weft_loader_free(p.loader);
    weft_close(ctx);
    return status;
}
