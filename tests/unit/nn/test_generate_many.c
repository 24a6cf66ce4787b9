/* Several prompts at once give the texts of weft_generate for each alone: prompts of all lengths and none,
 * more prompts than rows, ends at different times, stops, seeds, penalties, grammars, full contexts; and what
 * is refused. */
#include <weft/generate.h>
#include <weft/recurrent.h>

#include "nn/module.h"
#include "unit/nn_help.h"

enum { PROMPTS = 11, TEXT = 2048, CONTEXT = 32 };

static const char letters[] = "\nabcdefghijklmnop";

typedef struct texts {
    char text[PROMPTS][TEXT];
    int64_t tokens[PROMPTS];
    bool ended[PROMPTS];
    int received[PROMPTS], count;
    int refuse; /* the number of texts after which no more are taken; 0: none */
} texts;

static weft_status receive(void *user, const weft_generated *done) {
    texts *t = user;
    assert_true(done->index < PROMPTS);
    assert_int_equal(strlen(done->text), done->bytes);
    strcpy(t->text[done->index], done->text);
    t->tokens[done->index] = done->tokens;
    t->ended[done->index] = done->ended;
    t->received[done->index]++;
    t->count++;
    return t->refuse && t->count == t->refuse ? WEFT_ERR_STOPPED : WEFT_OK;
}

static weft_status collect(void *user, const char *text, size_t bytes) {
    strncat(user, text, bytes);
    return WEFT_OK;
}

static const char *const prompts[PROMPTS] = {"a",
                                             "",
                                             "abcabcabcabcabcabcabc",
                                             "pon",
                                             "ha",
                                             "hgfedcba",
                                             "mmmm",
                                             "abcdefghijklmnopabcdefghijklmnopabcdefghijkl",
                                             "b",
                                             "k",
                                             "ojo"};

/* Options that differ from prompt to prompt. */
static void options_of(weft_generate_options *o, bool *incomplete) {
    static const char *const stops[] = {"ab", "e", "ll"};
    static const int32_t ends[] = {4, 9};
    for (int i = 0; i < PROMPTS; i++) {
        o[i] = (weft_generate_options){.prompt = prompts[i],
                                       .tokens = i == 8 ? 0 : 3 + 4 * i % 17,
                                       .temperature = i % 3 == 0 ? 0 : 1.3,
                                       .top_k = i % 4 == 1 ? 5 : 0,
                                       .seed = 100 + (uint64_t)i,
                                       .only_new = i % 2 == 1,
                                       .incomplete = &incomplete[i]};
        if (i % 3 == 1) o[i].stops = stops, o[i].stop_count = COUNT(stops);
        if (i % 4 == 2) o[i].ends = ends, o[i].end_count = COUNT(ends);
        if (i % 5 == 0) o[i].repetition_penalty = 1.3;
    }
}

/* Expects of each prompt the text that it has alone. Returns how many ended before all their tokens. */
static int check_alone(weft_module *model, const weft_tokenizer *tokenizer, const weft_generate_options *o,
                       const texts *got) {
    weft_decode_state *cache = weft_decode_state_new(model);
    char alone[TEXT];
    int ended = 0;
    for (int i = 0; i < PROMPTS; i++) {
        const bool incomplete = *o[i].incomplete;
        alone[0] = '\0';
        assert_ok(weft_generate(cache, tokenizer, &o[i], collect, alone));
        assert_int_equal(got->received[i], 1);
        if (strcmp(got->text[i], alone) != 0)
            fail_msg("prompt %d: '%s', but alone '%s'", i, got->text[i], alone);
        assert_int_equal(*o[i].incomplete, incomplete);
        assert_true(got->tokens[i] <= o[i].tokens);
        if (!got->ended[i]) assert_int_equal(got->tokens[i], o[i].tokens);
        ended += got->ended[i];
    }
    weft_decode_state_free(cache);
    return ended;
}

static weft_tokenizer *letters_of(weft_context *ctx) {
    weft_tokenizer *tokenizer;
    assert_ok(
        weft_tokenizer_build(ctx, WEFT_TOKENIZER_CHARACTER, letters, sizeof letters - 1, NULL, &tokenizer));
    return tokenizer;
}

static void all_rows(weft_module *model, const weft_tokenizer *tokenizer, weft_generate_options *o) {
    static const int64_t rows[] = {1, 2, 3, 8, 0, 64};
    weft_module_set_training(model, false);
    assert_ok(weft_module_status(model));
    for (size_t r = 0; r < COUNT(rows); r++) {
        static texts got;
        got = (texts){.count = 0};
        assert_ok(weft_generate_many(model, tokenizer, o, PROMPTS, rows[r], receive, &got));
        assert_int_equal(got.count, PROMPTS);
        const int ended = check_alone(model, tokenizer, o, &got);
        assert_true(ended > 0 && ended < PROMPTS);
    }
}

static const weft_gpt_options form = {.vocab = sizeof letters - 1,
                                      .context = 128,
                                      .layers = 2,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .width = 16,
                                      .norm = WEFT_NORM_RMS,
                                      .positions = WEFT_POSITION_ROTARY,
                                      .gated = true,
                                      .untied_head = true};

static void test_texts(void **state) {
    weft_tokenizer *tokenizer = letters_of(*state);
    weft_generate_options o[PROMPTS];
    bool incomplete[PROMPTS];
    options_of(o, incomplete);
    all_rows(weft_nn_gpt(*state, &form), tokenizer, o);
    weft_gpt_options windows = form;
    windows.form = (weft_attention_form){.window = 7, .softcap = 4};
    all_rows(weft_nn_gpt(*state, &windows), tokenizer, o);
    weft_gpt_options narrow = form;
    narrow.context = CONTEXT; /* prompts and texts that are longer than the context */
    for (int i = 0; i < PROMPTS; i += 2) o[i].tokens = 70 + i;
    all_rows(weft_nn_gpt(*state, &narrow), tokenizer, o);
    weft_tokenizer_free(tokenizer);
}

