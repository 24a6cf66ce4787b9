/* Exports that are read back: right ones pass in all formats; in each wrong one a single thing is changed,
 * and the check finds it. */
#include "train/export/export.h"
#include "unit/published/gguf_folder.h"

static weft_module *load_model(weft_context *ctx, const char *folder) {
    weft_module *model = weft_published_new(ctx, folder, NULL);
    assert_ok(weft_module_status(model));
    assert_ok(weft_published_load(model, folder));
    weft_module_set_training(model, false);
    return model;
}

static json_t *read_named(const char *name) {
    char file[64];
    snprintf(file, sizeof file, "%s.json", name);
    return read_model(file);
}

static void refused(weft_status got, weft_status want, const char *part) {
    if (got != want) fail_msg("status %d, not %d: %s", (int)got, (int)want, weft_last_error(NULL));
    if (!strstr(weft_last_error(NULL), part)) fail_msg("'%s' does not say '%s'", weft_last_error(NULL), part);
}

/* ---- right exports ---- */

static const char *const formats[] = {"f32", "f16", "bf16", "q8_0", "q6_k", "q5_0", "q4_k", "q4_0"};

static void check_gguf(weft_context *ctx, const char *folder, weft_module *model) {
    const char *path = in_scratch("right.gguf");
    for (size_t i = 0; i < COUNT(formats); i++) {
        assert_ok(weft_published_quantize(ctx, folder, path, formats[i]));
        assert_ok(weft__export_check(model, folder, path, NULL, formats[i]));
        assert_ok(weft__export_check(NULL, folder, path, NULL, formats[i]));
        if (i > 0) refused(weft__export_check(NULL, folder, path, NULL, "f32"), WEFT_ERR_FORMAT, ", not f32");
    }
}

static void test_right(void **state) {
    (void)state;
    static const char *const names[] = {
        "gpt2",         "gpt2-untied",   "gpt_neox",         "gpt_neox-serial",
        "llama",        "llama-tied",    "llama-biases",     "llama-linear",
        "llama-llama3", "llama-yarn",    "mistral",          "qwen2",
        "qwen3",        "qwen3-biases",  "qwen2-other-head", "phi3",
        "phi3-partial", "phi3-longrope", "phi3-shortrope",   "gemma2",
        "gemma3_text",  "gemma2-usual",  "gemma3_text-usual"};
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F16, WEFT_BF16};
    weft_context *ctx = open_device(NULL, false);
    for (size_t i = 0; i < COUNT(names); i++) {
        json_t *root = read_named(names[i]);
        const char *folder = model_folder(ctx, root, names[i]), *to = in_scratch("right");
        weft_module *model = load_model(ctx, folder);
        for (size_t d = 0; d < COUNT(dtypes); d++) {
            assert_ok(weft_published_save(model, folder, to, dtypes[d]));
            assert_ok(weft__export_check(model, folder, to, NULL, weft_dtype_name(dtypes[d])));
        }
        if (strcmp(names[i], "gpt2") == 0 || strcmp(names[i], "llama-llama3") == 0 ||
            strcmp(names[i], "qwen2-other-head") == 0 || strcmp(names[i], "mistral") == 0 ||
            strcmp(names[i], "gemma3_text-usual") == 0)
            check_gguf(ctx, folder, model);
        weft_module_free(model);
        remove_all(to);
        json_decref(root);
    }
    weft_close(ctx);
}

/* ---- wrong folders ---- */

/* Changes a number of config.json. */
static void change(const char *folder, const char *field, double value) {
    char path[8192];
    snprintf(path, sizeof path, "%s/config.json", folder);
    json_t *config = json_load_file(path, 0, NULL);
    assert_non_null(config);
    json_object_set_new(config, field,
                        value == floor(value) ? json_integer((json_int_t)value) : json_real(value));
    write_config(folder, config);
    json_decref(config);
}

