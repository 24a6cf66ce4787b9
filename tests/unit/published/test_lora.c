/* Low-rank adapters: ten training steps against those of peft, what they leave alone, what is written, and
 * bad calls. */
#include <weft/fit.h>

#include "unit/published/models.h"

enum { STEPS = 10, TARGETS = 7 };
static const char *const targets[TARGETS] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                             "gate_proj", "up_proj", "down_proj"};
static const weft_lora_options all = {.rank = 4, .alpha = 6, .targets = targets, .target_count = TARGETS};

static bool is_adapter(const char *name) { return strstr(name, ".lora_") != NULL; }

/* Gives each A the pattern that make_models.py gives it. */
static void fill_adapters(weft_module *model) {
    weft_parameter_info p;
    for (size_t i = 0; weft_parameter_get(model, i, &p); i++) {
        int layer, target = 0;
        float data[4 * 64];
        if (!strstr(p.name, ".lora_A.")) continue;
        assert_int_equal(sscanf(p.name, "h.%d.", &layer), 1);
        while (!strstr(p.name, targets[target])) target++;
        const int64_t n = weft_numel(p.tensor);
        assert_true(n <= (int64_t)COUNT(data));
        fill(data, n, layer * TARGETS + target, 0);
        assert_ok(weft_write(p.tensor, data, (size_t)n * sizeof *data));
    }
}

static weft_module *open_adapted(weft_context *ctx, const char *folder, const weft_lora_options *options,
                                 weft_dtype dtype) {
    weft_module *model = weft_published_new(ctx, folder, &(weft_published_options){.dtype = dtype});
    assert_ok(weft_gpt_lora(model, options));
    assert_ok(weft_published_load(model, folder));
    return model;
}

/* The mean cross-entropy of the next tokens. */
static weft_tensor *loss_of(weft_module *model, const int32_t *tokens) {
    weft_context *ctx = weft_module_context(model);
    int32_t next[BATCH * (TIME - 1)], now[BATCH * TIME];
    memcpy(now, tokens, sizeof now);
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i + 1 < TIME; i++) next[b * (TIME - 1) + i] = tokens[b * TIME + i + 1];
    weft_tensor *y = weft_forward(model, weft_from(ctx, WEFT_I32, SHAPE(BATCH, TIME), now));
    y = weft_reshape(weft_narrow(y, 1, 0, TIME - 1), SHAPE(BATCH * (TIME - 1), VOCAB));
    return weft_cross_entropy(y, weft_from(ctx, WEFT_I32, SHAPE(BATCH * (TIME - 1)), next), NULL);
}

static void read_logits(weft_module *model, const int32_t *tokens, float logits[VOCAB]) {
    weft_context *ctx = weft_module_context(model);
    static float all_logits[BATCH * TIME * VOCAB];
    weft_scope *scope = weft_scope_open(ctx);
    weft_module_set_training(model, false);
    assert_ok(weft_read(weft_forward(model, weft_from(ctx, WEFT_I32, SHAPE(BATCH, TIME), tokens)), all_logits,
                        sizeof all_logits));
    weft_module_set_training(model, true);
    weft_scope_close(scope);
    memcpy(logits, all_logits + (TIME - 1) * VOCAB, VOCAB * sizeof *logits);
}

/* Trains with AdamW. losses may be NULL. */
static void train(weft_module *model, const int32_t *tokens, double losses[STEPS]) {
    weft_context *ctx = weft_module_context(model);
    weft_optimizer *adam = weft_adamw(model, &(weft_adam_options){.lr = 0.01});
    for (int i = 0; i < STEPS; i++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *loss = loss_of(model, tokens);
        assert_ok(weft_optimizer_step(adam, loss));
        if (losses) losses[i] = weft_item(loss);
        weft_scope_close(scope);
    }
    weft_optimizer_free(adam);
}

static void test_peft(void **state) {
    (void)state;
    json_error_t error;
    json_t *root = read_model("llama.json"),
           *want = json_load_file("tests/unit/published/lora.json", 0, &error);
    int32_t tokens[BATCH * TIME];
    double losses[STEPS];
    float logits[VOCAB];
    weft_context *ctx = open_device(NULL, false);
    assert_non_null(want);
    take_tokens(root, tokens);
    const char *folder = make_folder(ctx, root, WEFT_F32, "model");
    weft_module *model = open_adapted(ctx, folder, &all, WEFT_F32);
    fill_adapters(model);
    train(model, tokens, losses);
    for (size_t i = 0; i < STEPS; i++) {
        const double right = json_number_value(json_array_get(json_object_get(want, "losses"), i));
        if (!(fabs(losses[i] - right) <= 1e-4 * right))
            fail_msg("loss %zu is %.8g, peft has %.8g", i, losses[i], right);
    }
    read_logits(model, tokens, logits);
    for (size_t i = 0; i < VOCAB; i++) {
        const double right = json_number_value(json_array_get(json_object_get(want, "logits"), i));
        if (!(fabs(logits[i] - right) <= 2e-3))
            fail_msg("logit %zu is %.7g, peft has %.7g", i, (double)logits[i], right);
    }
    json_decref(want);
    json_decref(root);
    weft_close(ctx);
}

