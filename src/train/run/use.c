/* Opens trained models. Must not know: what they are used for. Read next: src/cli/generate.c. */
#include <stdlib.h>
#include <string.h>

#include "train/model/reference.h"
#include "train/model/trained.h"
#include "train/print.h"
#include "train/run/progress.h"
#include "train/run/training.h"
#include "train/run/use.h"

#define MANY_STEPS (UINT64_C(1) << 40) /* steps of the schedule; more than any warm-up */

bool weft__use_trusts;

weft_status weft__use_config(const char *run, const char *device, weft__config *config) {
    const char *environment = getenv("WEFT_DEVICE");
    WEFT_TRY(weft__trained_config(run, weft__use_trusts, config));
    if (device) return weft__config_put(config, WEFT__KEY_device, device, WEFT__ORIGIN_FLAG, "--device");
    if (environment && environment[0])
        return weft__config_put(config, WEFT__KEY_device, environment, WEFT__ORIGIN_ENVIRONMENT,
                                "WEFT_DEVICE");
    return WEFT_OK;
}

/* Reads the data, or only their description. */
static weft_status take_data(weft__use *use, const char *run, bool whole) {
    return (whole ? weft__dataset_read : weft__dataset_describe)(NULL, &use->config, run, &use->dataset);
}

static weft_status choose(weft__use *use, bool with_data) {
    const bool decodes = !with_data && use->config.task == WEFT__TASK_LANGUAGE_MODEL;
    WEFT_TRY(weft__auto_choose(&use->config, &use->dataset, decodes ? WEFT__TO_DECODE : WEFT__TO_APPLY,
                               &use->choice));
    weft__print(stderr, "device %s, as auto chooses: %s\n", use->choice.device, use->choice.why);
    return WEFT_OK;
}

/* Takes the reference of preferences from the run. run NULL: for new data, the published model computes it.
 */
static weft_status use_reference(weft__use *use, const char *run) {
    if (run) return weft__reference_load(use->model.ctx, &use->dataset, run);
    WEFT_TRY(weft__model_init(&use->model, &use->config));
    return weft__reference_compute(&use->model, &use->config, WEFT__VALIDATION, &use->dataset);
}

/* interp unpacks a matrix by elementwise ops each time. */
bool weft__use_packs(const weft_context *ctx) { return strcmp(weft_device_of(ctx), "interp") != 0; }

weft_status weft__use_open(const char *run, const weft__use_options *options, weft__use *use) {
    const char *precision = options->precision;
    const bool with_data = options->with_data;
    weft_context *ctx = NULL;
    memset(use, 0, sizeof *use);
    WEFT_TRY(weft__use_config(run, options->device, &use->config));
    if (options->tokenizer)
        WEFT_TRY(weft__config_put(&use->config, WEFT__KEY_data_tokenizer_path, options->tokenizer,
                                  WEFT__ORIGIN_FLAG, "the tokenizer"));
    WEFT_TRY(weft__config_resolve(&use->config));
    if (options->data) WEFT_TRY(weft__config_new_data(&use->config, options->data, options->labels));
    if (precision && !precision[0]) precision = weft__model_rounded(&use->config);
    const bool chooses = weft__auto_chooses(&use->config);
    if (chooses) WEFT_TRY(take_data(use, run, with_data));
    if (chooses) WEFT_TRY(choose(use, with_data));
    WEFT_TRY(weft__model_open_threads(&use->config, use->choice.device, options->threads, weft__show_log,
                                      NULL, &ctx));
    use->model.ctx = ctx;
    const bool holds =
        !weft__is_run(run) || (use->config.lora_rank > 0 && use->config.lora_weights == WEFT__LORA_PACKED);
    use->config.packed = options->packed && holds && weft__use_packs(ctx);
    if (!chooses) WEFT_TRY(take_data(use, run, with_data));
    WEFT_TRY(weft__model_build(ctx, &use->config, &use->dataset, precision, &use->model));
    if (options->parts > 1) WEFT_TRY(weft__model_keep(&use->model, options->part, options->parts));
    if (options->trains) WEFT_TRY(weft__model_optimizer(&use->model, &use->config, MANY_STEPS));
    if (with_data && use->dataset.chats.pairs) WEFT_TRY(use_reference(use, options->data ? NULL : run));
    WEFT_TRY(
        weft__model_use(&use->model, &use->config, run, options->checkpoint, options->trains, &use->step));
    weft_module_set_training(use->model.module, false);
    return options->trains || options->adapters ? WEFT_OK : weft__model_merge(&use->model, &use->config);
}

void weft__use_close(weft__use *use) {
    weft__dataset_free(NULL, &use->dataset);
    weft_close(use->model.ctx);
    weft__config_free(&use->config);
    memset(use, 0, sizeof *use);
}
