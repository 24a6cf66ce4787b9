/* weft predict: applies a trained model of rows or images to a file. Prints one line per row. Must not know:
 * formats of data (train/dataset). Read next: train/model/use.c. */
#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "train/model/use.h"

#define BATCH 256

/* Returns how many numbers the model gives for each sample: one logit for two classes. */
static size_t width_of(const weft__use *use) {
    return use->model.loss == WEFT_LOSS_BCE ? 1 : (size_t)use->dataset.outputs;
}

/* Prints a name unchanged if standard output is a file or a pipe, because programs read it too. */
static void print_name(const char *name) { weft__print_text(stdout, name, strlen(name)); }

static void print_class(const weft__use *use, const float *logits) {
    const float both[2] = {0, logits[0]};
    int64_t best = 0;
    double sum = 0;
    if (width_of(use) == 1) logits = both;
    for (int64_t i = 1; i < use->dataset.outputs; i++)
        if (logits[i] > logits[best]) best = i;
    for (int64_t i = 0; i < use->dataset.outputs; i++) sum += exp((double)(logits[i] - logits[best]));
    if (use->dataset.classes)
        print_name(use->dataset.classes[best]);
    else
        weft__print(stdout, "%lld", (long long)best);
    weft__print(stdout, "\t%.4f\n", 1 / sum);
}

static void print_numbers(const weft__use *use, const float *values) {
    for (int64_t i = 0; i < use->dataset.outputs; i++)
        weft__print(stdout, "%s%.7g", i ? "\t" : "", (double)values[i]);
    weft__print(stdout, "\n");
}

static weft_status predict_batch(weft__use *use, weft_loader *loader, int64_t b, char *const *files,
                                 float *out, int64_t *left) {
    weft_batch batch;
    size_t outputs = width_of(use), rows = (size_t)weft_loader_batch_size(loader);
    WEFT_TRY(weft_loader_get(loader, (uint64_t)b, &batch));
    WEFT_TRY(weft_read(weft_forward(use->model.module, batch.x), out, rows * outputs * sizeof *out));
    if (use->config.task == WEFT__TASK_REGRESSION) weft__dataset_unscale(&use->dataset, out, (int64_t)rows);
    for (size_t i = 0; i < rows && left[0] > 0; i++, left[0]--) {
        if (files) {
            print_name(files[(size_t)b * rows + i]);
            putchar('\t');
        }
        if (use->config.task == WEFT__TASK_CLASSIFICATION)
            print_class(use, out + i * outputs);
        else
            print_numbers(use, out + i * outputs);
    }
    return WEFT_OK;
}

static weft_status predict(weft__use *use, const weft_array *x, char *const *files) {
    weft_context *ctx = use->model.ctx;
    weft_loader *loader = NULL;
    int64_t left = x->shape[0];
    const weft_loader_options options = {.batch = left < BATCH ? left : BATCH,
                                         .in_order = true,
                                         .scale = use->dataset.scale,
                                         .images = weft__dataset_images(&use->dataset)};
    WEFT_TRY(weft_loader_new(ctx, x, NULL, &options, &loader));
    float *out = weft__array(ctx, (size_t)options.batch * (size_t)use->dataset.outputs, sizeof *out);
    weft_status status = out ? WEFT_OK : weft__fail_oom(ctx, 0, "predictions");
    for (int64_t b = 0; status == WEFT_OK && b < weft_loader_batches(loader); b++) {
        weft_scope *scope = weft_scope_open(ctx);
        status = scope ? predict_batch(use, loader, b, files, out, &left) : weft__fail_oom(ctx, 0, "a scope");
        weft_scope_close(scope);
    }
    weft__free(ctx, out);
    weft_loader_free(loader);
    return status;
}

int weft__command_predict(const weft__command *command, int argc, char **argv) {
    const char *dir = NULL, *input = NULL, *device = NULL, *checkpoint = NULL;
    int code = 0;
    const weft__option options[] = {
        {"DIR", WEFT__OPTION_ARG, &dir, "the folder of the run"},
        {"INPUT", WEFT__OPTION_ARG, &input,
         "a file with rows like those of the training data; for images a file or a folder"},
        WEFT__CHECKPOINT_OPTION(&checkpoint),
        {"--device D", WEFT__OPTION_TEXT, &device, "another device than the run's"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    weft__use use;
    weft_array x = {0};
    char **files = NULL;
    weft_status status =
        weft__use_open(dir, &(weft__use_options){.device = device, .checkpoint = checkpoint}, &use);
    if (status == WEFT_OK && use.config.task == WEFT__TASK_LANGUAGE_MODEL)
        status = weft__fail(NULL, WEFT_ERR_ARGUMENT,
                            "predict: the run's model is a language model: use 'weft generate'");
    if (status == WEFT_OK)
        status = weft__dataset_inputs(use.model.ctx, &use.dataset, &use.config, input, &x, &files);
    if (status == WEFT_OK) status = predict(&use, &x, files);
    code = status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
    if (use.model.ctx) weft_array_free(use.model.ctx, &x);
    if (use.model.ctx) weft__free(use.model.ctx, files);
    weft__use_close(&use);
    return code;
}
