/* Adapters as GGUF files: what they add to the base is what merged weights have more, and what is refused. */
#include "unit/published/gguf_folder.h"

/* Opens the model with adapters of rank 2 whose matrices are not 0. */
static weft_module *open_adapted(weft_context *ctx, const char *folder, const char *const *targets,
                                 int count) {
    weft_parameter_info p;
    weft_module *model = weft_published_new(ctx, folder, NULL);
    assert_ok(weft_gpt_lora(
        model, &(weft_lora_options){
                   .rank = 2, .alpha = 3, .dropout = 0, .targets = targets, .target_count = count}));
    assert_ok(weft_published_load(model, folder));
    for (size_t i = 0; weft_parameter_get(model, i, &p); i++) {
        float values[2 * 256];
        if (!strstr(p.name, ".lora_")) continue;
        assert_true(weft_numel(p.tensor) <= (int64_t)COUNT(values));
        fill(values, weft_numel(p.tensor), (int)i, 0);
        assert_ok(weft_write(p.tensor, values, (size_t)weft_numel(p.tensor) * sizeof *values));
    }
    return model;
}

/* The merged tensor is that of the base, plus alpha / rank times B A. Returns how many tensors have
 * adapters. */
static size_t check_sums(const weft__gguf *adapters, const weft__gguf *base, const weft__gguf *merged) {
    size_t count = 0;
    for (size_t i = 0; i < weft__gguf_count(adapters); i++) {
        const weft__gguf_tensor *a = weft__gguf_tensor_at(adapters, i);
        char name[128];
        snprintf(name, sizeof name, "%s", a->name);
        char *end = strstr(name, ".lora_");
        assert_non_null(end);
        if (strcmp(end, ".lora_a") != 0) continue;
        memcpy(end, ".lora_b", strlen(".lora_b"));
        const weft__gguf_tensor *b = tensor_of(adapters, name);
        *end = '\0';
        const weft__gguf_tensor *from = tensor_of(base, name), *to = tensor_of(merged, name);
        assert_true(a->shape[0] == 2 && b->shape[1] == 2 && a->shape[1] == from->shape[1] &&
                    b->shape[0] == from->shape[0]);
        for (int64_t r = 0; r < from->shape[0]; r++)
            for (int64_t c = 0; c < from->shape[1]; c++) {
                const float *A = (const float *)(const void *)a->data,
                            *B = (const float *)(const void *)b->data;
                const size_t at = (size_t)(r * from->shape[1] + c);
                const double want = (double)((const float *)(const void *)from->data)[at] +
                                    1.5 * ((double)B[2 * r] * (double)A[c] +
                                           (double)B[2 * r + 1] * (double)A[a->shape[1] + c]);
                if (!(fabs(want - (double)((const float *)(const void *)to->data)[at]) < 1e-5))
                    fail_msg("%s: row %lld, column %lld", name, (long long)r, (long long)c);
            }
        count++;
    }
    return count;
}

static void check_adapter_keys(const weft__gguf *g, const char *architecture) {
    static const char *const keys[] = {"general.type", "adapter.type", "general.architecture"};
    const char *const right[] = {"adapter", "lora", architecture};
    weft__gguf_value value;
    double alpha = 0;
    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *text;
        size_t bytes;
        assert_true(weft__gguf_find(g, keys[i], &value));
        assert_true(weft__gguf_text(&value, &text, &bytes));
        assert_int_equal(bytes, strlen(right[i]));
        assert_memory_equal(text, right[i], bytes);
    }
    assert_true(weft__gguf_find(g, "adapter.lora.alpha", &value));
    assert_true(weft__gguf_number(&value, &alpha));
    assert_true(alpha == 3);
}

/* A file of adapters adds what merged weights have more than the base, in the order of the file's rows. */
static void test_adapter_file(void **state) {
    (void)state;
    static const char *const kinds[] = {"llama", "qwen3", "qwen2"};
    static const char *const all[] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                      "gate_proj", "up_proj", "down_proj"};
    weft_context *ctx = open_device(NULL, false);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        char name[64];
        weft__gguf *adapters, *base, *merged;
        snprintf(name, sizeof name, "%s.json", kinds[i]);
        json_t *root = read_model(name);
        const char *folder = model_folder(ctx, root, kinds[i]);
        weft_module *model = open_adapted(ctx, folder, all, (int)COUNT(all));
        assert_ok(weft_published_quantize(ctx, folder, in_scratch("base.gguf"), "f32"));
        assert_ok(weft_published_save_gguf(model, folder, in_scratch("merged.gguf"), "f32"));
        assert_ok(weft_published_save_gguf_lora(model, folder, in_scratch("adapter.gguf")));
        assert_ok(weft__gguf_open(ctx, in_scratch("base.gguf"), &base));
        assert_ok(weft__gguf_open(ctx, in_scratch("merged.gguf"), &merged));
        assert_ok(weft__gguf_open(ctx, in_scratch("adapter.gguf"), &adapters));
        check_adapter_keys(adapters, kinds[i]);
        assert_int_equal(check_sums(adapters, base, merged), COUNT(all) * 2); /* of two layers */
        weft__gguf_close(adapters);
        weft__gguf_close(merged);
        weft__gguf_close(base);
        json_decref(root);
    }
    weft_close(ctx);
}

static void test_adapter_file_refused(void **state) {
    (void)state;
    static const char *const q[] = {"q_proj"}, *const o[] = {"o_proj"};
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("phi3.json"), *other = read_model("gpt_neox.json");
    const char *folder = model_folder(ctx, root, "phi3"), *path = in_scratch("refused.gguf");
    weft_module *model = open_adapted(ctx, folder, q, 1);
    assert_int_equal(weft_published_save_gguf_lora(model, folder, path), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(ctx), "together with others in one tensor"));
    assert_ok(weft_published_save_gguf_lora(open_adapted(ctx, folder, o, 1), folder, path));
    remove_all(path);
    model = weft_published_new(ctx, folder, NULL);
    assert_ok(weft_published_load(model, folder));
    assert_int_equal(weft_published_save_gguf_lora(model, folder, path), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "has no adapters"));
    folder = model_folder(ctx, other, "neox");
    model = open_adapted(ctx, folder, o, 1);
    assert_int_equal(weft_published_save_gguf_lora(model, folder, path), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "does not write the architecture gpt_neox"));
    assert_int_not_equal(access(path, F_OK), 0);
    json_decref(other);
    json_decref(root);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_adapter_file),
                                       cmocka_unit_test(test_adapter_file_refused)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
