/* Opens trained models. Must not know: what they are used for. Read next: src/cli/generate.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/run_dir.h"
#include "train/use.h"

static void on_log(void *user, weft_log_level level, const char *message) {
    (void)user;
    if (level >= WEFT_LOG_WARNING) fprintf(stderr, "weft: %s\n", message);
}

weft_status weft__use_config(const char *run, const char *device, weft__config *config) {
    char path[4096];
    const char *environment = getenv("WEFT_DEVICE");
    if (!weft__is_run(run) || !weft__join(path, sizeof path, run, "config.yaml"))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "%s: no run folder (it has no config.yaml); 'weft runs' lists them", run);
    WEFT_TRY(weft__config_read(config, path));
    if (device) return weft__config_put(config, WEFT__KEY_device, device, WEFT__ORIGIN_FLAG, "--device");
    if (environment && environment[0])
        return weft__config_put(config, WEFT__KEY_device, environment, WEFT__ORIGIN_ENVIRONMENT,
                                "WEFT_DEVICE");
    return WEFT_OK;
}

weft_status weft__use_open(const char *run, const char *device, const char *precision, bool with_data,
                           weft__use *use) {
    weft_context *ctx = NULL;
    memset(use, 0, sizeof *use);
    WEFT_TRY(weft__use_config(run, device, &use->config));
    WEFT_TRY(weft__config_resolve(&use->config));
    WEFT_TRY(weft__model_open_context(&use->config, on_log, NULL, &ctx));
    use->model.ctx = ctx;
    if (with_data)
        WEFT_TRY(weft__dataset_read(ctx, &use->config, run, &use->dataset));
    else
        WEFT_TRY(weft__dataset_describe(ctx, &use->config, run, &use->dataset));
    WEFT_TRY(weft__model_build(ctx, &use->config, &use->dataset, precision, &use->model));
    WEFT_TRY(weft__model_load(&use->model, &use->config, NULL, run, false, &use->step));
    weft_train(use->model.module, false);
    return WEFT_OK;
}

void weft__use_close(weft__use *use) {
    if (use->model.ctx) weft__dataset_free(use->model.ctx, &use->dataset);
    weft_close(use->model.ctx);
    weft__config_free(&use->config);
    memset(use, 0, sizeof *use);
}
