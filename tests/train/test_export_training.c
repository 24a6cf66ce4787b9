/* weft export --to c --training: for each type of model and each optimizer, the exported source is compiled
 * and loaded, and 20 steps on the same batches give the losses and weights of the library within 1e-5, and
 * what rounding explains (add_slack). The rate changes from step to step. Needs the command (WEFT_COMMAND),
 * which trains the models, and gcc. */
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
#include <weft/recurrent.h>
#include "train/export/export.h"
#include "train/export_help.h"

enum { ROWS = 96, STEPS = 20, BATCH = 4, MOST = 1 << 16 };
#define TOLERANCE 1e-5

static float rows[ROWS][3];
static float wanted_numbers[ROWS][2]; /* the targets of numbers.csv */

static int32_t class_of(int row, int kinds) { return (row + (rows[row][0] > 5)) % kinds; }

/* ---- data ---- */

static void write_table(const char *name, int kinds) {
    FILE *f = fopen(in_scratch(name), "w");
    assert_non_null(f);
    fprintf(f, kinds ? "a,b,c,kind\n" : "a,b,c,price\n");
    for (int i = 0; i < ROWS; i++) {
        for (int c = 0; c < 3; c++) fprintf(f, "%.9g,", (double)rows[i][c]);
        if (kinds)
            fprintf(f, "%c\n", "xyz"[class_of(i, kinds)]);
        else
            fprintf(f, "%.9g\n", (double)wanted_numbers[i][0]);
    }
    fclose(f);
}

static int setup(void **state) {
    if (scratch_setup(state)) return -1;
    for (int i = 0; i < ROWS; i++) {
        for (int c = 0; c < 3; c++) rows[i][c] = number_of(i, c);
        wanted_numbers[i][0] = 3e4F + 100 * rows[i][0] - 20 * rows[i][1];
    }
    write_table("three.csv", 3);
    write_table("two.csv", 2);
    write_table("numbers.csv", 0);
    write_images();
    return write_text() ? 0 : -1;
}

/* ---- cases: each model with each optimizer ---- */

#define STREAMS " --set train.batch=4"
#define EPOCHS  " --set train.epochs=3"

typedef struct model_kind {
    const char *name, *type, *data, *settings;
} model_kind;

static const model_kind kinds[] = {
    {"mlp", "mlp", "three.csv", "--set model.hidden=[40,7]" EPOCHS},
    {"regression", "mlp", "numbers.csv", "--set task=regression --set model.hidden=[16]" EPOCHS},
    {"linear", "linear", "numbers.csv", EPOCHS}, /* more epochs leave no loss to compare */
    {"logistic2", "logistic", "two.csv", "--set train.epochs=20"},
    {"logistic3", "logistic", "three.csv", "--set train.epochs=20"},
    {"cnn", "cnn", "some-images-idx3-ubyte", "--set model.filters=[4,6] --set model.hidden=[12]" EPOCHS},
    {"gpt", "gpt", "text.txt", TINY},
    {"lstm", "lstm", "text.txt", TINY STREAMS},
    {"gru", "gru", "text.txt", TINY STREAMS},
};

static const struct optimizer_kind {
    const char *name, *settings;
    double rate;
} optimizers[] = {
    {"sgd", "--set optimizer.momentum=0.9 --set optimizer.clip=0.5 --set optimizer.weight_decay=0.01", 0.05},
    {"rmsprop", "--set optimizer.momentum=0.5 --set optimizer.weight_decay=0.01", 0.0003},
    {"adam", "--set optimizer.weight_decay=0.01", 0.002},
    {"adamw", "--set optimizer.weight_decay=0.1 --set optimizer.clip=1", 0.002},
};

typedef struct learn_case {
    char name[40];
    model_kind kind;
    const char *optimizer, *more;
    double rate;
    int batch;
} learn_case;

