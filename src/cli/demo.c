/* weft demo: three small trainings that need no data, and a test of a device (demo_device.c). Must not know:
 * how models are trained. Read next: demo_device.c. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/data.h>
#include <weft/io.h>
#include <weft/text.h>
#include <weft/weft.h>

#include "cli/cli.h"
#include "cli/demo.h"
#include "cli/run.h"
#include "train/run/progress.h"
#include "train/run/run_dir.h"

#define PATH_BYTES 4096

/* ---- gpt: learns from Weft's own source code ---- */

enum { GPT_TOKENS = 1024 };
#define GPT_TOKENIZER WEFT__RUNS_ROOT "/demo-tokens"
#define GPT_MINUTES   1.1

typedef struct texts {
    char *data;
    size_t size, capacity;
    size_t files;
} texts;

static bool wanted_file(const char *name) {
    static const char *const ends[] = {".c", ".h", ".def", ".md"};
    size_t size = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (size > strlen(ends[i]) && strcmp(name + size - strlen(ends[i]), ends[i]) == 0) return true;
    return false;
}

/* Adds the ASCII characters of a file. A small alphabet is learned faster. */
static weft_status add_file(const char *path, texts *out) {
    weft_bytes bytes;
    WEFT_TRY(weft_read_file(NULL, path, 1u << 24, &bytes));
    weft_status status = WEFT_OK;
    for (size_t i = 0; i < bytes.size && status == WEFT_OK; i++) {
        uint8_t c = bytes.data[i];
        if (c != '\n' && (c < 0x20 || c > 0x7e)) continue;
        if (!weft__grow(NULL, &out->data, &out->capacity, out->size, 1))
            status = weft__fail_oom(NULL, out->size, "the text");
        else
            out->data[out->size++] = (char)c;
    }
    out->files++;
    weft_bytes_free(NULL, &bytes);
    return status;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Adds all files below a folder, sorted by name, so that the text is the same on every machine. */
static weft_status add_folder(const char *folder, int depth, texts *out) {
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, by_name);
    weft_status status = WEFT_OK;
    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES];
        struct stat info;
        const char *name = entries[i]->d_name;
        if (status == WEFT_OK && name[0] != '.' && weft__join(path, sizeof path, folder, name) &&
            stat(path, &info) == 0) {
            if (S_ISDIR(info.st_mode) && depth < 8)
                status = add_folder(path, depth + 1, out);
            else if (S_ISREG(info.st_mode) && wanted_file(name))
                status = add_file(path, out);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* Finds the folder that Weft was built from: the working folder, or one above the command. */
static bool find_source(char out[PATH_BYTES]) {
    char path[PATH_BYTES], self[PATH_BYTES];
    struct stat info;
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    snprintf(out, PATH_BYTES, ".");
    for (int up = 0; up < 4; up++) {
        if (weft__join(path, sizeof path, out, "include/weft/weft.h") && stat(path, &info) == 0) return true;
        if (size <= 0) return false;
        self[size] = '\0';
        while (size > 0 && self[size - 1] != '/') size--; /* one folder up */
        if (size > 0) self[--size] = '\0';
        snprintf(out, PATH_BYTES, "%s", self);
    }
    return false;
}

static weft_status gather_source(const char *data, texts *text) {
    static const char *const folders[] = {"docs", "include", "src"};
    char root[PATH_BYTES], path[PATH_BYTES];
    if (data) {
        WEFT_TRY(add_folder(data, 0, text));
    } else if (find_source(root)) {
        for (int i = 0; i < 3; i++)
            if (weft__join(path, sizeof path, root, folders[i])) WEFT_TRY(add_folder(path, 0, text));
    }
    if (text->size >= 20000) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                      "demo gpt: only %zu characters of source text were found, too few to learn from: name "
                      "a folder with .c, .h or .md files with --data",
                      text->size);
}

/* Trains with the given defaults. Settings of the command line replace them. Without a number of steps a gpt
 * takes about GPT_MINUTES. */
static int train(const char *const *defaults, const weft__repeated *settings, const char *device, bool quiet,
                 int argc, char **argv, char run[WEFT__RUN_BYTES]) {
    weft__config config;
    weft_status status = WEFT_OK;
    weft__config_init(&config);
    for (; *defaults && status == WEFT_OK; defaults++) status = weft__config_set(&config, *defaults);
    if (status == WEFT_OK)
        status = weft__cli_config(&config, &(weft__wanted){.device = device, .settings = *settings});
    if (status == WEFT_OK && config.task == WEFT__TASK_LANGUAGE_MODEL &&
        !weft__config_given(&config, WEFT__KEY_train_steps) &&
        !weft__config_given(&config, WEFT__KEY_train_epochs))
        status = weft__cli_pace(&config, true, GPT_MINUTES, quiet);
    const weft__train_options how = {.quiet = quiet, .argc = argc, .argv = argv};
    int code = status == WEFT_OK ? weft__cli_train(&config, &how, run) : weft__give_up(NULL, status);
    weft__config_free(&config);
    return code;
}

