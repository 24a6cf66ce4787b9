/* A GPT whose layers are divided between devices gives the logits of one device, and each device has only its
 * weights. */
#include "device/device.h"
#include "graph/variable.h"
#include "nn/module.h"
#include "unit/nn_help.h"

enum { VOCAB = 19, CONTEXT = 48, LAYERS = 4, WIDTH = 8, PARTS_MOST = 3 };

/* Parts of a model in contexts of their own. Their weights are drawn from one seed, so they are equal. */
typedef struct parts {
    int count;
    weft_context *contexts[PARTS_MOST];
    weft_module *gpts[PARTS_MOST];
    weft_decode_state *caches[PARTS_MOST];
} parts;

static void open_parts(parts *p, int count, const weft_gpt_options *options) {
    *p = (parts){.count = count};
    for (int i = 0; i < count; i++) {
        assert_ok(test_open(&(weft_open_options){.seed = 5}, &p->contexts[i]));
        p->gpts[i] = weft_nn_gpt(p->contexts[i], options);
        weft_module_set_training(p->gpts[i], false);
        if (count > 1) weft__gpt_keep(p->gpts[i], LAYERS * i / count, LAYERS * (i + 1) / count);
        p->caches[i] = weft_decode_state_new(p->gpts[i]);
        assert_non_null(p->caches[i]);
        if (i > 0) weft__gpt_cache_link(p->caches[i - 1], p->caches[i]);
    }
}

static void close_parts(parts *p) {
    for (int i = 0; i < p->count; i++) {
        weft_decode_state_free(p->caches[i]);
        weft_close(p->contexts[i]);
    }
}

static const weft_gpt_options forms[] = {
    {.vocab = VOCAB, .context = CONTEXT, .layers = LAYERS, .heads = 2, .width = WIDTH},
    {.vocab = VOCAB,
     .context = CONTEXT,
     .layers = LAYERS,
     .heads = 4,
     .kv_heads = 2,
     .width = WIDTH,
     .untied_head = true,
     .norm = WEFT_NORM_RMS,
     .positions = WEFT_POSITION_ROTARY,
     .gated = true},
    {.vocab = VOCAB,
     .context = CONTEXT,
     .layers = LAYERS,
     .heads = 2,
     .width = WIDTH,
     .positions = WEFT_POSITION_SINUSOIDAL},
};

/* Feeds the same to both, and expects the same bits. On other devices than the cpu, kernels that are fused in
 * another way round in another way. */
static void same_logits(const parts *a, const parts *b, const int32_t *tokens, int64_t count, bool all) {
    float one[CONTEXT * VOCAB] = {0}, other[CONTEXT * VOCAB] = {0};
    weft_status (*feed)(weft_decode_state *, const int32_t *, int64_t, float *) =
        all ? weft_gpt_feed_all : weft_gpt_feed;
    assert_ok(feed(a->caches[0], tokens, count, one));
    assert_ok(feed(b->caches[0], tokens, count, other));
    const int64_t n = VOCAB * (all ? count : 1);
    if (test_on_cpu()) assert_memory_equal(one, other, sizeof *one * (size_t)n);
    for (int64_t i = 0; i < n; i++) assert_true(fabsf(one[i] - other[i]) < 1e-5F);
    for (int i = 0; i < b->count; i++)
        assert_int_equal(weft_decode_state_length(b->caches[i]), weft_decode_state_length(a->caches[0]));
}

static void test_logits(void **state) {
    (void)state;
    int32_t tokens[CONTEXT];
    for (int i = 0; i < CONTEXT; i++) tokens[i] = (i * 7 + i * i) % VOCAB;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (int count = 2; count <= PARTS_MOST; count++) {
            parts whole, divided;
            open_parts(&whole, 1, &forms[f]);
            open_parts(&divided, count, &forms[f]);
            same_logits(&whole, &divided, tokens, 5, false);
            for (int i = 5; i < 12; i++) same_logits(&whole, &divided, tokens + i, 1, false);
            same_logits(&whole, &divided, tokens + 12, 6, true);
            for (int i = 0; i < 2; i++) { /* go back, and begin anew */
                const parts *p = i ? &divided : &whole;
                assert_int_equal(weft_decode_state_keep(p->caches[0], tokens, 9), 9);
            }
            same_logits(&whole, &divided, tokens + 9, 20, false);
            weft_decode_state_reset(whole.caches[0]);
            weft_decode_state_reset(divided.caches[0]);
            same_logits(&whole, &divided, tokens + 3, 7, false);
            close_parts(&whole);
            close_parts(&divided);
        }
}

