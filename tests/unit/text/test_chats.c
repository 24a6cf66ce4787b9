/* Conversations as training data: the forms of lines, which tokens are learned, rows that are as full as they
 * get, batches of a loader, and a gpt whose packed texts do not see each other. Then what is refused. */
#include "unit/core_help.h"
#include "unit/failing_alloc.h"
#include "unit/io_scratch.h"

#include <weft/chats.h>
#include <weft/fit.h>
#include <weft/loader.h>
#include <weft/preferences.h>

static const char source[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}"
                             "{% if add_generation_prompt %}<assistant>{% endif %}";

static weft_tokenizer *bytes_of_text(weft_context *ctx) {
    weft_tokenizer *t;
    assert_ok(weft_tokenizer_build(ctx, WEFT_TOKENIZER_BYTE, NULL, 0, NULL, &t));
    return t;
}

static const char *file_of(const char *text) {
    const char *path = in_scratch("chats.jsonl");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static weft_status read_lines(weft_context *ctx, const char *text, bool with_template, weft_chats **out) {
    weft_chat_template *chat = NULL;
    weft_tokenizer *tokenizer = bytes_of_text(ctx);
    if (with_template) assert_ok(weft_chat_template_new(ctx, source, strlen(source), "t", &chat));
    const weft_status status = weft_chats_read(ctx, file_of(text), tokenizer, chat, out);
    weft_chat_template_free(chat);
    weft_tokenizer_free(tokenizer);
    return status;
}

/* Writes a conversation with the learned tokens in capitals. */
static const char *shown(const weft_chats *chats, int64_t i) {
    static char text[256];
    const bool *learned;
    size_t count;
    const int32_t *tokens = weft_chats_tokens(chats, i, &learned, &count);
    assert_true(count < sizeof text);
    for (size_t k = 0; k < count; k++) {
        const char c = (char)tokens[k];
        text[k] = (char)(learned[k] && c >= 'a' && c <= 'z' ? c - 32 : learned[k] && c == '|' ? '!' : c);
    }
    text[count] = '\0';
    return text;
}

#define USER   "{\"role\": \"user\", \"content\": \"hi\"}"
#define ANSWER "{\"role\": \"assistant\", \"content\": \"yes\"}"

static void test_forms(void **state) {
    (void)state;
    static const char *const lines[][2] = {
        {"{\"messages\": [" USER ", " ANSWER ", " USER ", " ANSWER "]}",
         "<user>hi|<assistant>YES!<user>hi|<assistant>YES!"},
        {"{\"conversations\": [{\"from\": \"system\", \"value\": \"be\"}, {\"from\": \"human\", \"value\": "
         "\"a\"}, {\"from\": \"gpt\", \"value\": \"b\"}]}",
         "<system>be|<user>a|<assistant>B!"},
        {"{\"prompt\": [" USER ", " ANSWER ", " USER "], \"completion\": [" ANSWER "]}",
         "<user>hi|<assistant>yes|<user>hi|<assistant>YES!"},
        {"{\"prompt\": \"two and \", \"completion\": \"two\"}", "two and TWO"},
        {"{\"messages\": [" USER "]}", "<user>hi|"},
        {"{\"text\": \"all of it\"}", "ALL OF IT"}};
    char text[4096] = "";
    weft_context *ctx = open_device(NULL, false);
    weft_chats *chats;
    for (size_t i = 0; i < COUNT(lines); i++) {
        strcat(text, lines[i][0]);
        strcat(text, i == 2 ? "\r\n\n  \n" : "\n"); /* blank lines are skipped */
    }
    assert_ok(read_lines(ctx, text, true, &chats));
    assert_int_equal(weft_chats_count(chats), COUNT(lines));
    for (size_t i = 0; i < COUNT(lines); i++) assert_string_equal(shown(chats, (int64_t)i), lines[i][1]);
    assert_null(weft_chats_tokens(chats, COUNT(lines), NULL, NULL));
    assert_null(weft_chats_tokens(chats, -1, NULL, NULL));
    const uint64_t hash = weft_chats_hash(chats);
    weft_chats_free(chats);
    strcpy(strstr(text, "all of"), "all if it\"}\n");
    assert_ok(read_lines(ctx, text, true, &chats));
    assert_int_not_equal(weft_chats_hash(chats), hash);
    weft_chats_free(chats);
    assert_ok(read_lines(ctx, lines[5][0], false, &chats)); /* texts need no template */
    weft_chats_free(chats);
    weft_close(ctx);
}

/* A text, and the texts of a .jsonl file, each begin with <s>. */
static void check_corpora(const weft_tokenizer *t) {
    weft_corpus *corpus;
    size_t count;
    for (int several = 0; several < 2; several++) {
        const int32_t one[] = {0, 1, 2}, two[] = {0, 1, 2, 3, 0, 2, 1, 3};
        const char *path = in_scratch(several ? "begin.jsonl" : "begin.txt"),
                   *text = several ? "{\"text\": \"ab\"}\n{\"text\": \"ba\"}\n" : "ab";
        int32_t ids[8];
        int64_t first = 0;
        assert_true(spill(path, text, strlen(text)));
        assert_ok(weft_corpus_open(NULL, path, &(weft_corpus_options){.tokenizer = t}, &corpus));
        const int32_t *all = weft_corpus_ids(corpus, WEFT_CORPUS_TRAIN, &count);
        assert_int_equal(count, several ? COUNT(two) : COUNT(one));
        if (several) {
            const weft_tokens *tokens = weft_corpus_tokens(corpus, WEFT_CORPUS_TRAIN, &first);
            assert_int_equal(weft_tokens_read(tokens, first, count, ids), count);
            all = ids;
        }
        assert_memory_equal(all, several ? two : one, count * sizeof *all);
        weft_corpus_free(corpus);
    }
}

/* A tokenizer that puts <s> in front of a text, as those of Llama and Gemma do: texts get it as in
 * generation, also in a corpus and in pairs of preferences. Conversations that a chat template writes do not.
 */
static void test_begin(void **state) {
    (void)state;
    static const char json[] = "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"<s>\": 0, \"a\": 1, \"b\": 2, "
                               "\"\\n\": 3}, \"merges\": []},"
                               "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
                               "[{\"SpecialToken\": {\"id\": \"<s>\", "
                               "\"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], "
                               "\"special_tokens\": {\"<s>\": {\"id\": "
                               "\"<s>\", \"ids\": [0], \"tokens\": [\"<s>\"]}}}}";
    static const char lines[] = "{\"prompt\": \"ab\", \"completion\": \"ba\"}\n{\"text\": \"ab\"}\n"
                                "{\"messages\": [{\"role\": \"assistant\", \"content\": \"ab\"}]}\n";
    static const char letters[] = "{% for m in messages %}{{ m.content }}{% endfor %}";
    static const struct {
        int32_t ids[5];
        bool learned[5];
        size_t count;
    } right[] = {{{0, 1, 2, 2, 1}, {0, 0, 0, 1, 1}, 5}, {{0, 1, 2}, {0, 1, 1}, 3}, {{1, 2}, {1, 1}, 2}};
    weft_tokenizer *t;
    weft_chat_template *chat;
    weft_chats *chats;
    const bool *learned;
    size_t count;
    assert_ok(weft_tokenizer_parse(NULL, json, strlen(json), &t));
    assert_ok(weft_chat_template_new(NULL, letters, strlen(letters), "t", &chat));
    assert_ok(weft_chats_read(NULL, file_of(lines), t, chat, &chats));
    for (size_t i = 0; i < COUNT(right); i++) {
        const int32_t *ids = weft_chats_tokens(chats, (int64_t)i, &learned, &count);
        assert_int_equal(count, right[i].count);
        assert_memory_equal(ids, right[i].ids, count * sizeof *ids);
        assert_memory_equal(learned, right[i].learned, count * sizeof *learned);
    }
    weft_chats_free(chats);
    assert_ok(weft_preferences_read(
        NULL, file_of("{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"a\"}"), t, NULL, &chats));
    for (int i = 0; i < 2; i++) {
        const int32_t *ids = weft_chats_tokens(chats, i, &learned, &count), pair[3] = {0, 1, 2 - i};
        assert_int_equal(count, 3);
        assert_memory_equal(ids, pair, sizeof pair);
    }
    weft_chats_free(chats);
    check_corpora(t);
    weft_chat_template_free(chat);
    weft_tokenizer_free(t);
}

/* Lengths 9, 4, 3, 3, 2, 2 in rows of 6: one is cut; the others fill rows. */
static void test_rows(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    weft_chats *chats;
    weft_array x, y;
    weft_chats_packed packed;
    assert_ok(
        read_lines(ctx,
                   "{\"prompt\": \"a\", \"completion\": \"bcdefghij\"}\n{\"text\": \"klmno\"}\n"
                   "{\"text\": \"pqrs\"}\n{\"text\": \"tuvw\"}\n{\"prompt\": \"xy\", \"completion\": \"z\"}\n"
                   "{\"text\": \"012\"}\n{\"prompt\": \"123456789\", \"completion\": \"never\"}\n",
                   false, &chats));
    assert_ok(weft_chats_pack(chats, NULL, 0, 6, &x, &y, &packed));
    assert_int_equal(packed.cut, 1);
    assert_int_equal(packed.dropped, 1); /* its completion does not fit */
    assert_int_equal(packed.tokens, 6 + 4 + 3 + 3 + 2 + 2);
    assert_int_equal(packed.learned, 6 + 4 + 3 + 3 + 1 + 2);
    assert_int_equal(x.shape[0], 4);
    const int32_t(*rows)[2][6] = x.data, (*next)[6] = y.data;
    const int32_t first[2][6] = {{'a', 'b', 'c', 'd', 'e', 'f'}, {0}},
                  second[2][6] = {{'k', 'l', 'm', 'n', 'x', 'y'}, {0, 0, 0, 0, 4, 4}},
                  third[2][6] = {{'p', 'q', 'r', 't', 'u', 'v'}, {0, 0, 0, 3, 3, 3}},
                  fourth[2][6] = {{'0', '1', 0, 0, 0, 0}, {0, 0, 2, 3, 4, 5}},
                  learned[4][6] = {{'b', 'c', 'd', 'e', 'f', 'g'},
                                   {'l', 'm', 'n', 'o', -1, 'z'},
                                   {'q', 'r', 's', 'u', 'v', 'w'},
                                   {'1', '2', -1, -1, -1, -1}};
    assert_memory_equal(rows[0], first, sizeof first);
    assert_memory_equal(rows[1], second, sizeof second);
    assert_memory_equal(rows[2], third, sizeof third);
    assert_memory_equal(rows[3], fourth, sizeof fourth);
    assert_memory_equal(next, learned, sizeof learned);
    weft_array_free(ctx, &x);
    weft_array_free(ctx, &y);
    assert_ok(weft_chats_pack(chats, (int64_t[]){3, 2}, 2, 6, &x, &y, NULL));
    assert_int_equal(x.shape[0], 1);
    weft_array_free(ctx, &x);
    weft_array_free(ctx, &y);
    assert_int_equal(weft_chats_pack(chats, (int64_t[]){7}, 1, 6, &x, &y, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_chats_pack(chats, (int64_t[]){6}, 1, 6, &x, &y, NULL), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "set a longer context"));
    assert_int_equal(weft_chats_pack(chats, NULL, 0, 0, &x, &y, NULL), WEFT_ERR_ARGUMENT);
    weft_chats_free(chats);
    weft_close(ctx);
}

/* The mask of a batch is 1 where a target is learned, on the device and gathered by the host. */
static void test_loader(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    const int32_t inputs[5][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}},
                  targets[5][2] = {{1, -1}, {-1, 2}, {3, 4}, {-1, -1}, {5, -7}};
    const weft_array x = {WEFT_I32, 2, {5, 2}, (void *)(uintptr_t)inputs, sizeof inputs},
                     y = {WEFT_I32, 2, {5, 2}, (void *)(uintptr_t)targets, sizeof targets};
    for (int64_t where = -1; where <= 0; where++) {
        weft_loader *loader;
        weft_loader_options o = {.batch = 3, .skip_negative = true, .device_bytes = where};
        assert_ok(weft_loader_new(ctx, &x, &y, &o, &loader));
        for (uint64_t position = 0; position < 4; position++) {
            weft_scope *scope = weft_scope_open(ctx);
            weft_batch batch;
            int32_t in[3][2], out[3][2];
            float mask[3][2];
            double weight = 0;
            assert_ok(weft_loader_get(loader, position, &batch));
            assert_ok(weft_read(batch.x, in, sizeof in));
            assert_ok(weft_read(batch.y, out, sizeof out));
            assert_ok(weft_read(batch.mask, mask, sizeof mask));
            for (int b = 0; b < 3; b++)
                for (int k = 0; k < 2; k++) {
                    const int32_t right = targets[in[b][0] / 2][k];
                    const bool real = b < batch.count && right >= 0;
                    assert_int_equal(out[b][k], right < 0 ? 0 : right);
                    assert_true((mask[b][k] > 0.5F) == real);
                    weight += real;
                }
            assert_true(fabs(weight - batch.weight) < 1e-9);
            weft_scope_close(scope);
        }
        weft_loader_free(loader);
        o.batch = 5; /* the whole data set, in its order */
        assert_ok(weft_loader_new(ctx, &x, &y, &o, &loader));
        weft_scope *scope = weft_scope_open(ctx);
        weft_batch batch;
        assert_ok(weft_loader_get(loader, 0, &batch));
        assert_true(fabs(batch.weight - 5) < 1e-9);
        weft_scope_close(scope);
        weft_loader_free(loader);
        assert_int_equal(weft_loader_new(ctx, &x, NULL, &o, &loader), WEFT_ERR_ARGUMENT);
    }
    weft_close(ctx);
}

