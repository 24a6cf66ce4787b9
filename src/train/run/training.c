/* What training adds to a model: a context that signals interrupt, and checkpoints of weights, optimizer and
 * early stopping. Must not know: networks, the loop. Read next: loop_setup.c. */
#include <string.h>

#include "io/checkpoint.h"
#include "optim/optimizer.h"
#include "train/model/trained.h"
#include "train/run/signals.h"
#include "train/run/training.h"

weft_status weft__model_open_context(const weft__config *config, const char *device, weft_log_fn log,
                                     void *user, weft_context **ctx) {
    return weft__model_open_threads(config, device, config->threads, log, user, ctx);
}

weft_status weft__model_open_threads(const weft__config *config, const char *device, int threads,
                                     weft_log_fn log, void *user, weft_context **ctx) {
    if (config->device && strcmp(config->device, "null") == 0)
        return weft__fail(
            NULL, WEFT_ERR_DEVICE,
            "the device null computes nothing and is only for plans and tests: use cpu or another device");
    const weft_open_options options = {.device = device[0] ? device : config->device,
                                       .threads = threads,
                                       .seed = (uint64_t)config->train_seed,
                                       .tf32 = config->train_precision == WEFT__PRECISION_TF32,
                                       .log = log,
                                       .log_user = user,
                                       .interrupted = weft__signals_interrupt,
                                       .allow_nondeterministic = !config->train_deterministic};
    return weft_open(&options, ctx);
}

/* Writes a checkpoint, of a divided optimizer together with the other processes. Takes the status of this
 * process so far: the others wait for it, whatever it is. */
static weft_status write_checkpoint(const weft__model *model, weft_status status, const char *run,
                                    const weft_checkpoint_state *state, const weft_entry *weights,
                                    size_t weight_count) {
    weft_optimizer *optimizer = model->optimizer;
    weft_entry *states = NULL;
    size_t state_count = 0;
    if (status == WEFT_OK) status = weft_optimizer_entries(optimizer, &states, &state_count);
    if (weft__optimizer_sharded(optimizer))
        status = weft__checkpoint_write_group(model->ctx, NULL, weft_optimizer_processes(optimizer), status,
                                              run, state, weights, weight_count, states, state_count);
    else if (status == WEFT_OK)
        status = weft_checkpoint_write(model->ctx, run, state, weights, weight_count, states, state_count);
    weft_entries_free(model->ctx, states, state_count);
    return status;
}

/* Lists the weights that a checkpoint has: all, or those that training changes. */
static weft_status take_weights(const weft__model *model, const weft__config *config, weft_entry **weights,
                                size_t *count) {
    return (config->lora_rank > 0 ? weft_module_entries_trained : weft_module_entries)(model->module, weights,
                                                                                       count);
}

weft_status weft__model_save(const weft__model *model, const weft__config *config,
                             const weft__dataset *dataset, const char *run, const weft__stopping *stopping) {
    weft_entry *weights = NULL;
    size_t weight_count = 0;
    char config_hash[17] = "", data_hash[17], extra[WEFT__STOPPING_TEXT];
    const uint64_t step = weft_optimizer_steps(model->optimizer);
    weft__stopping_text(stopping, extra);
    weft_status status = weft__config_hash(model->ctx, config, config_hash);
    weft__dataset_hash(dataset, data_hash);
    const weft_checkpoint_state state = {
        .step = step,
        .seed = (uint64_t)config->train_seed,
        .data_position = step * (uint64_t)config->train_accumulate,
        .ranks = (uint32_t)weft_process_group_size(weft_optimizer_processes(model->optimizer)),
        .config_hash = config_hash,
        .data_hash = data_hash,
        .extra = extra};
    if (status == WEFT_OK) status = take_weights(model, config, &weights, &weight_count);
    status = write_checkpoint(model, status, run, &state, weights, weight_count);
    weft_entries_free(model->ctx, weights, weight_count);
    return status;
}

weft_status weft__model_save_part(const weft__model *model, const weft__config *config) {
    weft_entry *weights = NULL;
    size_t weight_count = 0;
    if (!weft__optimizer_sharded(model->optimizer)) return WEFT_OK;
    weft_status status = WEFT_OK;
    if (weft__optimizer_divides_parameters(model->optimizer)) /* all read them together */
        status = take_weights(model, config, &weights, &weight_count);
    status = write_checkpoint(model, status, NULL, NULL, weights, weight_count);
    weft_entries_free(model->ctx, weights, weight_count);
    return status;
}

void weft__model_prune(const weft__model *model, const weft__config *config, const char *run, uint64_t step) {
    if (weft__checkpoint_prune(model->ctx, run, (size_t)config->train_keep, step) != WEFT_OK)
        weft__log(model->ctx, WEFT_LOG_WARNING,
                  "%s: an old checkpoint takes up space until a later save or 'weft resume' removes it",
                  weft_last_error(model->ctx));
}

bool weft__model_loads_late(const weft__config *config) {
    return config->train_shard == WEFT_SHARD_PARAMETERS && config->lora_rank == 0;
}

weft_status weft__model_load(weft__model *model, const weft__config *config, const weft__dataset *dataset,
                             weft_process_group *group, const char *run, bool strict,
                             weft__stopping *stopping, uint64_t *step, weft_checkpoint **open) {
    weft_checkpoint *checkpoint = NULL;
    if (open) *open = NULL;
    WEFT_TRY(weft__checkpoint_open_newest(model->ctx, group, run, strict, &checkpoint));
    const weft_checkpoint_state *state = weft_checkpoint_state_of(checkpoint);
    weft_status status = weft__model_matches(model, config, dataset, run, state);
    const bool late = open && weft__model_loads_late(config);
    if (status == WEFT_OK && !late) status = weft__model_weights(model, config, run, checkpoint);
    if (status == WEFT_OK && !open) status = weft__model_load_optimizer(model, checkpoint);
    if (status == WEFT_OK && stopping) status = weft__stopping_read(model->ctx, state->extra, stopping);
    *step = state->step;
    weft_optimizer_set_steps(model->optimizer, state->step);
    if (status == WEFT_OK && open)
        *open = checkpoint;
    else
        weft_checkpoint_close(checkpoint);
    return status;
}
