/* Opens trained models. Must not know: what they are used for. Read next: src/cli/generate.c. */
#include <stdlib.h>
#include <string.h>

#include "train/model/reference.h"
#include "train/model/trained.h"
#include "train/print.h"
#include "train/run/progress.h"
#include "train/run/training.h"
#include "train/run/opened_model.h"

#define MANY_STEPS (UINT64_C(1) << 40) /* steps of the schedule; more than any warm-up */

bool weft__opened_model_trusts;

weft_status weft__opened_model_config(const char *run, const char *device, weft__config *config) {
    const char *environment = getenv("WEFT_DEVICE");
    WEFT_TRY(weft__trained_config(run, weft__opened_model_trusts, config));
    if (device) return weft__config_put(config, WEFT__KEY_device, device, WEFT__ORIGIN_FLAG, "--device");
    if (environment && environment[0])
        return weft__config_put(config, WEFT__KEY_device, environment, WEFT__ORIGIN_ENVIRONMENT,
                                "WEFT_DEVICE");
    return WEFT_OK;
}

/* Reads the data, or only their description. */
static weft_status take_data(weft__opened_model *opened, const char *run, bool whole) {
    return (whole ? weft__dataset_read : weft__dataset_describe)(NULL, &opened->config, run,
                                                                 &opened->dataset);
}

static weft_status choose(weft__opened_model *opened, bool with_data) {
    const bool decodes = !with_data && opened->config.task == WEFT__TASK_LANGUAGE_MODEL;
    WEFT_TRY(weft__auto_choose(&opened->config, &opened->dataset, decodes ? WEFT__TO_DECODE : WEFT__TO_APPLY,
                               &opened->choice));
    weft__print(stderr, "device %s, as auto chooses: %s\n", opened->choice.device, opened->choice.why);
    return WEFT_OK;
}

/* Takes the reference of preferences from the run. run NULL: for new data, the published model computes it.
 */
static weft_status use_reference(weft__opened_model *opened, const char *run) {
    if (run) return weft__reference_load(opened->model.ctx, &opened->dataset, run);
    WEFT_TRY(weft__model_init(&opened->model, &opened->config));
    return weft__reference_compute(&opened->model, &opened->config, WEFT__VALIDATION, &opened->dataset);
}

/* interp unpacks a matrix by elementwise ops each time. */
bool weft__opened_model_packs(const weft_context *ctx) { return strcmp(weft_device_of(ctx), "interp") != 0; }

weft_status weft__opened_model_open(const char *run, const weft__opened_model_options *options,
                                    weft__opened_model *opened) {
    const char *precision = options->precision;
    const bool with_data = options->with_data;
    weft_context *ctx = NULL;
    memset(opened, 0, sizeof *opened);
    WEFT_TRY(weft__opened_model_config(run, options->device, &opened->config));
    if (options->tokenizer)
        WEFT_TRY(weft__config_put(&opened->config, WEFT__KEY_data_tokenizer_path, options->tokenizer,
                                  WEFT__ORIGIN_FLAG, "the tokenizer"));
    WEFT_TRY(weft__config_resolve(&opened->config));
    if (options->data) WEFT_TRY(weft__config_new_data(&opened->config, options->data, options->labels));
    if (precision && !precision[0]) precision = weft__model_rounded(&opened->config);
    const bool chooses = weft__auto_chooses(&opened->config);
    if (chooses) WEFT_TRY(take_data(opened, run, with_data));
    if (chooses) WEFT_TRY(choose(opened, with_data));
    WEFT_TRY(weft__model_open_threads(&opened->config, opened->choice.device, options->threads,
                                      weft__show_log, NULL, &ctx));
    opened->model.ctx = ctx;
    const bool holds = !weft__is_run(run) ||
                       (opened->config.lora_rank > 0 && opened->config.lora_weights == WEFT__LORA_PACKED);
    opened->config.packed = options->packed && holds && weft__opened_model_packs(ctx);
    if (!chooses) WEFT_TRY(take_data(opened, run, with_data));
    WEFT_TRY(weft__model_build(ctx, &opened->config, &opened->dataset, precision, &opened->model));
    if (options->parts > 1) WEFT_TRY(weft__model_keep(&opened->model, options->part, options->parts));
    if (options->trains) WEFT_TRY(weft__model_optimizer(&opened->model, &opened->config, MANY_STEPS));
    if (with_data && opened->dataset.chats.pairs) WEFT_TRY(use_reference(opened, options->data ? NULL : run));
    WEFT_TRY(weft__model_use(&opened->model, &opened->config, run, options->checkpoint, options->trains,
                             &opened->step));
    weft_module_set_training(opened->model.module, false);
    return options->trains || options->adapters ? WEFT_OK
                                                : weft__model_merge(&opened->model, &opened->config);
}

void weft__opened_model_close(weft__opened_model *opened) {
    weft__dataset_free(NULL, &opened->dataset);
    weft_close(opened->model.ctx);
    weft__config_free(&opened->config);
    memset(opened, 0, sizeof *opened);
}