static void test_wrong_configurations(void **state) {
    (void)state;
    static const struct {
        const char *model, *field;
        double value;
        weft_status status;
        const char *part;
    } cases[] = {
        {"gpt2", "n_positions", 512, WEFT_ERR_FORMAT, "wpe.weight' is f32 [64,32]"},
        {"gpt2", "layer_norm_epsilon", 0.9, WEFT_ERR_NUMERIC, "the logits of 8 tokens differ"},
        {"llama", "rope_theta", 7, WEFT_ERR_NUMERIC, "the logits of 8 tokens differ"},
        {"llama", "num_attention_heads", 8, WEFT_ERR_FORMAT, "by config.json"},
        {"llama", "vocab_size", 60, WEFT_ERR_FORMAT, "vocabulary, windows or scaled positions"},
        {"mistral", "sliding_window", 9, WEFT_ERR_FORMAT, "vocabulary, windows or scaled positions"}};
    weft_context *ctx = open_device(NULL, false);
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *root = read_named(cases[i].model);
        json_object_del(json_object_get(root, "config"), "rope_parameters"); /* rope_theta alone says it */
        const char *folder = model_folder(ctx, root, "source"), *to = in_scratch("wrong");
        weft_module *model = load_model(ctx, folder);
        assert_ok(weft_published_save(model, folder, to, WEFT_F32));
        assert_ok(weft__export_check(model, folder, to, NULL, "f32"));
        change(to, cases[i].field, cases[i].value);
        refused(weft__export_check(model, folder, to, NULL, "f32"), cases[i].status, cases[i].part);
        refused(weft__export_check(NULL, folder, to, NULL, "f32"), cases[i].status, cases[i].part);
        weft_module_free(model);
        json_decref(root);
    }
    weft_close(ctx);
}

/* Names of another format, a weight that is off, and other tokens. */
static void test_wrong_files(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_named("llama");
    const char *folder = model_folder(ctx, root, "source"), *to = in_scratch("wrong");
    weft_module *model = load_model(ctx, folder);
    weft_parameter_info p;
    float value;
    tensors t;
    assert_ok(weft_published_save(model, folder, to, WEFT_F32));
    write_text(to, "tokenizer_config.json", "{}"); /* no token at the begin */
    refused(weft__export_check(model, folder, to, NULL, "f32"), WEFT_ERR_FORMAT, "makes other tokens");
    write_tokenizer(to, "null", DIGITS);
    make_tensors(root, WEFT_F32, &t);
    for (size_t i = 0; i < t.count; i++)
        if (strcmp(t.entries[i].name, "model.norm.weight") == 0) t.entries[i].name = "output_norm.weight";
    write_weights(ctx, to, "model.safetensors", t.entries, t.count);
    free_tensors(&t);
    refused(weft__export_check(model, folder, to, NULL, "f32"), WEFT_ERR_FORMAT,
            "no tensor 'model.norm.weight'");
    assert_ok(weft_published_save(model, folder, to, WEFT_F32));
    refused(weft__export_check(model, folder, to, NULL, "bf16"), WEFT_ERR_FORMAT, "is f32, not bf16");
    assert_true(weft_parameter_find(model, "h.1.mlp.c_proj.weight", &p));
    static float values[40 * 32];
    assert_ok(weft_read(p.tensor, values, sizeof values));
    value = values[7];
    values[7] += 1;
    assert_ok(weft_write(p.tensor, values, sizeof values));
    refused(weft__export_check(model, folder, to, NULL, "f32"), WEFT_ERR_NUMERIC, "the logits of 8 tokens");
    values[7] = value;
    assert_ok(weft_write(p.tensor, values, sizeof values));
    assert_ok(weft__export_check(model, folder, to, NULL, "f32"));
    values[7] = NAN;
    assert_ok(weft_write(p.tensor, values, sizeof values));
    refused(weft__export_check(model, folder, to, NULL, "f32"), WEFT_ERR_NUMERIC, "the logits of 8 tokens");
    json_decref(root);
    weft_close(ctx);
}

/* Rates of rotary positions that the file lost: the same file with plain rates. */
static void test_wrong_gguf(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_named("llama-llama3"), *plain = read_named("llama");
    const char *folder = model_folder(ctx, root, "rates"), *other = model_folder(ctx, plain, "plain"),
               *path = in_scratch("wrong.gguf");
    for (size_t i = 0; i < 2; i++) { /* coarser formats hide it */
        assert_ok(weft_published_quantize(ctx, other, path, formats[i]));
        refused(weft__export_check(NULL, folder, path, NULL, formats[i]), WEFT_ERR_NUMERIC,
                "the logits of 8 tokens");
    }
    refused(weft__export_keep(NULL, weft__export_check(NULL, folder, path, NULL, "f16"), path),
            WEFT_ERR_NUMERIC, "was removed: ");
    assert_int_equal(access(path, F_OK), -1);
    json_decref(plain);
    json_decref(root);
    weft_close(ctx);
}

/* ---- adapters ---- */

