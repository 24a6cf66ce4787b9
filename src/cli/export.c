/* weft export: writes a trained model for other software. Must not know: formats (train/export). Read next:
 * train/export/export.h. */
#include <string.h>

#include <weft/published.h>

#include "cli/cli.h"
#include "io/mark.h"
#include "io/publish.h"
#include "published/published.h"
#include "published/quantize.h"
#include "train/dataset/dataset.h"
#include "train/export/export.h"
#include "train/run/output.h"
#include "train/run/run_dir.h"

enum { NO_BATCH = -1, MOST_BATCH = 65536 };

typedef struct exporting {
    const char *dir, *to, *out, *name, *checkpoint, *type;
    bool training, force;
    int64_t batch;
} exporting;

/* The output of an export, with what it reads: the run, or the published model. */
static weft__output output_of(const exporting *e, const weft__opened_model *opened,
                              bool (*wrote)(const char *path)) {
    weft__output output = {.command = "export", .force = e->force, .wrote = wrote};
    weft__output_reads(&output, e->dir);
    if (opened) weft__output_reads(&output, opened->config.model_init);
    if (opened) weft__output_reads(&output, opened->config.published);
    return output;
}

/* Finds the folder to write to. */
static weft_status export_folder(const exporting *e, char folder[WEFT__EXPORT_PATH]) {
    const bool fits = e->out ? snprintf(folder, WEFT__EXPORT_PATH, "%s", e->out) < WEFT__EXPORT_PATH
                             : weft__join(folder, WEFT__EXPORT_PATH, e->dir, "export");
    return fits ? WEFT_OK
                : weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", e->out ? e->out : e->dir);
}

static weft_status export_c(const exporting *e, weft__opened_model *opened, weft__exported *exported) {
    char folder[WEFT__EXPORT_PATH];
    const weft__output output = output_of(e, opened, weft__export_c_wrote);
    WEFT_TRY(export_folder(e, folder));
    return weft__export_c(
        opened,
        &(weft__export_options){
            .folder = folder, .name = e->name, .output = &output, .batch = e->training ? e->batch : 0},
        exported);
}

static bool wrote_gguf(const char *path) { return weft__gguf_made_by(path, "export"); }
static bool quantized(const char *path) { return weft__gguf_made_by(path, "quantize"); }

/* Finds the path of a file of weights: --out, or NAME with an ending in its folder. `opened` NULL: of a
 * published model. */
static weft_status weights_path(const exporting *e, const weft__opened_model *opened, const char *ending,
                                char path[WEFT__EXPORT_PATH]) {
    char folder[WEFT__EXPORT_PATH], name[64];
    const size_t size = e->out ? strlen(e->out) : 0, length = strlen(ending);
    const bool file =
        e->out && (weft__is_stream(e->out) || (size > length && strcmp(e->out + size - length, ending) == 0));
    const weft__output output = output_of(e, opened,
                                          strcmp(ending, ".gguf") != 0 ? weft__export_safetensors_wrote
                                          : opened                     ? wrote_gguf
                                                                       : quantized);
    snprintf(name, sizeof name, "%.40s%s", e->name, ending);
    WEFT_TRY(export_folder(e, file ? path : folder));
    if (!file && !weft__join(path, WEFT__EXPORT_PATH, folder, name))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", e->out ? e->out : e->dir);
    WEFT_TRY(weft__output_file(&output, path));
    return file ? WEFT_OK : weft_make_folder(NULL, folder);
}

static weft_status export_safetensors(const exporting *e, weft__opened_model *opened,
                                      weft__exported *exported) {
    char path[WEFT__EXPORT_PATH];
    WEFT_TRY(weights_path(e, opened, ".safetensors", path));
    return weft__export_safetensors(opened, e->dir, path, exported);
}

static weft_status export_gpt2(const exporting *e, weft__opened_model *opened, weft__exported *exported) {
    char path[WEFT__EXPORT_PATH];
    if (!weft__config_is(&opened->config, WEFT__TRAIT_PUBLISHED))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "export: --to gpt2 needs a gpt, and the run's model is none: use --to safetensors, "
                          "which takes any model");
    WEFT_TRY(weights_path(e, opened, ".safetensors", path));
    const weft__output config = output_of(e, opened, weft__export_gpt2_wrote);
    return weft__export_gpt2(opened, path, &config, exported);
}

/* Makes the folder that a Python package will read. */
static weft_status whole_folder(const exporting *e, const weft__opened_model *opened,
                                char folder[WEFT__EXPORT_PATH]) {
    const weft__output output = output_of(e, opened, NULL);
    WEFT_TRY(export_folder(e, folder));
    return weft__output_folder(&output, folder);
}

static weft_status export_huggingface(const exporting *e, weft__opened_model *opened,
                                      weft__exported *exported) {
    char folder[WEFT__EXPORT_PATH];
    WEFT_TRY(whole_folder(e, opened, folder));
    return weft__export_published(opened, folder, exported);
}