enum { VOCAB = 13, ROW = 9 };

/* Texts of 5 and 4 tokens have the same logits packed into a row as in rows of their own. */
static void check_packed(weft_position_kind positions, int64_t window, const char *device) {
    weft_context *ctx = open_device(device, false);
    static const int32_t packed[2][ROW] = {{1, 2, 3, 4, 5, 6, 7, 8, 9}, {0, 0, 0, 0, 0, 5, 5, 5, 5}},
                         alone[2][5] = {{1, 2, 3, 4, 5}, {6, 7, 8, 9, 0}};
    float whole[ROW][VOCAB], parts[2][5][VOCAB];
    weft_module *gpt = weft_nn_gpt(ctx, &(weft_gpt_options){.vocab = VOCAB,
                                                            .context = ROW,
                                                            .layers = 2,
                                                            .heads = 2,
                                                            .width = 16,
                                                            .positions = positions,
                                                            .form = {.window = window}});
    weft_module_set_training(gpt, false);
    weft_tensor *a = weft_forward(gpt, weft_from(ctx, WEFT_I32, SHAPE(1, 2, ROW), packed));
    weft_tensor *b = weft_forward(gpt, weft_from(ctx, WEFT_I32, SHAPE(2, 5), alone));
    assert_ok(weft_read(a, whole, sizeof whole));
    assert_ok(weft_read(b, parts, sizeof parts));
    for (int t = 0; t < ROW; t++)
        for (int v = 0; v < VOCAB; v++) {
            const float right = t < 5 ? parts[0][t][v] : parts[1][t - 5][v];
            if (!(fabsf(whole[t][v] - right) <= 2e-5F))
                fail_msg("positions %d: logit %d of token %d is %g, alone %g", (int)positions, v, t,
                         (double)whole[t][v], (double)right);
        }
    weft_close(ctx);
}

