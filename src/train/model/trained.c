/* Opens trained models: the configuration of a run folder, and the weights of its checkpoints. Must not know:
 * devices, what a model is used for. Read next: run.c. */
#include <stdio.h>
#include <string.h>

#include <weft/published.h>

#include "base/text.h"
#include "io/checkpoint.h"
#include "nn/module.h"
#include "train/model/base.h"
#include "train/model/published.h"
#include "train/model/trained.h"

#define PATH_BYTES 4096

/* Older runs kept only model.context positions of the published model, as their checkpoints tell. One that
 * cannot be read says so when its weights are loaded. */
static weft_status take_positions(const char *run, weft__config *config) {
    char path[PATH_BYTES];
    uint64_t step;
    size_t count = 0, at;
    weft_safetensors *file;
    weft_entry_info table;
    if (config->positions <= config->model_context || config->lora_rank > 0) return WEFT_OK;
    weft_status status = weft_checkpoint_list(NULL, run, &step, 1, &count);
    if (status != WEFT_OK || count == 0) return WEFT_OK;
    const int n = snprintf(path, sizeof path, "%s/checkpoints/step-%llu/model.safetensors", run,
                           (unsigned long long)step);
    if (n < 0 || n >= PATH_BYTES) return WEFT_OK;
    status = weft_safetensors_open(NULL, path, &file);
    if (status != WEFT_OK) return status == WEFT_ERR_OOM ? status : WEFT_OK;
    if (weft_safetensors_find(file, "wpe.weight", &at) && weft_safetensors_entry(file, at, &table) &&
        table.rank == 2 && table.shape[0] == config->model_context)
        config->positions = table.shape[0];
    weft_safetensors_close(file);
    return WEFT_OK;
}

weft_status weft__trained_config(const char *run, bool trusted, weft__config *config) {
    char path[PATH_BYTES];
    if (!weft__is_run(run) && weft_published_is(run)) return weft__model_use_published(config, run);
    if (!weft__is_run(run) || !weft__join(path, sizeof path, run, "config.yaml"))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "%s is not a run folder (it has no config.yaml), and no published model (it has no "
                          "config.json, and is no GGUF file); 'weft runs' lists the runs",
                          run);
    WEFT_TRY(weft__config_read(config, path));
    config->trusted = trusted;
    if (!(config->run = weft__strdup(NULL, run))) return weft__fail_oom(NULL, strlen(run), "a path");
    if (trusted) weft__config_remember(config);
    if (config->lora_rank > 0) WEFT_TRY(weft__config_check_path(config, WEFT__KEY_model_init));
    weft__config_one_device(config);
    if (!weft__join(path, sizeof path, run, WEFT__PUBLISHED_FOLDER) || !weft_published_is(path))
        return WEFT_OK;
    WEFT_TRY(weft__model_describe_published(config, path));
    return take_positions(run, config);
}

/* ---- checkpoints ---- */

weft_status weft__model_matches(const weft__model *model, const weft__config *config,
                                const weft__dataset *dataset, const char *run,
                                const weft_checkpoint_state *state) {
    char config_hash[17], data_hash[17];
    WEFT_TRY(weft__config_hash(model->ctx, config, config_hash));
    if (strcmp(state->config_hash, config_hash) != 0)
        return weft__fail(
            model->ctx, WEFT_ERR_ARGUMENT,
            "%s: the configuration (config.yaml, --set) is not the one that its checkpoints were made with: "
            "change it back, or train again",
            run);
    if (!dataset) return WEFT_OK;
    weft__dataset_hash(dataset, data_hash);
    if (strcmp(state->data_hash, data_hash) != 0)
        return weft__fail(
            model->ctx, WEFT_ERR_FORMAT,
            "%s: the data is not what its checkpoints were made with (%s now, %s then): restore it, or "
            "train again",
            config->data_path, data_hash, state->data_hash);
    return WEFT_OK;
}

