/* Grammars and tokens: the tokens that may come next are those whose bytes the automaton accepts, and what a
 * model of random weights generates is valid JSON. */
#include <weft/generate.h>

#include "text/grammar/automaton.h"
#include "text/grammar/constraint.h"
#include "unit/failing_alloc.h"
#include "unit/io_scratch.h"
#include "unit/text/schemas.h"

static const char lesson[] =
    "{\"name\": \"Ann\", \"age\": 31, \"tags\": [\"a\", \"b\"]}\n{\"name\":\"Bo\",\"age\":4,\"tags\":[]}\n"
    "{\"name\": \"Zo\xc3\xab\", \"age\": -1.5e3, \"tags\": [\"caf\xc3\xa9\", \"na\xc3\xafve\"], \"x\": null, "
    "\"y\": true}\n"
    "{\"a\": {\"b\": {\"c\": [[1, 2], [3, 4]]}}, \"\xf0\x9f\x98\x80\": \"\\n\\u00e9\\\"\"} a word, another "
    "word: the end\n";

/* A BPE of bytes that has learned tokens of several signs, such as '": "'. */
static weft_tokenizer *tokens_of_json(weft_context *ctx) {
    const char *path = in_scratch("lesson.txt");
    const weft_tokenizer_train_options options = {.vocabulary = 330, .pattern = WEFT_TOKENIZER_GPT2};
    weft_tokenizer *t = NULL;
    char *text = calloc(1, 64 * sizeof lesson);
    for (int i = 0; i < 60; i++) strcat(text, lesson);
    assert_true(spill(path, text, strlen(text)));
    free(text);
    assert_ok(weft_tokenizer_train(ctx, &path, 1, &options, &t));
    return t;
}

static weft_grammar *grammar_of(const char *schema) {
    weft_grammar *g = NULL;
    if (weft_grammar_json_schema(NULL, schema, strlen(schema), "test", &g) != WEFT_OK)
        fail_msg("%s: %s", schema, weft_last_error(NULL));
    return g;
}

static const char *const schemas[] = {
    "{}",
    "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 3}, \"age\": "
    "{\"type\": "
    "\"integer\"}, \"tags\": {\"type\": \"array\", \"items\": {\"type\": \"string\", \"minLength\": 1, "
    "\"maxLength\": 9}, "
    "\"maxItems\": 3}, \"x\": {\"enum\": [null, \"caf\xc3\xa9\", \"cafe\"]}}, \"required\": [\"name\", "
    "\"age\", \"x\"]}",
    "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"number\"}, \"name\": {\"type\": \"null\"}}, "
    "\"additionalProperties\": {\"anyOf\": [{\"type\": \"boolean\"}, {\"type\": \"string\", \"maxLength\": "
    "2}, {\"type\": "
    "\"string\", \"minLength\": 2}]}}",
};

/* ---- masks ---- */

/* Tells by the automaton alone whether a text may go on with a token. */
static bool may_follow(const weft_grammar *g, const char *text, size_t bytes, const weft_tokenizer *t,
                       int32_t id, bool *complete) {
    static weft__stacks stacks[2];
    char token[64];
    weft__automaton a;
    size_t n = 0, i = 0;
    assert_ok(weft_tokenizer_decode(t, &id, 1, token, sizeof token, &n));
    weft__automaton_begin(&a, NULL, g, &stacks[0]);
    for (; i < bytes; i++)
        assert_true(weft__automaton_step(&a, &stacks[i % 2], (unsigned char)text[i], &stacks[(i + 1) % 2]));
    *complete = weft__automaton_complete(&a, &stacks[i % 2]);
    bool good = n > 0;
    for (size_t k = 0; k < n && good; k++, i++)
        good = weft__automaton_step(&a, &stacks[i % 2], (unsigned char)token[k], &stacks[(i + 1) % 2]);
    weft__automaton_end(&a);
    return good;
}

