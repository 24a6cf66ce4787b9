/* Plans training steps, see planning.h. Must not know: loops, run folders, terminals. Read next:
 * src/cli/plan.c. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/null/null.h"
#include "optim/optimizer.h"
#include "process/group.h"
#include "train/model/model.h"
#include "train/analysis/planning.h"

#define BATCH_MOST (1 << 24) /* the limit in config_keys.def */
#define CARD       "card:"
#define CARD_NAME  1100
#define MANY_STEPS (UINT64_C(1) << 40) /* steps of the schedule; more than any warm-up */

weft_status weft__planning_data(const weft__config *config, weft__dataset *dataset) {
    const bool sized = config->task == WEFT__TASK_LANGUAGE_MODEL && config->model_vocab > 0;
    memset(dataset, 0, sizeof *dataset);
    if (!sized || access(config->data_path, R_OK) == 0)
        return weft__dataset_read(NULL, config, NULL, dataset);
    dataset->task = WEFT__TASK_LANGUAGE_MODEL;
    dataset->source = weft__source_of(config);
    dataset->tokens.vocabulary = config->model_tokens ? config->model_tokens : config->model_vocab;
    return WEFT_OK;
}

/* ---- one step ---- */

/* Takes a batch of the data. If there are no data, makes variables of the shape of a batch. */
static weft_status take_batch(weft_context *ctx, const weft__config *c, const weft__dataset *dataset,
                              weft_loader **loader, weft_batch *batch, int64_t *batch_size) {
    if (weft__dataset_has(dataset, WEFT__TRAIN)) {
        WEFT_TRY(weft__dataset_loader(ctx, dataset, c, WEFT__TRAIN, 0, loader));
        if (*batch_size == WEFT__BATCH_FULL) *batch_size = weft_loader_batch_size(*loader);
        return weft_loader_get(*loader, 0, batch);
    }
    const int64_t shape[2] = {c->train_batch, c->model_context};
    batch->x = weft_variable_new(ctx, "x", WEFT_I32, 2, shape, NULL);
    batch->y = weft_variable_new(ctx, "y", WEFT_I32, 2, shape, NULL);
    WEFT_TRY(weft_tensor_status(batch->x));
    return weft_tensor_status(batch->y);
}

/* What a plan holds until its context is closed. */
typedef struct plan_parts {
    weft_loader *loader;
    weft_process_group *group;
} plan_parts;

/* Lets the optimizer share its steps with the processes of the configuration. */
static weft_status plan_join(weft_optimizer *opt, const weft__config *c, weft_process_group **group) {
    if (c->processes < 2) return WEFT_OK;
    WEFT_TRY(weft__process_group_planned(c->processes, group));
    WEFT_TRY(weft_optimizer_join(opt, *group));
    return weft_optimizer_shard(opt, (weft_shard)c->train_shard);
}

static weft_status plan_step(weft_context *ctx, const weft__config *c, const weft__dataset *dataset,
                             plan_parts *parts, weft__planned *planned) {
    weft__model model;
    weft_batch batch = {0};
    weft__dataset rows = *dataset; /* borrowed: texts of the longest batch count */
    rows.texts.whole = true;
    dataset = &rows;
    weft__model_name(c, dataset, planned->model);
    WEFT_TRY(weft__model_build(ctx, c, dataset, NULL, &model));
    WEFT_TRY(take_batch(ctx, c, dataset, &parts->loader, &batch, &planned->batch));
    WEFT_TRY(weft__model_optimizer(&model, c, MANY_STEPS));
    WEFT_TRY(plan_join(model.optimizer, c, &parts->group));
    planned->overlaps = weft__optimizer_exchanges(model.optimizer);
    planned->parameters = (uint64_t)weft_parameter_elements(model.module, false);
    planned->trained = (uint64_t)weft_parameter_elements(model.module, true);
    weft_tensor *loss;
    WEFT_TRY(weft__model_loss(&model, c, dataset, &batch, &loss));
    WEFT_TRY(weft_optimizer_plan(model.optimizer, loss, (int)planned->parts, &planned->memory));
    return weft__predict_batch(ctx, &planned->time);
}

/* Opens a context that plans for the first usable device of a list. `null:as:DEVICE` has only an outline of
 * the device, so the device itself is not needed. */
