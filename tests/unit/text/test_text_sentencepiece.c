/* The .model files of SentencePiece: small models of both types, damaged files, short memory.
 * tests/text/peer.py compares trained models with the Python package sentencepiece. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <weft/text.h>

#include "unit/failing_alloc.h"
#include "unit/io_scratch.h"
#include "unit/text_ids.h"

/* ---- SentencePiece ---- */

static size_t put_field(char *to, int number, const char *bytes, size_t count) {
    to[0] = (char)(number << 3 | 2);
    to[1] = (char)count; /* below 128 */
    memcpy(to + 2, bytes, count);
    return count + 2;
}

static size_t put_piece(char *to, const char *text, float score, int type) {
    char piece[64];
    size_t used = put_field(piece, 1, text, strlen(text));
    piece[used++] = 2 << 3 | 5;
    memcpy(piece + used, &score, 4);
    used += 4;
    piece[used++] = 3 << 3;
    piece[used++] = (char)type;
    return put_field(to, 1, piece, used);
}

/* Writes a model of nine pieces, with a byte for "<0x0A>". */
static size_t make_model(char *to, int type) {
    size_t used = put_piece(to, "<unk>", 0, 2);
    used += put_piece(to + used, "<s>", 0, 3);
    used += put_piece(to + used, "</s>", 0, 3);
    used += put_piece(to + used, "<0x0A>", 0, 6);
    used += put_piece(to + used,
                      "\xe2\x96\x81"
                      "a",
                      -1, 1);
    used += put_piece(to + used, "aa", -2, 1);
    used += put_piece(to + used, "aaa", -3, 1);
    used += put_piece(to + used, "\xe2\x96\x81", -4, 1);
    used += put_piece(to + used, "a", -5, 1);
    const char trainer[] = {3 << 3, (char)type, (char)(35 << 3 & 0x7f) | (char)0x80, 35 >> 4,
                            1}; /* byte_fallback */
    return used + put_field(to + used, 2, trainer, sizeof trainer);
}

static void test_sentencepiece(void **state) {
    (void)state;
    for (int type = 1; type <= 2; type++) {
        char model[512];
        size_t bytes = make_model(model, type);
        weft_tokenizer *t = NULL;
        assert_true(spill(in_scratch("tokenizer.model"), model, bytes));
        if (weft_tokenizer_load(NULL, scratch, &t) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
        assert_int_equal(weft_tokenizer_vocabulary(t), 9);
        ASSERT_IDS(t, "  a  a ", 4, 4);
        if (type == 1) ASSERT_IDS(t, "aaaa", 4, 6); /* -1 - 3 is the best sum */
        if (type == 2) ASSERT_IDS(t, "aaaa", 4, 6); /* "_a" goes first, then "aa", then "aaa" */
        ASSERT_IDS(t, "ba", 7, 0, 8);
        ASSERT_IDS(t, "\na", 7, 3, 8);
        ASSERT_IDS(t, "a</s>", 4, 2);
        assert_int_equal(weft_tokenizer_special(t, WEFT_SPECIAL_BOS), 1);
        assert_int_equal(weft_tokenizer_special(t, WEFT_SPECIAL_EOS), 2);
        assert_int_equal(weft_tokenizer_special(t, WEFT_SPECIAL_PAD), -1);
        assert_decoded(t, (const int32_t[]){4, 6, 4}, 3, "aaaa a");
        weft_tokenizer_free(t);
        for (size_t cut = 0; cut < bytes; cut++) { /* any part of a file is refused, or is a model */
            assert_true(spill(in_scratch("cut.model"), model, cut));
            if (weft_tokenizer_load(NULL, in_scratch("cut.model"), &t) == WEFT_OK)
                weft_tokenizer_free(t);
            else
                assert_non_null(strstr(weft_last_error(NULL), "cut.model"));
        }
    }
    (void)unlink(in_scratch("tokenizer.model"));
    (void)unlink(in_scratch("cut.model"));
}

static weft_status open_sentencepiece(weft_context *ctx) {
    weft_tokenizer *t = NULL;
    weft_status status = weft_tokenizer_load(ctx, in_scratch("short.model"), &t);
    weft_tokenizer_free(t);
    return status;
}

static void test_sentencepiece_short_memory(void **state) {
    (void)state;
    char model[512];
    assert_true(spill(in_scratch("short.model"), model, make_model(model, 2)));
    int calls = fail_each_allocation(open_sentencepiece);
    if (calls < 0) fail_msg("allocation %d: %s", -1 - calls, weft_last_error(NULL));
    assert_true(calls > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sentencepiece),
                                       cmocka_unit_test(test_sentencepiece_short_memory)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