/* What only some runs have. */
static const struct {
    model_kind kind;
    const char *optimizer, *more;
    double rate;
    int batch;
} others[] = {
    {{"nesterov", "mlp", "three.csv", "--set model.hidden=[9]" EPOCHS},
     "sgd",
     "--set optimizer.momentum=0.9 --set optimizer.nesterov=true",
     0.01,
     1},
    {{"lasso", "mlp", "three.csv", "--set model.hidden=[9]" EPOCHS},
     "adam",
     "--set optimizer.l1=0.01",
     0.01,
     BATCH},
    {{"ridge", "linear", "numbers.csv", "--set train.epochs=20"},
     "sgd",
     "--set model.ridge=3 --set model.lasso=0.01",
     0.01,
     BATCH},
    {{"weighted", "mlp", "three.csv", "--set model.hidden=[9]" EPOCHS},
     "adam",
     "--set train.class_weights=balanced --set train.label_smoothing=0.1",
     0.01,
     BATCH},
    {{"dropout", "mlp", "three.csv", "--set model.hidden=[40,7]" EPOCHS},
     "adam",
     "--set model.dropout=0.3",
     0.01,
     BATCH},
    {{"rounded", "mlp", "two.csv", "--set model.hidden=[16]" EPOCHS},
     "adam",
     "--set train.precision=bf16",
     0.01,
     BATCH},
    {{"large", "mlp", "three.csv", "--set model.hidden=[700,600]" EPOCHS}, "adam", "", 0.001, BATCH},
    {{"silu", "cnn", "some-images-idx3-ubyte", "--set model.filters=[4] --set model.hidden=[5]" EPOCHS},
     "adam",
     "--set model.activation=silu --set model.dropout=0.2",
     0.01,
     2},
    {{"gelu", "mlp", "three.csv", "--set model.hidden=[9]" EPOCHS},
     "adam",
     "--set model.activation=gelu",
     0.01,
     BATCH},
    {{"resnet", "resnet", "some.bin", "--set model.depth=8 --set model.width=4 --set train.batch=4" EPOCHS},
     "sgd",
     "--set optimizer.momentum=0.9",
     0.05,
     BATCH},
    {{"autoencoder", "autoencoder", "some-images-idx3-ubyte", "--set model.hidden=[8,2]" EPOCHS},
     "adam",
     "",
     0.01,
     BATCH},
    {{"drops", "gpt", "text.txt", TINY}, "adamw", "--set model.dropout=0.2", 0.002, 2},
    {{"llama", "llama", "text.txt", TINY}, "adamw", "--set train.recompute=block", 0.002, 2},
    {{"untied", "lstm", "text.txt", TINY},
     "sgd",
     "--set model.dropout=0.2 --set model.untied_head=true --set data.streams=false",
     0.05,
     1},
};

/* Trains, exports, and compiles as a shared library that traps on undefined behaviour. */
static void *load(const learn_case *c) {
    const char *weft = getenv("WEFT_COMMAND");
    char out[4200];
    snprintf(out, sizeof out, "%s/%s-c", scratch, c->name);
    assert_int_equal(
        run_command("cd %s && %s init %s --data %s --out %s.yaml >/dev/null 2>&1 && %s train %s.yaml --run "
                    "%s %s --set optimizer.type=%s %s --quiet >/dev/null 2>log || (cat log; false)",
                    scratch, weft, c->kind.type, c->kind.data, c->name, weft, c->name, c->name,
                    c->kind.settings, c->optimizer, c->more),
        0);
    assert_int_equal(run_command("%s export %s/%s --to c --training --batch %d --out %s >/dev/null", weft,
                                 scratch, c->name, c->batch, out),
                     0);
    assert_int_equal(run_command("gcc " WARNINGS
                                 " -O1 -fsanitize=undefined -fsanitize-undefined-trap-on-error "
                                 "-shared -fPIC -o %s/model.so %s/model.c -lm",
                                 out, out),
                     0);
    if (at_hand("clang"))
        assert_int_equal(run_command("clang " WARNINGS " -c -o %s.o %s/model.c", out, out), 0);
    strcat(out, "/model.so");
    void *handle = dlopen(out, RTLD_NOW | RTLD_LOCAL);
    if (!handle) print_message("%s\n", dlerror());
    assert_non_null(handle);
    return handle;
}

/* Gives a model its weights, if they are in a file of their own. */
static void open_weights(const learn_case *c, void *handle) {
    static char bytes[16 << 20];
    int (*open)(const void *, size_t);
    char path[4300];
    snprintf(path, sizeof path, "%s/%s-c/model.bin", scratch, c->name);
    FILE *f = fopen(path, "rb");
    assert_int_equal(f != NULL, strcmp(c->kind.name, "large") == 0);
    if (!f) return;
    const size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    find(handle, "model_open", &open);
    assert_int_equal(open(bytes, size), 0);
}