static weft_status open_plan(const weft__config *config, const char *list, weft_context **ctx) {
    char spec[100], name[CARD_NAME];
    weft_status status = WEFT_ERR_DEVICE;
    if (strncmp(list, CARD, strlen(CARD)) == 0) {
        snprintf(name, sizeof name, "null:%s", list);
        return weft_open(&(weft_open_options){.device = name,
                                              .seed = (uint64_t)config->train_seed,
                                              .tf32 = config->train_precision == WEFT__PRECISION_TF32},
                         ctx);
    }
    while (status == WEFT_ERR_DEVICE && weft__device_next(&list, spec, sizeof spec)) {
        snprintf(name, sizeof name, "null:as:%s", spec);
        status = weft_open(&(weft_open_options){.device = name, .seed = (uint64_t)config->train_seed}, ctx);
    }
    return status;
}

/* Completes the time of a step from the time of its batches. Each one counts as much as a whole step of one
 * batch; this adds updates that accumulated batches do not have. */
static void complete_time(const weft__config *config, const weft__dataset *dataset, weft__planned *p) {
    const bool tokens = config->task == WEFT__TASK_LANGUAGE_MODEL;
    const int64_t each = tokens ? weft__dataset_row_tokens(dataset, config) : 1;
    const double samples = (double)p->batch * (double)p->parts * (double)each;
    p->time.seconds *= (double)p->parts;
    p->time.tokens = tokens;
    if (p->time.seconds > 0) p->time.samples = samples / p->time.seconds;
}

weft_status weft__planning_step(const weft__config *config, const weft__dataset *dataset, const char *device,
                                weft__planned *planned) {
    const char *spec = device && device[0]                   ? device
                       : config->device && config->device[0] ? config->device
                                                             : "cpu";
    weft_context *ctx = NULL;
    plan_parts parts = {NULL, NULL};
    const int64_t processes = config->processes > 1 ? config->processes : 1;
    *planned = (weft__planned){
        .batch = config->train_batch, .parts = config->train_accumulate / processes, .spec = spec};
    WEFT_TRY(open_plan(config, spec, &ctx));
    const weft_device_outline *outline = weft__null_outline(ctx->device);
    snprintf(planned->device, sizeof planned->device, "%s", outline->name);
    snprintf(planned->detail, sizeof planned->detail, "%s", outline->detail);
    planned->absent = outline->absent;
    planned->device_memory = outline->memory;
    weft_scope *scope = weft_scope_open(ctx);
    const weft_status status =
        scope ? plan_step(ctx, config, dataset, &parts, planned) : weft__fail_oom(ctx, 0, "a scope");
    complete_time(config, dataset, planned);
    weft_scope_close(scope);
    weft_loader_free(parts.loader);
    weft_close(ctx);
    weft_process_group_close(parts.group);
    return status;
}

/* ---- what would take less ---- */

/* Inserts a saving into the list, which is sorted by bytes saved, the largest first. */
static void offer(weft__saving *savings, int *count, weft__saving s) {
    int at = *count < WEFT__SAVINGS ? (*count)++ : WEFT__SAVINGS;
    for (; at > 0 && savings[at - 1].saves < s.saves; at--)
        if (at < WEFT__SAVINGS) savings[at] = savings[at - 1];
    if (at < WEFT__SAVINGS) savings[at] = s;
}

/* A configuration with one change, and the savings found so far. */
typedef struct attempt {
    weft__config changed; /* borrows all strings */
    const weft__dataset *dataset;
    const weft__planned *planned;
    weft__saving *savings;
    int *count;
} attempt;

static weft_status try_one(attempt *a, weft__config_key key) {
    weft__planned other;
    weft__saving s = {.key = weft__config_key_name(key)};
    const uint64_t now = weft_memory_total(&a->planned->memory);
    const weft_status status = weft__planning_step(&a->changed, a->dataset, a->planned->spec, &other);
    if (status != WEFT_OK) return status == WEFT_ERR_OOM ? status : WEFT_OK;
    s.total = weft_memory_total(&other.memory);
    s.saves = now > s.total ? now - s.total : 0;
    weft__config_value(&a->changed, key, s.value, sizeof s.value);
    if (s.saves > now / 100) offer(a->savings, a->count, s);
    return WEFT_OK;
}

weft_status weft__planning_savings(const weft__config *config, const weft__dataset *dataset,
                                   const weft__planned *planned, weft__saving savings[WEFT__SAVINGS],
                                   int *count) {
    attempt a = {*config, dataset, planned, savings, count};
    *count = 0;
    for (int what = config->train_recompute + 1; what <= (int)WEFT_RECOMPUTE_BLOCK; what++) {
        a.changed.train_recompute = what;
        WEFT_TRY(try_one(&a, WEFT__KEY_train_recompute));
    }
    a.changed = *config;
    if (weft__config_for(WEFT__KEY_train_head_chunks, (weft__model_type)config->model_type) &&
        config->train_head_chunks < 8) {
        a.changed.train_head_chunks = 8;
        WEFT_TRY(try_one(&a, WEFT__KEY_train_head_chunks));
    }
    a.changed = *config;
    if (planned->batch > 1) {
        a.changed.train_batch = planned->batch / 2;
        WEFT_TRY(try_one(&a, WEFT__KEY_train_batch));
    }
    a.changed = *config;
    if (config->train_precision == WEFT__PRECISION_F32) {
        a.changed.train_precision = WEFT__PRECISION_BF16;
        WEFT_TRY(try_one(&a, WEFT__KEY_train_precision));
    }
    return WEFT_OK;
}

