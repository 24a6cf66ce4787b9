/* Several texts in one step give the logits of each text alone: other lengths, positions of all kinds,
 * windows and soft caps, texts that rest, texts that end; recurrent models; and the logits of several tokens
 * of one text. */
#include "nn/module.h"
#include "unit/nn_help.h"
#include <weft/recurrent.h>

enum { VOCAB = 19, CONTEXT = 40, TEXTS = 5, STEPS = 14 };

static const weft_gpt_options forms[] = {
    {.vocab = VOCAB, .context = CONTEXT, .layers = 2, .heads = 2, .width = 8, .dropout = 0.2},
    {.vocab = VOCAB,
     .context = CONTEXT,
     .layers = 2,
     .heads = 4,
     .kv_heads = 2,
     .width = 16,
     .norm = WEFT_NORM_RMS,
     .positions = WEFT_POSITION_ROTARY,
     .gated = true,
     .no_bias = true,
     .untied_head = true},
    {.vocab = VOCAB,
     .context = CONTEXT,
     .layers = 3,
     .heads = 2,
     .width = 16,
     .positions = WEFT_POSITION_ROTARY,
     .logit_softcap = 3,
     .form = {.window = 6, .softcap = 2, .qk_norm = true}},
    {.vocab = VOCAB,
     .context = CONTEXT,
     .layers = 1,
     .heads = 2,
     .width = 8,
     .positions = WEFT_POSITION_SINUSOIDAL},
};

static int32_t token_of(int text, int64_t at) { return (int32_t)((text * 7 + at * at + 3 * at) % VOCAB); }

/* The tokens of a text before its first step with the others. */
static int64_t begin_of(int text) { return 1 + 5 * text; }

/* Feeds tokens begin..end-1 of a text, and writes the logits of the last one. */
static void feed_range(weft_decode_state *cache, int text, int64_t begin, int64_t end, float *logits) {
    int32_t tokens[CONTEXT];
    for (int64_t i = begin; i < end; i++) tokens[i - begin] = token_of(text, i);
    assert_ok(weft_gpt_feed(cache, tokens, end - begin, logits));
}

/* Expects logits of a text after `length` tokens. alone: a cache for this. */
static void expect_alone(weft_decode_state *alone, int text, int64_t length, const float *logits) {
    double got[VOCAB], wanted[VOCAB];
    float one[VOCAB];
    weft_decode_state_reset(alone);
    feed_range(alone, text, 0, length, one);
    for (int i = 0; i < VOCAB; i++) got[i] = (double)logits[i], wanted[i] = (double)one[i];
    assert_close(got, wanted, VOCAB, 1e-5);
}

/* Text i rests in every (i + 2)-th step. */
static bool rests(int text, int step) { return step % (text + 2) == text + 1; }

static void together(weft_module *model, int64_t capacity) {
    weft_decode_state *caches[TEXTS], *alone = weft_decode_state_new(model);
    float logits[TEXTS * VOCAB];
    for (int i = 0; i < TEXTS; i++) {
        caches[i] = weft_decode_state_new_sized(model, capacity);
        assert_non_null(caches[i]);
        feed_range(caches[i], i, 0, begin_of(i), logits);
    }
    for (int step = 0; step < STEPS; step++) {
        int32_t tokens[TEXTS];
        for (int i = 0; i < TEXTS; i++)
            tokens[i] = rests(i, step) ? -1 : token_of(i, weft_decode_state_length(caches[i]));
        assert_ok(weft_gpt_feed_many(caches, TEXTS, tokens, logits));
        for (int i = 0; i < TEXTS; i++)
            if (tokens[i] >= 0 && (step < 3 || step == STEPS - 1))
                expect_alone(alone, i, weft_decode_state_length(caches[i]), logits + i * VOCAB);
    }
    for (int i = 0; i < TEXTS; i++) {
        int64_t length = begin_of(i);
        for (int step = 0; step < STEPS; step++) length += !rests(i, step);
        assert_int_equal(weft_decode_state_length(caches[i]), length);
        weft_decode_state_free(caches[i]);
    }
    weft_decode_state_free(alone);
}

static void test_together(void **state) {
    for (size_t i = 0; i < COUNT(forms); i++) {
        weft_module *model = weft_nn_gpt(*state, &forms[i]);
        assert_ok(weft_module_status(model));
        together(model, 0);
        if (i == 1) together(model, CONTEXT - 5);
        assert_true(weft_module_is_training(model)); /* decoding does not change the mode */
        weft_module_free(model);
    }
}

static void test_recurrent(void **state) {
    static const weft_recurrent_kind kinds[] = {WEFT_RNN_TANH, WEFT_LSTM, WEFT_GRU};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        weft_module *model = weft_nn_recurrent_lm(
            *state, &(weft_recurrent_lm_options){.kind = kinds[k], .vocab = VOCAB, .layers = 2, .width = 6});
        assert_ok(weft_module_status(model));
        together(model, 0);
        /* some texts have no tokens yet */
        weft_decode_state *caches[3], *alone = weft_decode_state_new(model);
        float logits[3 * VOCAB];
        for (int i = 0; i < 3; i++) caches[i] = weft_decode_state_new(model);
        for (int i = 0; i < 3; i++) {
            const int32_t tokens[3] = {token_of(0, i), i > 0 ? token_of(1, i - 1) : -1,
                                       i > 1 ? token_of(2, i - 2) : -1};
            assert_ok(weft_gpt_feed_many(caches, 3, tokens, logits));
            for (int j = 0; j <= i; j++) expect_alone(alone, j, i - j + 1, logits + j * VOCAB);
        }
        for (int i = 0; i < 3; i++) weft_decode_state_free(caches[i]);
        weft_decode_state_free(alone);
        weft_module_free(model);
    }
}

