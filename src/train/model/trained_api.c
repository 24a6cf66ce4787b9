/* Trained models for C programs: include/weft/run.h. Must not know: how models are built and data read. Read
 * next: trained.c, predict.c. */
#include <string.h>

#include <weft/run.h>

#include "train/model/predict.h"
#include "train/model/trained.h"

struct weft_run {
    weft_context *ctx;
    weft__config config;
    weft__dataset dataset;
    weft__model model;
    weft_decode_state *cache; /* made by the first weft_run_generate */
    uint64_t step;
};

/* ---- life ---- */

static weft_status run_load(weft_run *run, const char *folder, const char *checkpoint, bool trusted) {
    weft_context *ctx = run->ctx;
    WEFT_TRY(weft__trained_config(folder, trusted, &run->config));
    WEFT_TRY(weft__config_resolve(&run->config));
    WEFT_TRY(weft__dataset_describe(ctx, &run->config, folder, &run->dataset));
    WEFT_TRY(weft__model_build(ctx, &run->config, &run->dataset, NULL, &run->model));
    WEFT_TRY(weft__model_use(&run->model, &run->config, folder, checkpoint, false, &run->step));
    weft_module_set_training(run->model.module, false);
    return weft__model_merge(&run->model, &run->config);
}

static weft_status run_open(weft_context *ctx, const char *folder, const char *checkpoint, bool trusted,
                            weft_run **out) {
    weft_run *run = weft__zalloc(ctx, sizeof *run);
    if (!run) return weft__fail_oom(ctx, sizeof *run, "a run");
    run->ctx = ctx;
    weft__config_init(&run->config);
    const weft_status status = run_load(run, folder, checkpoint, trusted);
    if (status == WEFT_OK) {
        *out = run;
        return WEFT_OK;
    }
    weft_run_close(run);
    return weft__fail(ctx, status, "%s", weft_last_error(NULL)); /* configurations know no context */
}

weft_status weft_run_open(weft_context *ctx, const char *folder, weft_run **out) {
    WEFT_NEED(NULL, ctx);
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, folder);
    return run_open(ctx, folder, NULL, false, out);
}

weft_status weft_run_open_checkpoint(weft_context *ctx, const char *folder, const char *checkpoint,
                                     weft_run **out) {
    WEFT_NEED(NULL, ctx);
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, folder);
    return run_open(ctx, folder, checkpoint, false, out);
}

weft_status weft_run_open_trusted(weft_context *ctx, const char *folder, const char *checkpoint,
                                  weft_run **out) {
    WEFT_NEED(NULL, ctx);
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, folder);
    return run_open(ctx, folder, checkpoint, true, out);
}

void weft_run_close(weft_run *run) {
    if (!run) return;
    weft_decode_state_free(run->cache);
    weft_module_free(run->model.module);
    weft__dataset_free(run->ctx, &run->dataset);
    weft__config_free(&run->config);
    weft__free(run->ctx, run);
}

/* ---- what was trained ---- */

weft_run_task weft_run_task_of(const weft_run *run) {
    if (!run || run->dataset.task == WEFT__TASK_CLASSIFICATION) return WEFT_RUN_CLASSES;
    return run->dataset.task == WEFT__TASK_REGRESSION ? WEFT_RUN_NUMBERS : WEFT_RUN_TEXT;
}

uint64_t weft_run_step(const weft_run *run) { return run ? run->step : 0; }
int64_t weft_run_inputs(const weft_run *run) { return run ? run->dataset.features : 0; }
int64_t weft_run_outputs(const weft_run *run) { return run ? run->dataset.outputs : 0; }

const char *weft_run_class_name(const weft_run *run, int64_t index) {
    return run && run->dataset.classes && index >= 0 && index < run->dataset.outputs
               ? run->dataset.classes[index]
               : NULL;
}

/* Returns the i-th column that the model reads; NULL if there is none. */
static const weft__column *column_at(const weft_run *run, int64_t index) {
    for (size_t i = 0; run && i < run->dataset.table.kinds.count; i++)
        if (run->dataset.table.kinds.list[i].kind != WEFT__COLUMN_NONE && index-- == 0)
            return &run->dataset.table.kinds.list[i];
    return NULL;
}

