/* Fine-tuning encoders as classifiers: ten steps over texts and pairs of texts have the losses of
 * transformers with PyTorch (make_models.py), and what is saved gives its logits. Also heads that files lack
 * or have for other classes, and batches that are cut to their longest text. */
#include <weft/fit.h>

#include "device.h"
#include "unit/published/models.h"

enum { TEXTS = 4, LABELS = 3, STEPS = 10, ROW = 20 };
static const char *const kinds[] = {"bert", "roberta", "distilbert"};

typedef struct labelled {
    int32_t x[TEXTS][2][ROW], y[TEXTS], lengths[TEXTS];
} labelled;

static json_t *read_file(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "tests/unit/published/%s.json", name);
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (!root) fail_msg("%s: %s", path, error.text);
    return root;
}

static int32_t number_at(json_t *root, const char *key, size_t i) {
    return (int32_t)json_integer_value(json_array_get(json_object_get(root, key), i));
}

static void take_rows(json_t *root, labelled *r) {
    for (size_t i = 0; i < TEXTS; i++) {
        json_t *row = json_array_get(json_object_get(root, "rows"), i);
        const int32_t length = (int32_t)json_array_size(row), second = number_at(root, "second", i);
        r->y[i] = number_at(root, "labels", i);
        r->lengths[i] = length;
        for (int32_t t = 0; t < ROW; t++) {
            r->x[i][0][t] = t < length ? (int32_t)json_integer_value(json_array_get(row, (size_t)t)) : 1;
            r->x[i][1][t] = t < length ? t >= second : -1;
        }
    }
}

/* The folder of a model of encoders/. */
static const char *folder_for(weft_context *ctx, const char *kind, const char *ending) {
    char name[64], file[128];
    snprintf(name, sizeof name, "%s%s", kind, ending);
    snprintf(file, sizeof file, "encoders/%s", name);
    json_t *root = read_file(file);
    const char *folder = make_folder(ctx, root, WEFT_F32, name);
    json_decref(root);
    return folder;
}

static weft_module *open_classifier(weft_context *ctx, const char *folder, int64_t labels) {
    weft_module *model = weft_published_new(ctx, folder, &(weft_published_options){.labels = labels});
    assert_ok(weft_module_status(model));
    assert_ok(weft_published_load(model, folder));
    return model;
}

static weft_loader *loader_of(weft_context *ctx, const labelled *r, int64_t batch, bool cut) {
    weft_loader *loader;
    const weft_array x = {WEFT_I32, 3, {TEXTS, 2, ROW}, (void *)(uintptr_t)r->x, sizeof r->x},
                     y = {WEFT_I32, 1, {TEXTS}, (void *)(uintptr_t)r->y, sizeof r->y};
    assert_ok(weft_loader_new(
        ctx, &x, &y,
        &(weft_loader_options){
            .batch = batch, .in_order = true, .classes = LABELS, .lengths = cut ? r->lengths : NULL},
        &loader));
    return loader;
}

static weft_status note_loss(void *user, const weft_fit_state *state, bool *stop) {
    (void)stop;
    return weft_fit_losses(state, (double *)user + state->step - 1, NULL);
}

static void check_near(const char *kind, const char *what, size_t i, double got, double want, double within) {
    if (!(fabs(got - want) <= within))
        fail_msg("%s: %s %zu is %.9g, PyTorch has %.9g", kind, what, i, got, want);
}

/* The saved folder, without the options of training, gives the logits of transformers. */
static void check_saved(weft_context *ctx, const char *kind, weft_module *model, const char *from,
                        const labelled *r, json_t *want) {
    const char *saved = in_scratch("saved");
    float got[TEXTS * LABELS];
    assert_ok(weft_published_save(model, from, saved, WEFT_F32));
    weft_module *again = weft_published_new(ctx, saved, NULL);
    assert_ok(weft_module_status(again));
    assert_ok(weft_published_load(again, saved));
    weft_module_set_training(again, false);
    weft_tensor *states = weft_forward(again, weft_from(ctx, WEFT_I32, SHAPE(TEXTS, 2, ROW), r->x));
    assert_ok(weft_read(weft_encoder_logits(again, states), got, sizeof got));
    for (size_t i = 0; i < COUNT(got); i++)
        check_near(kind, "logit", i, (double)got[i],
                   json_number_value(json_array_get(json_array_get(want, i / LABELS), i % LABELS)), 1e-4);
    weft_module_free(again);
    remove_all(saved);
}