static void test_packed(void **state) {
    (void)state;
    check_packed(WEFT_POSITION_LEARNED, 0, NULL);
    check_packed(WEFT_POSITION_ROTARY, 0, NULL);
    check_packed(WEFT_POSITION_ROTARY, 3, NULL);
    check_packed(WEFT_POSITION_SINUSOIDAL, 0, NULL);
    check_packed(WEFT_POSITION_NONE, 0, "interp");
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
        bool with_template;
    } cases[] = {{"{\"text\": \"a\"}\n{\"message\": []}", ":2: no form that Weft knows: give", true},
                 {"{\"text\": \"a\"}\n\n[1]\n", ":3: each line is a JSON object", true},
                 {"{\"text\": \"a\"\n", ":1: column ", true},
                 {"{\"messages\": [" USER "]}", "messages need a chat template", false},
                 {"{\"conversations\": [{\"from\": \"alien\", \"value\": \"x\"}]}",
                  ":1: conversations: each item", true},
                 {"{\"conversations\": [{\"from\": \"human\"}]}", ":1: conversations: each item", true},
                 {"{\"messages\": [{\"content\": {\"a\": 1}}, 7]}", ":1: ", true},
                 {"\n\n", "the file has no conversations", true}};
    weft_context *ctx = open_device(NULL, false);
    weft_chats *chats;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_not_equal(read_lines(ctx, cases[i].text, cases[i].with_template, &chats), WEFT_OK);
        assert_null(chats);
        if (!strstr(weft_last_error(ctx), cases[i].message)) fail_msg("%s", weft_last_error(ctx));
    }
    weft_close(ctx);
}

