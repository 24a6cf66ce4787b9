/* Orders of the leader, and what all processes of a run agree on. Must not know: the loop. Read next:
 * follower.c. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "device/module.h"
#include "io/sealed.h"
#include "optim/optimizer.h"
#include "process/group.h"
#include "train/model/trained.h"
#include "train/run/processes.h"
#include "train/run/progress.h"
#include "train/run/signals.h"
#include "train/run/training.h"

#define PATIENCE   10  /* times train.timeout: reading data and saving take longer than a step */
#define BEAT_SHARE 0.2 /* of train.timeout is the time between two beats */

weft__processes weft__processes_start(weft_process_group *group, double timeout) {
    return (weft__processes){.group = group,
                             .timeout = timeout,
                             .figures = group ? weft__array(NULL, (size_t)weft_process_group_size(group),
                                                            sizeof(weft__process_figures))
                                              : NULL};
}

void weft__processes_free(weft__processes *p) {
    weft__free(NULL, p->figures);
    p->figures = NULL;
}

bool weft__processes_follows(const weft__processes *p) { return weft_process_group_rank(p->group) > 0; }

void weft__processes_device(const weft__processes *p, const weft__config *config, char device[64]) {
    const int rank = weft_process_group_local_rank(p->group);
    const char *wanted = config->device ? config->device : "";
    device[0] = 0;
    for (int i = 0; i < weft__device_kinds() && weft_process_group_local_size(p->group) > 1; i++) {
        const weft_device_module *kind = weft__device_kind(i);
        const int n = strcmp(wanted, kind->ops->name) == 0 ? weft__device_count(kind) : 0;
        if (n > 1) snprintf(device, 64, "%s:%d", kind->ops->name, rank % n);
    }
}

/* ---- agreement ---- */

weft_status weft__processes_agree(weft_process_group *group, double timeout, weft_status status,
                                  bool *silent) {
    bool agreed;
    weft__process_group_purpose(group, 0, "the start of all processes");
    weft_process_group_set_timeout(group, PATIENCE * timeout);
    status = weft__process_group_agree(group, status, &agreed);
    weft_process_group_set_timeout(group, timeout);
    *silent = status != WEFT_OK && agreed && weft_process_group_rank(group) > 0;
    return status;
}

weft_status weft__processes_ready(weft__processes *p, weft_status status) {
    if (!p->group) return status;
    status = weft__processes_agree(p->group, p->timeout, status, &p->silent);
    p->refused = status != WEFT_OK;
    weft_process_group_set_timeout(p->group, PATIENCE * p->timeout);
    return status;
}

static weft_status same(weft__processes *p, const char *what, const char *text, const char *advice) {
    weft_hash hash;
    weft__hash_init(&hash);
    weft__hash_str(&hash, text);
    return weft__process_group_same(p->group, what, hash, advice);
}

/* Compares what must be the same, and lets the optimizers share the steps. */
static weft_status processes_join(weft__processes *p, const weft__config *config,
                                  const weft__dataset *dataset, const weft__model *model) {
    char hash[17];
    weft__process_group_purpose(p->group, 0, "hashes of configuration, data and weights");
    WEFT_TRY(weft__config_hash(NULL, config, hash));
    WEFT_TRY(same(p, "another configuration", hash, "start all processes with the same arguments and files"));
    weft__dataset_hash(dataset, hash);
    WEFT_TRY(same(p, "other data", hash, "give all machines the same files"));
    WEFT_TRY(same(p, "another kind of device", model->ctx->device->ops->name,
                  "kinds of devices round differently: choose one with --device"));
    WEFT_TRY(weft_optimizer_join(model->optimizer, p->group));
    if (config->train_shard != WEFT_SHARD_PARAMETERS) WEFT_TRY(weft_optimizer_compare(model->optimizer));
    return weft_optimizer_shard(model->optimizer,
                                (weft_shard)config->train_shard); /* may compare them, too */
}