static weft_status export_peft(const exporting *e, weft__opened_model *opened, weft__exported *exported) {
    char folder[WEFT__EXPORT_PATH];
    WEFT_TRY(whole_folder(e, opened, folder));
    return weft__export_peft(opened, folder, exported);
}

static const char *type_of(const exporting *e) { return e->type ? e->type : "f16"; }

static weft_status export_gguf(const exporting *e, weft__opened_model *opened, weft__exported *exported) {
    char path[WEFT__EXPORT_PATH];
    WEFT_TRY(weights_path(e, opened, ".gguf", path));
    return weft__export_gguf(opened, path, type_of(e), exported);
}

static weft_status export_gguf_lora(const exporting *e, weft__opened_model *opened,
                                    weft__exported *exported) {
    char path[WEFT__EXPORT_PATH];
    WEFT_TRY(weights_path(e, opened, ".gguf", path));
    return weft__export_gguf_lora(opened, path, exported);
}

/* The formats of --to. C source is made on a device of its own, in f32 whatever the run computed in. */
static const struct format {
    const char *name, *device, *precision;
    bool adapters; /* not added to the weights */
    weft_status (*run)(const exporting *e, weft__opened_model *opened, weft__exported *exported);
    weft_status (*needs)(const weft__opened_model *opened, const char *format); /* refuses other runs */
} formats[] = {
    {"c", "c99", "f32", false, export_c, weft__export_needs_f32},
    {"safetensors", "cpu", NULL, false, export_safetensors, NULL},
    {"gpt2", "cpu", NULL, false, export_gpt2, NULL},
    {"huggingface", "cpu", NULL, false, export_huggingface, weft__export_needs_published},
    {"peft", "cpu", NULL, true, export_peft, weft__export_needs_adapters},
    {"gguf", "cpu", NULL, false, export_gguf, weft__export_needs_published},
    {"gguf-lora", "cpu", NULL, true, export_gguf_lora, weft__export_needs_adapters},
};

static const struct format *format_of(const char *name) {
    for (size_t i = 0; name && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(name, formats[i].name) == 0) return &formats[i];
    return NULL;
}

static void tell(const weft__exported *exported) {
    for (int i = 0; i < 3; i++)
        if (exported->files[i][0] && !weft__is_stream(exported->files[i]))
            weft__print(stdout, "wrote %s\n", exported->files[i]);
    if (exported->of)
        weft__print(
            stdout,
            "the run kept %lld of the %lld positions of the published model, and so does the export\n",
            (long long)exported->positions, (long long)exported->of);
    if (exported->weights == 0) return;
    weft__print(stdout, "%lld bytes of weights%s, %lld bytes of memory\n", (long long)exported->weights,
                exported->files[0][0] ? ", in a file of their own because they are more than 4 MiB" : "",
                (long long)exported->memory);
    if (exported->state)
        weft__print(stdout, "%lld bytes of a saved state: weights and what the optimizer keeps\n",
                    (long long)exported->state);
}

/* Refuses runs whose model or precision C source does not have. */
static weft_status check_for_c(const exporting *e, const weft__config *config) {
    const bool wide = config->train_precision == WEFT__PRECISION_F64;
    if (weft__config_is(config, WEFT__TRAIT_TEXTS))
        return weft__fail(
            NULL, WEFT_ERR_UNSUPPORTED,
            "export: --to c: an encoder needs its tokenizer, which C source does not have: use --to "
            "huggingface or --to safetensors");
    if (wide)
        return weft__fail(
            NULL, WEFT_ERR_UNSUPPORTED,
            "export: --to c: the run has train.precision f64, and C source computes in f32: use --to "
            "safetensors");
    if (e->training && config->train_precision == WEFT__PRECISION_F16)
        return weft__fail(
            NULL, WEFT_ERR_UNSUPPORTED,
            "export: --training: the run has train.precision f16, which scales the loss, and C source does "
            "not: train in f32, tf32 or bf16, or export without --training");
    return WEFT_OK;
}

/* Penalties of a linear model, and class weights, are computed from the data. */
static bool needs_data(const weft__config *config) {
    return config->model_ridge > 0 || config->model_lasso > 0 || config->train_class_weights.count > 0;
}

static weft_status run_export(const exporting *e, const struct format *format, weft__opened_model *opened) {
    weft__exported exported = {.files = {"", "", ""}};
    weft__config config;
    weft__config_init(&config);
    weft_status status = weft__opened_model_config(e->dir, format->device, &config);
    if (status == WEFT_OK && format->run == export_c) status = check_for_c(e, &config);
    const bool merges = config.lora_rank > 0; /* into weights of f32 */
    const weft__opened_model_options options = {.device = format->device,
                                                .precision = merges ? "f32" : format->precision,
                                                .checkpoint = e->checkpoint,
                                                .adapters = format->adapters,
                                                .with_data = e->training && needs_data(&config),
                                                .trains = e->training};
    weft__config_free(&config);
    WEFT_TRY(status);
    WEFT_TRY(weft__opened_model_open(e->dir, &options, opened));
    if (format->needs) WEFT_TRY(format->needs(opened, format->name));
    WEFT_TRY(format->run(e, opened, &exported));
    tell(&exported);
    return WEFT_OK;
}

