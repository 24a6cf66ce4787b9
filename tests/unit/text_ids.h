/* Assertions about ids and decoded texts. Include it after cmocka.h. */
#ifndef WEFT_TESTS_TEXT_IDS_H
#define WEFT_TESTS_TEXT_IDS_H

#include <string.h>

#include <weft/text.h>

static inline void assert_ids(const weft_tokenizer *t, const char *text, const int32_t *expected,
                              size_t count) {
    int32_t ids[64];
    size_t n = 0;
    if (weft_tokenizer_encode(t, text, strlen(text), ids, sizeof ids / sizeof *ids, &n) != WEFT_OK)
        fail_msg("'%s': %s", text, weft_last_error(NULL));
    for (size_t i = 0; i < n && i < count; i++)
        if (ids[i] != expected[i]) fail_msg("'%s': id %zu is %d, not %d", text, i, ids[i], expected[i]);
    if (n != count) fail_msg("'%s': %zu ids, not %zu", text, n, count);
}

#define ASSERT_IDS(t, text, ...)                                                                             \
    assert_ids(t, text, (const int32_t[]){__VA_ARGS__},                                                      \
               sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static inline void assert_decoded(const weft_tokenizer *t, const int32_t *ids, size_t count,
                                  const char *expected) {
    char out[256] = "", streamed[256] = "";
    const char *text;
    size_t n = 0;
    weft_decoder *d = NULL;
    assert_int_equal(weft_tokenizer_decode(t, ids, count, out, sizeof out - 1, &n), WEFT_OK);
    out[n] = 0;
    assert_string_equal(out, expected);
    assert_int_equal(weft_decoder_open(t, &d), WEFT_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(weft_decoder_push(d, ids[i], &text, &n), WEFT_OK);
        strcat(streamed, text);
    }
    assert_int_equal(weft_decoder_finish(d, &text, &n), WEFT_OK);
    strcat(streamed, text);
    assert_string_equal(streamed, expected);
    weft_decoder_free(d);
}

#endif