/* Loads what the processes have divided from the checkpoint: each reads all, and keeps its part. */
static weft_status load_divided(weft__model *model, const weft__config *config, weft_checkpoint *checkpoint) {
    if (weft__model_loads_late(config)) WEFT_TRY(weft__model_weights(model, config, NULL, checkpoint));
    return weft__model_load_optimizer(model, checkpoint);
}

weft_status weft__processes_join(weft__processes *p, weft_status status, const weft__config *config,
                                 const weft__dataset *dataset, weft__model *model,
                                 weft_checkpoint *checkpoint, bool *silent) {
    *silent = p->silent;
    if (!p->refused) status = weft__processes_agree(p->group, p->timeout, status, silent);
    if (!p->group) return status;
    if (status == WEFT_OK && (status = processes_join(p, config, dataset, model)) == WEFT_ERR_STATE)
        *silent = weft__processes_follows(p); /* all have the same message */
    if (status == WEFT_OK && checkpoint)
        status = weft__processes_agree(p->group, p->timeout, load_divided(model, config, checkpoint), silent);
    p->parted = status != WEFT_OK && status != WEFT_ERR_TIMEOUT;
    p->exchanged = p->group->waited;
    p->ctx = model->ctx;
    return status;
}

/* ---- orders ---- */

void weft__processes_step(weft__processes *p, const weft_fit_state *state) {
    if (!p->group) return;
    weft__process_figures *own = &p->figures[weft_process_group_rank(p->group)];
    const double exchanged = p->group->waited - p->exchanged;
    own->exchanging += exchanged;
    own->hidden = p->group->hidden > 0 ? p->group->hidden : 0; /* waking up takes time, too */
    own->computing += state->seconds_data + state->seconds_step - exchanged;
}

/* Sends the own word, and receives those of all: the order of the leader, and the signals of followers. */
static weft_status exchange(weft__processes *p, uint64_t own, uint64_t *others) {
    const int rank = weft_process_group_rank(p->group), size = weft_process_group_size(p->group);
    if (!p->figures)
        return weft__fail_oom(NULL, (size_t)size * sizeof *p->figures, "an order to the processes");
    p->figures[rank].word = own;
    p->figures[rank].memory = weft__memory_peak();
    p->figures[rank].buffers = p->ctx ? (double)p->ctx->device->bytes_peak : 0;
    p->figures[rank].exchange = (double)p->group->staging_bytes;
    weft__process_group_purpose(p->group, p->group->step, "the order of rank 0");
    WEFT_TRY(weft_process_group_all_gather(p->group, p->figures, sizeof *p->figures));
    p->exchanged = p->group->waited;
    *others = 0;
    for (int i = 1; i < size; i++)
        if (p->figures[i].word > *others) *others = p->figures[i].word;
    return WEFT_OK;
}

enum { SAVE = 1 << 8 }; /* beside the number of a signal */

weft_status weft__processes_order(weft__processes *p, weft__order order) {
    uint64_t others;
    if (!p->group) return WEFT_OK;
    WEFT_TRY(exchange(p, (uint64_t)order, &others));
    p->ordered = weft__now();
    p->followers_wait = order != WEFT__ORDER_GO && order != WEFT__ORDER_END;
    p->save = p->save || others & SAVE;
    if (others & (SAVE - 1)) p->signal = (int)(others & (SAVE - 1));
    return WEFT_OK;
}

weft_status weft__processes_evaluate(weft__processes *p, int loader) {
    WEFT_TRY(weft__processes_order(p, (weft__order)(WEFT__ORDER_EVALUATE | loader << 8)));
    p->followers_wait = false;
    return WEFT_OK;
}

weft_status weft__processes_together(weft__processes *p, weft__order order) {
    WEFT_TRY(weft__processes_order(p, order));
    p->followers_wait = false;
    return WEFT_OK;
}

weft_status weft__processes_beat(weft__processes *p) {
    const bool due = p->followers_wait && weft__now() - p->ordered > BEAT_SHARE * p->timeout;
    return due ? weft__processes_order(p, WEFT__ORDER_WAIT) : WEFT_OK;
}

