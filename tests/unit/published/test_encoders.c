/* Encoders: for each file of encoders/, written by make_models.py with transformers, a folder with the same
 * weights is made and loaded. States, means and logits must be those of transformers, also of a padded text.
 * Also what is written, and what is refused. */
#include "unit/published/models.h"

enum { WIDTH = 32, LABELS = 3 };
#define BOUND 2e-5 /* relative to the largest number */

static json_t *read_encoder(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "tests/unit/published/encoders/%s.json", name);
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (!root) fail_msg("%s: %s", path, error.text);
    return root;
}

/* Compares a row with row `row` of a list of the file. */
static void check_row(const char *name, json_t *root, const char *list, size_t row, const float *got) {
    json_t *want = json_array_get(json_object_get(root, list), row);
    double most = 0;
    assert_true(json_array_size(want) > 0);
    for (size_t i = 0; i < json_array_size(want); i++)
        most = fmax(most, fabs(json_real_value(json_array_get(want, i))));
    for (size_t i = 0; i < json_array_size(want); i++) {
        const double right = json_real_value(json_array_get(want, i));
        if (!(fabs((double)got[i] - right) <= BOUND * most))
            fail_msg("%s: %s, row %zu: number %zu is %.7g, transformers has %.7g", name, list, row, i,
                     (double)got[i], right);
    }
}

static weft_tensor *mask_of(weft_context *ctx, json_t *root) {
    uint8_t mask[BATCH * TIME];
    for (int i = 0; i < BATCH * TIME; i++)
        mask[i] = i % TIME <
                  json_integer_value(json_array_get(json_object_get(root, "lengths"), (size_t)(i / TIME)));
    return weft_from(ctx, WEFT_BOOL, SHAPE(BATCH, TIME), mask);
}

static weft_module *open_encoder(weft_context *ctx, const char *folder) {
    weft_module *model = weft_published_new(ctx, folder, NULL);
    assert_ok(weft_module_status(model));
    assert_ok(weft_published_load(model, folder));
    weft_module_set_training(model, false);
    return model;
}

static void check_numbers(weft_context *ctx, json_t *root, const char *name, weft_module *model) {
    static const int places[4] = {0, TIME - 1, TIME + 7, TIME + 12};
    static float states[BATCH * TIME * WIDTH], means[BATCH * WIDTH], first[BATCH * WIDTH],
        logits[BATCH * LABELS];
    int32_t tokens[BATCH * TIME];
    take_tokens(root, tokens);
    weft_tensor *mask = mask_of(ctx, root);
    weft_tensor *x = weft_attend(model, weft_from(ctx, WEFT_I32, SHAPE(BATCH, TIME), tokens),
                                 &(weft_attend_options){.mask = mask});
    assert_ok(weft_read(x, states, sizeof states));
    assert_ok(weft_read(weft_encoder_pool(x, mask, WEFT_POOL_MEAN), means, sizeof means));
    assert_ok(weft_read(weft_encoder_pool(x, mask, WEFT_POOL_FIRST), first, sizeof first));
    for (size_t i = 0; i < 4; i++) check_row(name, root, "states", i, states + places[i] * WIDTH);
    for (size_t i = 0; i < BATCH; i++) check_row(name, root, "mean", i, means + i * WIDTH);
    check_row(name, root, "states", 0, first);
    weft_tensor *y = weft_encoder_logits(model, x);
    if (!json_object_get(root, "logits")) {
        assert_int_equal(weft_tensor_status(y), WEFT_ERR_ARGUMENT);
        return;
    }
    assert_ok(weft_read(y, logits, sizeof logits));
    for (size_t i = 0; i < BATCH; i++) check_row(name, root, "logits", i, logits + i * LABELS);
}

/* Writes the model: all tensors that it uses, unchanged. */
static void check_saved(weft_context *ctx, json_t *root, weft_module *model, const char *folder) {
    const char *saved = in_scratch("saved");
    char path[8192];
    tensors t;
    weft_safetensors *file;
    weft_entry_info info;
    size_t found = 0;
    assert_ok(weft_published_save(model, folder, saved, WEFT_F32));
    make_tensors(root, WEFT_F32, &t);
    snprintf(path, sizeof path, "%s/model.safetensors", saved);
    assert_ok(weft_safetensors_open(ctx, path, &file));
    for (size_t i = 0, at; i < t.count; i++) {
        const char *name = t.entries[i].name; /* a base model is saved with its prefix */
        const char *type = json_string_value(json_object_get(json_object_get(root, "config"), "model_type"));
        char longer[256];
        snprintf(longer, sizeof longer, "%s.%s", type, name);
        if (!weft_safetensors_find(file, name, &at) && !weft_safetensors_find(file, longer, &at)) {
            if (!strstr(name, "pooler.")) fail_msg("%s is not saved", name);
            continue;
        }
        assert_true(weft_safetensors_entry(file, at, &info));
        char *data = malloc(info.bytes);
        assert_ok(weft_safetensors_read(file, at, 0, data, info.bytes));
        if (memcmp(data, t.entries[i].data, info.bytes) != 0) fail_msg("%s changed", name);
        free(data);
        found++;
    }
    assert_int_equal(found, weft_safetensors_count(file));
    weft_safetensors_close(file);
    free_tensors(&t);
    remove_all(saved);
}

static void test_numbers(void **state) {
    (void)state;
    static const char *const names[] = {"bert",    "bert-classes",   "distilbert", "distilbert-classes",
                                        "roberta", "roberta-classes"};
    weft_context *ctx = open_device(NULL, false);
    for (size_t i = 0; i < COUNT(names); i++) {
        if (!test_on_cpu() && i % 2 == 0) continue;
        json_t *root = read_encoder(names[i]);
        const char *folder = make_folder(ctx, root, WEFT_F32, names[i]);
        weft_module *model = open_encoder(ctx, folder);
        check_numbers(ctx, root, names[i], model);
        check_saved(ctx, root, model, folder);
        weft_module_free(model);
        json_decref(root);
    }
    weft_close(ctx);
}