/* Draws texts, and compares the mask of each step with one that is computed token by token. */
static void test_masks(void **state) {
    (void)state;
    weft_tokenizer *t = tokens_of_json(NULL);
    const int32_t end = weft_tokenizer_special(t, WEFT_SPECIAL_EOS),
                  count = (int32_t)weft_tokenizer_vocabulary(t);
    int spanning = 0, partial = 0;
    schema_draws = 0;
    for (size_t s = 0; s < COUNT(schemas); s++)
        for (schema_seed = 0; schema_seed < 12; schema_seed++) {
            weft_grammar *g = grammar_of(schemas[s]);
            weft__constraint *c;
            char text[512];
            size_t bytes = 0;
            assert_ok(weft__constraint_open(NULL, g, t, &end, 1, &c));
            for (int step = 0; step < 25 && !weft__constraint_over(c); step++) {
                float logits[400] = {0};
                int32_t allowed[400];
                unsigned n = 0;
                assert_ok(weft__constraint_mask(c, logits, count));
                for (int32_t id = 0; id < count; id++) {
                    bool complete;
                    const bool may = may_follow(g, text, bytes, t, id, &complete);
                    const bool want = id == end ? complete : may;
                    assert_int_equal(complete, weft__constraint_complete(c));
                    if (want != (logits[id] == 0))
                        fail_msg("%s: after '%.*s' token %d: %d, not %d", schemas[s], (int)bytes, text, id,
                                 logits[id] == 0, want);
                    if (may && id != end) allowed[n++] = id;
                }
                if (n == 0) break;
                const int32_t id = allowed[draw_below(n)];
                size_t more = 0;
                assert_ok(weft_tokenizer_decode(t, &id, 1, text + bytes, sizeof text - bytes, &more));
                spanning +=
                    more > 2 && strchr("\",:{[", text[bytes]) && strchr("\",:{[", text[bytes + more - 1]);
                partial += (unsigned char)text[bytes] >= 0x80 && more == 1;
                bytes += more;
                assert_ok(weft__constraint_take(c, id));
            }
            weft__constraint_free(c);
            weft_grammar_free(g);
        }
    weft_tokenizer_free(t);
    print_message("%d tokens of several signs, %d parts of characters\n", spanning, partial);
    assert_true(spanning > 10 && partial > 10);
}

/* ---- generation ---- */

static weft_status collect(void *user, const char *text, size_t bytes) {
    strncat(user, text, bytes);
    return WEFT_OK;
}

typedef struct random_model {
    weft_context *ctx;
    weft_tokenizer *tokenizer;
    weft_module *gpt;
    weft_decode_state *cache;
} random_model;

/* A GPT that learned nothing. */
static random_model model_of(weft_tokenizer *(*make)(weft_context *ctx)) {
    random_model m = {.ctx = open_device(NULL, false)};
    m.tokenizer = make(m.ctx);
    m.gpt =
        weft_nn_gpt(m.ctx, &(weft_gpt_options){.vocab = (int64_t)weft_tokenizer_vocabulary(m.tokenizer) + 6,
                                               .context = 512,
                                               .layers = 1,
                                               .heads = 2,
                                               .width = 16,
                                               .untied_head = true});
    weft_module_set_training(m.gpt, false);
    m.cache = weft_decode_state_new(m.gpt);
    assert_non_null(m.cache);
    return m;
}

static void model_free(random_model *m) {
    weft_decode_state_free(m->cache);
    weft_tokenizer_free(m->tokenizer);
    weft_close(m->ctx);
}

static weft_tokenizer *any_bytes(weft_context *ctx) {
    weft_tokenizer *t;
    assert_ok(weft_tokenizer_build(ctx, WEFT_TOKENIZER_BYTE, NULL, 0, NULL, &t));
    return t;
}

/* A tokenizer as those of SentencePiece: bytes, and tokens with U+2581 for a space, some of which lose it at
 * the begin of a text. */
static weft_tokenizer *pieces(weft_context *ctx, const char *decoder) {
    static const char *const tokens[] = {
        "\\u2581",     "\\u2581{", "{\\u2581", "{\\u2581\\\"", ":\\u2581",         "\\\":\\u2581\\\"",
        "\\u2581\\\"", "{",        "\\u2581a", "name",         "\\\",\\u2581\\\"", "\\u2581\\u2581",
        "}",           "null",     "1\\u2581", "a</w>",        "\\\"a\\u2581",     "12"};
    char json[16384];
    size_t used = 0;
    int id = 3;
    weft_tokenizer *t = NULL;
    used += (size_t)snprintf(json, sizeof json,
                             "{\"added_tokens\": [{\"id\": 0, \"content\": \"<unk>\", \"special\": true}, "
                             "{\"id\": 1, \"content\": \"<s>\", "
                             "\"special\": true}, {\"id\": 2, \"content\": \"</s>\", \"special\": true}], "
                             "\"decoder\": %s, \"model\": {\"type\": "
                             "\"BPE\", \"byte_fallback\": true, \"unk_token\": \"<unk>\", \"merges\": [], "
                             "\"vocab\": {\"<unk>\": 0, \"<s>\": 1, "
                             "\"</s>\": 2",
                             decoder);
    for (int b = 0; b < 256; b++)
        used += (size_t)snprintf(json + used, sizeof json - used, ", \"<0x%02X>\": %d", (unsigned)b, id++);
    for (size_t i = 0; i < COUNT(tokens); i++)
        used += (size_t)snprintf(json + used, sizeof json - used, ", \"%s\": %d", tokens[i], id++);
    used += (size_t)snprintf(json + used, sizeof json - used, "}}}");
    if (weft_tokenizer_parse(ctx, json, used, &t) != WEFT_OK) fail_msg("%s", weft_last_error(ctx));
    return t;
}

