/* Decoding with a cache gives what the whole sequence gives; sampling. */
#include "device/device.h"
#include "unit/nn_help.h"

enum { VOCAB = 19, CONTEXT = 48 };

static weft_module *gpt_of(weft_context *ctx) {
    return weft_nn_gpt(
        ctx, &(weft_gpt_options){
                 .vocab = VOCAB, .context = CONTEXT, .layers = 2, .heads = 2, .width = 8, .dropout = 0.2});
}

/* Logits (count, VOCAB) of all positions, without a cache. */
static double *whole(weft_context *ctx, weft_module *gpt, const int32_t *tokens, int64_t count) {
    weft_module_set_training(gpt, false);
    weft_scope *scope = weft_scope_open(ctx);
    double *out = values_of(weft_forward(gpt, weft_from(ctx, WEFT_I32, SHAPE(1, count), tokens)));
    weft_scope_close(scope);
    weft_module_set_training(gpt, true);
    return out;
}

static void compare(const float *got, const double *wanted) {
    double wide[VOCAB];
    for (int i = 0; i < VOCAB; i++) wide[i] = (double)got[i];
    assert_close(wide, wanted, VOCAB, 1e-5);
}

static void test_cache(void **state) {
    weft_context *ctx = *state;
    weft_module *gpt = gpt_of(ctx);
    int32_t tokens[CONTEXT];
    for (int i = 0; i < CONTEXT; i++) tokens[i] = (i * 7 + i * i) % VOCAB;
    double *wanted = whole(ctx, gpt, tokens, CONTEXT);
    weft_decode_state *cache = weft_decode_state_new(gpt);
    assert_non_null(cache);
    assert_int_equal(weft_decode_state_capacity(cache), CONTEXT);
    float logits[VOCAB];
    for (int round = 0; round < 2; round++) { /* the second one after a reset */
        int64_t at = round ? 21 : 5;          /* a prompt padded to 16 or to 32 */
        assert_ok(weft_gpt_feed(cache, tokens, at, logits));
        compare(logits, wanted + (at - 1) * VOCAB);
        for (; at < CONTEXT; at++) {
            assert_ok(weft_gpt_feed(cache, tokens + at, 1, logits));
            compare(logits, wanted + at * VOCAB);
        }
        assert_int_equal(weft_decode_state_length(cache), CONTEXT);
        assert_int_equal(weft_gpt_feed(cache, tokens, 1, logits), WEFT_ERR_STATE);
        weft_decode_state_reset(cache);
    }
    /* a prompt that fills the cache: its last chunk has no room for padding */
    assert_ok(weft_gpt_feed(cache, tokens, CONTEXT - 1, logits));
    compare(logits, wanted + (CONTEXT - 2) * VOCAB);
    weft_decode_state_reset(cache);
    assert_int_equal(weft_gpt_feed(cache, (int32_t[]){1, VOCAB}, 2, logits), WEFT_ERR_INDEX);
    assert_int_equal(weft_decode_state_length(cache), 0);
    /* another text with the same begin: only what differs is fed */
    int32_t other[CONTEXT];
    for (int i = 0; i < CONTEXT; i++) other[i] = i < 30 ? tokens[i] : (tokens[i] + 1) % VOCAB;
    double *wanted_other = whole(ctx, gpt, other, CONTEXT);
    assert_ok(weft_gpt_feed(cache, tokens, 41, logits));
    assert_int_equal(weft_decode_state_keep(cache, other, 40), 30);
    assert_int_equal(weft_decode_state_length(cache), 30);
    assert_ok(weft_gpt_feed(cache, other + 30, 10, logits));
    compare(logits, wanted_other + 39 * VOCAB);
    assert_int_equal(weft_decode_state_keep(cache, other, 7), 7);
    assert_ok(weft_gpt_feed(cache, other + 7, 1, logits));
    compare(logits, wanted_other + 7 * VOCAB);
    assert_int_equal(weft_decode_state_keep(cache, (int32_t[]){18}, 1), 0);
    assert_int_equal(weft_decode_state_keep(NULL, other, 1), 0);
    free(wanted_other);
    assert_true(weft_module_is_training(gpt)); /* decoding does not change the mode */
    weft_decode_state_free(cache);
    cache = weft_decode_state_new(gpt);
    weft_module_free(gpt); /* frees the cache too */
    assert_null(weft_decode_state_new(weft_nn_linear(ctx, 1, 1, NULL)));
    free(wanted);
}