/* Learns which parts of words are tokens. A small model that reads them writes words after a minute. */
static weft_status train_tokenizer(const char *file) {
    weft_context *ctx = NULL;
    weft_tokenizer *t = NULL;
    WEFT_TRY(weft_open(&(weft_open_options){.device = "null", .log = weft__show_log}, &ctx));
    weft_status status =
        weft_tokenizer_train(ctx, &file, 1, &(weft_tokenizer_train_options){.vocabulary = GPT_TOKENS}, &t);
    if (status == WEFT_OK) status = weft_make_folder(ctx, GPT_TOKENIZER);
    if (status == WEFT_OK) status = weft_tokenizer_save(t, GPT_TOKENIZER "/tokenizer.json");
    if (status != WEFT_OK) status = weft__fail(NULL, status, "%s", weft_last_error(ctx));
    weft_tokenizer_free(t);
    weft_close(ctx);
    return status;
}

static int demo_gpt(const char *data, const weft__repeated *settings, const char *device, bool quiet,
                    int argc, char **argv) {
    static const char file[] = WEFT__RUNS_ROOT "/demo-source.txt";
    static const char *const defaults[] = {"model.type=gpt",
                                           "data.path=" WEFT__RUNS_ROOT "/demo-source.txt",
                                           "data.tokenizer=pipeline",
                                           "data.tokenizer_path=" GPT_TOKENIZER,
                                           "data.val_fraction=0.02",
                                           "train.eval_every=250",
                                           "train.save_every=500",
                                           "train.log_every=50",
                                           "optimizer.lr=0.002",
                                           "schedule.min_lr=0.0002",
                                           NULL};
    texts text = {0};
    char run[WEFT__RUN_BYTES];
    weft_status status = gather_source(data, &text);
    if (status == WEFT_OK) status = weft_make_folder(NULL, WEFT__RUNS_ROOT);
    if (status == WEFT_OK) status = weft_write_file(NULL, file, text.data, text.size);
    if (status == WEFT_OK && !quiet)
        weft__print(stdout, "a gpt learns to write C from %zu files of Weft's own text, %zu characters\n",
                    text.files, text.size);
    if (status == WEFT_OK) status = train_tokenizer(file);
    weft__free(NULL, text.data);
    if (status != WEFT_OK) return weft__give_up(NULL, status);
    int code = train(defaults, settings, device, quiet, argc, argv, run);
    if (code != WEFT__EXIT_DONE || quiet) return code;
    weft__print(stdout, "\nto continue:\n  ");
    weft__print_command(stdout, "generate", run, "--prompt", "static int ", "--tokens", "200", NULL);
    weft__print(stdout, "\n  ");
    weft__print_command(stdout, "resume", run, "--set", "train.steps=10000", NULL);
    weft__print(stdout, "\n  ");
    weft__print(stdout, "open %s/report.html\nyour own text:\n  ", run);
    weft__print_command(stdout, "train", "text", "--data", "FILE", NULL);
    weft__print(stdout, "\n");
    return code;
}

/* ---- mlp: separates three spirals ---- */

static weft_status write_spirals(const char *path, int points, uint64_t seed) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return weft__fail_oom(NULL, 0, "the spirals");
    static const char *const names[] = {"red", "green", "blue"};
    bool made = fprintf(out, "x,y,spiral\n") > 0;
    for (int i = 0; i < points; i++) {
        double along = (double)(i / 3) / (double)(points / 3), radius = 0.1 + along;
        double angle = along * 7 + i % 3 * 2.0943951023931953;
        double noise_x = weft__random_normal(seed, 1, 0, (uint64_t)i),
               noise_y = weft__random_normal(seed, 2, 0, (uint64_t)i);
        made = made && fprintf(out, "%.5f,%.5f,%s\n", radius * cos(angle) + 0.03 * noise_x,
                               radius * sin(angle) + 0.03 * noise_y, names[i % 3]) > 0;
    }
    if (fclose(out) != 0) made = false;
    weft_status status =
        made ? weft_write_file(NULL, path, text, bytes) : weft__fail_oom(NULL, 0, "the spirals");
    free(text);
    return status;
}