void weft__planning_advice(const weft__config *config, const weft__dataset *dataset, const char *device,
                           char *text, size_t size) {
    weft__planned planned;
    weft__saving savings[WEFT__SAVINGS];
    size_t used = 0;
    text[0] = 0;
    int count = 0;
    if (weft__planning_step(config, dataset, device, &planned) != WEFT_OK) return;
    if (weft__planning_savings(config, dataset, &planned, savings, &count) != WEFT_OK) return;
    for (int i = 0; i < count && used < size; i++) {
        const int n = snprintf(text + used, size - used, "%s%s=%s saves %.2f GB", i ? ", " : "",
                               savings[i].key, savings[i].value, 1e-9 * (double)savings[i].saves);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* ---- train.batch: auto ---- */

typedef struct search {
    weft__config config; /* borrows all strings */
    const weft__dataset *dataset;
    const char *device;
    uint64_t most;
    weft__planned last;
} search;

static weft_status planning_fits(search *s, int64_t batch, bool *yes) {
    s->config.train_batch = batch;
    WEFT_TRY(weft__planning_step(&s->config, s->dataset, s->device, &s->last));
    *yes = weft_memory_total(&s->last.memory) <= s->most;
    return WEFT_OK;
}

/* Returns the number of training samples. For text these are windows without shared tokens. With streams,
 * each stream has one token more than its windows. */
static int64_t samples_of(const weft__config *config, const weft__dataset *dataset) {
    if (dataset->source->loader)
        return weft__dataset_samples(dataset, WEFT__TRAIN) / (config->model_context + config->data_streams);
    return dataset->x[WEFT__TRAIN].rank ? dataset->x[WEFT__TRAIN].shape[0] : 0;
}

static weft_status none_fits(search *s, uint64_t memory_free) {
    char advice[400];
    s->config.train_batch = 1;
    weft__planning_advice(&s->config, s->dataset, s->device, advice, sizeof advice);
    const weft_memory_buffer *most = &s->last.memory.largest[0];
    return weft__fail(
        NULL, WEFT_ERR_OOM,
        "train.batch: auto: not even a batch of 1 fits on %s: a step takes %.2f GB, %.2f GB are free, "
        "of which 1/16 must stay free; the largest: %.2f GB of %s%s%s; %s",
        s->last.device, 1e-9 * (double)weft_memory_total(&s->last.memory), 1e-9 * (double)memory_free,
        1e-9 * (double)most->bytes, most->layer, most->layer[0] ? ": " : "", most->what,
        advice[0] ? advice : "use a smaller model or context");
}

weft_status weft__planning_batch(weft__config *config, const weft__dataset *dataset, const char *device,
                                 uint64_t memory_free) {
    search s = {.config = *config, .dataset = dataset, .device = device};
    const int64_t samples = samples_of(config, dataset), most = samples > 0 ? samples : BATCH_MOST;
    int64_t low = 1, high = 2;
    bool yes = false;
    if (!memory_free)
        return weft__fail(NULL, WEFT_ERR_UNSUPPORTED,
                          "train.batch: auto: %s does not report how much memory is free: give a number",
                          device);
    s.most = memory_free - weft__planning_reserve(memory_free);
    WEFT_TRY(planning_fits(&s, 1, &yes));
    if (!yes) return none_fits(&s, memory_free);
    while (high <= most) { /* doubles; `low` fits */
        WEFT_TRY(planning_fits(&s, high, &yes));
        if (!yes) break;
        low = high;
        high *= 2;
    }
    if (high > most) high = most + 1;
    /* bisects in steps of 8; `high` does not fit, or there are fewer samples */
    while (high - low > 8 && low >= 8) {
        const int64_t middle = (low + high) / 2 / 8 * 8;
        if (middle <= low) break;
        WEFT_TRY(planning_fits(&s, middle, &yes));
        *(yes ? &low : &high) = middle;
    }
    config->train_batch = low;
    config->origin[WEFT__KEY_train_batch] = WEFT__ORIGIN_FOUND;
    return WEFT_OK;
}
