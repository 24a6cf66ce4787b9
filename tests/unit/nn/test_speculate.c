/* Speculative decoding: with temperature 0 the text is that without a draft, whatever the draft proposes;
 * with sampling, tokens have the probabilities of the model (chi-square), and not those of the draft. */
#include <weft/generate.h>
#include <weft/recurrent.h>

#include "nn/module.h"
#include "unit/nn_help.h"

enum { VOCAB = 17, TEXT = 2048 };

static const char letters[] = "\nabcdefghijklmnop";

static const weft_gpt_options large = {.vocab = VOCAB,
                                       .context = 128,
                                       .layers = 2,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .width = 16,
                                       .norm = WEFT_NORM_RMS,
                                       .positions = WEFT_POSITION_ROTARY,
                                       .gated = true,
                                       .untied_head = true};
static const weft_gpt_options small = {
    .vocab = VOCAB + 3, .context = 128, .layers = 1, .heads = 2, .width = 8, .untied_head = true};

static weft_module *model_of(weft_context *ctx, const weft_gpt_options *o) {
    weft_module *model = weft_nn_gpt(ctx, o);
    assert_ok(weft_module_status(model));
    weft_module_set_training(model, false);
    return model;
}

static weft_status collect(void *user, const char *text, size_t bytes) {
    strncat(user, text, bytes);
    return WEFT_OK;
}

/* The text of options with a draft, or without one. */
static const char *text_of(weft_decode_state *cache, const weft_tokenizer *tokenizer, weft_generate_options o,
                           weft_decode_state *draft, char *text) {
    o.draft = draft;
    text[0] = '\0';
    assert_ok(weft_generate(cache, tokenizer, &o, collect, text));
    return text;
}

/* Texts of many options are the same with a draft and without one. */
static void same_texts(weft_decode_state *cache, weft_decode_state *draft, const weft_tokenizer *tokenizer) {
    static const char *const stops[] = {"ab", "gg", "e"};
    static const int32_t ends[] = {4, 9};
    static const weft_generate_options all[] = {
        {.prompt = "abc", .tokens = 60},
        {.prompt = "", .tokens = 1},
        {.prompt = "", .tokens = 2, .only_new = true},
        {.prompt = "hello", .tokens = 0},
        {.prompt = "mmm", .tokens = 40, .repetition_penalty = 1.3},
        {.prompt = "mnopmnop", .tokens = 50, .stops = stops, .stop_count = 3, .repetition_penalty = 1.5},
        {.prompt = "p", .tokens = 50, .ends = ends, .end_count = 2, .repetition_penalty = 1.2},
        {.prompt = "ca", .tokens = 300, .repetition_penalty = 1.2}, /* longer than the context */
        {.prompt = "ca", .tokens = 30, .keep_cache = true},
        {.prompt = "caab", .tokens = 30, .keep_cache = true}};
    char with[TEXT], without[TEXT];
    for (size_t i = 0; i < COUNT(all); i++)
        for (int64_t k = 0; k <= 7; k += i == 0 ? 1 : 3) {
            weft_generate_options o = all[i];
            o.draft_tokens = k;
            text_of(cache, tokenizer, o, NULL, without);
            text_of(cache, tokenizer, o, draft, with);
            if (strcmp(with, without) != 0)
                fail_msg("options %zu, %d tokens of the draft: '%s', without it '%s'", i, (int)k, with,
                         without);
        }
}

static weft_tokenizer *letters_of(weft_context *ctx) {
    weft_tokenizer *tokenizer;
    assert_ok(weft_tokenizer_build(ctx, WEFT_TOKENIZER_CHARACTER, letters, VOCAB, NULL, &tokenizer));
    return tokenizer;
}

