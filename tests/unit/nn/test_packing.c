/* Layers with packed weights: their results and gradients against layers with the same numbers in f32, a tied
 * head, training beside them, and bad calls. */
#include "unit/nn_help.h"

enum { K = 64, ROWS = 40, LIST = 3 };
static const weft_packed_rows parts[LIST] = {{24, WEFT_Q8_0}, {9, WEFT_Q4_1}, {7, WEFT_Q4_0}};

/* Fills packed rows with bytes that follow from `salt`. Their scales are 1/64 or 1/32, and what Q4_1 adds is
 * negative. */
static void fill_rows(uint8_t *out, int64_t bytes, weft_packed_format format, uint64_t salt) {
    const int64_t block = weft_packed_bytes(format, 32);
    for (int64_t i = 0; i < bytes; i++) {
        salt = salt * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        out[i] = (uint8_t)(salt >> 33);
    }
    for (int64_t at = 0; at < bytes; at += block) {
        out[at] = 0, out[at + 1] = at / block % 2 ? 0x24 : 0x28;
        if (format == WEFT_Q4_1) out[at + 2] = 0, out[at + 3] = 0xac;
    }
}

/* Fills a packed parameter, and returns its numbers. */
static weft_tensor *filled_numbers(weft_module *m, const char *name, weft_packed_format format, int salt) {
    static uint8_t bytes[1 << 16];
    weft_parameter_info p;
    assert_true(weft_parameter_find(m, name, &p));
    assert_int_equal(weft_dtype_of(p.tensor), WEFT_U8);
    assert_true(p.buffer && weft_numel(p.tensor) <= (int64_t)sizeof bytes);
    fill_rows(bytes, weft_numel(p.tensor), format, (uint64_t)salt);
    assert_ok(weft_write(p.tensor, bytes, (size_t)weft_numel(p.tensor)));
    return weft_unpack(p.tensor, format);
}

/* Rows of x that the CPU rounds exactly: whole numbers / 64, of which the largest of each 32 is 127. */
static weft_tensor *exact_rows(weft_context *ctx, int64_t rows) {
    float x[8 * K];
    for (int64_t i = 0; i < rows * K; i++) x[i] = (float)(i % 32 == 5 ? 127 : i * 37 % 251 - 125) / 64;
    return weft_from(ctx, WEFT_F32, SHAPE(rows, K), x);
}

static void assert_same(weft_tensor *got, weft_tensor *wanted, double relative) {
    assert_int_equal(weft_numel(got), weft_numel(wanted));
    double *a = values_of(got), *b = values_of(wanted);
    assert_close(a, b, weft_numel(got), relative);
    free(a);
    free(b);
}

static weft_module *packed_linear(weft_context *ctx, bool biased) {
    weft_module *m = weft_nn_linear(ctx, K, ROWS, &(weft_linear_options){.no_bias = !biased});
    assert_ok(weft_module_pack(m, parts, LIST));
    return m;
}

/* A layer with three parts and a bias, and the gradient of its input. */
static void test_linear(void **state) {
    weft_context *ctx = *state;
    weft_scope *scope = weft_scope_open(ctx);
    weft_module *m = packed_linear(ctx, true);
    weft_tensor *w[LIST], *gradient[2];
    static const char *const names[LIST] = {"weight", "weight_1", "weight_2"};
    for (int i = 0; i < LIST; i++) w[i] = filled_numbers(m, names[i], parts[i].format, i + 1);
    weft_tensor *whole = weft_transpose(weft_concat(w, LIST, 0), 0, 1);
    for (int64_t rows = 1; rows <= 8; rows += 7) {
        weft_tensor *x = exact_rows(ctx, rows), *mean = weft_mean(x, 0, false);
        assert_same(weft_forward(m, x), weft_add(weft_matmul(x, whole), weft_parameter(m, "bias")), 2e-5);
        weft_tensor *input[2] = {weft_add_scalar(x, 0), weft_add_scalar(x, 0)};
        weft_tensor *y[2] = {weft_forward(m, input[0]), weft_matmul(input[1], whole)};
        weft_tensor *by = weft_reshape(weft_narrow(mean, 0, 0, ROWS), SHAPE(1, ROWS));
        for (int i = 0; i < 2; i++)
            assert_ok(weft_gradient(weft_sum(weft_mul(y[i], by), WEFT_ALL_AXES, false), &input[i], 1,
                                    &gradient[i]));
        assert_same(gradient[0], gradient[1], 2e-5);
    }
    weft_scope_close(scope);
}