static const char *memory_file;

static weft_status read_and_pack(weft_context *ctx) {
    weft_chat_template *chat = NULL;
    weft_tokenizer *tokenizer = NULL;
    weft_chats *chats = NULL;
    weft_array x = {0}, y = {0};
    weft_status status = weft_tokenizer_build(ctx, WEFT_TOKENIZER_BYTE, NULL, 0, NULL, &tokenizer);
    if (status == WEFT_OK) status = weft_chat_template_new(ctx, source, strlen(source), "t", &chat);
    if (status == WEFT_OK) status = weft_chats_read(ctx, memory_file, tokenizer, chat, &chats);
    if (status == WEFT_OK) status = weft_chats_pack(chats, NULL, 0, 16, &x, &y, NULL);
    weft_array_free(ctx, &x);
    weft_array_free(ctx, &y);
    weft_chats_free(chats);
    weft_chat_template_free(chat);
    weft_tokenizer_free(tokenizer);
    return status;
}

static void test_memory(void **state) {
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s",
             file_of("{\"messages\": [" USER ", " ANSWER "]}\n{\"prompt\": [" USER
                     "], \"completion\": [" ANSWER
                     "]}\n{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", "
                     "\"value\": \"b\"}]}\n{\"text\": \"all\"}\n"));
    memory_file = path;
    assert_true(fail_each_allocation(read_and_pack) > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms),  cmocka_unit_test(test_begin),
                                       cmocka_unit_test(test_rows),   cmocka_unit_test(test_loader),
                                       cmocka_unit_test(test_packed), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
