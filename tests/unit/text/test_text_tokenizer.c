/* Tokenizers: ids, round trips, streaming decode, files, malformed text and files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <weft/text.h>

#include "unit/io_scratch.h"
#include "base/utf8.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static weft_tokenizer *build(weft_tokenizer_kind kind, const char *text, size_t max) {
    weft_tokenizer *t = NULL;
    const weft_tokenizer_options options = {.max_vocabulary = max};
    assert_int_equal(weft_tokenizer_build(NULL, kind, text, strlen(text), &options, &t), WEFT_OK);
    assert_int_equal(weft_tokenizer_kind_of(t), kind);
    return t;
}

static void assert_ids(const weft_tokenizer *t, const char *text, const int32_t *expected, size_t count) {
    int32_t ids[256];
    size_t n = 0;
    assert_int_equal(weft_tokenizer_encode(t, text, strlen(text), NULL, 0, &n), WEFT_OK);
    assert_int_equal(n, count);
    assert_int_equal(weft_tokenizer_encode(t, text, strlen(text), ids, COUNT(ids), &n), WEFT_OK);
    assert_int_equal(n, count);
    for (size_t i = 0; i < count; i++) assert_int_equal(ids[i], expected[i]);
}

static void assert_text(const weft_tokenizer *t, const int32_t *ids, size_t count, const char *expected) {
    char out[256];
    size_t n = 0;
    assert_int_equal(weft_tokenizer_decode(t, ids, count, NULL, 0, &n), WEFT_OK);
    assert_int_equal(n, strlen(expected));
    assert_int_equal(weft_tokenizer_decode(t, ids, count, out, n, &n), WEFT_OK);
    assert_memory_equal(out, expected, n);
    if (n) assert_int_equal(weft_tokenizer_decode(t, ids, count, out, n - 1, &n), WEFT_ERR_ARGUMENT);
}

/* ---- UTF-8 ---- */

static void test_utf8(void **state) {
    (void)state;
    for (uint32_t point = 0; point < 0x110000; point++) {
        char bytes[4];
        uint32_t got = 0;
        size_t n = weft__utf8_write(point, bytes);
        bool surrogate = point >= 0xd800 && point < 0xe000;
        int length = weft__utf8_read(bytes, n, &got);
        if (surrogate) {
            assert_true(length < 0);
            continue;
        }
        assert_int_equal(length, (int)n);
        assert_int_equal(got, point);
        for (size_t cut = 1; cut < n; cut++) assert_int_equal(weft__utf8_read(bytes, cut, &got), 0);
    }
    const struct {
        const char *bytes;
        int result;
    } bad[] = {{"\x80", -1},         {"\xc0\x80", -1},         {"\xc1\xbf", -1},
               {"\xe0\x80\x80", -1}, {"\xed\xa0\x80", -1},     {"\xf0\x80\x80\x80", -1},
               {"\xf4\x90\x80", -1}, {"\xf5\x80\x80\x80", -1}, {"\xff", -1},
               {"\xe2\x82x", -2},    {"\xf0\x9f\x98x", -3},    {"\xc3x", -1}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint32_t point;
        assert_int_equal(weft__utf8_read(bad[i].bytes, strlen(bad[i].bytes), &point), bad[i].result);
    }
}

/* ---- characters ---- */