/* ---- both sides of a step ---- */

typedef struct pair {
    const learn_case *c;
    void *handle;
    weft__opened_model opened;
    weft_loader *loader; /* of tables and images */
    weft__inputs inputs;
    weft_array y;
    float *in;        /* raw values of all samples */
    int32_t *classes; /* of all samples; or NULL */
    float *numbers;   /* targets of all samples; or NULL */
    int64_t samples;
    float *slack; /* of all parameters: how much more than TOLERANCE an element may differ (add_slack) */
} pair;

static void open_text(pair *p) {
    p->samples = p->c->batch; /* the batches are made from the number of the step */
    p->classes = calloc((size_t)(p->c->batch * (p->opened.config.model_context + 1)), sizeof *p->classes);
    assert_non_null(p->classes);
    if (strstr(p->c->kind.settings, STREAMS)) /* exported states begin with 0 */
        assert_int_equal(weft_streams_restart(p->opened.model.module), WEFT_OK);
}

/* Reads the inputs as weft predict does, and makes the targets as training does. */
static void open_samples(pair *p) {
    const weft__dataset *d = &p->opened.dataset;
    char path[4200];
    const bool table = strstr(p->c->kind.data, ".csv") != NULL;
    const bool classes = p->opened.config.task == WEFT__TASK_CLASSIFICATION;
    snprintf(path, sizeof path, "%s/%s", scratch, p->c->kind.data);
    assert_int_equal(weft__dataset_inputs(p->opened.model.ctx, d, &p->opened.config, path, &p->inputs),
                     WEFT_OK);
    p->samples = p->inputs.x.shape[0];
    p->in = calloc((size_t)(p->samples * d->features), sizeof *p->in);
    p->classes = calloc((size_t)p->samples, sizeof *p->classes);
    p->numbers = calloc((size_t)(p->samples * d->outputs), sizeof *p->numbers);
    assert_true(p->in && p->classes && p->numbers);
    for (int64_t i = 0; i < p->samples; i++) {
        for (int64_t k = 0; k < d->features; k++)
            p->in[i * d->features + k] = table ? rows[i][k] : (float)pixels[i][k];
        p->classes[i] = table ? class_of((int)i, (int)d->outputs) : (int32_t)(i % 2);
    }
    if (strcmp(p->c->kind.type, "autoencoder") == 0)
        p->y = p->inputs.x;
    else if (classes)
        p->y = (weft_array){.dtype = WEFT_I32, .rank = 1, .shape = {p->samples}, .data = p->classes};
    else
        p->y = (weft_array){.dtype = WEFT_F32, .rank = 2, .shape = {p->samples, 1}, .data = p->numbers};
    for (int64_t i = 0; i < p->samples && !classes; i++)
        if (table)
            p->numbers[i] = (float)(((double)wanted_numbers[i][0] - d->scaling.target_mean[0]) /
                                    d->scaling.target_deviation[0]);
    const weft_loader_options options = {.batch = p->c->batch,
                                         .in_order = true,
                                         .scale = d->scaling.factor,
                                         .images = weft__dataset_images(d, &(weft__image_places){0})};
    assert_int_equal(weft_loader_new(p->opened.model.ctx, &p->inputs.x, &p->y, &options, &p->loader),
                     WEFT_OK);
}

static void pair_open(pair *p, const learn_case *c) {
    char run[4200];
    *p = (pair){.c = c, .handle = load(c)};
    open_weights(c, p->handle);
    snprintf(run, sizeof run, "%s/%s", scratch, c->name);
    const bool data = strstr(c->more, "ridge") || strstr(c->more, "weights");
    const weft__opened_model_options options = {
        .device = "cpu", .precision = "f32", .trains = true, .with_data = data};
    assert_int_equal(weft__opened_model_open(run, &options, &p->opened), WEFT_OK);
    if (p->opened.config.task == WEFT__TASK_LANGUAGE_MODEL)
        open_text(p);
    else
        open_samples(p);
    p->slack = calloc((size_t)MOST << 4, sizeof *p->slack);
    assert_non_null(p->slack);
}

