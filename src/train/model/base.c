/* The base of a run with adapters, see base.h. Must not know: adapters. Read next: trained.c. */
#include <string.h>
#include <unistd.h>

#include <weft/published.h>

#include "io/sealed.h"
#include "published/tensors.h"
#include "train/model/base.h"

#define BASE_FILE "base.json"

weft_status weft__base_save(const weft__config *config, const char *run) {
    char sum[WEFT__SUM_TEXT];
    weft__json json;
    if (config->lora_rank == 0) return WEFT_OK;
    WEFT_TRY(weft__tensors_sum(NULL, config->model_init, sum));
    weft__json_build(&json, NULL);
    return weft__sealed_write(run, BASE_FILE, &json,
                              json_pack("{s:s, s:s}", "model", config->model_init, "weights", sum),
                              JSON_INDENT(1));
}

/* Compares the weights at model.init with those that the run began with. */
static weft_status base_check(weft_context *ctx, const weft__config *config, const char *run) {
    char sum[WEFT__SUM_TEXT], word[WEFT__SUM_TEXT] = "";
    weft__json json;
    json_t *root;
    weft_status status = weft__sealed_read(ctx, run, BASE_FILE, &json, &root);
    const char *expected = status == WEFT_OK ? json_string_value(json_object_get(root, "weights")) : NULL;
    if (expected) strncpy(word, expected, sizeof word - 1);
    weft__json_close(&json);
    if (status == WEFT_ERR_STATE)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s/" BASE_FILE ": missing: the run folder is incomplete",
                          run);
    WEFT_TRY(status);
    if (access(config->model_init, R_OK) != 0)
        return weft__fail(ctx, WEFT_ERR_IO,
                          "%s: missing: the run %s holds only adapters for this model (model.init): put the "
                          "model back, or name its new place in the run's config.yaml",
                          config->model_init, run);
    WEFT_TRY(weft__tensors_sum(ctx, config->model_init, sum));
    if (strcmp(sum, word) == 0) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: the weights have the checksum %s, but the adapters of %s were trained for weights "
                      "with %s: put the former model back",
                      config->model_init, sum, run, word);
}

weft_status weft__base_load(weft__model *model, const weft__config *config, const char *run) {
    WEFT_TRY(base_check(model->ctx, config, run));
    return weft__model_init(model, config);
}