static void test_greedy(void **state) {
    weft_context *ctx = *state;
    weft_tokenizer *tokenizer = letters_of(ctx);
    weft_module *model = model_of(ctx, &large);
    weft_decode_state *cache = weft_decode_state_new(model), *own = weft_decode_state_new(model);
    weft_gpt_options short_draft = small;
    short_draft.context = 11;
    weft_decode_state *draft = weft_decode_state_new(model_of(ctx, &small)),
                      *narrow = weft_decode_state_new(model_of(ctx, &short_draft));
    same_texts(cache, own, tokenizer);
    same_texts(cache, draft, tokenizer);
    same_texts(cache, narrow, tokenizer);
    /* the model itself as its draft is always right; a random draft rarely is */
    char text[TEXT];
    weft_drafted counts = {0, 0};
    weft_generate_options o = {.prompt = "abc", .tokens = 61, .draft_tokens = 4, .drafted = &counts};
    text_of(cache, tokenizer, o, own, text);
    assert_int_equal(counts.proposed, 48); /* 60 tokens, of which each fifth is drawn by the model */
    assert_int_equal(counts.accepted, 48);
    counts = (weft_drafted){0, 0};
    text_of(cache, tokenizer, o, draft, text);
    assert_true(counts.accepted < counts.proposed / 2);
    weft_tokenizer_free(tokenizer);
}

static void test_grammar(void **state) {
    static const char schema[] = "{\"type\": \"array\", \"items\": {\"type\": \"string\", \"maxLength\": 5}, "
                                 "\"minItems\": 2, \"maxItems\": 4}";
    weft_context *ctx = *state;
    weft_tokenizer *tokenizer;
    weft_grammar *grammar;
    weft_gpt_options wide = large, narrow = small;
    wide.vocab = narrow.vocab = 256;
    char with[TEXT], without[TEXT];
    bool incomplete;
    assert_ok(weft_grammar_json_schema(ctx, schema, strlen(schema), "schema", &grammar));
    assert_ok(weft_tokenizer_build(ctx, WEFT_TOKENIZER_BYTE, "", 0, NULL, &tokenizer));
    weft_decode_state *cache = weft_decode_state_new(model_of(ctx, &wide)),
                      *draft = weft_decode_state_new(model_of(ctx, &narrow));
    weft_generate_options o = {
        .prompt = "list", .tokens = 100, .grammar = grammar, .incomplete = &incomplete, .only_new = true};
    text_of(cache, tokenizer, o, NULL, without);
    assert_string_equal(text_of(cache, tokenizer, o, draft, with), without);
    assert_false(incomplete);
    o.temperature = 1.2;
    for (uint64_t seed = 1; seed < 20; seed++) {
        o.seed = seed;
        assert_int_equal(text_of(cache, tokenizer, o, draft, with)[0], '[');
        assert_false(incomplete);
    }
    weft_tokenizer_free(tokenizer);
    weft_grammar_free(grammar);
}

/* ---- the distribution ---- */

enum { FEW = 5, LENGTH = 5, SAMPLES = 3000, PAIRS = FEW * FEW };

/* The probabilities of tokens 2 and 3, and of tokens 4 and 5, of texts after a prompt. */
typedef struct pairs {
    double of[2][PAIRS];
} pairs;

static void walk(weft_decode_state *cache, const weft__sampling *how, int32_t *text, int length, double share,
                 pairs *out) {
    double p[FEW];
    float logits[FEW];
    if (length == LENGTH + 1) {
        out->of[0][text[2] * FEW + text[3]] += share;
        out->of[1][text[4] * FEW + text[5]] += share;
        return;
    }
    weft_decode_state_keep(cache, text, length - 1);
    const int64_t have = weft_decode_state_length(cache);
    assert_ok(weft_gpt_feed(cache, text + have, length - have, logits));
    assert_true(weft__probabilities(logits, FEW, how, p));
    for (int32_t i = 0; i < FEW; i++) {
        text[length] = i;
        if (p[i] > 0) walk(cache, how, text, length + 1, share * p[i], out);
    }
}

static pairs exact(weft_module *model, const weft__sampling *how) {
    pairs out = {.of = {{0}}};
    int32_t text[LENGTH + 1] = {0};
    weft_decode_state *cache = weft_decode_state_new(model);
    walk(cache, how, text, 1, 1, &out);
    weft_decode_state_free(cache);
    return out;
}

/* The chi-square of counts, and the degrees of freedom. A count where the probability is 0 makes it infinite.
 */
static double chi_square(const double *p, const int *counts, int *freedom) {
    double sum = 0;
    *freedom = -1;
    for (int i = 0; i < PAIRS; i++) {
        const double wanted = p[i] * SAMPLES, off = counts[i] - wanted;
        if (wanted == 0 && counts[i] > 0) return (double)INFINITY;
        if (wanted == 0) continue;
        sum += off * off / wanted;
        ++*freedom;
    }
    return sum;
}

