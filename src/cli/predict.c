/* weft predict: applies a trained model of rows or images to files. Prints a table: one line for each row or
 * image, with a header. Must not know: formats of data (train/dataset). Read next: predict_table.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/data.h>
#include <weft/io.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/predict.h"
#include "io/publish.h"
#include "train/model/predict.h"
#include "train/run/copies.h"
#include "train/run/output.h"

/* ---- standard input ---- */

static void drop_standard_input(const char *path) {
    unlink(path);
    weft__temporary_end(path);
}

/* Copies standard input to a file that *path names, because readers read a file more than once. */
static weft_status take_standard_input(char path[4096]) {
    static char piece[1 << 16];
    const char *folder = getenv("TMPDIR");
    if (!weft__join(path, 4096, folder && folder[0] ? folder : "/tmp", "weft-standard-input-XXXXXX"))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "TMPDIR: the path is too long");
    weft__output_catch_stops();
    const int file = mkstemp(path);
    if (file < 0) return weft__fail(NULL, WEFT_ERR_IO, "%s: %s", path, strerror(errno));
    weft__temporary_begin(AT_FDCWD, path);
    size_t bytes;
    bool written = true;
    while (written && (bytes = fread(piece, 1, sizeof piece, stdin)) > 0)
        written = write(file, piece, bytes) == (ssize_t)bytes;
    const int error = errno;
    if (close(file) == 0 && written && !ferror(stdin)) return WEFT_OK;
    drop_standard_input(path);
    return weft__fail(NULL, WEFT_ERR_IO, "standard input: %s", strerror(error));
}

/* Fails again with the same message, but calls standard input by that name: its copy is gone, and nobody
 * knows its path. */
static weft_status name_standard_input(weft_context *ctx, weft_status status, const char *path) {
    char message[WEFT_ERROR_SIZE];
    snprintf(message, sizeof message, "%s", weft_last_error(NULL));
    const char *copy = strstr(message, path);
    if (!copy) return status;
    return weft__fail(ctx, status, "%.*sstandard input%s", (int)(copy - message), message,
                      copy + strlen(path));
}

/* ---- one input ---- */

/* Reads the column that is copied to each line. */
static weft_status read_ids(weft__opened_model *opened, const char *path, const char *name, int64_t rows,
                            weft_table *table) {
    WEFT_TRY(weft__dataset_column(opened->model.ctx, &opened->config, path, name, table));
    if (table->rows == (size_t)rows) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_FORMAT, "%s: column %.60s has %zu cells, but there are %lld rows", path,
                      name, table->rows, (long long)rows);
}

static weft_status predict(const weft__copies *copies, const char *path, const char *shown,
                           weft__predict_table *table) {
    weft__opened_model *opened = &copies->opened[0];
    weft_context *ctx = opened->model.ctx;
    weft__inputs inputs;
    weft_table ids = {0};
    double *answers = NULL;
    weft_status status = weft__dataset_inputs(ctx, &opened->dataset, &opened->config, path, &inputs);
    const int64_t rows = status == WEFT_OK ? inputs.x.shape[0] : 0;
    if (status == WEFT_OK) {
        answers = weft__array(ctx, (size_t)rows * (size_t)opened->dataset.outputs, sizeof *answers);
        status = answers ? weft__model_predict_on(copies->models, copies->count, &opened->dataset, &inputs,
                                                  answers)
                         : weft__fail_oom(ctx, (size_t)rows * 8, "predictions");
    }
    if (status == WEFT_OK && table->options.id)
        status = read_ids(opened, path, table->options.id, rows, &ids);
    for (int64_t i = 0; status == WEFT_OK && i < rows; i++)
        status =
            weft__predict_table_row(table, inputs.files ? inputs.files[i] : shown,
                                    ids.cells ? ids.cells[i] : NULL, answers + i * opened->dataset.outputs);
    weft_table_free(ctx, &ids);
    weft__free(ctx, answers);
    weft__inputs_free(ctx, &inputs);
    return status;
}

static weft_status predict_input(const weft__copies *copies, const char *input, weft__predict_table *table) {
    char path[4096];
    if (strcmp(input, "-") != 0) return predict(copies, input, input, table);
    WEFT_TRY(take_standard_input(path));
    const weft_status status = predict(copies, path, "-", table);
    drop_standard_input(path);
    return status == WEFT_OK ? WEFT_OK : name_standard_input(copies->models[0]->ctx, status, path);
}

/* ---- accuracy ---- */

/* If an input has the targets, too, tells how right the predictions are. Whatever is wrong with the targets
 * is no error: nobody said that there are any. */