static void test_character(void **state) {
    (void)state;
    weft_tokenizer *t = build(WEFT_TOKENIZER_CHARACTER, "hello\n\xc3\xa9 \xf0\x9f\x98\x80", 0);
    assert_int_equal(weft_tokenizer_vocabulary(t), 8); /* \n space e h l o e-acute face */
    const int32_t ids[] = {3, 2, 4, 4, 5, 0, 6, 1, 7};
    assert_ids(t, "hello\n\xc3\xa9 \xf0\x9f\x98\x80", ids, COUNT(ids));
    assert_text(t, ids, COUNT(ids), "hello\n\xc3\xa9 \xf0\x9f\x98\x80");
    size_t n = 0;
    const char *token = weft_tokenizer_token(t, 7, &n);
    assert_int_equal(n, 4);
    assert_memory_equal(token, "\xf0\x9f\x98\x80", 4);
    assert_null(weft_tokenizer_token(t, 8, &n));
    assert_null(weft_tokenizer_token(t, -1, &n));
    assert_int_equal(weft_tokenizer_encode(t, "he\xc3\xb6", 4, NULL, 0, &n), WEFT_ERR_INDEX);
    assert_non_null(strstr(weft_last_error(NULL), "U+00F6 at byte 2"));
    assert_int_equal(weft_tokenizer_encode(t, "he\xc3", 3, NULL, 0, &n), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(NULL), "byte 2 (0xc3)"));
    int32_t few[2];
    assert_int_equal(weft_tokenizer_encode(t, "hello", 5, few, 2, &n), WEFT_ERR_ARGUMENT);
    assert_int_equal(n, 5);
    const int32_t wrong[] = {0, 99};
    assert_int_equal(weft_tokenizer_decode(t, wrong, 2, NULL, 0, &n), WEFT_ERR_INDEX);
    assert_non_null(strstr(weft_last_error(NULL), "id 99 at position 1"));
    assert_ids(t, "", NULL, 0);
    weft_tokenizer_free(t);
}

static void test_bad_corpora(void **state) {
    (void)state;
    weft_tokenizer *t;
    for (int k = 0; k < 2; k++) {
        weft_tokenizer_kind kind = k ? WEFT_TOKENIZER_WORD : WEFT_TOKENIZER_CHARACTER;
        assert_int_equal(weft_tokenizer_build(NULL, kind, "abc\xff z", 6, NULL, &t), WEFT_ERR_FORMAT);
        assert_non_null(strstr(weft_last_error(NULL), "byte 3 (0xff)"));
        assert_null(t);
        assert_int_equal(weft_tokenizer_build(NULL, kind, "", 0, NULL, &t), WEFT_ERR_ARGUMENT);
    }
    const weft_tokenizer_options one = {.max_vocabulary = 1};
    assert_int_equal(weft_tokenizer_build(NULL, WEFT_TOKENIZER_WORD, "a", 1, &one, &t), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_tokenizer_build(NULL, (weft_tokenizer_kind)9, "a", 1, NULL, &t), WEFT_ERR_ARGUMENT);
    weft_tokenizer_free(NULL);
    weft_tokenizer_kind kind;
    assert_true(weft_tokenizer_kind_parse("char", &kind));
    assert_int_equal(kind, WEFT_TOKENIZER_CHARACTER);
    for (int k = 0; k < WEFT_TOKENIZER_KIND_COUNT; k++) {
        assert_true(weft_tokenizer_kind_parse(weft_tokenizer_kind_name((weft_tokenizer_kind)k), &kind));
        assert_int_equal(kind, k);
    }
    assert_false(weft_tokenizer_kind_parse("sentence", &kind));
    assert_null(weft_tokenizer_kind_name((weft_tokenizer_kind)99));
}

/* ---- bytes ---- */

static void test_byte(void **state) {
    (void)state;
    weft_tokenizer *t = NULL;
    char all[256], back[256];
    int32_t ids[256];
    size_t n = 0;
    assert_int_equal(weft_tokenizer_build(NULL, WEFT_TOKENIZER_BYTE, NULL, 0, NULL, &t), WEFT_OK);
    assert_int_equal(weft_tokenizer_vocabulary(t), 256);
    for (int i = 0; i < 256; i++) all[i] = (char)(unsigned char)(255 - i);
    assert_int_equal(weft_tokenizer_encode(t, all, 256, ids, 256, &n), WEFT_OK);
    for (int i = 0; i < 256; i++) assert_int_equal(ids[i], 255 - i);
    assert_int_equal(weft_tokenizer_decode(t, ids, 256, back, 256, &n), WEFT_OK);
    assert_memory_equal(all, back, 256);
    weft_tokenizer_free(t);
}

/* ---- words ---- */