int64_t weft_run_columns(const weft_run *run) {
    int64_t count = 0;
    if (run && run->dataset.texts.rows) return (int64_t)run->dataset.texts.count;
    while (column_at(run, count)) count++;
    return count;
}

const char *weft_run_column_name(const weft_run *run, int64_t index) {
    if (run && run->dataset.texts.rows)
        return index >= 0 && (size_t)index < run->dataset.texts.count ? run->dataset.texts.columns[index]
                                                                      : NULL;
    const weft__column *c = index >= 0 ? column_at(run, index) : NULL;
    return c ? c->name : NULL;
}

weft_module *weft_run_module(const weft_run *run) { return run ? run->model.module : NULL; }

const weft_tokenizer *weft_run_tokenizer(const weft_run *run) {
    return run ? weft__dataset_tokenizer(&run->dataset) : NULL;
}

/* ---- use ---- */

/* Checks that the model predicts, and the number of inputs. */
static weft_status run_check(const weft_run *run, int64_t n) {
    WEFT_TRY(weft__model_predicts(&run->model, &run->dataset));
    if (n >= 0 && n <= INT64_MAX / (run->dataset.features + run->dataset.outputs + 1) / 16) return WEFT_OK;
    return weft__fail(run->ctx, WEFT_ERR_ARGUMENT, "weft_run_predict: there cannot be %lld inputs",
                      (long long)n);
}

weft_status weft_run_predict(weft_run *run, const double *rows, int64_t n, double *answers) {
    weft__inputs inputs = {0};
    WEFT_NEED(NULL, run);
    WEFT_TRY(run_check(run, n));
    WEFT_NEED_ARRAY(run->ctx, rows, n);
    WEFT_NEED_ARRAY(run->ctx, answers, n);
    if (run->dataset.scaling.factor != 0)
        return weft__fail(run->ctx, WEFT_ERR_ARGUMENT,
                          "weft_run_predict: the model learned from pixels: use weft_run_predict_pixels, or "
                          "weft_run_predict_file for image files");
    if (run->dataset.texts.rows)
        return weft__fail(run->ctx, WEFT_ERR_ARGUMENT,
                          "weft_run_predict: the model learned from texts: use weft_run_predict_cells, or "
                          "weft_run_predict_file for a file");
    if (!weft__columns_plain(&run->dataset.table.kinds))
        return weft__fail(run->ctx, WEFT_ERR_ARGUMENT,
                          "weft_run_predict: not all columns are numbers: use weft_run_predict_cells, or "
                          "weft_run_predict_file for a csv file");
    if (n == 0) return WEFT_OK;
    WEFT_TRY(weft__dataset_rows(run->ctx, &run->dataset, rows, n, &inputs.x));
    const weft_status status = weft__model_predict(&run->model, &run->dataset, &inputs, answers);
    weft__inputs_free(run->ctx, &inputs);
    return status;
}

weft_status weft_run_predict_cells(weft_run *run, const char *const *cells, int64_t n, double *answers) {
    weft__inputs inputs = {0};
    WEFT_NEED(NULL, run);
    WEFT_TRY(run_check(run, n));
    const int64_t columns = weft_run_columns(run);
    if (columns == 0)
        return weft__fail(run->ctx, WEFT_ERR_ARGUMENT,
                          "weft_run_predict_cells: the model did not learn from a csv file: use "
                          "weft_run_predict, or weft_run_predict_pixels for images");
    if (n > PTRDIFF_MAX / 16 / columns)
        return weft__fail(run->ctx, WEFT_ERR_ARGUMENT, "weft_run_predict_cells: %lld rows are too many",
                          (long long)n);
    WEFT_NEED_ARRAY(run->ctx, cells, n * columns);
    WEFT_NEED_ARRAY(run->ctx, answers, n);
    for (int64_t i = 0; i < n * columns; i++)
        if (!cells[i])
            return weft__fail(run->ctx, WEFT_ERR_ARGUMENT,
                              "weft_run_predict_cells: row %lld, column %s is NULL: \"\" is a missing cell",
                              (long long)(i / columns), weft_run_column_name(run, i % columns));
    if (n == 0) return WEFT_OK;
    WEFT_TRY(weft__dataset_cells(run->ctx, &run->dataset, &run->config, cells, n, &inputs));
    const weft_status status = weft__model_predict(&run->model, &run->dataset, &inputs, answers);
    weft__inputs_free(run->ctx, &inputs);
    return status;
}