static int demo_mlp(const weft__repeated *settings, const char *device, bool quiet, int argc, char **argv) {
    static const char train_file[] = WEFT__RUNS_ROOT "/demo-spirals.csv";
    static const char test_file[] = WEFT__RUNS_ROOT "/demo-spirals-test.csv";
    static const char *const defaults[] = {"task=classification",
                                           "model.type=mlp",
                                           "data.source=csv",
                                           "data.path=" WEFT__RUNS_ROOT "/demo-spirals.csv",
                                           "data.test_path=" WEFT__RUNS_ROOT "/demo-spirals-test.csv",
                                           "model.hidden=64,64",
                                           "optimizer.lr=0.01",
                                           "train.batch=64",
                                           "train.epochs=60",
                                           "train.eval_every=200",
                                           "train.save_every=500",
                                           "train.log_every=100",
                                           NULL};
    char run[WEFT__RUN_BYTES];
    weft_status status = weft_make_folder(NULL, WEFT__RUNS_ROOT);
    if (status == WEFT_OK) status = write_spirals(train_file, 3000, 1);
    if (status == WEFT_OK) status = write_spirals(test_file, 600, 2);
    if (status != WEFT_OK) return weft__give_up(NULL, status);
    if (!quiet) weft__print(stdout, "an mlp learns to tell three spirals of points apart\n");
    int code = train(defaults, settings, device, quiet, argc, argv, run);
    if (code != WEFT__EXIT_DONE || quiet) return code;
    weft__print(stdout, "\nto continue:\n  ");
    weft__print_command(stdout, "eval", run, NULL);
    weft__print(stdout, "\n  open %s/report.html\nyour own table:\n  ", run);
    weft__print_command(stdout, "train", "mlp", "--data", "FILE.csv", NULL);
    weft__print(stdout, "\n");
    return code;
}

/* ---- xor: uses the library directly ---- */

static weft_status learn_xor(weft_context *ctx, bool quiet, double answers[4]) {
    static const float inputs[] = {0, 0, 0, 1, 1, 0, 1, 1}, targets[] = {0, 1, 1, 0};
    weft_module *net =
        weft_nn_sequential(ctx, "xor", weft_nn_linear(ctx, 2, 8, NULL), weft_nn_activation(ctx, WEFT_TANH),
                           weft_nn_linear(ctx, 8, 1, NULL), NULL);
    weft_optimizer *adam = weft_adam(net, &(weft_adam_options){.lr = 0.05});
    weft_tensor *x = weft_from(ctx, WEFT_F32, 2, (int64_t[]){4, 2}, inputs);
    weft_tensor *y = weft_from(ctx, WEFT_F32, 2, (int64_t[]){4, 1}, targets);
    for (int epoch = 1; epoch <= 200; epoch++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *loss = weft_bce_with_logits(weft_forward(net, x), y, WEFT_MEAN);
        weft_status status = weft_optimizer_step(adam, loss);
        if (status == WEFT_OK && !quiet && (epoch == 1 || epoch % 50 == 0))
            weft__print(stdout, "epoch %4d  loss %.5f\n", epoch, weft_item(loss));
        weft_scope_close(scope);
        if (status != WEFT_OK) return status;
    }
    float values[4];
    WEFT_TRY(weft_read(weft_sigmoid(weft_forward(net, x)), values, sizeof values));
    for (int i = 0; i < 4; i++) answers[i] = (double)values[i];
    return WEFT_OK;
}

static int demo_xor(const char *device, bool quiet) {
    weft_context *ctx = NULL;
    double answers[4] = {0};
    weft_status status =
        weft_open(&(weft_open_options){.device = device, .seed = 1, .log = weft__show_log}, &ctx);
    if (status == WEFT_OK) status = learn_xor(ctx, quiet, answers);
    int code = status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
    weft_close(ctx);
    if (code != WEFT__EXIT_DONE) return code;
    for (int i = 0; i < 4; i++) {
        if (!quiet) weft__print(stdout, "%d xor %d = %.3f\n", i / 2, i % 2, answers[i]);
        bool right = (answers[i] > 0.5) == (i == 1 || i == 2);
        if (!right) code = WEFT__EXIT_FAILED;
    }
    if (code != WEFT__EXIT_DONE)
        weft__complain("demo xor: the network did not learn xor: this is a fault of Weft or of the device; "
                       "please report it");
    return code;
}

int weft__command_demo(const weft__command *command, int argc, char **argv) {
    const char *name = NULL, *device = NULL, *data = NULL;
    weft__repeated settings = {0};
    bool quiet = false;
    int code = 0;
    const weft__option options[] = {
        {"NAME", WEFT__OPTION_ARG, &name, "gpt, mlp, xor or device"},
        {"--data DIR", WEFT__OPTION_TEXT, &data, "gpt: a folder of .c, .h and .md files to learn from"},
        WEFT__SET_OPTION(&settings),
        WEFT__ANY_DEVICE_OPTION(&device),
        {"--quiet", WEFT__OPTION_FLAG, &quiet, "print errors only"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (strcmp(name, "gpt") == 0) return demo_gpt(data, &settings, device, quiet, argc, argv);
    if (strcmp(name, "mlp") == 0) return demo_mlp(&settings, device, quiet, argc, argv);
    if (strcmp(name, "xor") == 0) return demo_xor(device, quiet);
    if (strcmp(name, "device") == 0) return weft__demo_device(device, quiet);
    weft__complain("demo: there is no demo %s: give gpt, mlp, xor or device", name);
    return WEFT__EXIT_USAGE;
}