/* A network saved in f32 and used in bf16 gives the same logits, up to the rounding of weights to 8 bits. */
static void test_rounded(void **state) {
    weft_context *ctx = *state;
    weft_gpt_options o = {.vocab = VOCAB, .context = CONTEXT, .layers = 2, .heads = 2, .width = 32};
    weft_module *wide = weft_nn_gpt(ctx, &o);
    o.dtype = WEFT_BF16;
    weft_module *narrow = weft_nn_gpt(ctx, &o);
    const char *path = "test_nn_decode.safetensors";
    weft_safetensors *file = NULL;
    assert_ok(weft_module_save(wide, path));
    assert_ok(weft_safetensors_open(ctx, path, &file));
    assert_int_equal(weft_module_load_from(narrow, file), WEFT_ERR_FORMAT); /* strict: another dtype */
    assert_ok(weft_module_load_rounded(narrow, file));
    weft_safetensors_close(file);
    assert_int_equal(remove(path), 0);
    weft_parameter_info master, rounded;
    assert_true(weft_parameter_find(wide, "wte.weight", &master));
    assert_true(weft_parameter_find(narrow, "wte.weight", &rounded));
    float from[VOCAB * 32];
    uint16_t to[VOCAB * 32];
    assert_ok(weft_read(master.tensor, from, sizeof from));
    assert_ok(weft_read(rounded.tensor, to, sizeof to));
    for (int i = 0; i < VOCAB * 32; i++) assert_int_equal(to[i], weft_f32_to_bf16(from[i]));
    weft_decode_state *a = weft_decode_state_new(wide), *b = weft_decode_state_new(narrow);
    int32_t tokens[24];
    for (int i = 0; i < 24; i++) tokens[i] = (i * 11 + 3) % VOCAB;
    float x[VOCAB], y[VOCAB];
    assert_ok(weft_gpt_feed(a, tokens, 18, x));
    assert_ok(weft_gpt_feed(b, tokens, 18, y));
    for (int at = 18; at <= 24; at++) {
        double size = 0, off = 0;
        for (int i = 0; i < VOCAB; i++) size += (double)x[i] * (double)x[i];
        for (int i = 0; i < VOCAB; i++) off += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        assert_true(off > 0 && sqrt(off / size) < 0x1p-6); /* a few roundings of 2^-9 */
        if (at == 24) break;
        assert_ok(weft_gpt_feed(a, tokens + at, 1, x));
        assert_ok(weft_gpt_feed(b, tokens + at, 1, y));
    }
}

static const weft_device_ops *real;
static bool takes_no_attention(weft_device *device, const weft_heavy *heavy) {
    return heavy->kind != WEFT_HEAVY_ATTENTION && real->takes(device, heavy);
}

/* A device without an attention kernel expands attention into simpler ops. It must agree with a device that
 * has one. */
static void test_devices(void **state) {
    (void)state;
    for (int expanded = 0; expanded < 2; expanded++) {
        weft_context *ctx = NULL;
        assert_ok(weft_open(&(weft_open_options){.device = expanded ? "cpu" : "interp", .seed = 11}, &ctx));
        real = ctx->device->ops;
        weft_device_ops declining = *real;
        declining.takes = takes_no_attention;
        weft_module *gpt = gpt_of(ctx);
        int32_t tokens[21];
        for (int i = 0; i < 21; i++) tokens[i] = (i * 5 + 1) % VOCAB;
        double *wanted = whole(ctx, gpt, tokens, 21);
        if (expanded) ctx->device->ops = &declining;
        weft_decode_state *cache = weft_decode_state_new(gpt);
        float logits[VOCAB];
        assert_ok(weft_gpt_feed(cache, tokens, 19, logits));
        compare(logits, wanted + 18 * VOCAB);
        for (int i = 19; i < 21; i++) {
            assert_ok(weft_gpt_feed(cache, tokens + i, 1, logits));
            compare(logits, wanted + i * VOCAB);
        }
        ctx->device->ops = real;
        free(wanted);
        weft_close(ctx);
    }
}