weft_status weft__model_weights(weft__model *model, const weft__config *config, const char *run,
                                weft_checkpoint *checkpoint) {
    if (config->lora_rank > 0) {
        WEFT_TRY(weft__base_load(model, config, run));
        return weft_module_load_trained(model->module, weft_checkpoint_model(checkpoint));
    }
    return (model->rounded ? weft_module_load_rounded
                           : weft_module_load_from)(model->module, weft_checkpoint_model(checkpoint));
}

/* Opens the checkpoint of a step, given as digits. */
static weft_status open_step(weft_context *ctx, const char *run, const char *which, weft_checkpoint **out) {
    char path[4096], word[WEFT__SHELL_WORD(sizeof path)];
    const bool number = which[0] && strspn(which, "0123456789") == strlen(which);
    if (!number || snprintf(path, sizeof path, "%s/checkpoints/step-%s", run, which) >= (int)sizeof path)
        return weft__fail(
            ctx, WEFT_ERR_ARGUMENT,
            "--checkpoint %.40s: give best, last or the number of a step; to list the steps: weft info %s",
            which, weft__shell_word(run, word, sizeof word));
    return weft_checkpoint_open(ctx, path, out);
}

/* Opens the checkpoint that `which` names. NULL: the best if one is kept, otherwise the last. */
static weft_status open_which(weft_context *ctx, const char *run, const char *which, weft_checkpoint **out) {
    if (!which) {
        const weft_status best = weft_checkpoint_open_best(ctx, run, out);
        if (best != WEFT_ERR_STATE) return best;
        which = "last"; /* no checkpoint is marked as the best */
    }
    if (strcmp(which, "best") == 0) return weft_checkpoint_open_best(ctx, run, out);
    if (strcmp(which, "last") == 0) return weft_checkpoint_open_newest(ctx, run, false, out);
    return open_step(ctx, run, which, out);
}

weft_status weft__model_load_optimizer(weft__model *model, weft_checkpoint *checkpoint) {
    const weft_checkpoint_state *state = weft_checkpoint_state_of(checkpoint);
    const weft_status status =
        weft_optimizer_load_from(model->optimizer, weft_checkpoint_optimizer(checkpoint));
    weft_optimizer_set_steps(model->optimizer, state->step);
    weft_seed(model->ctx, state->seed, state->step);
    return status;
}

weft_status weft__model_use(weft__model *model, const weft__config *config, const char *run,
                            const char *which, bool trains, uint64_t *step) {
    weft_checkpoint *checkpoint = NULL;
    *step = 0;
    if (!weft__is_run(run)) return weft__model_init(model, config);
    WEFT_TRY(open_which(model->ctx, run, which, &checkpoint));
    weft_status status = weft__model_matches(model, config, NULL, run, weft_checkpoint_state_of(checkpoint));
    if (status == WEFT_OK) status = weft__model_weights(model, config, run, checkpoint);
    if (status == WEFT_OK && trains) status = weft__model_load_optimizer(model, checkpoint);
    *step = weft_checkpoint_state_of(checkpoint)->step;
    weft_checkpoint_close(checkpoint);
    return status;
}

weft_status weft__model_keep(weft__model *model, int part, int parts) {
    const weft_gpt_options *o = weft__gpt_options_of(model->module);
    WEFT_TRY(weft_module_status(model->module));
    if (!o)
        return weft__fail(model->ctx, WEFT_ERR_ARGUMENT,
                          "only a gpt can be divided between devices, by its layers: use one device");
    if (o->layers < parts)
        return weft__fail(model->ctx, WEFT_ERR_ARGUMENT,
                          "%d devices cannot divide the layers of the model, of which there are %lld: name "
                          "fewer devices",
                          parts, (long long)o->layers);
    weft__gpt_keep(model->module, o->layers * part / parts, o->layers * (part + 1) / parts);
    return WEFT_OK;
}

weft_status weft__model_merge(weft__model *model, const weft__config *config) {
    weft_parameter_info first;
    if (config->lora_rank == 0 || model->packed || !weft_parameter_get(model->module, 0, &first))
        return WEFT_OK;
    return weft_dtype_of(first.tensor) == WEFT_F32 ? weft_gpt_merge_lora(model->module) : WEFT_OK;
}