/* Notes a failure that all processes have. */
static weft_status same_in_all(weft__processes *p, weft_status status) {
    if (status == WEFT_ERR_NUMERIC || status == WEFT_ERR_STATE) p->parted = true, p->followers_wait = false;
    return status;
}

weft_status weft__processes_losses(weft__processes *p, const weft_fit_state *state, double *loss) {
    WEFT_TRY(weft__processes_order(p, WEFT__ORDER_LOSSES));
    return same_in_all(p, weft_fit_losses(state, loss, NULL));
}

weft_status weft__processes_save(weft__processes *p, weft_optimizer *optimizer) {
    WEFT_TRY(weft__processes_order(p, WEFT__ORDER_SAVE));
    return weft__processes_prepare_save(p, optimizer);
}

weft_status weft__processes_prepare_save(weft__processes *p, weft_optimizer *optimizer) {
    WEFT_TRY(same_in_all(p, weft_optimizer_compare(optimizer)));
    if (!weft__optimizer_sharded(optimizer)) return WEFT_OK;
    p->followers_wait = false; /* all write, and none waits for an order */
    weft_process_group_set_timeout(p->group, PATIENCE * p->timeout);
    return WEFT_OK;
}

void weft__processes_saved(weft__processes *p) {
    weft_process_group_set_timeout(p->group, p->timeout);
    p->followers_wait = p->group != NULL;
}

bool weft__processes_end(weft__processes *p, weft_status status) {
    if (p->group && p->followers_wait && status != WEFT_ERR_TIMEOUT &&
        weft__processes_order(p, WEFT__ORDER_END) == WEFT_OK)
        return false;
    return p->group && status != WEFT_OK && !p->parted &&
           status != WEFT_ERR_NUMERIC; /* all have seen the losses */
}

weft_status weft__processes_await(weft__processes *p, weft__order *order, int *loader) {
    uint64_t others;
    const uint64_t own = (uint64_t)weft__signals_stop() | (weft__signals_save() ? SAVE : 0);
    weft_process_group_set_timeout(p->group, p->saves ? PATIENCE * p->timeout : p->timeout);
    WEFT_TRY(exchange(p, own, &others));
    *order = (weft__order)(p->figures[0].word & 0xff);
    *loader = (int)(p->figures[0].word >> 8);
    p->saves = *order == WEFT__ORDER_SAVE;
    return WEFT_OK;
}

/* ---- figures ---- */

void weft__processes_say(const weft__processes *p, FILE *out) {
    const weft__process_figures *own = p->figures;
    if (!p->group || !out || !(own->exchanging + own->hidden > 0)) return;
    fprintf(out, "exchange of gradients: %.3f s, %.0f %% of it while this process computed\n",
            own->exchanging + own->hidden, 100 * own->hidden / (own->exchanging + own->hidden));
}

weft_status weft__processes_write(const weft__processes *p, const char *dir) {
    weft__json json;
    weft__json_build(&json, NULL);
    json_t *list = json_array();
    for (int i = 0; i < weft_process_group_size(p->group); i++) {
        const weft__process_figures *f = &p->figures[i];
        json_array_append_new(list,
                              json_pack("{s:i, s:s, s:f, s:f, s:f, s:I, s:I, s:I}", "rank", i, "machine",
                                        weft_process_group_host(p->group, i), "computing", f->computing,
                                        "exchanging", f->exchanging, "hidden", f->hidden, "memory_peak",
                                        (json_int_t)f->memory, "buffers_peak", (json_int_t)f->buffers,
                                        "exchange_memory", (json_int_t)f->exchange));
    }
    json_t *all = json_pack("{s:s, s:o}", "engine", weft_process_group_engine(p->group), "processes", list);
    return weft__sealed_write(dir, "processes.json", &json, all, JSON_REAL_PRECISION(6));
}