static void test_word(void **state) {
    (void)state;
    weft_tokenizer *t = build(WEFT_TOKENIZER_WORD, " b a\ta <eos> c\r\nb a <unk> \n", 0);
    assert_int_equal(weft_tokenizer_vocabulary(t), 5); /* <unk> <eos> a b c */
    const int32_t ids[] = {2, 3, 1, 1, 4, 0, 0, 1, 2};
    assert_ids(t, "a b\n\n c zz <unk> <eos> a", ids, COUNT(ids));
    assert_text(t, ids, COUNT(ids), "a b\n\nc <unk> <unk>\na");
    size_t n = 0;
    assert_memory_equal(weft_tokenizer_token(t, 1, &n), "\n", 1);
    assert_int_equal(n, 1);
    weft_tokenizer_free(t);

    t = build(WEFT_TOKENIZER_WORD, "x y y z z", 4);
    assert_int_equal(weft_tokenizer_vocabulary(t), 4); /* equal counts: by bytes, y before z */
    const int32_t kept[] = {2, 3, 0};
    assert_ids(t, "y z x", kept, 3);
    weft_tokenizer_free(t);
}

/* So many words that the table grows. Each word must find its own id again. */
static void test_many_words(void **state) {
    (void)state;
    enum { WORDS = 20000 };
    char *text = malloc(WORDS * 12);
    size_t used = 0, n = 0;
    assert_non_null(text);
    for (int i = 0; i < WORDS; i++) used += (size_t)snprintf(text + used, 12, "w%d ", i * 7919 % WORDS);
    text[used] = 0;
    weft_tokenizer *t = build(WEFT_TOKENIZER_WORD, text, 0);
    assert_int_equal(weft_tokenizer_vocabulary(t), WORDS + 2);
    for (int32_t id = 2; id < WORDS + 2; id++) {
        int32_t got = -1;
        size_t bytes = 0;
        const char *token = weft_tokenizer_token(t, id, &bytes);
        assert_int_equal(weft_tokenizer_encode(t, token, bytes, &got, 1, &n), WEFT_OK);
        assert_int_equal(got, id);
    }
    weft_tokenizer_free(t);
    free(text);
}

/* ---- streaming ---- */

static void assert_push(weft_decoder *d, int32_t id, const char *expected) {
    const char *text = NULL;
    size_t n = 99;
    assert_int_equal(weft_decoder_push(d, id, &text, &n), WEFT_OK);
    assert_int_equal(n, strlen(expected));
    assert_string_equal(text, expected);
}

static void test_streaming(void **state) {
    (void)state;
    const char *text;
    size_t n;
    weft_decoder *d;
    weft_tokenizer *t = NULL;
    assert_int_equal(weft_tokenizer_build(NULL, WEFT_TOKENIZER_BYTE, NULL, 0, NULL, &t), WEFT_OK);
    assert_int_equal(weft_decoder_open(t, &d), WEFT_OK);
    assert_push(d, 'a', "a");
    assert_push(d, 0xf0, "");
    assert_push(d, 0x9f, "");
    assert_push(d, 0x98, "");
    assert_push(d, 0x80, "\xf0\x9f\x98\x80");
    assert_push(d, 0xc3, "");
    assert_push(d, 'b',
                "\xef\xbf\xbd"
                "b");
    assert_push(d, 0xff, "\xef\xbf\xbd");
    assert_push(d, 0xe2, "");
    assert_push(d, 0x82, "");
    assert_int_equal(weft_decoder_finish(d, &text, &n), WEFT_OK);
    assert_string_equal(text, "\xef\xbf\xbd");
    assert_int_equal(weft_decoder_finish(d, &text, &n), WEFT_OK);
    assert_int_equal(n, 0);
    assert_push(d, 'c', "c");
    assert_int_equal(weft_decoder_push(d, 256, &text, &n), WEFT_ERR_INDEX);
    weft_decoder_free(d);
    weft_tokenizer_free(t);

    t = build(WEFT_TOKENIZER_WORD, "a b\n", 0);
    assert_int_equal(weft_decoder_open(t, &d), WEFT_OK);
    assert_push(d, 2, "a");
    assert_push(d, 3, " b");
    assert_push(d, 1, "\n");
    assert_push(d, 2, "a");
    assert_push(d, 0, " <unk>");
    weft_decoder_free(d);
    weft_decoder_free(NULL);
    weft_tokenizer_free(t);
}

/* ---- files ---- */