static weft_tokenizer *llama_pieces(weft_context *ctx) {
    return pieces(ctx, "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": "
                       "{\"String\": \"\\u2581\"}, "
                       "\"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}, {\"type\": "
                       "\"Strip\", \"content\": "
                       "\" \", \"start\": 1, \"stop\": 0}]}");
}

static weft_tokenizer *metaspace_pieces(weft_context *ctx) {
    return pieces(
        ctx,
        "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"ByteFallback\"}, {\"type\": \"Metaspace\", "
        "\"replacement\": \"\\u2581\", \"prepend_scheme\": \"first\"}]}");
}

static weft_tokenizer *word_pieces(weft_context *ctx) {
    return pieces(
        ctx,
        "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"ByteFallback\"}, {\"type\": \"BPEDecoder\"}]}");
}

static const char limited[] = "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", "
                              "\"maxLength\": 5}, \"tags\": {\"type\": "
                              "\"array\", \"items\": {\"anyOf\": [{\"type\": [\"number\", \"null\"]}, "
                              "{\"enum\": [\"x\", \"y\"]}]}, \"maxItems\": 3}, "
                              "\"next\": {\"type\": \"object\", \"properties\": {\"ok\": {\"type\": "
                              "\"boolean\"}}, \"required\": [\"ok\"]}}, "
                              "\"required\": [\"name\", \"next\"]}";

/* For all seeds the text is a whole value. */
static void check_seeds(random_model *m, int seeds) {
    json_error_t error;
    json_t *schema = json_loads(limited, 0, &error);
    weft_grammar *g = grammar_of(limited);
    for (int seed = 0; seed < seeds; seed++) {
        char text[4096] = "";
        bool incomplete = true;
        const weft_generate_options o = {.prompt = "ab",
                                         .tokens = 600,
                                         .temperature = seed % 4 * 0.8,
                                         .top_k = seed % 3 ? 0 : 20,
                                         .repetition_penalty = seed % 2 ? 1.2 : 0,
                                         .seed = (uint64_t)seed,
                                         .only_new = true,
                                         .grammar = g,
                                         .incomplete = &incomplete};
        assert_ok(weft_generate(m->cache, m->tokenizer, &o, collect, text));
        json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, &error);
        if (incomplete || !value || !schema_allows(schema, schema, value))
            fail_msg("seed %d: '%s': %s", seed, text, value ? "not valid" : error.text);
        json_decref(value);
    }
    weft_grammar_free(g);
    json_decref(schema);
}

/* The token '"a ' loses its space at the begin of a text, for some tokenizers. For others 'a</w>' gives a
 * space that comes with the next token. */
static void check_constant(random_model *m, const char *constant) {
    char schema[64];
    snprintf(schema, sizeof schema, "{\"const\": %s}", constant);
    weft_grammar *g = grammar_of(schema);
    for (uint64_t seed = 0; seed < 20; seed++) {
        char text[64] = "";
        const weft_generate_options o = {
            .prompt = "ab", .tokens = 9, .temperature = 2, .seed = seed, .only_new = true, .grammar = g};
        assert_ok(weft_generate(m->cache, m->tokenizer, &o, collect, text));
        assert_string_equal(text, constant);
    }
    weft_grammar_free(g);
}

static void test_seeds(void **state) {
    (void)state;
    random_model m = model_of(tokens_of_json);
    check_seeds(&m, 60);
    model_free(&m);
    weft_tokenizer *(*const others[])(weft_context * ctx) = {any_bytes, llama_pieces, metaspace_pieces,
                                                             word_pieces};
    for (size_t i = 0; i < COUNT(others); i++) {
        m = model_of(others[i]);
        check_seeds(&m, 20);
        check_constant(&m, "\"a b\"");
        check_constant(&m, "\"ab\"");
        model_free(&m);
    }
}

/* Where the text ends: at the value's end, at a token that ends texts, at a stop, and after too few tokens.
 */