static void check_sampling(weft_module *model, weft_module *other, weft_generate_options o) {
    const weft__sampling how = {o.temperature, o.top_k, o.top_p, o.min_p};
    const pairs right = exact(model, &how), wrong = exact(other, &how);
    weft_decode_state *cache = weft_decode_state_new(model), *draft = weft_decode_state_new(other);
    static int counts[2][PAIRS];
    weft_drafted drafted = {0, 0};
    memset(counts, 0, sizeof counts);
    o.tokens = LENGTH;
    o.only_new = true;
    o.draft = draft;
    o.drafted = &drafted;
    for (int i = 0; i < SAMPLES; i++) {
        char text[64] = "";
        int ids[LENGTH];
        o.seed = 1000 + (uint64_t)i;
        assert_ok(weft_generate(cache, NULL, &o, collect, text));
        assert_int_equal(sscanf(text, "%d %d %d %d %d", ids, ids + 1, ids + 2, ids + 3, ids + 4), LENGTH);
        counts[0][ids[1] * FEW + ids[2]]++;
        counts[1][ids[3] * FEW + ids[4]]++;
    }
    for (int half = 0; half < 2; half++) {
        int freedom, others;
        const double off = chi_square(right.of[half], counts[half], &freedom);
        const double far = chi_square(wrong.of[half], counts[half], &others);
        const double bar = freedom + 5 * sqrt(2.0 * freedom);
        if (!(off < bar))
            fail_msg("temperature %g, pair %d: chi-square %g of %d, at most %g", o.temperature, half, off,
                     freedom, bar);
        assert_true(far > 3 * bar); /* the test can tell the models apart */
    }
    assert_true(drafted.accepted > drafted.proposed / 5 && drafted.accepted < drafted.proposed * 9 / 10);
    weft_decode_state_free(cache);
    weft_decode_state_free(draft);
}

static void test_sampling(void **state) {
    weft_gpt_options wide = large, narrow = small;
    wide.vocab = narrow.vocab = FEW;
    weft_module *model = model_of(*state, &wide), *other = model_of(*state, &narrow);
    check_sampling(model, other, (weft_generate_options){.temperature = 0.1, .draft_tokens = 3});
    check_sampling(model, other, (weft_generate_options){.temperature = 0.15, .top_k = 3, .draft_tokens = 2});
    check_sampling(model, other,
                   (weft_generate_options){.temperature = 0.12, .top_p = 0.9, .draft_tokens = 4});
}

static void test_draft_refused(void **state) {
    weft_context *ctx = *state;
    weft_gpt_options few = small;
    few.vocab = VOCAB - 1;
    weft_module *gone = model_of(ctx, &small);
    weft_decode_state *cache = weft_decode_state_new(model_of(ctx, &large)),
                      *freed = weft_decode_state_new(gone),
                      *narrow = weft_decode_state_new(model_of(ctx, &few)),
                      *states = weft_decode_state_new(weft_nn_recurrent_lm(
                          ctx, &(weft_recurrent_lm_options){
                                   .kind = WEFT_LSTM, .vocab = VOCAB, .layers = 1, .width = 4}));
    char text[TEXT] = "";
    weft_generate_options o = {.tokens = 5, .draft = narrow};
    assert_int_equal(weft_generate(cache, NULL, &o, collect, text), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "the draft has 16 logits, but 17 tokens"));
    o.draft = cache;
    assert_int_equal(weft_generate(cache, NULL, &o, collect, text), WEFT_ERR_ARGUMENT);
    o.draft = states;
    assert_int_equal(weft_generate(cache, NULL, &o, collect, text), WEFT_ERR_ARGUMENT);
    o.draft = narrow;
    assert_int_equal(weft_generate(states, NULL, &o, collect, text), WEFT_ERR_ARGUMENT);
    weft_module_free(gone);
    o.draft = freed;
    assert_int_equal(weft_generate(cache, NULL, &o, collect, text), WEFT_ERR_STATE);
    o.draft = weft_decode_state_new(model_of(ctx, &small));
    o.draft_tokens = 8;
    assert_int_equal(weft_generate(cache, NULL, &o, collect, text), WEFT_ERR_ARGUMENT);
    weft_decode_state_free(freed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_greedy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_grammar, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sampling, setup, teardown),
        cmocka_unit_test_setup_teardown(test_draft_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
