/* Preferences as training data: the forms of lines, which tokens count, rows of pairs, the numbers that a
 * loader sends with them, and what is refused. */
#include "unit/core_help.h"
#include "unit/failing_alloc.h"
#include "unit/io_scratch.h"

#include <zlib.h>

#include <weft/preferences.h>

static const char source[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}"
                             "{% if add_generation_prompt %}<assistant>{% endif %}";

static const char *file_of(const char *text) {
    const char *path = in_scratch("pairs.jsonl");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static weft_status read_path(weft_context *ctx, const char *path, bool with_template, weft_chats **out) {
    weft_chat_template *chat = NULL;
    weft_tokenizer *tokenizer = NULL;
    *out = NULL;
    weft_status status = weft_tokenizer_build(ctx, WEFT_TOKENIZER_BYTE, NULL, 0, NULL, &tokenizer);
    if (status == WEFT_OK && with_template)
        status = weft_chat_template_new(ctx, source, strlen(source), "t", &chat);
    if (status == WEFT_OK) status = weft_preferences_read(ctx, path, tokenizer, chat, out);
    weft_chat_template_free(chat);
    weft_tokenizer_free(tokenizer);
    return status;
}

/* Writes a conversation with the learned tokens in capitals. */
static const char *shown(const weft_chats *pairs, int64_t i) {
    static char text[256];
    const bool *learned;
    size_t count;
    const int32_t *tokens = weft_chats_tokens(pairs, i, &learned, &count);
    assert_true(count < sizeof text);
    for (size_t k = 0; k < count; k++) {
        const char c = (char)tokens[k];
        text[k] = (char)(learned[k] && c >= 'a' && c <= 'z' ? c - 32
                         : learned[k] && c == '|'           ? '!'
                         : learned[k] && c == ' '           ? '_'
                                                            : c);
    }
    text[count] = '\0';
    return text;
}

#define USER       "{\"role\": \"user\", \"content\": \"hi\"}"
#define SAYS(text) "{\"role\": \"assistant\", \"content\": \"" text "\"}"

static void test_forms(void **state) {
    (void)state;
    static const char *const lines[][3] = {
        {"{\"prompt\": [" USER
         ", " SAYS("a") ", " USER "], \"chosen\": [" SAYS("yes") "], \"rejected\": [" SAYS("no") "]}",
         "<user>hi|<assistant>a|<user>hi|<assistant>YES!", "<user>hi|<assistant>a|<user>hi|<assistant>NO!"},
        {"{\"chosen\": [" USER ", " SAYS("a") ", " USER ", " SAYS("b") "], \"rejected\": [" USER ", " SAYS(
             "a") ", " USER ", " SAYS("c") "]}",
         "<user>hi|<assistant>a|<user>hi|<assistant>B!", "<user>hi|<assistant>a|<user>hi|<assistant>C!"},
        {"{\"prompt\": \"hi\", \"chosen\": [" USER ", " SAYS("b") "], \"rejected\": [" USER
                                                                  ", " SAYS("b") "]}",
         "<user>hi|<assistant>B!", "<user>hi|<assistant>B!"},
        {"{\"prompt\": \"one \", \"chosen\": \"two\", \"rejected\": \"three\"}", "one TWO", "one THREE"},
        {"{\"chosen\": \"q a: yes sir\", \"rejected\": \"q a: yet no\"}", "q a:_YES_SIR", "q a:_YET_NO"},
        {"{\"chosen\": \"is it\\nyes\", \"rejected\": \"is it\\nyes\"}", "is it\nYES", "is it\nYES"},
        {"{\"chosen\": \"abc\", \"rejected\": \"abd\"}", "ABC", "ABD"}};
    char text[4096] = "\n";
    weft_context *ctx = open_device(NULL, false);
    weft_chats *pairs;
    for (size_t i = 0; i < COUNT(lines); i++) {
        strcat(text, lines[i][0]);
        strcat(text, "\n");
    }
    assert_ok(read_path(ctx, file_of(text), true, &pairs));
    assert_int_equal(weft_chats_count(pairs), 2 * COUNT(lines));
    for (size_t i = 0; i < 2 * COUNT(lines); i++)
        assert_string_equal(shown(pairs, (int64_t)i), lines[i / 2][1 + i % 2]);
    weft_chats_free(pairs);
    weft_close(ctx);
}

static void test_found(void **state) {
    (void)state;
    assert_true(weft_preferences_is(file_of("\n{\"rejected\" : \"a\", \"chosen\": \"b\"}\n")));
    assert_false(weft_preferences_is(file_of("{\"prompt\": \"a\", \"completion\": \"chosen\"}\n")));
    assert_false(weft_preferences_is(file_of("{\"chosen\": 1, \"text\": \"\\\"rejected\\\": no\"}\n")));
    assert_false(
        weft_preferences_is(file_of("{\"text\": \"a\"}\n{\"chosen\": \"a\", \"rejected\": \"b\"}\n")));
    assert_false(weft_preferences_is(file_of("")));
    assert_false(weft_preferences_is(in_scratch("nowhere.jsonl")));
    assert_false(weft_preferences_is(NULL));
    const char *path = in_scratch("packed.jsonl"), line[] = "{\"chosen\": \"a\", \"rejected\": \"b\"}\n";
    gzFile packed = gzopen(path, "wb");
    assert_int_equal(gzwrite(packed, line, sizeof line - 1), sizeof line - 1);
    gzclose(packed);
    assert_true(weft_preferences_is(path));
}

/* Lengths 3 + 2, 4 + 4 and 7 + 3 in rows of at most 8; the last pair keeps no answer. */
static void test_rows(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    weft_chats *pairs;
    weft_array x, y;
    weft_chats_packed packed;
    assert_ok(read_path(ctx,
                        file_of("{\"prompt\": \"ab\", \"chosen\": \"cd\", \"rejected\": \"e\"}\n"
                                "{\"prompt\": \"fg\", \"chosen\": \"hij\", \"rejected\": \"hij\"}\n"
                                "{\"prompt\": \"kl\", \"chosen\": \"mnopqr\", \"rejected\": \"st\"}\n"
                                "{\"prompt\": \"123456789\", \"chosen\": \"a\", \"rejected\": \"b\"}\n"),
                        false, &pairs));
    assert_ok(weft_preferences_pack(pairs, NULL, 0, 8, &x, &y, &packed));
    assert_int_equal(packed.cut, 1);
    assert_int_equal(packed.dropped, 1);
    assert_int_equal(packed.same, 1);
    assert_int_equal(packed.tokens, 5 + 8 + 8);
    assert_int_equal(packed.learned, 2 + 1 + 3 + 3 + 4 + 2);
    const int32_t inputs[3][2][8] = {{{'a', 'b', 'c', 'a', 'b', 0, 0, 0}, {0, 0, 0, 3, 3, 5, 6, 7}},
                                     {{'f', 'g', 'h', 'i', 'f', 'g', 'h', 'i'}, {0, 0, 0, 0, 4, 4, 4, 4}},
                                     {{'k', 'l', 'm', 'n', 'o', 'k', 'l', 's'}, {0, 0, 0, 0, 0, 5, 5, 5}}},
                  targets[3][2][8] = {
                      {{-1, 'c', 'd', -1, -1, -1, -1, -1}, {-1, -1, -1, -1, 'e', -1, -1, -1}},
                      {{-1, 'h', 'i', 'j', -1, -1, -1, -1}, {-1, -1, -1, -1, -1, 'h', 'i', 'j'}},
                      {{-1, 'm', 'n', 'o', 'p', -1, -1, -1}, {-1, -1, -1, -1, -1, -1, 's', 't'}}};
    assert_int_equal(x.rank, 3);
    assert_int_equal(x.bytes, sizeof inputs);
    assert_int_equal(y.bytes, sizeof targets);
    assert_memory_equal(x.data, inputs, sizeof inputs);
    assert_memory_equal(y.data, targets, sizeof targets);
    weft_array_free(ctx, &x);
    weft_array_free(ctx, &y);
    assert_ok(weft_preferences_pack(pairs, (int64_t[]){2, 0}, 2, 5, &x, &y, &packed));
    assert_int_equal(x.shape[0], 2); /* both sides of the first lose their end */
    assert_int_equal(x.shape[2], 5);
    assert_int_equal(packed.cut, 1);
    assert_int_equal(((const int32_t *)y.data)[2], 'n');
    assert_int_equal(((const int32_t *)y.data)[5 + 4], 's');
    weft_array_free(ctx, &x);
    weft_array_free(ctx, &y);
    assert_int_equal(weft_preferences_pack(pairs, (int64_t[]){4}, 1, 8, &x, &y, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_preferences_pack(pairs, (int64_t[]){-1}, 1, 8, &x, &y, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_preferences_pack(pairs, NULL, 0, 1, &x, &y, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_preferences_pack(pairs, (int64_t[]){3}, 1, 8, &x, &y, NULL), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "set a longer context"));
    weft_chats_free(pairs);
    weft_close(ctx);
}

/* Each batch has the extra numbers of its samples as they are now, on the device and gathered by the host. */
static void test_loader(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    const int32_t inputs[5] = {0, 1, 2, 3, 4};
    float numbers[5][2] = {{0, 10}, {1, 11}, {2, 12}, {3, 13}, {4, 14}};
    const weft_array x = {WEFT_I32, 1, {5}, (void *)(uintptr_t)inputs, sizeof inputs},
                     extra = {WEFT_F32, 2, {5, 2}, numbers, sizeof numbers};
    for (int64_t where = -1; where <= 0; where++)
        for (int64_t size = 3; size <= 5; size += 2) {
            weft_loader *loader;
            const weft_loader_options o = {.batch = size, .extra = &extra, .device_bytes = where};
            assert_ok(weft_loader_new(ctx, &x, NULL, &o, &loader));
            for (uint64_t position = 0; position < 5; position++) {
                weft_scope *scope = weft_scope_open(ctx);
                weft_batch batch;
                int32_t in[5];
                float got[5][2];
                numbers[2][1] += 1;
                assert_ok(weft_loader_get(loader, position, &batch));
                assert_ok(weft_read(batch.x, in, (size_t)size * sizeof *in));
                assert_ok(weft_read(batch.extra, got, (size_t)size * sizeof *got));
                for (int b = 0; b < size; b++) {
                    const float none[2] = {0, 0}, *right = b < batch.count ? numbers[in[b]] : none;
                    assert_memory_equal(got[b], right, sizeof none);
                }
                weft_scope_close(scope);
            }
            weft_loader_free(loader);
        }
    const weft_array short_one = {WEFT_F32, 2, {4, 2}, numbers, 32}, flat = {WEFT_F32, 1, {5}, numbers, 20},
                     whole = {WEFT_I32, 2, {5, 2}, numbers, sizeof numbers};
    const weft_array *const bad[] = {&short_one, &flat, &whole};
    for (size_t i = 0; i < COUNT(bad); i++) {
        weft_loader *loader;
        const weft_loader_options o = {.batch = 2, .extra = bad[i]};
        assert_int_equal(weft_loader_new(ctx, &x, NULL, &o, &loader), WEFT_ERR_ARGUMENT);
    }
    weft_close(ctx);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
        bool with_template;
    } cases[] = {
        {"{\"chosen\": \"a\", \"rejected\": \"b\"}\n{\"text\": \"a\"}", ":2: \"chosen\": missing", true},
        {"{\"prompt\": \"a\", \"chosen\": \"b\"}", ":1: \"rejected\": missing", true},
        {"{\"chosen\": \"\", \"rejected\": \"b\"}", ":1: \"chosen\": the answer is empty", true},
        {"{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"\"}",
         ":1: \"rejected\": the answer is empty", true},
        {"{\"chosen\": [" SAYS("a") "], \"rejected\": [" SAYS("") "]}",
         ":1: \"rejected\": the answer is empty", true},
        {"{\"chosen\": [" SAYS("a") "], \"rejected\": [" USER "]}", ":1: \"rejected\": there is no answer",
         true},
        {"{\"chosen\": [], \"rejected\": []}", ":1: \"chosen\": there is no answer", true},
        {"{\"chosen\": [" SAYS("a") "], \"rejected\": \"b\"}", ":1: no pair that Weft knows", true},
        {"{\"prompt\": [" USER "], \"chosen\": \"a\", \"rejected\": \"b\"}", ":1: no pair that Weft knows",
         true},
        {"{\"chosen\": 1, \"rejected\": 2}", ":1: no pair that Weft knows", true},
        {"{\"chosen\": [" SAYS("a") "], \"rejected\": [" SAYS("b") "]}", "messages need a chat template",
         false},
        {"{\"chosen\": [1, " SAYS("a") "], \"rejected\": [2, " SAYS("b") "]}", ":1: ", true},
        {"{\"chosen\"", ":1: column ", true},
        {"[]", ":1: each line is a JSON object", true},
        {"\n", "the file has no conversations", true}};
    weft_context *ctx = open_device(NULL, false);
    weft_chats *pairs;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_not_equal(read_path(ctx, file_of(cases[i].text), cases[i].with_template, &pairs), WEFT_OK);
        assert_null(pairs);
        if (!strstr(weft_last_error(ctx), cases[i].message)) fail_msg("%s", weft_last_error(ctx));
    }
    weft_close(ctx);
}

static const char *memory_file;

static weft_status read_and_pack(weft_context *ctx) {
    weft_chats *pairs = NULL;
    weft_array x = {0}, y = {0};
    weft_status status = read_path(ctx, memory_file, true, &pairs);
    if (status == WEFT_OK) status = weft_preferences_pack(pairs, NULL, 0, 40, &x, &y, NULL);
    weft_array_free(ctx, &x);
    weft_array_free(ctx, &y);
    weft_chats_free(pairs);
    return status;
}

static void test_memory(void **state) {
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s",
             file_of("{\"prompt\": [" USER "], \"chosen\": [" SAYS("yes") "], \"rejected\": [" SAYS(
                 "no") "]}\n"
                       "{\"chosen\": [" USER ", " SAYS("yes") "], \"rejected\": [" USER ", " SAYS(
                           "no") "]}\n"
                                 "{\"chosen\": \"a b\", \"rejected\": \"a c\"}\n"));
    memory_file = path;
    assert_true(fail_each_allocation(read_and_pack) > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms),   cmocka_unit_test(test_found),
                                       cmocka_unit_test(test_rows),    cmocka_unit_test(test_loader),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