static void test_files(void **state) {
    (void)state;
    const char *corpus = "The \"quick\" brown\tfox\\ jumps\x01 over \xc3\xa9\xf0\x9f\x98\x80\n";
    for (int k = 0; k < WEFT_TOKENIZER_BPE; k++) { /* has a test of its own */
        weft_tokenizer *t = build((weft_tokenizer_kind)k, corpus, 0), *u = NULL;
        const char *path = in_scratch("tokenizer.json");
        size_t n1 = 0, n2 = 0;
        assert_int_equal(weft_tokenizer_save(t, path), WEFT_OK);
        assert_int_equal(weft_tokenizer_load(NULL, path, &u), WEFT_OK);
        assert_int_equal(weft_tokenizer_kind_of(u), k);
        assert_int_equal(weft_tokenizer_vocabulary(t), weft_tokenizer_vocabulary(u));
        for (int32_t id = 0; (size_t)id < weft_tokenizer_vocabulary(t); id++) {
            const char *x = weft_tokenizer_token(t, id, &n1), *y = weft_tokenizer_token(u, id, &n2);
            assert_int_equal(n1, n2);
            assert_memory_equal(x, y, n1);
        }
        int32_t ids[100], again[100];
        assert_int_equal(weft_tokenizer_encode(t, corpus, strlen(corpus), ids, 100, &n1), WEFT_OK);
        assert_int_equal(weft_tokenizer_encode(u, corpus, strlen(corpus), again, 100, &n2), WEFT_OK);
        assert_int_equal(n1, n2);
        assert_memory_equal(ids, again, n1 * sizeof *ids);
        assert_int_equal(weft_tokenizer_save(u, in_scratch("again.json")), WEFT_OK);
        char *x = slurp(path, &n1), *y = slurp(in_scratch("again.json"), &n2);
        assert_int_equal(n1, n2);
        assert_memory_equal(x, y, n1);
        free(x);
        free(y);
        weft_tokenizer_free(t);
        weft_tokenizer_free(u);
    }
    weft_tokenizer *t;
    assert_int_equal(weft_tokenizer_load(NULL, in_scratch("absent"), &t), WEFT_ERR_IO);
}

/* The character NUL survives in a file too. */
static void test_nul(void **state) {
    (void)state;
    weft_tokenizer *t, *u;
    size_t n = 0;
    assert_int_equal(weft_tokenizer_build(NULL, WEFT_TOKENIZER_CHARACTER, "a\0b", 3, NULL, &t), WEFT_OK);
    assert_int_equal(weft_tokenizer_save(t, in_scratch("nul.json")), WEFT_OK);
    assert_int_equal(weft_tokenizer_load(NULL, in_scratch("nul.json"), &u), WEFT_OK);
    assert_int_equal(weft_tokenizer_vocabulary(u), 3);
    assert_memory_equal(weft_tokenizer_token(u, 0, &n), "\0", 1);
    assert_int_equal(n, 1);
    weft_tokenizer_free(t);
    weft_tokenizer_free(u);
}