static void pair_close(pair *p) {
    weft_loader_free(p->loader);
    weft__inputs_free(p->opened.model.ctx, &p->inputs);
    free(p->in), free(p->classes), free(p->numbers), free(p->slack);
    weft__opened_model_close(&p->opened);
    dlclose(p->handle);
}

/* Fills the texts of a step. */
static void write_texts(const pair *p, int step) {
    const int64_t window = p->opened.config.model_context + 1;
    for (int64_t i = 0; i < p->c->batch * window; i++)
        p->classes[i] = (int32_t)((i * 7 + i * i / 5 + 3 * step) % p->opened.dataset.tokens.vocabulary);
}

static weft_tensor *text_part(const pair *p, int64_t first) {
    static int32_t part[MOST];
    const int64_t context = p->opened.config.model_context, shape[2] = {p->c->batch, context};
    for (int64_t b = 0; b < p->c->batch; b++)
        memcpy(part + b * context, p->classes + b * (context + 1) + first, (size_t)context * sizeof *part);
    return weft_from(p->opened.model.ctx, WEFT_I32, 2, shape, part);
}

/* Makes a step with the library. Returns the loss. */
static double learn_here(pair *p, int step, float rate) {
    weft__model *m = &p->opened.model;
    weft_batch batch = {0};
    weft_tensor *loss;
    weft_scope *scope = weft_scope_open(m->ctx);
    if (p->loader) {
        assert_int_equal(weft_loader_get(p->loader, (uint64_t)step, &batch), WEFT_OK);
    } else {
        batch.x = text_part(p, 0);
        batch.y = text_part(p, 1);
    }
    assert_null(batch.mask);
    weft_module_set_training(m->module, true);
    assert_int_equal(weft__model_loss(m, &p->opened.config, &p->opened.dataset, &batch, &loss), WEFT_OK);
    weft_module_set_training(m->module, false);
    assert_int_equal(weft_optimizer_set_lr(m->optimizer, (double)rate), WEFT_OK);
    assert_int_equal(weft_optimizer_step(m->optimizer, loss), WEFT_OK);
    const double value = weft_item(loss);
    weft_scope_close(scope);
    return value;
}

/* Makes a step with the exported source. */
static float learn_there(const pair *p, int step, float rate) {
    float (*classes)(const float *, const int32_t *, float), (*numbers)(const float *, const float *, float),
        (*texts)(const int32_t *, float), (*inputs)(const float *, float);
    const weft__dataset *d = &p->opened.dataset;
    if (!p->loader) {
        find(p->handle, "model_train", &texts);
        return texts(p->classes, rate);
    }
    const int64_t first = step * p->c->batch % p->samples;
    const float *in = p->in + first * d->features;
    if (strcmp(p->c->kind.type, "autoencoder") == 0) {
        find(p->handle, "model_train", &inputs);
        return inputs(in, rate);
    }
    if (p->opened.config.task == WEFT__TASK_CLASSIFICATION) {
        find(p->handle, "model_train", &classes);
        return classes(in, p->classes + first, rate);
    }
    float raw[BATCH];
    for (int i = 0; i < p->c->batch; i++) raw[i] = wanted_numbers[first + i][0];
    find(p->handle, "model_train", &numbers);
    return numbers(in, raw, rate);
}

static void expect_close(const pair *p, const char *what, double got, double wanted, double scale,
                         double slack) {
    const bool close = isfinite(got) && fabs(got - wanted) <= TOLERANCE * scale + slack;
    if (!close)
        print_message("%s: %s: %.9g is wanted, but it is %.9g: %.3g of the scale %.3g, slack %.3g\n",
                      p->c->name, what, wanted, got, fabs(got - wanted) / scale, scale, slack);
    assert_true(close);
}

typedef struct parameter {
    const char *name;
    int32_t count, rank, shape[WEFT_MAX_RANK];
    float *values;
} parameter;

/* RMSprop and Adam divide by the root of v, the mean square of the gradient g. So they also enlarge its
 * rounding error. An element of g is a sum over n samples or tokens, whose terms are about as large as those
 * of the largest element G of its parameter. n independent roundings, each at most u = 2^-24 of the terms,
 * give an error of about sqrt(n) u G (Higham and Mary 2019). A step of this element then differs by up to
 *
 *     rate sqrt(n) u G / sqrt(v),    with G / sqrt(v) estimated by sqrt(largest v / v)
 *
 * where v is that of RMSprop divided by 1 - alpha^t, as Adam does. Momentum makes 1 / (1 - momentum) steps of
 * one. Elements whose gradient is only rounding may differ by whole steps: the bias of keys is one, since
 * softmax does not change if all scores of a query do. */