/* Without a mask, all tokens count. */
static void test_pooling(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    const float states[2 * 3 * 2] = {1, 2, 3, 4, 5, 9, -1, 0, 2, 2, 5, 7};
    const uint8_t mask[6] = {1, 1, 0, 1, 0, 0};
    float out[4];
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(2, 3, 2), states);
    weft_tensor *m = weft_from(ctx, WEFT_BOOL, SHAPE(2, 3), mask);
    assert_ok(weft_read(weft_encoder_pool(x, m, WEFT_POOL_MEAN), out, sizeof out));
    assert_true(out[0] == 2 && out[1] == 3 && out[2] == -1 && out[3] == 0);
    assert_ok(weft_read(weft_encoder_pool(x, NULL, WEFT_POOL_MEAN), out, sizeof out));
    assert_true(out[0] == 3 && out[1] == 5 && out[2] == 2 && out[3] == 3);
    assert_ok(weft_read(weft_encoder_pool(x, m, WEFT_POOL_FIRST), out, sizeof out));
    assert_true(out[0] == 1 && out[1] == 2 && out[2] == -1 && out[3] == 0);
    weft_tensor *y = weft_encoder_pool(x, x, WEFT_POOL_MEAN);
    assert_int_equal(weft_tensor_status(y), WEFT_ERR_SHAPE);
    y = weft_encoder_pool(x, m, (weft_pooling)7);
    assert_int_equal(weft_tensor_status(y), WEFT_ERR_ARGUMENT);
    weft_close(ctx);
}

/* Training finds the class of texts: which of two tokens they have more often. */
static void test_training(void **state) {
    (void)state;
    enum { N = 16, LENGTH = 6 };
    weft_context *ctx = open_device(NULL, false);
    int32_t tokens[N * LENGTH], classes[N];
    uint8_t mask[N * LENGTH];
    float first = 0, last = 0;
    for (int i = 0; i < N; i++) {
        int ones = 0;
        for (int j = 0; j < LENGTH; j++) {
            tokens[i * LENGTH + j] = i * 37 >> j & 1;
            mask[i * LENGTH + j] = j < 5;
            ones += j < 5 && tokens[i * LENGTH + j];
        }
        classes[i] = ones >= 3;
    }
    weft_module *model = weft_nn_encoder(
        ctx,
        &(weft_encoder_options){.vocab = 2, .context = 8, .layers = 1, .heads = 2, .width = 16, .labels = 2});
    weft_optimizer *opt = weft_adam(model, &(weft_adam_options){.lr = 0.01});
    for (int step = 0; step < 40; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *seen = weft_from(ctx, WEFT_BOOL, SHAPE(N, LENGTH), mask);
        weft_tensor *x = weft_attend(model, weft_from(ctx, WEFT_I32, SHAPE(N, LENGTH), tokens),
                                     &(weft_attend_options){.mask = seen});
        weft_tensor *loss = weft_cross_entropy(weft_encoder_logits(model, x),
                                               weft_from(ctx, WEFT_I32, SHAPE(N), classes), NULL);
        assert_ok(weft_optimizer_step(opt, loss));
        assert_ok(weft_read(loss, step ? &last : &first, sizeof first));
        weft_scope_close(scope);
    }
    if (!(first > 0.6F && last < 0.2F)) fail_msg("the loss is %g, then %g", (double)first, (double)last);
    weft_close(ctx);
}

/* Changes a field of bert.json; the message must have `part`. */
static void refuses(weft_context *ctx, const char *field, json_t *value, const char *part) {
    json_t *root = read_encoder("bert");
    const char *folder = make_folder(ctx, root, WEFT_F32, "refused");
    json_object_set_new(json_object_get(root, "config"), field, value);
    write_config(folder, json_object_get(root, "config"));
    weft_module *model = weft_published_new(ctx, folder, NULL);
    weft_status status = weft_module_status(model);
    if (status == WEFT_OK) status = weft_published_load(model, folder);
    assert_int_equal(status, WEFT_ERR_FORMAT);
    if (!strstr(weft_last_error(ctx), part)) fail_msg("'%s' does not say %s", weft_last_error(ctx), part);
    weft_module_free(model);
    json_decref(root);
}

static void test_refused(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    refuses(ctx, "position_embedding_type", json_string("relative_key"), "position_embedding_type");
    refuses(ctx, "is_decoder", json_true(), "is_decoder");
    refuses(ctx, "hidden_act", json_string("mish"), "hidden_act");
    refuses(ctx, "intermediate_size", json_integer(44), "'encoder.layer.0.intermediate.dense.weight'");
    refuses(ctx, "num_hidden_layers", json_integer(1), "'encoder.layer.1.");
    json_t *root = read_encoder("bert");
    const char *folder = make_folder(ctx, root, WEFT_F32, "refused");
    int32_t tokens[70] = {0};
    weft_module *model = open_encoder(ctx, folder);
    weft_tensor *y = weft_forward(model, weft_from(ctx, WEFT_I32, SHAPE(1, 70), tokens));
    assert_int_equal(weft_tensor_status(y), WEFT_ERR_SHAPE);
    weft_module *empty = weft_nn_encoder(ctx, &(weft_encoder_options){.vocab = 3});
    assert_int_equal(weft_module_status(empty), WEFT_ERR_ARGUMENT);
    json_decref(root);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
