/* weft export --to c: for each type of model, the exported source is compiled and loaded, and gives what the
 * library gives within 1e-6 of the scale of the results. The names of columns and classes try to break out of
 * their strings. Needs the command (WEFT_COMMAND), which trains the models, and a C compiler. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <weft/data.h>
#include <weft/loader.h>
#include <weft/nn.h>
#include "train/export/export.h"
#include "train/export_help.h"

enum { ROWS = 120, MOST = 4096 };
#define TOLERANCE 1e-6

static const char *const columns[] = {"a", "wi\"d\?\?/th", "c\\n\?\?)*/"};
static const char *const classes[] = {"x\"", "y\\ \?\?/", "*/ z\n2"};
static float rows[ROWS][3];

/* ---- data ---- */

static void put_cell(FILE *f, const char *text, const char *after) {
    fputc('"', f);
    for (; *text; text++) fprintf(f, *text == '"' ? "\"\"" : "%c", *text);
    fprintf(f, "\"%s", after);
}

static void write_table(const char *name, int kinds) {
    FILE *f = fopen(in_scratch(name), "w");
    assert_non_null(f);
    for (int c = 0; c < 3; c++) put_cell(f, columns[c], ",");
    put_cell(f, "kind", "\n");
    for (int i = 0; i < ROWS; i++) {
        for (int c = 0; c < 3; c++) fprintf(f, "%.9g,", (double)rows[i][c]);
        if (kinds)
            put_cell(f, classes[(i + (rows[i][0] > 5)) % kinds], "\n");
        else
            fprintf(f, "%.6g\n", 3e4 + 100 * (double)rows[i][0] - 20 * (double)rows[i][1]);
    }
    fclose(f);
}

static int setup(void **state) {
    if (scratch_setup(state)) return -1;
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < 3; c++) rows[i][c] = number_of(i, c);
    write_table("three.csv", 3);
    write_table("two.csv", 2);
    write_table("numbers.csv", 0);
    write_images();
    return write_text() ? 0 : -1;
}

/* ---- cases ---- */

typedef struct model_case {
    const char *name, *type, *data, *settings;
} model_case;

static const model_case cases[] = {
    {"mlp", "mlp", "three.csv", "--set model.hidden=[40,7] --set train.epochs=3"},
    {"tanh", "mlp", "three.csv", "--set model.hidden=[9] --set model.activation=gelu --set train.epochs=3"},
    {"regression", "mlp", "numbers.csv",
     "--set task=regression --set model.hidden=[16] --set train.epochs=3"},
    {"bf16", "mlp", "two.csv", "--set model.hidden=[16] --set train.precision=bf16 --set train.epochs=3"},
    {"linear", "linear", "numbers.csv", "--set train.epochs=20"},
    {"logistic2", "logistic", "two.csv", "--set train.epochs=20"},
    {"logistic3", "logistic", "three.csv", "--set train.epochs=20"},
    {"large", "mlp", "three.csv", "--set model.hidden=[1100,1000] --set train.epochs=1"},
    {"plain", "mlp", "three.csv", "--set data.standardize=false --set model.hidden=[8] --set train.epochs=2"},
    {"pixels", "mlp", "some-images-idx3-ubyte", "--set model.hidden=[20] --set train.epochs=3"},
    {"cnn", "cnn", "some-images-idx3-ubyte", "--set model.filters=[4,6] --set train.epochs=3"},
    {"resnet", "resnet", "some.bin",
     "--set model.depth=8 --set model.width=4 --set train.batch=4 --set train.epochs=3"},
    {"autoencoder", "autoencoder", "some-images-idx3-ubyte", "--set model.hidden=[8,2] --set train.epochs=3"},
    {"gpt", "gpt", "text.txt", TINY},
    {"rows", "gpt", "text.txt",
     TINY " --set model.vocab=64"}, /* rows that are no tokens have the logit -inf */
    {"llama", "llama", "text.txt", TINY},
    {"lstm", "lstm", "text.txt", TINY},
    {"gru", "gru", "text.txt", TINY " --set model.untied_head=false"},
};

