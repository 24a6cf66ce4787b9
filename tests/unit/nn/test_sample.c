/* Drawing tokens: top-k, top-p, min-p and the repetition penalty against their definitions, on random logits;
 * and how weft_generate ends, by stops and tokens. */
#include <weft/generate.h>

#include "base/base.h"
#include "nn/module.h"
#include "unit/core_help.h"

enum { COUNT_OF = 97, DRAWS = 4000 };

static void random_logits(float *logits, uint64_t round) {
    for (int i = 0; i < COUNT_OF; i++) {
        const uint32_t bits = weft__random_u32(round, 1, 0, (uint64_t)i);
        logits[i] = (float)(bits % 8001) / 1000 - 4; /* some are equal in the first digits */
    }
    logits[round % COUNT_OF] = round % 3 ? -INFINITY : (float)NAN;
}

static int by_size(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The logits that may be drawn: all at least the result. Sorts instead of counting. */
static float bar_of(const float *logits, const weft__sampling *how) {
    float sorted[COUNT_OF];
    int n = 0;
    for (int i = 0; i < COUNT_OF; i++)
        if (isfinite(logits[i])) sorted[n++] = logits[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    int kept = how->top_k > 0 && how->top_k < n ? (int)how->top_k : n;
    while (kept < n && sorted[kept] == sorted[kept - 1]) kept++; /* equal logits stay together */
    double all = 0, sum = 0;
    for (int i = 0; i < kept; i++) all += exp((double)(sorted[i] - sorted[0]) / how->temperature);
    const bool shares = how->top_p > 0 || signbit(how->top_p); /* WEFT_ZERO: the likeliest alone */
    int last = 0;
    for (; shares && last < kept; last++)
        if ((sum += exp((double)(sorted[last] - sorted[0]) / how->temperature)) >= how->top_p * all) break;
    float bar = shares && how->top_p < 1 ? sorted[last] : sorted[kept - 1];
    for (int i = 0; i < kept; i++)
        if (how->min_p > 0 &&
            exp((double)(sorted[i] - sorted[0]) / how->temperature) >= how->min_p * (1 + 1e-6))
            sum = (double)sorted[i];
    return how->min_p > 0 ? fmaxf(bar, (float)sum) : bar;
}

static void test_choices(void **state) {
    static const weft__sampling choices[] = {
        {1, 0, 0, 0},   {0.7, 5, 0, 0},    {1.3, 0, 0.5, 0},      {0.8, 0, 0.9, 0}, {1, 20, 0.6, 0},
        {1, 0, 0, 0.2}, {0.5, 0, 0, 0.05}, {1.5, 10, 0.8, 0.3},   {1, 0, 1e-9, 0},  {1, 0, 1, 0},
        {1, 1, 0, 0},   {2, 0, 0.99, 0.5}, {1.2, 0, WEFT_ZERO, 0}};
    (void)state;
    for (uint64_t round = 0; round < 40; round++)
        for (size_t c = 0; c < COUNT(choices); c++) {
            float logits[COUNT_OF];
            bool drawn[COUNT_OF] = {false};
            random_logits(logits, round);
            const float bar = bar_of(logits, &choices[c]);
            for (uint64_t d = 0; d < 300; d++) {
                const int64_t id = weft__sample(logits, COUNT_OF, &choices[c], round, d);
                assert_true(id >= 0 && id < COUNT_OF);
                drawn[id] = true;
                if (!(logits[id] >= bar))
                    fail_msg("round %d, choice %zu: drew logit %g below the bar %g", (int)round, c,
                             (double)logits[id], (double)bar);
            }
            for (int i = 0; i < COUNT_OF; i++) /* the likeliest is drawn, so the bar is not too high */
                if (logits[i] == bar && choices[c].top_p > 0 && choices[c].top_p < 1e-6)
                    assert_true(drawn[i]);
        }
}

/* The frequencies of draws follow the probabilities of what may be drawn. */
static void test_frequencies(void **state) {
    (void)state;
    const weft__sampling how = {0.9, 6, 0.85, 0.02};
    float logits[COUNT_OF];
    int counts[COUNT_OF] = {0};
    double all = 0;
    random_logits(logits, 11);
    const float bar = bar_of(logits, &how);
    for (uint64_t d = 0; d < DRAWS; d++) counts[weft__sample(logits, COUNT_OF, &how, 5, d)]++;
    for (int i = 0; i < COUNT_OF; i++) all += logits[i] >= bar ? exp((double)logits[i] / 0.9) : 0;
    for (int i = 0; i < COUNT_OF; i++) {
        const double p = logits[i] >= bar ? exp((double)logits[i] / 0.9) / all : 0;
        const double wide = 5 * sqrt(DRAWS * p * (1 - p)) + 1e-9;
        if (fabs(counts[i] - DRAWS * p) > wide)
            fail_msg("token %d: %d draws, %g expected", i, counts[i], DRAWS * p);
    }
}

static void test_penalty(void **state) {
    (void)state;
    float logits[4] = {2, -2, 3, 0.5F};
    const int32_t ids[] = {0, 1, 0, 7, -1, 1};
    weft__penalize(logits, 4, ids, COUNT(ids), 2);
    assert_true(logits[0] == 1 && logits[1] == -4 && logits[2] == 3 && logits[3] == 0.5F);
}

/* ---- how a generation ends ---- */

static weft_status collect(void *user, const char *text, size_t bytes) {
    strncat(user, text, bytes);
    return WEFT_OK;
}

/* A GPT that learned nothing, so that its greedy text is fixed. Returns the text after the prompt. */
static const char *text_of(weft_decode_state *cache, const weft_tokenizer *tokenizer,
                           weft_generate_options o) {
    static char text[4096];
    text[0] = '\0';
    o.prompt = "ab";
    o.tokens = 40;
    o.only_new = true;
    assert_ok(weft_generate(cache, tokenizer, &o, collect, text));
    return text;
}

static void test_ends(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    weft_tokenizer *tokenizer;
    assert_ok(weft_tokenizer_build(ctx, WEFT_TOKENIZER_CHARACTER, "abcdefgh", 8, NULL, &tokenizer));
    weft_module *gpt = weft_nn_gpt(
        ctx, &(weft_gpt_options){
                 .vocab = 8, .context = 64, .layers = 1, .heads = 2, .width = 16, .untied_head = true});
    weft_module_set_training(gpt, false);
    weft_decode_state *cache = weft_decode_state_new(gpt);
    char whole[4096];
    const weft_generate_options drawn = {.temperature = 1.5, .seed = 9};
    strcpy(whole, text_of(cache, tokenizer, drawn));
    assert_int_equal(strlen(whole), 40);
    for (int length = 1; length <= 5;
         length++) { /* a stop of several tokens, that begins somewhere in the text */
        char stop[8], want[4096];
        snprintf(stop, sizeof stop, "%.*s", length, whole + 17);
        const char *stops[] = {"zz", stop, "hhhhhhhhhhhh"};
        weft_generate_options o = drawn;
        o.stops = stops;
        o.stop_count = COUNT(stops);
        snprintf(want, sizeof want, "%.*s", (int)(strstr(whole, stop) - whole), whole);
        assert_string_equal(text_of(cache, tokenizer, o), want);
    }
    const char *absent[] = {"zz"}, *prefix[] = {"", "abcdefghabcdefgh"};
    weft_generate_options o = drawn;
    o.stops = absent, o.stop_count = 1;
    assert_string_equal(text_of(cache, tokenizer, o), whole);
    o.stops = prefix, o.stop_count = 2; /* an empty stop never ends it */
    assert_string_equal(text_of(cache, tokenizer, o), whole);
    const int32_t end = whole[12] - 'a';
    o = drawn;
    o.ends = &end, o.end_count = 1;
    char want[4096];
    snprintf(want, sizeof want, "%.*s", (int)(strchr(whole, whole[12]) - whole), whole);
    assert_string_equal(text_of(cache, tokenizer, o), want);
    o.endless = true;
    assert_string_equal(text_of(cache, tokenizer, o), whole);
    o = drawn;
    o.keep_cache = true; /* the cache holds another text, then this one */
    assert_string_equal(text_of(cache, tokenizer, o), whole);
    assert_string_equal(text_of(cache, tokenizer, o), whole);
    o = drawn;
    o.top_p = 2;
    assert_int_equal(weft_generate(cache, tokenizer, &o, collect, want), WEFT_ERR_ARGUMENT);
    weft_decode_state_free(cache);
    weft_tokenizer_free(tokenizer);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choices), cmocka_unit_test(test_frequencies),
                                       cmocka_unit_test(test_penalty), cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