/* A file of adapters alone makes another copy of the base compute the same bits. */
static void check_alone(weft_module *model, const char *folder, const int32_t *tokens, const float *right) {
    weft_context *ctx = weft_module_context(model);
    weft_module *other = open_adapted(ctx, folder, &all, WEFT_F32);
    weft_entry *entries;
    weft_safetensors *file;
    weft_parameter_info p;
    size_t count, adapters = 0;
    float logits[VOCAB];
    const char *path = in_scratch("adapters.safetensors");
    for (size_t i = 0; weft_parameter_get(model, i, &p); i++) adapters += is_adapter(p.name);
    assert_ok(weft_module_entries_trained(model, &entries, &count));
    assert_int_equal(count, adapters);
    assert_ok(weft_safetensors_write(ctx, path, entries, count, NULL, 0));
    weft_entries_free(ctx, entries, count);
    assert_ok(weft_safetensors_open(ctx, path, &file));
    assert_int_equal(weft_module_load_from(other, file), WEFT_ERR_FORMAT); /* the base is not in the file */
    assert_ok(weft_module_load_trained(other, file));
    weft_safetensors_close(file);
    read_logits(other, tokens, logits);
    assert_memory_equal(logits, right, sizeof logits);
    weft_module_free(other);
    remove_all(path);
}

/* Training changes the adapters alone; the written model computes what the model with adapters computes. */
static void test_merged(void **state) {
    (void)state;
    static const char *const models[] = {"llama.json", "gpt_neox.json", "gpt2.json", "phi3.json",
                                         "gemma2.json"};
    weft_context *ctx = open_device(NULL, false);
    for (size_t k = 0; k < COUNT(models); k++) {
        json_t *root = read_model(models[k]);
        int32_t tokens[BATCH * TIME];
        float with[VOCAB], without[VOCAB], merged[VOCAB], kept[4], now[4];
        weft_parameter_info p;
        take_tokens(root, tokens);
        const char *folder = make_folder(ctx, root, WEFT_F32, "model");
        weft_module *model = open_adapted(ctx, folder, &all, WEFT_F32);
        weft_module *plain = weft_published_new(ctx, folder, NULL);
        assert_ok(weft_published_load(plain, folder));
        read_logits(plain, tokens, without);
        read_logits(model, tokens, with);
        assert_memory_equal(with, without, sizeof with); /* B is 0 */
        assert_true(weft_parameter_find(model, "h.0.attn.c_attn.weight", &p));
        assert_true(p.frozen);
        assert_ok(weft_read(weft_reshape(weft_narrow(weft_narrow(p.tensor, 0, 0, 1), 1, 0, 4), SHAPE(4)),
                            kept, sizeof kept));
        train(model, tokens, NULL);
        assert_ok(weft_read(weft_reshape(weft_narrow(weft_narrow(p.tensor, 0, 0, 1), 1, 0, 4), SHAPE(4)), now,
                            sizeof now));
        assert_memory_equal(kept, now, sizeof now);
        read_logits(model, tokens, with);
        double moved = 0;
        for (int i = 0; i < VOCAB; i++) moved = fmax(moved, fabs((double)with[i] - (double)without[i]));
        assert_true(moved > 0.01);
        const char *saved = in_scratch("saved");
        assert_ok(weft_published_save(model, folder, saved, WEFT_F32));
        weft_module *again = weft_published_new(ctx, saved, NULL);
        assert_ok(weft_published_load(again, saved));
        read_logits(again, tokens, merged);
        for (int i = 0; i < VOCAB; i++)
            if (!(fabsf(merged[i] - with[i]) <= 2e-4F))
                fail_msg("%s: logit %d is %g, with adapters %g", models[k], i, (double)merged[i],
                         (double)with[i]);
        check_alone(model, folder, tokens, with);
        assert_ok(weft_gpt_merge_lora(model));
        for (size_t i = 0; weft_parameter_get(model, i, &p); i++)
            assert_false(p.frozen || is_adapter(p.name));
        read_logits(model, tokens, merged);
        for (int i = 0; i < VOCAB; i++) assert_true(fabsf(merged[i] - with[i]) <= 2e-4F);
        assert_ok(weft_gpt_merge_lora(model)); /* nothing to do */
        weft_module_free(model);
        weft_module_free(plain);
        weft_module_free(again);
        remove_all(folder);
        remove_all(saved);
        json_decref(root);
    }
    weft_close(ctx);
}