/* Trains, exports, and compiles as a shared library. */
static void *load(const model_case *c) {
    const char *weft = getenv("WEFT_COMMAND");
    char run[4200], out[4200], library[4300];
    snprintf(run, sizeof run, "%s/%s", scratch, c->name);
    snprintf(out, sizeof out, "%s/%s-c", scratch, c->name);
    snprintf(library, sizeof library, "%s/model.so", out);
    assert_int_equal(
        run_command("cd %s && %s init %s --data %s --out %s.yaml >/dev/null 2>&1 && %s train %s.yaml --run "
                    "%s %s --quiet >/dev/null 2>log",
                    scratch, weft, c->type, c->data, c->name, weft, c->name, c->name, c->settings),
        0);
    assert_int_equal(run_command("%s export %s --to c --out %s >/dev/null", weft, run, out), 0);
    assert_int_equal(run_command("gcc " WARNINGS " -O2 -shared -fPIC -o %s %s/model.c -lm", library, out), 0);
    /* no weight is copied while the program runs */
    assert_int_equal(run_command("! grep '_copy(w' %s/model.c", out), 0);
    if (at_hand("clang"))
        assert_int_equal(run_command("clang " WARNINGS " -c -o %s.o %s/model.c", out, out), 0);
    if (at_hand("arm-none-eabi-gcc"))
        assert_int_equal(run_command("arm-none-eabi-gcc " WARNINGS
                                     " -mcpu=cortex-m4 -mthumb -Os -c -o %s.o %s/model.c",
                                     out, out),
                         0);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) print_message("%s\n", dlerror());
    assert_non_null(handle);
    return handle;
}

static void open_run(const char *name, weft__opened_model *opened) {
    char run[4200];
    snprintf(run, sizeof run, "%s/%s", scratch, name);
    assert_int_equal(weft__opened_model_open(
                         run, &(weft__opened_model_options){.device = "cpu", .precision = "f32"}, opened),
                     WEFT_OK);
}

/* Gives a model its weights, if they are in a file of their own. The file of another model is refused. */
static void open_weights(const model_case *c, void *handle) {
    static char *bytes; /* stays in memory, like the library */
    int (*open)(const void *, size_t);
    char path[4300];
    snprintf(path, sizeof path, "%s/%s-c/model.bin", scratch, c->name);
    FILE *f = fopen(path, "rb");
    assert_int_equal(f != NULL, strcmp(c->name, "large") == 0);
    if (!f) return;
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    const size_t size = (size_t)ftell(f);
    bytes = malloc(size);
    assert_non_null(bytes);
    rewind(f);
    assert_int_equal(fread(bytes, 1, size, f), size);
    fclose(f);
    find(handle, "model_open", &open);
    assert_int_equal(open(bytes, size - 4), 1);
    bytes[9] ^= 1;
    assert_int_equal(open(bytes, size), 1);
    bytes[9] ^= 1;
    assert_int_equal(open(bytes, size), 0);
}

/* ---- results ---- */

static void compare(const char *name, const float *got, const float *wanted, int64_t n) {
    double scale = 0, worst = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(wanted[i])) scale = fmax(scale, fabs((double)wanted[i]));
        if (got[i] == wanted[i]) continue;
        worst = fmax(worst, fabs((double)got[i] - (double)wanted[i]));
        assert_true(isfinite(got[i]) && isfinite(wanted[i]));
    }
    if (worst > TOLERANCE * scale) print_message("%s: %g of %g\n", name, worst, scale);
    assert_true(scale > 0 && worst <= TOLERANCE * scale);
}

/* What `weft predict` computes from the model's outputs: probabilities, or numbers in the units of the data.
 */
static void finish(const weft__opened_model *opened, const float *y, float *out) {
    const int64_t n = opened->dataset.outputs;
    double most = -HUGE_VAL, sum = 0;
    if (opened->config.task == WEFT__TASK_REGRESSION) {
        double values[MOST];
        for (int64_t i = 0; i < n; i++) values[i] = (double)y[i];
        weft__dataset_unscale(&opened->dataset, values, 1);
        for (int64_t i = 0; i < n; i++) out[i] = (float)values[i];
        return;
    }
    const float both[2] = {0, y[0]};
    if (opened->model.loss == WEFT_LOSS_BCE) y = both;
    for (int64_t i = 0; i < n; i++) most = fmax(most, (double)y[i]);
    for (int64_t i = 0; i < n; i++) sum += exp((double)y[i] - most);
    for (int64_t i = 0; i < n; i++) out[i] = (float)(exp((double)y[i] - most) / sum);
}