#define HEAD "{\"format\":\"weft-tokenizer\",\"version\":1,"
static const struct {
    const char *json;
    weft_status status;
    const char *message;
} files[] = {
    {HEAD "\"kind\":\"byte\"}", WEFT_OK, NULL},
    {HEAD "\"kind\":\"character\",\"vocabulary\":[\"a\",\"b\"]}", WEFT_OK, NULL},
    {HEAD "\"kind\":\"word\",\"vocabulary\":[\"<unk>\",\"<eos>\",\"b\",\"a\"]}", WEFT_OK, NULL},
    {"", WEFT_ERR_FORMAT, "line 1"},
    {"[]", WEFT_ERR_FORMAT, "object"},
    {"{}", WEFT_ERR_FORMAT, "format"},
    {"{\"format\":\"other\"}", WEFT_ERR_FORMAT, "format"},
    {"{\"format\":\"weft-tokenizer\",\"version\":2,\"kind\":\"byte\"}", WEFT_ERR_UNSUPPORTED, "version: 2"},
    {"{\"format\":\"weft-tokenizer\",\"version\":\"1\",\"kind\":\"byte\"}", WEFT_ERR_FORMAT, "version"},
    {HEAD "\"kind\":\"sentence\"}", WEFT_ERR_FORMAT, "kind"},
    {HEAD "\"kind\":\"byte\",\"kind\":\"byte\"}", WEFT_ERR_FORMAT, "duplicate"},
    {HEAD "\"kind\":\"byte\",\"vocabulary\":[]}", WEFT_ERR_FORMAT, "fields"},
    {HEAD "\"kind\":\"byte\"} x", WEFT_ERR_FORMAT, "line 1"},
    {HEAD "\"kind\":\"character\"}", WEFT_ERR_FORMAT, "fields"},
    {HEAD "\"kind\":\"character\",\"vocabulary\":{}}", WEFT_ERR_FORMAT, "array"},
    {HEAD "\"kind\":\"character\",\"vocabulary\":[]}", WEFT_ERR_FORMAT, "empty"},
    {HEAD "\"kind\":\"character\",\"vocabulary\":[\"a\",7]}", WEFT_ERR_FORMAT, "id 1 is not a string"},
    {HEAD "\"kind\":\"character\",\"vocabulary\":[\"a\",\"a\"]}", WEFT_ERR_FORMAT,
     "id 1 is not in ascending"},
    {HEAD "\"kind\":\"character\",\"vocabulary\":[\"b\",\"a\"]}", WEFT_ERR_FORMAT,
     "id 1 is not in ascending"},
    {HEAD "\"kind\":\"character\",\"vocabulary\":[\"a\",\"bc\"]}", WEFT_ERR_FORMAT,
     "id 1 is not one character"},
    {HEAD "\"kind\":\"character\",\"vocabulary\":[\"\"]}", WEFT_ERR_FORMAT, "id 0 is not one character"},
    {HEAD "\"kind\":\"character\",\"vocabulary\":[\"\xff\"]}", WEFT_ERR_FORMAT, "line 1"},
    {HEAD "\"kind\":\"character\",\"vocabulary\":[[\"a\"]]}", WEFT_ERR_FORMAT, "id 0 is not a string"},
    {HEAD "\"kind\":\"word\",\"vocabulary\":[\"a\",\"b\"]}", WEFT_ERR_FORMAT, "<unk>"},
    {HEAD "\"kind\":\"word\",\"vocabulary\":[\"<unk>\"]}", WEFT_ERR_FORMAT, "<unk>"},
    {HEAD "\"kind\":\"word\",\"vocabulary\":[\"<unk>\",\"<eos>\",\"a b\"]}", WEFT_ERR_FORMAT,
     "id 2 is empty or holds"},
    {HEAD "\"kind\":\"word\",\"vocabulary\":[\"<unk>\",\"<eos>\",\"\"]}", WEFT_ERR_FORMAT,
     "id 2 is empty or holds"},
    {HEAD "\"kind\":\"word\",\"vocabulary\":[\"<unk>\",\"<eos>\",\"a\",\"b\",\"a\"]}", WEFT_ERR_FORMAT,
     "id 4 repeats id 2"},
    {HEAD "\"kind\":\"word\",\"vocabulary\":[\"<unk>\",\"<eos>\",\"<unk>\"]}", WEFT_ERR_FORMAT,
     "id 2 repeats id 0"},
};

static void test_malformed_files(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(files); i++) {
        weft_tokenizer *t = NULL;
        weft_status status = weft_tokenizer_parse(NULL, files[i].json, strlen(files[i].json), &t);
        if (status != files[i].status ||
            (files[i].message && !strstr(weft_last_error(NULL), files[i].message)))
            fail_msg("%s: %s, '%s'", files[i].json, weft_status_name(status), weft_last_error(NULL));
        assert_true((t != NULL) == (status == WEFT_OK));
        weft_tokenizer_free(t);
        if (status != WEFT_OK) continue;
        for (size_t cut = 0; cut < strlen(files[i].json); cut++)
            assert_int_equal(weft_tokenizer_parse(NULL, files[i].json, cut, &t), WEFT_ERR_FORMAT);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8),        cmocka_unit_test(test_character),
        cmocka_unit_test(test_bad_corpora), cmocka_unit_test(test_byte),
        cmocka_unit_test(test_word),        cmocka_unit_test(test_many_words),
        cmocka_unit_test(test_streaming),   cmocka_unit_test(test_files),
        cmocka_unit_test(test_nul),         cmocka_unit_test(test_malformed_files),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