static void test_embedding(void **state) {
    weft_context *ctx = *state;
    weft_scope *scope = weft_scope_open(ctx);
    weft_module *m = weft_nn_embedding(ctx, 11, K, NULL);
    assert_ok(weft_module_pack(m, &(weft_packed_rows){11, WEFT_Q4_1}, 1));
    weft_tensor *table = filled_numbers(m, "weight", WEFT_Q4_1, 9);
    const int32_t ids[6] = {10, 0, 3, 3, 7, 1};
    weft_tensor *x = weft_from(ctx, WEFT_I32, SHAPE(2, 3), ids);
    assert_same(weft_forward(m, x), weft_gather(table, x, 0), 0);
    weft_scope_close(scope);
}

/* ---- a gpt ---- */

enum { VOCAB = 50, TIME = 9 };
static const weft_gpt_options small = {.vocab = VOCAB, .context = 16, .layers = 2, .heads = 2, .width = K};

static weft_module *child_of(weft_module *m, const char *path) {
    weft_module *at = m;
    char name[16];
    for (int used; *path; path += used + (path[used] == '/')) {
        used = (int)strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", used, path);
        weft_module *child = NULL;
        size_t i = 0;
        static const char *const order[] = {"wte", "wpe", "h.0", "h.1", "ln_f"};
        static const char *const block[] = {"ln_1", "attn", "ln_2", "mlp"};
        static const char *const pair[2][2] = {{"c_attn", "c_proj"}, {"c_fc", "c_proj"}};
        if (at == m)
            while (strcmp(order[i], name) != 0) i++;
        else if (strcmp(weft_module_kind(at), "transformer_block") == 0)
            while (strcmp(block[i], name) != 0) i++;
        else
            while (strcmp(pair[strcmp(weft_module_kind(at), "attention") != 0][i], name) != 0) i++;
        child = weft_module_child_get(at, i);
        assert_non_null(child);
        at = child;
    }
    return at;
}

static const struct packed_layer {
    const char *path, *name;
    int64_t rows;
} layers[] = {{"wte", "wte.weight", VOCAB},
              {"h.0/attn/c_attn", "h.0.attn.c_attn.weight", 3 * K},
              {"h.1/attn/c_proj", "h.1.attn.c_proj.weight", K},
              {"h.1/mlp/c_fc", "h.1.mlp.c_fc.weight", 4 * K}};

/* Two gpts with the same numbers: one with packed layers, also of the tied head, and one in f32. */
static weft_module *packed_gpt(weft_context *ctx, weft_module **plain, bool adapters) {
    weft_module *m = weft_nn_gpt(ctx, &small);
    weft_parameter_info p, q;
    for (size_t i = 0; i < COUNT(layers); i++)
        assert_ok(
            weft_module_pack(child_of(m, layers[i].path), &(weft_packed_rows){layers[i].rows, WEFT_Q4_1}, 1));
    if (adapters) assert_ok(weft_gpt_lora(m, NULL));
    *plain = weft_nn_gpt(ctx, &small);
    for (size_t i = 0; i < COUNT(layers); i++) {
        weft_tensor *w = filled_numbers(m, layers[i].name, WEFT_Q4_1, (int)i);
        double *values = values_of(w);
        float *data = calloc((size_t)weft_numel(w), sizeof *data);
        for (int64_t j = 0; j < weft_numel(w); j++) data[j] = (float)values[j];
        assert_true(weft_parameter_find(*plain, layers[i].name, &q));
        assert_ok(weft_write(q.tensor, data, (size_t)weft_numel(w) * sizeof *data));
        free(values);
        free(data);
    }
    for (size_t i = 0; weft_parameter_get(m, i, &p); i++) { /* the others begin alike */
        if (p.buffer || strstr(p.name, ".lora_")) continue;
        double *values = values_of(p.tensor);
        float *data = calloc((size_t)weft_numel(p.tensor), sizeof *data);
        for (int64_t j = 0; j < weft_numel(p.tensor); j++) data[j] = (float)values[j];
        assert_true(weft_parameter_find(*plain, p.name, &q));
        assert_ok(weft_write(q.tensor, data, (size_t)weft_numel(p.tensor) * sizeof *data));
        free(values);
        free(data);
    }
    return m;
}

static weft_tensor *gpt_tokens(weft_context *ctx) {
    int32_t ids[TIME];
    for (int i = 0; i < TIME; i++) ids[i] = i * 7 % VOCAB;
    return weft_from(ctx, WEFT_I32, SHAPE(1, TIME), ids);
}