/* A text whose cache is full may rest beside others, and keeps all that it has. */
static void test_full(void **state) {
    weft_module *model = weft_nn_gpt(*state, &forms[1]);
    weft_decode_state *caches[3], *alone = weft_decode_state_new(model);
    float logits[3 * VOCAB];
    for (int i = 0; i < 3; i++) {
        caches[i] = weft_decode_state_new(model);
        feed_range(caches[i], i, 0, i == 1 ? CONTEXT : 9, logits);
    }
    for (int step = 0; step < 3; step++) {
        const int32_t tokens[3] = {token_of(0, 9 + step), -1, token_of(2, 9 + step)};
        assert_ok(weft_gpt_feed_many(caches, 3, tokens, logits));
        expect_alone(alone, 0, 10 + step, logits);
        expect_alone(alone, 2, 10 + step, logits + 2 * VOCAB);
    }
    int32_t full[CONTEXT];
    for (int i = 0; i < CONTEXT; i++) full[i] = token_of(1, i);
    assert_int_equal(weft_decode_state_keep(caches[1], full, CONTEXT - 1), CONTEXT - 1);
    assert_ok(weft_gpt_feed(caches[1], full + CONTEXT - 1, 1, logits));
    expect_alone(alone, 1, CONTEXT, logits);
    /* nothing to do */
    assert_ok(weft_gpt_feed_many(caches, 3, (int32_t[]){-1, -1, -1}, logits));
    assert_int_equal(weft_decode_state_length(caches[0]), 12);
}

static void test_feed_all(void **state) {
    for (size_t f = 0; f < COUNT(forms); f++) {
        weft_module *model = weft_nn_gpt(*state, &forms[f]);
        weft_decode_state *cache = weft_decode_state_new(model), *alone = weft_decode_state_new(model);
        float logits[CONTEXT * VOCAB];
        int32_t tokens[CONTEXT];
        int64_t at = 0;
        for (int i = 0; i < CONTEXT; i++) tokens[i] = token_of(3, i);
        for (int64_t count = 1; at + count <= CONTEXT; at += count, count = count % 5 + 1) {
            assert_ok(weft_gpt_feed_all(cache, tokens + at, count, logits));
            for (int64_t i = 0; i < count; i++) expect_alone(alone, 3, at + i + 1, logits + i * VOCAB);
        }
        /* cut back and continued, as speculative decoding does; then more than one step */
        assert_int_equal(weft_decode_state_keep(cache, tokens, 11), 11);
        assert_ok(weft_gpt_feed_all(cache, tokens + 11, 20, logits));
        for (int64_t i = 0; i < 20; i++) expect_alone(alone, 3, 12 + i, logits + i * VOCAB);
        weft_module_free(model);
        assert_int_equal(weft_gpt_feed_all(cache, tokens, 1, logits), WEFT_ERR_STATE);
        weft_decode_state_free(cache);
        weft_decode_state_free(alone);
    }
}

static void test_refused(void **state) {
    weft_context *ctx = *state;
    weft_module *model = weft_nn_gpt(ctx, &forms[0]), *other = weft_nn_gpt(ctx, &forms[0]);
    weft_decode_state *a = weft_decode_state_new(model), *b = weft_decode_state_new(model),
                      *c = weft_decode_state_new(other);
    weft_decode_state *small = weft_decode_state_new_sized(model, 3);
    const int32_t ids[] = {1, 2, 3, 4};
    float logits[4 * VOCAB];
    assert_int_equal(weft_gpt_feed_many((weft_decode_state *[]){a, c}, 2, ids, logits), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "cache 1 is of another model"));
    assert_int_equal(weft_gpt_feed_many((weft_decode_state *[]){a, b, a}, 3, ids, logits), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "caches 0 and 2 are the same"));
    assert_int_equal(weft_gpt_feed_many(&a, 65, ids, logits), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_gpt_feed_many((weft_decode_state *[]){a, b}, 2, (int32_t[]){1, VOCAB}, logits),
                     WEFT_ERR_INDEX);
    assert_int_equal(weft_decode_state_length(a), 0);
    assert_int_equal(weft_decode_state_capacity(small), 3);
    assert_ok(weft_gpt_feed(small, ids, 3, logits));
    assert_int_equal(weft_gpt_feed_many((weft_decode_state *[]){a, small}, 2, ids, logits), WEFT_ERR_STATE);
    assert_int_equal(weft_decode_state_length(a), 0);
    assert_null(weft_decode_state_new_sized(model, CONTEXT + 1));
    assert_non_null(strstr(weft_last_error(ctx), "the context of the model"));
    weft_module_free(model);
    assert_int_equal(weft_gpt_feed_many((weft_decode_state *[]){a, b}, 2, ids, logits), WEFT_ERR_STATE);
    weft_decode_state_free(a);
    weft_module *lstm = weft_nn_recurrent_lm(
        ctx, &(weft_recurrent_lm_options){.kind = WEFT_LSTM, .vocab = VOCAB, .layers = 1, .width = 4});
    weft_decode_state *states = weft_decode_state_new(lstm);
    assert_int_equal(weft_gpt_feed_all(states, ids, 2, logits), WEFT_ERR_UNSUPPORTED);
    weft_decode_state_free(states);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recurrent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_feed_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