/* The first part has the tables, the last one norm and head, and a tied head needs the table of tokens. */
static bool belongs(const char *name, int part, int count, bool tied) {
    int layer;
    if (sscanf(name, "h.%d.", &layer) == 1)
        return layer >= LAYERS * part / count && layer < LAYERS * (part + 1) / count;
    if (strncmp(name, "wte", 3) == 0) return part == 0 || (tied && part == count - 1);
    return strncmp(name, "wpe", 3) == 0 ? part == 0 : part == count - 1;
}

/* Weights of other parts are checked, but not loaded. */
static void test_weights(void **state) {
    (void)state;
    char path[] = "/tmp/weft-divided-XXXXXX";
    const int32_t tokens[] = {3, 1, 4, 1, 5};
    close(mkstemp(path));
    for (size_t f = 0; f < 2; f++) {
        parts whole, divided;
        weft_parameter_info info;
        open_parts(&whole, 1, &forms[f]);
        open_parts(&divided, 3, &forms[f]);
        assert_ok(weft_module_save(whole.gpts[0], path));
        for (int i = 0; i < 3; i++) {
            size_t loaded = 0;
            weft_seed(divided.contexts[i], 77, 0); /* other values, if they were drawn */
            assert_ok(weft_module_load(divided.gpts[i], path));
            for (size_t k = 0; weft_parameter_get(divided.gpts[i], k, &info); k++) {
                const bool here = belongs(info.name, i, 3, !forms[f].untied_head);
                assert_int_equal(info.tensor->storage->buffer != NULL, here);
                loaded += here;
            }
            assert_true(loaded > 0);
        }
        same_logits(&whole, &divided, tokens, 5, false);
        for (int i = 0; i < 3; i++) /* nor does computing need them */
            for (size_t k = 0; weft_parameter_get(divided.gpts[i], k, &info); k++)
                assert_int_equal(info.tensor->storage->buffer != NULL,
                                 belongs(info.name, i, 3, !forms[f].untied_head));
        close_parts(&whole);
        close_parts(&divided);
    }
    unlink(path);
}

/* Two texts at once, of which one waits in the second step, give the logits of each text by itself. */
static void test_many(void **state) {
    (void)state;
    for (size_t f = 0; f < 2; f++) {
        parts a, b, alone;
        float logits[2 * VOCAB], wanted[VOCAB];
        open_parts(&a, 3, &forms[f]);
        open_parts(&alone, 1, &forms[f]);
        b = a;
        for (int i = 0; i < 3; i++) {
            assert_non_null(b.caches[i] = weft_decode_state_new(a.gpts[i]));
            if (i > 0) weft__gpt_cache_link(b.caches[i - 1], b.caches[i]);
        }
        weft_decode_state *both[2] = {a.caches[0], b.caches[0]};
        assert_ok(weft_gpt_feed_many(both, 2, (int32_t[]){3, 5}, logits));
        assert_ok(weft_gpt_feed_many(both, 2, (int32_t[]){1, -1}, logits));
        assert_ok(weft_gpt_feed_many(both, 2, (int32_t[]){4, 2}, logits));
        assert_int_equal(weft_decode_state_length(a.caches[2]), 3);
        assert_int_equal(weft_decode_state_length(b.caches[2]), 2);
        assert_ok(weft_gpt_feed(alone.caches[0], (int32_t[]){3, 1, 4}, 3, wanted));
        for (int i = 0; i < VOCAB; i++) assert_float_equal(logits[i], wanted[i], 1e-5);
        weft_decode_state_reset(alone.caches[0]);
        assert_ok(weft_gpt_feed(alone.caches[0], (int32_t[]){5, 2}, 2, wanted));
        for (int i = 0; i < VOCAB; i++) assert_float_equal(logits[VOCAB + i], wanted[i], 1e-5);
        weft__gpt_cache_link(b.caches[1], NULL);
        assert_int_equal(weft_gpt_feed_many(both, 2, (int32_t[]){1, 1}, logits), WEFT_ERR_ARGUMENT);
        assert_non_null(strstr(weft_last_error(NULL), "divided over other devices than those of cache 0"));
        for (int i = 0; i < 3; i++) weft_decode_state_free(b.caches[i]);
        close_parts(&a);
        close_parts(&alone);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_logits), cmocka_unit_test(test_weights),
                                       cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