static void check_samples(const model_case *c, void *handle, weft__opened_model *opened) {
    void (*forward)(const float *, float *);
    static float in[3072], y[MOST], wanted[MOST], got[MOST];
    weft__inputs inputs;
    char path[4200];
    weft_loader *loader = NULL;
    snprintf(path, sizeof path, "%s/%s", scratch, c->data);
    find(handle, "model_forward", &forward);
    assert_int_equal(
        weft__dataset_inputs(opened->model.ctx, &opened->dataset, &opened->config, path, &inputs), WEFT_OK);
    const weft_loader_options options = {
        .batch = 1,
        .in_order = true,
        .scale = opened->dataset.scaling.factor,
        .images = weft__dataset_images(&opened->dataset, &(weft__image_places){0})};
    assert_int_equal(weft_loader_new(opened->model.ctx, &inputs.x, NULL, &options, &loader), WEFT_OK);
    for (int i = 0; i < IMAGES; i++) {
        weft_batch batch;
        weft_scope *scope = weft_scope_open(opened->model.ctx);
        assert_int_equal(weft_loader_get(loader, (uint64_t)i, &batch), WEFT_OK);
        weft_tensor *out = weft_forward(opened->model.module, batch.x);
        assert_int_equal(weft_read(out, y, (size_t)weft_numel(out) * sizeof *y), WEFT_OK);
        weft_scope_close(scope);
        for (int64_t k = 0; k < opened->dataset.features; k++)
            in[k] = strstr(c->data, ".csv") ? rows[i][k] : (float)pixels[i][k];
        finish(opened, y, wanted);
        forward(in, got);
        compare(c->name, got, wanted, opened->dataset.outputs);
    }
    weft_loader_free(loader);
    weft__inputs_free(opened->model.ctx, &inputs);
}

static void check_names(const model_case *c, void *handle, const weft__opened_model *opened) {
    const char *const *names;
    int32_t (*best)(const float *);
    const float values[3] = {0.25F, 0.5F, 0.25F};
    if (strstr(c->data, ".csv")) {
        find(handle, "model_columns", &names);
        for (int i = 0; i < 3; i++) assert_string_equal(names[i], columns[i]);
    }
    if (opened->config.task != WEFT__TASK_CLASSIFICATION) return;
    find(handle, "model_classes", &names);
    for (int64_t i = 0; i < opened->dataset.outputs; i++)
        assert_string_equal(names[i], opened->dataset.classes ? opened->dataset.classes[i] : i ? "1" : "0");
    find(handle, "model_best", &best);
    assert_int_equal(best(values), 1);
}

static void check_text(const model_case *c, void *handle, weft__opened_model *opened) {
    int (*next)(int32_t, float *), (*forward)(const int32_t *, int32_t, float *);
    void (*restart)(void);
    static float got[MOST], wanted[MOST];
    int32_t tokens[12];
    find(handle, "model_next", &next);
    find(handle, "model_restart", &restart);
    find(handle, "model_forward", &forward);
    weft_decode_state *cache = weft_decode_state_new(opened->model.module);
    assert_non_null(cache);
    for (int round = 0; round < 2; round++) { /* nothing of a text remains after it */
        weft_decode_state_reset(cache);
        restart();
        for (int i = 0; i < 12; i++) {
            tokens[i] = (i * 5 + round) % (int32_t)opened->dataset.tokens.vocabulary;
            assert_int_equal(weft_gpt_feed(cache, &tokens[i], 1, wanted), WEFT_OK);
            assert_int_equal(next(tokens[i], got), 0);
            compare(c->name, got, wanted, opened->model.rows);
        }
    }
    assert_int_equal(next(-1, got), 1);
    assert_int_equal(next((int32_t)opened->model.rows, got), 1);
    assert_int_equal(next(0, got), weft_decode_state_capacity(cache) == 12 ? 2 : 0);
    assert_int_equal(forward(tokens, 12, got), 0);
    compare(c->name, got, wanted, opened->model.rows);
    weft_decode_state_free(cache);
    const struct {
        int32_t bytes;
        const char *text;
    } * table;
    find(handle, "model_tokens", &table);
    for (int64_t i = 0; i < opened->dataset.tokens.vocabulary; i++) {
        size_t bytes;
        const char *text =
            weft_tokenizer_token(weft__dataset_tokenizer(&opened->dataset), (int32_t)i, &bytes);
        assert_int_equal(table[i].bytes, bytes);
        assert_memory_equal(table[i].text, text, bytes);
    }
}

static void test_case(void **state) {
    const model_case *c = *state;
    weft__opened_model opened;
    void *handle = load(c);
    open_weights(c, handle);
    open_run(c->name, &opened);
    if (opened.config.task == WEFT__TASK_LANGUAGE_MODEL) {
        check_text(c, handle, &opened);
    } else {
        check_samples(c, handle, &opened);
        check_names(c, handle, &opened);
    }
    weft__opened_model_close(&opened);
    dlclose(handle);
}

int main(void) {
    enum { CASES = sizeof cases / sizeof *cases };
    struct CMUnitTest tests[CASES];
    if (!getenv("WEFT_COMMAND") || !at_hand("gcc")) {
        printf("skipped: needs the command weft (WEFT_COMMAND) and gcc\n");
        return 0;
    }
    for (size_t i = 0; i < CASES; i++)
        tests[i] = (struct CMUnitTest){
            .name = cases[i].name, .test_func = test_case, .initial_state = (void *)(uintptr_t)&cases[i]};
    return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