static void test_recurrent_texts(void **state) {
    weft_tokenizer *tokenizer = letters_of(*state);
    weft_generate_options o[PROMPTS];
    bool incomplete[PROMPTS];
    options_of(o, incomplete);
    all_rows(weft_nn_recurrent_lm(*state, &(weft_recurrent_lm_options){.kind = WEFT_LSTM,
                                                                       .vocab = sizeof letters - 1,
                                                                       .layers = 2,
                                                                       .width = 12}),
             tokenizer, o);
    weft_tokenizer_free(tokenizer);
}

/* Each text is held to its grammar. The model has random weights, so it writes long strings or numbers. */
static void test_grammars(void **state) {
    static const char schema[] =
        "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\", \"maxLength\": 4}, "
        "\"b\": {\"enum\": [1, 2]}}, \"required\": [\"a\", \"b\"]}";
    weft_grammar *grammar;
    weft_tokenizer *tokenizer;
    weft_generate_options o[PROMPTS];
    bool incomplete[PROMPTS];
    static texts got;
    assert_ok(weft_grammar_json_schema(*state, schema, strlen(schema), "schema", &grammar));
    assert_ok(weft_tokenizer_build(*state, WEFT_TOKENIZER_BYTE, "", 0, NULL, &tokenizer));
    weft_gpt_options bytes = form;
    bytes.vocab = 256;
    weft_module *model = weft_nn_gpt(*state, &bytes);
    weft_module_set_training(model, false);
    options_of(o, incomplete);
    for (int i = 0; i < PROMPTS; i++) {
        o[i].tokens = i == 3 ? 4 : 60;
        o[i].stop_count = o[i].end_count = 0;
        o[i].only_new = true;
        o[i].grammar = grammar;
    }
    got = (texts){.count = 0};
    assert_ok(weft_generate_many(model, tokenizer, o, PROMPTS, 4, receive, &got));
    for (int i = 0; i < PROMPTS; i++) {
        assert_int_equal(incomplete[i], i == 3);
        assert_int_equal(got.ended[i], i != 3);
        assert_int_equal(strncmp(got.text[i], "{\"a\"", 4), 0);
    }
    assert_int_equal(check_alone(model, tokenizer, o, &got), PROMPTS - 1);
    weft_tokenizer_free(tokenizer);
    weft_grammar_free(grammar);
}

static void test_numbers(void **state) {
    weft_module *model = weft_nn_gpt(*state, &form);
    weft_module_set_training(model, false);
    weft_generate_options o[PROMPTS];
    bool incomplete[PROMPTS];
    static texts got;
    options_of(o, incomplete);
    for (int i = 0; i < PROMPTS; i++)
        o[i].prompt = i % 2 ? "3 1 2" : "", o[i].tokens = 5, o[i].stop_count = 0;
    got = (texts){.count = 0};
    assert_ok(weft_generate_many(model, NULL, o, PROMPTS, 4, receive, &got));
    check_alone(model, NULL, o, &got);
}

static void test_many_refused(void **state) {
    weft_context *ctx = *state;
    weft_tokenizer *tokenizer = letters_of(ctx);
    weft_module *model = weft_nn_gpt(ctx, &form);
    weft_generate_options o[PROMPTS];
    bool incomplete[PROMPTS];
    static texts got;
    options_of(o, incomplete);
    got = (texts){.count = 0};
    o[6].prompt = "XYZ";
    assert_int_equal(weft_generate_many(model, tokenizer, o, PROMPTS, 2, receive, &got), WEFT_ERR_INDEX);
    assert_non_null(strstr(weft_last_error(ctx), "prompt 6: "));
    o[6].name = "file.txt:7";
    assert_int_equal(weft_generate_many(model, tokenizer, o, PROMPTS, 2, receive, &got), WEFT_ERR_INDEX);
    assert_int_equal(strncmp(weft_last_error(ctx), "file.txt:7: ", 12), 0);
    o[6].prompt = "abc";
    o[2].top_p = 2;
    assert_int_equal(weft_generate_many(model, tokenizer, o, PROMPTS, 2, receive, &got), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "prompt 2: "));
    o[2].top_p = 0;
    assert_int_equal(weft_generate_many(model, tokenizer, o, PROMPTS, 65, receive, &got), WEFT_ERR_ARGUMENT);
    got = (texts){.refuse = 4};
    assert_int_equal(weft_generate_many(model, tokenizer, o, PROMPTS, 3, receive, &got), WEFT_ERR_STOPPED);
    assert_int_equal(got.count, 4);
    assert_ok(weft_generate_many(model, tokenizer, NULL, 0, 3, receive, &got));
    /* characters that the tokenizer does not know are left out, and told for each prompt */
    char left_out[2][16];
    o[0].prompt = "aXb", o[1].prompt = "c\xC3\xA9";
    for (int i = 0; i < 2; i++) o[i].left_out = left_out[i], o[i].left_out_bytes = sizeof left_out[i];
    got = (texts){.count = 0};
    assert_ok(weft_generate_many(model, tokenizer, o, 2, 2, receive, &got));
    assert_string_equal(left_out[0], "X");
    assert_string_equal(left_out[1], "\xC3\xA9");
    weft_module *linear = weft_nn_linear(ctx, 1, 1, NULL);
    assert_int_equal(weft_generate_many(linear, tokenizer, o, 1, 1, receive, &got), WEFT_ERR_ARGUMENT);
    weft_tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recurrent_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_grammars, setup, teardown),
        cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
