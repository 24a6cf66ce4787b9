/* weft quantize: writes a published model as a GGUF file with smaller weights, and compares the two. Must not
 * know: how weights are packed (published/quantize.h). Read next: published/gguf_save.c. */
#include <math.h>
#include <string.h>

#include <weft/published.h>

#include "cli/cli.h"
#include "io/publish.h"
#include "published/published.h"
#include "published/quantize.h"
#include "published/tensors.h"
#include "train/dataset/dataset.h"
#include "train/export/export.h"
#include "train/report/scores.h"
#include "train/run/output.h"
#include "train/run/opened_model.h"

#define PATH_BYTES 4096

typedef struct quantizing {
    const char *model, *to, *out, *data, *device;
    bool force;
} quantizing;

/* ---- size ---- */

/* Counts the weights of a model, and their bytes in its files. */
static weft_status measure_size(const char *path, double *weights, double *bytes) {
    weft__tensors *tensors;
    weft__tensor_at at;
    *weights = *bytes = 0;
    WEFT_TRY(weft__tensors_open(NULL, path, &tensors));
    for (size_t i = 0; weft__tensors_get(tensors, i, &at); i++) {
        double count = 1;
        for (int j = 0; j < at.rank; j++) count *= (double)at.shape[j];
        *weights += count;
        *bytes += (double)at.row_bytes * (at.rank ? (double)at.shape[0] : 1);
    }
    weft__tensors_close(tensors);
    return WEFT_OK;
}

static weft_status tell_size(const char *path, const char *when) {
    double weights, bytes;
    WEFT_TRY(measure_size(path, &weights, &bytes));
    weft__print(stdout, "%-7s %10.1f MB of weights, %5.2f bits each  %s\n", when, bytes / 1e6,
                weights > 0 ? 8 * bytes / weights : 0, path);
    return WEFT_OK;
}

/* ---- perplexity ---- */

static weft_status measure_open(const weft__opened_model *opened, double *perplexity) {
    weft_loader *loader = NULL;
    weft__scores scores = {0};
    WEFT_TRY(weft__dataset_loader(opened->model.ctx, &opened->dataset, &opened->config, WEFT__VALIDATION, 0,
                                  &loader));
    const weft_status status = weft__scores_take(&opened->model, &opened->dataset, loader, false, &scores);
    weft_loader_free(loader);
    *perplexity = exp(scores.loss);
    weft__scores_free(&scores);
    return status;
}

/* Both models read the text by the tokenizer of the first, so that their tokens are the same. */
static weft_status measure_text(const quantizing *q, const char *path, double *perplexity) {
    weft__opened_model opened;
    const weft__opened_model_options how = {.device = q->device,
                                            .precision = WEFT__AS_COMPUTED,
                                            .with_data = true,
                                            .data = q->data,
                                            .tokenizer = q->model};
    weft_status status = weft__opened_model_open(path, &how, &opened);
    if (status == WEFT_OK && !weft__dataset_has(&opened.dataset, WEFT__VALIDATION))
        status =
            weft__fail(NULL, WEFT_ERR_FORMAT, "%s: the text is too short to measure a perplexity", q->data);
    if (status == WEFT_OK) status = measure_open(&opened, perplexity);
    weft__opened_model_close(&opened);
    return status;
}

/* ---- the command ---- */

/* Writes the path of the new file: --out, or NAME-FORMAT.gguf in the working folder. */
static weft_status new_path(const quantizing *q, char path[PATH_BYTES]) {
    size_t end = strlen(q->model);
    while (end > 1 && q->model[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && q->model[begin - 1] != '/') begin--;
    if (end - begin > 5 && strncmp(q->model + end - 5, ".gguf", 5) == 0) end -= 5;
    const int n =
        q->out ? snprintf(path, PATH_BYTES, "%s", q->out)
               : snprintf(path, PATH_BYTES, "%.*s-%s.gguf", (int)(end - begin), q->model + begin, q->to);
    if (n > 0 && n < PATH_BYTES) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%.60s...: the path is too long", q->out ? q->out : q->model);
}

static bool quantized(const char *path) { return weft__gguf_made_by(path, "quantize"); }

static weft_status run_quantize(const quantizing *q) {
    weft__output output = {.command = "quantize", .force = q->force, .wrote = quantized};
    char path[PATH_BYTES];
    double before = 0, after = 0;
    WEFT_TRY(new_path(q, path));
    weft__output_reads(&output, q->model);
    weft__output_reads(&output, q->data);
    WEFT_TRY(weft__output_file(&output, path));
    if (q->data && weft__is_stream(path))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "quantize: --data: %s cannot be read back: name a file",
                          path);
    WEFT_TRY(tell_size(q->model, "before"));
    if (q->data) WEFT_TRY(measure_text(q, q->model, &before));
    WEFT_TRY(weft__export_files(q->model, path, q->to));
    if (weft__is_stream(path)) return WEFT_OK;
    WEFT_TRY(tell_size(path, "after"));
    if (q->data) WEFT_TRY(measure_text(q, path, &after));
    if (q->data)
        weft__print(stdout, "perplexity %.4f before, %.4f after, on %s\n", before, after, q->data);
    else
        weft__print(stdout, "perplexity not measured: name a text with --data\n");
    return WEFT_OK;
}

/* Checks what is asked for. Complains about the first mistake. */
static bool check_quantizing(const quantizing *q) {
    char known[128];
    weft__format format;
    weft__format_words(known, sizeof known);
    if (!q->to || !weft__format_find(q->to, &format))
        weft__complain("quantize: --to %s: give %s", q->to ? q->to : "is missing", known);
    else if (weft__is_run(q->model))
        weft__complain("quantize: %s is a run: use weft export %s --to gguf --type %s", q->model, q->model,
                       q->to);
    else if (!weft_published_is(q->model))
        weft__complain("quantize: %s is no published model: it has no config.json, and is no GGUF file",
                       q->model);
    else
        return true;
    return false;
}

int weft__command_quantize(const weft__command *command, int argc, char **argv) {
    quantizing q = {0};
    int code = 0;
    const weft__option options[] = {
        {"MODEL", WEFT__OPTION_ARG, &q.model, "a published model: its folder, or a GGUF file"},
        {"--to FORMAT", WEFT__OPTION_TEXT, &q.to,
         "the type of the weights: f32, f16, bf16, q8_0, q6_k, q5_0, q4_k or q4_0"},
        {"--out FILE", WEFT__OPTION_TEXT, &q.out, "the new file; default: MODEL-FORMAT.gguf in this folder"},
        {"--data FILE", WEFT__OPTION_TEXT, &q.data, "a text file on which --device measures the perplexity"},
        WEFT__ANY_DEVICE_OPTION(&q.device),
        WEFT__FORCE_OPTION(&q.force),
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (!check_quantizing(&q)) return WEFT__EXIT_USAGE;
    const weft_status status = run_quantize(&q);
    return status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
}