static void add_slack(pair *p, double rate) {
    const weft__config *config = &p->opened.config;
    weft_optimizer *opt = p->opened.model.optimizer;
    const double n = p->loader ? p->c->batch : (double)(p->c->batch * config->model_context),
                 t = (double)weft_optimizer_steps(opt);
    double factor = rate * sqrt(n) * 0x1p-24;
    static float v[MOST << 4];
    weft_parameter_info info;
    weft_named_tensor s;
    if (config->optimizer_type == WEFT__OPTIMIZER_RMSPROP)
        factor /= (1 - config->optimizer_momentum) * sqrt(1 - pow(config->optimizer_alpha, t));
    float *slack = p->slack;
    for (size_t i = 0; weft_parameter_get(p->opened.model.module, i, &info); i++) {
        const int64_t count = weft_numel(info.tensor);
        for (size_t k = 0; weft_optimizer_state_get(opt, k, &s); k++) {
            double largest = 0;
            if (strncmp(s.name, "v.", 2) != 0 || strcmp(s.name + 2, info.name) != 0) continue;
            assert_int_equal(weft_read(s.tensor, v, (size_t)count * sizeof *v), WEFT_OK);
            for (int64_t j = 0; j < count; j++) largest = fmax(largest, (double)v[j]);
            for (int64_t j = 0; j < count; j++)
                slack[j] += v[j] > 0 ? (float)(factor * sqrt(largest / (double)v[j])) : 0;
        }
        slack += count;
    }
}

/* Compares each parameter and buffer, relative to its largest number. Returns the largest difference. */
static double compare_parameters(const pair *p) {
    static float wanted[MOST << 4];
    const parameter *list;
    const size_t count = weft_parameter_count(p->opened.model.module);
    const float *slack = p->slack;
    double most = 0;
    find(p->handle, "model_parameters", &list);
    for (size_t i = 0; i < count; i++) {
        weft_parameter_info info;
        assert_true(weft_parameter_get(p->opened.model.module, i, &info));
        assert_string_equal(list[i].name, info.name);
        assert_int_equal(list[i].count, weft_numel(info.tensor));
        assert_int_equal(list[i].rank, weft_rank(info.tensor));
        for (int d = 0; d < list[i].rank; d++) assert_int_equal(list[i].shape[d], weft_dim(info.tensor, d));
        assert_int_equal(weft_read(info.tensor, wanted, (size_t)list[i].count * sizeof *wanted), WEFT_OK);
        double scale = 0;
        for (int32_t k = 0; k < list[i].count; k++) scale = fmax(scale, fabs((double)wanted[k]));
        for (int32_t k = 0; k < list[i].count; k++) {
            const double difference = fabs((double)list[i].values[k] - (double)wanted[k]);
            most = fmax(most, difference / fmax(scale, 1e-30));
            expect_close(p, info.name, (double)list[i].values[k], (double)wanted[k], scale, (double)slack[k]);
        }
        slack += list[i].count;
    }
    return most;
}

static float rate_of(const pair *p, int step) { return (float)(p->c->rate * (1 + step % 3)); }

/* A wrong class or token changes nothing. */
static void refuse_bad(const pair *p) {
    int32_t *last =
        p->classes + (p->loader ? p->c->batch : p->c->batch * (p->opened.config.model_context + 1)) - 1;
    const int32_t kept = *last;
    if (p->opened.config.task == WEFT__TASK_REGRESSION) return;
    *last = -1;
    assert_true(learn_there(p, 0, 1) == -1);
    *last = (int32_t)(p->loader ? p->opened.dataset.outputs : p->opened.model.tokens);
    assert_true(learn_there(p, 0, 1) == -1);
    *last = kept;
}