static void check_steps(weft_context *ctx, json_t *root, const char *kind, bool cut) {
    labelled r;
    double losses[STEPS];
    take_rows(root, &r);
    const char *folder = folder_for(ctx, kind, "-classes");
    weft_module *model = open_classifier(ctx, folder, LABELS);
    weft_optimizer *opt = weft_adamw(
        model, &(weft_adam_options){.lr = 0.001, .weight_decay = 0.1, .decay_matrices_only = true});
    weft_loader *loader = loader_of(ctx, &r, 2, cut);
    assert_ok(weft_fit(model, opt, loader,
                       &(weft_fit_options){.steps = STEPS, .on_step = note_loss, .user = losses}, NULL));
    json_t *want = json_object_get(root, kind);
    for (size_t i = 0; i < STEPS; i++) {
        const double loss = json_number_value(json_array_get(json_object_get(want, "losses"), i));
        check_near(kind, "loss", i, losses[i], loss, 1e-4 * loss);
    }
    check_saved(ctx, kind, model, folder, &r, json_object_get(want, "logits"));
    weft_loader_free(loader);
    weft_optimizer_free(opt);
    weft_module_free(model);
}

static void test_steps(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_file("classified");
    for (size_t i = 0; i < COUNT(kinds); i++) check_steps(ctx, root, kinds[i], true);
    if (test_on_cpu()) check_steps(ctx, root, "bert", false);
    json_decref(root);
    weft_close(ctx);
}

static void read_parameter(weft_module *m, const char *name, float *values, size_t bytes) {
    weft_parameter_info p;
    for (size_t i = 0; weft_parameter_get(m, i, &p); i++)
        if (strcmp(p.name, name) == 0) {
            assert_ok(weft_read(p.tensor, values, bytes));
            return;
        }
    fail_msg("no parameter %s", name);
}

/* A model without a head, and one with a head for other classes, get a random one. What the files have of the
 * head is kept. */
static void test_heads(void **state) {
    (void)state;
    enum { WIDTH = 32 };
    weft_context *ctx = open_device(NULL, false);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        float before[5 * WIDTH], after[5 * WIDTH], pooled[2][WIDTH];
        const char *folder = folder_for(ctx, kinds[i], "-classes");
        weft_module *model = weft_published_new(ctx, folder, &(weft_published_options){.labels = 5});
        assert_ok(weft_module_prepare(model));
        read_parameter(model, "classifier.weight", before, sizeof before);
        assert_ok(weft_published_load(model, folder));
        read_parameter(model, "classifier.weight", after, sizeof after);
        assert_memory_equal(before, after, sizeof before);
        read_parameter(model, "pooler.bias", pooled[0], sizeof pooled[0]);
        weft_module *kept = open_classifier(ctx, folder, LABELS);
        read_parameter(kept, "pooler.bias", pooled[1], sizeof pooled[1]);
        assert_memory_equal(pooled[0], pooled[1], sizeof pooled[0]);
        read_parameter(kept, "classifier.weight", after, LABELS * WIDTH * sizeof *after);
        assert_true(memcmp(before, after, LABELS * WIDTH * sizeof *after) != 0);
        weft_module_free(kept);
        weft_module_free(model);
        weft_module_free(open_classifier(ctx, folder_for(ctx, kinds[i], ""), 2));
    }
    weft_close(ctx);
}

/* The sizes of batches, and what is refused. */
static void test_lengths(void **state) {
    (void)state;
    enum { N = 3, T = 100 };
    weft_context *ctx = open_device(NULL, false);
    static int32_t x[N][T];
    int32_t lengths[N] = {1, 49, 98};
    const int64_t sizes[N] = {16, 64, T};
    for (int i = 0; i < N * T; i++) x[i / T][i % T] = i;
    const weft_array array = {WEFT_I32, 2, {N, T}, x, sizeof x};
    weft_loader_options options = {.batch = 1, .in_order = true, .lengths = lengths};
    for (int where = 0; where < 2; where++) {
        options.device_bytes = where ? -1 : 0;
        weft_loader *loader;
        assert_ok(weft_loader_new(ctx, &array, NULL, &options, &loader));
        for (uint64_t i = 0; i < N; i++) {
            weft_batch batch;
            int32_t row[T];
            weft_scope *scope = weft_scope_open(ctx);
            assert_ok(weft_loader_get(loader, i, &batch));
            assert_int_equal(weft_dim(batch.x, 1), sizes[i]);
            assert_ok(weft_read(batch.x, row, (size_t)sizes[i] * sizeof *row));
            assert_memory_equal(row, x[i], (size_t)sizes[i] * sizeof *row);
            weft_scope_close(scope);
        }
        weft_loader_free(loader);
    }
    for (int bad = 0; bad <= T + 1; bad += T + 1) {
        weft_loader *loader;
        lengths[1] = bad;
        assert_int_equal(weft_loader_new(ctx, &array, NULL, &options, &loader), WEFT_ERR_ARGUMENT);
        assert_non_null(strstr(weft_last_error(ctx), "the length of sample 1"));
    }
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_heads),
                                       cmocka_unit_test(test_lengths)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