static void tell_accuracy(const weft__copies *copies, const char *dir, const char *input) {
    weft__opened_model *opened = &copies->opened[0];
    weft__dataset labelled = {0};
    weft__scores scores = {0};
    if (weft__config_is(&opened->config, WEFT__TRAIT_NO_TARGETS)) return;
    weft_status status = weft__config_new_data(&opened->config, input, NULL);
    void (*tells)(const char *line) = weft__dataset_tell;
    weft__dataset_tell = NULL;
    if (status == WEFT_OK) status = weft__dataset_read(NULL, &opened->config, dir, &labelled);
    weft__dataset_tell = tells;
    if (status == WEFT_OK) status = weft__copies_score(copies, &labelled, WEFT__VALIDATION, false, &scores);
    if (status == WEFT_OK && scores.task == WEFT__TASK_CLASSIFICATION)
        weft__print(stderr, "accuracy %.2f %% of %lld", 100 * scores.accuracy, (long long)scores.samples);
    else if (status == WEFT_OK)
        weft__print(stderr, "R2 %.4f, root mean square error %.4g of %lld", scores.numbers.r2,
                    scores.numbers.rmse, (long long)scores.samples);
    if (status == WEFT_OK) {
        weft__print(stderr, ", by the targets of %s; more: ", input);
        weft__print_command(stderr, "eval", dir, input, NULL);
        weft__print(stderr, "\n");
    }
    weft__scores_free(&scores);
    weft__dataset_free(NULL, &labelled);
}

/* ---- the command ---- */

static weft_status check_out(const char *dir, const weft__repeated *inputs, bool force, const char *out) {
    weft__output output = {.command = "predict", .force = force};
    if (!out) return WEFT_OK;
    weft__output_reads(&output, dir);
    for (size_t i = 0; i < inputs->count; i++) weft__output_reads(&output, inputs->values[i]);
    return weft__output_file(&output, out);
}

static weft_status predict_all(const weft__copies *copies, const weft__repeated *inputs, const char *out,
                               const weft__predict_options *options, bool *reader_left) {
    const weft__opened_model *opened = &copies->opened[0];
    char *text = NULL;
    size_t bytes = 0;
    weft__predict_table table = {
        .dataset = &opened->dataset, .options = *options, .out = stdout, .reader_left = reader_left};
    if (out && !(table.out = open_memstream(&text, &bytes))) return weft__fail_oom(NULL, 0, "predictions");
    table.with_files = inputs->count > 1 || weft__source_of(&opened->config)->files;
    weft_status status = weft__predict_table_begin(&table);
    for (size_t i = 0; status == WEFT_OK && i < inputs->count; i++)
        status = predict_input(copies, inputs->values[i], &table);
    if (!out) return status;
    const bool whole = fclose(table.out) == 0;
    if (status == WEFT_OK && !whole) status = weft__fail_oom(NULL, bytes, "predictions");
    if (status == WEFT_OK) status = weft_write_file(NULL, out, text, bytes);
    free(text);
    return status;
}

int weft__command_predict(const weft__command *command, int argc, char **argv) {
    const char *dir = NULL, *device = NULL, *devices = NULL, *checkpoint = NULL, *out = NULL;
    weft__repeated inputs = {0};
    weft__predict_options how = {0};
    bool json = false, force = false, reader_left = false;
    int code = 0;
    const weft__option options[] = {
        {"DIR", WEFT__OPTION_ARG, &dir, "the folder of the run"},
        {"INPUT ...", WEFT__OPTION_ARGS, &inputs,
         "files with rows like those of the training data, - for standard input; for images files, "
         "folders or tar files"},
        {"--id COLUMN", WEFT__OPTION_TEXT, &how.id, "csv: begin each line with the cell of this column"},
        {"--probabilities", WEFT__OPTION_FLAG, &how.probabilities, "add a column for each class"},
        {"--json", WEFT__OPTION_FLAG, &json, "print one JSON object per line"},
        {"--no-header", WEFT__OPTION_FLAG, &how.no_header, "leave out the line of names"},
        {"--out FILE", WEFT__OPTION_TEXT, &out,
         "write to a file; NAME.csv has commas, NAME.json is as --json"},
        WEFT__FORCE_OPTION(&force),
        WEFT__CHECKPOINT_OPTION(&checkpoint),
        WEFT__DEVICE_OPTIONS(&device, &devices, "the data"),
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    how.form = json ? WEFT__PREDICT_JSON : weft__predict_form(out);
    weft__copies copies = {0};
    weft_status status = check_out(dir, &inputs, force, out);
    if (status == WEFT_OK)
        status = weft__copies_open(
            dir, devices, &(weft__opened_model_options){.device = device, .checkpoint = checkpoint}, &copies);
    if (status == WEFT_OK && copies.opened[0].config.task == WEFT__TASK_LANGUAGE_MODEL)
        status = weft__fail(NULL, WEFT_ERR_ARGUMENT,
                            "predict: the run's model is a language model: use 'weft generate'");
    if (status == WEFT_OK) status = predict_all(&copies, &inputs, out, &how, &reader_left);
    if (status == WEFT_OK && inputs.count == 1 && strcmp(inputs.values[0], "-") != 0)
        tell_accuracy(&copies, dir, inputs.values[0]);
    if (status == WEFT_OK)
        code = WEFT__EXIT_DONE;
    else
        code = reader_left ? WEFT__EXIT_IO : weft__give_up(NULL, status);
    weft__copies_close(&copies);
    return code;
}