static void test_ends(void **state) {
    (void)state;
    random_model m = model_of(tokens_of_json);
    bool incomplete = false;
    char text[4096] = "";
    weft_grammar *g = grammar_of("{\"type\": \"integer\"}");
    weft_generate_options o = {.prompt = "ab",
                               .tokens = 0,
                               .temperature = 1,
                               .only_new = true,
                               .grammar = g,
                               .incomplete = &incomplete};
    assert_ok(weft_generate(m.cache, m.tokenizer, &o, collect, text));
    assert_true(incomplete && !text[0]);
    o.tokens = 50;
    bool lengths[32] = {false};
    for (o.seed = 0; o.seed < 300; o.seed++) { /* the end of text may come after any digit */
        text[0] = '\0';
        assert_ok(weft_generate(m.cache, m.tokenizer, &o, collect, text));
        assert_false(incomplete);
        assert_in_range(strlen(text), 1, 1 + WEFT__DIGITS);
        lengths[strlen(text)] = true;
    }
    assert_true(lengths[1] && lengths[2] && lengths[1 + WEFT__DIGITS - 1]);
    o.endless = true; /* without such a token, the limit of digits ends the number, or a single 0 */
    for (o.seed = 0; o.seed < 20; o.seed++) {
        text[0] = '\0';
        assert_ok(weft_generate(m.cache, m.tokenizer, &o, collect, text));
        assert_false(incomplete);
        assert_true(strcmp(text, "0") == 0 || strspn(text + (text[0] == '-'), "0123456789") == WEFT__DIGITS);
    }
    weft_grammar_free(g);
    g = grammar_of("{\"enum\": [\"a stop\"]}");
    o = (weft_generate_options){
        .prompt = "ab", .tokens = 50, .only_new = true, .grammar = g, .incomplete = &incomplete};
    text[0] = '\0';
    assert_ok(weft_generate(m.cache, m.tokenizer, &o, collect, text));
    assert_string_equal(text, "\"a stop\"");
    assert_false(incomplete);
    const char *stop = "st";
    o.stops = &stop, o.stop_count = 1;
    text[0] = '\0';
    assert_ok(weft_generate(m.cache, m.tokenizer, &o, collect, text));
    assert_string_equal(text, "\"a ");
    assert_true(incomplete);
    assert_int_equal(weft_generate(m.cache, NULL, &o, collect, text), WEFT_ERR_ARGUMENT);
    weft_grammar_free(g);
    model_free(&m);
}

static weft_tokenizer *letters(weft_context *ctx) {
    weft_tokenizer *t;
    assert_ok(weft_tokenizer_build(ctx, WEFT_TOKENIZER_CHARACTER, "abc{}\"", 6, NULL, &t));
    return t;
}

/* A tokenizer without a colon. */
static void test_no_token(void **state) {
    (void)state;
    random_model m = model_of(letters);
    char text[4096] = "";
    weft_grammar *g = grammar_of("{\"type\": \"object\", \"required\": [\"abc\"]}");
    const weft_generate_options o = {.prompt = "ab", .tokens = 50, .only_new = true, .grammar = g};
    assert_int_equal(weft_generate(m.cache, m.tokenizer, &o, collect, text), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(NULL), "no token that can continue"));
    weft_grammar_free(g);
    model_free(&m);
}

/* ---- memory ---- */

static const weft_grammar *shared;

static weft_status use_constraint(weft_context *ctx) {
    weft__constraint *c = NULL;
    weft_tokenizer *t;
    float logits[400];
    WEFT_TRY(weft_tokenizer_build(ctx, WEFT_TOKENIZER_BYTE, NULL, 0, NULL, &t));
    weft_status status = weft__constraint_open(ctx, shared, t, NULL, 0, &c);
    for (const char *at = "{\"name\": \"a\""; *at && status == WEFT_OK; at++) {
        memset(logits, 0, sizeof logits);
        status = weft__constraint_mask(c, logits, 300);
        if (status == WEFT_OK) status = weft__constraint_take(c, *at); /* an id of this tokenizer is a byte */
    }
    weft__constraint_free(c);
    weft_tokenizer_free(t);
    return status;
}

static void test_memory(void **state) {
    (void)state;
    weft_grammar *g = grammar_of(schemas[1]);
    shared = g;
    assert_in_range(fail_each_allocation(use_constraint), 8, 100);
    weft_grammar_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_masks), cmocka_unit_test(test_seeds),
                                       cmocka_unit_test(test_ends), cmocka_unit_test(test_no_token),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