/* Writes a published model, which is no run, as a GGUF file. It is not loaded. */
static weft_status export_files(const exporting *e) {
    char path[WEFT__EXPORT_PATH];
    WEFT_TRY(weights_path(e, NULL, ".gguf", path));
    weft__exported exported = {.files = {"", "", ""}};
    WEFT_TRY(weft__export_files(e->dir, path, type_of(e)));
    snprintf(exported.files[0], sizeof exported.files[0], "%s", path);
    tell(&exported);
    return WEFT_OK;
}

static bool is_published(const exporting *e) { return !weft__is_run(e->dir) && weft_published_is(e->dir); }

/* Checks --type, and that there is a place for the file. */
static bool check_gguf(const exporting *e) {
    char known[128];
    weft__format format;
    weft__format_words(known, sizeof known);
    if (!weft__format_find(type_of(e), &format))
        weft__complain("export: --type %s: give %s", e->type, known);
    else if (is_published(e) && weft__is_gguf(e->dir) && !e->out)
        weft__complain("export: %s is a file: name the new one in --out", e->dir);
    else
        return true;
    return false;
}

/* Checks what is asked for. Complains about the first mistake. */
static bool check_wishes(const exporting *e) {
    const struct format *format = format_of(e->to);
    if (!format)
        weft__complain("export: --to %s: give c, safetensors, gpt2, huggingface, peft, gguf or gguf-lora",
                       e->to ? e->to : "is missing");
    else if (e->type && format->run != export_gguf)
        weft__complain("export: --type is for --to gguf");
    else if (format->run == export_gguf && !check_gguf(e))
        return false;
    else if (!weft__export_name_fits(e->name))
        weft__complain(
            "export: --name: give a C identifier: a letter, then at most 39 letters, digits and underscores");
    else if (e->training && format->run != export_c)
        weft__complain("export: --training: only --to c writes a training step");
    else if (e->batch != NO_BATCH && !e->training)
        weft__complain(
            "export: --batch is for --training; without --training the source computes one sample");
    else if (e->training && (e->batch < 1 || e->batch > MOST_BATCH) && e->batch != NO_BATCH)
        weft__complain("export: --batch %lld: give a number from 1 to %d", (long long)e->batch, MOST_BATCH);
    else
        return true;
    return false;
}

/* Exports, and marks the folder in a run or in a published model, if it was new. */
static weft_status export_somehow(const exporting *e, const struct format *format,
                                  weft__opened_model *opened) {
    char folder[WEFT__EXPORT_PATH], found[WEFT__ENTRY_NAME];
    const weft__output output = output_of(e, NULL, NULL);
    WEFT_TRY(export_folder(e, folder));
    if (!e->out) WEFT_TRY(weft__output_no_link(&output, folder));
    const bool fresh = !e->out && weft__find_foreign(NULL, folder, NULL, found) == WEFT_OK && !found[0];
    WEFT_TRY(format->run == export_gguf && is_published(e) ? export_files(e) : run_export(e, format, opened));
    return fresh ? weft__mark(NULL, folder, "export") : WEFT_OK;
}

int weft__command_export(const weft__command *command, int argc, char **argv) {
    exporting e = {.name = "model", .batch = NO_BATCH};
    int code = 0;
    const weft__option options[] = {
        {"DIR", WEFT__OPTION_ARG, &e.dir, "the folder of the run; for gguf also a published model"},
        {"--to FORMAT", WEFT__OPTION_TEXT, &e.to,
         "c, safetensors, gpt2, huggingface, peft, gguf or gguf-lora"},
        {"--type T", WEFT__OPTION_TEXT, &e.type,
         "the type of the weights in a GGUF file: f32, f16, bf16, q8_0, q6_k, q5_0, q4_k or q4_0; default: "
         "f16"},
        {"--out FOLDER", WEFT__OPTION_TEXT, &e.out,
         "the folder to write to, or a file that ends in .safetensors or .gguf; default: DIR/export"},
        {"--name NAME", WEFT__OPTION_TEXT, &e.name,
         "the name of the files, and the start of all names in C; default: model"},
        {"--training", WEFT__OPTION_FLAG, &e.training,
         "also write a training step, with the optimizer of the run (c only)"},
        {"--batch N", WEFT__OPTION_INT, &e.batch, "samples of the training step; default: 1"},
        WEFT__FORCE_OPTION(&e.force),
        WEFT__CHECKPOINT_OPTION(&e.checkpoint),
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (!check_wishes(&e)) return WEFT__EXIT_USAGE;
    if (e.batch == NO_BATCH) e.batch = 1;
    weft__opened_model opened = {0};
    const weft_status status = export_somehow(&e, format_of(e.to), &opened);
    code = status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
    weft__opened_model_close(&opened);
    return code;
}