/* The logits are as near as 8-bit numbers of each layer's input allow. */
static void test_gpt(void **state) {
    weft_context *ctx = *state;
    weft_scope *scope = weft_scope_open(ctx);
    weft_module *plain, *m = packed_gpt(ctx, &plain, false);
    weft_module_set_training(m, false);
    weft_module_set_training(plain, false);
    double *a = values_of(weft_forward(m, gpt_tokens(ctx))),
           *b = values_of(weft_forward(plain, gpt_tokens(ctx)));
    double most = 0, moved = 0;
    for (int i = 0; i < TIME * VOCAB; i++) {
        most = fmax(most, fabs(b[i]));
        moved = fmax(moved, fabs(a[i] - b[i]));
    }
    if (!(most > 1 && moved < 0.02 * most)) fail_msg("logits up to %g differ by %g", most, moved);
    /* a step of decoding reads the same rows */
    weft_decode_state *cache = weft_decode_state_new(m);
    int32_t ids[TIME];
    float logits[VOCAB];
    for (int i = 0; i < TIME; i++) ids[i] = i * 7 % VOCAB;
    assert_ok(weft_gpt_feed(cache, ids, TIME, logits));
    for (int i = 0; i < VOCAB; i++)
        assert_true(fabs((double)logits[i] - a[(TIME - 1) * VOCAB + i]) <= 1e-3 * most);
    weft_decode_state_free(cache);
    free(a);
    free(b);
    weft_scope_close(scope);
}

/* Adapters beside packed layers learn, and the packed bytes stay. */
static void test_adapters(void **state) {
    weft_context *ctx = *state;
    weft_module *plain, *m = packed_gpt(ctx, &plain, true);
    weft_parameter_info p;
    uint8_t before[256], after[256];
    double first = 0, last = 0;
    assert_true(weft_parameter_find(m, "h.0.attn.c_attn.weight", &p));
    assert_ok(weft_read(weft_reshape(weft_narrow(p.tensor, 0, 0, 4), SHAPE(160)), before, 160));
    weft_optimizer *adam = weft_adamw(m, &(weft_adam_options){.lr = 0.02});
    for (int i = 0; i < 12; i++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *tokens = gpt_tokens(ctx), *logits = weft_forward(m, tokens);
        weft_tensor *rows = weft_reshape(logits, SHAPE(TIME, VOCAB));
        weft_tensor *loss = weft_cross_entropy(rows, weft_reshape(tokens, SHAPE(TIME)), NULL);
        assert_ok(weft_optimizer_step(adam, loss));
        last = weft_item(loss);
        if (i == 0) first = last;
        weft_scope_close(scope);
    }
    if (!(last < first - 0.1)) fail_msg("the loss went from %g to %g", first, last);
    assert_ok(weft_read(weft_reshape(weft_narrow(p.tensor, 0, 0, 4), SHAPE(160)), after, 160));
    assert_memory_equal(before, after, 160);
}

static void test_refused(void **state) {
    weft_context *ctx = *state;
    weft_module *m = weft_nn_linear(ctx, K, ROWS, NULL);
    const weft_packed_rows all = {ROWS, WEFT_Q8_0}, few = {ROWS - 1, WEFT_Q8_0}, large = {ROWS, WEFT_Q4_K},
                           unknown = {ROWS, WEFT_UNPACKED}, four[4] = {all, all, all, all};
    assert_int_equal(weft_module_pack(m, &few, 1), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "39 rows, not 40"));
    assert_int_equal(weft_module_pack(m, &unknown, 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_module_pack(m, four, 2), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_module_pack(m, four, 4), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_module_pack(m, &large, 1), WEFT_ERR_SHAPE);
    assert_non_null(strstr(weft_last_error(ctx), "64 numbers, which are not whole Q4_K blocks"));
    assert_int_equal(weft_module_pack(weft_nn_rms_norm(ctx, K, NULL), &all, 1), WEFT_ERR_ARGUMENT);
    assert_ok(weft_module_pack(m, &all, 1));
    assert_int_equal(weft_module_pack(m, &all, 1), WEFT_ERR_STATE);
    weft_module *gpt = weft_nn_gpt(ctx, &small);
    assert_ok(weft_module_pack(child_of(gpt, "wte"), &(weft_packed_rows){VOCAB, WEFT_Q8_0}, 1));
    assert_int_equal(weft_gpt_save(gpt, "gpt.safetensors"), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(ctx), "'wte.weight' is packed"));
    m = weft_nn_linear(ctx, K, ROWS, NULL);
    assert_ok(weft_module_prepare(m));
    assert_int_equal(weft_module_pack(m, &all, 1), WEFT_ERR_STATE);
    assert_int_equal(weft_packed_bytes(WEFT_Q6_K, 512), 420);
    assert_int_equal(weft_packed_bytes(WEFT_Q6_K, 128), 0);
    assert_int_equal(weft_packed_bytes(WEFT_UNPACKED, 32), 0);
    assert_string_equal(weft_packed_name(WEFT_Q4_K), "Q4_K");
    assert_string_equal(weft_packed_name(WEFT_PACKED_COUNT), "?");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_linear, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_embedding, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_gpt, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_adapters, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_refused, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