weft_status weft_run_predict_pixels(weft_run *run, const uint8_t *pixels, int64_t n, double *answers) {
    WEFT_NEED(NULL, run);
    WEFT_TRY(run_check(run, n));
    WEFT_NEED_ARRAY(run->ctx, pixels, n);
    WEFT_NEED_ARRAY(run->ctx, answers, n);
    if (run->dataset.scaling.factor == 0)
        return weft__fail(run->ctx, WEFT_ERR_ARGUMENT,
                          "weft_run_predict_pixels: the model learned from numbers: use weft_run_predict");
    if (n == 0) return WEFT_OK;
    const weft__inputs inputs = {.x = {.dtype = WEFT_U8,
                                       .rank = 2,
                                       .shape = {n, run->dataset.features},
                                       .data = (void *)(uintptr_t)pixels}};
    return weft__model_predict(&run->model, &run->dataset, &inputs, answers);
}

weft_status weft_run_predict_file(weft_run *run, const char *path, weft_predictions *out) {
    weft__inputs inputs = {0};
    WEFT_NEED(NULL, run);
    WEFT_NEED(run->ctx, path);
    WEFT_NEED(run->ctx, out);
    *out = (weft_predictions){.outputs = run->dataset.outputs, .ctx = run->ctx};
    WEFT_TRY(weft__model_predicts(&run->model, &run->dataset));
    weft_status status = weft__dataset_inputs(run->ctx, &run->dataset, &run->config, path, &inputs);
    if (status == WEFT_OK) {
        out->count = inputs.x.shape[0];
        out->values = weft__array(run->ctx, (size_t)out->count * (size_t)out->outputs, sizeof *out->values);
        status = out->values ? weft__model_predict(&run->model, &run->dataset, &inputs, out->values)
                             : weft__fail_oom(run->ctx, (size_t)out->count * 4, "predictions");
    }
    out->files = inputs.files;
    inputs.files = NULL;
    weft__inputs_free(run->ctx, &inputs);
    if (status != WEFT_OK) weft_predictions_free(out);
    return status;
}

void weft_predictions_free(weft_predictions *predictions) {
    if (!predictions) return;
    weft__free(predictions->ctx, predictions->values);
    weft__free(predictions->ctx, predictions->files);
    *predictions = (weft_predictions){0};
}

/* WEFT_OK if the run's model is a language model. */
static weft_status run_generates(const weft_run *run, const char *name) {
    if (run->dataset.task == WEFT__TASK_LANGUAGE_MODEL) return WEFT_OK;
    return weft__fail(run->ctx, WEFT_ERR_ARGUMENT,
                      "%s: the run's model is not a language model: use weft_run_predict", name);
}

weft_status weft_run_generate(weft_run *run, const weft_generate_options *options, weft_text_fn emit,
                              void *user) {
    WEFT_NEED(NULL, run);
    WEFT_NEED(run->ctx, emit);
    weft_generate_options wanted = options ? *options : (weft_generate_options){0};
    WEFT_TRY(run_generates(run, "weft_run_generate"));
    if (!run->cache) run->cache = weft_decode_state_new(run->model.module);
    if (!run->cache) return weft_last_status(run->ctx);
    wanted.vocabulary = run->model.tokens;
    return weft_generate(run->cache, weft__dataset_tokenizer(&run->dataset), &wanted, emit, user);
}

weft_status weft_run_generate_many(weft_run *run, const weft_generate_options *options, size_t count,
                                   int64_t rows, weft_generated_fn done, void *user) {
    WEFT_NEED(NULL, run);
    WEFT_NEED_ARRAY(run->ctx, options, count);
    WEFT_NEED(run->ctx, done);
    WEFT_TRY(run_generates(run, "weft_run_generate_many"));
    weft_generate_options *wanted = weft__array(run->ctx, count + (count == 0), sizeof *wanted);
    if (!wanted) return weft__fail_oom(run->ctx, count * sizeof *wanted, "the options of texts");
    for (size_t i = 0; i < count; i++) {
        wanted[i] = options[i];
        wanted[i].vocabulary = run->model.tokens;
    }
    const weft_status status = weft_generate_many(run->model.module, weft__dataset_tokenizer(&run->dataset),
                                                  wanted, count, rows, done, user);
    weft__free(run->ctx, wanted);
    return status;
}