/* Adapters of a model in bf16 are f32, and train. */
static void test_half(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("llama.json");
    int32_t tokens[BATCH * TIME];
    double losses[STEPS];
    weft_parameter_info p;
    take_tokens(root, tokens);
    const char *folder = make_folder(ctx, root, WEFT_F32, "model");
    weft_module *model = open_adapted(ctx, folder, NULL, WEFT_BF16);
    size_t adapters = 0;
    for (size_t i = 0; weft_parameter_get(model, i, &p); i++) {
        assert_int_equal(weft_dtype_of(p.tensor), is_adapter(p.name) ? WEFT_F32 : WEFT_BF16);
        adapters += is_adapter(p.name);
    }
    assert_int_equal(adapters, 2 * 2 * 2); /* layers, q_proj and v_proj, A and B */
    train(model, tokens, losses);
    assert_true(losses[STEPS - 1] < losses[0] - 0.02);
    json_decref(root);
    weft_close(ctx);
}

/* The number of adapters whose paths begin with a prefix. */
static size_t count_adapters(weft_module *model, const char *prefix) {
    weft_parameter_info p;
    size_t count = 0;
    for (size_t i = 0; weft_parameter_get(model, i, &p); i++)
        count += strstr(p.name, ".lora_A.") && strncmp(p.name, prefix, strlen(prefix)) == 0;
    return count;
}

/* Targets may be patterns of paths; peft then gets the names of single layers. */
static void test_patterns(void **state) {
    (void)state;
    static const char *const some[] = {"h.1.?_proj", "v_proj", "h.1.v_*"}, *const none[] = {"h.9.*"};
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("llama.json");
    const char *folder = make_folder(ctx, root, WEFT_F32, "model");
    weft_module *model =
        open_adapted(ctx, folder, &(weft_lora_options){.targets = some, .target_count = 3}, WEFT_F32);
    assert_int_equal(count_adapters(model, "h.0."), 1);
    assert_int_equal(count_adapters(model, "h.1."), 4); /* q, k, v and o */
    const char *saved = in_scratch("peft");
    assert_ok(weft_published_save_lora(model, folder, NULL, saved));
    char path[4096];
    snprintf(path, sizeof path, "%s/adapter_config.json", saved);
    json_t *config = json_load_file(path, 0, NULL);
    char *text = json_dumps(json_object_get(config, "target_modules"), JSON_COMPACT);
    assert_string_equal(text, "[\"v_proj\",\"model.layers.1.self_attn.q_proj\","
                              "\"model.layers.1.self_attn.k_proj\",\"model.layers.1.self_attn.o_proj\"]");
    free(text);
    weft_module *other = weft_published_new(ctx, folder, NULL);
    assert_int_equal(weft_gpt_lora(other, &(weft_lora_options){.targets = none, .target_count = 1}),
                     WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "'h.9.*' is unknown"));
    json_decref(config);
    json_decref(root);
    weft_close(ctx);
}

static void test_refused(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    const weft_gpt_options small = {.vocab = 8, .context = 8, .layers = 1, .heads = 2, .width = 8};
    const char *const wrong[] = {"qkv"}, *const twice[] = {"q_proj", "q_proj"};
    weft_module *gpt = weft_nn_gpt(ctx, &small);
    assert_int_equal(weft_gpt_lora(gpt, &(weft_lora_options){.targets = wrong, .target_count = 1}),
                     WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "'qkv' is unknown: give q_proj"));
    assert_int_equal(weft_gpt_lora(gpt, &(weft_lora_options){.rank = -1}), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_gpt_lora(gpt, &(weft_lora_options){.dropout = 1}), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_gpt_lora(weft_nn_linear(ctx, 2, 2, NULL), NULL), WEFT_ERR_ARGUMENT);
    assert_ok(weft_gpt_lora(gpt, &(weft_lora_options){.targets = twice, .target_count = 2}));
    assert_int_equal(count_adapters(gpt, ""), 1); /* of q_proj, once */
    gpt = weft_nn_gpt(ctx, &small);
    assert_ok(weft_module_prepare(gpt));
    assert_int_equal(weft_gpt_lora(gpt, NULL), WEFT_ERR_STATE);
    gpt = weft_nn_gpt(ctx, &small);
    assert_ok(weft_gpt_lora(gpt, NULL));
    weft_optimizer *adam = weft_adamw(gpt, NULL);
    assert_int_equal(weft_gpt_merge_lora(gpt), WEFT_ERR_STATE);
    weft_optimizer_free(adam);
    assert_ok(weft_gpt_merge_lora(gpt));
    assert_int_equal(weft_gpt_merge_lora(weft_nn_linear(ctx, 2, 2, NULL)), WEFT_ERR_ARGUMENT);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_peft), cmocka_unit_test(test_merged),
                                       cmocka_unit_test(test_half), cmocka_unit_test(test_patterns),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