static void test_gpt_errors(void **state) {
    weft_context *ctx = *state;
    weft_module *gpt = gpt_of(ctx);
    assert_poisoned(weft_forward(gpt, weft_full_i64(ctx, WEFT_I32, SHAPE(1, CONTEXT + 1), 0)), WEFT_ERR_SHAPE,
                    "gpt", "[1,49]");
    assert_int_equal(weft_module_status(weft_nn_gpt(ctx, NULL)), WEFT_ERR_ARGUMENT);
    weft_gpt_options o = {.vocab = 3, .context = 4, .layers = 1, .heads = 3, .width = 4};
    assert_int_equal(weft_module_status(weft_nn_gpt(ctx, &o)), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "multiple of heads"));
}

/* The causal mask: a token does not see later tokens. */
static void test_causality(void **state) {
    weft_context *ctx = *state;
    weft_module *gpt = gpt_of(ctx);
    int32_t a[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, b[10] = {1, 2, 3, 4, 5, 6, 18, 17, 0, 0};
    double *x = whole(ctx, gpt, a, 10), *y = whole(ctx, gpt, b, 10);
    assert_memory_equal(x, y, 6 * VOCAB * sizeof *x);
    assert_true(x[6 * VOCAB] != y[6 * VOCAB]);
    free(x);
    free(y);
}

static void test_sample(void **state) {
    (void)state;
    const float logits[5] = {0.0f, 1.0f, 3.0f, 2.0f, -INFINITY};
    assert_int_equal(weft_sample(logits, 5, 0.0, 0, 1, 2), 2);
    int seen[5] = {0}, top[5] = {0};
    for (uint64_t i = 0; i < 20000; i++) {
        seen[weft_sample(logits, 5, 1.0, 0, 9, i)]++;
        top[weft_sample(logits, 5, 1.0, 2, 9, i)]++;
    }
    double total = 1.0 + exp(1) + exp(3) + exp(2);
    for (int i = 0; i < 4; i++) {
        double p = exp((double)logits[i]) / total;
        assert_true(fabs(seen[i] - 20000 * p) < 4.0 * sqrt(20000 * p * (1.0 - p)));
    }
    assert_int_equal(seen[4], 0);
    assert_true(top[0] == 0 && top[1] == 0 && top[2] > top[3] && top[3] > 0);
    assert_int_equal(weft_sample(logits, 5, 1.0, 0, 9, 3), weft_sample(logits, 5, 1.0, 0, 9, 3));
    assert_int_equal(weft_sample((float[]){NAN, NAN}, 2, 1.0, 0, 9, 3), -1);
}

/* Top-k: all tokens that tie with the k-th best are candidates. */
static void test_sample_ties(void **state) {
    (void)state;
    const float logits[7] = {2, -0.0f, 2, -INFINITY, 0, -3, NAN};
    static const struct {
        int64_t k;
        const char *drawn;
    } cases[] = {{1, "1010000"}, {2, "1010000"}, {3, "1110100"},
                 {4, "1110100"}, {5, "1110110"}, {6, "1110110"}};
    for (int c = 0; c < 6; c++) {
        char drawn[8] = "0000000";
        for (uint64_t i = 0; i < 200; i++) drawn[weft_sample(logits, 7, 1e3, cases[c].k, 9, i)] = '1';
        assert_string_equal(drawn, cases[c].drawn);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cache, setup, teardown),
        cmocka_unit_test(test_devices),
        cmocka_unit_test_setup_teardown(test_rounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gpt_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_causality, setup, teardown),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_sample_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