/* A saved state goes on with the same bits. A damaged one is refused. */
static void check_state(const pair *p, const unsigned char *before, size_t size) {
    static unsigned char first[MOST << 7], second[MOST << 7];
    void (*save)(void *);
    int (*go_on)(const void *, size_t);
    uint64_t (*steps)(void);
    find(p->handle, "model_save", &save);
    find(p->handle, "model_load", &go_on);
    find(p->handle, "model_steps", &steps);
    save(first);
    assert_int_equal(go_on(before, size), 0);
    memcpy(second, before, size);
    second[size / 2] ^= 1;
    assert_int_equal(go_on(second, size), 1);
    second[size / 2] ^= 1;
    second[0] ^= 1;
    assert_int_equal(go_on(second, size), 1);
    assert_int_equal(go_on(before, size - 1), 1);
    for (int i = STEPS / 2; i < STEPS; i++) {
        if (!p->loader) write_texts(p, i);
        learn_there(p, i, rate_of(p, i));
    }
    save(second);
    assert_memory_equal(first, second, size);
    assert_int_equal(steps(), weft_optimizer_steps(p->opened.model.optimizer));
}

static size_t state_size(const pair *p) {
    char path[4300], line[300];
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s-c/model.h", scratch, p->c->name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) (void)sscanf(line, "#define MODEL_STATE %zu", &size);
    fclose(f);
    assert_true(size > 20 && size < MOST << 7);
    return size;
}

static void test_learn(void **state) {
    static unsigned char half[MOST << 7];
    const learn_case *c = *state;
    pair p;
    double worst = 0;
    float (*norm)(void);
    void (*save)(void *);
    pair_open(&p, c);
    find(p.handle, "model_norm", &norm);
    find(p.handle, "model_save", &save);
    if (!p.loader) write_texts(&p, 0);
    refuse_bad(&p);
    compare_parameters(&p);
    for (int i = 0; i < STEPS; i++) {
        if (i == STEPS / 2) save(half);
        if (!p.loader) write_texts(&p, i);
        const double wanted = learn_here(&p, i, rate_of(&p, i)),
                     got = (double)learn_there(&p, i, rate_of(&p, i));
        worst = fmax(worst, fabs(got - wanted) / wanted);
        add_slack(&p, (double)rate_of(&p, i));
        expect_close(&p, "loss", got, wanted, wanted, 0);
        const double limit = weft_optimizer_grad_norm(p.opened.model.optimizer);
        assert_true(fabs((double)norm() - limit) <= 1e-4 * limit);
    }
    const double most = compare_parameters(&p);
    print_message("%s: losses differ by %.1e, weights by %.1e\n", c->name, worst, most);
    check_state(&p, half, state_size(&p));
    pair_close(&p);
}

int main(int argc, char **argv) {
    enum {
        KINDS = sizeof kinds / sizeof *kinds,
        OPTIMIZERS = sizeof optimizers / sizeof *optimizers,
        OTHERS = sizeof others / sizeof *others,
        CASES = KINDS * OPTIMIZERS + OTHERS
    };
    static learn_case cases[CASES];
    static struct CMUnitTest tests[CASES];
    size_t n = 0;
    if (!getenv("WEFT_COMMAND") || !at_hand("gcc")) {
        printf("skipped: needs the command weft (WEFT_COMMAND) and gcc\n");
        return 0;
    }
    for (size_t i = 0; i < KINDS * OPTIMIZERS; i++) {
        const struct optimizer_kind *o = &optimizers[i % OPTIMIZERS];
        learn_case *c = &cases[n++];
        *c = (learn_case){.kind = kinds[i / OPTIMIZERS],
                          .optimizer = o->name,
                          .more = o->settings,
                          .rate = o->rate,
                          .batch = BATCH};
        snprintf(c->name, sizeof c->name, "%s-%s", c->kind.name, o->name);
    }
    for (size_t i = 0; i < OTHERS; i++) {
        learn_case *c = &cases[n++];
        *c = (learn_case){.kind = others[i].kind,
                          .optimizer = others[i].optimizer,
                          .more = others[i].more,
                          .rate = others[i].rate,
                          .batch = others[i].batch};
        snprintf(c->name, sizeof c->name, "%s", c->kind.name);
    }
    for (size_t i = 0; i < CASES; i++)
        tests[i] =
            (struct CMUnitTest){.name = cases[i].name, .test_func = test_learn, .initial_state = &cases[i]};
    if (argc > 1) cmocka_set_test_filter(argv[1]); /* such as cnn-* */
    return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