static void test_adapters(void **state) {
    (void)state;
    static const char *const targets[] = {"q_proj", "v_proj", "down_proj"};
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_named("llama"), *other_root = read_named("gpt2");
    const char *folder = model_folder(ctx, root, "base"), *path = in_scratch("adapter.gguf"),
               *peft = in_scratch("peft"), *file = in_scratch("peft/adapter_model.safetensors"),
               *config = in_scratch("peft/adapter_config.json");
    weft_module *model = weft_published_new(ctx, folder, NULL);
    weft_parameter_info p;
    assert_ok(weft_gpt_lora(model, &(weft_lora_options){.rank = 2, .targets = targets, .target_count = 3}));
    assert_ok(weft_published_load(model, folder));
    for (size_t i = 0; weft_parameter_get(model, i, &p); i++) {
        float values[256];
        if (!strstr(p.name, ".lora_")) continue;
        fill(values, weft_numel(p.tensor), (int)i, 0);
        assert_ok(weft_write(p.tensor, values, (size_t)weft_numel(p.tensor) * sizeof *values));
    }
    assert_ok(weft_published_save_gguf_lora(model, folder, path));
    assert_ok(weft_published_save_lora(model, folder, NULL, peft));
    assert_ok(weft__export_check_adapters(model, folder, folder, path, NULL));
    assert_ok(weft__export_check_adapters(model, folder, folder, file, config));
    refused(weft__export_check_adapters(model, folder, folder, path, config), WEFT_ERR_FORMAT, "is missing");
    write_text(peft, "adapter_config.json", "{\"r\": 4, \"lora_alpha\": 2.0}");
    refused(weft__export_check_adapters(model, folder, folder, file, config), WEFT_ERR_FORMAT,
            "has the rank 2 and the alpha 2, but the export says 4 and 2");
    write_text(peft, "adapter_config.json", "{\"r\": 2, \"lora_alpha\": 2.01}");
    refused(weft__export_check_adapters(model, folder, folder, file, config), WEFT_ERR_FORMAT, "2 and 2.01");
    write_text(peft, "adapter_config.json", "{\"r\": 2, \"lora_alpha\": 2");
    refused(weft__export_check_adapters(model, folder, folder, file, config), WEFT_ERR_FORMAT,
            "adapter_config.json: ");
    write_text(peft, "adapter_config.json", "{\"r\": 2, \"lora_alpha\": 2}");
    assert_ok(weft__export_check_adapters(model, folder, folder, file, config));
    const char *other = make_folder(ctx, other_root, WEFT_F32, "other");
    refused(weft__export_check_adapters(model, folder, other, file, config), WEFT_ERR_FORMAT,
            "the model has no 'layers.0.");
    for (size_t i = 0; weft_parameter_get(model, i, &p) && !strstr(p.name, ".lora_B."); i++) {
    }
    float values[256];
    assert_ok(weft_read(p.tensor, values, (size_t)weft_numel(p.tensor) * sizeof *values));
    values[3] += 1;
    assert_ok(weft_write(p.tensor, values, (size_t)weft_numel(p.tensor) * sizeof *values));
    refused(weft__export_check_adapters(model, folder, folder, path, NULL), WEFT_ERR_NUMERIC, "differs");
    refused(weft__export_check_adapters(model, folder, folder, file, config), WEFT_ERR_NUMERIC, "differs");
    json_decref(other_root);
    json_decref(root);
    weft_close(ctx);
}

/* ---- C source ---- */

static void test_source(void **state) {
    (void)state;
    static const char header[] = "/* ( */\nvoid m_forward(const float *in);\nint m_best(void);\n";
    static const char right[] = "const char *const m_names[1] = {\"a{\\\"(\"};\n"
                                "void m_forward(const float *in) {\n    (void)in[0];\n}\n"
                                "int m_best(void) {\n    return 0;\n}\n";
    char wrong[sizeof right];
    assert_ok(weft__export_check_source("m.c", header, right, "m"));
    for (size_t i = 0; i + 1 < sizeof right; i++) {
        if (!strchr("(){}[]", right[i]) || (i > 26 && i < 42)) continue; /* not in the string */
        memcpy(wrong, right, sizeof right);
        wrong[i] = ' ';
        refused(weft__export_check_source("m.c", header, wrong, "m"), WEFT_ERR_INTERNAL, "m.c: ");
    }
    memcpy(wrong, right, sizeof right);
    memcpy(strstr(wrong, "m_best"), "m_rest", 6);
    refused(weft__export_check_source("m.c", header, wrong, "m"), WEFT_ERR_INTERNAL,
            "lacks the function m_best");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),       cmocka_unit_test(test_wrong_configurations),
        cmocka_unit_test(test_wrong_files), cmocka_unit_test(test_wrong_gguf),
        cmocka_unit_test(test_adapters),    cmocka_unit_test(test_source),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
