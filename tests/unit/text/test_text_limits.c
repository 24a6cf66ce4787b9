/* Tokenizers that ask for more bytes or steps than base/limits.h allows: each must be refused, and the
 * largest that is allowed must work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <weft/text.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define LETTERS                                                                                              \
    "{\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \" \": 2, \"x\": 3, \"\\ufffd\": 4}, \"merges\": "  \
    "[]}"

/* Makes a tokenizer with a list of `count` equal parts. */
static weft_status with_parts(const char *stage, const char *list, const char *part, int count,
                              weft_tokenizer **t) {
    char *json = malloc(200 + (strlen(part) + 2) * (size_t)count);
    size_t used = (size_t)sprintf(json, "{\"%s\": {\"type\": \"Sequence\", \"%s\": [", stage, list);
    for (int i = 0; i < count; i++) used += (size_t)sprintf(json + used, "%s%s", i ? ", " : "", part);
    sprintf(json + used, "]}, \"model\": " LETTERS "}");
    weft_status status = weft_tokenizer_parse(NULL, json, strlen(json), t);
    free(json);
    return status;
}

#define TENFOLD "{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": \"aaaaaaaaaa\"}"

static void expect_refused(weft_status status, const char *message) {
    if (status != WEFT_ERR_UNSUPPORTED || !strstr(weft_last_error(NULL), message))
        fail_msg("%s, '%s' for '%s'", weft_status_name(status), weft_last_error(NULL), message);
}

static void test_growing_texts(void **state) {
    static const struct {
        const char *stage, *list, *part;
        int count;
    } cases[] = {
        {"normalizer", "normalizers", TENFOLD, 4},
        {"normalizer", "normalizers", TENFOLD, 9},
        {"normalizer", "normalizers", "{\"type\": \"ByteLevel\"}", 20},
        {"pre_tokenizer", "pretokenizers",
         "{\"type\": \"Metaspace\", \"replacement\": \"          \", \"split\": false}", 9},
        {"pre_tokenizer", "pretokenizers", "{\"type\": \"ByteLevel\", \"use_regex\": false}", 20},
    };
    (void)state;
    weft_tokenizer *t = NULL;
    size_t n;
    char text[10];
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(with_parts(cases[i].stage, cases[i].list, cases[i].part, cases[i].count, &t),
                         WEFT_OK);
        expect_refused(weft_tokenizer_encode(t, "a \xc3\xa9", 4, NULL, 0, &n),
                       "more than 64 bytes of each byte of a text");
        weft_tokenizer_free(t);
    }
    assert_int_equal(with_parts("normalizer", "normalizers", TENFOLD, 3, &t), WEFT_OK);
    assert_int_equal(weft_tokenizer_encode(t, "a", 1, NULL, 0, &n), WEFT_OK); /* 1,000 bytes are free */
    assert_int_equal(n, 1000);
    weft_tokenizer_free(t);
    assert_int_equal(with_parts("decoder", "decoders", TENFOLD, 4, &t), WEFT_OK);
    expect_refused(weft_tokenizer_decode(t, (int32_t[]){0}, 1, text, sizeof text, &n),
                   "more than 64 bytes of each byte of a text");
    weft_tokenizer_free(t);
    expect_refused(with_parts("normalizer", "normalizers", "{\"type\": \"NFC\"}", 129, &t),
                   "normalizer: more than 128 parts");
    assert_int_equal(with_parts("normalizer", "normalizers", "{\"type\": \"NFC\"}", 128, &t), WEFT_OK);
    weft_tokenizer_free(t);
}

/* Encodes 20,000 times "a", and then "b", with a vocabulary or added tokens that such a text nearly spells
 * from each of its places. */
static void test_slow_texts(void **state) {
    static const char *const files[] = {
        "{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"a\", 0], [\"b\", 0], [\"%sc\", "
        "0]]}}",
        "{\"model\": {\"type\": \"WordPiece\", \"continuing_subword_prefix\": \"\", "
        "\"max_input_chars_per_word\": 1000000, \"vocab\": {\"[UNK]\": 0, \"a\": 1, \"%sc\": 2}}}",
        "{\"model\": " LETTERS
        ", \"added_tokens\": [{\"id\": 9, \"content\": \"%sc\", \"normalized\": false}]}",
        "{\"model\": " LETTERS ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": "
        "\"(a+)+[cd]%.0s\"}, \"behavior\": \"Isolated\"}}",
    };
    enum { TEXT = 20000, DEEP = 10000 };
    char *text = malloc(TEXT + 1), *deep = malloc(DEEP + 1), *json = malloc(DEEP + 1000);
    (void)state;
    memset(text, 'a', TEXT);
    memset(deep, 'a', DEEP);
    text[TEXT - 1] = 'b';
    text[TEXT] = deep[DEEP] = 0;
    for (size_t i = 0; i < COUNT(files); i++) {
        size_t n;
        sprintf(json, files[i], deep);
        weft_tokenizer *t = NULL;
        assert_int_equal(weft_tokenizer_parse(NULL, json, strlen(json), &t), WEFT_OK);
        expect_refused(weft_tokenizer_encode(t, text, TEXT, NULL, 0, &n),
                       "more than 128 steps for each byte of a text");
        weft_status status = weft_tokenizer_encode(t, "aab", 3, NULL, 0, &n);
        if (status != WEFT_OK) fail_msg("%zu: %s", i, weft_last_error(NULL));
        weft_tokenizer_free(t);
    }
    free(text);
    free(deep);
    free(json);
}

static void test_large_templates(void **state) {
    (void)state;
    char json[4096] =
        "{\"model\": " LETTERS ", \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [";
    weft_tokenizer *t = NULL;
    for (int i = 0; i < 33; i++) strcat(json, "{\"SpecialToken\": {\"id\": \"x\"}}, ");
    char *rest = json + strlen(json);
    strcpy(rest, "{\"Sequence\": {\"id\": \"A\"}}], \"special_tokens\": {\"x\": {\"ids\": [0");
    for (int i = 1; i < 32; i++) strcat(json, ", 0");
    strcat(json, "]}}}}");
    expect_refused(weft_tokenizer_parse(NULL, json, strlen(json), &t),
                   "more than 1024 special tokens around a text");
    const char *twice =
        "{\"model\": " LETTERS ", \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
        "[{\"Sequence\": {\"id\": \"A\"}}, {\"Sequence\": {\"id\": \"A\"}}]}}";
    expect_refused(weft_tokenizer_parse(NULL, twice, strlen(twice), &t), "the template has a text twice");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growing_texts),
        cmocka_unit_test(test_slow_texts),
        cmocka_unit_test(test_large_templates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
